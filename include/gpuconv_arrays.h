/**
 * @file
 * gpuconv on the caller's arrays: exact linear convolution of batches of rows, its gradients, and streaming, in host
 * memory on the cores of the CPU, or in device memory on a CUDA device and stream. Needs none of CUDA's headers.
 *
 * Conventions (besides those of gpuconv.h)
 *
 * - A place says where the work is done: on threads of the CPU, whose arrays are in host memory, or on a CUDA device,
 *   whose arrays are in its memory. Everything else is the same for both.
 * - A job describes three arrays: signal x, response h, output y. With the row i of signal and output and its response
 *   r = (i / group) % response.rows,
 *
 *       y_i[n] = gain_i * sum over k of h_r[k] x_i[n + offset - k],      zeros outside x_i and h_r.
 *
 *   offset 0 and M + N - 1 output frames are the full convolution of N frames with M taps; offset (M - 1) / 2 and
 *   max(N, M) frames are NumPy's mode "same" (for N >= M); offset M - 1 and N - M + 1 frames are "valid"; the index of
 *   the direct sound and N frames compensate the delay of a room. Any offset and number of output frames is legal;
 *   frames beyond the end of the convolution are zero, on a GPU up to the rounding of the transform.
 * - CONVOLVE writes `output`. The other operations are its adjoints: `output` then holds the gradient by y, and the
 *   arrays that are written receive the gradient by x, by h, or both. The shapes stay the same.
 * - Samples are 32-bit floats, IEEE halves or bfloat16, each array of its own type; arithmetic is in 32-bit floats. On
 *   a GPU rows of halves or bfloat16 that share a response may be multiplied on tensor cores: their products are exact,
 *   and the sums are 32-bit floats that are truncated instead of rounded, far below the rounding of the result to its
 *   type. Transforms of rows of halves with 2^15 points and more cross the memory with 13 bits for a number: the error
 *   is -70 dB of the row, also where the row is quiet.
 * - On the CPU a call returns when its work is done, and can be cancelled (gpuconv_cancel_set). A row of a convolution
 *   gives the same bytes alone, in any batch and with any number of threads. While the response is not longer than the
 *   signal and N + M - 1 is above 8192, a signal gives the same bytes as gpuconv_convolve_file with the CPU backend,
 *   unless that chooses partitioned convolution or a matrix.
 * - On a GPU, calls that take a stream (gpuconv_arrays_run, gpuconv_responses_update, gpuconv_streamer_process, _reset)
 *   only queue work on it: they neither allocate nor free, do not synchronise, do not change the current device or a
 *   memory pool, and can be captured into a graph. Their data must stay valid until the stream has done the work. The
 *   stream must belong to the place's device, and that device must be current. NULL is the legacy default stream. The
 *   same job with the same data gives the same bytes on the same kind of device. No result depends on the order in
 *   which thread blocks run.
 * - Thread-safety: a place on the CPU belongs to one thread at a time. A place on a GPU may be shared by threads and
 *   streams; calls that run at the same time need workspaces of their own. Responses may be shared on both, and no
 *   other call may use them during their update. A streamer belongs to one thread and stream at a time.
 * - Alignment: that of one sample is enough. A workspace is aligned to 256 bytes, as cudaMalloc and the allocators of
 *   PyTorch and CuPy align it.
 * - A NaN or infinity in a row spoils all frames that a transform shares with it, never another row (of the output, or
 *   of the response if it is written). Samples above about 1e34 can overflow inside a transform and do the same; the
 *   status is OK, and the caller looks at the result.
 * - Errors. ARGUMENT: the message names the field, such as "job.output.stride"; nothing is written or queued. DEVICE:
 *   a function of CUDA failed; the message has its text. MEMORY: there is too little memory. CANCELLED, only on the
 *   CPU: the arrays that are written are incomplete. UNSUPPORTED: this build has no CUDA, or, on the CPU, both arrays
 *   that are convolved have rows of more than 2^29 frames.
 * - NULL: a function that returns a status returns ARGUMENT if an object, a structure or an output pointer is NULL,
 *   unless its documentation allows it; a stream, an `error` and an unused workspace may be NULL. A function that frees
 *   does nothing with NULL.
 */
