/*
 * A backend: the algorithms of one processor, how it runs them, and its device.
 */
#ifndef GC_CONV_BACKEND_H
#define GC_CONV_BACKEND_H

#include "gpuconv_rooms.h"
#include "libgpuconv/core/slot_queue.h"
#include "libgpuconv/dsp/pcm.h"
#include "plan.h"

/* ---- Streams ----------------------------------------------------------------------------------------------------- */

enum { GC_TIMELINE = 48 /* chunks whose times are kept */, GC_SLOTS_MAX = 6 /* chunks in flight */ };

/*
 * A gc_stream processes chunks. The engine acquires a slot of the queue, writes interleaved frames into its input and
 * submits it. It waits for the oldest submitted slot, reads its output and releases it. The engine guarantees that:
 *   - every chunk before the last ones has plan->choice.chunk frames; after a shorter one only chunks of 0 input frames
 *     follow;
 *   - out_frames is plan->choice.chunk until the end of the result, which lies in the last chunk submitted;
 *   - at most plan->choice.slots chunks are in flight.
 */

/* Begin and end of each stage of one chunk, in seconds since the stream's first submit. */
typedef struct gc_chunk_times {
    double copy_in[2], compute[2], copy_out[2];
} gc_chunk_times;

typedef struct gc_stream_stats {
    double setup, copy_in, compute, copy_out; /* seconds, summed over chunks */
    int64_t chunks;
    int timed_chunks; /* entries in `times`: the first GC_TIMELINE chunks */
    gc_chunk_times times[GC_TIMELINE];
    gc_pcm_overs overs;
} gc_stream_stats;

typedef struct gc_chunk {
    void *in, *out; /* host memory of the stream */
    int64_t in_frames, out_frames;
} gc_chunk;

/* The slots of a stream, between the thread that submits, that of the stream and the one that waits. */
typedef struct gc_chunks {
    gc_slot_queue queue;
    gc_chunk slot[GC_SLOTS_MAX];
} gc_chunks;

typedef struct gc_stream gc_stream;

typedef struct gc_stream_executor {
    /* Creates a stream that reads interleaved frames of format `in` and writes frames of format `out`, and sets the
     * memory of the slots. The plan and the chunks must outlive it. */
    gpuconv_status (*new)(const gpuconv_plan *plan, gc_pcm in, gc_pcm out, gc_chunks *chunks, gc_stream **stream,
                          gpuconv_error *error);

    /* Queues the computation of a slot on the device. NULL: a thread of the stream takes slots from the queue. */
    gpuconv_status (*submit)(gc_stream *stream, int slot);

    /* Blocks until the output of a submitted slot is in host memory; NULL with `submit`. */
    gpuconv_status (*wait)(gc_stream *stream, int slot);

    /* Puts the stream and the queue back to their state before the first chunk. */
    gpuconv_status (*reset)(gc_stream *stream);

    /* Copies the statistics. Call it when no chunk is in flight. */
    void (*measure)(gc_stream *stream, gc_stream_stats *stats);

    /* Returns the reason of the last DEVICE status as one sentence, or "". NULL: there is none. */
    const char *(*failure)(const gc_stream *stream);

    void (*free)(gc_stream *stream);
} gc_stream_executor;

/* ---- Rows: the caller's arrays ----------------------------------------------------------------------------------- */

/* Limits of the public header. */
#define GC_JOB_FRAMES_MAX (INT64_C(1) << 40)
#define GC_JOB_ROWS_MAX (INT64_C(1) << 30)

/* The public functions (arrays.c) check every argument that does not depend on the backend, once for all of them, and
 * call the functions of this table. */
typedef struct gc_rows_executor gc_rows_executor;
struct gc_rooms;

/* The beginnings of the backends' objects. */
struct gpuconv_arrays {
    const gc_rows_executor *executor;
    int device; /* -1: the CPU */
};

struct gpuconv_responses {
    const gc_rows_executor *executor;
    int device;
    int64_t rows, taps; /* of routed responses: planes */
    gc_job_routes routes;
};

