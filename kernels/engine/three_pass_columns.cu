/*
 * The steps over the columns of transforms in three kernels (overlap_save_3pass.cu has the method): from blocks of rows
 * into the scratch memory, and back. Contracts: job.h.
 *
 * block.x: columns; block.y: block of a row; block.z: row. The kernels are launched early (launch.cuh): what a kernel
 * before them writes is read by plain loads.
 */
#include "kernels/engine/twiddles.h"
#include "rows.cuh"
#include "three_pass.cuh"

#include "kernels/device/right_angle.cuh"

namespace {

/* Returns the row of a block, or the limit if it does not exist. */
__device__ __forceinline__ int row_of_block(const gck_3pass_blocks &a) {
    const int number = blockIdx.z;
    if (!a.per)
        return a.first_row + number;
    const int index = number % a.per;
    return min(a.first_row + number / a.per * a.group + index / a.group * a.outer + index % a.group, a.limit);
}

/* Loads the samples of blocks of rows. */
struct block_source {
    gck_3pass_blocks a;

    /* Loads the samples of column n2 that thread t transforms: points (t + j T) R + n2 of the block in v[j].x, the
     * points N further on in v[j].y. Returns false if all are zero. */
    template <typename F, bool Whole> __device__ __forceinline__ bool load(float2 *v, int n2, int t) const {
        if (Whole) {
            const float *x =
                (const float *)a.rows.data + (a.first_row + blockIdx.z) * a.rows.stride + blockIdx.y * a.step + n2;
#pragma unroll
            for (int j = 0; j < F::P; j++) {
                const int64_t n = (int64_t)(t + j * F::T) * ROW_POINTS;
                v[j] = make_float2(x[n], x[n + (int64_t)F::C * ROW_POINTS]);
            }
            return true;
        }
        const int points = F::C * ROW_POINTS, row = row_of_block(a);
        if (a.per && row == a.limit)
            return false;
        const int64_t at = (a.first_block + blockIdx.y) * a.step + a.shift;
        const int begin = within(-at, a.window), end = within(row_frames(a.rows, row) - at, a.window);
        if (begin >= end)
            return false;
        const float scale = a.gain ? a.scale * a.gain[row] : a.scale;
        const int64_t start = row_start(a.rows, row);
        if (a.rows.sample == GCK_F32 && a.rows.step == 1 && begin == 0 &&
            end == 2 * points) { /* all but the ends of a row of floats */
            const float *x = (const float *)a.rows.data + start + at + n2;
#pragma unroll
            for (int j = 0; j < F::P; j++) {
                const int n = (t + j * F::T) * ROW_POINTS;
                v[j] = make_float2(x[n], x[n + points]);
            }
        } else {
            with_samples(a.rows, start, at, [&](auto x) {
                const unsigned count = end - begin;
#pragma unroll
                for (int j = 0; j < F::P; j++) {
                    const int n = (t + j * F::T) * ROW_POINTS + n2;
                    v[j] = make_float2(sample_if(x, n, n - begin < count), 0.0f);
                }
                if (end > points) /* a row that fits into one transform has none of these */
#pragma unroll
                    for (int j = 0; j < F::P; j++) {
                        const int m = (t + j * F::T) * ROW_POINTS + n2 + points;
                        v[j].y = sample_if(x, m, m - begin < count);
                    }
            });
        }
        /* Behind the loads, so that no load waits for another. */
        if (scale != 1.0f)
#pragma unroll
            for (int j = 0; j < F::P; j++)
                v[j] = make_float2(v[j].x * scale, v[j].y * scale);
        return true;
    }
};

/* Stores the samples of blocks of rows. */
struct block_target {
    gck_3pass_blocks a;

    __device__ __forceinline__ int row() const {
        return row_of_block(a);
    }

    __device__ __forceinline__ int64_t frame() const {
        return (a.first_block + blockIdx.y) * a.step;
    }

    /* Returns whether the block has samples to store. */
    template <bool Whole> __device__ __forceinline__ bool reads() const {
        if (Whole)
            return true;
        return !(a.per && row() == a.limit) && frame() < frames_to_write({a.rows, a.accumulate}, row()).end;
    }

    /* Returns the column, 0 .. 7, from which the samples of 8 columns are an aligned sector: a sector that two blocks
     * write costs more than a sector of the scratch memory that two blocks read. */
    template <bool Whole> __device__ __forceinline__ int column() const {
        if (Whole)
            return 0;
        const int64_t start = row_start(a.rows, row()) + frame() - a.lo;
        return a.rows.sample == GCK_F32 && a.rows.step == 1 ? (int)(-((intptr_t)a.rows.data / 4 + start) & 7) : 0;
    }

