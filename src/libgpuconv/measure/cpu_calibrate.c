/* Measures the costs of operations on one core (conv/plan.h). Each cost is the shortest of ROUNDS runs. */
#include "measure.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/dsp/fft.h"
#include "libgpuconv/dsp/matrix_product.h"
#include "libgpuconv/dsp/pcm.h"
#include "libgpuconv/dsp/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, DATA_FLOATS = 1 << 25 };

static const int64_t max_points = INT64_C(1) << 20; /* of the largest FFT */

typedef struct bench {
    const gc_simd *simd;
    gc_fft *fft;
    int64_t points, floats; /* of fft; of a spectrum of the largest FFT */
    float *signal;          /* max_points samples */
    float *x, *h, *y;       /* spectra of the largest FFT */
    float *data;            /* DATA_FLOATS, more than the caches hold */
} bench;

/* The functions below do one kind of work and return the number of its operations. */

/* Multiply-adds of direct convolution. */
static double sum_taps(bench *b) {
    enum { TAPS = 512, OUTPUTS = 1 << 17 };
    b->simd->direct(b->signal + TAPS, b->h, TAPS, b->y, OUTPUTS, 0);
    return (double)TAPS * OUTPUTS;
}

/* Samples and levels of forward and backward FFTs. */
static double transform(bench *b) {
    const int64_t times = gc_max(1, (INT64_C(1) << 20) / b->points);
    const float *x = b->x, *h = b->h;
    for (int64_t i = 0; i < times; i++) {
        gc_fft_forward(b->fft, b->signal, b->x);
        gc_fft_inverse(b->fft, &x, &h, 1, b->y, b->signal, b->points / 2);
    }
    return 2.0 * (double)(times * b->points) * log2((double)b->points);
}

/* Complex multiply-adds of spectra. As in partitioned convolution, the spectra of the partitions do not fit into the
 * second-level cache. */
static double multiply_bins(bench *b) {
    enum { PARTITIONS = 16, FLOATS = 1 << 15 };
    const float *x[PARTITIONS], *h[PARTITIONS];
    for (int p = 0; p < PARTITIONS; p++) {
        x[p] = b->x + (int64_t)p * FLOATS;
        h[p] = b->h + (int64_t)p * FLOATS;
    }
    gc_fft_multiply_sum(b->fft, b->y, x, h, PARTITIONS, FLOATS);
    return PARTITIONS * (double)FLOATS / 2;
}

/* Complex multiply-adds of a product of dense matrices whose operands lie in the caches. */
static double multiply_matrices(bench *b) {
    gc_matrix_shape s = {.outputs = 24, .inputs = 24, .partitions = 1, .delay = 12, .capacity = 12};
    s.width = gc_matrix_cut_make(b->simd, b->floats, s.inputs * s.delay).width;
    const int64_t times = 16, bins = s.width * gc_matrix_pair(b->simd) / 2;
    for (int64_t i = 0; i < times; i++)
        gc_matrix_multiply(b->simd, &s, s.width, b->h, b->x, b->y, s.capacity);
    return (double)(times * s.outputs * s.inputs * s.capacity * bins);
}

/* Bytes of a pass over the data. */
static double read_bytes(bench *b) {
    enum { LINE = 16 };
    float sum[LINE] = {0};
    for (int64_t i = 0; i < DATA_FLOATS; i += LINE)
        for (int k = 0; k < LINE; k++)
            sum[k] += b->data[i + k];
    const volatile float sink = sum[0];
    (void)sink;
    return 4.0 * DATA_FLOATS;
}

/* Samples of stereo 24-bit frames that are unpacked and packed, each with a copy of the bytes. */
static double convert_samples(bench *b) {
    gc_pcm format = {GC_S24, 24};
    int64_t frames = max_points / 4;
    float *planar[2] = {b->signal, b->signal + frames};
    gc_pcm_overs overs = {0};
    char *raw = (char *)b->x, *other = (char *)b->y;
    memcpy(other, raw, (size_t)frames * 6);
    gc_pcm_unpack(b->simd, format, other, 2, frames, planar, 0);
    gc_pcm_pack(b->simd, &(gc_pcm_target){format, other, &overs}, (const float *const *)planar, 0, 2, frames);
    memcpy(raw, other, (size_t)frames * 6);
    return 4.0 * (double)frames;
}

static const struct {
    gc_cost cost;
    double (*work)(bench *bench);
    int64_t points; /* of the FFT; 0: the work has none */
} works[] = {{GC_COST_CPU_TAP, sum_taps, 0},
             {GC_COST_CPU_LEVEL_SMALL, transform, INT64_C(1) << 13},
             {GC_COST_CPU_LEVEL_MEDIUM, transform, INT64_C(1) << 17},
             {GC_COST_CPU_LEVEL_LARGE, transform, INT64_C(1) << 20},
             {GC_COST_CPU_BIN, multiply_bins, INT64_C(1) << 20},
             {GC_COST_CPU_MATRIX, multiply_matrices, 0},
             {GC_COST_CPU_BYTE, read_bytes, 0},
             {GC_COST_CPU_SAMPLE, convert_samples, 0}};

/* Measures all costs. Returns false without memory, or if it was cancelled. */
static bool measure(bench *b, gc_costs *costs) {
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        double best = HUGE_VAL;
        b->points = works[i].points;
        b->fft = b->points ? gc_fft_new(b->simd, b->points) : NULL;
        if (b->points && !b->fft)
            return false;
        for (int r = 0; r < ROUNDS && !gc_cancelled(); r++) {
            const double begin = gc_now(), operations = works[i].work(b);
            best = fmin(best, (gc_now() - begin) / operations);
        }
        costs->seconds[works[i].cost] = best;
        gc_fft_free(b->fft);
    }
    return !gc_cancelled();
}

gpuconv_status gc_cpu_calibrate(const gpuconv_config *config, gc_costs *costs, gpuconv_error *error) {
    (void)config;
    bench b = {.simd = gc_simd_best()};
    gc_fft *largest = gc_fft_new(b.simd, max_points);
    b.floats = largest ? gc_fft_floats(largest) : 0;
    gc_fft_free(largest);
    float **const blocks[] = {&b.signal, &b.x, &b.h, &b.y, &b.data};
    bool made = b.floats > 0;
    for (int i = 0; i < 5 && made; i++) {
        *blocks[i] = gc_calloc(i == 0 ? max_points : i < 4 ? b.floats : DATA_FLOATS, sizeof(float));
        made = *blocks[i] != NULL;
    }
    gc_os_processor_name(costs->cpu, sizeof costs->cpu);
    made = made && measure(&b, costs);
    for (int i = 0; i < 5; i++)
        free(*blocks[i]);
    return made ? GPUCONV_OK : gc_fail_memory(error, "the calibration");
}
