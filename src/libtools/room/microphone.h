/* Microphones of a measurement: their frequency response from a calibration file, and their sensitivity from the
 * recording of a calibrator. */
#ifndef GPUCONV_ROOM_MICROPHONE_H
#define GPUCONV_ROOM_MICROPHONE_H

#include "gpuconv.h"

#include <stdbool.h>

typedef struct gc_microphone {
    double *hz, *level; /* points of the response, dB; one allocation */
    int64_t points;     /* 0: flat */
    double sensitivity; /* dB SPL of 0 dBFS RMS; NaN: unknown */
} gc_microphone;

/* What describes the microphones. */
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

#endif
