/*
 * Overlap-save in three kernels, for transforms that do not fit into one block's shared memory. A block of 2 N samples
 * is transformed as N complex points (right_angle.cuh). The N = C R points are a matrix of C rows and R columns, index
 * n1 R + n2 in row n1, column n2:
 *
 *      forward_columns   for each n2: load, transform over n1, twiddles            ->  scratch, row J is leaf J
 *      convolve_rows     for each J: transform over n2, multiply, transform back   ->  scratch
 *      inverse_columns   for each n2: twiddles, transform back over J              ->  the last `hop` samples
 *
 * After the columns, row J is a polynomial modulo x^R - e^(2 pi i v(J)) (fft_fma.cuh). Multiplying index n2 by
 * e^(2 pi i v(J) n2 / R) makes it a polynomial modulo x^R - 1, the same for all rows. v(J) contains the quarter of the
 * root x^N - i, so that the rows are ordinary transforms, and the inverse leaves only the twist of the row,
 * e^(i pi n1 / 2 C).
 *
 * The kernels are launched early (launch.cuh), so that samples and scratch are read by plain loads.
 *
 * Memory: the signal is read and written once, the scratch memory written and read twice; with a million points that is
 * four times the traffic of a copy, less if the scratch fits into the second-level cache. A block of the column kernels
 * processes `columns` adjacent columns, so that its accesses are whole sectors.
 *
 * The contracts of the launchers are those of gck_overlap_save and its companions in kernels.h.
 */
#include "columns.cuh"
#include "overlap_save.cuh"
#include "twiddles.h"

namespace {

enum { GRID_MAX = 65535 };

/* Source of the columns: a block of the signal. at(n): sample n of the 2 N. */
struct signal_source {
    gck_matrix a;
    int64_t hop, overlap;

    __device__ __forceinline__ float at(int64_t n) const {
        return a.in[blockIdx.z * a.in_stride + (int64_t)blockIdx.y * hop - overlap + n];
    }
};

/* Source of the columns: a response. */
struct response_source {
    const float *taps;
    int64_t count;
    float scale;

