/*
 * Direct sums for rows with responses of up to some hundred taps, on device memory, and for filters that change with
 * time. Contract: job.h.
 *
 * A thread computes R = 16 frames in registers, f ... f + 15 of the whole convolution. It takes the signal in units of
 * 8 frames: unit u begins at frame f - 8 u and meets the taps 8 (u - 1) ... 8 (u + 2) - 1, a window of 24. Units at
 * both ends of a response of T taps leave out the pairs without a tap, so that a thread does exactly 16 T
 * multiply-adds.
 *
 * A filter that changes with time has a response for each block of `hop` frames of the signal. All threads of a block
 * are at the same unit, so that the threads of one hop read the same window. A unit that contains frames of several
 * blocks is added once for each, with the other frames set to zero.
 *
 * Shared memory: the tile of the signal and the responses that it meets. In the tile, 4 places follow every 16 frames,
 * so that the threads of a quarter of a warp read different banks.
 *
 * Memory: samples are read and written once, but for the T frames before a tile.
 *
 * What it buys: 2.8 times the speed of transforms (varying.cu) for filters that change every 64 frames. Whole rows
 * gain nothing from it where transforms have enough blocks (1024 x 48 000 x 64: 0.217 ms, by transforms 0.152, H200).
 */
#include "kernels/engine/rows.cuh"

