/*
 * Direct convolution; compiled once for each instruction set, with GC_SIMD as the name of its table.
 *
 * The taps are grouped by phase: with LANES = 4, phase 1 is h[1], h[5], h[9] ... One load from the input serves all
 * taps of a phase, because they contribute to outputs that are whole vectors stream_stride:
 *
 *      y_(j+k) += h[p + k LANES] x_(j, p),       x_(j, p) = the vector at x[j LANES - p]
 *
 * A pass holds `depth` taps of each of `phases` phases in registers. A sum is loaded depth - 1 vectors ahead, gets
 * `depth` products of each phase in as many steps, and is stored. The outputs are divided into `streams` consecutive
 * streams, which are computed in turn so that their independent multiply-adds hide each other's latency. A step of a
 * stream is depth x phases multiply-adds for one unaligned load per phase and one load and store of the output. No tap
 * beyond the response and no input sample that the outputs do not need is read.
 */
#include "simd.h"

#include "fft_kernels.h"
#include "image_kernels.h"
#include "libgpuconv/core/memory.h"
#include "matrix_product.h"
#include "motion_kernels.h"
#include "vector.h"

#include <stdbool.h>

enum {
    MAX_PHASES = 8,
    MAX_STREAMS = 4,
    SPAN = 192 * LANES,   /* outputs that are computed together */
    BLOCK_TAPS = 256,     /* taps whose products are summed in floats */
    MAX_FLOAT_BLOCKS = 16 /* with more blocks than this, the blocks are summed in doubles */
};

#if defined(__AVX512F__) || defined(__aarch64__)
enum { MAX_DEPTH = 8 }; /* 32 registers */
#else
enum { MAX_DEPTH = 4 }; /* 16 registers */
#endif

typedef double wide __attribute__((vector_size(LANES * 8)));

_Static_assert(GC_DIRECT_SPAN % SPAN == 0, "see simd.h");

/* A part of the convolution: y = addend + the products of x with the taps at h, for `count` vectors of outputs. */
typedef struct segment {
    const float *x, *h, *addend;
    float *y;
    int64_t count;
    const float *prefetch; /* data of the next segment, which is prefetched into the second-level cache */
} segment;

/* How a pass uses the registers; always constants, so that its loops can be unrolled. */
typedef struct pass_shape {
    int depth, phases, streams;
} pass_shape;

/* Computes `depth` steps of every stream from vector j on. The sum of output j + u + k is in sum[.][(u + k) % depth].
 * In the `last` steps of a stream, sums that belong to the next stream begin with zero. */
ALWAYS_INLINE void steps(segment g, pass_shape shape, int64_t j, vec tap[MAX_PHASES][MAX_DEPTH],
                         vec sum[MAX_STREAMS][MAX_DEPTH], bool last) {
    const int depth = shape.depth, phases = shape.phases, streams = shape.streams;
    const int64_t stream_stride = g.count * LANES;
#pragma GCC unroll 8
    for (int u = 0; u < depth; u++) {
#pragma GCC unroll 8
        for (int s = 0; s < streams; s++)
            sum[s][(u + depth - 1) % depth] =
                last && u > 0 ? (vec){0} : load(g.addend + s * stream_stride + (j + u + depth - 1) * LANES);
#pragma GCC unroll 8
        for (int p = 0; p < phases; p++)
#pragma GCC unroll 8
            for (int s = 0; s < streams; s++) {
                vec v = load(g.x + s * stream_stride + (j + u) * LANES - p);
#pragma GCC unroll 8
                for (int k = 0; k < depth; k++)
                    sum[s][(u + k) % depth] += tap[p][k] * v;
            }
#pragma GCC unroll 8
        for (int s = 0; s < streams; s++) {
            store(g.y + s * stream_stride + (j + u) * LANES, sum[s][u]);
            __builtin_prefetch(g.prefetch + s * stream_stride + (j + u) * LANES, 1, 2);
        }
    }
}

