/* The lab's device through the CUDA runtime. */
#include "device.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum { SCRATCH = 256 << 20 };

struct gc_lab_device {
    gc_lab_device_info info;
    cudaStream_t stream[LAB_STREAMS];
    cudaEvent_t begin, end;
    void *scratch, *sweep;
    int64_t sweep_bytes;
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

/* The device with most multiprocessors. */
static cudaError_t choose(int *device) {
    int count = 0, most = 0;
    cudaError_t failed = cudaGetDeviceCount(&count);
    if (failed)
        return failed;
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
    int number;
    cudaError_t failed = choose(&number);
    if (failed)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "no GPU that can be used: %s", cudaGetErrorString(failed));
    gc_lab_device *d = gc_calloc(1, sizeof *d);
    if (!d)
        return gc_fail_memory(error, "the device");
    describe(number, &d->info);
    d->sweep_bytes = gc_max(4 * d->info.l2, INT64_C(64) << 20);
    for (int s = 0; !failed && s < LAB_STREAMS; s++)
        failed = cudaStreamCreateWithFlags(&d->stream[s], cudaStreamNonBlocking);
    if (!failed)
        failed = cudaEventCreate(&d->begin);
    if (!failed)
        failed = cudaEventCreate(&d->end);
    if (!failed)
        failed = cudaMalloc(&d->scratch, SCRATCH);
    if (!failed)
        failed = cudaMalloc(&d->sweep, (size_t)d->sweep_bytes);
    if (failed) {
        gc_lab_device_close(d);
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "the GPU gives no streams or memory: %s",
                       cudaGetErrorString(failed));
    }
    *device = d;
    return GPUCONV_OK;
}

void gc_lab_device_close(gc_lab_device *device) {
    if (!device)
        return;
    cudaFree(device->sweep);
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

const gc_lab_device_info *gc_lab_device_about(const gc_lab_device *device) {
    return &device->info;
}

void gc_lab_device_fill(const gc_lab_device *device, gc_lab_run *run) {
    memcpy(run->stream, device->stream, sizeof run->stream);
    run->scratch = device->scratch;
    run->scratch_bytes = SCRATCH;
    run->multiprocessors = device->info.multiprocessors;
    run->capability = device->info.capability;
}

static cudaError_t host_side(gc_lab_memory memory, size_t bytes, void **host, void **on_device) {
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
        cudaError_t failed = cudaHostAlloc(host, bytes, cudaHostAllocMapped);
        return failed ? failed : cudaHostGetDevicePointer(on_device, *host, 0);
    }
    case LAB_MANAGED: {
        cudaError_t failed = cudaMallocManaged(on_device, bytes, cudaMemAttachGlobal);
        *host = *on_device;
        return failed;
    }
    default:
        return cudaSuccess;
    }
}

int gc_lab_device_new(gc_lab_memory memory, int64_t bytes, void **host, void **on_device) {
    *host = *on_device = NULL;
    cudaError_t failed = host_side(memory, (size_t)bytes, host, on_device);
    if (!failed && memory != LAB_MAPPED && memory != LAB_MANAGED)
        failed = cudaMalloc(on_device, (size_t)bytes);
    if (failed) {
        gc_lab_device_free(memory, *host, *on_device);
        *host = *on_device = NULL;
        (void)cudaGetLastError();
    }
    return (int)failed;
}

void gc_lab_device_free(gc_lab_memory memory, void *host, void *on_device) {
    if (memory == LAB_PAGEABLE)
        free(host);
    else if (memory != LAB_DEVICE && memory != LAB_MANAGED && host)
        cudaFreeHost(host);
    if (memory != LAB_MAPPED)
        cudaFree(on_device);
}

int gc_lab_device_copy(void *to, const void *from, int64_t bytes) {
    cudaError_t failed = cudaMemcpy(to, from, (size_t)bytes, cudaMemcpyDefault);
    return (int)(failed ? failed : cudaDeviceSynchronize());
}

int gc_lab_device_set(void *to, int byte, int64_t bytes) {
    cudaError_t failed = cudaMemset(to, byte, (size_t)bytes);
    return (int)(failed ? failed : cudaDeviceSynchronize());
}

int gc_lab_device_wait(const gc_lab_device *device) {
    (void)device;
    return (int)cudaDeviceSynchronize();
}

int gc_lab_device_mark(gc_lab_device *device) {
    return (int)cudaEventRecord(device->begin, device->stream[0]);
}

int gc_lab_device_since(gc_lab_device *device, double *seconds) {
    float ms = 0;
    cudaError_t failed = cudaEventRecord(device->end, device->stream[0]);
    if (!failed)
        failed = cudaEventSynchronize(device->end);
    if (!failed)
        failed = cudaEventElapsedTime(&ms, device->begin, device->end);
    *seconds = 1e-3 * (double)ms;
    return (int)failed;
}

int gc_lab_device_flush(gc_lab_device *device) {
    return (int)cudaMemsetAsync(device->sweep, 0, (size_t)device->sweep_bytes, device->stream[0]);
}

const char *gc_lab_device_error(int error) {
    return error == LAB_CANNOT ? "this device cannot" : cudaGetErrorString((cudaError_t)error);
}
