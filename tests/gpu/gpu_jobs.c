/*
 * Tests of jobs on device memory (gpuconv_arrays.h) against sums in double precision: every operation by every
 * transform, with all types, ragged and packed rows. Needs a GPU and fails where there is none. Usage: gpu_jobs
 * [--quick]; --quick runs a few of them, for a sanitizer.
 */
#include "gpu_jobs.h"
#include "array_shapes.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <string.h>

/* Returns the place's object of the library. */
static gc_cuda_arrays *inside(void) {
    return (gc_cuda_arrays *)trials.arrays;
}

/* ---- Trials on the device ---------------------------------------------------------------------------------------- */

static void *allocate(size_t bytes) {
    void *made = NULL;
    CHECK(cudaMalloc(&made, bytes) == cudaSuccess, "no memory on the device");
    return made;
}

static void release(void *memory) {
    cudaFree(memory);
}

static void copy(void *to, const void *from, size_t bytes) {
    CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDefault) == cudaSuccess, "no copy");
}

/* Runs a job on a stream of its own. */
static void run(const gpuconv_arrays_job *job, const char *what) {
    gpuconv_error error = {0};
    gpuconv_arrays_plan *plan = NULL;
    CHECK(!gpuconv_arrays_plan_new(trials.arrays, job, &plan, &error), "%s: %s", what, error.message);
    const size_t bytes = gpuconv_arrays_plan_workspace(plan);
    void *workspace = allocate(bytes + 256);
    CHECK(cudaMemset(workspace, 0xff, bytes + 256) == cudaSuccess, "no memset");
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "no stream");
    CHECK(cudaDeviceSynchronize() == cudaSuccess, "%s: no synchronisation", what);
    CHECK(!gpuconv_arrays_plan_run(plan, job, workspace, bytes, stream, &error), "%s: %s", what, error.message);
    gpuconv_arrays_plan_free(plan);
    const cudaError_t err = cudaStreamSynchronize(stream);
    CHECK(!err, "%s: %s", what, cudaGetErrorString(err));
    cudaStreamDestroy(stream);
    cudaFree(workspace);
}

/* The jobs that run_shape has run. */
static int served;

/* Runs a job by one algorithm with transforms of `points` points. Returns the error in dB of floats; -HUGE_VAL for
 * others, and if the algorithm does not serve the job on this device (less shared memory, or GPUCONV_CUDA_LIMITS). */
static double run_shape(oracle_random *r, const trial_shape *s, const gc_cuda_rows *only, int64_t points) {
    static const char *const names[] = {"convolve", "gradient by the signal", "gradient by the response",
                                        "both gradients"};
    trial t;
    char what[520];
    gc_cuda_call call;
    gpuconv_error refused = {0};
    if (gc_rows_size(only, &inside()->figures, points) < 0)
        return -HUGE_VAL;
    snprintf(
        what, sizeof what,
        "%s, %s %lld points, %lld rows of %lld (group %lld) x %lld responses of %lld -> %lld from %lld, types %d %d %d, "
        "kinds %d %d %d, steps %lld %lld %lld%s%s, hop %lld%s, gates %d%d%d%d",
        names[s->operation], only->row.name, (long long)points, (long long)s->rows, (long long)s->frames,
        (long long)s->group, (long long)s->responses, (long long)s->taps, (long long)s->output_frames,
        (long long)s->offset, s->type[0], s->type[1], s->type[2], s->kind[0], s->kind[1], s->kind[2],
        (long long)s->step[0], (long long)s->step[1], (long long)s->step[2], s->accumulate ? ", add" : "",
        s->gain ? ", gain" : "", (long long)s->hop, s->linear ? " crossed" : "", s->pre, s->post, s->skip, s->mixed);
    trial_init(&t, oracle_bits(r), s);
    inside()->required_algorithm = &only->row;
    inside()->required_points = points;
    const bool serves = !gc_cuda_prepare(inside(), &t.job, &call, &refused);
    const double error = serves ? trial_run(&t, what) : -HUGE_VAL;
    served += serves;
    inside()->required_algorithm = NULL;
    const bool floats = trial_written(&t)->array.type == GPUCONV_SAMPLE_F32;
    trial_free(&t);
    return floats ? error : -HUGE_VAL;
}

