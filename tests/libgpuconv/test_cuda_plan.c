/* Tests the plans of the CUDA backend for devices that are made up, so that no GPU is needed. */
#include "harness.h"

#include "libgpuconv/conv/cuda/cuda_algorithm.h"
#include "libgpuconv/conv/cuda/cuda_arrays.h"

static gc_device probed;

/* Returns a device of 40 multiprocessors. */
static gc_device card(double memory, int64_t shared_memory) {
    return (gc_device){.name = "a card",
                       .memory = memory,
                       .multiprocessors = 40,
                       .lanes = 64,
                       .clock = 1.6e9,
                       .bandwidth = 3.2e11,
                       .cache = INT64_C(4) << 20,
                       .shared_memory = shared_memory};
}

/* Plans for 30 seconds through the made-up device. */
static gpuconv_status plan_for(const gpuconv_ir *ir, gpuconv_algorithm algorithm, int64_t latency, gpuconv_plan *plan,
                               gpuconv_error *error) {
    gpuconv_config config = gpuconv_config_default();
    gc_problem problem;
    config.algorithm = algorithm;
    CHECK(gc_problem_init(&problem, ir, 1440000, latency), "no memory");
    *plan = (gpuconv_plan){.device = probed};
    const gpuconv_status status = gc_plan_choose(plan, &gc_backend_cuda, &problem, &config, error);
    gc_problem_free(&problem);
    return status;
}

/* Checks that a plan has kernels on its device, its share of the memory and a chunk of whole blocks within `most`
 * frames. */
static void check_plan(const gc_problem *problem, const gpuconv_plan *plan, int64_t most, const char *what) {
    gc_choice c = plan->choice;
    bool fits = false;
    for (int form = 0; form < 2 && !fits; form++)
        fits = c.algorithm->fits(problem, &plan->device, plan->choice.schedule.transform, form, &c) &&
               memcmp(&c.schedule, &plan->choice.schedule, sizeof c.schedule) == 0;
    CHECK(fits, "%s: no kernel of %s for %lld points", what, gpuconv_algorithm_name(c.algorithm->id),
          (long long)plan->choice.schedule.transform);
    CHECK(c.bytes <= GC_MEMORY_SHARE * plan->device.memory, "%s: %.0f bytes", what, c.bytes);
    CHECK(c.chunk % gc_cuda_step(gc_cuda_algorithm_of(&c), &plan->choice.schedule) == 0, "%s: chunk %lld", what,
          (long long)c.chunk);
    CHECK(most < 0 || (c.chunk <= most && c.slots == GC_BOUNDED_SLOTS), "%s: %d chunks of %lld frames", what, c.slots,
          (long long)c.chunk);
}

/* Shared memory and the latency decide which transforms a plan may have. Every plan has kernels, whatever they are. */
static void a_plan_keeps_to_the_device_and_the_latency(void **state) {
    (void)state;
    static const int64_t shared[] = {64 * 1024, 99 * 1024, 227 * 1024}, taps[] = {1, 100, 3000, 7000, 50000, 400000};
    static const int64_t latency[] = {-1, 1024, 8192, 20000, 40000};
    int refused = 0;
    for (int n = 0; n < COUNT(shared) * COUNT(taps) * COUNT(latency); n++) {
        const int s = n % COUNT(shared), t = n / COUNT(shared) % COUNT(taps), l = n / COUNT(shared) / COUNT(taps);
        gpuconv_ir *ir = harness_square_ir(4, true, taps[t]);
        gc_problem problem;
        CHECK(gc_problem_init(&problem, ir, 1440000, latency[l]), "no memory");
        probed = card(4e8, shared[s]);
        for (int a = 0; a <= COUNT(harness_algorithms); a++) {
            gpuconv_plan plan;
            gpuconv_error error = {0};
            char what[120];
            snprintf(what, sizeof what, "%lld bytes, %lld taps, latency %lld, algorithm %d", (long long)shared[s],
                     (long long)taps[t], (long long)latency[l], a);
            const gpuconv_status status = plan_for(ir, (gpuconv_algorithm)a, latency[l], &plan, &error);
            CHECK(!status || (a > 0 && *error.message), "%s: %s", what, error.message);
            refused += status != GPUCONV_OK;
            if (!status)
                check_plan(&problem, &plan, latency[l] < 0 ? -1 : latency[l] / 2, what);
        }
        gc_problem_free(&problem);
        gpuconv_ir_free(ir);
    }
    CHECK(refused > 0 && refused < 120, "%d refusals", refused);
}

