/*
 * The loops of the FFT, compiled once for each instruction set; GC_FFT_SET is the name of their table.
 *
 * The data is an array of pairs: a vector of real parts followed by a vector of imaginary parts. A pass computes
 * GC_FFT_RADIX_LEVELS levels of the tree (fft_kernels.h) in registers. The passes recurse depth first, so that once a
 * subtree fits into a cache, all its levels are computed in that cache. The leaves are tiles of LANES pairs: half of a
 * tile's levels combine whole pairs, then the tile is transposed and the other half combine whole pairs again. The
 * forward transform leaves the tiles transposed; only the inverse transform transposes them back.
 *
 *      signal halves -> first pass -> ... -> tiles -> | spectrum | -> products -> tiles -> ... -> last pass -> halves
 *
 * Blocks of rows that are shorter than a tile share one: each has LANES / rows of its pairs. The levels before the
 * transposition combine pairs of one block; after it a vector has lanes of all blocks. The first pass takes the samples
 * behind the end of a row as zeros, and the last one writes the samples that are asked for, so that rows are read and
 * written where they are.
 *
 * The streams of a pass lie a power of two apart and would share one cache set: a gap of one pair after each CHUNK
 * pairs prevents that. Passes over whole chunks also process the gaps, whose zeros stay zeros.
 */
#include "fft_kernels.h"
#include "vector.h"

#include <stdbool.h>

enum { PAIR = 2 * LANES, TILE = LANES * PAIR, RADIX = 1 << GC_FFT_RADIX_LEVELS, CHUNK = LANES * RADIX };
enum { REGISTERS = 16 }; /* complex vectors: the largest number that a step needs */
enum { TILE_LEVELS = LANES == 16 ? 4 : LANES == 8 ? 3 : 2, TILE_TWIDDLES = LANES / 2 * PAIR };

typedef struct complex_vec {
    vec re, im;
} complex_vec;

ALWAYS_INLINE complex_vec load_pair(const float *p) {
    return (complex_vec){load(p), load(p + LANES)};
}

ALWAYS_INLINE void store_pair(float *p, complex_vec z) {
    store(p, z.re);
    store(p + LANES, z.im);
}

/* Returns the number of pairs including the gaps between them. */
static int64_t with_gaps(int64_t pairs) {
    return pairs + pairs / CHUNK;
}

/* Cosine and tangent of a twiddle factor: the same in all lanes, or one per lane. */
typedef struct twiddle_vec {
    vec c, t;
} twiddle_vec;

/* Loads the twiddle factor of node j of level l within a pass or (`per_lane`) a tile. */
ALWAYS_INLINE twiddle_vec load_twiddle(const float *twiddles, int l, int j, int per_lane) {
    int entry = l == 0 ? 0 : (1 << l) / 2 + j / 2;
    if (per_lane)
        return (twiddle_vec){load(twiddles + entry * PAIR), load(twiddles + entry * PAIR + LANES)};
    return (twiddle_vec){broadcast(twiddles[2 * entry]), broadcast(twiddles[2 * entry + 1])};
}

/* Computes `levels` levels of the forward transform on 2^levels registers. The twiddle factor of odd nodes is i w, that
 * of their siblings w. */
ALWAYS_INLINE void forward_levels(complex_vec *z, int levels, const float *twiddles, int per_lane) {
#pragma GCC unroll 4
    for (int l = 0; l < levels; l++) {
        int nodes = 1 << l, half = 1 << (levels - l - 1);
#pragma GCC unroll 16
        for (int j = 0; j < nodes; j++) {
            twiddle_vec w = load_twiddle(twiddles, l, j, per_lane);
#pragma GCC unroll 16
            for (int p = 0; p < half; p++) {
                complex_vec *a = &z[2 * j * half + p], *b = a + half;
                vec u = b->re - w.t * b->im, v = b->im + w.t * b->re;
                if (j % 2) {
                    b->re = a->re + w.c * v;
                    b->im = a->im - w.c * u;
                    a->re -= w.c * v;
                    a->im += w.c * u;
                } else {
                    b->re = a->re - w.c * u;
                    b->im = a->im - w.c * v;
                    a->re += w.c * u;
                    a->im += w.c * v;
                }
            }
        }
    }
}

