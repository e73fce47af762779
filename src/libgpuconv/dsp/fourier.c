/* Radix-2 decimation in time (Cooley & Tukey 1965). Every stage computes its own table of twiddle factors, which it
 * then reads in order. */
#include "fourier.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* Steps of work between two checks of the cancellation flag. */
enum { CANCEL_STEPS = 1 << 16 };

static bool reverse_bits(double *re, double *im, int64_t points) {
    for (int64_t i = 1, j = 0; i < points; i++) {
        if (i % CANCEL_STEPS == 0 && gc_cancelled())
            return false;
        int64_t bit = points / 2;
        for (; j & bit; bit /= 2)
            j ^= bit;
        j |= bit;
        if (i < j) {
            double swap = re[i];
            re[i] = re[j];
            re[j] = swap;
            swap = im[i];
            im[i] = im[j];
            im[j] = swap;
        }
    }
    return true;
}

/* Computes butterflies from .. to - 1 of the block of 2 x half points at re and im. */
static void butterflies(double *re, double *im, int64_t half, int64_t from, int64_t to, const double *twiddles) {
    const double *cosine = twiddles, *sine = twiddles + half;
    double *br = re + half, *bi = im + half;
    for (int64_t k = from; k < to; k++) {
        double x = br[k] * cosine[k] - bi[k] * sine[k], y = br[k] * sine[k] + bi[k] * cosine[k];
        br[k] = re[k] - x;
        bi[k] = im[k] - y;
        re[k] += x;
        im[k] += y;
    }
}

/* Computes one stage; `twiddles` has `half` cosines followed by `half` sines. Returns false if cancelled. */
static bool compute_stage(double *re, double *im, int64_t points, int64_t half, const double *twiddles) {
    int64_t done = 0;
    for (int64_t start = 0; start < points; start += 2 * half)
        for (int64_t k = 0; k < half; k += CANCEL_STEPS) {
            const int64_t to = gc_min(half, k + CANCEL_STEPS);
            butterflies(re + start, im + start, half, k, to, twiddles);
            done += to - k;
            if (done >= CANCEL_STEPS) {
                done = 0;
                if (gc_cancelled())
                    return false;
            }
        }
    return true;
}

/* Computes the twiddle factors of a stage. Returns false if cancelled. */
static bool compute_twiddles(double *twiddles, int64_t half, int direction) {
    for (int64_t k = 0; k < half; k++) {
        if (k % CANCEL_STEPS == CANCEL_STEPS - 1 && gc_cancelled())
            return false;
        twiddles[k] = cos(pi * (double)k / (double)half);
        twiddles[half + k] = direction * sin(pi * (double)k / (double)half);
    }
    return true;
}

bool gc_fourier(double *re, double *im, int64_t points, int direction) {
    if (points < 2)
        return true;
    if (gc_cancelled()) /* a caller may compute many short transforms */
        return false;
    double *twiddles = gc_calloc(points, (int64_t)sizeof *twiddles);
    if (!twiddles)
        return false;
    bool ok = reverse_bits(re, im, points);
    for (int64_t half = 1; half < points && ok; half *= 2)
        ok = compute_twiddles(twiddles, half, direction) && compute_stage(re, im, points, half, twiddles);
    free(twiddles);
    return ok;
}

/* Transforms a + i b at once: the square (a + i b)^2 has 2 a b as its imaginary part, and its spectrum is the square of
 * the spectrum. */
bool gc_fourier_convolve(const double *a, int64_t n, const double *b, int64_t m, double *out) {
    int64_t points = gc_power_of_two(n + m - 1);
    double *re = gc_calloc(points, 2 * (int64_t)sizeof *re);
    if (!re)
        return false;
    double *im = re + points;
    /* Scales both signals to the same peak: otherwise the rounding errors of the louder one would mask the other. */
    double peak_a = 0, peak_b = 0;
    for (int64_t i = 0; i < n; i++)
        peak_a = fmax(peak_a, fabs(a[i]));
    for (int64_t i = 0; i < m; i++)
        peak_b = fmax(peak_b, fabs(b[i]));
    double scale = peak_a > 0 && peak_b > 0 ? peak_a / peak_b : 1;
    memcpy(re, a, (size_t)n * sizeof *re);
    for (int64_t i = 0; i < m; i++)
        im[i] = scale * b[i];
    bool ok = gc_fourier(re, im, points, -1);
    for (int64_t k = 0; ok && k < points; k++) {
        double x = re[k], y = im[k];
        re[k] = x * x - y * y;
        im[k] = 2 * x * y;
    }
    ok = ok && gc_fourier(re, im, points, 1);
    for (int64_t i = 0; ok && i < n + m - 1; i++)
        out[i] = im[i] / (2 * scale * (double)points);
    free(re);
    return ok;
}
