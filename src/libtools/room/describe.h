/* Reports the figures of impulse responses (gpuconv ir info). */
#ifndef GPUCONV_ROOM_DESCRIBE_H
#define GPUCONV_ROOM_DESCRIBE_H

#include "figures.h"

/* Adds a response to a report: its length, rate, peak and delay in the section "response", or with `many` as a row of
 * the list "responses"; its parameters by channel and band in the list "acoustics"; speech transmission in "speech";
 * interaural cross-correlation in "binaural" (two channels without a figure-eight microphone). */
void gc_describe(const gc_figures *figures, const gc_figures_options *options, bool many, gpuconv_report *report);

#endif
