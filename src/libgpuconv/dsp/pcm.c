/* PCM conversion, one channel at a time; defines the result for each value. Of mono and stereo signals only the frames
 * after the last whole vector are converted here, the others by pcm_kernels.c. */
#include "pcm.h"

#include "simd.h"

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

/* Rounds to 32 - shift bits and returns them as the upper bits of 32; counts samples that were clipped. The comparisons
 * are with powers of two, hence exact, and a NaN fails the first one. */
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

void gc_pcm_unpack(const gc_simd *simd, gc_pcm format, const void *raw, int channels, int64_t frames,
                   float *const *planar, int64_t at) {
    int64_t done = channels <= 2 ? simd->unpack(format, raw, channels, frames, planar, at) : 0;
    for (int c = 0; c < channels; c++) {
        const void *first = (const char *)raw + (done * channels + c) * gc_pcm_bytes(format);
        float *to = planar[c] + at + done;
        switch (format.container) {
        case GC_S16:
            unpack(GC_S16, first, channels, frames - done, to);
            break;
        case GC_S24:
            unpack(GC_S24, first, channels, frames - done, to);
            break;
        case GC_S32:
            unpack(GC_S32, first, channels, frames - done, to);
            break;
        case GC_F32:
            unpack(GC_F32, first, channels, frames - done, to);
            break;
        }
    }
}

void gc_pcm_pack(const gc_simd *simd, const gc_pcm_target *to, const float *const *planar, int64_t at, int channels,
                 int64_t frames) {
    const gc_pcm format = to->format;
    void *raw = to->raw;
    gc_pcm_overs *overs = to->overs;
    int64_t done = channels <= 2 ? simd->pack(format, planar, at, channels, frames, raw, overs) : 0;
    for (int c = 0; c < channels; c++) {
        void *first = (char *)raw + (done * channels + c) * gc_pcm_bytes(format);
        const float *from = planar[c] + at + done;
        switch (format.container) {
        case GC_S16:
            pack((gc_pcm){GC_S16, format.bits}, from, channels, frames - done, first, overs);
            break;
        case GC_S24:
            pack((gc_pcm){GC_S24, format.bits}, from, channels, frames - done, first, overs);
            break;
        case GC_S32:
            pack((gc_pcm){GC_S32, format.bits}, from, channels, frames - done, first, overs);
            break;
        case GC_F32:
            pack((gc_pcm){GC_F32, 32}, from, channels, frames - done, first, overs);
            break;
        }
    }
}
