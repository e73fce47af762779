/* Responses of a batch: each prepared once for the inputs that share it, and kept while there is room. What one input
 * has for itself is not kept: its memory, still in the caches, is the next one's. */
#ifndef GPUCONV_BATCH_RESPONSES_H
#define GPUCONV_BATCH_RESPONSES_H

#include "gpuconv.h"

enum { GC_BATCH_DEVICES = 64 };

typedef struct gc_response {
    gpuconv_ir *ir;                  /* resampled, mixed, routed */
    float *planes[GC_BATCH_DEVICES]; /* its planes on a device, once somebody wanted them there */
    /* inside: */
    char *key; /* NULL: not in the table */
    int64_t bytes;
    int holders;
    bool ready;
    struct gc_response *next;            /* in its chain */
    struct gc_response *older, *younger; /* among those that nobody holds */
} gc_response;

typedef struct gc_responses gc_responses;

/* What an entry wants of a response. */
typedef struct gc_response_wish {
    const char *path;
    double gain, wet, dry; /* decibels */
    double rate;
    int channels; /* of the input */
    bool shared;  /* others may want it too */
} gc_response_wish;

/* Keeps up to so many bytes of responses that nobody holds; for any number of threads. `forget` frees a device's copy.
 * NULL: no memory. */
gc_responses *gc_responses_new(int64_t bytes, void (*forget)(int device, float *planes));

/* The response as wished, until it is given back; *fresh: prepared for this caller, nobody has had it before. As
 * gpuconv_ir_load, _resample, _route, _mix. */
gpuconv_status gc_responses_take(gc_responses *responses, const gc_response_wish *wish, gc_response **response,
                                 bool *fresh, gpuconv_error *error);
void gc_responses_give_back(gc_responses *responses, gc_response *response);

/* One caller at a time looks at, and fills in, a response's planes[]. */
void gc_responses_lock(gc_responses *responses, const gc_response *response);
void gc_responses_unlock(gc_responses *responses, const gc_response *response);

/* When none is held any more. */
void gc_responses_free(gc_responses *responses);

#endif
