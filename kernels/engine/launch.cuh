/*
 * Kernel launches: shared memory, size of the grid, and programmatic dependent launch (PDL).
 *
 * With PDL a kernel may start before the previous kernel in the stream has ended: its blocks take the resources that
 * the last blocks of the previous kernel leave, and wait. A kernel launched with launch_dependent calls pdl_wait()
 * before it accesses memory that the previous kernel writes or reads. It may call pdl_trigger(), which lets the next
 * kernel start, as early as it likes. Until pdl_wait() returns, memory that the previous kernel writes is not constant:
 * it must not be read through the read-only cache (__ldg, or const with __restrict__), neither before nor after.
 */
#ifndef GC_KERNELS_LAUNCH_CUH
#define GC_KERNELS_LAUNCH_CUH

#include "kernels.h"

#include <atomic>
#include <cuda_runtime.h>

__device__ __forceinline__ void pdl_trigger() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ __forceinline__ void pdl_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Allows the kernel `bytes` of dynamic shared memory. More than 48 KB must be requested once per kernel and device; a
 * repeated request costs next to nothing. */
template <typename Kernel> cudaError_t allow_shared(Kernel kernel, int bytes) {
    if (bytes <= 48 * 1024)
        return cudaSuccess;
    return cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

/* Calls a function once per device instead of at each launch. Any number of threads may use it. */
class once_per_device {
    std::atomic<unsigned long long> done{0};

  public:
    template <typename Function> cudaError_t operator()(Function function) {
        int device = 0;
        cudaError_t err = cudaGetDevice(&device);
        const unsigned long long bit = device < 64 ? 1ull << device : 0;
        if (err || (done.load(std::memory_order_relaxed) & bit))
            return err;
        err = function(device);
        if (!err)
            done.fetch_or(bit, std::memory_order_relaxed);
        return err;
    }
};

namespace {

/* Stores the architecture, 10 major + minor, that the code of this source file on the current device was compiled for.
 * It is below the device's if the driver compiled PTX of an older architecture; what depends on __CUDA_ARCH__ is then
 * that of the older one. All kernels of a file are compiled for the same architectures, so that any of them will do.
 * For each source file separately (unnamed namespace). */
inline cudaError_t compiled_architecture(const void *kernel, int *architecture) {
    static std::atomic<int> known[64];
    int device = 0;
    cudaError_t err = cudaGetDevice(&device);
    if (err)
        return err;
    *architecture = device < 64 ? known[device].load(std::memory_order_relaxed) : 0;
    if (*architecture == 0) {
        cudaFuncAttributes attributes;
        if ((err = cudaFuncGetAttributes(&attributes, kernel)))
            return err;
        *architecture = min(attributes.ptxVersion, attributes.binaryVersion);
        if (device < 64)
            known[device].store(*architecture, std::memory_order_relaxed);
    }
    return cudaSuccess;
}

/* Stores whether a kernel is launched early: the device can, and the kernel contains pdl_wait(). Asks the device once:
 * a launch would otherwise take seven calls of the runtime. */
inline cudaError_t launches_early(const void *kernel, bool *early) {
    enum { UNKNOWN, LATE, EARLY };
    static std::atomic<int> known[64];
    int number = 0, compiled = 0;
    *early = false;
    cudaError_t err = cudaGetDevice(&number);
    const int before = number < 64 ? known[number].load(std::memory_order_relaxed) : UNKNOWN;
    *early = before == EARLY;
    if (err || before != UNKNOWN)
        return err;
    gck_device device;
    err = gck_device_query(number, &device);
    if (!err && device.early_launch)
        err = compiled_architecture(kernel, &compiled);
    *early = compiled >= 90;
    if (!err && number < 64)
        known[number].store(*early ? EARLY : LATE, std::memory_order_relaxed);
    return err;
}

} // namespace

/* Sets the shared-memory carveout so that a multiprocessor has room for `blocks` blocks of `bytes`, each with the
 * kilobyte that the system reserves; the rest of the common memory remains first-level cache. The hardware has sizes in
 * steps of 32 KB and takes the nearest. */
template <typename Kernel> cudaError_t set_carveout(int device, Kernel kernel, int blocks, int bytes) {
    int max_bytes = 0;
    cudaError_t err = cudaDeviceGetAttribute(&max_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    if (err)
        return err;
    const int64_t needed = (int64_t)blocks * (bytes + 1024) + 8 * 1024;
    return cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                (int)min((int64_t)100, (100 * needed + max_bytes - 1) / max_bytes));
}

/* Stores the number of multiprocessors of the current device. */
inline cudaError_t count_multiprocessors(int *count) {
    int device = 0;
    cudaError_t err = cudaGetDevice(&device);
    return err ? err : cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, device);
}

/* Launches a kernel that calls pdl_wait(), with PDL if launches_early says so. */
template <typename... Parameters, typename... Arguments>
cudaError_t launch_dependent(void (*kernel)(Parameters...), dim3 grid, int threads, int bytes, cudaStream_t stream,
                             Arguments... arguments) {
    bool early;
    cudaError_t err = launches_early((const void *)kernel, &early);
    if (err)
        return err;
    cudaLaunchAttribute pdl = {};
    pdl.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    pdl.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = (size_t)bytes;
    config.stream = stream;
    config.attrs = &pdl;
    config.numAttrs = early ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
}

/* Calls launch(first, n) for parts of `count` items, whose launches have n x each blocks in a dimension of the grid
 * that can have 65535. Returns the first error. */
template <typename Launch> cudaError_t launch_parts(int64_t count, int each, Launch launch) {
    const int64_t most = 65535 / each;
    cudaError_t err = cudaSuccess;
    for (int64_t first = 0; first < count && !err; first += most)
        err = launch(first, (int)(count - first < most ? count - first : most));
    return err;
}

/* Returns the row of a table of kernels for this number of points, NULL if there is none. */
template <typename Row, int COUNT> const Row *find_points(const Row (&rows)[COUNT], int64_t points) {
    for (const Row &r : rows)
        if (r.points == points)
            return &r;
    return NULL;
}

#endif
