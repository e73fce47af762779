/* The kernels below the engine, with samples between pages that do not exist: every transform size, nothing read or
 * written outside the samples, launches without a wait between them, and what the memory estimate promises. */
#include "fence.h"
#include "gpu_test.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/conv/cuda/cuda_algorithm.h"
#include "libgpuconv/conv/cuda/cuda_device.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/ir/object.h"

#include <math.h>

static void require(cudaError_t err, const char *what) {
    CHECK(err == cudaSuccess, "%s: %s", what, cudaGetErrorString(err));
}

static gc_device probe(void) {
    gpuconv_config config = gpuconv_config_default();
    gpuconv_error error = {0};
    gc_device device;
    config.device = 0;
    CHECK(gc_backend_find(GPUCONV_BACKEND_CUDA)->probe(&config, &device, &error) == GPUCONV_OK, "%s", error.message);
    return device;
}

/* Returns the bytes of shared memory that a block of overlap-save takes on a device, 0 if it has no such kernel. */
static int overlap_save_bytes(const gc_device *device, int64_t points) {
    const gck_overlap_save_form form = {points, 1, (int)device->shared_memory};
    return gck_overlap_save_query(&form).shared_bytes;
}

/* Gives a plan an algorithm and transforms of `points` points. */
static void set_schedule(gpuconv_plan *plan, gpuconv_algorithm algorithm, int64_t taps, int64_t points) {
    const gc_algorithm *const *row = gc_cuda_algorithms;
    while ((*row)->id != algorithm)
        row++;
    plan->choice.algorithm = *row;
    CHECK(gc_cuda_algorithm_of(&plan->choice)->schedule(taps, points, &plan->choice.schedule),
          "%s has no schedule with %lld points", gpuconv_algorithm_name(algorithm), (long long)points);
}

/* One convolution of mono samples that lie between the fences. */
typedef struct fenced {
    const gpuconv_plan *plan;
    int64_t history, length; /* floats in front of the first frame, and from there on */
    gc_cuda_resources resources;
    gc_cuda_convolver convolver;
    cudaStream_t stream;
} fenced;

/* Prepares a convolver for one chunk of `frames` frames, with exactly the history that kernels.h asks for. */
static void fenced_init(fenced *f, const gpuconv_plan *plan, int64_t frames) {
    const gc_schedule *s = &plan->choice.schedule;
    const gpuconv_algorithm algorithm = plan->choice.algorithm->id;
    const bool direct = algorithm == GPUCONV_ALGORITHM_DIRECT;
    const int64_t step = direct ? 4 : algorithm == GPUCONV_ALGORITHM_PARTITIONED ? 2 * s->hop : s->hop;
    *f = (fenced){.plan = plan,
                  .history = direct ? gc_round_up(s->taps - 1, 32) : gc_schedule_history(s),
                  .length = gc_round_up(frames, step)};
    gpuconv_plan one_chunk = {.ir = plan->ir, .device = plan->device, .choice = plan->choice};
    one_chunk.choice.chunk = f->length;
    gc_cuda_resources_init(&f->resources, plan->device.number);
    f->stream = gc_cuda_stream(&f->resources);
    require(gc_cuda_convolver_init(&f->convolver, &one_chunk, f->length, f->length, &f->resources, f->stream), "init");
    require(cudaStreamSynchronize(f->stream), "spectra");
}

static void fenced_free(fenced *f) {
    gc_cuda_resources_free(&f->resources);
    gc_cuda_convolver_free(&f->convolver);
}

