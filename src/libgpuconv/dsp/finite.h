/* Passes over samples by their bits: replacing NaN and the infinities, and the largest magnitude. */
#ifndef GC_DSP_FINITE_H
#define GC_DSP_FINITE_H

#include <stdbool.h>
#include <stdint.h>

/* Replaces non-finite samples by 0. *first gets the index of the first one and is unchanged if there are none.
 * @return the number of samples that were replaced */
int64_t gc_zero_nonfinite(float *samples, int64_t count, int64_t *first);

/* Returns the index of the first non-finite sample; `count` if there is none. */
int64_t gc_find_not_finite(const float *samples, int64_t count);

/* Returns whether no sample is NaN or infinite. */
bool gc_all_finite(const float *samples, int64_t count);

/* Returns the largest magnitude of finite samples; 0 if there are none. */
float gc_magnitude(const float *samples, int64_t count);

#endif
