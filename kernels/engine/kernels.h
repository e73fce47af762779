/*
 * What gpuconv runs on a GPU: launchers that C can call. Each takes a stream, queues its work there and returns what
 * the launch said; none waits, allocates or copies. All pointers are device memory unless said otherwise.
 *
 * Planar input lies channel after channel, in_stride floats apart; in[0] is the chunk's first frame, and the schedule's
 * history (zeros at the beginning) stands before it. Planar output likewise, out_stride apart.
 */
#ifndef GC_KERNELS_ENGINE_H
#define GC_KERNELS_ENGINE_H

#include "libgpuconv/dsp/pcm.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gck_route {
    int input, plane;
} gck_route;

enum { GCK_FEW = 8 };

typedef struct gck_matrix {
    const float *in;
    float *out;
    int64_t in_stride, out_stride;
    int inputs, outputs;
    int single;                  /* every output has exactly one route */
    gck_route few[GCK_FEW];      /* of up to so many outputs with a route each: at hand without a read of memory */
    const gck_route *route;      /* sorted by output */
    const gck_route *host_route; /* the same in host memory */
    const int *row;              /* outputs + 1 entries: where an output's routes begin */
} gck_matrix;

/* ---- Samples as files store them (pcm.cu) ------------------------------------------------------------------------ */

typedef struct gck_overs {
    unsigned long long clipped;
    unsigned int peak; /* the bits of a float >= 0, which order like the floats */
} gck_overs;

/* `given` interleaved frames of `raw` to planar floats, then zeros up to `frames`. */
cudaError_t gck_unpack(gc_pcm format, const void *raw, int channels, int64_t given, int64_t frames, float *planar,
                       int64_t stride, cudaStream_t stream);

/* `frames` planar frames to interleaved ones, rounded, clamped and counted into *overs. */
cudaError_t gck_pack(gc_pcm format, const float *planar, int64_t stride, int channels, int64_t frames, void *raw,
                     gck_overs *overs, cudaStream_t stream);

/* The last `history` frames of a chunk, in front of the next one: next[i - history] = now[chunk + i - history]. */
cudaError_t gck_carry(const float *now, float *next, int64_t stride, int channels, int64_t chunk, int64_t history,
                      cudaStream_t stream);

/* ---- Direct (direct.cu) ------------------------------------------------------------------------------------------ */

/* Up to so many taps a response has a kernel of its own, where memory decides. */
enum { GCK_FEW_TAPS = 65 };

/* One response of more than GCK_TENSOR_LEAST and at most GCK_TENSOR_TAPS taps can be summed on tensor cores, where
 * gck_tensor_pays says so, with a table of so many entries of each plane, one after the other, made in host memory. */
enum { GCK_TENSOR_LEAST = 33, GCK_TENSOR_TAPS = 512 };
int gck_tensor_pays(int major, int minor);         /* compute capability */
int64_t gck_tensor_table_size(int64_t taps_count); /* 0: no table */
void gck_tensor_table(const float *taps, int64_t taps_count, uint2 *table);

/* `frames` outputs; taps: planes x taps_count, on the device and on the host (which is read before this returns);
 * table: for tensor cores, on the device, or NULL. in
 * and out are aligned to 16 bytes, their strides multiples of four; in is readable and finite from in[-n], n the
 * multiple of 32 from taps_count - 1 on, and both up to a multiple of four. */
cudaError_t gck_direct(const gck_matrix *matrix, const float *taps, const float *host_taps, const uint2 *table,
                       int64_t taps_count, int64_t frames, cudaStream_t stream);

/* ---- Overlap-save (overlap_save.cu, long_overlap_save.cu) -------------------------------------------------------- */

/* What a transform of so many points, all of them real, takes; all zero where there is none. Numbers of complex numbers
 * but for `bytes`.
 */
typedef struct gck_transform_size {
    int64_t turns;    /* of its table */
    int64_t spectrum; /* of a plane's spectrum */
    int bytes;        /* of shared memory that a block takes */
    int sums;         /* outputs may have several routes */
    int64_t scratch;  /* (inputs + outputs) x blocks x this, and planes x this when the spectra are made */
} gck_transform_size;

enum { GCK_OVERLAP_SAVE_LEAST = 2048, GCK_OVERLAP_SAVE_MOST = 1 << 21 };

gck_transform_size gck_overlap_save_size(int64_t points);

/* The table that the kernels look up, made in host memory. */
void gck_overlap_save_turns(int64_t points, float2 *turns);

/* Spectra of whole responses of `count` taps. */
cudaError_t gck_overlap_save_spectra(int64_t points, const float *taps, int planes, int64_t count, const float2 *turns,
                                     float2 *scratch, float2 *spectra, cudaStream_t stream);

/* `blocks` blocks of `hop` outputs; points - hop a multiple of 4. */
cudaError_t gck_overlap_save(const gck_matrix *matrix, int64_t points, int64_t hop, int64_t blocks, const float2 *turns,
                             const float2 *spectra, float2 *scratch, cudaStream_t stream);

/* ---- Many signals, each through its own response (batch.cu) ------------------------------------------------------ */

enum { GCK_BATCH_PART = 16384 }; /* taps that are done at a time */

/* One channel of a signal: sample n is the n step-th from `at` on. */
typedef struct gck_samples {
    void *at;
    gc_pcm format;
    int step;
} gck_samples;

/* Outputs first .. end - 1 of one channel: out[n] = dry in[n] + wet (taps * in)[n], where in has `frames` frames and
 * silence around them. Pointers to device memory; taps_count >= 1, and at most GCK_BATCH_PART if the output is not
 * floats, whose samples that did not fit are added to *clipped. */
