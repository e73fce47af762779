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
 *                         that fetch the next tile while they compute. With few taps the limit is memory bandwidth: a
 *                         warp has tiles of its own, so that no warp waits for its block, and the number of taps is a
 *                         compile-time constant (the next of 0, 16, 32, 48, 64, and one more), so that the loop unrolls
 *                         and every tap is an operand of its multiply-add: no instruction loads it.
 *      direct_many        one response per output; the taps are read from shared memory, four in a 128-bit broadcast.
 *      direct_segmented   responses of more than SEGMENT taps, and outputs with several routes. The SEGMENT taps of a
 *                         segment are summed in floats (125 dB of precision), the segments in doubles, so that the
 *                         error does not grow with the length.
 *
 * The contract of gck_direct, the launcher that chooses, is in kernels.h. A kernel on tensor cores, of floats as two
 * halves each, was 6 to 17 % faster than overlap-save from 34 to 129 taps and slower beyond; it is not kept
 * (docs/experiments/direct.md).
 *
 * What it buys: 2^23 samples with 32 taps take 0.0203 instead of the 0.0226 ms of overlap-save on an H200, 10 %, and
 * with 16 taps 1.05 times a copy; from 49 taps on overlap-save is faster (docs/experiments/direct.md).
 */
#include "kernels/engine/launch.cuh"
#include "kernels/engine/routes.cuh"

#include <cuda_pipeline.h>