/* A checked job of a backend: its shapes, and how it is computed. */
typedef struct gc_job_plan {
    gpuconv_arrays *arrays;
    const gpuconv_responses *prepared; /* or NULL */
    gc_job_shape shape;
    gc_rows_plan how; /* on a GPU */
    char reason[256];
} gc_job_plan;

/* One job, or GRADIENT_BOTH as the two that gc_job_split makes. */
struct gpuconv_arrays_plan {
    gc_job_plan whole, part[2];
    bool split;
    int64_t bytes; /* of the workspace */
};

struct gpuconv_streamer {
    gpuconv_arrays *arrays;
    int64_t channels, block;
};

struct gc_rows_executor {
    /* Makes a place. number: threads or device, as in the public header. Sets executor and device. */
    gpuconv_status (*open)(int number, gpuconv_arrays **arrays, gpuconv_error *error);
    void (*free)(gpuconv_arrays *arrays);

    /* Fills `how` of a plan, whose other fields but the reason are set. @return UNSUPPORTED, also if there is no
     * algorithm for GRADIENT_BOTH as one job */
    gpuconv_status (*plan)(const gpuconv_arrays_job *job, gc_job_plan *plan, gpuconv_error *error);

    /* Writes the sentence of gpuconv_arrays_plan_reason. @return UNSUPPORTED, MEMORY */
    gpuconv_status (*describe)(const gpuconv_arrays_job *job, gc_job_plan *plan, gpuconv_error *error);

    /* As gpuconv_arrays_plan_run, for a job that was checked, pointers included. */
    gpuconv_status (*run)(const gc_job_plan *plan, const gpuconv_arrays_job *job, void *workspace, size_t bytes,
                          struct CUstream_st *stream, gpuconv_error *error);

    /* As gpuconv_sequences_sort, for checked arguments. */
    gpuconv_status (*sort)(const gpuconv_arrays *arrays, const gpuconv_sequences *sequences, int64_t *table,
                           struct CUstream_st *stream, gpuconv_error *error);

    /* As the public functions, which have checked the arrays. They fill the whole of gpuconv_responses. */
    gpuconv_status (*new_responses)(const gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t frames,
                                    struct CUstream_st *stream, gpuconv_responses **responses, gpuconv_error *error);
    gpuconv_status (*route_responses)(const gpuconv_arrays *arrays, const gpuconv_ir *ir, int64_t frames,
                                      gpuconv_responses **responses, gpuconv_error *error);
    gpuconv_status (*update_responses)(const gpuconv_arrays *arrays, gpuconv_responses *responses,
                                       const gpuconv_rows *response, struct CUstream_st *stream, gpuconv_error *error);
    int64_t (*responses_bytes)(const gpuconv_responses *responses);
    void (*free_responses)(gpuconv_responses *responses);

    gpuconv_status (*new_streamer)(gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t channels,
                                   int64_t block, struct CUstream_st *stream, gpuconv_streamer **streamer,
                                   gpuconv_error *error);
    gpuconv_status (*process)(gpuconv_streamer *streamer, const gpuconv_rows *in, const gpuconv_rows *out,
                              struct CUstream_st *stream, gpuconv_error *error);
    gpuconv_status (*reset)(gpuconv_streamer *streamer, struct CUstream_st *stream, gpuconv_error *error);
    void (*free_streamer)(gpuconv_streamer *streamer);

    /* Rooms (rooms.h). `plan_rooms` sets the state and the bytes of a plan whose rest is set, `free_rooms` frees the
     * state; NULL: there is none. `simulate` is gpuconv_rooms_plan_run, for checked arguments. */
    gpuconv_status (*plan_rooms)(gpuconv_rooms_plan *plan, gpuconv_error *error);
    gpuconv_status (*simulate)(const gpuconv_rooms_plan *plan, const struct gc_rooms *rooms, float *output,
                               void *workspace, struct CUstream_st *stream, gpuconv_error *error);
    void (*free_rooms)(gpuconv_rooms_plan *plan);
};

extern const gc_rows_executor gc_rows_cpu, gc_rows_cuda;

/* Checks an array at a place and its pointers. name: of the array, for messages. written: whether it is written. */
gpuconv_status gc_rows_check(const gpuconv_arrays *arrays, const gpuconv_rows *rows, const char *name, bool written,
                             gpuconv_error *error);

