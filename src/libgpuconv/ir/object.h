/* The structure of an impulse response: planes of taps, and routes that refer to them. Routes may share a plane. */
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
    int64_t ring;         /* last frames, which resampling appended: the ringing of its filter */
    int inputs, outputs;
    int planes;
    float *taps;            /* planes x frames */
    gpuconv_ir *taps_owner; /* a reference to the response that owns the taps; NULL: this one owns them */
    int routes;
    gc_route *route; /* sorted by output, then by input */
    bool routed;     /* has its routes for an input; it is not routed again */
    char *history;   /* NULL: none */
};

/* Checks that `planes` planes of `frames` frames (a whole number, possibly beyond 64 bits) and `work` bytes more fit
 * into the free memory. Returns MEMORY with the sizes. */
gpuconv_status gc_ir_check_memory(int64_t planes, double frames, double work, gpuconv_error *error);

static inline const float *gc_ir_plane(const gpuconv_ir *ir, int plane) {
    return ir->taps + (int64_t)plane * ir->frames;
}

static inline double gc_energy(const float *taps, int64_t frames) {
    double sum = 0;
    for (int64_t i = 0; i < frames; i++)
        sum += (double)taps[i] * (double)taps[i];
    return sum;
}

/* Returns whether every output has exactly one route; route[o] is then the one of output o. */
static inline bool gc_ir_one_route_each(const gpuconv_ir *ir) {
    bool one_each = ir->routes == ir->outputs;
    for (int r = 0; r < ir->routes && one_each; r++)
        one_each = ir->route[r].output == r;
    return one_each;
}

/* Returns whether every output has one route, from the input of the same number. */
static inline bool gc_ir_keeps_channels(const gpuconv_ir *ir) {
    bool same = ir->inputs == ir->outputs && gc_ir_one_route_each(ir);
    for (int r = 0; r < ir->routes && same; r++)
        same = ir->route[r].input == r;
    return same;
}

/* Makes a response of the given shape with zeroed taps and routes, which the caller fills. Returns NULL without memory.
 */
gpuconv_ir *gc_ir_blank(int inputs, int outputs, int planes, int routes, int64_t frames, double rate);

/* As gc_ir_blank, but the contents of the taps are undefined. */
gpuconv_ir *gc_ir_unfilled(int inputs, int outputs, int planes, int routes, int64_t frames, double rate);

/* Makes a response of one input with a route from each of its channels; takes `taps` (channels x frames, from gc_alloc)
 * over, also on failure. Returns NULL without memory. */
gpuconv_ir *gc_ir_own(float *taps, int channels, int64_t frames, double rate);

/* Makes a response with the routes, lead, ring and history of `ir`, another length and rate, and zeroed taps. Returns
 * NULL without memory. */
gpuconv_ir *gc_ir_like(const gpuconv_ir *ir, int64_t frames, double rate);

/* Divides every channel of a packed response into its pieces for `inputs` inputs: the channels of the new response,
 * which shares the taps, are in the order of GPUCONV_LAYOUT_OUTPUT. Returns STATE (edited before), TOPOLOGY, MEMORY. */
gpuconv_status gc_ir_unpack(const gpuconv_ir *ir, int inputs, gpuconv_ir **unpacked, gpuconv_error *error);

/* Returns the largest magnitude of all channels. */
float gc_ir_magnitude(const gpuconv_ir *ir);

/* As gpuconv_ir_onset, with the magnitude of the response, which takes a pass over all taps to find. */
int64_t gc_ir_find_onset(const gpuconv_ir *ir, float magnitude, double decibels);

/* Appends to the history; an empty text appends nothing. Returns false without memory. */
bool gc_ir_append_history(gpuconv_ir *ir, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends to the history of a new response and stores it in *result. On failure, or if `made` is NULL, it frees the
 * response and returns MEMORY. */
gpuconv_status gc_ir_finish(gpuconv_ir *made, gpuconv_ir **result, gpuconv_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Adds a reference, which gpuconv_ir_free drops. */
gpuconv_ir *gc_ir_hold(const gpuconv_ir *ir);

#endif
