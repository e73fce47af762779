/*
 * Direct convolution; compiled once for each instruction set, with GC_SIMD naming it.
 *
 * Taps are sorted by phase: with LANES = 4, phase 1 is h[1], h[5], h[9] ... Of one phase, every load from the input
 * serves all its taps, because they reach outputs that are whole vectors apart:
 *
 *      y_(j+k) += h[p + k LANES] x_(j, p),       x_(j, p) = the vector at x[j LANES - p]
 *
 * A pass holds `depth` taps of each of `phases` phases in registers. A running sum is loaded `depth` vectors ahead,
 * gathers a product of each phase a step, and is stored. As many streams, stretches of outputs one behind the other,
 * are worked on at a time as it takes to hide the latency of the multiply-add behind others. So a step of a stream is
 * depth x phases multiply-adds for one unaligned load a phase and one load and store of the output. No tap beyond the
 * response is met and no sample outside of what the outputs need is read.
 */
#include "simd.h"

#include "fft_kernels.h"
#include "libgpuconv/core/memory.h"
#include "vector.h"

#include <stdbool.h>

enum { PHASES = 8, STREAMS = 4, SPAN = 192 * LANES, TAPS = 256, MANY = 16 };

#if defined(__AVX512F__) || defined(__aarch64__)
enum { DEPTH = 8 }; /* of 32 registers */
#else
enum { DEPTH = 4 }; /* of 16 */
#endif

typedef double wide __attribute__((vector_size(LANES * 8)));

_Static_assert(GC_DIRECT_SPAN % SPAN == 0, "see simd.h");

/* `depth` steps of every stream from vector j on. Output j + u + k runs in sum[.][(u + k) % depth]. In a stream's last
 * steps, sums that reach beyond its end begin with nothing. */
EXPANDED void steps(const float *x, const float *from, float *y, int64_t apart, int64_t j, const float *ahead,
                    vec tap[PHASES][DEPTH], vec sum[STREAMS][DEPTH], int depth, int phases, int streams, bool last) {
#pragma GCC unroll 8
    for (int u = 0; u < depth; u++) {
#pragma GCC unroll 8
        for (int s = 0; s < streams; s++)
            sum[s][(u + depth - 1) % depth] =
                last && u > 0 ? (vec){0} : load(from + s * apart + (j + u + depth - 1) * LANES);
#pragma GCC unroll 8
        for (int p = 0; p < phases; p++)
#pragma GCC unroll 8
            for (int s = 0; s < streams; s++) {
                vec v = load(x + s * apart + (j + u) * LANES - p);
#pragma GCC unroll 8
                for (int k = 0; k < depth; k++)
                    sum[s][(u + k) % depth] += tap[p][k] * v;
            }
#pragma GCC unroll 8
        for (int s = 0; s < streams; s++) {
            store(y + s * apart + (j + u) * LANES, sum[s][u]);
            __builtin_prefetch(ahead + s * apart + (j + u) * LANES, 1, 2);
        }
    }
}

/* y_j = from_j + the products of `depth` taps of each of `phases` phases, for `streams` times `count` vectors, at least
 * `depth` of them if there are several streams. What is worked on next lies at `ahead` and is called into the
 * second-level cache meanwhile: this stretch fills the first. */
EXPANDED void pass(const float *x, const float *h, const float *from, float *y, int64_t count, const float *ahead,
                   int depth, int phases, int streams) {
    const int64_t apart = count * LANES;
    vec tap[PHASES][DEPTH], sum[STREAMS][DEPTH];
    int64_t j = 0;
#pragma GCC unroll 8
    for (int p = 0; p < phases; p++)
#pragma GCC unroll 8
        for (int k = 0; k < depth; k++)
            tap[p][k] = broadcast(h[p + k * LANES]);
#pragma GCC unroll 8
    for (int s = 0; s < streams; s++) {
#pragma GCC unroll 8
        for (int k = 0; k < depth - 1; k++)
            sum[s][k] = k < count ? load(from + s * apart + k * LANES) : (vec){0};
    }
    /* What lies before all streams and reaches into the first. */
#pragma GCC unroll 8
    for (int p = 0; p < phases; p++)
#pragma GCC unroll 8
        for (int before = 1; before < depth; before++) {
            vec v = load(x - before * LANES - p);
#pragma GCC unroll 8
            for (int k = 0; k < depth - before; k++)
                sum[0][k] += tap[p][before + k] * v;
        }
    for (; j + 2 * depth - 1 <= count; j += depth)
        steps(x, from, y, apart, j, ahead, tap, sum, depth, phases, streams, false);
    if (j + depth == count) {
        steps(x, from, y, apart, j, ahead, tap, sum, depth, phases, streams, true);
        j = count;
    }
    /* Where that does not come out even, moving up. */
    for (; j < count; j++) {
#pragma GCC unroll 8
        for (int s = 0; s < streams; s++) {
            sum[s][depth - 1] = j + depth - 1 < count ? load(from + s * apart + (j + depth - 1) * LANES) : (vec){0};
#pragma GCC unroll 8
            for (int p = 0; p < phases; p++) {
                vec v = load(x + s * apart + j * LANES - p);
#pragma GCC unroll 8
                for (int k = 0; k < depth; k++)
                    sum[s][k] += tap[p][k] * v;
            }
            store(y + s * apart + j * LANES, sum[s][0]);
#pragma GCC unroll 8
            for (int k = 0; k + 1 < depth; k++)
                sum[s][k] = sum[s][k + 1];
        }
    }
    /* What a stream has to say of the next one's first outputs. */
#pragma GCC unroll 8
    for (int s = 0; s + 1 < streams; s++)
#pragma GCC unroll 8
        for (int k = 0; k < depth - 1; k++) {
            float *to = y + (s + 1) * apart + k * LANES;
            store(to, load(to) + sum[s][k]);
        }
}

