/* The C interface of the kernels of moving sources (motion.cu). Included by kernels.h; the rules of that header apply.
 */
#ifndef GC_KERNELS_MOTION_H
#define GC_KERNELS_MOTION_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Channels whose spectra one group of threads adds; slices in which the sums of these are added. */
enum { GCK_MOTION_GROUP = 8, GCK_MOTION_SLICES = 16 };

/* Filters of delays: those of GCK_MOTION_PHASES + 1 fractions of a frame. */
enum { GCK_MOTION_PHASES = 512, GCK_MOTION_TAPS = 64 };

/* The response of a direction: the sum of three responses times their weights, scaled to the mean of their energies,
 * times the gain. weight[0] is 1 if it is that of a measurement alone, which is not scaled. */
typedef struct gck_blend {
    int response[3];
    float weight[3], gain;
} gck_blend;

/* A chunk of `hops` hops. Moments are the beginnings of its hops, and its end. */
typedef struct gck_motion {
    int channels, receivers, responses, hops;
    int64_t hop;    /* frames */
    int64_t points; /* real points of a transform, at least hop + taps - 1 */
    int64_t taps;   /* of a response */
    int64_t width;  /* frames of a channel in the input */

    const float2 *table;    /* points / 2 entries, from gck_motion_twiddles */
    const float *filters;   /* GCK_MOTION_TAPS x (GCK_MOTION_PHASES + 1): tap after tap */
    float2 *spectra;        /* responses x receivers x points / 2, from gck_motion_spectra */
    const float *energy;    /* responses x receivers: sum of the squares of the taps, divided by points / 2 */
    const float *input;     /* channels x width; the delays of the chunk do not reach before it */
    int64_t begin;          /* frame of the chunk in it */
    const gck_blend *blend; /* moments x channels */
    const double *delay;    /* moments x channels x receivers, in frames */
    float *scale;           /* moments x channels x receivers: what the sums of the spectra are multiplied by */
    float2 *sums;           /* hops x groups of channels x receivers x points / 2 */
    float *out;             /* hops x receivers x points: what each hop adds to the result from its first frame on */
} gck_motion;

/* Returns the shared memory of a block in bytes; 0: there are no kernels for these points. */
int64_t gck_motion_shared(int64_t points, int64_t hop);

/* Writes the table, in host memory. */
void gck_motion_twiddles(int64_t half_points, float2 *table);

/* Computes the spectra of `count` responses of all receivers, of which the first one is response number `first`, from
 * count x receivers x taps floats. */
cudaError_t gck_motion_spectra(const gck_motion *motion, const float *taps, int64_t first, int64_t count,
                               cudaStream_t stream);

/* Renders a chunk. `first` is the first moment whose scales are computed: those before it are there. */
cudaError_t gck_motion_run(const gck_motion *motion, int first, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
