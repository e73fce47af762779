/* Decimation in time (Cooley & Tukey 1965), radix 4. Four quarters are transformed one after the other and then
 * combined, so that most stages work on data that are in a cache. */
#include "fourier.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steps of work between two checks of the cancellation flag. */
enum { CANCEL_STEPS = 1 << 16 };

static int64_t reverse_bits(int64_t value, int bits) {
    int64_t reversed = 0;
    for (int i = 0; i < bits; i++)
        reversed |= (value >> i & 1) << (bits - 1 - i);
    return reversed;
}

enum { TILE_BITS = 5, TILE = 1 << TILE_BITS };

/* A tile contains the 32 x 32 elements whose indices have the same bits between the first five and the last five: 32
 * rows of 32 neighbours. Its elements all move to one other tile. Copies the tile `middle` in the order of the other
 * tile. */
static void load_tile(const double *x, int bits, int64_t middle, double *tile) {
    int64_t reversed[TILE];
    for (int64_t k = 0; k < TILE; k++)
        reversed[k] = reverse_bits(k, TILE_BITS);
    for (int64_t row = 0; row < TILE; row++) {
        const double *from = x + (row << (bits - TILE_BITS)) + middle * TILE;
        double *to = tile + reversed[row];
        for (int64_t k = 0; k < TILE; k++)
            to[reversed[k] * TILE] = from[k];
    }
}

static void store_tile(const double *tile, int bits, int64_t middle, double *x) {
    for (int64_t row = 0; row < TILE; row++)
        memcpy(x + (row << (bits - TILE_BITS)) + middle * TILE, tile + row * TILE, TILE * sizeof *x);
}

/* Sorts 2^bits values by their reversed indices. Returns false if cancelled. */
static bool sort(double *x, int bits) {
    double tiles[2][TILE * TILE];
    const int64_t points = INT64_C(1) << bits;
    for (int64_t i = 0; bits < 2 * TILE_BITS && i < points; i++) {
        const int64_t j = reverse_bits(i, bits);
        const double swap = x[i];
        if (i < j) {
            x[i] = x[j];
            x[j] = swap;
        }
    }
    for (int64_t m = 0; bits >= 2 * TILE_BITS && m < points / (TILE * TILE); m++) {
        const int64_t other = reverse_bits(m, bits - 2 * TILE_BITS);
        if (m * TILE * TILE % CANCEL_STEPS == 0 && gc_cancelled())
            return false;
        if (m > other)
            continue;
        load_tile(x, bits, m, tiles[0]);
        load_tile(x, bits, other, tiles[1]);
        store_tile(tiles[0], bits, other, x);
        store_tile(tiles[1], bits, m, x);
    }
    return true;
}

enum { STAGES = 32, BLOCK = 2048 /* points whose stages are computed one after the other */ };

/* The stages of a transform. Stage j combines four transforms of points / 4^(j + 1) points. Its table has as many
 * twiddle factors exp(i pi k / half), half = 2 points / 4^(j + 1): first the cosines, then the sines. */
typedef struct plan {
    double *memory, *table[STAGES];
    int stages, direction;
    int64_t leaf; /* points before the first stage: 1, or 2 */
} plan;

/* Computes `count` factors exp(i pi k / (2 count)) as products of two of few, which takes a tenth of the time of sines
 * and has an error of one rounding more. Returns false if cancelled. */
static bool make_factors(double *cosine, double *sine, int64_t count, int direction) {
    enum { FINE = 256 };
    double fine[FINE], fine_i[FINE];
    for (int64_t k = 0; k < gc_min(FINE, count); k++) {
        fine[k] = cos(M_PI * (double)k / (double)(2 * count));
        fine_i[k] = direction * sin(M_PI * (double)k / (double)(2 * count));
    }
    for (int64_t at = 0; at < count; at += FINE) {
        const double x = cos(M_PI * (double)at / (double)(2 * count));
        const double y = direction * sin(M_PI * (double)at / (double)(2 * count));
        if (at % CANCEL_STEPS == 0 && gc_cancelled())
            return false;
        for (int64_t k = 0; k < gc_min(FINE, count - at); k++) {
            cosine[at + k] = x * fine[k] - y * fine_i[k];
            sine[at + k] = x * fine_i[k] + y * fine[k];
        }
    }
    return true;
}

/* Computes the tables; those of the later stages are every fourth factor of the one before. Returns false without
 * memory or if cancelled. */
