/* Samples that are no numbers: NaN and the infinities. */
#ifndef GC_DSP_FINITE_H
#define GC_DSP_FINITE_H

#include <stdint.h>

/* Replaces samples that are not finite by 0. *first is the index of the first one, if there are any. @return how many
 */
int64_t gc_zero_nonfinite(float *samples, int64_t count, int64_t *first);

#endif
