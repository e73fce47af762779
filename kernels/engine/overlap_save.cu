/*
 * Overlap-save in one kernel: load, transform, multiply, transform back, store. A block of 2 N samples is folded into N
 * complex points (folded.cuh); the spectrum stays in the transform's own order.
 *
 *      in    |--- before ---|----------- hop -----------|
 *            |<-------------- 2 N places -------------->|
 *
 * Device memory sees every input sample 2 N / hop times (mostly from the cache) and every output once. While a block
 * computes, what a block of the next wave will read is called into the second-level cache; the first wave's samples are
 * called while the kernel in front ends.
 */
#include "overlap_save.cuh"
#include "twiddles.h"

#include <type_traits>

namespace {

template <int A, int B> struct whole : tree<A, B, true> {
    typedef tree<A, B, true> base;
    static const int turns = base::down_turns + base::up_turns + base::T, factors = 1;

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *table) {
        base::inverse(v, s, t, table + base::down_turns);
    }

    static void fill(float2 *to) {
        fill_unfolding(fill_up(fill_down(to, A, B, 0.25), A, base::T), base::T, base::N);
    }

    /* A spectrum in memory: two registers of a thread side by side. */
    static __device__ __forceinline__ void store_factors(const float2 *v, float2 *to, int t) {
#pragma unroll
        for (int j = 0; j < base::P; j += 2)
            *(float4 *)(to + j * base::T + 2 * t) = make_float4(v[j].x, v[j].y, v[j + 1].x, v[j + 1].y);
    }

