/*
 * Transforms of N = C R complex points in three kernels: what overlap-save (overlap_save_3pass.cu, whose head comment
 * explains the method) and jobs on device memory (job_3pass.cu) share. They differ in where samples come from and go
 * to:
 *
 *      Source::load<F>(v, n2, t)    loads the samples of column n2 that thread t transforms: points (t + j T) R + n2 of
 *                                   the block in v[j].x, those N further on in v[j].y. Returns false if all are zero.
 *      Target::reads()              whether the block has samples to store
 *      Target::column()             the column, 0 .. 7, from which the samples of 8 columns are an aligned sector
 *      Target::store<F>(v, n2, t)   stores them
 *
 * block.x: columns; block.y: block of a signal; block.z: signal. The kernels are launched early (launch.cuh): what a
 * kernel before them writes is read by plain loads.
 */
#ifndef GC_KERNELS_THREE_PASS_CUH
#define GC_KERNELS_THREE_PASS_CUH

#include "columns.cuh"
#include "launch.cuh"
#include "twiddles.h"

#include "kernels/device/right_angle.cuh"

namespace {

enum { ROW_THREADS = 32 * ROWS_PER_BLOCK };

const int row_bytes = ROWS_PER_BLOCK * row_fft::shared * (int)sizeof(float2);
const int row_twiddles = row_fft::forward_twiddles + row_fft::inverse_twiddles;

/* ---- Columns ----------------------------------------------------------------------------------------------------- */

/* Returns where column n2 of this block's transform begins. */
template <typename F> __device__ __forceinline__ int64_t transform_start(int n2) {
    return ((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * F::C * ROW_POINTS + n2;
}

template <int A, int B, typename Source>
__global__ void __launch_bounds__(column_fft<A, B>::threads, 512 / column_fft<A, B>::threads)
    forward_columns(const __grid_constant__ Source source, const float2 *__restrict__ twiddles, float2 *scratch) {
    typedef column_fft<A, B> f;
    extern __shared__ __align__(16) float2 shared[];
    pdl_trigger();
    pdl_wait();
    const int k = threadIdx.x % f::columns, t = threadIdx.x / f::columns, n2 = blockIdx.x * f::columns + k;
    float2 v[f::P];
    if (source.template load<f>(v, n2, t)) {
        f::forward(v, shared, k, t, twiddles);
        twiddle_column<A, B, false>(v, n2, t);
    } else {
#pragma unroll
        for (int j = 0; j < f::P; j++)
            v[j] = make_float2(0.0f, 0.0f);
    }
    float2 *to = scratch + transform_start<f>(n2);
#pragma unroll
    for (int i = 0; i < f::P; i++)
        to[(int64_t)f::leaf(i, t) * ROW_POINTS] = v[i];
}

template <int A, int B, typename Target>
__global__ void __launch_bounds__(column_fft<A, B>::threads, 512 / column_fft<A, B>::threads)
    inverse_columns(const __grid_constant__ Target target, const float2 *__restrict__ twiddles, const float2 *scratch) {
    typedef column_fft<A, B> f;
    extern __shared__ __align__(16) float2 shared[];
    pdl_trigger();
    pdl_wait();
    if (!target.reads())
        return;
    const int k = threadIdx.x % f::columns, t = threadIdx.x / f::columns;
    const int n2 = (target.column() + blockIdx.x * f::columns + k) % ROW_POINTS;
    const float2 *from = scratch + transform_start<f>(n2);
    float2 v[f::P];
#pragma unroll
    for (int i = 0; i < f::P; i++)
        v[i] = from[(int64_t)f::leaf(i, t) * ROW_POINTS];
    twiddle_column<A, B, true>(v, n2, t);
    f::inverse(v, shared, k, t, twiddles);
    untwist<f::P>(v, untwist_angle<f::C>(t));
    target.template store<f>(v, n2, t);
}

/* The steps over the columns for 2^(A + B) rows, and the table of the whole transform. */
template <int A, int B> struct three_pass {
    typedef column_fft<A, B> f;
    static const int64_t points = (int64_t)f::C * ROW_POINTS;
    static const int twiddles = row_twiddles + f::forward_twiddles + f::inverse_twiddles;
    static const int shared_bytes = f::bytes > row_bytes ? f::bytes : row_bytes;

    static void write_twiddles(float2 *to) {
        to = write_inverse_twiddles(write_forward_twiddles(to, 5, 5), 5, row_fft::T);
        if (B > 0)
            write_inverse_twiddles(write_forward_twiddles(to, A, B, 0.25), A, f::T);
    }

    static dim3 grid(int64_t blocks, int64_t signals) {
        return dim3(ROW_POINTS / f::columns, (unsigned)blocks, (unsigned)signals);
    }

    /* Queues the columns of signals x blocks transforms into `scratch`. */
    template <typename Source>
    static cudaError_t forward(const Source &source, int64_t blocks, int64_t signals, const float2 *table,
                               float2 *scratch, cudaStream_t stream) {
        const cudaError_t err = allow_shared(forward_columns<A, B, Source>, f::bytes);
        return err ? err
                   : launch_dependent(forward_columns<A, B, Source>, grid(blocks, signals), f::threads, f::bytes,
                                      stream, source, table + row_twiddles, scratch);
    }

    template <typename Target>
    static cudaError_t inverse(const Target &target, int64_t blocks, int64_t signals, const float2 *table,
                               const float2 *scratch, cudaStream_t stream) {
        const cudaError_t err = allow_shared(inverse_columns<A, B, Target>, f::bytes);
        return err ? err
                   : launch_dependent(inverse_columns<A, B, Target>, grid(blocks, signals), f::threads, f::bytes,
                                      stream, target, table + row_twiddles + f::forward_twiddles, scratch);
    }
};

/* ---- Rows: a warp transforms one row of 1024 points -------------------------------------------------------------- */

/* Returns the row of a warp, as an offset in a transform: block.x is one of `per_rows` blocks for each group of
 * ROWS_PER_BLOCK rows. */
__device__ __forceinline__ int64_t warp_row_start(int per_rows) {
    return (int64_t)(blockIdx.x / per_rows * ROWS_PER_BLOCK + threadIdx.x / 32) * ROW_POINTS;
}

__device__ __forceinline__ void load_row(float2 *v, const float2 *from, int t) {
#pragma unroll
    for (int j = 0; j < row_fft::P; j++)
        v[j] = from[t + j * row_fft::T];
}

/* Loads or stores a row of a spectrum: two registers of a thread are adjacent. */
__device__ __forceinline__ void load_spectrum(float2 *v, const float2 *from, int t) {
#pragma unroll
    for (int j = 0; j < row_fft::P; j += 2) {
        const float4 w = *(const float4 *)(from + j * row_fft::T + 2 * t);
        v[j] = make_float2(w.x, w.y);
        v[j + 1] = make_float2(w.z, w.w);
    }
}

__device__ __forceinline__ void store_spectrum(const float2 *v, float2 *to, int t) {
#pragma unroll
    for (int j = 0; j < row_fft::P; j += 2)
        *(float4 *)(to + j * row_fft::T + 2 * t) = make_float4(v[j].x, v[j].y, v[j + 1].x, v[j + 1].y);
}

/* Transforms a row back and stores it. */
__device__ __forceinline__ void finish_row(float2 *v, float2 *s, float2 *to, const float2 *__restrict__ twiddles,
                                           int t) {
    __syncwarp();
    row_fft::inverse(v, s, t, twiddles + row_fft::forward_twiddles);
#pragma unroll
    for (int j = 0; j < row_fft::P; j++)
        to[t + j * row_fft::T] = v[j];
}

/* Transforms rows into spectra, in the layout that the products read; `in` may be `spectra`. Does not let the next
 * kernel start early, so that spectra may be read through the read-only cache. block.x: groups of rows; block.y:
 * transform. */
__global__ void __launch_bounds__(ROW_THREADS)
    transform_rows(int rows, const float2 *__restrict__ twiddles, const float2 *in, float2 *spectra) {
    extern __shared__ __align__(16) float2 shared[];
    const int t = threadIdx.x % 32;
    const int64_t start = (int64_t)blockIdx.y * rows * ROW_POINTS + warp_row_start(1);
    float2 v[row_fft::P];
    pdl_wait();
    load_row(v, in + start, t);
    row_fft::forward(v, shared + threadIdx.x / 32 * row_fft::shared, t, twiddles);
    store_spectrum(v, spectra + start, t);
}

} // namespace

#endif
