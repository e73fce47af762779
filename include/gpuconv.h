/**
 * @file
 * gpuconv: exact linear convolution of audio with impulse responses, on a CPU or an NVIDIA GPU.
 *
 * Conventions
 *
 * - Lengths are frames, 64-bit, never negative. A frame is one sample of every channel.
 * - Samples are 32-bit floats; 1.0 is 0 dBFS. Buffers are planar: one array per channel.
 * - Times are in seconds, levels in decibels, rates in frames per second (Hz).
 * - The result is y[n] = sum over k of h[k] x[n - k], with zeros before and after x: N + M - 1 frames for an input of
 *   N frames and a response of M frames.
 * - Reproducibility: the same input gives the same bytes on the same machine and backend, for any number of threads and
 *   any split into calls, until gpuconv_calibrate changes the costs that plans use. gpuconv_config.frames and
 *   latency_frames are a part of the input here: with latency_frames -1 an unknown length and lengths of 2^23 frames or
 *   more give the same bytes; others may differ from those in the last bits.
 * - Ownership: every _new, _load, _route and every function that derives a response gives an object that the caller
 *   frees with its _free function. Freeing NULL is legal. A function that fails gives no object and sets its output
 *   pointer to NULL.
 * - Structures that may grow (gpuconv_config, gpuconv_preparation, gpuconv_realtime_config, gpuconv_job,
 *   gpuconv_motion_config, gpuconv_progress) begin with their size. Make them with their _default function and then set
 * fields. A program and a library of different versions then work together: fields that the program does not know have
 * their defaults, and a field that the library does not know must be zero, else the call returns ARGUMENT. A binding
 * that cannot use the inline _default function calls the _init function with its own size of the structure.
 * - Thread-safety: gpuconv_ir, gpuconv_plan and gpuconv_sofa are immutable and may be shared by threads. The first two
 * are reference-counted: freeing one while an engine still uses it is legal. A gpuconv_engine and a gpuconv_report
 * belong to one thread at a time. gpuconv_realtime states for each function which thread may call it.
 * - Errors are returned as a gpuconv_status. The documentation of a function lists them without GPUCONV_ERROR_. Any
 *   function that returns a status can also return CANCELLED (see gpuconv_cancel_set). Where a function takes a
 *   gpuconv_error, NULL is legal; the message is one sentence without a full stop that names the file or the value.
 *   The library never prints and never exits.
 * - Builds: the library may be built without the libraries that it uses (docs/install.md). Functions that need one of
 * them then return UNSUPPORTED, and the message names it: libsndfile reads and writes sound files, libsoxr resamples,
 *   libebur128 measures loudness, zlib reads SOFA files, libqhull interpolates between their
 *   directions, jansson holds reports.
 * - NULL: a function that returns a status returns ARGUMENT if an object, a structure, a path or an output pointer is
 *   NULL, unless its documentation allows it. A getter returns 0, GPUCONV_..._AUTO or "" of NULL, gpuconv_ir_taps and
 *   the texts of reports NULL, and a function without a result does nothing.
 * - Files: responses, matrices and lists of directions are read from regular files, after following links. A pipe or a
 *   device returns FILE and never blocks.
 */
#ifndef GPUCONV_H
#define GPUCONV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @cond */
#if defined(__GNUC__)
#define GPUCONV_API __attribute__((visibility("default")))
#else
#define GPUCONV_API
#endif
/** @endcond */

/**
 * @defgroup gpuconv_group_status Status and errors
 * Status of a call, reason of a failure, cancellation, version.
 * @{
 */

/** Status of a call; 0 is success. */
typedef enum gpuconv_status {
    GPUCONV_OK = 0,            /**< success */
    GPUCONV_ERROR_ARGUMENT,    /**< a value outside its documented range */
    GPUCONV_ERROR_MEMORY,      /**< host memory exhausted, or a size that does not fit 64 bits */
    GPUCONV_ERROR_FILE,        /**< a file that cannot be opened, read, written or closed */
    GPUCONV_ERROR_FORMAT,      /**< a file that is not audio, or audio that cannot be used (empty, NaN or infinite) */
    GPUCONV_ERROR_TOPOLOGY,    /**< the channels of input and response do not fit together */
    GPUCONV_ERROR_UNSUPPORTED, /**< the backend, the algorithm or this build cannot do this */
    GPUCONV_ERROR_DEVICE,      /**< the GPU is missing or has failed */
    GPUCONV_ERROR_CANCELLED,   /**< the flag of gpuconv_cancel_set or of the job is set */
    GPUCONV_ERROR_STATE        /**< a call out of order, such as processing after draining */
} gpuconv_status;

/** Reason of a failure as text. This structure never grows. */
typedef struct gpuconv_error {
    gpuconv_status status; /**< the status that the call returned */
    char message[512];     /**< one line of UTF-8 without a full stop; a long path is shortened in the middle */
} gpuconv_error;

/**
 * Installs a flag that cancels the work of the calling thread.
 * Once *flag is non-zero, calls of this library on this thread that would take longer return CANCELLED within about
 * 0.2 s and leave no partial result. An engine that is made meanwhile keeps the flag for its own threads.
 * gpuconv_convolve_file installs the flag of its job. Calls that return no status and gpuconv_realtime_process do not
 * read the flag; the GPU finishes the work that it has received.
 * @param flag  NULL: none (default). It must stay valid, and stay non-zero once it is, until another flag is installed
 *              and the engines made meanwhile are freed. Any thread or signal handler may set it
 * @return the flag that was installed before, or NULL
 */
GPUCONV_API const volatile int *gpuconv_cancel_set(const volatile int *flag);

/** Returns a short static text for a status; "unknown status" for unknown values. */
GPUCONV_API const char *gpuconv_status_text(gpuconv_status status);

/* All builds and packages take their version from these three lines. */
#define GPUCONV_VERSION_MAJOR 0 /**< major version of this header */
#define GPUCONV_VERSION_MINOR 1 /**< minor version of this header */
#define GPUCONV_VERSION_PATCH 0 /**< patch version of this header */

/** Returns the library's version, such as "0.1.0"; static. */
GPUCONV_API const char *gpuconv_version(void);

/** @} */

/**
 * @defgroup gpuconv_group_ir Impulse responses
 * Responses as immutable objects: read, routed, edited, measured.
 * @{
 */

/** An impulse response: a sparse matrix of routes from inputs to outputs, each with its own taps. Immutable. */
typedef struct gpuconv_ir gpuconv_ir;

/**
 * @defgroup gpuconv_group_ir_make Making, reading and routing
 * From samples, sound files and matrix files to a routed response.
 * @{
 */

/**
 * Makes a response with one input and `channels` outputs from samples in memory.
 * @param taps          one array of `frames` finite samples per channel; copied
 * @param channels      1..1024
 * @param frames        at least 1
 * @param rate          1..10000000 Hz
 * @param[out] ir       the response
 * @param[out] error    the reason of a failure; may be NULL
 * @return ARGUMENT (a value out of its range), FORMAT (a tap is NaN or infinite), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_new(const float *const *taps, int channels, int64_t frames, double rate,
                                          gpuconv_ir **ir, gpuconv_error *error);

/**
 * Reads a response from any file that libsndfile reads, or from a text that states a rate (see gpuconv_ir_load_as): one
 * input, one output per channel of the file.
 * @param path        the file
 * @param[out] ir     the response
 * @param[out] error  the reason of a failure; may be NULL
 * @return FILE (missing, unreadable, a pipe or a device), FORMAT (not audio, no frames, NaN or infinity), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_load(const char *path, gpuconv_ir **ir, gpuconv_error *error);

/**
 * Reads a response of any form but SOFA: as gpuconv_ir_load; a matrix (.conf, .matrix, .txt), as
 * gpuconv_ir_load_matrix; a text of coefficients (.txt, .csv, .tsv, .dat, .asc) with a frame in each row and a channel
 * in each column, or with a channel in each row if there are more columns than rows; an array of NumPy (.npy) of
 * float32, float64, int16 or int32, the longer dimension of which is time; samples without a header. A first column of
 * a text that counts frames or seconds is no channel. A .txt is a matrix unless its first row consists of numbers.
 * @param path        the file
 * @param rate        of a file that states none, and of a matrix that names no file, 1..10000000 Hz; 0: such a text or
 *                    array is refused, such a matrix has 48000 Hz
 * @param raw         RATE,CHANNELS,ENCODING of samples without a header, such as "48000,1,double"; NULL: the file has
 * one
 * @param[out] ir     the response
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (rate, raw), FILE, FORMAT, MEMORY, CANCELLED
 */
GPUCONV_API gpuconv_status gpuconv_ir_load_as(const char *path, double rate, const char *raw, gpuconv_ir **ir,
                                              gpuconv_error *error);

