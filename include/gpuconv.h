/**
 * @file
 * gpuconv: exact linear convolution of audio with impulse responses, on a CPU or an NVIDIA GPU.
 *
 * Conventions
 *   Lengths    are frames (one sample of every channel), 64-bit, never negative.
 *   Samples    are 32-bit floats; 1.0 is 0 dBFS. Planar: one array a channel.
 *   Times      are seconds, levels decibels, rates frames a second.
 *   Result     is y[n] = sum over k of h[k] x[n - k], zeros before and after x: N + M - 1 frames for N frames and a
 *              response of M. The same input gives the same bytes on the same machine and backend, whatever the number
 *              of threads and however it is cut into calls, until gpuconv_calibrate changes what plans go by. The
 * length that gpuconv_config.frames announces belongs to the input: lengths of 2^23 frames (10 minutes at 48 kHz on a
 * GPU) and more and an unknown one give the same bytes, shorter ones may differ from those in the last bits. Ownership
 * every _new, _load and _route gives an object that the caller frees with its _free; freeing NULL is legal. A function
 * that fails gives no object and leaves its outputs at NULL. Threads    gpuconv_ir and gpuconv_plan never change once
 * made and may be shared; they are counted, so that freeing one while an engine still uses it is legal. An engine and a
 * report belong to one thread at a time. Errors     come back as a gpuconv_status; where a gpuconv_error is passed
 * (NULL is legal) its message is one sentence without a full stop that names the file or value. Nothing here prints or
 * exits.
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

/** What a call came to; 0 is success. */
typedef enum gpuconv_status {
    GPUCONV_OK = 0,            /**< done */
    GPUCONV_ERROR_ARGUMENT,    /**< a value outside its documented range */
    GPUCONV_ERROR_MEMORY,      /**< host memory exhausted, or a size that does not fit 64 bits */
    GPUCONV_ERROR_FILE,        /**< a file that cannot be opened, read, written or closed */
    GPUCONV_ERROR_FORMAT,      /**< a file that is no audio, or audio that cannot be used (empty, not finite) */
    GPUCONV_ERROR_TOPOLOGY,    /**< channel counts of input and response that fit no topology */
    GPUCONV_ERROR_UNSUPPORTED, /**< a backend or algorithm that cannot do what was asked */
    GPUCONV_ERROR_DEVICE,      /**< a GPU that is missing or failed */
    GPUCONV_ERROR_CANCELLED,   /**< the flag of gpuconv_cancel_set or of the job was raised; any call can return it */
    GPUCONV_ERROR_STATE        /**< a call out of order, such as processing after draining */
} gpuconv_status;

/** Why a call failed, in words. */
typedef struct gpuconv_error {
    gpuconv_status status; /**< as the call gave it back */
    char message[512];     /**< one line of UTF-8 without a full stop; a long path is shortened in the middle */
} gpuconv_error;

/**
 * Installs a flag that cancels the work of the calling thread: once *flag is non-zero, calls of this library on this
 * thread that would take longer return CANCELLED, within about 0.2 s, and leave nothing half-made. An engine made
 * meanwhile keeps the flag for its own threads. gpuconv_convolve_file installs its job's. Calls that give no status and
 * gpuconv_realtime_process do not look at it; a GPU finishes what was handed to it.
 * @param flag NULL: none (default). Must stay valid, and once raised stay raised, until another one is installed and
 * the engines made meanwhile are freed. May be raised from anywhere, a signal handler too.
 * @return the flag that was installed before, or NULL.
 */
GPUCONV_API const volatile int *gpuconv_cancel_set(const volatile int *flag);

/** A short text for a status, static. Unknown values give "unknown status". */
GPUCONV_API const char *gpuconv_status_text(gpuconv_status status);

/** The library's version, such as "0.1.0", static. */
GPUCONV_API const char *gpuconv_version(void);

/* ---- Impulse responses ----------------------------------------------------------------------------------------- */

/** A sparse matrix of routes, input x output, each a planar float response. */
typedef struct gpuconv_ir gpuconv_ir;

