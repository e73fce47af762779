/* The transform's tables. */
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

/* The angle of node's w in half turns: the latest bit of its number weighs most (fft_kernels.h). */
static double half_turns(int depth, int64_t node) {
    double turns = 0.25;
    for (int i = 0; i < depth; i++)
        turns = (turns + (double)(node >> (depth - 1 - i) & 1)) / 2;
    return turns;
}

static void entry(double turns, float *c, float *t) {
    const double pi = 3.14159265358979323846;
    *c = (float)cos(pi * turns);
    *t = (float)tan(pi * turns);
}

/* Entries of `nodes` nodes at `depth`, for `levels` levels. */
static float *pass_entries(int depth, int64_t nodes, int levels) {
    float *table = gc_calloc(nodes << levels, sizeof *table);
    for (int64_t node = 0; table && node < nodes; node++) {
        for (int l = 0; l < levels; l++) {
            for (int j = 0; j < 1 << l; j += 2) {
                float *e = table + (node << levels) + (l ? (1 << l) + j : 0);
                entry(half_turns(depth + l, (node << l) + j), e, e + 1);
            }
        }
    }
    return table;
}

/* The tiles' entries: half as many as points, so that each is a turn of two known ones. Node (tile, lane, j) has the
 * angle of (lane, j) in a tree of its own plus a 2^-(l + levels)th of the tile's. */
static float *tile_entries(int depth, int64_t tiles, int lanes, int levels) {
    enum { MOST_LANES = 16, MOST_ENTRIES = MOST_LANES / 2 };
    const double pi = 3.14159265358979323846;
    double fine_c[MOST_ENTRIES][MOST_LANES], fine_s[MOST_ENTRIES][MOST_LANES];
    float *table = gc_calloc(tiles * lanes * lanes, sizeof *table);
    for (int l = 0; l < levels; l++) {
        for (int j = 0; j < 1 << l; j += 2) {
            int e = l ? (1 << l) / 2 + j / 2 : 0;
            for (int lane = 0; lane < lanes; lane++) {
                int64_t node = ((int64_t)lane << l) + j;
                double turns = half_turns(levels + l, node) - 0.25 / (double)(INT64_C(1) << (levels + l));
                fine_c[e][lane] = cos(pi * turns);
                fine_s[e][lane] = sin(pi * turns);
            }
        }
    }
    for (int64_t tile = 0; table && tile < tiles; tile++) {
        for (int l = 0; l < levels; l++) {
            double turns = half_turns(depth, tile) / (double)(INT64_C(1) << (levels + l));
            double c = cos(pi * turns), s = sin(pi * turns);
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
    if (points < GC_FFT_MIN_POINTS || points > INT64_C(1) << GC_FFT_MAX_LOG2 || (points & (points - 1)) != 0)
        return NULL;
    gc_fft *fft = gc_calloc(1, sizeof *fft);
    if (!fft)
        return NULL;
    gc_fft_tables *t = &fft->tables;
    int lanes = simd->fft->lanes, tile_levels = log2_of(lanes);
    fft->kernels = simd->fft;
    t->half = points / 2;
    t->vectors = t->half / lanes;
    fft->floats = simd->fft->floats(t->vectors);
    int64_t tiles = t->vectors / lanes;
    int left = log2_of(tiles), depth = 0;
    t->passes = left > 0 ? (left + GC_FFT_RADIX_LEVELS - 1) / GC_FFT_RADIX_LEVELS : 1;
    for (int i = t->passes - 1; i >= 0; i--) {
        t->levels[i] = left < GC_FFT_RADIX_LEVELS ? left : GC_FFT_RADIX_LEVELS;
        left -= t->levels[i];
    }
    bool made = true;
    for (int i = 0; i <= t->passes; i++) {
        int levels = i < t->passes ? t->levels[i] : tile_levels;
        t->twiddles[i] = pass_entries(depth, INT64_C(1) << depth, levels);
        made = made && t->twiddles[i];
        depth += i < t->passes ? levels : 0;
    }
    t->tile = tile_entries(depth, tiles, lanes, tile_levels);
    if (!made || !t->tile) {
        gc_fft_free(fft);
        return NULL;
    }
    return fft;
}

void gc_fft_free(gc_fft *fft) {
    if (!fft)
        return;
    for (int i = 0; i < GC_FFT_PASSES; i++)
        free(fft->tables.twiddles[i]);
    free(fft->tables.tile);
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
    fft->kernels->backward(&fft->tables, x, h, count, work, signal, first);
}

void gc_fft_multiply_sum(const gc_fft *fft, float *y, const float *const *x, const float *const *h, int64_t count,
                         int64_t n) {
    fft->kernels->multiply_sum(y, x, h, count, n);
}
