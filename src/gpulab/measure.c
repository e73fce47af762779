/* Warm-up, samples, median, spread. */
#include "measure.h"

#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/statistics.h"

#include <math.h>
#include <stdlib.h>

/* A sample lasts at least so long, by a row of launches, so that the clock's grain and the price of a launch on the
 * host are small beside it. */
static const double sample_least = 200e-6, warm_least = 30e-3, warm_most = 0.6;
enum { SAMPLES = 15, COLD_SAMPLES = 11, LONG_SAMPLES = 10, ROW_MOST = 64 };

/* One sample: seconds of a launch in a row of them. */
static int sample(const gc_lab_variant *variant, const gc_lab_run *run, gc_lab_device *device, int row, bool flushed,
                  double *seconds) {
    bool events = device && !(variant->flags & LAB_HOST_CLOCK);
    int failed = device && flushed ? gc_lab_device_flush(device) : 0;
    if (!failed && device && !events)
        failed = gc_lab_device_wait(device);
    double start = gc_now();
    *seconds = 0;
    if (!failed && events)
        failed = gc_lab_device_mark(device);
    for (int r = 0; !failed && r < row; r++)
        failed = variant->launch(run);
    if (!failed && events)
        failed = gc_lab_device_since(device, seconds);
    else if (!failed && device)
        failed = gc_lab_device_wait(device);
    if (!events)
        *seconds = gc_now() - start;
    *seconds /= row;
    return failed;
}

/* Until two samples in a row are no faster than what went before, or long enough. */
static int warm_up(const gc_lab_variant *variant, const gc_lab_run *run, gc_lab_device *device, double *seconds) {
    double start = gc_now(), least = HUGE_VAL;
    int calm = 0, failed = 0;
    for (int i = 0; !failed && (calm < 2 || gc_now() - start < warm_least) && gc_now() - start < warm_most; i++) {
        failed = sample(variant, run, device, 1, false, seconds);
        calm = *seconds < 0.98 * least ? 0 : calm + 1;
        least = fmin(least, *seconds);
    }
    *seconds = least;
    return failed;
}

gpuconv_status gc_lab_measure(const gc_lab_variant *variant, const gc_lab_run *run, gc_lab_device *device,
                              gc_lab_times *timing, gpuconv_error *error) {
    double samples[SAMPLES], about;
    int failed = warm_up(variant, run, device, &about);
    *timing = (gc_lab_times){.n = about > 0.2 ? LONG_SAMPLES : SAMPLES, .row = 1};
    while (timing->row < ROW_MOST && timing->row * about < sample_least)
        timing->row *= 2;
    for (int i = 0; !failed && i < timing->n; i++)
        failed = sample(variant, run, device, timing->row, false, &samples[i]);
    if (!failed) {
        timing->median = gc_median(samples, timing->n, NULL);
        timing->least = samples[0];
        timing->spread = (samples[timing->n - 1] - samples[0]) / 2;
    }
    if (!failed && device && about < 0.05 && !(variant->flags & LAB_ONCE)) {
        for (int i = 0; !failed && i < COLD_SAMPLES; i++)
            failed = sample(variant, run, device, 1, true, &samples[i]);
        if (!failed)
            timing->cold = gc_median(samples, COLD_SAMPLES, NULL);
    }
    if (failed)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "%s: %s", variant->name, gc_lab_device_error(failed));
    return GPUCONV_OK;
}
