/* Real time on a GPU: filter banks, matrices, and the tail of the real-time convolver. */
#include "gpu_test.h"
#include "libgpuconv/conv/backend.h"

#include <math.h>

typedef struct random_responses {
    const guarded *taps;
    int64_t count;
} random_responses;

static void copy_response(void *context, int route, float *taps) {
    const random_responses *r = context;
    memcpy(taps, r->taps->channel[route], (size_t)r->count * sizeof *taps);
}

/* Returns the options of a filter bank; the caller frees the routes. */
static gc_bank_options filter_bank(int channels, int block, int64_t taps) {
    gc_route *route = calloc((size_t)channels, sizeof *route);
    for (int c = 0; c < channels; c++)
        route[c] = (gc_route){.input = c, .output = c};
    return (gc_bank_options){
        .inputs = channels, .outputs = channels, .routes = channels, .route = route, .block = block, .taps = taps};
}

static gc_bank *open_bank(const gc_bank_options *options) {
    gpuconv_error error = {0};
    gc_bank *bank;
    CHECK(gc_bank_cuda.open(options, &bank, &error) == GPUCONV_OK, "%s", error.message);
    return bank;
}

/* Returns the output of period `p` of the inputs, which `now` has room for. */
static const float *play_period(gc_bank *bank, const guarded *in, float *now, int64_t block, int64_t p) {
    gpuconv_error error = {0};
    const float *out;
    for (int c = 0; c < in->channels; c++)
        memcpy(now + c * block, in->channel[c] + p * block, (size_t)block * sizeof *now);
    CHECK(gc_bank_cuda.process(bank, now, &out, &error) == GPUCONV_OK, "%s", error.message);
    return out;
}

