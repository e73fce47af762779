/* Real time on a GPU: filter banks, and the tail of the real-time convolver. */
#include "gpu_test.h"
#include "libgpuconv/engine/filter_bank.h"

#include <math.h>

typedef struct random_responses {
    const guarded *taps;
    int64_t count;
} random_responses;

static void copy_response(void *context, int channel, float *taps) {
    const random_responses *r = context;
    memcpy(taps, r->taps->channel[channel], (size_t)r->count * sizeof *taps);
}

/* Blocks and lengths at the first and last taps of each level of partitions, with one and with several channels per
 * level and period; the last two have groups of channels. */
void test_a_filter_bank_agrees_with_the_oracle(void **state) {
    (void)state;
    static const struct {
        int channels, block;
        int64_t taps;
    } cases[] = {{1, 32, 1},      {3, 32, 33},       {5, 64, 64},     {9, 64, 65},    {4, 128, 1023},
                 {70, 128, 1025}, {17, 128, 9000},   {3, 256, 20000}, {2, 512, 8191}, {2, 1024, 40000},
                 {1, 64, 30000},  {10007, 128, 300}, {5003, 256, 700}};
    oracle_random random = {.state = 81};
    double worst = -HUGE_VAL;
    for (int k = 0; k < COUNT(cases); k += gpu_quick ? 4 : 1) {
        int channels = cases[k].channels, block = cases[k].block;
        int64_t taps_count = cases[k].taps, periods = (taps_count + 3000) / block + 5, frames = periods * block;
        guarded taps = guarded_random(&random, channels, taps_count), in = guarded_random(&random, channels, frames);
        random_responses responses = {&taps, taps_count};
        gc_filter_bank_config config = {channels, block, taps_count, 0, copy_response, &responses};
        gpuconv_error error = {0};
        gc_filter_bank *bank;
        CHECK(gc_filter_bank_cuda.open(&config, &bank, &error) == GPUCONV_OK, "%s", error.message);
        float *now = malloc((size_t)channels * (size_t)block * sizeof *now);
        double wrong = 0, power = 0;
        for (int64_t p = 0; p < periods; p++) {
            const float *out;
            for (int c = 0; c < channels; c++)
                memcpy(now + (int64_t)c * block, in.channel[c] + p * block, (size_t)block * sizeof *now);
            CHECK(gc_filter_bank_cuda.process(bank, now, &out, &error) == GPUCONV_OK, "%s", error.message);
            for (int check = 0; check < 3; check++) {
                int c = (int)oracle_below(&random, channels);
                int64_t i = check == 0 ? 0 : check == 1 ? block - 1 : oracle_below(&random, block);
                double got = (double)out[(int64_t)c * block + i];
                double want = oracle_frame(in.channel[c], frames, taps.channel[c], taps_count, p * block + i);
                wrong += (got - want) * (got - want);
                power += want * want;
            }
        }
        double decibels = 10 * log10(wrong / power);
        CHECK(decibels <= -120, "%d channels, blocks of %d, %lld taps: %.1f dB", channels, block, (long long)taps_count,
              decibels);
        worst = fmax(worst, decibels);
        gc_filter_bank_cuda.free(bank);
        free(now);
        guarded_free(&taps);
        guarded_free(&in);
    }
    gc_filter_bank_config bad = {1, 100, 5, 0, copy_response, NULL};
    gpuconv_error error = {0};
    gc_filter_bank *none;
    assert_int_equal(gc_filter_bank_cuda.open(&bad, &none, &error), GPUCONV_ERROR_ARGUMENT);
    gpu_note("a filter bank in real time", worst);
}

typedef struct single_taps {
    int64_t at[64], count;
} single_taps;

static void single_tap(void *context, int channel, float *taps) {
    const single_taps *t = context;
    memset(taps, 0, (size_t)t->count * sizeof *taps);
    taps[t->at[channel]] = 0.5f;
}

