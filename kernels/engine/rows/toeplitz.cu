/*
 * Sums of 16-bit rows that share a response, on tensor cores. Contract: job.h.
 *
 * The rows of a response are a matrix product with its Toeplitz matrix, in (rows x source frames) (source frames x
 * target frames), number h[n + shift - m] of source frame m and target frame n. The matrix is never stored: a register
 * of it holds two neighbouring taps, which a thread reads from the response in shared memory. 8 target frames further
 * it has the taps of 8 source frames before, so that a tile of a warp has few different ones.
 *
 * A block computes 64 rows x 64 target frames for each warp. The source passes through shared memory in stages of 64
 * rows x 64 frames. Products of halves are exact, sums are floats.
 *
 * Memory: a target tile reads all source frames that its taps meet, mostly from the second-level cache.
 *
 * What it buys over transforms on the chip: 2.2 times the speed with rows and responses of 128 frames, 1.8 with 512,
 * 1.3 with 1024; transforms are faster from 2048 frames on (64 x 768 rows, H200; docs/experiments/jobs.md).
 */
#include "kernels/engine/async_copy.cuh"
#include "kernels/engine/mma.cuh"
#include "kernels/engine/rows.cuh"

namespace {

enum {
    ROWS = 64,    /* of a block */
    FRAMES = 32,  /* of the target, of a warp */
    STAGE = 64,   /* frames of the source */
    WARPS = 8,    /* of a block, at most */
    RESIDENT = 2, /* blocks of a multiprocessor */
    ROW_TILES = ROWS / 16,
    FRAME_TILES = FRAMES / 8,
    STEPS = STAGE / 16, /* of a product, in a stage */
    STAGES = 4,
    STAGE_BYTES = ROWS * STAGE * 2,
    PADDING = FRAMES + STAGE + 8 /* zeros on both sides of the response */
};

/* Loads a tile of 16 rows x 16 source frames. */
__device__ __forceinline__ void load_tile(unsigned *a, unsigned address) {
#if __CUDA_ARCH__ >= 800
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(address)
                 : "memory");
#endif
}

/* Returns the samples from the response in shared memory to its copy, which is one sample earlier, so that every pair
 * of samples is a word of one of them. Both lie in different banks. */
__host__ __device__ constexpr int copy_of(int taps) {
    return (taps + 2 * PADDING + 63) / 64 * 64 + 32;
}

/* The source rows of a block. */
template <typename Sample> struct shared_rows {
    const Sample *from[ROWS]; /* frame 0 */
    int frames[ROWS];         /* 0: there is no such row */
};

/* How the rows of a block can be loaded. */
enum access {
    APART,   /* sample by sample */
    ALIGNED, /* eight samples at a time */
    EQUAL    /* the same, and all rows are as long as the longest */
};

/* Loads source frames from `first` on, a multiple of STAGE. Eight frames of row r are at unit u ^ (r mod 8) of the
 * row's place, so that the eight rows of a matrix lie in different banks. */
template <typename Sample>
__device__ __forceinline__ void load_stage(unsigned char *stage, const shared_rows<Sample> &rows, int first, access how,
                                           bool whole) {
    for (int i = threadIdx.x; i < ROWS * STAGE / 8; i += blockDim.x) {
        const int r = i / (STAGE / 8), u = i % (STAGE / 8), at = first + 8 * u;
        void *to = stage + r * STAGE * 2 + ((u ^ (r & 7)) << 4);
        const Sample *from = rows.from[r] + at;
        if (whole) {
            copy_16(to, from, 16);
            continue;
        }
        const int left = min(max(rows.frames[r] - at, 0), 8);
        if (how != APART) {
            copy_16(to, left ? from : rows.from[0], 2 * left);
        } else {
            Sample x[8];
#pragma unroll
            for (int j = 0; j < 8; j++)
                x[j] = j < left ? from[j] : Sample(0.0f);
            *(uint4 *)to = *(const uint4 *)x;
        }
    }
}

/* Transposes the 4 x 4 words of four neighbouring threads: word i of thread t becomes word t of thread i. */
__device__ __forceinline__ void transpose_4(unsigned *w, int t) {
    const bool odd = t & 1, upper = t & 2;
    const unsigned a = __shfl_xor_sync(~0u, odd ? w[0] : w[1], 1), b = __shfl_xor_sync(~0u, odd ? w[2] : w[3], 1);
    (odd ? w[0] : w[1]) = a;
    (odd ? w[2] : w[3]) = b;
    const unsigned c = __shfl_xor_sync(~0u, upper ? w[0] : w[2], 2), d = __shfl_xor_sync(~0u, upper ? w[1] : w[3], 2);
    (upper ? w[0] : w[2]) = c;
    (upper ? w[1] : w[3]) = d;
}

