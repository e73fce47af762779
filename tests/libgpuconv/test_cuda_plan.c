/* Tests the plans of the CUDA backend for devices that are made up, so that no GPU is needed. */
#include "harness.h"

#include "libgpuconv/cuda/cuda_algorithm.h"
#include "libgpuconv/engine/choose.h"

static gc_device probed;

static gpuconv_status probe_made_up(const gpuconv_config *config, gc_device *device, gpuconv_error *error) {
    (void)config;
    (void)error;
    *device = probed;
    return GPUCONV_OK;
}

/* Plans for 30 seconds through the made-up device. */
static gpuconv_status plan_for(const gpuconv_ir *ir, gpuconv_algorithm algorithm, int64_t latency, gpuconv_plan *plan,
                               gpuconv_error *error) {
    gc_backend backend = gc_backend_cuda;
    gpuconv_config config = gpuconv_config_default();
    gc_problem problem;
    backend.probe = probe_made_up;
    config.algorithm = algorithm;
    CHECK(gc_problem_init(&problem, ir, 1440000, latency), "no memory");
    *plan = (gpuconv_plan){0};
    const gpuconv_status status = gc_plan_choose(plan, &backend, &problem, &config, error);
    gc_problem_free(&problem);
    return status;
}

/* Returns a response of so many inputs and outputs: dense, or one route for each channel. */
static gpuconv_ir *response(int channels, bool dense, int64_t taps) {
    const int planes = dense ? channels * channels : channels;
    gpuconv_ir *ir = gc_ir_blank(channels, channels, planes, planes, taps, 48000);
    CHECK(ir, "no memory");
    for (int p = 0; p < planes; p++)
        ir->route[p] = (gc_route){.input = p % channels, .output = dense ? p / channels : p, .plane = p};
    return ir;
}

/* A choice is shortened after its own sizes are found: to whole blocks, and to shorter transforms where a block is too
 * long. */
static void a_choice_is_shortened_to_whole_blocks(void **state) {
    (void)state;
    static const struct {
        const gc_cuda_algorithm *algorithm;
        int64_t taps, points, most, hop, chunk; /* hop 0: refused */
    } cases[] = {{&gc_cuda_direct, 3, 0, 4096, 1, 4096},
                 {&gc_cuda_direct, 3, 0, 700, 1, 512},
                 {&gc_cuda_direct, 3, 0, 500, 0, 0},
                 {&gc_cuda_overlap_save, 1000, 16384, 4096, 3072, 3072},
                 {&gc_cuda_overlap_save, 100000, 1 << 19, 4096, 0, 0},
                 {&gc_cuda_partitioned, 100000, 1 << 18, 4096, 2048, 4096},
                 {&gc_cuda_partitioned, 100000, 1 << 18, 40000, 32768, 32768},
                 {&gc_cuda_partitioned, 100000, 8192, 511, 0, 0},
                 {&gc_cuda_matrix, 1000, 4096, 10000, 3072, 9216}};
    for (int i = 0; i < COUNT(cases); i++) {
        gc_choice c = {.algorithm = &cases[i].algorithm->row, .chunk = 1 << 20, .slots = 6};
        assert_true(cases[i].algorithm->schedule(cases[i].taps, cases[i].points, &c.schedule));
        const gpuconv_status status = gc_cuda_shorten(cases[i].most, &c, NULL);
        assert_int_equal(status, cases[i].hop ? GPUCONV_OK : GPUCONV_ERROR_UNSUPPORTED);
        if (status)
            continue;
        CHECK(c.schedule.hop == cases[i].hop && c.chunk == cases[i].chunk && c.slots == 3,
              "case %d: hop %lld, chunk %lld", i, (long long)c.schedule.hop, (long long)c.chunk);
    }
}

/* Shared memory decides which transforms a plan may have, and free memory how much it may take: at most four fifths. */
static void a_plan_keeps_to_what_the_device_has(void **state) {
    (void)state;
    static const int64_t shared[] = {64 * 1024, 99 * 1024, 227 * 1024}, taps[] = {100, 3000, 7000, 50000, 400000};
    for (int s = 0; s < COUNT(shared); s++)
        for (int t = 0; t < COUNT(taps); t++)
            for (int a = 0; a <= COUNT(harness_algorithms); a++) {
                gpuconv_ir *ir = response(4, true, taps[t]);
                gpuconv_plan plan;
                gpuconv_error error = {0};
                probed =
                    (gc_device){.name = "a card", .memory = 4e8, .multiprocessors = 40, .shared_memory = shared[s]};
                const gpuconv_status status = plan_for(ir, (gpuconv_algorithm)a, -1, &plan, &error);
                CHECK(!status || (a > 0 && *error.message), "%lld taps, algorithm %d: %s", (long long)taps[t], a,
                      error.message);
                const int64_t points = status ? 0 : plan.choice.schedule.transform;
                const gpuconv_algorithm got = status ? GPUCONV_ALGORITHM_AUTO : gpuconv_plan_algorithm(&plan);
                CHECK(status || plan.choice.bytes <= 0.8 * 4e8, "%.0f bytes", plan.choice.bytes);
                CHECK(got != GPUCONV_ALGORITHM_OVERLAP_SAVE || points != 16384 || shared[s] > 64 * 1024,
                      "2^14 points of overlap-save do not fit into 64 KB");
                CHECK(got != GPUCONV_ALGORITHM_PARTITIONED || points != 8192 || shared[s] > 64 * 1024,
                      "8192 points of partitions do not fit into 64 KB");
                gpuconv_ir_free(ir);
            }
}

/* Where no size fits, the reason says what the device lacks. */
static void a_refusal_names_the_limit(void **state) {
    (void)state;
    gpuconv_ir *dense = response(16, true, 40000), *parts = response(100, false, 1000),
               *hall = response(2, false, 3000000);
    gpuconv_plan plan;
    gpuconv_error error = {0};
    probed = (gc_device){.name = "a card", .memory = 1e7, .multiprocessors = 40, .shared_memory = 99 * 1024};
    assert_int_equal(plan_for(dense, GPUCONV_ALGORITHM_PARTITIONED, -1, &plan, &error), GPUCONV_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "16 inputs, 16 outputs and 256 responses of 40000 frames need"));
    probed.memory = 1e11;
    assert_int_equal(plan_for(parts, GPUCONV_ALGORITHM_MATRIX, -1, &plan, &error), GPUCONV_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "100 parts that share no channel; matrix on a card takes 1 to 64"));
    assert_int_equal(plan_for(hall, GPUCONV_ALGORITHM_OVERLAP_SAVE, -1, &plan, &error), GPUCONV_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "too long for overlap-save on a card: transforms have at most 2097152"));
    assert_int_equal(plan_for(hall, GPUCONV_ALGORITHM_PARTITIONED, 1024, &plan, &error), GPUCONV_OK);
    assert_true(plan.choice.chunk <= 512 && plan.choice.slots == GC_BOUNDED_SLOTS);
    assert_int_equal(plan_for(hall, GPUCONV_ALGORITHM_MATRIX, 400, &plan, &error), GPUCONV_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "on a GPU within the latency asked for"));
    gpuconv_ir_free(dense);
    gpuconv_ir_free(parts);
    gpuconv_ir_free(hall);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_choice_is_shortened_to_whole_blocks),
        cmocka_unit_test(a_plan_keeps_to_what_the_device_has),
        cmocka_unit_test(a_refusal_names_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
