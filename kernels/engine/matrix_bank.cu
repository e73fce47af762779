/*
 * Matrices in real time: every output is the sum of many inputs, each through its own response. One period of all
 * channels is a few launches.
 *
 * The responses are cut into levels of growing partitions, as in filter_bank.cu (Gardner, Efficient Convolution without
 * Input-Output Delay, JAES 43(3), 1995). A block of an input is transformed once, the products of all its responses are
 * summed in the frequency domain, and each output is transformed back once:
 *
 *      forward     inputs: the last two hops -> a spectrum in the delay line
 *      products    outputs: sum over routes and partitions of spectra x responses, in `splits` parts
 *      inverse     outputs: add up the parts, transform back
 *
 * A period waits only for the first level, whose hop B is the period. A further level has hops of H frames and
 * partitions from tap 2 H on: the outputs E + H .. E + 2 H of a block that ends at time E are computed during the H
 * frames before they are needed, in each period those of one part of the outputs, so that every period has the same
 * amount of work:
 *
 *      time       E          E + B       E + 2 B               E + H                      E + 2 H
 *      computed   | out 0, P | out 1, .. | ...                 |
 *      needed                                                  |   all of these outputs   |
 *
 * P = H / B periods; two buffers of future outputs alternate.
 *
 * Memory: the spectra of the responses are read once for each block, 8 bytes for each tap; spectra of inputs come from
 * the second-level cache. Contracts of the launchers: matrix_bank.h.
 */
#include "bank.cuh"

namespace {

/* Threads of a block of `products`: lanes of two bins each, times groups of routes. */
enum { THREADS = 256, LANES_MAX = 64 };

/* Returns whether a level with hops of N frames is the first one. */
template <int N> __device__ __forceinline__ bool is_first(int number) {
    return N <= GCK_FILTER_BANK_BLOCK_MAX && number == 0;
}

/* What is due in a level. */
struct due {
    int64_t blocks; /* of the input that have ended */
    int phase;      /* the outputs phase, phase + periods, ... are computed */
};

__device__ __forceinline__ due due_in(const gck_matrix_bank &b, int number) {
    const int64_t ended = *b.period + 1;
    const int periods = b.level[number].periods;
    return {ended / periods, (int)(ended % periods)};
}

/* The spectra of the inputs whose block ends with this period, one per group of threads. */
template <int N> __global__ void __launch_bounds__(layout<N>::block, 1) forward(const gck_matrix_bank b, int number) {
    extern __shared__ float2 shared[];
    const gck_matrix_bank_level &level = b.level[number];
    const int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    const int index = blockIdx.x * layout<N>::groups + group, c = min(index, b.inputs - 1);
    const bool active = index < b.inputs;
    const due d = due_in(b, number);
    if (d.phase != 0) /* the same for all threads */
        return;
    const int mask = (int)b.ring_frames - 1, begin = (int)((*b.period + 1) * b.block - 2 * N) & mask;
    float *ring = b.ring + c * b.ring_frames;
    float2 v[16];
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const int n = t + j * layout<N>::threads, last = (begin + N + n) & mask;
        v[j].x = ring[(begin + n) & mask];
        v[j].y = is_first<N>(number) ? b.in[(int64_t)c * N + n] : ring[last];
        if (is_first<N>(number) && active)
            ring[last] = v[j].y;
    }
    twist<N, false>(v, t);
    fft_radix16_forward<N>(v, shared + group * fft_radix16<N>::shared, t, level.table);
    if (active)
        store_spectrum<N>(v, level.delay + ((int64_t)c * level.partitions + (d.blocks - 1) % level.partitions) * N, t);
}

__device__ __forceinline__ float4 add_product(float4 sum, float4 a, float4 b) {
    const float2 x = mul_add(make_float2(a.x, a.y), make_float2(b.x, b.y), make_float2(sum.x, sum.y));
    const float2 y = mul_add(make_float2(a.z, a.w), make_float2(b.z, b.w), make_float2(sum.z, sum.w));
    return make_float4(x.x, x.y, y.x, y.y);
}

/* Adds the products of one route to `sum`. x, h: this lane's bins of partition 0; stride: from one partition to the
 * next; slot: of the newest block. */
__device__ __forceinline__ float4 add_route(float4 sum, const float4 *x, const float4 *h, int partitions,
                                            int64_t stride, int slot) {
#pragma unroll 4
    for (int p = 0; p < partitions; p++) {
        const int s = slot - p + (slot < p ? partitions : 0);
        sum = add_product(sum, x[s * stride], __ldg(h + p * stride));
    }
    return sum;
}

