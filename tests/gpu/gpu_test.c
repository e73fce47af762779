/*
 * Tests of the CUDA backend against the oracle and against the CPU backend, and the tests of engines and matrices of
 * tests/libgpuconv on it. Needs a GPU and fails where there is none.
 * Usage: gpu_test [--quick|--forms] [--only PATTERN] [--material FOLDER] [OUT.json]
 *   --quick      runs what is short under a sanitizer
 *   --forms      runs what decides whether the kernels of one configuration are right (GPUCONV_CUDA_LIMITS, or PTX)
 *   --only       runs the tests whose names match; * is any text
 *   --material   the folder of samples and impulse responses for the long tests
 */
#include "gpu_test.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/ir/object.h"

#include <jansson.h>
#include <math.h>

static json_t *record;

void gpu_note(const char *name, double decibels) {
    json_array_append_new(
        record, json_pack("{s:s, s:o}", "check", name, "dB", isfinite(decibels) ? json_real(decibels) : json_null()));
}

/* The precision does not depend on the level of samples and taps, nor suffer where quiet samples follow loud ones. */
static void test_direct_keeps_its_precision_at_every_level(void **state) {
    (void)state;
    static const struct {
        float samples, taps, rest;
    } levels[] = {{1e-20F, 1, 1}, {1e20F, 1e-12F, 1}, {32768, 1e-6F, 1}, {1e-5F, 1e5F, 1}, {1, 1, 1e-5F}};
    static const int64_t lengths[] = {64, 100, 512};
    enum { FRAMES = 5000, PERIOD = 1000, LOUD = 100 };
    oracle_random random = {5};
    double worst = -HUGE_VAL;
    for (int k = 0; k < COUNT(levels); k++)
        for (int l = 0; l < COUNT(lengths); l++) {
            guarded h, x = guarded_random(&random, 1, FRAMES);
            gpuconv_ir *given = harness_response(&random, 1, 1, lengths[l], &h), *ir;
            for (int64_t n = 0; n < FRAMES; n++)
                x.channel[0][n] *= levels[k].samples * (n % PERIOD < LOUD ? 1 : levels[k].rest);
            for (int64_t n = 0; n < lengths[l]; n++)
                h.channel[0][n] *= levels[k].taps;
            gpuconv_ir_free(given);
            const float *const plane[] = {h.channel[0]};
            gpuconv_error error = {0};
            CHECK(gpuconv_ir_new(plane, 1, lengths[l], 48000, &ir, &error) == GPUCONV_OK, "%s", error.message);
            gpuconv_plan *plan = harness_plan(ir, GPUCONV_ALGORITHM_DIRECT, FRAMES, 0);
            guarded y = harness_convolve(plan, ir, &x);
            int outputs;
            double *want = harness_expected(&h, &x, &outputs);
            for (int64_t n = LOUD + lengths[l]; n + PERIOD < FRAMES; n += PERIOD) {
                int64_t quiet = PERIOD - LOUD - lengths[l];
                double e = oracle_compare(y.channel[0] + n, want + n, quiet).rms;
                CHECK(e <= -120, "%lld taps, level %d, frame %lld: %.1f dB", (long long)lengths[l], k, (long long)n, e);
                worst = e > worst ? e : worst;
            }
            free(want);
            guarded_free(&y);
            guarded_free(&x);
            guarded_free(&h);
            gpuconv_plan_free(plan);
            gpuconv_ir_free(ir);
        }
    gpu_note("direct at every level, after louder samples", worst);
}

