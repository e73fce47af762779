/* The peak of a response, and the first frame that reaches a level, which is searched in blocks that stay in the cache.
 */
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/finite.h"
#include "object.h"

#include <math.h>

enum { BLOCK = 4096 };

/* Returns the first frame in which any channel reaches the level; `frames` if there is none. */
static int64_t find_level(const gpuconv_ir *ir, float level) {
    int64_t first = ir->frames;
    for (int p = 0; p < ir->planes; p++) {
        const float *taps = gc_ir_plane(ir, p);
        int64_t at = 0;
        while (at < first && gc_magnitude(taps + at, gc_min(BLOCK, first - at)) < level)
            at += BLOCK;
        while (at < first && fabsf(taps[at]) < level)
            at++;
        first = gc_min(first, at);
    }
    return first;
}

float gc_ir_magnitude(const gpuconv_ir *ir) {
    return gc_magnitude(ir->taps, (int64_t)ir->planes * ir->frames);
}

int64_t gc_ir_find_onset(const gpuconv_ir *ir, float peak, double decibels) {
    return peak > 0 ? find_level(ir, peak * (float)gc_level_factor(fmin(decibels, 0))) : 0;
}

int64_t gpuconv_ir_peak(const gpuconv_ir *ir, double *magnitude) {
    const float peak = ir ? gc_ir_magnitude(ir) : 0;
    if (magnitude)
        *magnitude = (double)peak;
    return ir ? find_level(ir, peak) : 0;
}

int64_t gpuconv_ir_onset(const gpuconv_ir *ir, double decibels) {
    return ir ? gc_ir_find_onset(ir, gc_ir_magnitude(ir), decibels) : 0;
}