namespace {

enum { BLOCK = 128, SEGMENT = 512 };

/* `count` outputs from `first` on, which share a response. */
struct output_range {
    int first, count;
};

/* Taps of a kernel whose loop over them is not unrolled. */
enum { AT_RUN_TIME = -1 };

/* Loads taps 1 to `padded` in reverse order into shared memory, zeros first. Tap 0 is applied last, to the window as it
 * is then, so that the tile can begin a multiple of four floats before the outputs. */
__device__ __forceinline__ void load_taps(float *reversed, const float *taps, int count, int padded) {
    for (int m = threadIdx.x; m < padded; m += BLOCK) {
        int k = padded - m;
        reversed[m] = k < count ? taps[k] : 0.0f;
    }
}

/* Starts copying x[i] to tile[i] for i < count, 16 bytes at a time, up to the end of the signal at x[length]. COUNT:
 * count, if it is a compile-time constant, else 0. */
template <int THREADS, int COUNT>
__device__ __forceinline__ void fetch_tile(float *tile, const float *x, int count, int64_t length) {
    const int first = 4 * (threadIdx.x % THREADS), line = 4 * THREADS;
    if (COUNT && length >= COUNT) {
#pragma unroll
        for (int i = 0; i < COUNT; i += line)
            if (i + line <= COUNT || first < COUNT - i)
                __pipeline_memcpy_async(tile + i + first, x + i + first, 4 * sizeof(float));
    } else {
        const int end = (int)min((int64_t)count, (length + 3) & ~(int64_t)3);
#pragma unroll(COUNT ? 1 : 4)
        for (int i = first; i < end; i += line)
            __pipeline_memcpy_async(tile + i, x + i, 4 * sizeof(float));
    }
}

template <int COUNT> struct alignas(16) constant_taps {
    float reversed[COUNT];
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

/* Computes acc[r] = first tile[padded + r] + sum over m < padded of reversed[m] tile[r + m]. padded: TAPS, or a
 * multiple of the window. */
template <int OUTPUTS, int TAPS, typename Taps>
__device__ __forceinline__ void slide(float *acc, const float *tile, const Taps &taps, int padded) {
    const int WINDOW = OUTPUTS + 4, STEP = TAPS < 0 ? WINDOW : 4;
    float w[WINDOW];
#pragma unroll
    for (int i = 0; i < OUTPUTS; i += 4) {
        float4 x = *(const float4 *)(tile + i);
        w[i] = x.x, w[i + 1] = x.y, w[i + 2] = x.z, w[i + 3] = x.w;
    }
#pragma unroll
    for (int r = 0; r < OUTPUTS; r++)
        acc[r] = 0.0f;
#pragma unroll(TAPS < 0 ? 1 : 16)
    for (int m = 0; m < (TAPS < 0 ? padded : TAPS); m += STEP) {
#pragma unroll
        for (int q = 0; q < STEP; q += 4) {
            const float4 x = *(const float4 *)(tile + m + q + OUTPUTS), h = taps.four(m + q);
            const int k = TAPS < 0 ? q : m, at = (OUTPUTS + k) % WINDOW;
            w[at] = x.x, w[at + 1] = x.y, w[at + 2] = x.z, w[at + 3] = x.w;
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                acc[r] = fmaf(h.x, w[(k + r) % WINDOW], acc[r]);
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                acc[r] = fmaf(h.y, w[(k + r + 1) % WINDOW], acc[r]);
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                acc[r] = fmaf(h.z, w[(k + r + 2) % WINDOW], acc[r]);
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                acc[r] = fmaf(h.w, w[(k + r + 3) % WINDOW], acc[r]);
        }
    }
#pragma unroll
    for (int r = 0; r < OUTPUTS; r++)
        acc[r] = fmaf(taps.first, w[(r + (TAPS < 0 ? 0 : TAPS)) % WINDOW], acc[r]);
}

/* Waits for the threads that share a tile: a warp or the block. */
template <int THREADS> __device__ __forceinline__ void tile_barrier() {
    if (THREADS == 32)
        __syncwarp();
    else
        __syncthreads();
}

/* Stores the outputs of a tile, OUTPUTS per thread; `count` of them exist. A warp writes whole lines, through its part
 * of the tile, which it overwrites. */
template <int THREADS, int OUTPUTS>
__device__ __forceinline__ void store(float *tile, const float *acc, float *out, int64_t count) {
    const int UNIT = 32 * OUTPUTS, LINE = 4 * 32, lane = threadIdx.x % 32;
    const int first = THREADS == 32 ? 0 : threadIdx.x / 32 * UNIT;
    tile_barrier<THREADS>(); /* all threads have read the tile */
    tile += first;
    out += first;
    count -= first;
#pragma unroll
    for (int r = 0; r < OUTPUTS; r += 4)
        *(float4 *)(tile + OUTPUTS * lane + r) = make_float4(acc[r], acc[r + 1], acc[r + 2], acc[r + 3]);
    __syncwarp();
    if (count >= UNIT) {
#pragma unroll
        for (int i = 0; i < UNIT; i += LINE)
            *(float4 *)(out + i + 4 * lane) = *(const float4 *)(tile + i + 4 * lane);
    } else {
        for (int i = 4 * lane; i < count; i += LINE)
            *(float4 *)(out + i) = *(const float4 *)(tile + i);
    }
}

/* Returns the number of taps after the first, rounded up to a multiple of the window. */
template <int OUTPUTS> __host__ __device__ __forceinline__ int padded_taps(int count) {
    return (count - 1 + OUTPUTS + 3) / (OUTPUTS + 4) * (OUTPUTS + 4);
}

/* Resident blocks of 128 threads per multiprocessor to compile for; Turing has at most 1024 threads. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
enum { RESIDENT_ONE = 6, RESIDENT_MANY = 8 };
#else
enum { RESIDENT_ONE = 8, RESIDENT_MANY = 10 };
#endif

/* ---- One response ------------------------------------------------------------------------------------------------ */

/* The form of direct_one for TAPS taps after the first: `threads` share a tile. */
template <int TAPS> struct form {
    static const bool few = TAPS >= 0;
    static const int threads = few ? 32 : 64, block = few ? 128 : 64, groups = block / threads;
    static const int outputs = few ? 12 : 28, tile = outputs * threads, resident = few ? RESIDENT_ONE : 12;
    static const int taps_size = few ? (TAPS ? TAPS : 4) : SEGMENT, shared = tile + (few ? TAPS : SEGMENT);
};

/* One response for the outputs from `output` on, counted by block.y. The next tile is copied while this one is
 * computed; the outputs are stored through the tile that they were computed from. run_time_padded: TAPS, if that is
 * AT_RUN_TIME. */
template <int TAPS>
__global__ void __launch_bounds__(form<TAPS>::block, form<TAPS>::resident)
    direct_one(gck_routes a, int output, const __grid_constant__ constant_taps<form<TAPS>::taps_size> taps,
               int run_time_padded, int64_t frames) {
    typedef form<TAPS> f;
    const int COUNT = f::few ? f::shared : 0;
    __shared__ __align__(16) float tiles[2 * f::groups][f::shared];
    const int group = f::groups == 1 ? 0 : threadIdx.x / f::threads, padded = f::few ? TAPS : run_time_padded;
    const int64_t step = (int64_t)gridDim.x * f::groups * f::tile;
    output += blockIdx.y;
    const float *in = a.in + single_route(a, output).input * a.in_stride - padded;
    float *out = a.out + output * a.out_stride;
    int64_t n = ((int64_t)blockIdx.x * f::groups + group) * f::tile;
    int buffer = 0;
    if (n < frames)
        fetch_tile<f::threads, COUNT>(tiles[2 * group], in + n, f::tile + padded, frames - n + padded);
    __pipeline_commit();
#pragma unroll 1
    for (; n < frames; n += step) {
        float acc[f::outputs];
        float *tile = tiles[2 * group + buffer];
        buffer = 1 - buffer;
        __pipeline_wait_prior(0);
        tile_barrier<f::threads>(); /* the tile is complete, and the outputs of the other one are stored */
        if (n + step < frames)
            fetch_tile<f::threads, COUNT>(tiles[2 * group + buffer], in + n + step, f::tile + padded,
                                          frames - n - step + padded);
        __pipeline_commit();
        slide<f::outputs, TAPS>(acc, tile + f::outputs * (threadIdx.x % f::threads), taps, padded);
        store<f::threads, f::outputs>(tile, acc, out + n, frames - n);
    }
}

template <int TAPS>
cudaError_t launch_one(const gck_routes *routes, output_range outputs, const float *h, int count, int64_t frames,
                       cudaStream_t stream) {
    typedef form<TAPS> f;
    const int padded = f::few ? TAPS : padded_taps<f::outputs>(count);
    const int64_t tile = f::groups * f::tile;
    constant_taps<f::taps_size> taps;
    taps.first = h[0];
    for (int m = 0; m < f::taps_size; m++)
        taps.reversed[m] = m < padded && padded - m < count ? h[padded - m] : 0.0f;
    int multiprocessors = 0;
    cudaError_t err = count_multiprocessors(&multiprocessors);
    if (err)
        return err;
    const unsigned blocks = (unsigned)min((frames + tile - 1) / tile, (int64_t)f::resident * multiprocessors);
    direct_one<TAPS>
        <<<dim3(blocks, (unsigned)outputs.count), f::block, 0, stream>>>(*routes, outputs.first, taps, padded, frames);
    return cudaGetLastError();
}

/* The kernels by their greatest number of taps. That of a single tap reads no sample in front of the first output. */
const struct row {
    int taps_max;
    cudaError_t (*launch)(const gck_routes *routes, output_range outputs, const float *h, int count, int64_t frames,
                          cudaStream_t stream);
} rows[] = {{1, launch_one<0>},
            {17, launch_one<16>},
            {33, launch_one<32>},
            {49, launch_one<48>},
            {GCK_DIRECT_SHORT_TAPS_MAX, launch_one<64>},
            {SEGMENT, launch_one<AT_RUN_TIME>}};

/* Convolves a range of outputs that share the plane of the first one. */
cudaError_t launch_range(const gck_routes *routes, output_range outputs, const gck_direct_taps *taps, int64_t frames,
                         cudaStream_t stream) {
    const int count = (int)taps->taps_count;
    const float *h = taps->host_taps + (int64_t)routes->host_route[outputs.first].plane * count;
    const row *r = rows;
    while (count > r->taps_max)
        r++;
    return r->launch(routes, outputs, h, count, frames, stream);
}

/* ---- Responses in shared memory ---------------------------------------------------------------------------------- */

/* Sums the products of `count` <= SEGMENT taps from `h` on, into the outputs of this block from frame n0 on. x: the
 * sample of tap 0 at n0. */
template <int OUTPUTS>
__device__ __forceinline__ void sum_segment(float *acc, float *tile, const float *x, const float *h, int count,
                                            int64_t length) {
    const int TILE = OUTPUTS * BLOCK, padded = padded_taps<OUTPUTS>(count);
    __shared__ __align__(16) float reversed[SEGMENT];
    load_taps(reversed, h, count, padded);
    fetch_tile<BLOCK, 0>(tile, x - padded, TILE + padded, length + padded);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    const shared_taps taps = {reversed, h[0]};
    __syncthreads();
    slide<OUTPUTS, AT_RUN_TIME>(acc, tile + OUTPUTS * threadIdx.x, taps, padded);
}

/* One response per output; block.y: output. */
template <int OUTPUTS>
__global__ void __launch_bounds__(BLOCK, OUTPUTS == 28 ? 6 : RESIDENT_MANY)
    direct_many(gck_routes a, const float *__restrict__ taps, int count, int64_t frames) {
    __shared__ __align__(16) float tile[OUTPUTS * BLOCK + SEGMENT];
    const int64_t n0 = (int64_t)blockIdx.x * OUTPUTS * BLOCK;
    const gck_route route = single_route(a, blockIdx.y);
    float acc[OUTPUTS];
    sum_segment<OUTPUTS>(acc, tile, a.in + route.input * a.in_stride + n0, taps + (int64_t)route.plane * count, count,
                         frames - n0);
    store<BLOCK, OUTPUTS>(tile, acc, a.out + blockIdx.y * a.out_stride + n0, frames - n0);
}

/* block.y: output. */
__global__ void __launch_bounds__(BLOCK, 4)
    direct_segmented(gck_routes a, const float *__restrict__ taps, int64_t count, int64_t frames) {
    const int OUTPUTS = 28, TILE = OUTPUTS * BLOCK;
    __shared__ __align__(16) float tile[TILE + SEGMENT];
    __shared__ double total[TILE]; /* [r][thread]: free of bank conflicts */
    const int64_t n0 = (int64_t)blockIdx.x * TILE;
    float acc[OUTPUTS];
#pragma unroll
    for (int r = 0; r < OUTPUTS; r++)
        total[r * BLOCK + threadIdx.x] = 0.0;
    for (int e = a.row[blockIdx.y]; e < a.row[blockIdx.y + 1]; e++) {
        const gck_route route = a.route[e];
        for (int64_t k = 0; k < count; k += SEGMENT) {
            __syncthreads(); /* other threads may still read the previous segment */
            sum_segment<OUTPUTS>(acc, tile, a.in + route.input * a.in_stride + n0 - k, taps + route.plane * count + k,
                                 (int)min((int64_t)SEGMENT, count - k), frames - n0 + k);
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                total[r * BLOCK + threadIdx.x] += (double)acc[r];
        }
    }
#pragma unroll
    for (int r = 0; r < OUTPUTS; r++)
        acc[r] = (float)total[r * BLOCK + threadIdx.x];
    store<BLOCK, OUTPUTS>(tile, acc, a.out + blockIdx.y * a.out_stride + n0, frames - n0);
}

/* Convolves all outputs, each with the response of its route, in one launch. */
template <int OUTPUTS>
cudaError_t launch_many(const gck_routes *routes, const gck_direct_taps *taps, int64_t frames, cudaStream_t stream) {
    unsigned tiles = (unsigned)((frames + OUTPUTS * BLOCK - 1) / (OUTPUTS * BLOCK));
    direct_many<OUTPUTS><<<dim3(tiles, (unsigned)routes->outputs), BLOCK, 0, stream>>>(*routes, taps->taps,
                                                                                       (int)taps->taps_count, frames);
    return cudaGetLastError();
}

/* Convolves outputs with one route each and at most SEGMENT taps. */
cudaError_t launch_single_routes(const gck_routes *routes, const gck_direct_taps *taps, int64_t frames,
                                 cudaStream_t stream) {
    enum { LAUNCHES_MAX = 4, FEW_TAPS = 48 };
    bool shared = true; /* one response for all outputs */
    for (int o = 1; o < routes->outputs; o++)
        shared = shared && routes->host_route[o].plane == routes->host_route[0].plane;
    int together = shared ? routes->outputs : 1;
    if (routes->outputs / together > LAUNCHES_MAX) /* few taps are limited by memory: fewer outputs, more blocks */
        return taps->taps_count > FEW_TAPS ? launch_many<28>(routes, taps, frames, stream)
                                           : launch_many<12>(routes, taps, frames, stream);
    cudaError_t err = cudaSuccess;
    for (int o = 0; o < routes->outputs && !err; o += together)
        err = launch_range(routes, output_range{o, together}, taps, frames, stream);
    return err;
}

} // namespace

cudaError_t gck_direct(const gck_routes *routes, const gck_direct_taps *taps, int64_t frames, cudaStream_t stream) {
    if (routes->single && taps->taps_count <= SEGMENT)
        return launch_single_routes(routes, taps, frames, stream);
    dim3 grid((unsigned)((frames + 28 * BLOCK - 1) / (28 * BLOCK)), routes->outputs);
    direct_segmented<<<grid, BLOCK, 0, stream>>>(*routes, taps->taps, taps->taps_count, frames);
    return cudaGetLastError();
}
