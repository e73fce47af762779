/* Implements the lab's device with the CUDA runtime. */
#include "device.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum { SCRATCH_BYTES = 256 << 20 };

struct gc_lab_device {
    gc_lab_device_info info;
    cudaStream_t stream[LAB_STREAMS];
    cudaEvent_t begin, end;
    void *scratch, *flush; /* flush: larger than the L2 cache, see gc_lab_device_flush_l2 */
    int64_t flush_bytes;
};

static int attribute(enum cudaDeviceAttr which, int device) {
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, device) == cudaSuccess ? value : 0;
}

static void describe(int device, gc_lab_device_info *info) {
    struct cudaDeviceProp p;
    if (cudaGetDeviceProperties(&p, device) != cudaSuccess)
        return;
    memcpy(info->name, p.name, sizeof info->name - 1);
    if (cudaDeviceGetPCIBusId(info->bus, sizeof info->bus, device) != cudaSuccess)
        info->bus[0] = '\0';
    (void)cudaDriverGetVersion(&info->driver);
    (void)cudaRuntimeGetVersion(&info->runtime);
    info->capability = 10 * p.major + p.minor;
    info->multiprocessors = p.multiProcessorCount;
    info->threads_multiprocessor = p.maxThreadsPerMultiProcessor;
    info->blocks_multiprocessor = p.maxBlocksPerMultiProcessor;
    info->threads_block = p.maxThreadsPerBlock;
    info->registers_multiprocessor = p.regsPerMultiprocessor;
    info->copy_engines = p.asyncEngineCount;
    info->managed = p.managedMemory;
    info->mapped = p.canMapHostMemory;
    info->memory = (int64_t)p.totalGlobalMem;
    info->l2 = p.l2CacheSize;
    info->shared_block = (int64_t)p.sharedMemPerBlock;
    info->shared_block_optin = (int64_t)p.sharedMemPerBlockOptin;
    info->shared_multiprocessor = (int64_t)p.sharedMemPerMultiprocessor;
    info->shared_reserved = (int64_t)p.reservedSharedMemPerBlock;
    info->constant = (int64_t)p.totalConstMem;
    info->clock_hz = 1e3 * attribute(cudaDevAttrClockRate, device);
    info->memory_clock_hz = 1e3 * attribute(cudaDevAttrMemoryClockRate, device);
    info->bus_bits = p.memoryBusWidth;
}

/* Selects the device with the most multiprocessors. */
static cudaError_t select_device(int *device) {
    int count = 0, most = 0;
    cudaError_t err = cudaGetDeviceCount(&count);
    if (err)
        return err;
    *device = -1;
    for (int d = 0; d < count; d++) {
        int n = attribute(cudaDevAttrMultiProcessorCount, d);
        if (n > most)
            most = n, *device = d;
    }
    return *device < 0 ? cudaErrorNoDevice : cudaSetDevice(*device);
}

gpuconv_status gc_lab_device_open(gc_lab_device **device, gpuconv_error *error) {
    *device = NULL;
    int number, driver = 0, runtime = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "no NVIDIA driver is installed");
    cudaError_t err = select_device(&number);
    if (err == cudaErrorInsufficientDriver && cudaRuntimeGetVersion(&runtime) == cudaSuccess)
        return gc_fail(error, GPUCONV_ERROR_DEVICE,
                       "the NVIDIA driver is too old: it supports CUDA %d.%d, and gpulab needs %d.%d", driver / 1000,
                       driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (err)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "no usable GPU: %s", cudaGetErrorString(err));
    gc_lab_device *d = gc_calloc(1, sizeof *d);
    if (!d)
        return gc_fail_memory(error, "the device");
    describe(number, &d->info);
    d->flush_bytes = gc_max(4 * d->info.l2, INT64_C(64) << 20);
    for (int s = 0; !err && s < LAB_STREAMS; s++)
        err = cudaStreamCreateWithFlags(&d->stream[s], cudaStreamNonBlocking);
    if (!err)
        err = cudaEventCreate(&d->begin);
    if (!err)
        err = cudaEventCreate(&d->end);
    if (!err)
        err = cudaMalloc(&d->scratch, SCRATCH_BYTES);
    if (!err)
        err = cudaMalloc(&d->flush, (size_t)d->flush_bytes);
    if (err) {
        gc_lab_device_close(d);
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "cannot create streams or allocate memory on the GPU: %s",
                       cudaGetErrorString(err));
    }
    *device = d;
    return GPUCONV_OK;
}

