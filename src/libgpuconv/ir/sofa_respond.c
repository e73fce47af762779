/*
 * The response of a direction from those of the measurements around it. Their delays and what remains of them are
 * interpolated apart: every response is shifted so that its delay becomes the weighted mean of all delays, and the
 * shifted ones are added by their weights. The sum is scaled to the weighted mean of their energies. Shifts by
 * fractions of a frame are windowed sines cardinal of 2 x HALF_SINC taps.
 */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "sofa.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HALF_SINC = 32 };

static const double pi = 3.14159265358979323846;

gc_sofa_form gc_sofa_form_of(const gpuconv_sofa *s, bool interpolated) {
    const int64_t lead = interpolated || s->fractions ? HALF_SINC : 0;
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
    for (int k = 1 - HALF_SINC; k <= HALF_SINC; k++) {
        const double x = k - part, c = cos(pi * x / HALF_SINC), window = 0.34 + 0.5 * c + 0.16 * c * c;
        add_shifted(taps, length, whole + k, (k % 2 ? sine : -sine) / x * (fabs(x) < HALF_SINC ? window : 0), to,
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

/* Writes the response of a receiver. `shifted` has room for form.frames. Returns MEMORY, CANCELLED. */
static gpuconv_status add_aligned(const gpuconv_sofa *s, const gc_blend *b, int receiver, gc_sofa_form form,
                                  float *shifted, float *to, gpuconv_error *error) {
    const double most = 4; /* of the scale: a sum that nearly cancels is not raised to noise */
    double onset[3] = {0}, delay = (double)(form.lead - s->responses->lead), energy = 0;
    for (int k = 0; k < 3; k++) {
        gpuconv_status status = gc_sofa_onset(s, b->measurement[k], receiver, &onset[k], error);
        if (status)
            return status;
        delay += b->weight[k] * (onset[k] + delay_of(s, b->measurement[k], receiver));
    }
    for (int k = 0; k < 3; k++) {
        memset(shifted, 0, (size_t)form.frames * sizeof *shifted);
        add_delayed(gc_sofa_taps(s, b->measurement[k], receiver), s->responses->frames, delay - onset[k], 1, shifted,
                    form.frames);
        energy += b->weight[k] * energy_of(shifted, form.frames);
        add_shifted(shifted, form.frames, 0, b->weight[k], to, form.frames);
    }
    const double sum = energy_of(to, form.frames), scale = sum > 0 ? fmin(sqrt(energy / sum), most) * b->gain : 1;
    for (int64_t i = 0; i < form.frames; i++)
        to[i] = (float)(scale * (double)to[i]);
    return GPUCONV_OK;
}

gpuconv_status gc_sofa_respond(const gpuconv_sofa *s, const gc_blend *b, gc_sofa_form form, float *to, int64_t stride,
                               gpuconv_error *error) {
    const bool single = b->weight[0] == 1;
    float *shifted = single ? NULL : gc_alloc(form.frames, sizeof *shifted);
    gpuconv_status status = single || shifted ? GPUCONV_OK : gc_fail_memory(error, s->name);
    for (int r = 0; r < s->receivers && !status; r++) {
        float *row = to + r * stride;
        memset(row, 0, (size_t)form.frames * sizeof *row);
        if (single)
            add_delayed(gc_sofa_taps(s, b->measurement[0], r), s->responses->frames,
                        (double)(form.lead - s->responses->lead) + delay_of(s, b->measurement[0], r), b->gain, row,
                        form.frames);
        else
            status = add_aligned(s, b, r, form, shifted, row, error);
    }
    free(shifted);
    return status;
}