/**
 * Routes a response for an input of `inputs` channels. With c channels in the response:
 *
 * - c = 1: every input through the same response;
 * - inputs = 1: one input to c outputs;
 * - c = inputs: channel k through response k;
 * - inputs = 2 and c = 4: true stereo, in the order left-left, left-right, right-left, right-right (source first).
 *
 * @param ir           a response that is not routed yet, or one from a matrix file with `inputs` inputs, which is
 *                     returned as it is
 * @param inputs       1..1024
 * @param[out] routed  the routed response; it shares the taps of `ir`
 * @param[out] error   the reason of a failure; may be NULL
 * @return ARGUMENT (inputs out of range), TOPOLOGY (other channel counts; the message has the counts that fit), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_route(const gpuconv_ir *ir, int inputs, gpuconv_ir **routed,
                                            gpuconv_error *error);

/** Order of the channels of a response file. */
typedef enum gpuconv_layout {
    GPUCONV_LAYOUT_AUTO = 0, /**< as in gpuconv_ir_route */
    GPUCONV_LAYOUT_SOURCE,   /**< every output of the first input, then every output of the second: LL LR RL RR */
    GPUCONV_LAYOUT_OUTPUT,   /**< every input of the first output, then every input of the second: LL RL LR RR */
    GPUCONV_LAYOUT_PACKED, /**< one channel per output; the responses of the inputs follow one another, equally long */
    /** as AUTO, but 4 channels are true stereo for one input too: it feeds both inputs, and there are two outputs. The
     * default of `gpuconv`, `gpuconv play` and `gpuconv live` */
    GPUCONV_LAYOUT_STEREO,
    /** 14 channels of HeSuVi: to the left and right ear from the left (channels 1, 2), side left (3, 4), back left
     * (5, 6), to the left ear from the centre (7), to the right and left ear from the right (8, 9), side right (10, 11)
     * and back right (12, 13), to the right ear from the centre (14); or the first 7, which serve both sides. Inputs
     * are mono, stereo, 3.0, 4.0 (back), 5.0 and 5.1 (side), 7.0 and 7.1 in the order of a WAV; the low-frequency
     * channel comes from the centre */
    GPUCONV_LAYOUT_HESUVI
} gpuconv_layout;

/**
 * Routes a response for an input of `inputs` channels with a given layout.
 * @param ir           as in gpuconv_ir_route
 * @param inputs       1..1024
 * @param layout       SOURCE and OUTPUT need a multiple of `inputs` channels, PACKED a multiple of `inputs` frames and
 * a response that was not edited
 * @param[out] routed  the routed response; it shares the taps of `ir`
 * @param[out] error   the reason of a failure; may be NULL
 * @return ARGUMENT (a value out of its range), TOPOLOGY (the channels do not fit), STATE (PACKED after an edit), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_route_as(const gpuconv_ir *ir, int inputs, gpuconv_layout layout,
                                               gpuconv_ir **routed, gpuconv_error *error);

/**
 * Makes a routed matrix of responses from samples in memory.
 * @param taps        inputs x outputs arrays of `frames` finite samples, copied: taps[input * outputs + output] leads
 *                    from that input to that output; NULL: no route
 * @param inputs      1..1024
 * @param outputs     1..1024
 * @param frames      at least 1
 * @param rate        1..10000000 Hz
 * @param[out] ir     the routed response
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (a value out of its range), FORMAT (a tap is NaN or infinite), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_new_matrix(const float *const *taps, int inputs, int outputs, int64_t frames,
                                                 double rate, gpuconv_ir **ir, gpuconv_error *error);

/**
 * Reads a sparse matrix of routes from a text file. Each line describes one route; # begins a comment:
 *
 *      INPUT OUTPUT FILE [CHANNEL [GAIN [DELAY [OFFSET [LENGTH]]]]]
 *
 * INPUT and OUTPUT are 1..1024. FILE is relative to the folder of the matrix, in double quotes if it contains blanks,
 * or `dirac` for a single tap. CHANNEL counts from 1 (default 1). GAIN is in decibels, -200..200. DELAY before the
 * taps, OFFSET into the file and LENGTH are in seconds (LENGTH 0: to the end). Lines with the same input and output
 * are summed.
 *
 * The fields are divided by blanks, or by the semicolon or comma that follows the first one; empty fields have their
 * default. A file name that ends in .conf is read as a jconvolver configuration: /cd, /convolver/new, /impulse/read,
 * /impulse/dirac, /impulse/hilbert and /impulse/copy; there gains are factors, times are frames (offset and length
 * those of the file), and names of inputs and outputs are ignored. The rate of the response is that of the first file;
 * parts of files of another rate are resampled to it. Each file is read once, and many files at the same time on all
 * cores.
 * @param path        the text file
 * @param rate        1..10000000 Hz: the rate of the response if no line names a file
 * @param[out] ir     the routed response
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (rate), FILE, FORMAT (the message names the line), MEMORY, CANCELLED
 */
GPUCONV_API gpuconv_status gpuconv_ir_load_matrix(const char *path, double rate, gpuconv_ir **ir, gpuconv_error *error);

/** @} */

/**
 * @defgroup gpuconv_group_ir_edit Editing
 * Each function returns a new response, which records the change.
 * @{
 */

/**
 * Resamples a response (soxr, very high quality, linear phase).
 * Its level is multiplied by old / new rate, so that convolving the resampled input gives the resampled output. If the
 * response begins abruptly, the interpolation filter rings before its first frame; these frames are kept as a lead (see
 * gpuconv_ir_lead). If it ends abruptly, the filter rings behind its last frame: the new response has frames x new /
 * old rate frames, rounded up, and the ringing, which is kept until -120 dB of the energy remain, over fewer than 130
 * frames of the lower rate. Its gain is that of the response within 0.01 dB up to 0.9 of the lower Nyquist frequency.
 * @param ir              the response
 * @param rate            1..10000000 Hz, and 1/1000 to 1000 times the old rate
 * @param[out] resampled  the new response
 * @param[out] error      the reason of a failure; may be NULL
 * @return ARGUMENT (rate), MEMORY (the message has the sizes), CANCELLED
 */
GPUCONV_API gpuconv_status gpuconv_ir_resample(const gpuconv_ir *ir, double rate, gpuconv_ir **resampled,
                                               gpuconv_error *error);

/**
 * Cuts out a part of a response.
 * @param ir          the response
 * @param start       first frame, 0 or more
 * @param frames      1 or more; -1: to the end. A part that ends behind the response is shortened
 * @param[out] cut    the new response
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (a value out of its range, or `start` behind the end), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_cut(const gpuconv_ir *ir, int64_t start, int64_t frames, gpuconv_ir **cut,
                                          gpuconv_error *error);

/**
 * Cuts off the end that stays below a level.
 * @param ir            the response
 * @param decibels      level relative to the peak of all channels, below 0, at least -300
 * @param[out] trimmed  the new response
 * @param[out] error    the reason of a failure; may be NULL
 * @return ARGUMENT (decibels), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_trim(const gpuconv_ir *ir, double decibels, gpuconv_ir **trimmed,
                                           gpuconv_error *error);

/** Time zero of a response. */
typedef enum gpuconv_align {
    GPUCONV_ALIGN_NONE = 0, /**< unchanged */
    GPUCONV_ALIGN_ONSET,    /**< frames before the first one within 60 dB of the peak are cut off */
    GPUCONV_ALIGN_PEAK      /**< the peak is time zero; the frames before it are a lead */
} gpuconv_align;

/**
 * Removes the delay at the beginning of a response.
 * @param ir            the response
 * @param how           what becomes time zero
 * @param[out] aligned  the new response
 * @param[out] error    the reason of a failure; may be NULL
 * @return ARGUMENT (unknown value), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_align(const gpuconv_ir *ir, gpuconv_align how, gpuconv_ir **aligned,
                                            gpuconv_error *error);

/**
 * Fades a response in and out, with half a cosine each.
 * @param ir          the response
 * @param in          frames of the fade-in, 0 or more; at most the whole response is faded
 * @param out         frames of the fade-out, likewise
 * @param[out] faded  the new response
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (negative length), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_fade(const gpuconv_ir *ir, int64_t in, int64_t out, gpuconv_ir **faded,
                                           gpuconv_error *error);

/**
 * Reverses a response in time.
 * @param ir             the response
 * @param[out] reversed  the new response
 * @param[out] error     the reason of a failure; may be NULL
 * @return MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_reverse(const gpuconv_ir *ir, gpuconv_ir **reversed, gpuconv_error *error);

/**
 * Puts silence before a response.
 * @param ir            the response
 * @param frames        0 or more
 * @param[out] delayed  the new response
 * @param[out] error    the reason of a failure; may be NULL
 * @return ARGUMENT (frames), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_delay(const gpuconv_ir *ir, int64_t frames, gpuconv_ir **delayed,
                                            gpuconv_error *error);

/**
 * Stretches a response in time: its spectrum moves down by the same factor, at an unchanged gain.
 * @param ir              the response
 * @param factor          new / old length, 0.01..100
 * @param[out] stretched  the new response
 * @param[out] error      the reason of a failure; may be NULL
 * @return ARGUMENT (factor), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_stretch(const gpuconv_ir *ir, double factor, gpuconv_ir **stretched,
                                              gpuconv_error *error);

/**
 * Replaces every channel by the minimum-phase response with the same magnitude spectrum.
 * Computed from the folded real cepstrum (Oppenheim & Schafer, Discrete-Time Signal Processing, 3rd ed., sec. 13.6);
 * magnitudes lower than 200 dB under the peak are raised to that level.
 * @param ir            the response
 * @param[out] minimal  the new response
 * @param[out] error    the reason of a failure; may be NULL
 * @return MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_minimum_phase(const gpuconv_ir *ir, gpuconv_ir **minimal, gpuconv_error *error);

/**
 * Convolves two responses into one of Ma + Mb - 1 frames that acts as both in series.
 * Both have the same number of channels, or one of them has one channel, which applies to all channels of the other.
 * @param first       a response
 * @param second      another of the same rate
 * @param[out] both   the new response
 * @param[out] error  the reason of a failure; may be NULL
 * @return TOPOLOGY (channel counts), ARGUMENT (rates differ, or the result exceeds the range of floats), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_series(const gpuconv_ir *first, const gpuconv_ir *second, gpuconv_ir **both,
                                             gpuconv_error *error);

/** @} */