/* Computes `depth` taps of each of `phases` phases for a segment of `streams` times g.count vectors; if there are
 * several streams, g.count >= depth. The prefetch goes to the second-level cache: this segment fills the first. */
ALWAYS_INLINE void pass(segment g, pass_shape shape) {
    const int depth = shape.depth, phases = shape.phases, streams = shape.streams;
    const int64_t count = g.count, stream_stride = count * LANES;
    vec tap[MAX_PHASES][MAX_DEPTH], sum[MAX_STREAMS][MAX_DEPTH];
    int64_t j = 0;
#pragma GCC unroll 8
    for (int p = 0; p < phases; p++)
#pragma GCC unroll 8
        for (int k = 0; k < depth; k++)
            tap[p][k] = broadcast(g.h[p + k * LANES]);
#pragma GCC unroll 8
    for (int s = 0; s < streams; s++) {
#pragma GCC unroll 8
        for (int k = 0; k < depth - 1; k++)
            sum[s][k] = k < count ? load(g.addend + s * stream_stride + k * LANES) : (vec){0};
    }
    /* The input before the segment contributes to the first outputs of the first stream. */
#pragma GCC unroll 8
    for (int p = 0; p < phases; p++)
#pragma GCC unroll 8
        for (int before = 1; before < depth; before++) {
            vec v = load(g.x - before * LANES - p);
#pragma GCC unroll 8
            for (int k = 0; k < depth - before; k++)
                sum[0][k] += tap[p][before + k] * v;
        }
    for (; j + 2 * depth - 1 <= count; j += depth)
        steps(g, shape, j, tap, sum, false);
    if (j + depth == count) {
        steps(g, shape, j, tap, sum, true);
        j = count;
    }
    /* The remaining steps, one at a time: the sums move up by one register per step. */
    for (; j < count; j++) {
#pragma GCC unroll 8
        for (int s = 0; s < streams; s++) {
            sum[s][depth - 1] =
                j + depth - 1 < count ? load(g.addend + s * stream_stride + (j + depth - 1) * LANES) : (vec){0};
#pragma GCC unroll 8
            for (int p = 0; p < phases; p++) {
                vec v = load(g.x + s * stream_stride + j * LANES - p);
#pragma GCC unroll 8
                for (int k = 0; k < depth; k++)
                    sum[s][k] += tap[p][k] * v;
            }
            store(g.y + s * stream_stride + j * LANES, sum[s][0]);
#pragma GCC unroll 8
            for (int k = 0; k + 1 < depth; k++)
                sum[s][k] = sum[s][k + 1];
        }
    }
    /* Adds the sums that each stream holds for the first outputs of the next stream. */
#pragma GCC unroll 8
    for (int s = 0; s + 1 < streams; s++)
#pragma GCC unroll 8
        for (int k = 0; k < depth - 1; k++) {
            float *to = g.y + (s + 1) * stream_stride + k * LANES;
            store(to, load(to) + sum[s][k]);
        }
}

/* Computes all outputs of a segment: streams of equal length first, then the rest as one stream. */
ALWAYS_INLINE void all_streams(segment g, pass_shape shape) {
    const int64_t per_stream = g.count >= shape.depth * shape.streams ? g.count / shape.streams : 0;
    const int64_t done = per_stream * shape.streams, at = done * LANES;
    if (per_stream > 0)
        pass((segment){g.x, g.h, g.addend, g.y, per_stream, g.prefetch}, shape);
    if (done < g.count)
        pass((segment){g.x + at, g.h, g.addend + at, g.y + at, g.count - done, g.prefetch + at},
             (pass_shape){shape.depth, shape.phases, 1});
}

/* Computes as many phases of `depth` taps as the registers hold, up to max_phases, in one pass. Returns their number.
 */
