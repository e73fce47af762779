/*
 * Responses from measured spectra: the inverse real transform. Their length is any even number, so that the transform
 * is computed as a convolution with a chirp (Bluestein, IEEE Trans. Audio Electroacoust. 18 (1970), 451).
 */
#include "sofa_spectra.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fourier.h"
#include "object.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BINS = 1 << 20 };

static const double pi = 3.14159265358979323846;

/* The memory of a transform of `frames` frames: arrays of `points` values; `chirp` has as many as frames. */
typedef struct workspace {
    int64_t frames, points;
    double *re, *im, *filter_re, *filter_im, *chirp_re, *chirp_im;
} workspace;

/* Computes the chirp exp(i pi n^2 / frames) and the spectrum of its conjugate. Returns false without memory. */
static bool make_workspace(workspace *w, int64_t frames) {
    const int64_t points = gc_power_of_two(frames + frames / 2 + 1);
    double *memory = gc_calloc(6 * points, sizeof *memory);
    *w = (workspace){frames, points, memory, NULL, NULL, NULL, NULL, NULL};
    if (!memory)
        return false;
    w->im = memory + points;
    w->filter_re = memory + 2 * points;
    w->filter_im = memory + 3 * points;
    w->chirp_re = memory + 4 * points;
    w->chirp_im = memory + 5 * points;
    for (int64_t n = 0; n < frames; n++) {
        const double phase = pi * (double)(n * n % (2 * frames)) / (double)frames;
        w->filter_re[n] = w->chirp_re[n] = cos(phase);
        w->filter_im[n] = -(w->chirp_im[n] = sin(phase));
        if (n > 0 && n <= frames / 2) {
            w->filter_re[points - n] = w->filter_re[n];
            w->filter_im[points - n] = w->filter_im[n];
        }
    }
    return gc_fourier(w->filter_re, w->filter_im, points, -1);
}

/* Transforms the values at 0 .. frames / 2 in `re` and `im`; the response is left in `re`. Returns false as gc_fourier.
 */
static bool invert(workspace *w) {
    const int64_t last = w->frames / 2;
    for (int64_t k = 0; k <= last; k++) {
        /* The frequencies between count twice: for their conjugates at the negative frequencies. */
        const double scale = (k == 0 || k == last ? 1 : 2) / (double)w->frames, re = scale * w->re[k],
                     im = k == 0 || k == last ? 0 : scale * w->im[k];
        w->re[k] = re * w->chirp_re[k] - im * w->chirp_im[k];
        w->im[k] = re * w->chirp_im[k] + im * w->chirp_re[k];
    }
    memset(w->re + last + 1, 0, (size_t)(w->points - last - 1) * sizeof *w->re);
    memset(w->im + last + 1, 0, (size_t)(w->points - last - 1) * sizeof *w->im);
    if (!gc_fourier(w->re, w->im, w->points, -1))
        return false;
    for (int64_t k = 0; k < w->points; k++) {
        const double re = w->re[k], im = w->im[k];
        w->re[k] = (re * w->filter_re[k] - im * w->filter_im[k]) / (double)w->points;
        w->im[k] = (re * w->filter_im[k] + im * w->filter_re[k]) / (double)w->points;
    }
    if (!gc_fourier(w->re, w->im, w->points, 1))
        return false;
    for (int64_t n = 0; n < w->frames; n++)
        w->re[n] = w->re[n] * w->chirp_re[n] - w->im[n] * w->chirp_im[n];
    return true;
}

/* Returns the value at 0 Hz of a spectrum that begins at its first step. A head does not shade wavelengths that are
 * much longer than itself, and so the magnitude is that of the lowest frequency; a line through the phases of the two
 * lowest ones tells the sign. A value of 0 instead would make the response's sum 0: a high-pass. */
static double extrapolate_to_zero(const double re[2], const double im[2]) {
    const double square_re = re[0] * re[0] - im[0] * im[0], square_im = 2 * re[0] * im[0];
    const double sign = square_re * re[1] + square_im * im[1] < 0 ? -1 : 1;
    return sign * hypot(re[0], im[0]);
}

/* Checks the frequencies. *first gets the number of the first one in steps: 0 or 1. Returns FORMAT. */
static gpuconv_status check_frequencies(const char *path, const gc_spectra *s, int64_t *first, gpuconv_error *error) {
    const float *f = s->frequency;
    const double last = s->bins < 2 ? 0 : (double)f[s->bins - 1];
    if (s->bins < 2 || s->bins > MAX_BINS || !gc_is_rate(2 * last))
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "%s: has %lld frequencies up to %g Hz; 2 to %d up to %g Hz are read", path, (long long)s->bins,
                       last, MAX_BINS, GC_MAX_RATE / 2.0);
    const double step = (last - (double)f[0]) / (double)(s->bins - 1), allowed = 0.01 * step + 1e-6 * last;
    for (int64_t k = 1; k < s->bins; k++)
        if (!(step > 0 && fabs((double)f[0] + (double)k * step - (double)f[k]) <= allowed))
            return gc_fail(error, GPUCONV_ERROR_FORMAT,
                           "%s: its frequencies are not uniform: %g Hz is number %lld from %g Hz on in mean steps of "
                           "%g Hz; only spectra of equal steps are read",
                           path, (double)f[k], (long long)k, (double)f[0], step);
    if (fabs((double)f[0]) > allowed && fabs((double)f[0] - step) > allowed)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "%s: its frequencies begin at %g Hz in steps of %g Hz; they must begin at 0 or at one step",
                       path, (double)f[0], step);
    *first = fabs((double)f[0]) > allowed ? 1 : 0;
    return GPUCONV_OK;
}

/* Puts a spectrum into the workspace, and its value at 0 Hz if it has none. */
static void load(const gc_spectra *s, int64_t number, int64_t first, workspace *w) {
    for (int64_t k = 0; k < s->bins; k++) {
        w->re[first + k] = (double)s->real[number * s->bins + k];
        w->im[first + k] = (double)s->imag[number * s->bins + k];
    }
    if (first) {
        w->re[0] = extrapolate_to_zero(w->re + 1, w->im + 1);
        w->im[0] = 0;
    }
}

gpuconv_status gc_spectra_invert(const char *path, const gc_spectra *s, gc_from_spectra *to, gpuconv_error *error) {
    /* A spectrum may be relative to the centre of the head, which sound reaches up to 0.3 ms after the nearer ear. */
    const double before_zero = 1e-3;
    int64_t first = 0;
    workspace w = {0};
    *to = (gc_from_spectra){0};
    gpuconv_status status = check_frequencies(path, s, &first, error);
    if (status)
        return status;
    const int64_t frames = 2 * (s->bins + first - 1);
    to->frames = frames;
    to->rate = 2 * (double)s->frequency[s->bins - 1];
    to->lead = gc_min(llrint(before_zero * to->rate), frames / 4);
    status = gc_ir_check_memory(1, (double)s->count * (double)frames, 0, error);
    if (status)
        return status;
    to->taps = gc_alloc(s->count * frames, sizeof *to->taps);
    bool ok = to->taps && make_workspace(&w, frames);
    for (int64_t i = 0; i < s->count && ok; i++) {
        load(s, i, first, &w);
        ok = invert(&w);
        for (int64_t n = 0; n < frames; n++)
            to->taps[i * frames + (n + to->lead) % frames] = (float)w.re[n];
    }
    free(w.re);
    if (ok)
        return GPUCONV_OK;
    free(to->taps);
    to->taps = NULL;
    return gc_cancelled() ? gc_fail_cancelled(error, path) : gc_fail_memory(error, path);
}
