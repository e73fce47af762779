/* A measurement with sound devices: level check, sweeps, recording, alignment, mean, response (gpuconv ir measure
 * --play). */
#ifndef GPUCONV_MEASURE_MEASUREMENT_H
#define GPUCONV_MEASURE_MEASUREMENT_H

#include "gpuconv/play/device.h"
#include "libtools/room/sine_sweep.h"

enum { GC_MEASURE_INPUTS = 64, GC_MEASURE_REPEAT = 100 };

typedef struct gc_measurement_config {
    gc_sweep sweep;
    gc_sound_choice sound;
    const char *output_device, *input_device; /* as in gc_sound_config */
    int output;                               /* channel of the loudspeaker, from 1 */
    int inputs;                               /* channels that are recorded */
    int loopback;                             /* input that is wired to the output, from 1; 0: none */
    int repeat;                               /* sweeps, whose recordings are averaged */
    double noise;                             /* seconds of background noise before the sweeps */
    double length;                            /* seconds of response; 0: as long as the silence after the sweep */
    int block;
    bool check;                      /* check the levels first */
    gc_microphone_files microphones; /* of all inputs but the loopback */
    bool distortion;                 /* measure it */
    const char *recording;           /* file that the mean recording is written to; NULL: none */
    void (*note)(const char *text);  /* gets lines on levels; NULL: none */
    const volatile int *cancel;
} gc_measurement_config;

typedef struct gc_measurement {
    gc_sweep_channel channel[GC_MEASURE_INPUTS]; /* of every input */
    int inputs;
    int without;               /* inputs without the sweep, besides the loopback */
    int repeats;               /* sweeps in the mean */
    int left_out;              /* sweeps that were recorded with a gap */
    int disturbed;             /* sweeps that differ from the others, of which the notes tell */
    int64_t xruns;             /* that the device reported */
    int64_t nonfinite;         /* samples that were NaN or infinite, and counted as silence */
    int64_t latency;           /* frames from output to loopback, or to the earliest input without loopback */
    double delay;              /* seconds from time zero to the direct sound */
    gc_distortion *distortion; /* of every channel of the response; NULL: not measured; freed by the caller */
    int channels;              /* of the response */
} gc_measurement;

/* Measures and writes the response: all inputs but the loopback, as floats. Time zero is the arrival of the sweep at
 * the loopback; without loopback it lies 5 ms before the earliest direct sound.
 * A sweep that was recorded with a gap is left out of the mean, and so is, of three or more, a disturbed one.
 * @return ARGUMENT; UNSUPPORTED, DEVICE; FORMAT (no input, or not the loopback, receives the sweep; an input clips in
 *         the level check); FILE, MEMORY, CANCELLED */
gpuconv_status gc_measure(const gc_measurement_config *config, const char *response, gc_measurement *result,
                          gpuconv_error *error);

#endif
