/**
 * @file
 * gpuconv on arrays in host memory: batches of exact linear convolutions of the caller's own arrays, on all cores of
 * the CPU, without copies. gpuconv_cuda.h does the same on device memory.
 *
 * Conventions (besides those of gpuconv.h)
 *
 * - A row is one convolution of a signal x of N frames with a response h of M frames:
 *
 *       y[n] = sum over k of h[k] x[n + offset - k],      zeros outside x and h.
 *
 *   offset 0 and N + M - 1 output frames are the full convolution; offset (M - 1) / 2 and N frames are "same"; offset
 *   M - 1 and N - M + 1 frames are "valid". Any offset and number of output frames is legal.
 * - An array has a step: frame n is element n * step. 1 is contiguous and fastest; a negative step reads the array
 *   backwards from `data`, which makes a convolution a correlation; 0 repeats one element.
 * - A row gives the same bytes alone, in any batch and with any number of threads. While the response is not longer
 * than the signal, a mono signal gives the same bytes as gpuconv_convolve_file with the CPU backend, unless that
 * chooses partitioned convolution.
 * - A NaN or infinity in a row spoils the frames that a transform shares with it, never another row.
 */
#ifndef GPUCONV_MEMORY_H
#define GPUCONV_MEMORY_H

#include "gpuconv.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Threads, transform tables and scratch memory for convolutions of arrays. For one thread at a time. */
typedef struct gpuconv_memory gpuconv_memory;

/**
 * Makes the object and starts its threads. Tables and scratch memory grow with the first calls and are kept.
 * @param threads      1..1024; 0: one per core
 * @param[out] memory  the object
 * @param[out] error   the reason of a failure; may be NULL
 * @return ARGUMENT (threads), MEMORY (also: no thread)
 */
GPUCONV_API gpuconv_status gpuconv_memory_new(int threads, gpuconv_memory **memory, gpuconv_error *error);

/** Stops the threads and frees the object. */
GPUCONV_API void gpuconv_memory_free(gpuconv_memory *memory);

/** A response whose transforms are kept. Immutable; may be shared by threads. */
typedef struct gpuconv_memory_response gpuconv_memory_response;

/**
 * Copies a response. Its transforms are computed by the first calls that need them, and kept: at most one for each
 * power of two.
 * @param taps           the first tap
 * @param frames         1..2^29
 * @param step           elements from one tap to the next
 * @param[out] response  the response
 * @param[out] error     the reason of a failure; may be NULL
 * @return ARGUMENT (frames), FORMAT (a tap is NaN or infinite), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_memory_response_new(const float *taps, int64_t frames, int64_t step,
                                                       gpuconv_memory_response **response, gpuconv_error *error);

/** Frees the response. No call may be using it. */
GPUCONV_API void gpuconv_memory_response_free(gpuconv_memory_response *response);

/** An array that is read. */
typedef struct gpuconv_memory_array {
    const float *data; /**< frame 0 */
    int64_t frames;    /**< 1..2^40 */
    int64_t step;      /**< elements from one frame to the next */
} gpuconv_memory_array;

/** One convolution. This structure never grows. */
typedef struct gpuconv_memory_row {
    gpuconv_memory_array signal;             /**< x */
    gpuconv_memory_array response;           /**< ignored if `prepared` is given */
    const gpuconv_memory_response *prepared; /**< NULL: `response` is transformed in this call */
    float *output;                           /**< frame 0; may not overlap an array of any row */
    int64_t output_frames;                   /**< 0..2^41 */
    int64_t output_step;                     /**< elements from one frame to the next; not 0 */
    int64_t offset; /**< frame of the full convolution that is output frame 0; |offset| <= 2^41 */
} gpuconv_memory_row;

/**
 * Convolves a batch of rows. Rows that follow one another and have the same response share its transform.
 * @param memory      the object
 * @param rows        the rows
 * @param count       0 or more
 * @param[out] error  the reason of a failure, with the number of the row from 0; may be NULL
 * @return ARGUMENT (nothing has been written), UNSUPPORTED (signal and response both have more than 2^29 frames),
 * MEMORY, CANCELLED. After MEMORY and CANCELLED the outputs are incomplete
 */
GPUCONV_API gpuconv_status gpuconv_memory_convolve(gpuconv_memory *memory, const gpuconv_memory_row *rows,
                                                   int64_t count, gpuconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
