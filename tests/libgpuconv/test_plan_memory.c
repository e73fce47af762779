/* Tests plans for a GPU with little free memory: they take what fits, are refused with the needed and the
 * free bytes, or leave the work to the CPU with a note. The GPU is a stand-in that replaces the registry of
 * backends, so that the test runs everywhere; in a build with CUDA the cost model of the CUDA backend plans for it. */
#include "harness.h"

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/error.h"

#include <math.h>

static const double whole_device = 80e9;

/* The stand-in: its free bytes, its time in that of its costs, how often it was started, and whether that fails. */
static double free_bytes, slowness = 1;
static int starts;
static bool fails_to_start;

static gpuconv_status fake_probe(const gpuconv_config *config, gc_device *device, gpuconv_error *error) {
    (void)config;
    (void)error;
    *device = (gc_device){.name = "a GPU",
                          .threads = 1,
                          .memory = whole_device,
                          .tensor_cores = true,
                          .multiprocessors = 132,
                          .lanes = 128,
                          .clock = 1.98e9,
                          .bandwidth = 4.9e12,
                          .cache = INT64_C(60) << 20,
                          .shared_memory = 227 << 10};
    return GPUCONV_OK;
}

static gpuconv_status fake_free_memory(gc_device *device, gpuconv_error *error) {
    starts++;
    if (fails_to_start)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "a GPU has too little free memory to start");
    device->memory = free_bytes;
    device->started = true;
    return GPUCONV_OK;
}

/* Bytes and seconds of each algorithm of the stand-in; it has no other ones. */
static const struct {
    double bytes, seconds;
} needs[] = {[GPUCONV_ALGORITHM_DIRECT] = {1e9, 3e-3}, [GPUCONV_ALGORITHM_OVERLAP_SAVE] = {4e9, 1e-3}};

static bool fits(const gc_problem *problem, const gc_device *device, int64_t points, int form, gc_choice *choice) {
    (void)problem;
    (void)device;
    (void)choice;
    return points == 0 && form == 0;
}

static void cost(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_choice *choice) {
    (void)problem;
    (void)device;
    (void)costs;
    choice->chunk = 32768;
    choice->slots = 3;
    choice->bytes = needs[choice->algorithm->id].bytes;
    choice->cost = slowness * needs[choice->algorithm->id].seconds;
}

static const gc_algorithm direct = {.id = GPUCONV_ALGORITHM_DIRECT, .name = "direct", .fits = fits, .cost = cost},
                          overlap_save = {
                              .id = GPUCONV_ALGORITHM_OVERLAP_SAVE, .name = "overlap-save", .fits = fits, .cost = cost};
static const gc_algorithm *const algorithms[] = {&direct, &overlap_save, NULL};

static gc_backend gpu = {.id = GPUCONV_BACKEND_CUDA,
                         .algorithms = algorithms,
                         .probe = fake_probe,
                         .free_memory = fake_free_memory,
                         .costs = gc_costs_of_cuda};

const gc_backend *__real_gc_backend_find(gpuconv_backend backend);
const gc_backend *__wrap_gc_backend_find(gpuconv_backend backend);

const gc_backend *__wrap_gc_backend_find(gpuconv_backend backend) {
    return backend == GPUCONV_BACKEND_CUDA ? &gpu : __real_gc_backend_find(backend);
}

static int64_t frames = INT64_C(3600) * 48000;

/* Plans for a matrix of size x size responses; *plan is NULL after a failure. */
static gpuconv_status plan_matrix(int size, int64_t taps, gpuconv_backend backend, gpuconv_plan **plan,
                                  gpuconv_error *error) {
    gpuconv_ir *ir;
    gpuconv_config config = gpuconv_config_default();
    float *h = calloc((size_t)taps, sizeof *h);
    const float **route = calloc((size_t)size * (size_t)size, sizeof *route);
    CHECK(h && route, "no memory");
    h[0] = 1;
    for (int i = 0; i < size * size; i++)
        route[i] = h;
    CHECK(gpuconv_ir_new_matrix(route, size, size, taps, 48000, &ir, error) == GPUCONV_OK, "%s", error->message);
    config.backend = backend;
    config.frames = frames;
    config.threads = 1;
    starts = 0;
    const gpuconv_status status = gpuconv_plan_new(ir, &config, plan, error);
    gpuconv_ir_free(ir);
    free(route);
    free(h);
    return status;
}

static void a_gpu_is_planned_with_what_is_free(void **state) {
    (void)state;
    static const struct {
        double bytes;
        gpuconv_algorithm algorithm;
    } cases[] = {{8e9, GPUCONV_ALGORITHM_OVERLAP_SAVE}, {2e9, GPUCONV_ALGORITHM_DIRECT}};
    for (int i = 0; i < COUNT(cases); i++)
        for (int automatic = 0; automatic < 2; automatic++) {
            gpuconv_plan *plan;
            gpuconv_error error = {0};
            free_bytes = cases[i].bytes;
            assert_int_equal(
                plan_matrix(4, 48000, automatic ? GPUCONV_BACKEND_AUTO : GPUCONV_BACKEND_CUDA, &plan, &error),
                GPUCONV_OK);
            assert_int_equal(gpuconv_plan_backend(plan), GPUCONV_BACKEND_CUDA);
            assert_int_equal(gpuconv_plan_algorithm(plan), cases[i].algorithm);
            assert_true(plan->choice.bytes == needs[cases[i].algorithm].bytes);
            assert_int_equal(starts, 1);
            gpuconv_plan_free(plan);
        }
}

