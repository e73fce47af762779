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
 * The contracts of gck_overlap_save and its companions are in kernels.h; they choose the kernel: this one up to 2^12
 * real points, overlap_save_chip.cu above, overlap_save_3pass.cu from where a transform does not fit into a block.
 *
 * What it buys: 2^23 samples with 512 taps take 0.0276 ms on an H100, 5.6 times less than direct.cu. The smallest
 * transform of overlap_save_chip.cu takes 1.3 times as long as 1024 points here (0.0326 ms with 2048 taps, 0.0247 with
 * 512, H200).
 */
#include "kernels/engine/overlap_save.cuh"

#include <type_traits>

namespace {

/* The complete transform: one factor per register of the spectrum. */
template <int A, int B> struct full_transform : full_fft<A, B> {
    typedef full_fft<A, B> base;
    static const int factors = 1;

    static __device__ __forceinline__ void store_factors(const float2 *v, float2 *to, int t) {
        keep<base::P, base::T>(v, to + 2 * t);
    }

    static __device__ __forceinline__ void multiply(float2 *v, const float2 *h, int t) {
        multiply_spectrum<base::P, base::T>(v, v, h + 2 * t);
    }

    static __device__ __forceinline__ void multiply_add(float2 *sum, const float2 *v, const float2 *h, int t) {
#pragma unroll
        for (int j = 0; j < base::P; j += 2) {
            float4 w = __ldg((const float4 *)(h + j * base::T + 2 * t));
            sum[j] = mul_add(v[j], make_float2(w.x, w.y), sum[j]);
            sum[j + 1] = mul_add(v[j + 1], make_float2(w.z, w.w), sum[j + 1]);
        }
    }
};

/* The truncated transform: two factors per register of the spectrum, for this thread's coefficient and for that of the
 * adjacent thread. */
template <int A> struct half_transform : truncated_fft<A, true> {
    typedef truncated_fft<A, true> base;
    static const int twiddles = base::forward_twiddles + base::parity_twiddles + base::inverse_twiddles + base::T,
                     factors = 2;

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *table) {
        base::inverse(v, s, t, table + base::forward_twiddles, table + base::forward_twiddles + base::parity_twiddles);
    }

    static void write_twiddles(float2 *to) {
        write_untwist_angles(
            write_inverse_twiddles(write_inverse_twiddles(write_forward_twiddles(to, A, A, 0.25), A, 2), A, base::T),
            base::T, base::N);
    }

    /* Returns v of the adjacent thread. */
    static __device__ __forceinline__ float2 adjacent(float2 v) {
        return make_float2(__shfl_xor_sync(0xffffffffu, v.x, 1), __shfl_xor_sync(0xffffffffu, v.y, 1));
    }

    /* Stores a spectrum as pairs: the factor of this thread's coefficient and that of the adjacent thread's. */
    static __device__ __forceinline__ void store_factors(const float2 *v, float2 *to, int t) {
#pragma unroll
        for (int j = 0; j < base::P; j++) {
            float2 other = adjacent(v[j]), own = v[j], w;
            int leaf = ((t >> 1) << A) + j;
            float revolutions = ((float)bit_reversed(leaf, 2 * A) + 0.25f) / (float)(1 << (2 * A));
            sincospif(t & 1 ? revolutions : 2 * revolutions, &w.y, &w.x);
            float2 f = t & 1 ? mul(other, w) : own, g = t & 1 ? mul(own, w) : mul(other, w);
            *(float4 *)(to + 2 * (j * base::T + t)) = make_float4(f.x, f.y, g.x, g.y);
        }
    }

    static __device__ __forceinline__ void multiply(float2 *v, const float2 *h, int t) {
#pragma unroll
        for (int j = 0; j < base::P; j++) {
            float4 w = __ldg((const float4 *)(h + 2 * (j * base::T + t)));
            float2 other = adjacent(v[j]);
            v[j] = mul_add(v[j], make_float2(w.x, w.y), mul(other, make_float2(w.z, w.w)));
        }
    }

    static __device__ __forceinline__ void multiply_add(float2 *sum, const float2 *v, const float2 *h, int t) {
#pragma unroll
        for (int j = 0; j < base::P; j++) {
            float4 w = __ldg((const float4 *)(h + 2 * (j * base::T + t)));
            float2 other = adjacent(v[j]);
            sum[j] = mul_add(v[j], make_float2(w.x, w.y), mul_add(other, make_float2(w.z, w.w), sum[j]));
        }
    }
};

/* The transform of N complex points, and the resident blocks per multiprocessor to compile for, with one route per
 * output and with several. */
template <int N> struct config {
    static_assert(N == 1024 || N == 2048, "no such transform");
    typedef std::conditional_t<N == 1024, full_transform<5, 5>, half_transform<5>> transform;
    static const int resident = N == 1024 ? 16 : 8;
    static const int resident_sums = resident / 2;
};

/* Where the routes are: in the kernel's parameters, or in memory. */
enum { INLINE_ROUTES, ROUTES_IN_MEMORY };

