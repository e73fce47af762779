/*
 * PCM conversion of mono and stereo in whole vectors; compiled once for each instruction set, with GC_PCM_UNPACK and
 * GC_PCM_PACK as the names of its functions. pcm.c converts the remaining frames and other channel counts, and defines
 * the conversion of a value.
 *
 * A step loads LANES interleaved samples per channel; for stereo these are two vectors, which two shuffles separate
 * into channels.
 */
#include "simd.h"
#include "vector.h"

#include <math.h>

typedef int32_t ivec __attribute__((vector_size(LANES * 4)));
typedef int16_t svec __attribute__((vector_size(LANES * 2)));
typedef ivec ivec_unaligned __attribute__((aligned(1), may_alias));
typedef svec svec_unaligned __attribute__((aligned(1), may_alias));

/* In an instruction set without byte shuffles, pcm.c converts three-byte samples. */
#if defined(__AVX512BW__) || (defined(__AVX2__) && !defined(__AVX512F__)) || defined(__aarch64__)
enum { HAS_BYTE_SHUFFLE = 1 };
#else
enum { HAS_BYTE_SHUFFLE = 0 };
#endif

typedef uint8_t bytes __attribute__((vector_size(LANES * 4)));

/* Three-byte samples: a permutation of 32-bit words moves the 12 bytes of four samples to or from the beginning of each
 * 16-byte lane, and a byte shuffle inside the lanes expands or packs them. */
#define EXPANDED(l) l, l, l + 1, l + 2, l, l + 3, l + 4, l + 5, l, l + 6, l + 7, l + 8, l, l + 9, l + 10, l + 11
#define PACKED(l) l + 1, l + 2, l + 3, l + 5, l + 6, l + 7, l + 9, l + 10, l + 11, l + 13, l + 14, l + 15, l, l, l, l
#if defined(__AVX512F__)
#define TO_LANES(v) __builtin_shufflevector(v, v, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11, 12)
#define FROM_LANES(v) __builtin_shufflevector(v, v, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 15, 15, 15)
#define EXPAND(v) __builtin_shufflevector(v, v, EXPANDED(0), EXPANDED(16), EXPANDED(32), EXPANDED(48))
#define PACK(v) __builtin_shufflevector(v, v, PACKED(0), PACKED(16), PACKED(32), PACKED(48))
#elif defined(__AVX2__)
#define TO_LANES(v) __builtin_shufflevector(v, v, 0, 1, 2, 3, 3, 4, 5, 6)
#define FROM_LANES(v) __builtin_shufflevector(v, v, 0, 1, 2, 4, 5, 6, 7, 7)
#define EXPAND(v) __builtin_shufflevector(v, v, EXPANDED(0), EXPANDED(16))
#define PACK(v) __builtin_shufflevector(v, v, PACKED(0), PACKED(16))
#else
#define TO_LANES(v) (v)
#define FROM_LANES(v) (v)
#define EXPAND(v) __builtin_shufflevector(v, v, EXPANDED(0))
#define PACK(v) __builtin_shufflevector(v, v, PACKED(0))
#endif

/* Loads LANES three-byte samples into the upper bits of 32; reads a third more bytes than they have. */
ALWAYS_INLINE ivec load24(const uint8_t *p) {
    const ivec words = *(const ivec_unaligned *)p;
    const bytes expanded = EXPAND((bytes)TO_LANES(words));
    return (ivec)expanded & ((ivec){0} - 256);
}

/* Stores LANES three-byte samples; writes a third more bytes than they have. */
ALWAYS_INLINE void store24(uint8_t *p, ivec i) {
    const ivec packed = (ivec)PACK((bytes)i);
    *(ivec_unaligned *)p = FROM_LANES(packed);
}

ALWAYS_INLINE vec load_samples(gc_container container, const uint8_t *p) {
    switch (container) {
    case GC_S16:
        return __builtin_convertvector(*(const svec_unaligned *)p, vec) * 0x1p-15f;
    case GC_S24:
        return __builtin_convertvector(load24(p), vec) * 0x1p-31f;
    case GC_S32:
        return __builtin_convertvector(*(const ivec_unaligned *)p, vec) * 0x1p-31f;
    case GC_F32:
        break;
    }
    return load((const float *)(const void *)p);
}

ALWAYS_INLINE void store_samples(gc_container container, uint8_t *p, ivec v) {
    if (container == GC_S16)
        *(svec_unaligned *)p = __builtin_convertvector(v >> 16, svec);
    else if (container == GC_S24)
        store24(p, v);
    else
        *(ivec_unaligned *)p = v;
}

#if defined(__AVX512F__)
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif defined(__AVX2__)
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

/* Returns the frames that whole steps convert. At least one more vector of frames follows them, because load24 and
 * store24 access a third more bytes. */
ALWAYS_INLINE int64_t vector_frames(int64_t frames) {
    return frames >= 2 * LANES ? (frames - LANES) / LANES * LANES : 0;
}

