/* What operations cost on one core here. */
#include "cpu_convolver.h"

#include "cpu_cost.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/processor.h"
#include "libgpuconv/dsp/fft.h"
#include "libgpuconv/dsp/pcm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5 };

static const int64_t most = INT64_C(1) << 20; /* samples of the largest transform */

typedef struct bench {
    const gc_simd *simd;
    float *signal, *x, *h, *y; /* a signal of `most`, room for spectra of it */
    int64_t floats;
} bench;

/* Seconds a sample and level of the way there and back. */
static double level(const bench *b, int64_t points) {
    gc_fft *fft = gc_fft_new(b->simd, points);
    if (!fft)
        return (double)NAN;
    const float *x = b->x, *h = b->h;
    double best = HUGE_VAL;
    int64_t times = gc_max(1, (INT64_C(1) << 20) / points);
    for (int r = 0; r < ROUNDS && !gc_cancelled(); r++) {
        double begin = gc_now();
        for (int64_t i = 0; i < times; i++) {
            gc_fft_forward(fft, b->signal, b->x);
            gc_fft_inverse(fft, &x, &h, 1, b->y, b->signal, points / 2);
        }
        best = fmin(best, (gc_now() - begin) / (double)times);
    }
    gc_fft_free(fft);
    return best / (2.0 * (double)points * log2((double)points));
}

static double tap(const bench *b) {
    enum { TAPS = 512, OUTPUTS = 1 << 17 };
    double best = HUGE_VAL;
    for (int r = 0; r < ROUNDS && !gc_cancelled(); r++) {
        double begin = gc_now();
        b->simd->direct(b->signal + TAPS, b->h, TAPS, b->y, OUTPUTS, 0);
        best = fmin(best, gc_now() - begin);
    }
    return best / ((double)TAPS * OUTPUTS);
}

/* Sums over a few partitions, whose spectra come from beyond the second-level cache, as they do in use. */
static double bin(const bench *b, gc_fft *fft) {
    enum { PARTITIONS = 16, FLOATS = 1 << 15 };
    const float *x[PARTITIONS], *h[PARTITIONS];
    double best = HUGE_VAL;
    for (int p = 0; p < PARTITIONS; p++) {
        x[p] = b->x + (int64_t)p * FLOATS;
        h[p] = b->h + (int64_t)p * FLOATS;
    }
    for (int r = 0; r < ROUNDS && !gc_cancelled(); r++) {
        double begin = gc_now();
        gc_fft_multiply_sum(fft, b->y, x, h, PARTITIONS, FLOATS);
        best = fmin(best, gc_now() - begin);
    }
    return best / (PARTITIONS * (double)FLOATS / 2);
}

/* A stereo sample in, and one out, with a copy of its bytes each as files bring it. */
static double sample(const bench *b) {
    gc_pcm format = {GC_S24, 24};
    int64_t frames = most / 4;
    float *planar[2] = {b->signal, b->signal + frames};
    gc_pcm_overs overs = {0};
    char *raw = (char *)b->x, *other = (char *)b->y;
    double best = HUGE_VAL;
    for (int r = 0; r < ROUNDS && !gc_cancelled(); r++) {
        double begin = gc_now();
        memcpy(other, raw, (size_t)frames * 6);
        gc_pcm_unpack(b->simd, format, other, 2, frames, planar, 0);
        gc_pcm_pack(b->simd, format, (const float *const *)planar, 0, 2, frames, other, &overs);
        memcpy(raw, other, (size_t)frames * 6);
        best = fmin(best, gc_now() - begin);
    }
    return best / (4.0 * (double)frames);
}

gpuconv_status gc_cpu_calibrate(const gpuconv_config *config, gc_costs *costs, gpuconv_error *error) {
    (void)config;
    bench b = {.simd = gc_simd_best()};
    gc_fft *fft = gc_fft_new(b.simd, most);
    bool made = fft != NULL;
    if (made) {
        b.floats = gc_fft_floats(fft);
        b.signal = gc_calloc(most, sizeof(float));
        b.x = gc_calloc(b.floats, sizeof(float));
        b.h = gc_calloc(b.floats, sizeof(float));
        b.y = gc_calloc(b.floats, sizeof(float));
        made = b.signal && b.x && b.h && b.y;
    }
    if (made) {
        gc_processor_name(costs->cpu, sizeof costs->cpu);
        costs->seconds[GC_COST_CPU_TAP] = tap(&b);
        costs->seconds[GC_COST_CPU_LEVEL_SMALL] = level(&b, INT64_C(1) << 13);
        costs->seconds[GC_COST_CPU_LEVEL_MEDIUM] = level(&b, INT64_C(1) << 17);
        costs->seconds[GC_COST_CPU_LEVEL_LARGE] = level(&b, most);
        costs->seconds[GC_COST_CPU_BIN] = bin(&b, fft);
        costs->seconds[GC_COST_CPU_SAMPLE] = sample(&b);
        made = !gc_cancelled();
    }
    gc_fft_free(fft);
    free(b.signal);
    free(b.x);
    free(b.h);
    free(b.y);
    return made ? GPUCONV_OK : gc_fail_memory(error, "the calibration");
}
