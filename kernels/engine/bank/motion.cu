/*
 * Moving sources: over a hop, each channel goes over from one response to the next one at each receiver, and all
 * channels are added. What space/motion_render.c computes on the CPU:
 *
 *      x = the input, delayed by a time that goes in a straight line over the hop
 *      Y = sum over channels of  F(x (1 - i / hop)) H_now + F(x i / hop) H_next
 *      y = inverse transform of Y, hop + taps - 1 frames
 *
 * H is a blend: the sum of three measured spectra times their weights, scaled so that its energy is the mean of theirs.
 *
 *      sources    a group of points / 32 threads has eight channels and a receiver: delays, transforms, blends, and the
 *                 sum of the products in registers
 *      sums       adds the groups of channels, in slices
 *      frames     transforms the sums back, one for each hop and receiver
 *
 * Every sum has a fixed order, so that the result is the same every time.
 *
 * Points are real: two halves of a block are the real and imaginary parts of one complex transform (right-angle
 * convolution, bank.cu). Delays are filters of 64 taps, linear between those of the two nearest of 513 fractions; their
 * places are computed in double precision, as on the CPU, because a fraction of 1e-5 frames is -87 dB at the highest
 * frequencies.
 *
 * Memory: the table of filters has tap after tap. Neighbouring threads have neighbouring frames, whose fractions lie
 * near each other, so that they read the same or neighbouring entries, from the first-level cache. The spectra of the
 * measurements (22 MB for 2702 directions, two receivers and 1024 points) are read from the second-level cache, six for
 * each channel, receiver and hop. Contracts of the launchers: motion.h.
 */
#include "kernels/engine/partition_sums.cuh"
#include "kernels/engine/transform.cuh"