/* Convolves `frames` frames into `out`; at_end: the samples end at the fence, else they begin there. */
static void convolve_fenced(const gpuconv_plan *plan, const float *in, int64_t frames, float *out, bool at_end) {
    fenced f;
    fenced_init(&f, plan, frames);
    fence x = fence_new(f.history + f.length, at_end), y = fence_new(f.length, at_end);
    require(cudaMemset(x.at, 0, (size_t)x.floats * sizeof *x.at), "history");
    require(cudaMemcpy(x.at + f.history, in, (size_t)frames * sizeof *in, cudaMemcpyHostToDevice), "samples");
    require(cudaDeviceSynchronize(), "samples"); /* neither has to be complete when it returns, nor for other streams */
    require(gc_cuda_convolver_run(&f.convolver, x.at + f.history, y.at, frames, f.stream), "launch");
    require(cudaStreamSynchronize(f.stream), at_end ? "samples at the end" : "samples at the beginning");
    require(cudaMemcpy(out, y.at, (size_t)frames * sizeof *out, cudaMemcpyDeviceToHost), "output");
    CHECK(fence_intact(&x) && fence_intact(&y), "written outside the samples");
    fence_free(&x);
    fence_free(&y);
    fenced_free(&f);
}

/* A response, a signal and a plan whose schedule the test may replace. */
typedef struct job {
    guarded h, x, y;
    gpuconv_ir *ir;
    gpuconv_plan plan;
} job;

static void job_new(job *j, oracle_random *random, const gc_device *device, int64_t taps, int64_t frames) {
    *j = (job){.x = guarded_random(random, 1, frames), .y = guarded_new(1, frames)};
    j->ir = harness_response(random, 1, 1, taps, &j->h);
    j->plan = (gpuconv_plan){.ir = j->ir, .device = *device};
}

static void job_free(job *j) {
    gpuconv_ir_free(j->ir);
    guarded_free(&j->h);
    guarded_free(&j->x);
    guarded_free(&j->y);
}

/* Returns the error in dB: all frames finite, some of them, and both ends, against the oracle. */
static double job_error(const job *j, oracle_random *random, const char *what) {
    const int64_t frames = j->x.frames;
    double wrong = 0, power = 0;
    for (int64_t n = 0; n < frames; n++)
        CHECK(isfinite(j->y.channel[0][n]), "%s: frame %lld is not finite", what, (long long)n);
    for (int k = 0; k < 100; k++) {
        int64_t n = k == 0 ? 0 : k == 1 ? frames - 1 : oracle_below(random, frames);
        double want = oracle_frame(j->x.channel[0], frames, j->h.channel[0], j->h.frames, n);
        wrong += ((double)j->y.channel[0][n] - want) * ((double)j->y.channel[0][n] - want);
        power += want * want;
    }
    double e = 10 * log10(wrong / power);
    CHECK(e <= -120, "%s: %.1f dB", what, e);
    return e;
}

/* Every size of a kernel has its first and its last taps somewhere in this list. */
void test_nothing_outside_the_samples_is_touched(void **state) {
    (void)state;
    static const int64_t lengths[] = {1,  2,   16,  17,  18,  33,   34,   49,   50,   65,
                                      66, 129, 130, 512, 513, 1000, 3000, 5000, 9000, 20011};
    const gc_device device = probe();
    oracle_random random = {21};
    double worst = -HUGE_VAL;
    for (int a = 0; a < HARNESS_ALGORITHMS; a++)
        for (int l = 0; l < COUNT(lengths); l++)
            for (int at_end = 0; at_end < 2; at_end++) {
                job j;
                char what[120];
                int64_t points = harness_algorithms[a] == GPUCONV_ALGORITHM_OVERLAP_SAVE ? 2048 : 512;
                while (harness_algorithms[a] == GPUCONV_ALGORITHM_OVERLAP_SAVE &&
                       (points < 2 * lengths[l] || overlap_save_bytes(&device, points) == 0))
                    points *= 2;
                job_new(&j, &random, &device, lengths[l], 3001 + at_end);
                set_schedule(&j.plan, harness_algorithms[a], lengths[l], points);
                snprintf(what, sizeof what, "%s, %lld taps, samples at the %s",
                         gpuconv_algorithm_name(harness_algorithms[a]), (long long)lengths[l],
                         at_end ? "end" : "beginning");
                convolve_fenced(&j.plan, j.x.channel[0], j.x.frames, j.y.channel[0], at_end);
                worst = fmax(worst, job_error(&j, &random, what));
                job_free(&j);
            }
    gpu_note("samples at the beginning and at the end of their memory", worst);
}