/** The response in `taps[channel]` (`frames` each, copied) as one input with `channels` outputs.
 * channels 1..1024, frames >= 1, rate 1..10000000 Hz, every tap finite. ARGUMENT, FORMAT (a tap is NaN or infinite),
 * MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_new(const float *const *taps, int channels, int64_t frames, double rate,
                                          gpuconv_ir **ir, gpuconv_error *error);

/** Reads a response from whatever libsndfile reads: one input, an output a channel of the file.
 * FILE (missing, unreadable), FORMAT (no audio, no frames, NaN or infinity), MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_load(const char *path, gpuconv_ir **ir, gpuconv_error *error);

/** The response as it fits `inputs` channels (1..1024). With c channels in the response:
 *   c = 1: every input through the same response; inputs = 1: one input to c outputs;
 *   c = inputs: channel k through response k; inputs = 2, c = 4: true stereo, in the order left-left, left-right,
 *   right-left, right-right (source first). Anything else is TOPOLOGY, with the counts that would fit.
 * Only a response as read or made (one input) can be routed: ARGUMENT otherwise. MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_route(const gpuconv_ir *ir, int inputs, gpuconv_ir **routed,
                                            gpuconv_error *error);

/** How the channels of a response file lie on the routes. */
typedef enum gpuconv_layout {
    GPUCONV_LAYOUT_AUTO = 0, /**< as gpuconv_ir_route says */
    GPUCONV_LAYOUT_SOURCE,   /**< every output of the first input, then every output of the second: LL LR RL RR */
    GPUCONV_LAYOUT_OUTPUT,   /**< every input of the first output, then every input of the second: LL RL LR RR */
    GPUCONV_LAYOUT_PACKED    /**< a channel an output; the inputs' responses lie one behind the other, equally long */
} gpuconv_layout;

/** The response as it fits `inputs` channels by a layout. SOURCE and OUTPUT take a multiple of `inputs` channels,
 * PACKED a multiple of `inputs` frames; anything else is TOPOLOGY with what would fit. As gpuconv_ir_route otherwise; a
 * response that came routed, from a matrix file, is taken as it is when its inputs are as many. */
GPUCONV_API gpuconv_status gpuconv_ir_route_as(const gpuconv_ir *ir, int inputs, gpuconv_layout layout,
                                               gpuconv_ir **routed, gpuconv_error *error);

/** Reads a sparse matrix of routes. Lines of a text file, # to the end of a line being a comment:
 *
 *      INPUT OUTPUT FILE [CHANNEL [GAIN [DELAY [OFFSET [LENGTH]]]]]
 *
 * input and output 1..1024; a file relative to the matrix's own folder, in double quotes if it holds blanks, or `dirac`
 * for a single tap; its channel 1.. (default 1); gain in decibels; delay before it, offset into it and length of it in
 * seconds (length 0: to its end). Lines for the same input and output add up. A name that ends in .conf is read as
 * jconvolver's configuration instead: /cd, /convolver/new, /impulse/read, /impulse/dirac, /impulse/copy; gains are
 * factors and times frames there, and names of inputs and outputs are passed over. `rate` (1..10000000 Hz): of the
 * response where no file says one; files of several rates come at the first one's. FILE, FORMAT (the line is named),
 * MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_load_matrix(const char *path, double rate, gpuconv_ir **ir, gpuconv_error *error);

/** The response at another rate (soxr, very high quality, linear phase), its level rescaled by old / new rate, so that
 * convolving the resampled input gives the resampled output. A response that begins abruptly gets what the
 * interpolation puts before its first frame as a lead: see gpuconv_ir_lead. `rate` is 1..10000000 Hz, and 1/1000 to
 * 1000 times the old one. ARGUMENT, MEMORY (nothing of the kind fits; the message has the numbers), CANCELLED. */
GPUCONV_API gpuconv_status gpuconv_ir_resample(const gpuconv_ir *ir, double rate, gpuconv_ir **resampled,
                                               gpuconv_error *error);

/** `frames` frames from `start` on (start 0.., frames 1.. or -1: to the end); what reaches beyond the response is left
 * out. ARGUMENT (nothing of it lies there), MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_cut(const gpuconv_ir *ir, int64_t start, int64_t frames, gpuconv_ir **cut,
                                          gpuconv_error *error);

/** Without the end that stays more than `decibels` (below 0, to -300) under the peak of all channels. ARGUMENT, MEMORY.
 */
GPUCONV_API gpuconv_status gpuconv_ir_trim(const gpuconv_ir *ir, double decibels, gpuconv_ir **trimmed,
                                           gpuconv_error *error);