static void expect_refusal(const gc_bank_options *options) {
    gpuconv_error error = {0};
    gc_bank *none;
    assert_int_equal(gc_bank_cuda.open(options, &none, &error), GPUCONV_ERROR_ARGUMENT);
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
    for (int k = 0; k < COUNT(cases); k += harness_quick ? 4 : 1) {
        int channels = cases[k].channels, block = cases[k].block;
        int64_t taps_count = cases[k].taps, periods = (taps_count + 3000) / block + 5, frames = periods * block;
        guarded taps = guarded_random(&random, channels, taps_count), in = guarded_random(&random, channels, frames);
        random_responses responses = {&taps, taps_count};
        gc_bank_options options = filter_bank(channels, block, taps_count);
        options.response = copy_response;
        options.context = &responses;
        gc_bank *bank = open_bank(&options);
        float *now = malloc((size_t)channels * (size_t)block * sizeof *now);
        double wrong = 0, power = 0;
        for (int64_t p = 0; p < periods; p++) {
            const float *out = play_period(bank, &in, now, block, p);
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
        gc_bank_cuda.free(bank);
        free((void *)options.route);
        free(now);
        guarded_free(&taps);
        guarded_free(&in);
    }
    gc_bank_options bad = filter_bank(1, 100, 5);
    expect_refusal(&bad);
    free((void *)bad.route);
    gpu_note("a filter bank in real time", worst);
}

typedef struct single_taps {
    int64_t at[64], count;
} single_taps;

static void single_tap(void *context, int route, float *taps) {
    const single_taps *t = context;
    memset(taps, 0, (size_t)t->count * sizeof *taps);
    taps[t->at[route]] = 0.5f;
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
    gc_bank_options options = filter_bank(channels, BLOCK, TAPS);
    options.response = single_tap;
    options.context = &delays;
    gc_bank *bank = open_bank(&options);
    float *now = malloc((size_t)channels * BLOCK * sizeof *now);
    for (int64_t p = 0; p < PERIODS; p++) {
        const float *out = play_period(bank, &x, now, BLOCK, p);
        for (int c = 0; c < channels; c++)
            for (int64_t i = 0; i < BLOCK; i++) {
                int64_t n = p * BLOCK + i - delays.at[c];
                double want = n < 0 ? 0 : 0.5 * (double)x.channel[c][n];
                CHECK(fabs((double)out[(int64_t)c * BLOCK + i] - want) < 2e-6,
                      "a tap at %lld: frame %lld is %g, not %g", (long long)delays.at[c], (long long)(p * BLOCK + i),
                      (double)out[(int64_t)c * BLOCK + i], want);
            }
    }
    gc_bank_cuda.free(bank);
    free((void *)options.route);
    free(now);
    guarded_free(&x);
}

/* A matrix whose routes are all pairs, or a random part of them, with the inputs of an output in random order. */
typedef struct matrix_case {
    int inputs, outputs, block;
    int64_t taps;
    int density; /* per cent of all pairs; 0: as a filter bank, but with the inputs in reverse order */
} matrix_case;

/* Adds routes into an output. Returns their number. */
static int random_inputs(const matrix_case *m, oracle_random *random, int output, gc_route *route) {
    int count = 0;
    for (int i = 0; i < m->inputs; i++)
        if (m->density == 0 ? i == m->inputs - 1 - output : m->density == 100 || oracle_below(random, 100) < m->density)
            route[count++] = (gc_route){.input = i, .output = output};
    for (int i = count - 1; i > 0; i--) {
        const int other = (int)oracle_below(random, i + 1);
        const gc_route kept = route[i];
        route[i] = route[other];
        route[other] = kept;
    }
    return count;
}

static double matrix_frame(const guarded *in, const guarded *taps, const gc_route *route, int routes, int output,
                           int64_t frame) {
    double sum = 0;
    for (int r = 0; r < routes; r++)
        if (route[r].output == output)
            sum += oracle_frame(in->channel[route[r].input], in->frames, taps->channel[r], taps->frames, frame);
    return sum;
}

/* Returns the error in dB. Every output is checked in some frames of every period. */
static double play_matrix(const matrix_case *m, oracle_random *random) {
    gc_route *route = calloc((size_t)m->inputs * (size_t)m->outputs, sizeof *route);
    const int block = m->block;
    int routes = 0;
    for (int o = 0; o < m->outputs; o++)
        routes += random_inputs(m, random, o, route + routes);
    const int64_t periods = (m->taps + 3000) / block + 5;
    guarded taps = guarded_random(random, routes, m->taps), in = guarded_random(random, m->inputs, periods * block);
    random_responses responses = {&taps, m->taps};
    const gc_bank_options options = {.inputs = m->inputs,
                                     .outputs = m->outputs,
                                     .routes = routes,
                                     .route = route,
                                     .block = block,
                                     .taps = m->taps,
                                     .response = copy_response,
                                     .context = &responses};
    gc_bank *bank = open_bank(&options);
    float *now = malloc((size_t)m->inputs * (size_t)block * sizeof *now);
    double wrong = 0, power = 0;
    for (int64_t p = 0; p < periods; p++) {
        const float *out = play_period(bank, &in, now, block, p);
        for (int check = 0; check < 2; check++) {
            const int o = (int)((p + check * 7) % m->outputs);
            const int64_t i = check == 0 ? oracle_below(random, block) : block - 1;
            const double want = matrix_frame(&in, &taps, route, routes, o, p * block + i);
            const double off = (double)out[(int64_t)o * block + i] - want;
            wrong += off * off;
            power += want * want;
        }
    }
    gc_bank_cuda.free(bank);
    free(now);
    free(route);
    guarded_free(&taps);
    guarded_free(&in);
    return 10 * log10(wrong / power);
}

/* Blocks and lengths at the first and last taps of each level of partitions; more outputs than periods in a hop, and
 * fewer; outputs without a route. */
void test_a_matrix_in_real_time_agrees_with_the_oracle(void **state) {
    (void)state;
    static const matrix_case cases[] = {{1, 2, 32, 1, 100},      {2, 2, 64, 64, 100},     {3, 5, 64, 65, 100},
                                        {5, 5, 64, 9000, 0},     {2, 3, 128, 2048, 100},  {2, 3, 128, 2049, 100},
                                        {5, 70, 128, 3000, 100}, {16, 16, 128, 9000, 60}, {4, 4, 32, 20000, 100},
                                        {64, 2, 256, 5000, 30},  {2, 2, 512, 50000, 100}, {3, 2, 1024, 40000, 100},
                                        {9, 9, 64, 40000, 20}};
    oracle_random random = {.state = 87};
    double worst = -HUGE_VAL;
    for (int k = 0; k < COUNT(cases); k += harness_quick ? 5 : 1) {
        const double decibels = play_matrix(&cases[k], &random);
        CHECK(decibels <= -120, "%d x %d, blocks of %d, %lld taps: %.1f dB", cases[k].inputs, cases[k].outputs,
              cases[k].block, (long long)cases[k].taps, decibels);
        worst = fmax(worst, decibels);
    }
    const gc_route beyond[] = {{.output = 2}}, unsorted[] = {{.output = 1}, {.output = 0}};
    gc_bank_options bad = {.inputs = 1, .outputs = 2, .routes = 1, .route = beyond, .block = 64, .taps = 5};
    expect_refusal(&bad);
    bad.routes = 2;
    bad.route = unsorted;
    expect_refusal(&bad);
    gpu_note("a matrix in real time", worst);
}

/* An output for each edge between partitions, for the tap before it and for the tap after it, all from one input. */
void test_a_single_tap_at_every_edge_of_a_matrix_delays_exactly(void **state) {
    (void)state;
    enum { BLOCK = 128, TAPS = 40000, PERIODS = TAPS / BLOCK + 40 };
    static const int64_t edges[] = {128, 256, 512, 1024, 2048, 3072, 4096, 8192, 12288, 16384, 24576, 32768};
    single_taps delays = {.count = TAPS};
    gc_route route[64];
    int outputs = 0;
    delays.at[outputs++] = 0;
    delays.at[outputs++] = TAPS - 1;
    for (int e = 0; e < COUNT(edges); e++)
        for (int k = -1; k <= 1; k++)
            delays.at[outputs++] = edges[e] + k;
    for (int o = 0; o < outputs; o++)
        route[o] = (gc_route){.input = 0, .output = o, .plane = o};
    oracle_random random = {.state = 89};
    guarded x = guarded_random(&random, 1, PERIODS * BLOCK);
    const gc_bank_options options = {.inputs = 1,
                                     .outputs = outputs,
                                     .routes = outputs,
                                     .route = route,
                                     .block = BLOCK,
                                     .taps = TAPS,
                                     .response = single_tap,
                                     .context = &delays};
    gc_bank *bank = open_bank(&options);
    float now[BLOCK];
    for (int64_t p = 0; p < PERIODS; p++) {
        const float *out = play_period(bank, &x, now, BLOCK, p);
        for (int o = 0; o < outputs; o++)
            for (int64_t i = 0; i < BLOCK; i++) {
                const int64_t n = p * BLOCK + i - delays.at[o];
                const double want = n < 0 ? 0 : 0.5 * (double)x.channel[0][n];
                CHECK(fabs((double)out[(int64_t)o * BLOCK + i] - want) < 2e-6,
                      "a tap at %lld: frame %lld is %g, not %g", (long long)delays.at[o], (long long)(p * BLOCK + i),
                      (double)out[(int64_t)o * BLOCK + i], want);
            }
    }
    gc_bank_cuda.free(bank);
    guarded_free(&x);
}

/* A real-time convolver with its tail on the GPU, true stereo. */
enum { TAIL_FRAMES = 30000, TAIL_TAPS = 15000 };

static gpuconv_realtime *new_convolver(const gpuconv_ir *ir) {
    const gpuconv_realtime_config config = {.size = sizeof config,
                                            .rate = 48000,
                                            .block = 256,
                                            .freewheel = true,
                                            .backend = GPUCONV_BACKEND_CUDA,
                                            .device = -1};
    gpuconv_realtime *rt;
    gpuconv_error error = {0};
    CHECK(gpuconv_realtime_new(ir, &config, &rt, &error) == GPUCONV_OK, "%s", error.message);
    return rt;
}

/* Plays a signal in calls of different sizes. Returns the error in dB. */
static double play_tail(gpuconv_realtime *rt, const guarded *taps, const guarded *x) {
    guarded y = guarded_new(2, TAIL_FRAMES);
    for (int64_t at = 0, n = 1; at < TAIL_FRAMES; at += n, n = n * 5 % 1009 + 1) {
        n = n < TAIL_FRAMES - at ? n : TAIL_FRAMES - at;
        const float *in[] = {x->channel[0] + at, x->channel[1] + at};
        float *out[] = {y.channel[0] + at, y.channel[1] + at};
        gpuconv_realtime_process(rt, in, out, n);
    }
    assert_int_equal(gpuconv_realtime_backend(rt), GPUCONV_BACKEND_CUDA);
    int outputs;
    double *want = harness_expected(taps, x, &outputs), wrong = 0, power = 0;
    for (int c = 0; c < 2; c++)
        for (int64_t i = 0; i < TAIL_FRAMES; i++) {
            double w = want[c * (int64_t)(TAIL_FRAMES + TAIL_TAPS - 1) + i], d = (double)y.channel[c][i] - w;
            wrong += d * d;
            power += w * w;
        }
    free(want);
    guarded_free(&y);
    return 10 * log10(wrong / power);
}

void test_a_tail_on_the_gpu_in_real_time_agrees_with_the_oracle(void **state) {
    (void)state;
    oracle_random random = {.state = 82};
    guarded taps, x = guarded_random(&random, 2, TAIL_FRAMES);
    gpuconv_ir *ir = harness_response(&random, 4, 2, TAIL_TAPS, &taps);
    gpuconv_realtime *rt = new_convolver(ir);
    const double decibels = play_tail(rt, &taps, &x);
    CHECK(decibels <= -120, "%.1f dB", decibels);
    gpu_note("a tail in real time", decibels);
    gpuconv_realtime_free(rt);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
    guarded_free(&x);
}

/* The second signal is quieter, so that the tail of the first one would be far above its error. */
void test_a_reset_forgets_the_tail_on_the_gpu(void **state) {
    (void)state;
    oracle_random random = {.state = 84};
    guarded taps, x = guarded_random(&random, 2, TAIL_FRAMES), quiet = guarded_random(&random, 2, TAIL_FRAMES);
    gpuconv_ir *ir = harness_response(&random, 4, 2, TAIL_TAPS, &taps);
    gpuconv_realtime *rt = new_convolver(ir);
    for (int c = 0; c < 2; c++)
        for (int64_t i = 0; i < TAIL_FRAMES; i++)
            quiet.channel[c][i] *= 1e-3F;
    for (int round = 0; round < 3; round++) {
        const double loud = play_tail(rt, &taps, &x);
        CHECK(loud <= -120, "round %d, before the reset: %.1f dB", round, loud);
        gpuconv_realtime_reset(rt);
        const double decibels = play_tail(rt, &taps, &quiet);
        CHECK(decibels <= -120, "round %d, after the reset: %.1f dB", round, decibels);
        gpuconv_realtime_reset(rt);
    }
    gpuconv_realtime_free(rt);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
    guarded_free(&x);
    guarded_free(&quiet);
}
