/*
 * Filter bank: many channels in real time, each with its own response. One period of all channels is a few launches.
 *
 *      y_c[n] = sum over k of h_c[k] x_c[n - k]
 *
 * A response is cut into levels of growing partitions: hop B, the period, from its first tap on, then hops H that are
 * multiples of B, each from tap H on (Gardner, Efficient Convolution without Input-Output Delay, JAES 43(3), 1995). A
 * period waits only for the first level. A further level, whose block of H inputs ends at time E, computes the outputs
 * E .. E + H, which are needed from the next period on: it runs after the copy of the results to the host has been
 * queued. The blocks of channel c end c periods early, so that every period has the same amount of work.
 *
 *      ring      the last inputs of a channel, two hops of the longest level
 *      delay     spectra of its last blocks, one per partition
 *      future    contribution of a level to the next H outputs; the first level adds the part of its period
 *
 * A window of 2 H real samples is a complex polynomial of H points modulo x^H - i (right-angle convolution: Nussbaumer,
 * Fast Fourier Transform and Convolution Algorithms, 1982, section 5.3). Multiplying index n by z^n with z^H = i (the
 * twist) makes it a polynomial modulo x^H - 1; the imaginary part of the product is the part that overlap-save keeps.
 *
 * Memory: adjacent threads read adjacent samples; spectra are stored in the order of the registers (transform.cuh).
 * Contracts of the launchers: kernels.h. Call the first level, then the further ones, then gck_filter_bank_advance.
 */
#include "bank.cuh"

namespace {

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

/* Spectra of partitions, one per group of threads: partition p of a channel begins at tap offset + p N. */
template <int N>
__global__ void __launch_bounds__(layout<N>::block)
    spectra_of(const float *__restrict__ taps, int channels, int64_t count, int64_t offset, int partitions,
               const float2 *__restrict__ table, float2 *spectra) {
    extern __shared__ float2 shared[];
    const int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    const int64_t spectra_count = (int64_t)channels * partitions,
                  index = (int64_t)blockIdx.x * layout<N>::groups + group;
    const int64_t spectrum = index < spectra_count ? index : spectra_count - 1;
    const int64_t first = offset + spectrum % partitions * N;
    const float *from = taps + spectrum / partitions * count;
    float2 v[16];
#pragma unroll
    for (int j = 0; j < 16; j++) {
        int64_t k = first + t + j * layout<N>::threads;
        v[j] = make_float2(k < count ? from[k] * (1.0f / N) : 0.0f, 0.0f);
    }
    twist<N, false>(v, t);
    fft_radix16_forward<N>(v, shared + group * fft_radix16<N>::shared, t, table);
    if (index < spectra_count)
        store_spectrum<N>(v, spectra + spectrum * N, t);
}

/* The first level of channels `first` .. `end` - 1, one per group of threads, and the sum with the other levels' parts
 * of the period. */
template <int N>
__global__ void __launch_bounds__(layout<N>::block) first_level(const gck_filter_bank b, int first, int end) {
    extern __shared__ float2 shared[];
    const int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    const int index = first + blockIdx.x * layout<N>::groups + group, c = min(index, end - 1);
    const bool active = index < end;
    const int64_t period = *b.period;
    const int mask = (int)b.ring_frames - 1, now = (int)(period * N) & mask, previous = (int)(period * N - N) & mask;
    const gck_filter_bank_level level = b.level[0];
    float *ring = b.ring + c * b.ring_frames;
    const float *in = b.in + (int64_t)c * N;
    float2 v[16];
#pragma unroll
    for (int j = 0; j < 16; j++) {
        int n = t + j * layout<N>::threads;
        v[j] = make_float2(ring[previous + n], in[n]);
    }
    if (active) {
#pragma unroll
        for (int j = 0; j < 16; j++)
            ring[now + t + j * layout<N>::threads] = v[j].y;
    }
    twist<N, false>(v, t);
    fft_radix16_forward<N>(v, shared + group * fft_radix16<N>::shared, t, level.table);
    const int slot = (int)(period % level.partitions);
    float2 *x = level.delay + (int64_t)c * level.partitions * N;
    if (active)
        store_spectrum<N>(v, x + (int64_t)slot * N, t);
    sum_partitions<N>(v, x, level.spectra + (int64_t)c * level.partitions * N, level.partitions, slot, t);
    fft_radix16_inverse<N>(v, shared + group * fft_radix16<N>::shared, t, level.table);
    twist<N, true>(v, t);
    for (int k = 1; k < b.levels; k++) {
        const int periods = b.level[k].periods, q = (int)((period + c % periods) % periods);
        const float *future = b.level[k].future + (int64_t)c * periods * N + q * N;
#pragma unroll
        for (int j = 0; j < 16; j++)
            v[j].y += future[t + j * layout<N>::threads];
    }
    if (active) {
#pragma unroll
        for (int j = 0; j < 16; j++)
            b.out[(int64_t)c * N + t + j * layout<N>::threads] = v[j].y;
    }
}

/* Resident blocks per multiprocessor to compile next_level for, 0: the compiler's choice. With 1024 points on
 * compute capability 12.0 it would choose four, for which the registers do not suffice. */
constexpr int next_level_resident(int points) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
    return points == 1024 ? 3 : 0;
#else
    (void)points;
    return 0;
#endif
}