/* Runs a random job. points: as of random_shape. */
static double run_by(oracle_random *r, int operation, const gc_cuda_rows *only, int64_t size, int64_t points,
                     int64_t taps) {
    const trial_shape s = trial_random(r, operation, points, taps);
    return run_shape(r, &s, only, 2 * size);
}

static void test_every_operation_on_the_chip_agrees_with_the_oracle(void **state) {
    (void)state;
    oracle_random random = {101};
    double worst = -HUGE_VAL;
    for (int size = 0; size < GCK_CHIP_SIZES; size++) {
        const int64_t points = gck_chip_query(size).points;
        for (int operation = 0; operation < 4; operation++)
            for (int i = 0; i < (harness_quick ? 1 : 8); i++)
                worst = fmax(worst, run_by(&random, operation, &gc_rows_chip, points, points,
                                           i == 0   ? points + points / 2
                                           : i == 1 ? 1
                                                    : 0));
    }
    print_message("on the chip: %.1f dB at worst\n", worst);
}

/* Few and many terms, several chunks of them, and more rows than multiprocessors share. */
static void test_every_operation_by_direct_sums_agrees_with_the_oracle(void **state) {
    (void)state;
    static const int64_t taps[] = {1, 31, 33, 2000, 2048, 2049, 7000, 0, 0, 0};
    static const int processors[] = {0, 7, 1000};
    oracle_random random = {105};
    const int before = inside()->figures.multiprocessors;
    double worst = -HUGE_VAL;
    for (int operation = 0; operation < 3; operation++)
        for (int i = 0; i < COUNT(taps); i += harness_quick ? 4 : 1) {
            const int other = processors[(i + operation) % COUNT(processors)];
            inside()->figures.multiprocessors = other ? other : before;
            worst = fmax(worst, run_by(&random, operation, &gc_rows_direct, 0, i % 2 ? 1000 : 4000, taps[i]));
        }
    inside()->figures.multiprocessors = before;
    print_message("direct sums: %.1f dB at worst\n", worst);
}

static void test_every_operation_in_three_kernels_agrees_with_the_oracle(void **state) {
    (void)state;
    oracle_random random = {102};
    double worst = -HUGE_VAL;
    for (int size = 0; size < GCK_3PASS_SIZES; size++) {
        const int64_t points = gck_3pass_query(size).points;
        for (int operation = 0; operation < 4 && !(harness_quick && size > 1); operation++)
            for (int i = 0; i < (size > 2 || harness_quick ? 1 : 4); i++)
                worst =
                    fmax(worst, run_by(&random, operation, &gc_rows_three_pass, points, size > 2 ? points / 8 : points,
                                       size > 2 ? 3000
                                       : i == 1 ? 2 * points + 77
                                                : 0));
    }
    print_message("three kernels: %.1f dB at worst\n", worst);
}

/* Rows of halves, whose transforms have 4 bytes a point. */
static void test_halves_in_three_kernels_agree_with_the_oracle(void **state) {
    (void)state;
    static const int operations[] = {GPUCONV_ARRAYS_CONVOLVE, GPUCONV_ARRAYS_GRADIENT_SIGNAL,
                                     GPUCONV_ARRAYS_GRADIENT_BOTH};
    oracle_random random = {110};
    const int before = served;
    for (int size = 0; size < (harness_quick ? 1 : 3); size++)
        for (int i = harness_quick ? 8 : 0; i < (harness_quick ? 12 : 18); i++) {
            const int64_t points = gck_3pass_query(size).points;
            trial_shape s = trial_random(&random, operations[i % 3], points / 2,
                                         i < 9    ? 0
                                         : i == 9 ? 2 * points + 77 /* several parts, which are not packed */
                                                  : points);
            s.frames = s.output_frames = gc_round_up(gc_max(s.frames, s.taps), 8);
            s.offset = i % 2 ? 0 : (s.taps - 1) / 2; /* all that is loud is kept: the error is that of the whole row */
            for (int a = 0; a < 3; a++) {
                s.type[a] = GPUCONV_SAMPLE_F16;
                s.step[a] = 1;
                s.kind[a] = a == 1 ? ROWS_RAGGED : ROWS_PLAIN;
            }
            run_shape(&random, &s, &gc_rows_three_pass, 2 * points);
        }
    CHECK(served > before, "no job was served");
}

