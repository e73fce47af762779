/* Matrices of responses from samples in memory. */
#include "object.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/finite.h"

#include <string.h>

/* Checks shape and samples. *routes gets the number of responses. Returns ARGUMENT, FORMAT, MEMORY. */
static gpuconv_status check(const float *const *taps, int inputs, int outputs, int64_t frames, double rate,
                            int64_t *routes, gpuconv_error *error) {
    *routes = 0;
    if (inputs < 1 || inputs > GC_MAX_CHANNELS || outputs < 1 || outputs > GC_MAX_CHANNELS)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a matrix has 1 to %d inputs and outputs, not %d x %d",
                       GC_MAX_CHANNELS, inputs, outputs);
    if (frames < 1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has at least one frame, not %lld", (long long)frames);
    if (!gc_is_rate(rate))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has a rate of 1 to %d Hz, not %g", GC_MAX_RATE, rate);
    for (int i = 0; i < inputs; i++)
        for (int o = 0; o < outputs; o++) {
            const float *from = taps[(int64_t)i * outputs + o];
            int64_t first = from ? gc_find_not_finite(from, frames) : frames;
            if (first < frames)
                return gc_fail(error, GPUCONV_ERROR_FORMAT,
                               "the response from input %d to output %d is not finite at frame %lld", i + 1, o + 1,
                               (long long)first);
            *routes += from != NULL;
        }
    return gc_ir_check_memory(*routes, (double)frames, 0, error);
}

gpuconv_status gpuconv_ir_new_matrix(const float *const *taps, int inputs, int outputs, int64_t frames, double rate,
                                     gpuconv_ir **ir, gpuconv_error *error) {
    int64_t routes;
    if (!gc_begin(ir, taps, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_status status = check(taps, inputs, outputs, frames, rate, &routes, error);
    if (status)
        return status;
    gpuconv_ir *made = gc_ir_blank(inputs, outputs, (int)routes, (int)routes, frames, rate);
    if (!made)
        return gc_fail_memory(error, "the matrix");
    made->routed = true;
    int r = 0;
    for (int o = 0; o < outputs; o++)
        for (int i = 0; i < inputs; i++) {
            const float *from = taps[(int64_t)i * outputs + o];
            if (!from)
                continue;
            memcpy(made->taps + r * frames, from, (size_t)frames * sizeof *from);
            made->route[r] = (gc_route){i, o, r};
            r++;
        }
    *ir = made;
    return GPUCONV_OK;
}