/* Convolves with one size between the fences, on `device`. Returns the error in dB. */
static double size_error(const gc_device *device, gpuconv_algorithm algorithm, int64_t points, bool at_end,
                         oracle_random *random) {
    /* Partitioned convolution has two partitions. */
    const int64_t taps = algorithm == GPUCONV_ALGORITHM_PARTITIONED ? 3 * points / 4 + 1 : points / 4 + 1;
    job j;
    char what[120];
    job_new(&j, random, device, taps, 2 * points + 77);
    snprintf(what, sizeof what, "%s, %lld points, %lld KB, samples at the %s", gpuconv_algorithm_name(algorithm),
             (long long)points, (long long)device->shared_memory / 1024, at_end ? "end" : "beginning");
    set_schedule(&j.plan, algorithm, taps, points);
    convolve_fenced(&j.plan, j.x.channel[0], j.x.frames, j.y.channel[0], at_end);
    const double e = job_error(&j, random, what);
    job_free(&j);
    return e;
}

/* A device with 64 KB of shared memory per block has every size of overlap-save but 2^14 points and, of partitioned
 * convolution, all but 8192 points. One with more has 2^14 points as well, and 2^15 in one kernel. */
void test_every_transform_size_agrees_with_the_oracle(void **state) {
    (void)state;
    const gc_device device = probe();
    oracle_random random = {22};
    double worst = -HUGE_VAL;
    gc_device small = device;
    small.shared_memory = 64 * 1024;
    CHECK(device.shared_memory >= small.shared_memory, "%lld bytes of shared memory", (long long)device.shared_memory);
    for (int64_t n = GCK_OVERLAP_SAVE_POINTS_MIN; n <= (harness_quick ? 4096 : GCK_OVERLAP_SAVE_POINTS_MAX); n *= 2)
        for (int at_end = 0; at_end < 2; at_end++) {
            const int least = overlap_save_bytes(&small, n), bytes = overlap_save_bytes(&device, n);
            CHECK(n == 16384 ? least == 0 : least > 0 && least <= small.shared_memory,
                  "%lld points take %d bytes of shared memory on a small device", (long long)n, least);
            CHECK(bytes <= device.shared_memory && (bytes > 0 || device.shared_memory < 80 * 1024),
                  "%lld points take %d bytes of shared memory", (long long)n, bytes);
            if (bytes)
                worst = fmax(worst, size_error(&device, GPUCONV_ALGORITHM_OVERLAP_SAVE, n, at_end, &random));
            if (least != bytes && least)
                worst = fmax(worst, size_error(&small, GPUCONV_ALGORITHM_OVERLAP_SAVE, n, at_end, &random));
        }
    for (int64_t n = GCK_PARTITIONED_POINTS_MIN; n <= (harness_quick ? 4096 : GCK_OVERLAP_SAVE_POINTS_MAX); n *= 2) {
        const int64_t shared = gck_partitioned_query(n).shared_bytes;
        if (n == 16384) /* no kernel of partitioned convolution has 2^14 points */
            continue;
        CHECK(shared > 0 && (shared <= 64 * 1024 || n == 8192), "partitioned, %lld points: %lld bytes of shared memory",
              (long long)n, (long long)shared);
        if (shared <= device.shared_memory)
            worst = fmax(worst, size_error(&device, GPUCONV_ALGORITHM_PARTITIONED, n, false, &random));
    }
    gpu_note("every transform size", worst);
}

/* Partitions and blocks at the edges of the groups of eight in which they are summed; the samples at both ends of their
 * memory. */
