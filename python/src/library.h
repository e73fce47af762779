/* What the binding needs of the library besides its public headers, whose declarations C++ cannot read: sound files,
 * room-acoustic figures, parts of responses. */
#ifndef GPUCONV_PYTHON_LIBRARY_H
#define GPUCONV_PYTHON_LIBRARY_H

#include "gpuconv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Whole sound files, with the reader and the writer of the command, so that both give the same bytes ---- */

/* A file that was read. */
typedef struct gcpy_audio {
    float *samples; /* planar, channels x frames; freed with free() */
    int channels, rate;
    int64_t frames;
    int64_t nonfinite; /* samples that were NaN or infinite and are 0 */
    char note[160];    /* of what the file holds and was not read; "": nothing */
} gcpy_audio;

/* Reads `frames` frames (-1: to the end) from frame `start` on. `raw`: RATE,CHANNELS,ENCODING of samples without a
 * header, or NULL. Returns ARGUMENT (behind the end), FILE, FORMAT, MEMORY, CANCELLED. */
gpuconv_status gcpy_read(const char *path, const char *raw, int64_t start, int64_t frames, gcpy_audio *audio,
                         gpuconv_error *error);

/* Writes `frames` frames. `format` and `encoding` are names or NULL: the container of the path's extension, and 32-bit
 * floats or the nearest encoding of the container. *clipped gets the number of samples that did not fit an integer
 * encoding. Returns ARGUMENT, FILE, FORMAT, MEMORY, CANCELLED. */
gpuconv_status gcpy_write(const char *path, const char *format, const char *encoding, const float *const *channel,
                          int channels, int64_t frames, int rate, int64_t *clipped, gpuconv_error *error);

/* ---- The room-acoustic figures of the command (gpuconv ir info) as arrays of numbers ---- */

/* The figures of a channel in a band. */
enum { GCPY_FIGURES = 18 };
typedef struct gcpy_figure {
    double value[GCPY_FIGURES]; /* in the order of _acoustics.py; NaN: there is none */
    char doubt[100];            /* words such as "noise T30; curved"; "": none */
} gcpy_figure;

/* What to compute, as the options of gpuconv ir info. */
typedef struct gcpy_figures_options {
    int per_octave;        /* bands besides the whole spectrum: 1, 3; 0: none */
    int lateral;           /* channel of the figure-eight microphone, from 1; 0: none */
    const char *reference; /* file; NULL: none */
    double reference_level, reference_distance;
    double speech_level;       /* dBA; NaN: none */
    const double *noise_level; /* of 7 octaves; NULL: none */
} gcpy_figures_options;

/* Computes the figures of all channels and bands, *count of them. The caller frees *figures.
 * @return ARGUMENT, FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gcpy_figures(const gpuconv_ir *ir, const gcpy_figures_options *options, gcpy_figure **figures,
                            int *count, gpuconv_error *error);

/* ---- Parts of responses that were pickled, and whether CUDA can be used ---- */

/* Returns whether a response is routed, as that of a matrix. */
bool gcpy_is_routed(const gpuconv_ir *ir);

/* Sets the frames before time zero, and the history, of a new response without history that nothing else refers to.
 * @return ARGUMENT (lead), MEMORY */
gpuconv_status gcpy_restore(gpuconv_ir *ir, int64_t lead, const char *history, gpuconv_error *error);

/* Returns whether there is a CUDA backend, which this loads. */
bool gcpy_has_cuda(void);

#ifdef __cplusplus
}
#endif

#endif
