/*
 * What the kernels of dense matrices (dense.h) share: the place of a number, and the tiles that a product stages in
 * shared memory.
 *
 * A tile of responses has 16 outputs x 8 inputs x 4 bins, as floats or as pairs of halves. Its 256 chunks of 16 bytes
 * are in the order in which the lanes of a warp hold the first factor of a tensor-core product m16n8k16, a complex
 * number being two neighbours along k: lane 4 (o mod 8) + i mod 4 has outputs o and o + 8 of input i. Chunks are
 * permuted within 128 bytes, so that the lanes of a product on multiply-adds, which read another order, do not meet in
 * a bank either.
 */
#ifndef GC_KERNELS_DENSE_CUH
#define GC_KERNELS_DENSE_CUH

#include "kernels/engine/async_copy.cuh"
#include "kernels/engine/launch.cuh"

#include <cuda_fp16.h>

namespace dense {

enum { BINS = 4, TILE_CHUNKS = 256, TILE = 2 * TILE_CHUNKS, STEP = GCK_DENSE_TILE_INPUTS };

/* Returns the chunk of a tile of floats that holds outputs `row` (0 .. 7) and row + 8 for input k and a bin of the
 * group. In a tile of halves it holds, for k < 4, the nearest halves of outputs row and row + 8 of inputs k and k + 4,
 * and for k >= 4 those of the rest. */
__host__ __device__ __forceinline__ int tile_chunk(int bin, int row, int k) {
    return ((2 * bin + k / 4) * 32 + row * 4 + k % 4) ^ (2 * bin + row / 4);
}

/* The operands of one product: a part and a range of its blocks. */
struct operands {
    const float2 *responses, *spectra;
    float2 *sums;
    const unsigned *peaks, *response_peaks;         /* of a column, of an output of the part; tensor cores only */
    int first_input, inputs, first_output, outputs; /* of the part */
    int all_inputs, all_outputs, partitions, columns, blocks;
};

/* The tiles of one block of threads: MW x NW warps, each with 16 outputs x 8 NT columns x 4 bins. A stage has the
 * responses, the spectra, and the peaks of the columns, once for each row k of four. */
template <int MW, int NW, int NT, int STAGES> struct tiles {
    static const int warps = MW * NW, threads = 32 * warps, rows = 16 * MW, columns = 8 * NT * NW;
    static const int x_row = 2 * columns + 4; /* 16 bytes each; padded against bank conflicts */
    static const int h_chunks = MW * TILE_CHUNKS, peaks = h_chunks + STEP * x_row, stage = peaks + 2 * columns;
    static const int bytes = STAGES * stage * 16;
    static_assert(warps % 4 == 0, "a warp stages two of the eight rows");
};

/* Returns the place of a number of a row of spectra in a stage: chunk `half` of column n of row k. Four rows of two
 * adjacent columns are in different banks. */
__device__ __forceinline__ int x_chunk(int row_chunks, int k, int n, int half) {
    return k * row_chunks + 2 * n + (half ^ (k / 2 & 1));
}

/* Where a block of threads works. */
struct place {
    int64_t group;
    int tile, tiles, column; /* first tile of outputs, tiles of the part; first column */
};

template <typename L> __device__ __forceinline__ place place_of(const operands &a) {
    const int tiles = (a.outputs + 15) / 16, row_blocks = (a.outputs + L::rows - 1) / L::rows;
    const int column_blocks = (a.blocks + L::columns - 1) / L::columns;
    const int rest = blockIdx.x % (row_blocks * column_blocks);
    return place{(int64_t)(blockIdx.x / (row_blocks * column_blocks)), rest / column_blocks * (L::rows / 16), tiles,
                 rest % column_blocks * L::columns};
}

/* The step that is staged next. */
struct next_step {
    const float4 *h; /* the thread's first chunk of responses */
    const float4 *x; /* the thread's first chunk of spectra, in row k of the first partition's first inputs */
    int64_t h_step;
    int tiles, input, column; /* tiles of responses; first input and first column of the step */
};

template <typename L> __device__ __forceinline__ next_step first_step(const operands &a, const place &at) {
    const int input_tiles = (a.inputs + STEP - 1) / STEP, warp = threadIdx.x / 32;
    next_step s;
    s.tiles = min(at.tiles - at.tile, L::rows / 16);
    s.h = (const float4 *)a.responses + (at.group * a.partitions * input_tiles * at.tiles + at.tile) * TILE_CHUNKS +
          threadIdx.x;
    s.h_step = (int64_t)at.tiles * TILE_CHUNKS;
    s.input = 0;
    s.column = at.column + a.partitions - 1;
    s.x = (const float4 *)a.spectra + 2 * ((at.group * a.all_inputs + a.first_input + warp % 4) * a.columns) +
          threadIdx.x % 32 + warp / 4 * 32;
    return s;
}

/* Calls f(i, chunk within a row) for the chunks that this thread stages in its two rows, k and k + 4, k = warp mod 4.
 */
template <typename L, typename F> __device__ __forceinline__ void with_own_chunks(F f) {
    const int stride = 8 * L::warps, first = threadIdx.x % 32 + threadIdx.x / 128 * 32;
#pragma unroll
    for (int i = 0; i < (2 * L::columns + stride - 1) / stride; i++)
        if (2 * L::columns % stride == 0 || first + i * stride < 2 * L::columns)
            f(i * stride, first + i * stride);
}

/* Returns the place in a stage of chunk c of row k = warp mod 4 of the spectra; that of row k + 4 is 4 rows further. */
template <typename L> __device__ __forceinline__ int own_chunk(int c) {
    const int k = threadIdx.x / 32 % 4;
    return L::h_chunks + k * L::x_row + (c ^ k / 2);
}

/* Stages eight inputs of one partition, and moves on. */
template <typename L> __device__ __forceinline__ void load_stage(float4 *stage, const operands &a, next_step &s) {
#pragma unroll
    for (int i = 0; i < L::h_chunks / L::threads; i++) {
        const bool valid = i * L::threads / TILE_CHUNKS < s.tiles;
        copy_16(stage + threadIdx.x + i * L::threads, valid ? s.h + i * L::threads : s.h, valid ? 16 : 0);
    }
    const int k = threadIdx.x / 32 % 4;
    const float4 *x = s.x + 2 * ((int64_t)s.input * a.columns + s.column);
    const bool near = s.input + k < a.inputs, far = s.input + k + 4 < a.inputs;
    with_own_chunks<L>([&](int from, int c) {
        const bool inside = s.column + c / 2 < a.columns;
        copy_16(stage + own_chunk<L>(c), near && inside ? x + from : s.x, near && inside ? 16 : 0);
        copy_16(stage + own_chunk<L>(c) + 4 * L::x_row, far && inside ? x + from + 8 * (int64_t)a.columns : s.x,
                far && inside ? 16 : 0);
        if (a.peaks)
            copy_4((unsigned *)(stage + L::peaks) + k * 2 * L::columns + c, a.peaks + (inside ? s.column + c / 2 : 0),
                   inside);
    });
    s.h += s.h_step;
    s.input += STEP;
    if (s.input >= a.inputs) {
        s.input = 0;
        s.column--;
    }
}

/* Calls prepare(stage), in which a thread may change the chunks that it has staged, and then multiply(stage) for every
 * step of the sum, with STAGES - 1 steps in flight. */
template <typename L, int STAGES, typename Prepare, typename Multiply>
__device__ __forceinline__ void sum_stages(float4 *shared, const operands &a, const place &at, Prepare prepare,
                                           Multiply multiply) {
    const int steps = (a.inputs + STEP - 1) / STEP * a.partitions;
    next_step next = first_step<L>(a, at);
#pragma unroll 1
    for (int k = 0; k < STAGES - 1; k++) {
        if (k < steps)
            load_stage<L>(shared + k * L::stage, a, next);
        end_copies();
    }
    int from = 0, to = STAGES - 1;
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
        wait_for_groups<STAGES - 2>();
        prepare(shared + from * L::stage);
        __syncthreads();
        if (k + STAGES - 1 < steps)
            load_stage<L>(shared + to * L::stage, a, next);
        end_copies();
        multiply(shared + from * L::stage);
        from = from + 1 < STAGES ? from + 1 : 0;
        to = to + 1 < STAGES ? to + 1 : 0;
    }
}

