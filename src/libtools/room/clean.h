/* Cleans measured responses of hum, offset and the noise behind their decay (gpuconv ir clean). */
#ifndef GPUCONV_ROOM_CLEAN_H
#define GPUCONV_ROOM_CLEAN_H

#include "acoustics.h"
#include "gpuconv.h"

typedef struct gc_clean_options {
    bool cut;       /* the decay ends in silence where noise begins; else it goes on as it fell before */
    double seconds; /* length of the result, that of the response to 600; 0: that of the response */
} gc_clean_options;

/* The change of a band of a channel. */
typedef struct gc_clean_band {
    double nominal; /* Hz, of the octave */
    double from;    /* seconds from which the band is replaced; NaN: it is unchanged */
    double time;    /* seconds for 60 dB, of the decay that goes on */
    double inr;     /* impulse-to-noise ratio, dB */
} gc_clean_band;

typedef struct gc_clean_channel {
    double offset; /* that was removed; 0: none */
    double hum;    /* Hz of the fundamental that was removed with its harmonics; 0: none */
    double level;  /* dB of the hum relative to the peak */
    double from;   /* seconds: what lies before is unchanged, but for hum and offset; NaN: all of it is */
    int bands;
    gc_clean_band band[GC_OCTAVE_BANDS];
} gc_clean_channel;

/* Cleans every channel. The caller frees *cleaned with gpuconv_ir_free, and *channel, one for each channel, with
 * free(). The same response gives the same result. @return ARGUMENT (seconds), MEMORY, CANCELLED */
gpuconv_status gc_clean(const gpuconv_ir *ir, const gc_clean_options *options, gpuconv_ir **cleaned,
                        gc_clean_channel **channel, gpuconv_error *error);

/* Adds the lists "channels", and for each of them its bands, to a report. */
void gc_clean_report(const gc_clean_channel *channel, int channels, gpuconv_report *report);

#endif
