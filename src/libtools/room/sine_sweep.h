/* Measures an impulse response with an exponential sine sweep: writes the sweep and deconvolves its recording (Farina,
 * Simultaneous measurement of impulse response and distortion with a swept-sine technique, AES 108 (2000), 5093). */
#ifndef GPUCONV_ROOM_SINE_SWEEP_H
#define GPUCONV_ROOM_SINE_SWEEP_H

#include "gpuconv.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- Microphones ------------------------------------------------------------------------------------------------- */

typedef struct gc_microphone {
    double *hz, *level; /* points of the response, dB; one allocation */
    int64_t points;     /* 0: flat */
    double sensitivity; /* dB SPL of 0 dBFS RMS; NaN: unknown */
} gc_microphone;

/* The files that describe the microphones. */
typedef struct gc_microphone_files {
    const char *const *calibration; /* calibration files, ended by NULL: one for all, or one for each; NULL: flat */
    const char *calibrator;         /* recording of a calibrator: one channel for all, or one for each; NULL: none */
    double level;                   /* of the calibrator, dB SPL */
    void (*note)(const char *text); /* gets a line about each calibration file; NULL: none */
} gc_microphone_files;

/* Reads the files of `count` microphones. The caller frees *microphones with gc_microphones_free.
 * A calibration file is a table of numbers (core/table.h): a frequency in Hz and a level in dB, with rising
 * frequencies; further fields, such as a phase, are left out.
 * @return FILE, FORMAT, CANCELLED; any status of gpuconv_ir_load; ARGUMENT (another number of files or channels) */
gpuconv_status gc_microphones_new(const gc_microphone_files *files, int count, gc_microphone **microphones,
                                  gpuconv_error *error);

/* Checks that `output` is none of the files. @return ARGUMENT: it is */
gpuconv_status gc_microphones_keep(const gc_microphone_files *files, const char *output, gpuconv_error *error);

void gc_microphones_free(gc_microphone *microphones, int count);

/* Returns the level of the response at a frequency in dB, interpolated over the logarithm of the frequency. Beyond the
 * points it is that of the nearest one. */
double gc_microphone_level(const gc_microphone *microphone, double hz);

/* Divides a spectrum by the response, whose phase is minimal. @return false if memory is exhausted or the work was
 * cancelled */
bool gc_microphone_correct(const gc_microphone *microphone, double rate, int64_t points, double *re, double *im);

/* ---- Distortion -------------------------------------------------------------------------------------------------- */

enum { GC_HARMONICS = 5 /* the fundamental is harmonic 1 */, GC_DISTORTION_POINTS = 160 };

/* An exponential sweep, as its samples show it. */
typedef struct gc_sweep_growth {
    double seconds;  /* in which the frequency grows e-fold */
    double from, to; /* Hz */
} gc_sweep_growth;

/* Measures the growth from the zero crossings. @return false if the sweep is not exponential */
bool gc_sweep_measure_growth(const gpuconv_ir *sweep, gc_sweep_growth *growth);

/* The distortion of a channel over the frequency of the fundamental: 12 points per octave, with one at 1 kHz. NaN where
 * a harmonic lies outside the sweep, or the noise is not known. */
typedef struct gc_distortion {
    int points;
    double hz[GC_DISTORTION_POINTS];
    double level[GC_DISTORTION_POINTS];                      /* of the fundamental, dB */
    double harmonic[GC_HARMONICS + 1][GC_DISTORTION_POINTS]; /* 2..GC_HARMONICS, per cent of the fundamental */
    double total[GC_DISTORTION_POINTS];                      /* THD of these harmonics, per cent */
    double noise[GC_DISTORTION_POINTS]; /* THD of the noise: the smallest one that can be measured */
} gc_distortion;

/* Returns the THD at the point nearest to a frequency, per cent. */
double gc_distortion_at(const gc_distortion *distortion, double hz);

/* Adds the distortion of `channels` channels as a list "distortion". */
void gc_distortion_report(const gc_distortion *distortion, int channels, gpuconv_report *report);

/* Draws THD, harmonics and noise, a panel a channel. @return any status of gc_plot_panels */
gpuconv_status gc_distortion_draw(const gc_distortion *distortion, int channels, const char *plot,
                                  gpuconv_error *error);

/* ---- Timing ------------------------------------------------------------------------------------------------------ */

typedef struct gc_sweep_timing {
    double drift; /* ppm by which the recorder's clock is faster than the player's; 0: none found */
    int64_t lost; /* frames that are missing in the recording; negative: inserted; 0: none found */
    double place; /* seconds from the beginning of the sweep to them; in gc_sweep_channel from that of the recording */
} gc_sweep_timing;