#ifndef GPUCONV_ARRAYS_H
#define GPUCONV_ARRAYS_H

#include "gpuconv.h"

#ifdef __cplusplus
extern "C" {
#endif

/** CUDA's stream; cudaStream_t and CUstream are pointers to it. */
struct CUstream_st;

/* ---- Place ------------------------------------------------------------------------------------------------------- */

/**
 * @defgroup gpuconv_group_arrays_place Place
 * @{
 */

/** Where arrays are convolved: threads of the CPU with their tables and scratch memory, or the tables and loaded
 * kernels of a CUDA device. Freed after all objects made from it, but for responses on the CPU. */
typedef struct gpuconv_arrays gpuconv_arrays;

/**
 * Makes a place on the CPU and starts its threads. Tables and scratch memory grow with the first calls and are kept.
 * @param threads      1..1024; 0: one per core
 * @param[out] arrays  the place
 * @param[out] error   the reason of a failure; may be NULL
 * @return ARGUMENT (threads), MEMORY (also: no thread)
 */
GPUCONV_API gpuconv_status gpuconv_arrays_new_cpu(int threads, gpuconv_arrays **arrays, gpuconv_error *error);

/**
 * Makes a place on a CUDA device: loads the kernels and makes the tables of the transforms (a few MB of device memory).
 * Takes 0.1 to 0.5 s if the process has not used the device before, else some milliseconds. Restores the current
 * device.
 * @param device       number of a CUDA device; a negative one means the current device
 * @param[out] arrays  the place
 * @param[out] error   the reason of a failure; may be NULL
 * @return ARGUMENT (no such device), DEVICE, MEMORY, UNSUPPORTED (built without CUDA)
 */
GPUCONV_API gpuconv_status gpuconv_arrays_new_cuda(int device, gpuconv_arrays **arrays, gpuconv_error *error);

/** Returns the number of the place's CUDA device; -1 for the CPU and of NULL. */
GPUCONV_API int gpuconv_arrays_device(const gpuconv_arrays *arrays);

/** Stops the threads, or frees the tables on the device. No work that uses them may be queued. */
GPUCONV_API void gpuconv_arrays_free(gpuconv_arrays *arrays);

/** @} */

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/**
 * @defgroup gpuconv_group_arrays_rows Rows
 * @{
 */

/** Type of the samples of rows. */
typedef enum gpuconv_sample_type {
    GPUCONV_SAMPLE_F32 = 0, /**< 32-bit float */
    GPUCONV_SAMPLE_F16,     /**< IEEE 754 half precision */
    GPUCONV_SAMPLE_BF16     /**< bfloat16 */
} gpuconv_sample_type;

/**
 * Rows of samples, in host memory on the CPU and in device memory on a GPU. Frame n of row i is element
 * i * stride + n * step, or starts[i] + n * step, of data. This structure never grows.
 *
 * Ragged rows: if `lengths` is given, row i has lengths[i] frames (clamped to 0..frames). As an input, the frames
 * behind them are not read and count as zero. As the array that is written, frames behind them are set to zero (left as
 * they are if job.accumulate is set), or not touched if `starts` is given: packed rows follow one another without a
 * gap. A length below 0 says that neither this row nor one behind it exists: all lengths behind it are below 0 too, and
 * with `starts` such rows take no time. On a GPU `lengths` and `starts` are read on the device, when the work runs.
 */
typedef struct gpuconv_rows {
    void *data;               /**< frame 0 of row 0; not written unless the operation writes this array */
    gpuconv_sample_type type; /**< type of its samples */
    int64_t rows;             /**< 1..2^30 */
    int64_t frames;           /**< frames of a row, 1..2^40; of the longest if `lengths` is given */
    int64_t stride;           /**< elements from one row to the next. 0 in an array that is read: every row is the same.
                                   On a GPU 0 or more. Rows that are written may not overlap */
    int64_t step;             /**< elements from one frame to the next. 1: contiguous, and fastest. Negative: backwards
                                   from `data`. 0 in an array that is read: one sample for all frames. On a GPU
                                   between -2^29 and 2^29, and other steps than 1 take copies in the workspace, as many
                                   floats as the array has samples (direct sums take none) */
    const int64_t *starts;    /**< first element of every row, instead of stride; or NULL */
    const int64_t *lengths;   /**< frames of every row; or NULL */
} gpuconv_rows;

/** Returns contiguous rows of floats that follow one another. */
static inline gpuconv_rows gpuconv_rows_of_floats(float *data, int64_t rows, int64_t frames) {
    const gpuconv_rows made = {data, GPUCONV_SAMPLE_F32, rows, frames, frames, 1, NULL, NULL};
    return made;
}

/** @} */

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

/**
 * @defgroup gpuconv_group_arrays_job Jobs
 * @{
 */

/** What a job computes, and which of its arrays it writes. r is the response of row i, g the gradient by y. */
typedef enum gpuconv_arrays_operation {
    GPUCONV_ARRAYS_CONVOLVE = 0,      /**< output: y_i[n] = gain_i sum over k of h_r[k] x_i[n + offset - k] */
    GPUCONV_ARRAYS_GRADIENT_SIGNAL,   /**< signal: gx_i[n] = gain_i sum over k of h_r[k] g_i[n + k - offset], where
                                           `output` holds g; the correlation with the response */
    GPUCONV_ARRAYS_GRADIENT_RESPONSE, /**< response: gh_r[k] = sum over all rows i of r, over n, of
                                          gain_i x_i[n] g_i[n + k - offset], where `output` holds g; the correlation
                                          with the signal */
    GPUCONV_ARRAYS_GRADIENT_BOTH /**< signal_gradient and response_gradient: both of them, from `signal`, `response` and
                                      `output`. On a GPU g is read and transformed once where x, g, signal_gradient
                                      and the response have one type, without gain, gates and routes; elsewhere one
                                      job runs after the other */
} gpuconv_arrays_operation;

/** Responses whose transforms are kept. Shared by threads and streams; only _update changes them. */
typedef struct gpuconv_responses gpuconv_responses;

/** How a filter that changes with time goes from one response to the next. */
typedef enum gpuconv_arrays_interpolation {
    GPUCONV_ARRAYS_HOLD = 0, /**< at once: each block has its response */
    GPUCONV_ARRAYS_LINEAR    /**< over the hop: frame m of a block counts 1 - m / hop with the response of the block and
                                  m / hop with that of the next; the last block keeps its own */
} gpuconv_arrays_interpolation;

/** A convolution of a batch. */
typedef struct gpuconv_arrays_job {
    size_t size;                        /**< bytes of the structure, set by gpuconv_arrays_job_default */
    gpuconv_arrays_operation operation; /**< CONVOLVE (default) */
    gpuconv_rows signal;                /**< x */
    gpuconv_rows response; /**< h, transformed in this call; ignored if `prepared` is given, unless it is written */
    gpuconv_rows output;   /**< y; as many rows as `signal`, unless `prepared` has routes */
    int64_t group;         /**< rows in succession that share a response, at least 1: row i uses response
                                (i / group) % response.rows. 1 (default): one response for all rows, one each, or
                                [batch][channels] signals with [channels] responses. `channels`: [batch] responses */
    int64_t offset;        /**< frame of the full convolution that is output frame 0; -2^40..2^40; 0 (default) */
    const float *gain;     /**< where the arrays are: a factor for every row of `signal`; NULL (default): 1 */
    bool accumulate;       /**< add to the array that is written instead of overwriting it; GRADIENT_BOTH adds to
                                response_gradient and overwrites signal_gradient. false (default) */
    const gpuconv_responses *prepared; /**< responses made by gpuconv_responses_new or _route at the same place, or on
                                            the CPU at any place on the CPU; NULL (default): `response` holds them.
                                            They serve CONVOLVE and GRADIENT_SIGNAL; GRADIENT_RESPONSE takes only their
                                            routes */
    int64_t hop; /**< 0 (default): a response is that of a whole row. Else the filter changes with time: a row of
                      `signal` is cut into blocks of `hop` frames, blocks = ceil(signal.frames / hop), each
                      convolved with a response of its own, and the results are added where they overlap.
                      Block b of row i uses response (i / group) % sets * blocks + b, sets = response.rows /
                      blocks. At most 2^30; not with `prepared` */
    gpuconv_arrays_interpolation interpolation; /**< with `hop`; HOLD (default) */
    const gpuconv_rows *pre;  /**< p: factors of the samples of `signal`, as many rows and frames as it has, step 1, no
                                   `lengths`; or NULL (default): 1. Not with `hop` */
    const gpuconv_rows *post; /**< q: the same for `output` */
    const float *skip; /**< d: where the arrays are, a factor for every row of `signal`; or NULL (default): 0. Not with
                            `hop`, nor with routes. With these three

                                y_i[n] = q_i[n] (gain_i sum over k of h_r[k] p_i[n + offset - k] x_i[n + offset - k]
                                                 + d_i x_i[n]),

                            and the gradients by the signal and the response are those of this y. The gradient by q
                            is a CONVOLVE with g in the place of q; that by p is a GRADIENT_SIGNAL with x in the
                            place of p and without d. On a GPU gates cost no memory and the time of their bytes where
                            all samples have one type and steps of 1, and the transforms fit on the chip; elsewhere
                            they take passes of their own over arrays of floats in the workspace */
    gpuconv_rows signal_gradient;   /**< GRADIENT_BOTH writes it: as many rows and frames as `signal` */
    gpuconv_rows response_gradient; /**< GRADIENT_BOTH writes it: a row for each response, of as many frames */
    /** On a GPU, for a step of training: device memory aligned to 256 bytes, of gpuconv_arrays_plan_transforms bytes,
     * where CONVOLVE leaves transforms of x and h, and from which GRADIENT_BOTH of the same `signal`, `response`, group
     * and offset, and of an `output` of the same type and stride, takes them instead of transforming x and h again,
     * with the same bytes as result. Ignored where that function gives 0. NULL (default): none are kept. */
    void *transforms;
} gpuconv_arrays_job;

/** Fills in the defaults. `size` is the structure's sizeof; does nothing with NULL. For bindings; in C use the function
 * below. */
GPUCONV_API void gpuconv_arrays_job_init(gpuconv_arrays_job *job, size_t size);

/** Returns a job with the defaults: a convolution of float arrays that the caller fills in. */
static inline gpuconv_arrays_job gpuconv_arrays_job_default(void) {
    gpuconv_arrays_job job;
    gpuconv_arrays_job_init(&job, sizeof job);
    return job;
}

/**
 * Checks a job and computes the size of its workspace. Depends on the shapes, types and options of the job and on which
 * of its pointers are NULL; reads no array, and `data` may be NULL. Calls nothing of CUDA.
 * @param arrays      the place
 * @param job         the job
 * @param[out] bytes  bytes of device memory that gpuconv_arrays_run needs; 0 is possible, and is the size on the CPU
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT
 */
GPUCONV_API gpuconv_status gpuconv_arrays_workspace(const gpuconv_arrays *arrays, const gpuconv_arrays_job *job,
                                                    size_t *bytes, gpuconv_error *error);

/**
 * Runs a job on the CPU, or queues it on a stream. The arrays may not overlap the array that is written or the
 * workspace.
 * @param arrays      the place
 * @param job         the job; it may be freed after the call
 * @param workspace   device memory aligned to 256 bytes; its content is lost. NULL if gpuconv_arrays_workspace gives 0
 * @param bytes       its size, at least what gpuconv_arrays_workspace gives for this job
 * @param stream      a stream of the device, as cudaStream_t; NULL on the CPU
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (also: workspace too small, another device is current), DEVICE; on the CPU MEMORY, CANCELLED,
 * UNSUPPORTED
 */
GPUCONV_API gpuconv_status gpuconv_arrays_run(gpuconv_arrays *arrays, const gpuconv_arrays_job *job, void *workspace,
                                              size_t bytes, struct CUstream_st *stream, gpuconv_error *error);

/** A planned job: its shapes, types and options, and how it is computed. Immutable; shared by threads as its place is.
 * It must be freed before its place and its prepared responses. */
typedef struct gpuconv_arrays_plan gpuconv_arrays_plan;

/**
 * Plans a job, for many runs with other arrays of the same shapes: a run then makes no choice. Depends on what
 * gpuconv_arrays_workspace depends on.
 * @param arrays      the place
 * @param job         the job; may be freed afterwards
 * @param[out] plan   the plan; the caller frees it
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT, UNSUPPORTED, MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_arrays_plan_new(gpuconv_arrays *arrays, const gpuconv_arrays_job *job,
                                                   gpuconv_arrays_plan **plan, gpuconv_error *error);

/** Returns the bytes of device memory that a run needs; 0 on the CPU and of NULL. */
GPUCONV_API size_t gpuconv_arrays_plan_workspace(const gpuconv_arrays_plan *plan);

/** Returns the bytes of gpuconv_arrays_job.transforms; 0 of NULL and where no transforms are kept: on the CPU, for
 * other operations, short rows, rows of different lengths, prepared responses and gates. */
GPUCONV_API size_t gpuconv_arrays_plan_transforms(const gpuconv_arrays_plan *plan);

/** Returns how the job is computed, and why, as one sentence: the name of the algorithm, a colon, sizes, and the
 * predicted time, on the CPU of the longest rows. Lives as long as the plan; "" of NULL. */
GPUCONV_API const char *gpuconv_arrays_plan_reason(const gpuconv_arrays_plan *plan);

/**
 * Does what gpuconv_arrays_run does, by a plan.
 * @param plan        the plan
 * @param job         a job of the same shapes, types, options and prepared responses, and with the same pointers NULL,
 * as the one that was planned; it may be freed after the call
 * @param workspace   device memory aligned to 256 bytes; its content is lost. NULL if the plan needs 0 bytes
 * @param bytes       its size, at least gpuconv_arrays_plan_workspace
 * @param stream      a stream of the device, as cudaStream_t; NULL on the CPU
 * @param[out] error  the reason of a failure; may be NULL
 * @return as gpuconv_arrays_run; ARGUMENT also if the plan is of other shapes
 */
GPUCONV_API gpuconv_status gpuconv_arrays_plan_run(const gpuconv_arrays_plan *plan, const gpuconv_arrays_job *job,
                                                   void *workspace, size_t bytes, struct CUstream_st *stream,
                                                   gpuconv_error *error);

/** Frees a plan. Work that was queued with it may go on. */
GPUCONV_API void gpuconv_arrays_plan_free(gpuconv_arrays_plan *plan);

/** @} */

/* ---- Sequences --------------------------------------------------------------------------------------------------- */

/**
 * @defgroup gpuconv_group_arrays_sequences Packed sequences
 * @{
 */

#define GPUCONV_SEQUENCE_CLASSES_MAX 40 /**< classes of gpuconv_sequences */

/**
 * Sequences of different lengths that follow one another in each of several channels, and their classes by length. A
 * job for each class, whose rows have the frames of its longest sequence, computes hardly any padding. All sequences of
 * a class together have at most `frames` frames, which bounds the rows that its job needs:
 *
 *      signal, output    sequences * channels rows: row s * channels + c is channel c of the class's sequence s
 *      response          sequences * own rows, or as many as are shared
 *
 * This structure never grows.
 */
typedef struct gpuconv_sequences {
    const int64_t *offsets;     /**< sequences + 1 numbers, where the place has its arrays: 0, the end of the first
                                     sequence, ..., `frames`. Read when the work runs. Any numbers are safe: an offset
                                     less than the one before it counts as equal to it, and more than `frames` as
                                     `frames` */
    int64_t sequences;          /**< 1..2^30; the product with `channels` too */
    int64_t channels;           /**< 1..2^30 */
    int64_t frames;             /**< of a channel, 1..2^40; the channels follow one another */
    const int64_t *bounds;      /**< in host memory: the frames of the longest sequence of each class, ascending. The
                                     end of a sequence that is longer than the last bound is left out */
    int classes;                /**< 1..GPUCONV_SEQUENCE_CLASSES_MAX */
    int64_t own;                /**< responses that each sequence has for itself, 0..channels */
    int64_t taps;               /**< taps of each of these, which follow one another */
    const gpuconv_rows *output; /**< NULL, or the array that the jobs write, a row for each channel: ends that are left
                                     out are set to zero */
} gpuconv_sequences;

/**
 * Sorts sequences into classes: writes, or queues the writing of, where the rows of each class begin. A class has in
 * `table`, one after the other, the `starts` and the `lengths` of its sequences * channels rows, in elements, and those
 * of its sequences * own responses, whose lengths are `taps`. The rows of its sequences come first, in their order; the
 * lengths of the others are -1. Sequences without a frame are in no class.
 * @param arrays      the place
 * @param sequences   read before the call returns, but for the offsets on a GPU
 * @param table       classes * 2 * sequences * (channels + own) numbers, where the place has its arrays
 * @param stream      a stream of the device that is current; NULL on the CPU
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT, DEVICE
 */
GPUCONV_API gpuconv_status gpuconv_sequences_sort(const gpuconv_arrays *arrays, const gpuconv_sequences *sequences,
                                                  int64_t *table, struct CUstream_st *stream, gpuconv_error *error);

/** @} */

/* ---- Prepared responses ------------------------------------------------------------------------------------------ */

/**
 * @defgroup gpuconv_group_arrays_responses Prepared responses
 * @{
 */

/**
 * Prepares responses and keeps their transforms: one for all rows, one each, or any number that is used with
 * gpuconv_arrays_job.group. On a GPU it allocates device memory with cudaMalloc and waits for the stream; on the CPU
 * the transforms are computed by the first calls that need them, at most two for each power of two.
 * @param arrays          the place
 * @param response        the responses; may be freed afterwards
 * @param frames          frames of the signals that they will be used with, for the choice of the transform on a GPU;
 *                        jobs may have any other number
 * @param stream          a stream of the device that is current; the responses are read in its order. NULL on the CPU
 * @param[out] responses  the transforms; the caller frees them
 * @param[out] error      the reason of a failure; may be NULL
 * @return ARGUMENT (on the CPU also: more than 2^29 taps), MEMORY, DEVICE; on the CPU FORMAT (a tap is NaN or infinite)
 */
GPUCONV_API gpuconv_status gpuconv_responses_new(const gpuconv_arrays *arrays, const gpuconv_rows *response,
                                                 int64_t frames, struct CUstream_st *stream,
                                                 gpuconv_responses **responses, gpuconv_error *error);

/**
 * Prepares a response with its routes from inputs to outputs. Jobs that use it have batch * gpuconv_ir_inputs
 * rows of `signal` and batch * gpuconv_ir_outputs rows of `output`, [batch][channel], and a `group` of 1. A written
 * `response` has gpuconv_ir_routes rows, sorted by output, then by input.
 * @param arrays          the place
 * @param ir              may be freed afterwards
 * @param frames          as for gpuconv_responses_new
 * @param[out] responses  the transforms; the caller frees them
 * @param[out] error      the reason of a failure; may be NULL
 * @return as gpuconv_responses_new
 */
GPUCONV_API gpuconv_status gpuconv_responses_route(const gpuconv_arrays *arrays, const gpuconv_ir *ir, int64_t frames,
                                                   gpuconv_responses **responses, gpuconv_error *error);

/**
 * Replaces prepared responses by others in the same memory. On a GPU it queues their transforms on a stream: jobs that
 * were queued on it before use the old responses, jobs queued later the new ones; other streams are ordered by the
 * caller's events. A graph that captured the call transforms at every launch what the array then holds.
 * @param arrays      the place
 * @param responses   made by gpuconv_responses_new with `arrays`; those of _route cannot be replaced
 * @param response    as many rows as before, of at most as many frames; must stay valid until the stream has read it
 * @param stream      on which the transforms are queued; NULL: the default stream, or the CPU
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT, FORMAT (a tap is NaN or infinite, on the CPU), MEMORY: the responses are unchanged; DEVICE
 */
GPUCONV_API gpuconv_status gpuconv_responses_update(const gpuconv_arrays *arrays, gpuconv_responses *responses,
                                                    const gpuconv_rows *response, struct CUstream_st *stream,
                                                    gpuconv_error *error);

/** Returns the bytes of memory that responses and transforms take now; 0 of NULL. */
GPUCONV_API int64_t gpuconv_responses_bytes(const gpuconv_responses *responses);

/** Frees the transforms. No work that uses them may be queued. */
GPUCONV_API void gpuconv_responses_free(gpuconv_responses *responses);

/** @} */

/* ---- Streaming --------------------------------------------------------------------------------------------------- */

/**
 * @defgroup gpuconv_group_arrays_streaming Streaming
 * @{
 */

/** A convolution of endless signals, block by block, whose state is kept. One thread and stream at a time. */
typedef struct gpuconv_streamer gpuconv_streamer;

/**
 * Makes a streamer without latency: the output of a block contains the response to all input up to its last frame.
 * On a GPU it allocates device memory with cudaMalloc and waits for the stream; a power of two from 32 to 1024 frames
 * takes partitions that grow (best for real time). Other blocks, and all blocks on the CPU, take one transform of block
 * and history; gpuconv_realtime has short blocks of the CPU.
 * @param arrays         the place; on the CPU, calls of the streamer use its threads
 * @param response       row c % rows is the response of channel c, with a stride; may be freed afterwards
 * @param channels       1..2^20
 * @param block          frames of every block, 1..2^30
 * @param stream         a stream of the device that is current; the responses are read in its order. NULL on the CPU
 * @param[out] streamer  the streamer; the caller frees it
 * @param[out] error     the reason of a failure; may be NULL
 * @return as gpuconv_responses_new
 */
GPUCONV_API gpuconv_status gpuconv_streamer_new(gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t channels,
                                                int64_t block, struct CUstream_st *stream, gpuconv_streamer **streamer,
                                                gpuconv_error *error);

/**
 * Convolves one block, or queues it: `channels` rows of `block` frames in, as many out. A graph that captured it
 * advances the state at every launch. `starts` and `lengths` must be NULL.
 * @param streamer    the streamer
 * @param in          may be the same memory as out, with the same type, stride and step
 * @param out         as many rows and frames
 * @param stream      a stream of the device; NULL on the CPU
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (the state is unchanged), DEVICE, MEMORY, CANCELLED (the state is lost: reset)
 */
GPUCONV_API gpuconv_status gpuconv_streamer_process(gpuconv_streamer *streamer, const gpuconv_rows *in,
                                                    const gpuconv_rows *out, struct CUstream_st *stream,
                                                    gpuconv_error *error);

/** Returns to silence, or queues it: the next block is the first one. @return ARGUMENT, DEVICE */
GPUCONV_API gpuconv_status gpuconv_streamer_reset(gpuconv_streamer *streamer, struct CUstream_st *stream,
                                                  gpuconv_error *error);

/** Frees the state. No work that uses it may be queued. */
GPUCONV_API void gpuconv_streamer_free(gpuconv_streamer *streamer);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
