/*
 * Partitioned convolution in three kernels (forward, sum_partitions, inverse).
 *
 *      Y_s = sum over p of H_p Z_(s-p)
 *
 * Blocks s and s + pairs of a chunk are the real and the imaginary part of one complex signal Z_s. Their distance is
 * the same for every s, so that the sum over partitions holds for both at once. In the delay line Z begins in the
 * history of the input:
 *
 *      delay    | zeros | -(reach-1) ... -1 | 0 ... pairs-1 |    spectra of an input
 *
 * The middle kernel is a direct convolution along s for each bin: a thread keeps STEP sums and a sliding window of STEP
 * spectra in registers, so that each value loaded is used in STEP products.
 *
 * Memory: adjacent threads read adjacent samples or bins; spectra are stored in the order of the registers
 * (transform.cuh). The contract of the launchers is in kernels.h; a chunk is always computed completely.
 */
#include "transform.cuh"

namespace {

/* Loads two real blocks as one complex signal: v[j] = index t + T j. */
template <int P, int T>
__device__ __forceinline__ void load_pair(float2 *v, const float *__restrict__ a, const float *__restrict__ b, int t) {
#pragma unroll
    for (int j = 0; j < P; j++)
        v[j] = make_float2(__ldg(a + t + j * T), __ldg(b + t + j * T));
}

/* Stores the samples from index `overlap` on of both blocks. */
template <int P, int T>
__device__ __forceinline__ void store_pair(const float2 *v, float *a, float *b, int overlap, int t) {
#pragma unroll
    for (int j = 0; j < P; j++) {
        int n = t + j * T - overlap;
        if (n >= 0) {
            a[n] = v[j].x;
            b[n] = v[j].y;
        }
    }
}

enum { STEP = GCK_PARTITION_STEP, BLOCK = 128 };

/* Spectra of the input, one pair of blocks per group of threads; block.y: input. */
template <int N>
__global__ void __launch_bounds__(layout<N>::block)
    forward(gck_matrix a, int64_t pairs, int64_t partitions, int64_t reach, const float2 *__restrict__ table,
            float2 *delay) {
    extern __shared__ float2 shared[];
    int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    int64_t count = reach - 1 + pairs, i = (int64_t)blockIdx.x * layout<N>::groups + group;
    bool active = i < count;
    int64_t s = (active ? i : count - 1) - (reach - 1);
    const float *x = a.in + blockIdx.y * a.in_stride + (s - 1) * (N / 2);
    float2 v[16];
    load_pair<16, fft_radix16<N>::threads>(v, x, x + pairs * (N / 2), t);
    fft_radix16_forward<N>(v, shared + group * fft_radix16<N>::shared, t, table);
    if (active)
        store_spectrum<N>(v, delay + (blockIdx.y * (partitions - 1 + pairs) + partitions - 1 + s) * N, t);
}

/* Spectra of partitions, scaled by 1 / N, one per group of threads. */
template <int N>
__global__ void __launch_bounds__(layout<N>::block)
    spectrum(const float *__restrict__ taps, int64_t count, int64_t partition_taps, int64_t spectra_count,
             int64_t partitions, const float2 *__restrict__ table, float2 *spectra) {
    extern __shared__ float2 shared[];
    int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    int64_t index = (int64_t)blockIdx.x * layout<N>::groups + group;
    bool active = index < spectra_count;
    int64_t at = active ? index % partitions * partition_taps : 0, end = min(count, at + partition_taps);
    const float *plane = taps + (active ? index / partitions : 0) * count;
    float2 v[16];
#pragma unroll
    for (int j = 0; j < 16; j++) {
        int64_t k = at + t + j * layout<N>::threads;
        v[j] = make_float2(k < end ? plane[k] * (1.0f / N) : 0.0f, 0.0f);
    }
    fft_radix16_forward<N>(v, shared + group * fft_radix16<N>::shared, t, table);
    if (active)
        store_spectrum<N>(v, spectra + index * N, t);
}

/* One bin per thread; block.y: STEP values of s; block.z: output. Spectrum s - p is in register (s - p) mod STEP of the
 * window, a compile-time constant because p is unrolled by STEP. */
__global__ void __launch_bounds__(BLOCK)
    sum_partitions(gck_matrix a, int points, int64_t pairs, int64_t partitions, const float2 *__restrict__ spectra,
                   const float2 *__restrict__ delay, float2 *sums) {
    int64_t bin = (int64_t)blockIdx.x * BLOCK + threadIdx.x, s0 = (int64_t)blockIdx.y * STEP;
    float2 acc[STEP], w[STEP];
#pragma unroll
    for (int r = 0; r < STEP; r++)
        acc[r] = make_float2(0.0f, 0.0f);
    for (int e = a.row[blockIdx.z]; e < a.row[blockIdx.z + 1]; e++) {
        gck_route route = a.route[e];
        const float2 *h = spectra + route.plane * partitions * points + bin;
        const float2 *z = delay + (route.input * (partitions - 1 + pairs) + partitions - 1 + s0) * points + bin;
#pragma unroll
        for (int r = 1; r < STEP; r++)
            w[r] = s0 + r < pairs ? __ldg(z + (int64_t)r * points) : make_float2(0.0f, 0.0f);
#pragma unroll 1
        for (int64_t p = 0; p < partitions; p += STEP) {
#pragma unroll
            for (int q = 0; q < STEP; q++) {
                w[(STEP - q) % STEP] = __ldg(z - (p + q) * points);
                float2 f = __ldg(h + (p + q) * points);
#pragma unroll
                for (int r = 0; r < STEP; r++)
                    acc[r] = mul_add(w[(r - q + STEP) % STEP], f, acc[r]);
            }
        }
    }
    float2 *y = sums + (blockIdx.z * pairs + s0) * points + bin;
#pragma unroll
    for (int r = 0; r < STEP; r++)
        if (s0 + r < pairs)
            y[(int64_t)r * points] = acc[r];
}

/* Outputs of one pair of blocks per group of threads; block.y: output. */
template <int N>
__global__ void __launch_bounds__(layout<N>::block)
    inverse(gck_matrix a, int64_t pairs, const float2 *__restrict__ table, const float2 *__restrict__ sums) {
    extern __shared__ float2 shared[];
    int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    int64_t i = (int64_t)blockIdx.x * layout<N>::groups + group, s = i < pairs ? i : pairs - 1;
    float2 v[16];
    load_spectrum<N>(v, sums + (blockIdx.y * pairs + s) * N, t);
    fft_radix16_inverse<N>(v, shared + group * fft_radix16<N>::shared, t, table);
    if (i < pairs) {
        float *y = a.out + blockIdx.y * a.out_stride + s * (N / 2);
        store_pair<16, fft_radix16<N>::threads>(v, y, y + pairs * (N / 2), N / 2, t);
    }
}

template <int N> cudaError_t run_convolve(const gck_matrix *matrix, const gck_partitioning *p, cudaStream_t stream) {
    typedef layout<N> l;
    cudaError_t err = allow_shared(forward<N>, l::bytes);
    if (!err)
        err = allow_shared(inverse<N>, l::bytes);
    if (err)
        return err;
    forward<N><<<dim3(l::blocks(p->reach - 1 + p->pairs), matrix->inputs), l::block, l::bytes, stream>>>(
        *matrix, p->pairs, p->partitions, p->reach, p->table, p->delay);
    dim3 grid(N / BLOCK, (unsigned)((p->pairs + STEP - 1) / STEP), matrix->outputs);
    sum_partitions<<<grid, BLOCK, 0, stream>>>(*matrix, N, p->pairs, p->partitions, p->spectra, p->delay, p->sums);
    inverse<N><<<dim3(l::blocks(p->pairs), matrix->outputs), l::block, l::bytes, stream>>>(*matrix, p->pairs, p->table,
                                                                                           p->sums);
    return cudaGetLastError();
}

template <int N>
cudaError_t run_spectra(const gck_partitioning *p, const gck_responses *responses, cudaStream_t stream) {
    typedef layout<N> l;
    int64_t count = responses->planes * p->partitions;
    cudaError_t err = allow_shared(spectrum<N>, l::bytes);
    if (err)
        return err;
    spectrum<N><<<l::blocks(count), l::block, l::bytes, stream>>>(
        responses->taps, responses->taps_count, p->partition_taps, count, p->partitions, p->table, p->spectra);
    return cudaGetLastError();
}

/* The kernels by the points of a transform. */
const struct row {
    int64_t points, shared_bytes;
    cudaError_t (*spectra)(const gck_partitioning *partitioning, const gck_responses *responses, cudaStream_t stream);
    cudaError_t (*convolve)(const gck_matrix *matrix, const gck_partitioning *partitioning, cudaStream_t stream);
} rows[] = {
    {512, layout<512>::bytes, run_spectra<512>, run_convolve<512>},
    {1024, layout<1024>::bytes, run_spectra<1024>, run_convolve<1024>},
    {2048, layout<2048>::bytes, run_spectra<2048>, run_convolve<2048>},
    {4096, layout<4096>::bytes, run_spectra<4096>, run_convolve<4096>},
    {8192, layout<8192>::bytes, run_spectra<8192>, run_convolve<8192>},
};

const row *find_row(int64_t points) {
    for (const row &r : rows)
        if (r.points == points)
            return &r;
    return NULL;
}

} // namespace

int64_t gck_partitioned_shared_bytes(int64_t points) {
    const row *r = find_row(points);
    return r ? r->shared_bytes : 0;
}

cudaError_t gck_partitioned_spectra(const gck_partitioning *partitioning, const gck_responses *responses,
                                    cudaStream_t stream) {
    const row *r = find_row(partitioning->points);
    return r ? r->spectra(partitioning, responses, stream) : cudaErrorInvalidValue;
}

cudaError_t gck_partitioned(const gck_matrix *matrix, const gck_partitioning *partitioning, cudaStream_t stream) {
    const row *r = find_row(partitioning->points);
    return r ? r->convolve(matrix, partitioning, stream) : cudaErrorInvalidValue;
}
