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
 * The sums over partitions read two adjacent bins at a time (partition_sums.cuh). Contracts: partitioned.cuh.
 */
#include "partitioned.cuh"

#include "kernels/engine/partition_sums.cuh"

namespace {

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

gck_partitioned_sizes gck_long_partitioned_query(int64_t points) {
    const int size = size_of(points / 2), blocks_max = 65535;
    if (size < 0)
        return {};
    const gck_3pass_sizes sizes = gck_3pass_query(size);
    return {sizes.points, sizes.twiddles, sizes.shared_bytes, 1, blocks_max};
}

void gck_long_partitioned_twiddles(int64_t points, float2 *twiddles) {
    gck_3pass_twiddles(size_of(points / 2), twiddles);
}

cudaError_t gck_long_partitioned_spectra(const gck_partitioning &p, const gck_responses &responses,
                                         cudaStream_t stream) {
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

cudaError_t gck_long_partitioned(const gck_matrix &matrix, const gck_partitioning &p, cudaStream_t stream) {
    const int64_t hop = p.points / 2;
    const int size = size_of(hop), history = p.partitions, outputs = matrix.outputs;
    if (size < 0)
        return cudaErrorInvalidValue;
    gck_3pass_blocks from = {};
    from.rows = {
        (void *)(matrix.in - history * hop), (history + p.transforms) * hop, matrix.in_stride, 1, NULL, NULL, GCK_F32};
    from.count = matrix.inputs;
    from.blocks = history - 1 + p.transforms;
    from.step = hop;
    from.window = (int)p.points;
    from.scale = 1;
    cudaError_t err = transform(size, from, p.twiddles, p.delay, stream);
    if (err)
        return err;
    err = launch_sums<float4, 8>(matrix, p, hop, stream);
    gck_3pass_blocks to = {};
    to.rows = {matrix.out, p.transforms * hop, matrix.out_stride, 1, NULL, NULL, GCK_F32};
    to.count = outputs;
    to.blocks = p.transforms;
    to.step = hop;
    to.lo = to.kept = (int)hop;
    if (!err)
        err = gck_3pass_finish(size, (int64_t)outputs * p.transforms, 1, p.twiddles, p.sums, p.sums, stream);
    return err ? err : gck_3pass_inverse(size, &to, p.twiddles, p.sums, stream);
}