namespace {

enum { GROUP = GCK_MOTION_GROUP, SLICES = GCK_MOTION_SLICES, PHASES = GCK_MOTION_PHASES, TAPS = GCK_MOTION_TAPS };

/* Lanes of two bins each in a block of `sums`. */
enum { LANES = 32 };

/* Threads of a transform share a warp or are a block of their own, so that a barrier of either serves. */
template <int N> struct split {
    static const int threads = fft_radix16<N>::threads;
    static const int groups = threads <= 32 ? 128 / threads : 1;
    static const int block = threads * groups;
    static const bool one_warp = threads <= 32;
    static const int resident = 512 / block; /* blocks per multiprocessor that the registers are to suffice for */
};

template <int N> __device__ __forceinline__ void wait() {
    exchange_barrier<N>();
}

__host__ __device__ __forceinline__ int groups_of(const gck_motion &m) {
    return (m.channels + GROUP - 1) / GROUP;
}

/* ---- Delays ------------------------------------------------------------------------------------------------------ */

/* Returns the input at a place between its frames. */
__device__ __forceinline__ float read_at(const float *__restrict__ filters, const float *__restrict__ x, double place) {
    const double whole = floor(place), phase = (place - whole) * PHASES;
    const int below = (int)phase;
    const float *at = x + (int64_t)whole + 1 - TAPS / 2, *taps = filters + below;
    float first = 0.0f, second = 0.0f;
#pragma unroll 8
    for (int k = 0; k < TAPS; k++) {
        const float v = __ldg(at + k);
        first = fmaf(__ldg(taps + k * (PHASES + 1)), v, first);
        second = fmaf(__ldg(taps + k * (PHASES + 1) + 1), v, second);
    }
    return fmaf((float)(phase - below), second - first, first);
}

/* ---- Blends ------------------------------------------------------------------------------------------------------ */

__device__ __forceinline__ bool equal(const gck_blend &a, const gck_blend &b) {
    bool same = a.gain == b.gain;
#pragma unroll
    for (int k = 0; k < 3; k++)
        same = same && a.response[k] == b.response[k] && a.weight[k] == b.weight[k];
    return same;
}

/* A blend at a receiver: its spectra, of two bins for each float4. */
struct mixture {
    const float4 *spectra;
    int row[3];
    float weight[3];
};

__device__ __forceinline__ mixture mixture_of(const gck_motion &m, const gck_blend &b, int receiver) {
    mixture x;
    x.spectra = (const float4 *)m.spectra;
#pragma unroll
    for (int k = 0; k < 3; k++) {
        x.row[k] = (b.response[k] * m.receivers + receiver) * (int)(m.points / 4);
        x.weight[k] = b.weight[k];
    }
    return x;
}

__device__ __forceinline__ float4 mix(const mixture &m, int at) {
    const float4 x = m.spectra[m.row[0] + at], y = m.spectra[m.row[1] + at], z = m.spectra[m.row[2] + at];
    return make_float4(fmaf(m.weight[2], z.x, fmaf(m.weight[1], y.x, m.weight[0] * x.x)),
                       fmaf(m.weight[2], z.y, fmaf(m.weight[1], y.y, m.weight[0] * x.y)),
                       fmaf(m.weight[2], z.z, fmaf(m.weight[1], y.z, m.weight[0] * x.z)),
                       fmaf(m.weight[2], z.w, fmaf(m.weight[1], y.w, m.weight[0] * x.w)));
}

/* Computes the factors of blends from moment `first` on: one for each warp. */
__global__ void __launch_bounds__(128) scales(const gck_motion m, int first) {
    const int lane = threadIdx.x % 32, receiver = (int)blockIdx.y;
    const int64_t place = (int64_t)blockIdx.x * 4 + threadIdx.x / 32 + (int64_t)first * m.channels;
    if (place >= (m.hops + 1) * (int64_t)m.channels)
        return;
    const gck_blend b = m.blend[place];
    const mixture x = mixture_of(m, b, receiver);
    float energy = 0.0f, sum = 0.0f;
#pragma unroll 4
    for (int k = lane; k < (int)(m.points / 4); k += 32) {
        const float4 v = mix(x, k);
        sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
#pragma unroll
    for (int k = 16; k > 0; k /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, k);
#pragma unroll
    for (int k = 0; k < 3; k++)
        energy = fmaf(b.weight[k], m.energy[(int64_t)b.response[k] * m.receivers + receiver], energy);
    const float most = 4.0f; /* as on the CPU: a sum that nearly cancels is not raised to noise */
    if (lane == 0)
        m.scale[place * m.receivers + receiver] = b.weight[0] == 1.0f ? b.gain
                                                  : sum > 0.0f        ? fminf(sqrtf(energy / sum), most) * b.gain
                                                                      : 1.0f;
}

/* ---- Transforms -------------------------------------------------------------------------------------------------- */

/* A factor that begins with `first` and changes by `step` from frame to frame. */
struct fade {
    float first, step;
};

/* Transforms `frames` samples times a factor, and zeros behind them. */
template <int N>
__device__ __forceinline__ void transform(float2 *v, const float *x, int frames, fade by, float2 *own, int t,
                                          const float2 *table) {
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const int n = t + j * fft_radix16<N>::threads;
        v[j].x = n < frames ? x[n] * fmaf(by.step, (float)n, by.first) : 0.0f;
        v[j].y = n + N < frames ? x[n + N] * fmaf(by.step, (float)(n + N), by.first) : 0.0f;
    }
    twist<N, false>(v, t);
    fft_radix16_forward<N>(v, own, t, table);
}

/* Spectra of responses, one for each group of threads, scaled by 1 / N. */
template <int N>
__global__ void __launch_bounds__(split<N>::block)
    responses(const gck_motion m, const float *__restrict__ taps, int64_t first, int64_t count) {
    extern __shared__ float2 shared[];
    const int group = threadIdx.x / split<N>::threads, t = threadIdx.x % split<N>::threads;
    const int64_t index = (int64_t)blockIdx.x * split<N>::groups + group, row = index < count ? index : count - 1;
    float2 v[16];
    transform<N>(v, taps + row * m.taps, (int)m.taps, {1.0f / N, 0.0f}, shared + group * fft_radix16<N>::shared, t,
                 m.table);
    if (index < count)
        store_spectrum<N>(v, m.spectra + (first + index) * N, t);
}

/* block.x: groups of channels x receivers; block.y: hops. */
template <int N> __global__ void __launch_bounds__(split<N>::block, split<N>::resident) sources(const gck_motion m) {
    extern __shared__ float2 shared[];
    typedef split<N> s;
    const int group = threadIdx.x / s::threads, t = threadIdx.x % s::threads, hop = (int)m.hop;
    const int count = groups_of(m) * m.receivers, index = (int)blockIdx.x * s::groups + group;
    const int place = min(index, count - 1), receiver = place % m.receivers, first = place / m.receivers * GROUP;
    float2 *own = shared + group * fft_radix16<N>::shared, *sums = shared + s::groups * fft_radix16<N>::shared, v[16];
    float4 *sum = (float4 *)(sums + group * N) + t;
    float *x = (float *)(sums + s::groups * N) + group * hop;
#pragma unroll
    for (int j = 0; j < 8; j++)
        sum[j * s::threads] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 1
    for (int i = 0; i < GROUP; i++) {
        const int channel = min(first + i, m.channels - 1);
        const int64_t now = (int64_t)blockIdx.y * m.channels + channel, next = now + m.channels;
        /* Half a filter late, because it reaches so far ahead. */
        const float *from = m.input + channel * m.width + m.begin + blockIdx.y * m.hop - TAPS / 2;
        const double delay = m.delay[now * m.receivers + receiver];
        const double step = (m.delay[next * m.receivers + receiver] - delay) / (double)hop;
        wait<N>();
#pragma unroll 1
        for (int n = t; n < hop; n += s::threads)
            x[n] = read_at(m.filters, from, (double)n - (delay + step * (double)n));
        const bool same = equal(m.blend[now], m.blend[next]), one = s::one_warp ? __all_sync(0xffffffffu, same) : same;
#pragma unroll 1
        for (int side = 0; side < (one ? 1 : 2); side++) {
            const int64_t at = side ? next : now;
            const float scale = first + i < m.channels ? m.scale[at * m.receivers + receiver] : 0.0f;
            const mixture blend = mixture_of(m, m.blend[at], receiver);
            wait<N>();
            const fade by = {side ? 0.0f : scale, one ? 0.0f : (side ? scale : -scale) / (float)hop};
            transform<N>(v, x, hop, by, own, t, m.table);
            wait<N>();
            float4 *signal = (float4 *)own + t; /* not in registers, of which the loads of the products need many */
#pragma unroll
            for (int j = 0; j < 8; j++)
                signal[j * s::threads] = make_float4(v[2 * j].x, v[2 * j].y, v[2 * j + 1].x, v[2 * j + 1].y);
#pragma unroll 2
            for (int j = 0; j < 8 * s::threads; j += s::threads)
                sum[j] = mul_add(signal[j], mix(blend, t + j), sum[j]);
        }
    }
    if (index >= count)
        return;
    float4 *to = (float4 *)(m.sums + ((int64_t)blockIdx.y * count + index) * N) + t;
#pragma unroll
    for (int j = 0; j < 8; j++)
        to[j * s::threads] = sum[j * s::threads];
}

/* Adds the groups of channels into the first one. block.x: LANES x two bins; block.y: receivers; block.z: hops. */
__global__ void __launch_bounds__(LANES *SLICES) sums(const gck_motion m) {
    __shared__ float4 shared[LANES * SLICES];
    const int lane = threadIdx.x % LANES, slice = threadIdx.x / LANES, groups = groups_of(m);
    const int64_t pitch = m.points / 4; /* of two bins each */
    float4 *row = (float4 *)m.sums + ((int64_t)blockIdx.z * groups * m.receivers + blockIdx.y) * pitch +
                  blockIdx.x * LANES + lane;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
    for (int g = slice; g < groups; g += SLICES) {
        const float4 v = row[g * m.receivers * pitch];
        sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
    }
    sum = add_groups(sum, shared, LANES, SLICES, slice, lane);
    if (slice > 0)
        return;
    *row = sum;
}

/* block.x: hops x receivers, one for each group of threads. */
template <int N> __global__ void __launch_bounds__(split<N>::block) frames(const gck_motion m) {
    extern __shared__ float2 shared[];
    const int group = threadIdx.x / split<N>::threads, t = threadIdx.x % split<N>::threads;
    const int count = m.hops * m.receivers, index = (int)blockIdx.x * split<N>::groups + group;
    const int row = min(index, count - 1), hop = row / m.receivers, receiver = row % m.receivers;
    float2 v[16];
    load_spectrum<N>(v, m.sums + ((int64_t)hop * groups_of(m) * m.receivers + receiver) * N, t);
    fft_radix16_inverse<N>(v, shared + group * fft_radix16<N>::shared, t, m.table);
    twist<N, true>(v, t);
    float *to = m.out + (int64_t)row * 2 * N + t;
    if (index < count) {
#pragma unroll
        for (int j = 0; j < 16; j++) {
            to[j * fft_radix16<N>::threads] = v[j].x;
            to[N + j * fft_radix16<N>::threads] = v[j].y;
        }
    }
}

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

/* Shared memory of a block of transforms, and of one of `sources`. */
template <int N> int64_t transform_bytes() {
    return split<N>::groups * fft_radix16<N>::shared * (int64_t)sizeof(float2);
}

template <int N> int64_t sources_bytes(int64_t hop) {
    return transform_bytes<N>() + split<N>::groups * (N * (int64_t)sizeof(float2) + hop * (int64_t)sizeof(float));
}

template <int N> unsigned blocks_for(int64_t transforms) {
    return (unsigned)((transforms + split<N>::groups - 1) / split<N>::groups);
}

template <int N>
cudaError_t run_responses(const gck_motion &m, const float *taps, int64_t first, int64_t count, cudaStream_t stream) {
    responses<N><<<blocks_for<N>(count), split<N>::block, transform_bytes<N>(), stream>>>(m, taps, first, count);
    return cudaGetLastError();
}

template <int N> cudaError_t run_chunk(const gck_motion &m, int first, cudaStream_t stream) {
    const int64_t bytes = sources_bytes<N>(m.hop), groups = groups_of(m);
    const int64_t blends = (int64_t)(m.hops + 1 - first) * m.channels;
    cudaError_t err = allow_shared(sources<N>, (int)bytes);
    if (err)
        return err;
    scales<<<dim3((unsigned)((blends + 3) / 4), (unsigned)m.receivers), 128, 0, stream>>>(m, first);
    err = cudaGetLastError();
    if (err)
        return err;
    const dim3 grid(blocks_for<N>(groups * m.receivers), (unsigned)m.hops);
    sources<N><<<grid, split<N>::block, bytes, stream>>>(m);
    err = cudaGetLastError();
    if (err)
        return err;
    sums<<<dim3(N / 2 / LANES, (unsigned)m.receivers, (unsigned)m.hops), LANES * SLICES, 0, stream>>>(m);
    err = cudaGetLastError();
    if (err)
        return err;
    frames<N><<<blocks_for<N>((int64_t)m.hops * m.receivers), split<N>::block, transform_bytes<N>(), stream>>>(m);
    return cudaGetLastError();
}

/* The kernels by complex points. */
const struct row {
    int64_t points;
    int64_t (*shared)(int64_t hop);
    cudaError_t (*responses)(const gck_motion &m, const float *taps, int64_t first, int64_t count, cudaStream_t stream);
    cudaError_t (*chunk)(const gck_motion &m, int first, cudaStream_t stream);
} rows[] = {
    {256, sources_bytes<256>, run_responses<256>, run_chunk<256>},
    {512, sources_bytes<512>, run_responses<512>, run_chunk<512>},
    {1024, sources_bytes<1024>, run_responses<1024>, run_chunk<1024>},
    {2048, sources_bytes<2048>, run_responses<2048>, run_chunk<2048>},
    {4096, sources_bytes<4096>, run_responses<4096>, run_chunk<4096>},
};

} // namespace

int64_t gck_motion_shared(int64_t points, int64_t hop) {
    const row *r = find_points(rows, points / 2);
    return r ? r->shared(hop) : 0;
}

void gck_motion_twiddles(int64_t half_points, float2 *table) {
    write_roots(half_points, table);
}

cudaError_t gck_motion_spectra(const gck_motion *m, const float *taps, int64_t first, int64_t count,
                               cudaStream_t stream) {
    const row *r = find_points(rows, m->points / 2);
    return r ? r->responses(*m, taps, first * m->receivers, count * m->receivers, stream) : cudaErrorInvalidValue;
}

cudaError_t gck_motion_run(const gck_motion *m, int first, cudaStream_t stream) {
    const row *r = find_points(rows, m->points / 2);
    return r ? r->chunk(*m, first, stream) : cudaErrorInvalidValue;
}
