/* Tests properties of convolution that need no oracle, and inputs on which algorithms typically fail: single taps at
 * the boundaries of blocks and partitions, silence, subnormals, NaN; on a GPU as well (harness.h). */
#include "harness.h"

#include "libgpuconv/conv/plan.h"

#include <float.h>
#include <math.h>

/* points > 0: the plan gets short chunks, and the shortest transforms of at least `points` points that the algorithm
 * has. */
static gpuconv_plan *plan_of(const gpuconv_ir *ir, gpuconv_algorithm algorithm, int64_t points) {
    gpuconv_plan *plan = harness_plan(ir, algorithm, 4000, 2);
    if (points > 0 && algorithm != GPUCONV_ALGORITHM_DIRECT) {
        while (!harness_schedule(plan, points))
            points *= 2;
        harness_chunk(plan, 0);
    }
    return plan;
}

static guarded convolved(const guarded *h, const guarded *x, gpuconv_algorithm algorithm, int64_t points) {
    gpuconv_ir *ir = harness_route(h, x->channels);
    gpuconv_plan *plan = plan_of(ir, algorithm, points);
    guarded y = harness_convolve(plan, ir, x);
    gpuconv_plan_free(plan);
    gpuconv_ir_free(ir);
    return y;
}

static guarded zeros(int channels, int64_t frames) {
    guarded g = guarded_new(channels, frames);
    for (int c = 0; c < channels; c++)
        memset(g.channel[c], 0, (size_t)frames * sizeof(float));
    return g;
}

/* Checks that y is x delayed by `at` frames and multiplied by `level`, with zeros around it. */
static void check_delayed(const char *what, const guarded *y, const guarded *x, int64_t at, double level) {
    double *want = calloc((size_t)y->frames, sizeof *want);
    CHECK(want, "no memory");
    for (int64_t n = 0; n < x->frames; n++)
        want[at + n] = level * (double)x->channel[0][n];
    CHECK(oracle_agrees(what, y, y->frames, want, y->frames, -120), "%s at %lld", what, (long long)at);
    free(want);
}

enum { TAPS = 1100 };

/* Lists both ends and all multiples of `step`, each with its neighbours. Returns their number. */
static int list_boundaries(int64_t step, int64_t length, int64_t *at) {
    int n = 0;
    at[n++] = 0;
    at[n++] = length - 1;
    for (int64_t boundary = step; boundary < length + 1 && n < 60; boundary += step)
        for (int64_t i = boundary - 1; i <= boundary + 1; i++)
            if (i > 0 && i < length)
                at[n++] = i;
    return n;
}

static void a_single_tap_at_every_boundary_delays_exactly(void **state) {
    (void)state;
    oracle_random random = {.state = 3};
    guarded x = guarded_random(&random, 1, 1501);
    for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
        gpuconv_algorithm algorithm = harness_algorithms[a];
        int64_t points = algorithm == GPUCONV_ALGORITHM_PARTITIONED ? 512 : 2048, at[64];
        guarded any = zeros(1, TAPS);
        gpuconv_ir *ir = harness_route(&any, 1);
        gpuconv_plan *plan = plan_of(ir, algorithm, points);
        /* direct: taps are processed in groups of 256 and of 4 */
        int count = list_boundaries(algorithm == GPUCONV_ALGORITHM_DIRECT ? 256 : plan->choice.schedule.hop, TAPS, at);
        gpuconv_plan_free(plan);
        gpuconv_ir_free(ir);
        guarded_free(&any);
        for (int i = 0; i < count; i++) {
            guarded h = zeros(1, TAPS);
            h.channel[0][at[i]] = -0.75f;
            guarded y = convolved(&h, &x, algorithm, points);
            check_delayed(gpuconv_algorithm_name(algorithm), &y, &x, at[i], -0.75);
            guarded_free(&y);
            guarded_free(&h);
        }
    }
    guarded_free(&x);
}