/* ---- Sweeps ------------------------------------------------------------------------------------------------------ */

typedef struct gc_sweep {
    double rate, seconds; /* of the sweep itself */
    double from, to;      /* Hz; `to` is half of the rate if 0 */
    double level;         /* dBFS of its peaks */
    double silence;       /* seconds after the sweep, in which the room decays */
} gc_sweep;

/* Checks the settings and computes the sweep, with the silence after it. The caller frees *samples.
 * @return ARGUMENT, MEMORY, CANCELLED */
gpuconv_status gc_sweep_samples(const gc_sweep *sweep, float **samples, int64_t *frames, gpuconv_error *error);

/* Writes the sweep to a file of floats. @return ARGUMENT, FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gc_sweep_write(const gc_sweep *sweep, const char *path, gpuconv_error *error);

/* The sweep in a channel of a recording. */
typedef struct gc_sweep_channel {
    double crest; /* of the correlation with the sweep: its maximum relative to its RMS */
    int64_t lag;  /* frames from the beginning to the sweep; negative: the sweep began before the recording */
    bool held;    /* it contains the sweep */
    bool clipped; /* consecutive samples at full scale */
    double inr;   /* impulse-to-noise ratio of the response in dB, at most its range above the noise before time zero */
    double noise; /* RMS of the background noise, dBFS; NaN: not measured */
    double peak;  /* dBFS */
    double level; /* RMS while the sweep sounds, dBFS */
    double sensitivity; /* of the microphone: dB SPL of 0 dBFS; NaN: unknown */
    gc_sweep_timing timing;
    bool ends_early; /* before the decay reaches the end of the range of T30, and 10 dB more */
    bool decays;     /* the response is more than the direct sound, such as that of a room */
} gc_sweep_channel;

/* Correlates a channel with the sweep and fills crest, lag, held, clipped, peak and level. @return MEMORY, CANCELLED */
gpuconv_status gc_sweep_find(const float *channel, int64_t frames, const gpuconv_ir *sweep, gc_sweep_channel *found,
                             gpuconv_error *error);

typedef struct gc_sweep_division {
    int64_t frames;                  /* of the response */
    const gc_microphone *microphone; /* of every channel: their responses are divided out */
    gc_distortion *distortion;       /* gets that of every channel; NULL: it is not measured */
} gc_sweep_division;

/* Divides the spectrum of every channel by that of the sweep. Harmonic distortion of the loudspeaker appears before
 * time zero and is removed.
 * @param out one array of `frames` samples a channel
 * @param found of every channel; its inr, decays and sensitivity are filled, and of the first that holds an exponential
 * sweep timing
 * @return MEMORY, CANCELLED; UNSUPPORTED (the distortion of a sweep that is not exponential) */
gpuconv_status gc_sweep_divide(const gpuconv_ir *recording, const gpuconv_ir *sweep, const gc_sweep_division *division,
                               float *const *out, gc_sweep_channel *found, gpuconv_error *error);

/* Divides a recording by its sweep and writes the response as floats.
 * @param delay gets the seconds until its direct sound
 * @return as gc_sweep_divide, and as gpuconv_ir_new and gc_ir_write */
gpuconv_status gc_sweep_respond(const gpuconv_ir *recording, const gpuconv_ir *sweep, const gc_sweep_division *division,
                                const char *response, gc_sweep_channel *found, double *delay, gpuconv_error *error);

/* A recording of a sweep. */
typedef struct gc_sweep_job {
    const char *recording, *sweep, *response; /* files; the last is written */
    double seconds;                           /* of response; 0: see gc_sweep_read */
    gc_microphone_files microphones;
    bool distortion; /* measure it */
} gc_sweep_job;

/* Results for a recording. */
typedef struct gc_sweep_found {
    double delay;              /* seconds until the direct sound */
    int channels;              /* of the recording */
    gc_sweep_channel *channel; /* freed by the caller */
    gc_distortion *distortion; /* of every channel; NULL: not measured; freed by the caller */
} gc_sweep_found;

/* Divides a recording by the sweep that was played and writes the response as floats. Without `seconds` the response
 * has the length of the recording less that of the sounding sweep, at least a second.
 * @return ARGUMENT (different rates), FORMAT (no channel contains the sweep, or all of it, or the files are swapped),
 * FILE, MEMORY; any status of gc_microphones_new; UNSUPPORTED as gc_sweep_divide */
gpuconv_status gc_sweep_read(const gc_sweep_job *job, gc_sweep_found *found, gpuconv_error *error);

#endif
