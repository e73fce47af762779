/* Copies rows and converts their samples. Adjacent threads access adjacent frames. Contracts: job.h.
 *
 *      move      rows of an array:    out[i][n] = in[i][n], 0 behind the end of row i; or with gates
 *                Rows whose frames lie apart, as those of interleaved channels, are turned in shared memory.
 *      files     interleaved samples as they are stored, to planar floats and back
 */
#include "kernels/engine/pcm.cuh"
#include "kernels/engine/rows.cuh"

namespace {

enum { MOVE_THREADS = 256, TILE = 32, ROWS_MAX = 65535, FILE_BLOCKS = 64 };

/* Returns frame n of a row, 0 behind its end; without data `missing`. */
__device__ __forceinline__ float sample_at(const gck_rows &rows, int64_t row, int64_t n, float missing) {
    float x = rows.data ? 0.0f : missing;
    if (rows.data && n < row_frames(rows, row))
        with_samples(rows, row_start(rows, row), n, [&](auto at) { x = sample_of(at[0]); });
    return x;
}

/* A copy of rows; samples pass through the gates. */
struct row_copy {
    gck_rows from;
    gck_gates gates;
    gck_target to;
    int64_t rows, frames;

    /* Returns the sample for frame n of a row: that of the source through its gates, 0 behind the end of the row. */
    __device__ __forceinline__ float value(int64_t row, int64_t n) const {
        if (n >= frames_to_write(to, row).valued)
            return 0.0f;
        const float x = sample_at(from, row, n, 0.0f) * sample_at(gates.source, row, n, 1.0f);
        const float gate = sample_at(gates.target, row, n, 1.0f);
        if (!gates.factor)
            return x * gate;
        const float skip =
            gates.factor[row] * sample_at(gates.skip, row, n, 0.0f) * sample_at(gates.skip_gate, row, n, 1.0f);
        return gates.skip_last ? fmaf(gate, x, skip) : gate * (x + skip);
    }

    __device__ __forceinline__ void store(int64_t row, int64_t n, float x) const {
        with_samples(to.rows, row_start(to.rows, row), n,
                     [&](auto at) { set_sample(at[0], to.accumulate ? sample_of(at[0]) + x : x); });
    }

    __device__ __forceinline__ bool has(int64_t row, int64_t n) const {
        return row < rows && n < frames && n < frames_to_write(to, row).end;
    }
};

/* block.x: frames; block.y: rows, in steps of the grid. */
__global__ void move_rows(const __grid_constant__ row_copy c) {
    const int64_t n = (int64_t)blockIdx.x * MOVE_THREADS + threadIdx.x;
    pdl_wait();
    for (int64_t row = blockIdx.y; row < c.rows; row += gridDim.y)
        if (c.has(row, n))
            c.store(row, n, c.value(row, n));
}

/* Copies tiles of TILE rows x TILE frames through shared memory, where the frames of one side lie apart: there adjacent
 * threads access adjacent rows. block.x: tiles of frames; block.y: tiles of rows, in steps of the grid. */
__global__ void move_tiles(const __grid_constant__ row_copy c) {
    __shared__ float tile[TILE][TILE + 1];
    const bool rows_in = c.from.step != 1, rows_out = c.to.rows.step != 1;
    const int lane = threadIdx.x % TILE, first = threadIdx.x / TILE;
    const int64_t frame = (int64_t)blockIdx.x * TILE;
    pdl_wait();
    for (int64_t row = (int64_t)blockIdx.y * TILE; row < c.rows; row += (int64_t)gridDim.y * TILE) {
        for (int i = first; i < TILE; i += MOVE_THREADS / TILE) {
            const int r = rows_in ? lane : i, n = rows_in ? i : lane;
            if (c.has(row + r, frame + n))
                tile[r][n] = c.value(row + r, frame + n);
        }
        __syncthreads();
        for (int i = first; i < TILE; i += MOVE_THREADS / TILE) {
            const int r = rows_out ? lane : i, n = rows_out ? i : lane;
            if (c.has(row + r, frame + n))
                c.store(row + r, frame + n, tile[r][n]);
        }
        __syncthreads();
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
    const cudaError_t err = load_kernel(move_rows, 0);
    return err ? err : load_kernel(move_tiles, 0);
}

cudaError_t gck_move(const gck_rows *from, const gck_gates *gates, const gck_target *to, int64_t rows, int64_t frames,
                     cudaStream_t stream) {
    static const gck_gates none = {};
    const row_copy copy = {*from, gates ? *gates : none, *to, rows, frames};
    const bool tiles = rows >= TILE / 4 && (from->step != 1 || to->rows.step != 1);
    const int64_t across = tiles ? TILE : MOVE_THREADS, down = tiles ? TILE : 1;
    const dim3 grid((unsigned)((frames + across - 1) / across),
                    (unsigned)min((rows + down - 1) / down, (int64_t)ROWS_MAX));
    return launch_dependent(tiles ? move_tiles : move_rows, grid, MOVE_THREADS, 0, stream, copy);
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
