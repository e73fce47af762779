/* Discovery of CUDA devices, and messages about them. */
#include "cuda_device.h"

#include "cuda_resources.h"
#include "kernels/engine/kernels.h"
#include "libgpuconv/core/error.h"

int gc_cuda_count_devices(gpuconv_error *error) {
    int driver = 0, count = 0;
    if (gck_unknown_limit()) {
        gc_fail(error, GPUCONV_ERROR_DEVICE,
                "GPUCONV_CUDA_LIMITS: \"%s\" is no limit; use shared=KB (48 or more), architecture=N (75 or more), "
                "no-early-launch and no-tensor-cores",
                gck_unknown_limit());
        return 0;
    }
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        gc_fail(error, GPUCONV_ERROR_DEVICE, "no NVIDIA driver is installed");
        return 0;
    }
    cudaError_t err = cudaGetDeviceCount(&count);
    if (err || count == 0) {
        gc_fail(error, GPUCONV_ERROR_DEVICE, "no CUDA device: %s", cudaGetErrorString(err ? err : cudaErrorNoDevice));
        return 0;
    }
    return count;
}

gpuconv_status gc_cuda_choose_device(int wanted, int *device, gpuconv_error *error) {
    int count = gc_cuda_count_devices(error), most = 0;
    if (count == 0)
        return GPUCONV_ERROR_DEVICE;
    if (wanted >= count)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "there is no CUDA device %d; use 0 to %d", wanted, count - 1);
    *device = wanted;
    for (int d = 0; d < count && wanted < 0; d++) {
        int multiprocessors = 0;
        cudaError_t err = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, d);
        if (err)
            return gc_cuda_check(error, d, err);
        if (multiprocessors > most) {
            most = multiprocessors;
            *device = d;
        }
    }
    return GPUCONV_OK;
}

/* What is taken where the driver does not say. */
static const double some_clock = 1.5e9, some_bandwidth = 6e11;

/* Transforms of this many bytes fill the device several times over; more only take memory. */
enum { WORKSPACE_BYTES = 256 << 20 };

cudaError_t gc_cuda_read_device(int number, gc_device *d) {
    int clock = 0, memory_clock = 0, bus = 0;
    struct cudaDeviceProp p;
    gck_device offered;
    cudaError_t err = cudaGetDeviceProperties(&p, number);
    GC_CUDA_TRY(err, gck_device_query(number, &offered));
    GC_CUDA_TRY(err, cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, number));
    GC_CUDA_TRY(err, cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, number));
    GC_CUDA_TRY(err, cudaDeviceGetAttribute(&bus, cudaDevAttrGlobalMemoryBusWidth, number));
    if (err)
        return err;
    *d = (gc_device){.number = number,
                     .memory = (double)p.totalGlobalMem,
                     .tensor_cores = offered.tensor_cores != 0,
                     .multiprocessors = offered.multiprocessors,
                     .lanes = offered.architecture == 75 || offered.architecture == 80 ? 64 : 128,
                     .clock = clock > 0 ? 1e3 * clock : some_clock,
                     /* two transfers per clock of 1 kHz */
                     .bandwidth = memory_clock > 0 && bus > 0 ? 2e3 * memory_clock * bus / 8 : some_bandwidth,
                     .cache = p.l2CacheSize,
                     .shared_memory = offered.shared_bytes,
                     .resident_shared_memory = (int64_t)p.sharedMemPerMultiprocessor,
                     .resident_threads = p.maxThreadsPerMultiProcessor,
                     .workspace = WORKSPACE_BYTES};
    snprintf(d->name, sizeof d->name, "%.127s", p.name);
    return cudaSuccess;
}

cudaError_t gc_cuda_enter(int device, int *caller) {
    int current = -1;
    *caller = -1;
    cudaError_t err = cudaGetDevice(&current);
    if (err || current == device)
        return err;
    err = cudaSetDevice(device);
    if (!err)
        *caller = current;
    return err;
}

void gc_cuda_leave(int caller) {
    if (caller >= 0)
        (void)cudaSetDevice(caller);
}

gpuconv_status gc_cuda_check(gpuconv_error *error, int device, cudaError_t err) {
    if (!err)
        return GPUCONV_OK;
    (void)cudaGetLastError();
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "CUDA device %d: %s", device, cudaGetErrorString(err));
}

cudaError_t gc_cuda_free_memory(int device, double *bytes) {
    size_t available = 0, total = 0;
    int caller;
    cudaError_t err = gc_cuda_enter(device, &caller);
    GC_CUDA_TRY(err, cudaMemGetInfo(&available, &total));
    gc_cuda_leave(caller);
    *bytes = (double)available;
    return err;
}

gpuconv_status gc_cuda_check_memory(gpuconv_error *error, int device, cudaError_t err, const char *what,
                                    int64_t bytes) {
    const double needed = (double)bytes / GC_MEMORY_SHARE;
    double available;
    if (err != cudaErrorMemoryAllocation)
        return gc_cuda_check(error, device, err);
    (void)cudaGetLastError();
    if (gc_cuda_free_memory(device, &available) || available >= needed) /* host memory is missing */
        return gc_fail_memory(error, what);
    return gc_fail(error, GPUCONV_ERROR_MEMORY, "%s needs %.2f GB on CUDA device %d, of which %.2f GB are free", what,
                   needed * 1e-9, device, available * 1e-9);
}
