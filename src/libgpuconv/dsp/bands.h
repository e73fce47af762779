/* Spectra in bands of equal width on a logarithmic axis, for drawings. */
#ifndef GC_DSP_BANDS_H
#define GC_DSP_BANDS_H

#include <stdint.h>

/* Returns the points of a transform whose bins are narrower than the lowest of such bands, at least `frames`. */
int64_t gc_bands_points(int64_t frames, double rate);

/* The lowest frequency drawn: 20 Hz, or less at rates below 400 Hz. */
double gc_bands_lowest(double rate);

/* Divides the frequencies from gc_bands_lowest to half of the rate into `bands` bands with a constant ratio.
 * @param power  points / 2 bins of a power spectrum
 * @param hz     gets the middle of each band
 * @param level  gets the mean power of a band's bins in dB; NaN for a band without a bin or without power, so that a
 * line passes straight over it instead of in stairs */
void gc_bands(const double *power, int64_t points, double rate, int bands, double *hz, double *level);

#endif