/* Computes `levels` levels of the inverse transform: A = a + b, B = (a - b) / w, which are scaled by 2 per level. */
ALWAYS_INLINE void inverse_levels(complex_vec *z, int levels, const float *twiddles, int per_lane) {
#pragma GCC unroll 4
    for (int l = levels - 1; l >= 0; l--) {
        int nodes = 1 << l, half = 1 << (levels - l - 1);
#pragma GCC unroll 16
        for (int j = 0; j < nodes; j++) {
            twiddle_vec w = load_twiddle(twiddles, l, j, per_lane);
#pragma GCC unroll 16
            for (int p = 0; p < half; p++) {
                complex_vec *a = &z[2 * j * half + p], *b = a + half;
                vec re = a->re - b->re, im = a->im - b->im;
                vec u = w.c * (re + w.t * im), v = w.c * (im - w.t * re);
                a->re += b->re;
                a->im += b->im;
                *b = j % 2 ? (complex_vec){v, -u} : (complex_vec){u, v};
            }
        }
    }
}

ALWAYS_INLINE void transpose_tile(complex_vec *z) {
    vec re[LANES], im[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) {
        re[i] = z[i].re;
        im[i] = z[i].im;
    }
    transpose(re);
    transpose(im);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        z[i] = (complex_vec){re[i], im[i]};
}

/* Computes one pass in place, over 2^levels streams of n pairs each, which begin `stride` floats apart. */
ALWAYS_INLINE void pass(float *z, int64_t stride, int64_t n, const float *twiddles, int levels, int is_forward) {
    int streams = 1 << levels;
    for (int64_t p = 0; p < n; p++, z += PAIR) {
        complex_vec x[REGISTERS];
#pragma GCC unroll 16
        for (int q = 0; q < streams; q++)
            x[q] = load_pair(z + q * stride);
        if (is_forward)
            forward_levels(x, levels, twiddles, 0);
        else
            inverse_levels(x, levels, twiddles, 0);
#pragma GCC unroll 16
        for (int q = 0; q < streams; q++)
            store_pair(z + q * stride, x[q]);
    }
}

/* Loads the last samples of a row, `count` < LANES. Not inlined, as store_part: a row has few such vectors. */
static __attribute__((noinline)) vec load_end(const float *signal, int64_t count) {
    vec v = {0};
    for (int64_t i = 0; i < count; i++)
        v[i] = signal[i];
    return v;
}

/* Stores the samples first .. end - 1 among those of a vector, which begins with sample `at`. */
static __attribute__((noinline)) void store_part(float *signal, int64_t at, vec v, int64_t first, int64_t end) {
    for (int i = 0; i < LANES; i++)
        if (at + i >= first && at + i < end)
            signal[at + i - first] = v[i];
}

/* Loads a vector from sample `at` on; the samples from `frames` on are not read and count as zeros. */
ALWAYS_INLINE vec load_before(const float *signal, int64_t at, int64_t frames) {
    const int64_t left = frames - at;
    return left >= LANES ? load(signal + at) : left <= 0 ? (vec){0} : load_end(signal + at, left);
}

/* Stores a vector of samples from sample `at` on, but for those outside first .. end - 1; signal[0] is sample `first`.
 */
ALWAYS_INLINE void store_between(float *signal, int64_t at, vec v, int64_t first, int64_t end) {
    if (at >= first && at + LANES <= end)
        store(signal + (at - first), v);
    else if (at + LANES > first && at < end)
        store_part(signal, at, v, first, end);
}

/* The input of the forward transform: a signal of 2 `half` samples. Either all samples are read, or `frames` samples,
 * which are multiplied by `scale`. */
typedef struct input_signal {
    const float *samples;
    int64_t half, frames;
    float scale;
} input_signal;

/* The output of the inverse transform: a signal of 2 `half` samples. Samples first .. end - 1 are written. */
typedef struct output_signal {
    float *samples;
    int64_t half, first, end;
} output_signal;

/* Computes the first pass of the forward transform, which reads the signal: all of it, or `frames` samples times
 * `scale`, followed by zeros. */
ALWAYS_INLINE void first_pass(const input_signal *in, float *z, int64_t stride, const float *twiddles, int levels,
                              bool all) {
    const float *signal = in->samples, scale = in->scale;
    int streams = 1 << levels;
    int64_t half = in->half, frames = in->frames, length = half >> levels;
    for (int64_t p = 0; p < length; p += LANES) {
        complex_vec x[RADIX];
        float *to = z + with_gaps(p / LANES) * PAIR;
#pragma GCC unroll 16
        for (int q = 0; q < streams; q++) {
            const int64_t at = p + q * length;
            x[q] = all ? (complex_vec){load(signal + at), load(signal + at + half)}
                       : (complex_vec){scale * load_before(signal, at, frames),
                                       scale * load_before(signal, at + half, frames)};
        }
        forward_levels(x, levels, twiddles, 0);
#pragma GCC unroll 16
        for (int q = 0; q < streams; q++)
            store_pair(to + q * stride, x[q]);
    }
}

