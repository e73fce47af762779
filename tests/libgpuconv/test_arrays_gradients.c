/* Compares jobs on the CPU with their definition in double precision (rows_trial.h): random shapes of the three
 * operations, with fresh, prepared and routed responses. And half precision with the compiler's. */
#include "harness.h"
#include "rows_trial.h"

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/dsp/half.h"

#include <math.h>

static void *checked(size_t count, size_t each) {
    void *made = calloc(count, each);
    CHECK(made, "out of memory");
    return made;
}

/* Runs a trial; prepared: with responses whose transforms are kept. */
static void check(uint64_t seed, const trial_shape *s, bool prepared) {
    char what[64];
    trial t;
    gpuconv_responses *kept = NULL;
    gpuconv_error error;
    trial_init(&t, seed, s);
    t.frames_checked = 200;
    if (prepared && s->operation != GPUCONV_ARRAYS_GRADIENT_RESPONSE) {
        CHECK(!gpuconv_responses_new(trials.arrays, &t.response.array, 1, NULL, &kept, &error), "%s", error.message);
        t.job.prepared = kept;
    }
    snprintf(what, sizeof what, "job %llu", (unsigned long long)seed);
    trial_run(&t, what);
    gpuconv_responses_free(kept);
    trial_free(&t);
}

static void random_jobs_follow_their_definition(void **state) {
    (void)state;
    static const int64_t points[] = {10, 40, 700};
    for (int i = 0; i < 600 / HARNESS_FEWER; i++) {
        oracle_random random = {.state = (uint64_t)i};
        trial_shape s = trial_random(&random, i % 3, points[oracle_below(&random, COUNT(points))], 0);
        const int64_t gates = oracle_below(&random, 16);
        s.pre = gates & 1;
        s.post = gates & 2;
        s.skip = gates & 4;
        s.mixed = oracle_below(&random, 2);
        check((uint64_t)i, &s, oracle_below(&random, 2));
    }
}

/* Gradients that are longer than convolutions with one transform. */
static void long_gradients_follow_their_definition(void **state) {
    (void)state;
    for (int i = 0; i < 12 / HARNESS_FEWER; i++) {
        oracle_random random = {.state = (uint64_t)(3000 + i)};
        trial_shape s = trial_random(&random, i % 2 ? GPUCONV_ARRAYS_GRADIENT_RESPONSE : GPUCONV_ARRAYS_GRADIENT_SIGNAL,
                                     700, 4001 + oracle_below(&random, 2500));
        s.frames += 4000;
        s.output_frames += 4000;
        check((uint64_t)i, &s, false);
    }
}

/* Gradients by responses that very many rows share, whose products are added up in runs. */
static void many_products_follow_their_definition(void **state) {
    (void)state;
    for (int i = 0; i < 40 / HARNESS_FEWER; i++) {
        oracle_random random = {.state = (uint64_t)(2000 + i)};
        trial_shape s = trial_random(&random, GPUCONV_ARRAYS_GRADIENT_RESPONSE, 40, 0);
        s.responses = 1 + oracle_below(&random, 5);
        s.rows = s.group * s.responses * ((600 + i % 2 * 5000) / (s.group * s.responses) + oracle_below(&random, 100)) +
                 (i % 3 ? 0 : oracle_below(&random, 7)); /* uneven */
        check((uint64_t)i, &s, false);
    }
}

static void routed_jobs_follow_their_definition(void **state) {
    (void)state;
    for (int i = 0; i < 150 / HARNESS_FEWER; i++)
        trial_run_routed((uint64_t)(1000 + i), (gpuconv_arrays_operation)(i % 3), i % 2 ? 30 : 700);
}

/* GRADIENT_BOTH gives the bytes of the two jobs that gc_job_split makes of it, by a plan and without one. `accumulate`
 * adds to the gradient by the response and overwrites the other one, here NaN. */