/* Where no size fits, the reason says what the device lacks. */
static void a_refusal_names_the_limit(void **state) {
    (void)state;
    gpuconv_ir *dense = harness_square_ir(16, true, 40000), *parts = harness_square_ir(100, false, 1000),
               *hall = harness_square_ir(2, false, 3000000);
    gpuconv_plan plan;
    gpuconv_error error = {0};
    probed = card(1e7, 99 * 1024);
    assert_int_equal(plan_for(dense, GPUCONV_ALGORITHM_PARTITIONED, -1, &plan, &error), GPUCONV_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "16 inputs, 16 outputs and 256 responses of 40000 frames need"));
    probed.memory = 1e11;
    assert_int_equal(plan_for(parts, GPUCONV_ALGORITHM_MATRIX, -1, &plan, &error), GPUCONV_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "100 parts that share no channel; matrix on a card takes 1 to 64"));
    assert_int_equal(plan_for(hall, GPUCONV_ALGORITHM_OVERLAP_SAVE, -1, &plan, &error), GPUCONV_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "too long for overlap-save on a card: transforms have at most 2097152"));
    assert_int_equal(plan_for(hall, GPUCONV_ALGORITHM_PARTITIONED, 1024, &plan, &error), GPUCONV_OK);
    assert_true(plan.choice.chunk <= 512 && plan.choice.slots == GC_BOUNDED_SLOTS);
    assert_int_equal(plan_for(parts, GPUCONV_ALGORITHM_OVERLAP_SAVE, 1024, &plan, &error), GPUCONV_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "on a card within the latency asked for"));
    gpuconv_ir_free(dense);
    gpuconv_ir_free(parts);
    gpuconv_ir_free(hall);
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

static const gc_device h200 = {.name = "an H200",
                               .memory = 1e12,
                               .tensor_cores = true,
                               .multiprocessors = 132,
                               .lanes = 128,
                               .clock = 1.98e9,
                               .bandwidth = 4.917e12,
                               .cache = INT64_C(60) << 20,
                               .shared_memory = 227 * 1024,
                               .resident_shared_memory = 228 * 1024,
                               .resident_threads = 2048,
                               .workspace = 256 << 20};

/* Rows as tests/gpu/gpu_jobs_speed.c has them. shared: rows that share a response; 0: each has its own; -n: n rows in
 * turn. */
typedef struct rows_case {
    int64_t rows, frames, taps, shared;
    bool same, kept; /* as many frames out as in; by the spectra that are kept for such rows */
    gpuconv_arrays_operation operation;
    const gc_cuda_rows *algorithm;
    int64_t points; /* complex */
} rows_case;

static gc_job_shape shape_of(const rows_case *c) {
    return (gc_job_shape){.operation = c->operation,
                          .rows = c->rows,
                          .batch = c->rows,
                          .group = c->shared > 0 ? c->shared : 1,
                          .responses = c->shared < 0 ? -c->shared
                                       : c->shared   ? c->rows / c->shared
                                                     : c->rows,
                          .taps = c->taps,
                          .signal_frames = c->frames,
                          .output_frames = c->same ? c->frames : c->frames + c->taps - 1};
}

/* Plans rows for an H200. halves: all samples are halves, in aligned rows. */
static void check_choice(const rows_case *c, bool halves) {
    const gc_costs costs = gc_costs_built_in(&h200);
    gc_job_shape shape = shape_of(c);
    shape.halves = halves ? GPUCONV_SAMPLE_F16 : 0;
    shape.bare_halves = halves;
    const gc_problem problem = {.kind = GC_ROWS, .rows = {.shape = shape, .spectra = c->kept, .samples = !c->kept}};
    gc_rows_plan plan;
    gc_rows_plan_make(&h200, &costs, &problem, &plan);
    CHECK(plan.algorithm == c->algorithm && plan.points == c->points && plan.seconds > 0,
          "%lld x %lld * %lld, operation %d, halves %d: %s of %lld points, %.3g ms", (long long)c->rows,
          (long long)c->frames, (long long)c->taps, (int)c->operation, halves,
          plan.algorithm ? plan.algorithm->row.name : "none", (long long)plan.points, plan.seconds * 1e3);
}