static void test_several_chunks_agree_with_the_cpu(void **state) {
    (void)state;
    static const int64_t lengths[] = {64, 512, 5000, 100000, 441000};
    oracle_random random = {2};
    for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
        for (int l = 0; l < COUNT(lengths); l++) {
            int64_t taps = lengths[l], frames = 1900000;
            gpuconv_algorithm algorithm = harness_algorithms[a];
            if (algorithm == GPUCONV_ALGORITHM_DIRECT && taps > 5000)
                continue;
            guarded h, x = guarded_random(&random, 2, frames);
            gpuconv_ir *ir = harness_response(&random, 2, 2, taps, &h);
            gpuconv_plan *plan = harness_plan(ir, algorithm, frames, 0);
            CHECK(gpuconv_plan_chunk(plan) < frames, "the signal fits into one chunk: the test needs several");
            guarded y = harness_convolve(plan, ir, &x), z = harness_offline(ir, &x);
            double e = harness_distance(&y, &z, z.frames);
            char name[120];
            snprintf(name, sizeof name, "%s against the CPU, stereo, %lld taps, %lld frames",
                     gpuconv_algorithm_name(algorithm), (long long)taps, (long long)frames);
            CHECK(e <= -115, "%s: %.1f dB", name, e);
            gpu_note(name, e);
            guarded_free(&y);
            guarded_free(&z);
            guarded_free(&x);
            guarded_free(&h);
            gpuconv_plan_free(plan);
            gpuconv_ir_free(ir);
        }
    }
}

static const char *folder;

static gpuconv_ir *load(const char *kind, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s.flac", folder, kind, name);
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    CHECK(gpuconv_ir_load(path, &ir, &error) == GPUCONV_OK, "%s", error.message);
    return ir;
}

static void test_the_committed_material_agrees_with_the_cpu(void **state) {
    (void)state;
    static const char *const samples[] = {"click", "drums", "speech", "strings"};
    static const char *const impulses[] = {"bathroom", "cabinet",    "cathedral", "hall",   "hall-true-stereo",
                                           "plate",    "small-room", "spring",    "studio", "telephone"};
    for (int s = 0; s < COUNT(samples); s++) {
        for (int i = 0; i < COUNT(impulses); i++) {
            gpuconv_ir *sample = load("samples", samples[s]), *response = load("impulses", impulses[i]), *ir;
            int inputs = sample->planes;
            if (gpuconv_ir_route(response, inputs, &ir, NULL) == GPUCONV_OK) {
                guarded x = guarded_new(inputs, sample->frames);
                for (int c = 0; c < inputs; c++)
                    memcpy(x.channel[c], gc_ir_plane(sample, c), (size_t)sample->frames * sizeof(float));
                gpuconv_plan *plan = harness_plan(ir, GPUCONV_ALGORITHM_AUTO, x.frames, 0);
                guarded y = harness_convolve(plan, ir, &x), z = harness_offline(ir, &x);
                double e = harness_distance(&y, &z, z.frames);
                char name[120];
                snprintf(name, sizeof name, "%s in %s, %s against the CPU", samples[s], impulses[i],
                         gpuconv_algorithm_name(gpuconv_plan_algorithm(plan)));
                CHECK(e <= -115, "%s: %.1f dB", name, e);
                gpu_note(name, e);
                guarded_free(&y);
                guarded_free(&z);
                guarded_free(&x);
                gpuconv_plan_free(plan);
                gpuconv_ir_free(ir);
            }
            gpuconv_ir_free(sample);
            gpuconv_ir_free(response);
        }
    }
}

/* The plan of a stream of unknown length is shortened after its choice: to chunks of one or few blocks. */
static void test_a_short_latency_agrees_with_the_cpu(void **state) {
    (void)state;
    static const int64_t taps[] = {3, 100, 3000, 100000}, latencies[] = {0, 1024, 100000};
    for (int t = 0; t < COUNT(taps); t++)
        for (int l = 0; l < COUNT(latencies); l++) {
            oracle_random random = {.state = 41};
            guarded h, x = guarded_random(&random, 2, 30011);
            gpuconv_ir *ir = harness_response(&random, 4, 2, taps[t], &h);
            gpuconv_config config = gpuconv_config_default();
            gpuconv_plan *plan;
            gpuconv_error error = {0};
            config.backend = GPUCONV_BACKEND_CUDA;
            config.latency_frames = latencies[l];
            CHECK(gpuconv_plan_new(ir, &config, &plan, &error) == GPUCONV_OK, "%s", error.message);
            CHECK(gpuconv_plan_latency(plan) <= (l ? latencies[l] : 8192), "%lld taps: latency %lld",
                  (long long)taps[t], (long long)gpuconv_plan_latency(plan));
            guarded y = harness_convolve(plan, ir, &x), z = harness_offline(ir, &x);
            const double e = harness_distance(&y, &z, z.frames);
            CHECK(e <= -115, "%lld taps, latency %lld: %.1f dB", (long long)taps[t], (long long)latencies[l], e);
            gpuconv_plan_free(plan);
            gpuconv_ir_free(ir);
            guarded_free(&h);
            guarded_free(&x);
            guarded_free(&y);
            guarded_free(&z);
        }
}