/**
 * @defgroup gpuconv_group_ir_level Levels
 * Gain, normalisation, and the mix with the input itself.
 * @{
 */

/**
 * Multiplies every tap by 10^(decibels / 20).
 * @param ir           the response
 * @param decibels     -200..200
 * @param[out] scaled  the new response
 * @param[out] error   the reason of a failure; may be NULL
 * @return ARGUMENT (decibels, or the result exceeds the range of floats), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_gain(const gpuconv_ir *ir, double decibels, gpuconv_ir **scaled,
                                           gpuconv_error *error);

/** Target of a normalisation, which applies one gain to all routes. */
typedef enum gpuconv_normalize {
    GPUCONV_NORMALIZE_NONE = 0, /**< no gain */
    GPUCONV_NORMALIZE_PEAK,     /**< the largest magnitude of all taps becomes 1 */
    GPUCONV_NORMALIZE_L1,       /**< the largest sum of magnitudes into an output becomes 1: no input can clip */
    GPUCONV_NORMALIZE_ENERGY,   /**< the largest energy into an output becomes 1: white noise keeps its level */
    GPUCONV_NORMALIZE_LOUDNESS  /**< pink noise keeps its loudness (ITU-R BS.1770, measured by libebur128) */
} gpuconv_normalize;

/**
 * Normalises a routed response with one gain for all routes. Silence before or after the response does not change it.
 * @param ir               the routed response
 * @param how              the target
 * @param[out] decibels    the gain that was applied; may be NULL; unchanged on failure
 * @param[out] normalized  the new response
 * @param[out] error       the reason of a failure; may be NULL
 * @return ARGUMENT (unknown value; LOUDNESS at a rate outside of 16..2822400 Hz; the result exceeds the range of
 *         floats), FORMAT (the response is silent, or would need more than 400 dB), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_normalize(const gpuconv_ir *ir, gpuconv_normalize how, double *decibels,
                                                gpuconv_ir **normalized, gpuconv_error *error);

/**
 * Mixes the input itself into a routed response: the response times 10^(wet / 20), plus the input times 10^(dry / 20).
 * Input k is added to output k; a single input is added to every output. A missing route is created.
 * @param ir          the routed response
 * @param wet         -200..200 dB; -INFINITY: without the response
 * @param dry         -200..200 dB; -INFINITY: without the input
 * @param[out] mixed  the new response
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (a level, a response that is not routed, or the result exceeds the range of floats), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_ir_mix(const gpuconv_ir *ir, double wet, double dry, gpuconv_ir **mixed,
                                          gpuconv_error *error);

/** @} */

/**
 * @defgroup gpuconv_group_ir_properties Properties
 * Size, taps, peak, onset and history of a response.
 * @{
 */

GPUCONV_API int gpuconv_ir_inputs(const gpuconv_ir *ir);     /**< number of inputs, at least 1 */
GPUCONV_API int gpuconv_ir_outputs(const gpuconv_ir *ir);    /**< number of outputs, at least 1 */
GPUCONV_API int gpuconv_ir_routes(const gpuconv_ir *ir);     /**< number of routes, at least 1 */
GPUCONV_API int64_t gpuconv_ir_frames(const gpuconv_ir *ir); /**< length of every route, at least 1 */
GPUCONV_API double gpuconv_ir_rate(const gpuconv_ir *ir);    /**< frames per second */

/**
 * Returns the number of frames before the response's time zero, mostly 0.
 * A convolution begins with as many frames that belong before the input: gpuconv_convolve_file leaves them out; in real
 * time they are latency.
 */
GPUCONV_API int64_t gpuconv_ir_lead(const gpuconv_ir *ir);

/**
 * Returns the taps of the route from an input to an output (both from 0): gpuconv_ir_frames of them, owned by the
 * response. NULL if there is no such route.
 */
GPUCONV_API const float *gpuconv_ir_taps(const gpuconv_ir *ir, int input, int output);

/**
 * Returns the first frame with the largest magnitude of all channels.
 * @param ir              the response
 * @param[out] magnitude  that magnitude; may be NULL
 */
GPUCONV_API int64_t gpuconv_ir_peak(const gpuconv_ir *ir, double *magnitude);

/**
 * Returns the number of frames before the response first reaches a level; they are heard as latency.
 * @param ir        the response
 * @param decibels  level relative to the peak, below 0; other values, NaN too, count as 0
 */
GPUCONV_API int64_t gpuconv_ir_onset(const gpuconv_ir *ir, double decibels);

/**
 * Returns the changes since the response was read, such as "trimmed to 1.2 s; reversed"; "": none. Owned by the
 * response.
 */
GPUCONV_API const char *gpuconv_ir_history(const gpuconv_ir *ir);

/** @} */

/** Drops one reference; the last one frees the response. */
GPUCONV_API void gpuconv_ir_free(gpuconv_ir *ir);

/**
 * @defgroup gpuconv_group_ir_prepare Preparation
 * All steps from a file to a routed response, in one call.
 * @{
 */

/** How a set of measured responses (a SOFA file) gives the response of a direction. */
typedef enum gpuconv_interpolate {
    GPUCONV_INTERPOLATE_AUTO = 0, /**< TRIANGLE, or NEAREST in a build without libqhull */
    GPUCONV_INTERPOLATE_NEAREST,  /**< that of the measurement nearest in direction */
    /** between the three measurements around the direction: their delays, and their responses aligned by these, are
     * averaged with weights. A measured direction gives its own response */
    GPUCONV_INTERPOLATE_TRIANGLE
} gpuconv_interpolate;

/** How ambisonics of order N are decoded above N x 624 Hz, where they no longer describe a head. Below that frequency
 * all decoders are the least-squares fit to the measured directions. */
typedef enum gpuconv_decode {
    GPUCONV_DECODE_AUTO = 0,      /**< MAGLS */
    GPUCONV_DECODE_LEAST_SQUARES, /**< the same fit at all frequencies */
    GPUCONV_DECODE_ALIGNED,       /**< least squares of responses without their differences in delay */
    GPUCONV_DECODE_MAGLS          /**< least squares of the magnitudes, with phases that go on from below */
} gpuconv_decode;

/** Convention of ambisonic input: order and normalisation of its channels. */
typedef enum gpuconv_ambisonics {
    GPUCONV_AMBISONICS_SN3D = 0, /**< ACN, SN3D (AmbiX) */
    GPUCONV_AMBISONICS_N3D,      /**< ACN, N3D */
    GPUCONV_AMBISONICS_FUMA /**< Furse-Malham: W X Y Z R S T U V K L M N O P Q, maxN and W / sqrt(2); up to order 3 */
} gpuconv_ambisonics;