static void an_impulse_at_every_boundary_gives_the_response_out(void **state) {
    (void)state;
    oracle_random random = {.state = 4};
    guarded h = guarded_random(&random, 1, 301);
    for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
        gpuconv_algorithm algorithm = harness_algorithms[a];
        gpuconv_ir *ir = harness_route(&h, 1);
        gpuconv_plan *plan = plan_of(ir, algorithm, 512);
        int64_t at[64], length = 3 * plan->choice.chunk < 4000 ? 3 * plan->choice.chunk : 4000;
        int64_t step = algorithm == GPUCONV_ALGORITHM_DIRECT ? 480 : plan->choice.schedule.hop;
        int count = list_boundaries(step, length, at);
        for (int i = 0; i < count; i++) {
            guarded x = zeros(1, length);
            x.channel[0][at[i]] = 0.5f;
            guarded y = harness_convolve(plan, ir, &x);
            check_delayed(gpuconv_algorithm_name(algorithm), &y, &h, at[i], 0.5);
            guarded_free(&y);
            guarded_free(&x);
        }
        gpuconv_plan_free(plan);
        gpuconv_ir_free(ir);
    }
    guarded_free(&h);
}

static void silence_gives_exact_silence(void **state) {
    (void)state;
    oracle_random random = {.state = 5};
    guarded noise = guarded_random(&random, 1, 2003), silence = zeros(1, 5003);
    for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
        guarded y[] = {convolved(&noise, &silence, harness_algorithms[a], 0),
                       convolved(&silence, &noise, harness_algorithms[a], 0)};
        for (int k = 0; k < COUNT(y); k++) {
            for (int64_t i = 0; i < y[k].frames; i++)
                CHECK(y[k].channel[0][i] == 0, "%s: frame %lld is %g", gpuconv_algorithm_name(harness_algorithms[a]),
                      (long long)i, (double)y[k].channel[0][i]);
            guarded_free(&y[k]);
        }
    }
    guarded_free(&noise);
    guarded_free(&silence);
}

/* A silent channel stays silent while another channel has a signal. */
static void channels_do_not_leak(void **state) {
    (void)state;
    oracle_random random = {.state = 6};
    guarded h = guarded_random(&random, 2, 903), x = guarded_random(&random, 2, 7001);
    memset(x.channel[1], 0, (size_t)x.frames * sizeof(float));
    for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
        guarded y = convolved(&h, &x, harness_algorithms[a], 0);
        for (int64_t i = 0; i < y.frames; i++)
            CHECK(y.channel[1][i] == 0, "%s: frame %lld is %g", gpuconv_algorithm_name(harness_algorithms[a]),
                  (long long)i, (double)y.channel[1][i]);
        guarded_free(&y);
    }
    guarded_free(&h);
    guarded_free(&x);
}

/* Subnormal inputs may be flushed to zero, but the results stay finite and small. */
static void subnormals_stay_harmless(void **state) {
    (void)state;
    oracle_random random = {.state = 8};
    guarded h = guarded_random(&random, 1, 307), x = guarded_random(&random, 1, 3001);
    for (int64_t i = 0; i < x.frames; i++)
        x.channel[0][i] *= 0x1p-130f;
    for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
        for (int swapped = 0; swapped < 2; swapped++) {
            guarded y =
                swapped ? convolved(&x, &h, harness_algorithms[a], 0) : convolved(&h, &x, harness_algorithms[a], 0);
            assert_true(guarded_intact(&y));
            for (int64_t i = 0; i < y.frames; i++)
                CHECK(fabsf(y.channel[0][i]) <= 307 * 0x1p-126f, "%s: frame %lld is %g",
                      gpuconv_algorithm_name(harness_algorithms[a]), (long long)i, (double)y.channel[0][i]);
            guarded_free(&y);
        }
    }
    guarded_free(&h);
    guarded_free(&x);
}

/* The engine flushes subnormals on its own threads only, never on the caller's. */
static void the_callers_floating_point_mode_is_unchanged(void **state) {
    (void)state;
    oracle_random random = {.state = 9};
    guarded h = guarded_random(&random, 1, 307), x = guarded_random(&random, 1, 3001);
    for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
        guarded y = convolved(&h, &x, harness_algorithms[a], 0);
        guarded_free(&y);
        volatile float smallest = FLT_MIN;
        smallest *= 0.5f;
        CHECK(smallest != 0, "%s left subnormals flushed", gpuconv_algorithm_name(harness_algorithms[a]));
    }
    guarded_free(&h);
    guarded_free(&x);
}

