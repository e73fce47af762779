/*
 * Room acoustics: all figures of a response by channel and band: reverberation and clarity (acoustics.h), speech
 * transmission (speech.h) and two-channel parameters (spatial.h). The Python package includes only this header. Beside
 * it the folder has means over positions (positions.h), drawings (charts.h, band_charts.h) and pages (page.h) of the
 * figures, sine sweeps for measurements (sine_sweep.h), distortion (distortion.h), microphones (microphone.h)
 * and synthesis of responses (make.h).
 */
#ifndef GPUCONV_ROOM_FIGURES_H
#define GPUCONV_ROOM_FIGURES_H

#include "acoustics.h"
#include "gpuconv.h"
#include "spatial.h"
#include "speech.h"

typedef struct gc_figures_options {
    int per_octave; /* 1 or 3; 0: only the whole spectrum */
    gc_speech_levels levels;
    const char *reference;     /* response of the same source in a free field, for G; NULL: none */
    double reference_level;    /* dB: energy of such a response in every band, if `reference` is NULL; NaN: none */
    double reference_distance; /* metres, of the reference */
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

/* Does the same for a response or a matrix as it is applied to the sound file `input`.
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

#endif
