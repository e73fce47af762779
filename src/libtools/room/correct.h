/* Filters that correct measured responses: loudspeakers, headphones, rooms (gpuconv ir correct). */
#ifndef GPUCONV_ROOM_CORRECT_H
#define GPUCONV_ROOM_CORRECT_H

#include "gpuconv.h"
#include "libgpuconv/report/plot.h"

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- Functions of frequency (correct_curves.c) ------------------------------------------------------------------- */

typedef struct gc_level_curve gc_level_curve;

/* Opens a curve of levels: flat, house, x-curve, or a file with lines of Hz and dB. The caller frees it
 * with gc_curve_close. @return FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gc_curve_open(const char *name, void (*note)(const char *text), gc_level_curve **curve,
                             gpuconv_error *error);
void gc_curve_close(gc_level_curve *curve);

/* Returns the level in dB at a frequency > 0. */
double gc_curve_at(const gc_level_curve *curve, double hz);

enum { GC_EQ_FILTERS = 256, GC_CROSSOVERS = 7 };

/* The coefficients of a filter of second order; a[0] is 1. */
typedef struct gc_eq_filter {
    double b[3], a[3];
} gc_eq_filter;

/* A list of parametric equalisers. */
typedef struct gc_eq {
    double gain; /* factor, of the preamplifier */
    int count;
    gc_eq_filter filter[GC_EQ_FILTERS];
} gc_eq;

/* Reads a list as Equalizer APO, AutoEq and REW write it: lines of "Preamp: -6 dB" and "Filter 1: ON PK Fc 105 Hz Gain
 * -2.8 dB Q 1.41"; the filters are those of R. Bristow-Johnson, Cookbook formulae for audio EQ biquad filter
 * coefficients. @param rate at which they are computed @return FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gc_eq_read(const char *path, double rate, gc_eq *eq, gpuconv_error *error);

/* Returns the response of the list at a frequency. */
double complex gc_eq_at(const gc_eq *eq, double rate, double hz);

/* Crossovers that divide the frequencies into ways. */
typedef struct gc_crossover {
    int order;   /* of each filter; 0: none */
    bool bessel; /* else Linkwitz-Riley */
    int count;   /* ways - 1 */
    double hz[GC_CROSSOVERS];
} gc_crossover;

/* Parses a text such as "lr4:80,2500": lr2, lr4, lr8, bessel2, bessel4 or bessel8, and rising frequencies.
 * @return false: it has another form */
bool gc_crossover_parse(const char *text, gc_crossover *crossover);

/* Returns the response of way `way`, from 0 for the lowest on. The ways of Linkwitz-Riley crossovers add up to an
 * all-pass filter, in which the lower ways have the phase of the crossovers above them; every second way of lr2 is
 * inverted for it. Their magnitudes add up to 1. rate: above twice the highest crossover. */
double complex gc_crossover_at(const gc_crossover *crossover, int way, double rate, double hz);

/* ---- Corrections (correct.c) ------------------------------------------------------------------------------------- */

typedef enum gc_correction_phase { GC_CORRECT_MINIMUM, GC_CORRECT_LINEAR, GC_CORRECT_MIXED } gc_correction_phase;

typedef struct gc_correction_options {
    /* Files of the measured responses: each is a position of the microphone, and its channels are loudspeakers. None:
     * the filter has the target, the equalisers and the crossovers alone. */
    const char *const *measured;
    int files;
    const char *target;      /* as in gc_curve_open; NULL: flat */
    const char *limit_curve; /* file of the most gain in dB by frequency; NULL: `limit` */
    double limit;            /* dB, 0..60 */
    const char *eq;          /* list of equalisers; NULL: none */
    gc_crossover crossover;
    double low, high;  /* Hz: the range that is corrected; high 0: up to 20 kHz or 0.45 of the rate */
    double window;     /* cycles of a frequency that its window has after the direct sound; 0: the whole response */
    double smoothing;  /* 1/N octave: N; 0: none */
    bool complex_mean; /* smoothing averages complex values, else powers */
    bool vector_mean;  /* so does the average of the positions */
    gc_correction_phase phase;
    double excess_to;   /* Hz up to which MIXED corrects the excess phase */
    double pre_ringing; /* dB below the peak of the corrected response, more than 2 ms before it: the most that MIXED
                           may cause */
    double file_rate;   /* of measured responses that state no rate; 0: these are refused */
    const char *raw;    /* of measured responses without a header, as in gc_ir_form; NULL: they have one */
    double seconds;     /* length of the filter */
    double rate;        /* of the filter; 0: that of the responses, or 48000 */
    bool align;         /* channels get the same level and delay */
    bool matrix;  /* invert the responses from all loudspeakers to all ears (or microphones) at once; only the range,
                     the limit, `seconds` and `rate` count */
    double delay; /* seconds by which the filters of a matrix delay; 0: half of their length */
    void (*note)(const char *text); /* NULL: no notes */
} gc_correction_options;

