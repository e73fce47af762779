/*
 * The vector loops. This file is compiled once for each instruction set, with GC_SIMD naming it; vectors are GCC's own,
 * so there is one text for all.
 *
 * Direct convolution. A vector holds LANES outputs that lie SEGMENT apart, not side by side:
 *
 *      lane 0: x[0] x[1] x[2] ...        row i of the transposed input = x[i], x[SEGMENT + i], x[2 SEGMENT + i], ...
 *      lane 1: x[SEGMENT] ...            y_i += h[k] row_(i-k): every load aligned, every lane busy
 *
 * ROWS output rows stay in registers while UNROLL taps at a time pass over them; row m of the input serves up to UNROLL
 * products before the next one is loaded, so that loads are a small part of the instructions. The transpose costs two
 * moves a sample and pays from a few dozen taps on.
 */
#include "simd.h"

#include "../core/memory.h"

#include <string.h>

#if defined(__AVX512F__)
enum { LANES = 16, ROWS = 24, UNROLL = 4 };
#define NAME "AVX-512"
#elif defined(__AVX2__)
enum { LANES = 8, ROWS = 10, UNROLL = 4 };
#define NAME "AVX2"
#elif defined(__aarch64__)
enum { LANES = 4, ROWS = 24, UNROLL = 4 };
#define NAME "NEON"
#else
enum { LANES = 4, ROWS = 8, UNROLL = 4 };
#define NAME "SSE2"
#endif

enum { SEGMENT = 20 * ROWS, TAPS = 256 };

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef double wide __attribute__((vector_size(LANES * 8)));
typedef float vec_unaligned __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(LANES * 4)));

static vec load(const float *p) {
    return *(const vec_unaligned *)p;
}

static void store(float *p, vec v) {
    *(vec_unaligned *)p = v;
}

/* `taps` (a multiple of UNROLL) reversed taps over ROWS rows: acc[r] += sum over j of h[j] x[r + j]. */
static void rows(const vec *x, const float *h, int64_t taps, vec *y) {
    vec acc[ROWS];
#pragma GCC unroll 24
    for (int r = 0; r < ROWS; r++)
        acc[r] = y[r];
    for (int64_t j = 0; j < taps; j += UNROLL) {
        vec tap[UNROLL];
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++)
            tap[u] = h[j + u] - (vec){0};
#pragma GCC unroll 28
        for (int m = 0; m < ROWS + UNROLL - 1; m++) {
            vec row = x[j + m];
#pragma GCC unroll 4
            for (int u = 0; u < UNROLL; u++)
                if (m - u >= 0 && m - u < ROWS)
                    acc[m - u] += tap[u] * row;
        }
    }
#pragma GCC unroll 24
    for (int r = 0; r < ROWS; r++)
        y[r] = acc[r];
}

/* out += LANES x SEGMENT outputs for at most TAPS taps. */
static void block(const float *x, const float *h, int64_t taps, vec *out) {
    vec in[SEGMENT + TAPS + UNROLL];
    float reversed[TAPS + UNROLL];
    int64_t padded = gc_round_up(taps, UNROLL);
    memset(reversed, 0, sizeof reversed);
    for (int64_t k = 0; k < taps; k++)
        reversed[taps - 1 - k] = h[k];
    const float *first = x - (taps - 1);
    for (int64_t i = 0; i < SEGMENT + taps - 1; i++) {
        vec row;
#pragma GCC unroll 16
        for (int l = 0; l < LANES; l++)
            row[l] = first[i + (int64_t)l * SEGMENT];
        in[i] = row;
    }
    for (int64_t i = SEGMENT + taps - 1; i < SEGMENT + padded; i++)
        in[i] = (vec){0};
    for (int64_t i = 0; i < SEGMENT; i += ROWS)
        rows(in + i, reversed, padded, out + i);
}

/* Sums of a few hundred products are good to 128 dB in floats; the sums of those sums are kept in doubles, so that the
 * error does not grow with the response. */
static void segment(const float *x, const float *h, int64_t taps, float *y) {
    wide total[SEGMENT];
    memset(total, 0, sizeof total);
    for (int64_t k = 0; k < taps; k += TAPS) {
        vec out[SEGMENT];
        memset(out, 0, sizeof out);
        block(x - k, h + k, gc_min(TAPS, taps - k), out);
        for (int64_t i = 0; i < SEGMENT; i++)
            total[i] += __builtin_convertvector(out[i], wide);
    }
    for (int64_t i = 0; i < SEGMENT; i++) {
#pragma GCC unroll 16
        for (int l = 0; l < LANES; l++)
            y[i + (int64_t)l * SEGMENT] += (float)total[i][l];
    }
}