/* block.x: bins x splits; block.y: one of the outputs that are due. */
__global__ void __launch_bounds__(THREADS) products(const gck_matrix_bank b, int number, int lanes) {
    __shared__ float4 shared[THREADS];
    const gck_matrix_bank_level &level = b.level[number];
    const due d = due_in(b, number);
    const int output = (int)blockIdx.y * level.periods + d.phase;
    if (output >= b.outputs || d.blocks == 0)
        return;
    const int64_t stride = level.hop / 2;
    const int lane = threadIdx.x % lanes, group = threadIdx.x / lanes, groups = THREADS / lanes;
    const int split = blockIdx.x % level.splits;
    const int64_t bin = (int64_t)(blockIdx.x / level.splits) * lanes + lane;
    const int slot = (int)((d.blocks - 1) % level.partitions);
    const float4 *spectra = (const float4 *)level.spectra + bin, *delay = (const float4 *)level.delay + bin;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int r = b.row[output] + split * groups + group; r < b.row[output + 1]; r += groups * level.splits) {
        const gck_matrix_bank_route route = b.route[r];
        sum = add_route(sum, delay + route.input * level.partitions * stride,
                        spectra + route.response * level.partitions * stride, level.partitions, stride, slot);
    }
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (group > 0)
        return;
    for (int g = 1; g < groups; g++) {
        const float4 part = shared[g * lanes + lane];
        sum = make_float4(sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w);
    }
    ((float4 *)level.sums)[((int64_t)output * level.splits + split) * stride + bin] = sum;
}

/* Loads the sum of the parts of an output. */
template <int N>
__device__ __forceinline__ void load_sums(float2 *v, const gck_matrix_bank_level &level, int output, int t) {
    const float2 *from = level.sums + (int64_t)output * level.splits * N;
    load_spectrum<N>(v, from, t);
    for (int s = 1; s < level.splits; s++) {
        float2 w[16];
        load_spectrum<N>(w, from + s * N, t);
#pragma unroll
        for (int j = 0; j < 16; j++)
            v[j] = add(v[j], w[j]);
    }
}

/* Adds what the further levels have computed for the current period. */
template <int N> __device__ __forceinline__ void add_future(float2 *v, const gck_matrix_bank &b, int output, int t) {
    for (int k = 1; k < b.levels; k++) {
        const gck_matrix_bank_level &level = b.level[k];
        const int64_t hop = *b.period / level.periods, at = *b.period % level.periods * N;
        const float *future = level.future + (((hop + 1) % 2) * b.outputs + output) * level.hop + at;
#pragma unroll
        for (int j = 0; j < 16; j++)
            v[j].y += future[t + j * layout<N>::threads];
    }
}

/* The results of the outputs that are due, one per group of threads. */
template <int N> __global__ void __launch_bounds__(layout<N>::block, 1) inverse(const gck_matrix_bank b, int number) {
    extern __shared__ float2 shared[];
    const gck_matrix_bank_level &level = b.level[number];
    const int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    const due d = due_in(b, number);
    const int index = (blockIdx.x * layout<N>::groups + group) * level.periods + d.phase;
    if (d.blocks == 0 || (layout<N>::groups == 1 && index >= b.outputs)) /* the same for all threads */
        return;
    const bool active = index < b.outputs;
    const int output = min(index, b.outputs - 1);
    float2 v[16];
    load_sums<N>(v, level, output, t);
    fft_radix16_inverse<N>(v, shared + group * fft_radix16<N>::shared, t, level.table);
    twist<N, true>(v, t);
    if (is_first<N>(number))
        add_future<N>(v, b, output, t);
    float *to = is_first<N>(number) ? b.out + (int64_t)output * N
                                    : level.future + (d.blocks % 2 * b.outputs + output) * (int64_t)N;
    if (active) {
#pragma unroll
        for (int j = 0; j < 16; j++)
            to[t + j * layout<N>::threads] = v[j].y;
    }
}

template <int N> cudaError_t run_level(const gck_matrix_bank *b, int number, cudaStream_t stream) {
    typedef layout<N> l;
    const gck_matrix_bank_level *level = &b->level[number];
    cudaError_t err = allow_shared(forward<N>, l::bytes);
    err = err ? err : allow_shared(inverse<N>, l::bytes);
    if (err)
        return err;
    const int due = (b->outputs + level->periods - 1) / level->periods, lanes = N / 2 < LANES_MAX ? N / 2 : LANES_MAX;
    forward<N><<<l::blocks(b->inputs), l::block, l::bytes, stream>>>(*b, number);
    products<<<dim3(N / 2 / lanes * level->splits, due), THREADS, 0, stream>>>(*b, number, lanes);
    inverse<N><<<l::blocks(due), l::block, l::bytes, stream>>>(*b, number);
    return cudaGetLastError();
}

cudaError_t run(const gck_matrix_bank *bank, int number, cudaStream_t stream) {
    switch (bank->level[number].hop) {
    case 32:
        return run_level<32>(bank, number, stream);
    case 64:
        return run_level<64>(bank, number, stream);
    case 128:
        return run_level<128>(bank, number, stream);
    case 256:
        return run_level<256>(bank, number, stream);
    case 512:
        return run_level<512>(bank, number, stream);
    case 1024:
        return run_level<1024>(bank, number, stream);
    case 2048:
        return run_level<2048>(bank, number, stream);
    case 4096:
        return run_level<4096>(bank, number, stream);
    case 8192:
        return run_level<8192>(bank, number, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

} // namespace

cudaError_t gck_matrix_bank_first_level(const gck_matrix_bank *bank, cudaStream_t stream) {
    return run(bank, 0, stream);
}

cudaError_t gck_matrix_bank_next_level(const gck_matrix_bank *bank, int number, cudaStream_t stream) {
    return run(bank, number, stream);
}