    static __device__ __forceinline__ void multiply(float2 *v, const float2 *h, int t) {
#pragma unroll
        for (int j = 0; j < base::P; j += 2) {
            float4 w = __ldg((const float4 *)(h + j * base::T + 2 * t));
            v[j] = mul(v[j], make_float2(w.x, w.y));
            v[j + 1] = mul(v[j + 1], make_float2(w.z, w.w));
        }
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

template <int A> struct halved : incomplete_tree<A, true> {
    typedef incomplete_tree<A, true> base;
    static const int turns = base::down_turns + base::parity_turns + base::up_turns + base::T, factors = 2;

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *table) {
        base::inverse(v, s, t, table + base::down_turns, table + base::down_turns + base::parity_turns);
    }

    static void fill(float2 *to) {
        fill_unfolding(fill_up(fill_up(fill_down(to, A, A, 0.25), A, 2), A, base::T), base::T, base::N);
    }

    static __device__ __forceinline__ float2 neighbour(float2 v) {
        return make_float2(__shfl_xor_sync(0xffffffffu, v.x, 1), __shfl_xor_sync(0xffffffffu, v.y, 1));
    }

    /* Factor of the own coefficient, factor of the neighbour's. */
    static __device__ __forceinline__ void store_factors(const float2 *v, float2 *to, int t) {
#pragma unroll
        for (int j = 0; j < base::P; j++) {
            float2 other = neighbour(v[j]), own = v[j], w;
            int leaf = ((t >> 1) << A) + j;
            float turns = ((float)reversed(leaf, 2 * A) + 0.25f) / (float)(1 << (2 * A));
            sincospif(t & 1 ? turns : 2 * turns, &w.y, &w.x);
            float2 f = t & 1 ? mul(other, w) : own, g = t & 1 ? mul(own, w) : mul(other, w);
            *(float4 *)(to + 2 * (j * base::T + t)) = make_float4(f.x, f.y, g.x, g.y);
        }
    }

    static __device__ __forceinline__ void multiply(float2 *v, const float2 *h, int t) {
#pragma unroll
        for (int j = 0; j < base::P; j++) {
            float4 w = __ldg((const float4 *)(h + 2 * (j * base::T + t)));
            float2 other = neighbour(v[j]);
            v[j] = mul_add(v[j], make_float2(w.x, w.y), mul(other, make_float2(w.z, w.w)));
        }
    }

    static __device__ __forceinline__ void multiply_add(float2 *sum, const float2 *v, const float2 *h, int t) {
#pragma unroll
        for (int j = 0; j < base::P; j++) {
            float4 w = __ldg((const float4 *)(h + 2 * (j * base::T + t)));
            float2 other = neighbour(v[j]);
            sum[j] = mul_add(v[j], make_float2(w.x, w.y), mul_add(other, make_float2(w.z, w.w), sum[j]));
        }
    }
};

/* The transform of N complex points; how many blocks a multiprocessor is to hold with one route an output, and with
 * sums of several. At 4096 points a sum and a spectrum together do not fit the registers. */
template <int N> struct kind {
    static_assert(N == 1024 || N == 2048 || N == 4096, "no such transform");
    typedef std::conditional_t<N == 1024, whole<5, 5>, std::conditional_t<N == 2048, halved<5>, whole<6, 6>>> transform;
    static const int resident = N == 1024 ? 16 : N == 2048 ? 8 : 6;
    static const int resident_sums = N == 1024 ? 8 : N == 2048 ? 4 : 0;
};

/* How an output finds its route: few outputs, or many. */
enum { FEW, MANY };

/* One route an output; block.x: block of the signal, block.y: output. */
template <int N, int Routes>
__global__ void __launch_bounds__(kind<N>::transform::T, Routes == FEW ? kind<N>::resident : kind<N>::resident * 3 / 4)
    overlap_save(gck_matrix a, int hop, int ahead, const float2 *__restrict__ turns,
                 const float2 *__restrict__ spectra) {
    typedef typename kind<N>::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int t = threadIdx.x, before = 2 * N - hop, bytes = 2 * N * (int)sizeof(float);
    const gck_route route = Routes == FEW ? a.few[blockIdx.y] : a.route[blockIdx.y];
    const int64_t first = (int64_t)blockIdx.x * hop - before;
    const float *x = a.in + route.input * a.in_stride + first;
    let_others_come();
    /* While the kernel in front ends: what it still writes there, it writes in that cache too. */
    call_into_cache(x, bytes, t == 0 && blockIdx.x < ahead);
    wait_for_others();
    float2 v[f::P];
    load_folded<f::P, f::T>(v, x, t);
    f::forward(v, shared, t, turns);
    asm volatile("" ::: "memory"); /* not among the loads of samples that somebody waits for */
    call_into_cache(x + (int64_t)ahead * hop, bytes, t == 0 && blockIdx.x + ahead < gridDim.x);
    f::multiply(v, fresh(spectra) + (int64_t)route.plane * N * f::factors, t);
    transform_barrier<f::T>();
    f::inverse(v, shared, t, turns);
    const float2 base = fresh(turns)[f::turns - f::T + t];
    if (N == 1024 &&
        before >= N / 2) { /* twice the code, half the comparisons: those that are left follow from the assumption */
        unfold<f::P, true>(v, base);
        __builtin_assume(before - t > N / 2 - f::T);
        store_folded<f::P, f::T>(v, a.out + blockIdx.y * a.out_stride + first, before, t);
    } else {
        unfold<f::P>(v, base);
        store_folded<f::P, f::T>(v, a.out + blockIdx.y * a.out_stride + first, before, t);
    }
}

/* Sums of several routes; block.x: block of the signal, block.y: output. */
template <int N>
__global__ void __launch_bounds__(kind<N>::transform::T, kind<N>::resident_sums)
    overlap_save_sums(gck_matrix a, int hop, const float2 *__restrict__ turns, const float2 *__restrict__ spectra) {
    typedef typename kind<N>::transform f;
    extern __shared__ __align__(16) float2 shared[];
    int t = threadIdx.x, before = 2 * N - hop;
    int64_t first = (int64_t)blockIdx.x * hop - before;
    float2 v[f::P], sum[f::P];
#pragma unroll
    for (int j = 0; j < f::P; j++)
        sum[j] = make_float2(0.0f, 0.0f);
#pragma unroll 1
    for (int e = a.row[blockIdx.y]; e < a.row[blockIdx.y + 1]; e++) {
        gck_route route = a.route[e];
        asm volatile("" : "+r"(t)); /* what follows from t is worked out anew: registers are all taken */
        load_folded<f::P, f::T>(v, a.in + route.input * a.in_stride + first, t);
        transform_barrier<f::T>();
        f::forward(v, shared, t, turns);
        f::multiply_add(sum, v, fresh(spectra) + (int64_t)route.plane * N * f::factors, t);
    }
    transform_barrier<f::T>();
    f::inverse(sum, shared, t, turns);
    unfold<f::P>(sum, fresh(turns)[f::turns - f::T + t]);
    store_folded<f::P, f::T>(sum, a.out + blockIdx.y * a.out_stride + first, before, t);
}

template <int N>
__global__ void __launch_bounds__(kind<N>::transform::T)
    spectrum(const float *__restrict__ taps, int64_t count, const float2 *__restrict__ turns, float2 *spectra) {
    typedef typename kind<N>::transform f;
    extern __shared__ __align__(16) float2 shared[];
    int t = threadIdx.x;
    const float *plane = taps + (int64_t)blockIdx.x * count, scale = (float)f::factors / N;
    float2 v[f::P];
#pragma unroll
    for (int j = 0; j < f::P; j++) {
        int64_t k = t + j * f::T, m = k + N;
        v[j] = make_float2(k < count ? plane[k] * scale : 0.0f, m < count ? plane[m] * scale : 0.0f);
    }
    f::forward(v, shared, t, turns);
    f::store_factors(v, spectra + (int64_t)blockIdx.x * N * f::factors, t);
}

template <int N> struct calls {
    typedef typename kind<N>::transform f;
    static const int bytes = f::shared * (int)sizeof(float2);

    static gck_transform_size size() {
        return gck_transform_size{f::turns, (int64_t)N * f::factors, bytes, kind<N>::resident_sums > 0, 0};
    }

    static void fill(float2 *turns) {
        f::fill(turns);
    }

    static cudaError_t spectra(const float *taps, int planes, int64_t count, const float2 *turns, float2 *spectra,
                               cudaStream_t stream) {
        cudaError_t failed = allow_shared(spectrum<N>, bytes);
        if (failed)
            return failed;
        spectrum<N><<<planes, f::T, bytes, stream>>>(taps, count, turns, spectra);
        return cudaGetLastError();
    }

    template <int Routes>
    static cudaError_t launch(const gck_matrix *matrix, int64_t hop, int64_t blocks, const float2 *turns,
                              const float2 *spectra, cudaStream_t stream) {
        int multiprocessors = 0;
        static once_a_device once;
        cudaError_t failed = once([](int device) {
            cudaError_t refused = allow_shared(overlap_save<N, Routes>, bytes);
            return refused ? refused : ask_for_room(device, overlap_save<N, Routes>, kind<N>::resident, bytes);
        });
        if (!failed)
            failed = count_multiprocessors(&multiprocessors);
        if (failed)
            return failed;
        const int ahead = kind<N>::resident * multiprocessors * 9 / 10; /* measured */
        return launch_early(overlap_save<N, Routes>, dim3((unsigned)blocks, matrix->outputs), f::T, bytes, stream,
                            *matrix, (int)hop, ahead, turns, spectra);
    }

    static cudaError_t convolve(const gck_matrix *matrix, int64_t hop, int64_t blocks, const float2 *turns,
                                const float2 *spectra, cudaStream_t stream) {
        if (matrix->single)
            return matrix->outputs <= GCK_FEW ? launch<FEW>(matrix, hop, blocks, turns, spectra, stream)
                                              : launch<MANY>(matrix, hop, blocks, turns, spectra, stream);
        if constexpr (kind<N>::resident_sums > 0) {
            overlap_save_sums<N>
                <<<dim3((unsigned)blocks, matrix->outputs), f::T, bytes, stream>>>(*matrix, (int)hop, turns, spectra);
            return cudaGetLastError();
        }
        return cudaErrorInvalidValue;
    }
};

} // namespace