static void convolution_is_linear(void **state) {
    (void)state;
    oracle_random random = {.state = 10};
    enum { N = 6007, M = 801 };
    guarded h = guarded_random(&random, 1, M), u = guarded_random(&random, 1, N), v = guarded_random(&random, 1, N);
    guarded mix = guarded_new(1, N);
    for (int64_t i = 0; i < N; i++)
        mix.channel[0][i] = 0.5f * u.channel[0][i] - 0.25f * v.channel[0][i];
    double *want = malloc((N + M - 1) * sizeof *want);
    CHECK(want, "no memory");
    for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
        guarded yu = convolved(&h, &u, harness_algorithms[a], 0), yv = convolved(&h, &v, harness_algorithms[a], 0);
        guarded y = convolved(&h, &mix, harness_algorithms[a], 0);
        for (int64_t i = 0; i < N + M - 1; i++)
            want[i] = 0.5 * (double)yu.channel[0][i] - 0.25 * (double)yv.channel[0][i];
        CHECK(oracle_agrees("linearity", &y, y.frames, want, N + M - 1, -118), "%s",
              gpuconv_algorithm_name(harness_algorithms[a]));
        guarded_free(&y);
        guarded_free(&yu);
        guarded_free(&yv);
    }
    free(want);
    guarded_free(&mix);
    guarded_free(&u);
    guarded_free(&v);
    guarded_free(&h);
}

static void order_and_grouping_do_not_matter(void **state) {
    (void)state;
    oracle_random random = {.state = 13};
    enum { N = 3001, A = 203, B = 77 };
    guarded x = guarded_random(&random, 1, N), a = guarded_random(&random, 1, A), b = guarded_random(&random, 1, B);
    double *want = malloc((N + A + B - 2) * sizeof *want);
    CHECK(want, "no memory");
    for (int i = 0; i < HARNESS_ALGORITHMS; i++) {
        gpuconv_algorithm algorithm = harness_algorithms[i];
        guarded xa = convolved(&a, &x, algorithm, 0), xa_b = convolved(&b, &xa, algorithm, 0);
        guarded ab = convolved(&b, &a, algorithm, 0), x_ab = convolved(&ab, &x, algorithm, 0);
        guarded ab_x = convolved(&x, &ab, algorithm, 0);
        for (int64_t n = 0; n < x_ab.frames; n++)
            want[n] = (double)x_ab.channel[0][n];
        CHECK(oracle_agrees("(x*a)*b", &xa_b, xa_b.frames, want, N + A + B - 2, -117), "%s",
              gpuconv_algorithm_name(algorithm));
        CHECK(oracle_agrees("(a*b)*x", &ab_x, ab_x.frames, want, N + A + B - 2, -117), "%s",
              gpuconv_algorithm_name(algorithm));
        guarded_free(&xa);
        guarded_free(&xa_b);
        guarded_free(&ab);
        guarded_free(&x_ab);
        guarded_free(&ab_x);
    }
    free(want);
    guarded_free(&x);
    guarded_free(&a);
    guarded_free(&b);
}

/* A NaN in the input gives NaN in all output frames that depend on it. */
static void nan_in_the_input_shows_in_the_output(void **state) {
    (void)state;
    oracle_random random = {.state = 14};
    guarded h = guarded_random(&random, 1, 31), x = guarded_random(&random, 1, 2001);
    x.channel[0][1000] = NAN;
    for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
        guarded y = convolved(&h, &x, harness_algorithms[a], 0);
        for (int64_t i = 1000; i < 1031; i++)
            CHECK(isnan(y.channel[0][i]), "%s: frame %lld is %g", gpuconv_algorithm_name(harness_algorithms[a]),
                  (long long)i, (double)y.channel[0][i]);
        guarded_free(&y);
    }
    guarded_free(&x);
    guarded_free(&h);
}

HARNESS_TESTS(test_engine_properties, cmocka_unit_test(a_single_tap_at_every_boundary_delays_exactly),
              cmocka_unit_test(an_impulse_at_every_boundary_gives_the_response_out),
              cmocka_unit_test(silence_gives_exact_silence), cmocka_unit_test(channels_do_not_leak),
              cmocka_unit_test(subnormals_stay_harmless),
              cmocka_unit_test(the_callers_floating_point_mode_is_unchanged), cmocka_unit_test(convolution_is_linear),
              cmocka_unit_test(order_and_grouping_do_not_matter),
              cmocka_unit_test(nan_in_the_input_shows_in_the_output))
