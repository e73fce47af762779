/* Rows of different lengths in device memory, each with a response of its own: the transform of each row, its pieces,
 * and the launches. Contracts of the kernels: kernels/engine/rows/job.h. */
#include "cuda_batch.h"
#include "cuda_device.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A piece has as many hops as fit into PIECE frames: several thread blocks share a long row, so that no block is busy
 * alone at the end. Segments begin at multiples of ALIGNMENT frames. */
enum { PIECE = 1 << 18, HOP_MAX = 1 << 15, ALIGNMENT = 32 };

/* Microseconds of a multiprocessor for a transform, with its part of loads and stores, measured on an H200. */
static const double transform_us[GCK_ITEM_SIZES] = {1.55, 7.3, 7.3};

cudaError_t gc_cuda_items_init(gc_cuda_items *rows, gc_cuda_resources *r) {
    gck_device device = {0};
    int64_t scratch = 0;
    GC_CUDA_TRY(r->err, gck_device_query(r->device, &device));
    for (int i = 0; i < GCK_ITEM_SIZES; i++) {
        const gck_item_sizes sizes = gck_item_query(i);
        float2 *table = gc_cuda_host_table(r, sizes.twiddles, sizeof *table);
        if (table)
            gck_item_twiddles(i, table);
        rows->twiddles[i] = gc_cuda_upload(r, table, sizes.twiddles * (int64_t)sizeof *table);
        free(table);
        scratch = gc_max(scratch, sizes.points * sizes.resident * device.multiprocessors);
    }
    rows->scratch = gc_cuda_memory(r, scratch * (int64_t)sizeof *rows->scratch);
    rows->next = gc_cuda_memory(r, GCK_ITEM_SIZES * (int64_t)sizeof *rows->next);
    return r->err;
}

int64_t gc_cuda_items_pieces(int64_t rows, int64_t frames) {
    return rows + frames / (PIECE - HOP_MAX) + 1;
}

/* Lays out a row for transforms of one size. Returns the microseconds that it takes; HUGE_VAL: only the last size takes
 * responses of several parts. */
static double lay_out(int size, gck_item *row) {
    const int64_t points = gck_item_query(size).points, total = row->frames + (int64_t)row->taps - 1;
    row->size = size;
    row->part = row->taps <= points + points / 2 ? row->taps : (int)points;
    row->overlap = total <= 2 * points ? 0 : (int)gc_round_up(row->part - 1, ALIGNMENT);
    const int64_t hop = 2 * points - row->overlap, parts = gc_divide_up(row->taps, row->part);
    if (parts > 1 && size < GCK_ITEM_SIZES - 1)
        return HUGE_VAL;
    return (double)parts * (1 + 2 * (double)gc_divide_up(total, hop)) * transform_us[size];
}

int gc_cuda_items_cut(const gck_item *row, gck_item *pieces) {
    const int64_t total = row->frames + (int64_t)row->taps - 1;
    gck_item best = *row, piece = *row;
    double least = HUGE_VAL;
    for (int size = 0; size < GCK_ITEM_SIZES; size++) {
        const double us = lay_out(size, &piece);
        if (us < least) {
            least = us;
            best = piece;
        }
    }
    const int64_t hop = 2 * gck_item_query(best.size).points - best.overlap, step = PIECE / hop * hop;
    int n = 0;
    for (int64_t at = 0; at < total; at += step) {
        best.first = (int)at;
        best.end = (int)gc_min(at + step, total);
        pieces[n++] = best;
    }
    return n;
}

static int by_size_and_length(const void *a, const void *b) {
    const gck_item *x = a, *y = b;
    const int64_t m = x->end - x->first, n = y->end - y->first;
    return x->size != y->size ? x->size - y->size : (m < n) - (m > n);
}

void gc_cuda_items_sort(gck_item *pieces, int64_t count, int *counts) {
    memset(counts, 0, GCK_ITEM_SIZES * sizeof *counts);
    for (int64_t i = 0; i < count; i++)
        counts[pieces[i].size]++;
    qsort(pieces, (size_t)count, sizeof *pieces, by_size_and_length);
}

cudaError_t gc_cuda_items_convolve(const gc_cuda_items *rows, const gck_item *pieces, const int *counts,
                                   cudaStream_t stream) {
    cudaError_t err = cudaMemsetAsync(rows->next, 0, GCK_ITEM_SIZES * sizeof *rows->next, stream);
    for (int i = 0; i < GCK_ITEM_SIZES; pieces += counts[i++]) {
        const gck_items items = {.items = pieces,
                                 .count = counts[i],
                                 .next = rows->next + i,
                                 .twiddles = rows->twiddles[i],
                                 .scratch = rows->scratch};
        if (counts[i] > 0)
            GC_CUDA_TRY(err, gck_convolve_items(i, &items, stream));
    }
    return err;
}
