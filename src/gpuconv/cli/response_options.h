/* The options that say what becomes of a response, for every subcommand that takes one. */
#ifndef GPUCONV_CLI_RESPONSE_OPTIONS_H
#define GPUCONV_CLI_RESPONSE_OPTIONS_H

#include "cli.h"

#include <math.h>

typedef struct gc_response_options {
    char *layout, *align, *normalize;
    char **then;
    double start, length, trim, stretch, fade, predelay, gain, wet, dry;
    int reverse, minimum_phase;
} gc_response_options;

#define GC_RESPONSE_OPTIONS                                                                                            \
    { .stretch = 1, .dry = -HUGE_VAL }

#define GC_WORDS_LAYOUT "auto|source|output|packed"
#define GC_WORDS_ALIGN "none|onset|peak"
#define GC_WORDS_NORMALIZE "none|peak|l1|energy|loudness"

/* Lines of a table for the variable `o`, in the order in which they are done. */
#define GC_RESPONSE_TABLE(o)                                                                                           \
    {"ir-layout",                                                                                                      \
     '\0',                                                                                                             \
     POPT_ARG_STRING,                                                                                                  \
     &(o).layout,                                                                                                      \
     0,                                                                                                                \
     "how IR's channels lie: every output of an input together, every input of an output, or inputs one behind the "   \
     "other in time (default: auto)",                                                                                  \
     GC_WORDS_LAYOUT},                                                                                                 \
        {"ir-start", '\0', POPT_ARG_DOUBLE, &(o).start, 0, "leave out the first SECONDS of IR", "SECONDS"},            \
        {"ir-length", '\0', POPT_ARG_DOUBLE, &(o).length, 0, "take so much of IR (default: all)", "SECONDS"},          \
        {"trim", '\0', POPT_ARG_DOUBLE, &(o).trim, 0, "cut off IR's end where it stays so far under its peak, as -60", \
         "DB"},                                                                                                        \
        {"align",       '\0', POPT_ARG_STRING,                                                                         \
         &(o).align,    0,    "cut off the silence before IR, or take its peak for time zero (default: none)",         \
         GC_WORDS_ALIGN},                                                                                              \
        {"reverse", '\0', POPT_ARG_NONE, &(o).reverse, 0, "IR backwards", NULL},                                       \
        {"stretch", '\0', POPT_ARG_DOUBLE, &(o).stretch, 0, "IR so many times as long, and lower", "FACTOR"},          \
        {"minimum-phase", '\0', POPT_ARG_NONE, &(o).minimum_phase, 0, "IR's spectrum with the least delay", NULL},     \
        {"fade", '\0', POPT_ARG_DOUBLE, &(o).fade, 0, "fade IR out over its last SECONDS", "SECONDS"},                 \
        {"then", '\0', POPT_ARG_ARGV, &(o).then, 0, "another response in series behind it; may come again", "FILE"},   \
        {"predelay", '\0', POPT_ARG_DOUBLE, &(o).predelay, 0, "silence before IR", "SECONDS"},                         \
        {"normalize",                                                                                                  \
         'n',                                                                                                          \
         POPT_ARG_STRING,                                                                                              \
         &(o).normalize,                                                                                               \
         0,                                                                                                            \
         "one gain for all of IR: largest tap 1, nothing can clip, white noise or pink noise keeps its level "         \
         "(default: none)",                                                                                            \
         GC_WORDS_NORMALIZE},                                                                                          \
        {"ir-gain", '\0', POPT_ARG_DOUBLE, &(o).gain, 0, "of IR, in decibels (default: 0)", "DB"},                     \
        {"wet", 'w', POPT_ARG_DOUBLE, &(o).wet, 0, "of what was convolved, in decibels (default: 0)", "DB"},           \
        {"dry", 'y', POPT_ARG_DOUBLE, &(o).dry, 0, "of IN itself beside it, in decibels (default: none of it)", "DB"},

/* Checks them and fills in a preparation, which keeps pointing into the options. GC_EXIT_USAGE after a line that says
 * what is wrong. */
int gc_response_options_apply(const gc_response_options *options, gpuconv_preparation *preparation);

#endif