template <typename Sample> __device__ __forceinline__ unsigned pack(float x, float y) {
    Sample pair[2];
    set_sample(pair[0], x), set_sample(pair[1], y);
    return *(const unsigned *)pair;
}

/* Stores the sums of 8 target frames of a row, from `frame` on. x: four words of two samples. */
template <typename Sample>
__device__ __forceinline__ void store_8(Sample *row, int64_t frame, const written_frames &frames, const unsigned *x) {
    Sample *to = row + frame;
    if (frame + 8 <= frames.valued && (uintptr_t)to % 16 == 0) {
        *(uint4 *)to = *(const uint4 *)x;
        return;
    }
#pragma unroll
    for (int j = 0; j < 8; j++)
        if (frame + j < frames.end)
            to[j] = frame + j < frames.valued ? ((const Sample *)x)[j] : Sample(0.0f);
}

/* Stores the sums of a warp: the target frames from `frame` on, of the rows that share `response`, from number `index`
 * of these on. */
template <typename Sample>
__device__ __forceinline__ void store_tile(const gck_toeplitz_job &a, float (*sum)[FRAME_TILES][4], int response,
                                           int index, int64_t frame, int lane) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < 2 * ROW_TILES; i++) {
        const int m = i / 2, half = i % 2 * 2, row = sharing_row(a.sharing, response, index + 8 * i + g);
        const bool exists = row < a.sharing.rows;
        const float gain = exists && a.gain ? a.gain[row] : 1.0f;
        const written_frames frames = exists ? frames_to_write(a.target, row) : written_frames{0, 0};
        Sample *to = (Sample *)a.target.rows.data + (exists ? row_start(a.target.rows, row) : 0);
#pragma unroll
        for (int q = 0; q < FRAME_TILES; q += 4) {
            alignas(16) unsigned words[4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float x = gain * sum[m][q + j][half], y = gain * sum[m][q + j][half + 1];
                const int64_t n = frame + 8 * (q + j) + 2 * t;
                if (a.target.accumulate) {
                    x += n < frames.valued ? sample_of(to[n]) : 0.0f;
                    y += n + 1 < frames.valued ? sample_of(to[n + 1]) : 0.0f;
                }
                words[j] = pack<Sample>(x, y);
            }
            transpose_4(words, t);
            if (exists)
                store_8(to, frame + 8 * (q + t), frames, words);
        }
    }
}

/* sum += a stage. tile: this thread's part of the first tile of rows; taps: two samples for source frame 2 t of the
 * stage and target frame g of the warp. */
template <typename Sample>
__device__ __forceinline__ void add_stage(float (*sum)[FRAME_TILES][4], unsigned stage, const unsigned *taps,
                                          int lane) {
    unsigned h[FRAME_TILES + 2 * STEPS - 1]; /* 8 source frames more, or 8 target frames less, at each place */
#pragma unroll
    for (int d = 0; d < FRAME_TILES + 2 * STEPS - 1; d++)
        h[d] = taps[4 * (d - FRAME_TILES + 1)];
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        unsigned x[ROW_TILES][4];
#pragma unroll
        for (int m = 0; m < ROW_TILES; m++)
            load_tile(x[m],
                      stage + (16 * m + lane % 16) * STAGE * 2 + (unsigned)(((2 * k + lane / 16) ^ (lane & 7)) << 4));
#pragma unroll
        for (int n = 0; n < FRAME_TILES; n++)
#pragma unroll
            for (int m = 0; m < ROW_TILES; m++)
                multiply_add<Sample>(sum[m][n], x[m], h[2 * k - n + FRAME_TILES - 1], h[2 * k - n + FRAME_TILES]);
    }
}