void gc_lab_device_close(gc_lab_device *device) {
    if (!device)
        return;
    cudaFree(device->flush);
    cudaFree(device->scratch);
    if (device->end)
        cudaEventDestroy(device->end);
    if (device->begin)
        cudaEventDestroy(device->begin);
    for (int s = 0; s < LAB_STREAMS; s++)
        if (device->stream[s])
            cudaStreamDestroy(device->stream[s]);
    free(device);
}

const gc_lab_device_info *gc_lab_device_get_info(const gc_lab_device *device) {
    return &device->info;
}

void gc_lab_device_set_run(const gc_lab_device *device, gc_lab_run *run) {
    memcpy(run->stream, device->stream, sizeof run->stream);
    run->scratch = device->scratch;
    run->scratch_bytes = SCRATCH_BYTES;
    run->multiprocessors = device->info.multiprocessors;
    run->capability = device->info.capability;
}

/* Allocates the host side; for mapped and managed memory also the device pointer. */
static cudaError_t alloc_host_side(gc_lab_memory memory, size_t bytes, void **host, void **on_device) {
    switch (memory) {
    case LAB_PAGEABLE: {
        *host = gc_calloc((int64_t)bytes, 1);
        return *host ? cudaSuccess : cudaErrorMemoryAllocation;
    }
    case LAB_PINNED:
        return cudaHostAlloc(host, bytes, cudaHostAllocDefault);
    case LAB_PORTABLE:
        return cudaHostAlloc(host, bytes, cudaHostAllocPortable);
    case LAB_COMBINED:
        return cudaHostAlloc(host, bytes, cudaHostAllocWriteCombined);
    case LAB_MAPPED: {
        cudaError_t err = cudaHostAlloc(host, bytes, cudaHostAllocMapped);
        return err ? err : cudaHostGetDevicePointer(on_device, *host, 0);
    }
    case LAB_MANAGED: {
        cudaError_t err = cudaMallocManaged(on_device, bytes, cudaMemAttachGlobal);
        *host = *on_device;
        return err;
    }
    default:
        return cudaSuccess;
    }
}

int gc_lab_device_alloc_buffer(gc_lab_memory memory, int64_t bytes, void **host, void **on_device) {
    *host = *on_device = NULL;
    cudaError_t err = alloc_host_side(memory, (size_t)bytes, host, on_device);
    if (!err && memory != LAB_MAPPED && memory != LAB_MANAGED)
        err = cudaMalloc(on_device, (size_t)bytes);
    if (err) {
        gc_lab_device_free_buffer(memory, *host, *on_device);
        *host = *on_device = NULL;
        (void)cudaGetLastError();
    }
    return (int)err;
}

void gc_lab_device_free_buffer(gc_lab_memory memory, void *host, void *on_device) {
    if (memory == LAB_PAGEABLE)
        free(host);
    else if (memory != LAB_DEVICE && memory != LAB_MANAGED && host)
        cudaFreeHost(host);
    if (memory != LAB_MAPPED)
        cudaFree(on_device);
}

int gc_lab_device_copy(void *to, const void *from, int64_t bytes) {
    cudaError_t err = cudaMemcpy(to, from, (size_t)bytes, cudaMemcpyDefault);
    return (int)(err ? err : cudaDeviceSynchronize());
}

int gc_lab_device_memset(void *to, int byte, int64_t bytes) {
    cudaError_t err = cudaMemset(to, byte, (size_t)bytes);
    return (int)(err ? err : cudaDeviceSynchronize());
}

int gc_lab_device_synchronize(const gc_lab_device *device) {
    (void)device;
    return (int)cudaDeviceSynchronize();
}

int gc_lab_device_timer_start(gc_lab_device *device) {
    return (int)cudaEventRecord(device->begin, device->stream[0]);
}

int gc_lab_device_timer_stop(gc_lab_device *device, double *seconds) {
    float ms = 0;
    cudaError_t err = cudaEventRecord(device->end, device->stream[0]);
    if (!err)
        err = cudaEventSynchronize(device->end);
    if (!err)
        err = cudaEventElapsedTime(&ms, device->begin, device->end);
    *seconds = 1e-3 * (double)ms;
    return (int)err;
}

int gc_lab_device_flush_l2(gc_lab_device *device) {
    return (int)cudaMemsetAsync(device->flush, 0, (size_t)device->flush_bytes, device->stream[0]);
}

const char *gc_lab_device_error_text(int error) {
    return error == LAB_CANNOT ? "not supported by this device" : cudaGetErrorString((cudaError_t)error);
}