/** Where a response begins in time. */
typedef enum gpuconv_align {
    GPUCONV_ALIGN_NONE = 0, /**< as it was recorded */
    GPUCONV_ALIGN_ONSET,    /**< what lies before the first frame within 60 dB of the peak is cut off */
    GPUCONV_ALIGN_PEAK      /**< the peak is time zero, and what lies before it a lead */
} gpuconv_align;

/** The response without the delay that it begins with. ARGUMENT (unknown value), MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_align(const gpuconv_ir *ir, gpuconv_align how, gpuconv_ir **aligned,
                                            gpuconv_error *error);

/** Faded in over the first `in` and out over the last `out` frames, half a cosine each; longer than the response: over
 * all of it. ARGUMENT (negative), MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_fade(const gpuconv_ir *ir, int64_t in, int64_t out, gpuconv_ir **faded,
                                           gpuconv_error *error);

/** Last frame first. MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_reverse(const gpuconv_ir *ir, gpuconv_ir **reversed, gpuconv_error *error);

/** `frames` (0..) of silence before it. ARGUMENT, MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_delay(const gpuconv_ir *ir, int64_t frames, gpuconv_ir **delayed,
                                            gpuconv_error *error);

/** `factor` (0.01..100) times as long, its spectrum that much lower, at an unchanged gain. ARGUMENT, MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_stretch(const gpuconv_ir *ir, double factor, gpuconv_ir **stretched,
                                              gpuconv_error *error);

/** Every channel with the same magnitude spectrum and the least delay: the folded real cepstrum (Oppenheim & Schafer,
 * Discrete-Time Signal Processing, 3rd ed., sec. 13.6), zeros 200 dB under the peak and lower being raised to there.
 * MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_minimum_phase(const gpuconv_ir *ir, gpuconv_ir **minimal, gpuconv_error *error);

/** Both in series, as one of Ma + Mb - 1 frames: channel by channel, or one channel with all of the other's. TOPOLOGY
 * (channel counts), ARGUMENT (rates differ), MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_series(const gpuconv_ir *first, const gpuconv_ir *second, gpuconv_ir **both,
                                             gpuconv_error *error);

/** The response with every tap multiplied by 10^(decibels / 20), decibels within -200..200. ARGUMENT, MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_gain(const gpuconv_ir *ir, double decibels, gpuconv_ir **scaled,
                                           gpuconv_error *error);

/** What one gain for all routes reaches. */
typedef enum gpuconv_normalize {
    GPUCONV_NORMALIZE_NONE = 0, /**< no gain */
    GPUCONV_NORMALIZE_PEAK,     /**< the largest tap of all is 1 */
    GPUCONV_NORMALIZE_L1,       /**< the largest sum of magnitudes into an output is 1: nothing can ever clip */
    GPUCONV_NORMALIZE_ENERGY,   /**< the largest energy into an output is 1: white noise keeps its level */
    GPUCONV_NORMALIZE_LOUDNESS  /**< pink noise comes out as loud as it went in (ITU-R BS.1770, by libebur128) */
} gpuconv_normalize;

/** One gain for all routes of a routed response; *decibels (may be NULL) says which. Silence at either end changes
 * nothing. ARGUMENT (unknown value; loudness outside of 16..2822400 Hz), FORMAT (nothing but zeros, or out of reach:
 * more than 400 dB), MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_normalize(const gpuconv_ir *ir, gpuconv_normalize how, double *decibels,
                                                gpuconv_ir **normalized, gpuconv_error *error);

/** The response that gives a mix: the routed response times 10^(wet / 20), and the input itself times 10^(dry / 20)
 * into the output of its number, or into every output when it is alone; where no route leads from an input to the
 * output of its number one is made. Decibels within -200..200; -INFINITY: none of it. ARGUMENT (a response not routed,
 * or the product not finite), MEMORY. */
GPUCONV_API gpuconv_status gpuconv_ir_mix(const gpuconv_ir *ir, double wet, double dry, gpuconv_ir **mixed,
                                          gpuconv_error *error);

GPUCONV_API int gpuconv_ir_inputs(const gpuconv_ir *ir);     /**< channels that go in, at least 1 */
GPUCONV_API int gpuconv_ir_outputs(const gpuconv_ir *ir);    /**< channels that come out, at least 1 */
GPUCONV_API int gpuconv_ir_routes(const gpuconv_ir *ir);     /**< from an input to an output, at least 1 */
GPUCONV_API int64_t gpuconv_ir_frames(const gpuconv_ir *ir); /**< of every route, at least 1 */
GPUCONV_API double gpuconv_ir_rate(const gpuconv_ir *ir);    /**< frames a second */