/* Checks a job but for its pointers, and fills *shape. */
gpuconv_status gc_job_check(const gpuconv_arrays *arrays, const gpuconv_arrays_job *job, gc_job_shape *shape,
                            gpuconv_error *error);

/* Checks the pointers of a job that gc_job_check has accepted. */
gpuconv_status gc_job_check_pointers(const gpuconv_arrays_job *job, gpuconv_error *error);

/* Writes the jobs of both gradients, by the signal and by the response, of a GRADIENT_BOTH. */
void gc_job_split(const gpuconv_arrays_job *job, gpuconv_arrays_job part[2]);

/* Returns the array that the job writes; of GRADIENT_BOTH the first one. */
const gpuconv_rows *gc_job_written(const gpuconv_arrays_job *job);

/* Returns the bytes of a sample. */
static inline int gc_job_sample_bytes(gpuconv_sample_type type) {
    return type == GPUCONV_SAMPLE_F32 ? 4 : 2;
}

/* ---- Batches of files -------------------------------------------------------------------------------------------- */

/* A slot of a batch owns input and output buffers (on a GPU also a CUDA stream) and is used by one thread at a time.
 * The slots of one device work concurrently.
 *
 * Samples in the input or output buffer of a slot, from byte `at` on, a multiple of 16: interleaved, or, if `row` is
 * not 0, floats, each channel `row` bytes behind the one before. */
typedef struct gc_batch_samples {
    int64_t at;
    gc_pcm format;
    int channels;
    int64_t row;
} gc_batch_samples;

/* A file of `frames` frames to convolve with a response that has one route for each output; the result has frames +
 * ir->frames - 1 frames. */
typedef struct gc_batch_item {
    const gpuconv_ir *ir;
    gc_batch_samples in, out; /* `in` is interleaved */
    int64_t frames;
    const float *planes; /* the taps of ir where the device reads them; NULL: in the input buffer from `planes_at` on */
    int64_t planes_at;   /* a multiple of 16 bytes */
    gc_choice choice;    /* from `choose` */
    int64_t clipped;     /* set by `finish`: samples clipped to the range of an integer output */
} gc_batch_item;

/* The beginning of a backend's slot. */
typedef struct gc_batch_slot {
    char *in, *out; /* buffers in host memory */
} gc_batch_slot;

typedef struct gc_batch_backend {
    /* Slots that a worker should own, so that it fills one while another computes. One is enough to work. */
    int slots;

    /* Creates a slot with input and output buffers of `bytes` bytes each, for items of up to `outputs` outputs in all.
     * Fails with DEVICE, or with MEMORY if the host or the device has too little. */
    gpuconv_status (*new_slot)(int device, int64_t bytes, int outputs, gc_batch_slot **slot, gpuconv_error *error);

    /* Optional. Chooses how a slot convolves files of `frames` frames with `ir`, as the plan of an engine does, so that
     * the output has the same bytes. Returns false if slots do not have the algorithm. NULL: slots need no choice. */
    bool (*choose)(const gc_batch_slot *slot, const gpuconv_ir *ir, int64_t frames, gc_choice *choice);

    /* Starts to convolve `count` items. Fails with DEVICE or MEMORY. */
    gpuconv_status (*begin)(gc_batch_slot *slot, gc_batch_item *items, int count, int64_t in_bytes, int64_t out_bytes,
                            gpuconv_error *error);

    /* Blocks until the items of the last `begin` are computed: the results are in `out`, the clipped samples are
     * counted in the items. Fails with DEVICE. NULL: `begin` computes them. */
    gpuconv_status (*finish)(gc_batch_slot *slot, gc_batch_item *items, int count, gpuconv_error *error);
    void (*free)(gc_batch_slot *slot);
} gc_batch_backend;

extern const gc_batch_backend gc_batch_cpu, gc_batch_cuda;

/* ---- Banks in real time ------------------------------------------------------------------------------------------ */

/* A bank convolves one block of every channel in each period, in real time on a GPU. Every output is the sum of inputs
 * through a response each; a filter bank, whose channels have a response each, is a diagonal list of routes. The
 * functions of banks and of moving sources allocate and block: call them from a worker thread, never from an audio
 * callback. */
