/*
 * Banks in real time: one block of every channel in each period. Every output is a sum of inputs, each through its own
 * response:
 *
 *      y_o[n] = sum over the routes r of output o, and over k, of  h_r[k] x_r[n - k]
 *
 * A response is cut into levels of growing partitions: hop B, the period, from its first tap on, then hops H that are
 * multiples of B (Gardner, Efficient Convolution without Input-Output Delay, JAES 43(3), 1995). A period waits only for
 * the first level. The further levels run after the copy of the results to the host has been queued; they compute
 * outputs that are needed from the next period on. A block of a level goes through three steps:
 *
 *      forward     inputs: the last two hops -> a spectrum in the delay line
 *      sums        outputs: sum over routes and partitions of spectra x responses
 *      inverse     outputs: transform back
 *
 * In a diagonal bank, whose channels have a response each, one kernel does all three, with the sums in registers. A
 * further level begins at tap H: the block that ends at time E gives the outputs E .. E + H. The blocks of channel c
 * end c periods early, so that every period has the same amount of work.
 *
 * In a matrix each step is a kernel. All blocks of a level end at the same time E, and the level begins at tap 2 H: the
 * outputs E + H .. E + 2 H are computed during the H frames before they are needed, in each period those of one part of
 * the outputs (P = H / B periods), so that every period has the same amount of work here, too:
 *
 *      time       E          E + B           E + 2 B               E + H                      E + 2 H
 *      computed   | out 0, P | out P - 1, .. | ...                 |
 *      needed                                                      |   all of these outputs   |
 *
 *      ring      the last inputs of a channel, two hops of the longest level
 *      delay     spectra of its last blocks, one per partition
 *      future    contribution of a level to the next outputs, which the first level adds: H in a diagonal bank, two
 *                buffers of H that alternate in a matrix
 *
 * A window of 2 H real samples is a complex polynomial of H points modulo x^H - i (right-angle convolution: Nussbaumer,
 * Fast Fourier Transform and Convolution Algorithms, 1982, section 5.3). Multiplying index n by z^n with z^H = i (the
 * twist) makes it a polynomial modulo x^H - 1; the imaginary part of the product is the part that overlap-save keeps.
 *
 * Memory: adjacent threads read adjacent samples; spectra are stored in the order of the registers (transform.cuh). The
 * spectra of the responses are read once for each block, 8 bytes for each tap; in a matrix the spectra of inputs come
 * from the second-level cache. Contracts of the launchers: bank.h.
 */
#include "kernels/engine/partition_sums.cuh"
#include "kernels/engine/transform.cuh"