/** Frames of the response that stand before its time zero, mostly 0. The first so many frames of a convolution belong
 * before the input's beginning: gpuconv_convolve_file leaves them out; in real time they are latency. */
GPUCONV_API int64_t gpuconv_ir_lead(const gpuconv_ir *ir);

/** The taps from input to output (0..), `frames` of them, owned by the response; NULL: no route leads there. */
GPUCONV_API const float *gpuconv_ir_taps(const gpuconv_ir *ir, int input, int output);

/** The frame of the largest magnitude of all channels, the first of several; *magnitude (may be NULL) is that. */
GPUCONV_API int64_t gpuconv_ir_peak(const gpuconv_ir *ir, double *magnitude);

/** Frames before the first that comes within `decibels` of the peak: silence that is heard as latency. Decibels that
 * are not below 0, NaN too, count as 0. */
GPUCONV_API int64_t gpuconv_ir_onset(const gpuconv_ir *ir, double decibels);

/** What was done to it since it was read, such as "trimmed to 1.2 s; reversed"; "": nothing. Owned by the response. */
GPUCONV_API const char *gpuconv_ir_history(const gpuconv_ir *ir);

/** Gives up one holder's part; the last one's frees it. */
GPUCONV_API void gpuconv_ir_free(gpuconv_ir *ir);

/** What becomes of a response file on its way into a convolution, in this order. */
typedef struct gpuconv_preparation {
    gpuconv_layout layout;       /**< how its channels lie */
    double start;                /**< seconds of the file that are left out */
    double length;               /**< seconds that are taken; 0: to its end */
    double trim;                 /**< dB under the peak, below 0: the quieter end is cut off; 0: nothing is */
    gpuconv_align align;         /**< silence before it */
    bool reverse;                /**< backwards */
    double stretch;              /**< 0.01..100; 0 counts as 1 */
    bool minimum_phase;          /**< with the least delay */
    double fade;                 /**< seconds at the end */
    const char *const *series;   /**< files of responses in series behind it */
    int series_count;            /**< how many */
    double predelay;             /**< seconds */
    gpuconv_normalize normalize; /**< one gain for all routes */
    double gain;                 /**< dB, -200..200 */
    double wet;                  /**< dB, -200..200, of the response; -INFINITY: none */
    double dry;                  /**< dB, -200..200, of the input itself beside it; -INFINITY: none */
} gpuconv_preparation;

/** Everything as the file has it; wet 0, dry -INFINITY. */
GPUCONV_API gpuconv_preparation gpuconv_preparation_default(void);

/** Reads a response, or a matrix (.conf, .txt, .matrix), brings it to `rate`, prepares it and routes it for `inputs`
 * channels. As the functions that it calls; messages begin with the path. */
GPUCONV_API gpuconv_status gpuconv_ir_prepare(const char *path, const gpuconv_preparation *preparation, int inputs,
                                              double rate, gpuconv_ir **ir, gpuconv_error *error);

/* ---- What the caller wants ------------------------------------------------------------------------------------- */

/** Where to compute. */
typedef enum gpuconv_backend {
    GPUCONV_BACKEND_AUTO = 0, /**< where the plan finds it quicker */
    GPUCONV_BACKEND_CPU,      /**< on the processor */
    GPUCONV_BACKEND_CUDA      /**< on an NVIDIA GPU */
} gpuconv_backend;

/** How to compute. */
typedef enum gpuconv_algorithm {
    GPUCONV_ALGORITHM_AUTO = 0,     /**< as the plan finds it quickest */
    GPUCONV_ALGORITHM_DIRECT,       /**< the sum as written, in registers: short responses */
    GPUCONV_ALGORITHM_OVERLAP_SAVE, /**< one transform longer than the response */
    GPUCONV_ALGORITHM_PARTITIONED   /**< the response in equal partitions, a delay line of spectra */
} gpuconv_algorithm;

/** What the caller wants of a plan. */
typedef struct gpuconv_config {
    gpuconv_backend backend;     /**< where */
    gpuconv_algorithm algorithm; /**< how */
    int device;                  /**< CUDA device number, 0.. ; -1 (default): the one with the most multiprocessors */
    int threads;                 /**< CPU threads, 1..1024; 0 (default): one a core; no sample depends on it */
    int64_t frames;              /**< how long the input will be, for choosing well; -1 (default): unknown */
} gpuconv_config;

