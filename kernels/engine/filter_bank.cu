/*
 * Many channels in real time, each through its own response: one period of all of them is a few launches.
 *
 * A response is cut into levels of growing partitions: hop B, the period, from its first tap on, then hops H that are
 * multiples of B, each from tap H on (Gardner, Efficient Convolution without Input-Output Delay, JAES 43(3), 1995). The
 * first level is what a period waits for. A further one, whose block of H inputs ends at time E, gives outputs E .. E +
 * H, which nobody needs before the next period: it is done behind the copy that takes the results away. Channels take
 * turns, channel c having its blocks end c periods early, so that every period does the same work.
 *
 *      ring      the last inputs of a channel, two hops of the longest level
 *      delay     spectra of its last blocks, one for each partition
 *      future    what a level has to say of the next H frames; the first level adds its slice
 *
 * A window of 2 H real places is a complex polynomial of H modulo x^H - i (right-angle convolution: Nussbaumer, Fast
 * Fourier Transform and Convolution Algorithms, 1982, section 5.3), turned by the roots z^n, z^H = i, into one modulo
 * x^H
 * - 1; of the product the imaginary part is what overlap-save keeps.
 */
#include "transform.cuh"

namespace {

/* v[j], place t + j N / 16, times e^(i pi n / 2 N), or its conjugate. */
template <int N, bool Back> __device__ __forceinline__ void turn(float2 *v, int t) {
    float2 base;
    sincospif((float)t * (0.5f / N), &base.y, &base.x);
#pragma unroll
    for (int j = 0; j < 16; j++) {
        float2 step; /* e^(i pi j / 32): known when this is compiled */
        step.x = cosf(0.09817477042468103f * (float)j);
        step.y = sinf(0.09817477042468103f * (float)j);
        float2 w = mul(base, step);
        v[j] = Back ? mul_conj(v[j], w) : mul(v[j], w);
    }
}

/* v = v h[0] + sum over p > 0 of x[slot - p] h[p], slots going round; both lie as registers do. */
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
            float4 a = __ldg(from + j * fft<N>::threads), b = __ldg(by + j * fft<N>::threads);
            v[2 * j] = mul_add(make_float2(a.x, a.y), make_float2(b.x, b.y), v[2 * j]);
            v[2 * j + 1] = mul_add(make_float2(a.z, a.w), make_float2(b.z, b.w), v[2 * j + 1]);
        }
    }
}

template <int N>
__global__ void __launch_bounds__(layout<N>::block)
    spectra_of(const float *__restrict__ taps, int channels, int64_t count, int64_t offset, int partitions,
               const float2 *__restrict__ table, float2 *spectra) {
    extern __shared__ float2 shared[];
    const int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    const int64_t pieces = (int64_t)channels * partitions, wanted = (int64_t)blockIdx.x * layout<N>::groups + group;
    const int64_t piece = wanted < pieces ? wanted : pieces - 1;
    const int64_t first = offset + piece % partitions * N;
    const float *from = taps + piece / partitions * count;
    float2 v[16];
#pragma unroll
    for (int j = 0; j < 16; j++) {
        int64_t k = first + t + j * layout<N>::threads;
        v[j] = make_float2(k < count ? from[k] * (1.0f / N) : 0.0f, 0.0f);
    }
    turn<N, false>(v, t);
    fft_forward<N>(v, shared + group * fft<N>::shared, t, table);
    if (wanted < pieces)
        store_spectrum<N>(v, spectra + piece * N, t);
}

/* The period's own level, and the slices of all others. */
template <int N> __global__ void __launch_bounds__(layout<N>::block) first_level(const gck_bank b) {
    extern __shared__ float2 shared[];
    const int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    const int wanted = blockIdx.x * layout<N>::groups + group, c = min(wanted, b.channels - 1);
    const bool mine = wanted < b.channels;
    const int64_t tick = *b.tick;
    const int mask = (int)b.room - 1, now = (int)(tick * N) & mask, before = (int)(tick * N - N) & mask;
    const gck_bank_level level = b.level[0];
    float *ring = b.ring + c * b.room;
    const float *in = b.in + (int64_t)c * N;
    float2 v[16];
#pragma unroll
    for (int j = 0; j < 16; j++) {
        int n = t + j * layout<N>::threads;
        v[j] = make_float2(ring[before + n], in[n]);
    }
    if (mine) {
#pragma unroll
        for (int j = 0; j < 16; j++)
            ring[now + t + j * layout<N>::threads] = v[j].y;
    }
    turn<N, false>(v, t);
    fft_forward<N>(v, shared + group * fft<N>::shared, t, level.table);
    const int slot = (int)(tick % level.partitions);
    float2 *x = level.delay + (int64_t)c * level.partitions * N;
    if (mine)
        store_spectrum<N>(v, x + (int64_t)slot * N, t);
    sum_partitions<N>(v, x, level.spectra + (int64_t)c * level.partitions * N, level.partitions, slot, t);
    fft_inverse<N>(v, shared + group * fft<N>::shared, t, level.table);
    turn<N, true>(v, t);
    for (int k = 1; k < b.levels; k++) {
        const int turns = b.level[k].periods, q = (int)((tick + c % turns) % turns);
        const float *slice = b.level[k].future + (int64_t)c * turns * N + q * N;
#pragma unroll
        for (int j = 0; j < 16; j++)
            v[j].y += slice[t + j * layout<N>::threads];
    }
    if (mine) {
#pragma unroll
        for (int j = 0; j < 16; j++)
            b.out[(int64_t)c * N + t + j * layout<N>::threads] = v[j].y;
    }
}