void test_long_partitions_agree_with_the_oracle(void **state) {
    (void)state;
    enum { POINTS = 1 << 15, HOP = POINTS / 2 };
    static const struct { int64_t partitions, blocks; } cases[] = {{1, 2}, {7, 8}, {8, 10}, {9, 2}, {17, 18}};
    const gc_device device = probe();
    oracle_random random = {26};
    double worst = -HUGE_VAL;
    for (int k = 0; k < COUNT(cases); k++)
        for (int edge = 0; edge < 2; edge++) {
            job j;
            char what[80];
            const int64_t taps = cases[k].partitions * HOP - (edge ? HOP - 1 : 0);
            job_new(&j, &random, &device, taps, cases[k].blocks * HOP - edge);
            set_schedule(&j.plan, GPUCONV_ALGORITHM_PARTITIONED, taps, POINTS);
            snprintf(what, sizeof what, "%lld taps in long partitions", (long long)taps);
            convolve_fenced(&j.plan, j.x.channel[0], j.x.frames, j.y.channel[0], edge);
            worst = fmax(worst, job_error(&j, &random, what));
            job_free(&j);
        }
    gpu_note("long partitions", worst);
}

/* Each convolution reads what the previous one has just written. Run without a wait between them, they must give what
 * they give with one. */
void test_convolutions_that_read_each_others_outputs_need_no_wait(void **state) {
    (void)state;
    static const struct {
        gpuconv_algorithm algorithm;
        int64_t points, taps;
    } steps[] = {{GPUCONV_ALGORITHM_OVERLAP_SAVE, 2048, 500},
                 {GPUCONV_ALGORITHM_OVERLAP_SAVE, 32768, 9000},
                 {GPUCONV_ALGORITHM_DIRECT, 1, 100},
                 {GPUCONV_ALGORITHM_OVERLAP_SAVE, 65536, 12000},
                 {GPUCONV_ALGORITHM_OVERLAP_SAVE, 8192, 2000},
                 {GPUCONV_ALGORITHM_DIRECT, 1, 1},
                 {GPUCONV_ALGORITHM_PARTITIONED, 32768, 40000},
                 {GPUCONV_ALGORITHM_OVERLAP_SAVE, 4096, 1000}};
    enum { STEPS = COUNT(steps), FRAMES = 60000, MARGIN = 1 << 17, ROUNDS = 40 };
    const size_t bytes = (size_t)(2 * MARGIN + FRAMES) * sizeof(float);
    const gc_device device = probe();
    oracle_random random = {23};
    job jobs[STEPS];
    fenced f[STEPS];
    float *at[STEPS + 1], *want = malloc(bytes), *got = malloc(bytes);
    CHECK(want && got, "no memory");
    for (int i = 0; i <= STEPS; i++) {
        require(cudaMalloc((void **)&at[i], bytes), "cudaMalloc");
        require(cudaMemset(at[i], 0, bytes), "cudaMemset");
    }
    for (int i = 0; i < STEPS; i++) {
        job_new(&jobs[i], &random, &device, steps[i].taps, FRAMES);
        set_schedule(&jobs[i].plan, steps[i].algorithm, steps[i].taps, steps[i].points);
        fenced_init(&f[i], &jobs[i].plan, FRAMES);
    }
    require(cudaMemcpy(at[0] + MARGIN, jobs[0].x.channel[0], FRAMES * sizeof(float), cudaMemcpyHostToDevice),
            "samples");
    require(cudaDeviceSynchronize(), "samples");
    for (int round = 0; round < ROUNDS; round++) {
        const bool wait = round == 0;
        for (int i = 1; i <= STEPS; i++)
            require(cudaMemsetAsync(at[i] + MARGIN, 0xff, FRAMES * sizeof(float), f[0].stream), "poison");
        for (int i = 0; i < STEPS; i++) {
            require(gc_cuda_convolver_run(&f[i].convolver, at[i] + MARGIN, at[i + 1] + MARGIN, FRAMES, f[0].stream),
                    "launch");
            require(wait ? cudaStreamSynchronize(f[0].stream) : cudaSuccess, "wait");
        }
        require(cudaStreamSynchronize(f[0].stream), "wait");
        require(cudaMemcpy(wait ? want : got, at[STEPS], bytes, cudaMemcpyDeviceToHost), "output");
        CHECK(wait || memcmp(want + MARGIN, got + MARGIN, FRAMES * sizeof(float)) == 0, "round %d differs", round);
    }
    for (int i = 0; i < STEPS; i++) {
        fenced_free(&f[i]);
        job_free(&jobs[i]);
    }
    for (int i = 0; i <= STEPS; i++)
        cudaFree(at[i]);
    free(want);
    free(got);
}