ALWAYS_INLINE int64_t unpack(gc_container container, const uint8_t *raw, int channels, int64_t frames,
                             float *const *planar, int64_t at) {
    int bytes_each = gc_pcm_bytes((gc_pcm){container, 32});
    int64_t n = vector_frames(frames);
    float *a = planar[0] + at, *b = planar[channels - 1] + at;
    for (int64_t i = 0; i < n; i += LANES) {
        const uint8_t *p = raw + i * channels * bytes_each;
        vec x = load_samples(container, p);
        if (channels == 1) {
            store(a + i, x);
        } else {
            vec y = load_samples(container, p + LANES * bytes_each);
            store(a + i, EVEN(x, y));
            store(b + i, ODD(x, y));
        }
    }
    return n;
}

/* Does what quantize in pcm.c does, in each lane. A true comparison is -1, so that `clipped` counts downwards. */
ALWAYS_INLINE ivec quantize(vec x, float scale, int shift, ivec *clipped) {
    const ivec sign = (ivec){0} + INT32_MIN;
    const ivec top = (ivec){0} + (int32_t)((UINT32_C(1) << 31) - (UINT32_C(1) << shift));
    vec v = x * scale;
    /* Adding and subtracting 2^23 rounds smaller values to nearest even; larger floats are integers already. */
    ivec magic = (ivec)((vec){0} + 0x1p23f) | ((ivec)v & sign), small = ((vec)((ivec)v & ~sign)) < 0x1p23f;
    vec rounded = (v + (vec)magic) - (vec)magic;
    rounded = (vec)(((ivec)rounded & small) | ((ivec)v & ~small));
    ivec over = rounded >= scale, under = rounded < -scale, is_nan = rounded != rounded;
    ivec out = over | under | is_nan;
    ivec whole = __builtin_convertvector((vec)((ivec)rounded & ~out), ivec) << shift;
    *clipped += out;
    return whole | (top & over) | (sign & under);
}

ALWAYS_INLINE vec vec_max(vec a, vec b) {
    ivec m = a > b;
    return (vec)(((ivec)a & m) | ((ivec)b & ~m));
}

ALWAYS_INLINE int64_t pack(gc_pcm format, const float *const *planar, int64_t at, int channels, int64_t frames,
                           uint8_t *raw, gc_pcm_overs *overs) {
    int bytes_each = gc_pcm_bytes(format), shift = 32 - format.bits;
    float scale = ldexpf(1.0f, format.bits - 1);
    const ivec sign = (ivec){0} + INT32_MIN;
    int64_t n = vector_frames(frames);
    const float *first = planar[0] + at, *second = planar[channels - 1] + at;
    vec peak = broadcast(overs->peak);
    ivec clipped = {0};
    for (int64_t i = 0; i < n; i += LANES) {
        vec a = load(first + i);
        uint8_t *p = raw + i * channels * bytes_each;
        peak = vec_max((vec)((ivec)a & ~sign), peak);
        if (channels == 1) {
            store_samples(format.container, p,
                          format.container == GC_F32 ? (ivec)a : quantize(a, scale, shift, &clipped));
            continue;
        }
        vec b = load(second + i), x = LOW(a, b), y = HIGH(a, b);
        peak = vec_max((vec)((ivec)b & ~sign), peak);
        if (format.container == GC_F32) {
            store_samples(GC_F32, p, (ivec)x);
            store_samples(GC_F32, p + LANES * bytes_each, (ivec)y);
        } else {
            store_samples(format.container, p, quantize(x, scale, shift, &clipped));
            store_samples(format.container, p + LANES * bytes_each, quantize(y, scale, shift, &clipped));
        }
    }
    for (int l = 0; l < LANES; l++) {
        overs->peak = peak[l] > overs->peak ? peak[l] : overs->peak;
        overs->clipped -= clipped[l];
    }
    return n;
}

extern gc_pcm_unpacker GC_PCM_UNPACK;
extern gc_pcm_packer GC_PCM_PACK;

int64_t GC_PCM_UNPACK(gc_pcm format, const void *raw, int channels, int64_t frames, float *const *planar, int64_t at) {
    switch (format.container) {
#define CASE(c)                                                                                                        \
    case c:                                                                                                            \
        return channels == 1 ? unpack(c, raw, 1, frames, planar, at) : unpack(c, raw, 2, frames, planar, at);
        CASE(GC_S16)
        CASE(GC_S32)
        CASE(GC_F32)
    case GC_S24:
        if (!HAS_BYTE_SHUFFLE)
            break;
        return channels == 1 ? unpack(GC_S24, raw, 1, frames, planar, at) : unpack(GC_S24, raw, 2, frames, planar, at);
#undef CASE
    }
    return 0;
}

int64_t GC_PCM_PACK(gc_pcm format, const float *const *planar, int64_t at, int channels, int64_t frames, void *raw,
                    gc_pcm_overs *overs) {
    gc_pcm f = format;
    switch (format.container) {
#define CASE(c)                                                                                                        \
    case c:                                                                                                            \
        f.container = c;                                                                                               \
        return channels == 1 ? pack(f, planar, at, 1, frames, raw, overs) : pack(f, planar, at, 2, frames, raw, overs);
        CASE(GC_S16)
        CASE(GC_S32)
        CASE(GC_F32)
    case GC_S24:
        if (!HAS_BYTE_SHUFFLE)
            break;
        f.container = GC_S24;
        return channels == 1 ? pack(f, planar, at, 1, frames, raw, overs) : pack(f, planar, at, 2, frames, raw, overs);
#undef CASE
    }
    return 0;
}
