/**
 * @file
 * gpuconv on device memory: exact linear convolution of batches of signals, its gradients, and streaming, on the
 * caller's device pointers and CUDA stream. Needs none of CUDA's headers.
 *
 * Conventions (besides those of gpuconv.h)
 *
 * - A job describes three arrays: signal x, response h, output y. With the row i of signal and output and its response
 *   r = (i / group) % response.rows,
 *
 *       y_i[n] = gain_i * sum over k of h_r[k] x_i[n + offset - k],      zeros outside x_i and h_r.
 *
 *   offset 0 and M + N - 1 output frames are the full convolution of N frames with M taps; offset (M - 1) / 2 and
 *   max(N, M) frames are NumPy's mode "same" (for N >= M); offset M - 1 and N - M + 1 frames are "valid"; the index of
 *   the direct sound and N frames compensate the delay of a room. Any offset and number of output frames is legal;
 *   frames beyond the end of the convolution are zero, up to the rounding of the transform.
 * - A job has one of three operations. CONVOLVE writes `output`. The other two are its adjoints: `output` then holds
 * the gradient by y, and the array that is written receives the gradient by x or by h. The shapes stay the same.
 * - Samples are 32-bit floats, IEEE halves or bfloat16, each array of its own type; arithmetic is in 32-bit floats.
 * - Calls that take a stream (gpuconv_cuda_run, gpuconv_cuda_responses_update, gpuconv_cuda_streamer_process, _reset)
 *   only queue work on it: they neither allocate nor free, do not synchronise, do not change the current device or a
 *   memory pool, and can be captured into a graph. Their data must stay valid until the stream has done the work. The
 *   stream must belong to the object's device, and that device must be current. NULL is the legacy default stream.
 * - Thread-safety: gpuconv_cuda and gpuconv_cuda_responses may be shared by threads and streams; calls that run at the
 *   same time need workspaces of their own, and no other call may use responses during their update. A streamer belongs
 *   to one thread and stream at a time.
 * - Alignment: that of one sample is enough. A workspace is aligned to 256 bytes, as cudaMalloc and the allocators of
 *   PyTorch and CuPy align it.
 * - A NaN or infinity in a row spoils all frames that a transform shares with it, never another row (of the output, or
 *   of the response if it is written).
 * - The same job with the same data gives the same bytes on the same kind of device. No result depends on the order in
 *   which thread blocks run.
 * - Errors: ARGUMENT (the message names the field, such as "job.output.stride"), DEVICE (CUDA refused; its text),
 *   MEMORY (only functions that create objects; the message gives the needed and the free bytes),
 *   UNSUPPORTED (this build has no CUDA). In a build without CUDA the header is installed all the same,
 *   gpuconv_cuda_new returns UNSUPPORTED, and no other function can be reached with an object.
 * - NULL: a function that returns a status returns ARGUMENT if an object, a structure or an output pointer is NULL,
 *   unless its documentation allows it; a stream, an `error` and an unused workspace may be NULL. A function that frees
 *   does nothing with NULL.
 */
#ifndef GPUCONV_CUDA_H
#define GPUCONV_CUDA_H

#include "gpuconv.h"