/* Returns the power of two that brings numbers of at most `peak` (the bits of a float) below 2^15, and its inverse. */
__device__ __forceinline__ float scale_of(unsigned peak) {
    return __uint_as_float((268 - max(peak >> 23, 30u)) << 23);
}
__device__ __forceinline__ float unscale_of(unsigned peak) {
    return __uint_as_float((max(peak >> 23, 30u) - 14) << 23);
}

/* Returns a complex number as the sum of two pairs of halves: the nearest ones (x), and those of the rest (y). */
__device__ __forceinline__ uint2 split_number(float re, float im, float scale) {
    const __half2 high = __floats2half2_rn(re * scale, im * scale);
    const float2 near = __half22float2(high);
    const __half2 low = __floats2half2_rn(fmaf(re, scale, -near.x), fmaf(im, scale, -near.y));
    return make_uint2(*(const unsigned *)&high, *(const unsigned *)&low);
}

/* Launches of one kernel for all bins. */
template <typename L, typename Kernel>
cudaError_t launch_product(Kernel kernel, const operands &a, int64_t points, cudaStream_t stream) {
    cudaError_t err = allow_shared(kernel, L::bytes);
    if (err)
        return err;
    const int64_t blocks =
        points / 2 / BINS * ((a.outputs + L::rows - 1) / L::rows) * ((a.blocks + L::columns - 1) / L::columns);
    return launch_dependent(kernel, dim3((unsigned)blocks), L::threads, L::bytes, stream, a);
}

} // namespace dense

/* A kernel with its tiles. */
struct dense_form {
    int rows, columns, bytes;
    cudaError_t (*launch)(const dense::operands &a, int64_t points, cudaStream_t stream);
};

/* Returns the forms on tensor cores (dense_tensor.cu): few outputs first, then few columns. */
const dense_form *dense_tensor_forms(int *count);

/* Stores whether the code that runs on the current device contains the products on tensor cores. */
cudaError_t dense_tensor_is_compiled(bool *compiled);

/* Queues the product of a part (dense_product.cu). */
cudaError_t gck_dense_product(const gck_dense &a, const gck_dense_part &part, cudaStream_t stream);

/* Returns the bytes of shared memory that a block of the smallest form of the product needs. */
int gck_dense_product_bytes();

#endif
