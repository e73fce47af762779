/*
 * Tests of the CUDA backend against the oracle and against the CPU backend. Needs a GPU and fails where there is none.
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

bool gpu_quick, gpu_forms;
static json_t *record;

void gpu_note(const char *name, double decibels) {
    json_array_append_new(
        record, json_pack("{s:s, s:o}", "check", name, "dB", isfinite(decibels) ? json_real(decibels) : json_null()));
}

gpuconv_plan *gpu_plan(const gpuconv_ir *ir, gpuconv_backend backend, gpuconv_algorithm algorithm, int64_t frames) {
    gpuconv_config config = gpuconv_config_default();
    config.backend = backend;
    config.algorithm = algorithm;
    config.frames = frames;
    config.latency_frames = -1;
    gpuconv_plan *plan;
    gpuconv_error error = {0};
    gpuconv_status status = gpuconv_plan_new(ir, &config, &plan, &error);
    CHECK(status == GPUCONV_OK, "no plan: %s", error.message);
    CHECK(gpuconv_plan_backend(plan) == backend, "the plan has another backend than requested");
    return plan;
}

typedef struct shape {
    const char *name;
    int inputs, channels;
} shape;

static const shape shapes[] = {{"mono", 1, 1},    {"stereo", 2, 2},         {"three channels", 3, 3},
                               {"fan-out", 2, 1}, {"mono to stereo", 1, 2}, {"true stereo", 2, 4}};

static void test_every_algorithm_and_topology_agrees_with_the_oracle(void **state) {
    (void)state;
    static const int64_t lengths[] = {1,   2,   31,  32,  33,  34,  49,   50,   65,   66,   81,   97,   113,
                                      129, 130, 300, 511, 512, 513, 1000, 4095, 4096, 4097, 7000, 20011};
    oracle_random random = {1};
    for (int a = 0; a < COUNT(harness_gpu_algorithms); a++) {
        double worst = -HUGE_VAL;
        for (int s = 0; s < COUNT(shapes); s += gpu_quick ? COUNT(shapes) - 1 : 1) {
            for (int l = 0; l < COUNT(lengths); l += gpu_quick ? 5 : 1) {
                int64_t taps = lengths[l], frames = 1 + oracle_below(&random, gpu_quick ? 1500 : 30000);
                guarded h, x = guarded_random(&random, shapes[s].inputs, frames);
                gpuconv_ir *ir = harness_response(&random, shapes[s].channels, shapes[s].inputs, taps, &h);
                gpuconv_plan *plan = gpu_plan(ir, GPUCONV_BACKEND_CUDA, harness_gpu_algorithms[a], frames);
                guarded y = harness_convolve(plan, ir, &x);
                int outputs;
                double *want = harness_expected(&h, &x, &outputs);
                char what[160];
                snprintf(what, sizeof what, "%s, %s, %lld taps, %lld frames",
                         gpuconv_algorithm_name(harness_gpu_algorithms[a]), shapes[s].name, (long long)taps,
                         (long long)frames);
                CHECK(oracle_agrees(what, &y, y.frames, want, frames + taps - 1, -120), "%s", what);
                for (int c = 0; c < outputs; c++) {
                    double e = oracle_compare(y.channel[c], want + c * y.frames, y.frames).rms;
                    worst = e > worst ? e : worst;
                }
                free(want);
                guarded_free(&y);
                guarded_free(&x);
                guarded_free(&h);
                gpuconv_plan_free(plan);
                gpuconv_ir_free(ir);
            }
        }
        char name[120];
        snprintf(name, sizeof name, "%s against the oracle, worst of all topologies and lengths",
                 gpuconv_algorithm_name(harness_gpu_algorithms[a]));
        gpu_note(name, worst);
    }
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
            gpuconv_plan *plan = gpu_plan(ir, GPUCONV_BACKEND_CUDA, GPUCONV_ALGORITHM_DIRECT, FRAMES);
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
    for (int a = 0; a < COUNT(harness_gpu_algorithms); a++) {
        for (int l = 0; l < COUNT(lengths); l++) {
            int64_t taps = lengths[l], frames = 1900000;
            gpuconv_algorithm algorithm = harness_gpu_algorithms[a];
            if (algorithm == GPUCONV_ALGORITHM_DIRECT && taps > 5000)
                continue;
            guarded h, x = guarded_random(&random, 2, frames);
            gpuconv_ir *ir = harness_response(&random, 2, 2, taps, &h);
            gpuconv_plan *gpu = gpu_plan(ir, GPUCONV_BACKEND_CUDA, algorithm, frames);
            gpuconv_plan *cpu = gpu_plan(ir, GPUCONV_BACKEND_CPU, GPUCONV_ALGORITHM_AUTO, frames);
            CHECK(gpuconv_plan_chunk(gpu) < frames, "the signal fits into one chunk: the test needs several");
            guarded y = harness_convolve(gpu, ir, &x), z = harness_convolve(cpu, ir, &x);
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
            gpuconv_plan_free(gpu);
            gpuconv_plan_free(cpu);
            gpuconv_ir_free(ir);
        }
    }
}

static void test_any_split_into_blocks_gives_the_same_samples(void **state) {
    (void)state;
    oracle_random random = {3};
    for (int a = 0; a < COUNT(harness_gpu_algorithms); a++) {
        int64_t frames = 700001, taps = 700;
        guarded h, x = guarded_random(&random, 2, frames);
        gpuconv_ir *ir = harness_response(&random, 4, 2, taps, &h);
        gpuconv_plan *plan = gpu_plan(ir, GPUCONV_BACKEND_CUDA, harness_gpu_algorithms[a], frames);
        gpuconv_engine *engine;
        CHECK(gpuconv_engine_new(plan, &engine, NULL) == GPUCONV_OK, "no engine");
        guarded whole = harness_run(engine, &x, 2, taps, (harness_split){.fixed = frames});
        static const int64_t blocks[] = {1021, 65536, 300007, -5000};
        for (int b = 0; b < COUNT(blocks); b++) {
            CHECK(gpuconv_engine_reset(engine) == GPUCONV_OK, "no reset");
            guarded parts = harness_run(engine, &x, 2, taps, (harness_split){.fixed = blocks[b], .random = {9}});
            CHECK(oracle_identical("blocks", &parts, parts.frames, &whole, whole.frames), "blocks of %lld, %s",
                  (long long)blocks[b], gpuconv_algorithm_name(harness_gpu_algorithms[a]));
            guarded_free(&parts);
        }
        guarded_free(&whole);
        gpuconv_engine_free(engine);
        gpuconv_plan_free(plan);
        gpuconv_ir_free(ir);
        guarded_free(&h);
        guarded_free(&x);
    }
}

static void test_a_single_tap_at_every_partition_edge_moves_the_input(void **state) {
    (void)state;
    int64_t taps = 40000, frames = 3001;
    oracle_random random = {4};
    for (int a = 0; a < COUNT(harness_gpu_algorithms); a++) {
        int64_t length = harness_gpu_algorithms[a] == GPUCONV_ALGORITHM_OVERLAP_SAVE ? 7000 : taps;
        int64_t step = harness_gpu_algorithms[a] == GPUCONV_ALGORITHM_DIRECT ? 512 : 4096;
        for (int64_t edge = 0; edge < length; edge += step) {
            for (int64_t at = edge - 1; at <= edge + 1; at++) {
                if (at < 0 || at >= length)
                    continue;
                guarded h = guarded_new(1, length), x = guarded_random(&random, 1, frames);
                memset(h.channel[0], 0, (size_t)length * sizeof(float));
                h.channel[0][at] = 1;
                gpuconv_ir *ir = harness_route(&h, 1);
                gpuconv_plan *plan = gpu_plan(ir, GPUCONV_BACKEND_CUDA, harness_gpu_algorithms[a], frames);
                guarded y = harness_convolve(plan, ir, &x);
                for (int64_t i = 0; i < y.frames; i++) {
                    float want = i >= at && i < at + frames ? x.channel[0][i - at] : 0;
                    CHECK(fabsf(y.channel[0][i] - want) <= 2e-6f, "%s, tap at %lld: frame %lld is %g, not %g",
                          gpuconv_algorithm_name(harness_gpu_algorithms[a]), (long long)at, (long long)i,
                          (double)y.channel[0][i], (double)want);
                }
                guarded_free(&y);
                guarded_free(&x);
                guarded_free(&h);
                gpuconv_plan_free(plan);
                gpuconv_ir_free(ir);
            }
        }
    }
}

static void test_silence_stays_silence(void **state) {
    (void)state;
    oracle_random random = {5};
    for (int a = 0; a < COUNT(harness_gpu_algorithms); a++) {
        guarded h, x = guarded_new(1, 5000);
        memset(x.channel[0], 0, 5000 * sizeof(float));
        gpuconv_ir *ir = harness_response(&random, 1, 1, 900, &h);
        gpuconv_plan *plan = gpu_plan(ir, GPUCONV_BACKEND_CUDA, harness_gpu_algorithms[a], 5000);
        guarded y = harness_convolve(plan, ir, &x);
        for (int64_t i = 0; i < y.frames; i++)
            CHECK(y.channel[0][i] == 0.0f, "frame %lld of silence is %g", (long long)i, (double)y.channel[0][i]);
        guarded_free(&y);
        guarded_free(&x);
        guarded_free(&h);
        gpuconv_plan_free(plan);
        gpuconv_ir_free(ir);
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
                gpuconv_plan *gpu = gpu_plan(ir, GPUCONV_BACKEND_CUDA, GPUCONV_ALGORITHM_AUTO, x.frames);
                gpuconv_plan *cpu = gpu_plan(ir, GPUCONV_BACKEND_CPU, GPUCONV_ALGORITHM_AUTO, x.frames);
                guarded y = harness_convolve(gpu, ir, &x), z = harness_convolve(cpu, ir, &x);
                double e = harness_distance(&y, &z, z.frames);
                char name[120];
                snprintf(name, sizeof name, "%s in %s, %s against the CPU", samples[s], impulses[i],
                         gpuconv_algorithm_name(gpuconv_plan_algorithm(gpu)));
                CHECK(e <= -115, "%s: %.1f dB", name, e);
                gpu_note(name, e);
                guarded_free(&y);
                guarded_free(&z);
                guarded_free(&x);
                gpuconv_plan_free(gpu);
                gpuconv_plan_free(cpu);
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
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            gpu_quick = true;
        else if (strcmp(argv[i], "--forms") == 0)
            gpu_forms = true;
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
        cmocka_unit_test(test_matrices_of_every_shape_agree_with_the_oracle),
        cmocka_unit_test(test_every_transform_of_a_matrix_agrees_with_the_oracle),
        cmocka_unit_test(test_a_matrix_keeps_its_precision_at_every_level),
    };
    const struct CMUnitTest middle[] = {
        cmocka_unit_test(test_every_algorithm_and_topology_agrees_with_the_oracle),
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
        cmocka_unit_test(test_any_split_into_blocks_gives_the_same_samples),
        cmocka_unit_test(test_a_single_tap_at_every_partition_edge_moves_the_input),
        cmocka_unit_test(test_silence_stays_silence),
        cmocka_unit_test(test_several_chunks_agree_with_the_cpu),
        cmocka_unit_test(test_a_short_latency_agrees_with_the_cpu),
        cmocka_unit_test(test_the_committed_material_agrees_with_the_cpu),
    };
    int failed = cmocka_run_group_tests_name("gpu", fast, NULL, NULL);
    if (!gpu_forms)
        failed += cmocka_run_group_tests_name("gpu, whole", middle, NULL, NULL);
    if (!gpu_forms && !gpu_quick)
        failed += cmocka_run_group_tests_name("gpu, long", slow, NULL, NULL);
    if (out && json_dump_file(record, out, JSON_INDENT(1)) != 0) {
        fprintf(stderr, "gpu_test: %s cannot be written\n", out);
        return 1;
    }
    json_decref(record);
    return failed ? 1 : 0;
}
