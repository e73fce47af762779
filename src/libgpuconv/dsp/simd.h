/* Vectorised inner loops, compiled once for each instruction set and selected at run time. */
#ifndef GC_DSP_SIMD_H
#define GC_DSP_SIMD_H

#include "pcm.h"

#include <stdint.h>

/* The loops of all sets work in spans whose length divides this number. Calls that each begin at a multiple of it
 * therefore give the same bits as one call for all outputs. */
enum { GC_DIRECT_SPAN = 3072 };

/* Do what gc_pcm_unpack and gc_pcm_pack do, for one or two channels and whole vectors only.
 * @return the number of frames that were converted; the caller converts the rest */
typedef int64_t gc_pcm_unpacker(gc_pcm format, const void *raw, int channels, int64_t frames, float *const *planar,
                                int64_t at);
typedef int64_t gc_pcm_packer(gc_pcm format, const float *const *planar, int64_t at, int channels, int64_t frames,
                              void *raw, gc_pcm_overs *overs);

typedef struct gc_simd {
    const char *name; /* such as "AVX-512" */

    /* Computes y[i] = sum over k < taps of h[k] x[i - k] for i < n; with `add`, adds it to y[i]. Reads x from
     * -(taps - 1). y must not overlap x or h. */
    void (*direct)(const float *x, const float *h, int64_t taps, float *y, int64_t n, int add);

    /* Executes fused multiply-adds in registers, to measure the peak rate. *operations gets their number, two per
     * multiply-add. The result only keeps the compiler from removing the loop. */
    float (*multiply_add_loop)(int64_t rounds, double *operations);

    const struct gc_fft_kernels *fft;       /* called by fft.c */
    const struct gc_matrix_kernels *matrix; /* called by matrix_product.c */
    const struct gc_motion_kernels *motion; /* called by delay_line.c, and for sources that move */
    const struct gc_image_kernels *image;   /* called by conv/cpu/cpu_rooms.c */

    /* called by pcm.c */
    gc_pcm_unpacker *unpack;
    gc_pcm_packer *pack;
} gc_simd;

/* Returns the widest set that this processor supports. */
const gc_simd *gc_simd_best(void);

/* Returns all *count sets that were compiled and that this processor supports, widest first. For tests and benchmarks.
 */
const gc_simd *const *gc_simd_all(int *count);

#endif
