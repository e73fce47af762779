/* Tests plans: values out of range are refused and not clamped, a requested backend or algorithm is used or refused,
 * and automatic choices have the lowest predicted time and give a reason. */
#include "harness.h"

#include "libgpuconv/conv/plan.h"

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
    for (int i = 0; i < 14; i++) {
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
            c.algorithm = (gpuconv_algorithm)1000;
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
        case 10:
            c.latency_frames = -2;
            break;
        case 11:
            c.latency_frames = 1023;
            break;
        case 12:
            c.latency_frames = INT64_MAX;
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
                CHECK(best->choice.cost <= plan->choice.cost, "%lld taps, %lld frames: %s beats %s", (long long)taps[t],
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

/* The latency of a plan is at most the one asked for, and an engine keeps it: checked at every block. */
static void the_latency_asked_for_is_kept(void **state) {
    (void)state;
    enum { BLOCK = 100, FRAMES = 20000 };
    static const int64_t taps[] = {1, 3, 1000, 48000, 300000}, bounds[] = {1024, 6144, 8192, 100000, 0};
    for (int t = 0; t < COUNT(taps); t++)
        for (int b = 0; b < COUNT(bounds); b++) {
            oracle_random random = {.state = 7};
            guarded h, x = guarded_random(&random, 2, FRAMES), y = guarded_new(2, BLOCK);
            gpuconv_ir *ir = harness_response(&random, 4, 2, taps[t], &h);
            gpuconv_config config = gpuconv_config_default();
            gpuconv_plan *plan;
            gpuconv_engine *engine;
            gpuconv_error error = {0};
            config.backend = GPUCONV_BACKEND_CPU;
            config.latency_frames = bounds[b];
            CHECK(gpuconv_plan_new(ir, &config, &plan, &error) == GPUCONV_OK, "%s", error.message);
            const int64_t latency = gpuconv_plan_latency(plan), most = bounds[b] ? bounds[b] : 8192;
            CHECK(latency > 0 && latency <= most, "%lld taps: latency %lld instead of %lld", (long long)taps[t],
                  (long long)latency, (long long)most);
            assert_int_equal(gpuconv_engine_new(plan, &engine, NULL), GPUCONV_OK);
            for (int64_t fed = 0, have = 0, produced; fed + BLOCK <= FRAMES; have += produced) {
                const float *in[] = {x.channel[0] + fed, x.channel[1] + fed};
                assert_int_equal(gpuconv_engine_process(engine, in, BLOCK, y.channel, &produced), GPUCONV_OK);
                fed += BLOCK;
                CHECK(have + produced + latency >= fed, "%lld taps: late", (long long)taps[t]);
            }
            gpuconv_engine_free(engine);
            engine = NULL;
            guarded z = harness_convolve(plan, ir, &x), want = harness_offline(ir, &x);
            const double db = harness_distance(&z, &want, z.frames);
            CHECK(z.frames == want.frames && db <= -115, "%lld taps: %.1f dB", (long long)taps[t], db);
            gpuconv_plan_free(plan);
            gpuconv_ir_free(ir);
            guarded_free(&h);
            guarded_free(&x);
            guarded_free(&y);
            guarded_free(&z);
            guarded_free(&want);
        }
}

/* Returns the chunk of a plan for an input of `frames` frames and a latency. */
static int64_t chunk_for(int64_t frames, int64_t latency) {
    gpuconv_ir *ir = response(1, 1, 3);
    gpuconv_plan *plan;
    gpuconv_config config = gpuconv_config_default();
    config.backend = GPUCONV_BACKEND_CPU;
    config.frames = frames;
    config.latency_frames = latency;
    assert_int_equal(gpuconv_plan_new(ir, &config, &plan, NULL), GPUCONV_OK);
    const int64_t chunk = gpuconv_plan_chunk(plan);
    gpuconv_plan_free(plan);
    gpuconv_ir_free(ir);
    return chunk;
}

static void only_a_stream_of_unknown_length_has_a_short_latency_by_default(void **state) {
    (void)state;
    assert_true(chunk_for(-1, 0) <= 4096);
    assert_true(chunk_for(-1, -1) > 200000);
    assert_int_equal(chunk_for(1 << 23, 0), chunk_for(1 << 23, -1));
    assert_true(chunk_for(1 << 23, 8192) <= 4096);
}

/* Checks that two plans have the same schedule, which determines every bit of the result. */
static void check_same_schedule(const gpuconv_plan *a, const gpuconv_plan *b, const char *what) {
    CHECK(a->choice.algorithm == b->choice.algorithm &&
              memcmp(&a->choice.schedule, &b->choice.schedule, sizeof a->choice.schedule) == 0,
          "%s: %s of %lld points, and %s of %lld", what, gpuconv_algorithm_name(gpuconv_plan_algorithm(a)),
          (long long)gpuconv_plan_transform(a), gpuconv_algorithm_name(gpuconv_plan_algorithm(b)),
          (long long)gpuconv_plan_transform(b));
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
            for (int n = 0; n < COUNT(threads); n += HARNESS_FEWER) {
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

/* A toy algorithm. Its rows differ from the CPU's in nothing that the planner knows. */
static bool toy_fits_all;
static double toy_cost, toy_bytes;

static bool fit_toy(const gc_problem *p, const gc_device *device, int64_t points, int form, gc_choice *c) {
    (void)device;
    return toy_fits_all && form == 0 && gc_schedule_partitioned(p->stream.ir->frames, points, &c->schedule);
}

static void cost_toy(const gc_problem *p, const gc_device *device, const gc_costs *costs, gc_choice *choice) {
    (void)p;
    (void)device;
    (void)costs;
    choice->chunk = 4 * choice->schedule.hop;
    choice->slots = 3;
    choice->cost = toy_cost;
    choice->bytes = toy_bytes;
}

static gpuconv_status refuse_toy(const gc_algorithm *algorithm, const gc_problem *p, const gc_device *device,
                                 gpuconv_error *error) {
    (void)algorithm;
    (void)p;
    (void)device;
    snprintf(error->message, sizeof error->message, "no toy");
    return GPUCONV_ERROR_UNSUPPORTED;
}

/* Plans with the toy behind the CPU's algorithms, or with the toy alone. Returns its status, and the plan in *plan. */
static gpuconv_status plan_with_toy(const gpuconv_ir *ir, bool alone, int algorithm, gpuconv_plan *plan,
                                    gpuconv_error *error) {
    static const gc_algorithm toy = {
        (gpuconv_algorithm)77, "toy", GC_STREAM, 4096, 4096, 0, 0, fit_toy, cost_toy, NULL, refuse_toy};
    const gc_backend *cpu = gc_backend_find(GPUCONV_BACKEND_CPU);
    const gc_algorithm *row[] = {cpu->algorithms[1], cpu->algorithms[2], &toy, NULL}, *only[] = {&toy, NULL};
    gc_backend backend = *cpu;
    gpuconv_config config = gpuconv_config_default();
    gc_problem problem;
    backend.algorithms = alone ? only : row;
    config.algorithm = (gpuconv_algorithm)algorithm;
    assert_true(gc_problem_init(&problem, ir, 48000, -1));
    *plan = (gpuconv_plan){0};
    assert_int_equal(backend.probe(&config, &plan->device, error), GPUCONV_OK);
    const gpuconv_status status = gc_plan_choose(plan, &backend, &problem, &config, error);
    gc_problem_free(&problem);
    return status;
}

static void a_row_in_the_array_of_a_backend_is_chosen_by_fits_and_cost_alone(void **state) {
    (void)state;
    gpuconv_ir *ir = response(1, 1, 5000);
    gpuconv_plan plan;
    gpuconv_error error = {0};
    toy_fits_all = true;
    toy_bytes = 0;
    toy_cost = 1e-12;
    assert_int_equal(plan_with_toy(ir, false, 0, &plan, &error), GPUCONV_OK);
    assert_int_equal(gpuconv_plan_algorithm(&plan), 77);
    assert_true(plan.choice.chunk == 8192 && plan.choice.schedule.partitions == 3);
    assert_non_null(strstr(plan.reason, "against")); /* the rows that lost, in the order of the array */
    assert_true(strstr(plan.reason, "for direct") < strstr(plan.reason, "for overlap-save"));
    toy_cost = 1e3; /* dearer than the others */
    assert_int_equal(plan_with_toy(ir, false, 0, &plan, &error), GPUCONV_OK);
    assert_int_equal(gpuconv_plan_algorithm(&plan), GPUCONV_ALGORITHM_OVERLAP_SAVE);
    assert_non_null(strstr(plan.reason, "1e+03 s for toy"));
    assert_int_equal(plan_with_toy(ir, false, 77, &plan, &error), GPUCONV_OK); /* requested */
    assert_int_equal(gpuconv_plan_algorithm(&plan), 77);
    toy_cost = 1e-12;
    toy_fits_all = false;
    assert_int_equal(plan_with_toy(ir, false, 0, &plan, &error), GPUCONV_OK);
    assert_int_equal(gpuconv_plan_algorithm(&plan), GPUCONV_ALGORITHM_OVERLAP_SAVE);
    assert_null(strstr(plan.reason, "unknown"));
    assert_int_equal(plan_with_toy(ir, true, 0, &plan, &error), GPUCONV_ERROR_UNSUPPORTED);
    assert_string_equal(error.message, "no toy"); /* the row's own reason */
    toy_fits_all = true;
    toy_bytes = 1e9; /* more than the device has */
    assert_int_equal(plan_with_toy(ir, true, 77, &plan, &error), GPUCONV_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "need 1.11 GB"));
    assert_int_equal(plan_with_toy(ir, true, GPUCONV_ALGORITHM_DIRECT, &plan, &error), GPUCONV_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "has no algorithm direct"));
    gpuconv_ir_free(ir);
}

static void names_match_the_command_line(void **state) {
    (void)state;
    assert_string_equal(gpuconv_backend_name(GPUCONV_BACKEND_AUTO), "auto");
    assert_string_equal(gpuconv_backend_name(GPUCONV_BACKEND_CPU), "cpu");
    assert_string_equal(gpuconv_backend_name(GPUCONV_BACKEND_CUDA), "cuda");
    assert_string_equal(gpuconv_backend_name((gpuconv_backend)77), "unknown");
    static const char *const algorithms[] = {"auto", "direct", "overlap-save", "partitioned", "matrix"};
    for (int a = 0; a < COUNT(algorithms); a++)
        assert_string_equal(gpuconv_algorithm_name((gpuconv_algorithm)a), algorithms[a]);
    assert_string_equal(gpuconv_algorithm_name((gpuconv_algorithm)-3), "unknown");
    assert_string_equal(gpuconv_algorithm_name((gpuconv_algorithm)1000), "unknown");
}

static void defaults_are_as_documented(void **state) {
    (void)state;
    gpuconv_config config = gpuconv_config_default();
    assert_int_equal(config.backend, GPUCONV_BACKEND_AUTO);
    assert_int_equal(config.algorithm, GPUCONV_ALGORITHM_AUTO);
    assert_int_equal(config.device, -1);
    assert_int_equal(config.threads, 0);
    assert_int_equal(config.frames, -1);
    assert_int_equal(config.latency_frames, 0);
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
static void without_cuda_the_backend_is_refused_and_auto_gives_the_reason_without_a_note(void **state) {
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
    assert_non_null(strstr(gpuconv_plan_reason(plan), "no CUDA backend"));
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
        cmocka_unit_test(the_latency_asked_for_is_kept),
        cmocka_unit_test(only_a_stream_of_unknown_length_has_a_short_latency_by_default),
        cmocka_unit_test(a_row_in_the_array_of_a_backend_is_chosen_by_fits_and_cost_alone),
#ifndef GPUCONV_WITH_CUDA
        cmocka_unit_test(without_cuda_the_backend_is_refused_and_auto_gives_the_reason_without_a_note),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
