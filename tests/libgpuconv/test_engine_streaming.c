/* Tests the engine's streaming interface: the samples do not depend on how the input is split, on the number of threads
 * or on a reset; calls in the wrong order are refused; the result has exactly N + M - 1 frames. On a GPU as well
 * (harness.h). */
#include "harness.h"

#include "libgpuconv/conv/plan.h"

typedef struct running {
    guarded h, x;
    gpuconv_ir *ir;
    gpuconv_plan *plan;
    gpuconv_engine *engine;
} running;

/* Creates an engine with a true-stereo response, so that inputs and outputs mix. `chunk` > 0 sets short transforms,
 * and chunks of about this many frames. */
static running start(gpuconv_algorithm algorithm, int64_t frames, int64_t taps, int threads, int64_t chunk) {
    oracle_random random = {.state = 7};
    running r = {.x = guarded_random(&random, 2, frames)};
    r.ir = harness_response(&random, 4, 2, taps, &r.h);
    r.plan = harness_plan(r.ir, algorithm, frames, threads);
    if (chunk > 0) {
        for (int64_t points = 1024; algorithm != GPUCONV_ALGORITHM_DIRECT && !harness_schedule(r.plan, points);)
            points *= 2;
        harness_chunk(r.plan, chunk);
    }
    gpuconv_error error = {0};
    CHECK(gpuconv_engine_new(r.plan, &r.engine, &error) == GPUCONV_OK, "%s", error.message);
    return r;
}

static void stop(running *r) {
    gpuconv_engine_free(r->engine);
    gpuconv_plan_free(r->plan);
    gpuconv_ir_free(r->ir);
    guarded_free(&r->h);
    guarded_free(&r->x);
}

static guarded run(running *r, harness_split split) {
    return harness_run(r->engine, &r->x, 2, r->h.frames, split);
}

static void any_split_gives_the_same_bits(void **state) {
    (void)state;
    for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
        running r = start(harness_algorithms[a], 20011, 401, 2, 1000);
        int64_t chunk = gpuconv_plan_chunk(r.plan);
        assert_true(4 * chunk < r.x.frames);
        guarded whole = run(&r, (harness_split){.fixed = 1 << 20});
        const int64_t splits[] = {1,  2,    3,    7, 127, 1021, 4999, chunk - 1, chunk, chunk + 1, 2 * chunk + 1,
                                  -5, -300, -9000};
        for (int s = 0; s < COUNT(splits); s++) {
            assert_int_equal(gpuconv_engine_reset(r.engine), GPUCONV_OK);
            guarded y = run(&r, (harness_split){.fixed = splits[s], .random = {.state = 11}});
            char what[96];
            snprintf(what, sizeof what, "%s in blocks of %lld", gpuconv_algorithm_name(harness_algorithms[a]),
                     (long long)splits[s]);
            CHECK(oracle_identical(what, &whole, whole.frames, &y, y.frames), "%s", what);
            guarded_free(&y);
        }
        guarded_free(&whole);
        stop(&r);
    }
}

static void the_plans_own_chunks_survive_any_split(void **state) {
    (void)state;
    for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
        running r = start(harness_algorithms[a], 300007, 97, 2, 0);
        int64_t chunk = gpuconv_plan_chunk(r.plan);
        guarded whole = run(&r, (harness_split){.fixed = 1 << 20});
        const int64_t splits[] = {4093, chunk, -100000};
        for (int s = 0; s < COUNT(splits); s++) {
            assert_int_equal(gpuconv_engine_reset(r.engine), GPUCONV_OK);
            guarded y = run(&r, (harness_split){.fixed = splits[s], .random = {.state = 12}});
            CHECK(oracle_identical("own chunks", &whole, whole.frames, &y, y.frames), "blocks of %lld",
                  (long long)splits[s]);
            guarded_free(&y);
        }
        guarded_free(&whole);
        stop(&r);
    }
}