/** Steps that prepare a response file for a convolution, in the order in which they are applied. */
typedef struct gpuconv_preparation {
    size_t size;                 /**< bytes of the structure, set by gpuconv_preparation_default */
    gpuconv_layout layout;       /**< order of its channels */
    double start;                /**< seconds cut off the beginning, 0..1000000 */
    double length;               /**< seconds kept from there, 0..1000000; 0: to the end */
    double trim;                 /**< dB relative to the peak, -300..0: the end below it is cut off; 0: it is kept */
    gpuconv_align align;         /**< time zero */
    bool reverse;                /**< reversed in time */
    double stretch;              /**< 0.01..100; 0 counts as 1 */
    bool minimum_phase;          /**< converted to minimum phase */
    double fade;                 /**< seconds of fade-out at the end, 0..1000000 */
    const char *const *series;   /**< paths of responses that are put in series, each of one channel, which applies to
                                    all, or of the same layout; may be NULL if there are none */
    int series_count;            /**< number of these paths, 0 or more */
    double predelay;             /**< seconds of silence before it, 0..1000000 */
    gpuconv_normalize normalize; /**< one gain for all routes */
    double gain;                 /**< dB, -200..200 */
    double wet;                  /**< gain of the response in dB, -200..200; -INFINITY: without it */
    double dry;                  /**< gain of the input itself in dB, -200..200; -INFINITY: without it */
    const char *direction;       /**< of a SOFA file: AZIMUTH,ELEVATION[,DISTANCE] of a mono input in degrees (to the
                                    left, up) and metres; NULL: none */
    const char *speakers;        /**< of a SOFA file: where the channels of the input come from: mono, stereo, 5.1, 7.1,
                                    5.1.4, 7.1.4, ambisonic (ACN, SN3D), or a text file of directions; NULL: none */
    double yaw;                  /**< of a SOFA file: the head is turned to the left, -360..360 degrees */
    double pitch;                /**< the same, up */
    double roll;                 /**< the same, to the right */
    gpuconv_interpolate interpolate; /**< of a SOFA file: how directions between the measured ones are made */
    bool by_distance;      /**< of a SOFA file: the gain is the measured distance divided by that of the direction */
    gpuconv_decode decode; /**< of a SOFA file, with the speakers "ambisonic" */
    bool diffuse_eq;       /**< the same: every frequency gets the energy of the measurements over all directions */
    double file_rate;      /**< rate of files that state none (text, .npy), 1..10000000 Hz; 0: such files are refused */
    const char *raw; /**< RATE,CHANNELS,ENCODING of a response without a header, such as "48000,1,double"; NULL: it
                          has one. Files in series have one */
    gpuconv_ambisonics ambisonics; /**< of a SOFA file, with the speakers "ambisonic": convention of the input */
} gpuconv_preparation;

/** Fills in a preparation that changes nothing. `size` is its sizeof. For bindings; in C use the function below. */
GPUCONV_API void gpuconv_preparation_init(gpuconv_preparation *preparation, size_t size);

/** Returns a preparation that changes nothing: everything zero, but dry -INFINITY. */
static inline gpuconv_preparation gpuconv_preparation_default(void) {
    gpuconv_preparation preparation;
    gpuconv_preparation_init(&preparation, sizeof preparation);
    return preparation;
}

/**
 * Reads a response, a matrix (.conf, .txt, .matrix) or responses of a SOFA file (.sofa), divides it if it is packed,
 * takes the part from `start` on, resamples it to `rate`, applies the other steps and routes it.
 * @param path         the file; every message begins with it
 * @param preparation  the steps; NULL: none
 * @param inputs       channels of the input, 1..1024
 * @param rate         rate of the input, 1..10000000 Hz
 * @param[out] ir      the routed response
 * @param[out] error   the reason of a failure; may be NULL
 * @return ARGUMENT (a value out of its range), FILE, FORMAT, TOPOLOGY, MEMORY, CANCELLED, UNSUPPORTED (a build without
 * a library that a step needs)
 */
GPUCONV_API gpuconv_status gpuconv_ir_prepare(const char *path, const gpuconv_preparation *preparation, int inputs,
                                              double rate, gpuconv_ir **ir, gpuconv_error *error);

/** @} */

/**
 * @defgroup gpuconv_group_sofa Sets of measured directions
 * A SOFA file (AES69) that is read once and gives the responses of any directions.
 * @{
 */

/**
 * An open set: responses from the directions of sources to the receivers (ears) of a listener. Immutable; any number of
 * threads may use one at the same time. A set of several distances gives responses of the nearest one: distances that
 * differ by less than 3 % are one, and those with fewer than 12 directions are not told apart.
 */
typedef struct gpuconv_sofa gpuconv_sofa;

/**
 * Reads a SOFA file of impulse responses, such as head-related ones (SimpleFreeFieldHRIR, GeneralFIR).
 * @param path        the file
 * @param rate        1..10000000 Hz: the responses are resampled to it, as by gpuconv_ir_resample; 0: their own
 * @param[out] set    the open set; free it with gpuconv_sofa_free once no thread uses it
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (rate), FILE, FORMAT, MEMORY, CANCELLED, UNSUPPORTED (a build without zlib, or without libsoxr for
 *         another rate)
 */
GPUCONV_API gpuconv_status gpuconv_sofa_open(const char *path, double rate, gpuconv_sofa **set, gpuconv_error *error);

/** Frees a set. Responses that were made of it stay valid. */
GPUCONV_API void gpuconv_sofa_free(gpuconv_sofa *set);

GPUCONV_API int gpuconv_sofa_directions(const gpuconv_sofa *set);    /**< number of measured directions, at least 1 */
GPUCONV_API int gpuconv_sofa_receivers(const gpuconv_sofa *set);     /**< number of receivers, at least 1 */
GPUCONV_API double gpuconv_sofa_rate(const gpuconv_sofa *set);       /**< frames per second */
GPUCONV_API int64_t gpuconv_sofa_frames(const gpuconv_sofa *set);    /**< length of what gpuconv_sofa_respond writes */
GPUCONV_API int64_t gpuconv_sofa_lead(const gpuconv_sofa *set);      /**< frames of it before time zero: a latency */
GPUCONV_API const char *gpuconv_sofa_title(const gpuconv_sofa *set); /**< title in the file, or "" */

/**
 * Writes the position of a measured direction.
 * @param set          an open set
 * @param direction    0..gpuconv_sofa_directions - 1; another one writes zeros
 * @param[out] xyz     metres to the front, to the left, up
 */
GPUCONV_API void gpuconv_sofa_position(const gpuconv_sofa *set, int direction, double xyz[3]);

/**
 * Returns the number of the measured direction that is nearest to one; 0 if an argument is NULL.
 * @param set           an open set
 * @param xyz           to the front, to the left, up; finite. Its length chooses among distances
 * @param[out] degrees  the angle between them; may be NULL
 */
GPUCONV_API int gpuconv_sofa_nearest(const gpuconv_sofa *set, const double xyz[3], double *degrees);

/**
 * Writes the responses of directions, each with the lead of the set: in about 0.03 ms for one of 256 frames and two
 * receivers.
 * @param set          an open set
 * @param xyz          `count` x 3: to the front, to the left, up; in metres, finite, not all zero
 * @param count        1 or more
 * @param interpolate  how they are made
 * @param by_distance  the gain is the measured distance divided by the wanted one; without it, 1
 * @param[out] taps    `count` x receivers x frames, row by row; undefined after a failure
 * @param[out] error   the reason of a failure; may be NULL
 * @return ARGUMENT (a value out of its range), UNSUPPORTED (TRIANGLE without libqhull), MEMORY, CANCELLED
 */
GPUCONV_API gpuconv_status gpuconv_sofa_respond(const gpuconv_sofa *set, const double *xyz, int64_t count,
                                                gpuconv_interpolate interpolate, bool by_distance, float *taps,
                                                gpuconv_error *error);

/**
 * As gpuconv_sofa_respond, for a head that is turned: in a set of several loudspeakers the nearest one in the room is
 * chosen, and then the orientation of the head.
 * @param set          an open set
 * @param xyz          `count` x 3: directions in the room
 * @param count        1 or more
 * @param preparation  of its steps interpolate, by_distance, yaw, pitch and roll are used; NULL: the defaults
 * @param[out] taps    `count` x receivers x frames, row by row; undefined after a failure
 * @param[out] error   the reason of a failure; may be NULL
 * @return as gpuconv_sofa_respond
 */
GPUCONV_API gpuconv_status gpuconv_sofa_respond_turned(const gpuconv_sofa *set, const double *xyz, int64_t count,
                                                       const gpuconv_preparation *preparation, float *taps,
                                                       gpuconv_error *error);

/**
 * Does what gpuconv_ir_prepare does with the file of an open set, at the rate of the set.
 * @param set          an open set
 * @param preparation  the steps; NULL: none
 * @param inputs       channels of the input, 1..1024
 * @param[out] ir      the routed response
 * @param[out] error   the reason of a failure; may be NULL
 * @return as gpuconv_ir_prepare
 */
GPUCONV_API gpuconv_status gpuconv_sofa_prepare(const gpuconv_sofa *set, const gpuconv_preparation *preparation,
                                                int inputs, gpuconv_ir **ir, gpuconv_error *error);

/** @} */

/** Backend that computes. @ingroup gpuconv_group_config */
typedef enum gpuconv_backend {
    GPUCONV_BACKEND_AUTO = 0, /**< the one that the plan predicts to be faster */
    GPUCONV_BACKEND_CPU,      /**< the processor */
    GPUCONV_BACKEND_CUDA      /**< an NVIDIA GPU */
} gpuconv_backend;

/**
 * @defgroup gpuconv_group_motion Moving sources
 * Sources that move before the receivers of a set, from any block length.
 * @{
 */

