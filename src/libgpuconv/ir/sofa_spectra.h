/* Measured spectra, such as those of SimpleFreeFieldHRTF, and the responses that belong to them. */
#ifndef GC_IR_SOFA_SPECTRA_H
#define GC_IR_SOFA_SPECTRA_H

#include "gpuconv.h"

/* `count` spectra of `bins` values at rising frequencies in Hz. Owned by the caller. */
typedef struct gc_spectra {
    int64_t count, bins;
    const float *frequency, *real, *imag;
} gc_spectra;

/* The responses of the spectra, one after the other. */
typedef struct gc_from_spectra {
    float *taps; /* count x frames, owned by the caller */
    int64_t frames, lead;
    double rate; /* Hz */
} gc_from_spectra;

/* Computes the responses. The last frequency is half their sampling rate. `path` is named in messages.
 * @return FORMAT (frequencies that are not uniform, or begin neither at 0 nor at their first step), MEMORY, CANCELLED
 */
gpuconv_status gc_spectra_invert(const char *path, const gc_spectra *spectra, gc_from_spectra *to,
                                 gpuconv_error *error);

#endif
