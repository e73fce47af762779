/* Samples as files store them, interleaved, and their conversion to and from planar floats. */
#ifndef GC_DSP_PCM_H
#define GC_DSP_PCM_H

#include <stdint.h>

typedef enum gc_container {
    GC_S16 = 0, /* 16-bit integers in the machine's order */
    GC_S24,     /* three bytes, little endian, packed */
    GC_S32,     /* 32-bit integers in the machine's order */
    GC_F32      /* floats */
} gc_container;

/* `bits` (8..32) of an integer container carry signal, the uppermost ones. Floats ignore it. */
typedef struct gc_pcm {
    gc_container container;
    int bits;
} gc_pcm;

/* What packing saw: samples that did not fit an integer container, and the largest magnitude before rounding. */
typedef struct gc_pcm_overs {
    int64_t clipped;
    float peak;
} gc_pcm_overs;

static inline int gc_pcm_bytes(gc_pcm format) {
    return format.container == GC_S16 ? 2 : format.container == GC_S24 ? 3 : 4;
}

struct gc_simd;

/* `frames` interleaved frames to planar[channel][at ...], full scale being 1.0. */
void gc_pcm_unpack(const struct gc_simd *simd, gc_pcm format, const void *raw, int channels, int64_t frames,
                   float *const *planar, int64_t at);

/* Interleaved frames that are written, and the counters of what does not fit into their format. */
typedef struct gc_pcm_target {
    gc_pcm format;
    void *raw;
    gc_pcm_overs *overs;
} gc_pcm_target;

/* planar[channel][at ...] to interleaved frames: rounded to nearest even, clamped and counted (NaN becomes 0 and
 * counts); floats pass as they are. Adds to the counters. */
void gc_pcm_pack(const struct gc_simd *simd, const gc_pcm_target *to, const float *const *planar, int64_t at,
                 int channels, int64_t frames);

#endif
