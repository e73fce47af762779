/* Converts element types, with fp16 and bf16 in software, and generates random numbers from a seed. */
#include "types.h"

#include "libgpuconv/core/random.h"

#include <math.h>
#include <string.h>

int64_t gc_lab_type_bytes(gc_lab_type type) {
    switch (type) {
    case LAB_F64:
        return 8;
    case LAB_F16:
    case LAB_BF16:
        return 2;
    case LAB_U8:
        return 1;
    default:
        return 4;
    }
}

bool gc_lab_type_is_float(gc_lab_type type) {
    return type != LAB_I32 && type != LAB_U8;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds a float's significand to nearest even, `low` bits shorter. A carry into the exponent gives the right result:
 * the next power of two, or infinity. */
static uint32_t round_bits(uint32_t bits, int low) {
    uint32_t half = UINT32_C(1) << (low - 1), odd = bits >> low & 1;
    return (bits + half - 1 + odd) & ~((UINT32_C(1) << low) - 1);
}

static uint16_t float_to_half(float value) {
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude < 0x38800000u) { /* subnormal in fp16: multiples of 2^-24 */
        float scaled = rintf(float_from_bits(magnitude) * 0x1p24f);
        return (uint16_t)(sign | (uint32_t)scaled);
    }
    magnitude = round_bits(magnitude, 13);
    if (magnitude >= 0x47800000u)
        return (uint16_t)(sign | 0x7c00u);
    return (uint16_t)(sign | (magnitude - 0x38000000u) >> 13);
}

static double half_to_double(uint16_t half) {
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double magnitude = exponent == 31  ? fraction ? (double)NAN : (double)INFINITY
                       : exponent == 0 ? ldexp(fraction, -24)
                                       : ldexp(1024 + fraction, exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

void gc_lab_encode(gc_lab_type type, const float *from, void *to, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        switch (type) {
        case LAB_F64:
            ((double *)to)[i] = (double)from[i];
            break;
        case LAB_F16:
            ((uint16_t *)to)[i] = float_to_half(from[i]);
            break;
        case LAB_BF16:
            ((uint16_t *)to)[i] = (uint16_t)(isnan(from[i]) ? 0x7fc0u : round_bits(bits_of(from[i]), 16) >> 16);
            break;
        case LAB_I32:
            ((int32_t *)to)[i] = (int32_t)from[i];
            break;
        case LAB_U8:
            ((uint8_t *)to)[i] = (uint8_t)from[i];
            break;
        default:
            ((float *)to)[i] = from[i];
        }
}

double gc_lab_decode(gc_lab_type type, const void *elements, int64_t index) {
    switch (type) {
    case LAB_F64:
        return ((const double *)elements)[index];
    case LAB_F16:
        return half_to_double(((const uint16_t *)elements)[index]);
    case LAB_BF16:
        return (double)float_from_bits((uint32_t)((const uint16_t *)elements)[index] << 16);
    case LAB_I32:
        return ((const int32_t *)elements)[index];
    case LAB_U8:
        return ((const uint8_t *)elements)[index];
    default:
        return (double)((const float *)elements)[index];
    }
}

double gc_lab_round(gc_lab_type type, double value) {
    if (type == LAB_F64)
        return value;
    if (type == LAB_I32) /* a float would round what is above 2^24 */
        return trunc(value);
    union {
        double alignment;
        char bytes[8];
    } element;
    float single = (float)value;
    gc_lab_encode(type, &single, element.bytes, 1);
    return gc_lab_decode(type, element.bytes, 0);
}

uint64_t gc_lab_random_bits(uint64_t index) {
    return gc_mix_bits((index + 1) * GC_SPLITMIX_STEP);
}

void gc_lab_random_floats(uint64_t seed, double low, double high, float *to, int64_t count) {
    float base = (float)low, width = (float)(high - low);
    for (int64_t i = 0; i < count; i++)
        to[i] = base + width * (float)(gc_lab_random_bits(seed + (uint64_t)i) >> 40) * 0x1p-24f;
}
