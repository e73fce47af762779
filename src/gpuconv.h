/*
 * gpuconv: exact linear convolution of audio with impulse responses, on a CPU or an NVIDIA GPU.
 *
 * Conventions
 *   Lengths    are frames (one sample of every channel), 64-bit, never negative.
 *   Samples    are 32-bit floats; 1.0 is 0 dBFS. Planar: one array a channel.
 *   Times      are seconds, levels decibels, rates frames a second.
 *   Result     is y[n] = sum over k of h[k] x[n - k], zeros before and after x: N + M - 1 frames for N frames and a
 *              response of M. The same input gives the same bytes on the same backend, however it is cut into calls.
 *   Ownership  every _new, _load and _route gives an object that the caller frees with its _free; freeing NULL is
 *              legal. A function that fails gives no object and leaves its outputs at NULL.
 *   Threads    gpuconv_ir and gpuconv_plan never change once made and may be shared; they are counted, so that freeing
 *              one while an engine still uses it is legal. An engine and a report belong to one thread at a time.
 *   Errors     come back as a gpuconv_status; where a gpuconv_error is passed (NULL is legal) its message is one
 *              sentence without a full stop that names the file or value. Nothing here prints or exits.
 */
#ifndef GPUCONV_H
#define GPUCONV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GPUCONV_API __attribute__((visibility("default")))
#else
#define GPUCONV_API
#endif

/* ---- Status ---------------------------------------------------------------------------------------------------- */

typedef enum gpuconv_status {
    GPUCONV_OK = 0,
    GPUCONV_ERROR_ARGUMENT,    /* a value outside its documented range */
    GPUCONV_ERROR_MEMORY,      /* host memory exhausted, or a size that does not fit 64 bits */
    GPUCONV_ERROR_FILE,        /* a file that cannot be opened, read, written or closed */
    GPUCONV_ERROR_FORMAT,      /* a file that is no audio, or audio that cannot be used (empty, not finite) */
    GPUCONV_ERROR_TOPOLOGY,    /* channel counts of input and response that fit no topology */
    GPUCONV_ERROR_UNSUPPORTED, /* a backend or algorithm that cannot do what was asked */
    GPUCONV_ERROR_DEVICE,      /* a GPU that is missing or failed */
    GPUCONV_ERROR_CANCELLED,   /* the caller's cancel flag was raised */
    GPUCONV_ERROR_STATE        /* a call out of order, such as processing after draining */
} gpuconv_status;

typedef struct gpuconv_error {
    gpuconv_status status;
    char message[512];
} gpuconv_error;

/* A short text for a status, static. Unknown values give "unknown status". */
GPUCONV_API const char *gpuconv_status_text(gpuconv_status status);

/* The library's version, such as "0.1.0", static. */
GPUCONV_API const char *gpuconv_version(void);

/* ---- Impulse responses ----------------------------------------------------------------------------------------- */

/* A sparse matrix of routes, input x output, each a planar float response. */
typedef struct gpuconv_ir gpuconv_ir;

