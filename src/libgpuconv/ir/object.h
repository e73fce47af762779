/* The inside of an impulse response: planes of taps, and routes that point at them, so that routes may share one. */
#ifndef GC_IR_OBJECT_H
#define GC_IR_OBJECT_H

#include "gpuconv.h"
#include "libgpuconv/core/limits.h"

typedef struct gc_route {
    int input, output, plane;
} gc_route;

struct gpuconv_ir {
    _Atomic int references;
    double rate;
    int64_t frames, lead; /* see gpuconv_ir_lead */
    int inputs, outputs;
    int planes;
    float *taps;        /* planes x frames; */
    gpuconv_ir *lender; /* whose they are: held; NULL: its own */
    int routes;
    gc_route *route; /* sorted by output, then input */
    bool routed;     /* fits an input as it is */
    char *history;   /* NULL: none */
};

/* Whether a response may have this rate: 1 to GC_MAX_RATE Hz, not NaN. */
static inline bool gc_ir_rate_fits(double rate) {
    return rate >= 1 && rate <= GC_MAX_RATE;
}

/* Checks, before memory is taken, that planes of `frames` (a whole number, maybe beyond 64 bits) and `work` more bytes
 * fit into what is free. MEMORY with the numbers. */
gpuconv_status gc_ir_fits(int64_t planes, double frames, double work, gpuconv_error *error);

static inline const float *gc_ir_plane(const gpuconv_ir *ir, int plane) {
    return ir->taps + (int64_t)plane * ir->frames;
}

/* Every output has just one route, which is then the output's own in the list. */
static inline bool gc_ir_one_route_each(const gpuconv_ir *ir) {
    bool so = ir->routes == ir->outputs;
    for (int r = 0; r < ir->routes && so; r++)
        so = ir->route[r].output == r;
    return so;
}

/* A response of the given shape with zeroed taps and routes, to be filled by its maker. NULL: no memory. */
gpuconv_ir *gc_ir_blank(int inputs, int outputs, int planes, int routes, int64_t frames, double rate);

/* One of another length and another rate with the same routes, lead and history as `ir`; its taps zero. */
gpuconv_ir *gc_ir_like(const gpuconv_ir *ir, int64_t frames, double rate);

/* Adds to what was done to it. False: no memory. */
bool gc_ir_record(gpuconv_ir *ir, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Hands a new response that had these words added to its history on to *result, or frees it and fails: MEMORY. */
gpuconv_status gc_ir_finish(gpuconv_ir *made, gpuconv_ir **result, gpuconv_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* One more holder; give it back with gpuconv_ir_free. */
gpuconv_ir *gc_ir_hold(const gpuconv_ir *ir);

#endif