/* block.x: target tiles, those with the most source frames first, then groups of ROWS rows, then responses. */
template <typename Sample>
__global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    toeplitz(const __grid_constant__ gck_toeplitz_job a, int tiles, int groups) {
#if __CUDA_ARCH__ >= 800
    extern __shared__ __align__(128) unsigned char stages[];
    __shared__ shared_rows<Sample> rows;
    Sample *h = (Sample *)(stages + STAGES * STAGE_BYTES);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, width = (int)blockDim.x / 32 * FRAMES;
    const int unit = blockIdx.x / tiles, response = unit / groups, index = unit % groups * ROWS;
    const int begin = (tiles - 1 - (int)(blockIdx.x % tiles)) * width, own = begin + warp * FRAMES;
    const int shift = a.shift + (a.reflect ? a.taps - 1 : 0);
    pdl_trigger();
    pdl_wait();
    bool misaligned = false, shorter = false;
    for (int r = threadIdx.x; r < ROWS; r += blockDim.x) {
        const int row = sharing_row(a.sharing, response, index + r);
        const bool exists = row < a.sharing.rows;
        rows.from[r] = (const Sample *)a.source.data + (exists ? row_start(a.source, row) : 0);
        rows.frames[r] = exists ? (int)row_frames(a.source, row) : 0;
        misaligned |= (uintptr_t)rows.from[r] % 16 != 0;
        shorter |= rows.frames[r] < a.source.frames;
    }
    const Sample *taps = (const Sample *)a.response.data + row_start(a.response, response);
    const int held = (int)row_frames(a.response, response);
    const int copy = copy_of(a.taps);
#pragma unroll 4
    for (int i = threadIdx.x; i < a.taps + 2 * PADDING; i += blockDim.x) {
        const int k = a.reflect ? i - PADDING : a.taps - 1 - (i - PADDING);
        const Sample tap = k >= 0 && k < held ? taps[k] : Sample(0.0f);
        h[i] = tap;
        if (i > 0)
            h[i + copy - 1] = tap;
    }
    const access how = __syncthreads_or(misaligned) ? APART : __syncthreads_or(shorter) ? ALIGNED : EQUAL;
    const int low = max(0, begin + shift - a.taps + 1), high = min((int)a.source.frames, begin + width + shift);
    const int first = low / STAGE, end = high > low ? (high + STAGE - 1) / STAGE : first;
    const auto load = [&](int stage, int c) {
        load_stage(stages + stage * STAGE_BYTES, rows, c * STAGE, how,
                   how == EQUAL && (c + 1) * STAGE <= (int)a.source.frames);
    };
    float sum[ROW_TILES][FRAME_TILES][4] = {};
#pragma unroll
    for (int c = 0; c < STAGES - 1; c++) {
        if (first + c < end)
            load(c, first + c);
        end_copies();
    }
#pragma unroll 1
    for (int c = first; c < end; c++) {
        wait_for_groups<STAGES - 2>();
        __syncthreads();
        if (c + STAGES - 1 < end)
            load((c - first + STAGES - 1) % STAGES, c + STAGES - 1);
        end_copies();
        const int at = c * STAGE;
        if (at > own + FRAMES - 1 + shift || at + STAGE - 1 < own + shift - a.taps + 1)
            continue; /* no tap for this warp */
        const int place = PADDING + a.taps - 1 - shift - own + at + lane % 4 * 2 - lane / 4;
        add_stage<Sample>(sum, shared_address(stages + (c - first) % STAGES * STAGE_BYTES),
                          (const unsigned *)(h + (place & 1) * copy) + (place >> 1), lane);
    }
    if (own < a.target.rows.frames)
        store_tile<Sample>(a, sum, response, index, own, lane);
#endif
}

} // namespace

gck_toeplitz_sizes gck_toeplitz_query() {
    return {ROWS, FRAMES, STAGE, WARPS, RESIDENT};
}

int gck_toeplitz_shared(int taps) {
    return STAGES * STAGE_BYTES + 2 * copy_of(taps) * 2;
}

cudaError_t gck_toeplitz_load(int shared_bytes_max) {
    const int bytes = min(shared_bytes_max, gck_toeplitz_shared(GCK_TOEPLITZ_TAPS));
    const cudaError_t err = load_kernel(toeplitz<__half>, bytes);
    return err ? err : load_kernel(toeplitz<__nv_bfloat16>, bytes);
}

cudaError_t gck_toeplitz_convolve(const gck_toeplitz_job *job, cudaStream_t stream) {
    const int width = job->warps * FRAMES, groups = (sharing_rows(job->sharing) + ROWS - 1) / ROWS;
    const int tiles = (int)((job->target.rows.frames + width - 1) / width);
    const auto kernel = job->source.sample == GCK_F16 ? toeplitz<__half> : toeplitz<__nv_bfloat16>;
    return launch_dependent(kernel, dim3((unsigned)(tiles * groups * job->sharing.responses)), 32 * job->warps,
                            gck_toeplitz_shared(job->taps), stream, *job, tiles, groups);
}
