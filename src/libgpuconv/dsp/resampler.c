/* Sample rate conversion with soxr. */
#include "resampler.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <soxr.h>

/* Most frames that the resampler takes or gives between two checks of the cancel flag. */
enum { PIECE = 1 << 16 };

/* Feeds `frames` frames and takes `n`; output that the resampler does not give stays unchanged. Ends early once
 * cancelled. Returns NULL, or the resampler's error. */
static soxr_error_t run_resampler(soxr_t converter, const float *from, int64_t frames, float *to, int64_t n) {
    int64_t fed = 0, taken = 0;
    bool drained = false; /* the input has ended and the resampler gives no more output */
    while (taken < n && !drained && !gc_cancelled()) {
        size_t used, done;
        const bool more = fed < frames;
        soxr_error_t err =
            soxr_process(converter, more ? from + fed : NULL, more ? (size_t)gc_min(PIECE, frames - fed) : 0, &used,
                         to + taken, (size_t)gc_min(PIECE, n - taken), &done);
        if (err)
            return err;
        fed += more ? (int64_t)used : 0;
        taken += (int64_t)done;
        drained = !more && done == 0;
    }
    return NULL;
}

gpuconv_status gc_resample(const float *from, int64_t frames, double ratio, double gain, float *to, int64_t n,
                           gpuconv_error *error) {
    soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
    io.scale = gain;
    soxr_quality_spec_t quality = soxr_quality_spec(SOXR_VHQ, 0);
    soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
    soxr_error_t err = NULL;
    soxr_t converter = soxr_create(1, ratio, 1, &err, &io, &quality, &runtime);
    if (!err)
        err = run_resampler(converter, from, frames, to, n);
    soxr_delete(converter);
    if (gc_cancelled())
        return gc_fail_cancelled(error, "the resampled response");
    return err ? gc_fail(error, GPUCONV_ERROR_MEMORY, "resampling the response failed: %s", err) : GPUCONV_OK;
}

gc_resampler *gc_resampler_new(double from, double to, int channels) {
    soxr_error_t err = NULL;
    soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
    soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
    soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
    soxr_t soxr = soxr_create(from, to, (unsigned)channels, &err, &io, &quality, &runtime);
    return err ? NULL : (gc_resampler *)soxr;
}

void gc_resampler_free(gc_resampler *r) {
    if (r)
        soxr_delete((soxr_t)r);
}

int64_t gc_resampler_process(gc_resampler *r, const float *in, int64_t frames, float *out, int64_t room) {
    size_t used, done;
    soxr_error_t err = soxr_process((soxr_t)r, in, (size_t)(in ? frames : 0), &used, out, (size_t)room, &done);
    return err || (in && (int64_t)used != frames) ? -1 : (int64_t)done;
}

void gc_resampler_clear(gc_resampler *r) {
    (void)soxr_clear((soxr_t)r); /* can fail only for the reasons for which soxr_create fails */
}