/* Runs the convolution of a trial of GRADIENT_BOTH. Returns the transforms that it leaves in device memory. */
static void *leave_transforms(const trial *t) {
    gpuconv_error error = {0};
    gpuconv_arrays_job job = t->job;
    gpuconv_arrays_plan *plan = NULL;
    void *workspace = NULL, *output = NULL;
    job.operation = GPUCONV_ARRAYS_CONVOLVE;
    CHECK(!gpuconv_arrays_plan_new(trials.arrays, &job, &plan, &error), "%s", error.message);
    const size_t bytes = gpuconv_arrays_plan_workspace(plan), kept = gpuconv_arrays_plan_transforms(plan) + 1;
    CHECK(cudaMalloc(&job.transforms, kept) == cudaSuccess && !cudaMemset(job.transforms, 0xff, kept), "no memory");
    CHECK(cudaMalloc(&workspace, bytes + 256) == cudaSuccess, "no workspace");
    CHECK(cudaMalloc(&output, (size_t)(job.output.rows * job.output.stride) * sizeof(float)) == cudaSuccess,
          "no memory");
    job.output.data = output;
    CHECK(!gpuconv_arrays_plan_run(plan, &job, workspace, bytes, NULL, &error), "%s", error.message);
    CHECK(cudaDeviceSynchronize() == cudaSuccess, "no convolution");
    gpuconv_arrays_plan_free(plan);
    cudaFree(workspace);
    cudaFree(output);
    return job.transforms;
}

/* Runs both gradients without the transforms of the convolution and with them, which gives the same bytes. Returns
 * whether transforms are kept. */
static bool run_with_transforms(oracle_random *r, const trial_shape *s, const gc_cuda_rows *by, int64_t points) {
    gpuconv_error error = {0};
    gpuconv_arrays_plan *plan = NULL;
    double *without[2] = {NULL};
    trial t;
    trial_init(&t, oracle_bits(r), s);
    inside()->required_algorithm = &by->row;
    inside()->required_points = points;
    CHECK(!gpuconv_arrays_plan_new(trials.arrays, &t.job, &plan, &error), "%s", error.message);
    const size_t bytes = gpuconv_arrays_plan_transforms(plan);
    gpuconv_arrays_plan_free(plan);
    void *transforms = leave_transforms(&t);
    for (int given = 0; given < 2; given++) {
        t.job.transforms = given ? transforms : NULL;
        trial_run(&t, given ? "both gradients from kept transforms" : "both gradients");
        for (int i = 0; i < 2; i++) {
            double *got = rows_read(&t.gradient[i], false, "gradient");
            const size_t samples = (size_t)(t.gradient[i].array.rows * t.gradient[i].array.frames);
            CHECK(!given || !memcmp(got, without[i], samples * sizeof *got), "kept transforms give another gradient %d",
                  i);
            rows_poison(&t.gradient[i]);
            free(without[i]);
            without[i] = got;
        }
    }
    for (int i = 0; i < 2; i++)
        free(without[i]);
    inside()->required_algorithm = NULL;
    cudaFree(transforms);
    trial_free(&t);
    return bytes > 0;
}

/* Runs jobs by an algorithm with transforms of `least` points, twice as many, ... */
static void run_all_with_transforms(const gc_cuda_rows *by, int64_t least, int sizes) {
    oracle_random random = {113};
    const int64_t workspace = inside()->figures.workspace;
    int jobs = 0, kept = 0;
    for (int size = 0; size < sizes; size++)
        for (int i = 0; i < (harness_quick ? 2 : 8); i++) {
            const int64_t points = least << size;
            trial_shape s = {.operation = GPUCONV_ARRAYS_GRADIENT_BOTH,
                             .rows = 1 + oracle_below(&random, 7),
                             .group = 1 + oracle_below(&random, 3),
                             .taps = 1 + oracle_below(&random, points)};
            if (gc_rows_size(by, &inside()->figures, 2 * points) < 0)
                continue;
            s.responses = 1 + oracle_below(&random, (s.rows + s.group - 1) / s.group);
            if (i % 4 == 3) /* a row for each response */
                s.group = 1, s.responses = s.rows;
            s.frames = s.output_frames = gc_round_up(gc_max(s.taps, oracle_below(&random, points)), 8);
            s.offset = i % 2 ? 0 : (s.taps - 1) / 2;
            for (int a = 0; a < 3; a++)
                s.type[a] = i / 2 % 2 ? GPUCONV_SAMPLE_F16 : GPUCONV_SAMPLE_F32;
            inside()->figures.workspace = i > 3 ? (int64_t)24 * points * 8 : workspace; /* several chunks */
            kept += run_with_transforms(&random, &s, by, 2 * points);
            jobs++;
        }
    inside()->figures.workspace = workspace;
    print_message("transforms of the convolution: kept by %d of %d jobs\n", kept, jobs);
    CHECK(2 * kept >= jobs, "transforms are kept by %d of %d jobs", kept, jobs);
}

