/*
 * The C interface of the engine's kernels: launchers that the CUDA backend calls. A launcher that takes a stream queues
 * its kernels there and returns the status of the launches; it does not wait, allocate or copy. All pointers are device
 * memory unless stated otherwise.
 *
 * Planar input stores one channel after another, in_stride floats apart. in[0] is the first frame of the chunk; the
 * schedule's history precedes it (zeros before the first chunk). Planar output likewise, out_stride apart.
 */
#ifndef GC_KERNELS_ENGINE_H
#define GC_KERNELS_ENGINE_H

#include "libgpuconv/dsp/pcm.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What a device offers (device.cu) ---------------------------------------------------------------------------- */

/* The properties of a device that decide which form of a kernel runs there. */
typedef struct gck_device {
    int multiprocessors;
    int shared_bytes; /* of shared memory that one block can use */
    int architecture; /* compute capability, 10 major + minor */
    int tensor_cores; /* sums products of halves in floats on tensor cores, many times faster than multiply-adds */
    int early_launch; /* a kernel may start before the previous one has ended (programmatic dependent launch) */
} gck_device;

/* Fills *device, within the limits of GPUCONV_CUDA_LIMITS. Creates no context.
 *
 * GPUCONV_CUDA_LIMITS is an environment variable for tests, read once: words separated by commas that make a device
 * appear smaller than it is, so that the forms of the kernels for smaller devices run on a large one.
 *      shared=KB         shared memory of a block; at least 48
 *      architecture=N    compute capability, such as 75 for 7.5
 *      no-early-launch   kernels start after the previous one has ended
 *      no-tensor-cores   no products on tensor cores
 * An unknown word makes every query return cudaErrorInvalidValue. */
cudaError_t gck_device_query(int number, gck_device *device);

/* Returns the first word of GPUCONV_CUDA_LIMITS that has no meaning, NULL if there is none. */
const char *gck_unknown_limit(void);

/* Stores whether the kernels of overlap-save are launched early on the current device: it can, and the code that runs
 * there was compiled for an architecture that can wait for the previous kernel. */
cudaError_t gck_launches_early(int *early);

/* ---- Routes and responses ---------------------------------------------------------------------------------------- */

typedef struct gck_route {
    int input, plane;
} gck_route;

/* Up to this many outputs with one route each, the routes are kernel parameters. */
enum { GCK_INLINE_ROUTES = 8 };

typedef struct gck_routes {
    const float *in;
    float *out;
    int64_t in_stride, out_stride; /* floats */
    int inputs, outputs;
    int single;   /* every output has exactly one route */
    int in_place; /* overlap-save in three kernels uses the scratch of the inputs alone: inputs == outputs, and output o
                     has one route, from input o */
    gck_route inline_route[GCK_INLINE_ROUTES]; /* by output, if `single` and outputs <= GCK_INLINE_ROUTES */
    const gck_route *route;                    /* sorted by output */
    const gck_route *host_route;               /* the same in host memory */
    const int *row;                            /* outputs + 1 entries: index of an output's first route */
} gck_routes;

/* Impulse responses: planes x taps_count floats. */
typedef struct gck_responses {
    const float *taps;
    int planes;
    int64_t taps_count;
} gck_responses;

/* ---- PCM conversion (pcm.cu) ------------------------------------------------------------------------------------- */

typedef struct gck_overs {
    unsigned long long clipped;
    unsigned int peak; /* bits of a float >= 0, which have the same order as the floats */
} gck_overs;

/* Channels of planar floats, `stride` floats apart. */
typedef struct gck_planar {
    float *samples;
    int64_t stride;
    int channels;
} gck_planar;

/* Converts `raw_frames` interleaved frames of `raw` to planar floats and writes zeros from there up to `frames`. */
cudaError_t gck_unpack(gc_pcm format, const void *raw, int64_t raw_frames, gck_planar planar, int64_t frames,
                       cudaStream_t stream);

/* Converts `frames` planar frames to interleaved ones, rounds and clips them, and updates *overs. */
cudaError_t gck_pack(gc_pcm format, gck_planar planar, int64_t frames, void *raw, gck_overs *overs,
                     cudaStream_t stream);

/* Copies the last `history` frames of a chunk in front of the next one: next[i - history] = now[chunk + i - history] in
 * every channel, both with the stride of `now`. */
cudaError_t gck_copy_history(gck_planar now, float *next, int64_t chunk, int64_t history, cudaStream_t stream);

/* ---- Direct convolution (direct.cu) ------------------------------------------------------------------------------ */

/* Responses of up to this many taps have a kernel of their own, limited by memory bandwidth. */
enum { GCK_DIRECT_SHORT_TAPS_MAX = 65 };

