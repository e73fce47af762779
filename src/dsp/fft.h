/* Transforms on the CPU; hides the FFT library. Unnormalised: forward then backward scales by the number of points. */
#ifndef GC_DSP_FFT_H
#define GC_DSP_FFT_H

#include <stdint.h>

typedef struct gc_fft gc_fft;

/* A complex in-place transform of `points` (a power of two), data as pairs of floats, aligned to GC_ALIGNMENT. Making
 * and freeing lock; transforming does not, and one object serves many threads at once. NULL: no memory. */
gc_fft *gc_fft_new(int64_t points);
void gc_fft_forward(const gc_fft *fft, float *data);
void gc_fft_backward(const gc_fft *fft, float *data);
void gc_fft_free(gc_fft *fft);

/* The same for real signals: `points` floats to points / 2 + 1 complex bins and back (which destroys the bins). */
typedef struct gc_rfft gc_rfft;

gc_rfft *gc_rfft_new(int64_t points);
void gc_rfft_forward(const gc_rfft *fft, float *signal, float *bins);
void gc_rfft_backward(const gc_rfft *fft, float *bins, float *signal);
void gc_rfft_free(gc_rfft *fft);

#endif
