/* The arithmetic of one row, on one thread. */
#ifndef GC_CPU_ROW_CONVOLVE_H
#define GC_CPU_ROW_CONVOLVE_H

#include "libgpuconv/dsp/fft.h"
#include "row_plan.h"

#include <stdatomic.h>

struct gc_kept_response {
    float *taps;
    /* Of the taps, and of the taps backwards; by log2 of the points; computed on first use. */
    _Atomic(float *) spectrum[2][GC_FFT_MAX_LOG2 + 1];
};

/* FFT plans by log2 of their points. Immutable while rows are convolved. */
typedef struct gc_row_tables {
    gc_fft *fft[GC_FFT_MAX_LOG2 + 1];
} gc_row_tables;

/* Spectra of one size. */
typedef struct gc_row_spectra {
    float *response, *work, *sum;
} gc_row_spectra;

/* Scratch memory of one worker; grows on use. */
typedef struct gc_row_scratch {
    float *block, *output, *taps; /* samples */
    int64_t block_floats, output_floats, taps_floats;
    gc_row_spectra spectra[GC_FFT_MAX_LOG2 + 1]; /* by log2 of the points: the gaps of a spectrum must stay zero */
    gc_array kept; /* the taps that the last response's spectrum is of, in the current call; data NULL: none */
    int64_t kept_transform;
} gc_row_scratch;

/* Returns log2 of a power of two. */
static inline int gc_row_log2(int64_t n) {
    return 63 - __builtin_clzll((unsigned long long)n);
}

/* Creates the FFT plan of a row, if it is missing. Returns false without memory. */
bool gc_row_tables_add(gc_row_tables *tables, int64_t transform);

/* Returns the row's spectrum of a prepared response and computes it if it is missing. Returns NULL without memory. */
const float *gc_row_prepared_spectrum(const gc_row_tables *tables, const gc_row_plan *plan);

/* Computes the spectrum of the row's taps, which has gc_fft_floats() floats. Returns false without memory. */
bool gc_row_spectrum(const gc_row_tables *tables, gc_row_scratch *scratch, const gc_row_plan *plan, float *spectrum);

/* Computes the output frames of `blocks` blocks.
 * @param spectrum  the response's spectrum; NULL: computed here, unless the scratch memory has it
 * @return false without memory */
bool gc_row_convolve(const gc_row_tables *tables, gc_row_scratch *scratch, const gc_row_plan *plan, const gc_row *row,
                     const float *spectrum, int64_t first_block, int64_t blocks);

/* Copies `count` frames of an array from frame `at` on as floats, with zeros before its beginning and behind its end.
 */
void gc_row_gather(const gc_array *from, int64_t at, int64_t count, float *to);

/* Writes `count` frames of a row's output from frame `first` on. */
void gc_row_write(const gc_row *row, int64_t first, int64_t count, const float *from);

void gc_row_tables_free(gc_row_tables *tables);
void gc_row_scratch_free(gc_row_scratch *scratch);

#endif
