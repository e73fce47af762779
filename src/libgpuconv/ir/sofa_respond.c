/*
 * The response of a direction from those of the measurements around it. Their delays and what remains of them are
 * interpolated apart: every response is shifted so that its delay becomes the weighted mean of all delays, and the
 * shifted ones are added by their weights. The sum is scaled to the weighted mean of their energies. Shifts by
 * fractions of a frame are windowed sines cardinal of 2 x GC_HALF_SINC taps.
 */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "sofa.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

gc_sofa_form gc_sofa_form_of(const gpuconv_sofa *s, bool interpolated) {
    const int64_t lead = interpolated || s->fractions ? GC_HALF_SINC : 0;
    return (gc_sofa_form){s->responses->frames + (int64_t)ceil(s->longest_delay) + 2 * lead, s->responses->lead + lead};
}

/* Adds `gain` times a response, delayed by `whole` frames, to `frames` frames; what lies outside of them is left out.
 */
static void add_shifted(const float *taps, int64_t length, int64_t whole, double gain, float *to, int64_t frames) {
    const int64_t begin = gc_max(0, -whole), end = gc_min(length, frames - whole);
    const float factor = (float)gain;
    for (int64_t i = begin; i < end; i++)
        to[whole + i] += factor * taps[i];
}

/* As add_shifted, by any delay: with a Blackman window. */
static void add_delayed(const float *taps, int64_t length, double delay, double gain, float *to, int64_t frames) {
    const double exact = 1e-9, nearest = nearbyint(delay);
    if (fabs(delay - nearest) < exact) {
        add_shifted(taps, length, (int64_t)nearest, gain, to, frames);
        return;
    }
    const int64_t whole = (int64_t)floor(delay);
    const double part = delay - (double)whole, sine = sin(pi * part) * gain / pi;
    for (int k = 1 - GC_HALF_SINC; k <= GC_HALF_SINC; k++) {
        const double x = k - part, c = cos(pi * x / GC_HALF_SINC), window = 0.34 + 0.5 * c + 0.16 * c * c;
        add_shifted(taps, length, whole + k, (k % 2 ? sine : -sine) / x * (fabs(x) < GC_HALF_SINC ? window : 0), to,
                    frames);
    }
}

/* Returns the delay that the file gives a response, in frames. */
static double delay_of(const gpuconv_sofa *s, int measurement, int receiver) {
    return s->delay[(int64_t)measurement * s->receivers + receiver];
}

static double energy_of(const float *taps, int64_t frames) {
    double sum = 0;
    for (int64_t i = 0; i < frames; i++)
        sum += (double)taps[i] * (double)taps[i];
    return sum;
}

gpuconv_status gc_sofa_delay(const gpuconv_sofa *s, const gc_blend *b, int receiver, double *frames,
                             gpuconv_error *error) {
    *frames = 0;
    for (int k = 0; k < 3; k++) {
        double onset;
        gpuconv_status status = gc_sofa_onset(s, b->measurement[k], receiver, &onset, error);
        if (status)
            return status;
        *frames += b->weight[k] * (onset + delay_of(s, b->measurement[k], receiver));
    }
    return GPUCONV_OK;
}

gpuconv_status gc_sofa_align(const gpuconv_sofa *s, const gc_blend *b, int receiver, double at, gc_span to,
                             gpuconv_error *error) {
    const double most = 4; /* of the scale: a sum that nearly cancels is not raised to noise */
    double energy = 0;
    for (int k = 0; k < 3; k++) {
        double onset;
        if (b->weight[k] == 0)
            continue;
        gpuconv_status status = gc_sofa_onset(s, b->measurement[k], receiver, &onset, error);
        if (status)
            return status;
        memset(to.work, 0, (size_t)to.frames * sizeof *to.work);
        add_delayed(gc_sofa_taps(s, b->measurement[k], receiver), s->responses->frames, at - onset, 1, to.work,
                    to.frames);
        energy += b->weight[k] * energy_of(to.work, to.frames);
        add_shifted(to.work, to.frames, 0, b->weight[k], to.taps, to.frames);
    }
    const double sum = energy_of(to.taps, to.frames), scale = sum > 0 ? fmin(sqrt(energy / sum), most) * b->gain : 1;
    for (int64_t i = 0; i < to.frames; i++)
        to.taps[i] = (float)(scale * (double)to.taps[i]);
    return GPUCONV_OK;
}

gpuconv_status gc_sofa_respond(const gpuconv_sofa *s, const gc_blend *b, gc_sofa_form form, float *to, int64_t stride,
                               gpuconv_error *error) {
    const bool single = b->weight[0] == 1;
    const double lead = (double)(form.lead - s->responses->lead);
    float *work = single ? NULL : gc_alloc(form.frames, sizeof *work);
    gpuconv_status status = single || work ? GPUCONV_OK : gc_fail_memory(error, s->name);
    for (int r = 0; r < s->receivers && !status; r++) {
        float *row = to + r * stride;
        double delay = 0;
        memset(row, 0, (size_t)form.frames * sizeof *row);
        if (single)
            add_delayed(gc_sofa_taps(s, b->measurement[0], r), s->responses->frames,
                        lead + delay_of(s, b->measurement[0], r), b->gain, row, form.frames);
        else if (!(status = gc_sofa_delay(s, b, r, &delay, error)))
            status = gc_sofa_align(s, b, r, lead + delay, (gc_span){row, work, form.frames}, error);
    }
    free(work);
    return status;
}
