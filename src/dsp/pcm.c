/* PCM conversion: one loop a container, specialised for mono and stereo so that the strides are constants. */
#include "pcm.h"

#include <math.h>
#include <string.h>

static int32_t load24(const uint8_t *p) {
    return (int32_t)((uint32_t)p[0] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 24);
}

static inline __attribute__((always_inline)) void unpack(gc_container container, const void *raw, int channels,
                                                         int64_t frames, float *restrict planar) {
    const int16_t *s16 = raw;
    const uint8_t *s24 = raw;
    const int32_t *s32 = raw;
    const float *f32 = raw;
    for (int64_t i = 0; i < frames; i++) {
        switch (container) {
        case GC_S16:
            planar[i] = (float)s16[i * channels] * 0x1p-15f;
            break;
        case GC_S24:
            planar[i] = (float)load24(s24 + 3 * i * channels) * 0x1p-31f;
            break;
        case GC_S32:
            planar[i] = (float)s32[i * channels] * 0x1p-31f;
            break;
        case GC_F32:
            planar[i] = f32[i * channels];
            break;
        }
    }
}

/* Rounds to `bits` and leaves them at the top of 32; counts what does not fit. The comparisons are on floats that are
 * powers of two, hence exact, and written so that NaN fails them. */
static inline __attribute__((always_inline)) int32_t quantize(float x, float scale, int shift, int64_t *clipped) {
    float v = rintf(x * scale);
    if (!(v < scale)) {
        *clipped += 1;
        return v >= scale ? (int32_t)((UINT32_C(1) << 31) - (UINT32_C(1) << shift)) : 0;
    }
    if (v < -scale) {
        *clipped += 1;
        return INT32_MIN;
    }
    return (int32_t)((uint32_t)(int32_t)v << shift);
}

static inline __attribute__((always_inline)) void pack(gc_pcm format, const float *restrict planar, int channels,
                                                       int64_t frames, void *raw, gc_pcm_overs *overs) {
    int16_t *s16 = raw;
    uint8_t *s24 = raw;
    int32_t *s32 = raw;
    float *f32 = raw;
    float scale = ldexpf(1.0f, format.bits - 1), peak = overs->peak;
    int shift = 32 - format.bits;
    int64_t clipped = 0;
    for (int64_t i = 0; i < frames; i++) {
        float x = planar[i], magnitude = fabsf(x);
        peak = magnitude > peak ? magnitude : peak;
        if (format.container == GC_F32) {
            f32[i * channels] = x;
            continue;
        }
        int32_t v = quantize(x, scale, shift, &clipped);
        if (format.container == GC_S16) {
            s16[i * channels] = (int16_t)(v >> 16);
        } else if (format.container == GC_S24) {
            uint32_t u = (uint32_t)v;
            uint8_t bytes[3] = {(uint8_t)(u >> 8), (uint8_t)(u >> 16), (uint8_t)(u >> 24)};
            memcpy(s24 + 3 * i * channels, bytes, 3);
        } else {
            s32[i * channels] = v;
        }
    }
    overs->peak = peak;
    overs->clipped += clipped;
}

void gc_pcm_unpack(gc_pcm format, const void *raw, int channels, int channel, int64_t frames, float *planar) {
    const void *first = (const char *)raw + (int64_t)channel * gc_pcm_bytes(format);
    switch (format.container) {
#define CASE(c)                                                                                                        \
    case c:                                                                                                            \
        if (channels == 1)                                                                                             \
            unpack(c, first, 1, frames, planar);                                                                       \
        else if (channels == 2)                                                                                        \
            unpack(c, first, 2, frames, planar);                                                                       \
        else                                                                                                           \
            unpack(c, first, channels, frames, planar);                                                                \
        break;
        CASE(GC_S16)
        CASE(GC_S24)
        CASE(GC_S32)
        CASE(GC_F32)
#undef CASE
    }
}

void gc_pcm_pack(gc_pcm format, const float *planar, int channels, int channel, int64_t frames, void *raw,
                 gc_pcm_overs *overs) {
    void *first = (char *)raw + (int64_t)channel * gc_pcm_bytes(format);
    switch (format.container) {
#define CASE(c)                                                                                                        \
    case c: {                                                                                                          \
        gc_pcm f = {c, format.bits};                                                                                   \
        if (channels == 1)                                                                                             \
            pack(f, planar, 1, frames, first, overs);                                                                  \
        else if (channels == 2)                                                                                        \
            pack(f, planar, 2, frames, first, overs);                                                                  \
        else                                                                                                           \
            pack(f, planar, channels, frames, first, overs);                                                           \
        break;                                                                                                         \
    }
        CASE(GC_S16)
        CASE(GC_S24)
        CASE(GC_S32)
        CASE(GC_F32)
#undef CASE
    }
}
