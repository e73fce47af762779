/*
 * Overlap-save with transforms that no block holds, in three kernels. A block of 2 N samples is folded into N complex
 * points (folded.cuh). N = C R of them are a matrix of C rows and R columns, place n1 R + n2 in row n1, column n2:
 *
 *      columns     for each n2: read the signal, transform over n1, turn     ->  scratch, row J of leaf J
 *      rows        for each J: transform over n2, multiply, transform back   ->  scratch
 *      columns     for each n2: turn back, transform back over J             ->  the last hop places of the signal
 *
 * After the columns, row J is a polynomial modulo x^R - e^(2 pi i v(J)) (tree.cuh); turning its places by
 * e^(2 pi i v(J) n2 / R) makes that x^R - 1, the same for all rows. v(J) has the root's quarter in it, so that the rows
 * know nothing of the fold and the way back unfolds but for the row, e^(-i pi n1 / 2 C). Device memory sees the signal
 * once each way and the scratch twice: of a million points that is four times what a copy moves, and of what fits the
 * second-level cache less.
 *
 * A block of the column kernels does COLUMNS neighbouring columns, so that what it reads and writes are whole sectors.
 */
#include "overlap_save.cuh"
#include "twiddles.h"

namespace {

enum { ROW_POINTS = 1024, ROWS_A_BLOCK = 4 };

typedef tree<5, 5> row_tree;

/* 2^A 2^B rows; thread k + COLUMNS t does places t + 2^B j of column k. */
template <int A, int B> struct column_tree {
    static const int P = 1 << A, T = 1 << B, C = P * T;
    static const int columns = C >= 1024 ? 8 : C >= 64 ? 16 : 32, threads = columns * T;
    /* Half a warp must not meet a bank twice: with eight columns its two halves stand eight places apart. */
    static const int row = T * columns + (columns == 8 ? 8 : 0);
    static const int bytes = T > 1 ? P *row *(int)sizeof(float2) : 0;
    static const int down_turns = C / 2, up_turns = C / 2;

    static __device__ __forceinline__ void forward(float2 *v, float2 *s, int k, int t,
                                                   const float2 *__restrict__ turns) {
        down_root<A, true>(v);
        if constexpr (B > 0) {
#pragma unroll
            for (int j = 0; j < P; j++)
                s[j * row + t * columns + k] = v[j];
            __syncthreads();
#pragma unroll
            for (int i = 0; i < P; i++)
                v[i] = s[(t + i / T * T) * row + i % T * columns + k];
#pragma unroll
            for (int i = 0; i < P; i += T)
                down_node<B>(v + i, turns + t + i, P);
        }
    }

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int k, int t,
                                                   const float2 *__restrict__ turns) {
        if constexpr (B > 0) {
#pragma unroll
            for (int i = 0; i < P; i += T)
                up_leaves<B>(v + i);
#pragma unroll
            for (int i = 0; i < P; i++)
                s[(t + i / T * T) * row + i % T * columns + k] = v[i];
            __syncthreads();
#pragma unroll
            for (int j = 0; j < P; j++)
                v[j] = s[j * row + t * columns + k];
            up_blocks<A>(v, turns + t, T);
        } else {
            up_leaves<A>(v);
        }
    }

    /* Register i after `forward` is leaf J(i). */
    static __device__ __forceinline__ int leaf(int i, int t) {
        return ((t + i / T * T) << B) + i % T;
    }
};

/* v[p] times w times the factor of each bit of p that is set, 0 <= p < 2^BITS: a product of the way down to p. */
template <int BITS, bool Conjugate>
__device__ __forceinline__ void turn_leaves(float2 *v, float2 w, const float2 *factor) {
    if constexpr (BITS == 0) {
        *v = Conjugate ? mul_conj(*v, w) : mul(*v, w);
    } else {
        turn_leaves<BITS - 1, Conjugate>(v, w, factor);
        turn_leaves<BITS - 1, Conjugate>(v + (1 << (BITS - 1)), mul(w, factor[BITS - 1]), factor);
    }
}

__device__ __forceinline__ float2 on_circle(float turns) {
    float2 w;
    sincospif(2 * turns, &w.y, &w.x);
    return w;
}