typedef struct gc_bank gc_bank;

typedef struct gc_bank_options {
    int inputs, outputs; /* 1..4096; of a diagonal list 1..1048576 */
    int routes;          /* 1..16777216 */
    /* Sorted by output, one response each; `plane` is not used. `open` copies what it needs. */
    const gc_route *route;
    int block;    /* frames per period, a power of two, 32..1024 */
    int64_t taps; /* of each response */
    int device;   /* -1: the device with the most multiprocessors */
    /* Writes the response of a route; called once per route, in order. */
    void (*response)(void *context, int route, float *taps);
    void *context;
} gc_bank_options;

typedef struct gc_bank_backend {
    /* Creates a bank, transforms its responses and runs one period, so that later periods allocate nothing. Fails with
     * ARGUMENT, DEVICE or MEMORY. */
    gpuconv_status (*open)(const gc_bank_options *options, gc_bank **bank, gpuconv_error *error);

    /* Processes one period of inputs x block frames, planar, without added latency, to outputs x block frames. `in` is
     * pinned memory, or any memory. *out is owned by the bank and valid until the next call. Fails with
     * DEVICE. */
    gpuconv_status (*process)(gc_bank *bank, const float *in, const float **out, gpuconv_error *error);

    /* Returns one sentence: the partitions of the responses and the memory that they use. */
    const char *(*plan)(const gc_bank *bank);
    void (*free)(gc_bank *bank);
} gc_bank_backend;

extern const gc_bank_backend gc_bank_cuda;

/* The cuts of a response into levels that a search compares. */
typedef struct gc_level_search {
    const gc_problem *problem;
    const gc_costs *costs;

    /* Returns the seconds of a level per frame; HUGE_VAL: the level cannot be computed in time. number: 0 is the first.
     */
    double (*seconds)(const gc_problem *problem, const gc_costs *costs, gc_level *level, int number);

    int64_t taps;
    int64_t shortest, longest; /* hops of the levels behind the first one */
    int earliest, latest;      /* first taps of these levels, in hops */
    int most;                  /* levels */
} gc_level_search;

/* Fills cost and levels of a choice: the cut with the lowest cost. first_hop: of the first level. */
void gc_levels_search(const gc_level_search *search, int64_t first_hop, gc_choice *choice);

/* Returns whether route c leads from input c to output c, and there are no others. */
bool gc_bank_is_diagonal(const gc_bank_options *options);

/* The algorithm of banks on a GPU: fills choice->levels. */
extern const gc_algorithm gc_bank_levels;

/* ---- Moving sources ---------------------------------------------------------------------------------------------- */

/* Renders moving sources on a GPU, a chunk of hops at a time. */
typedef struct gc_motion_gpu gc_motion_gpu;

/* The response of a direction, as space/motion_render.c makes it of measured ones. */
typedef struct gc_motion_blend {
    int response[3];
    float weight[3], gain;
} gc_motion_blend;

typedef struct gc_motion_options {
    int channels, receivers, responses;
    int64_t hop, hops;    /* frames of a hop, hops of the longest chunk */
    int64_t points, taps; /* of a transform, of a response */
    int64_t past;         /* frames before a chunk that delays reach back to */
    int device;           /* -1: the device with the most multiprocessors */
    const float *filters; /* of delays: GC_DELAY_PHASES + 1 rows of GC_DELAY_TAPS taps */
    /* Writes the responses of a measurement without delays: receivers x taps, zeroed. Returns MEMORY, CANCELLED. */
    gpuconv_status (*response)(void *context, int response, float *taps, gpuconv_error *error);
    void *context;
} gc_motion_options;

/* A chunk. Moments are the beginnings of its hops, and its end. */
typedef struct gc_motion_work {
    int64_t hops;
    const float *in;              /* channels x hops x hop frames, in pinned memory */
    const gc_motion_blend *blend; /* moments x channels */
    const double *delay;          /* moments x channels x receivers, in frames */
} gc_motion_work;

