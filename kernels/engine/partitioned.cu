/*
 * Partitioned convolution in three kernels. Block s and block s + pairs of a chunk travel as one complex signal, at the
 * same distance for every s, so that the sum over partitions
 *
 *      Y_s = sum over p of H_p Z_(s-p)
 *
 * holds for both at once. In the delay line Z reaches back into the input's history:
 *
 *      delay    | zeros | -(reach-1) ... -1 | 0 ... pairs-1 |    spectra of an input
 *
 * The middle kernel is a direct convolution along s for each bin: a thread keeps STEP sums and a sliding window of STEP
 * spectra in registers, so each value loaded serves STEP products.
 */
#include "transform.cuh"

namespace {

/* Two real blocks as one complex signal: v[j] = place t + T j. */
template <int P, int T>
__device__ __forceinline__ void load_pair(float2 *v, const float *__restrict__ a, const float *__restrict__ b, int t) {
#pragma unroll
    for (int j = 0; j < P; j++)
        v[j] = make_float2(__ldg(a + t + j * T), __ldg(b + t + j * T));
}

/* The last hop = N - before places of both blocks. */
template <int P, int T>
__device__ __forceinline__ void store_pair(const float2 *v, float *a, float *b, int before, int t) {
#pragma unroll
    for (int j = 0; j < P; j++) {
        int n = t + j * T - before;
        if (n >= 0) {
            a[n] = v[j].x;
            b[n] = v[j].y;
        }
    }
}

enum { STEP = GCK_PARTITION_STEP, BLOCK = 128 };

template <int N>
__global__ void __launch_bounds__(layout<N>::block)
    forward(gck_matrix a, int64_t pairs, int64_t partitions, int64_t reach, const float2 *__restrict__ table,
            float2 *delay) {
    extern __shared__ float2 shared[];
    int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    int64_t count = reach - 1 + pairs, i = (int64_t)blockIdx.x * layout<N>::groups + group;
    bool mine = i < count;
    int64_t s = (mine ? i : count - 1) - (reach - 1);
    const float *x = a.in + blockIdx.y * a.in_stride + (s - 1) * (N / 2);
    float2 v[16];
    load_pair<16, fft<N>::threads>(v, x, x + pairs * (N / 2), t);
    fft_forward<N>(v, shared + group * fft<N>::shared, t, table);
    if (mine)
        store_spectrum<N>(v, delay + (blockIdx.y * (partitions - 1 + pairs) + partitions - 1 + s) * N, t);
}

template <int N>
__global__ void __launch_bounds__(layout<N>::block)
    spectrum(const float *__restrict__ taps, int64_t count, int64_t partition, int64_t pieces, int64_t partitions,
             const float2 *__restrict__ table, float2 *spectra) {
    extern __shared__ float2 shared[];
    int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    int64_t piece = (int64_t)blockIdx.x * layout<N>::groups + group;
    bool mine = piece < pieces;
    int64_t at = mine ? piece % partitions * partition : 0, end = min(count, at + partition);
    const float *plane = taps + (mine ? piece / partitions : 0) * count;
    float2 v[16];
#pragma unroll
    for (int j = 0; j < 16; j++) {
        int64_t k = at + t + j * layout<N>::threads;
        v[j] = make_float2(k < end ? plane[k] * (1.0f / N) : 0.0f, 0.0f);
    }
    fft_forward<N>(v, shared + group * fft<N>::shared, t, table);
    if (mine)
        store_spectrum<N>(v, spectra + piece * N, t);
}

/* Thread: one bin; block.y: STEP values of s; block.z: output. The window's register for spectrum s - p is
 * (s - p) mod STEP, whose index is known when p is unrolled by STEP. */
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

template <int N>
__global__ void __launch_bounds__(layout<N>::block)
    inverse(gck_matrix a, int64_t pairs, const float2 *__restrict__ table, const float2 *__restrict__ sums) {
    extern __shared__ float2 shared[];
    int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    int64_t i = (int64_t)blockIdx.x * layout<N>::groups + group, s = i < pairs ? i : pairs - 1;
    float2 v[16];
    load_spectrum<N>(v, sums + (blockIdx.y * pairs + s) * N, t);
    fft_inverse<N>(v, shared + group * fft<N>::shared, t, table);
    if (i < pairs) {
        float *y = a.out + blockIdx.y * a.out_stride + s * (N / 2);
        store_pair<16, fft<N>::threads>(v, y, y + pairs * (N / 2), N / 2, t);
    }
}

template <int N>
cudaError_t launch(const gck_matrix *matrix, int64_t pairs, int64_t partitions, int64_t reach, const float2 *table,
                   const float2 *spectra, float2 *delay, float2 *sums, cudaStream_t stream) {
    typedef layout<N> l;
    cudaError_t failed = allow_shared(forward<N>, l::bytes);
    if (!failed)
        failed = allow_shared(inverse<N>, l::bytes);
    if (failed)
        return failed;
    unsigned blocks = (unsigned)((reach - 1 + pairs + l::groups - 1) / l::groups);
    forward<N>
        <<<dim3(blocks, matrix->inputs), l::block, l::bytes, stream>>>(*matrix, pairs, partitions, reach, table, delay);
    dim3 grid(N / BLOCK, (unsigned)((pairs + STEP - 1) / STEP), matrix->outputs);
    sum_partitions<<<grid, BLOCK, 0, stream>>>(*matrix, N, pairs, partitions, spectra, delay, sums);
    blocks = (unsigned)((pairs + l::groups - 1) / l::groups);
    inverse<N><<<dim3(blocks, matrix->outputs), l::block, l::bytes, stream>>>(*matrix, pairs, table, sums);
    return cudaGetLastError();
}

template <int N>
cudaError_t launch_spectra(const float *taps, int planes, int64_t count, int64_t partition, int64_t partitions,
                           const float2 *table, float2 *spectra, cudaStream_t stream) {
    int64_t pieces = planes * partitions;
    cudaError_t failed = allow_shared(spectrum<N>, layout<N>::bytes);
    if (failed)
        return failed;
    spectrum<N><<<(unsigned)((pieces + layout<N>::groups - 1) / layout<N>::groups), layout<N>::block, layout<N>::bytes,
                  stream>>>(taps, count, partition, pieces, partitions, table, spectra);
    return cudaGetLastError();
}

} // namespace

int64_t gck_transform_shared(int64_t points){
#define CALL(n) layout<n>::bytes
    GCK_FOR_POINTS(points, CALL)
#undef CALL
}

cudaError_t gck_spectra(int64_t points, const float *taps, int planes, int64_t taps_count, int64_t partition,
                        int64_t partitions, const float2 *table, float2 *spectra, cudaStream_t stream){
#define CALL(n) launch_spectra<n>(taps, planes, taps_count, partition, partitions, table, spectra, stream)
    GCK_FOR_POINTS(points, CALL)
#undef CALL
}

cudaError_t
    gck_partitioned(const gck_matrix *matrix, int64_t points, int64_t pairs, int64_t partitions, int64_t reach,
                    const float2 *table, const float2 *spectra, float2 *delay, float2 *sums, cudaStream_t stream) {
#define CALL(n) launch<n>(matrix, pairs, partitions, reach, table, spectra, delay, sums, stream)
    GCK_FOR_POINTS(points, CALL)
#undef CALL
}