    __device__ __forceinline__ float at(int64_t n) const {
        return n < count ? taps[(int64_t)blockIdx.z * count + n] * scale : 0.0f;
    }
};

/* block.x: columns; block.y: block of the signal; block.z: input, or plane. */
template <int A, int B, typename Source>
__global__ void __launch_bounds__(column_fft<A, B>::threads, 512 / column_fft<A, B>::threads)
    forward_columns(const __grid_constant__ Source source, const float2 *__restrict__ twiddles, float2 *scratch) {
    typedef column_fft<A, B> f;
    extern __shared__ __align__(16) float2 shared[];
    pdl_trigger();
    pdl_wait();
    const int64_t points = (int64_t)f::C * ROW_POINTS;
    int k = threadIdx.x % f::columns, t = threadIdx.x / f::columns, n2 = blockIdx.x * f::columns + k;
    float2 v[f::P];
#pragma unroll
    for (int j = 0; j < f::P; j++) {
        int64_t n = (int64_t)(t + j * f::T) * ROW_POINTS + n2;
        v[j] = make_float2(source.at(n), source.at(n + points));
    }
    f::forward(v, shared, k, t, twiddles);
    twiddle_column<A, B, false>(v, n2, t);
    float2 *to = scratch + ((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * points + n2;
#pragma unroll
    for (int i = 0; i < f::P; i++)
        to[(int64_t)f::leaf(i, t) * ROW_POINTS] = v[i];
}

/* block.x: columns; block.y: block of the signal; block.z: output. */
template <int A, int B>
__global__ void __launch_bounds__(column_fft<A, B>::threads, 512 / column_fft<A, B>::threads)
    inverse_columns(gck_matrix a, int64_t hop, const float2 *__restrict__ twiddles, const float2 *scratch) {
    typedef column_fft<A, B> f;
    extern __shared__ __align__(16) float2 shared[];
    pdl_trigger();
    pdl_wait();
    const int64_t points = (int64_t)f::C * ROW_POINTS, overlap = 2 * points - hop;
    int k = threadIdx.x % f::columns, t = threadIdx.x / f::columns, n2 = blockIdx.x * f::columns + k;
    const float2 *from = scratch + ((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * points + n2;
    float2 v[f::P];
#pragma unroll
    for (int i = 0; i < f::P; i++)
        v[i] = from[(int64_t)f::leaf(i, t) * ROW_POINTS];
    twiddle_column<A, B, true>(v, n2, t);
    f::inverse(v, shared, k, t, twiddles);
    float *y = a.out + blockIdx.z * a.out_stride + (int64_t)blockIdx.y * hop - overlap;
    untwist<f::P>(v, untwist_angle<f::C>(t));
#pragma unroll
    for (int j = 0; j < f::P; j++) {
        int64_t n = (int64_t)(t + j * f::T) * ROW_POINTS + n2;
        if (n >= overlap)
            y[n] = v[j].x;
        if (n + points >= overlap)
            y[n + points] = v[j].y;
    }
}

/* A warp processes a row. block.x: all blocks of the signal for one group of rows, then for the next group, so that a
 * row of the response is used while it is in the cache; block.y: output. */
template <bool Single>
__global__ void __launch_bounds__(32 * ROWS_PER_BLOCK, Single ? 4 : 2)
    convolve_rows(gck_matrix a, int rows, int blocks, const float2 *__restrict__ twiddles,
                  const float2 *__restrict__ spectra, const float2 *in, float2 *out) {
    typedef row_fft f;
    extern __shared__ __align__(16) float2 shared[];
    pdl_trigger();
    pdl_wait();
    float2 *s = shared + threadIdx.x / 32 * f::shared;
    int t = threadIdx.x % 32, block = blockIdx.x % blocks;
    int row = blockIdx.x / blocks * ROWS_PER_BLOCK + threadIdx.x / 32;
    int64_t row_start = (int64_t)row * ROW_POINTS, points = (int64_t)rows * ROW_POINTS;
    float2 v[f::P], sum[Single ? 1 : f::P];
#pragma unroll
    for (int j = 0; j < (Single ? 0 : f::P); j++)
        sum[j] = make_float2(0.0f, 0.0f);
#pragma unroll 1
    for (int e = Single ? 0 : a.row[blockIdx.y]; e < (Single ? 1 : a.row[blockIdx.y + 1]); e++) {
        gck_route route = Single ? single_route(a, blockIdx.y) : a.route[e];
        const float2 *x = in + ((int64_t)route.input * blocks + block) * points + row_start;
        const float2 *h = spectra + route.plane * points + row_start;
#pragma unroll
        for (int j = 0; j < f::P; j++)
            v[j] = x[t + j * f::T];
        __syncwarp();
        f::forward(v, s, t, twiddles);
#pragma unroll
        for (int j = 0; j < f::P; j += 2) {
            float4 w = __ldg((const float4 *)(h + j * f::T + 2 * t));
            float2 first = make_float2(w.x, w.y), second = make_float2(w.z, w.w);
            if (Single) {
                v[j] = mul(v[j], first);
                v[j + 1] = mul(v[j + 1], second);
            } else {
                sum[j] = mul_add(v[j], first, sum[j]);
                sum[j + 1] = mul_add(v[j + 1], second, sum[j + 1]);
            }
        }
    }
#pragma unroll
    for (int j = 0; j < (Single ? 0 : f::P); j++)
        v[j] = sum[j];
    __syncwarp();
    f::inverse(v, s, t, twiddles + f::forward_twiddles);
    float2 *y = out + ((int64_t)blockIdx.y * blocks + block) * points + row_start;
#pragma unroll
    for (int j = 0; j < f::P; j++)
        y[t + j * f::T] = v[j];
}

/* Spectra of responses in the layout that convolve_rows reads; block.x: rows; block.y: plane. */
__global__ void __launch_bounds__(32 * ROWS_PER_BLOCK)
    transform_rows(int rows, const float2 *__restrict__ twiddles, const float2 *__restrict__ in, float2 *spectra) {
    typedef row_fft f;
    extern __shared__ __align__(16) float2 shared[];
    int t = threadIdx.x % 32;
    int64_t row_start = ((int64_t)blockIdx.y * rows + blockIdx.x * ROWS_PER_BLOCK + threadIdx.x / 32) * ROW_POINTS;
    float2 v[f::P];
#pragma unroll
    for (int j = 0; j < f::P; j++)
        v[j] = in[row_start + t + j * f::T];
    f::forward(v, shared + threadIdx.x / 32 * f::shared, t, twiddles);
#pragma unroll
    for (int j = 0; j < f::P; j += 2)
        *(float4 *)(spectra + row_start + j * f::T + 2 * t) = make_float4(v[j].x, v[j].y, v[j + 1].x, v[j + 1].y);
}

const int row_bytes = ROWS_PER_BLOCK * row_fft::shared * (int)sizeof(float2);
const int row_twiddles = row_fft::forward_twiddles + row_fft::inverse_twiddles;

/* The launchers for 2^(A + B) rows. `points` is the number of complex points. */
template <int A, int B> struct launchers {
    typedef column_fft<A, B> f;
    static const int64_t points = (int64_t)f::C * ROW_POINTS;

    static gck_overlap_save_sizes sizes() {
        return gck_overlap_save_sizes{row_twiddles + f::forward_twiddles + f::inverse_twiddles, points,
                                      f::bytes > row_bytes ? f::bytes : row_bytes, points};
    }

    static void write_twiddles(float2 *twiddles) {
        float2 *to = write_inverse_twiddles(write_forward_twiddles(twiddles, 5, 5), 5, row_fft::T);
        if (B > 0)
            write_inverse_twiddles(write_forward_twiddles(to, A, B, 0.25), A, f::T);
    }

    template <typename Source>
    static cudaError_t columns(const Source &source, int64_t blocks, int channels,
                               const gck_overlap_save_memory &memory, cudaStream_t stream) {
        cudaError_t err = allow_shared(forward_columns<A, B, Source>, f::bytes);
        if (err)
            return err;
        dim3 grid(ROW_POINTS / f::columns, (unsigned)blocks, channels);
        return launch_dependent(forward_columns<A, B, Source>, grid, f::threads, f::bytes, stream, source,
                                memory.twiddles + row_twiddles, memory.scratch);
    }

    /* Computes the spectra of as many planes as a grid can have in its second and third dimension. */
    static cudaError_t group(const gck_responses &responses, const gck_overlap_save_memory &memory,
                             cudaStream_t stream) {
        response_source source = {responses.taps, responses.taps_count, 1.0f / (float)points};
        cudaError_t err = columns(source, 1, responses.planes, memory, stream);
        if (err)
            return err;
        dim3 grid(f::C / ROWS_PER_BLOCK, responses.planes);
        transform_rows<<<grid, 32 * ROWS_PER_BLOCK, row_bytes, stream>>>(f::C, memory.twiddles, memory.scratch,
                                                                         memory.spectra);
        return cudaGetLastError();
    }

    static cudaError_t spectra(const gck_responses &responses, const gck_overlap_save_memory &memory,
                               cudaStream_t stream) {
        cudaError_t err = cudaSuccess;
        for (int first = 0; first < responses.planes && !err; first += GRID_MAX) {
            gck_overlap_save_memory part = memory;
            part.spectra += first * points;
            err = group(gck_responses{responses.taps + first * responses.taps_count,
                                      min(GRID_MAX, responses.planes - first), responses.taps_count},
                        part, stream);
        }
        return err;
    }

    static cudaError_t convolve(const gck_matrix *matrix, int64_t hop, int64_t blocks,
                                const gck_overlap_save_memory &memory, cudaStream_t stream) {
        signal_source source = {*matrix, hop, 2 * points - hop};
        /* In place, a row of products replaces the row that it was computed from. */
        float2 *products = memory.scratch + (matrix->in_place ? 0 : matrix->inputs * blocks * points);
        cudaError_t err = columns(source, blocks, matrix->inputs, memory, stream);
        if (!err)
            err = allow_shared(inverse_columns<A, B>, f::bytes);
        if (err)
            return err;
        dim3 rows((unsigned)(blocks * (f::C / ROWS_PER_BLOCK)), matrix->outputs);
        err = launch_dependent(matrix->single ? convolve_rows<true> : convolve_rows<false>, rows, 32 * ROWS_PER_BLOCK,
                               row_bytes, stream, *matrix, f::C, (int)blocks, memory.twiddles, memory.spectra,
                               memory.scratch, products);
        if (err)
            return err;
        dim3 grid(ROW_POINTS / f::columns, (unsigned)blocks, matrix->outputs);
        return launch_dependent(inverse_columns<A, B>, grid, f::threads, f::bytes, stream, *matrix, hop,
                                memory.twiddles + row_twiddles + f::forward_twiddles, products);
    }

    static constexpr overlap_save_row row() {
        return overlap_save_row{2 * points, sizes, write_twiddles, spectra, convolve};
    }
};

const overlap_save_row rows[] = {launchers<4, 0>::row(), launchers<5, 0>::row(), launchers<4, 2>::row(),
                                 launchers<4, 3>::row(), launchers<4, 4>::row(), launchers<5, 4>::row(),
                                 launchers<5, 5>::row()};

} // namespace

const overlap_save_row *gck_overlap_save_3pass_find(int64_t points) {
    for (const overlap_save_row &r : rows)
        if (r.points == points)
            return &r;
    return NULL;
}
