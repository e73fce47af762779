/*
 * How kernels are launched: how much shared memory, how many blocks, and when.
 *
 * A kernel may be launched before the one in front of it in the stream has ended (programmatic dependent launch): its
 * blocks take the places that the other one's last blocks leave, and wait there. A kernel that is launched so calls
 * wait_for_others() before it touches memory that others write or read; it calls let_others_come() as early as it
 * likes.
 */
#ifndef GC_KERNELS_LAUNCH_CUH
#define GC_KERNELS_LAUNCH_CUH

#include <atomic>
#include <cuda_runtime.h>

__device__ __forceinline__ void let_others_come() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ __forceinline__ void wait_for_others() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* More than 48 KB of shared memory must be asked for, once a kernel and device; asking again costs next to nothing. */
template <typename Kernel> cudaError_t allow_shared(Kernel kernel, int bytes) {
    if (bytes <= 48 * 1024)
        return cudaSuccess;
    return cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

/* What is asked of a device once, not at each launch; for any number of threads. */
class once_a_device {
    std::atomic<unsigned long long> done{0};

  public:
    template <typename Ask> cudaError_t operator()(Ask ask) {
        int device = 0;
        cudaError_t failed = cudaGetDevice(&device);
        const unsigned long long bit = device < 64 ? 1ull << device : 0;
        if (failed || (done.load(std::memory_order_relaxed) & bit))
            return failed;
        failed = ask(device);
        if (!failed)
            done.fetch_or(bit, std::memory_order_relaxed);
        return failed;
    }
};

/* Shared memory for so many blocks a multiprocessor, with the kilobyte that the system takes of each; the rest of what
 * both share remains the first-level cache's. Sizes come in steps of 32 KB, of which the nearest is taken. */
template <typename Kernel> cudaError_t ask_for_room(int device, Kernel kernel, int blocks, int bytes) {
    int most = 0;
    cudaError_t failed = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    if (failed)
        return failed;
    const int64_t wanted = (int64_t)blocks * (bytes + 1024) + 8 * 1024;
    return cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                (int)min((int64_t)100, (100 * wanted + most - 1) / most));
}

inline cudaError_t count_multiprocessors(int *count) {
    int device = 0;
    cudaError_t failed = cudaGetDevice(&device);
    return failed ? failed : cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, device);
}

/* As many blocks as the device holds at a time, but no more than there is work for. */
template <typename Kernel>
cudaError_t blocks_that_stay(Kernel kernel, int threads, int bytes, int64_t most, unsigned *blocks) {
    int resident = 0, multiprocessors = 0;
    cudaError_t failed = count_multiprocessors(&multiprocessors);
    if (!failed)
        failed = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, (size_t)bytes);
    if (!failed && resident < 1)
        failed = cudaErrorInvalidConfiguration;
    if (!failed)
        *blocks = (unsigned)min(most, (int64_t)resident * multiprocessors);
    return failed;
}

template <typename... Parameters, typename... Arguments>
cudaError_t launch_early(void (*kernel)(Parameters...), dim3 grid, int threads, int bytes, cudaStream_t stream,
                         Arguments... arguments) {
    int device = 0, major = 0;
    cudaError_t failed = cudaGetDevice(&device);
    if (!failed)
        failed = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (failed)
        return failed;
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = (size_t)bytes;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = major >= 9 ? 1 : 0; /* nobody before Hopper comes early */
    return cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
}

#endif