namespace {

/* The steps of a level that a kernel does. */
enum steps { ALL, FORWARD, INVERSE };

/* Threads of a block of `products`: lanes of two bins each, times groups of routes. */
enum { THREADS = 256, LANES_MAX = 64 };

/* ---- Channels and blocks of a period ----------------------------------------------------------------------------- */

/* The blocks of a level that have ended, and the channels residue, residue + periods, ... that this period computes: in
 * a diagonal bank the channels whose block ends with it. blocks: number of ended blocks, of these channels or, in a
 * matrix, of all inputs. */
struct due {
    int64_t blocks;
    int residue;
};

/* Returns n / periods, a power of two. */
__device__ __forceinline__ int64_t hops(int64_t n, int periods) {
    return n >> (__ffs(periods) - 1);
}

template <steps Steps> __device__ __forceinline__ due due_in(const gck_bank &b, int periods) {
    const int64_t ended = *b.period + 1;
    const int residue = (int)(-ended & (periods - 1));
    return {hops(Steps == ALL ? ended + residue : ended, periods), residue};
}

/* Returns the outputs that the block with this number gives in a further level. */
template <steps Steps>
__device__ __forceinline__ float *future_of(const gck_bank &b, const gck_bank_level &level, int output,
                                            int64_t blocks) {
    const int64_t buffer = Steps == ALL ? 0 : blocks & 1;
    return level.future + (buffer * b.outputs + output) * level.hop;
}

/* Adds what the further levels have computed for the current period. */
template <int N, steps Steps> __device__ __forceinline__ void add_future(float2 *v, const gck_bank &b, int c, int t) {
    for (int k = 1; k < b.levels; k++) {
        const gck_bank_level &level = b.level[k];
        const int64_t period = *b.period + (Steps == ALL ? c & (level.periods - 1) : 0);
        const float *future = future_of<Steps>(b, level, c, hops(period, level.periods) + 1);
        future += (period & (level.periods - 1)) * N;
#pragma unroll
        for (int j = 0; j < 16; j++)
            v[j].y += future[t + j * layout<N>::threads];
    }
}

/* ---- Transforms -------------------------------------------------------------------------------------------------- */

/* Loads the last two hops of an input; in the first level the newest one from `in`, and stores it in the ring. */
template <int N>
__device__ __forceinline__ void load_window(float2 *v, const gck_bank &b, bool is_first, int c, bool active, int t) {
    const int mask = (int)b.ring_frames - 1, begin = (int)((*b.period + 1) * b.block - 2 * N) & mask;
    float *ring = b.ring + c * b.ring_frames;
    const float *newest = is_first ? b.in + (int64_t)c * N : ring;
    const int at = is_first ? 0 : begin + N;
#pragma unroll
    for (int j = 0; j < 16; j++) {
        int n = t + j * layout<N>::threads;
        v[j] = make_float2(ring[(begin + n) & mask], newest[(at + n) & mask]);
    }
    if (is_first && active) {
#pragma unroll
        for (int j = 0; j < 16; j++)
            ring[(begin + N + t + j * layout<N>::threads) & mask] = v[j].y;
    }
}

/* Computes v = v h[0] + sum over p > 0 of x[slot - p] h[p], where x is a ring of `partitions` spectra. */
template <int N>
__device__ __forceinline__ void sum_partitions(float2 *v, const float2 *__restrict__ x, const float2 *__restrict__ h,
                                               int partitions, int slot, int t) {
    float2 w[16];
    load_spectrum<N>(w, h, t);
#pragma unroll
    for (int j = 0; j < 16; j++)
        v[j] = mul(v[j], w[j]);
    for (int p = 1; p < partitions; p++) {
        slot = slot == 0 ? partitions - 1 : slot - 1;
        const float4 *from = (const float4 *)(x + slot * N) + t, *by = (const float4 *)(h + p * N) + t;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float4 a = __ldg(from + j * fft_radix16<N>::threads), b = __ldg(by + j * fft_radix16<N>::threads);
            v[2 * j] = mul_add(make_float2(a.x, a.y), make_float2(b.x, b.y), v[2 * j]);
            v[2 * j + 1] = mul_add(make_float2(a.z, a.w), make_float2(b.z, b.w), v[2 * j + 1]);
        }
    }
}

/* Loads the sum of the parts of an output. */
template <int N> __device__ __forceinline__ void load_sums(float2 *v, const gck_bank_level &level, int output, int t) {
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

/* Resident blocks per multiprocessor to compile `transforms` for, 0: the compiler's choice. With 1024 points on
 * compute capability 12.0 it would choose four, for which the registers do not suffice. */
constexpr int resident(int points, steps s) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
    if (s == ALL && points == 1024)
        return 3;
#endif
    (void)points;
    return s == ALL ? 0 : 1;
}