/** Where the channels of an input are at any time. Immutable, may be shared by threads. */
typedef struct gpuconv_path gpuconv_path;

/**
 * Makes a path from rows. Azimuth, elevation and distance are each linear between two rows, so that azimuths of 0 and
 * 720 make two turns; before the first row and after the last one they stay.
 * @param seconds      `count` times that rise from 0
 * @param directions   `count` x channels x 3: azimuth (to the left) up to +-1000000 degrees, elevation -90..90 degrees,
 *                     distance 0.01..1000 m
 * @param count        1 or more
 * @param channels     1..16384
 * @param[out] path    the path; copies of the rows
 * @param[out] error   the reason of a failure; may be NULL
 * @return ARGUMENT (a value out of its range), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_path_new(const double *seconds, const double *directions, int64_t count,
                                            int channels, gpuconv_path **path, gpuconv_error *error);

/**
 * Reads a path from a text file: a line for each row, SECONDS and AZIMUTH, ELEVATION[, DISTANCE] for each channel (1 m
 * without), divided by semicolons, tabs, commas or blanks; numbers may have decimal commas where no comma divides them.
 * # begins a comment, and lines of words before the first row are headings. Or a recording of
 * OSC as oscdump of liblo prints it: a message ADDRESS AZIMUTH ELEVATION DISTANCE, whose address ends in NUMBER/aed, is
 * for the channel NUMBER (1 is the first one), and the first message is at 0 s. Azimuths go the short way from one
 * message to the next; other messages are left out.
 * @param name        the file
 * @param channels    1..1024
 * @param[out] path   the path
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (channels), FILE, FORMAT (the message names the line), MEMORY, CANCELLED
 */
GPUCONV_API gpuconv_status gpuconv_path_load(const char *name, int channels, gpuconv_path **path, gpuconv_error *error);

/**
 * Makes the path of sources that stay where they are, before a head that turns.
 * @param place        a direction, a layout, a text file or "ambisonic", as gpuconv_preparation.direction and .speakers
 * @param channels     1..1024
 * @param[out] path    the path
 * @param[out] error   the reason of a failure; may be NULL
 * @return ARGUMENT (no such layout), TOPOLOGY (the layout has another number of channels), FILE, FORMAT, MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_path_new_still(const char *place, int channels, gpuconv_path **path,
                                                  gpuconv_error *error);

/** Frees a path. */
GPUCONV_API void gpuconv_path_free(gpuconv_path *path);

/** How a listener's head is turned at any time. Immutable, may be shared by threads. */
typedef struct gpuconv_head gpuconv_head;

/**
 * Makes a head from rows. Yaw, pitch and roll are each linear between two rows; before the first row and after the last
 * one they stay.
 * @param seconds     `count` times that rise from 0
 * @param angles      `count` x 3: yaw (to the left), pitch (up), roll (to the right), up to +-1000000 degrees; the head
 *                    is turned by the yaw first
 * @param count       1 or more
 * @param[out] head   the head; copies of the rows
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (a value out of its range), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_head_new(const double *seconds, const double *angles, int64_t count,
                                            gpuconv_head **head, gpuconv_error *error);

/**
 * Reads a head from a text file: a line for each row, SECONDS YAW [PITCH [ROLL]], as gpuconv_path_load; or a recording
 * of OSC whose addresses end in ypr, with three values. Angles go the short way from one message to the next.
 * @param name        the file
 * @param[out] head   the head
 * @param[out] error  the reason of a failure; may be NULL
 * @return FILE, FORMAT (the message names the line), MEMORY, CANCELLED
 */
GPUCONV_API gpuconv_status gpuconv_head_load(const char *name, gpuconv_head **head, gpuconv_error *error);

/** Frees a head. */
GPUCONV_API void gpuconv_head_free(gpuconv_head *head);

/** How sources move. */
typedef struct gpuconv_motion_config {
    size_t size;                     /**< bytes of the structure, set by gpuconv_motion_config_default */
    double interval;                 /**< seconds after which responses are exchanged, 0.0001..1; 0.005 (default) */
    gpuconv_interpolate interpolate; /**< between the directions of the set */
    bool by_distance;                /**< the gain is the measured distance divided by that of the path */
    bool doppler; /**< the sound arrives distance / (343 m/s) later, so that its pitch changes with the speed */
    int threads;  /**< 1..1024; 0 (default): one per core */
    const gpuconv_head *head; /**< the listener's head turns; must outlive the sources. NULL (default): it does not */
    gpuconv_decode decode;    /**< of ambisonics, as in gpuconv_preparation */
    bool diffuse_eq;          /**< the same */
    gpuconv_backend backend;  /**< CUDA: rendered on a GPU, ambisonics excepted; else (default) on the CPU */
    int device;               /**< CUDA device number, 0 (default).. ; -1: the one with the most multiprocessors */
    gpuconv_ambisonics ambisonics; /**< as in gpuconv_preparation */
} gpuconv_motion_config;

/** Fills in the defaults. `size` is the structure's sizeof. For bindings; in C use the function below. */
GPUCONV_API void gpuconv_motion_config_init(gpuconv_motion_config *config, size_t size);

/** Returns the defaults. */
static inline gpuconv_motion_config gpuconv_motion_config_default(void) {
    gpuconv_motion_config config;
    gpuconv_motion_config_init(&config, sizeof config);
    return config;
}

/**
 * Moving sources: every channel of an input along its path to the receivers of a set. Each interval all responses are
 * exchanged: their delays go in a straight line, and the rest crosses over. The result does not depend on the lengths
 * of the blocks. One thread at a time.
 */
typedef struct gpuconv_motion gpuconv_motion;

/**
 * Makes moving sources. The first ones of a set measure the delays of all its responses, in about 0.1 ms each.
 * @param set           an open set; the input and the result have its rate. Must outlive the sources
 * @param path          has the channels of the input. Must outlive the sources
 * @param config        NULL: the defaults
 * @param[out] motion   the sources
 * @param[out] error    the reason of a failure; may be NULL
 * @return ARGUMENT (a value out of its range; ambisonics in a room of several loudspeakers), TOPOLOGY (too few
 *         directions for ambisonics), UNSUPPORTED (TRIANGLE without libqhull; responses that are too long for a GPU; a
 *         build without CUDA), DEVICE, MEMORY, CANCELLED
 */
GPUCONV_API gpuconv_status gpuconv_motion_new(const gpuconv_sofa *set, const gpuconv_path *path,
                                              const gpuconv_motion_config *config, gpuconv_motion **motion,
                                              gpuconv_error *error);

/** Frees moving sources. */
GPUCONV_API void gpuconv_motion_free(gpuconv_motion *motion);

/** Returns one sentence: where the sources are rendered, and how. */
GPUCONV_API const char *gpuconv_motion_plan(const gpuconv_motion *motion);

/** Returns the channels of the result. */
GPUCONV_API int gpuconv_motion_receivers(const gpuconv_motion *motion);

/** Returns by how many frames the result is longer than the input. */
GPUCONV_API int64_t gpuconv_motion_tail(const gpuconv_motion *motion);

/**
 * Takes a block of the input and computes the frames of the result that no later block changes.
 * @param motion      moving sources
 * @param in          one array of `frames` samples for each channel of the path
 * @param frames      0 or more; 0: the input has ended, and the rest is computed
 * @param[out] error  the reason of a failure, after which the sources can only be freed; may be NULL
 * @return ARGUMENT (frames), STATE (the input has ended), DEVICE, MEMORY, CANCELLED
 */
GPUCONV_API gpuconv_status gpuconv_motion_feed(gpuconv_motion *motion, const float *const *in, int64_t frames,
                                               gpuconv_error *error);

/**
 * Gives the next frames of the result, of which those of 1 to 64 intervals are computed at a time.
 * @param motion       moving sources
 * @param[out] out     one array with room for `capacity` samples for each receiver of the set
 * @param capacity     0 or more
 * @param[out] frames  how many were written; fewer than `capacity` if no more are complete
 * @return ARGUMENT (NULL)
 */
GPUCONV_API gpuconv_status gpuconv_motion_fetch(gpuconv_motion *motion, float *const *out, int64_t capacity,
                                                int64_t *frames);

/**
 * Starts a thread that renders the sources for a sound device, instead of feed and fetch: gpuconv_motion_process gives
 * the same frames, later by gpuconv_motion_latency. That is two intervals or the longest block if it is longer, one
 * block, and what lies before time zero in the set.
 * @param motion      moving sources that were not fed
 * @param block       frames of the longest block of gpuconv_motion_process, 1..1048576; 0: no thread is started.
 *                    gpuconv_motion_process then renders itself, in blocks of any length, for a few sources: later by
 * one interval and what lies before time zero. Give the configuration one thread, or it locks
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (block), STATE (started or fed before), MEMORY, CANCELLED
 */
GPUCONV_API gpuconv_status gpuconv_motion_start(gpuconv_motion *motion, int block, gpuconv_error *error);