/* The responses of a direct convolution. */
typedef struct gck_direct_taps {
    const float *taps;      /* planes x taps_count */
    const float *host_taps; /* the same in host memory */
    int64_t taps_count;
} gck_direct_taps;

/* Computes `frames` outputs. Reads host_taps before it returns. `in` and `out` are aligned to 16 bytes and their
 * strides are multiples of four. `in` is readable and finite from in[-n] on, n = taps_count - 1 rounded up to a
 * multiple of 32; `in` and `out` extend to the next multiple of four frames. */
cudaError_t gck_direct(const gck_routes *routes, const gck_direct_taps *taps, int64_t frames, cudaStream_t stream);

/* ---- Overlap-save (overlap_save.cu, overlap_save_3pass.cu) ------------------------------------------------------ */

enum { GCK_OVERLAP_SAVE_POINTS_MIN = 2048, GCK_OVERLAP_SAVE_POINTS_MAX = 1 << 21 };

/* What decides the kernels. */
typedef struct gck_overlap_save_form {
    int64_t points;   /* real points of a transform */
    int single;       /* every output has exactly one route */
    int shared_bytes; /* of shared memory that one block can use */
} gck_overlap_save_form;

/* Memory that a transform of a form takes, in complex numbers unless stated otherwise. */
typedef struct gck_overlap_save_sizes {
    int64_t twiddles; /* of the table; 0: there is no such kernel */
    int64_t spectrum; /* of one plane's spectrum */
    int shared_bytes; /* of shared memory per block */
    /* Scratch of one transform; 0: one kernel, no scratch. A convolution needs blocks times this for each input, and
     * for each output unless routes.in_place. */
    int64_t scratch;
} gck_overlap_save_sizes;

typedef struct gck_overlap_save_memory {
    const float2 *twiddles; /* from gck_overlap_save_twiddles */
    float2 *spectra;
    float2 *scratch;
} gck_overlap_save_memory;

gck_overlap_save_sizes gck_overlap_save_query(const gck_overlap_save_form *form);

/* Writes the twiddle table, in host memory. */
void gck_overlap_save_twiddles(const gck_overlap_save_form *form, float2 *twiddles);

/* Computes the spectra of whole responses of at most `points` taps. */
cudaError_t gck_overlap_save_spectra(const gck_overlap_save_form *form, const gck_responses *responses,
                                     const gck_overlap_save_memory *memory, cudaStream_t stream);

/* Computes `blocks` blocks of `hop` outputs; points - hop is a multiple of 4. */
cudaError_t gck_overlap_save(const gck_routes *routes, const gck_overlap_save_form *form, int64_t hop, int64_t blocks,
                             const gck_overlap_save_memory *memory, cudaStream_t stream);

/* ---- Partitioned convolution (partitioned.cu) ------------------------------------------------------------------ */

/* Points are powers of two from here on. */
enum { GCK_PARTITIONED_POINTS_MIN = 512 };

/* Sizes of the kernels for a number of points. */
typedef struct gck_partitioned_sizes {
    int64_t spectrum;   /* complex numbers of a spectrum; 0: no kernels have this size */
    int64_t twiddles;   /* complex numbers of the table */
    int shared_bytes;   /* of shared memory per block */
    int blocks;         /* that share a transform: a chunk is a multiple of so many blocks */
    int transforms_max; /* partitions and transforms of a chunk together */
} gck_partitioned_sizes;

typedef struct gck_partitioning {
    int64_t points;         /* of a transform; hop and partitions have points / 2 */
    int partitions;         /* of a response */
    int transforms;         /* of a chunk, which has sizes.blocks times as many blocks */
    const float2 *twiddles; /* from gck_partitioned_twiddles */
    float2 *spectra;        /* planes x partitions spectra, scaled for the inverse */
    float2 *delay;          /* inputs x (partitions - 1 + transforms) spectra */
    float2 *sums;           /* outputs x transforms spectra */
} gck_partitioning;

gck_partitioned_sizes gck_partitioned_query(int64_t points);

/* Writes the twiddle table, in host memory. */
void gck_partitioned_twiddles(int64_t points, float2 *twiddles);

/* Computes the spectra of all partitions of all planes. */
cudaError_t gck_partitioned_spectra(const gck_partitioning *partitioning, const gck_responses *responses,
                                    cudaStream_t stream);

/* Convolves one chunk. The history has partitions x points / 2 frames. */
cudaError_t gck_partitioned(const gck_routes *routes, const gck_partitioning *partitioning, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#include "kernels/engine/bank/bank.h"    /* banks in real time */
#include "kernels/engine/bank/motion.h"  /* moving sources */
#include "kernels/engine/rooms.h"        /* simulated rooms */
#include "kernels/engine/rows/job.h"     /* jobs on the caller's device memory */
#include "kernels/engine/stream/dense.h" /* dense matrices of responses */

#endif
