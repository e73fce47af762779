/* Measures the costs of operations on one core (costs.h). Each cost is the shortest of ROUNDS runs. */
#include "cpu_measure.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/processor.h"
#include "libgpuconv/dsp/fft.h"
#include "libgpuconv/dsp/matrix_product.h"
#include "libgpuconv/dsp/pcm.h"
#include "libgpuconv/dsp/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5 };

static const int64_t max_points = INT64_C(1) << 20; /* of the largest FFT */

typedef struct bench {
    const gc_simd *simd;
    float *signal;    /* max_points samples */
    float *x, *h, *y; /* spectra of the largest FFT */
    int64_t floats;   /* of one spectrum */
} bench;

/* Returns the seconds per sample and level of a forward and a backward FFT. */
static double level_seconds(const bench *b, int64_t points) {
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

/* Returns the seconds per multiply-add of direct convolution. */
static double tap_seconds(const bench *b) {
    enum { TAPS = 512, OUTPUTS = 1 << 17 };
    double best = HUGE_VAL;
    for (int r = 0; r < ROUNDS && !gc_cancelled(); r++) {
        double begin = gc_now();
        b->simd->direct(b->signal + TAPS, b->h, TAPS, b->y, OUTPUTS, 0);
        best = fmin(best, gc_now() - begin);
    }
    return best / ((double)TAPS * OUTPUTS);
}

/* Returns the seconds per complex multiply-add of spectra. As in partitioned convolution, the spectra of the partitions
 * do not fit into the second-level cache. */
static double bin_seconds(const bench *b, gc_fft *fft) {
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

/* Returns the seconds per complex multiply-add of a product of dense matrices whose operands lie in the caches. */
static double matrix_seconds(const bench *b) {
    gc_matrix_shape s = {.outputs = 24, .inputs = 24, .partitions = 1, .delay = 12, .capacity = 12};
    s.width = gc_matrix_cut_make(b->simd, b->floats, s.inputs * s.delay).width;
    const int64_t times = 16;
    double best = HUGE_VAL;
    for (int r = 0; r < ROUNDS && !gc_cancelled(); r++) {
        double begin = gc_now();
        for (int64_t i = 0; i < times; i++)
            gc_matrix_multiply(b->simd, &s, s.width, b->h, b->x, b->y, s.capacity);
        best = fmin(best, (gc_now() - begin) / (double)times);
    }
    const int64_t bins = s.width * gc_matrix_pair(b->simd) / 2;
    return best / (double)(s.outputs * s.inputs * s.capacity * bins);
}

/* Returns the seconds per byte read of a pass over more data than the caches hold. */
static double byte_seconds(void) {
    enum { FLOATS = 1 << 25, LINE = 16 };
    float *data = gc_calloc(FLOATS, sizeof *data);
    volatile float sink = 0;
    double best = HUGE_VAL;
    for (int r = 0; data && r < ROUNDS && !gc_cancelled(); r++) {
        float sum[LINE] = {0};
        double begin = gc_now();
        for (int64_t i = 0; i < FLOATS; i += LINE)
            for (int k = 0; k < LINE; k++)
                sum[k] += data[i + k];
        best = fmin(best, gc_now() - begin);
        sink = sum[r];
    }
    (void)sink;
    free(data);
    return best < HUGE_VAL ? best / (4.0 * FLOATS) : (double)NAN;
}

/* Returns the seconds per sample of unpacking and packing stereo 24-bit frames, each with a copy of the bytes. */
static double sample_seconds(const bench *b) {
    gc_pcm format = {GC_S24, 24};
    int64_t frames = max_points / 4;
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
    gc_fft *fft = gc_fft_new(b.simd, max_points);
    bool made = fft != NULL;
    if (made) {
        b.floats = gc_fft_floats(fft);
        b.signal = gc_calloc(max_points, sizeof(float));
        b.x = gc_calloc(b.floats, sizeof(float));
        b.h = gc_calloc(b.floats, sizeof(float));
        b.y = gc_calloc(b.floats, sizeof(float));
        made = b.signal && b.x && b.h && b.y;
    }
    if (made) {
        gc_processor_name(costs->cpu, sizeof costs->cpu);
        costs->seconds[GC_COST_CPU_TAP] = tap_seconds(&b);
        costs->seconds[GC_COST_CPU_LEVEL_SMALL] = level_seconds(&b, INT64_C(1) << 13);
        costs->seconds[GC_COST_CPU_LEVEL_MEDIUM] = level_seconds(&b, INT64_C(1) << 17);
        costs->seconds[GC_COST_CPU_LEVEL_LARGE] = level_seconds(&b, max_points);
        costs->seconds[GC_COST_CPU_BIN] = bin_seconds(&b, fft);
        costs->seconds[GC_COST_CPU_MATRIX] = matrix_seconds(&b);
        costs->seconds[GC_COST_CPU_BYTE] = byte_seconds();
        costs->seconds[GC_COST_CPU_SAMPLE] = sample_seconds(&b);
        made = !gc_cancelled();
    }
    gc_fft_free(fft);
    free(b.signal);
    free(b.x);
    free(b.h);
    free(b.y);
    return made ? GPUCONV_OK : gc_fail_memory(error, "the calibration");
}