/* The choices that the record of an H200 holds (tests/gpu/nvidia-h200.json). */
static void rows_of_an_h200_are_planned_as_recorded(void **state) {
    (void)state;
    const gpuconv_arrays_operation by_signal = GPUCONV_ARRAYS_GRADIENT_SIGNAL,
                                   by_response = GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    const rows_case cases[] = {
        {1024, 160000, 8000, 0, false, false, 0, &gc_rows_chip, 16384},
        {1024, 160000, 8000, 0, false, false, by_signal, &gc_rows_chip, 16384},
        {1024, 160000, 8000, 0, false, false, by_response, &gc_rows_chip, 16384},
        {1024, 160000, 8000, 1024, false, true, 0, &gc_rows_chip, 16384},
        {1024, 160000, 8000, 0, true, false, 0, &gc_rows_chip, 16384},
        {64, 64000, 16000, 0, false, false, 0, &gc_rows_chip, 16384},
        {64, 64000, 16000, 0, false, false, by_response, &gc_rows_chip, 16384},
        {32, 480000, 96000, 0, false, false, 0, &gc_rows_three_pass, 131072},
        {32, 480000, 96000, 0, false, false, by_signal, &gc_rows_three_pass, 131072},
        {32, 480000, 96000, 0, false, false, by_response, &gc_rows_three_pass, 131072},
        {8, 3600000, 48000, 0, false, false, 0, &gc_rows_three_pass, 131072},
        {8, 3600000, 48000, 0, false, true, 0, &gc_rows_three_pass, 131072},
        {2, 28800000, 72000, 0, false, true, 0, &gc_rows_three_pass, 262144},
        {49152, 4096, 4096, -768, false, false, 0, &gc_rows_chip, 4096},
        {49152, 4096, 4096, -768, false, false, by_signal, &gc_rows_chip, 4096},
        {49152, 4096, 4096, -768, false, false, by_response, &gc_rows_chip, 4096},
        {1, 16000, 2000, 0, false, false, 0, &gc_rows_direct, 0},
        {1, 16000, 2000, 0, false, false, by_response, &gc_rows_direct, 0},
        {16, 4096, 256, 0, false, false, by_signal, &gc_rows_direct, 0},
        {1, 64000, 2000, 0, false, false, 0, &gc_rows_chip, 2048},
        {49152, 128, 128, -768, true, false, 0, &gc_rows_chip, 128},
        {49152, 512, 512, -768, true, false, by_response, &gc_rows_chip, 512},
        {65536, 128, 128, 0, false, false, 0, &gc_rows_chip, 128},
    };
    for (int i = 0; i < COUNT(cases); i++)
        check_choice(&cases[i], false);
}

/* Those of rows of halves (docs/experiments/jobs.md). */
static void halves_are_planned_on_tensor_cores_where_these_are_faster(void **state) {
    (void)state;
    const gpuconv_arrays_operation by_signal = GPUCONV_ARRAYS_GRADIENT_SIGNAL;
    const rows_case cases[] = {
        {49152, 1024, 1024, -768, true, false, 0, &gc_rows_toeplitz, 0},
        {49152, 2048, 2048, -768, true, false, 0, &gc_rows_tensor, 2048},
        {49152, 2048, 2048, -768, true, false, by_signal, &gc_rows_tensor, 2048},
        {49152, 4096, 4096, -768, true, false, 0, &gc_rows_tensor, 4096},
        {49152, 4096, 4096, -768, true, false, by_signal, &gc_rows_tensor, 4096},
        {49152, 8192, 8192, -768, true, false, 0, &gc_rows_chip, 8192},
        {49152, 2048, 2048, -768, false, false, 0, &gc_rows_chip, 2048}, /* the whole convolution */
    };
    for (int i = 0; i < COUNT(cases); i++)
        check_choice(&cases[i], true);
}