static void any_number_of_threads_gives_the_same_bits(void **state) {
    (void)state;
    if (HARNESS_BACKEND != GPUCONV_BACKEND_CPU)
        skip();
    static const int threads[] = {1, 2, 3, 5, 16};
    static const int64_t shapes[][2] = {{20021, 33}, {20021, 1201}, {12011, 8009}};
    for (int s = 0; s < COUNT(shapes); s++) {
        for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
            guarded first = {0};
            for (int t = 0; t < COUNT(threads); t++) {
                running r = start(harness_algorithms[a], shapes[s][0] / HARNESS_FEWER, shapes[s][1] / HARNESS_FEWER,
                                  threads[t], 0);
                assert_int_equal(gpuconv_plan_threads(r.plan), threads[t]);
                guarded y = run(&r, (harness_split){.fixed = 10007});
                stop(&r);
                if (t == 0) {
                    first = y;
                    continue;
                }
                char what[96];
                snprintf(what, sizeof what, "%s on %d threads", gpuconv_algorithm_name(harness_algorithms[a]),
                         threads[t]);
                CHECK(oracle_identical(what, &first, first.frames, &y, y.frames), "%s", what);
                guarded_free(&y);
            }
            guarded_free(&first);
        }
    }
}

static void every_input_length_gives_all_frames(void **state) {
    (void)state;
    for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
        running r = start(harness_algorithms[a], 20011, 601, 2, 1000);
        int64_t chunk = gpuconv_plan_chunk(r.plan), full = r.x.frames;
        static const int64_t around[] = {-1, 0, 1};
        for (int64_t chunks = 0; chunks * chunk + 1 < full && chunks < 5; chunks++) {
            for (int i = 0; i < COUNT(around); i++) {
                int64_t n = chunks * chunk + around[i];
                if (n < 1)
                    continue;
                r.x.frames = n; /* harness_run checks the number of frames */
                assert_int_equal(gpuconv_engine_reset(r.engine), GPUCONV_OK);
                guarded y = harness_run(r.engine, &r.x, 2, 601, (harness_split){.fixed = 509});
                int outputs;
                double *want = harness_expected(&r.h, &r.x, &outputs);
                CHECK(oracle_agrees("length", &y, y.frames, want, n + 600, -120), "%lld frames", (long long)n);
                free(want);
                guarded_free(&y);
            }
        }
        r.x.frames = full;
        stop(&r);
    }
}

static void reset_gives_the_same_again(void **state) {
    (void)state;
    for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
        running r = start(harness_algorithms[a], 15013, 9001, 2, 2000);
        guarded first = run(&r, (harness_split){.fixed = 997});
        int64_t produced, n = 5003;
        guarded spill = guarded_new(2, n);
        for (int i = 0; i < 4; i++) { /* reset after the end, in the middle, during a drain, unused */
            assert_int_equal(gpuconv_engine_reset(r.engine), GPUCONV_OK);
            if (i == 1 || i == 2)
                assert_int_equal(
                    gpuconv_engine_process(r.engine, (const float *const *)r.x.channel, n, spill.channel, &produced),
                    GPUCONV_OK);
            if (i == 2)
                assert_int_equal(gpuconv_engine_drain(r.engine, spill.channel, 100, &produced), GPUCONV_OK);
            assert_int_equal(gpuconv_engine_reset(r.engine), GPUCONV_OK);
            guarded y = run(&r, (harness_split){.fixed = 997});
            CHECK(oracle_identical("after a reset", &first, first.frames, &y, y.frames), "case %d", i);
            guarded_free(&y);
        }
        guarded_free(&spill);
        guarded_free(&first);
        stop(&r);
    }
}

static void processing_after_draining_is_refused(void **state) {
    (void)state;
    for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
        running r = start(harness_algorithms[a], 3001, 101, 1, 0);
        guarded y = guarded_new(2, 3001);
        const float *const *in = (const float *const *)r.x.channel;
        int64_t produced = -1;
        assert_int_equal(gpuconv_engine_process(r.engine, in, 3001, y.channel, &produced), GPUCONV_OK);
        assert_int_equal(gpuconv_engine_drain(r.engine, y.channel, 0, &produced), GPUCONV_OK);
        assert_int_equal(produced, 0);
        assert_int_equal(gpuconv_engine_process(r.engine, in, 10, y.channel, &produced), GPUCONV_ERROR_STATE);
        assert_int_equal(produced, 0);
        assert_int_equal(gpuconv_engine_drain(r.engine, y.channel, 50, &produced), GPUCONV_OK);
        assert_int_equal(produced, 50); /* a refused call changes nothing */
        assert_int_equal(gpuconv_engine_reset(r.engine), GPUCONV_OK);
        assert_int_equal(gpuconv_engine_process(r.engine, in, 10, y.channel, &produced), GPUCONV_OK);
        guarded_free(&y);
        stop(&r);
    }
}