typedef struct gck_batch_item {
    gck_samples in, out;
    const float *taps;
    int64_t frames, first, end, taps_count;
    float wet, dry;
    unsigned long long *clipped;
} gck_batch_item;

typedef struct gck_batch_needs {
    int64_t turns;   /* complex numbers of the table */
    int blocks;      /* that work at a time */
    int64_t spectra; /* complex numbers of scratch */
} gck_batch_needs;

/* cudaErrorNotSupported where a multiprocessor has less shared memory than the kernel wants. Leaves the device asleep.
 */
cudaError_t gck_batch_size(int device, gck_batch_needs *needs);
void gck_batch_turns(float2 *turns); /* host memory */

/* `items` and the one `ticket` lie on the device. Longest first keeps all blocks busy to the end. */
cudaError_t gck_batch(const gck_batch_item *items, int count, const float2 *turns, float2 *spectra, int *ticket,
                      cudaStream_t stream);

/* ---- Many channels in real time, each through its own response (bank.cu) ----------------------------------------- */

enum { GCK_BANK_LEVELS = 4, GCK_BANK_BLOCK_LEAST = 32, GCK_BANK_BLOCK_MOST = 1024, GCK_BANK_HOP_MOST = 8192 };

typedef struct gck_bank_level {
    int64_t hop; /* frames, a power of two: the block for the first level */
    int periods; /* blocks in a hop */
    int partitions;
    const float2 *table;   /* exp(-2 pi i m / hop), hop of them */
    const float2 *spectra; /* channels x partitions x hop, by gck_bank_spectra */
    float2 *delay;         /* as many, zeros before first use */
    float *future;         /* channels x hop, zeros before first use; not of the first level */
} gck_bank_level;

/* One period takes `block` (a power of two) frames of every channel from `in` to `out`, both channel after channel. */
typedef struct gck_bank {
    int channels, block, levels;
    const float *in;
    float *out, *ring; /* ring: channels x room, zeros before first use; room a power of two, 2 x the longest hop */
    int64_t room;
    const int64_t *tick; /* periods so far */
    gck_bank_level level[GCK_BANK_LEVELS];
} gck_bank;

/* Of partitions x hop taps from `offset` on of each channel, which has `count`; taps: channels x count. */
cudaError_t gck_bank_spectra(int64_t hop, const float *taps, int channels, int64_t count, int64_t offset,
                             int partitions, const float2 *table, float2 *spectra, cudaStream_t stream);

/* What the period's output waits for; then the further levels, 1 .., of channels whose turn it is; then the count. */
cudaError_t gck_bank_first(const gck_bank *bank, cudaStream_t stream);
cudaError_t gck_bank_next(const gck_bank *bank, int number, cudaStream_t stream);
cudaError_t gck_bank_advance(int64_t *tick, cudaStream_t stream);

/* ---- Partitioned (partitioned.cu): points a power of two, GCK_POINTS_LEAST..GCK_POINTS_MOST ---------------------- */

enum { GCK_POINTS_LEAST = 512, GCK_POINTS_MOST = 8192 };

/* Bytes of shared memory a block takes for a transform. */
int64_t gck_transform_shared(int64_t points);

/* Spectra of planes x partitions pieces of a response, `partition` taps each, scaled by 1 / points, points complex
 * numbers apart. table: points complex numbers, exp(-2 pi i m / points). */
cudaError_t gck_spectra(int64_t points, const float *taps, int planes, int64_t taps_count, int64_t partition,
                        int64_t partitions, const float2 *table, float2 *spectra, cudaStream_t stream);

/* Partitioned: blocks 2 x pairs of points / 2 outputs each; block s and block s + pairs share a transform. `partitions`
 * is a multiple of GCK_PARTITION_STEP, the spectra beyond the response's end being zero. delay: inputs x
 * (partitions - 1 + pairs) x points, zeros before first use in the first partitions - `reach` spectra of an input,
 * where reach is the number of partitions that hold taps. sums: outputs x pairs x points. */
enum { GCK_PARTITION_STEP = 16 };

cudaError_t gck_partitioned(const gck_matrix *matrix, int64_t points, int64_t pairs, int64_t partitions, int64_t reach,
                            const float2 *table, const float2 *spectra, float2 *delay, float2 *sums,
                            cudaStream_t stream);

/* ---- Around cuFFT, for comparison (peer.cu): an output has one route, at matrix->route --------------------------- */

/* blocks: outputs x pairs x points. */
cudaError_t gck_peer_gather(const gck_matrix *matrix, int64_t points, int64_t hop, int64_t pairs, float2 *blocks,
                            cudaStream_t stream);
cudaError_t gck_peer_multiply(const gck_matrix *matrix, int64_t points, int64_t pairs, const float2 *spectra,
                              float2 *blocks, cudaStream_t stream);
cudaError_t gck_peer_scatter(const gck_matrix *matrix, int64_t points, int64_t hop, int64_t pairs, const float2 *blocks,
                             cudaStream_t stream);

/* ---- Ceilings (ceilings.cu): what the device can do at most --------------------------------------------------------
 */

/* `rounds` x 64 fused multiply-adds in each of blocks x 256 threads; writes one float a thread. */
cudaError_t gck_ceiling_fma(float *out, int blocks, int rounds, cudaStream_t stream);

/* to[i] = from[i], n floats (a multiple of 4, 16-byte aligned). */
cudaError_t gck_ceiling_copy(const float *from, float *to, int64_t n, cudaStream_t stream);

/* Nothing, for the price of a launch. */
cudaError_t gck_ceiling_empty(cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
