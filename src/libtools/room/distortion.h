/* Harmonic distortion from a sine sweep. After the division by an exponential sweep the harmonics are responses before
 * time zero: harmonic n of a sweep whose frequency grows e-fold in L seconds lies L ln n earlier (Farina, AES 108
 * (2000), 5093; Novak et al., JAES 63 (2015), 786). */
#ifndef GPUCONV_ROOM_DISTORTION_H
#define GPUCONV_ROOM_DISTORTION_H

#include "gpuconv.h"

#include <stdbool.h>

enum { GC_HARMONICS = 5 /* the fundamental is harmonic 1 */, GC_DISTORTION_POINTS = 160 };

/* An exponential sweep, as its samples show it. */
typedef struct gc_sweep_growth {
    double seconds;  /* in which the frequency grows e-fold */
    double from, to; /* Hz */
} gc_sweep_growth;

/* Measures the growth from the zero crossings. @return false if the sweep is not exponential */
bool gc_sweep_measure_growth(const gpuconv_ir *sweep, gc_sweep_growth *growth);

/* The distortion of a channel over the frequency of the fundamental: 12 points per octave, with one at 1 kHz. NaN where
 * a harmonic lies outside the sweep, or the noise is not known. */
typedef struct gc_distortion {
    int points;
    double hz[GC_DISTORTION_POINTS];
    double level[GC_DISTORTION_POINTS];                      /* of the fundamental, dB */
    double harmonic[GC_HARMONICS + 1][GC_DISTORTION_POINTS]; /* 2..GC_HARMONICS, per cent of the fundamental */
    double total[GC_DISTORTION_POINTS];                      /* THD of these harmonics, per cent */
    double noise[GC_DISTORTION_POINTS];                      /* the same of noise: the least THD that can be seen */
} gc_distortion;

/* Computes the distortion.
 * @param response periodic: the recording divided by the sweep, `points` values, times before zero at the end
 * @param onset    frame of the direct sound
 * @return false if memory is exhausted or the work was cancelled */
bool gc_distortion_measure(const double *response, int64_t points, double rate, int64_t onset,
                           const gc_sweep_growth *growth, gc_distortion *distortion);

/* Returns the THD at the point nearest to a frequency, per cent. */
double gc_distortion_at(const gc_distortion *distortion, double hz);

/* Adds the distortion of `channels` channels as a list "distortion". */
void gc_distortion_report(const gc_distortion *distortion, int channels, gpuconv_report *report);

/* Draws THD, harmonics and noise, a panel a channel. @return any status of gc_plot_panels */
gpuconv_status gc_distortion_draw(const gc_distortion *distortion, int channels, const char *plot,
                                  gpuconv_error *error);

#endif
