/*
 * Partitioned convolution: transforms of the input, sums over partitions (partition_sums.cuh), transforms of the sums.
 *
 *      Y_s = sum over p of H_p Z_(s-p)
 *
 * Here are the transforms of up to 8192 points, one kernel each; partitioned_long.cu has the longer ones. Blocks s and
 * s + transforms of a chunk are the real and the imaginary part of one complex signal Z_s. Their distance is the same
 * for every s, so that the sum over partitions holds for both at once. In the delay line Z begins in the history of the
 * input.
 *
 * Memory: adjacent threads read adjacent samples or bins; spectra are stored in the order of the registers
 * (transform.cuh). The contract of the launchers is in kernels.h; a chunk is always computed completely.
 */
#include "partitioned.cuh"

#include "kernels/engine/partition_sums.cuh"
#include "kernels/engine/transform.cuh"

#include <climits>

namespace {

/* Spectra of the input, one pair of blocks per group of threads; block.y: input. */
template <int N>
__global__ void __launch_bounds__(layout<N>::block)
    forward(gck_matrix a, int transforms, int partitions, const float2 *__restrict__ table, float2 *delay) {
    extern __shared__ float2 shared[];
    const int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    const int64_t count = partitions - 1 + transforms, i = (int64_t)blockIdx.x * layout<N>::groups + group;
    const int64_t column = i < count ? i : count - 1;
    const float *x = a.in + blockIdx.y * a.in_stride + (column - partitions) * (N / 2) + t;
    float2 v[16];
#pragma unroll
    for (int j = 0; j < 16; j++)
        v[j] = make_float2(__ldg(x + j * layout<N>::threads),
                           __ldg(x + (int64_t)transforms * (N / 2) + j * layout<N>::threads));
    fft_radix16_forward<N>(v, shared + group * fft_radix16<N>::shared, t, table);
    if (i < count)
        store_spectrum<N>(v, delay + (blockIdx.y * count + column) * N, t);
}

/* Outputs of one pair of blocks per group of threads, the second halves of the transforms; block.y: output. */
template <int N>
__global__ void __launch_bounds__(layout<N>::block)
    inverse(gck_matrix a, int64_t transforms, const float2 *__restrict__ table, const float2 *__restrict__ sums) {
    extern __shared__ float2 shared[];
    const int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    const int64_t i = (int64_t)blockIdx.x * layout<N>::groups + group, s = i < transforms ? i : transforms - 1;
    float2 v[16];
    load_spectrum<N>(v, sums + (blockIdx.y * transforms + s) * N, t);
    fft_radix16_inverse<N>(v, shared + group * fft_radix16<N>::shared, t, table);
    if (i >= transforms)
        return;
    float *y = a.out + blockIdx.y * a.out_stride + s * (N / 2) + t;
#pragma unroll
    for (int j = 8; j < 16; j++) {
        y[(j - 8) * layout<N>::threads] = v[j].x;
        y[transforms * (N / 2) + (j - 8) * layout<N>::threads] = v[j].y;
    }
}

template <int N> cudaError_t run_convolve(const gck_matrix &matrix, const gck_partitioning &p, cudaStream_t stream) {
    typedef layout<N> l;
    cudaError_t err = allow_shared(forward<N>, l::bytes);
    if (!err)
        err = allow_shared(inverse<N>, l::bytes);
    if (err)
        return err;
    forward<N><<<dim3(l::blocks(p.partitions - 1 + p.transforms), matrix.inputs), l::block, l::bytes, stream>>>(
        matrix, p.transforms, p.partitions, p.twiddles, p.delay);
    err = launch_sums<float2, 16>(matrix, p, N, stream);
    if (err)
        return err;
    inverse<N><<<dim3(l::blocks(p.transforms), matrix.outputs), l::block, l::bytes, stream>>>(matrix, p.transforms,
                                                                                              p.twiddles, p.sums);
    return cudaGetLastError();
}

template <int N>
cudaError_t run_spectra(const gck_partitioning &p, const gck_responses &responses, cudaStream_t stream) {
    return launch_partition_spectra<N, false>(responses, 0, p.partitions, p.twiddles, p.spectra, stream);
}

/* The kernels by the points of a transform. */
const struct row {
    int64_t points;
    int shared_bytes;
    cudaError_t (*spectra)(const gck_partitioning &partitioning, const gck_responses &responses, cudaStream_t stream);
    cudaError_t (*convolve)(const gck_matrix &matrix, const gck_partitioning &partitioning, cudaStream_t stream);
} rows[] = {
    {512, layout<512>::bytes, run_spectra<512>, run_convolve<512>},
    {1024, layout<1024>::bytes, run_spectra<1024>, run_convolve<1024>},
    {2048, layout<2048>::bytes, run_spectra<2048>, run_convolve<2048>},
    {4096, layout<4096>::bytes, run_spectra<4096>, run_convolve<4096>},
    {8192, layout<8192>::bytes, run_spectra<8192>, run_convolve<8192>},
};

} // namespace

gck_partitioned_sizes gck_partitioned_query(int64_t points) {
    const row *r = find_points(rows, points);
    return r ? gck_partitioned_sizes{points, points, r->shared_bytes, 2, INT_MAX} : gck_long_partitioned_query(points);
}

void gck_partitioned_twiddles(int64_t points, float2 *twiddles) {
    if (find_points(rows, points))
        write_roots(points, twiddles);
    else
        gck_long_partitioned_twiddles(points, twiddles);
}

cudaError_t gck_partitioned_spectra(const gck_partitioning *partitioning, const gck_responses *responses,
                                    cudaStream_t stream) {
    const row *r = find_points(rows, partitioning->points);
    return (r ? r->spectra : gck_long_partitioned_spectra)(*partitioning, *responses, stream);
}

cudaError_t gck_partitioned(const gck_matrix *matrix, const gck_partitioning *partitioning, cudaStream_t stream) {
    const row *r = find_points(rows, partitioning->points);
    return (r ? r->convolve : gck_long_partitioned)(*matrix, *partitioning, stream);
}