static int some_phases(const segment *s, int depth, int max_phases) {
    const segment g = *s;
#define AT_DEPTH(depth, phases, streams)                                                                               \
    case depth:                                                                                                        \
        if (max_phases >= (phases))                                                                                    \
            return all_streams(g, (pass_shape){depth, phases, streams}), phases;                                       \
        return all_streams(g, (pass_shape){depth, 1, streams}), 1;
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

/* Computes y = the sum of the products of all taps in floats; with `add`, adds it to y. The first pass prefetches the
 * input of the next segment, the others its outputs. */
static void convolve_floats(const float *x, const float *h, int64_t taps, float *y, int64_t count, bool add) {
    static const float zeros[SPAN] __attribute__((aligned(64)));
    segment g = {.addend = add ? y : zeros, .y = y, .count = count, .prefetch = x + count * LANES};
    for (int64_t first = 0; first < taps; first += MAX_DEPTH * LANES) {
        int64_t group = gc_min(taps - first, MAX_DEPTH * LANES);
        for (int p = 0; p < LANES && p < group;) {
            int depth = (int)((group - p + LANES - 1) / LANES);
            int same_depth = group % LANES > p ? (int)(group % LANES) - p : LANES - p; /* phases with `depth` taps */
            g.x = x - first - p;
            g.h = h + first + p;
            p += some_phases(&g, depth, same_depth);
            g.prefetch = y + count * LANES;
            g.addend = y;
        }
    }
}

/* Convolves up to SPAN outputs. Float sums of a few hundred products have an error of -128 dB, and so have sums of a
 * few such blocks. More blocks are summed in doubles, so that the error does not grow with the length of the response.
 */
static void convolve_span(const float *x, const float *h, int64_t taps, float *y, int64_t count, bool add) {
    float sum[SPAN] __attribute__((aligned(64)));
    wide total[SPAN / LANES];
    if (taps <= MAX_FLOAT_BLOCKS * BLOCK_TAPS) {
        convolve_floats(x, h, gc_min(taps, BLOCK_TAPS), y, count, add);
        for (int64_t k = BLOCK_TAPS; k < taps; k += BLOCK_TAPS) {
            convolve_floats(x - k, h + k, gc_min(BLOCK_TAPS, taps - k), sum, count, false);
            for (int64_t j = 0; j < count; j++)
                store(y + j * LANES, load(y + j * LANES) + load(sum + j * LANES));
        }
        return;
    }
    for (int64_t j = 0; j < count; j++)
        total[j] = add ? __builtin_convertvector(load(y + j * LANES), wide) : (wide){0};
    for (int64_t k = 0; k < taps; k += BLOCK_TAPS) {
        convolve_floats(x - k, h + k, gc_min(BLOCK_TAPS, taps - k), sum, count, false);
        for (int64_t j = 0; j < count; j++)
            total[j] += __builtin_convertvector(load(sum + j * LANES), wide);
    }
    for (int64_t j = 0; j < count; j++)
        store(y + j * LANES, __builtin_convertvector(total[j], vec));
}

static void direct(const float *x, const float *h, int64_t taps, float *y, int64_t n, int add) {
    int64_t i = 0;
    for (int64_t count; (count = gc_min(SPAN, n - i) / LANES) > 0; i += count * LANES)
        convolve_span(x + i, h, taps, y + i, count, add);
    for (; i < n; i++) { /* fewer outputs than a vector */
        double total = 0;
        for (int64_t k = 0; k < taps; k++)
            total += (double)h[k] * (double)x[i - k];
        y[i] = (float)total + (add ? y[i] : 0);
    }
}

/* Executes independent chains of multiply-adds; see simd.h. */
static float multiply_add_loop(int64_t rounds, double *operations) {
    enum { SUMS = 12 }; /* chains in flight */
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
extern const gc_matrix_kernels GC_MATRIX_SET;
extern const gc_motion_kernels GC_MOTION_SET;
extern const gc_image_kernels GC_IMAGE_SET;
extern gc_pcm_unpacker GC_PCM_UNPACK;
extern gc_pcm_packer GC_PCM_PACK;

const gc_simd GC_SIMD = {SET_NAME,       direct,        multiply_add_loop, &GC_FFT_SET, &GC_MATRIX_SET,
                         &GC_MOTION_SET, &GC_IMAGE_SET, GC_PCM_UNPACK,     GC_PCM_PACK};
