/* Filters that correct measured responses: loudspeakers, headphones, rooms (gpuconv ir correct). */
#ifndef GPUCONV_ROOM_CORRECT_H
#define GPUCONV_ROOM_CORRECT_H

#include "gpuconv.h"
#include "libgpuconv/report/plot.h"

#include <stdbool.h>
#include <stdint.h>

enum { GC_CROSSOVERS = 7 };

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

typedef enum gc_correction_phase { GC_CORRECT_MINIMUM, GC_CORRECT_LINEAR, GC_CORRECT_MIXED } gc_correction_phase;

typedef struct gc_correction_options {
    /* Files of the measured responses: each is a position of the microphone, and its channels are loudspeakers. None:
     * the filter has the target, the equalisers and the crossovers alone. */
    const char *const *measured;
    int files;
    const char *target;      /* flat, house, x-curve, or a file with lines of Hz and dB; NULL: flat */
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

/* The effect of a correction on a channel. Curves are in dB, relative to the channels' common level in the range. */
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

/* The effect of a matrix of filters at an ear in an octave, in dB. NaN: the octave is not in the range. */
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
 * usable), any status of gpuconv_ir_load; FILE, MEMORY, CANCELLED */
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
