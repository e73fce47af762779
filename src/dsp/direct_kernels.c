/*
 * Direct convolution; compiled once for each instruction set, with GC_SIMD naming it.
 *
 * Taps are sorted by phase: with LANES = 4, phase 1 is h[1], h[5], h[9] ... Of one phase, every load from the input
 * serves all its taps, because they reach outputs that are whole vectors apart:
 *
 *      y_(j+k) += h[p + k LANES] x_(j, p),       x_(j, p) = the vector at x[j LANES - p]
 *
 * A pass over a stretch of outputs, which stays in the first-level cache, holds `depth` taps of each of `phases` phases
 * in registers and as many running sums: a sum is loaded `depth` vectors ahead, gathers a product a step, and is
 * stored. So a step is depth x phases multiply-adds for one unaligned load a phase and one load and store of the
 * output, and the sums are enough to hide the latency of the multiply-add. No tap beyond the response is met and no
 * sample outside of what the outputs need is read.
 */
#include "simd.h"

#include "../core/memory.h"
#include "fft_kernels.h"
#include "vector.h"

#include <stdbool.h>
#include <string.h>

#if defined(__AVX512F__) || defined(__aarch64__)
enum { DEPTH = 8 }; /* of 32 registers */
#else
enum { DEPTH = 6 }; /* of 16 */
#endif

enum { PHASES = 8, SPAN = 128 * LANES, TAPS = 256, MANY = 16 };

typedef double wide __attribute__((vector_size(LANES * 8)));

/* y_j += the products of `depth` taps of each of `phases` phases, for `count` vectors. What is worked on next lies at
 * `ahead` and is called into the cache meanwhile. */
EXPANDED void pass(const float *x, const float *h, float *y, int64_t count, const float *ahead, int depth, int phases) {
    vec tap[PHASES][DEPTH], sum[PHASES][DEPTH];
    int64_t j = 0;
#pragma GCC unroll 8
    for (int p = 0; p < phases; p++)
#pragma GCC unroll 8
        for (int k = 0; k < depth; k++) {
            tap[p][k] = broadcast(h[p + k * LANES]);
            sum[p][k] = p == 0 && k < depth - 1 && k < count ? load(y + k * LANES) : (vec){0};
        }
        /* What lies before the stretch and reaches into it. */
#pragma GCC unroll 8
    for (int p = 0; p < phases; p++)
#pragma GCC unroll 8
        for (int before = 1; before < depth; before++) {
            vec v = load(x - before * LANES - p);
#pragma GCC unroll 8
            for (int k = 0; k < depth - before; k++)
                sum[p][k] += tap[p][before + k] * v;
        }
    /* Output j + u + k runs in sum[.][(u + k) % depth]. */
    for (; j + 2 * depth - 1 <= count; j += depth) {
#pragma GCC unroll 8
        for (int u = 0; u < depth; u++) {
            float *to = y + (j + u) * LANES;
            vec done = {0};
#pragma GCC unroll 8
            for (int p = 0; p < phases; p++) {
                vec v = load(x + (j + u) * LANES - p);
                int last = (u + depth - 1) % depth;
                if (p == 0)
                    sum[p][last] = tap[p][depth - 1] * v + load(to + (depth - 1) * LANES);
                else
                    sum[p][last] = tap[p][depth - 1] * v;
#pragma GCC unroll 8
                for (int k = 0; k < depth - 1; k++)
                    sum[p][(u + k) % depth] += tap[p][k] * v;
                done = p == 0 ? sum[p][u] : done + sum[p][u];
            }
            store(to, done);
            __builtin_prefetch(ahead + (j + u) * LANES, 1);
        }
    }
    /* The last ones, moving up: no output behind the stretch is touched. */
    for (; j < count; j++) {
        vec done = {0};
#pragma GCC unroll 8
        for (int p = 0; p < phases; p++) {
            vec v = load(x + j * LANES - p);
            if (p == 0 && j + depth - 1 < count)
                sum[p][depth - 1] = load(y + (j + depth - 1) * LANES);
            else
                sum[p][depth - 1] = (vec){0};
#pragma GCC unroll 8
            for (int k = 0; k < depth; k++)
                sum[p][k] += tap[p][k] * v;
            done += sum[p][0];
#pragma GCC unroll 8
            for (int k = 0; k + 1 < depth; k++)
                sum[p][k] = sum[p][k + 1];
        }
        store(y + j * LANES, done);
    }
}