static void test_both_gradients_take_the_transforms_of_the_convolution(void **state) {
    (void)state;
    run_all_with_transforms(&gc_rows_chip, 2048, harness_quick ? 1 : 3);
    run_all_with_transforms(&gc_rows_three_pass, 16384, harness_quick ? 1 : 4);
}

/* Small chunks, so that rows and segments are in several of them. */
static void test_jobs_in_many_chunks_agree_with_the_oracle(void **state) {
    (void)state;
    oracle_random random = {103};
    const int64_t before = inside()->figures.workspace;
    for (int i = 0; i < (harness_quick ? 3 : 18); i++) {
        inside()->figures.workspace = (int64_t)(1 + oracle_below(&random, 12)) << 17;
        run_by(&random, i % 3, &gc_rows_three_pass, 16384, 16384, i % 4 == 0 ? 40000 : 0);
    }
    inside()->figures.workspace = before;
}

/* Responses of one row of taps and of many, for whole rows and for blocks that are shorter and longer than them. */
static void test_short_responses_by_direct_sums_agree_with_the_oracle(void **state) {
    (void)state;
    static const int64_t taps[] = {1, 15, 16, 17, 40, 64, 128, 200, 333}, hops[] = {0, 64, 8, 23, 480, 5000, 3};
    oracle_random random = {106};
    double worst = -HUGE_VAL;
    for (int i = 0; i < COUNT(taps) * COUNT(hops); i += harness_quick ? 11 : 1) {
        trial_shape s = trial_random(&random, GPUCONV_ARRAYS_CONVOLVE, 1500, taps[i % COUNT(taps)]);
        s.hop = hops[i / COUNT(taps)];
        s.linear = s.hop && oracle_below(&random, 2);
        worst = fmax(worst, run_shape(&random, &s, &gc_rows_short, 0));
    }
    CHECK(worst > -200, "no job was served");
    print_message("short responses: %.1f dB at worst\n", worst);
}

/* Many rows of a response and few, of one block of rows and of several, aligned and not. */
static void test_halves_by_products_on_tensor_cores_agree_with_the_oracle(void **state) {
    (void)state;
    static const int64_t taps[] = {1, 8, 63, 64, 65, 128, 300, 1000, 3000};
    oracle_random random = {108};
    const int before = served;
    for (int i = 0; i < (harness_quick ? 20 : 150); i++) {
        trial_shape s = trial_random(&random, i % 2, 700, taps[i % COUNT(taps)]);
        s.rows = 1 + oracle_below(&random, i % 3 ? 30 : 300);
        s.group = 1 + oracle_below(&random, s.rows);
        s.responses = 1 + oracle_below(&random, (s.rows + s.group - 1) / s.group);
        for (int a = 0; a < 3; a++) {
            s.type[a] = i % 4 < 2 ? GPUCONV_SAMPLE_F16 : GPUCONV_SAMPLE_BF16;
            s.step[a] = 1;
            s.kind[a] = (rows_kind)oracle_below(&random, ROWS_PACKED);
        }
        run_shape(&random, &s, &gc_rows_toeplitz, 0);
    }
    CHECK(served > before || !inside()->figures.tensor_cores, "no job was served");
    print_message("halves on tensor cores: %d jobs\n", served - before);
}

/* Returns a random shape of halves that the transforms of `points` points on tensor cores serve. */
static trial_shape random_tensor_shape(oracle_random *r, int operation, int64_t points) {
    trial_shape s = trial_random(r, operation, points / 2, 0);
    const bool convolve = operation == GPUCONV_ARRAYS_CONVOLVE;
    s.rows = 1 + oracle_below(r, 40);
    s.group = 1 + oracle_below(r, s.rows);
    s.responses = 1 + oracle_below(r, (s.rows + s.group - 1) / s.group);
    s.taps = 1 + oracle_below(r, points + 100);
    s.offset = oracle_below(r, 3) ? oracle_below(r, points / 2) : -oracle_below(r, points / 2);
    const int64_t most = points - gc_max(s.offset, 0);
    s.frames = 1 + oracle_below(r, convolve ? points + 100 : points);
    s.output_frames = 1 + oracle_below(r, most);
    if (oracle_below(r, 3) == 0) {
        s.taps = s.frames = s.output_frames = points; /* whole rows */
        s.offset = 0;
    }
    s.accumulate = s.gain = false;
    for (int a = 0; a < 3; a++) {
        s.type[a] = a == 1 ? (gpuconv_sample_type)oracle_below(r, 3) : GPUCONV_SAMPLE_F16;
        s.step[a] = 1;
        s.kind[a] = oracle_below(r, 2) ? ROWS_RAGGED : ROWS_PLAIN;
    }
    return s;
}

