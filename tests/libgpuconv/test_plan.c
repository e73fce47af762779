/* Tests plans: values out of range are refused and not clamped, a requested backend or algorithm is used or refused,
 * and automatic choices have the lowest predicted time and give a reason. */
#include "harness.h"

#include "libgpuconv/engine/plan.h"

static gpuconv_ir *response(int channels, int inputs, int64_t frames) {
    oracle_random random = {.state = 71};
    guarded taps;
    gpuconv_ir *ir = harness_response(&random, channels, inputs, frames, &taps);
    guarded_free(&taps);
    return ir;
}

static void values_out_of_range_are_refused(void **state) {
    (void)state;
    gpuconv_ir *ir = response(1, 1, 100);
    for (int i = 0; i < 11; i++) {
        gpuconv_config c = gpuconv_config_default();
        switch (i) {
        case 0:
            c.backend = (gpuconv_backend)-1;
            break;
        case 1:
            c.backend = (gpuconv_backend)(GPUCONV_BACKEND_CUDA + 1);
            break;
        case 2:
            c.algorithm = (gpuconv_algorithm)-1;
            break;
        case 3:
            c.algorithm = (gpuconv_algorithm)GC_ALGORITHMS;
            break;
        case 4:
            c.device = -2;
            break;
        case 5:
            c.threads = -1;
            break;
        case 6:
            c.threads = 1025;
            break;
        case 7:
            c.frames = -2;
            break;
        case 8:
            c.frames = INT64_MAX;
            break;
        case 9:
            c.frames = INT64_MIN;
            break;
        default:
            c.threads = INT32_MIN;
            break;
        }
        gpuconv_plan *plan = (gpuconv_plan *)ir;
        gpuconv_error error = {0};
        gpuconv_status status = gpuconv_plan_new(ir, &c, &plan, &error);
        CHECK(status == GPUCONV_ERROR_ARGUMENT, "case %d: %s", i, gpuconv_status_text(status));
        assert_null(plan);
        CHECK(strlen(error.message) > 10, "case %d has no message", i);
    }
    gpuconv_ir_free(ir);
}

static void the_longest_input_is_planned_without_overflow(void **state) {
    (void)state;
    gpuconv_ir *ir = response(2, 2, 48000);
    for (int a = 0; a <= COUNT(harness_algorithms); a++) {
        gpuconv_plan *plan = harness_plan(ir, (gpuconv_algorithm)a, INT64_MAX / 4096, 0);
        assert_true(gpuconv_plan_chunk(plan) > 0 && gpuconv_plan_chunk(plan) < (1 << 24));
        gpuconv_plan_free(plan);
    }
    gpuconv_ir_free(ir);
}

static void a_requested_algorithm_is_used(void **state) {
    (void)state;
    static const int64_t taps[] = {1, 30, 5000, 200000};
    for (int t = 0; t < COUNT(taps); t++) {
        gpuconv_ir *ir = response(1, 1, taps[t]);
        for (int a = 0; a < COUNT(harness_algorithms); a++) {
            gpuconv_plan *plan = harness_plan(ir, harness_algorithms[a], -1, 3); /* checks the algorithm */
            assert_int_equal(gpuconv_plan_backend(plan), GPUCONV_BACKEND_CPU);
            assert_int_equal(gpuconv_plan_threads(plan), 3);
            assert_non_null(strstr(gpuconv_plan_reason(plan), "requested"));
            assert_string_equal(gpuconv_plan_note(plan), "");
            assert_true(strlen(gpuconv_plan_device(plan)) > 0);
            int64_t points = gpuconv_plan_transform(plan), hop = gpuconv_plan_hop(plan);
            if (harness_algorithms[a] == GPUCONV_ALGORITHM_DIRECT)
                assert_int_equal(points, 0);
            else
                assert_true(points > 0 && (points & (points - 1)) == 0 && gpuconv_plan_chunk(plan) % hop == 0);
            if (harness_algorithms[a] == GPUCONV_ALGORITHM_PARTITIONED)
                assert_true(gpuconv_plan_partitions(plan) * hop >= taps[t]);
            assert_true(gpuconv_plan_latency(plan) % gpuconv_plan_chunk(plan) == 0);
            gpuconv_plan_free(plan);
        }
        gpuconv_ir_free(ir);
    }
}

