/* The C interface of the kernels of banks in real time (bank.cu). Included by kernels.h; the rules of that header
 * apply. */
#ifndef GC_KERNELS_BANK_H
#define GC_KERNELS_BANK_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GCK_BANK_LEVELS_MAX = 4, GCK_BANK_BLOCK_MIN = 32, GCK_BANK_BLOCK_MAX = 1024, GCK_BANK_SPLITS_MAX = 8 };

typedef struct gck_bank_level {
    int64_t hop;         /* frames, a power of two; the block for the first level */
    int64_t first_tap;   /* 0 for the first level, hop in a diagonal bank, 2 hop in a matrix */
    int periods;         /* blocks per hop */
    int partitions;      /* of hop taps each, from first_tap on */
    int splits;          /* of a matrix: parts into which the sum of an output is divided, 1 .. GCK_BANK_SPLITS_MAX */
    const float2 *table; /* hop entries, from gck_bank_twiddles */
    float2 *spectra;     /* routes x partitions x hop, from gck_bank_spectra */
    float2 *delay;       /* inputs x partitions x hop: spectra of past blocks, zeros before first use */
    float2 *sums;        /* of a matrix: outputs x splits x hop */
    float *future;       /* outputs to come, zeros before first use: outputs x hop, of a matrix 2 x outputs x hop; NULL
                            in the first level */
} gck_bank_level;

/* One period reads `block` (a power of two) frames of every input from `in` and writes as many of every output to
 * `out`, both channel after channel. */
typedef struct gck_bank {
    int inputs, outputs, block, levels;
    int diagonal;     /* output c is input c through response c */
    const int *row;   /* of a matrix, outputs + 1: output o has the routes row[o] .. row[o + 1] - 1 */
    const int *input; /* of a matrix: of each route, whose number is also that of its response */
    const float *in;
    float *out, *ring;   /* ring: inputs x ring_frames past inputs, zeros before first use */
    int64_t ring_frames; /* a power of two, twice the longest hop */
    int64_t *period;     /* number of periods so far */
    gck_bank_level level[GCK_BANK_LEVELS_MAX];
} gck_bank;

/* Returns the longest hop whose kernels need at most `bytes` of shared memory for a block. */
int64_t gck_bank_longest_hop(int64_t bytes);

/* Writes the table of a level, in host memory. */
void gck_bank_twiddles(int64_t hop, float2 *table);

/* Computes the level's spectra of the responses, whose first one is response number `first`. */
cudaError_t gck_bank_spectra(const gck_bank_level *level, const gck_responses *responses, int64_t first,
                             cudaStream_t stream);

/* Computes the part of level `number` that is due in the current period, of `count` outputs from `first` on. These are
 * all outputs, except in the first level of a diagonal bank. Begin with the first level: it writes `out`. */
cudaError_t gck_bank_run(const gck_bank *bank, int number, int first, int count, cudaStream_t stream);

/* Adds one to the number of periods. Call it after the levels of a period. */
cudaError_t gck_bank_advance(const gck_bank *bank, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