    /* Calls f(m, value) for point m of each register, where some of its half of the points are in lo .. hi - 1. */
    template <typename F, typename Call>
    static __device__ __forceinline__ void each(float2 *v, int n2, int t, int lo, int hi, Call f) {
        const int points = F::C * ROW_POINTS;
        if (lo < points)
#pragma unroll
            for (int j = 0; j < F::P; j++)
                f((t + j * F::T) * ROW_POINTS + n2, v[j].x);
        if (hi > points)
#pragma unroll
            for (int j = 0; j < F::P; j++)
                f((t + j * F::T) * ROW_POINTS + n2 + points, v[j].y);
    }

    template <typename F, bool Whole> __device__ __forceinline__ void store(float2 *v, int n2, int t) const {
        if (Whole) {
            float *y = (float *)a.rows.data + row() * a.rows.stride + blockIdx.y * a.step - a.lo;
            each<F>(v, n2, t, 0, 2 * F::C * ROW_POINTS, [&](int m, float x) {
                if (m >= a.lo)
                    y[m] = x;
            });
            return;
        }
        const written_frames frames = frames_to_write({a.rows, a.accumulate}, row());
        const int lo = a.lo, hi = lo + within(frames.end - frame(), a.kept),
                  valued = lo + within(frames.valued - frame(), a.kept);
        const float gain = a.gain ? a.gain[row()] : 1.0f;
        if (gain != 1.0f || valued != hi)
            each<F>(v, n2, t, lo, hi, [&](int m, float &x) { x = m < valued ? gain * x : 0.0f; });
        with_samples<ADJACENT>(a.rows, row_start(a.rows, row()), frame() - lo, [&](auto y) {
            const auto inside = [=](int m) { return (unsigned)(m - lo) < (unsigned)(hi - lo); };
            if (a.accumulate)
                each<F>(v, n2, t, lo, hi, [&](int m, float &x) { x += inside(m) ? sample_of(y[m]) : 0.0f; });
            each<F>(v, n2, t, lo, hi, [&](int m, float x) {
                if (inside(m))
                    set_sample(y[m], x);
            });
        });
    }
};

/* Returns where column n2 of this block's transform begins. */
template <typename F> __device__ __forceinline__ int64_t transform_start(int n2) {
    return ((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * F::C * ROW_POINTS + n2;
}

/* S: float2 or gck_packed. */
template <int A, int B, bool Whole, typename S>
__global__ void __launch_bounds__(column_fft<A, B>::threads, 512 / column_fft<A, B>::threads)
    forward_columns(const __grid_constant__ block_source source, const float2 *__restrict__ twiddles, S *scratch) {
    typedef column_fft<A, B> f;
    extern __shared__ __align__(16) float2 shared[];
    pdl_trigger();
    pdl_wait();
    const int k = threadIdx.x % f::columns, t = threadIdx.x / f::columns, n2 = blockIdx.x * f::columns + k;
    float2 v[f::P];
    if (source.load<f, Whole>(v, n2, t)) {
        f::forward(v, shared, k, t, twiddles);
        twiddle_column<A, B, false, sizeof(S) == 4>(v, n2, t);
    } else {
#pragma unroll
        for (int j = 0; j < f::P; j++)
            v[j] = make_float2(0.0f, 0.0f);
    }
    S *to = scratch + transform_start<f>(n2);
#pragma unroll
    for (int i = 0; i < f::P; i++)
        pack(to[(int64_t)f::leaf(i, t) * ROW_POINTS], v[i]);
}

template <int A, int B, bool Whole, typename S>
__global__ void __launch_bounds__(column_fft<A, B>::threads, 512 / column_fft<A, B>::threads)
    inverse_columns(const __grid_constant__ block_target target, const float2 *__restrict__ twiddles,
                    const S *scratch) {
    typedef column_fft<A, B> f;
    extern __shared__ __align__(16) float2 shared[];
    pdl_trigger();
    pdl_wait();
    if (!target.reads<Whole>())
        return;
    const int k = threadIdx.x % f::columns, t = threadIdx.x / f::columns;
    const int n2 = (target.column<Whole>() + blockIdx.x * f::columns + k) % ROW_POINTS;
    const S *from = scratch + transform_start<f>(n2);
    float2 v[f::P];
#pragma unroll
    for (int i = 0; i < f::P; i++)
        v[i] = unpack(from[(int64_t)f::leaf(i, t) * ROW_POINTS]);
    twiddle_column<A, B, true, sizeof(S) == 4>(v, n2, t);
    f::inverse(v, shared, k, t, twiddles);
    untwist<f::P>(v, untwist_angle<f::C>(t));
    target.store<f, Whole>(v, n2, t);
}

/* The launchers for 2^(A + B) rows. */
template <int A, int B> struct columns {
    typedef column_fft<A, B> f;
    static const int64_t points = (int64_t)f::C * ROW_POINTS;

    static gck_3pass_sizes sizes() {
        return gck_3pass_sizes{points, ROW_TWIDDLES + f::forward_twiddles + f::inverse_twiddles,
                               max(f::bytes, (int)BOTH_BYTES)};
    }

    static void write_twiddles(float2 *to) {
        to = write_inverse_twiddles(write_forward_twiddles(to, 5, 5), 5, row_fft::T);
        if (B > 0)
            write_inverse_twiddles(write_forward_twiddles(to, A, B, 0.25), A, f::T);
    }

    static cudaError_t load() {
        cudaError_t err = load_kernel(forward_columns<A, B, false, float2>, f::bytes);
        err = err ? err : load_kernel(forward_columns<A, B, false, gck_packed>, f::bytes);
        err = err ? err : load_kernel(inverse_columns<A, B, false, float2>, f::bytes);
        return err ? err : load_kernel(inverse_columns<A, B, false, gck_packed>, f::bytes);
    }

    static dim3 grid(const gck_3pass_blocks &a) {
        return dim3(ROW_POINTS / f::columns, (unsigned)a.blocks, (unsigned)a.count);
    }

    template <typename S, typename Kernel, typename Blocks>
    static cudaError_t launch(Kernel kernel, const gck_3pass_blocks &a, Blocks blocks, const float2 *twiddles,
                              S *scratch, cudaStream_t stream) {
        const cudaError_t err = allow_shared(kernel, f::bytes);
        return err ? err : launch_dependent(kernel, grid(a), f::threads, f::bytes, stream, blocks, twiddles, scratch);
    }

    static cudaError_t forward(const gck_3pass_blocks &a, const float2 *twiddles, float2 *scratch,
                               cudaStream_t stream) {
        twiddles += ROW_TWIDDLES;
        const block_source from = {a};
        if (a.packed)
            return launch(forward_columns<A, B, false, gck_packed>, a, from, twiddles, (gck_packed *)scratch, stream);
        return launch(a.whole ? forward_columns<A, B, true, float2> : forward_columns<A, B, false, float2>, a, from,
                      twiddles, scratch, stream);
    }

    static cudaError_t inverse(const gck_3pass_blocks &a, const float2 *twiddles, const float2 *scratch,
                               cudaStream_t stream) {
        twiddles += ROW_TWIDDLES + f::forward_twiddles;
        const block_target to = {a};
        if (a.packed)
            return launch(inverse_columns<A, B, false, gck_packed>, a, to, twiddles, (const gck_packed *)scratch,
                          stream);
        return launch(a.whole ? inverse_columns<A, B, true, float2> : inverse_columns<A, B, false, float2>, a, to,
                      twiddles, scratch, stream);
    }
};

struct columns_row {
    gck_3pass_sizes (*sizes)();
    void (*write_twiddles)(float2 *twiddles);
    cudaError_t (*load)();
    cudaError_t (*forward)(const gck_3pass_blocks &a, const float2 *twiddles, float2 *scratch, cudaStream_t stream);
    cudaError_t (*inverse)(const gck_3pass_blocks &a, const float2 *twiddles, const float2 *scratch,
                           cudaStream_t stream);
};

template <int A, int B> constexpr columns_row row_of() {
    typedef columns<A, B> c;
    return columns_row{c::sizes, c::write_twiddles, c::load, c::forward, c::inverse};
}

const columns_row sizes[GCK_3PASS_SIZES] = {row_of<4, 0>(), row_of<5, 0>(), row_of<4, 2>(), row_of<4, 3>(),
                                            row_of<4, 4>(), row_of<5, 4>(), row_of<5, 5>()};

/* Returns `count` of the rows, from number `first` on. */
gck_3pass_blocks rows_from(const gck_3pass_blocks *all, int64_t first, int count) {
    gck_3pass_blocks part = *all;
    part.first_row += (int)first;
    part.count = count;
    return part;
}

/* Returns where the transforms of row number `first` are. */
template <typename T> T *at_row(int size, const gck_3pass_blocks *all, T *scratch, int64_t first) {
    return scratch + first * all->blocks * sizes[size].sizes().points / (all->packed ? 2 : 1);
}

} // namespace

gck_3pass_sizes gck_3pass_query(int size) {
    return sizes[size].sizes();
}

void gck_3pass_twiddles(int64_t size, float2 *twiddles) {
    sizes[size].write_twiddles(twiddles);
}

cudaError_t gck_3pass_load_columns(int shared_bytes_max) {
    cudaError_t err = cudaSuccess;
    for (const columns_row &r : sizes)
        if (!err && r.sizes().shared_bytes <= shared_bytes_max)
            err = r.load();
    return err;
}

cudaError_t gck_3pass_forward(int size, const gck_3pass_blocks *from, const float2 *twiddles, float2 *scratch,
                              cudaStream_t stream) {
    return launch_parts(from->count, 1, [=](int64_t first, int count) {
        return sizes[size].forward(rows_from(from, first, count), twiddles, at_row(size, from, scratch, first), stream);
    });
}

cudaError_t gck_3pass_inverse(int size, const gck_3pass_blocks *to, const float2 *twiddles, const float2 *scratch,
                              cudaStream_t stream) {
    return launch_parts(to->count, 1, [=](int64_t first, int count) {
        return sizes[size].inverse(rows_from(to, first, count), twiddles, at_row(size, to, scratch, first), stream);
    });
}
