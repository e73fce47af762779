/* The kernels of module memory-latency: one thread follows a chain, index = chain[index]. */
#include "course.cuh"

using namespace course;

namespace {

enum { STEPS = 1024, WORDS = 128 * 32 };

__constant__ int constant_chain[WORDS];

enum memory { L1, L2, GLOBAL };

/* Loads one int through the L1 cache, or past it from the L2 cache or device memory. */
template <memory MEMORY> __device__ __forceinline__ int load(const int *address) {
    int value;
    if (MEMORY == L1)
        asm volatile("ld.global.ca.s32 %0, [%1];" : "=r"(value) : "l"(address));
    else
        asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(value) : "l"(address));
    return value;
}

/* Does STEPS steps from index 0. Writes the last index to *end and the cycles of all steps to *cycles. */
template <typename Step> __device__ __forceinline__ void time_steps(int *end, int *cycles, Step step) {
    int index = 0;
    long long start = clock64();
#pragma unroll 8
    for (int k = 0; k < STEPS; k++)
        index = step(index);
    long long stop = clock64();
    *end = index;
    *cycles = (int)(stop - start);
}

__global__ void registers(int *end, int *cycles, int one) {
    time_steps(end, cycles, [=](int index) {
        asm volatile("add.s32 %0, %0, %1;" : "+r"(index) : "r"(one));
        return index;
    });
}

__global__ void shared(const int *chain, int *end, int *cycles) {
    __shared__ volatile int shared_chain[WORDS];
    for (int i = 0; i < WORDS; i++)
        shared_chain[i] = chain[i];
    time_steps(end, cycles, [&](int index) { return shared_chain[index]; });
}

__global__ void constant(int *end, int *cycles) {
    int warm_index = 0;
    for (int k = 0; k < STEPS; k++)
        warm_index = constant_chain[warm_index];
    if (warm_index < 0)
        *end = warm_index;
    time_steps(end, cycles, [](int index) { return constant_chain[index]; });
}

/* Follows the chain for `lines` steps before the measurement, so that the cache holds them. */
template <memory MEMORY> __global__ void global(const int *chain, int lines, int *end, int *cycles) {
    int warm_index = 0;
    for (int k = 0; k < lines; k++)
        warm_index = load<MEMORY>(chain + warm_index);
    if (warm_index < 0)
        *end = warm_index;
    time_steps(end, cycles, [=](int index) { return load<MEMORY>(chain + index); });
}

int *end_buffer(const gc_lab_run *run) {
    return buffer<int>(run, 3);
}

int *cycles_buffer(const gc_lab_run *run) {
    return buffer<int>(run, 4);
}

template <memory MEMORY> int launch(const gc_lab_run *run, bool warm) {
    global<MEMORY><<<1, 1, 0, stream(run)>>>(buffer<const int>(run, run->parameter),
                                             warm ? (int)(run->count[run->parameter] / 32) : 0, end_buffer(run),
                                             cycles_buffer(run));
    return cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_latency_prepare) {
    return cudaMemcpyToSymbolAsync(constant_chain, run->buffer[0], sizeof constant_chain, 0, cudaMemcpyDeviceToDevice,
                                   stream(run));
}

LAB_LAUNCHER(gck_latency_registers) {
    registers<<<1, 1, 0, stream(run)>>>(end_buffer(run), cycles_buffer(run), 1);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_latency_shared) {
    shared<<<1, 1, 0, stream(run)>>>(buffer<const int>(run, 0), end_buffer(run), cycles_buffer(run));
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_latency_constant) {
    constant<<<1, 1, 0, stream(run)>>>(end_buffer(run), cycles_buffer(run));
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_latency_l1) {
    return launch<L1>(run, true);
}

LAB_LAUNCHER(gck_latency_l2) {
    return launch<L2>(run, true);
}

/* Overwrites the scratch memory first. It is larger than any cache, so that no part of the chain remains in one. */
LAB_LAUNCHER(gck_latency_global) {
    cudaError_t err = cudaMemsetAsync(run->scratch, 0, (size_t)run->scratch_bytes, stream(run));
    return err ? err : launch<GLOBAL>(run, false);
}
