/* Octave and third-octave band filters by IEC 61260-1:2014, as functions of frequency. */
#ifndef GPUCONV_ROOM_OCTAVE_FILTER_H
#define GPUCONV_ROOM_OCTAVE_FILTER_H

#include <complex.h>
#include <stdint.h>

#define GC_J ((double complex)_Complex_I) /* the imaginary unit; I of complex.h is a float */

enum { GC_OCTAVE_BANDS = 40 }; /* at most, of gc_octave_bands */

typedef struct gc_octave_band {
    double nominal;   /* name of the band in Hz: 63, 125, ... */
    double centre;    /* exact mid-band frequency in Hz */
    double low, high; /* band-edge frequencies in Hz */
    int order;        /* of the Butterworth lowpass that is transformed to the band: 3 or 7 */
} gc_octave_band;

/* Lists the bands whose upper edge is below half the rate: octaves from 63 Hz to 16 kHz, or third-octaves from 50 Hz
 * to 20 kHz.
 * @param per_octave 1 or 3
 * @return their number, at most GC_OCTAVE_BANDS */
int gc_octave_bands(int per_octave, double rate, gc_octave_band band[GC_OCTAVE_BANDS]);

/* Returns the octave with this nominal frequency. */
gc_octave_band gc_octave_at(double nominal);

/* Returns octave k of the speech transmission index, 0: 125 Hz to 6: 8 kHz. Its filter is steeper, because speech has
 * much less energy in the upper octaves than in those below them. */
gc_octave_band gc_octave_of_speech(int k);

/* Returns the frequency response of the filter at a frequency > 0: a Butterworth bandpass, which lies
 * within the limits of class 1 and has unity gain in the band. Conjugated, it is the filter reversed in time. */
double complex gc_octave_response(const gc_octave_band *band, double hz);

/* The autocorrelation of the filter's impulse response for lags >= 0, with half its value at lag 0. */
typedef struct gc_octave_correlation {
    double complex pole[14], residue[14];
    int poles; /* twice the order */
} gc_octave_correlation;

gc_octave_correlation gc_octave_correlate(const gc_octave_band *band);

/* Returns the Fourier transform of the one-sided autocorrelation. Its real part is half of |response|^2. */
double complex gc_octave_one_sided(const gc_octave_correlation *correlation, double hz);

#endif
