/* A float is not finite if all bits of its exponent are set. Adding 1 to the exponent then carries into the sign bit,
 * which was cleared before. Finite floats without their signs are ordered as their bits. The loops over a whole block
 * have no branch, so that the compiler vectorises them. */
#include "finite.h"

#include <string.h>

static const uint32_t magnitude = 0x7fffffff, exponent_step = 0x00800000, carry_bit = 0x80000000;

static uint32_t bits_of(const float *sample) {
    uint32_t bits;
    memcpy(&bits, sample, sizeof bits);
    return bits;
}

bool gc_all_finite(const float *samples, int64_t count) {
    uint32_t carries = 0;
    for (int64_t i = 0; i < count; i++)
        carries |= (bits_of(samples + i) & magnitude) + exponent_step;
    return !(carries & carry_bit);
}

int64_t gc_zero_nonfinite(float *samples, int64_t count, int64_t *first) {
    int64_t replaced = 0;
    if (gc_all_finite(samples, count))
        return 0;
    for (int64_t i = 0; i < count; i++)
        if (((bits_of(samples + i) & magnitude) + exponent_step) & carry_bit) {
            if (replaced++ == 0)
                *first = i;
            samples[i] = 0;
        }
    return replaced;
}

int64_t gc_find_not_finite(const float *samples, int64_t count) {
    int64_t i = gc_all_finite(samples, count) ? count : 0;
    while (i < count && !(((bits_of(samples + i) & magnitude) + exponent_step) & carry_bit))
        i++;
    return i;
}

float gc_magnitude(const float *samples, int64_t count) {
    uint32_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits = bits_of(samples + i) & magnitude;
        most = bits > most ? bits : most;
    }
    float largest;
    memcpy(&largest, &most, sizeof largest);
    return largest;
}
