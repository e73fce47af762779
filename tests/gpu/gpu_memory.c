/* A GPU that others share: with little free memory a convolution is right, with far too little it is refused with the
 * needed and the free bytes, or left to the CPU with a note. */
#include "gpu_test.h"
#include "libgpuconv/conv/backend.h"

#include <cuda_runtime_api.h>

enum { SIZE = 32, TAPS = 48000, PLANES = 31 };

static const size_t mebibyte = 1 << 20;

static void require(cudaError_t err, const char *what) {
    CHECK(err == cudaSuccess, "%s: %s", what, cudaGetErrorString(err));
}

/* Takes all memory of device 0 but `bytes` bytes. */
static void *occupy(size_t bytes) {
    size_t available = 0, total = 0;
    void *taken = NULL;
    require(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    CHECK(available > bytes, "only %zu MiB are free", available / mebibyte);
    require(cudaMalloc(&taken, available - bytes), "cudaMalloc");
    return taken;
}

/* Returns a matrix of 32 x 32 responses of 1 s. */
static gpuconv_ir *new_matrix(guarded *taps) {
    oracle_random random = {.state = 91};
    const float *route[SIZE * SIZE];
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    *taps = guarded_random(&random, PLANES, TAPS);
    for (int i = 0; i < SIZE * SIZE; i++)
        route[i] = taps->channel[i % PLANES];
    CHECK(gpuconv_ir_new_matrix(route, SIZE, SIZE, TAPS, 48000, &ir, &error) == GPUCONV_OK, "%s", error.message);
    return ir;
}

static gpuconv_status plan_for(const gpuconv_ir *ir, gpuconv_backend backend, int64_t frames, gpuconv_plan **plan,
                               gpuconv_error *error) {
    gpuconv_config config = gpuconv_config_default();
    config.backend = backend;
    config.device = 0;
    config.frames = frames;
    return gpuconv_plan_new(ir, &config, plan, error);
}

void test_a_matrix_with_little_free_memory_agrees_with_the_cpu(void **state) {
    (void)state;
    static const size_t sizes[] = {2000, 900, 450};
    const int64_t frames = 30000;
    oracle_random random = {.state = 92};
    guarded taps, x = guarded_random(&random, SIZE, frames);
    gpuconv_ir *ir = new_matrix(&taps);
    guarded want = harness_offline(ir, &x);
    for (int i = 0; i < COUNT(sizes); i++) {
        gpuconv_plan *plan;
        gpuconv_error error = {0};
        void *taken = occupy(sizes[i] * mebibyte);
        CHECK(plan_for(ir, GPUCONV_BACKEND_CUDA, frames, &plan, &error) == GPUCONV_OK, "%zu MiB: %s", sizes[i],
              error.message);
        guarded y = harness_convolve(plan, ir, &x);
        require(cudaFree(taken), "cudaFree");
        const double e = harness_distance(&y, &want, want.frames);
        CHECK(e <= -115, "%zu MiB, %s: %.1f dB", sizes[i], gpuconv_algorithm_name(gpuconv_plan_algorithm(plan)), e);
        print_message("%zu MiB free: %s, chunks of %lld frames, %.1f dB\n", sizes[i],
                      gpuconv_algorithm_name(gpuconv_plan_algorithm(plan)), (long long)gpuconv_plan_chunk(plan), e);
        guarded_free(&y);
        gpuconv_plan_free(plan);
    }
    gpuconv_ir_free(ir);
    guarded_free(&taps);
    guarded_free(&x);
    guarded_free(&want);
}

static void one_tap(void *context, int channel, float *taps) {
    (void)context;
    (void)channel;
    memset(taps, 0, TAPS * sizeof *taps);
}

/* Opens the matrix in real time, and returns what opening it says. */
static gpuconv_status open_bank(gpuconv_error *error) {
    static gc_route route[SIZE * SIZE];
    for (int i = 0; i < SIZE * SIZE; i++)
        route[i] = (gc_route){.input = i % SIZE, .output = i / SIZE, .plane = i};
    const gc_bank_options options = {.inputs = SIZE,
                                     .outputs = SIZE,
                                     .routes = SIZE * SIZE,
                                     .route = route,
                                     .block = 256,
                                     .taps = TAPS,
                                     .device = -1,
                                     .response = one_tap};
    gc_bank *bank;
    const gpuconv_status status = gc_bank_cuda.open(&options, &bank, error);
    if (!status)
        gc_bank_cuda.free(bank);
    return status;
}

void test_too_little_free_memory_is_refused_with_both_figures(void **state) {
    (void)state;
    gpuconv_plan *refused, *automatic;
    gpuconv_error why = {0}, bank_why = {0}, batch_why = {0}, error = {0};
    guarded taps;
    gpuconv_ir *ir = new_matrix(&taps);
    void *taken = occupy(150 * mebibyte);
    const gpuconv_status status = plan_for(ir, GPUCONV_BACKEND_CUDA, 48000, &refused, &why),
                         bank = open_bank(&bank_why),
                         other = plan_for(ir, GPUCONV_BACKEND_AUTO, INT64_C(3600) * 48000, &automatic, &error);
    require(cudaFree(taken), "cudaFree");
    taken = occupy(50 * mebibyte);
    const gpuconv_status batch = gc_backend_cuda.init_device(0, &batch_why);
    require(cudaFree(taken), "cudaFree");
    print_message("%s\n%s\n%s\n", why.message, bank_why.message, batch_why.message);
    CHECK(batch == GPUCONV_ERROR_DEVICE && strstr(batch_why.message, "need 0.13 GB") &&
              strstr(batch_why.message, "0.05 GB are free"),
          "%s", batch_why.message);
    CHECK(status == GPUCONV_ERROR_UNSUPPORTED && strstr(why.message, " need 0.") && strstr(why.message, " GB free"),
          "%s", why.message);
    CHECK(bank == GPUCONV_ERROR_MEMORY && strstr(bank_why.message, "needs 0.") && strstr(bank_why.message, "are free"),
          "%s", bank_why.message);
    CHECK(other == GPUCONV_OK && gpuconv_plan_backend(automatic) == GPUCONV_BACKEND_CPU &&
              strstr(gpuconv_plan_note(automatic), "running on the CPU: ") &&
              strstr(gpuconv_plan_note(automatic), " GB free"),
          "%s", other ? error.message : gpuconv_plan_note(automatic));
    CHECK(open_bank(&bank_why) == GPUCONV_OK, "the memory of the bank was not released: %s", bank_why.message);
    gpuconv_plan_free(automatic);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}
