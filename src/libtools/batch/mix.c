/* Mixing in memory. Powers are summed in double precision. */
#include "mix.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/loudness.h"
#include "libgpuconv/ir/object.h"

#include <math.h>
#include <stdlib.h>

gpuconv_status gc_mix_new(gc_mix *m, int channels, int64_t frames, int rate, gpuconv_error *error) {
    const int64_t pitch = gc_round_up(gc_max(frames, 1), 16);
    *m = (gc_mix){.channels = channels, .rate = rate, .frames = frames};
    float *samples = gc_calloc(pitch * channels, sizeof *samples);
    m->row = samples ? gc_calloc(channels, (int64_t)sizeof *m->row) : NULL;
    if (!m->row) {
        free(samples);
        return gc_fail_memory(error, "a mix");
    }
    for (int c = 0; c < channels; c++)
        m->row[c] = samples + c * pitch;
    return GPUCONV_OK;
}

void gc_mix_free(gc_mix *m) {
    if (m->row)
        free(m->row[0]);
    free((void *)m->row);
    *m = (gc_mix){0};
}

void gc_mix_add(gc_mix *m, const float *const *row, int64_t frames, int64_t at) {
    const int64_t count = gc_max(0, gc_min(frames, m->frames - at));
    for (int c = 0; c < m->channels; c++) {
        const float *from = row[c];
        float *to = m->row[c] + at;
        for (int64_t i = 0; i < count; i++)
            to[i] += from[i];
    }
}

double gc_mean_power(const float *const *row, int channels, int64_t frames) {
    double sum = 0;
    for (int c = 0; c < channels; c++) {
        double part[4] = {0}; /* independent sums, so that the additions overlap */
        const float *x = row[c];
        for (int64_t i = 0; i + 4 <= frames; i += 4)
            for (int k = 0; k < 4; k++)
                part[k] += (double)x[i + k] * (double)x[i + k];
        for (int64_t i = frames / 4 * 4; i < frames; i++)
            part[0] += (double)x[i] * (double)x[i];
        sum += part[0] + part[1] + part[2] + part[3];
    }
    return frames > 0 ? sum / ((double)frames * channels) : 0;
}

/* Returns the mean power of `frames` frames of noise from frame `from` on. */
static double noise_power(const gpuconv_ir *noise, int64_t from, int64_t frames) {
    double sum = 0;
    int64_t done = 0;
    while (done < frames) {
        const int64_t n = gc_min(frames - done, noise->frames - from);
        for (int p = 0; p < noise->planes; p++) {
            const float *row = gc_ir_plane(noise, p) + from;
            sum += gc_mean_power(&row, 1, n) * (double)n;
        }
        done += n;
        from = 0;
    }
    return sum / ((double)frames * noise->planes);
}

gpuconv_status gc_mix_add_noise(gc_mix *m, const gpuconv_ir *noise, int64_t from, double snr, bool *silent,
                                gpuconv_error *error) {
    if (noise->planes != 1 && noise->planes != m->channels)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "the noise has %d channels and the output %d; use noise of 1 channel or as many", noise->planes,
                       m->channels);
    const double signal = gc_mean_power((const float *const *)m->row, m->channels, m->frames);
    const double power = noise_power(noise, from, m->frames);
    *silent = !(signal > 0) || !(power > 0);
    if (*silent)
        return GPUCONV_OK;
    const double factor = sqrt(signal / power) * pow(10, -snr / 20);
    for (int c = 0; c < m->channels; c++) {
        const float *x = gc_ir_plane(noise, noise->planes == 1 ? 0 : c);
        int64_t at = from;
        for (int64_t i = 0; i < m->frames; i++) {
            m->row[c][i] = (float)((double)m->row[c][i] + factor * (double)x[at]);
            at = at + 1 < noise->frames ? at + 1 : 0;
        }
    }
    return GPUCONV_OK;
}

static double peak_of(const gc_mix *m) {
    float peak = 0;
    for (int c = 0; c < m->channels; c++)
        for (int64_t i = 0; i < m->frames; i++)
            peak = fmaxf(peak, fabsf(m->row[c][i]));
    return (double)peak;
}

gpuconv_status gc_mix_find_level(const gc_mix *m, gc_level_kind kind, double decibels, double input_power,
                                 double *factor, gpuconv_error *error) {
    const double wanted = pow(10, decibels / 20);
    double is = 0;
    *factor = 1;
    switch (kind) {
    case GC_LEVEL_NONE:
        return GPUCONV_OK;
    case GC_LEVEL_PEAK:
        is = peak_of(m);
        break;
    case GC_LEVEL_LOUDNESS:
        if (!gc_loudness((const float *const *)m->row, 1, m->channels, m->frames, m->rate, &is) || !(is > -HUGE_VAL))
            return gc_fail(error, GPUCONV_ERROR_FORMAT,
                           "the output has no loudness (BS.1770 needs 0.4 s above -70 LUFS, and 16 to 2822400 Hz)");
        is = pow(10, is / 20);
        break;
    default:
        is = sqrt(gc_mean_power((const float *const *)m->row, m->channels, m->frames));
        if (kind == GC_LEVEL_INPUT && input_power > 0)
            is /= sqrt(input_power);
        break;
    }
    if (is > 0 && (kind != GC_LEVEL_INPUT || input_power > 0))
        *factor = wanted / is;
    return GPUCONV_OK;
}

void gc_mix_scale(gc_mix *m, double factor) {
    if (factor == 1)
        return;
    for (int c = 0; c < m->channels; c++)
        for (int64_t i = 0; i < m->frames; i++)
            m->row[c][i] = (float)((double)m->row[c][i] * factor);
}

int64_t gc_audible_frames(const float *const *row, int channels, int64_t frames, int64_t from, double floor) {
    int64_t end = gc_min(from, frames);
    for (int c = 0; c < channels; c++)
        for (int64_t i = frames - 1; i >= end; i--)
            if (!(fabs((double)row[c][i]) < floor))
                end = i + 1;
    return end;
}
