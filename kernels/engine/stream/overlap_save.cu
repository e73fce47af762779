/*
 * Overlap-save in one kernel: load, transform, multiply, transform back, store.
 *
 *      y[n] = sum over k of h[k] x[n - k]
 *
 * A block of 2 N samples is transformed as N complex points (right_angle.cuh, fft_fma.cuh); the spectrum stays in the
 * bit-reversed order of the transform.
 *
 *      in    |--- overlap --|----------- hop -----------|
 *            |<------------- 2 N samples -------------->|
 *
 * Memory: the threads of a block read adjacent samples; each input sample is read 2 N / hop times (mostly from the
 * cache) and each output is written once. While a block computes, it prefetches into the second-level cache the input
 * of the block that takes its place in the next wave; the blocks of the first wave prefetch their own input while the
 * previous kernel in the stream ends.
 *
 * A warp computes a transform of 1024 complex points, a block of threads one of 2048 to 16384 points, with the tables
 * and spectra of rows (rows/chip.cu). Up to 2048 points an output may have several routes. The larger ones take 42, 76
 * and 139 KB of shared memory; a device whose blocks have less uses three kernels (overlap_save_3pass.cu).
 *
 * The contracts of gck_overlap_save and its companions are in kernels.h; they choose the kernel.
 *
 * What it buys: 2^23 samples with 512 taps take 0.0276 ms on an H100, 5.6 times less than direct.cu. Over three kernels
 * 1.54 times the speed with 4096 taps, 1.26 with 8192, 1.06 with 16 384 (H200; docs/experiments/overlap-save.md).
 */
#include "kernels/engine/overlap_save.cuh"

#include "kernels/device/fft_twisted.cuh"

