/* Warms a variant up, takes samples, and computes their median and spread. */
#include "measure.h"

#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/statistics.h"

#include <math.h>
#include <stdlib.h>

/* The number of launches per sample is chosen such that a sample takes at least min_sample_seconds: the clock's
 * resolution and the host's cost of a launch are then small in comparison. */
static const double min_sample_seconds = 200e-6, min_warm_up_seconds = 30e-3, max_warm_up_seconds = 0.6;
enum { SAMPLES = 15, COLD_SAMPLES = 11, LONG_SAMPLES = 10, MAX_LAUNCHES = 64 };

/* Takes one sample of `launches` consecutive launches: CUDA events measure the first stream, or the host's clock
 * measures from idle to idle for variants with LAB_HOST_CLOCK. */
static int take_sample(const gc_lab_variant *variant, const gc_lab_run *run, gc_lab_device *device, int launches,
                       bool flushed, double *seconds) {
    bool events = device && !(variant->flags & LAB_HOST_CLOCK);
    int err = device && flushed ? gc_lab_device_flush_l2(device) : 0;
    if (!err && device && !events)
        err = gc_lab_device_synchronize(device);
    double start = gc_now();
    *seconds = 0;
    if (!err && events)
        err = gc_lab_device_timer_start(device);
    for (int r = 0; !err && r < launches; r++)
        err = variant->launch(run);
    if (!err && events)
        err = gc_lab_device_timer_stop(device, seconds);
    else if (!err && device)
        err = gc_lab_device_synchronize(device);
    if (!events)
        *seconds = gc_now() - start;
    *seconds /= launches;
    return err;
}

/* Launches for at least min_warm_up_seconds and until two successive samples were not more than 2 % faster than the
 * fastest one before, but at most for max_warm_up_seconds. Sets *seconds to the least time of a launch. */
static int warm_up(const gc_lab_variant *variant, const gc_lab_run *run, gc_lab_device *device, double *seconds) {
    double start = gc_now(), least = HUGE_VAL;
    int steady = 0, err = 0;
    while (!err && (steady < 2 || gc_now() - start < min_warm_up_seconds) && gc_now() - start < max_warm_up_seconds) {
        err = take_sample(variant, run, device, 1, false, seconds);
        steady = *seconds < 0.98 * least ? 0 : steady + 1;
        least = fmin(least, *seconds);
    }
    *seconds = least;
    return err;
}

gpuconv_status gc_lab_measure(const gc_lab_variant *variant, const gc_lab_run *run, gc_lab_device *device,
                              gc_lab_timing_result *timing, gpuconv_error *error) {
    double samples[SAMPLES], estimate;
    int err = warm_up(variant, run, device, &estimate);
    *timing = (gc_lab_timing_result){.samples = estimate > 0.2 ? LONG_SAMPLES : SAMPLES, .launches = 1};
    while (timing->launches < MAX_LAUNCHES && timing->launches * estimate < min_sample_seconds)
        timing->launches *= 2;
    for (int i = 0; !err && i < timing->samples; i++)
        err = take_sample(variant, run, device, timing->launches, false, &samples[i]);
    if (!err) {
        timing->median = gc_median(samples, timing->samples, NULL);
        timing->least = samples[0];
        timing->spread = (samples[timing->samples - 1] - samples[0]) / 2;
    }
    if (!err && device && estimate < 0.05 && !(variant->flags & LAB_ONCE)) {
        for (int i = 0; !err && i < COLD_SAMPLES; i++)
            err = take_sample(variant, run, device, 1, true, &samples[i]);
        if (!err)
            timing->cold = gc_median(samples, COLD_SAMPLES, NULL);
    }
    if (err)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "%s: %s", variant->name, gc_lab_device_error_text(err));
    return GPUCONV_OK;
}
