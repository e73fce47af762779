/*
 * The loops of products of matrices of spectra, compiled once for each instruction set; GC_MATRIX_SET is the name of
 * their table.
 *
 * A tile keeps the sums of `rows` outputs and `columns` blocks in registers while it adds the products of all inputs
 * and partitions: rows + columns loads for rows x columns complex products. Every sum adds its products in the same
 * order, in tiles of every size, so that no sample depends on how blocks are cut into chunks.
 */
#include "matrix_product.h"
#include "vector.h"

#include <stdbool.h>

enum { PAIR = 2 * LANES };

#if defined(__AVX512F__) || defined(__aarch64__)
enum { COLUMNS = 3 }; /* 32 registers: 18 sums, 6 of inputs, 2 of a response */
#else
enum { COLUMNS = 2 }; /* 16 registers: 12 sums and 4 of inputs; responses are read from the cache */
#endif

typedef struct complex_vec {
    vec re, im;
} complex_vec;

ALWAYS_INLINE complex_vec load_pair(const float *p) {
    return (complex_vec){load(p), load(p + LANES)};
}

/* The beginning of a tile, at one pair of the slab. */
typedef struct tile_at {
    const float *h, *x;
    float *y;
    const float *ahead; /* responses of the next group, to prefetch; NULL: none */
} tile_at;

ALWAYS_INLINE void tile(const gc_matrix_shape *s, tile_at at, int rows, int columns, bool prefetch) {
    const int64_t step = s->width * PAIR;
    complex_vec sum[GC_MATRIX_ROWS][COLUMNS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < columns; c++)
            sum[r][c] = (complex_vec){{0}, {0}};
    for (int64_t i = 0; i < s->inputs; i++) {
        const float *from = at.x + (i * s->delay + s->partitions - 1) * step;
        for (int64_t p = 0; p < s->partitions; p++, from -= step, at.h += rows * step) {
            complex_vec x[COLUMNS];
#pragma GCC unroll 8
            for (int c = 0; c < columns; c++)
                x[c] = load_pair(from + c * step);
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++) {
                const complex_vec h = load_pair(at.h + r * step);
                if (prefetch) {
                    __builtin_prefetch(at.ahead + r * step, 0, 2);
                    if (LANES == 16)
                        __builtin_prefetch(at.ahead + r * step + LANES, 0, 2);
                }
#pragma GCC unroll 8
                for (int c = 0; c < columns; c++) {
                    sum[r][c].re = sum[r][c].re + h.re * x[c].re - h.im * x[c].im;
                    sum[r][c].im = sum[r][c].im + h.re * x[c].im + h.im * x[c].re;
                }
            }
            if (prefetch)
                at.ahead += rows * step;
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < columns; c++) {
            float *to = at.y + (r * s->capacity + c) * step;
            if (s->past_caches) {
                store_past_caches(to, sum[r][c].re);
                store_past_caches(to + LANES, sum[r][c].im);
            } else {
                store(to, sum[r][c].re);
                store(to + LANES, sum[r][c].im);
            }
        }
}

/* Computes one pair of `rows` outputs for all blocks. The first tile prefetches. */
ALWAYS_INLINE void row_of_tiles(const gc_matrix_shape *s, tile_at at, int64_t blocks, int rows) {
    const int64_t step = s->width * PAIR;
    for (int64_t t = 0; t < blocks;) {
        const tile_at here = {at.h, at.x + t * step, at.y + t * step, at.ahead};
        const int64_t left = blocks - t;
        if (left >= COLUMNS) {
            if (t == 0)
                tile(s, here, rows, COLUMNS, true);
            else
                tile(s, here, rows, COLUMNS, false);
            t += COLUMNS;
        } else if (left == 2) {
            tile(s, here, rows, 2, false);
            t += 2;
        } else {
            tile(s, here, rows, 1, false);
            t += 1;
        }
    }
}

static void rows_3(const gc_matrix_shape *s, tile_at at, int64_t blocks) {
    row_of_tiles(s, at, blocks, 3);
}

static void rows_2(const gc_matrix_shape *s, tile_at at, int64_t blocks) {
    row_of_tiles(s, at, blocks, 2);
}

static void rows_1(const gc_matrix_shape *s, tile_at at, int64_t blocks) {
    row_of_tiles(s, at, blocks, 1);
}

static void multiply(const gc_matrix_shape *s, int64_t pairs, const float *h, const float *x, float *y,
                     int64_t blocks) {
    const int64_t step = s->width * PAIR, factors = s->inputs * s->partitions;
    for (int64_t o = 0; o < s->outputs; o += GC_MATRIX_ROWS) {
        const int64_t rows = s->outputs - o < GC_MATRIX_ROWS ? s->outputs - o : GC_MATRIX_ROWS;
        for (int64_t w = 0; w < pairs; w++) {
            const tile_at at = {h + w * PAIR, x + w * PAIR, y + o * s->capacity * step + w * PAIR,
                                h + w * PAIR + rows * factors * step};
            if (rows == 3)
                rows_3(s, at, blocks);
            else if (rows == 2)
                rows_2(s, at, blocks);
            else
                rows_1(s, at, blocks);
        }
        h += rows * factors * step;
    }
    if (s->past_caches)
        fence_stores();
}

/* One fence for all runs: it waits until their lines are written. */
static void cut_past_caches(const gc_matrix_cut *c, const float *spectrum, float *runs, int64_t slab) {
    for (int64_t s = 0; s < c->slabs; s++, spectrum += c->run, runs += slab) {
        const int64_t left = c->floats - s * c->run, floats = left < c->run ? left : c->run;
        for (int64_t i = 0; i < floats; i += LANES)
            store_past_caches(runs + i, load(spectrum + i));
    }
    fence_stores();
}

const gc_matrix_kernels GC_MATRIX_SET = {PAIR, cut_past_caches, multiply};