/* Fewer outputs than fill the lanes: vectors along time, one tap after another. */
static void remainder_outputs(const float *x, const float *h, int64_t taps, float *y, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        wide total = {0};
        for (int64_t k = 0; k < taps; k += TAPS) {
            vec sum = {0};
            for (int64_t j = k; j < gc_min(taps, k + TAPS); j++)
                sum += h[j] * load(x + i - j);
            total += __builtin_convertvector(sum, wide);
        }
        store(y + i, load(y + i) + __builtin_convertvector(total, vec));
    }
    for (; i < n; i++) {
        double total = 0;
        for (int64_t k = 0; k < taps; k++)
            total += (double)h[k] * (double)x[i - k];
        y[i] += (float)total;
    }
}

static void direct(const float *x, const float *h, int64_t taps, float *y, int64_t n) {
    int64_t whole = n / (LANES * SEGMENT) * (LANES * SEGMENT);
    for (int64_t i = 0; i < whole; i += LANES * SEGMENT)
        segment(x + i, h, taps, y + i);
    remainder_outputs(x + whole, h, taps, y + whole, n - whole);
}

/* Complex numbers as pairs: y += x h is, in pairs, y += re(x) h and y += (-im(x), im(x)) swap(h). */
#if defined(__AVX512F__)
static const mask even = {0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14};
static const mask odd = {1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 13, 13, 15, 15};
static const mask swap = {1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14};
static const vec sign = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
#elif defined(__AVX2__)
static const mask even = {0, 0, 2, 2, 4, 4, 6, 6};
static const mask odd = {1, 1, 3, 3, 5, 5, 7, 7};
static const mask swap = {1, 0, 3, 2, 5, 4, 7, 6};
static const vec sign = {-1, 1, -1, 1, -1, 1, -1, 1};
#else
static const mask even = {0, 0, 2, 2};
static const mask odd = {1, 1, 3, 3};
static const mask swap = {1, 0, 3, 2};
static const vec sign = {-1, 1, -1, 1};
#endif

#if defined(__clang__)
/* clang shuffles by constants only where they are spelled out: the loop is left to its vectoriser. */
static vec shuffle(vec v, mask m) {
    vec r;
    for (int l = 0; l < LANES; l++)
        r[l] = v[m[l]];
    return r;
}
#else
#define shuffle(v, m) __builtin_shuffle(v, m)
#endif

static void multiply(float *y, const float *x, const float *h, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= 2 * n; i += LANES) {
        vec a = load(x + i), b = load(h + i);
        store(y + i, shuffle(a, even) * b + shuffle(a, odd) * sign * shuffle(b, swap));
    }
    for (; i < 2 * n; i += 2) {
        float re = x[i] * h[i] - x[i + 1] * h[i + 1], im = x[i] * h[i + 1] + x[i + 1] * h[i];
        y[i] = re;
        y[i + 1] = im;
    }
}

static void multiply_add(float *y, const float *x, const float *h, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= 2 * n; i += LANES) {
        vec a = load(x + i), b = load(h + i);
        store(y + i, load(y + i) + shuffle(a, even) * b + shuffle(a, odd) * sign * shuffle(b, swap));
    }
    for (; i < 2 * n; i += 2) {
        y[i] += x[i] * h[i] - x[i + 1] * h[i + 1];
        y[i + 1] += x[i] * h[i + 1] + x[i + 1] * h[i];
    }
}

/* Four vectors of bins at a time keep their sums in registers while all partitions pass: the sign waits until the end.
 */
static void multiply_sum(float *y, const float *const *x, const float *const *h, int64_t count, int64_t n) {
    enum { WIDTH = 4 };
    int64_t i = 0;
    for (; i + WIDTH * LANES <= 2 * n; i += WIDTH * LANES) {
        vec straight[WIDTH] = {{0}}, crossed[WIDTH] = {{0}};
        for (int64_t p = 0; p < count; p++) {
#pragma GCC unroll 4
            for (int w = 0; w < WIDTH; w++) {
                vec a = load(x[p] + i + (int64_t)w * LANES), b = load(h[p] + i + (int64_t)w * LANES);
                straight[w] += shuffle(a, even) * b;
                crossed[w] += shuffle(a, odd) * shuffle(b, swap);
            }
        }
#pragma GCC unroll 4
        for (int w = 0; w < WIDTH; w++)
            store(y + i + (int64_t)w * LANES, straight[w] + sign * crossed[w]);
    }
    if (i < 2 * n) {
        memset(y + i, 0, (size_t)(2 * n - i) * sizeof *y);
        for (int64_t p = 0; p < count; p++)
            multiply_add(y + i, x[p] + i, h[p] + i, n - i / 2);
    }
}

const gc_simd GC_SIMD = {NAME, direct, multiply, multiply_add, multiply_sum};