static void both_gradients_are_those_of_their_jobs(void **state) {
    (void)state;
    oracle_random random = {.state = 77};
    for (int i = 0; i < 40 / HARNESS_FEWER; i++) {
        const int64_t rows = 1 + oracle_below(&random, 6), responses = 1 + oracle_below(&random, rows);
        const int64_t frames = 1 + oracle_below(&random, 3000), taps = 1 + oracle_below(&random, 900);
        float *x = checked((size_t)(rows * frames), sizeof *x), *h = checked((size_t)(responses * taps), sizeof *h);
        float *g = checked((size_t)(rows * frames), sizeof *g), *made[4];
        for (int k = 0; k < 4; k++)
            made[k] = checked((size_t)(k % 2 ? responses * taps : rows * frames), sizeof **made);
        oracle_fill(&random, x, rows * frames);
        oracle_fill(&random, h, responses * taps);
        oracle_fill(&random, g, rows * frames);
        gpuconv_arrays_job both = gpuconv_arrays_job_default(), part[2];
        gpuconv_arrays_plan *plan = NULL;
        gpuconv_error error = {0};
        both.operation = GPUCONV_ARRAYS_GRADIENT_BOTH;
        both.signal = gpuconv_rows_of_floats(x, rows, frames);
        both.response = gpuconv_rows_of_floats(h, responses, taps);
        both.output = gpuconv_rows_of_floats(g, rows, frames);
        both.signal_gradient = gpuconv_rows_of_floats(made[2], rows, frames);
        both.response_gradient = gpuconv_rows_of_floats(made[3], responses, taps);
        both.offset = oracle_below(&random, 20) - 10;
        both.accumulate = i % 4 > 1;
        memset(made[0], 0xff, (size_t)(rows * frames) * sizeof **made);
        oracle_fill(&random, made[1], responses * taps);
        memcpy(made[3], made[1], (size_t)(responses * taps) * sizeof **made);
        gc_job_split(&both, part);
        for (int k = 0; k < 2; k++)
            CHECK(!gpuconv_arrays_run(trials.arrays, &part[k], NULL, 0, NULL, &error), "%s", error.message);
        both.signal_gradient.data = made[0];
        both.response_gradient.data = made[1];
        if (i % 2) {
            CHECK(!gpuconv_arrays_plan_new(trials.arrays, &both, &plan, &error), "%s", error.message);
            CHECK(strstr(gpuconv_arrays_plan_reason(plan), "by the response: "), "%s",
                  gpuconv_arrays_plan_reason(plan));
            CHECK(!gpuconv_arrays_plan_run(plan, &both, NULL, 0, NULL, &error), "%s", error.message);
            gpuconv_arrays_plan_free(plan);
        } else {
            CHECK(!gpuconv_arrays_run(trials.arrays, &both, NULL, 0, NULL, &error), "%s", error.message);
        }
        CHECK(!memcmp(made[0], made[2], (size_t)(rows * frames) * sizeof **made), "%d: by the signal", i);
        CHECK(!memcmp(made[1], made[3], (size_t)(responses * taps) * sizeof **made), "%d: by the response", i);
        for (int k = 0; k < 4; k++)
            free(made[k]);
        free(x);
        free(h);
        free(g);
    }
}

/* Returns the sum of the products of two arrays. */
static double inner(const float *a, const float *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* The loss sum of g y is linear in x and in h: its change by a step of one sample is the gradient there. The
 * convolution and the gradient by the signal share prepared responses. */
static void gradients_are_finite_differences(void **state) {
    (void)state;
    enum { ROWS = 5, FRAMES = 2000, TAPS = 700, OUT = 2300 };
    static float x[ROWS * FRAMES], h[TAPS], y[ROWS * OUT], g[ROWS * OUT], gx[ROWS * FRAMES], gh[TAPS];
    oracle_random random = {.state = 77};
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    oracle_fill(&random, x, ROWS * FRAMES);
    oracle_fill(&random, h, TAPS);
    oracle_fill(&random, g, ROWS * OUT);
    gpuconv_responses *kept;
    const gpuconv_rows taps = gpuconv_rows_of_floats(h, 1, TAPS);
    assert_int_equal(gpuconv_responses_new(trials.arrays, &taps, FRAMES, NULL, &kept, NULL), GPUCONV_OK);
    job.prepared = kept;
    for (int operation = 0; operation < 3; operation++) {
        job.operation = (gpuconv_arrays_operation)operation;
        job.signal = gpuconv_rows_of_floats(operation == 1 ? gx : x, ROWS, FRAMES);
        job.response = gpuconv_rows_of_floats(operation == 2 ? gh : h, 1, TAPS);
        job.output = gpuconv_rows_of_floats(operation == 0 ? y : g, ROWS, OUT);
        job.offset = 123;
        assert_int_equal(gpuconv_arrays_run(trials.arrays, &job, NULL, 0, NULL, NULL), GPUCONV_OK);
    }
    const double loss = inner(g, y, ROWS * OUT);
    gpuconv_responses_free(kept);
    job.prepared = NULL;
    job.operation = GPUCONV_ARRAYS_CONVOLVE;
    job.signal.data = x;
    job.response.data = h;
    job.output = gpuconv_rows_of_floats(y, ROWS, OUT);
    for (int i = 0; i < 20; i++) {
        float *at = i % 2 ? &h[oracle_below(&random, TAPS)] : &x[oracle_below(&random, ROWS * FRAMES)];
        const float before = *at, gradient = i % 2 ? gh[at - h] : gx[at - x];
        *at += 1;
        assert_int_equal(gpuconv_arrays_run(trials.arrays, &job, NULL, 0, NULL, NULL), GPUCONV_OK);
        *at = before;
        const double difference = inner(g, y, ROWS * OUT) - loss;
        CHECK(fabs(difference - (double)gradient) < 2e-2, "step %d: %g, gradient %g", i, difference, (double)gradient);
    }
}

/* Returns whether no half is nearer to a value than the given one, which is even if another is as near. */
static bool is_nearest(double value, uint16_t half) {
    const double magnitude = fabs(value);
    const uint16_t rest = half & 0x7fff;
    if ((half >> 15) != signbit(value))
        return false;
    if (rest == 0x7c00)
        return magnitude >= 65520;
    const double error = fabs(rows_half_value(rest) - magnitude);
    const double above = rows_half_value((uint16_t)(rest + 1)) - magnitude; /* of the largest half: 65536 */
    const double below = rest ? magnitude - rows_half_value((uint16_t)(rest - 1)) : HUGE_VAL;
    return rest < 0x7c00 && (error < above || (error == above && rest % 2 == 0)) &&
           (error < below || (error == below && rest % 2 == 0));
}

static void halves_round_to_the_nearest_even(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 1 << 16; bits++) {
        const uint16_t half = (uint16_t)bits;
        const float single = gc_half_to_float(half);
        if ((half & 0x7fff) > 0x7c00)
            CHECK(isnan(single), "half %x", bits);
        else if ((half & 0x7fff) == 0x7c00)
            CHECK(isinf(single) && gc_half_of_float(single) == half, "half %x", bits);
        else
            CHECK((double)single == rows_half_value(half) && gc_half_of_float(single) == half, "half %x", bits);
        CHECK(isnan(gc_bfloat_to_float(half)) || gc_bfloat_of_float(gc_bfloat_to_float(half)) == half, "bfloat %x",
              bits);
    }
    oracle_random random = {.state = 9};
    for (int i = 0; i < 2000000 / HARNESS_FEWER; i++) {
        uint32_t bits = (uint32_t)oracle_bits(&random);
        if (i % 2) /* a tie, or next to one */
            bits = (bits & 0xffffe000) + 0x1000 + (uint32_t)oracle_below(&random, 3) - 1;
        const float single = gc_float_of_bits(bits);
        if (isnan(single)) {
            CHECK(isnan(gc_half_to_float(gc_half_of_float(single))), "NaN %x", bits);
            CHECK(isnan(gc_bfloat_to_float(gc_bfloat_of_float(single))), "NaN %x", bits);
            continue;
        }
        CHECK(is_nearest((double)single, gc_half_of_float(single)), "%a", (double)single);
        const uint32_t low = bits & 0xffff, up = low > 0x8000 || (low == 0x8000 && bits & 0x10000);
        CHECK(gc_bfloat_of_float(single) == (uint16_t)((bits >> 16) + up), "%a", (double)single);
    }
}