static bool make_plan(int64_t points, int direction, plan *p) {
    *p = (plan){.memory = gc_calloc(points, (int64_t)sizeof *p->memory), .direction = direction, .leaf = points};
    double *table = p->memory;
    if (!table)
        return false;
    for (int64_t quarter = points / 4; quarter > 0; quarter /= 4) {
        const double *before = p->stages ? p->table[p->stages - 1] : NULL;
        if (!before && !make_factors(table, table + quarter, quarter, direction))
            return false;
        for (int64_t k = 0; before && k < 2 * quarter; k++)
            table[k] = before[4 * k];
        p->table[p->stages++] = table;
        p->leaf = quarter;
        table += 2 * quarter;
    }
    return true;
}

/* Tells gcc that the iterations of the loop that follows do not depend on each other. clang finds it out. */
#ifdef __clang__
#define INDEPENDENT
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Combines elements from .. to - 1 of four transforms of `quarter` points, which lie one behind the other. */
static void combine(double *re, double *im, int64_t quarter, const double *table, double sign, int64_t from,
                    int64_t to) {
    double *ar = re, *br = re + quarter, *cr = br + quarter, *dr = cr + quarter;
    double *ai = im, *bi = im + quarter, *ci = bi + quarter, *di = ci + quarter;
    INDEPENDENT
    for (int64_t k = from; k < to; k++) {
        const double w = table[k], v = table[quarter + k], w2 = w * w - v * v, v2 = 2 * w * v;
        const double b = br[k] * w2 - bi[k] * v2, b_i = br[k] * v2 + bi[k] * w2;
        const double d = dr[k] * w2 - di[k] * v2, d_i = dr[k] * v2 + di[k] * w2;
        const double x = ar[k] + b, x_i = ai[k] + b_i, y = ar[k] - b, y_i = ai[k] - b_i;
        const double p = cr[k] + d, p_i = ci[k] + d_i, q = cr[k] - d, q_i = ci[k] - d_i;
        const double even = p * w - p_i * v, even_i = p * v + p_i * w;
        const double odd = sign * (q * w - q_i * v), odd_i = sign * (q * v + q_i * w);
        ar[k] = x + even;
        ai[k] = x_i + even_i;
        cr[k] = x - even;
        ci[k] = x_i - even_i;
        br[k] = y - odd_i;
        bi[k] = y_i + odd;
        dr[k] = y + odd_i;
        di[k] = y_i - odd;
    }
}

/* Transforms a block, its stages from the smallest to `stage`. */
static void transform_block(const plan *p, int stage, double *re, double *im, int64_t points) {
    for (int64_t k = 0; p->leaf == 2 && k < points; k += 2) {
        const double x = re[k + 1], y = im[k + 1];
        re[k + 1] = re[k] - x;
        im[k + 1] = im[k] - y;
        re[k] += x;
        im[k] += y;
    }
    int64_t quarter = p->leaf;
    for (int j = p->stages - 1; j >= stage; j--, quarter *= 4)
        for (int64_t k = 0; k < points; k += 4 * quarter)
            combine(re + k, im + k, quarter, p->table[j], p->direction, 0, quarter);
}

/* Transforms points in the order of reversed bits. Returns false if cancelled. */
/* NOLINTNEXTLINE(misc-no-recursion): at most 13 levels */
static bool transform(const plan *p, int stage, double *re, double *im, int64_t points) {
    if (points <= BLOCK) {
        transform_block(p, stage, re, im, points);
        return true;
    }
    const int64_t quarter = points / 4;
    for (int k = 0; k < 4; k++)
        if (!transform(p, stage + 1, re + k * quarter, im + k * quarter, quarter))
            return false;
    for (int64_t k = 0; k < quarter; k += CANCEL_STEPS) {
        if (quarter >= CANCEL_STEPS && gc_cancelled())
            return false;
        combine(re, im, quarter, p->table[stage], p->direction, k, gc_min(quarter, k + CANCEL_STEPS));
    }
    return true;
}

bool gc_fourier(double *re, double *im, int64_t points, int direction) {
    plan p;
    if (points < 2)
        return true;
    if (gc_cancelled()) /* a caller may compute many short transforms */
        return false;
    int bits = 0;
    while (INT64_C(1) << bits < points)
        bits++;
    const bool ok =
        make_plan(points, direction, &p) && sort(re, bits) && sort(im, bits) && transform(&p, 0, re, im, points);
    free(p.memory);
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

bool gc_fourier_minimum_phase(double *re, double *im, int64_t points) {
    for (int64_t k = 0; k < points; k++) {
        re[k] /= (double)points;
        im[k] = 0;
    }
    if (!gc_fourier(re, im, points, 1))
        return false;
    for (int64_t k = 0; k < points; k++) { /* folds the cepstrum of negative times onto the positive ones */
        re[k] *= k == 0 || k == points / 2 ? 1 : k < points / 2 ? 2 : 0;
        im[k] = 0;
    }
    return gc_fourier(re, im, points, -1);
}
