/* Conversion of IEEE half precision and bfloat16 to 32-bit floats, exactly, and back, to the nearest value, ties to
 * even. In integers where a half is subnormal, because threads that convolve flush subnormal floats to zero. Without
 * branches, so that the compiler vectorises loops over adjacent samples. */
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
    const uint32_t sign = (half & 0x8000u) << 16, rest = (half & 0x7fffu) << 13;
    const uint32_t normal = rest + ((int32_t)rest < 0x0f800000 ? 112u << 23 : 0x70000000u); /* else infinity, NaN */
    /* Subnormal: as the fraction of 2^-14, from which 2^-14 is taken. */
    const uint32_t subnormal = gc_bits_of_float(gc_float_of_bits(rest + (113u << 23)) - 0x1p-14f);
    return gc_float_of_bits(sign | ((int32_t)rest < 0x00800000 ? subnormal : normal));
}

static inline uint16_t gc_half_of_float(float value) {
    const uint32_t bits = gc_bits_of_float(value), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    /* Subnormal: the sum with 1/2 has a unit of 2^-24 in its last bit, and rounds. */
    const uint32_t subnormal = gc_bits_of_float(gc_float_of_bits(rest) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (rest - (112u << 23) + 0xfffu + (rest >> 13 & 1u)) >> 13;
    const uint32_t large = (int32_t)rest > 0x7f800000 ? 0x7e00u : 0x7c00u; /* NaN; from 65536 on infinity */
    const uint32_t finite = (int32_t)rest < 0x38800000 ? subnormal : normal;
    return (uint16_t)(sign | ((int32_t)rest >= 0x47800000 ? large : finite));
}

static inline float gc_bfloat_to_float(uint16_t bfloat) {
    return gc_float_of_bits((uint32_t)bfloat << 16);
}

static inline uint16_t gc_bfloat_of_float(float value) {
    const uint32_t bits = gc_bits_of_float(value), rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    return (uint16_t)(((int32_t)(bits & 0x7fffffffu) > 0x7f800000 ? bits | 0x400000u : rounded) >> 16);
}

#endif