/* Spectra serve their own algorithm and size only, samples direct sums too. A transform that is asked for is taken. */
static void prepared_rows_keep_to_what_is_prepared(void **state) {
    (void)state;
    const rows_case small = {.rows = 1, .frames = 16000, .taps = 2000};
    const gc_costs costs = gc_costs_built_in(&h200);
    const gc_cuda_rows *const algorithms[] = {&gc_rows_three_pass, &gc_rows_chip, &gc_rows_direct};
    int sizes = 0;
    for (int a = 0; a < COUNT(algorithms); a++)
        for (int64_t points = algorithms[a]->row.least; points <= algorithms[a]->row.most;
             points += points ? points : 1) {
            const gc_cuda_rows *only = algorithms[a];
            const bool chip = only == &gc_rows_chip, direct = only == &gc_rows_direct;
            const int size = gc_rows_size(only, &h200, points);
            gc_problem problem = {
                .kind = GC_ROWS,
                .rows = {.shape = shape_of(&small), .required_algorithm = &only->row, .required_points = points}};
            gc_rows_plan plan;
            sizes += size >= 0;
            CHECK(size < 0 || direct ||
                      points == 2 * (chip ? gck_chip_query(size).points : gck_3pass_query(size).points),
                  "algorithm %d, %lld points: size %d", a, (long long)points, size);
            const bool fits = size >= 0 && (!chip || 2 * 2000 <= points + points / 2);
            for (int kept = 0; kept < 2; kept++) {
                problem.rows.spectra = kept;
                problem.rows.samples = !kept;
                gc_rows_plan_make(&h200, &costs, &problem, &plan);
                CHECK((plan.seconds > 0) == (fits && !(kept && direct)), "algorithm %d, size %d", a, size);
                CHECK(!(plan.seconds > 0) || (plan.algorithm == only && plan.size == size), "algorithm %d, size %d", a,
                      size);
            }
            problem.rows.samples = true; /* direct sums are faster */
            gc_rows_plan_make(&h200, &costs, &problem, &plan);
            assert_ptr_equal(plan.algorithm, &gc_rows_direct);
        }
    assert_int_equal(sizes, GCK_3PASS_SIZES + GCK_CHIP_SIZES + 1);
}

/* The kernels of long transforms count partitions and blocks of a chunk together. A chunk that was halved, because the
 * memory does not suffice for the whole one, counts as it is. */
static void a_chunk_counts_as_the_memory_allows_it(void **state) {
    (void)state;
    const int64_t points = 1 << 15, hop = points / 2, partitions = 40000;
    gc_route route = {0};
    const gpuconv_ir ir = {
        .inputs = 1, .outputs = 1, .planes = 1, .routes = 1, .frames = partitions * hop, .route = &route};
    const gc_algorithm *row = &gc_cuda_partitioned.row;
    gc_device device = card(1e12, 99 * 1024);
    const gc_costs costs = gc_backend_cuda.costs(&device);
    gc_problem problem;
    CHECK(gc_problem_init(&problem, &ir, -1, 0), "no memory");
    gc_choice c = {.algorithm = row};
    assert_true(row->fits(&problem, &device, points, 0, &c));
    row->cost(&problem, &device, &costs, &c);
    assert_true(c.chunk >= partitions * hop && !(c.cost < HUGE_VAL));
    device.memory = 4e10;
    row->cost(&problem, &device, &costs, &c);
    assert_true(c.chunk < partitions * hop && c.bytes <= GC_MEMORY_SHARE * device.memory && c.cost < HUGE_VAL);
    gc_problem_free(&problem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_keeps_to_the_device_and_the_latency),
        cmocka_unit_test(a_refusal_names_the_limit),
        cmocka_unit_test(rows_of_an_h200_are_planned_as_recorded),
        cmocka_unit_test(halves_are_planned_on_tensor_cores_where_these_are_faster),
        cmocka_unit_test(prepared_rows_keep_to_what_is_prepared),
        cmocka_unit_test(a_chunk_counts_as_the_memory_allows_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
