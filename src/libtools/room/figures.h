/*
 * Room acoustics: all figures of a response by channel and band, and their means over positions. The Python package
 * includes only this header. Beside it the folder has drawings (charts.h), reports (describe.h) and pages (page.h) of
 * the figures, sine sweeps for measurements (sine_sweep.h) and synthesis of responses (synth.h).
 */
#ifndef GPUCONV_ROOM_FIGURES_H
#define GPUCONV_ROOM_FIGURES_H

#include "acoustics.h"
#include "gpuconv.h"

/* ---- Two channels: interaural cross-correlation, lateral energy (ISO 3382-1:2009) -------------------------------- */

/* Interaural cross-correlation coefficients, 0..1; NaN where a window has no energy. */
typedef struct gc_interaural {
    double all, early, late; /* from the direct sound on; its first 80 ms; after them */
} gc_interaural;

/* Two channels, windowed and transformed. */
typedef struct gc_ears gc_ears;

/* Prepares the response at the left and at the right ear. @return NULL if memory is exhausted or the work was cancelled
 */
gc_ears *gc_ears_new(const float *left, const float *right, int64_t frames, double rate);
void gc_ears_free(gc_ears *ears);

/* Computes the coefficients of a band (NULL: the whole spectrum). @return false: memory or cancelled */
bool gc_ears_band(gc_ears *ears, const gc_octave_band *band, gc_interaural *result);

/* Returns the early lateral energy fraction, 5 to 80 ms of `side` against 0 to 80 ms of `omni`, in the band that both
 * channels analysed last; NaN without energy. Both must have the same onset.
 * @param side of a figure-eight microphone whose null points to the source */
double gc_lateral_fraction(const gc_channel *omni, const gc_channel *side);

/* ---- Speech transmission index (IEC 60268-16:2020) --------------------------------------------------------------- */

enum { GC_SPEECH_BANDS = 7 /* octaves, 125 Hz to 8 kHz */, GC_SPEECH_MODULATIONS = 14 };

/* Levels at the listener in dB SPL. */
typedef struct gc_speech_levels {
    double speech; /* A-weighted level of the speech; NaN: levels are not considered */
    bool has_noise;
    double noise[GC_SPEECH_BANDS]; /* of each octave */
} gc_speech_levels;

typedef struct gc_speech {
    double sti;                  /* 0..1; NaN if a band is missing or silent */
    double mti[GC_SPEECH_BANDS]; /* modulation transfer index of each octave */
} gc_speech;

/* Computes the modulation transfer index of octave `k`, whose band the channel analysed last. */
void gc_speech_band(const gc_channel *channel, double rate, int k, const gc_speech_levels *levels, gc_speech *result);

/* Computes the index from those of the octaves; NaN stands for a missing one. */
void gc_speech_finish(gc_speech *result);

/* Returns the rating of an index: bad, poor, fair, good or excellent; "-" for NaN. */
const char *gc_speech_rating(double sti);

/* ---- Figures ----------------------------------------------------------------------------------------------------- */

typedef struct gc_figures_options {
    int per_octave; /* 1 or 3; 0: only the whole spectrum */
    gc_speech_levels levels;
    const char *reference;     /* response of the same source in a free field, for G; NULL: none */
    double reference_level;    /* dB: energy of such a response in every band, if `reference` is NULL; NaN: none */
    double reference_distance; /* metres, of the reference */
    double file_rate;          /* of files that state no rate; 0: these are refused */
    const char *raw;           /* of responses without a header, as in gc_ir_form; NULL: they have one */
    int lateral;               /* channel of the figure-eight microphone, from 1; 0: none */
} gc_figures_options;

/* Returns octaves, speech without levels, no reference (10 m). */
gc_figures_options gc_figures_default(void);

/* One channel in one band. */
typedef struct gc_figure {
    int channel;         /* from 0 */
    gc_octave_band band; /* nominal 0: the whole spectrum */
    gc_acoustics a;
    double strength; /* G in dB; NaN: no reference */
    double lateral;  /* LF; NaN: none */
    gc_interaural ears;
} gc_figure;

