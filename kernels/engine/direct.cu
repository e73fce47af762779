/*
 * Direct convolution in registers, after the case study of the course (kernels/course/convolution.cu). A thread
 * computes OUTPUTS adjacent outputs; the input window slides through registers whose indices are all compile-time
 * constants.
 *
 *      y[i0 + r] = sum over m of h'[m] x[i0 + r + m],     h' the reversed taps
 *
 *      window   | w0 w1 w2 ...                  w(W-1) |   W = OUTPUTS + 4, a ring: four taps are applied, four inputs
 *                                                          enter; after W taps every register has held every position
 *
 * Memory: the input tile is in shared memory and read four floats at a time. Threads are OUTPUTS floats apart; with
 * OUTPUTS / 4 odd, the eight threads of a load phase access eight different groups of banks.
 *
 *      direct_one         one response for all outputs of the launch. The taps are kernel parameters, that is, constant
 *                         memory, which leaves shared memory to the samples (worth 5 % of the time). Persistent blocks
 *                         that fetch the next tile while they compute.
 *      direct_many        one response per output; the taps are read from shared memory, four in a 128-bit broadcast.
 *      direct_segmented   responses of more than SEGMENT taps, and outputs with several routes. The SEGMENT taps of a
 *                         segment are summed in floats (125 dB of precision), the segments in doubles, so that the
 *                         error does not grow with the length.
 *
 * A single response of few taps is done by direct_short.cu, and up to 512 taps by direct_tensor.cu where the device has
 * fast tensor cores. The contract of gck_direct, the launcher that chooses, is in kernels.h.
 */
#include "direct.cuh"

#include <cuda_pipeline.h>

namespace {

enum { BLOCK = 128, BLOCK_ONE = 64, SEGMENT = 512 };

/* Loads taps 1 to `padded` in reverse order into shared memory, zeros first. Tap 0 is applied last, to the window as it
 * is then, so that the tile can begin a multiple of four floats before the outputs. */
__device__ __forceinline__ void load_taps(float *reversed, const float *taps, int count, int padded) {
    for (int m = threadIdx.x; m < padded; m += BLOCK) {
        int k = padded - m;
        reversed[m] = k < count ? taps[k] : 0.0f;
    }
}

/* Starts copying x[i] to tile[i] for i < count, 16 bytes at a time, up to the end of the signal at x[length]. */
template <int THREADS>
__device__ __forceinline__ void fetch_tile(float *tile, const float *x, int count, int64_t length) {
    int end = (int)min((int64_t)count, (length + 3) & ~(int64_t)3);
    for (int i = 4 * threadIdx.x; i < end; i += 4 * THREADS)
        __pipeline_memcpy_async(tile + i, x + i, 4 * sizeof(float));
    __pipeline_commit();
}

/* Copies the tile as fetch_tile does and waits for this thread's part. */
__device__ __forceinline__ void load_tile(float *tile, const float *x, int count, int64_t length) {
    fetch_tile<BLOCK>(tile, x, count, length);
    __pipeline_wait_prior(0);
}

struct alignas(16) constant_taps {
    float reversed[SEGMENT];
    float first;

    __device__ __forceinline__ float4 four(int m) const {
        return *(const float4 *)(reversed + m);
    }
};

struct shared_taps {
    const float *reversed;
    float first;

    __device__ __forceinline__ float4 four(int m) const {
        return *(const float4 *)(reversed + m);
    }
};

/* Computes acc[r] = first tile[padded + r] + sum over m < padded of reversed[m] tile[r + m] */
template <int OUTPUTS, typename Taps>
__device__ __forceinline__ void slide(float *acc, const float *tile, const Taps &taps, int padded) {
    const int WINDOW = OUTPUTS + 4;
    float w[WINDOW];
#pragma unroll
    for (int i = 0; i < OUTPUTS; i += 4) {
        float4 x = *(const float4 *)(tile + i);
        w[i] = x.x, w[i + 1] = x.y, w[i + 2] = x.z, w[i + 3] = x.w;
    }
#pragma unroll
    for (int r = 0; r < OUTPUTS; r++)
        acc[r] = 0.0f;
#pragma unroll 1
    for (int m = 0; m < padded; m += WINDOW) {
#pragma unroll
        for (int q = 0; q < WINDOW; q += 4) {
            float4 x = *(const float4 *)(tile + m + q + OUTPUTS);
            float4 h = taps.four(m + q);
            const int at = (OUTPUTS + q) % WINDOW;
            w[at] = x.x, w[at + 1] = x.y, w[at + 2] = x.z, w[at + 3] = x.w;
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                acc[r] = fmaf(h.x, w[(q + r) % WINDOW], acc[r]);
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                acc[r] = fmaf(h.y, w[(q + r + 1) % WINDOW], acc[r]);
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                acc[r] = fmaf(h.z, w[(q + r + 2) % WINDOW], acc[r]);
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                acc[r] = fmaf(h.w, w[(q + r + 3) % WINDOW], acc[r]);
        }
    }
#pragma unroll
    for (int r = 0; r < OUTPUTS; r++)
        acc[r] = fmaf(taps.first, w[r], acc[r]);
}

/* Stores the outputs of the tile; `count` of them exist. Overwrites the tile. */
template <int OUTPUTS> __device__ __forceinline__ void store(float *tile, const float *acc, float *out, int64_t count) {
    int first = threadIdx.x / 32 * 32 * OUTPUTS;
    __syncthreads(); /* all threads have read the tile */
    store_warp<OUTPUTS>(tile + first, acc, out + first, count - first);
}

/* Returns the number of taps after the first, rounded up to a multiple of the window. */
template <int OUTPUTS> __host__ __device__ __forceinline__ int padded_taps(int count) {
    return (count - 1 + OUTPUTS + 3) / (OUTPUTS + 4) * (OUTPUTS + 4);
}

/* Resident blocks per multiprocessor to compile for; Turing has at most 1024 threads. */
constexpr int resident(int outputs) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    return outputs == 28 ? 6 : 8;
#else
    return outputs == 28 ? 6 : 10;
#endif
}

