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
#include "overlap_save.cuh"
#include "three_pass.cuh"

namespace {

enum { GRID_MAX = 65535 };

/* Source of the columns: a block of the signal. */
struct signal_source {
    gck_matrix a;
    int64_t hop, overlap;

    template <typename F> __device__ __forceinline__ bool load(float2 *v, int n2, int t) const {
        const float *x = a.in + blockIdx.z * a.in_stride + (int64_t)blockIdx.y * hop - overlap + n2;
        const int64_t points = (int64_t)F::C * ROW_POINTS;
#pragma unroll
        for (int j = 0; j < F::P; j++) {
            const int64_t n = (int64_t)(t + j * F::T) * ROW_POINTS;
            v[j] = make_float2(x[n], x[n + points]);
        }
        return true;
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

    template <typename F> __device__ __forceinline__ bool load(float2 *v, int n2, int t) const {
#pragma unroll
        for (int j = 0; j < F::P; j++) {
            const int64_t n = (int64_t)(t + j * F::T) * ROW_POINTS + n2;
            v[j] = make_float2(at(n), at(n + (int64_t)F::C * ROW_POINTS));
        }
        return true;
    }
};

/* Target of the columns: the last `hop` samples of a block. */
struct signal_target {
    gck_matrix a;
    int64_t hop;

    __device__ __forceinline__ bool reads() const {
        return true;
    }

    __device__ __forceinline__ int column() const {
        return 0; /* rows of the output and hops are aligned */
    }

    template <typename F> __device__ __forceinline__ void store(const float2 *v, int n2, int t) const {
        const int64_t points = (int64_t)F::C * ROW_POINTS, overlap = 2 * points - hop;
        float *y = a.out + blockIdx.z * a.out_stride + (int64_t)blockIdx.y * hop - overlap;
#pragma unroll
        for (int j = 0; j < F::P; j++) {
            const int64_t n = (int64_t)(t + j * F::T) * ROW_POINTS + n2;
            if (n >= overlap)
                y[n] = v[j].x;
            if (n + points >= overlap)
                y[n + points] = v[j].y;
        }
    }
};

/* A warp processes a row. block.x: all blocks of the signal for one group of rows, then for the next group, so that a
 * row of the response is used while it is in the cache; block.y: output. */
template <bool Single>
__global__ void __launch_bounds__(ROW_THREADS, Single ? 4 : 2)
    convolve_rows(gck_matrix a, int rows, int blocks, const float2 *__restrict__ twiddles,
                  const float2 *__restrict__ spectra, const float2 *in, float2 *out) {
    typedef row_fft f;
    extern __shared__ __align__(16) float2 shared[];
    pdl_trigger();
    pdl_wait();
    float2 *s = shared + threadIdx.x / 32 * f::shared;
    int t = threadIdx.x % 32, block = blockIdx.x % blocks;
    int64_t row_start = warp_row_start(blocks), points = (int64_t)rows * ROW_POINTS;
    float2 v[f::P], sum[Single ? 1 : f::P];
#pragma unroll
    for (int j = 0; j < (Single ? 0 : f::P); j++)
        sum[j] = make_float2(0.0f, 0.0f);
#pragma unroll 1
    for (int e = Single ? 0 : a.row[blockIdx.y]; e < (Single ? 1 : a.row[blockIdx.y + 1]); e++) {
        gck_route route = Single ? single_route(a, blockIdx.y) : a.route[e];
        const float2 *x = in + ((int64_t)route.input * blocks + block) * points + row_start;
        const float2 *h = spectra + route.plane * points + row_start;
        load_row(v, x, t);
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
    finish_row(v, s, out + ((int64_t)blockIdx.y * blocks + block) * points + row_start, twiddles, t);
}

/* The launchers for 2^(A + B) rows. */
template <int A, int B> struct launchers {
    typedef three_pass<A, B> passes;
    static const int64_t points = passes::points;
    static const int rows_of_transform = passes::f::C;

    static gck_overlap_save_sizes sizes() {
        return gck_overlap_save_sizes{passes::twiddles, points, passes::shared_bytes, points};
    }

    /* Computes the spectra of as many planes as a grid can have in its second and third dimension. */
    static cudaError_t group(const gck_responses &responses, const gck_overlap_save_memory &memory,
                             cudaStream_t stream) {
        response_source source = {responses.taps, responses.taps_count, 1.0f / (float)points};
        const cudaError_t err = passes::forward(source, 1, responses.planes, memory.twiddles, memory.scratch, stream);
        dim3 grid(rows_of_transform / ROWS_PER_BLOCK, responses.planes);
        return err ? err
                   : launch_dependent(transform_rows, grid, ROW_THREADS, row_bytes, stream, rows_of_transform,
                                      memory.twiddles, memory.scratch, memory.spectra);
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
        cudaError_t err = passes::forward(source, blocks, matrix->inputs, memory.twiddles, memory.scratch, stream);
        if (err)
            return err;
        dim3 rows((unsigned)(blocks * (rows_of_transform / ROWS_PER_BLOCK)), matrix->outputs);
        err = launch_dependent(matrix->single ? convolve_rows<true> : convolve_rows<false>, rows, ROW_THREADS,
                               row_bytes, stream, *matrix, rows_of_transform, (int)blocks, memory.twiddles,
                               memory.spectra, memory.scratch, products);
        const signal_target target = {*matrix, hop};
        return err ? err : passes::inverse(target, blocks, matrix->outputs, memory.twiddles, products, stream);
    }

    static constexpr overlap_save_row row() {
        return overlap_save_row{2 * points, sizes, passes::write_twiddles, spectra, convolve};
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