namespace {

/* The transform of 1024 << LEVELS complex points. */
template <int LEVELS> struct transform_of { typedef twisted_fft<LEVELS> type; };
template <> struct transform_of<0> { typedef full_fft<5, 5> type; };

/* Its resident blocks per multiprocessor to compile for, with one route per output and with several; blocks of threads
 * have 128 registers a thread. size: in rows/chip.cu. */
template <int LEVELS> struct config {
    typedef typename transform_of<LEVELS>::type transform;
    static const int resident = LEVELS == 0 ? 16 : 512 / transform::T, size = LEVELS + 3,
                     bytes = transform::shared * (int)sizeof(float2);
    static const bool has_sums = LEVELS < 2;
};

/* Transforms back and stores the samples behind the overlap. */
template <int LEVELS>
__device__ __forceinline__ void finish(float2 *v, float2 *shared, float *y, int overlap,
                                       const float2 *__restrict__ twiddles, int t) {
    typedef typename config<LEVELS>::transform f;
    transform_barrier<f::T>();
    f::inverse(v, shared, t, twiddles);
    if constexpr (LEVELS > 0) {
        untwist_rows<f::P>(v);
    } else {
        const float2 base = opaque_pointer(twiddles)[f::twiddles - f::T + t];
        if (overlap >= f::N / 2) { /* twice the code, half the comparisons: the assumption removes the rest */
            untwist<f::P, true>(v, base);
            __builtin_assume(overlap - t > f::N / 2 - f::T);
            store_right_angle<f::P, f::T>(v, y, overlap, t);
            return;
        }
        untwist<f::P>(v, base);
    }
    store_right_angle<f::P, f::T>(v, y, overlap, t);
}

/* One route per output; block.x: block of the signal; block.y: output. ahead: how many blocks ahead to prefetch. */
template <int LEVELS>
__global__ void __launch_bounds__(config<LEVELS>::transform::T, config<LEVELS>::resident)
    overlap_save(const __grid_constant__ gck_routes a, int hop, int ahead, const float2 *__restrict__ twiddles,
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
    multiply_spectrum<f::P, f::T>(v, v, opaque_pointer(spectra) + (int64_t)route.plane * f::N + 2 * t);
    finish<LEVELS>(v, shared, a.out + blockIdx.y * a.out_stride + first, overlap, twiddles, t);
}

/* Outputs with several routes; block.x: block of the signal, block.y: output. */
template <int LEVELS>
__global__ void __launch_bounds__(config<LEVELS>::transform::T, config<LEVELS>::resident / 2)
    overlap_save_sums(gck_routes a, int hop, const float2 *__restrict__ twiddles, const float2 *__restrict__ spectra) {
    typedef typename config<LEVELS>::transform f;
    extern __shared__ __align__(16) float2 shared[];
    int t = threadIdx.x, overlap = 2 * f::N - hop;
    int64_t first = (int64_t)blockIdx.x * hop - overlap;
    float2 v[f::P], sum[f::P];
#pragma unroll
    for (int j = 0; j < f::P; j++)
        sum[j] = make_float2(0.0f, 0.0f);
#pragma unroll 1
    for (int e = a.row[blockIdx.y]; e < a.row[blockIdx.y + 1]; e++) {
        gck_route route = a.route[e];
        asm volatile("" : "+r"(t)); /* recompute the values that depend on t: no register is free for them */
        load_fresh_right_angle<f::P, f::T>(v, a.in + route.input * a.in_stride + first, t);
        transform_barrier<f::T>();
        f::forward(v, shared, t, twiddles);
        const float2 *h = opaque_pointer(spectra) + (int64_t)route.plane * f::N + 2 * t;
#pragma unroll
        for (int j = 0; j < f::P; j += 2) {
            const float4 w = __ldg((const float4 *)(h + j * f::T));
            sum[j] = mul_add(v[j], make_float2(w.x, w.y), sum[j]);
            sum[j + 1] = mul_add(v[j + 1], make_float2(w.z, w.w), sum[j + 1]);
        }
    }
    finish<LEVELS>(sum, shared, a.out + blockIdx.y * a.out_stride + first, overlap, twiddles, t);
}

/* The launchers of one transform. */
template <int LEVELS> struct launchers {
    typedef typename config<LEVELS>::transform f;
    static const int bytes = config<LEVELS>::bytes;

    static gck_overlap_save_sizes sizes() {
        return gck_overlap_save_sizes{f::twiddles, f::N, bytes, 0};
    }

    static void write_twiddles(float2 *to) {
        if constexpr (LEVELS == 0)
            f::write_twiddles(to); /* those of rows, and the angles that untwist */
        else
            gck_chip_twiddles(config<LEVELS>::size, to);
    }

    static cudaError_t spectra(const gck_responses &responses, const gck_overlap_save_memory &memory,
                               cudaStream_t stream) {
        const int64_t taps = responses.taps_count;
        const gck_rows rows = {(void *)responses.taps, taps, taps, 1, NULL, NULL, GCK_F32};
        return gck_chip_spectra(config<LEVELS>::size, &rows, responses.planes, taps, memory.twiddles, memory.spectra,
                                stream);
    }

    static cudaError_t launch(const gck_routes *routes, int64_t hop, int64_t blocks,
                              const gck_overlap_save_memory &memory, cudaStream_t stream) {
        int multiprocessors = 0;
        static once_per_device once;
        cudaError_t err = once([](int device) {
            cudaError_t refused = allow_shared(overlap_save<LEVELS>, bytes);
            return refused ? refused : set_carveout(device, overlap_save<LEVELS>, config<LEVELS>::resident, bytes);
        });
        if (!err)
            err = count_multiprocessors(&multiprocessors);
        if (err)
            return err;
        const int ahead = config<LEVELS>::resident * multiprocessors * 9 / 10; /* measured */
        return launch_dependent(overlap_save<LEVELS>, dim3((unsigned)blocks, routes->outputs), f::T, bytes, stream,
                                *routes, (int)hop, ahead, memory.twiddles, memory.spectra);
    }

    static cudaError_t convolve(const gck_routes *routes, int64_t hop, int64_t blocks,
                                const gck_overlap_save_memory &memory, cudaStream_t stream) {
        if (LEVELS == 0 && gck_overlap_save_fans(routes))
            return gck_overlap_save_fan(routes, hop, blocks, memory, stream);
        if (routes->single)
            return launch(routes, hop, blocks, memory, stream);
        if constexpr (config<LEVELS>::has_sums) {
            overlap_save_sums<LEVELS><<<dim3((unsigned)blocks, routes->outputs), f::T, bytes, stream>>>(
                *routes, (int)hop, memory.twiddles, memory.spectra);
            return cudaGetLastError();
        }
        return cudaErrorInvalidValue;
    }

    static constexpr overlap_save_row row() {
        return overlap_save_row{2 * f::N, sizes, write_twiddles, spectra, convolve, config<LEVELS>::has_sums};
    }
};

const overlap_save_row rows[] = {launchers<0>::row(), launchers<1>::row(), launchers<2>::row(), launchers<3>::row(),
                                 launchers<4>::row()};

/* Returns the row of a form, in one kernel rather than in three; NULL if there is none. */
const overlap_save_row *find_row(const gck_overlap_save_form &form) {
    for (const overlap_save_row &r : rows)
        if (r.points == form.points && (form.single || r.has_sums) && r.sizes().shared_bytes <= form.shared_bytes)
            return &r;
    return gck_overlap_save_3pass_find(form.points);
}

} // namespace

gck_overlap_save_sizes gck_overlap_save_query(const gck_overlap_save_form *form) {
    const overlap_save_row *r = find_row(*form);
    return r ? r->sizes() : gck_overlap_save_sizes{0, 0, 0, 0};
}

void gck_overlap_save_twiddles(const gck_overlap_save_form *form, float2 *twiddles) {
    const overlap_save_row *r = find_row(*form);
    if (r)
        r->write_twiddles(twiddles);
}

cudaError_t gck_launches_early(int *early) {
    bool is_early;
    cudaError_t err = launches_early((const void *)overlap_save<0>, &is_early);
    *early = is_early;
    return err;
}

cudaError_t gck_overlap_save_spectra(const gck_overlap_save_form *form, const gck_responses *responses,
                                     const gck_overlap_save_memory *memory, cudaStream_t stream) {
    const overlap_save_row *r = find_row(*form);
    return r ? r->spectra(*responses, *memory, stream) : cudaErrorInvalidValue;
}

cudaError_t gck_overlap_save(const gck_routes *routes, const gck_overlap_save_form *form, int64_t hop, int64_t blocks,
                             const gck_overlap_save_memory *memory, cudaStream_t stream) {
    const overlap_save_row *r = find_row(*form);
    return r ? r->convolve(routes, hop, blocks, *memory, stream) : cudaErrorInvalidValue;
}