/* Rows of one block and of several, whole and ragged. Those whose strides are no multiples of eight are declined. */
static void test_halves_by_transforms_on_tensor_cores_agree_with_the_oracle(void **state) {
    (void)state;
    oracle_random random = {111};
    const int before = served;
    for (int size = 0; size < GCK_TENSOR_SIZES; size++)
        for (int i = 0; i < (harness_quick ? 24 : 120); i++) {
            const int64_t points = gck_tensor_query(size).points;
            const trial_shape s =
                random_tensor_shape(&random, i % 2 ? GPUCONV_ARRAYS_GRADIENT_SIGNAL : GPUCONV_ARRAYS_CONVOLVE, points);
            run_shape(&random, &s, &gc_rows_tensor, 2 * points);
        }
    CHECK(served > before || !inside()->figures.tensor_cores ||
              gck_tensor_query(0).shared_bytes > inside()->figures.shared_memory,
          "no job was served");
    print_message("transforms on tensor cores: %d jobs\n", served - before);
}

/* Replaces the samples of a row, on the device and for the oracle. */
static void set_row(rows_array *a, int64_t row, double amplitude, double turns) {
    const int64_t frames = a->array.frames;
    _Float16 *samples = calloc((size_t)frames, sizeof *samples);
    CHECK(samples, "no memory");
    for (int64_t n = 0; n < a->length[row]; n++) {
        samples[n] = (_Float16)(amplitude * cos(2 * 3.14159265358979 * turns * (double)n));
        a->value[row * frames + n] = (double)samples[n];
    }
    CHECK(cudaMemcpy((_Float16 *)a->data + a->start[row], samples, (size_t)a->length[row] * sizeof *samples,
                     cudaMemcpyHostToDevice) == cudaSuccess,
          "no copy");
    free(samples);
}

/* Row i has this amplitude and a tone of these turns per frame; even rows have response 0, odd rows response 1. */
static const struct {
    double amplitude, turns;
} tones[] = {{1, 0.01}, {3e4, 0}, {1e-4, 0.01}, {3e4, 0.25}, {0, 0}, {6e4, 0}, {NAN, 0}, {1, 0.5}};

/* Compares the rows that a job has written. Each may have the error of its own result, and of its own magnitude. */
static void compare_tones(trial *t) {
    enum { CHECKED = 40 };
    const int64_t points = t->job.signal.frames;
    double *got = rows_read(trial_written(t), false, "tones");
    for (int row = 0; row < COUNT(tones); row++) {
        double wrong = 0, power = 0;
        CHECK(!isnan(tones[row].amplitude) || isnan(got[row * points]), "the NaN has vanished");
        for (int k = 0; k < CHECKED && !isnan(tones[row].amplitude); k++) {
            const int64_t n = k * (points - 1) / (CHECKED - 1);
            const double want = trial_value(t, row, n), error = got[row * points + n] - want;
            wrong += error * error;
            power += want * want + 1e-2 * tones[row].amplitude * tones[row].amplitude;
        }
        const double step = 0x1p-25 * 0x1p-25 * CHECKED; /* of halves next to zero */
        CHECK(wrong <= power * 1e-6 + step, "row %d of %lld points: error %g of %g", row, (long long)points,
              sqrt(wrong), sqrt(power));
    }
    free(got);
}

