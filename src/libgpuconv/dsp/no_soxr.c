/* Takes the place of resampler.c in a build without libsoxr. */
#include "libgpuconv/core/error.h"
#include "resampler.h"

/* NOLINTNEXTLINE(readability-non-const-parameter): the parameters are those of resampler.h */
gpuconv_status gc_resample(const float *from, int64_t frames, double ratio, double gain, float *to, int64_t n,
                           gpuconv_error *error) {
    (void)from, (void)frames, (void)ratio, (void)gain, (void)to, (void)n;
    return gc_fail_without(error, "resampling a response", "libsoxr", "libsoxr-dev");
}