/* Turns leaf J of column n2 by n2 v(J) / R, or back. v(J) is the sum over the node that this thread holds, a fraction
 * of 2^-B, over the bits of the leaf in it, and a quarter of 1 / C; angles are fractions of 4 N, exact in floats. */
template <int A, int B, bool Conjugate> __device__ __forceinline__ void turn_column(float2 *v, int n2, int t) {
    typedef column_tree<A, B> f;
    const int BITS = B > 0 ? B : A, NODES = B > 0 ? f::P / f::T : 1;
    const float column = (float)n2 / ROW_POINTS;
    float2 factor[BITS];
#pragma unroll
    for (int i = 0; i < BITS; i++)
        factor[i] = on_circle(column / (2 << i));
#pragma unroll
    for (int n = 0; n < NODES; n++) {
        int node = t + n * f::T;
        int turns = B > 0 ? (n2 * reversed(node, A)) & (f::C * ROW_POINTS - 1) : 0;
        float2 base = on_circle((float)(4 * turns + n2) * (1.0f / (4.0f * (float)f::C * ROW_POINTS)));
        turn_leaves<BITS, Conjugate>(v + (n << BITS), base, factor);
    }
}

/* Where the columns come from: a block of the signal, or a response. place: of the 2 N; half: N. */
struct signal_source {
    gck_matrix a;
    int64_t hop, before;