static void too_little_memory_is_refused_with_both_figures(void **state) {
    (void)state;
    gpuconv_plan *plan;
    gpuconv_error error = {0};
    free_bytes = 0.5e9;
    assert_int_equal(plan_matrix(4, 48000, GPUCONV_BACKEND_CUDA, &plan, &error), GPUCONV_ERROR_UNSUPPORTED);
    assert_null(plan);
    assert_string_equal(
        error.message,
        "4 inputs, 4 outputs and 16 responses of 48000 frames need 1.11 GB with direct; a GPU has 0.50 GB free");
}

static void without_enough_memory_the_cpu_works_and_says_why(void **state) {
    (void)state;
    gpuconv_plan *plan;
    gpuconv_error error = {0};
    free_bytes = 0.5e9;
    for (int k = 0; k < 2; k++) {
        fails_to_start = k;
        assert_int_equal(plan_matrix(4, 48000, GPUCONV_BACKEND_AUTO, &plan, &error), GPUCONV_OK);
        assert_int_equal(gpuconv_plan_backend(plan), GPUCONV_BACKEND_CPU);
        assert_string_equal(
            gpuconv_plan_note(plan),
            k ? "running on the CPU: a GPU has too little free memory to start"
              : "running on the CPU: 4 inputs, 4 outputs and 16 responses of 48000 frames need 1.11 GB with direct; a GPU has 0.50 GB free");
        gpuconv_plan_free(plan);
    }
    fails_to_start = false;
}

static void a_job_for_the_cpu_starts_no_gpu(void **state) {
    (void)state;
    const int64_t many = frames;
    free_bytes = 8e9;
    for (int k = 0; k < 2; k++) { /* a short job; a GPU that is slower than the CPU */
        gpuconv_plan *plan;
        gpuconv_error error = {0};
        frames = k ? many : 48000;
        slowness = k ? 1e9 : 1;
        assert_int_equal(plan_matrix(4, 48000, GPUCONV_BACKEND_AUTO, &plan, &error), GPUCONV_OK);
        assert_int_equal(gpuconv_plan_backend(plan), GPUCONV_BACKEND_CPU);
        assert_string_equal(gpuconv_plan_note(plan), "");
        assert_int_equal(starts, 0);
        gpuconv_plan_free(plan);
    }
    slowness = 1;
}

#ifdef GPUCONV_WITH_CUDA
/* The convolution that was refused: 32 x 32 responses of 1 s. Less memory gives smaller chunks, then other transforms,
 * and never a plan that takes more than its share. */
static void the_cost_model_of_cuda_keeps_to_what_is_free(void **state) {
    (void)state;
    double chunk = INFINITY;
    gpu.algorithms = gc_backend_cuda.algorithms;
    for (free_bytes = 20e9; free_bytes > 0.3e9; free_bytes *= 0.6) {
        gpuconv_plan *plan;
        gpuconv_error error = {0};
        CHECK(plan_matrix(32, 48000, GPUCONV_BACKEND_CUDA, &plan, &error) == GPUCONV_OK, "%.2f GB: %s",
              free_bytes * 1e-9, error.message);
        CHECK(plan->choice.bytes > 4.0 * 32 * 32 * 48000 && plan->choice.bytes <= 0.9 * free_bytes, "%.2f of %.2f GB",
              plan->choice.bytes * 1e-9, free_bytes * 1e-9);
        chunk = fmin(chunk, (double)gpuconv_plan_chunk(plan));
        gpuconv_plan_free(plan);
    }
    CHECK(chunk <= 32768, "the smallest chunk has %.0f frames", chunk);
    gpuconv_plan *plan;
    gpuconv_error error = {0};
    free_bytes = 0.15e9;
    assert_int_equal(plan_matrix(32, 48000, GPUCONV_BACKEND_CUDA, &plan, &error), GPUCONV_ERROR_UNSUPPORTED);
    CHECK(strstr(error.message, "a GPU has 0.15 GB free") && strstr(error.message, " need 0."), "%s", error.message);
    gpu.algorithms = algorithms;
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_is_planned_with_what_is_free),
        cmocka_unit_test(too_little_memory_is_refused_with_both_figures),
        cmocka_unit_test(without_enough_memory_the_cpu_works_and_says_why),
        cmocka_unit_test(a_job_for_the_cpu_starts_no_gpu),
#ifdef GPUCONV_WITH_CUDA
        cmocka_unit_test(the_cost_model_of_cuda_keeps_to_what_is_free),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
