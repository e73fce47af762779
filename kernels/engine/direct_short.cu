/*
 * Direct convolution with few taps, where memory decides: every sample should be read once, written once, and the
 * multiply-adds be done meanwhile.
 *
 * A warp works alone, so that nobody waits for a block: it owns two tiles of shared memory and fetches the next one
 * asynchronously while it computes. A lane computes OUTPUTS neighbouring outputs; its window slides through registers
 * as in direct.cu. The number of taps is a compile-time constant (the next of 16, 32, 48, 64, and one more), so that
 * the whole loop unrolls and every tap is a constant operand of its multiply-adds: no instruction loads it.
 */
#include "direct.cuh"

#include <cuda_pipeline.h>

namespace {

enum { OUTPUTS = 12, WINDOW = OUTPUTS + 4, UNIT = 32 * OUTPUTS, WARPS = 4, LINE = 4 * 32 };

/* Blocks a multiprocessor is to hold: Turing's holds 1024 threads at most. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
enum { RESIDENT = 6 };
#else
enum { RESIDENT = 8 };
#endif

/* Taps reversed, but for the first: it meets the window where it stands in the end, so that the tile may begin a
 * multiple of four floats before the outputs. */
template <int TAPS> struct constant_taps {
    float reversed[TAPS];
    float first;
};

/* tile[i] = x[i] for a whole tile, or where the signal ends at `most`, up to there. */
template <int COUNT> __device__ __forceinline__ void fetch(float *tile, const float *x, int64_t most) {
    int lane = 4 * (threadIdx.x % 32);
    if (most >= COUNT) {
#pragma unroll
        for (int i = 0; i < COUNT; i += LINE)
            if (i + LINE <= COUNT || lane < COUNT - i)
                __pipeline_memcpy_async(tile + i + lane, x + i + lane, 4 * sizeof(float));
    } else {
        for (int i = lane; i < most; i += LINE)
            __pipeline_memcpy_async(tile + i, x + i, 4 * sizeof(float));
    }
}

/* acc[r] = first x[r + TAPS] + sum over m of reversed[m] x[r + m], x being the lane's place in the tile */
template <int TAPS> __device__ __forceinline__ void slide(float *acc, const float *x, const constant_taps<TAPS> &taps) {
    float w[WINDOW];
#pragma unroll
    for (int i = 0; i < OUTPUTS; i += 4) {
        float4 v = *(const float4 *)(x + i);
        w[i] = v.x, w[i + 1] = v.y, w[i + 2] = v.z, w[i + 3] = v.w;
    }
#pragma unroll
    for (int r = 0; r < OUTPUTS; r++)
        acc[r] = 0.0f;
#pragma unroll
    for (int m = 0; m < TAPS; m += 4) {
        float4 v = *(const float4 *)(x + m + OUTPUTS);
        const int at = (OUTPUTS + m) % WINDOW;
        w[at] = v.x, w[at + 1] = v.y, w[at + 2] = v.z, w[at + 3] = v.w;
#pragma unroll
        for (int k = m; k < m + 4; k++)
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                acc[r] = fmaf(taps.reversed[k], w[(k + r) % WINDOW], acc[r]);
    }
#pragma unroll
    for (int r = 0; r < OUTPUTS; r++)
        acc[r] = fmaf(taps.first, w[(r + TAPS) % WINDOW], acc[r]);
}

template <int TAPS>
__global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    few_taps(gck_matrix a, int output, const __grid_constant__ constant_taps<TAPS> taps, int64_t frames) {
    const int COUNT = UNIT + TAPS;
    __shared__ __align__(16) float tiles[2 * WARPS][COUNT];
    const int warp = threadIdx.x / 32;
    const int64_t step = (int64_t)gridDim.x * WARPS * UNIT;
    output += blockIdx.y;
    const float *in = a.in + only_route(a, output).input * a.in_stride - TAPS;
    float *out = a.out + output * a.out_stride;
    int64_t n = ((int64_t)blockIdx.x * WARPS + warp) * UNIT;
    int side = 0;
    if (n < frames)
        fetch<COUNT>(tiles[2 * warp], in + n, frames - n + TAPS);
    __pipeline_commit();
#pragma unroll 1
    for (; n < frames; n += step) {
        float acc[OUTPUTS];
        float *tile = tiles[2 * warp + side];
        side = 1 - side;
        __pipeline_wait_prior(0);
        __syncwarp();
        if (n + step < frames)
            fetch<COUNT>(tiles[2 * warp + side], in + n + step, frames - n - step + TAPS);
        __pipeline_commit();
        slide<TAPS>(acc, tile + OUTPUTS * (threadIdx.x % 32), taps);
        __syncwarp(); /* the tile has been read */
        store_warp<OUTPUTS>(tile, acc, out + n, frames - n);
        __syncwarp();
    }
}

template <int TAPS>
cudaError_t launch(const gck_matrix *matrix, int output, int together, const float *h, int count, int64_t frames,
                   cudaStream_t stream) {
    const int64_t tile = WARPS * UNIT;
    constant_taps<TAPS> taps;
    taps.first = h[0];
    for (int m = 0; m < TAPS; m++)
        taps.reversed[m] = TAPS - m < count ? h[TAPS - m] : 0.0f;
    unsigned blocks;
    cudaError_t failed = persistent_blocks(8, (frames + tile - 1) / tile, &blocks);
    if (failed)
        return failed;
    few_taps<TAPS><<<dim3(blocks, (unsigned)together), 32 * WARPS, 0, stream>>>(*matrix, output, taps, frames);
    return cudaGetLastError();
}

} // namespace

cudaError_t gck_few_taps(const gck_matrix *matrix, int output, int together, const float *host_taps, int count,
                         int64_t frames, cudaStream_t stream) {
    if (count <= 17)
        return launch<16>(matrix, output, together, host_taps, count, frames, stream);
    if (count <= 33)
        return launch<32>(matrix, output, together, host_taps, count, frames, stream);
    if (count <= 49)
        return launch<48>(matrix, output, together, host_taps, count, frames, stream);
    return launch<64>(matrix, output, together, host_taps, count, frames, stream);
}
