/*
 * Overlap-save in one kernel, for transforms that take the shared memory of a whole block of threads: 2^13 to 2^15 real
 * points, as N = 4096, 8192 or 16384 complex points (right_angle.cuh, fft_twisted.cuh). Each output has one route.
 *
 * A block loads, transforms, multiplies by the response's spectrum, transforms back and stores. Each input sample is
 * read 2 N / hop times (mostly from the cache), each output is written once, and the spectrum of the response comes
 * from the second-level cache, in the order in which the threads hold it (rows/chip.cu computes it). Prefetches as in
 * overlap_save.cu: a block of the first wave fetches its own input while the previous kernel in the stream ends, and
 * every block that of the block which takes its place.
 *
 * Shared memory: 42, 76 or 139 KB. A device whose blocks have less uses three kernels (overlap_save_3pass.cu). The
 * contracts of the launchers are those of gck_overlap_save and its companions in kernels.h.
 *
 * What it buys over three kernels: 1.54 times the speed with 4096 taps, 1.26 with 8192, 1.06 with 16 384 (2^23
 * samples, H200; docs/experiments/overlap-save.md).
 */
#include "kernels/engine/overlap_save.cuh"

#include "kernels/device/fft_twisted.cuh"

namespace {

/* Resident blocks per multiprocessor to compile for: 128 registers for each thread. */
template <int LEVELS> struct config {
    typedef twisted_fft<LEVELS> transform;
    static const int resident = 512 / transform::T, bytes = transform::shared * (int)sizeof(float2);
};

/* block.x: block of the signal; block.y: output. ahead: how many blocks ahead to prefetch. */
template <int LEVELS>
__global__ void __launch_bounds__(config<LEVELS>::transform::T, config<LEVELS>::resident)
    overlap_save_chip(const __grid_constant__ gck_routes a, int hop, int ahead, const float2 *__restrict__ twiddles,
                      const float2 *__restrict__ spectra) {
    typedef typename config<LEVELS>::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int t = threadIdx.x, overlap = 2 * f::N - hop, bytes = 2 * f::N * (int)sizeof(float);
    const gck_route route = single_route(a, blockIdx.y);
    const int64_t first = (int64_t)blockIdx.x * hop - overlap;
    const float *x = a.in + route.input * a.in_stride + first;
    pdl_trigger();
    /* A prefetch is safe before pdl_wait: later writes of the previous kernel to these lines update the same cache. */
    prefetch_l2(x, bytes, t == 0 && blockIdx.x < ahead);
    pdl_wait();
    float2 v[f::P];
    load_fresh_right_angle<f::P, f::T>(v, x, t);
    f::forward(v, shared, t, twiddles);
    asm volatile("" ::: "memory"); /* keeps the prefetch behind the loads of this block's samples */
    prefetch_l2(x + (int64_t)ahead * hop, bytes, t == 0 && blockIdx.x + ahead < gridDim.x);
    const float2 *h = opaque_pointer(spectra) + (int64_t)route.plane * f::N + 2 * t;
    multiply_spectrum<f::P, f::T>(v, v, h);
    __syncthreads();
    f::inverse(v, shared, t, twiddles);
    untwist_rows<f::P>(v);
    store_right_angle<f::P, f::T>(v, a.out + blockIdx.y * a.out_stride + first, overlap, t);
}

/* The launchers of one size. */
template <int LEVELS> struct launchers {
    typedef typename config<LEVELS>::transform f;
    static const int bytes = config<LEVELS>::bytes;

    static const int size = LEVELS + 3; /* in rows/chip.cu, whose tables and spectra these are */

    static gck_overlap_save_sizes sizes() {
        return gck_overlap_save_sizes{f::twiddles, f::N, bytes, 0};
    }

    static void write_twiddles(float2 *to) {
        gck_chip_twiddles(size, to);
    }

    static cudaError_t spectra(const gck_responses &responses, const gck_overlap_save_memory &memory,
                               cudaStream_t stream) {
        const int64_t taps = responses.taps_count;
        const gck_rows rows = {(void *)responses.taps, taps, taps, 1, NULL, NULL, GCK_F32};
        return gck_chip_spectra(size, &rows, responses.planes, taps, memory.twiddles, memory.spectra, stream);
    }

    static cudaError_t convolve(const gck_routes *routes, int64_t hop, int64_t blocks,
                                const gck_overlap_save_memory &memory, cudaStream_t stream) {
        if (!routes->single)
            return cudaErrorInvalidValue;
        int multiprocessors = 0;
        static once_per_device once;
        cudaError_t err = once([](int device) {
            cudaError_t refused = allow_shared(overlap_save_chip<LEVELS>, bytes);
            return refused ? refused : set_carveout(device, overlap_save_chip<LEVELS>, config<LEVELS>::resident, bytes);
        });
        if (!err)
            err = count_multiprocessors(&multiprocessors);
        if (err)
            return err;
        const int ahead = config<LEVELS>::resident * multiprocessors * 9 / 10;
        return launch_dependent(overlap_save_chip<LEVELS>, dim3((unsigned)blocks, routes->outputs), f::T, bytes, stream,
                                *routes, (int)hop, ahead, memory.twiddles, memory.spectra);
    }

    static constexpr overlap_save_row row() {
        return overlap_save_row{2 * f::N, sizes, write_twiddles, spectra, convolve};
    }
};

const overlap_save_row rows[] = {launchers<2>::row(), launchers<3>::row(), launchers<4>::row()};

} // namespace

const overlap_save_row *gck_overlap_save_chip_find(int64_t points) {
    for (const overlap_save_row &r : rows)
        if (r.points == points)
            return &r;
    return NULL;
}
