/*
 * Small jobs on device memory by direct sums, in one kernel: convolution and correlation of rows with a response each,
 * and the gradient by the responses. Contract: job.h. All three are the correlation
 *
 *      target[n] = sum over j of c[j] s[n + at + j],      c: the factor, forwards or backwards; s: the source.
 *
 * A transform of a small job is a chain on a few multiprocessors; here every multiprocessor has a tile of the target.
 * A block loads the terms of its tile once. Thread (group g, part p) adds up part p of the terms for frames 8 g .. 8 g
 * + 7 of the tile in registers: the window of 16 samples moves by 8, so that 64 multiply-adds need four 128-bit loads.
 * The parts are added up in shared memory, in the order of the terms.
 *
 *      tile of 8 groups frames  |g 0 |g 1 |g 2 | ...        source  |-------- 8 groups + terms --------|
 *      terms                    |    part 0    |    part 1    | ...   each a number of units of 32 terms
 *
 * Four floats of padding behind 32 keep the loads of a quarter of a warp, 8 floats apart, free of bank conflicts.
 */
#include "job_rows.cuh"

namespace {

enum { R = GCK_JOB_DIRECT_OUTPUTS, UNIT = GCK_JOB_DIRECT_UNIT, UNIT_PLACES = UNIT + 4, LOADS = 8 };

/* Returns where sample i >= 0 is in shared memory. */
__host__ __device__ __forceinline__ int place(int i) {
    return i + 4 * (int)((unsigned)i / UNIT);
}

struct layout {
    int tile, factor, sums, floats; /* frames of a tile; first float of the factors and of the sums; all floats */
};

__host__ __device__ __forceinline__ layout layout_of(const gck_job_direct &a) {
    const int tile = R * a.groups, factor = place(tile + a.chunk), sums = factor + place(a.chunk);
    return {tile, factor, sums, sums + a.parts * tile};
}

/* Loads elements base + threads k of data for k < LOADS; those outside begin .. end - 1 are 0. step: 1 or -1. */
template <typename T>
__device__ __forceinline__ void fetch(float *r, const T *data, int step, int base, int begin, int end) {
    const int threads = blockDim.x;
    const T *from = data + base * step;
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
        const int i = base + k * threads;
        r[k] = i >= begin && i < end ? sample_of(from[k * threads * step]) : 0.0f;
    }
}

/* Stores them in shared memory, those below `count`. `threads` is a multiple of UNIT. */
__device__ __forceinline__ void put(float *to, const float *r, int base, int count, float scale) {
    const int threads = blockDim.x, stride = place(threads);
    to += place(base);
#pragma unroll
    for (int k = 0; k < LOADS; k++)
        if (base + k * threads < count)
            to[k * stride] = scale * r[k];
}

