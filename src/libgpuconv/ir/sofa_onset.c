/*
 * The delay within a measured response: the lag at which it correlates best with its own minimum-phase version, below a
 * few kHz, where a head delays all frequencies alike (Nam, Abel & Smith, A method for estimating interaural time
 * difference for binaural synthesis, AES 125 (2008)). The lag is refined by a parabola.
 */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fourier.h"
#include "sofa.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The part of a response that is looked at: frames before its peak, and all of them; and the transform's length as a
 * multiple of it, which keeps the aliasing of the cepstrum low. */
enum { BEFORE_PEAK = 512, WINDOW = 2048, OVERSIZE = 4 };

static const double low_pass = 3000; /* Hz */

/* Turns a spectrum into that of its minimum-phase version: by the folded cepstrum, as gpuconv_ir_minimum_phase. `work`
 * has room for 2 x points. Returns false without memory. */
static bool make_minimum_phase(const double *re, const double *im, int64_t points, double *work) {
    double *minimal_re = work, *minimal_im = work + points, most = 0;
    for (int64_t k = 0; k < points; k++)
        most = fmax(most, hypot(re[k], im[k]));
    for (int64_t k = 0; k < points; k++)
        minimal_re[k] = log(fmax(hypot(re[k], im[k]), most * 1e-8));
    return gc_fourier_minimum_phase(minimal_re, minimal_im, points);
}

/* Computes the correlation with the minimum-phase version into `re`. `minimal` is the logarithm of its spectrum. */
static bool correlate(double *re, double *im, const double *minimal, int64_t points, double rate) {
    for (int64_t k = 0; k < points; k++) {
        const double frequency = (double)gc_min(k, points - k) * rate / (double)points / low_pass;
        const double gain = exp(minimal[k] - pow(frequency, 4)), phase = -minimal[points + k];
        const double x = re[k], y = im[k];
        re[k] = gain * (x * cos(phase) - y * sin(phase));
        im[k] = gain * (x * sin(phase) + y * cos(phase));
    }
    return gc_fourier(re, im, points, 1);
}

/* Returns the place of the largest value, refined by the parabola through it and its neighbours. */
static double find_peak(const double *values, int64_t count) {
    int64_t at = 0;
    for (int64_t i = 1; i < count; i++)
        at = values[i] > values[at] ? i : at;
    if (at == 0 || at == count - 1)
        return (double)at;
    const double before = values[at - 1], after = values[at + 1], bend = before - 2 * values[at] + after;
    return (double)at + (bend < 0 ? 0.5 * (before - after) / bend : 0);
}

/* Measures the delay of `frames` taps. Returns false without memory. */
static bool measure(const float *taps, int64_t frames, double rate, double *delay) {
    int64_t peak = 0;
    for (int64_t i = 1; i < frames; i++)
        peak = fabsf(taps[i]) > fabsf(taps[peak]) ? i : peak;
    const int64_t begin = gc_max(0, peak - BEFORE_PEAK), length = gc_min(WINDOW, frames - begin);
    const int64_t points = gc_power_of_two(OVERSIZE * gc_max(length, 4));
    *delay = (double)peak;
    if (taps[peak] == 0)
        return true;
    double *re = gc_calloc(4 * points, sizeof *re), *im = re ? re + points : NULL, *work = re ? re + 2 * points : NULL;
    for (int64_t i = 0; re && i < length; i++)
        re[i] = (double)taps[begin + i];
    const bool ok = re && gc_fourier(re, im, points, -1) && make_minimum_phase(re, im, points, work) &&
                    correlate(re, im, work, points, rate);
    if (ok)
        *delay = (double)begin + find_peak(re, length);
    free(re);
    return ok;
}

gpuconv_status gc_sofa_onset(const gpuconv_sofa *s, int measurement, int receiver, double *frames,
                             gpuconv_error *error) {
    _Atomic(double) *kept = &s->onset[(int64_t)measurement * s->receivers + receiver];
    *frames = atomic_load_explicit(kept, memory_order_relaxed);
    if (!isnan(*frames))
        return GPUCONV_OK;
    if (!measure(gc_sofa_taps(s, measurement, receiver), s->responses->frames, s->responses->rate, frames))
        return gc_fail_memory(error, "the delay of a response");
    atomic_store_explicit(kept, *frames, memory_order_relaxed); /* the same from every thread that measures it */
    return GPUCONV_OK;
}