    __device__ __forceinline__ float at(int64_t n) const {
        return __ldg(a.in + blockIdx.z * a.in_stride + (int64_t)blockIdx.y * hop - before + n);
    }
};

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
__global__ void __launch_bounds__(column_tree<A, B>::threads, 512 / column_tree<A, B>::threads)
    forward_columns(const __grid_constant__ Source source, const float2 *__restrict__ turns, float2 *scratch) {
    typedef column_tree<A, B> f;
    extern __shared__ __align__(16) float2 shared[];
    let_others_come();
    wait_for_others();
    const int64_t points = (int64_t)f::C * ROW_POINTS;
    int k = threadIdx.x % f::columns, t = threadIdx.x / f::columns, n2 = blockIdx.x * f::columns + k;
    float2 v[f::P];
#pragma unroll
    for (int j = 0; j < f::P; j++) {
        int64_t n = (int64_t)(t + j * f::T) * ROW_POINTS + n2;
        v[j] = make_float2(source.at(n), source.at(n + points));
    }
    f::forward(v, shared, k, t, turns);
    turn_column<A, B, false>(v, n2, t);
    float2 *to = scratch + ((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * points + n2;
#pragma unroll
    for (int i = 0; i < f::P; i++)
        to[(int64_t)f::leaf(i, t) * ROW_POINTS] = v[i];
}

template <int A, int B>
__global__ void __launch_bounds__(column_tree<A, B>::threads, 512 / column_tree<A, B>::threads)
    inverse_columns(gck_matrix a, int64_t hop, const float2 *__restrict__ turns, const float2 *__restrict__ scratch) {
    typedef column_tree<A, B> f;
    extern __shared__ __align__(16) float2 shared[];
    let_others_come();
    wait_for_others();
    const int64_t points = (int64_t)f::C * ROW_POINTS, before = 2 * points - hop;
    int k = threadIdx.x % f::columns, t = threadIdx.x / f::columns, n2 = blockIdx.x * f::columns + k;
    const float2 *from = scratch + ((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * points + n2;
    float2 v[f::P];
#pragma unroll
    for (int i = 0; i < f::P; i++)
        v[i] = __ldg(from + (int64_t)f::leaf(i, t) * ROW_POINTS);
    turn_column<A, B, true>(v, n2, t);
    f::inverse(v, shared, k, t, turns);
    float *y = a.out + blockIdx.z * a.out_stride + (int64_t)blockIdx.y * hop - before;
    unfold<f::P>(v, unfolding<f::C>(t));
#pragma unroll
    for (int j = 0; j < f::P; j++) {
        int64_t n = (int64_t)(t + j * f::T) * ROW_POINTS + n2;
        if (n >= before)
            y[n] = v[j].x;
        if (n + points >= before)
            y[n + points] = v[j].y;
    }
}

/* A warp does a row; block.x: blocks of one group of rows after another, so that all blocks meet a row of the response
 * while it is in the cache; block.y: output. */
template <bool Single>
__global__ void __launch_bounds__(32 * ROWS_A_BLOCK, Single ? 4 : 2)
    convolve_rows(gck_matrix a, int rows, int blocks, const float2 *__restrict__ turns,
                  const float2 *__restrict__ spectra, const float2 *__restrict__ in, float2 *out) {
    typedef row_tree f;
    extern __shared__ __align__(16) float2 shared[];
    let_others_come();
    wait_for_others();
    float2 *s = shared + threadIdx.x / 32 * f::shared;
    int t = threadIdx.x % 32, block = blockIdx.x % blocks;
    int row = blockIdx.x / blocks * ROWS_A_BLOCK + threadIdx.x / 32;
    int64_t place = (int64_t)row * ROW_POINTS, points = (int64_t)rows * ROW_POINTS;
    float2 v[f::P], sum[Single ? 1 : f::P];
#pragma unroll
    for (int j = 0; j < (Single ? 0 : f::P); j++)
        sum[j] = make_float2(0.0f, 0.0f);
#pragma unroll 1
    for (int e = Single ? 0 : a.row[blockIdx.y]; e < (Single ? 1 : a.row[blockIdx.y + 1]); e++) {
        gck_route route = Single ? only_route(a, blockIdx.y) : a.route[e];
        const float2 *x = in + ((int64_t)route.input * blocks + block) * points + place;
        const float2 *h = spectra + route.plane * points + place;
#pragma unroll
        for (int j = 0; j < f::P; j++)
            v[j] = __ldg(x + t + j * f::T);
        __syncwarp();
        f::forward(v, s, t, turns);
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
    f::inverse(v, s, t, turns + f::down_turns);
    float2 *y = out + ((int64_t)blockIdx.y * blocks + block) * points + place;
#pragma unroll
    for (int j = 0; j < f::P; j++)
        y[t + j * f::T] = v[j];
}

/* block.x: rows; block.y: plane. The layout is convolve_rows' own. */
__global__ void __launch_bounds__(32 * ROWS_A_BLOCK)
    transform_rows(int rows, const float2 *__restrict__ turns, const float2 *__restrict__ in, float2 *spectra) {
    typedef row_tree f;
    extern __shared__ __align__(16) float2 shared[];
    int t = threadIdx.x % 32;
    int64_t place = ((int64_t)blockIdx.y * rows + blockIdx.x * ROWS_A_BLOCK + threadIdx.x / 32) * ROW_POINTS;
    float2 v[f::P];
#pragma unroll
    for (int j = 0; j < f::P; j++)
        v[j] = in[place + t + j * f::T];
    f::forward(v, shared + threadIdx.x / 32 * f::shared, t, turns);
#pragma unroll
    for (int j = 0; j < f::P; j += 2)
        *(float4 *)(spectra + place + j * f::T + 2 * t) = make_float4(v[j].x, v[j].y, v[j + 1].x, v[j + 1].y);
}

const int row_bytes = ROWS_A_BLOCK * row_tree::shared * (int)sizeof(float2);
const int row_turns = row_tree::down_turns + row_tree::up_turns;

template <int A, int B> struct calls {
    typedef column_tree<A, B> f;
    static const int64_t points = (int64_t)f::C * ROW_POINTS;

    static gck_transform_size size() {
        return gck_transform_size{row_turns + f::down_turns + f::up_turns, points,
                                  f::bytes > row_bytes ? f::bytes : row_bytes, 1, points};
    }

    static void fill(float2 *turns) {
        float2 *to = fill_up(fill_down(turns, 5, 5), 5, row_tree::T);
        if (B > 0)
            fill_up(fill_down(to, A, B, 0.25), A, f::T);
    }

    template <typename Source>
    static cudaError_t columns(const Source &source, int64_t blocks, int channels, const float2 *turns, float2 *scratch,
                               cudaStream_t stream) {
        cudaError_t failed = allow_shared(forward_columns<A, B, Source>, f::bytes);
        if (failed)
            return failed;
        dim3 grid(ROW_POINTS / f::columns, (unsigned)blocks, channels);
        return launch_early(forward_columns<A, B, Source>, grid, f::threads, f::bytes, stream, source,
                            turns + row_turns, scratch);
    }

    static cudaError_t spectra(const float *taps, int planes, int64_t count, const float2 *turns, float2 *scratch,
                               float2 *spectra, cudaStream_t stream) {
        response_source source = {taps, count, 1.0f / (float)points};
        cudaError_t failed = columns(source, 1, planes, turns, scratch, stream);
        if (failed)
            return failed;
        transform_rows<<<dim3(f::C / ROWS_A_BLOCK, planes), 32 * ROWS_A_BLOCK, row_bytes, stream>>>(f::C, turns,
                                                                                                    scratch, spectra);
        return cudaGetLastError();
    }

    static cudaError_t convolve(const gck_matrix *matrix, int64_t hop, int64_t blocks, const float2 *turns,
                                const float2 *spectra, float2 *scratch, cudaStream_t stream) {
        signal_source source = {*matrix, hop, 2 * points - hop};
        float2 *back = scratch + matrix->inputs * blocks * points;
        cudaError_t failed = columns(source, blocks, matrix->inputs, turns, scratch, stream);
        if (!failed)
            failed = allow_shared(inverse_columns<A, B>, f::bytes);
        if (failed)
            return failed;
        dim3 rows((unsigned)(blocks * (f::C / ROWS_A_BLOCK)), matrix->outputs);
        failed = launch_early(matrix->single ? convolve_rows<true> : convolve_rows<false>, rows, 32 * ROWS_A_BLOCK,
                              row_bytes, stream, *matrix, f::C, (int)blocks, turns, spectra, scratch, back);
        if (failed)
            return failed;
        dim3 grid(ROW_POINTS / f::columns, (unsigned)blocks, matrix->outputs);
        return launch_early(inverse_columns<A, B>, grid, f::threads, f::bytes, stream, *matrix, hop,
                            turns + row_turns + f::down_turns, back);
    }
};

} // namespace

/* points: of the real signal, two to a complex one. */
#define FOR_POINTS(points, call)                                                                                       \
    switch (points) {                                                                                                  \
    case 32 * ROW_POINTS:                                                                                              \
        return calls<4, 0>::call;                                                                                      \
    case 64 * ROW_POINTS:                                                                                              \
        return calls<5, 0>::call;                                                                                      \
    case 128 * ROW_POINTS:                                                                                             \
        return calls<4, 2>::call;                                                                                      \
    case 256 * ROW_POINTS:                                                                                             \
        return calls<4, 3>::call;                                                                                      \
    case 512 * ROW_POINTS:                                                                                             \
        return calls<4, 4>::call;                                                                                      \
    case 1024 * ROW_POINTS:                                                                                            \
        return calls<5, 4>::call;                                                                                      \
    case 2048 * ROW_POINTS:                                                                                            \
        return calls<5, 5>::call;                                                                                      \
    }

gck_transform_size gck_long_size(int64_t points) {
    FOR_POINTS(points, size())
    return gck_transform_size{0, 0, 0, 0, 0};
}

void gck_long_turns(int64_t points, float2 *turns){FOR_POINTS(points, fill(turns))}

cudaError_t gck_long_spectra(int64_t points, const float *taps, int planes, int64_t count, const float2 *turns,
                             float2 *scratch, float2 *spectra, cudaStream_t stream) {
    FOR_POINTS(points, spectra(taps, planes, count, turns, scratch, spectra, stream))
    return cudaErrorInvalidValue;
}

cudaError_t gck_long_convolve(const gck_matrix *matrix, int64_t points, int64_t hop, int64_t blocks,
                              const float2 *turns, const float2 *spectra, float2 *scratch, cudaStream_t stream) {
    FOR_POINTS(points, convolve(matrix, hop, blocks, turns, spectra, scratch, stream))
    return cudaErrorInvalidValue;
}