/* The response in `taps[channel]` (`frames` each, copied) as one input with `channels` outputs.
 * channels 1..1024, frames >= 1, rate > 0, every tap finite. ARGUMENT, FORMAT (a tap is NaN or infinite), MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_new(const float *const *taps, int channels, int64_t frames, double rate,
                                          gpuconv_ir **ir, gpuconv_error *error);

/* Reads a response from whatever libsndfile reads: one input, an output a channel of the file.
 * FILE (missing, unreadable), FORMAT (no audio, no frames, NaN or infinity), MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_load(const char *path, gpuconv_ir **ir, gpuconv_error *error);

/* The response as it fits `inputs` channels (1..1024). With c channels in the response:
 *   c = 1: every input through the same response; inputs = 1: one input to c outputs;
 *   c = inputs: channel k through response k; inputs = 2, c = 4: true stereo, in the order left-left, left-right,
 *   right-left, right-right (source first). Anything else is TOPOLOGY, with the counts that would fit.
 * Only a response as read or made (one input) can be routed: ARGUMENT otherwise. MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_route(const gpuconv_ir *ir, int inputs, gpuconv_ir **routed,
                                            gpuconv_error *error);

/* The response at another rate (soxr, very high quality, linear phase), its level rescaled by old / new rate, so that
 * convolving the resampled input gives the resampled output. What the interpolation puts before the first frame is cut:
 * a response that begins abruptly at full level, without a millisecond of lead, loses up to 3 dB of that onset. rate >
 * 0. ARGUMENT, MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_resample(const gpuconv_ir *ir, double rate, gpuconv_ir **resampled,
                                               gpuconv_error *error);

/* The response with every tap multiplied by 10^(decibels / 20), decibels within -200..200. ARGUMENT, MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_gain(const gpuconv_ir *ir, double decibels, gpuconv_ir **scaled,
                                           gpuconv_error *error);

/* The response that gives a mix: the routed response times 10^(wet / 20), and the input itself times 10^(dry / 20) into
 * the output of its number, or into every output when it is alone. Decibels within -200..200; -INFINITY: none of it.
 * ARGUMENT (a response not routed, or the product not finite), MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_mix(const gpuconv_ir *ir, double wet, double dry, gpuconv_ir **mixed,
                                          gpuconv_error *error);

GPUCONV_API int gpuconv_ir_inputs(const gpuconv_ir *ir);
GPUCONV_API int gpuconv_ir_outputs(const gpuconv_ir *ir);
GPUCONV_API int gpuconv_ir_routes(const gpuconv_ir *ir);
GPUCONV_API int64_t gpuconv_ir_frames(const gpuconv_ir *ir);
GPUCONV_API double gpuconv_ir_rate(const gpuconv_ir *ir);
GPUCONV_API void gpuconv_ir_free(gpuconv_ir *ir);

/* ---- What the caller wants ------------------------------------------------------------------------------------- */

typedef enum gpuconv_backend { GPUCONV_BACKEND_AUTO = 0, GPUCONV_BACKEND_CPU, GPUCONV_BACKEND_CUDA } gpuconv_backend;

typedef enum gpuconv_algorithm {
    GPUCONV_ALGORITHM_AUTO = 0,
    GPUCONV_ALGORITHM_DIRECT,       /* the sum as written, in registers: short responses */
    GPUCONV_ALGORITHM_OVERLAP_SAVE, /* one transform longer than the response */
    GPUCONV_ALGORITHM_PARTITIONED   /* the response in equal partitions, a delay line of spectra */
} gpuconv_algorithm;

typedef struct gpuconv_config {
    gpuconv_backend backend;
    gpuconv_algorithm algorithm;
    int device;     /* CUDA device number, 0.. ; -1 (default): the one with the most multiprocessors */
    int threads;    /* CPU threads, 1..1024; 0 (default): one a core this process may run on */
    int64_t frames; /* how long the input will be, for choosing well; -1 (default): unknown */
} gpuconv_config;

/* The defaults named above, everything automatic. */
GPUCONV_API gpuconv_config gpuconv_config_default(void);

GPUCONV_API const char *gpuconv_backend_name(gpuconv_backend backend);
GPUCONV_API const char *gpuconv_algorithm_name(gpuconv_algorithm algorithm);

/* ---- The decision ---------------------------------------------------------------------------------------------- */

typedef struct gpuconv_plan gpuconv_plan;

/* Chooses backend, algorithm and sizes for a routed response. An unknown value in the configuration is refused
 * (ARGUMENT), a backend asked for by name that is not there is DEVICE or UNSUPPORTED; an automatic backend falls back
 * to the CPU and gpuconv_plan_note says so. MEMORY. */
GPUCONV_API gpuconv_status gpuconv_plan_new(const gpuconv_ir *ir, const gpuconv_config *config, gpuconv_plan **plan,
                                            gpuconv_error *error);

