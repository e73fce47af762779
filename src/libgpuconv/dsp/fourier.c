/* Cooley & Tukey 1965, radix 2, its table of twiddles walked through in order at every stage. */
#include "fourier.h"

#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

static void reverse_bits(double *re, double *im, int64_t points) {
    for (int64_t i = 1, j = 0; i < points; i++) {
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
}

bool gc_fourier(double *re, double *im, int64_t points, int direction) {
    if (points < 2)
        return true;
    double *cosine = gc_calloc(points, (int64_t)sizeof *cosine);
    if (!cosine)
        return false;
    double *sine = cosine + points / 2;
    reverse_bits(re, im, points);
    for (int64_t half = 1; half < points; half *= 2) {
        for (int64_t k = 0; k < half; k++) {
            cosine[k] = cos(pi * (double)k / (double)half);
            sine[k] = direction * sin(pi * (double)k / (double)half);
        }
        for (int64_t start = 0; start < points; start += 2 * half) {
            double *ar = re + start, *ai = im + start, *br = ar + half, *bi = ai + half;
            for (int64_t k = 0; k < half; k++) {
                double x = br[k] * cosine[k] - bi[k] * sine[k], y = br[k] * sine[k] + bi[k] * cosine[k];
                br[k] = ar[k] - x;
                bi[k] = ai[k] - y;
                ar[k] += x;
                ai[k] += y;
            }
        }
    }
    free(cosine);
    return true;
}

/* Both real signals travel as one complex one: its spectrum squared holds 2 a b in its imaginary part. */
bool gc_fourier_convolve(const double *a, int64_t n, const double *b, int64_t m, double *out) {
    int64_t points = gc_power_of_two(n + m - 1);
    double *re = gc_calloc(points, 2 * (int64_t)sizeof *re);
    if (!re)
        return false;
    double *im = re + points;
    /* Brought to one level first, or the weaker would drown in the other's rounding. */
    double most_a = 0, most_b = 0;
    for (int64_t i = 0; i < n; i++)
        most_a = fmax(most_a, fabs(a[i]));
    for (int64_t i = 0; i < m; i++)
        most_b = fmax(most_b, fabs(b[i]));
    double even = most_a > 0 && most_b > 0 ? most_a / most_b : 1;
    memcpy(re, a, (size_t)n * sizeof *re);
    for (int64_t i = 0; i < m; i++)
        im[i] = even * b[i];
    bool good = gc_fourier(re, im, points, -1);
    for (int64_t k = 0; good && k < points; k++) {
        double x = re[k], y = im[k];
        re[k] = x * x - y * y;
        im[k] = 2 * x * y;
    }
    good = good && gc_fourier(re, im, points, 1);
    for (int64_t i = 0; good && i < n + m - 1; i++)
        out[i] = im[i] / (2 * even * (double)points);
    free(re);
    return good;
}