/** The defaults named above, everything automatic. */
GPUCONV_API gpuconv_config gpuconv_config_default(void);

GPUCONV_API const char *gpuconv_backend_name(gpuconv_backend backend);       /**< "auto", "cpu", "cuda"; static */
GPUCONV_API const char *gpuconv_algorithm_name(gpuconv_algorithm algorithm); /**< such as "overlap-save"; static */

/* ---- The decision ---------------------------------------------------------------------------------------------- */

/** The decision for a response: never changed, shared by threads. */
typedef struct gpuconv_plan gpuconv_plan;

/** Chooses backend, algorithm and sizes for a routed response. An unknown value in the configuration is refused
 * (ARGUMENT), a backend asked for by name that is not there is DEVICE or UNSUPPORTED; an automatic backend falls back
 * to the CPU and gpuconv_plan_note says so. MEMORY. */
GPUCONV_API gpuconv_status gpuconv_plan_new(const gpuconv_ir *ir, const gpuconv_config *config, gpuconv_plan **plan,
                                            gpuconv_error *error);

GPUCONV_API gpuconv_backend gpuconv_plan_backend(const gpuconv_plan *plan);     /**< where it computes, never AUTO */
GPUCONV_API gpuconv_algorithm gpuconv_plan_algorithm(const gpuconv_plan *plan); /**< how, never AUTO */
GPUCONV_API const char *gpuconv_plan_device(const gpuconv_plan *plan);          /**< the processor's name */
GPUCONV_API const char *gpuconv_plan_reason(const gpuconv_plan *plan);          /**< one sentence: why this choice */
GPUCONV_API const char *gpuconv_plan_note(const gpuconv_plan *plan);   /**< one sentence on a fallback, or "" */
GPUCONV_API int gpuconv_plan_threads(const gpuconv_plan *plan);        /**< of the CPU, at least 1 */
GPUCONV_API int64_t gpuconv_plan_chunk(const gpuconv_plan *plan);      /**< frames handed to the backend at a time */
GPUCONV_API int64_t gpuconv_plan_latency(const gpuconv_plan *plan);    /**< frames by which results may be late */
GPUCONV_API int64_t gpuconv_plan_transform(const gpuconv_plan *plan);  /**< points of a transform; 0 for direct */
GPUCONV_API int64_t gpuconv_plan_hop(const gpuconv_plan *plan);        /**< output frames a transform yields */
GPUCONV_API int64_t gpuconv_plan_partitions(const gpuconv_plan *plan); /**< partitions of the response */
/** Gives up one holder's part. */
GPUCONV_API void gpuconv_plan_free(gpuconv_plan *plan);

/* ---- One running convolution ----------------------------------------------------------------------------------- */

/** One running convolution of a plan, for one thread at a time. */
typedef struct gpuconv_engine gpuconv_engine;

/** Takes the memory and, on CUDA, the context. MEMORY, DEVICE. Nothing is allocated after this. */
GPUCONV_API gpuconv_status gpuconv_engine_new(const gpuconv_plan *plan, gpuconv_engine **engine, gpuconv_error *error);

/** Feeds `frames` (>= 0) frames of every input and takes what is ready, at most `frames` frames of every output; the
 * number is left in *produced. Results appear late by up to the plan's latency, none is lost: all calls together with
 * draining give N + M - 1 frames. `in` and `out` must not overlap. STATE after draining began or after a failure,
 * DEVICE when the GPU fails; the engine can then only be reset or freed. */
GPUCONV_API gpuconv_status gpuconv_engine_process(gpuconv_engine *engine, const float *const *in, int64_t frames,
                                                  float *const *out, int64_t *produced);

/** Ends the input and takes up to `capacity` of the frames that remain; *produced is 0 when all have been taken. Call
 * until then. An engine that was fed nothing gives nothing. */
GPUCONV_API gpuconv_status gpuconv_engine_drain(gpuconv_engine *engine, float *const *out, int64_t capacity,
                                                int64_t *produced);

/** Back to the state after gpuconv_engine_new, whatever happened before. DEVICE. */
GPUCONV_API gpuconv_status gpuconv_engine_reset(gpuconv_engine *engine);

