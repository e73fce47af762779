/* A float is not finite if all bits of its exponent are set: one more in its lowest bit then carries into the sign bit,
 * which was cleared. The sum over many samples has no branch, so that the compiler uses vectors. */
#include "finite.h"

#include <stdbool.h>
#include <string.h>

static const uint32_t magnitude = 0x7fffffff, exponent_step = 0x00800000, carried = 0x80000000;

static uint32_t bits_of(const float *sample) {
    uint32_t bits;
    memcpy(&bits, sample, sizeof bits);
    return bits;
}

static bool all_finite(const float *samples, int64_t count) {
    uint32_t seen = 0;
    for (int64_t i = 0; i < count; i++)
        seen |= (bits_of(samples + i) & magnitude) + exponent_step;
    return !(seen & carried);
}

int64_t gc_zero_nonfinite(float *samples, int64_t count, int64_t *first) {
    int64_t found = 0;
    if (all_finite(samples, count))
        return 0;
    for (int64_t i = 0; i < count; i++)
        if (((bits_of(samples + i) & magnitude) + exponent_step) & carried) {
            if (found++ == 0)
                *first = i;
            samples[i] = 0;
        }
    return found;
}