static void an_update_replaces_the_responses(void **state) {
    (void)state;
    enum { FRAMES = 3000, TAPS = 500 };
    static float x[FRAMES], h[2][TAPS], y[2][FRAMES];
    oracle_random random = {.state = 5};
    gpuconv_error error;
    gpuconv_responses *kept;
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    oracle_fill(&random, x, FRAMES);
    oracle_fill(&random, h[0], 2 * TAPS);
    gpuconv_rows rows = gpuconv_rows_of_floats(h[0], 1, TAPS);
    job.signal = gpuconv_rows_of_floats(x, 1, FRAMES);
    job.output = gpuconv_rows_of_floats(y[0], 1, FRAMES);
    assert_int_equal(gpuconv_responses_new(trials.arrays, &rows, 1, NULL, &kept, &error), GPUCONV_OK);
    job.prepared = kept;
    assert_int_equal(gpuconv_arrays_run(trials.arrays, &job, NULL, 0, NULL, &error), GPUCONV_OK);
    h[1][3] = NAN;
    rows.data = h[1];
    assert_int_equal(gpuconv_responses_update(trials.arrays, kept, &rows, NULL, &error), GPUCONV_ERROR_FORMAT);
    memset(h[1], 0, sizeof h[1]);
    h[1][3] = 1;
    rows.frames = 10; /* shorter: zeros follow */
    assert_int_equal(gpuconv_responses_update(trials.arrays, kept, &rows, NULL, &error), GPUCONV_OK);
    job.output.data = y[1];
    assert_int_equal(gpuconv_arrays_run(trials.arrays, &job, NULL, 0, NULL, &error), GPUCONV_OK);
    for (int n = 0; n < FRAMES; n++)
        CHECK(fabsf(y[1][n] - (n < 3 ? 0 : x[n - 3])) < 1e-5f, "frame %d", n);
    rows.rows = 2;
    assert_int_equal(gpuconv_responses_update(trials.arrays, kept, &rows, NULL, &error), GPUCONV_ERROR_ARGUMENT);
    gpuconv_responses_free(kept);
}

static int open_place(void **state) {
    (void)state;
    trials_on_cpu(3);
    return 0;
}

static int close_place(void **state) {
    (void)state;
    gpuconv_arrays_free(trials.arrays);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_jobs_follow_their_definition),
        cmocka_unit_test(routed_jobs_follow_their_definition),
        cmocka_unit_test(many_products_follow_their_definition),
        cmocka_unit_test(long_gradients_follow_their_definition),
        cmocka_unit_test(both_gradients_are_those_of_their_jobs),
        cmocka_unit_test(gradients_are_finite_differences),
        cmocka_unit_test(halves_round_to_the_nearest_even),
        cmocka_unit_test(an_update_replaces_the_responses),
    };
    return cmocka_run_group_tests_name("arrays_gradients", tests, open_place, close_place);
}
