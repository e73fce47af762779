/* Copies rows and converts their samples. Adjacent threads access adjacent frames. Contracts: job.h.
 *
 *      move      rows of an array:    out[i][n] = in[i][n], 0 behind the end of row i; or with gates
 *      files     interleaved samples as they are stored, to planar floats and back
 */
#include "kernels/engine/pcm.cuh"
#include "kernels/engine/rows.cuh"

namespace {

enum { MOVE_THREADS = 256, ROWS_MAX = 65535, FILE_BLOCKS = 64 };

/* Returns frame n of a row, 0 behind its end; without data `missing`. */
__device__ __forceinline__ float sample_at(const gck_rows &rows, int64_t row, int64_t n, float missing) {
    float x = rows.data ? 0.0f : missing;
    if (rows.data && n < row_frames(rows, row))
        with_samples(rows, row_start(rows, row), n, [&](auto at) { x = sample_of(at[0]); });
    return x;
}

/* block.x: frames; block.y: rows, in steps of the grid. */
__global__ void move_rows(const __grid_constant__ gck_rows from, const __grid_constant__ gck_gates gates,
                          const __grid_constant__ gck_target to, int64_t rows, int64_t frames) {
    const int64_t n = (int64_t)blockIdx.x * MOVE_THREADS + threadIdx.x;
    pdl_wait();
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
        const written_frames written = frames_to_write(to, row);
        if (n >= min(frames, written.end))
            continue;
        float x = sample_at(from, row, n, 0.0f) * sample_at(gates.source, row, n, 1.0f);
        const float gate = sample_at(gates.target, row, n, 1.0f);
        if (gates.factor) {
            const float skip =
                gates.factor[row] * sample_at(gates.skip, row, n, 0.0f) * sample_at(gates.skip_gate, row, n, 1.0f);
            x = gates.skip_last ? fmaf(gate, x, skip) : gate * (x + skip);
        } else {
            x *= gate;
        }
        x = n < written.valued ? x : 0.0f;
        with_samples(to.rows, row_start(to.rows, row), n,
                     [&](auto at) { set_sample(at[0], to.accumulate ? sample_of(at[0]) + x : x); });
    }
}

/* block.x: samples, in steps of the grid; block.y: file. */
template <bool Pack> __global__ void convert_files(const gck_file *__restrict__ files) {
    const gck_file f = files[blockIdx.y];
    const gc_container container = f.format.container;
    const float scale = (float)(1u << (f.format.bits - 1));
    const unsigned samples = (unsigned)(f.frames * f.channels);
    unsigned count = 0;
    for (unsigned i = blockIdx.x * MOVE_THREADS + threadIdx.x; i < samples; i += gridDim.x * MOVE_THREADS) {
        float *x = f.planar + i % f.channels * f.frames + i / f.channels;
        if (!Pack) {
            *x = load_sample(f.raw, container, i);
        } else if (container == GC_F32) {
            ((float *)f.raw)[i] = *x;
        } else {
            bool clipped;
            store_sample(f.raw, container, i, quantize(*x, scale, 32 - f.format.bits, &clipped));
            count += clipped;
        }
    }
    if (count)
        atomicAdd(f.clipped, (unsigned long long)count);
}

} // namespace

cudaError_t gck_move_load(void) {
    return load_kernel(move_rows, 0);
}

cudaError_t gck_move(const gck_rows *from, const gck_gates *gates, const gck_target *to, int64_t rows, int64_t frames,
                     cudaStream_t stream) {
    static const gck_gates none = {};
    const dim3 grid((unsigned)((frames + MOVE_THREADS - 1) / MOVE_THREADS), (unsigned)min(rows, (int64_t)ROWS_MAX));
    return launch_dependent(move_rows, grid, MOVE_THREADS, 0, stream, *from, gates ? *gates : none, *to, rows, frames);
}

static cudaError_t launch_files(void (*kernel)(const gck_file *), const gck_file *files, int count, int64_t samples,
                                cudaStream_t stream) {
    const int64_t blocks = (samples + MOVE_THREADS - 1) / MOVE_THREADS;
    if (count == 0)
        return cudaSuccess;
    kernel<<<dim3((unsigned)min(blocks, (int64_t)FILE_BLOCKS), (unsigned)count), MOVE_THREADS, 0, stream>>>(files);
    return cudaGetLastError();
}

cudaError_t gck_unpack_files(const gck_file *files, int count, int64_t samples, cudaStream_t stream) {
    return launch_files(convert_files<false>, files, count, samples, stream);
}

cudaError_t gck_pack_files(const gck_file *files, int count, int64_t samples, cudaStream_t stream) {
    return launch_files(convert_files<true>, files, count, samples, stream);
}
