/*
 * The steps over the rows of transforms in three kernels (overlap_save_3pass.cu has the method; three_pass_columns.cu
 * the steps before and behind these): a warp transforms one row of 1024 points. Contracts: job.h.
 *
 *      multiply   transform, multiply by the response's row, transform back          ->  results
 *      sum        transform all sources of a result, multiply, add, transform back   ->  results
 *      correlate  transform x and g, sum += conj(X) G                                ->  sums, then `finish`
 *      both       the same, and conj(H) G, transform back                            ->  sums, and the places of g
 *
 * `multiply` transforms a fresh response in registers, so that its spectrum never crosses the memory. The kernels are
 * launched early (launch.cuh): what a kernel before them writes is read by plain loads.
 */
#include "rows.cuh"
#include "three_pass.cuh"

namespace {

typedef row_fft f;

/* Returns the row of a warp, as an offset in a transform: block.x is one of `per_rows` blocks for each group of
 * ROWS_PER_BLOCK rows. */
__device__ __forceinline__ int64_t warp_row_start(int per_rows) {
    return (int64_t)(blockIdx.x / per_rows * ROWS_PER_BLOCK + threadIdx.x / 32) * ROW_POINTS;
}

template <typename S> __device__ __forceinline__ void load_row(float2 *v, const S *from, int t) {
#pragma unroll
    for (int j = 0; j < f::P; j++)
        v[j] = unpack(from[t + j * f::T]);
}

/* Loads a row in two steps. The warp transforms another row between them. Both steps have the same `from` and t. */
template <typename S> struct row_ahead {
    S row[f::P];
    __device__ __forceinline__ void begin(const S *from, int t) {
#pragma unroll
        for (int j = 0; j < f::P; j++)
            row[j] = from[t + j * f::T];
    }
    __device__ __forceinline__ void end(float2 *v, const S *, int) const {
#pragma unroll
        for (int j = 0; j < f::P; j++)
            v[j] = unpack(row[j]);
    }
};

/* Numbers of 8 bytes would take too many registers between the steps: the second step loads the row. */
template <> struct row_ahead<float2> {
    __device__ __forceinline__ void begin(const float2 *, int) {}
    __device__ __forceinline__ void end(float2 *v, const float2 *from, int t) const {
        load_row(v, from, t);
    }
};

/* Loads or stores a row of a spectrum: two registers of a thread are adjacent. */
template <typename S> __device__ __forceinline__ void load_spectrum(float2 *v, const S *from, int t) {
#pragma unroll
    for (int j = 0; j < f::P; j += 2) {
        const adjacent<S> w = *(const adjacent<S> *)(from + j * f::T + 2 * t);
        v[j] = unpack(w.a);
        v[j + 1] = unpack(w.b);
    }
}

template <typename S> __device__ __forceinline__ void store_spectrum(const float2 *v, S *to, int t) {
#pragma unroll
    for (int j = 0; j < f::P; j += 2) {
        adjacent<S> w;
        pack(w.a, v[j]);
        pack(w.b, v[j + 1]);
        *(adjacent<S> *)(to + j * f::T + 2 * t) = w;
    }
}

/* Transforms a row back and stores it. */
template <typename S>
__device__ __forceinline__ void finish_row(float2 *v, float2 *s, S *to, const float2 *__restrict__ twiddles, int t) {
    __syncwarp();
    f::inverse(v, s, t, twiddles + f::forward_twiddles);
#pragma unroll
    for (int j = 0; j < f::P; j++)
        pack(to[t + j * f::T], v[j]);
}

/* Transforms rows into spectra in the layout that the products read. Does not let the next kernel start early, so that
 * spectra may be read through the read-only cache. block.x: groups of rows; block.y: transform. */
template <typename S>
__global__ void __launch_bounds__(ROW_THREADS)
    transform_rows(int rows, const float2 *__restrict__ twiddles, const S *columns, S *spectra) {
    extern __shared__ __align__(16) float2 shared[];
    const int t = threadIdx.x % 32;
    const int64_t start = (int64_t)blockIdx.y * rows * ROW_POINTS + warp_row_start(1);
    float2 v[f::P];
    pdl_wait();
    load_row(v, columns + start, t);
    f::forward(v, shared + threadIdx.x / 32 * f::shared, t, twiddles);
    store_spectrum(v, spectra + start, t);
}

/* Multiplies a row by the spectrum h in registers, or by the one in memory if Held is false, and by its conjugate if
 * sign is -1. */
template <bool Held, typename S>
__device__ __forceinline__ void multiply_row(float2 *v, const float2 *h, const S *from, float sign, int t) {
#pragma unroll
    for (int j = 0; j < f::P; j += 2) {
        float2 a = h[Held ? j : 0], b = h[Held ? j + 1 : 0];
        if (!Held) {
            const adjacent<S> w = *(const adjacent<S> *)(from + j * f::T + 2 * t);
            a = unpack(w.a);
            b = unpack(w.b);
        }
        v[j] = mul(v[j], make_float2(a.x, sign * a.y));
        v[j + 1] = mul(v[j + 1], make_float2(b.x, sign * b.y));
    }
}

/* Adds the products of a row with the spectrum in memory, or with its conjugate if sign is -1. */
__device__ __forceinline__ void add_products(float2 *sum, const float2 *v, const float2 *from, float sign, int t) {
#pragma unroll
    for (int j = 0; j < f::P; j += 2) {
        const float4 w = *(const float4 *)(from + j * f::T + 2 * t);
        sum[j] = mul_add(v[j], make_float2(w.x, sign * w.y), sum[j]);
        sum[j + 1] = mul_add(v[j + 1], make_float2(w.z, sign * w.w), sum[j + 1]);
    }
}

/* block.x: ranges of per_warp blocks for a group of rows; block.y: row of the job. */
template <bool Fresh, typename S>
__global__ void __launch_bounds__(ROW_THREADS, Fresh ? 2 : 4)
    job_multiply(const __grid_constant__ gck_3pass_products a, int rows, int ranges) {
    extern __shared__ __align__(16) float2 shared[];
    float2 *s = shared + threadIdx.x / 32 * f::shared, h[Fresh ? f::P : 1], v[f::P];
    const int t = threadIdx.x % 32, first = blockIdx.x % ranges * a.per_warp;
    const int64_t row_start = warp_row_start(ranges), points = (int64_t)rows * ROW_POINTS;
    const int response = response_of(a.sharing, a.first_row + blockIdx.y) - a.first_response;
    const S *from = (const S *)a.responses + response * points + row_start;
    const float sign = a.reflect ? -1.0f : 1.0f;
    pdl_trigger();
    pdl_wait();
    const int end = min(first + a.per_warp, a.blocks);
    int64_t start = ((int64_t)blockIdx.y * a.blocks + first) * points + row_start;
    row_ahead<S> next;
    next.begin((const S *)a.sources + start, t);
    if constexpr (Fresh) {
        load_row(h, from, t);
        f::forward(h, s, t, a.twiddles);
    }
#pragma unroll 1
    for (int b = first; b < end; b++, start += points) {
        next.end(v, (const S *)a.sources + start, t);
        __syncwarp();
        f::forward(v, s, t, a.twiddles);
        multiply_row<Fresh>(v, h, from, sign, t);
        if (b + 1 < end)
            next.begin((const S *)a.sources + start + points, t);
        finish_row(v, s, (S *)a.results + start, a.twiddles, t);
    }
}

/* Returns route `e` of all, or the only one of output `e`. */
__device__ __forceinline__ gck_route route_of(const gck_3pass_sums &a, int e) {
    return a.route ? a.route[e] : gck_route{e, response_of(a.sharing, a.first_row + e) - a.first_response};
}

/* block.x: blocks for a group of rows, all of them before the next group, so that a row of the response is used while
 * it is in the cache; block.y: output; block.z: batch. Single: every sum has one term. Reflect: a.reflect. */
template <bool Single, bool Reflect>
__global__ void __launch_bounds__(ROW_THREADS, Single ? 4 : 2)
    job_sum(const __grid_constant__ gck_3pass_sums a, int rows) {
    extern __shared__ __align__(16) float2 shared[];
    float2 *s = shared + threadIdx.x / 32 * f::shared, v[f::P], sum[Single ? 1 : f::P];
    const int t = threadIdx.x % 32, block = blockIdx.x % a.blocks, output = blockIdx.y;
    const int64_t row_start = warp_row_start(a.blocks), points = (int64_t)rows * ROW_POINTS;
    const float sign = Reflect ? -1.0f : 1.0f;
    const int parts = Single ? 1 : a.parts, behind = a.blocks + parts - 1;
    pdl_trigger();
    pdl_wait();
    const int first = a.row ? a.row[output] : output, end = Single || !a.row ? first + 1 : a.row[output + 1];
#pragma unroll
    for (int j = 0; j < (Single ? 0 : f::P); j++)
        sum[j] = make_float2(0.0f, 0.0f);
#pragma unroll 1
    for (int e = first; e < end; e++) {
        const gck_route route = route_of(a, e);
        const int64_t source =
            ((int64_t)blockIdx.z * a.inputs + route.input) * behind + (Reflect ? block : block + parts - 1);
        const float2 *x = a.sources + source * points + row_start;
        const float2 *h = a.spectra + (int64_t)route.plane * parts * points + row_start;
#pragma unroll 1
        for (int p = 0; p < parts; p++, x += Reflect ? points : -points, h += points) {
            load_row(v, x, t);
            __syncwarp();
            f::forward(v, s, t, a.twiddles);
            if constexpr (Single)
                multiply_row<false>(v, v, h, sign, t);
            else
                add_products(sum, v, h, sign, t);
        }
    }
#pragma unroll
    for (int j = 0; j < (Single ? 0 : f::P); j++)
        v[j] = sum[j];
    float2 *to = a.results + (((int64_t)blockIdx.z * a.outputs + output) * a.blocks + block) * points + row_start;
    finish_row(v, s, to, a.twiddles, t);
}

/* Transforms of one term of a gradient; x is negative if the row does not belong to this call. */
struct factors {
    int64_t x, g;
};

__device__ __forceinline__ factors factors_of(const gck_3pass_correlations &a, int response, int index, int block,
                                              int part) {
    int x_row, g_row;
    if (a.route) {
        x_row = index * a.inputs + a.route[response].input;
        g_row = index * a.outputs + a.route[response].plane;
    } else {
        x_row = g_row = sharing_row(a.sharing, response, index) - a.first_row;
        if (x_row < 0 || x_row >= a.count)
            return {-1, -1};
    }
    return {(int64_t)x_row * a.blocks + block, (int64_t)g_row * (a.blocks + a.parts - 1) + block + part};
}

/* block.x: groups of rows; block.y: response and part; block.z: split, whose sums are `pitch` transforms apart. */
__global__ void __launch_bounds__(ROW_THREADS, 2)
    job_correlate(const __grid_constant__ gck_3pass_correlations a, int rows, int64_t pitch) {
    extern __shared__ __align__(16) float2 shared[];
    float2 *s = shared + threadIdx.x / 32 * f::shared, v[f::P], x[f::P], sum[f::P];
    const int t = threadIdx.x % 32, response = a.first_response + blockIdx.y / a.parts, part = blockIdx.y % a.parts;
    const int64_t row_start = warp_row_start(1), points = (int64_t)rows * ROW_POINTS;
    const int units = (a.route ? a.count : sharing_rows(a.sharing)) * a.blocks;
    const int end = (int)((blockIdx.z + 1ll) * units / a.splits);
    float2 *to = a.sums + (blockIdx.z * pitch + blockIdx.y) * points + row_start;
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

/* block.x: groups of rows; block.y: response; block.z: split, whose sums are `pitch` transforms apart. Sixteen points
 * of the sum are in shared memory: no registers are left for them. */
template <typename S>
__global__ void __launch_bounds__(ROW_THREADS, 2)
    job_both(const __grid_constant__ gck_3pass_both a, int rows, int64_t pitch) {
    constexpr int HELD = f::P - 2 * SUM_STASHED;
    extern __shared__ __align__(16) float2 shared[];
    float2 *s = shared + threadIdx.x / 32 * f::shared, v[f::P], x[f::P], sum[HELD];
    float4 *stash = (float4 *)(shared + ROWS_PER_BLOCK * f::shared) + threadIdx.x;
    const int t = threadIdx.x % 32, response = blockIdx.y, end = (int)((blockIdx.z + 1ll) * a.units / a.splits);
    const int64_t row_start = warp_row_start(1), points = (int64_t)rows * ROW_POINTS;
    const S *h = (const S *)a.h + response * points + row_start;
    S *sums = (S *)a.sums + (blockIdx.z * pitch + response) * points;
    pdl_trigger();
    pdl_wait();
    if (a.fresh) { /* each thread reads again what it has stored */
        S *spectrum = (S *)a.spectra + response * points + row_start;
        load_row(v, h, t);
        f::forward(v, s, t, a.twiddles);
        store_spectrum(v, spectrum, t);
        h = spectrum;
        __syncwarp();
    }
#pragma unroll
    for (int j = 0; j < HELD; j++)
        sum[j] = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < SUM_STASHED; i++)
        stash[i * ROW_THREADS] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const int first = (int)((int64_t)blockIdx.z * a.units / a.splits);
    int64_t start = ((int64_t)response * a.units + first) * points + row_start;
    row_ahead<S> next_x, g;
    if (first < end)
        next_x.begin((const S *)a.x + start, t);
#pragma unroll 1
    for (int unit = first; unit < end; unit++, start += points) {
        g.begin((const S *)a.g + start, t);
        next_x.end(x, (const S *)a.x + start, t);
        f::forward(x, s, t, a.twiddles);
        __syncwarp();
        g.end(v, (const S *)a.g + start, t);
        f::forward(v, s, t, a.twiddles);
#pragma unroll
        for (int j = 0; j < HELD; j++)
            sum[j] = mul_add(v[j], make_float2(x[j].x, -x[j].y), sum[j]);
#pragma unroll
        for (int i = 0, j = HELD; i < SUM_STASHED; i++, j += 2) {
            const float4 w = stash[i * ROW_THREADS];
            const float2 a0 = mul_add(v[j], make_float2(x[j].x, -x[j].y), make_float2(w.x, w.y));
            const float2 a1 = mul_add(v[j + 1], make_float2(x[j + 1].x, -x[j + 1].y), make_float2(w.z, w.w));
            stash[i * ROW_THREADS] = make_float4(a0.x, a0.y, a1.x, a1.y);
        }
        multiply_row<false>(v, v, h, -1.0f, t);
        if (unit + 1 < end)
            next_x.begin((const S *)a.x + start + points, t);
        finish_row(v, s, (S *)a.g + start, a.twiddles, t);
        __syncwarp();
    }
#pragma unroll
    for (int j = 0; j < HELD; j++)
        v[j] = sum[j];
#pragma unroll
    for (int i = 0, j = HELD; i < SUM_STASHED; i++, j += 2) {
        const float4 w = stash[i * ROW_THREADS];
        v[j] = make_float2(w.x, w.y);
        v[j + 1] = make_float2(w.z, w.w);
    }
#pragma unroll
    for (int j = 0; j < f::P; j++)
        v[j] = make_float2(a.scale * v[j].x, a.scale * v[j].y);
    if (a.splits == 1)
        finish_row(v, s, sums + row_start, a.twiddles, t);
    else
        store_spectrum(v, sums + row_start, t);
}

/* Computes both gradients where each response has one unit, so that nothing is summed. block.y: response. */
template <typename S>
__global__ void __launch_bounds__(ROW_THREADS, 2) job_both_single(const __grid_constant__ gck_3pass_both a, int rows) {
    extern __shared__ __align__(16) float2 shared[];
    float2 *s = shared + threadIdx.x / 32 * f::shared, v[f::P], x[f::P];
    const int t = threadIdx.x % 32;
    const int64_t start = (int64_t)blockIdx.y * rows * ROW_POINTS + warp_row_start(1);
    pdl_trigger();
    pdl_wait();
    row_ahead<S> next;
    load_row(x, (const S *)a.x + start, t);
    next.begin((const S *)a.g + start, t);
    f::forward(x, s, t, a.twiddles);
    __syncwarp();
    next.end(v, (const S *)a.g + start, t);
    f::forward(v, s, t, a.twiddles);
#pragma unroll
    for (int j = 0; j < f::P; j++) {
        x[j] = mul_conj(v[j], x[j]);
        x[j] = make_float2(a.scale * x[j].x, a.scale * x[j].y);
    }
    next.begin((const S *)a.h + start, t);
    finish_row(x, s, (S *)a.sums + start, a.twiddles, t);
    next.end(x, (const S *)a.h + start, t);
    __syncwarp();
    f::forward(x, s, t, a.twiddles);
#pragma unroll
    for (int j = 0; j < f::P; j++)
        v[j] = mul_conj(v[j], x[j]);
    finish_row(v, s, (S *)a.g + start, a.twiddles, t);
}

/* block.x: groups of rows; block.y: transform. The splits are `pitch` transforms apart. */
template <typename S>
__global__ void __launch_bounds__(ROW_THREADS)
    job_finish(int rows, int splits, int64_t pitch, const float2 *__restrict__ twiddles, const S *sums, S *scratch) {
    extern __shared__ __align__(16) float2 shared[];
    const int t = threadIdx.x % 32;
    const int64_t start = (int64_t)blockIdx.y * rows * ROW_POINTS + warp_row_start(1);
    float2 v[f::P];
    pdl_trigger();
    pdl_wait();
    load_spectrum(v, sums + start, t);
#pragma unroll 1
    for (int s = 1; s < splits; s++) {
        const S *from = sums + s * pitch * rows * ROW_POINTS + start;
#pragma unroll
        for (int j = 0; j < f::P; j += 2) {
            const adjacent<S> w = *(const adjacent<S> *)(from + j * f::T + 2 * t);
            v[j] = add(v[j], unpack(w.a));
            v[j + 1] = add(v[j + 1], unpack(w.b));
        }
    }
    finish_row(v, shared + threadIdx.x / 32 * f::shared, scratch + start, twiddles, t);
}

/* Returns the rows of a transform of this size. */
int rows_of(int size) {
    return 16 << size;
}

/* Returns a grid with `per_rows` blocks for each group of rows. */
dim3 row_grid(int size, int64_t per_rows, int64_t y, int64_t z) {
    return dim3((unsigned)(rows_of(size) / ROWS_PER_BLOCK * per_rows), (unsigned)y, (unsigned)z);
}

template <typename S>
cudaError_t launch_spectra(int size, int64_t transforms, const float2 *twiddles, const S *columns, S *spectra,
                           cudaStream_t stream) {
    return launch_parts(transforms, 1, [=](int64_t first, int count) {
        const int64_t offset = first * rows_of(size) * ROW_POINTS;
        return launch_dependent(transform_rows<S>, row_grid(size, 1, count, 1), ROW_THREADS, ROW_BYTES, stream,
                                rows_of(size), twiddles, columns + offset, spectra + offset);
    });
}

template <typename S> cudaError_t launch_finish(int size, const gck_3pass_splits &s, cudaStream_t stream) {
    return launch_parts(s.transforms, 1, [=](int64_t first, int count) {
        const int64_t offset = first * rows_of(size) * ROW_POINTS;
        return launch_dependent(job_finish<S>, row_grid(size, 1, count, 1), ROW_THREADS, ROW_BYTES, stream,
                                rows_of(size), (int)s.splits, s.transforms, s.twiddles, (const S *)s.sums + offset,
                                (S *)s.scratch + offset);
    });
}

/* Loads the kernels for transforms of S. */
template <typename S> cudaError_t load_rows() {
    cudaError_t err = load_kernel(job_multiply<true, S>, ROW_BYTES);
    err = err ? err : load_kernel(job_both<S>, BOTH_BYTES);
    err = err ? err : load_kernel(job_both_single<S>, ROW_BYTES);
    err = err ? err : load_kernel(transform_rows<S>, ROW_BYTES);
    return err ? err : load_kernel(job_finish<S>, ROW_BYTES);
}

} // namespace