/* Computes the last pass of the inverse transform, which writes the samples first .. end - 1 of the signal; with `all`
 * those from `first` on, a multiple of LANES. */
ALWAYS_INLINE void last_pass(const float *z, int64_t stride, const float *twiddles, const output_signal *out,
                             int levels, bool all) {
    float *signal = out->samples;
    int streams = 1 << levels;
    int64_t half = out->half, first = out->first, end = out->end, length = half >> levels;
    for (int64_t p = 0; p < length; p += LANES) {
        complex_vec x[RADIX];
        const float *from = z + with_gaps(p / LANES) * PAIR;
#pragma GCC unroll 16
        for (int q = 0; q < streams; q++)
            x[q] = load_pair(from + q * stride);
        inverse_levels(x, levels, twiddles, 0);
#pragma GCC unroll 16
        for (int q = 0; q < streams; q++) {
            const int64_t at = p + q * length;
            if (!all) {
                store_between(signal, at, x[q].re, first, end);
                store_between(signal, at + half, x[q].im, first, end);
                continue;
            }
            if (at >= first)
                store(signal + (at - first), x[q].re);
            if (at + half >= first)
                store(signal + (at + half - first), x[q].im);
        }
    }
}

/* Computes the levels of one tile of the forward transform. `twiddles` is for the levels before the transposition,
 * `lane_twiddles` for those after it. */
static void forward_tile(float *z, const float *twiddles, const float *lane_twiddles) {
    complex_vec x[LANES];
    pass(z, PAIR, 1, twiddles, TILE_LEVELS, 1);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        x[i] = load_pair(z + i * PAIR);
    transpose_tile(x);
    forward_levels(x, TILE_LEVELS, lane_twiddles, 1);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        store_pair(z + i * PAIR, x[i]);
}

