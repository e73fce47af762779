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
 *
 * A job of this kind takes microseconds, a few thousand cycles of each block one after the other, so that instructions
 * between the loads count: offsets are constants, and what does not depend on memory is computed before pdl_wait().
 *
 * What it buys: 1.4 to 2.2 times the speed of transforms with few taps (H100); 16 000 frames x 2000 taps take 5.1
 * instead of 12.5 us (H200; docs/experiments/jobs.md).
 */
#include "kernels/engine/rows.cuh"

namespace {

enum {
    R = GCK_JOB_DIRECT_OUTPUTS,
    UNIT = GCK_JOB_DIRECT_UNIT,
    UNIT_PLACES = UNIT + 4,
    THREADS = GCK_JOB_DIRECT_THREADS, /* a multiple of UNIT */
    FACTOR_LOADS = (GCK_JOB_DIRECT_CHUNK + THREADS - 1) / THREADS,
    SOURCE_LOADS = (R * GCK_JOB_DIRECT_GROUPS + GCK_JOB_DIRECT_CHUNK + THREADS - 1) / THREADS
};

/* Returns where sample i >= 0 is in shared memory. */
__host__ __device__ constexpr int place(int i) {
    return i + 4 * (int)((unsigned)i / UNIT);
}

struct tile_memory {
    float source[place(SOURCE_LOADS * THREADS)], factor[place(FACTOR_LOADS * THREADS)];
    float sums[THREADS * R]; /* [part][frame of the tile] */
};

static_assert(sizeof(tile_memory) <= GCK_JOB_DIRECT_SHARED, "the planner counts on this size");

/* Loads elements threadIdx.x + THREADS k of a range for k < Loads; those outside begin .. end - 1 are 0. from: element
 * threadIdx.x; step: 1, or -1 for a range that is read backwards. */
template <int Loads, typename From>
__device__ __forceinline__ void fetch(float *r, From from, int step, int begin, int end) {
    const unsigned first = threadIdx.x - begin, count = end - begin;
#pragma unroll
    for (int k = 0; k < Loads; k++)
        r[k] = first + k * THREADS < count ? sample_of(from[(int64_t)(k * THREADS * step)]) : 0.0f;
}

/* Stores them in shared memory, those below `count`. */
template <int Loads> __device__ __forceinline__ void put(float *to, const float *r, int count, float scale) {
    to += place(threadIdx.x);
#pragma unroll
    for (int k = 0; k < Loads; k++)
        if ((int)threadIdx.x + k * THREADS < count)
            to[k * place(THREADS)] = scale * r[k];
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
    int source, factor, frame;
    float scale; /* of the factors */
};

/* Terms first .. last - 1. */
struct range {
    int first, last;
};

/* What Plain jobs do not have to read: all samples are adjacent floats, and rows have neither starts nor lengths. */
template <bool Plain> __device__ __forceinline__ int frames_of(const gck_rows &rows, int row) {
    return Plain ? (int)rows.frames : (int)row_frames(rows, row);
}

template <bool Plain> __device__ __forceinline__ int64_t start_of(const gck_rows &rows, int row) {
    return Plain ? row * rows.stride : row_start(rows, row);
}

template <bool Plain> __device__ __forceinline__ written_frames frames_written(const gck_job_direct &a, int row) {
    return Plain ? written_frames{a.target.rows.frames, a.target.rows.frames} : frames_to_write(a.target, row);
}

/* Returns the terms of a tile that are not zero. */
template <bool Plain> __device__ __forceinline__ range terms_of(const gck_job_direct &a, const operands &o) {
    const int factors = frames_of<Plain>(a.factor, o.factor), frames = frames_of<Plain>(a.source, o.source);
    return {max(a.reverse ? a.terms - factors : 0, 1 - R * a.groups - o.frame),
            min(a.reverse ? a.terms : factors, frames - o.frame)};
}

__device__ __forceinline__ int clamped(int value, int limit) {
    return max(0, min(value, limit));
}

/* The part of a tile that a thread computes. */
struct role {
    int group, part;
};

__device__ __forceinline__ role role_of(const gck_job_direct &a) {
    const unsigned groups = a.groups;
    return {(int)(threadIdx.x % groups), (int)(threadIdx.x / groups)};
}

/* Adds the terms `from` .. from + count - 1, at most a chunk, to the sums of this thread. */
template <bool Plain>
__device__ __forceinline__ void add_chunk(float *sum, tile_memory &m, const gck_job_direct &a, const operands &o,
                                          const role &r, int from, int count) {
    const int units = (count + UNIT - 1) / UNIT, window = R * a.groups + units * UNIT, step = a.reverse ? -1 : 1;
    const int frame = o.frame + from, frames = frames_of<Plain>(a.source, o.source), thread = threadIdx.x;
    const int begin = clamped(-frame, window), end = clamped(frames - frame, window);
    const int64_t source = start_of<Plain>(a.source, o.source), factor = start_of<Plain>(a.factor, o.factor);
    const int term = a.reverse ? a.terms - 1 - from - thread : from + thread;
    float s[SOURCE_LOADS], c[FACTOR_LOADS];
    pdl_wait(); /* returns at once from the second time on */
    with_samples<Plain ? FLOATS : UNKNOWN>(a.source, source, frame + thread,
                                           [&](auto x) { fetch<SOURCE_LOADS>(s, x, 1, begin, end); });
    with_samples<Plain ? FLOATS : UNKNOWN>(a.factor, factor, term,
                                           [&](auto x) { fetch<FACTOR_LOADS>(c, x, step, 0, count); });
    put<SOURCE_LOADS>(m.source, s, window, 1.0f);
    put<FACTOR_LOADS>(m.factor, c, units * UNIT, o.scale);
    __syncthreads();
    const int first = r.part * a.each, last = min(first + a.each, units);
    if (first < last)
        add_units(sum, m.source + place(R * r.group) + first * UNIT_PLACES, m.factor + first * UNIT_PLACES,
                  last - first, r.group);
}

/* Adds up the parts and stores the tile from frame `frame` of a target row on. */
template <bool Plain>
__device__ __forceinline__ void store_tile(const float *sum, tile_memory &m, const gck_job_direct &a, const role &r,
                                           int row, int frame, float gain) {
    const int tile = R * a.groups, at_once = 8;
    const written_frames frames = frames_written<Plain>(a, row);
    const int end = clamped((int)frames.end - frame, tile), valued = clamped((int)frames.valued - frame, tile);
    const int64_t start = start_of<Plain>(a.target.rows, row);
    if (r.part < a.parts) {
        float4 *to = (float4 *)(m.sums + r.part * tile + R * r.group);
        to[0] = make_float4(sum[0], sum[1], sum[2], sum[3]);
        to[1] = make_float4(sum[4], sum[5], sum[6], sum[7]);
    }
    __syncthreads();
    for (int n = threadIdx.x; n < end; n += THREADS) {
        float y = 0;
#pragma unroll 1
        for (int p = 0; p < a.parts; p += at_once)
#pragma unroll
            for (int i = p; i < p + at_once; i++)
                y += i < a.parts ? m.sums[i * tile + n] : 0.0f;
        y = n < valued ? gain * y : 0.0f;
        with_samples<Plain ? FLOATS : UNKNOWN>(a.target.rows, start, frame + n, [&](auto to) {
            set_sample(to[0], a.target.accumulate ? sample_of(to[0]) + y : y);
        });
    }
}

/* block.x: tile; block.y: row. */
template <bool Plain>
__global__ void __launch_bounds__(THREADS, 2) direct_convolve(const __grid_constant__ gck_job_direct a) {
    __shared__ __align__(16) tile_memory memory;
    const int row = blockIdx.y, frame = blockIdx.x * R * a.groups;
    float sum[R] = {};
    pdl_trigger();
    if (!Plain) { /* lengths are read */
        pdl_wait();
        if (frame >= frames_written<Plain>(a, row).end)
            return;
    }
    const role r = role_of(a);
    const operands o = {row, a.sharing.responses == 1 ? 0 : response_of(a.sharing, row), frame + a.shift, 1.0f};
    const range terms = terms_of<Plain>(a, o);
    int from = terms.first;
    do {
        if (from > terms.first)
            __syncthreads();
        add_chunk<Plain>(sum, memory, a, o, r, from, clamped(terms.last - from, a.chunk));
        from += a.chunk;
    } while (from < terms.last);
    store_tile<Plain>(sum, memory, a, r, row, frame, a.gain ? a.gain[row] : 1.0f);
}

/* block.x: tile; block.y: response; block.z: a range of the chunks of all its rows. The target has splits x responses
 * rows: with several splits it is the partial sums. */
template <bool Plain>
__global__ void __launch_bounds__(THREADS, 2) direct_gradient(const __grid_constant__ gck_job_direct a) {
    __shared__ __align__(16) tile_memory memory;
    const int response = blockIdx.y;
    const int frame = blockIdx.x * R * a.groups, chunks = (a.terms + a.chunk - 1) / a.chunk;
    const int64_t all = (int64_t)chunks * sharing_rows(a.sharing);
    const int64_t begin = blockIdx.z * all / a.splits, end = (blockIdx.z + 1) * all / a.splits;
    const role r = role_of(a);
    float sum[R] = {};
    bool first = true;
    pdl_trigger();
    pdl_wait();
    for (int64_t i = begin; i < end; i++) {
        const int row = sharing_row(a.sharing, response, (int)(i / chunks));
        if (row >= a.sharing.rows)
            continue;
        const operands o = {row, row, frame + a.shift, a.gain ? a.gain[row] : 1.0f};
        const range terms = terms_of<Plain>(a, o);
        const int at = (int)(i % chunks) * a.chunk;
        const int from = max(terms.first, at), last = min(terms.last, at + a.chunk);
        if (from >= last)
            continue;
        if (!first)
            __syncthreads();
        first = false;
        add_chunk<Plain>(sum, memory, a, o, r, from, last - from);
    }
    store_tile<Plain>(sum, memory, a, r, blockIdx.z * a.sharing.responses + response, frame, 1.0f);
}

} // namespace

