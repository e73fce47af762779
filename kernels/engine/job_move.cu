/* Copies rows and converts their samples: out[i][n] = in[i][n], 0 behind the end of row i. Each thread copies one
 * frame; adjacent threads access adjacent frames. Contract: job.h. */
#include "job_rows.cuh"

namespace {

enum { MOVE_THREADS = 256, ROWS_MAX = 65535 };

/* block.x: frames; block.y: rows, in steps of the grid. */
__global__ void move_rows(const __grid_constant__ gck_rows from, const __grid_constant__ gck_rows to, int64_t rows,
                          int64_t frames) {
    const int64_t n = (int64_t)blockIdx.x * MOVE_THREADS + threadIdx.x;
    pdl_wait();
    if (n >= frames)
        return;
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
        float x = 0;
        if (n < row_frames(from, row))
            with_samples(from, row_start(from, row) + n, [&](auto *at) { x = sample_of(*at); });
        with_samples(to, row_start(to, row) + n, [&](auto *at) { set_sample(at, x); });
    }
}

} // namespace

cudaError_t gck_move_load(void) {
    return load_kernel(move_rows, 0);
}

cudaError_t gck_move(const gck_rows *from, const gck_rows *to, int64_t rows, int64_t frames, cudaStream_t stream) {
    const dim3 grid((unsigned)((frames + MOVE_THREADS - 1) / MOVE_THREADS), (unsigned)min(rows, (int64_t)ROWS_MAX));
    return launch_dependent(move_rows, grid, MOVE_THREADS, 0, stream, *from, *to, rows, frames);
}