__device__ __forceinline__ void load_8(float *v, const float *from) {
    const float4 a = *(const float4 *)from, b = *(const float4 *)(from + 4);
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
    v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

/* Adds 8 terms to R sums; the window is a, then b. */
__device__ __forceinline__ void add_terms(float *sum, const float *a, const float *b, const float *factors) {
    float c[8];
    load_8(c, factors);
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
        for (int r = 0; r < R; r++)
            sum[r] = fmaf(c[j], j + r < 8 ? a[(j + r) % 8] : b[(j + r) % 8], sum[r]);
}

/* Adds `units` units of terms; s and c: where they begin for this thread. */
__device__ __forceinline__ void add_units(float *sum, const float *s, const float *c, int units, int group) {
    /* Groups cross the padding at different steps. */
    const float *s1 = s + 8 + (group % 4 >= 3 ? 4 : 0), *s2 = s + 16 + (group % 4 >= 2 ? 4 : 0),
                *s3 = s + 24 + (group % 4 >= 1 ? 4 : 0);
    float a[8], b[8];
    load_8(a, s);
#pragma unroll 1
    for (int u = 0; u < units * UNIT_PLACES; u += UNIT_PLACES) {
        load_8(b, s1 + u);
        add_terms(sum, a, b, c + u);
        load_8(a, s2 + u);
        add_terms(sum, b, a, c + u + 8);
        load_8(b, s3 + u);
        add_terms(sum, a, b, c + u + 16);
        load_8(a, s + u + UNIT_PLACES);
        add_terms(sum, b, a, c + u + 24);
    }
}

/* Rows of one sum. frame: of the source for term 0 and frame 0 of the tile; may be outside the row. */
struct operands {
    int64_t source, factor, frame;
    float scale; /* of the factors */
};

/* Terms first .. last - 1. */
struct range {
    int64_t first, last;
};

/* Returns the terms of a tile that are not zero. */
__device__ __forceinline__ range terms_of(const gck_job_direct &a, const operands &o) {
    const int64_t factors = row_frames(a.factor, o.factor), frames = row_frames(a.source, o.source);
    return {max(a.reverse ? a.terms - factors : (int64_t)0, 1 - R * a.groups - o.frame),
            min(a.reverse ? a.terms : factors, frames - o.frame)};
}

/* Adds the terms `from` .. from + count - 1, at most a chunk, to the sums of this thread. Floats: all samples are. */
template <bool Floats>
__device__ __forceinline__ void add_chunk(float *sum, float *shared, const gck_job_direct &a, const operands &o,
                                          int64_t from, int count) {
    const layout l = layout_of(a);
    const int units = (count + UNIT - 1) / UNIT, window = l.tile + units * UNIT;
    const int64_t frame = o.frame + from, frames = row_frames(a.source, o.source);
    const int begin = within(-frame, window), end = within(frames - frame, window);
    const int64_t factor = a.reverse ? a.terms - 1 - from : from;
    for (int base = threadIdx.x; base < window; base += LOADS * (int)blockDim.x) {
        float s[LOADS], c[LOADS];
        with_samples<Floats>(a.source, row_start(a.source, o.source) + frame,
                             [&](auto *x) { fetch(s, x, 1, base, begin, end); });
        with_samples<Floats>(a.factor, row_start(a.factor, o.factor) + factor,
                             [&](auto *x) { fetch(c, x, a.reverse ? -1 : 1, base, 0, count); });
        put(shared, s, base, window, 1.0f);
        put(shared + l.factor, c, base, units * UNIT, o.scale);
    }
    __syncthreads();
    const unsigned groups = a.groups;
    const int group = threadIdx.x % groups, each = (unsigned)(units + a.parts - 1) / (unsigned)a.parts;
    const int first = (int)(threadIdx.x / groups) * each, last = min(first + each, units);
    if (first < last)
        add_units(sum, shared + place(R * group) + first * UNIT_PLACES, shared + l.factor + first * UNIT_PLACES,
                  last - first, group);
}

/* Adds up the parts and stores the tile from frame `frame` of a target row on. */
template <bool Floats>
__device__ __forceinline__ void store_tile(const float *sum, float *shared, const gck_job_direct &a, int64_t row,
                                           int64_t frame, float gain) {
    const layout l = layout_of(a);
    const unsigned groups = a.groups;
    const int group = threadIdx.x % groups, part = threadIdx.x / groups;
    float *sums = shared + l.sums;
    if (part < a.parts) {
        float4 *to = (float4 *)(sums + part * l.tile + R * group);
        to[0] = make_float4(sum[0], sum[1], sum[2], sum[3]);
        to[1] = make_float4(sum[4], sum[5], sum[6], sum[7]);
    }
    __syncthreads();
    const written_frames frames = frames_to_write(a.target, row);
    const int end = within(frames.end - frame, l.tile), valued = within(frames.valued - frame, l.tile);
    for (int n = threadIdx.x; n < end; n += (int)blockDim.x) {
        float y = 0;
#pragma unroll 8
        for (int p = 0; p < a.parts; p++)
            y += sums[p * l.tile + n];
        y = n < valued ? gain * y : 0.0f;
        with_samples<Floats>(a.target.rows, row_start(a.target.rows, row) + frame + n,
                             [&](auto *to) { set_sample(to, a.target.accumulate ? sample_of(*to) + y : y); });
    }
}

/* block.x: tile; block.y: row. */
template <bool Floats>
__global__ void __launch_bounds__(GCK_JOB_DIRECT_THREADS, 2) direct_convolve(const __grid_constant__ gck_job_direct a) {
    extern __shared__ __align__(16) float direct_shared[];
    const int row = blockIdx.y;
    const int64_t frame = (int64_t)blockIdx.x * R * a.groups;
    float sum[R] = {};
    pdl_trigger();
    pdl_wait();
    if (frame >= frames_to_write(a.target, row).end)
        return;
    const operands o = {row, response_of(a.sharing, row), frame + a.shift, 1.0f};
    const range terms = terms_of(a, o);
    for (int64_t from = terms.first; from < terms.last; from += a.chunk) {
        if (from > terms.first)
            __syncthreads();
        add_chunk<Floats>(sum, direct_shared, a, o, from, (int)min(terms.last - from, (int64_t)a.chunk));
    }
    store_tile<Floats>(sum, direct_shared, a, row, frame, a.gain ? a.gain[row] : 1.0f);
}

/* block.x: tile; block.y: response; block.z: a range of the chunks of all its rows. The target has splits x responses
 * rows: with several splits it is the partial sums. */
template <bool Floats>
__global__ void __launch_bounds__(GCK_JOB_DIRECT_THREADS, 2) direct_gradient(const __grid_constant__ gck_job_direct a) {
    extern __shared__ __align__(16) float direct_shared[];
    const int response = blockIdx.y;
    const int64_t frame = (int64_t)blockIdx.x * R * a.groups;
    const int64_t chunks = (a.terms + a.chunk - 1) / a.chunk, all = chunks * sharing_rows(a.sharing);
    float sum[R] = {};
    bool first = true;
    pdl_trigger();
    pdl_wait();
    for (int64_t i = blockIdx.z * all / a.splits; i < (blockIdx.z + 1) * all / a.splits; i++) {
        const int row = sharing_row(a.sharing, response, (int)(i / chunks));
        if (row >= a.sharing.rows)
            continue;
        const operands o = {row, row, frame + a.shift, a.gain ? a.gain[row] : 1.0f};
        const range terms = terms_of(a, o);
        const int64_t from = max(terms.first, i % chunks * a.chunk), last = min(terms.last, (i % chunks + 1) * a.chunk);
        if (from >= last)
            continue;
        if (!first)
            __syncthreads();
        first = false;
        add_chunk<Floats>(sum, direct_shared, a, o, from, (int)(last - from));
    }
    store_tile<Floats>(sum, direct_shared, a, (int64_t)blockIdx.z * a.sharing.responses + response, frame, 1.0f);
}

} // namespace