static void negative_lengths_are_refused(void **state) {
    (void)state;
    running r = start(GPUCONV_ALGORITHM_DIRECT, 100, 10, 1, 0);
    guarded y = guarded_new(2, 100);
    int64_t produced = -1;
    assert_int_equal(gpuconv_engine_process(r.engine, (const float *const *)r.x.channel, -1, y.channel, &produced),
                     GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(produced, 0);
    assert_int_equal(gpuconv_engine_drain(r.engine, y.channel, -1, &produced), GPUCONV_ERROR_ARGUMENT);
    guarded_free(&y);
    stop(&r);
}

static void draining_nothing_gives_nothing(void **state) {
    (void)state;
    for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
        running r = start(harness_algorithms[a], 100, 501, 2, 0);
        guarded y = guarded_new(2, 2000);
        int64_t produced = -1;
        assert_int_equal(gpuconv_engine_drain(r.engine, y.channel, 2000, &produced), GPUCONV_OK);
        assert_int_equal(produced, 0);
        assert_int_equal(gpuconv_engine_reset(r.engine), GPUCONV_OK);
        assert_int_equal(gpuconv_engine_process(r.engine, (const float *const *)r.x.channel, 0, y.channel, &produced),
                         GPUCONV_OK);
        assert_int_equal(produced, 0);
        assert_int_equal(gpuconv_engine_drain(r.engine, y.channel, 2000, &produced), GPUCONV_OK);
        assert_int_equal(produced, 0);
        guarded_free(&y);
        stop(&r);
    }
}

static void results_come_no_later_than_the_plan_says(void **state) {
    (void)state;
    running r = start(GPUCONV_ALGORITHM_PARTITIONED, 30011, 601, 1, 1000);
    guarded y = guarded_new(2, 100);
    int64_t latency = gpuconv_plan_latency(r.plan), fed = 0, have = 0, produced;
    for (; fed + 100 <= r.x.frames; fed += 100) {
        const float *in[] = {r.x.channel[0] + fed, r.x.channel[1] + fed};
        assert_int_equal(gpuconv_engine_process(r.engine, in, 100, y.channel, &produced), GPUCONV_OK);
        have += produced;
        CHECK(have + latency >= fed + 100, "%lld frames late, %lld promised", (long long)(fed + 100 - have),
              (long long)latency);
    }
    guarded_free(&y);
    stop(&r);
}

static void an_engine_outlives_its_plan_and_response(void **state) {
    (void)state;
    running r = start(GPUCONV_ALGORITHM_OVERLAP_SAVE, 5003, 301, 2, 0);
    guarded first = run(&r, (harness_split){.fixed = 997});
    assert_int_equal(gpuconv_engine_reset(r.engine), GPUCONV_OK);
    gpuconv_plan_free(r.plan);
    gpuconv_ir_free(r.ir);
    r.plan = NULL;
    r.ir = NULL;
    guarded second = run(&r, (harness_split){.fixed = 997});
    CHECK(oracle_identical("without its plan", &first, first.frames, &second, second.frames), "outlived");
    guarded_free(&first);
    guarded_free(&second);
    stop(&r);
}

HARNESS_TESTS(test_engine_streaming, cmocka_unit_test(any_split_gives_the_same_bits),
              cmocka_unit_test(the_plans_own_chunks_survive_any_split),
              cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
              cmocka_unit_test(every_input_length_gives_all_frames), cmocka_unit_test(reset_gives_the_same_again),
              cmocka_unit_test(processing_after_draining_is_refused), cmocka_unit_test(negative_lengths_are_refused),
              cmocka_unit_test(draining_nothing_gives_nothing),
              cmocka_unit_test(results_come_no_later_than_the_plan_says),
              cmocka_unit_test(an_engine_outlives_its_plan_and_response))