int main(int argc, char **argv) {
    const char *out = NULL;
    bool forms = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            harness_quick = true;
        else if (strcmp(argv[i], "--forms") == 0)
            forms = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            cmocka_set_test_filter(argv[++i]);
        else if (strcmp(argv[i], "--material") == 0 && i + 1 < argc)
            folder = argv[++i];
        else
            out = argv[i];
    }
    record = json_array();
    const struct CMUnitTest fast[] = {
        cmocka_unit_test(test_kernels_start_early_only_if_their_code_can_wait),
        cmocka_unit_test(test_nothing_outside_the_samples_is_touched),
        cmocka_unit_test(test_every_transform_size_agrees_with_the_oracle),
        cmocka_unit_test(test_direct_keeps_its_precision_at_every_level),
        cmocka_unit_test(test_samples_in_file_formats_give_the_same_as_floats),
        cmocka_unit_test(test_signals_of_any_length_in_one_batch_agree_with_the_oracle),
        cmocka_unit_test(test_a_filter_bank_agrees_with_the_oracle),
        cmocka_unit_test(test_moving_sources_agree_with_the_cpu),
    };
    const struct CMUnitTest middle[] = {
        cmocka_unit_test(test_every_sample_format_is_converted_as_on_the_cpu),
        cmocka_unit_test(test_a_single_tap_at_every_edge_of_a_filter_bank_delays_exactly),
        cmocka_unit_test(test_a_matrix_in_real_time_agrees_with_the_oracle),
        cmocka_unit_test(test_a_single_tap_at_every_edge_of_a_matrix_delays_exactly),
        cmocka_unit_test(test_a_tail_on_the_gpu_in_real_time_agrees_with_the_oracle),
        cmocka_unit_test(test_a_reset_forgets_the_tail_on_the_gpu),
        cmocka_unit_test(test_moving_sources_in_real_time_agree_with_the_cpu),
    };
    const struct CMUnitTest slow[] = {
        cmocka_unit_test(test_long_partitions_agree_with_the_oracle),
        cmocka_unit_test(test_a_matrix_with_little_free_memory_agrees_with_the_cpu),
        cmocka_unit_test(test_too_little_free_memory_is_refused_with_both_figures),
        cmocka_unit_test(test_convolutions_that_read_each_others_outputs_need_no_wait),
        cmocka_unit_test(test_objects_leave_the_current_device_as_it_was),
        cmocka_unit_test(test_objects_leave_the_default_memory_pool_as_it_was),
        cmocka_unit_test(test_objects_do_not_wait_for_the_work_of_the_program),
        cmocka_unit_test(test_the_memory_estimate_covers_what_a_convolver_takes),
        cmocka_unit_test(test_more_planes_than_a_grid_has_rows),
        cmocka_unit_test(test_several_chunks_agree_with_the_cpu),
        cmocka_unit_test(test_a_short_latency_agrees_with_the_cpu),
        cmocka_unit_test(test_the_committed_material_agrees_with_the_cpu),
    };
    int failed = cmocka_run_group_tests_name("gpu", fast, NULL, NULL) + test_matrix();
    if (!forms)
        failed += cmocka_run_group_tests_name("gpu, whole", middle, NULL, NULL);
    if (harness_quick)
        cmocka_set_test_filter("ordinary_lengths_*");
    if (!forms)
        failed += test_engine_oracle();
    if (!forms && !harness_quick)
        failed += cmocka_run_group_tests_name("gpu, long", slow, NULL, NULL) + test_engine_properties() +
                  test_engine_streaming();
    if (out && json_dump_file(record, out, JSON_INDENT(1)) != 0) {
        fprintf(stderr, "gpu_test: %s cannot be written\n", out);
        return 1;
    }
    json_decref(record);
    return failed ? 1 : 0;
}
