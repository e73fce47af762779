/*
 * The C interface of the kernels for matrices in real time (matrix_bank.cu). Included by kernels.h; the rules of that
 * header apply.
 */
#ifndef GC_KERNELS_MATRIX_BANK_H
#define GC_KERNELS_MATRIX_BANK_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GCK_MATRIX_BANK_SPLITS_MAX = 8 };

/* A response of an output: its input, and its number among all responses. */
typedef struct gck_matrix_bank_route {
    int input, response;
} gck_matrix_bank_route;

typedef struct gck_matrix_bank_level {
    int64_t hop;           /* frames, a power of two; the block for the first level */
    int periods;           /* blocks per hop */
    int partitions;        /* from tap 0 on in the first level, from tap 2 hop on in a further one */
    int splits;            /* parts into which the sum of an output is divided, 1 .. GCK_MATRIX_BANK_SPLITS_MAX */
    const float2 *table;   /* hop entries exp(-2 pi i m / hop) */
    const float2 *spectra; /* responses x partitions x hop, from gck_filter_bank_spectra */
    float2 *delay;         /* inputs x partitions x hop: spectra of past blocks, zeros before first use */
    float2 *sums;          /* outputs x splits x hop */
    float *future;         /* 2 x outputs x hop, zeros before first use; NULL in the first level */
} gck_matrix_bank_level;

/* One period reads `block` frames of every input from `in` and writes as many of every output to `out`, both channel
 * after channel. */
typedef struct gck_matrix_bank {
    int inputs, outputs, block, levels;
    const int *row; /* outputs + 1: output o has the routes row[o] .. row[o + 1] - 1 */
    const gck_matrix_bank_route *route;
    const float *in;
    float *out, *ring;     /* ring: inputs x ring_frames past inputs, zeros before first use */
    int64_t ring_frames;   /* a power of two, twice the longest hop */
    const int64_t *period; /* number of periods so far */
    gck_matrix_bank_level level[4];
} gck_matrix_bank;

/* Computes the outputs of the current period. */
cudaError_t gck_matrix_bank_first_level(const gck_matrix_bank *bank, cudaStream_t stream);

/* Computes the part of level `number` (1 ..) that is due in the current period. Call gck_filter_bank_advance after all
 * levels. */
cudaError_t gck_matrix_bank_next_level(const gck_matrix_bank *bank, int number, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