cudaError_t gck_job_direct_load(void) {
    cudaError_t err = load_kernel(direct_convolve<true>, 0);
    err = err ? err : load_kernel(direct_convolve<false>, 0);
    err = err ? err : load_kernel(direct_gradient<true>, 0);
    return err ? err : load_kernel(direct_gradient<false>, 0);
}

/* Launches a kernel on a grid of `rows` rows. */
static cudaError_t launch_tiles(void (*kernel)(gck_job_direct), const gck_job_direct &job, int rows, int splits,
                                cudaStream_t stream) {
    return launch_dependent(kernel, dim3(job.tiles, rows, splits), THREADS, 0, stream, job);
}

static bool is_plain(const gck_rows &rows) {
    return rows.sample == GCK_F32 && rows.step == 1 && !rows.starts && !rows.lengths;
}

static bool is_plain(const gck_job_direct &job) {
    return is_plain(job.source) && is_plain(job.factor) && is_plain(job.target.rows);
}

cudaError_t gck_job_direct_convolve(const gck_job_direct *job, cudaStream_t stream) {
    gck_job_direct forwards = *job;
    forwards.shift -= job->reverse ? job->terms - 1 : 0;
    return launch_tiles(is_plain(*job) ? direct_convolve<true> : direct_convolve<false>, forwards, job->sharing.rows, 1,
                        stream);
}

cudaError_t gck_job_direct_gradient(const gck_job_direct *job, cudaStream_t stream) {
    gck_job_direct sums = *job;
    const int64_t frames = job->target.rows.frames;
    if (job->splits > 1)
        sums.target = {{job->partial, frames, frames, 1, NULL, NULL, GCK_F32}, 0};
    const cudaError_t err = launch_tiles(is_plain(sums) ? direct_gradient<true> : direct_gradient<false>, sums,
                                         job->sharing.responses, job->splits, stream);
    if (err || job->splits == 1)
        return err;
    return gck_sum_parts(&job->target, job->partial, job->splits, job->sharing.responses, frames, stream);
}