ALWAYS_INLINE complex_vec product(complex_vec a, complex_vec b) {
    return (complex_vec){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

ALWAYS_INLINE complex_vec add_product(complex_vec sum, complex_vec a, complex_vec b) {
    return (complex_vec){sum.re + a.re * b.re - a.im * b.im, sum.im + a.re * b.im + a.im * b.re};
}

/* Stores the sums of products of n floats of spectra, from float `at` on, in y. Keeps the sums of four pairs in
 * registers while it adds all products. */
ALWAYS_INLINE void sum_products(float *y, const float *const *x, const float *const *h, int64_t count, int64_t at,
                                int64_t n) {
    enum { WIDTH = 4 };
    const int64_t end = at + n;
    for (; at + WIDTH * PAIR <= end; at += WIDTH * PAIR, y += WIDTH * PAIR) {
        complex_vec sum[WIDTH] = {{{0}, {0}}};
        for (int64_t k = 0; k < count; k++) {
#pragma GCC unroll 4
            for (int w = 0; w < WIDTH; w++)
                sum[w] = add_product(sum[w], load_pair(x[k] + at + (int64_t)w * PAIR),
                                     load_pair(h[k] + at + (int64_t)w * PAIR));
        }
#pragma GCC unroll 4
        for (int w = 0; w < WIDTH; w++)
            store_pair(y + (int64_t)w * PAIR, sum[w]);
    }
    for (; at < end; at += PAIR, y += PAIR) {
        complex_vec sum = {{0}, {0}};
        for (int64_t k = 0; k < count; k++)
            sum = add_product(sum, load_pair(x[k] + at), load_pair(h[k] + at));
        store_pair(y, sum);
    }
}

/* Multiplies the spectra of one tile and computes its levels of the inverse transform. A single product, the common
 * case, stays in registers; a sum of several is stored in the tile first. */
static void inverse_tile(float *z, const float *const *x, const float *const *h, int64_t count, int64_t at,
                         const float *twiddles, const float *lane_twiddles) {
    complex_vec y[LANES];
    z += at;
    if (count == 1) {
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            y[i] = product(load_pair(x[0] + at + i * PAIR), load_pair(h[0] + at + i * PAIR));
    } else {
        if (count)
            sum_products(z, x, h, count, at, TILE);
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            y[i] = load_pair(z + i * PAIR);
    }
    inverse_levels(y, TILE_LEVELS, lane_twiddles, 1);
    transpose_tile(y);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        store_pair(z + i * PAIR, y[i]);
    pass(z, PAIR, 1, twiddles, TILE_LEVELS, 0);
}

static void forward_pass(float *z, int64_t stride, int64_t n, const float *twiddles, int levels) {
    if (levels == 3)
        pass(z, stride, n, twiddles, 3, 1);
    else if (levels == 2)
        pass(z, stride, n, twiddles, 2, 1);
    else if (levels == 1)
        pass(z, stride, n, twiddles, 1, 1);
}

static void inverse_pass(float *z, int64_t stride, int64_t n, const float *twiddles, int levels) {
    if (levels == 3)
        pass(z, stride, n, twiddles, 3, 0);
    else if (levels == 2)
        pass(z, stride, n, twiddles, 2, 0);
    else if (levels == 1)
        pass(z, stride, n, twiddles, 1, 0);
}

/* Computes the forward transform below `node`, the root of a subtree of `pairs` pairs, from pass i on. */
static void forward_subtree(const gc_fft_tables *t, int i, int64_t node, float *z, int64_t pairs) {
    if (i == t->passes) {
        forward_tile(z, t->twiddles[i] + (node << TILE_LEVELS), t->tile_twiddles + node * TILE_TWIDDLES);
        return;
    }
    int levels = t->levels[i];
    int64_t part = pairs >> levels, stride = with_gaps(part) * PAIR;
    forward_pass(z, stride, with_gaps(part), t->twiddles[i] + (node << levels), levels);
    for (int64_t q = 0; q < 1 << levels; q++)
        forward_subtree(t, i + 1, (node << levels) + q, z + q * stride, part);
}

/* The spectra whose products are summed by the inverse transform. */
typedef struct products {
    const float *const *x;
    const float *const *h;
    int64_t count;
    float *sum; /* the data of the transform */
} products;

/* Computes the inverse transform below `node`, whose subtree of `pairs` pairs begins at float `at` of p->sum, up to
 * pass i. */
static void inverse_subtree(const gc_fft_tables *t, int i, int64_t node, const products *p, int64_t at, int64_t pairs) {
    if (i == t->passes) {
        inverse_tile(p->sum, p->x, p->h, p->count, at, t->twiddles[i] + (node << TILE_LEVELS),
                     t->tile_twiddles + node * TILE_TWIDDLES);
        return;
    }
    int levels = t->levels[i];
    int64_t part = pairs >> levels, stride = with_gaps(part) * PAIR;
    for (int64_t q = 0; q < 1 << levels; q++)
        inverse_subtree(t, i + 1, (node << levels) + q, p, at + q * stride, part);
    inverse_pass(p->sum + at, stride, with_gaps(part), t->twiddles[i] + (node << levels), levels);
}

ALWAYS_INLINE void forward_block(const gc_fft_tables *t, const float *signal, int64_t frames, float scale,
                                 float *spectrum, bool all) {
    const input_signal in = {signal, t->half, frames, scale};
    int levels = t->levels[0];
    int64_t part = t->vectors >> levels, stride = with_gaps(part) * PAIR;
    if (levels == 3)
        first_pass(&in, spectrum, stride, t->twiddles[0], 3, all);
    else if (levels == 2)
        first_pass(&in, spectrum, stride, t->twiddles[0], 2, all);
    else if (levels == 1)
        first_pass(&in, spectrum, stride, t->twiddles[0], 1, all);
    else
        first_pass(&in, spectrum, stride, t->twiddles[0], 0, all);
    for (int64_t q = 0; q < 1 << levels; q++)
        forward_subtree(t, 1, q, spectrum + q * stride, part);
}

ALWAYS_INLINE void inverse_block(const gc_fft_tables *t, const products *p, const output_signal *out, bool all) {
    int levels = t->levels[0];
    int64_t part = t->vectors >> levels, stride = with_gaps(part) * PAIR;
    for (int64_t q = 0; q < 1 << levels; q++)
        inverse_subtree(t, 1, q, p, q * stride, part);
    if (levels == 3)
        last_pass(p->sum, stride, t->twiddles[0], out, 3, all);
    else if (levels == 2)
        last_pass(p->sum, stride, t->twiddles[0], out, 2, all);
    else if (levels == 1)
        last_pass(p->sum, stride, t->twiddles[0], out, 1, all);
    else
        last_pass(p->sum, stride, t->twiddles[0], out, 0, all);
}

/* Transforms the blocks of one tile; `levels`: those before the transposition. */
ALWAYS_INLINE void forward_one_tile(const gc_fft_tables *t, const float *const *signal, int64_t frames, float scale,
                                    float *spectrum, int levels) {
    const int pairs = 1 << levels;
    complex_vec x[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) {
        const int64_t at = i % pairs * LANES;
        x[i] = (complex_vec){scale * load_before(signal[i / pairs], at, frames),
                             scale * load_before(signal[i / pairs], at + t->half, frames)};
    }
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i += pairs)
        forward_levels(x + i, levels, t->twiddles[1], 0);
    transpose_tile(x);
    forward_levels(x, TILE_LEVELS, t->tile_twiddles, 1);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        store_pair(spectrum + i * PAIR, x[i]);
}

/* Transforms the product of two tiles back to their blocks; of x alone if h is NULL. */
ALWAYS_INLINE void inverse_one_tile(const gc_fft_tables *t, const float *x, const float *h, float *const *signal,
                                    int64_t first, int64_t end, int levels) {
    const int pairs = 1 << levels;
    complex_vec y[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        y[i] = h ? product(load_pair(x + i * PAIR), load_pair(h + i * PAIR)) : load_pair(x + i * PAIR);
    inverse_levels(y, TILE_LEVELS, t->tile_twiddles, 1);
    transpose_tile(y);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i += pairs)
        inverse_levels(y + i, levels, t->twiddles[1], 0);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) {
        const int64_t at = i % pairs * LANES;
        store_between(signal[i / pairs], at, y[i].re, first, end);
        store_between(signal[i / pairs], at + t->half, y[i].im, first, end);
    }
}

