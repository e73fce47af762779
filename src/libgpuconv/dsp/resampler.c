/* Sample rate conversion with soxr. */
#include "resampler.h"

#include <soxr.h>

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