/* One pass over all of y, and another over what the streams leave. */
EXPANDED void passes(const float *x, const float *h, const float *from, float *y, int64_t count, const float *ahead,
                     int depth, int phases, int streams) {
    const int64_t each = count >= depth * streams ? count / streams : 0, done = each * streams;
    if (each > 0)
        pass(x, h, from, y, each, ahead, depth, phases, streams);
    if (done < count)
        pass(x + done * LANES, h, from + done * LANES, y + done * LANES, count - done, ahead + done * LANES, depth,
             phases, 1);
}

/* As many of up to `most` phases as registers hold, in one pass; how many they were. */
static int some_phases(const float *x, const float *h, const float *from, float *y, int64_t count, const float *ahead,
                       int depth, int most) {
#define AT_DEPTH(depth, phases, streams)                                                                               \
    case depth:                                                                                                        \
        if (most >= (phases))                                                                                          \
            return passes(x, h, from, y, count, ahead, depth, phases, streams), phases;                                \
        return passes(x, h, from, y, count, ahead, depth, 1, streams), 1;
    switch (depth) {
#if defined(__AVX512F__) || defined(__aarch64__)
        AT_DEPTH(1, 8, 4)
        AT_DEPTH(2, 8, 4)
        AT_DEPTH(3, 4, 3)
        AT_DEPTH(4, 4, 2)
        AT_DEPTH(5, 3, 2)
        AT_DEPTH(6, 2, 2)
        AT_DEPTH(7, 2, 2)
    default:
        AT_DEPTH(8, 2, 1)
#else
        AT_DEPTH(1, 8, 4)
        AT_DEPTH(2, 2, 4)
        AT_DEPTH(3, 1, 3)
    default:
        AT_DEPTH(4, 1, 2)
#endif
    }
#undef AT_DEPTH
}

/* y_j = the products of all taps, in floats, and if `add` what y_j was. The first pass calls for the next stretch's
 * input, the second for the outputs to be. */
static void products(const float *x, const float *h, int64_t taps, float *y, int64_t count, bool add) {
    static const float nothing[SPAN] __attribute__((aligned(64)));
    const float *ahead = x + count * LANES, *from = add ? y : nothing;
    for (int64_t first = 0; first < taps; first += DEPTH * LANES) {
        int64_t here = gc_min(taps - first, DEPTH * LANES);
        for (int p = 0; p < LANES && p < here;) {
            int depth = (int)((here - p + LANES - 1) / LANES);
            int alike = here % LANES > p ? (int)(here % LANES) - p : LANES - p; /* phases of that many taps */
            p += some_phases(x - first - p, h + first + p, from, y, count, ahead, depth, alike);
            ahead = y + count * LANES;
            from = y;
        }
    }
}

/* Sums of a few hundred products are good to 128 dB in floats, and so are a few of those sums. Many are kept in
 * doubles, so that the error does not grow with the response. */
static void stretch(const float *x, const float *h, int64_t taps, float *y, int64_t count, bool add) {
    float sum[SPAN] __attribute__((aligned(64)));
    wide total[SPAN / LANES];
    if (taps <= MANY * TAPS) {
        products(x, h, gc_min(taps, TAPS), y, count, add);
        for (int64_t k = TAPS; k < taps; k += TAPS) {
            products(x - k, h + k, gc_min(TAPS, taps - k), sum, count, false);
            for (int64_t j = 0; j < count; j++)
                store(y + j * LANES, load(y + j * LANES) + load(sum + j * LANES));
        }
        return;
    }
    for (int64_t j = 0; j < count; j++)
        total[j] = add ? __builtin_convertvector(load(y + j * LANES), wide) : (wide){0};
    for (int64_t k = 0; k < taps; k += TAPS) {
        products(x - k, h + k, gc_min(TAPS, taps - k), sum, count, false);
        for (int64_t j = 0; j < count; j++)
            total[j] += __builtin_convertvector(load(sum + j * LANES), wide);
    }
    for (int64_t j = 0; j < count; j++)
        store(y + j * LANES, __builtin_convertvector(total[j], vec));
}

static void direct(const float *x, const float *h, int64_t taps, float *y, int64_t n, int add) {
    int64_t i = 0;
    for (int64_t count; (count = gc_min(SPAN, n - i) / LANES) > 0; i += count * LANES)
        stretch(x + i, h, taps, y + i, count, add);
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