cudaError_t gck_3pass_load(int shared_bytes_max) {
    cudaError_t err = load_rows<float2>();
    err = err ? err : load_rows<gck_packed>();
    err = err ? err : load_kernel(job_multiply<false, float2>, ROW_BYTES);
    err = err ? err : load_kernel(job_sum<false, false>, ROW_BYTES);
    err = err ? err : load_kernel(job_sum<false, true>, ROW_BYTES);
    err = err ? err : load_kernel(job_sum<true, false>, ROW_BYTES);
    err = err ? err : load_kernel(job_sum<true, true>, ROW_BYTES);
    err = err ? err : load_kernel(job_correlate, ROW_BYTES);
    return err ? err : gck_3pass_load_columns(shared_bytes_max);
}

cudaError_t gck_3pass_spectra(int size, int64_t transforms, int packed, const float2 *twiddles, const float2 *columns,
                              float2 *spectra, cudaStream_t stream) {
    return packed
               ? launch_spectra(size, transforms, twiddles, (const gck_packed *)columns, (gck_packed *)spectra, stream)
               : launch_spectra(size, transforms, twiddles, columns, spectra, stream);
}

cudaError_t gck_3pass_multiply(int size, const gck_3pass_products *p, cudaStream_t stream) {
    const int ranges = (p->blocks + p->per_warp - 1) / p->per_warp;
    const auto kernel = p->packed  ? job_multiply<true, gck_packed>
                        : p->fresh ? job_multiply<true, float2>
                                   : job_multiply<false, float2>;
    return launch_dependent(kernel, row_grid(size, ranges, p->count, 1), ROW_THREADS, ROW_BYTES, stream, *p,
                            rows_of(size), ranges);
}