/** Also in the middle of a convolution. */
GPUCONV_API void gpuconv_engine_free(gpuconv_engine *engine);

/* ---- In real time ---------------------------------------------------------------------------------------------- */

/** A response that is played through: frame n of the output depends on frame n of the input, no frame of latency added.
 * The response's beginning is convolved in the call itself, the rest by threads of its own, whose results are heard one
 * partition later. */
typedef struct gpuconv_realtime gpuconv_realtime;

/** What is played how. */
typedef struct gpuconv_realtime_config {
    double rate;             /**< frames a second, 1..10000000: how often the threads look for work; 0: 48000 */
    int block;               /**< frames of a call that are to be served in time, 1..65536; longer ones may be late */
    int threads;             /**< for the tail, 1..64; 0 (default): 1 */
    bool freewheel;          /**< calls wait for the tail instead of leaving it out: for use where no time presses */
    gpuconv_backend backend; /**< CUDA: what lies 4096 taps and more behind the beginning is a GPU's; else the CPU */
    int device;              /**< CUDA device number, 0.. ; -1: the one with the most multiprocessors */
    int64_t latency;         /**< frames, 0..1048576, by which the response may be late, for less work in each call */
} gpuconv_realtime_config;

/** A routed response and a configuration within its ranges, or ARGUMENT. Block 256, 48000 Hz, one thread, not
 * freewheel, device 0, the CPU, no latency in a config of zeros. A GPU that fails, or is late for a fifth of a second
 * on end, is given up: the CPU takes the tail over, faded in within 0.1 s. MEMORY; DEVICE, UNSUPPORTED (CUDA asked for
 * and not there). */
GPUCONV_API gpuconv_status gpuconv_realtime_new(const gpuconv_ir *ir, const gpuconv_realtime_config *config,
                                                gpuconv_realtime **realtime, gpuconv_error *error);

/** Any number of frames in, as many out, which may be the same buffers. For one thread at a time; it locks nothing,
 * allocates nothing, calls nothing of the system, and waits for nobody (unless freewheel). Subnormal numbers are off
 * meanwhile. */
GPUCONV_API void gpuconv_realtime_process(gpuconv_realtime *realtime, const float *const *in, float *const *out,
                                          int64_t frames);

/** From another thread, whether it plays or not: from some call on another response of the same inputs and outputs, the
 * input faded over from the old one to the new within `seconds` (0..60), while the old one rings out. Waits for
 * nothing: an earlier exchange that no call has taken up yet is replaced by this one. ARGUMENT, TOPOLOGY, MEMORY,
 * DEVICE. */
GPUCONV_API gpuconv_status gpuconv_realtime_swap(gpuconv_realtime *realtime, const gpuconv_ir *ir, double seconds,
                                                 gpuconv_error *error);

/** Whether calls wait for the tail from now on, as `freewheel` in the configuration; from any thread. */
GPUCONV_API void gpuconv_realtime_set_freewheel(gpuconv_realtime *realtime, bool freewheel);

/** How often a part of the tail was left out because it was not ready; from any thread. */
GPUCONV_API int64_t gpuconv_realtime_late_blocks(const gpuconv_realtime *realtime);

/** Where the tail is computed: CUDA, or CPU, also once a GPU was given up; from any thread. */
GPUCONV_API gpuconv_backend gpuconv_realtime_backend(const gpuconv_realtime *realtime);

/** Frames by which the output is late: what the configuration grants, and the response's lead; from any thread. */
GPUCONV_API int64_t gpuconv_realtime_latency(const gpuconv_realtime *realtime);

/** One sentence: how the response that began it is cut up, and why. */
GPUCONV_API const char *gpuconv_realtime_plan(const gpuconv_realtime *realtime);

/** When nobody is in gpuconv_realtime_process any more. */
GPUCONV_API void gpuconv_realtime_free(gpuconv_realtime *realtime);

/* ---- Measurements ---------------------------------------------------------------------------------------------- */

/** Facts and measurements with their units; docs/report.schema.json describes it as JSON. */
typedef struct gpuconv_report gpuconv_report;

/** How a report is written. */
typedef enum gpuconv_report_format {
    GPUCONV_REPORT_TEXT = 0, /**< to be read */
    GPUCONV_REPORT_JSON      /**< to be parsed, with a timeline */
} gpuconv_report_format;

