/* Measures an impulse response with an exponential sine sweep: writes the sweep and deconvolves its recording (Farina,
 * Simultaneous measurement of impulse response and distortion with a swept-sine technique, AES 108 (2000), 5093). */
#ifndef GPUCONV_ROOM_SINE_SWEEP_H
#define GPUCONV_ROOM_SINE_SWEEP_H

#include "distortion.h"
#include "gpuconv.h"
#include "microphone.h"
#include "sweep_timing.h"

#include <stdbool.h>

typedef struct gc_sweep {
    double rate, seconds; /* of the sweep itself */
    double from, to;      /* Hz; `to` is half of the rate if 0 */
    double level;         /* dBFS of its peaks */
    double silence;       /* seconds after the sweep, in which the room decays */
} gc_sweep;

/* Returns ten seconds from 10 Hz to half of 48000 Hz at -6 dBFS, three seconds of silence. */
gc_sweep gc_sweep_default(void);

/* Checks the settings and computes the sweep, with the silence after it. The caller frees *samples.
 * @return ARGUMENT, MEMORY, CANCELLED */
gpuconv_status gc_sweep_samples(const gc_sweep *sweep, float **samples, int64_t *frames, gpuconv_error *error);

/* Writes the sweep to a file of floats. @return ARGUMENT, FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gc_sweep_write(const gc_sweep *sweep, const char *path, gpuconv_error *error);

/* What a channel of a recording contains. */
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
    bool decays; /* the response is more than the direct sound, such as that of a room */
} gc_sweep_channel;

/* Correlates a channel with the sweep and fills crest, lag, held, clipped, peak and level. @return MEMORY, CANCELLED */
gpuconv_status gc_sweep_find(const float *channel, int64_t frames, const gpuconv_ir *sweep, gc_sweep_channel *found,
                             gpuconv_error *error);

typedef struct gc_sweep_division {
    int64_t start;                   /* frame of the recording that is time zero of the response */
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