cudaError_t gck_3pass_sum(int size, const gck_3pass_sums *sums, cudaStream_t stream) {
    const auto kernel = sums->single ? (sums->reflect ? job_sum<true, true> : job_sum<true, false>)
                                     : (sums->reflect ? job_sum<false, true> : job_sum<false, false>);
    return launch_dependent(kernel, row_grid(size, sums->blocks, sums->outputs, sums->batch), ROW_THREADS, ROW_BYTES,
                            stream, *sums, rows_of(size));
}

cudaError_t gck_3pass_correlate(int size, const gck_3pass_correlations *c, cudaStream_t stream) {
    const int64_t pitch = (int64_t)c->responses * c->parts;
    return launch_parts(c->responses, c->parts, [=](int64_t first, int count) {
        gck_3pass_correlations part = *c;
        part.first_response += (int)first;
        part.sums += first * c->parts * rows_of(size) * ROW_POINTS;
        return launch_dependent(job_correlate, row_grid(size, 1, (int64_t)count * c->parts, c->splits), ROW_THREADS,
                                ROW_BYTES, stream, part, rows_of(size), pitch);
    });
}

cudaError_t gck_3pass_gradients(int size, const gck_3pass_both *job, cudaStream_t stream) {
    const dim3 grid = row_grid(size, 1, job->responses, job->splits);
    if (job->single)
        return launch_dependent(job->packed ? job_both_single<gck_packed> : job_both_single<float2>, grid, ROW_THREADS,
                                ROW_BYTES, stream, *job, rows_of(size));
    return launch_dependent(job->packed ? job_both<gck_packed> : job_both<float2>, grid, ROW_THREADS, BOTH_BYTES,
                            stream, *job, rows_of(size), (int64_t)job->responses);
}

cudaError_t gck_3pass_finish(int size, const gck_3pass_splits *splits, cudaStream_t stream) {
    return splits->packed ? launch_finish<gck_packed>(size, *splits, stream)
                          : launch_finish<float2>(size, *splits, stream);
}
