/*
 * Partitioned convolution with long transforms, for responses beyond the longest transform of overlap-save.
 *
 *      Y_s = sum over p of H_p X_(s-p)
 *
 * Block s of the input and partition p have one transform in three kernels each (overlap_save_3pass.cu): 2 N real
 * samples as N complex points (right_angle.cuh), N frames apart. In the delay line X begins in the history of the
 * input:
 *
 *      delay    | -(partitions - 1) ... -1 | 0 ... blocks - 1 |    spectra of an input
 *
 * The kernel here is a direct convolution along s for each bin: a thread keeps STEP sums and a sliding window of STEP
 * spectra of two adjacent bins in registers, so that each value loaded is used in STEP products.
 *
 * Memory: 16 bytes for each thread, adjacent in a warp. The groups of STEP blocks follow each other in the grid, so
 * that the spectra of the response are in the second-level cache from the second group on. The kernel is launched early
 * (launch.cuh): the delay line is read by plain loads. The contract of the launchers is in kernels.h.
 */
#include "kernels/device/complex.cuh"
#include "launch.cuh"

namespace {

enum { STEP = 8, BLOCK = 128 };

__device__ __forceinline__ float4 mul_add_two(float4 x, float4 h, float4 sum) {
    const float2 a = mul_add(make_float2(x.x, x.y), make_float2(h.x, h.y), make_float2(sum.x, sum.y));
    const float2 b = mul_add(make_float2(x.z, x.w), make_float2(h.z, h.w), make_float2(sum.z, sum.w));
    return make_float4(a.x, a.y, b.x, b.y);
}

/* Adds the products of `count` partitions, STEP unless Partial. */
template <bool Partial>
__device__ __forceinline__ void add_partitions(float4 *acc, float4 *w, const float4 *h, const float4 *x, int64_t pitch,
                                               int count) {
#pragma unroll
    for (int q = 0; q < STEP; q++) {
        if (Partial && q >= count)
            return;
        w[(STEP - q) % STEP] = x[-q * pitch];
        const float4 f = __ldg(h + q * pitch);
#pragma unroll
        for (int r = 0; r < STEP; r++)
            acc[r] = mul_add_two(w[(r - q + STEP) % STEP], f, acc[r]);
    }
}

/* Two bins per thread; block.x: STEP blocks, then bins; block.y: output. Spectrum s - p is in register (s - p) mod STEP
 * of the window, a compile-time constant because p is unrolled by STEP. */
__global__ void __launch_bounds__(BLOCK, 4)
    sum_long_partitions(gck_matrix a, int64_t points, int blocks, int partitions, const float4 *__restrict__ spectra,
                        const float4 *delay, float4 *sums) {
    const int groups = (blocks + STEP - 1) / STEP, s0 = blockIdx.x % groups * STEP;
    const int64_t bin = (int64_t)(blockIdx.x / groups) * BLOCK + threadIdx.x, pitch = points / 2;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 acc[STEP], w[STEP];
    pdl_trigger();
    pdl_wait();
#pragma unroll
    for (int r = 0; r < STEP; r++)
        acc[r] = zero;
    for (int e = a.row[blockIdx.y]; e < a.row[blockIdx.y + 1]; e++) {
        const gck_route route = a.route[e];
        const float4 *h = spectra + (int64_t)route.plane * partitions * pitch + bin;
        const float4 *x =
            delay + ((int64_t)route.input * (partitions - 1 + blocks) + partitions - 1 + s0) * pitch + bin;
#pragma unroll
        for (int r = 1; r < STEP; r++)
            w[r] = s0 + r < blocks ? x[r * pitch] : zero;
#pragma unroll 1
        for (int p = 0; p < partitions; p += STEP) {
            if (p + STEP <= partitions)
                add_partitions<false>(acc, w, h + p * pitch, x - p * pitch, pitch, STEP);
            else
                add_partitions<true>(acc, w, h + p * pitch, x - p * pitch, pitch, partitions - p);
        }
    }
    float4 *y = sums + ((int64_t)blockIdx.y * blocks + s0) * pitch + bin;
#pragma unroll
    for (int r = 0; r < STEP; r++)
        if (s0 + r < blocks)
            y[r * pitch] = acc[r];
}

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
    return err ? err : gck_3pass_spectra(size, (int64_t)from.count * from.blocks, twiddles, to, stream);
}

} // namespace

gck_long_partitioned_sizes gck_long_partitioned_query(int64_t points) {
    const int size = size_of(points / 2);
    if (size < 0)
        return {};
    const gck_3pass_sizes sizes = gck_3pass_query(size);
    return {sizes.points, sizes.twiddles, sizes.shared_bytes};
}

void gck_long_partitioned_twiddles(int64_t points, float2 *twiddles) {
    gck_3pass_twiddles(size_of(points / 2), twiddles);
}

cudaError_t gck_long_partitioned_spectra(const gck_long_partitioning *p, const gck_responses *responses,
                                         cudaStream_t stream) {
    const int64_t hop = p->points / 2;
    const int size = size_of(hop);
    if (size < 0)
        return cudaErrorInvalidValue;
    gck_3pass_blocks from = {};
    from.rows = {(void *)responses->taps, responses->taps_count, responses->taps_count, 1, NULL, NULL, GCK_F32};
    from.count = responses->planes;
    from.blocks = p->partitions;
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
    return err ? err : transform(size, from, p->twiddles, p->spectra, stream);
}

cudaError_t gck_long_partitioned(const gck_matrix *matrix, const gck_long_partitioning *p, cudaStream_t stream) {
    const int64_t hop = p->points / 2;
    const int size = size_of(hop), history = p->partitions, outputs = matrix->outputs;
    if (size < 0)
        return cudaErrorInvalidValue;
    gck_3pass_blocks from = {};
    from.rows = {
        (void *)(matrix->in - history * hop), (history + p->blocks) * hop, matrix->in_stride, 1, NULL, NULL, GCK_F32};
    from.count = matrix->inputs;
    from.blocks = history - 1 + p->blocks;
    from.step = hop;
    from.window = (int)p->points;
    from.scale = 1;
    cudaError_t err = transform(size, from, p->twiddles, p->delay, stream);
    if (err)
        return err;
    const int groups = (p->blocks + STEP - 1) / STEP;
    err = launch_dependent(sum_long_partitions, dim3((unsigned)(groups * (hop / (2 * BLOCK))), (unsigned)outputs),
                           BLOCK, 0, stream, *matrix, hop, p->blocks, p->partitions, (const float4 *)p->spectra,
                           (const float4 *)p->delay, (float4 *)p->sums);
    gck_3pass_blocks to = {};
    to.rows = {matrix->out, p->blocks * hop, matrix->out_stride, 1, NULL, NULL, GCK_F32};
    to.count = outputs;
    to.blocks = p->blocks;
    to.step = hop;
    to.lo = to.kept = (int)hop;
    if (!err)
        err = gck_3pass_finish(size, (int64_t)outputs * p->blocks, 1, p->twiddles, p->sums, p->sums, stream);
    return err ? err : gck_3pass_inverse(size, &to, p->twiddles, p->sums, stream);
}
