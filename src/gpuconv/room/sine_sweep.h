/* Measures an impulse response with an exponential sine sweep: writes the sweep and deconvolves its recording (Farina,
 * Simultaneous measurement of impulse response and distortion with a swept-sine technique, AES 108 (2000), 5093). */
#ifndef GPUCONV_ROOM_SINE_SWEEP_H
#define GPUCONV_ROOM_SINE_SWEEP_H

#include "gpuconv.h"

typedef struct gc_sweep {
    double rate, seconds; /* of the sweep itself */
    double from, to;      /* Hz; `to` is half of the rate if 0 */
    double level;         /* dBFS of its peaks */
    double silence;       /* seconds after the sweep, in which the room decays */
} gc_sweep;

/* Returns ten seconds from 10 Hz to half of 48000 Hz at -6 dBFS, three seconds of silence. */
gc_sweep gc_sweep_default(void);

/* Writes the sweep to a file of floats. @return ARGUMENT, FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gc_sweep_write(const gc_sweep *sweep, const char *path, gpuconv_error *error);

/* Results for a recording. */
typedef struct gc_sweep_found {
    double delay;      /* seconds until the direct sound */
    int channels;      /* of the recording */
    int without;       /* number of channels that do not contain the sweep */
    int first_without; /* the first of these channels, from 1 */
} gc_sweep_found;

/* Divides the spectrum of every channel of a recording by that of the sweep that was played, and writes the response as
 * floats. Harmonic distortion of the loudspeaker appears before time zero and is removed.
 * @param seconds of response; 0: the length of the recording less that of the sounding sweep, at least a second
 * @return ARGUMENT (different rates), FORMAT (no channel contains the sweep, or the files are swapped), FILE, MEMORY */
gpuconv_status gc_sweep_read(const char *recording, const char *sweep, double seconds, const char *response,
                             gc_sweep_found *found, gpuconv_error *error);

#endif