/* Loud and quiet tones, which add up in one frequency, silence, and a NaN at once. */
static void test_rows_of_any_magnitude_on_tensor_cores_keep_their_error(void **state) {
    (void)state;
    for (int i = 0; i < 2 * GCK_TENSOR_SIZES; i++) {
        const int64_t points = gck_tensor_query(i / 2).points;
        trial_shape s = {.operation = i % 2 ? GPUCONV_ARRAYS_GRADIENT_SIGNAL : GPUCONV_ARRAYS_CONVOLVE,
                         .rows = COUNT(tones),
                         .group = 1,
                         .responses = 2};
        s.taps = s.frames = s.output_frames = points;
        s.type[0] = s.type[1] = s.type[2] = GPUCONV_SAMPLE_F16;
        trial t;
        gc_cuda_call call;
        trial_init(&t, 700 + (uint64_t)i, &s);
        for (int row = 0; row < COUNT(tones); row++)
            set_row(i % 2 ? &t.output : &t.signal, row, tones[row].amplitude, tones[row].turns);
        set_row(&t.response, 0, 4.0 / (double)points, 0.01);
        set_row(&t.response, 1, 1.0 / (double)points, 0);
        inside()->required_algorithm = &gc_rows_tensor.row;
        inside()->required_points = 2 * points;
        if (gc_rows_size(&gc_rows_tensor, &inside()->figures, 2 * points) >= 0 &&
            !gc_cuda_prepare(inside(), &t.job, &call, NULL)) {
            void *workspace = NULL;
            CHECK(cudaMalloc(&workspace, (size_t)call.plan.bytes) == cudaSuccess, "no workspace");
            CHECK(!gpuconv_arrays_run(trials.arrays, &t.job, workspace, (size_t)call.plan.bytes, NULL, NULL),
                  "refused");
            compare_tones(&t);
            cudaFree(workspace);
        }
        inside()->required_algorithm = NULL;
        trial_free(&t);
    }
}

/* Blocks and responses that fit a transform, and those that are cut. */
static void test_filters_that_change_with_time_agree_with_the_oracle(void **state) {
    (void)state;
    oracle_random random = {107};
    double worst = -HUGE_VAL;
    for (int size = 0; size < GCK_CHIP_SIZES; size++)
        for (int i = 0; i < (harness_quick ? 1 : 18); i++) {
            const int64_t points = gck_chip_query(size).points, most = points < 4096 ? 3 * points : points / 2;
            trial_shape s = trial_random(&random, (i + size) % 3, points < 4096 ? points : points / 8, 0);
            s.taps = 1 + oracle_below(&random, i % 2 ? most : most / 8);
            s.hop = 1 + oracle_below(&random, i % 4 < 2 ? most : most / 8) + (points > 1000 ? 100 : 10);
            s.linear = oracle_below(&random, 2);
            worst = fmax(worst, run_shape(&random, &s, &gc_rows_varying, 2 * points));
        }
    CHECK(worst > -200, "no job was served");
    print_message("filters that change with time: %.1f dB at worst\n", worst);
}

/* Gates in the kernels on the chip, and around those of every other algorithm. */
static void test_gates_and_skips_agree_with_the_oracle(void **state) {
    (void)state;
    static const gc_cuda_rows *const others[] = {&gc_rows_short, &gc_rows_direct, &gc_rows_three_pass};
    oracle_random random = {109};
    double worst = -HUGE_VAL;
    for (int size = 0; size < GCK_CHIP_SIZES; size++)
        for (int i = 0; i < (harness_quick ? 3 : 24); i++) {
            const int64_t points = gck_chip_query(size).points;
            const gc_cuda_rows *by = i % 4 == 3 ? others[size % 3] : &gc_rows_chip;
            trial_shape s =
                trial_random(&random, i % 3, by == &gc_rows_chip ? points : gc_min(points, 4000), 0); /* rounding */
            const int gates = 1 + (int)oracle_below(&random, 7);
            s.pre = gates & 1;
            s.post = gates & 2;
            s.skip = gates & 4;
            s.mixed = oracle_below(&random, 4) == 0;
            for (int a = 0; a < 3 && oracle_below(&random, 4); a++) {
                s.step[a] = 1;
                s.type[a] = s.type[0];
            }
            if (by == &gc_rows_short)
                s.taps = gc_min(s.taps, 200);
            worst = fmax(worst, run_shape(&random, &s, by,
                                          by == &gc_rows_chip         ? 2 * points
                                          : by == &gc_rows_three_pass ? 32768
                                                                      : 0));
        }
    CHECK(worst > -200, "no job was served");
    print_message("gates and skips: %.1f dB at worst\n", worst);
}