/* A further level, of the channels whose block ends with this period. */
template <int N> __global__ void __launch_bounds__(layout<N>::block) next_level(const gck_bank b, int number) {
    extern __shared__ float2 shared[];
    const gck_bank_level level = b.level[number];
    const int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    const int64_t ended = *b.tick + 1;
    const int residue = (int)((level.periods - ended % level.periods) % level.periods);
    const int wanted = (blockIdx.x * layout<N>::groups + group) * level.periods + residue;
    if (layout<N>::groups == 1 && wanted >= b.channels)
        return;
    const bool mine = wanted < b.channels;
    const int c = min(wanted, b.channels - 1);
    const float *ring = b.ring + c * b.room;
    const int mask = (int)b.room - 1, begin = (int)(ended * b.block - 2 * N) & mask;
    float2 v[16];
#pragma unroll
    for (int j = 0; j < 16; j++) {
        int n = t + j * layout<N>::threads;
        v[j] = make_float2(ring[(begin + n) & mask], ring[(begin + N + n) & mask]);
    }
    turn<N, false>(v, t);
    fft_forward<N>(v, shared + group * fft<N>::shared, t, level.table);
    const int slot = (int)(((ended + c % level.periods) / level.periods) % level.partitions);
    float2 *x = level.delay + (int64_t)c * level.partitions * N;
    if (mine)
        store_spectrum<N>(v, x + (int64_t)slot * N, t);
    sum_partitions<N>(v, x, level.spectra + (int64_t)c * level.partitions * N, level.partitions, slot, t);
    fft_inverse<N>(v, shared + group * fft<N>::shared, t, level.table);
    turn<N, true>(v, t);
    if (mine) {
#pragma unroll
        for (int j = 0; j < 16; j++)
            level.future[(int64_t)c * N + t + j * layout<N>::threads] = v[j].y;
    }
}

__global__ void advance(int64_t *tick) {
    ++*tick;
}

template <int N>
cudaError_t make_spectra(const float *taps, int channels, int64_t count, int64_t offset, int partitions,
                         const float2 *table, float2 *spectra, cudaStream_t stream) {
    cudaError_t failed = allow_shared(spectra_of<N>, layout<N>::bytes);
    if (failed)
        return failed;
    int64_t pieces = (int64_t)channels * partitions;
    spectra_of<N><<<(unsigned)((pieces + layout<N>::groups - 1) / layout<N>::groups), layout<N>::block,
                    layout<N>::bytes, stream>>>(taps, channels, count, offset, partitions, table, spectra);
    return cudaGetLastError();
}

template <int N> cudaError_t run_first(const gck_bank *b, cudaStream_t stream) {
    first_level<N>
        <<<(b->channels + layout<N>::groups - 1) / layout<N>::groups, layout<N>::block, layout<N>::bytes, stream>>>(*b);
    return cudaGetLastError();
}

template <int N> cudaError_t run_next(const gck_bank *b, int number, cudaStream_t stream) {
    cudaError_t failed = allow_shared(next_level<N>, layout<N>::bytes);
    if (failed)
        return failed;
    int due = (b->channels + b->level[number].periods - 1) / b->level[number].periods;
    next_level<N>
        <<<(due + layout<N>::groups - 1) / layout<N>::groups, layout<N>::block, layout<N>::bytes, stream>>>(*b, number);
    return cudaGetLastError();
}

} // namespace

#define FOR_HOP(hop, call)                                                                                             \
    switch (hop) {                                                                                                     \
    case 32:                                                                                                           \
        return call(32);                                                                                               \
    case 64:                                                                                                           \
        return call(64);                                                                                               \
    case 128:                                                                                                          \
        return call(128);                                                                                              \
    case 256:                                                                                                          \
        return call(256);                                                                                              \
    default:                                                                                                           \
        GCK_FOR_POINTS(hop, call)                                                                                      \
    }

cudaError_t gck_bank_spectra(int64_t hop, const float *taps, int channels, int64_t count, int64_t offset,
                             int partitions, const float2 *table, float2 *spectra, cudaStream_t stream){
#define SPECTRA(n) make_spectra<n>(taps, channels, count, offset, partitions, table, spectra, stream)
    FOR_HOP(hop, SPECTRA)}

cudaError_t gck_bank_first(const gck_bank *bank, cudaStream_t stream) {
#define FIRST(n) run_first<n>(bank, stream)
    switch (bank->block) {
    case 32:
        return FIRST(32);
    case 64:
        return FIRST(64);
    case 128:
        return FIRST(128);
    case 256:
        return FIRST(256);
    case 512:
        return FIRST(512);
    case 1024:
        return FIRST(1024);
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t gck_bank_next(const gck_bank *bank, int number, cudaStream_t stream){
#define NEXT(n) run_next<n>(bank, number, stream)
    FOR_HOP(bank->level[number].hop, NEXT)}

cudaError_t gck_bank_advance(int64_t *tick, cudaStream_t stream) {
    advance<<<1, 1, 0, stream>>>(tick);
    return cudaGetLastError();
}