cudaError_t gck_job_direct_load(void) {
    cudaError_t err = load_kernel(direct_convolve<true>, 0);
    err = err ? err : load_kernel(direct_convolve<false>, 0);
    err = err ? err : load_kernel(direct_gradient<true>, 0);
    return err ? err : load_kernel(direct_gradient<false>, 0);
}

int gck_job_direct_shared_bytes(int groups, int parts, int chunk) {
    gck_job_direct job = {};
    job.groups = groups;
    job.parts = parts;
    job.chunk = chunk;
    return layout_of(job).floats * (int)sizeof(float);
}

/* Launches a kernel on a grid of `rows` rows. */
static cudaError_t launch_tiles(void (*kernel)(gck_job_direct), const gck_job_direct &job, int rows, int splits,
                                cudaStream_t stream) {
    const int threads = (job.groups * job.parts + 31) / 32 * 32;
    return launch_dependent(kernel, dim3(job.tiles, rows, splits), threads,
                            gck_job_direct_shared_bytes(job.groups, job.parts, job.chunk), stream, job);
}

static bool all_floats(const gck_job_direct &job) {
    return job.source.sample == GCK_F32 && job.factor.sample == GCK_F32 && job.target.rows.sample == GCK_F32;
}

cudaError_t gck_job_direct_convolve(const gck_job_direct *job, cudaStream_t stream) {
    gck_job_direct forwards = *job;
    forwards.shift -= job->reverse ? job->terms - 1 : 0;
    return launch_tiles(all_floats(*job) ? direct_convolve<true> : direct_convolve<false>, forwards, job->sharing.rows,
                        1, stream);
}

cudaError_t gck_job_direct_gradient(const gck_job_direct *job, cudaStream_t stream) {
    gck_job_direct sums = *job;
    const int64_t frames = job->target.rows.frames;
    if (job->splits > 1)
        sums.target = {{job->partial, frames, frames, NULL, NULL, GCK_F32}, 0};
    const cudaError_t err = launch_tiles(all_floats(sums) ? direct_gradient<true> : direct_gradient<false>, sums,
                                         job->sharing.responses, job->splits, stream);
    if (err || job->splits == 1)
        return err;
    return gck_sum_parts(&job->target, job->partial, job->splits, job->sharing.responses, frames, stream);
}