/* The plan's own choice, on this device and on devices with less shared memory. */
static void test_the_choice_of_any_device_agrees_with_the_oracle(void **state) {
    (void)state;
    static const int shared[] = {0, 65536, 101376};
    static const int64_t taps[] = {1, 100, 2000, 8000, 16000, 30000};
    oracle_random random = {104};
    const gc_device before = inside()->figures;
    for (int d = 0; d < COUNT(shared); d++) {
        if (shared[d] > before.shared_memory)
            continue; /* GPUCONV_CUDA_LIMITS: the kernels are loaded for less */
        if (shared[d])
            inside()->figures.shared_memory = inside()->figures.resident_shared_memory = shared[d];
        for (int i = 0; i < COUNT(taps) * 4; i += harness_quick ? 7 : 1) {
            trial_shape s = trial_random(&random, i % 4, 4096, taps[i / 4]);
            s.hop = i % 5 == 3 ? 1 + oracle_below(&random, 3000) : 0;
            trial t;
            trial_init(&t, oracle_bits(&random), &s);
            trial_run(&t, "the plan's choice");
            trial_free(&t);
        }
    }
    inside()->figures = before;
}

static void test_the_shapes_of_the_cpu_agree_with_the_oracle(void **state) {
    (void)state;
    for (int i = 0; i < COUNT(array_shapes) * 3; i += harness_quick ? 10 : 1) {
        const array_shape *a = &array_shapes[i / 3];
        const trial_shape s = {.operation = (gpuconv_arrays_operation)(i % 3),
                               .rows = 3,
                               .group = 1,
                               .responses = 3,
                               .taps = a->taps,
                               .frames = a->frames,
                               .output_frames = a->output,
                               .offset = a->offset};
        trial t;
        trial_init(&t, (uint64_t)(i + 1), &s);
        trial_run(&t, "a shape of the CPU");
        trial_free(&t);
    }
}

int main(int argc, char **argv) {
    gpuconv_error error = {0};
    harness_quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    trials = (trial_place){.allocate = allocate, .release = release, .copy = copy, .run = run};
    if (gpuconv_arrays_new_cuda(-1, &trials.arrays, &error)) {
        fprintf(stderr, "gpu_jobs: %s\n", error.message);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation_on_the_chip_agrees_with_the_oracle),
        cmocka_unit_test(test_every_operation_by_direct_sums_agrees_with_the_oracle),
        cmocka_unit_test(test_every_operation_in_three_kernels_agrees_with_the_oracle),
        cmocka_unit_test(test_halves_in_three_kernels_agree_with_the_oracle),
        cmocka_unit_test(test_both_gradients_take_the_transforms_of_the_convolution),
        cmocka_unit_test(test_short_responses_by_direct_sums_agree_with_the_oracle),
        cmocka_unit_test(test_halves_by_products_on_tensor_cores_agree_with_the_oracle),
        cmocka_unit_test(test_halves_by_transforms_on_tensor_cores_agree_with_the_oracle),
        cmocka_unit_test(test_rows_of_any_magnitude_on_tensor_cores_keep_their_error),
        cmocka_unit_test(test_filters_that_change_with_time_agree_with_the_oracle),
        cmocka_unit_test(test_gates_and_skips_agree_with_the_oracle),
        cmocka_unit_test(test_jobs_in_many_chunks_agree_with_the_oracle),
        cmocka_unit_test(test_the_choice_of_any_device_agrees_with_the_oracle),
        cmocka_unit_test(test_the_shapes_of_the_cpu_agree_with_the_oracle),
        cmocka_unit_test(test_prepared_responses_agree_with_the_oracle),
        cmocka_unit_test(test_updated_responses_agree_with_the_oracle),
        cmocka_unit_test(test_routed_responses_and_their_gradients_agree_with_the_oracle),
        cmocka_unit_test(test_a_call_neither_allocates_nor_waits_and_is_captured),
        cmocka_unit_test(test_threads_and_streams_give_the_same_bytes),
        cmocka_unit_test(test_nan_stays_in_its_row),
        cmocka_unit_test(test_streamers_agree_with_the_oracle),
        cmocka_unit_test(test_sequences_are_sorted_as_on_the_cpu),
        cmocka_unit_test(test_refusals_name_the_argument),
    };
    const int failed = cmocka_run_group_tests_name("jobs", tests, NULL, NULL);
    gpuconv_arrays_free(trials.arrays);
    return failed ? 1 : 0;
}