/**
 * Takes a block and gives one of the same length. Does not wait, lock or allocate: for the callback of a sound device.
 * Frames that the thread has not rendered in time are silence.
 * @param motion      started sources
 * @param in          one array of `frames` samples for each channel of the path
 * @param[out] out    one array for each receiver of the set; not one of those of the input
 * @param frames      1..the longest block
 */
GPUCONV_API void gpuconv_motion_process(gpuconv_motion *motion, const float *const *in, float *const *out,
                                        int64_t frames);

/** Moves path and head to a frame, at which the next block of the input then is: of a file that is played from another
 * place. Does not wait, lock or allocate. */
GPUCONV_API void gpuconv_motion_seek(gpuconv_motion *motion, int64_t frame);

/** Turns the head from the next interval on, instead of gpuconv_motion_config.head: as a head tracker says. Does not
 * wait, lock or allocate; any thread may call it.
 * @param motion  moving sources
 * @param angles  yaw, pitch and roll in degrees, finite: to the left, up, to the right */
GPUCONV_API void gpuconv_motion_turn(gpuconv_motion *motion, const double angles[3]);

/** Places a channel from the next interval on, instead of its path: as a control says. Does not wait, lock or allocate;
 * any thread may call it.
 * @param motion     moving sources; those of ambisonics stay
 * @param channel    0.. ; another one is ignored
 * @param direction  azimuth, elevation and distance in the ranges of gpuconv_path_new */
GPUCONV_API void gpuconv_motion_place(gpuconv_motion *motion, int channel, const double direction[3]);

GPUCONV_API int64_t gpuconv_motion_latency(const gpuconv_motion *motion); /**< frames; 0 if they were not started */
GPUCONV_API int64_t gpuconv_motion_late(const gpuconv_motion *motion);    /**< frames that were not rendered in time */

/** @} */

/** @} */

/**
 * @defgroup gpuconv_group_config Configuration
 * The choices of a plan.
 * @{
 */

/** Convolution algorithm. */
typedef enum gpuconv_algorithm {
    GPUCONV_ALGORITHM_AUTO = 0,     /**< the one that the plan predicts to be fastest */
    GPUCONV_ALGORITHM_DIRECT,       /**< direct convolution in the time domain, for short responses */
    GPUCONV_ALGORITHM_OVERLAP_SAVE, /**< overlap-save with one FFT longer than the response */
    GPUCONV_ALGORITHM_PARTITIONED,  /**< uniformly partitioned overlap-save with a frequency-domain delay line */
    GPUCONV_ALGORITHM_MATRIX        /**< for each bin, the matrix of responses times the inputs: for dense matrices */
} gpuconv_algorithm;

/** Configuration of a plan. */
typedef struct gpuconv_config {
    size_t size;                 /**< bytes of the structure, set by gpuconv_config_default */
    gpuconv_backend backend;     /**< AUTO: the plan chooses */
    gpuconv_algorithm algorithm; /**< AUTO: the plan chooses */
    int device;                  /**< CUDA device number, 0.. ; -1 (default): the one with the most multiprocessors */
    int threads;                 /**< CPU threads, 1..1024; 0 (default): one per core. Samples do not depend on it */
    int64_t frames; /**< expected length of the input, for the choice of the sizes; -1 (default): unknown */
    /** most frames of gpuconv_plan_latency, 1024.. ; -1: any number, for the least work; 0 (default): 8192 if `frames`
     * is -1, else any number. gpuconv_convolve_file ignores it */
    int64_t latency_frames;
} gpuconv_config;

/** Fills in the defaults. `size` is the structure's sizeof. For bindings; in C use the function below. */
GPUCONV_API void gpuconv_config_init(gpuconv_config *config, size_t size);

/** Returns the defaults named above; backend and algorithm are AUTO. */
static inline gpuconv_config gpuconv_config_default(void) {
    gpuconv_config config;
    gpuconv_config_init(&config, sizeof config);
    return config;
}

GPUCONV_API const char *gpuconv_backend_name(gpuconv_backend backend);       /**< "auto", "cpu", "cuda"; static */
GPUCONV_API const char *gpuconv_algorithm_name(gpuconv_algorithm algorithm); /**< such as "overlap-save"; static */

/** @} */

/**
 * @defgroup gpuconv_group_plan Plans
 * The choice of backend, algorithm and sizes for a response.
 * @{
 */

/** Backend, algorithm and sizes chosen for a response. Immutable; may be shared by threads. */
typedef struct gpuconv_plan gpuconv_plan;

/**
 * Chooses backend, algorithm and sizes for a routed response.
 * An automatic backend falls back to the CPU; gpuconv_plan_note then tells the reason.
 * @param ir          the routed response; the plan keeps a reference to it
 * @param config      what to choose from
 * @param[out] plan   the plan
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (a value unknown or out of its range), DEVICE (the named backend has no usable device), UNSUPPORTED
 * (the named backend or algorithm cannot do this), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_plan_new(const gpuconv_ir *ir, const gpuconv_config *config, gpuconv_plan **plan,
                                            gpuconv_error *error);

GPUCONV_API gpuconv_backend gpuconv_plan_backend(const gpuconv_plan *plan);     /**< its backend, never AUTO */
GPUCONV_API gpuconv_algorithm gpuconv_plan_algorithm(const gpuconv_plan *plan); /**< its algorithm, never AUTO */
GPUCONV_API const char *gpuconv_plan_device(const gpuconv_plan *plan);          /**< name of the processor or GPU */
GPUCONV_API const char *gpuconv_plan_reason(const gpuconv_plan *plan); /**< one sentence: the reason of the choice */
GPUCONV_API const char *gpuconv_plan_note(const gpuconv_plan *plan);   /**< one sentence on a fallback, or "" */
GPUCONV_API int gpuconv_plan_threads(const gpuconv_plan *plan);        /**< CPU threads, at least 1 */
GPUCONV_API int64_t gpuconv_plan_chunk(const gpuconv_plan *plan);      /**< frames that the backend gets at a time */
GPUCONV_API int64_t gpuconv_plan_latency(const gpuconv_plan *plan);    /**< frames by which output may lag behind */
GPUCONV_API int64_t gpuconv_plan_transform(const gpuconv_plan *plan);  /**< points of the FFT; 0 for direct */
GPUCONV_API int64_t gpuconv_plan_hop(const gpuconv_plan *plan);        /**< output frames per FFT */
GPUCONV_API int64_t gpuconv_plan_partitions(const gpuconv_plan *plan); /**< partitions of the response */
/** Drops one reference; the last one frees the plan. */
GPUCONV_API void gpuconv_plan_free(gpuconv_plan *plan);

/** @} */

/**
 * @defgroup gpuconv_group_engine Engines
 * Convolution of a stream in blocks of any length.
 * @{
 */

/** A running convolution of a plan, for one thread at a time. */
typedef struct gpuconv_engine gpuconv_engine;

/**
 * Makes an engine. It takes all its memory and, on CUDA, the context; gpuconv_engine_process and gpuconv_engine_drain
 * allocate nothing.
 * @param plan         the plan; the engine keeps a reference to it
 * @param[out] engine  the engine
 * @param[out] error   the reason of a failure; may be NULL
 * @return MEMORY, DEVICE
 */
GPUCONV_API gpuconv_status gpuconv_engine_new(const gpuconv_plan *plan, gpuconv_engine **engine, gpuconv_error *error);

/**
 * Feeds input and takes the output that is ready. Output lags behind by up to gpuconv_plan_latency; all calls together
 * with gpuconv_engine_drain give N + M - 1 frames. Samples above about 1e34 can overflow inside a transform, which
 * gives NaN or infinities in the output and status OK.
 * @param engine         the engine
 * @param in             one array of `frames` samples per input
 * @param frames         0 or more
 * @param[out] out       one array of at least `frames` samples per output; must not overlap `in`
 * @param[out] produced  frames written to each output, at most `frames`
 * @return ARGUMENT (frames; the engine is unchanged), STATE (after draining began or after a failure), DEVICE. After
 *         DEVICE or CANCELLED the engine can only be reset or freed
 */
GPUCONV_API gpuconv_status gpuconv_engine_process(gpuconv_engine *engine, const float *const *in, int64_t frames,
                                                  float *const *out, int64_t *produced);

/**
 * Ends the input and takes the remaining output. Call it until *produced is 0. An engine without input gives none.
 * @param engine         the engine
 * @param[out] out       one array of at least `capacity` samples per output
 * @param capacity       frames, 0 or more
 * @param[out] produced  frames written to each output, at most `capacity`; 0 (with capacity > 0): all output has been
 * taken
 * @return ARGUMENT (capacity; the engine is unchanged), STATE (after a failure), DEVICE. After DEVICE or CANCELLED the
 *         engine can only be reset or freed
 */
