/*
 * The transform's loops, compiled once for each instruction set with GC_FFT_SET naming them.
 *
 * A spectrum in the making is a row of pairs, a vector of real parts beside a vector of imaginary ones. A pass takes
 * GC_FFT_RADIX_LEVELS levels of the tree in registers; passes go down depth first, so that all below a part that fits a
 * cache happens in that cache. At the bottom stands a tile of LANES pairs: half of its levels run across the pairs,
 * then the tile is transposed and the other half run across the pairs again. Nobody transposes it back but the way
 * back.
 *
 *      signal halves -> first pass -> ... -> tiles -> | spectrum | -> products -> tiles -> ... -> last pass -> halves
 *
 * Powers of two apart, the streams of a pass would all fall into one set of the cache: an empty pair after each CHUNK
 * spreads them. Passes over whole chunks run over the gaps too, which hold zeros and keep them.
 */
#include "fft_kernels.h"
#include "vector.h"

enum { PAIR = 2 * LANES, TILE = LANES * PAIR, RADIX = 1 << GC_FFT_RADIX_LEVELS, CHUNK = LANES * RADIX };
enum { REGISTERS = 16 }; /* of complex numbers, the most that any step holds */
enum { TILE_LEVELS = LANES == 16 ? 4 : LANES == 8 ? 3 : 2, TILE_TWIDDLES = LANES / 2 * PAIR };

typedef struct complex_vec {
    vec re, im;
} complex_vec;

EXPANDED complex_vec load_pair(const float *p) {
    return (complex_vec){load(p), load(p + LANES)};
}

EXPANDED void store_pair(float *p, complex_vec z) {
    store(p, z.re);
    store(p + LANES, z.im);
}

/* Pairs with the gaps between them. */
static int64_t spread(int64_t pairs) {
    return pairs + pairs / CHUNK;
}

/* Cosine and tangent of node j of level l within a pass or a tile: one for all lanes, or one each. */
typedef struct turn {
    vec c, t;
} turn;

EXPANDED turn turn_of(const float *twiddles, int l, int j, int each) {
    int entry = l == 0 ? 0 : (1 << l) / 2 + j / 2;
    if (each)
        return (turn){load(twiddles + entry * PAIR), load(twiddles + entry * PAIR + LANES)};
    return (turn){broadcast(twiddles[2 * entry]), broadcast(twiddles[2 * entry + 1])};
}

