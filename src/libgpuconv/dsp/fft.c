/* The plan of a transform: computes its tables of twiddle factors. */
#include "fft.h"

#include "fft_kernels.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

struct gc_fft {
    const gc_fft_kernels *kernels;
    gc_fft_tables tables;
    int64_t floats;
};

static int log2_of(int64_t n) {
    int l = 0;
    while (n > INT64_C(1) << l)
        l++;
    return l;
}

/* Returns the angle of the twiddle factor w of a node, in units of pi: the lowest bit of its number has the largest
 * weight (fft_kernels.h). */
static double twiddle_angle(int depth, int64_t node) {
    double angle = 0.25;
    for (int i = 0; i < depth; i++)
        angle = (angle + (double)(node >> (depth - 1 - i) & 1)) / 2;
    return angle;
}

static void set_entry(double angle, float *c, float *t) {
    *c = (float)cos(M_PI * angle);
    *t = (float)tan(M_PI * angle);
}

/* Computes the twiddle factors of one pass: `levels` levels below each of `nodes` nodes at `depth`. */
static float *compute_pass_twiddles(int depth, int64_t nodes, int levels) {
    float *table = levels < 0 ? NULL : gc_calloc(nodes << levels, sizeof *table);
    for (int64_t node = 0; table && node < nodes; node++) {
        for (int l = 0; l < levels; l++) {
            for (int j = 0; j < 1 << l; j += 2) {
                float *e = table + (node << levels) + (l ? (1 << l) + j : 0);
                set_entry(twiddle_angle(depth + l, (node << l) + j), e, e + 1);
            }
        }
    }
    return table;
}

/* Computes the twiddle factors of the tiles. There are half as many as points: to save sines and cosines, each is the
 * product of two factors, because the angle of node (tile, lane, j) is the angle of (lane, j) in a tree of one tile
 * plus the angle of the tile divided by 2^(l + above), where `above` levels of the tile come before. In a tile of
 * several blocks the lanes of each block repeat. */
static float *compute_tile_twiddles(int depth, int64_t tiles, int lanes, int levels, int above) {
    enum { MAX_LANES = 16, MAX_ENTRIES = MAX_LANES / 2 };
    double fine_c[MAX_ENTRIES][MAX_LANES], fine_s[MAX_ENTRIES][MAX_LANES];
    float *table = gc_calloc(tiles * lanes * lanes, sizeof *table);
    for (int l = 0; l < levels; l++) {
        for (int j = 0; j < 1 << l; j += 2) {
            int e = l ? (1 << l) / 2 + j / 2 : 0;
            for (int lane = 0; lane < lanes; lane++) {
                int64_t node = ((int64_t)(lane % (1 << above)) << l) + j;
                double angle = twiddle_angle(above + l, node) - 0.25 / (double)(INT64_C(1) << (above + l));
                fine_c[e][lane] = cos(M_PI * angle);
                fine_s[e][lane] = sin(M_PI * angle);
            }
        }
    }
    for (int64_t tile = 0; table && tile < tiles; tile++) {
        for (int l = 0; l < levels; l++) {
            double angle = twiddle_angle(depth, tile) / (double)(INT64_C(1) << (above + l));
            double c = cos(M_PI * angle), s = sin(M_PI * angle);
            for (int j = 0; j < 1 << l; j += 2) {
                int e = l ? (1 << l) / 2 + j / 2 : 0;
                float *to = table + (tile * lanes + 2 * e) * lanes;
                for (int lane = 0; lane < lanes; lane++) {
                    double re = c * fine_c[e][lane] - s * fine_s[e][lane];
                    double im = s * fine_c[e][lane] + c * fine_s[e][lane];
                    to[lane] = (float)re;
                    to[lanes + lane] = (float)(im / re);
                }
            }
        }
    }
    return table;
}

gc_fft *gc_fft_new(const gc_simd *simd, int64_t points) {
    if (points < GC_FFT_MIN_ROW || points > INT64_C(1) << GC_FFT_MAX_LOG2 || (points & (points - 1)) != 0)
        return NULL;
    gc_fft *fft = gc_calloc(1, sizeof *fft);
    if (!fft)
        return NULL;
    gc_fft_tables *t = &fft->tables;
    int lanes = simd->fft->lanes, tile_levels = log2_of(lanes);
    fft->kernels = simd->fft;
    t->half = points / 2;
    t->vectors = t->half / lanes;
    t->rows = (int)gc_max(1, lanes / t->vectors);
    fft->floats = simd->fft->spectrum_floats(t->vectors * t->rows);
    int64_t tiles = t->vectors * t->rows / lanes;
    int levels_left = log2_of(tiles), depth = 0, above = tile_levels - log2_of(t->rows);
    t->passes = levels_left > 0 ? (levels_left + GC_FFT_RADIX_LEVELS - 1) / GC_FFT_RADIX_LEVELS : 1;
    for (int i = t->passes - 1; i >= 0; i--) {
        t->levels[i] = levels_left < GC_FFT_RADIX_LEVELS ? levels_left : GC_FFT_RADIX_LEVELS;
        levels_left -= t->levels[i];
    }
    bool ok = true;
    for (int i = 0; i <= t->passes; i++) {
        int levels = i < t->passes ? t->levels[i] : above;
        t->twiddles[i] = compute_pass_twiddles(depth, INT64_C(1) << depth, levels);
        ok = ok && t->twiddles[i];
        depth += i < t->passes ? levels : 0;
    }
    t->tile_twiddles = compute_tile_twiddles(depth, tiles, lanes, tile_levels, above);
    if (!ok || !t->tile_twiddles) {
        gc_fft_free(fft);
        return NULL;
    }
    return fft;
}

void gc_fft_free(gc_fft *fft) {
    if (!fft)
        return;
    for (int i = 0; i < GC_FFT_MAX_PASSES; i++)
        free(fft->tables.twiddles[i]);
    free(fft->tables.tile_twiddles);
    free(fft);
}

int64_t gc_fft_floats(const gc_fft *fft) {
    return fft->floats;
}

void gc_fft_forward(const gc_fft *fft, const float *signal, float *spectrum) {
    fft->kernels->forward(&fft->tables, signal, spectrum);
}

void gc_fft_inverse(const gc_fft *fft, const float *const *x, const float *const *h, int64_t count, float *work,
                    float *signal, int64_t first) {
    fft->kernels->inverse(&fft->tables, x, h, count, work, signal, first);
}

void gc_fft_multiply_sum(const gc_fft *fft, float *y, const float *const *x, const float *const *h, int64_t count,
                         int64_t n) {
    fft->kernels->multiply_sum(y, x, h, count, n);
}

int gc_fft_rows(const gc_fft *fft) {
    return fft->tables.rows;
}

void gc_fft_forward_rows(const gc_fft *fft, const float *const *signal, int64_t frames, float scale, float *spectrum) {
    fft->kernels->forward_rows(&fft->tables, signal, frames, scale, spectrum);
}

void gc_fft_inverse_rows(const gc_fft *fft, const float *x, const float *h, float *work, float *const *signal,
                         int64_t first, int64_t end) {
    fft->kernels->inverse_rows(&fft->tables, x, h, work, signal, first, end);
}