/* As many of up to `most` phases as registers hold, in one pass; how many they were. */
static int some_phases(const float *x, const float *h, float *y, int64_t count, const float *ahead, int depth,
                       int most) {
    switch (depth) {
    case 1:
        if (most >= 8 && DEPTH == 8)
            return pass(x, h, y, count, ahead, 1, 8), 8;
        return most >= 4 ? (pass(x, h, y, count, ahead, 1, 4), 4) : (pass(x, h, y, count, ahead, 1, 1), 1);
    case 2:
        if (most >= 4 && DEPTH == 8)
            return pass(x, h, y, count, ahead, 2, 4), 4;
        return most >= 2 ? (pass(x, h, y, count, ahead, 2, 2), 2) : (pass(x, h, y, count, ahead, 2, 1), 1);
    case 3:
        if (most >= 4 && DEPTH == 8)
            return pass(x, h, y, count, ahead, 3, 4), 4;
        return most >= 2 ? (pass(x, h, y, count, ahead, 3, 2), 2) : (pass(x, h, y, count, ahead, 3, 1), 1);
    case 4:
        return most >= 2 && DEPTH == 8 ? (pass(x, h, y, count, ahead, 4, 2), 2)
                                       : (pass(x, h, y, count, ahead, 4, 1), 1);
    case 5:
        return most >= 2 && DEPTH == 8 ? (pass(x, h, y, count, ahead, 5, 2), 2)
                                       : (pass(x, h, y, count, ahead, 5, 1), 1);
    case 6:
        return most >= 2 && DEPTH == 8 ? (pass(x, h, y, count, ahead, 6, 2), 2)
                                       : (pass(x, h, y, count, ahead, 6, 1), 1);
#if defined(__AVX512F__) || defined(__aarch64__)
    case 7:
        return most >= 2 ? (pass(x, h, y, count, ahead, 7, 2), 2) : (pass(x, h, y, count, ahead, 7, 1), 1);
    default:
        return pass(x, h, y, count, ahead, 8, 1), 1;
#else
    default:
        return 1;
#endif
    }
}

/* y_j += the products of all taps, in floats. The first pass calls for the next stretch's input, the second for the
 * outputs to be. */
static void products(const float *x, const float *h, int64_t taps, float *y, int64_t count) {
    const float *ahead = x + count * LANES;
    for (int64_t first = 0; first < taps; first += DEPTH * LANES) {
        int64_t here = gc_min(taps - first, DEPTH * LANES);
        for (int p = 0; p < LANES && p < here;) {
            int depth = (int)((here - p + LANES - 1) / LANES);
            int alike = here % LANES > p ? (int)(here % LANES) - p : LANES - p; /* phases of that many taps */
            p += some_phases(x - first - p, h + first + p, y, count, ahead, depth, alike);
            ahead = y + count * LANES;
        }
    }
}

/* Sums of a few hundred products are good to 128 dB in floats, and so are a few of those sums. Many are kept in
 * doubles, so that the error does not grow with the response. */
static void stretch(const float *x, const float *h, int64_t taps, float *y, int64_t count) {
    float sum[SPAN] __attribute__((aligned(64)));
    wide total[SPAN / LANES];
    bool many = taps > MANY * TAPS;
    if (many)
        memset(total, 0, (size_t)count * sizeof *total);
    else
        products(x, h, gc_min(taps, TAPS), y, count);
    for (int64_t k = many ? 0 : TAPS; k < taps; k += TAPS) {
        memset(sum, 0, (size_t)count * sizeof(vec));
        products(x - k, h + k, gc_min(TAPS, taps - k), sum, count);
        for (int64_t j = 0; j < count; j++) {
            vec v = load(sum + j * LANES);
            if (many)
                total[j] += __builtin_convertvector(v, wide);
            else
                store(y + j * LANES, load(y + j * LANES) + v);
        }
    }
    for (int64_t j = 0; many && j < count; j++)
        store(y + j * LANES, load(y + j * LANES) + __builtin_convertvector(total[j], vec));
}

static void direct(const float *x, const float *h, int64_t taps, float *y, int64_t n, int add) {
    int64_t i = 0;
    for (int64_t count; (count = gc_min(SPAN, n - i) / LANES) > 0; i += count * LANES) {
        if (!add)
            memset(y + i, 0, (size_t)(count * LANES) * sizeof *y);
        stretch(x + i, h, taps, y + i, count);
    }
    for (; i < n; i++) { /* fewer than a vector */
        double total = 0;
        for (int64_t k = 0; k < taps; k++)
            total += (double)h[k] * (double)x[i - k];
        y[i] = (float)total + (add ? y[i] : 0);
    }
}

static float multiply_add_loop(int64_t rounds, double *operations) {
    enum { SUMS = 12 };
    vec sum[SUMS], a = broadcast(0.999f), b = broadcast(0.001f);
    for (int i = 0; i < SUMS; i++)
        sum[i] = broadcast((float)i);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < SUMS; i++)
            sum[i] = sum[i] * a + b;
    }
    for (int i = 1; i < SUMS; i++)
        sum[0] += sum[i];
    *operations = 2.0 * SUMS * LANES * (double)rounds;
    return sum[0][0];
}

extern const gc_fft_kernels GC_FFT_SET;
extern gc_pcm_unpacker GC_PCM_UNPACK;
extern gc_pcm_packer GC_PCM_PACK;

const gc_simd GC_SIMD = {SET_NAME, direct, multiply_add_loop, &GC_FFT_SET, GC_PCM_UNPACK, GC_PCM_PACK};