#ifdef __cplusplus
extern "C" {
#endif

/** CUDA's stream; cudaStream_t and CUstream are pointers to it. */
struct CUstream_st;

/* ---- Device ------------------------------------------------------------------------------------------------------ */

/** The tables and loaded kernels of one device. Immutable, shared by threads; freed after all objects made from it. */
typedef struct gpuconv_cuda gpuconv_cuda;

/**
 * Loads the kernels on a device and makes the tables of its transforms (a few MB of device memory). Takes 0.1 to 0.5 s
 * if the process has not used the device before, else some milliseconds. Restores the current device.
 * @param device      number of a CUDA device; a negative one means the current device
 * @param[out] cuda   the object
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (no such device), DEVICE, MEMORY, UNSUPPORTED (built without CUDA)
 */
GPUCONV_API gpuconv_status gpuconv_cuda_new(int device, gpuconv_cuda **cuda, gpuconv_error *error);

GPUCONV_API int gpuconv_cuda_device(const gpuconv_cuda *cuda); /**< number of its device; -1 of NULL */

/** Frees the tables. No work that uses them may be queued. */
GPUCONV_API void gpuconv_cuda_free(gpuconv_cuda *cuda);

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

/** Type of samples in device memory. */
typedef enum gpuconv_cuda_type {
    GPUCONV_CUDA_F32 = 0, /**< 32-bit float */
    GPUCONV_CUDA_F16,     /**< IEEE 754 half precision */
    GPUCONV_CUDA_BF16     /**< bfloat16 */
} gpuconv_cuda_type;

/**
 * Rows of samples in device memory; the frames of a row are contiguous. Frame n of row i is element i * stride + n, or
 * starts[i] + n, of data.
 *
 * Ragged rows: if `lengths` is given, row i has lengths[i] frames (clamped to 0..frames). As an input, the frames
 * behind them are not read and count as zero. As the array that is written, frames behind them are set to zero (left as
 * they are if job.accumulate is set), or not touched if `starts` is given: packed rows follow one another without a
 * gap. `lengths` and `starts` are read on the device, when the work runs.
 */
typedef struct gpuconv_cuda_array {
    void *data;             /**< device memory; not written unless the operation writes this array */
    gpuconv_cuda_type type; /**< type of its samples */
    int64_t rows;           /**< 1..2^30 */
    int64_t frames;         /**< frames of a row, 1..2^40; of the longest if `lengths` is given */
    int64_t stride;         /**< elements from one row to the next; at least `frames` in an array that is written, else
                                 also 0: every row is the same */
    const int64_t *starts;  /**< device memory: first element of every row, instead of stride; or NULL */
    const int64_t *lengths; /**< device memory: frames of every row; or NULL */
} gpuconv_cuda_array;

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

/** What a job computes, and which of its arrays it writes. r is the response of row i, g the gradient by y. */
typedef enum gpuconv_cuda_operation {
    GPUCONV_CUDA_CONVOLVE = 0,     /**< output: y_i[n] = gain_i sum over k of h_r[k] x_i[n + offset - k] */
    GPUCONV_CUDA_GRADIENT_SIGNAL,  /**< signal: gx_i[n] = gain_i sum over k of h_r[k] g_i[n + k - offset], where
                                        `output` holds g; the correlation with the response */
    GPUCONV_CUDA_GRADIENT_RESPONSE /**< response: gh_r[k] = sum over all rows i of r, over n, of
                                        gain_i x_i[n] g_i[n + k - offset], where `output` holds g; the correlation
                                        with the signal */
} gpuconv_cuda_operation;

/** Responses whose transforms are kept on the device. Shared by threads and streams; only _update changes them. */
typedef struct gpuconv_cuda_responses gpuconv_cuda_responses;

/** A convolution of a batch. gpuconv_cuda_array has no further fields within this version of the binary interface. */
typedef struct gpuconv_cuda_job {
    size_t size;                      /**< bytes of the structure, set by gpuconv_cuda_job_default */
    gpuconv_cuda_operation operation; /**< CONVOLVE (default) */
    gpuconv_cuda_array signal;        /**< x */
    gpuconv_cuda_array
        response;              /**< h, transformed in this call; ignored if `prepared` is given, unless it is written */
    gpuconv_cuda_array output; /**< y; as many rows as `signal`, unless `prepared` has routes */
    int64_t group;             /**< rows in succession that share a response, at least 1: row i uses response
                                    (i / group) % response.rows. 1 (default): one response for all rows, one each, or
                                    [batch][channels] signals with [channels] responses. `channels`: [batch] responses */
    int64_t offset;            /**< frame of the full convolution that is output frame 0; -2^40..2^40; 0 (default) */
    const float *gain;         /**< device memory: a factor for every row of `signal`; NULL (default): 1 */
    bool accumulate;           /**< add to the array that is written instead of overwriting it; false (default) */
    const gpuconv_cuda_responses *prepared; /**< responses made by gpuconv_cuda_responses_new or _route; NULL (default):
                                                 `response` holds them. They serve CONVOLVE and GRADIENT_SIGNAL;
                                                 GRADIENT_RESPONSE takes only their routes */
} gpuconv_cuda_job;

/** Fills in the defaults. `size` is the structure's sizeof; does nothing with NULL. For bindings; in C use the function
 * below. */
GPUCONV_API void gpuconv_cuda_job_init(gpuconv_cuda_job *job, size_t size);

/** Returns a job with the defaults: a convolution of float arrays that the caller fills in. */
static inline gpuconv_cuda_job gpuconv_cuda_job_default(void) {
    gpuconv_cuda_job job;
    gpuconv_cuda_job_init(&job, sizeof job);
    return job;
}

/**
 * Checks a job and computes the size of its workspace. Depends on the shapes, types and options of the job and on which
 * of its pointers are NULL; reads no device memory, and `data` may be NULL. Calls nothing of CUDA.
 * @param cuda        the object
 * @param job         the job
 * @param[out] bytes  bytes of device memory that gpuconv_cuda_run needs; 0 is possible
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT
 */
GPUCONV_API gpuconv_status gpuconv_cuda_workspace(const gpuconv_cuda *cuda, const gpuconv_cuda_job *job, size_t *bytes,
                                                  gpuconv_error *error);

/**
 * Queues a job on a stream. The arrays may not overlap the array that is written or the workspace.
 * @param cuda        the object
 * @param job         the job; it may be freed after the call
 * @param workspace   device memory aligned to 256 bytes; its content is lost. NULL if gpuconv_cuda_workspace gives 0
 * @param bytes       its size, at least what gpuconv_cuda_workspace gives for this job
 * @param stream      a stream of the device, as cudaStream_t
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (also: workspace too small, another device is current; nothing has been queued), DEVICE
 */
GPUCONV_API gpuconv_status gpuconv_cuda_run(const gpuconv_cuda *cuda, const gpuconv_cuda_job *job, void *workspace,
                                            size_t bytes, struct CUstream_st *stream, gpuconv_error *error);

/* ---- Prepared responses ------------------------------------------------------------------------------------------ */

/**
 * Transforms responses and keeps the transforms: one for all rows, one each, or any number that is used with
 * gpuconv_cuda_job.group. Allocates device memory with cudaMalloc and waits for the stream.
 * @param cuda            the object
 * @param response        the responses; may be freed afterwards
 * @param frames          frames of the signals that they will be used with, for the choice of the transform; jobs may
 *                        have any other number
 * @param stream          a stream of the device that is current; the responses are read in its order
 * @param[out] responses  the transforms; the caller frees them
 * @param[out] error      the reason of a failure; may be NULL
 * @return ARGUMENT, MEMORY, DEVICE
 */
GPUCONV_API gpuconv_status gpuconv_cuda_responses_new(const gpuconv_cuda *cuda, const gpuconv_cuda_array *response,
                                                      int64_t frames, struct CUstream_st *stream,
                                                      gpuconv_cuda_responses **responses, gpuconv_error *error);

/**
 * Does the same with a response in host memory and its routes from inputs to outputs. Jobs that use it have
 * batch * gpuconv_ir_inputs rows of `signal` and batch * gpuconv_ir_outputs rows of `output`, [batch][channel], and a
 * `group` of 1. A written `response` has gpuconv_ir_routes rows, sorted by output, then by input.
 * @param cuda            the object
 * @param ir              may be freed afterwards
 * @param frames          as above
 * @param[out] responses  the transforms; the caller frees them
 * @param[out] error      the reason of a failure; may be NULL
 * @return ARGUMENT, MEMORY, DEVICE
 */
GPUCONV_API gpuconv_status gpuconv_cuda_responses_route(const gpuconv_cuda *cuda, const gpuconv_ir *ir, int64_t frames,
                                                        gpuconv_cuda_responses **responses, gpuconv_error *error);

/**
 * Replaces prepared responses by others in the same device memory: queues their transforms on a stream. Jobs that were
 * queued on it before use the old responses, jobs queued later the new ones; other streams are ordered by the caller's
 * events. A graph that captured the call transforms at every launch what the array then holds.
 * @param cuda        the object
 * @param responses   made by gpuconv_cuda_responses_new with `cuda`; those of _route cannot be replaced
 * @param response    as many rows as before, of at most as many frames; must stay valid until the stream has read it
 * @param stream      on which the transforms are queued; NULL: the default stream
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (the responses are unchanged), DEVICE
 */
GPUCONV_API gpuconv_status gpuconv_cuda_responses_update(const gpuconv_cuda *cuda, gpuconv_cuda_responses *responses,
                                                         const gpuconv_cuda_array *response, struct CUstream_st *stream,
                                                         gpuconv_error *error);

/** Returns the bytes of device memory that the transforms take; 0 of NULL. */
GPUCONV_API int64_t gpuconv_cuda_responses_bytes(const gpuconv_cuda_responses *responses);

/** Frees the transforms. No work that uses them may be queued. */
GPUCONV_API void gpuconv_cuda_responses_free(gpuconv_cuda_responses *responses);

/* ---- Streaming --------------------------------------------------------------------------------------------------- */

/** A convolution of endless signals, block by block, whose state is on the device. One thread and stream at a time. */
typedef struct gpuconv_cuda_streamer gpuconv_cuda_streamer;

/**
 * Makes a streamer without latency: the output of a block contains the response to all input up to its last frame.
 * Allocates device memory with cudaMalloc and waits for the stream.
 * A power of two from 32 to 1024 frames takes partitions that grow (best for real time); other blocks take one
 * transform of block and history.
 * @param cuda           the object
 * @param response       row c % rows is the response of channel c; may be freed afterwards
 * @param channels       1..2^20
 * @param block          frames of every block, 1..2^30
 * @param stream         a stream of the device that is current; the responses are read in its order
 * @param[out] streamer  the streamer; the caller frees it
 * @param[out] error     the reason of a failure; may be NULL
 * @return ARGUMENT, MEMORY, DEVICE
 */
GPUCONV_API gpuconv_status gpuconv_cuda_streamer_new(const gpuconv_cuda *cuda, const gpuconv_cuda_array *response,
                                                     int64_t channels, int64_t block, struct CUstream_st *stream,
                                                     gpuconv_cuda_streamer **streamer, gpuconv_error *error);

/**
 * Queues one block: `channels` rows of `block` frames in, as many out. A graph that captured it advances the state at
 * every launch. `starts` and `lengths` must be NULL.
 * @param streamer    the streamer
 * @param in          may be the same memory as out, with the same type and stride
 * @param out         as many rows and frames
 * @param stream      a stream of the device
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (the state is unchanged), DEVICE (the state is lost: reset)
 */
GPUCONV_API gpuconv_status gpuconv_cuda_streamer_process(gpuconv_cuda_streamer *streamer, const gpuconv_cuda_array *in,
                                                         const gpuconv_cuda_array *out, struct CUstream_st *stream,
                                                         gpuconv_error *error);

/** Queues the return to silence: the next block is the first one. @return ARGUMENT, DEVICE */
GPUCONV_API gpuconv_status gpuconv_cuda_streamer_reset(gpuconv_cuda_streamer *streamer, struct CUstream_st *stream,
                                                       gpuconv_error *error);

/** Frees the state. No work that uses it may be queued. */
GPUCONV_API void gpuconv_cuda_streamer_free(gpuconv_cuda_streamer *streamer);

#ifdef __cplusplus
}
#endif

#endif