typedef struct gc_figures {
    gpuconv_ir *ir;
    const char *path;
    int channels, bands; /* bands includes the whole spectrum, which is the first */
    gc_figure *figure;   /* channels x bands */
    gc_decay *decay;     /* channels x bands */
    gc_speech *speech;   /* a channel */
} gc_figures;

/* Reads a file and computes its figures. `path` must live as long as the result.
 * @return any status of gpuconv_ir_load; ARGUMENT (no such channel, a reference of another rate), MEMORY, CANCELLED */
gpuconv_status gc_figures_new(const char *path, const gc_figures_options *options, gc_figures *figures,
                              gpuconv_error *error);

/* Computes the figures of a response in memory, to which it keeps a reference; messages begin with `name`.
 * @return ARGUMENT, MEMORY, CANCELLED as gc_figures_new */
gpuconv_status gc_figures_of(const gpuconv_ir *ir, const char *name, const gc_figures_options *options,
                             gc_figures *figures, gpuconv_error *error);

/* Computes the figures of a response or a matrix as it is applied to the sound file `input`.
 * @return any status of gc_reader_open and gpuconv_ir_prepare */
gpuconv_status gc_figures_prepared(const char *input, const char *path, const gpuconv_preparation *preparation,
                                   const gc_figures_options *options, gc_figures *figures, gpuconv_error *error);
void gc_figures_free(gc_figures *figures);

/* Frees the response and the curves of the decay, which only drawings need. */
void gc_figures_shrink(gc_figures *figures);

static inline const gc_figure *gc_figure_at(const gc_figures *f, int channel, int band) {
    return &f->figure[channel * f->bands + band];
}

/* Writes the words for the doubts of a figure, such as "noise T30; curved"; "" without doubt. */
const char *gc_doubt_text(unsigned doubt, char *text, size_t room);

/* ---- Several positions: mean and standard deviation by band, single numbers -------------------------------------- */

/* Parameters that are averaged, in the units of a report. */
typedef enum gc_quantity { GC_T20, GC_T30, GC_EDT, GC_C80, GC_D50, GC_LEVEL, GC_CENTRE, GC_QUANTITIES } gc_quantity;

typedef struct gc_quantity_info {
    const char *name, *unit, *title;
    double noticeable; /* just noticeable difference (ISO 3382-1:2009, table A.1) */
    bool relative;     /* it is a factor of the value */
} gc_quantity_info;

extern const gc_quantity_info gc_quantity_about[GC_QUANTITIES];

/* Returns a parameter; NaN: not determined. The level is G, or without a reference that of the energy. */
double gc_quantity_of(const gc_figure *figure, gc_quantity quantity);

/* The channels of files, each of which is a position, but for a figure-eight microphone. */
typedef struct gc_positions {
    const gc_figures *figures;
    int files;
    int lateral; /* channel of the figure-eight microphone, from 1; 0: none */
} gc_positions;

/* Returns the number of positions. */
int gc_positions_count(const gc_positions *positions);

/* Finds position `k`. @return the file, and its channel from 0 */
const gc_figures *gc_positions_at(const gc_positions *positions, int k, int *channel);

/* Returns the file with the most bands. */
const gc_figures *gc_positions_widest(const gc_positions *positions);

typedef struct gc_mean {
    double mean, deviation; /* standard deviation of a sample; NaN for fewer than two */
    int count;              /* values that were determined */
} gc_mean;

/* Adds a value; NaN and infinity are left out. Begin with zeros, and end with gc_mean_finish, which returns the result.
 */
void gc_mean_add(gc_mean *mean, double value);
gc_mean gc_mean_finish(gc_mean mean);

/* Averages a parameter in a band over the positions. @param nominal of the band; 0: the whole spectrum */
gc_mean gc_positions_mean(const gc_positions *positions, double nominal, gc_quantity quantity);

/* Returns the mean over the octaves 500 Hz and 1 kHz, or their third-octaves, such as T mid (ISO 3382-1, table A.1);
 * NaN if a band is missing. */
double gc_mid_of(const gc_figures *figures, int channel, gc_quantity quantity);

/* Returns the bass ratio: T30 at 125 and 250 Hz to T30 at 500 Hz and 1 kHz (Beranek); NaN if a band is missing. */
double gc_bass_ratio(const gc_figures *figures, int channel);

#endif