/* A further level of those channels whose block ends with this period, one per group of threads. */
template <int N>
__global__ void __launch_bounds__(layout<N>::block, next_level_resident(N))
    next_level(const gck_filter_bank b, int number) {
    extern __shared__ float2 shared[];
    const gck_filter_bank_level level = b.level[number];
    const int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    const int64_t ended = *b.period + 1;
    const int residue = (int)((level.periods - ended % level.periods) % level.periods);
    const int index = (blockIdx.x * layout<N>::groups + group) * level.periods + residue;
    if (layout<N>::groups == 1 && index >= b.channels)
        return;
    const bool active = index < b.channels;
    const int c = min(index, b.channels - 1);
    const float *ring = b.ring + c * b.ring_frames;
    const int mask = (int)b.ring_frames - 1, begin = (int)(ended * b.block - 2 * N) & mask;
    float2 v[16];
#pragma unroll
    for (int j = 0; j < 16; j++) {
        int n = t + j * layout<N>::threads;
        v[j] = make_float2(ring[(begin + n) & mask], ring[(begin + N + n) & mask]);
    }
    twist<N, false>(v, t);
    fft_radix16_forward<N>(v, shared + group * fft_radix16<N>::shared, t, level.table);
    const int slot = (int)(((ended + c % level.periods) / level.periods) % level.partitions);
    float2 *x = level.delay + (int64_t)c * level.partitions * N;
    if (active)
        store_spectrum<N>(v, x + (int64_t)slot * N, t);
    sum_partitions<N>(v, x, level.spectra + (int64_t)c * level.partitions * N, level.partitions, slot, t);
    fft_radix16_inverse<N>(v, shared + group * fft_radix16<N>::shared, t, level.table);
    twist<N, true>(v, t);
    if (active) {
#pragma unroll
        for (int j = 0; j < 16; j++)
            level.future[(int64_t)c * N + t + j * layout<N>::threads] = v[j].y;
    }
}

__global__ void advance(int64_t *period) {
    ++*period;
}

template <int N>
cudaError_t run_spectra(const gck_filter_bank_level *level, const gck_responses *responses, int64_t offset,
                        float2 *spectra, cudaStream_t stream) {
    typedef layout<N> l;
    cudaError_t err = allow_shared(spectra_of<N>, l::bytes);
    if (err)
        return err;
    unsigned blocks = l::blocks((int64_t)responses->planes * level->partitions);
    spectra_of<N><<<blocks, l::block, l::bytes, stream>>>(responses->taps, responses->planes, responses->taps_count,
                                                          offset, level->partitions, level->table, spectra);
    return cudaGetLastError();
}

template <int N> cudaError_t run_first(const gck_filter_bank *b, int first, int count, cudaStream_t stream) {
    typedef layout<N> l;
    first_level<N><<<l::blocks(count), l::block, l::bytes, stream>>>(*b, first, first + count);
    return cudaGetLastError();
}

template <int N> cudaError_t run_next(const gck_filter_bank *b, int number, cudaStream_t stream) {
    typedef layout<N> l;
    cudaError_t err = allow_shared(next_level<N>, l::bytes);
    if (err)
        return err;
    int due = (b->channels + b->level[number].periods - 1) / b->level[number].periods;
    next_level<N><<<l::blocks(due), l::block, l::bytes, stream>>>(*b, number);
    return cudaGetLastError();
}

/* The kernels by hop; `first` is NULL where the hop is longer than the longest block. */
const struct row {
    int64_t hop, shared_bytes;
    cudaError_t (*spectra)(const gck_filter_bank_level *level, const gck_responses *responses, int64_t offset,
                           float2 *spectra, cudaStream_t stream);
    cudaError_t (*first)(const gck_filter_bank *bank, int first, int count, cudaStream_t stream);
    cudaError_t (*next)(const gck_filter_bank *bank, int number, cudaStream_t stream);
} rows[] = {
    {32, layout<32>::bytes, run_spectra<32>, run_first<32>, run_next<32>},
    {64, layout<64>::bytes, run_spectra<64>, run_first<64>, run_next<64>},
    {128, layout<128>::bytes, run_spectra<128>, run_first<128>, run_next<128>},
    {256, layout<256>::bytes, run_spectra<256>, run_first<256>, run_next<256>},
    {512, layout<512>::bytes, run_spectra<512>, run_first<512>, run_next<512>},
    {1024, layout<1024>::bytes, run_spectra<1024>, run_first<1024>, run_next<1024>},
    {2048, layout<2048>::bytes, run_spectra<2048>, NULL, run_next<2048>},
    {4096, layout<4096>::bytes, run_spectra<4096>, NULL, run_next<4096>},
    {8192, layout<8192>::bytes, run_spectra<8192>, NULL, run_next<8192>},
};

const row *find_row(int64_t hop) {
    for (const row &r : rows)
        if (r.hop == hop)
            return &r;
    return NULL;
}

} // namespace

int64_t gck_filter_bank_shared_bytes(int64_t hop) {
    const row *r = find_row(hop);
    return r ? r->shared_bytes : 0;
}

cudaError_t gck_filter_bank_spectra(const gck_filter_bank_level *level, const gck_responses *responses, int64_t offset,
                                    float2 *spectra, cudaStream_t stream) {
    const row *r = find_row(level->hop);
    return r ? r->spectra(level, responses, offset, spectra, stream) : cudaErrorInvalidValue;
}

cudaError_t gck_filter_bank_first_level(const gck_filter_bank *bank, int first, int count, cudaStream_t stream) {
    const row *r = find_row(bank->block);
    return r && r->first ? r->first(bank, first, count, stream) : cudaErrorInvalidValue;
}

cudaError_t gck_filter_bank_next_level(const gck_filter_bank *bank, int number, cudaStream_t stream) {
    const row *r = find_row(bank->level[number].hop);
    return r ? r->next(bank, number, stream) : cudaErrorInvalidValue;
}

cudaError_t gck_filter_bank_advance(int64_t *period, cudaStream_t stream) {
    advance<<<1, 1, 0, stream>>>(period);
    return cudaGetLastError();
}