GPUCONV_API gpuconv_backend gpuconv_plan_backend(const gpuconv_plan *plan);
GPUCONV_API gpuconv_algorithm gpuconv_plan_algorithm(const gpuconv_plan *plan);
GPUCONV_API const char *gpuconv_plan_device(const gpuconv_plan *plan); /* the processor's name */
GPUCONV_API const char *gpuconv_plan_why(const gpuconv_plan *plan);    /* one sentence: why this choice */
GPUCONV_API const char *gpuconv_plan_note(const gpuconv_plan *plan);   /* one sentence on a fallback, or "" */
GPUCONV_API int gpuconv_plan_threads(const gpuconv_plan *plan);
GPUCONV_API int64_t gpuconv_plan_chunk(const gpuconv_plan *plan);      /* frames handed to the backend at a time */
GPUCONV_API int64_t gpuconv_plan_latency(const gpuconv_plan *plan);    /* frames by which results may be late */
GPUCONV_API int64_t gpuconv_plan_transform(const gpuconv_plan *plan);  /* points of a transform; 0 for direct */
GPUCONV_API int64_t gpuconv_plan_hop(const gpuconv_plan *plan);        /* output frames a transform yields */
GPUCONV_API int64_t gpuconv_plan_partitions(const gpuconv_plan *plan); /* partitions of the response */
GPUCONV_API void gpuconv_plan_free(gpuconv_plan *plan);

/* ---- One running convolution ----------------------------------------------------------------------------------- */

typedef struct gpuconv_engine gpuconv_engine;

/* Takes the memory and, on CUDA, the context. MEMORY, DEVICE. Nothing is allocated after this. */
GPUCONV_API gpuconv_status gpuconv_engine_new(const gpuconv_plan *plan, gpuconv_engine **engine, gpuconv_error *error);

/* Feeds `frames` (>= 0) frames of every input and takes what is ready, at most `frames` frames of every output; the
 * number is left in *produced. Results appear late by up to the plan's latency, none is lost: all calls together with
 * draining give N + M - 1 frames. `in` and `out` must not overlap. STATE after draining began or after a failure,
 * DEVICE when the GPU fails; the engine can then only be reset or freed. */
GPUCONV_API gpuconv_status gpuconv_engine_process(gpuconv_engine *engine, const float *const *in, int64_t frames,
                                                  float *const *out, int64_t *produced);

/* Ends the input and takes up to `capacity` of the frames that remain; *produced is 0 when all have been taken. Call
 * until then. An engine that was fed nothing gives nothing. */
GPUCONV_API gpuconv_status gpuconv_engine_drain(gpuconv_engine *engine, float *const *out, int64_t capacity,
                                                int64_t *produced);

/* Back to the state after gpuconv_engine_new, whatever happened before. DEVICE. */
GPUCONV_API gpuconv_status gpuconv_engine_reset(gpuconv_engine *engine);

GPUCONV_API void gpuconv_engine_free(gpuconv_engine *engine);

/* ---- In real time ---------------------------------------------------------------------------------------------- */

/* A response that is played through: frame n of the output depends on frame n of the input, no frame of latency added.
 * The response's beginning is convolved in the call itself, the rest by threads of its own, whose results are heard one
 * partition later. */
typedef struct gpuconv_realtime gpuconv_realtime;

typedef struct gpuconv_realtime_config {
    double rate;  /* frames a second: how often the threads look for work */
    int block;    /* frames of a call that are to be served in time, 1..65536; longer calls work, but may be late */
    int threads;  /* for the tail, 1..64; 0 (default): 1 */
    bool patient; /* calls wait for the tail instead of leaving it out: for use where no time presses */
} gpuconv_realtime_config;

/* A routed response, or ARGUMENT. Block 256, 48000 Hz, one thread, not patient in a config of zeros. MEMORY. */
GPUCONV_API gpuconv_status gpuconv_realtime_new(const gpuconv_ir *ir, const gpuconv_realtime_config *config,
                                                gpuconv_realtime **realtime, gpuconv_error *error);

