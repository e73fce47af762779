/* Chains followed by one thread: at = chain[at]. */
#include "course.cuh"

using namespace course;

namespace {

enum { STEPS = 1024, WORDS = 128 * 32 };

__constant__ int constants[WORDS];

enum place { L1, L2, GLOBAL };

template <place WHERE> __device__ __forceinline__ int read(const int *at) {
    int value;
    if (WHERE == L1)
        asm volatile("ld.global.ca.s32 %0, [%1];" : "=r"(value) : "l"(at));
    else
        asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(value) : "l"(at));
    return value;
}

template <typename Step> __device__ __forceinline__ void follow(int *end, int *cycles, Step step) {
    int at = 0;
    long long begin = clock64();
#pragma unroll 8
    for (int k = 0; k < STEPS; k++)
        at = step(at);
    long long finish = clock64();
    *end = at;
    *cycles = (int)(finish - begin);
}

__global__ void registers(int *end, int *cycles, int one) {
    follow(end, cycles, [=](int at) {
        asm volatile("add.s32 %0, %0, %1;" : "+r"(at) : "r"(one));
        return at;
    });
}

__global__ void shared(const int *chain, int *end, int *cycles) {
    __shared__ volatile int copy[WORDS];
    for (int i = 0; i < WORDS; i++)
        copy[i] = chain[i];
    follow(end, cycles, [&](int at) { return copy[at]; });
}

__global__ void constant(int *end, int *cycles) {
    int warm = 0;
    for (int k = 0; k < STEPS; k++)
        warm = constants[warm];
    if (warm < 0)
        *end = warm;
    follow(end, cycles, [](int at) { return constants[at]; });
}

/* The first `lines` lines are read once before. */
template <place WHERE> __global__ void global(const int *chain, int lines, int *end, int *cycles) {
    int warm = 0;
    for (int k = 0; k < lines; k++)
        warm = read<WHERE>(chain + warm);
    if (warm < 0)
        *end = warm;
    follow(end, cycles, [=](int at) { return read<WHERE>(chain + at); });
}

int *end_of(const gc_lab_run *run) {
    return buffer<int>(run, 3);
}

int *cycles_of(const gc_lab_run *run) {
    return buffer<int>(run, 4);
}

template <place WHERE> int launch(const gc_lab_run *run, bool warm) {
    global<WHERE><<<1, 1, 0, stream(run)>>>(buffer<const int>(run, run->parameter),
                                            warm ? (int)(run->count[run->parameter] / 32) : 0, end_of(run),
                                            cycles_of(run));
    return cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_latency_prepare) {
    return cudaMemcpyToSymbolAsync(constants, run->buffer[0], sizeof constants, 0, cudaMemcpyDeviceToDevice,
                                   stream(run));
}

LAB_LAUNCHER(gck_latency_registers) {
    registers<<<1, 1, 0, stream(run)>>>(end_of(run), cycles_of(run), 1);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_latency_shared) {
    shared<<<1, 1, 0, stream(run)>>>(buffer<const int>(run, 0), end_of(run), cycles_of(run));
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_latency_constant) {
    constant<<<1, 1, 0, stream(run)>>>(end_of(run), cycles_of(run));
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_latency_l1) {
    return launch<L1>(run, true);
}

LAB_LAUNCHER(gck_latency_l2) {
    return launch<L2>(run, true);
}

/* The scratch memory, larger than any cache, is written before: nothing of the chain is left in one. */
LAB_LAUNCHER(gck_latency_global) {
    cudaError_t failed = cudaMemsetAsync(run->scratch, 0, (size_t)run->scratch_bytes, stream(run));
    return failed ? failed : launch<GLOBAL>(run, false);
}