GPUCONV_API gpuconv_status gpuconv_engine_drain(gpuconv_engine *engine, float *const *out, int64_t capacity,
                                                int64_t *produced);

/**
 * Returns an engine to its state after gpuconv_engine_new, also after a failure. Starts the thread that computes anew.
 * @return DEVICE, MEMORY (no thread can be started; the engine can only be reset or freed)
 */
GPUCONV_API gpuconv_status gpuconv_engine_reset(gpuconv_engine *engine);

/** Frees an engine, also in the middle of a convolution. */
GPUCONV_API void gpuconv_engine_free(gpuconv_engine *engine);

/** @} */

/**
 * @defgroup gpuconv_group_realtime Real time
 * Convolution in an audio callback, with exchange of the response.
 * @{
 */

/**
 * A real-time convolution without added latency: output frame n includes input frame n.
 * The call convolves the beginning of the response itself; threads of the library convolve the tail one partition ahead
 * of its use.
 */
typedef struct gpuconv_realtime gpuconv_realtime;

/** Configuration of a real-time convolution. */
typedef struct gpuconv_realtime_config {
    size_t size;             /**< bytes of the structure, set by gpuconv_realtime_config_default */
    double rate;             /**< frames per second, 1..10000000; 0 (default): 48000 */
    int block;               /**< longest call in frames that gets its tail in time, 1..65536; 0 (default): 256 */
    int threads;             /**< threads for the tail, 1..64; 0 (default): 1 */
    bool freewheel;          /**< calls wait for a late tail instead of leaving it out: for offline use */
    gpuconv_backend backend; /**< CUDA: the taps from 4096 on are convolved on a GPU; else (default) on the CPU */
    int device;              /**< CUDA device number, 0 (default).. ; -1: the one with the most multiprocessors */
    int64_t latency;         /**< frames of added latency, 0 (default)..1048576: more of it lowers the load */
} gpuconv_realtime_config;

/** Fills in the defaults. `size` is the structure's sizeof. For bindings; in C use the function below. */
GPUCONV_API void gpuconv_realtime_config_init(gpuconv_realtime_config *config, size_t size);

/** Returns the defaults named above: everything zero. */
static inline gpuconv_realtime_config gpuconv_realtime_config_default(void) {
    gpuconv_realtime_config config;
    gpuconv_realtime_config_init(&config, sizeof config);
    return config;
}

/**
 * Makes a real-time convolution and starts its threads.
 * If a GPU fails, or is late for 0.2 s without a break, the CPU takes over its tail, faded in within 0.1 s.
 * @param ir             the routed response; the object keeps a reference to it
 * @param config         the configuration
 * @param[out] realtime  the real-time convolution
 * @param[out] error     the reason of a failure; may be NULL
 * @return ARGUMENT (a value out of its range, response not routed), MEMORY (also: no thread), DEVICE or UNSUPPORTED
 *         (CUDA was asked for and is missing)
 */
GPUCONV_API gpuconv_status gpuconv_realtime_new(const gpuconv_ir *ir, const gpuconv_realtime_config *config,
                                                gpuconv_realtime **realtime, gpuconv_error *error);

/**
 * Convolves a block. For one thread at a time, typically the audio callback.
 * It takes no lock, allocates nothing and makes no system call; it waits for the tail only when freewheeling.
 * Subnormal numbers are flushed to zero during the call. NaN and infinite input samples count as silence.
 * @param realtime  the real-time convolution
 * @param in        one array of `frames` samples per input
 * @param[out] out  one array of `frames` samples per output; may be the same buffers as `in`
 * @param frames    any number; a call longer than the configured block may miss a part of the tail
 */
GPUCONV_API void gpuconv_realtime_process(gpuconv_realtime *realtime, const float *const *in, float *const *out,
                                          int64_t frames);

/**
 * Exchanges the response. A later call of gpuconv_realtime_process crossfades the input from the old response to the
 * new one, and the old response decays. From any thread but the one that processes; it waits for nothing: an exchange
 * that no call has taken up yet is replaced by this one.
 * @param realtime    the real-time convolution
 * @param ir          a routed response with the same numbers of inputs and outputs, at the rate that the samples have
 * now
 * @param seconds     length of the crossfade, 0..60
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (seconds, response not routed), TOPOLOGY, MEMORY, DEVICE. After a failure the old response goes on
 */
GPUCONV_API gpuconv_status gpuconv_realtime_swap(gpuconv_realtime *realtime, const gpuconv_ir *ir, double seconds,
                                                 gpuconv_error *error);

/**
 * Exchanges single routes, such as those of one source that moves. The routes of `ir` replace those between the same
 * channels, or are added; a later call of gpuconv_realtime_process crossfades their input. Every other route goes on
 * unchanged: it is neither prepared nor computed again, and its output keeps its samples. The exchanged routes are
 * computed on the CPU. Where exchanges have changed more than half of the routes, or more than 16 separate sets of
 * them, all present routes are prepared as a new response instead, as by gpuconv_realtime_swap; the result is the same.
 * From any thread but the one that processes; it waits for nothing but another exchange. An exchange of the same routes
 * that no call has taken up yet is replaced by this one.
 * @param realtime    the real-time convolution
 * @param ir          a routed response with the same numbers of inputs and outputs that has only the routes to
 *                    exchange, such as one of gpuconv_ir_new_matrix with NULL for the others
 * @param seconds     length of the crossfade, 0..60
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (seconds, response not routed), TOPOLOGY, MEMORY, DEVICE. After a failure the old routes go on
 */
GPUCONV_API gpuconv_status gpuconv_realtime_swap_routes(gpuconv_realtime *realtime, const gpuconv_ir *ir,
                                                        double seconds, gpuconv_error *error);

/**
 * Returns to silence: forgets all input, ends crossfades, and lets an exchange that waits take effect at once. The next
 * call of gpuconv_realtime_process gives what the first one of a new object with the present responses gives, and
 * gpuconv_realtime_late_blocks counts from 0. For any thread, while no thread is in gpuconv_realtime_process: it waits
 * for the threads of the library and for an exchange that another thread makes, some milliseconds in general. A tail on
 * a GPU is transferred there again; if that fails, the CPU takes over.
 * @param realtime  the real-time convolution
 */
GPUCONV_API void gpuconv_realtime_reset(gpuconv_realtime *realtime);

/** Sets whether calls wait for a late tail, as `freewheel` in the configuration. From any thread. */
GPUCONV_API void gpuconv_realtime_set_freewheel(gpuconv_realtime *realtime, bool freewheel);

/** Returns how often a block of the tail was left out because it was late. From any thread. */
GPUCONV_API int64_t gpuconv_realtime_late_blocks(const gpuconv_realtime *realtime);

/** Returns CUDA while a GPU computes the tail, else CPU. From any thread. */
GPUCONV_API gpuconv_backend gpuconv_realtime_backend(const gpuconv_realtime *realtime);

/** Returns the latency in frames: the configured one plus the response's lead. From any thread. */
GPUCONV_API int64_t gpuconv_realtime_latency(const gpuconv_realtime *realtime);

/** Returns one sentence on the partitions of the first response and their predicted load. Owned by the object. */
GPUCONV_API const char *gpuconv_realtime_plan(const gpuconv_realtime *realtime);

/** Stops the threads and frees it. No thread may be in a call on it. */
GPUCONV_API void gpuconv_realtime_free(gpuconv_realtime *realtime);

/** @} */

/**
 * @defgroup gpuconv_group_report Reports
 * Facts and measurements with their units.
 * @{
 */

/** Facts and measurements with their units; docs/report.schema.json describes the JSON form. */
typedef struct gpuconv_report gpuconv_report;

/** Format of a report. */
typedef enum gpuconv_report_format {
    GPUCONV_REPORT_TEXT = 0, /**< text for people */
    GPUCONV_REPORT_JSON      /**< JSON for programs, with a timeline */
} gpuconv_report_format;

/**
 * Makes a report that contains only the environment: version, compiler, processor.
 * @return MEMORY, UNSUPPORTED (a build without jansson)
 */
GPUCONV_API gpuconv_status gpuconv_report_new(gpuconv_report **report);

/** Kind of a value of a report. */
typedef enum gpuconv_value_type {
    GPUCONV_VALUE_NONE = 0, /**< there is no such value */
    GPUCONV_VALUE_TEXT,     /**< a text, such as the name of the device or the label of a row */
    GPUCONV_VALUE_COUNT,    /**< a whole number */
    GPUCONV_VALUE_NUMBER    /**< a measured number, with a unit if it is in a section */
} gpuconv_value_type;

/**
 * Returns the title of a part of a report; a part is a section, which has one row of values, or a list of rows.
 * Together with gpuconv_report_name it enumerates a report. Titles, names and texts that the getters return are owned
 * by the report and valid until it is filled again or freed.
 * @param report  the report
 * @param part    number of the part, from 0
 * @return the title, such as "times"; NULL behind the last part
 */
