/* Objects leave the program's CUDA state alone: its current device, the default memory pool, and its running work.
 *
 * The program is linked so that cudaSetDevice and cudaGetDevice go through this file (--wrap). A test can pretend that
 * device 1 is current on a machine with one GPU. */
#include "gpu_test.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/conv/cuda/cuda_device.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <time.h>

cudaError_t __real_cudaGetDevice(int *device);
cudaError_t __real_cudaSetDevice(int device);
cudaError_t __wrap_cudaGetDevice(int *device);
cudaError_t __wrap_cudaSetDevice(int device);

static bool pretending;
static int pretended;

cudaError_t __wrap_cudaGetDevice(int *device) {
    if (!pretending)
        return __real_cudaGetDevice(device);
    *device = pretended;
    return cudaSuccess;
}

cudaError_t __wrap_cudaSetDevice(int device) {
    if (!pretending)
        return __real_cudaSetDevice(device);
    pretended = device;
    return cudaSuccess;
}

static void require(cudaError_t err, const char *what) {
    CHECK(err == cudaSuccess, "%s: %s", what, cudaGetErrorString(err));
}

/* ---- What a program does with each kind of object ---------------------------------------------------------------- */

static void one_tap(void *context, int channel, float *taps) {
    (void)context;
    (void)channel;
    taps[0] = 1;
}

/* Creates an engine, and frees it. */
static void use_engine(void) {
    oracle_random random = {31};
    guarded h, x = guarded_random(&random, 1, 3000);
    gpuconv_ir *ir = harness_response(&random, 1, 1, 20000, &h);
    gpuconv_config config = gpuconv_config_default();
    config.backend = GPUCONV_BACKEND_CUDA;
    config.device = 0;
    config.frames = 3000;
    gpuconv_plan *plan;
    gpuconv_error error = {0};
    CHECK(gpuconv_plan_new(ir, &config, &plan, &error) == GPUCONV_OK, "%s", error.message);
    guarded y = harness_convolve(plan, ir, &x);
    gpuconv_plan_free(plan);
    gpuconv_ir_free(ir);
    guarded_free(&y);
    guarded_free(&x);
    guarded_free(&h);
}

static void use_batch(void) {
    gpuconv_error error = {0};
    oracle_random random = {9};
    gc_batch_slot *slot;
    guarded h;
    gpuconv_ir *ir = harness_response(&random, 1, 1, 4, &h);
    CHECK(gc_backend_cuda.init_device(0, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gc_batch_cuda.new_slot(0, 1 << 20, 4, &slot, &error) == GPUCONV_OK, "%s", error.message);
    float *kept = gc_backend_cuda.upload(0, h.channel[0], 4);
    CHECK(kept, "no memory on the device");
    const gc_batch_samples mono = {.format = {GC_F32, 32}, .channels = 1};
    gc_batch_item item = {.ir = ir, .in = mono, .out = mono, .frames = 100, .planes = kept};
    memset(slot->in, 0, 400);
    CHECK(gc_batch_cuda.begin(slot, &item, 1, 400, 412, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gc_batch_cuda.finish(slot, &item, 1, &error) == GPUCONV_OK, "%s", error.message);
    gc_backend_cuda.release(0, kept);
    gc_batch_cuda.free(slot);
    gpuconv_ir_free(ir);
    guarded_free(&h);
}

static void use_bank(void) {
    const gc_route route[2] = {{0, 0, 0}, {1, 1, 0}};
    const gc_bank_options options = {
        .inputs = 2, .outputs = 2, .routes = 2, .route = route, .block = 64, .taps = 5000, .response = one_tap};
    gpuconv_error error = {0};
    gc_bank *bank;
    const float in[128] = {1}, *out;
    CHECK(gc_bank_cuda.open(&options, &bank, &error) == GPUCONV_OK, "%s", error.message);
    float *pinned = gc_backend_cuda.alloc_pinned(0, 128);
    CHECK(pinned, "no memory");
    CHECK(gc_bank_cuda.process(bank, in, &out, &error) == GPUCONV_OK, "%s", error.message);
    gc_backend_cuda.free_pinned(0, pinned);
    gc_bank_cuda.free(bank);
}

static const struct {
    const char *name;
    void (*use)(void);
} objects[] = {{"an engine", use_engine}, {"a batch", use_batch}, {"a bank", use_bank}};

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

void test_objects_leave_the_current_device_as_it_was(void **state) {
    (void)state;
    int now = -1;
    for (int k = 0; k < COUNT(objects); k++) {
        pretending = true;
        pretended = 1;
        objects[k].use();
        now = pretended;
        pretending = false;
        CHECK(now == 1, "%s made device %d current", objects[k].name, now);
    }
}

void test_objects_leave_the_default_memory_pool_as_it_was(void **state) {
    (void)state;
    cudaMemPool_t pool;
    uint64_t none = 0, threshold = 1, used = 1;
    require(cudaDeviceGetDefaultMemPool(&pool, 0), "the default pool");
    require(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &none), "threshold");
    require(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &none), "used");
    for (int k = 0; k < COUNT(objects); k++)
        objects[k].use();
    require(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold), "threshold");
    require(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &used), "used");
    CHECK(threshold == 0 && used == 0, "the pool has the threshold %llu and held %llu bytes",
          (unsigned long long)threshold, (unsigned long long)used);
}

static _Atomic int running, released;

/* Keeps a stream of the program busy until the test lets it go, or for three seconds. */
static void occupy(void *context) {
    (void)context;
    struct timespec millisecond = {0, 1000000};
    atomic_store(&running, 1);
    for (int i = 0; i < 3000 && !atomic_load(&released); i++)
        nanosleep(&millisecond, NULL);
    atomic_store(&running, 0);
}

/* Leaves page-locked memory of other sizes behind, more than is kept for reuse. */
static void fill_pinned_memory(void) {
    void *memory[3];
    for (int i = 0; i < COUNT(memory); i++)
        require(gc_cuda_pinned_new(INT64_C(100) << 20, &memory[i]), "page-locked memory");
    for (int i = 0; i < COUNT(memory); i++)
        gc_cuda_pinned_free(memory[i]);
}

/* The program's stream is busy while an object is created, used and freed. Nothing may wait for it. */
void test_objects_do_not_wait_for_the_work_of_the_program(void **state) {
    (void)state;
    static const unsigned flags[] = {cudaStreamNonBlocking, cudaStreamDefault};
    fill_pinned_memory();
    for (int k = 0; k < COUNT(objects); k++)
        for (int f = 0; f < COUNT(flags); f++) {
            cudaStream_t stream;
            objects[k].use(); /* loads kernels, which may wait */
            require(cudaStreamCreateWithFlags(&stream, flags[f]), "stream");
            atomic_store(&released, 0);
            require(cudaLaunchHostFunc(stream, occupy, NULL), "host function");
            while (!atomic_load(&running))
                nanosleep(&(struct timespec){0, 100000}, NULL);
            objects[k].use();
            const bool still = atomic_load(&running);
            atomic_store(&released, 1);
            require(cudaStreamSynchronize(stream), "stream");
            require(cudaStreamDestroy(stream), "stream");
            CHECK(still, "%s waited for a %s stream of the program", objects[k].name,
                  flags[f] == cudaStreamDefault ? "blocking" : "non-blocking");
        }
}