/* One response per output; block.y: output. */
template <int OUTPUTS>
__global__ void __launch_bounds__(BLOCK, resident(OUTPUTS))
    direct_many(gck_matrix a, const float *__restrict__ taps, int count, int64_t frames) {
    const int TILE = OUTPUTS * BLOCK;
    __shared__ __align__(16) float tile[TILE + SEGMENT];
    __shared__ __align__(16) float reversed[SEGMENT];
    int64_t n0 = (int64_t)blockIdx.x * TILE;
    int padded = padded_taps<OUTPUTS>(count);
    gck_route route = single_route(a, blockIdx.y);
    const float *h = taps + (int64_t)route.plane * count;
    load_taps(reversed, h, count, padded);
    load_tile(tile, a.in + route.input * a.in_stride + n0 - padded, TILE + padded, frames - n0 + padded);
    shared_taps t = {reversed, h[0]};
    __syncthreads();
    float acc[OUTPUTS];
    slide<OUTPUTS>(acc, tile + OUTPUTS * threadIdx.x, t, padded);
    store<OUTPUTS>(tile, acc, a.out + blockIdx.y * a.out_stride + n0, frames - n0);
}

/* Resident blocks of direct_one per multiprocessor. */
enum { RESIDENT = 12 };

/* One response for the outputs from `output` on, counted by block.y. The next tile is copied while this one is
 * computed; the outputs are stored through the tile that they were computed from. */
__global__ void __launch_bounds__(BLOCK_ONE, RESIDENT)
    direct_one(gck_matrix a, int output, const __grid_constant__ constant_taps taps, int padded, int64_t frames) {
    const int OUTPUTS = 28, TILE = OUTPUTS * BLOCK_ONE;
    __shared__ __align__(16) float tiles[2][TILE + SEGMENT];
    const int64_t step = (int64_t)gridDim.x * TILE;
    output += blockIdx.y;
    const float *in = a.in + single_route(a, output).input * a.in_stride - padded;
    float *out = a.out + output * a.out_stride;
    int64_t n = (int64_t)blockIdx.x * TILE;
    int buffer = 0;
    fetch_tile<BLOCK_ONE>(tiles[0], in + n, TILE + padded, frames - n + padded);
#pragma unroll 1
    for (; n < frames; n += step) {
        float acc[OUTPUTS];
        float *tile = tiles[buffer];
        buffer = 1 - buffer;
        __pipeline_wait_prior(0);
        __syncthreads(); /* the tile is complete, and the outputs of the other one are stored */
        if (n + step < frames)
            fetch_tile<BLOCK_ONE>(tiles[buffer], in + n + step, TILE + padded, frames - n - step + padded);
        slide<OUTPUTS>(acc, tile + OUTPUTS * threadIdx.x, taps, padded);
        store<OUTPUTS>(tile, acc, out + n, frames - n);
    }
}