/* One channel for each edge between partitions, one for the tap before it and one for the tap after it. */
void test_a_single_tap_at_every_edge_of_a_filter_bank_delays_exactly(void **state) {
    (void)state;
    enum { BLOCK = 128, TAPS = 20000, PERIODS = TAPS / BLOCK + 40 };
    static const int64_t edges[] = {128, 256, 384, 512, 1024, 1536, 2048, 4096, 6144, 8192, 16384};
    single_taps delays = {.count = TAPS};
    int channels = 0;
    delays.at[channels++] = 0;
    delays.at[channels++] = TAPS - 1;
    for (int e = 0; e < COUNT(edges); e++)
        for (int k = -1; k <= 1; k++)
            delays.at[channels++] = edges[e] + k;
    oracle_random random = {.state = 83};
    guarded x = guarded_random(&random, channels, PERIODS * BLOCK);
    gc_filter_bank_config config = {channels, BLOCK, TAPS, 0, single_tap, &delays};
    gpuconv_error error = {0};
    gc_filter_bank *bank;
    CHECK(gc_filter_bank_cuda.open(&config, &bank, &error) == GPUCONV_OK, "%s", error.message);
    float *now = malloc((size_t)channels * BLOCK * sizeof *now);
    for (int64_t p = 0; p < PERIODS; p++) {
        const float *out;
        for (int c = 0; c < channels; c++)
            memcpy(now + (int64_t)c * BLOCK, x.channel[c] + p * BLOCK, BLOCK * sizeof *now);
        CHECK(gc_filter_bank_cuda.process(bank, now, &out, &error) == GPUCONV_OK, "%s", error.message);
        for (int c = 0; c < channels; c++)
            for (int64_t i = 0; i < BLOCK; i++) {
                int64_t n = p * BLOCK + i - delays.at[c];
                double want = n < 0 ? 0 : 0.5 * (double)x.channel[c][n];
                CHECK(fabs((double)out[(int64_t)c * BLOCK + i] - want) < 2e-6,
                      "a tap at %lld: frame %lld is %g, not %g", (long long)delays.at[c], (long long)(p * BLOCK + i),
                      (double)out[(int64_t)c * BLOCK + i], want);
            }
    }
    gc_filter_bank_cuda.free(bank);
    free(now);
    guarded_free(&x);
}

/* The real-time convolver with its tail on the GPU, called with blocks of different sizes, true stereo. */
void test_a_tail_on_the_gpu_in_real_time_agrees_with_the_oracle(void **state) {
    (void)state;
    enum { FRAMES = 30000, TAPS = 15000 };
    oracle_random random = {.state = 82};
    guarded taps, x = guarded_random(&random, 2, FRAMES), y = guarded_new(2, FRAMES);
    gpuconv_ir *ir = harness_response(&random, 4, 2, TAPS, &taps);
    gpuconv_realtime_config config = {.size = sizeof config,
                                      .rate = 48000,
                                      .block = 256,
                                      .freewheel = true,
                                      .backend = GPUCONV_BACKEND_CUDA,
                                      .device = -1};
    gpuconv_realtime *rt;
    gpuconv_error error = {0};
    CHECK(gpuconv_realtime_new(ir, &config, &rt, &error) == GPUCONV_OK, "%s", error.message);
    for (int64_t at = 0, n = 1; at < FRAMES; at += n, n = n * 5 % 1009 + 1) {
        n = n < FRAMES - at ? n : FRAMES - at;
        const float *in[] = {x.channel[0] + at, x.channel[1] + at};
        float *out[] = {y.channel[0] + at, y.channel[1] + at};
        gpuconv_realtime_process(rt, in, out, n);
    }
    assert_int_equal(gpuconv_realtime_backend(rt), GPUCONV_BACKEND_CUDA);
    gpuconv_realtime_free(rt);
    int outputs;
    double *want = harness_expected(&taps, &x, &outputs), wrong = 0, power = 0;
    for (int c = 0; c < 2; c++)
        for (int64_t i = 0; i < FRAMES; i++) {
            double w = want[c * (int64_t)(FRAMES + TAPS - 1) + i], d = (double)y.channel[c][i] - w;
            wrong += d * d;
            power += w * w;
        }
    double decibels = 10 * log10(wrong / power);
    CHECK(decibels <= -120, "%.1f dB", decibels);
    gpu_note("a tail in real time", decibels);
    free(want);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
    guarded_free(&x);
    guarded_free(&y);
}
