/*
 * Partitioned convolution: transforms of the input, sums over partitions (partition_sums.cuh), transforms of the sums.
 *
 *      Y_s = sum over p of H_p X_(s-p)
 *
 * Transforms of up to 8192 points have one kernel each. Blocks s and s + transforms of a chunk are the real and the
 * imaginary part of one complex signal X_s. Their distance is the same for every s, so that the sum over partitions
 * holds for both at once.
 *
 * Longer transforms, for responses beyond the longest transform of overlap-save, have three kernels
 * (overlap_save_3pass.cu): block s of the input and partition p are 2 N real samples as N complex points
 * (right_angle.cuh), N frames apart, and the sums read two adjacent bins at a time.
 *
 * In the delay line X begins in the history of the input:
 *
 *      delay    | -(partitions - 1) ... -1 | 0 ... transforms - 1 |    spectra of an input
 *
 * Memory: adjacent threads read adjacent samples or bins; spectra are stored in the order of the registers
 * (transform.cuh). The contract of the launchers is in kernels.h; a chunk is always computed completely.
 */
#include "kernels/engine/kernels.h"
#include "kernels/engine/partition_sums.cuh"
#include "kernels/engine/transform.cuh"

#include <climits>

namespace {

/* Spectra of the input, one pair of blocks per group of threads; block.y: input. */
template <int N>
__global__ void __launch_bounds__(layout<N>::block)
    forward(gck_routes a, int transforms, int partitions, const float2 *__restrict__ table, float2 *delay) {
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
    inverse(gck_routes a, int64_t transforms, const float2 *__restrict__ table, const float2 *__restrict__ sums) {
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

template <int N> cudaError_t run_convolve(const gck_routes &routes, const gck_partitioning &p, cudaStream_t stream) {
    typedef layout<N> l;
    cudaError_t err = allow_shared(forward<N>, l::bytes);
    if (!err)
        err = allow_shared(inverse<N>, l::bytes);
    if (err)
        return err;
    forward<N><<<dim3(l::blocks(p.partitions - 1 + p.transforms), routes.inputs), l::block, l::bytes, stream>>>(
        routes, p.transforms, p.partitions, p.twiddles, p.delay);
    err = launch_sums<float2, 16>(routes, p, N, stream);
    if (err)
        return err;
    inverse<N><<<dim3(l::blocks(p.transforms), routes.outputs), l::block, l::bytes, stream>>>(routes, p.transforms,
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
    cudaError_t (*convolve)(const gck_routes &routes, const gck_partitioning &partitioning, cudaStream_t stream);
} rows[] = {
    {512, layout<512>::bytes, run_spectra<512>, run_convolve<512>},
    {1024, layout<1024>::bytes, run_spectra<1024>, run_convolve<1024>},
    {2048, layout<2048>::bytes, run_spectra<2048>, run_convolve<2048>},
    {4096, layout<4096>::bytes, run_spectra<4096>, run_convolve<4096>},
    {8192, layout<8192>::bytes, run_spectra<8192>, run_convolve<8192>},
};

/* ---- Long transforms --------------------------------------------------------------------------------------------- */

/* Returns the size of a transform of `points` complex points in job.h, -1 if there is none. */
int size_of(int64_t points) {
    for (int size = 0; size < GCK_3PASS_SIZES; size++)
        if (gck_3pass_query(size).points == points)
            return size;
    return -1;
}

/* Transforms `blocks` blocks of each row, 2 N samples every N, into `to`. */
cudaError_t transform(int size, const gck_3pass_blocks &from, const float2 *twiddles, float2 *to, cudaStream_t stream) {
    const cudaError_t err = gck_3pass_forward(size, &from, twiddles, to, stream);
    return err ? err : gck_3pass_spectra(size, (int64_t)from.count * from.blocks, 0, twiddles, to, to, stream);
}

gck_partitioned_sizes query_long(int64_t points) {
    const int size = size_of(points / 2), blocks_max = 65535;
    if (size < 0)
        return {};
    const gck_3pass_sizes sizes = gck_3pass_query(size);
    return {sizes.points, sizes.twiddles, sizes.shared_bytes, 1, blocks_max};
}

void write_long_twiddles(int64_t points, float2 *twiddles) {
    gck_3pass_twiddles(size_of(points / 2), twiddles);
}

cudaError_t run_long_spectra(const gck_partitioning &p, const gck_responses &responses, cudaStream_t stream) {
    const int64_t hop = p.points / 2;
    const int size = size_of(hop);
    if (size < 0)
        return cudaErrorInvalidValue;
    gck_3pass_blocks from = {};
    from.rows = {(void *)responses.taps, responses.taps_count, responses.taps_count, 1, NULL, NULL, GCK_F32};
    from.count = responses.planes;
    from.blocks = p.partitions;
    from.step = hop;
    from.window = (int)hop;
    from.scale = 1.0f / (float)hop;
    int device = 0;
    gck_device d;
    cudaError_t err = cudaGetDevice(&device);
    if (!err)
        err = gck_device_query(device, &d);
    if (!err)
        err = gck_3pass_load(d.shared_bytes);
    return err ? err : transform(size, from, p.twiddles, p.spectra, stream);
}

cudaError_t run_long(const gck_routes &routes, const gck_partitioning &p, cudaStream_t stream) {
    const int64_t hop = p.points / 2;
    const int size = size_of(hop), history = p.partitions, outputs = routes.outputs;
    if (size < 0)
        return cudaErrorInvalidValue;
    gck_3pass_blocks from = {};
    from.rows = {
        (void *)(routes.in - history * hop), (history + p.transforms) * hop, routes.in_stride, 1, NULL, NULL, GCK_F32};
    from.count = routes.inputs;
    from.blocks = history - 1 + p.transforms;
    from.step = hop;
    from.window = (int)p.points;
    from.scale = 1;
    cudaError_t err = transform(size, from, p.twiddles, p.delay, stream);
    if (err)
        return err;
    err = launch_sums<float4, 8>(routes, p, hop, stream);
    gck_3pass_blocks to = {};
    to.rows = {routes.out, p.transforms * hop, routes.out_stride, 1, NULL, NULL, GCK_F32};
    to.count = outputs;
    to.blocks = p.transforms;
    to.step = hop;
    to.lo = to.kept = (int)hop;
    const gck_3pass_splits splits = {(int64_t)outputs * p.transforms, 1, 0, p.twiddles, p.sums, p.sums};
    if (!err)
        err = gck_3pass_finish(size, &splits, stream);
    return err ? err : gck_3pass_inverse(size, &to, p.twiddles, p.sums, stream);
}

} // namespace

gck_partitioned_sizes gck_partitioned_query(int64_t points) {
    const row *r = find_points(rows, points);
    return r ? gck_partitioned_sizes{points, points, r->shared_bytes, 2, INT_MAX} : query_long(points);
}

void gck_partitioned_twiddles(int64_t points, float2 *twiddles) {
    if (find_points(rows, points))
        write_roots(points, twiddles);
    else
        write_long_twiddles(points, twiddles);
}

cudaError_t gck_partitioned_spectra(const gck_partitioning *partitioning, const gck_responses *responses,
                                    cudaStream_t stream) {
    const row *r = find_points(rows, partitioning->points);
    return (r ? r->spectra : run_long_spectra)(*partitioning, *responses, stream);
}

cudaError_t gck_partitioned(const gck_routes *routes, const gck_partitioning *partitioning, cudaStream_t stream) {
    const row *r = find_points(rows, partitioning->points);
    return (r ? r->convolve : run_long)(*routes, *partitioning, stream);
}