/* One route per output; block.x: block of the signal; block.y: output. ahead: how many blocks ahead to prefetch. */
template <int N, int Routes>
__global__ void __launch_bounds__(config<N>::transform::T,
                                  Routes == INLINE_ROUTES ? config<N>::resident : config<N>::resident * 3 / 4)
    overlap_save(gck_routes a, int hop, int ahead, const float2 *__restrict__ twiddles,
                 const float2 *__restrict__ spectra) {
    typedef typename config<N>::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int t = threadIdx.x, overlap = 2 * N - hop, bytes = 2 * N * (int)sizeof(float);
    const gck_route route = Routes == INLINE_ROUTES ? a.inline_route[blockIdx.y] : a.route[blockIdx.y];
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
    f::multiply(v, opaque_pointer(spectra) + (int64_t)route.plane * N * f::factors, t);
    transform_barrier<f::T>();
    f::inverse(v, shared, t, twiddles);
    const float2 base = opaque_pointer(twiddles)[f::twiddles - f::T + t];
    if (N == 1024 && overlap >= N / 2) { /* twice the code, half the comparisons: the assumption removes the rest */
        untwist<f::P, true>(v, base);
        __builtin_assume(overlap - t > N / 2 - f::T);
        store_right_angle<f::P, f::T>(v, a.out + blockIdx.y * a.out_stride + first, overlap, t);
    } else {
        untwist<f::P>(v, base);
        store_right_angle<f::P, f::T>(v, a.out + blockIdx.y * a.out_stride + first, overlap, t);
    }
}

/* Outputs with several routes; block.x: block of the signal, block.y: output. */
template <int N>
__global__ void __launch_bounds__(config<N>::transform::T, config<N>::resident_sums)
    overlap_save_sums(gck_routes a, int hop, const float2 *__restrict__ twiddles, const float2 *__restrict__ spectra) {
    typedef typename config<N>::transform f;
    extern __shared__ __align__(16) float2 shared[];
    int t = threadIdx.x, overlap = 2 * N - hop;
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
        f::multiply_add(sum, v, opaque_pointer(spectra) + (int64_t)route.plane * N * f::factors, t);
    }
    transform_barrier<f::T>();
    f::inverse(sum, shared, t, twiddles);
    untwist<f::P>(sum, opaque_pointer(twiddles)[f::twiddles - f::T + t]);
    store_right_angle<f::P, f::T>(sum, a.out + blockIdx.y * a.out_stride + first, overlap, t);
}

/* Spectra of responses, scaled for the inverse; block.x: plane. */
template <int N>
__global__ void __launch_bounds__(config<N>::transform::T)
    spectrum(const float *__restrict__ taps, int64_t count, const float2 *__restrict__ twiddles, float2 *spectra) {
    typedef typename config<N>::transform f;
    extern __shared__ __align__(16) float2 shared[];
    int t = threadIdx.x;
    const float *plane = taps + (int64_t)blockIdx.x * count, scale = (float)f::factors / N;
    float2 v[f::P];
    load_response<f::P, f::T>(v, plane, count, scale, t);
    f::forward(v, shared, t, twiddles);
    f::store_factors(v, spectra + (int64_t)blockIdx.x * N * f::factors, t);
}

/* The launchers for 2 N real points. */
template <int N> struct launchers {
    typedef typename config<N>::transform f;
    static const int bytes = f::shared * (int)sizeof(float2);

    static gck_overlap_save_sizes sizes() {
        return gck_overlap_save_sizes{f::twiddles, (int64_t)N * f::factors, bytes, 0};
    }

    static cudaError_t spectra(const gck_responses &responses, const gck_overlap_save_memory &memory,
                               cudaStream_t stream) {
        cudaError_t err = allow_shared(spectrum<N>, bytes);
        if (err)
            return err;
        spectrum<N><<<responses.planes, f::T, bytes, stream>>>(responses.taps, responses.taps_count, memory.twiddles,
                                                               memory.spectra);
        return cudaGetLastError();
    }

    template <int Routes>
    static cudaError_t launch(const gck_routes *routes, int64_t hop, int64_t blocks,
                              const gck_overlap_save_memory &memory, cudaStream_t stream) {
        int multiprocessors = 0;
        static once_per_device once;
        cudaError_t err = once([](int device) {
            cudaError_t refused = allow_shared(overlap_save<N, Routes>, bytes);
            return refused ? refused : set_carveout(device, overlap_save<N, Routes>, config<N>::resident, bytes);
        });
        if (!err)
            err = count_multiprocessors(&multiprocessors);
        if (err)
            return err;
        const int ahead = config<N>::resident * multiprocessors * 9 / 10; /* measured */
        return launch_dependent(overlap_save<N, Routes>, dim3((unsigned)blocks, routes->outputs), f::T, bytes, stream,
                                *routes, (int)hop, ahead, memory.twiddles, memory.spectra);
    }

    static cudaError_t convolve(const gck_routes *routes, int64_t hop, int64_t blocks,
                                const gck_overlap_save_memory &memory, cudaStream_t stream) {
        if (N == 1024 && gck_overlap_save_fans(routes))
            return gck_overlap_save_fan(routes, hop, blocks, memory, stream);
        if (routes->single)
            return routes->outputs <= GCK_INLINE_ROUTES ? launch<INLINE_ROUTES>(routes, hop, blocks, memory, stream)
                                                        : launch<ROUTES_IN_MEMORY>(routes, hop, blocks, memory, stream);
        overlap_save_sums<N><<<dim3((unsigned)blocks, routes->outputs), f::T, bytes, stream>>>(
            *routes, (int)hop, memory.twiddles, memory.spectra);
        return cudaGetLastError();
    }

    static constexpr overlap_save_row row() {
        return overlap_save_row{2 * N, sizes, f::write_twiddles, spectra, convolve};
    }
};

const overlap_save_row rows[] = {launchers<1024>::row(), launchers<2048>::row()};

/* Returns the row of a form, in one kernel rather than in three; NULL if there is none. */
const overlap_save_row *find_row(const gck_overlap_save_form &form) {
    for (const overlap_save_row &r : rows)
        if (r.points == form.points)
            return &r;
    const overlap_save_row *chip = gck_overlap_save_chip_find(form.points);
    return chip && form.single && chip->sizes().shared_bytes <= form.shared_bytes
               ? chip
               : gck_overlap_save_3pass_find(form.points);
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
    cudaError_t err = launches_early((const void *)overlap_save<1024, INLINE_ROUTES>, &is_early);
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