/** An empty report, with the environment (version, compiler, processor) filled in. MEMORY. */
GPUCONV_API gpuconv_status gpuconv_report_new(gpuconv_report **report);

/** Writes the report to a stream that the caller owns. FILE when the stream fails. */
GPUCONV_API gpuconv_status gpuconv_report_write(const gpuconv_report *report, gpuconv_report_format format, FILE *to);

/** Frees it. */
GPUCONV_API void gpuconv_report_free(gpuconv_report *report);

/* ---- From file to file ----------------------------------------------------------------------------------------- */

/** Which part of the N + M - 1 frames of a result is kept. */
typedef enum gpuconv_mode {
    GPUCONV_MODE_FULL = 0, /**< all */
    GPUCONV_MODE_SAME,     /**< N of them from frame (M - 1) / 2 on, as NumPy and MATLAB have it */
    GPUCONV_MODE_VALID     /**< N - M + 1 of them from frame M - 1 on: those that lack nothing at either end */
} gpuconv_mode;

/** How far a job is. */
typedef struct gpuconv_progress {
    int64_t frames; /**< of the input that were read */
    int64_t total;  /**< of the input; -1: not known */
    double rate;    /**< of the input, frames a second */
    double seconds; /**< since the job began */
} gpuconv_progress;

/** One file through one response, and what is wished for. */
typedef struct gpuconv_job {
    const char *input;    /**< path of the input; "-": standard input */
    const char *response; /**< path of the impulse response, or of a matrix of them */
    const char *output;   /**< path of the output, which may be the input's or the response's; "-": standard output */
    gpuconv_preparation preparation; /**< what becomes of the response */
    double gain;                     /**< decibels, -200..200, of the whole result */
    const char *raw;                 /**< the input has no header: RATE,CHANNELS,ENCODING; NULL: it has */
    const char *format;              /**< of the output, such as "flac"; NULL: by its extension, "-" being a WAV */
    const char *encoding;            /**< of its samples, such as "s24"; NULL: as the input's */
    bool dither;                     /**< triangular noise before rounding to integers */
    gpuconv_mode mode;               /**< which frames are kept */
    double tail;       /**< seconds behind the input's end that are kept at most, with mode FULL; INFINITY: all */
    double tail_floor; /**< dBFS, below 0, to -300: the tail ends with its last sample that loud; 0: where it ends */
    bool compare;      /**< afterwards measure other ways to compute an excerpt, into the report */
    const char *plot;  /**< draw before and after into this .png or .svg (needs gnuplot); NULL */
    void (*note)(void *context,
                 const char *text); /**< a line worth telling (fallback, resampling, clipping), or NULL */
    void (*progress)(void *context, const gpuconv_progress *progress); /**< once a chunk, or NULL */
    void *context;                                                     /**< for note and progress */
    const volatile int *cancel; /**< raised to non-zero from anywhere to stop; NULL: never */
} gpuconv_job;

/** A job that does nothing beyond convolving: the default preparation, the whole tail, everything else at zero. */
GPUCONV_API gpuconv_job gpuconv_job_default(void);

/** Convolves input with response into output, in constant memory. The output takes its container from its extension
 * and its sample format from the input where the job does not say else, carries the input's strings, cue points and
 * broadcast chunk, and appears under its name only when it is whole; on any failure nothing is left and an older file
 * is untouched. Comparison and drawing come after the output: what the drawing needs is checked before the job begins,
 * and where one of them fails all the same, the output stays and the report holds what was measured. `report` may be
 * NULL. Errors as above, CANCELLED when *cancel was raised: then nothing is left either, unless it was raised while
 * comparing or drawing: the output is whole by then and stays, and the message says so. */
GPUCONV_API gpuconv_status gpuconv_convolve_file(const gpuconv_job *job, const gpuconv_config *config,
                                                 gpuconv_report *report, gpuconv_error *error);

/* ---- This machine ----------------------------------------------------------------------------------------------- */

/** Measures in a few seconds what operations cost here, waking the GPU included, and keeps it where plans of later
 * processes find it: $XDG_CACHE_HOME/gpuconv/costs or ~/.cache/gpuconv/costs. Without that file plans use built-in
 * figures. `report` (may be NULL) gets the figures. Not for two threads at once. DEVICE, FILE, MEMORY. */
GPUCONV_API gpuconv_status gpuconv_calibrate(gpuconv_report *report, gpuconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