/* block.y: output. */
__global__ void __launch_bounds__(BLOCK, 4)
    direct_segmented(gck_matrix a, const float *__restrict__ taps, int64_t count, int64_t frames) {
    const int OUTPUTS = 28, TILE = OUTPUTS * BLOCK;
    __shared__ __align__(16) float tile[TILE + SEGMENT];
    __shared__ __align__(16) float reversed[SEGMENT];
    __shared__ double total[TILE]; /* [r][thread]: free of bank conflicts */
    int64_t n0 = (int64_t)blockIdx.x * TILE;
    float acc[OUTPUTS];
#pragma unroll
    for (int r = 0; r < OUTPUTS; r++)
        total[r * BLOCK + threadIdx.x] = 0.0;
    for (int e = a.row[blockIdx.y]; e < a.row[blockIdx.y + 1]; e++) {
        gck_route route = a.route[e];
        for (int64_t k = 0; k < count; k += SEGMENT) {
            const float *h = taps + route.plane * count + k;
            int segment = (int)min((int64_t)SEGMENT, count - k), padded = padded_taps<OUTPUTS>(segment);
            __syncthreads(); /* other threads may still read the previous segment */
            load_taps(reversed, h, segment, padded);
            load_tile(tile, a.in + route.input * a.in_stride + n0 - k - padded, TILE + padded,
                      frames - n0 + k + padded);
            shared_taps t = {reversed, h[0]};
            __syncthreads();
            slide<OUTPUTS>(acc, tile + OUTPUTS * threadIdx.x, t, padded);
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                total[r * BLOCK + threadIdx.x] += (double)acc[r];
        }
    }
#pragma unroll
    for (int r = 0; r < OUTPUTS; r++)
        acc[r] = (float)total[r * BLOCK + threadIdx.x];
    store<OUTPUTS>(tile, acc, a.out + blockIdx.y * a.out_stride + n0, frames - n0);
}

/* Convolves a range of outputs that share the plane of the first one. */
cudaError_t launch_one(const gck_matrix *matrix, output_range outputs, const gck_direct_taps *taps, int64_t frames,
                       cudaStream_t stream) {
    const int OUTPUTS = 28, TILE = OUTPUTS * BLOCK_ONE, count = (int)taps->taps_count;
    const float *h = taps->host_taps + (int64_t)matrix->host_route[outputs.first].plane * count;
    bool tensor = taps->table && count >= GCK_DIRECT_TENSOR_TAPS_MIN;
    cudaError_t err = tensor ? gck_direct_tensor_is_compiled(&tensor) : cudaSuccess;
    if (err)
        return err;
    if (tensor)
        return gck_direct_tensor(matrix, outputs, taps->table, count, frames, stream);
    if (count <= GCK_DIRECT_SHORT_TAPS_MAX)
        return gck_direct_short(matrix, outputs, h, count, frames, stream);
    int padded = padded_taps<OUTPUTS>(count);
    constant_taps t;
    t.first = h[0];
    for (int m = 0; m < SEGMENT; m++)
        t.reversed[m] = m < padded && padded - m < count ? h[padded - m] : 0.0f;
    unsigned blocks;
    err = persistent_grid(RESIDENT, (frames + TILE - 1) / TILE, &blocks);
    if (err)
        return err;
    direct_one<<<dim3(blocks, (unsigned)outputs.count), BLOCK_ONE, 0, stream>>>(*matrix, outputs.first, t, padded,
                                                                                frames);
    return cudaGetLastError();
}

/* Convolves all outputs, each with the response of its route, in one launch. */
template <int OUTPUTS>
cudaError_t launch_many(const gck_matrix *matrix, const gck_direct_taps *taps, int64_t frames, cudaStream_t stream) {
    unsigned tiles = (unsigned)((frames + OUTPUTS * BLOCK - 1) / (OUTPUTS * BLOCK));
    direct_many<OUTPUTS><<<dim3(tiles, (unsigned)matrix->outputs), BLOCK, 0, stream>>>(*matrix, taps->taps,
                                                                                       (int)taps->taps_count, frames);
    return cudaGetLastError();
}

/* Convolves outputs with one route each and at most SEGMENT taps. */
cudaError_t launch_single_routes(const gck_matrix *matrix, const gck_direct_taps *taps, int64_t frames,
                                 cudaStream_t stream) {
    enum { LAUNCHES_MAX = 4, FEW_TAPS = 48 };
    bool shared = true; /* one response for all outputs */
    for (int o = 1; o < matrix->outputs; o++)
        shared = shared && matrix->host_route[o].plane == matrix->host_route[0].plane;
    int together = shared ? matrix->outputs : 1;
    if (matrix->outputs / together > LAUNCHES_MAX) /* few taps are limited by memory: fewer outputs, more blocks */
        return taps->taps_count > FEW_TAPS ? launch_many<28>(matrix, taps, frames, stream)
                                           : launch_many<12>(matrix, taps, frames, stream);
    cudaError_t err = cudaSuccess;
    for (int o = 0; o < matrix->outputs && !err; o += together)
        err = launch_one(matrix, output_range{o, together}, taps, frames, stream);
    return err;
}

} // namespace

cudaError_t gck_direct(const gck_matrix *matrix, const gck_direct_taps *taps, int64_t frames, cudaStream_t stream) {
    if (matrix->single && taps->taps_count <= SEGMENT)
        return launch_single_routes(matrix, taps, frames, stream);
    dim3 grid((unsigned)((frames + 28 * BLOCK - 1) / (28 * BLOCK)), matrix->outputs);
    direct_segmented<<<grid, BLOCK, 0, stream>>>(*matrix, taps->taps, taps->taps_count, frames);
    return cudaGetLastError();
}