/* points: of the real signal, two to a complex one. */
#define FOR_POINTS(points, call)                                                                                       \
    switch (points) {                                                                                                  \
    case 2048:                                                                                                         \
        return calls<1024>::call;                                                                                      \
    case 4096:                                                                                                         \
        return calls<2048>::call;                                                                                      \
    case 8192:                                                                                                         \
        return calls<4096>::call;                                                                                      \
    }

gck_transform_size gck_overlap_save_size(int64_t points) {
    FOR_POINTS(points, size())
    return gck_long_size(points);
}

void gck_overlap_save_turns(int64_t points, float2 *turns) {
    FOR_POINTS(points, fill(turns))
    gck_long_turns(points, turns);
}

cudaError_t gck_overlap_save_spectra(int64_t points, const float *taps, int planes, int64_t count, const float2 *turns,
                                     float2 *scratch, float2 *spectra, cudaStream_t stream) {
    FOR_POINTS(points, spectra(taps, planes, count, turns, spectra, stream))
    return gck_long_spectra(points, taps, planes, count, turns, scratch, spectra, stream);
}

cudaError_t gck_overlap_save(const gck_matrix *matrix, int64_t points, int64_t hop, int64_t blocks, const float2 *turns,
                             const float2 *spectra, float2 *scratch, cudaStream_t stream) {
    FOR_POINTS(points, convolve(matrix, hop, blocks, turns, spectra, stream))
    return gck_long_convolve(matrix, points, hop, blocks, turns, spectra, scratch, stream);
}
