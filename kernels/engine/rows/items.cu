/*
 * Rows of different lengths, each with a signal, a response and an output of its own: the rows of a corpus.
 * Overlap-save with the whole transform of a segment on the chip, N = 4096 or 16384 complex points (fft_grouped.cuh);
 * the spectrum of the response is computed where it is used. Contracts: job.h.
 *
 * The blocks are persistent; each claims the next item. The transform of the response is the first turn of the loop
 * over the segments: a second copy of the transform would double the instructions that a block fetches. Four blocks of
 * the short transform share a multiprocessor, so that one computes while another waits for its samples. Its tables make
 * each transform faster than those of rows/chip.cu are (docs/experiments/batches.md).
 *
 * The exchanges of the long transform have two forms, which give the same samples: with 136 KB of shared memory, and in
 * the 64 KB that every device since Turing has (dense_exchange.cuh).
 *
 * Memory: samples are read once and written once for each part of a response; its spectrum stays in the second-level
 * cache.
 *
 * What it buys: with the transforms of rows/chip.cu in its place 1024 rows take 6 to 18 % longer (1.02 instead of
 * 0.873 ms, 0.411 instead of 0.389, 0.100 instead of 0.085, H200).
 */
#include "kernels/engine/dense_exchange.cuh"
#include "kernels/engine/twiddles.h"
#include "segments.cuh"

#include <type_traits>

namespace {

/* A transform whose inverse removes the twist. */
template <typename Base> struct untwisted : Base {
    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        Base::inverse(v, s, t, table);
        untwist<Base::P>(v, untwist_angle<Base::N>(t));
    }
};

typedef grouped_fft<4, 4> short_tables;
typedef grouped_fft<4> long_tables;
typedef untwisted<short_tables> short_fft;
typedef untwisted<long_tables> long_fft;
typedef untwisted<split_fft> narrow_fft;

/* Returns floats as the only row of an array. */
__device__ __forceinline__ gck_rows row_of_floats(const float *data, int64_t frames) {
    return {(void *)data, frames, 0, 1, NULL, NULL, GCK_F32};
}

/* Returns the same number; for the transform in 64 KB hides it from the compiler, which would keep what follows from it
 * over all segments and spill other values. */
template <typename F> __device__ __forceinline__ int number_in_segment(int number) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 1200
    if (std::is_same_v<F, narrow_fft>)
        asm volatile("" : "+r"(number));
#endif
    return number;
}

/* How an item is read: the short transform has the registers to hold a copy, and is 4 % faster with it; the long one
 * reads the item where it is used. */
template <typename F> struct held_item {
    typedef std::conditional_t<std::is_same_v<F, short_fft>, const gck_item, const gck_item &> type;
};

/* Parts: responses may have several parts. A kernel that can do no more is faster. */
template <typename F, int Resident, bool Parts>
__global__ void __launch_bounds__(F::T, Resident) convolve_items(const __grid_constant__ gck_items a) {
    extern __shared__ __align__(128) float2 shared[];
    int *claimed = (int *)shared; /* 64 KB are all that a block can have: no room for one more int */
    float2 v[F::P];
    for (;;) {
        if (threadIdx.x == 0)
            *claimed = atomicAdd(a.next, 1);
        __syncthreads();
        const int at = *claimed;
        if (at >= a.count)
            return;
        const typename held_item<F>::type item = a.items[at];
        const gck_target target = {row_of_floats(item.output, item.end), 0};
        /* The result of the part from tap `offset` on is delayed by `offset` frames. */
        for (int offset = 0; offset < (Parts ? item.taps : 1); offset += item.part) {
            const int hop = 2 * F::N - item.overlap;
#pragma unroll 1
            for (int n = item.first - hop; n < item.end; n += hop) {
                const bool response = n < item.first;
                const int t = number_in_segment<F>(threadIdx.x);
                float2 *h = a.scratch + (int64_t)number_in_segment<F>(blockIdx.x) * F::N + 2 * t;
                const gck_rows x = response ? row_of_floats(item.response + offset, item.taps - offset)
                                            : row_of_floats(item.signal, item.frames);
                if (!load_segment<F::P, F::T, FLOATS>(v, x, 0, response ? 0 : n - item.overlap - offset,
                                                      Parts && response ? item.part : 2 * F::N, t))
                    clear<F::P>(v);
                if (response)
                    scale<F::P>(v, 1.0f / F::N);
                __syncthreads();
                F::forward(v, shared, t, a.twiddles);
                if (response) {
                    keep<F::P, F::T>(v, h);
                    continue;
                }
                multiply<F::P, F::T>(v, h, 1.0f);
                F::inverse(v, shared, t, a.twiddles);
                if (!Parts || offset == 0)
                    store_plain_segment<F::P, F::T>(v, target, 0, n, item.overlap, hop, t);
                else
                    store_plain_segment<F::P, F::T, FLOATS, true>(v, target, 0, n, item.overlap, hop, t);
            }
        }
        __syncthreads();
    }
}

template <typename F, int Resident, bool Parts> cudaError_t launch(const gck_items &items, cudaStream_t stream) {
    const int bytes = F::shared * (int)sizeof(float2);
    unsigned blocks = 0;
    cudaError_t err = allow_shared(convolve_items<F, Resident, Parts>, bytes);
    if (!err)
        err = persistent_grid(Resident, items.count, &blocks);
    if (!err)
        convolve_items<F, Resident, Parts><<<blocks, F::T, bytes, stream>>>(items);
    return err ? err : cudaGetLastError();
}

template <typename F> void write_tables(float2 *to) {
    const int held = F::P == 32 ? 5 : 4, levels = 4;
    write_forward_twiddles(to + F::FORWARD_A, held, held, 0.25);
    write_forward_twiddles(to + F::FORWARD_B, 2 * held, levels, 0.25);
    write_inverse_twiddles(to + F::INVERSE_A, held, F::GROUP);
    write_inverse_twiddles(to + F::INVERSE_B, held, F::T);
}

} // namespace

gck_item_sizes gck_item_query(int size) {
    return size == 0 ? gck_item_sizes{short_fft::N, short_fft::twiddles, 3}
                     : gck_item_sizes{long_fft::N, long_fft::twiddles, 1};
}

void gck_item_twiddles(int size, float2 *twiddles) {
    if (size == 0)
        write_tables<short_tables>(twiddles);
    else
        write_tables<long_tables>(twiddles);
}

cudaError_t gck_convolve_items(int size, const gck_items *items, cudaStream_t stream) {
    int number = 0;
    gck_device device;
    if (size == 0)
        return launch<short_fft, 3, false>(*items, stream);
    cudaError_t err = cudaGetDevice(&number);
    err = err ? err : gck_device_query(number, &device);
    if (err)
        return err;
    if (device.shared_bytes < long_fft::shared * (int)sizeof(float2))
        return launch<narrow_fft, 1, true>(*items, stream);
    return size == 1 ? launch<long_fft, 1, false>(*items, stream) : launch<long_fft, 1, true>(*items, stream);
}
