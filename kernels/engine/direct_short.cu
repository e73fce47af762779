/*
 * Direct convolution with few taps, limited by memory bandwidth: every sample should be read once and written once,
 * with the multiply-adds done meanwhile.
 *
 *      y[i0 + r] = sum over m of h'[m] x[i0 + r + m],     h' the reversed taps
 *
 * Memory: a warp works alone, so that no warp waits for its block. It owns two tiles of shared memory and copies the
 * next one asynchronously while it computes. A lane computes OUTPUTS adjacent outputs; its window slides through
 * registers as in direct.cu. The number of taps is a compile-time constant (the next of 0, 16, 32, 48, 64, and one
 * more), so that the loop unrolls completely and every tap is a constant operand of its multiply-add: no instruction
 * loads it.
 *
 * The launcher gck_direct_short reads the taps from host memory before it returns; otherwise as gck_direct in
 * kernels.h.
 */
#include "direct.cuh"

#include <cuda_pipeline.h>

namespace {

enum { OUTPUTS = 12, WINDOW = OUTPUTS + 4, UNIT = 32 * OUTPUTS, WARPS = 4, LINE = 4 * 32 };

/* Resident blocks per multiprocessor to compile for; Turing has at most 1024 threads. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
enum { RESIDENT = 6 };
#else
enum { RESIDENT = 8 };
#endif

/* Taps in reverse order without the first one, which is applied last, to the window as it is then, so that the tile can
 * begin a multiple of four floats before the outputs. */
template <int TAPS> struct constant_taps {
    float reversed[TAPS ? TAPS : 1];
    float first;
};

/* Starts copying x[i] to tile[i] for i < COUNT, up to the end of the signal at x[length]. */
template <int COUNT> __device__ __forceinline__ void fetch(float *tile, const float *x, int64_t length) {
    int lane = 4 * (threadIdx.x % 32);
    if (length >= COUNT) {
#pragma unroll
        for (int i = 0; i < COUNT; i += LINE)
            if (i + LINE <= COUNT || lane < COUNT - i)
                __pipeline_memcpy_async(tile + i + lane, x + i + lane, 4 * sizeof(float));
    } else {
        for (int i = lane; i < length; i += LINE)
            __pipeline_memcpy_async(tile + i, x + i, 4 * sizeof(float));
    }
}

/* Computes acc[r] = first x[r + TAPS] + sum over m of reversed[m] x[r + m]; x: the lane's part of the tile. */
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

/* block.y counts outputs from `output` on, which share the response. */
template <int TAPS>
__global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    direct_short(gck_matrix a, int output, const __grid_constant__ constant_taps<TAPS> taps, int64_t frames) {
    const int COUNT = UNIT + TAPS;
    __shared__ __align__(16) float tiles[2 * WARPS][COUNT];
    const int warp = threadIdx.x / 32;
    const int64_t step = (int64_t)gridDim.x * WARPS * UNIT;
    output += blockIdx.y;
    const float *in = a.in + single_route(a, output).input * a.in_stride - TAPS;
    float *out = a.out + output * a.out_stride;
    int64_t n = ((int64_t)blockIdx.x * WARPS + warp) * UNIT;
    int buffer = 0;
    if (n < frames)
        fetch<COUNT>(tiles[2 * warp], in + n, frames - n + TAPS);
    __pipeline_commit();
#pragma unroll 1
    for (; n < frames; n += step) {
        float acc[OUTPUTS];
        float *tile = tiles[2 * warp + buffer];
        buffer = 1 - buffer;
        __pipeline_wait_prior(0);
        __syncwarp();
        if (n + step < frames)
            fetch<COUNT>(tiles[2 * warp + buffer], in + n + step, frames - n - step + TAPS);
        __pipeline_commit();
        slide<TAPS>(acc, tile + OUTPUTS * (threadIdx.x % 32), taps);
        __syncwarp(); /* all lanes have read the tile */
        store_warp<OUTPUTS>(tile, acc, out + n, frames - n);
        __syncwarp();
    }
}

template <int TAPS>
cudaError_t launch(const gck_matrix *matrix, output_range outputs, const float *h, int count, int64_t frames,
                   cudaStream_t stream) {
    const int64_t tile = WARPS * UNIT;
    constant_taps<TAPS> taps;
    taps.first = h[0];
    for (int m = 0; m < TAPS; m++)
        taps.reversed[m] = TAPS - m < count ? h[TAPS - m] : 0.0f;
    unsigned blocks;
    cudaError_t err = persistent_grid(8, (frames + tile - 1) / tile, &blocks);
    if (err)
        return err;
    direct_short<TAPS>
        <<<dim3(blocks, (unsigned)outputs.count), 32 * WARPS, 0, stream>>>(*matrix, outputs.first, taps, frames);
    return cudaGetLastError();
}

/* The kernels by their greatest number of taps. That of a single tap reads no sample in front of the first output. */
const struct row {
    int taps_max;
    cudaError_t (*launch)(const gck_matrix *matrix, output_range outputs, const float *h, int count, int64_t frames,
                          cudaStream_t stream);
} rows[] = {
    {1, launch<0>}, {17, launch<16>}, {33, launch<32>}, {49, launch<48>}, {GCK_DIRECT_SHORT_TAPS_MAX, launch<64>}};

} // namespace

cudaError_t gck_direct_short(const gck_matrix *matrix, output_range outputs, const float *host_taps, int taps_count,
                             int64_t frames, cudaStream_t stream) {
    for (const row &r : rows)
        if (taps_count <= r.taps_max)
            return r.launch(matrix, outputs, host_taps, taps_count, frames, stream);
    return cudaErrorInvalidValue;
}
