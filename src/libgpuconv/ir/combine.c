/* Edits of responses through their spectra: two responses in series, and conversion to minimum phase. */
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fourier.h"
#include "object.h"

#include <math.h>
#include <stdlib.h>

/* Converts n floats to doubles. */
static void widen(const float *from, double *to, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        to[i] = (double)from[i];
}

gpuconv_status gpuconv_ir_series(const gpuconv_ir *a, const gpuconv_ir *b, gpuconv_ir **both, gpuconv_error *error) {
    if (!gc_begin(both, a && b ? a : NULL, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    const gpuconv_ir *wide = a->planes >= b->planes ? a : b; /* the result has its routes */
    bool both_unrouted = !a->routed && !b->routed;
    if ((a->planes != 1 && b->planes != 1 && a->planes != b->planes) ||
        (a->planes != 1 && b->planes != 1 && !both_unrouted))
        return gc_fail(
            error, GPUCONV_ERROR_TOPOLOGY,
            "responses of %d and %d channels cannot be in series; both need the same number, or one of them 1 channel",
            a->planes, b->planes);
    if (a->rate != b->rate)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "responses in series must have the same rate, not %g and %g Hz",
                       a->rate, b->rate);
    if (a->planes == b->planes && b->routed)
        wide = b;
    int64_t frames = a->frames + b->frames - 1;
    /* Complex FFTs in double precision of the next power of two, and their twiddle factors. */
    gpuconv_status fits = gc_ir_check_memory(wide->planes, (double)frames,
                                             24.0 * (double)gc_power_of_two(frames) + 16.0 * (double)frames, error);
    if (fits)
        return fits;
    gpuconv_ir *made = gc_ir_like(wide, frames, a->rate);
    double *x = gc_calloc(a->frames, (int64_t)sizeof *x), *y = gc_calloc(b->frames, (int64_t)sizeof *y);
    double *out = gc_calloc(frames, (int64_t)sizeof *out);
    bool ok = made && x && y && out, finite = true;
    for (int p = 0; ok && p < wide->planes; p++) {
        widen(gc_ir_plane(a, a->planes == 1 ? 0 : p), x, a->frames);
        widen(gc_ir_plane(b, b->planes == 1 ? 0 : p), y, b->frames);
        ok = gc_fourier_convolve(x, a->frames, y, b->frames, out);
        for (int64_t i = 0; ok && i < frames; i++) {
            made->taps[p * frames + i] = (float)out[i];
            finite &= isfinite((float)out[i]) != 0;
        }
    }
    free(x);
    free(y);
    free(out);
    if (!ok || !finite) {
        gpuconv_ir_free(made);
        return ok ? gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the result in series is beyond the range of floats")
                  : gc_fail_memory(error, "the response");
    }
    made->lead = a->lead + b->lead;
    made->ring = a->ring + b->ring;
    return gc_ir_finish(made, both, error, "in series with another of %g s", (double)b->frames / b->rate);
}

/* Points between two checks of the cancel flag. */
enum { CANCEL_INTERVAL = 1 << 16 };

/* Returns whether the work was cancelled; looks at the flag once per CANCEL_INTERVAL points. */
static bool cancelled_at(int64_t k) {
    return k % CANCEL_INTERVAL == CANCEL_INTERVAL - 1 && gc_cancelled();
}

/* Replaces the plane in `re` (padded with zeros to `points`) by its minimum-phase version, times `points`. `im` is zero
 * on entry. Returns false without memory. */
static bool convert_to_minimum_phase(double *re, double *im, int64_t points) {
    if (!gc_fourier(re, im, points, -1))
        return false;
    double most = 0;
    for (int64_t k = 0; k < points && !cancelled_at(k); k++)
        most = fmax(most, hypot(re[k], im[k]));
    for (int64_t k = 0; k < points && !cancelled_at(k); k++)
        re[k] = log(fmax(hypot(re[k], im[k]), fmax(most * 1e-10, 1e-300)));
    if (!gc_fourier_minimum_phase(re, im, points))
        return false;
    for (int64_t k = 0; k < points && !cancelled_at(k); k++) {
        double magnitude = exp(re[k]), phase = im[k];
        re[k] = magnitude * cos(phase);
        im[k] = magnitude * sin(phase);
    }
    return gc_fourier(re, im, points, 1);
}

gpuconv_status gpuconv_ir_minimum_phase(const gpuconv_ir *ir, gpuconv_ir **minimal, gpuconv_error *error) {
    if (!gc_begin(minimal, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    /* Eight times the length keeps the aliasing of the cepstrum low. */
    int64_t points = gc_power_of_two(gc_max(8 * ir->frames, 4096));
    gpuconv_status fits = gc_ir_check_memory(ir->planes, (double)ir->frames, 24.0 * (double)points, error);
    if (fits)
        return fits;
    gpuconv_ir *made = gc_ir_like(ir, ir->frames, ir->rate);
    double *re = gc_calloc(points, (int64_t)sizeof *re), *im = gc_calloc(points, (int64_t)sizeof *im);
    bool ok = made && re && im;
    for (int p = 0; ok && p < ir->planes; p++) {
        widen(gc_ir_plane(ir, p), re, ir->frames);
        for (int64_t i = 0; i < points; i++) {
            re[i] = i < ir->frames ? re[i] : 0;
            im[i] = 0;
        }
        ok = convert_to_minimum_phase(re, im, points);
        for (int64_t i = 0; ok && i < ir->frames; i++)
            made->taps[p * ir->frames + i] = (float)(re[i] / (double)points);
    }
    free(re);
    free(im);
    if (!ok) {
        gpuconv_ir_free(made);
        return gc_fail_memory(error, "the response");
    }
    made->lead = made->ring = 0;
    return gc_ir_finish(made, minimal, error, "made minimum phase");
}