/* Steps of a level for the channels `first` .. `end` - 1 that are due, one per group of threads. */
template <int N, steps Steps>
__global__ void __launch_bounds__(layout<N>::block, resident(N, Steps))
    transforms(const gck_bank b, int number, int first, int end) {
    extern __shared__ float2 shared[];
    /* A copy: with a reference the compiler limits the registers to 128 on compute capability 9.0. Of 512 threads each
     * has no more; behind the sums these read the level again, because pointers that are kept spill on 7.5 and 8.0. */
    const bool is_first = N <= GCK_BANK_BLOCK_MAX && number == 0;
    const gck_bank_level level = b.level[number], &again = layout<N>::block < 512 ? level : b.level[number];
    const int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    const due d = due_in<Steps>(b, level.periods);
    const int channel = blockIdx.x * layout<N>::groups + group;
    const int index = Steps == FORWARD || is_first ? first + channel : channel * level.periods + d.residue;
    /* The condition is uniform across a block: */
    if ((Steps == FORWARD && d.residue != 0) || d.blocks == 0 || (layout<N>::groups == 1 && index >= end))
        return;
    const bool active = layout<N>::groups == 1 || index < end;
    const int c = active ? index : end - 1;
    float2 *own = shared + group * fft_radix16<N>::shared, v[16];
    if (Steps == INVERSE) {
        load_sums<N>(v, level, c, t);
    } else {
        load_window<N>(v, b, is_first, c, active, t);
        twist<N, false>(v, t);
        fft_radix16_forward<N>(v, own, t, level.table);
        const int64_t spectra = (int64_t)c * level.partitions * N;
        const int slot = (int)((d.blocks - 1) % level.partitions);
        if (active)
            store_spectrum<N>(v, level.delay + spectra + (int64_t)slot * N, t);
        if (Steps == FORWARD)
            return;
        sum_partitions<N>(v, level.delay + spectra, level.spectra + spectra, level.partitions, slot, t);
    }
    fft_radix16_inverse<N>(v, own, t, again.table);
    twist<N, true>(v, t);
    if (is_first)
        add_future<N, Steps>(v, b, c, t);
    float *to = is_first       ? b.out + (int64_t)c * N
                : Steps == ALL ? again.future + (int64_t)c * N
                               : future_of<Steps>(b, again, c, d.blocks);
    if (active) {
#pragma unroll
        for (int j = 0; j < 16; j++)
            to[t + j * layout<N>::threads] = v[j].y;
    }
}

/* ---- Sums of a matrix -------------------------------------------------------------------------------------------- */

/* Adds the products of one route to `sum`. x, h: this lane's bins of partition 0; stride: from one partition to the
 * next; slot: of the newest block. */
__device__ __forceinline__ float4 add_route(float4 sum, const float4 *x, const float4 *h, int partitions,
                                            int64_t stride, int slot) {
#pragma unroll 4
    for (int p = 0; p < partitions; p++) {
        const int s = slot - p + (slot < p ? partitions : 0);
        sum = mul_add(x[s * stride], __ldg(h + p * stride), sum);
    }
    return sum;
}

/* block.x: bins x splits; block.y: one of the outputs that are due. */
__global__ void __launch_bounds__(THREADS) products(const gck_bank b, int number, int lanes) {
    __shared__ float4 shared[THREADS];
    const gck_bank_level &level = b.level[number];
    const due d = due_in<INVERSE>(b, level.periods);
    const int output = (int)blockIdx.y * level.periods + d.residue;
    if (output >= b.outputs || d.blocks == 0)
        return;
    const int64_t stride = level.hop / 2;
    const int lane = threadIdx.x % lanes, group = threadIdx.x / lanes, groups = THREADS / lanes;
    const int split = blockIdx.x % level.splits;
    const int64_t bin = (int64_t)(blockIdx.x / level.splits) * lanes + lane;
    const int slot = (int)((d.blocks - 1) % level.partitions);
    const float4 *spectra = (const float4 *)level.spectra + bin, *delay = (const float4 *)level.delay + bin;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int r = b.row[output] + split * groups + group; r < b.row[output + 1]; r += groups * level.splits)
        sum = add_route(sum, delay + b.input[r] * level.partitions * stride,
                        spectra + (int64_t)r * level.partitions * stride, level.partitions, stride, slot);
    sum = add_groups(sum, shared, lanes, groups, group, lane);
    if (group > 0)
        return;
    ((float4 *)level.sums)[((int64_t)output * level.splits + split) * stride + bin] = sum;
}

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

__global__ void advance(int64_t *period) {
    ++*period;
}

