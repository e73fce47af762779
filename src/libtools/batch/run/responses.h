/* Cache of the impulse responses of a batch. A response that several entries share is prepared once, and kept after its
 * last use as long as a limit on bytes allows. A response that one entry alone uses is not kept: its memory, which is
 * still in the caches, serves the next one. */
#ifndef GPUCONV_BATCH_RUN_RESPONSES_H
#define GPUCONV_BATCH_RUN_RESPONSES_H

#include "gpuconv_arrays.h"
#include "libtools/batch/entry/entry.h"
#include "libtools/batch/output/state.h"

enum { GC_BATCH_DEVICES = 64 };

typedef struct gc_response {
    gpuconv_ir *ir;                  /* resampled, mixed, routed */
    gpuconv_sofa *ears;              /* of GC_RESPONSE_EARS, which then owns ir */
    gc_state state;                  /* of the file, before it was read */
    float *planes[GC_BATCH_DEVICES]; /* copy in each device's memory; NULL: not made yet */

    /* Private to the cache. */
    char *key; /* NULL: not in the table */
    int64_t bytes;
    int references;
    bool ready;
    struct gc_response *older, *younger; /* in the list of unreferenced responses */
} gc_response;

typedef struct gc_responses gc_responses;

typedef enum gc_response_kind {
    GC_RESPONSE_WHOLE = 0,
    GC_RESPONSE_EARLY, /* up to early_ms after the direct sound, which is the peak */
    GC_RESPONSE_NOISE, /* no response but noise: at the rate of the input, and not routed */
    GC_RESPONSE_EARS   /* an open set, at the rate of the input, for rooms */
} gc_response_kind;

/* The response of an entry and its preparation. */
typedef struct gc_response_request {
    const char *path;
    const gc_recipe *recipe;
    double gain, wet, dry; /* dB; gain: of the whole output */
    double rate;           /* of the input, Hz */
    int channels;          /* of the input */
    bool shared;           /* other entries name this response, too */
    gc_response_kind kind;
    const gpuconv_ir *whole; /* of GC_RESPONSE_EARLY: the response of kind GC_RESPONSE_WHOLE */
} gc_response_request;

/* Creates a cache that keeps up to `bytes` bytes of unreferenced responses. Any number of threads may use it.
 * `release` frees a device's copy. NULL: out of memory. */
gc_responses *gc_responses_new(int64_t bytes, void (*release)(int device, float *planes));

/* Prepares a response, or returns the cached one; the caller releases it. *is_new: it was prepared for this caller, and
 * no other has used it before. Blocks while another thread prepares the same response. Fails as gpuconv_ir_prepare. */
gpuconv_status gc_responses_acquire(gc_responses *responses, const gc_response_request *request, gc_response **response,
                                    bool *is_new, gpuconv_error *error);
void gc_responses_release(gc_responses *responses, gc_response *response);

/* Takes a place with one thread, and gives it back for others. */
gpuconv_status gc_responses_take_place(gc_responses *responses, gpuconv_arrays **place, gpuconv_error *error);
void gc_responses_return_place(gc_responses *responses, gpuconv_arrays *place);

/* Locks and unlocks a response's planes[]. */
void gc_responses_lock(gc_responses *responses, const gc_response *response);
void gc_responses_unlock(gc_responses *responses, const gc_response *response);

/* Frees the cache; no response may be referenced. */
void gc_responses_free(gc_responses *responses);

#endif
