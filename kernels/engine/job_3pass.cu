/*
 * Jobs on device memory by transforms in three kernels, for responses that do not fit on the chip and for matrices of
 * routes. The method and the memory traffic: overlap_save_3pass.cu; the columns: three_pass.cuh; contracts: job.h.
 *
 *      forward    columns of the blocks of rows: load, transform, twiddles            ->  scratch
 *      multiply   rows: transform, multiply by the response's row, transform back     in place
 *      sum        rows: transform all sources of a result, multiply, add, back        ->  results
 *      correlate  rows: transform x and g, sum += conj(X) G                           ->  sums, then `finish`
 *      inverse    columns: twiddles, transform back, store the frames that overlap-save keeps
 *
 * `multiply` transforms a fresh response in registers, so that its spectrum never crosses the memory. The kernels are
 * launched early (launch.cuh): what a kernel before them writes is read by plain loads.
 */
#include "job_rows.cuh"
#include "three_pass.cuh"

namespace {

/* Source of the columns: blocks of rows. */
struct block_source {
    gck_3pass_blocks a;

    template <typename F> __device__ __forceinline__ bool load(float2 *v, int n2, int t) const {
        const int points = F::C * ROW_POINTS, row = a.first_row + blockIdx.z;
        const int64_t at = (a.first_block + blockIdx.y) * a.step + a.shift;
        const int begin = within(-at, a.window), end = within(row_frames(a.rows, row) - at, a.window);
        if (begin >= end)
            return false;
        const float scale = a.gain ? a.scale * a.gain[row] : a.scale;
        const int64_t start = row_start(a.rows, row) + at;
        if (a.rows.sample == GCK_F32 && begin == 0 && end == 2 * points) { /* all but the ends of a row of floats */
            const float *x = (const float *)a.rows.data + start + n2;
#pragma unroll
            for (int j = 0; j < F::P; j++) {
                const int n = (t + j * F::T) * ROW_POINTS;
                v[j] = make_float2(x[n], x[n + points]);
            }
        } else {
            with_samples(a.rows, start, [&](auto *x) {
#pragma unroll
                for (int j = 0; j < F::P; j++) {
                    const int n = (t + j * F::T) * ROW_POINTS + n2, m = n + points;
                    v[j].x = n >= begin && n < end ? sample_of(x[n]) : 0.0f;
                    v[j].y = m >= begin && m < end ? sample_of(x[m]) : 0.0f;
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

/* Target of the columns: blocks of rows. */
struct block_target {
    gck_3pass_blocks a;

    __device__ __forceinline__ int row() const {
        return a.first_row + blockIdx.z;
    }

    __device__ __forceinline__ int64_t frame() const {
        return (a.first_block + blockIdx.y) * a.step;
    }

    __device__ __forceinline__ bool reads() const {
        return frame() < frames_to_write({a.rows, a.accumulate}, row()).end;
    }

    /* A sector that two blocks write costs more than a sector of the scratch memory that two blocks read. */
    __device__ __forceinline__ int column() const {
        const int64_t start = row_start(a.rows, row()) + frame() - a.lo;
        return a.rows.sample == GCK_F32 ? (int)(-((intptr_t)a.rows.data / 4 + start) & 7) : 0;
    }

    /* Calls set(m, value) for point m of each register. */
    template <typename F, typename Set>
    static __device__ __forceinline__ void each(const float2 *v, int n2, int t, Set set) {
#pragma unroll
        for (int j = 0; j < 2 * F::P; j++)
            set((t + j % F::P * F::T) * ROW_POINTS + n2 + j / F::P * F::C * ROW_POINTS,
                j < F::P ? v[j % F::P].x : v[j % F::P].y);
    }

    template <typename F> __device__ __forceinline__ void store(const float2 *v, int n2, int t) const {
        const written_frames frames = frames_to_write({a.rows, a.accumulate}, row());
        const int hi = a.lo + within(frames.end - frame(), a.kept),
                  valued = a.lo + within(frames.valued - frame(), a.kept);
        const float gain = a.gain ? a.gain[row()] : 1.0f;
        const int64_t start = row_start(a.rows, row()) + frame() - a.lo;
        if (a.rows.sample == GCK_F32 && !a.accumulate && gain == 1.0f && valued == hi &&
            hi == 2 * F::C * ROW_POINTS) { /* all but the last block of a row of floats */
            float *y = (float *)a.rows.data + start;
            each<F>(v, n2, t, [&](int m, float x) {
                if (m >= a.lo)
                    y[m] = x;
            });
            return;
        }
        with_samples(a.rows, start, [&](auto *y) {
            const auto value_of = [&](int m, float x) { return m < valued ? gain * x : 0.0f; };
            if (a.accumulate)
                each<F>(v, n2, t, [&](int m, float x) {
                    if (m >= a.lo && m < hi)
                        set_sample(y + m, sample_of(y[m]) + value_of(m, x));
                });
            else
                each<F>(v, n2, t, [&](int m, float x) {
                    if (m >= a.lo && m < hi)
                        set_sample(y + m, value_of(m, x));
                });
        });
    }
};

/* ---- Rows: a warp transforms one row of 1024 points -------------------------------------------------------------- */

typedef row_fft f;

/* Multiplies a row by the spectrum h in registers, or by the one in memory if Held is false, and by its conjugate if
 * sign is -1. */
template <bool Held>
__device__ __forceinline__ void multiply_row(float2 *v, const float2 *h, const float2 *from, float sign, int t) {
#pragma unroll
    for (int j = 0; j < f::P; j += 2) {
        float4 w;
        if (Held)
            w = make_float4(h[j].x, h[j].y, h[j + 1].x, h[j + 1].y);
        else
            w = *(const float4 *)(from + j * f::T + 2 * t);
        v[j] = mul(v[j], make_float2(w.x, sign * w.y));
        v[j + 1] = mul(v[j + 1], make_float2(w.z, sign * w.w));
    }
}

/* block.x: ranges of per_warp blocks for a group of rows; block.y: row of the job. */
template <bool Fresh>
__global__ void __launch_bounds__(ROW_THREADS, Fresh ? 2 : 4)
    job_multiply(const __grid_constant__ gck_3pass_products a, int rows, int ranges) {
    extern __shared__ __align__(16) float2 shared[];
    float2 *s = shared + threadIdx.x / 32 * f::shared, h[Fresh ? f::P : 1], v[f::P];
    const int t = threadIdx.x % 32, first = blockIdx.x % ranges * a.per_warp;
    const int64_t row_start = warp_row_start(ranges), points = (int64_t)rows * ROW_POINTS;
    const int response = response_of(a.sharing, a.first_row + blockIdx.y) - a.first_response;
    const float2 *from = a.responses + response * points + row_start;
    const float sign = a.reflect ? -1.0f : 1.0f;
    pdl_trigger();
    pdl_wait();
    if constexpr (Fresh) {
        load_row(h, from, t);
        f::forward(h, s, t, a.twiddles);
        __syncwarp();
    }
#pragma unroll 1
    for (int b = first; b < min(first + a.per_warp, a.blocks); b++) {
        float2 *x = a.scratch + ((int64_t)blockIdx.y * a.blocks + b) * points + row_start;
        load_row(v, x, t);
        __syncwarp();
        f::forward(v, s, t, a.twiddles);
        multiply_row<Fresh>(v, h, from, sign, t);
        finish_row(v, s, x, a.twiddles, t);
    }
}

/* block.x: blocks for a group of rows; block.y: output; block.z: batch. */
__global__ void __launch_bounds__(ROW_THREADS, 2) job_sum(const __grid_constant__ gck_3pass_sums a, int rows) {
    extern __shared__ __align__(16) float2 shared[];
    float2 *s = shared + threadIdx.x / 32 * f::shared, v[f::P], sum[f::P];
    const int t = threadIdx.x % 32, block = blockIdx.x % a.blocks, output = blockIdx.y;
    const int64_t row_start = warp_row_start(a.blocks), points = (int64_t)rows * ROW_POINTS;
    const float sign = a.reflect ? -1.0f : 1.0f;
    const int step = a.reflect ? 1 : -1, at = a.reflect ? block : block + a.parts - 1;
    pdl_trigger();
    pdl_wait();
#pragma unroll
    for (int j = 0; j < f::P; j++)
        sum[j] = make_float2(0.0f, 0.0f);
    const int begin = a.row ? a.row[output] : 0, terms = a.row ? a.row[output + 1] - begin : 1;
#pragma unroll 1
    for (int e = 0; e < terms * a.parts; e++) {
        const int p = e % a.parts;
        const gck_3pass_term term =
            a.row ? a.term[begin + e / a.parts]
                  : gck_3pass_term{output, response_of(a.sharing, a.first_row + output) - a.first_response};
        const int64_t source = ((int64_t)blockIdx.z * a.inputs + term.from) * (a.blocks + a.parts - 1) + at + step * p;
        load_row(v, a.sources + source * points + row_start, t);
        f::forward(v, s, t, a.twiddles);
        const float2 *h = a.spectra + ((int64_t)term.response * a.parts + p) * points + row_start;
#pragma unroll
        for (int j = 0; j < f::P; j += 2) {
            const float4 w = *(const float4 *)(h + j * f::T + 2 * t);
            sum[j] = mul_add(v[j], make_float2(w.x, sign * w.y), sum[j]);
            sum[j + 1] = mul_add(v[j + 1], make_float2(w.z, sign * w.w), sum[j + 1]);
        }
        __syncwarp();
    }
    float2 *to = a.results + (((int64_t)blockIdx.z * a.outputs + output) * a.blocks + block) * points + row_start;
    finish_row(sum, s, to, a.twiddles, t);
}

/* Transforms of one term of a gradient; x is negative if the row does not belong to this call. */
struct factors {
    int64_t x, g;
};

__device__ __forceinline__ factors factors_of(const gck_3pass_correlations &a, int response, int index, int block,
                                              int part) {
    int x_row, g_row;
    if (a.route) {
        x_row = index * a.inputs + a.route[response].from;
        g_row = index * a.outputs + a.route[response].response;
    } else {
        x_row = g_row = sharing_row(a.sharing, response, index) - a.first_row;
        if (x_row < 0 || x_row >= a.count)
            return {-1, -1};
    }
    return {(int64_t)x_row * a.blocks + block, (int64_t)g_row * (a.blocks + a.parts - 1) + block + part};
}

/* block.x: groups of rows; block.y: response and part; block.z: split. */
__global__ void __launch_bounds__(ROW_THREADS, 2)
    job_correlate(const __grid_constant__ gck_3pass_correlations a, int rows) {
    extern __shared__ __align__(16) float2 shared[];
    float2 *s = shared + threadIdx.x / 32 * f::shared, v[f::P], x[f::P], sum[f::P];
    const int t = threadIdx.x % 32, response = a.first_response + blockIdx.y / a.parts, part = blockIdx.y % a.parts;
    const int64_t row_start = warp_row_start(1), points = (int64_t)rows * ROW_POINTS;
    const int units = (a.route ? a.count : sharing_rows(a.sharing)) * a.blocks;
    const int end = (int)((blockIdx.z + 1ll) * units / a.splits);
    float2 *to = a.sums + ((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * points + row_start;
    pdl_trigger();
    pdl_wait();
#pragma unroll
    for (int j = 0; j < f::P; j++)
        sum[j] = make_float2(0.0f, 0.0f);
#pragma unroll 1
    for (int unit = (int)((int64_t)blockIdx.z * units / a.splits); unit < end; unit++) {
        const factors at = factors_of(a, response, unit / a.blocks, unit % a.blocks, part);
        if (at.x < 0)
            continue;
        load_row(x, a.x + at.x * points + row_start, t);
        f::forward(x, s, t, a.twiddles);
        __syncwarp();
        load_row(v, a.g + at.g * points + row_start, t);
        f::forward(v, s, t, a.twiddles);
        __syncwarp();
#pragma unroll
        for (int j = 0; j < f::P; j++)
            sum[j] = mul_add(v[j], make_float2(x[j].x, -x[j].y), sum[j]);
    }
    if (a.add) {
        load_spectrum(v, to, t);
#pragma unroll
        for (int j = 0; j < f::P; j++)
            sum[j] = add(sum[j], v[j]);
    }
    store_spectrum(sum, to, t);
}

/* block.x: groups of rows; block.y: transform. */
__global__ void __launch_bounds__(ROW_THREADS)
    job_finish(int rows, int splits, const float2 *__restrict__ twiddles, const float2 *sums, float2 *scratch) {
    extern __shared__ __align__(16) float2 shared[];
    const int t = threadIdx.x % 32;
    const int64_t start = (int64_t)blockIdx.y * rows * ROW_POINTS + warp_row_start(1);
    float2 v[f::P];
    pdl_trigger();
    pdl_wait();
    load_spectrum(v, sums + start, t);
#pragma unroll 1
    for (int s = 1; s < splits; s++) {
        const float2 *from = sums + (int64_t)s * gridDim.y * rows * ROW_POINTS + start;
#pragma unroll
        for (int j = 0; j < f::P; j += 2) {
            const float4 w = *(const float4 *)(from + j * f::T + 2 * t);
            v[j] = add(v[j], make_float2(w.x, w.y));
            v[j + 1] = add(v[j + 1], make_float2(w.z, w.w));
        }
    }
    finish_row(v, shared + threadIdx.x / 32 * f::shared, scratch + start, twiddles, t);
}

/* ---- Launchers --------------------------------------------------------------------------------------------------- */

/* The steps over the columns for 2^(A + B) rows. */
template <int A, int B> struct columns {
    typedef three_pass<A, B> passes;

    static gck_3pass_sizes sizes() {
        return gck_3pass_sizes{passes::points, passes::twiddles, passes::shared_bytes};
    }

    static cudaError_t load() {
        const cudaError_t err = load_kernel(forward_columns<A, B, block_source>, passes::f::bytes);
        return err ? err : load_kernel(inverse_columns<A, B, block_target>, passes::f::bytes);
    }

    static cudaError_t forward(const gck_3pass_blocks *a, const float2 *twiddles, float2 *scratch,
                               cudaStream_t stream) {
        return passes::forward(block_source{*a}, a->blocks, a->count, twiddles, scratch, stream);
    }

    static cudaError_t inverse(const gck_3pass_blocks *a, const float2 *twiddles, const float2 *scratch,
                               cudaStream_t stream) {
        return passes::inverse(block_target{*a}, a->blocks, a->count, twiddles, scratch, stream);
    }
};

struct columns_row {
    gck_3pass_sizes (*sizes)();
    void (*write_twiddles)(float2 *twiddles);
    cudaError_t (*load)();
    cudaError_t (*forward)(const gck_3pass_blocks *a, const float2 *twiddles, float2 *scratch, cudaStream_t stream);
    cudaError_t (*inverse)(const gck_3pass_blocks *a, const float2 *twiddles, const float2 *scratch,
                           cudaStream_t stream);
};

template <int A, int B> constexpr columns_row row_of() {
    typedef columns<A, B> c;
    return columns_row{c::sizes, three_pass<A, B>::write_twiddles, c::load, c::forward, c::inverse};
}

const columns_row sizes[GCK_3PASS_SIZES] = {row_of<4, 0>(), row_of<5, 0>(), row_of<4, 2>(), row_of<4, 3>(),
                                            row_of<4, 4>(), row_of<5, 4>(), row_of<5, 5>()};

/* Returns the rows of a transform of this size. */
int rows_of(int size) {
    return 16 << size;
}

/* Returns a grid with `per_rows` blocks for each group of rows. */
dim3 row_grid(int size, int64_t per_rows, int64_t y, int64_t z) {
    return dim3((unsigned)(rows_of(size) / ROWS_PER_BLOCK * per_rows), (unsigned)y, (unsigned)z);
}

} // namespace

gck_3pass_sizes gck_3pass_query(int size) {
    return sizes[size].sizes();
}

void gck_3pass_twiddles(int size, float2 *twiddles) {
    sizes[size].write_twiddles(twiddles);
}

cudaError_t gck_3pass_load(int shared_bytes_max) {
    cudaError_t err = load_kernel(job_multiply<false>, row_bytes);
    err = err ? err : load_kernel(job_multiply<true>, row_bytes);
    err = err ? err : load_kernel(job_sum, row_bytes);
    err = err ? err : load_kernel(job_correlate, row_bytes);
    err = err ? err : load_kernel(transform_rows, row_bytes);
    err = err ? err : load_kernel(job_finish, row_bytes);
    for (const columns_row &r : sizes)
        if (!err && r.sizes().shared_bytes <= shared_bytes_max)
            err = r.load();
    return err;
}

cudaError_t gck_3pass_forward(int size, const gck_3pass_blocks *from, const float2 *twiddles, float2 *scratch,
                              cudaStream_t stream) {
    return sizes[size].forward(from, twiddles, scratch, stream);
}

cudaError_t gck_3pass_inverse(int size, const gck_3pass_blocks *to, const float2 *twiddles, const float2 *scratch,
                              cudaStream_t stream) {
    return sizes[size].inverse(to, twiddles, scratch, stream);
}

cudaError_t gck_3pass_spectra(int size, int64_t transforms, const float2 *twiddles, const float2 *scratch,
                              float2 *spectra, cudaStream_t stream) {
    return launch_dependent(transform_rows, row_grid(size, 1, transforms, 1), ROW_THREADS, row_bytes, stream,
                            rows_of(size), twiddles, scratch, spectra);
}

cudaError_t gck_3pass_multiply(int size, const gck_3pass_products *p, cudaStream_t stream) {
    const int ranges = (p->blocks + p->per_warp - 1) / p->per_warp;
    return launch_dependent(p->fresh ? job_multiply<true> : job_multiply<false>, row_grid(size, ranges, p->count, 1),
                            ROW_THREADS, row_bytes, stream, *p, rows_of(size), ranges);
}

cudaError_t gck_3pass_sum(int size, const gck_3pass_sums *sums, cudaStream_t stream) {
    return launch_dependent(job_sum, row_grid(size, sums->blocks, sums->outputs, sums->batch), ROW_THREADS, row_bytes,
                            stream, *sums, rows_of(size));
}

cudaError_t gck_3pass_correlate(int size, const gck_3pass_correlations *c, cudaStream_t stream) {
    return launch_dependent(job_correlate, row_grid(size, 1, (int64_t)c->responses * c->parts, c->splits), ROW_THREADS,
                            row_bytes, stream, *c, rows_of(size));
}

cudaError_t gck_3pass_finish(int size, int64_t transforms, int64_t splits, const float2 *twiddles, const float2 *sums,
                             float2 *scratch, cudaStream_t stream) {
    return launch_dependent(job_finish, row_grid(size, 1, transforms, 1), ROW_THREADS, row_bytes, stream, rows_of(size),
                            (int)splits, twiddles, sums, scratch);
}