/* Any number of frames in, as many out, which may be the same buffers. For one thread at a time; it locks nothing,
 * allocates nothing, calls nothing of the system, and waits for nobody (unless patient). Subnormal numbers are off
 * meanwhile. */
GPUCONV_API void gpuconv_realtime_process(gpuconv_realtime *realtime, const float *const *in, float *const *out,
                                          int64_t frames);

/* From another thread, while it plays: from some call on another response of the same inputs and outputs, the input
 * faded over from the old one to the new within `seconds` (0..60), while the old one rings out. Waits while an earlier
 * exchange has not been taken up yet; STATE when nobody takes it up for two seconds. ARGUMENT, TOPOLOGY, MEMORY. */
GPUCONV_API gpuconv_status gpuconv_realtime_swap(gpuconv_realtime *realtime, const gpuconv_ir *ir, double seconds,
                                                 gpuconv_error *error);

/* How often a part of the tail was left out because it was not ready; from any thread. */
GPUCONV_API int64_t gpuconv_realtime_missed(const gpuconv_realtime *realtime);

/* One sentence: how the response that began it is cut up, and why. */
GPUCONV_API const char *gpuconv_realtime_plan(const gpuconv_realtime *realtime);

/* When nobody is in gpuconv_realtime_process any more. */
GPUCONV_API void gpuconv_realtime_free(gpuconv_realtime *realtime);

/* ---- Measurements ---------------------------------------------------------------------------------------------- */

typedef struct gpuconv_report gpuconv_report;

typedef enum gpuconv_report_format { GPUCONV_REPORT_TEXT = 0, GPUCONV_REPORT_JSON } gpuconv_report_format;

/* An empty report, with the environment (version, compiler, processor) filled in. MEMORY. */
GPUCONV_API gpuconv_status gpuconv_report_new(gpuconv_report **report);

/* Writes the report to a stream that the caller owns. FILE when the stream fails. */
GPUCONV_API gpuconv_status gpuconv_report_write(const gpuconv_report *report, gpuconv_report_format format, FILE *to);

GPUCONV_API void gpuconv_report_free(gpuconv_report *report);

/* ---- From file to file ----------------------------------------------------------------------------------------- */

typedef struct gpuconv_job {
    const char *input;    /* path of the input */
    const char *response; /* path of the impulse response */
    const char *output;   /* path of the output; may be the input's or the response's */
    double gain;          /* decibels, -200..200, applied to the response */
    bool compare;         /* afterwards measure other ways to compute an excerpt, into the report */
    void (*note)(void *context, const char *text); /* a line worth telling (fallback, resampling, clipping), or NULL */
    void *context;
    const volatile int *cancel; /* raised to non-zero from anywhere to stop; NULL: never */
} gpuconv_job;

/* A job with every field at zero. */
GPUCONV_API gpuconv_job gpuconv_job_default(void);

/* Convolves input with response into output, in constant memory. The output takes its container from its extension
 * and its sample format from the input, and appears under its name only when it is whole; on any failure nothing is
 * left and an older file is untouched. `report` may be NULL. Errors as above, CANCELLED when *cancel was raised. */
GPUCONV_API gpuconv_status gpuconv_convolve_file(const gpuconv_job *job, const gpuconv_config *config,
                                                 gpuconv_report *report, gpuconv_error *error);

/* ---- This machine ----------------------------------------------------------------------------------------------- */

/* Measures in a few seconds what operations cost here, waking the GPU included, and keeps it where plans of later
 * processes find it: $XDG_CACHE_HOME/gpuconv/costs or ~/.cache/gpuconv/costs. Without that file plans use built-in
 * figures. `report` (may be NULL) gets the figures. Not for two threads at once. DEVICE, FILE, MEMORY. */
GPUCONV_API gpuconv_status gpuconv_calibrate(gpuconv_report *report, gpuconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
