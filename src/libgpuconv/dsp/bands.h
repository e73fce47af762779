/* Averages a power spectrum in bands of equal width on a logarithmic frequency axis, for plots. */
#ifndef GC_DSP_BANDS_H
#define GC_DSP_BANDS_H

#include <stdint.h>

/* Returns the FFT length, a power of two >= `frames`, at which a bin is narrower than the lowest band. */
int64_t gc_bands_points(int64_t frames, double rate);

/* Returns the lowest frequency of the plot in Hz: 20, or rate / 20 at rates below 400 Hz. */
double gc_bands_lowest(double rate);

/* Divides the frequencies from gc_bands_lowest to half the rate into `bands` bands with a constant frequency ratio.
 * @param power  points / 2 bins of a power spectrum
 * @param hz     gets the geometric centre of each band
 * @param level  gets the mean power of each band's bins in dB; NaN for a band without bins or without power, which a
 * plot skips: the line connects its neighbours */
void gc_bands(const double *power, int64_t points, double rate, int bands, double *hz, double *level);

/* Divides the same frequencies into `rows` bands for a column of a spectrogram.
 * @param level gets the largest power of each band's bins in dB, interpolated where a band is narrower than a bin */
void gc_bands_column(const double *power, int64_t points, double rate, int rows, float *level);

/* Returns the mean of the bins in a range of `width` octaves around a frequency, at least one bin.
 * @param sums of the bins below k, for k up to points / 2, of a transform of `points` points */
double gc_bands_mean(const double *sums, int64_t points, double rate, double hz, double width);

#endif
