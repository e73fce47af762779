/* Reports the figures of impulse responses (gpuconv ir info), and what a SOFA file contains. */
#ifndef GPUCONV_ROOM_DESCRIBE_H
#define GPUCONV_ROOM_DESCRIBE_H

#include "figures.h"

/* Adds a response to a report: its length, rate, peak and delay in the section "response", or with `many` as a row of
 * the list "responses"; its parameters by channel and band in the list "acoustics"; speech transmission in "speech";
 * interaural cross-correlation in "binaural" (two channels without a figure-eight microphone). */
void gc_describe(const gc_figures *figures, const gc_figures_options *options, bool many, gpuconv_report *report);

/* Adds what belongs to several bands and positions: the list "single numbers" (T mid, bass ratio and others, with mean
 * and standard deviation), and for several positions the list "mean of N" by band. */
void gc_describe_positions(const gc_positions *positions, gpuconv_report *report);

/* Adds the names, sizes and directions of a SOFA file to the section "responses" of a report.
 * @return FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gc_describe_sofa(const char *path, gpuconv_report *report, gpuconv_error *error);

#endif
