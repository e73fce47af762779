/* Conversion of IEEE half precision and bfloat16 to 32-bit floats, exactly, and back, to the nearest value, ties to
 * even. In integers where a half is subnormal, because threads that convolve flush subnormal floats to zero. */
#ifndef GC_DSP_HALF_H
#define GC_DSP_HALF_H

#include <stdint.h>
#include <string.h>

static inline float gc_float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t gc_bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float gc_half_to_float(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
    if (rest >= 0x0f800000) /* infinity, NaN */
        return gc_float_of_bits(sign | 0x70000000 | rest);
    if (rest >= 0x00800000)
        return gc_float_of_bits(sign | (rest + (112u << 23)));
    /* Subnormal: as the fraction of 2^-14, from which 2^-14 is taken. */
    return gc_float_of_bits(sign | gc_bits_of_float(gc_float_of_bits(rest + (113u << 23)) - 0x1p-14f));
}

static inline uint16_t gc_half_of_float(float value) {
    const uint32_t bits = gc_bits_of_float(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (rest >= 0x47800000) /* 65536 and more, infinity */
        return (uint16_t)(sign | 0x7c00);
    if (rest < 0x38800000) /* subnormal: the sum with 1/2 has a unit of 2^-24 in its last bit, and rounds */
        return (uint16_t)(sign | (gc_bits_of_float(gc_float_of_bits(rest) + 0.5f) - 0x3f000000));
    return (uint16_t)(sign | (rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13);
}

static inline float gc_bfloat_to_float(uint16_t bfloat) {
    return gc_float_of_bits((uint32_t)bfloat << 16);
}

static inline uint16_t gc_bfloat_of_float(float value) {
    const uint32_t bits = gc_bits_of_float(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