/* `levels` levels down, over 2^levels registers. Odd nodes turn by i w where their siblings turn by w. */
EXPANDED void down(complex_vec *z, int levels, const float *twiddles, int each) {
#pragma GCC unroll 4
    for (int l = 0; l < levels; l++) {
        int nodes = 1 << l, half = 1 << (levels - l - 1);
#pragma GCC unroll 16
        for (int j = 0; j < nodes; j++) {
            turn w = turn_of(twiddles, l, j, each);
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

/* The same levels up again: A = (a + b), B = (a - b) / w, both twice too large. */
EXPANDED void up(complex_vec *z, int levels, const float *twiddles, int each) {
#pragma GCC unroll 4
    for (int l = levels - 1; l >= 0; l--) {
        int nodes = 1 << l, half = 1 << (levels - l - 1);
#pragma GCC unroll 16
        for (int j = 0; j < nodes; j++) {
            turn w = turn_of(twiddles, l, j, each);
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

EXPANDED void transpose_tile(complex_vec *z) {
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

/* One pass over 2^levels streams of n pairs, `stride` floats apart, in place. */
EXPANDED void pass(float *z, int64_t stride, int64_t n, const float *twiddles, int levels, int downward) {
    int streams = 1 << levels;
    for (int64_t p = 0; p < n; p++, z += PAIR) {
        complex_vec x[REGISTERS];
#pragma GCC unroll 16
        for (int q = 0; q < streams; q++)
            x[q] = load_pair(z + q * stride);
        if (downward)
            down(x, levels, twiddles, 0);
        else
            up(x, levels, twiddles, 0);
#pragma GCC unroll 16
        for (int q = 0; q < streams; q++)
            store_pair(z + q * stride, x[q]);
    }
}

/* The pass that reads the signal. */
EXPANDED void first_pass(const float *signal, int64_t half, float *z, int64_t stride, const float *twiddles,
                         int levels) {
    int streams = 1 << levels;
    int64_t length = half >> levels;
    for (int64_t p = 0; p < length; p += LANES) {
        complex_vec x[RADIX];
        const float *s = signal + p;
        float *to = z + spread(p / LANES) * PAIR;
#pragma GCC unroll 16
        for (int q = 0; q < streams; q++)
            x[q] = (complex_vec){load(s + q * length), load(s + half + q * length)};
        down(x, levels, twiddles, 0);
#pragma GCC unroll 16
        for (int q = 0; q < streams; q++)
            store_pair(to + q * stride, x[q]);
    }
}

/* The pass that writes the signal, from sample `first` on. */
EXPANDED void last_pass(const float *z, int64_t stride, const float *twiddles, float *signal, int64_t half,
                        int64_t first, int levels) {
    int streams = 1 << levels;
    int64_t length = half >> levels;
    for (int64_t p = 0; p < length; p += LANES) {
        complex_vec x[RADIX];
        const float *from = z + spread(p / LANES) * PAIR;
#pragma GCC unroll 16
        for (int q = 0; q < streams; q++)
            x[q] = load_pair(from + q * stride);
        up(x, levels, twiddles, 0);
        int64_t at = p - first;
#pragma GCC unroll 16
        for (int q = 0; q < streams; q++, at += length) {
            if (at >= 0)
                store(signal + at, x[q].re);
            if (at + half >= 0)
                store(signal + at + half, x[q].im);
        }
    }
}

static void tile_down(float *z, const float *twiddles, const float *each) {
    complex_vec x[LANES];
    pass(z, PAIR, 1, twiddles, TILE_LEVELS, 1);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        x[i] = load_pair(z + i * PAIR);
    transpose_tile(x);
    down(x, TILE_LEVELS, each, 1);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        store_pair(z + i * PAIR, x[i]);
}

EXPANDED complex_vec product(complex_vec a, complex_vec b) {
    return (complex_vec){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

EXPANDED complex_vec add_product(complex_vec sum, complex_vec a, complex_vec b) {
    return (complex_vec){sum.re + a.re * b.re - a.im * b.im, sum.im + a.re * b.im + a.im * b.re};
}

/* One product is the common case and stays in registers; sums of several go through the tile's memory. */
static void tile_up(float *z, const float *const *x, const float *const *h, int64_t count, int64_t at,
                    const float *twiddles, const float *each) {
    complex_vec y[LANES];
    z += at;
    if (count == 1) {
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            y[i] = product(load_pair(x[0] + at + i * PAIR), load_pair(h[0] + at + i * PAIR));
    } else {
        for (int i = 0; i < LANES && count; i++) {
            complex_vec sum = {{0}, {0}};
            for (int64_t k = 0; k < count; k++)
                sum = add_product(sum, load_pair(x[k] + at + i * PAIR), load_pair(h[k] + at + i * PAIR));
            store_pair(z + i * PAIR, sum);
        }
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            y[i] = load_pair(z + i * PAIR);
    }
    up(y, TILE_LEVELS, each, 1);
    transpose_tile(y);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        store_pair(z + i * PAIR, y[i]);
    pass(z, PAIR, 1, twiddles, TILE_LEVELS, 0);
}

static void pass_down(float *z, int64_t stride, int64_t n, const float *twiddles, int levels) {
    if (levels == 3)
        pass(z, stride, n, twiddles, 3, 1);
    else if (levels == 2)
        pass(z, stride, n, twiddles, 2, 1);
    else if (levels == 1)
        pass(z, stride, n, twiddles, 1, 1);
}

static void pass_up(float *z, int64_t stride, int64_t n, const float *twiddles, int levels) {
    if (levels == 3)
        pass(z, stride, n, twiddles, 3, 0);
    else if (levels == 2)
        pass(z, stride, n, twiddles, 2, 0);
    else if (levels == 1)
        pass(z, stride, n, twiddles, 1, 0);
}

/* All below `node`, the root of `pairs` pairs before pass i. */
static void below(const gc_fft_tables *t, int i, int64_t node, float *z, int64_t pairs) {
    if (i == t->passes) {
        tile_down(z, t->twiddles[i] + (node << TILE_LEVELS), t->tile + node * TILE_TWIDDLES);
        return;
    }
    int levels = t->levels[i];
    int64_t part = pairs >> levels, stride = spread(part) * PAIR;
    pass_down(z, stride, spread(part), t->twiddles[i] + (node << levels), levels);
    for (int64_t q = 0; q < 1 << levels; q++)
        below(t, i + 1, (node << levels) + q, z + q * stride, part);
}

typedef struct products {
    const float *const *x;
    const float *const *h;
    int64_t count;
    float *sum;
} products;

static void below_up(const gc_fft_tables *t, int i, int64_t node, const products *p, int64_t at, int64_t pairs) {
    if (i == t->passes) {
        tile_up(p->sum, p->x, p->h, p->count, at, t->twiddles[i] + (node << TILE_LEVELS),
                t->tile + node * TILE_TWIDDLES);
        return;
    }
    int levels = t->levels[i];
    int64_t part = pairs >> levels, stride = spread(part) * PAIR;
    for (int64_t q = 0; q < 1 << levels; q++)
        below_up(t, i + 1, (node << levels) + q, p, at + q * stride, part);
    pass_up(p->sum + at, stride, spread(part), t->twiddles[i] + (node << levels), levels);
}

static void forward(const gc_fft_tables *t, const float *signal, float *spectrum) {
    int levels = t->levels[0];
    int64_t part = t->vectors >> levels, stride = spread(part) * PAIR;
    if (levels == 3)
        first_pass(signal, t->half, spectrum, stride, t->twiddles[0], 3);
    else if (levels == 2)
        first_pass(signal, t->half, spectrum, stride, t->twiddles[0], 2);
    else if (levels == 1)
        first_pass(signal, t->half, spectrum, stride, t->twiddles[0], 1);
    else
        first_pass(signal, t->half, spectrum, stride, t->twiddles[0], 0);
    for (int64_t q = 0; q < 1 << levels; q++)
        below(t, 1, q, spectrum + q * stride, part);
}

static void backward(const gc_fft_tables *t, const float *const *x, const float *const *h, int64_t count, float *work,
                     float *signal, int64_t first) {
    int levels = t->levels[0];
    int64_t part = t->vectors >> levels, stride = spread(part) * PAIR;
    products p = {x, h, count, work};
    for (int64_t q = 0; q < 1 << levels; q++)
        below_up(t, 1, q, &p, q * stride, part);
    if (levels == 3)
        last_pass(work, stride, t->twiddles[0], signal, t->half, first, 3);
    else if (levels == 2)
        last_pass(work, stride, t->twiddles[0], signal, t->half, first, 2);
    else if (levels == 1)
        last_pass(work, stride, t->twiddles[0], signal, t->half, first, 1);
    else
        last_pass(work, stride, t->twiddles[0], signal, t->half, first, 0);
}

static int64_t floats(int64_t vectors) {
    return spread(vectors) * PAIR;
}

/* Four pairs at a time keep their sums in registers while all products pass. */
static void multiply_sum(float *y, const float *const *x, const float *const *h, int64_t count, int64_t n) {
    enum { WIDTH = 4 };
    int64_t i = 0;
    for (; i + WIDTH * PAIR <= n; i += WIDTH * PAIR) {
        complex_vec sum[WIDTH] = {{{0}, {0}}};
        for (int64_t k = 0; k < count; k++) {
#pragma GCC unroll 4
            for (int w = 0; w < WIDTH; w++)
                sum[w] = add_product(sum[w], load_pair(x[k] + i + (int64_t)w * PAIR),
                                     load_pair(h[k] + i + (int64_t)w * PAIR));
        }
#pragma GCC unroll 4
        for (int w = 0; w < WIDTH; w++)
            store_pair(y + i + (int64_t)w * PAIR, sum[w]);
    }
    for (; i < n; i += PAIR) {
        complex_vec sum = {{0}, {0}};
        for (int64_t k = 0; k < count; k++)
            sum = add_product(sum, load_pair(x[k] + i), load_pair(h[k] + i));
        store_pair(y + i, sum);
    }
}

const gc_fft_kernels GC_FFT_SET = {LANES, floats, forward, backward, multiply_sum};