template <int N>
cudaError_t run_spectra(const gck_bank_level &level, const gck_responses &responses, float2 *spectra,
                        cudaStream_t stream) {
    return launch_partition_spectra<N, true>(responses, level.first_tap, level.partitions, level.table, spectra,
                                             stream);
}

/* Computes steps of a level for the channels that are due: one of `periods`. */
template <int N, steps Steps>
cudaError_t run_transforms(const gck_bank *b, int number, int first, int count, int periods, cudaStream_t stream) {
    typedef layout<N> l;
    cudaError_t err = allow_shared(transforms<N, Steps>, l::bytes);
    if (err)
        return err;
    const unsigned blocks = l::blocks((count + periods - 1) / periods);
    transforms<N, Steps><<<blocks, l::block, l::bytes, stream>>>(*b, number, first, first + count);
    return cudaGetLastError();
}

template <int N> cudaError_t run_level(const gck_bank *b, int number, int first, int count, cudaStream_t stream) {
    const gck_bank_level *level = &b->level[number];
    if (b->diagonal)
        return run_transforms<N, ALL>(b, number, first, count, level->periods, stream);
    cudaError_t err = run_transforms<N, FORWARD>(b, number, 0, b->inputs, 1, stream);
    if (err)
        return err;
    const int due = (b->outputs + level->periods - 1) / level->periods, lanes = N / 2 < LANES_MAX ? N / 2 : LANES_MAX;
    products<<<dim3(N / 2 / lanes * level->splits, due), THREADS, 0, stream>>>(*b, number, lanes);
    err = cudaGetLastError();
    return err ? err : run_transforms<N, INVERSE>(b, number, 0, b->outputs, level->periods, stream);
}

/* The kernels by hop. */
const struct row {
    int64_t points, shared_bytes;
    cudaError_t (*spectra)(const gck_bank_level &level, const gck_responses &responses, float2 *spectra,
                           cudaStream_t stream);
    cudaError_t (*level)(const gck_bank *bank, int number, int first, int count, cudaStream_t stream);
} rows[] = {
    {32, layout<32>::bytes, run_spectra<32>, run_level<32>},
    {64, layout<64>::bytes, run_spectra<64>, run_level<64>},
    {128, layout<128>::bytes, run_spectra<128>, run_level<128>},
    {256, layout<256>::bytes, run_spectra<256>, run_level<256>},
    {512, layout<512>::bytes, run_spectra<512>, run_level<512>},
    {1024, layout<1024>::bytes, run_spectra<1024>, run_level<1024>},
    {2048, layout<2048>::bytes, run_spectra<2048>, run_level<2048>},
    {4096, layout<4096>::bytes, run_spectra<4096>, run_level<4096>},
    {8192, layout<8192>::bytes, run_spectra<8192>, run_level<8192>},
};

} // namespace

int64_t gck_bank_longest_hop(int64_t bytes) {
    int64_t hop = 0;
    for (const row &r : rows)
        hop = r.shared_bytes <= bytes ? r.points : hop;
    return hop;
}

void gck_bank_twiddles(int64_t hop, float2 *table) {
    write_roots(hop, table);
}

cudaError_t gck_bank_spectra(const gck_bank_level *level, const gck_responses *responses, int64_t first,
                             cudaStream_t stream) {
    const row *r = find_points(rows, level->hop);
    float2 *spectra = level->spectra + first * level->partitions * level->hop;
    return r ? r->spectra(*level, *responses, spectra, stream) : cudaErrorInvalidValue;
}

cudaError_t gck_bank_run(const gck_bank *bank, int number, int first, int count, cudaStream_t stream) {
    const row *r = find_points(rows, bank->level[number].hop);
    return r ? r->level(bank, number, first, count, stream) : cudaErrorInvalidValue;
}

cudaError_t gck_bank_advance(const gck_bank *bank, cudaStream_t stream) {
    advance<<<1, 1, 0, stream>>>(bank->period);
    return cudaGetLastError();
}