/* A response of 24 channels in and out, of an algorithm and its transforms. */
typedef struct estimated {
    gpuconv_algorithm algorithm;
    int64_t points, blocks; /* of a transform; of a chunk */
    bool dense;             /* 24 x 24 responses, or one for each channel */
} estimated;

static void estimate_covers(const gc_device *device, const estimated *e) {
    gpuconv_ir *ir = harness_square_ir(24, e->dense, 20000);
    gpuconv_plan plan = {.ir = ir, .device = *device};
    gc_problem problem;
    CHECK(gc_problem_init(&problem, ir, -1, 0), "no memory");
    set_schedule(&plan, e->algorithm, ir->frames, e->points);
    plan.choice.chunk = e->blocks * plan.choice.schedule.hop;
    fenced f = {.plan = &plan};
    gc_cuda_resources_init(&f.resources, 0);
    f.stream = gc_cuda_stream(&f.resources);
    require(gc_cuda_convolver_init(&f.convolver, &plan, plan.choice.chunk, plan.choice.chunk, &f.resources, f.stream),
            "init");
    require(cudaStreamSynchronize(f.stream), "spectra");
    double estimate = gc_cuda_bytes(&problem, device, &plan.choice);
    CHECK((double)f.resources.device_bytes <= 1.01 * estimate, "%s, %d routes: %lld bytes taken, %.0f estimated",
          gpuconv_algorithm_name(e->algorithm), ir->routes, (long long)f.resources.device_bytes, estimate);
    fenced_free(&f);
    gc_problem_free(&problem);
    gpuconv_ir_free(ir);
}

/* The spectra of all planes must fit into the scratch memory of the chunk. With one response for each channel products
 * are in place with 2 blocks in a chunk, in memory of their own with 60. */
void test_the_memory_estimate_covers_what_a_convolver_takes(void **state) {
    (void)state;
    static const estimated cases[] = {{GPUCONV_ALGORITHM_OVERLAP_SAVE, 1 << 16, 1, true},
                                      {GPUCONV_ALGORITHM_OVERLAP_SAVE, 1 << 16, 2, false},
                                      {GPUCONV_ALGORITHM_OVERLAP_SAVE, 1 << 16, 60, false},
                                      {GPUCONV_ALGORITHM_PARTITIONED, 1 << 15, 3, true},
                                      {GPUCONV_ALGORITHM_MATRIX, 1 << 15, 8, true}};
    const gc_device device = probe();
    for (int i = 0; i < COUNT(cases); i++)
        estimate_covers(&device, &cases[i]);
}