static void the_automatic_choice_is_the_cheapest_predicted(void **state) {
    (void)state;
    static const int64_t taps[] = {1, 16, 200, 1000, 5000, 40000, 300000}, frames[] = {1, 1000, 48000, 10000000, -1};
    for (int t = 0; t < COUNT(taps); t++) {
        gpuconv_ir *ir = response(4, 2, taps[t]);
        for (int f = 0; f < COUNT(frames); f++) {
            gpuconv_plan *best = harness_plan(ir, GPUCONV_ALGORITHM_AUTO, frames[f], 2);
            assert_int_not_equal(gpuconv_plan_algorithm(best), GPUCONV_ALGORITHM_AUTO);
            for (int a = 0; a < COUNT(harness_algorithms); a++) {
                gpuconv_plan *plan = harness_plan(ir, harness_algorithms[a], frames[f], 2);
                CHECK(best->cost <= plan->cost, "%lld taps, %lld frames: %s beats %s", (long long)taps[t],
                      (long long)frames[f], gpuconv_algorithm_name(gpuconv_plan_algorithm(plan)),
                      gpuconv_algorithm_name(gpuconv_plan_algorithm(best)));
                if (harness_algorithms[a] == gpuconv_plan_algorithm(best)) {
                    assert_int_equal(gpuconv_plan_transform(plan), gpuconv_plan_transform(best));
                    assert_int_equal(gpuconv_plan_chunk(plan), gpuconv_plan_chunk(best));
                }
                gpuconv_plan_free(plan);
            }
            assert_non_null(strstr(gpuconv_plan_reason(best), "predicted"));
            gpuconv_plan_free(best);
        }
        gpuconv_ir_free(ir);
    }
}

/* Checks that two plans have the same schedule, which determines every bit of the result. */
static void check_same_schedule(const gpuconv_plan *a, const gpuconv_plan *b, const char *what) {
    CHECK(memcmp(&a->schedule, &b->schedule, sizeof a->schedule) == 0, "%s: %s of %lld points, and %s of %lld", what,
          gpuconv_algorithm_name(gpuconv_plan_algorithm(a)), (long long)gpuconv_plan_transform(a),
          gpuconv_algorithm_name(gpuconv_plan_algorithm(b)), (long long)gpuconv_plan_transform(b));
}

static void the_choice_does_not_depend_on_threads(void **state) {
    (void)state;
    static const int64_t taps[] = {1, 512, 4000, 66150, 200000, 441000};
    static const int64_t frames[] = {1, 1000, 480000, 1367100, 26460000, -1};
    static const int threads[] = {2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 1024};
    for (int t = 0; t < COUNT(taps); t++) {
        gpuconv_ir *ir = response(2, 2, taps[t]);
        for (int f = 0; f < COUNT(frames); f++) {
            gpuconv_plan *one = harness_plan(ir, GPUCONV_ALGORITHM_AUTO, frames[f], 1);
            for (int n = 0; n < COUNT(threads); n++) {
                gpuconv_plan *many = harness_plan(ir, GPUCONV_ALGORITHM_AUTO, frames[f], threads[n]);
                char what[96];
                snprintf(what, sizeof what, "%lld taps, %lld frames, 1 and %d threads", (long long)taps[t],
                         (long long)frames[f], threads[n]);
                check_same_schedule(one, many, what);
                gpuconv_plan_free(many);
            }
            gpuconv_plan_free(one);
        }
        gpuconv_ir_free(ir);
    }
}

static void long_inputs_and_inputs_of_unknown_length_are_planned_alike(void **state) {
    (void)state;
    static const int64_t taps[] = {1, 512, 30000, 66150, 107719, 441000, 2000000};
    static const int64_t frames[] = {1 << 23, (1 << 23) + 1, 26460000, INT64_C(1000000000), INT64_MAX / 4096};
    for (int t = 0; t < COUNT(taps); t++) {
        gpuconv_ir *ir = response(2, 2, taps[t]);
        gpuconv_plan *unknown = harness_plan(ir, GPUCONV_ALGORITHM_AUTO, -1, 2);
        for (int f = 0; f < COUNT(frames); f++) {
            gpuconv_plan *known = harness_plan(ir, GPUCONV_ALGORITHM_AUTO, frames[f], 2);
            char what[96];
            snprintf(what, sizeof what, "%lld taps, %lld frames and unknown ones", (long long)taps[t],
                     (long long)frames[f]);
            check_same_schedule(known, unknown, what);
            gpuconv_plan_free(known);
        }
        gpuconv_plan_free(unknown);
        gpuconv_ir_free(ir);
    }
}

static void short_responses_go_direct_and_long_ones_do_not(void **state) {
    (void)state;
    gpuconv_ir *shortest = response(1, 1, 8), *reverb = response(2, 2, 96000);
    gpuconv_plan *plan = harness_plan(shortest, GPUCONV_ALGORITHM_AUTO, 48000 * 60, 1);
    assert_int_equal(gpuconv_plan_algorithm(plan), GPUCONV_ALGORITHM_DIRECT);
    gpuconv_plan_free(plan);
    plan = harness_plan(reverb, GPUCONV_ALGORITHM_AUTO, 48000 * 60, 1);
    assert_int_not_equal(gpuconv_plan_algorithm(plan), GPUCONV_ALGORITHM_DIRECT);
    gpuconv_plan_free(plan);
    gpuconv_ir_free(shortest);
    gpuconv_ir_free(reverb);
}

