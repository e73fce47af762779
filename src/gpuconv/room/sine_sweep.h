/* Measuring a response: an exponential sine sweep, and what a recording of it says (Farina, Simultaneous measurement of
 * impulse response and distortion with a swept-sine technique, AES 108 (2000), 5093). */
#ifndef GPUCONV_ROOM_SINE_SWEEP_H
#define GPUCONV_ROOM_SINE_SWEEP_H

#include "gpuconv.h"

typedef struct gc_sweep {
    double rate, seconds; /* of the sweep itself */
    double from, to;      /* Hz */
    double level;         /* dBFS of its peaks */
    double silence;       /* seconds behind it, in which the room rings out */
} gc_sweep;

/* Ten seconds from 10 Hz to half of 48000 Hz at -6 dBFS, three seconds of silence. */
gc_sweep gc_sweep_default(void);

/* Writes it as a file of floats. ARGUMENT, FILE, FORMAT, MEMORY. */
gpuconv_status gc_sweep_write(const gc_sweep *sweep, const char *path, gpuconv_error *error);

/* Divides a recording, channel by channel, by the file of the sweep that was played, and writes `seconds` of response
 * (0: as long as the recording is longer than the sweep's sound, at least a second) as floats. What the loudspeaker
 * added in harmonics arrives before time zero and is cut away. *delay: seconds until the direct sound. ARGUMENT
 * (different rates), FILE, FORMAT, MEMORY. */
gpuconv_status gc_sweep_read(const char *recording, const char *sweep, double seconds, const char *response,
                             double *delay, gpuconv_error *error);

#endif
