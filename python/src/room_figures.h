/* The room-acoustic figures of the command (gpuconv ir info) as arrays of numbers. */
#ifndef GPUCONV_PYTHON_ROOM_FIGURES_H
#define GPUCONV_PYTHON_ROOM_FIGURES_H

#include "gpuconv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Figures of a channel in a band, in this order. */
enum {
    GCPY_CHANNEL, /* from 0 */
    GCPY_BAND,    /* nominal frequency in Hz; 0: the whole spectrum */
    GCPY_EDT,
    GCPY_T20,
    GCPY_T30,
    GCPY_C50,
    GCPY_C80,
    GCPY_D50,
    GCPY_CENTRE,
    GCPY_NOISE,
    GCPY_INR,
    GCPY_ONSET,
    GCPY_STRENGTH,
    GCPY_LATERAL,
    GCPY_IACC,
    GCPY_IACC_EARLY,
    GCPY_IACC_LATE,
    GCPY_STI,
    GCPY_DOUBT, /* gc_doubt */
    GCPY_FIGURES
};

/* What to compute, as the options of gpuconv ir info. */
typedef struct gcpy_figures_options {
    int per_octave;        /* bands besides the whole spectrum: 1, 3; 0: none */
    int lateral;           /* channel of the figure-eight microphone, from 1; 0: none */
    const char *reference; /* file; NULL: none */
    double reference_level, reference_distance;
    double speech_level;       /* dBA; NaN: none */
    const double *noise_level; /* of 7 octaves; NULL: none */
} gcpy_figures_options;

/* Computes `*rows` times GCPY_FIGURES figures, NaN where there is none. The caller frees *figures.
 * @return ARGUMENT, FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gcpy_figures(const gpuconv_ir *ir, const gcpy_figures_options *options, double **figures, int *rows,
                            gpuconv_error *error);

/* Writes the words for the doubts of a figure, such as "noise T30; curved". */
void gcpy_doubt(unsigned doubt, char *text, size_t room);

#ifdef __cplusplus
}
#endif

#endif
