/*
 * Sequences that follow one another in each channel, sorted into classes of similar lengths (gpuconv_sequences_sort):
 * the rows of each class come first in its part of the table, in the order of the sequences. Contract: job.h.
 *
 * block.x: class; block.y: one of SHARES parts of the channels. Each block looks at all offsets, which are few beside
 * the rows, so that no block waits for another.
 */
#include "kernels/engine/rows.cuh"

namespace {

enum { THREADS = 256, WARPS = THREADS / 32, SHARES = 16 };

/* A sequence in a channel. */
struct sequence {
    int64_t start;  /* its first frame */
    int64_t frames; /* at most the last bound */
    int64_t cut;    /* frames behind these, which no class has */
};

/* Returns the inclusive scan of x over the threads of the block; *total: the result of all of them. */
template <typename F> __device__ __forceinline__ int64_t scan_block(int64_t x, F combine, int64_t *total) {
    __shared__ int64_t last[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int distance = 1; distance < 32; distance *= 2) {
        const int64_t other = __shfl_up_sync(~0u, x, distance);
        x = lane >= distance ? combine(other, x) : x;
    }
    if (lane == 31)
        last[warp] = x;
    __syncthreads();
    *total = last[0];
    for (int w = 1; w < WARPS; w++) {
        x = w == warp ? combine(*total, x) : x;
        *total = combine(*total, last[w]);
    }
    __syncthreads(); /* the next scan writes `last` */
    return x;
}

/* Returns offset i, moved into the frames of a channel; 0 and `frames` at the ends. */
__device__ __forceinline__ int64_t offset_at(const gck_sequences &a, int64_t i) {
    return i <= 0 ? 0 : i >= a.sequences ? a.frames : max((int64_t)0, min(a.offsets[i], a.frames));
}

/* Returns sequence i of a block's THREADS; *reached: the largest offset before them, and then after them. */
__device__ __forceinline__ sequence sequence_at(const gck_sequences &a, int64_t i, int64_t *reached) {
    const auto larger = [](int64_t x, int64_t y) { return max(x, y); };
    const int64_t start = scan_block(max(*reached, offset_at(a, i)), larger, reached);
    const int64_t frames = i < a.sequences ? max(start, offset_at(a, i + 1)) - start : 0;
    const int64_t most = a.bounds[a.classes - 1];
    return {start, min(frames, most), max(frames - most, (int64_t)0)};
}

/* Writes the rows of a sequence for the channels first .. end - 1. */
__device__ __forceinline__ void write_rows(const gck_sequences &a, int64_t *table, int64_t number, int64_t place,
                                           const sequence &s, int first, int end) {
    const int64_t rows = (int64_t)a.sequences * a.channels;
    for (int c = first; c < end; c++) {
        table[place * a.channels + c] = s.start + c * a.frames;
        table[rows + place * a.channels + c] = s.frames;
        if (c < a.own) {
            int64_t *response = table + 2 * rows + place * a.own + c;
            response[0] = (number * a.own + c) * a.taps;
            response[(int64_t)a.sequences * a.own] = a.taps;
        }
    }
}

/* Sets the frames of a sequence that no class has to zero. */
__device__ __forceinline__ void clear_cut(const gck_sequences &a, const sequence &s, int first, int end) {
    for (int c = first; c < end; c++)
        for (int64_t n = 0; n < s.cut; n++)
            with_samples(a.cleared, row_start(a.cleared, c), s.start + s.frames + n,
                         [](auto y) { set_sample(y[0], 0.0f); });
}

__global__ void __launch_bounds__(THREADS) sort_sequences(const __grid_constant__ gck_sequences a) {
    const int64_t rows = (int64_t)a.sequences * a.channels, responses = (int64_t)a.sequences * a.own;
    int64_t *table = a.table + blockIdx.x * 2 * (rows + responses);
    const int first = (int)((int64_t)blockIdx.y * a.channels / SHARES),
              end = (int)((blockIdx.y + 1ll) * a.channels / SHARES);
    const int64_t shortest = blockIdx.x ? a.bounds[blockIdx.x - 1] : 0, longest = a.bounds[blockIdx.x];
    int64_t reached = 0, count = 0;
    pdl_trigger();
    pdl_wait();
    for (int64_t i = threadIdx.x; i - threadIdx.x < a.sequences; i += THREADS) {
        const sequence s = sequence_at(a, i, &reached);
        const int64_t member = i < a.sequences && s.frames > shortest && s.frames <= longest;
        int64_t members;
        const int64_t place = scan_block(
                                  member, [](int64_t x, int64_t y) { return x + y; }, &members) -
                              1;
        if (member)
            write_rows(a, table, i, count + place, s, first, end);
        if (blockIdx.x == 0 && s.cut && a.cleared.data)
            clear_cut(a, s, first, end);
        count += members;
    }
    for (int64_t i = (int64_t)blockIdx.y * THREADS + threadIdx.x; i < rows; i += SHARES * THREADS) {
        if (i >= count * a.channels) {
            table[i] = 0;
            table[rows + i] = -1;
        }
        if (i >= count * a.own && i < responses) {
            table[2 * rows + i] = 0;
            table[2 * rows + responses + i] = -1;
        }
    }
}

} // namespace

cudaError_t gck_sequences_load(void) {
    return load_kernel(sort_sequences, 0);
}

cudaError_t gck_sort_sequences(const gck_sequences *sequences, cudaStream_t stream) {
    return launch_dependent(sort_sequences, dim3((unsigned)sequences->classes, SHARES), THREADS, 0, stream, *sequences);
}