GPUCONV_API const char *gpuconv_report_title(const gpuconv_report *report, int part);

/** Returns the number of rows of a part: 1 for a section, 0 if there is no part of this title. */
GPUCONV_API int gpuconv_report_rows(const gpuconv_report *report, const char *title);

/**
 * Returns the name of a value.
 * @param report  the report
 * @param title   title of the part
 * @param row     number of the row, from 0
 * @param value   number of the value in its row, from 0
 * @return the name, such as "wall"; NULL behind the last value
 */
GPUCONV_API const char *gpuconv_report_name(const gpuconv_report *report, const char *title, int row, int value);

/** Returns the kind of a value; NONE if there is no such part, row or name. */
GPUCONV_API gpuconv_value_type gpuconv_report_type(const gpuconv_report *report, const char *title, int row,
                                                   const char *name);

/** Returns a text; NULL if the value is not a TEXT. */
GPUCONV_API const char *gpuconv_report_text(const gpuconv_report *report, const char *title, int row, const char *name);

/** Returns a COUNT exactly; 0 if the value is not a COUNT. */
GPUCONV_API int64_t gpuconv_report_count(const gpuconv_report *report, const char *title, int row, const char *name);

/**
 * Returns a COUNT or a NUMBER. NaN if there is no such number, or if it has no finite value, such as the level of
 * silence.
 */
GPUCONV_API double gpuconv_report_number(const gpuconv_report *report, const char *title, int row, const char *name);

/** Returns the unit of a NUMBER in a section, such as "s"; "" for any other value. */
GPUCONV_API const char *gpuconv_report_unit(const gpuconv_report *report, const char *title, int row, const char *name);

/** Returns the number of runs that a NUMBER in a section was measured in, at least 1; 0 for any other value. */
GPUCONV_API int64_t gpuconv_report_runs(const gpuconv_report *report, const char *title, int row, const char *name);

/** Returns half the difference between the largest and the smallest run of a NUMBER in a section; NaN if unknown. */
GPUCONV_API double gpuconv_report_spread(const gpuconv_report *report, const char *title, int row, const char *name);

/**
 * Writes a report to a stream, which the caller owns.
 * @param report  the report
 * @param format  text or JSON
 * @param to      the stream
 * @return FILE (the stream failed; a part may have been written), MEMORY (the report is incomplete)
 */
GPUCONV_API gpuconv_status gpuconv_report_write(const gpuconv_report *report, gpuconv_report_format format, FILE *to);

/** Frees a report. */
GPUCONV_API void gpuconv_report_free(gpuconv_report *report);

/** @} */

/**
 * @defgroup gpuconv_group_file Files
 * Convolution from file to file.
 * @{
 */

/** Part of the N + M - 1 result frames that is kept. */
typedef enum gpuconv_mode {
    GPUCONV_MODE_FULL = 0, /**< all frames */
    GPUCONV_MODE_SAME,     /**< N frames from frame (M - 1) / 2 on, as in NumPy and MATLAB */
    GPUCONV_MODE_VALID     /**< N - M + 1 frames from frame M - 1 on, for which the input needs no zeros around it */
} gpuconv_mode;

/** Progress of a job. The library makes it. */
typedef struct gpuconv_progress {
    size_t size;      /**< bytes of the structure */
    int64_t frames;   /**< input frames read so far */
    int64_t total;    /**< input frames; -1: unknown */
    double rate;      /**< rate of the input in Hz */
    double seconds;   /**< since the job began */
    const char *step; /**< the run of a comparison that goes on, such as "one core, computing"; NULL: the job itself */
} gpuconv_progress;

/** A convolution of a file with a response. */
typedef struct gpuconv_job {
    size_t size;       /**< bytes of the structure, set by gpuconv_job_default */
    const char *input; /**< path of the input; "-": standard input */
    const char
        *response;      /**< path of the impulse response or of a matrix; "-", /dev/stdin or /dev/fd/N may be a pipe */
    const char *output; /**< path of the output, may be that of the input; "-": standard output */
    const gpuconv_preparation *preparation; /**< steps applied to the response; NULL: none */
    double gain;                            /**< gain of the result in dB, -200..200 */
    const char *raw;      /**< format of an input without header: RATE,CHANNELS,ENCODING; NULL: it has one */
    const char *format;   /**< container of the output, such as "flac"; NULL: by its extension, WAV for "-" */
    const char *encoding; /**< sample format of the output, such as "s24"; NULL: that of the input */
    bool dither;          /**< triangular dither before rounding to integers */
    gpuconv_mode mode;    /**< frames that are kept */
    double tail;          /**< with FULL: most seconds kept behind the input's end, 0..1000000; INFINITY: all */
    double tail_floor;    /**< dBFS, -300..0: the tail is cut behind its last sample of this level; 0: it is not */
    bool compare;         /**< afterwards compute the job in other ways and time them, for the report */
    const char *plot;     /**< .png or .svg that shows input and output (needs gnuplot); NULL: none */
    void (*note)(void *context, const char *text); /**< gets lines on fallbacks, resampling, clipping; NULL: none */
    void (*progress)(void *context, const gpuconv_progress *progress); /**< called once per chunk; NULL: none */
    void *context;                                                     /**< passed to note and progress */
    const volatile int *cancel; /**< non-zero cancels the job; set from any thread; NULL: none */
    const char *path; /**< of a SOFA file: the channels of the input move as in this file of gpuconv_path_load. Of the
                         preparation, interpolate, by_distance and gain may be set. NULL: they do not move */
    double interval;  /**< with `path` or `head`: seconds after which responses are exchanged, 0.0001..1; 0 (default):
                         0.005 */
    bool doppler;     /**< with `path`: as in gpuconv_motion_config */
    const char *head; /**< of a SOFA file: the listener's head turns as in this file of gpuconv_head_load, before the
                         channels of `path` or those of the preparation's direction or speakers, of which
                         interpolate, by_distance, decode, diffuse_eq and gain may be set. NULL: it does not turn */
    int compression;  /**< of a FLAC output: 1 + its level, 0 (fastest) to 8 (smallest); 0 (default): level 5 */
    bool force;       /**< replace `output` even if the response is read from it, or if response and output have changed
                         places: the response has the frames of the input convolved with the output */
    double compare_seconds; /**< with `compare`: about how long all other ways may take, up to 86400; 0 (default): 10 */
    const struct gpuconv_rooms_job *room; /**< a simulated room instead of `response`, which is its name, as in
                         gpuconv_motion_new_in_room (gpuconv_rooms.h): `path` is a file of gpuconv_path_load_in_room, or
                         the sources stay where they are, one for each channel. Its `frames` are those of its `rate`,
                         and are converted to the rate of the input. Of the preparation, gain may be set. NULL: none */
    const char *receiver_path; /**< with `room`: the receivers move as in this file of gpuconv_path_load_in_room. NULL:
                                  they stay */
} gpuconv_job;

/** Fills in a job that only convolves. `size` is its sizeof. For bindings; in C use the function below. */
GPUCONV_API void gpuconv_job_init(gpuconv_job *job, size_t size);

/** Returns a job that only convolves: no preparation, the whole tail, everything else zero. */
static inline gpuconv_job gpuconv_job_default(void) {
    gpuconv_job job;
    gpuconv_job_init(&job, sizeof job);
    return job;
}

/**
 * Convolves a file with a response into an output file, in constant memory.
 *
 * Container and sample format are those of the output's extension and of the input, unless the job names others. The
 * output keeps the input's strings, cue points, loops and broadcast, cart and iXML chunks where its format has a place
 * for them; a note names the others. It is renamed to its path when it is complete: after a failure an older file is
 * unchanged and no partial one exists.
 *
 * Comparison and drawing come after the output. The tools that drawing needs are checked before the job begins. If
 * comparing or drawing fails or is cancelled, the output stays, the report holds the measurements so far, and the
 * message says so.
 * @param job         the job
 * @param config      backend, algorithm, threads
 * @param report      gets the measurements; may be NULL
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT, FILE, FORMAT, TOPOLOGY, UNSUPPORTED, DEVICE, MEMORY; CANCELLED (*cancel became non-zero)
 */
GPUCONV_API gpuconv_status gpuconv_convolve_file(const gpuconv_job *job, const gpuconv_config *config,
                                                 gpuconv_report *report, gpuconv_error *error);

/** @} */

/**
 * @defgroup gpuconv_group_calibration Calibration
 * Costs of this machine, for plans.
 * @{
 */

/**
 * Measures the costs of operations on this machine, including the GPU, in a few seconds, and stores them for the plans
 * of later processes in $XDG_CACHE_HOME/gpuconv/costs or ~/.cache/gpuconv/costs. Without that file plans use built-in
 * costs. Not for two threads at once.
 * @param report      gets the costs; may be NULL
 * @param[out] error  the reason of a failure; may be NULL
 * @return DEVICE, FILE, MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_calibrate(gpuconv_report *report, gpuconv_error *error);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
