/* The vector loops of sources that move: delays that change from frame to frame, mixtures of spectra, and
 * copies of inputs. */
#ifndef GC_DSP_MOTION_KERNELS_H
#define GC_DSP_MOTION_KERNELS_H

#include <stdint.h>

enum { GC_DELAY_PHASES = 512, GC_DELAY_TAPS = 64 /* of the filter of each phase */ };

typedef struct gc_motion_kernels {
    /* Writes y[i] = the input at the place i - from - step i, i < frames. `taps` has the filters of GC_DELAY_PHASES + 1
     * phases; those of a place are the taps of the two phases around it, linear in between. */
    void (*delay)(const float *taps, const float *x, double from, double step, int64_t frames, float *y);

    /* Writes sum = the three spectra times their weights, n floats, and returns the sum of its squares. */
    float (*blend)(const float *const spectrum[3], const float weight[3], int64_t n, float *sum);

    /* Copies rows of n floats, from[r] + first to `to` + r pitch, past the caches: for many rows that a device reads
     * next. */
    void (*copy_rows)(const float *const *from, int64_t first, int64_t n, int64_t rows, float *to, int64_t pitch);
} gc_motion_kernels;

#endif