namespace {

enum { R = GCK_SHORT_OUTPUTS, UNIT = 8, THREADS = GCK_SHORT_THREADS, RESIDENT = 7 };

/* Returns where frame i >= 0 of a tile is in shared memory. */
__host__ __device__ constexpr int place(int i) {
    return i + 4 * (int)((unsigned)i / R);
}

/* The layout of a block's shared memory. */
struct layout {
    int span;   /* T: the taps with their padding */
    int stride; /* floats from one response to the next; its multiples lie in different banks */
    int held;   /* responses */
};

__host__ __device__ inline layout layout_of(int taps, int hop, int tile) {
    const int span = hop ? max(2 * UNIT, (taps + UNIT - 1) / UNIT * UNIT)
                         : 2 * UNIT + (max(taps - 2 * UNIT, 0) + 3 * UNIT - 1) / (3 * UNIT) * (3 * UNIT);
    return {span, hop ? span + 4 : span, hop ? (tile + span) / hop + 2 : 1};
}

/* Taps 8 g ... 8 g + 7. */
struct taps_8 {
    float v[UNIT];
};

__device__ __forceinline__ void load_8(float *v, const float *from) {
    const float4 a = *(const float4 *)from, b = *(const float4 *)(from + 4);
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
    v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

/* Adds a unit x to R sums. Frame j of the thread and frame i of the unit are j - i taps apart, counted from the first
 * tap of b; the pairs Low <= j - i < High have a tap, which is in a, b or c. */
template <int Low, int High>
__device__ __forceinline__ void add_unit(float *sum, const float *x, const taps_8 &a, const taps_8 &b,
                                         const taps_8 &c) {
#pragma unroll
    for (int i = 0; i < UNIT; i++)
#pragma unroll
        for (int j = 0; j < R; j++) {
            const int tap = j - i;
            if (tap >= Low && tap < High)
                sum[j] = fmaf(x[i],
                              tap < 0      ? a.v[(tap + UNIT) % UNIT]
                              : tap < UNIT ? b.v[tap % UNIT]
                                           : c.v[tap % UNIT],
                              sum[j]);
        }
}

/* The tile of a thread: its place for frame f, and where the frames of unit u are. */
struct tile_reader {
    const float *own; /* the tile's first frame, for this thread */
    int span;

    __device__ __forceinline__ void load(float *x, int u) const {
        load_8(x, own + place(span - UNIT * u));
    }
};

/* Adds the response of a row. The windows of successive units share two thirds of their taps. */
__device__ __forceinline__ void add_response(float *sum, const tile_reader &tile, const float *h) {
    const int units = tile.span / UNIT;
    taps_8 a, b, c;
    float x[UNIT];
    load_8(c.v, h);
    tile.load(x, -1);
    add_unit<UNIT, R>(sum, x, c, c, c);
    b = c;
    load_8(c.v, h + UNIT);
    tile.load(x, 0);
    add_unit<0, R>(sum, x, c, b, c);
    a = b, b = c;
#pragma unroll 1
    for (int u = 1; u < units - 1; u += 3) {
        load_8(c.v, h + (u + 1) * UNIT);
        tile.load(x, u);
        add_unit<-UNIT, R>(sum, x, a, b, c);
        load_8(a.v, h + (u + 2) * UNIT);
        tile.load(x, u + 1);
        add_unit<-UNIT, R>(sum, x, b, c, a);
        load_8(b.v, h + (u + 3) * UNIT);
        tile.load(x, u + 2);
        add_unit<-UNIT, R>(sum, x, c, a, b);
    }
    tile.load(x, units - 1);
    add_unit<-UNIT, UNIT>(sum, x, a, b, b);
    tile.load(x, units);
    add_unit<-UNIT, 0>(sum, x, b, b, b);
}

/* Walks through the responses of a thread's units, from late frames to early ones. */
struct block_walk {
    const float *h; /* the response of the block of the unit's last frame */
    int left;       /* frames of that block up to the unit's last frame */
    int hop, stride;

    __device__ __forceinline__ void advance(int frames) {
        left -= frames;
        while (left <= 0) {
            left += hop;
            h -= stride;
        }
    }
};

/* Adds unit u of a filter that changes with time. Whole: the hop is a multiple of UNIT, so that a unit lies in a
 * block. */
template <bool Whole, int Low, int High>
__device__ __forceinline__ void add_varying(float *sum, const tile_reader &tile, int u, block_walk &walk) {
    float x[UNIT];
    tile.load(x, u);
    int end = UNIT; /* of the frames that are not yet added */
    block_walk w = walk;
    do {
        const float *from = w.h + UNIT * u;
        taps_8 a, b, c;
        if (Low < 0)
            load_8(a.v, from - UNIT);
        if (Low < UNIT && High > 0)
            load_8(b.v, from);
        if (High > UNIT)
            load_8(c.v, from + UNIT);
        float part[UNIT];
        const int begin = Whole ? 0 : max(0, end - w.left);
#pragma unroll
        for (int i = 0; i < UNIT; i++)
            part[i] = Whole || (i >= begin && i < end) ? x[i] : 0.0f;
        add_unit<Low, High>(sum, part, a, b, c);
        if (!Whole)
            w.advance(end - begin);
        end = begin;
    } while (!Whole && end > 0);
    walk.advance(UNIT);
}

template <bool Whole> __device__ __forceinline__ void add_blocks(float *sum, const tile_reader &tile, block_walk walk) {
    const int units = tile.span / UNIT;
    add_varying<Whole, UNIT, R>(sum, tile, -1, walk);
    add_varying<Whole, 0, R>(sum, tile, 0, walk);
#pragma unroll 1
    for (int u = 1; u < units - 1; u++)
        add_varying<Whole, -UNIT, R>(sum, tile, u, walk);
    add_varying<Whole, -UNIT, UNIT>(sum, tile, units - 1, walk);
    add_varying<Whole, -UNIT, 0>(sum, tile, units, walk);
}

/* Four samples that are read or written at once. */
template <typename Sample> struct alignas(4 * sizeof(Sample)) samples_4 { Sample v[4]; };

/* Returns whether four samples may be accessed at once. */
template <typename Sample> __device__ __forceinline__ bool is_aligned(const Sample *x) {
    return (uintptr_t)x % sizeof(samples_4<Sample>) == 0;
}

template <typename Sample> __device__ __forceinline__ float4 load_4(const Sample *x) {
    const samples_4<Sample> a = *(const samples_4<Sample> *)x;
    return make_float4(sample_of(a.v[0]), sample_of(a.v[1]), sample_of(a.v[2]), sample_of(a.v[3]));
}

template <typename Sample> __device__ __forceinline__ void store_4(Sample *y, float4 x) {
    samples_4<Sample> a;
    set_sample(a.v[0], x.x), set_sample(a.v[1], x.y), set_sample(a.v[2], x.z), set_sample(a.v[3], x.w);
    *(samples_4<Sample> *)y = a;
}

/* A response; if it does not exist, all of its taps are 0. */
struct short_response {
    int64_t row;
    int taps;
    bool exists;
};

/* Loads `span` taps of a response; those behind its end are 0. */
__device__ __forceinline__ void load_taps(float *to, const gck_rows &rows, const short_response &from, int span,
                                          int first, int step) {
    const int frames = from.exists ? within(row_frames(rows, from.row), from.taps) : 0;
    with_samples<ADJACENT>(rows, from.exists ? row_start(rows, from.row) : 0, 0, [=](auto h) {
        if (frames == span && is_aligned(h)) {
            for (int k = 4 * first; k < span; k += 4 * step)
                *(float4 *)(to + k) = load_4(h + k);
            return;
        }
#pragma unroll 4
        for (int k = first; k < span; k += step)
            to[k] = k < frames ? sample_of(h[k]) : 0.0f;
    });
}

/* block.x: tile of a row; tiles follow one another, then rows. Tile 0 begins at a frame of the whole convolution that
 * is a multiple of UNIT, at most a.offset. Varying: 0: a response for each row, 1: for each block, 2: for each block of
 * a multiple of UNIT frames. */
template <int Varying>
__global__ void __launch_bounds__(THREADS, RESIDENT)
    short_convolve(const __grid_constant__ gck_short_job a, int tiles) {
    extern __shared__ __align__(16) float source[];
    const int t = threadIdx.x, threads = blockDim.x, row = blockIdx.x / tiles, tile = threads * R;
    const int hop = a.blocks.hop;
    const layout l = layout_of(a.taps, Varying ? hop : 0, tile);
    const int64_t begin =
        a.offset - (a.offset & (UNIT - 1)) + (int64_t)(blockIdx.x % tiles) * tile; /* frame f of t = 0 */
    const int64_t first = begin - l.span; /* the first frame of the signal in the tile */
    float *h = source + place(tile + l.span);
    const int response = response_of(a.sharing, row);
    int64_t block = 0; /* of the first frame */
    int within_block = 0;
    if (Varying) {
        block = (first >= 0 ? first : first - hop + 1) / hop;
        within_block = (int)(first - block * hop);
    }
    pdl_trigger();
    pdl_wait();
    with_samples<ADJACENT>(a.source, row_start(a.source, row), first, [&](auto x) {
        const int64_t frames = row_frames(a.source, row);
        const int low = within(-first, tile + l.span), count = within(frames - first, tile + l.span) - low;
        if (low == 0 && count == tile + l.span && is_aligned(x) && !(Varying && a.blocks.ramp)) {
#pragma unroll 4
            for (int i = 4 * t; i < tile + l.span; i += 4 * threads)
                *(float4 *)(source + place(i)) = load_4(x + i);
            return;
        }
        if (low == 0 && count == tile + l.span && !(Varying && a.blocks.ramp)) {
#pragma unroll 4
            for (int i = t; i < tile + l.span; i += threads)
                source[place(i)] = sample_of(x[i]);
            return;
        }
#pragma unroll 4
        for (int i = t; i < tile + l.span; i += threads) {
            float value = (unsigned)(i - low) < (unsigned)count ? sample_of(x[i]) : 0.0f;
            if (Varying && a.blocks.ramp)
                value *= ramp_weight(a.blocks, block + (within_block + i) / hop, (within_block + i) % hop);
            source[place(i)] = value;
        }
    });
    if (Varying) {
        const int rise = a.blocks.ramp == GCK_RISE;
        for (int r = t / 32; r < l.held; r += threads / 32) {
            const int64_t b = block + r + rise;
            const short_response from = {(int64_t)response * a.blocks.count + b, a.taps, b >= 0 && b < a.blocks.count};
            load_taps(h + r * l.stride, a.response, from, l.span, t % 32, 32);
        }
    } else {
        load_taps(h, a.response, {response, a.taps, true}, l.span, t, threads);
    }
    __syncthreads();
    float sum[R] = {};
    const tile_reader reader = {source + place(R * t), l.span};
    if (Varying) {
        const int last = within_block + l.span + R * t + 2 * UNIT - 1; /* the last frame of unit -1 */
        const block_walk walk = {h + last / hop * l.stride, last % hop + 1, hop, l.stride};
        add_blocks<Varying == 2>(sum, reader, walk);
    } else {
        add_response(sum, reader, h);
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < R; j += 4)
        *(float4 *)(source + place(R * t) + j) = make_float4(sum[j], sum[j + 1], sum[j + 2], sum[j + 3]);
    __syncthreads();
    const float gain = a.gain ? a.gain[row] : 1.0f;
    const written_frames frames = frames_to_write(a.target, row);
    const int64_t frame = begin - a.offset;
    const int low = within(-frame, tile), end = within(frames.end - frame, tile),
              valued = within(frames.valued - frame, tile);
    with_samples<ADJACENT>(a.target.rows, row_start(a.target.rows, row), frame, [&](auto y) {
        if (low == 0 && valued == tile && !a.target.accumulate) {
            const bool aligned = is_aligned(y);
            const int every = place(threads); /* threads is a multiple of R */
#pragma unroll
            for (int j = 0; j < R / 4 && aligned; j++) {
                const int i = 4 * (t + j * threads);
                const float4 value = *(const float4 *)(source + place(i));
                store_4(y + i, make_float4(gain * value.x, gain * value.y, gain * value.z, gain * value.w));
            }
#pragma unroll
            for (int j = 0; j < R && !aligned; j++)
                set_sample(y[t + j * threads], gain * source[place(t) + j * every]);
            return;
        }
#pragma unroll 4
        for (int i = t; i < tile; i += threads)
            if (i >= low && i < end) {
                const float value = i < valued ? gain * source[place(i)] : 0.0f;
                set_sample(y[i], a.target.accumulate ? sample_of(y[i]) + value : value);
            }
    });
}

typedef void (*kernel)(gck_short_job, int);

const kernel kernels[] = {short_convolve<0>, short_convolve<1>, short_convolve<2>};

} // namespace

int gck_short_shared(int taps, int hop, int threads) {
    const int tile = threads * R;
    const layout l = layout_of(taps, hop, tile);
    const int64_t floats = place(tile + l.span) + (int64_t)l.held * l.stride;
    return (int)min(floats * (int64_t)sizeof(float), (int64_t)INT_MAX);
}

int gck_short_span(int taps, int hop) {
    return layout_of(taps, hop, R).span;
}

cudaError_t gck_short_load(int shared_bytes_max) {
    cudaError_t err = cudaSuccess;
    for (const kernel k : kernels)
        err = err ? err : load_kernel(k, shared_bytes_max);
    return err;
}

cudaError_t gck_short_convolve(const gck_short_job *job, cudaStream_t stream) {
    const int hop = job->blocks.hop, varying = !hop ? 0 : hop % UNIT ? 1 : 2;
    const int tile = job->threads * R;
    const int64_t tiles = (job->target.rows.frames + (job->offset & (UNIT - 1)) + tile - 1) / tile;
    return launch_dependent(kernels[varying], dim3((unsigned)(tiles * job->sharing.rows)), job->threads,
                            gck_short_shared(job->taps, hop, job->threads), stream, *job, (int)tiles);
}