typedef struct gc_motion_backend {
    /* Fails with ARGUMENT, UNSUPPORTED (points, shared memory), DEVICE, MEMORY, CANCELLED. */
    gpuconv_status (*open)(const gc_motion_options *options, gc_motion_gpu **gpu, gpuconv_error *error);

    /* Renders the next chunk. *out gets hops x receivers x points frames, which each hop adds to the result from its
     * first frame on; they are valid until the next call. Fails with DEVICE. */
    gpuconv_status (*render)(gc_motion_gpu *gpu, const gc_motion_work *chunk, const float **out, gpuconv_error *error);

    int64_t (*bytes)(const gc_motion_gpu *gpu); /* of device memory */
    void (*free)(gc_motion_gpu *gpu);
} gc_motion_backend;

extern const gc_motion_backend gc_motion_cuda;

/* ---- Backend ----------------------------------------------------------------------------------------------------- */

/* Length of arrays with an element for each backend, AUTO included. gpuconv_backend_name has the names. */
enum { GC_BACKENDS = GPUCONV_BACKEND_CUDA + 1 };

typedef struct gc_backend {
    gpuconv_backend id;
    const gc_algorithm *const *algorithms; /* of all executors; NULL ends them */

    /* Detects the processor and fills *device. Fails with DEVICE, and a reason, if there is none. */
    gpuconv_status (*probe)(const gpuconv_config *config, gc_device *device, gpuconv_error *error);

    /* Sets device->memory to the bytes that are free now, and device->started. Starts the device. NULL: memory does not
     * bound plans. Fails with DEVICE, and a reason. */
    gpuconv_status (*free_memory)(gc_device *device, gpuconv_error *error);

    /* Starts the device that probe would choose and makes it the current device of the thread, so that a stream finds
     * it started. NULL: there is nothing to start. */
    gpuconv_status (*start)(const gpuconv_config *config, gpuconv_error *error);

    /* Returns the costs of operations on a device that probe has filled. */
    gc_costs (*costs)(const gc_device *device);

    /* The functions from here to free_pinned are NULL on the CPU, whose memory every thread reads.
     *
     * Returns the number of devices, initialised or not; 0 with a reason in *error. */
    int (*count_devices)(gpuconv_error *error);

    /* Initialises a device for batches, which takes 1/8 s and else happens in the first slot. Fails with DEVICE. */
    gpuconv_status (*init_device)(int device, gpuconv_error *error);

    /* Copies samples to the memory of a device, for `release` to free. Returns NULL if it has too little. */
    float *(*upload)(int device, const float *samples, int64_t floats);
    void (*release)(int device, float *samples);

    /* Allocates host memory that devices read at full speed. Returns NULL if there is too little. device: -1 is the one
     * with the most multiprocessors. */
    float *(*alloc_pinned)(int device, int64_t floats);
    void (*free_pinned)(int device, float *pinned);

    const gc_stream_executor *stream;
    const gc_rows_executor *rows;
    const gc_batch_backend *batch;
    const gc_bank_backend *bank;     /* NULL: the backend has none */
    const gc_motion_backend *motion; /* the same */
} gc_backend;

/* Use gc_backend_find: the CUDA backend is in a module. */
extern const gc_backend gc_backend_cpu, gc_backend_cuda;

/* The export of the module of the CUDA backend, by the name GC_CUDA_MODULE. The module has copies of the functions of
 * this library that it needs, and none of the library's state: a module of another version is refused. */
typedef struct gc_cuda_module {
    const char *version;
    const gc_backend *backend;
    const struct gc_measures *measures; /* measure/measure.h */
} gc_cuda_module;
#define GC_CUDA_MODULE "gpuconv_cuda_module"

/* Returns the module of the CUDA backend. The first call loads it, unless the program is linked with the backend.
 * @return NULL, and the reason in *why, if there is none */
const gc_cuda_module *gc_cuda_module_find(const char **why);

/* Returns the CPU or the CUDA backend; NULL if there is no module. */
const gc_backend *gc_backend_find(gpuconv_backend id);

/* Returns the name of an algorithm, else NULL. The CPU has all of them. */
const char *gc_algorithm_name(gpuconv_algorithm id);

/* Returns `status` with the message why there is no CUDA backend. */
gpuconv_status gc_backend_fail_missing(gpuconv_status status, gpuconv_error *error);

#endif