static void forward_rows(const gc_fft_tables *t, const float *const *signal, int64_t frames, float scale,
                         float *spectrum) {
    if (t->vectors > LANES)
        forward_block(t, signal[0], frames, scale, spectrum, false);
    else if (t->rows == 1)
        forward_one_tile(t, signal, frames, scale, spectrum, TILE_LEVELS);
    else if (t->rows == 2)
        forward_one_tile(t, signal, frames, scale, spectrum, TILE_LEVELS - 1);
    else if (TILE_LEVELS == 4 && t->rows == 4)
        forward_one_tile(t, signal, frames, scale, spectrum, TILE_LEVELS - 2);
    else if (TILE_LEVELS == 4)
        forward_one_tile(t, signal, frames, scale, spectrum, TILE_LEVELS - 3);
}

static void inverse_rows(const gc_fft_tables *t, const float *x, const float *h, float *work, float *const *signal,
                         int64_t first, int64_t end) {
    if (t->vectors > LANES)
        inverse_block(t, &(products){&x, &h, h ? 1 : 0, work}, &(output_signal){signal[0], t->half, first, end}, false);
    else if (t->rows == 1)
        inverse_one_tile(t, x, h, signal, first, end, TILE_LEVELS);
    else if (t->rows == 2)
        inverse_one_tile(t, x, h, signal, first, end, TILE_LEVELS - 1);
    else if (TILE_LEVELS == 4 && t->rows == 4)
        inverse_one_tile(t, x, h, signal, first, end, TILE_LEVELS - 2);
    else if (TILE_LEVELS == 4)
        inverse_one_tile(t, x, h, signal, first, end, TILE_LEVELS - 3);
}

static void forward(const gc_fft_tables *t, const float *signal, float *spectrum) {
    if (t->vectors == LANES)
        forward_rows(t, &signal, 2 * t->half, 1, spectrum);
    else
        forward_block(t, signal, 2 * t->half, 1, spectrum, true);
}

static void inverse(const gc_fft_tables *t, const float *const *x, const float *const *h, int64_t count, float *work,
                    float *signal, int64_t first) {
    if (t->vectors == LANES && count == 1)
        inverse_rows(t, x[0], h[0], work, &signal, first, 2 * t->half);
    else
        inverse_block(t, &(products){x, h, count, work}, &(output_signal){signal, t->half, first, 2 * t->half}, true);
}

static int64_t spectrum_floats(int64_t vectors) {
    return with_gaps(vectors) * PAIR;
}

static void multiply_sum(float *y, const float *const *x, const float *const *h, int64_t count, int64_t n) {
    sum_products(y, x, h, count, 0, n);
}

const gc_fft_kernels GC_FFT_SET = {LANES, spectrum_floats, forward, inverse, multiply_sum, forward_rows, inverse_rows};