/* A grid has at most 65 535 blocks in its second and third dimension. Needs 9 GB on the device. */
void test_more_planes_than_a_grid_has_rows(void **state) {
    (void)state;
    enum { PLANES = 65537, POINTS = 1 << 15, HOP = POINTS - 32, FRAMES = HOP };
    const gck_overlap_save_form form = {POINTS, 1, 64 * 1024}; /* three kernels */
    const gck_overlap_save_sizes sizes = gck_overlap_save_query(&form);
    size_t free_bytes = 0, total = 0;
    require(cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
    const int64_t spectra = PLANES * sizes.spectrum * 8, scratch = 2 * sizes.scratch * 8;
    if ((double)free_bytes < 1.1 * (double)(spectra + scratch)) {
        print_message("SKIPPED: needs %.0f GB of device memory\n", 1.1e-9 * (double)(spectra + scratch));
        skip();
    }
    gc_cuda_resources r;
    gc_cuda_resources_init(&r, 0);
    cudaStream_t stream = gc_cuda_stream(&r);
    float2 *twiddles = malloc((size_t)sizes.twiddles * sizeof *twiddles);
    float *taps = calloc(PLANES, sizeof *taps), *x = malloc(FRAMES * sizeof *x), *y = malloc(FRAMES * sizeof *y);
    CHECK(twiddles && taps && x && y, "no memory");
    gck_overlap_save_twiddles(&form, twiddles);
    taps[PLANES - 1] = 0.5f; /* the response of the last plane: one tap */
    oracle_random random = {25};
    oracle_fill(&random, x, FRAMES);
    const gck_overlap_save_memory memory = {.twiddles = gc_cuda_upload(&r, twiddles, sizes.twiddles * 8),
                                            .spectra = gc_cuda_memory(&r, spectra),
                                            .scratch = gc_cuda_memory(&r, scratch)};
    const gck_responses responses = {gc_cuda_upload(&r, taps, PLANES * 4), PLANES, 1};
    float *in = gc_cuda_memory(&r, 4 * POINTS), *out = gc_cuda_memory(&r, 4 * FRAMES);
    require(r.err, "memory");
    require(cudaMemsetAsync(in, 0, 4 * POINTS, stream), "history");
    require(cudaMemcpyAsync(in + POINTS - HOP, x, 4 * FRAMES, cudaMemcpyHostToDevice, stream), "samples");
    const gck_route route = {0, PLANES - 1};
    const gck_routes matrix = {.in = in + POINTS - HOP,
                               .out = out,
                               .in_stride = FRAMES,
                               .out_stride = FRAMES,
                               .inputs = 1,
                               .outputs = 1,
                               .single = 1,
                               .inline_route = {route},
                               .route = gc_cuda_upload(&r, &route, sizeof route)};
    require(r.err, "route");
    require(gck_overlap_save_spectra(&form, &responses, &memory, stream), "spectra");
    require(gck_overlap_save(&matrix, &form, HOP, 1, &memory, stream), "convolution");
    require(cudaMemcpyAsync(y, out, 4 * FRAMES, cudaMemcpyDeviceToHost, stream), "output");
    require(cudaStreamSynchronize(stream), "the last plane");
    for (int n = 0; n < FRAMES; n++)
        CHECK(fabsf(y[n] - 0.5f * x[n]) < 1e-6f, "frame %d is %g, not %g", n, (double)y[n], 0.5 * (double)x[n]);
    gc_cuda_resources_free(&r);
    free(twiddles);
    free(taps);
    free(x);
    free(y);
}

/* GPU_TEST_PTX: the kernels of this program are PTX of that architecture, which the driver has compiled. Code of an
 * architecture below 9.0 contains no wait for the previous kernel, on whatever device it runs. */
void test_kernels_start_early_only_if_their_code_can_wait(void **state) {
    (void)state;
#ifdef GPU_TEST_PTX
    const int compiled = GPU_TEST_PTX;
#else
    const int compiled = 1000;
#endif
    gck_device device;
    int early = -1;
    require(gck_device_query(0, &device), "query");
    require(gck_launches_early(&early), "attributes");
    CHECK(early == (device.early_launch && compiled >= 90), "launched early: %d, on a device of architecture %d", early,
          device.architecture);
    print_message("architecture %d, code %s, %d KB of shared memory, early launch %d, tensor cores %d\n",
                  device.architecture, compiled < 1000 ? "from PTX" : "of the build", device.shared_bytes / 1024, early,
                  device.tensor_cores);
}
