/* Options that prepare an impulse response before the convolution. */
#ifndef GPUCONV_COMMANDS_RESPONSE_OPTIONS_H
#define GPUCONV_COMMANDS_RESPONSE_OPTIONS_H

#include "cli/cli.h"

#include <math.h>

typedef struct gc_response_options {
    char *layout, *align, *normalize, *direction, *speakers, *interpolate, *decode;
    char **series;
    double start, length, trim, stretch, fade, predelay, gain, wet, dry;
    int reverse, minimum_phase, by_distance, diffuse_eq;
} gc_response_options;

#define GC_RESPONSE_OPTIONS                                                                                            \
    { .stretch = 1, .dry = -HUGE_VAL }

#define GC_WORDS_LAYOUT "auto|source|output|packed|stereo"
#define GC_WORDS_ALIGN "none|onset|peak"
#define GC_WORDS_DECODE "ls|aligned|magls"
#define GC_WORDS_INTERPOLATE "nearest|triangle"
#define GC_WORDS_NORMALIZE "none|peak|l1|energy|loudness"

/* Lines of an option table for the gc_response_options `o`, in the order in which they are applied. */
// clang-format off
#define GC_RESPONSE_TABLE(o) \
    {"ir-layout", '\0', POPT_ARG_STRING, &(o).layout, 0, \
     "order of IR's channels: auto: one for all, one each, or 4 as true stereo for 2 inputs, and an output for each for 1; " \
     "source: all outputs of input 1, then of input 2; output: all inputs of output 1, then of output 2; packed: the inputs " \
     "one after the other in time; stereo: as auto, and 4 are true stereo for 1 input too (default: stereo)", \
     GC_WORDS_LAYOUT}, \
    {"direction", '\0', POPT_ARG_STRING, &(o).direction, 0, \
     "of a SOFA file: where a mono input comes from, in degrees to the left and up, and metres (default: 1)", \
     "AZIMUTH,ELEVATION[,DISTANCE]"}, \
    {"layout", '\0', POPT_ARG_STRING, &(o).speakers, 0, \
     "of a SOFA file: where the channels of IN come from: mono, stereo, 5.1, 7.1, 5.1.4, 7.1.4, ambisonic (ACN, SN3D), or " \
     "a text file with a direction for each channel", \
     "NAME|FILE"}, \
    {"interpolate", '\0', POPT_ARG_STRING, &(o).interpolate, 0, \
     "of a SOFA file: take the nearest measured response, or one between the three around a direction, with the delay and " \
     "the rest averaged apart (default: triangle)", \
     GC_WORDS_INTERPOLATE}, \
    {"by-distance", '\0', POPT_ARG_NONE, &(o).by_distance, 0, \
     "of a SOFA file: gain of the measured DISTANCE divided by that of the direction, 1/r", NULL}, \
    {"decode", '\0', POPT_ARG_STRING, &(o).decode, 0, \
     "of a SOFA file: fit ambisonics of order N above N x 624 Hz to the responses (ls), to them without their differences in " \
     "delay (aligned), or to their magnitudes (default: magls)", \
     GC_WORDS_DECODE}, \
    {"diffuse-eq", '\0', POPT_ARG_NONE, &(o).diffuse_eq, 0, \
     "of a SOFA file: give decoded ambisonics the energy of the responses over all directions at every frequency", NULL}, \
    {"ir-start", '\0', POPT_ARG_DOUBLE, &(o).start, GC_RANGE_TIME, "skip the first SECONDS of IR", "SECONDS"}, \
    {"ir-length", '\0', POPT_ARG_DOUBLE, &(o).length, GC_RANGE_TIME, "use only SECONDS of IR (default: all)", "SECONDS"}, \
    {"trim", '\0', POPT_ARG_DOUBLE, &(o).trim, GC_RANGE_TRIM, \
     "cut off the end of IR that stays below DB relative to its peak, such as -60", "DB"}, \
    {"align", '\0', POPT_ARG_STRING, &(o).align, 0, \
     "onset: cut off the silence before IR; peak: make IR's peak time zero (default: none)", GC_WORDS_ALIGN}, \
    {"reverse", '\0', POPT_ARG_NONE, &(o).reverse, 0, "reverse IR in time", NULL}, \
    {"stretch", '\0', POPT_ARG_DOUBLE, &(o).stretch, GC_RANGE_STRETCH, \
     "make IR longer by FACTOR, which lowers its pitch", "FACTOR"}, \
    {"minimum-phase", '\0', POPT_ARG_NONE, &(o).minimum_phase, 0, "make IR minimum-phase, with the same spectrum", NULL}, \
    {"fade", '\0', POPT_ARG_DOUBLE, &(o).fade, GC_RANGE_TIME, "fade IR out over its last SECONDS", "SECONDS"}, \
    {"series", '\0', POPT_ARG_ARGV, &(o).series, 0, \
     "convolve IR with another response FILE, in series; may be repeated", "FILE"}, \
    {"predelay", '\0', POPT_ARG_DOUBLE, &(o).predelay, GC_RANGE_TIME, "insert silence before IR", "SECONDS"}, \
    {"normalize", 'n', POPT_ARG_STRING, &(o).normalize, 0, \
     "scale IR by one gain so that its largest tap is 1 (peak), no input can clip (l1), white noise (energy) or pink noise " \
     "(loudness) keeps its level (default: none)", \
     GC_WORDS_NORMALIZE}, \
    {"ir-gain", '\0', POPT_ARG_DOUBLE, &(o).gain, GC_RANGE_LEVEL, "gain of IR in decibels (default: 0)", "DB"}, \
// clang-format on

/* Returns the index of a layout that was given, or of stereo, in GC_WORDS_LAYOUT; -1 after a message. */
int gc_response_layout(const char *layout);

/* Returns the interpolation that was given, AUTO without; -1 after a message. */
int gc_response_interpolate(const char *interpolate);

/* Returns the decoder that was given, MAGLS without; -1 after a message. */
int gc_response_decode(const char *decode);

/* Checks the options and fills in *preparation, which points into the options. @return GC_EXIT_DONE, or GC_EXIT_USAGE
 * after a message */
int gc_response_options_apply(const gc_response_options *options, gpuconv_preparation *preparation);

#endif