static void overlap_save_refuses_a_response_longer_than_a_transform(void **state) {
    (void)state;
    float *taps = calloc((1 << 24) + 1, sizeof *taps);
    CHECK(taps, "no memory");
    const float *channel[] = {taps};
    gpuconv_ir *ir;
    assert_int_equal(gpuconv_ir_new(channel, 1, (1 << 24) + 1, 48000, &ir, NULL), GPUCONV_OK);
    free(taps);
    gpuconv_config config = gpuconv_config_default();
    config.backend = GPUCONV_BACKEND_CPU;
    config.algorithm = GPUCONV_ALGORITHM_OVERLAP_SAVE;
    gpuconv_plan *plan;
    gpuconv_error error = {0};
    assert_int_equal(gpuconv_plan_new(ir, &config, &plan, &error), GPUCONV_ERROR_UNSUPPORTED);
    assert_null(plan);
    assert_non_null(strstr(error.message, "too long for overlap-save"));
    config.algorithm = GPUCONV_ALGORITHM_AUTO;
    assert_int_equal(gpuconv_plan_new(ir, &config, &plan, &error), GPUCONV_OK);
    assert_int_not_equal(gpuconv_plan_algorithm(plan), GPUCONV_ALGORITHM_OVERLAP_SAVE);
    gpuconv_plan_free(plan);
    gpuconv_ir_free(ir);
}

static void names_match_the_command_line(void **state) {
    (void)state;
    assert_string_equal(gpuconv_backend_name(GPUCONV_BACKEND_AUTO), "auto");
    assert_string_equal(gpuconv_backend_name(GPUCONV_BACKEND_CPU), "cpu");
    assert_string_equal(gpuconv_backend_name(GPUCONV_BACKEND_CUDA), "cuda");
    assert_string_equal(gpuconv_backend_name((gpuconv_backend)77), "unknown");
    static const char *const algorithms[] = {"auto", "direct", "overlap-save", "partitioned", "matrix", "unknown"};
    for (int a = 0; a <= GC_ALGORITHMS; a++)
        assert_string_equal(gpuconv_algorithm_name((gpuconv_algorithm)a), algorithms[a]);
    assert_string_equal(gpuconv_algorithm_name((gpuconv_algorithm)-3), "unknown");
}

static void defaults_are_as_documented(void **state) {
    (void)state;
    gpuconv_config config = gpuconv_config_default();
    assert_int_equal(config.backend, GPUCONV_BACKEND_AUTO);
    assert_int_equal(config.algorithm, GPUCONV_ALGORITHM_AUTO);
    assert_int_equal(config.device, -1);
    assert_int_equal(config.threads, 0);
    assert_int_equal(config.frames, -1);
    gpuconv_ir *ir = response(1, 1, 100);
    gpuconv_plan *plan = harness_plan(ir, GPUCONV_ALGORITHM_AUTO, -1, 0);
    assert_true(gpuconv_plan_threads(plan) >= 1);
    gpuconv_plan_free(plan);
    gpuconv_plan_free(NULL);
    gpuconv_engine_free(NULL);
    gpuconv_report_free(NULL);
    gpuconv_ir_free(ir);
}

#ifndef GPUCONV_WITH_CUDA
static void without_cuda_the_backend_is_refused_and_auto_has_no_note(void **state) {
    (void)state;
    gpuconv_ir *ir = response(1, 1, 100000);
    gpuconv_config config = gpuconv_config_default();
    gpuconv_plan *plan;
    gpuconv_error error = {0};
    config.backend = GPUCONV_BACKEND_CUDA;
    assert_int_equal(gpuconv_plan_new(ir, &config, &plan, &error), GPUCONV_ERROR_DEVICE);
    assert_null(plan);
    assert_true(strlen(error.message) > 10);
    config.backend = GPUCONV_BACKEND_AUTO;
    config.frames = INT64_C(48000) * 36000; /* long enough for a GPU to be faster */
    assert_int_equal(gpuconv_plan_new(ir, &config, &plan, &error), GPUCONV_OK);
    assert_int_equal(gpuconv_plan_backend(plan), GPUCONV_BACKEND_CPU);
    assert_string_equal(gpuconv_plan_note(plan), ""); /* the CPU is no fallback in this build */
    gpuconv_plan_free(plan);
    config.frames = 100; /* so short that no GPU would be probed: nothing to note */
    assert_int_equal(gpuconv_plan_new(ir, &config, &plan, &error), GPUCONV_OK);
    assert_string_equal(gpuconv_plan_note(plan), "");
    gpuconv_plan_free(plan);
    gpuconv_ir_free(ir);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(the_longest_input_is_planned_without_overflow),
        cmocka_unit_test(a_requested_algorithm_is_used),
        cmocka_unit_test(the_automatic_choice_is_the_cheapest_predicted),
        cmocka_unit_test(the_choice_does_not_depend_on_threads),
        cmocka_unit_test(long_inputs_and_inputs_of_unknown_length_are_planned_alike),
        cmocka_unit_test(short_responses_go_direct_and_long_ones_do_not),
        cmocka_unit_test(overlap_save_refuses_a_response_longer_than_a_transform),
        cmocka_unit_test(names_match_the_command_line),
        cmocka_unit_test(defaults_are_as_documented),
#ifndef GPUCONV_WITH_CUDA
        cmocka_unit_test(without_cuda_the_backend_is_refused_and_auto_has_no_note),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