#define GC_CORRECTION_DEFAULT                                                                                          \
    {                                                                                                                  \
        .limit = 12, .low = 20, .window = 15, .smoothing = 6, .excess_to = 500, .pre_ringing = -40, .seconds = 0.5,    \
        .align = true                                                                                                  \
    }

enum { GC_CORRECTION_PER_OCTAVE = 48, GC_CORRECTION_POINTS = 14 * GC_CORRECTION_PER_OCTAVE };

/* What a correction does to a channel. Curves are in dB, relative to the common level of the channels in the range. */
typedef struct gc_corrected {
    double before[GC_CORRECTION_POINTS],
        after[GC_CORRECTION_POINTS];    /* measured, averaged over the positions, smoothed */
    double gain[GC_CORRECTION_POINTS];  /* gain of the filter, equalisers included */
    bool limited[GC_CORRECTION_POINTS]; /* whether more was wanted than is allowed */
    double level;                       /* dB above the common level */
    double own_level;                   /* the part of it that stays: 0 if levels are aligned */
    double limit_level;                 /* dB by which the limit is shifted: the filter's part of aligning the level */
    int64_t delay;                      /* frames that the filter adds */
    double excess;                      /* share of the excess phase that is corrected, 0..1 */
    double pre_ringing;                 /* dB, as in the options, at the worst position; -infinity: none */
    double pre_ringing_from;            /* the same without correction */
} gc_corrected;

enum { GC_CORRECTION_EARS = 16, GC_CORRECTION_OCTAVES = 10 /* from 31.5 Hz to 16 kHz */ };

/* What a matrix of filters does at an ear in an octave, in dB. NaN: the octave is not in the range. */
typedef struct gc_separation {
    double before, after; /* energy of the ear's own signal relative to that of the others; before: of loudspeaker k for
                             ear k, if there are as many as ears */
    double level;         /* of its own signal, relative to the mean level of the responses */
    double gain;          /* the largest of the filters of its signal */
} gc_separation;

typedef struct gc_correction {
    gpuconv_ir *filter; /* channels x ways; the ways of a channel follow each other. Of a matrix: from the signals of
                           the ears to the loudspeakers; the loudspeakers of a signal follow each other */
    int ears, speakers; /* of a matrix; 0: none */
    gc_separation separation[GC_CORRECTION_EARS][GC_CORRECTION_OCTAVES];
    int channels, ways, positions, points;
    double low, high, rate;
    int64_t lead; /* frames of the filter before its time zero, its latency */
    double hz[GC_CORRECTION_POINTS], target[GC_CORRECTION_POINTS], limit[GC_CORRECTION_POINTS];
    gc_corrected *channel; /* each */
} gc_correction;

/* Computes the filter. The caller frees *correction with gc_correction_free, also after a failure.
 * @return ARGUMENT (a value out of its range; rates, channels or lengths of files differ), FORMAT (a measurement is not
 * usable), any status of gpuconv_ir_load, gc_curve_open and gc_eq_read; MEMORY, CANCELLED */
gpuconv_status gc_correct(const gc_correction_options *options, gc_correction *correction, gpuconv_error *error);
void gc_correction_free(gc_correction *correction);

/* Fills a report: the section "correction", and for each channel a list by third octaves. */
void gc_correction_report(const gc_correction *correction, gpuconv_report *report);

/* Draws for every channel, up to GC_PLOT_CHANNELS, the response before and after beside the target, and the filter.
 * @param path of the drawing @return any status of gc_plot_panels */
gpuconv_status gc_correction_draw(const gc_correction *correction, const char *path, gpuconv_error *error);

/* Writes a page with the drawings and the report. @return any status of gc_plot_panels_svg; FILE, MEMORY */
gpuconv_status gc_correction_page(const gc_correction *correction, const char *path, gpuconv_error *error);

#endif
