/*
 * Complex FFT for convolution made of fused multiply-adds, in registers, with one exchange through shared memory.
 *
 * Why there are two FFT families: see fft_radix16.cuh. This one serves overlap-save and batches, whose speed
 * the transform decides.
 *
 * The forward transform descends a binary tree of polynomials: x^M - e^(i a) = (x^(M/2) - w)(x^(M/2) + w) with w =
 * e^(i a / 2), so that the remainders of A + x^(M/2) B are A + w B and A - w B. The root is x^N - 1, or x^N - i
 * (RightAngle), which represents a real signal of 2 N samples (right_angle.cuh). Node J of depth d has a = 2 pi v(J):
 * v(J) is the d bits of J reversed behind the binary point, plus 2^-d / 4 if RightAngle. The signal enters in natural
 * order; the leaves stay in bit-reversed order. The inverse is decimation in time from that order: blocks S_J of h
 * points are joined to S[n] = S_2J[n] + w S_(2J+1)[n] and S[n + h] = S_2J[n] - w S_(2J+1)[n], w = e^(-i pi n / h). If
 * RightAngle, index n then comes out multiplied by e^(i pi n / 2 N), which `untwist` removes.
 *
 * Both directions use the butterfly a + w b, a - w b. With w = c (1 + i t) it takes six fused operations: b (1 + i t)
 * in two, c times that added to and subtracted from a in four (Linzer & Feig, IEEE Trans. Signal Processing 41(1),
 * 1993). The twiddle of an odd node is i times that of its even sibling, which costs no operation.
 *
 * N = 2^A 2^B points are transformed by 2^B threads with 2^A registers each, in two steps with one exchange through
 * shared memory between them:
 *
 *      A levels     thread t holds indices t + 2^B j               twiddles are compile-time constants
 *      B levels     thread t holds whole nodes t, t + 2^B, ...     twiddles from a table, by node
 */
#ifndef GC_KERNELS_FFT_FMA_CUH
#define GC_KERNELS_FFT_FMA_CUH

#include "complex.cuh"

#include <utility>

/* Calls f(0), f(1), ... f(N - 1) with std::integral_constant, so that values derived from the index are compile-time
 * constants. */
template <typename F, int... I> __device__ __forceinline__ void call_with_each(F &f, std::integer_sequence<int, I...>) {
    (f(std::integral_constant<int, I>()), ...);
}

template <int N, typename F> __device__ __forceinline__ void unroll(F f) {
    call_with_each(f, std::make_integer_sequence<int, N>());
}

/* Returns the cosine or sine of pi k / 256, 0 <= k < 128, by its power series. */
constexpr double cos_or_sin_series(int k, bool sine) {
    const double x = k * (3.14159265358979323846 / 256);
    double sum = 0;
    for (int n = 22; n >= 0; n -= 2)
        sum = 1 - sum * x * x / ((n + 1 + sine) * (n + 2 + sine));
    return sine ? sum * x : sum;
}

/* Functions of the angle pi K / 128, 0 <= K < 64; c2, s2 and c3, s3 are those of its double and triple. */
template <int K> struct angle {
    static constexpr double c = cos_or_sin_series(2 * K, false), s = cos_or_sin_series(2 * K, true);
    static constexpr double c2 = c * c - s * s, s2 = 2 * c * s, c3 = c * c2 - s * s2, s3 = s * c2 + c * s2;
    static constexpr float cos = (float)c, sin = (float)s, tan = (float)(s / c);
    static constexpr float tan_of_half = (float)(cos_or_sin_series(K, true) / cos_or_sin_series(K, false));
};

/* Returns the lowest `bits` bits of j in reverse order. */
__host__ __device__ constexpr int bit_reversed(int j, int bits) {
    int r = 0;
    for (int i = 0; i < bits; i++)
        r |= (j >> i & 1) << (bits - 1 - i);
    return r;
}

/* Replaces a, b by a + w b, a - w b. w = c (1 + i t), times i if Odd; its conjugate if Conjugate. */
template <bool Conjugate, bool Odd> __device__ __forceinline__ void butterfly(float2 &a, float2 &b, float c, float t) {
    float u = Conjugate ? fmaf(t, b.y, b.x) : fmaf(-t, b.y, b.x);
    float v = Conjugate ? fmaf(-t, b.x, b.y) : fmaf(t, b.x, b.y);
    float x = !Odd ? u : Conjugate ? v : -v, y = !Odd ? v : Conjugate ? -u : u;
    b.x = fmaf(-c, x, a.x);
    b.y = fmaf(-c, y, a.y);
    a.x = fmaf(c, x, a.x);
    a.y = fmaf(c, y, a.y);
}

/* The butterfly with w = 1, or i if Odd. */
template <bool Conjugate, bool Odd> __device__ __forceinline__ void trivial_butterfly(float2 &a, float2 &b) {
    float2 x = a, y = Odd ? rotate_quarter<!Conjugate>(b) : b;
    a = add(x, y);
    b = sub(x, y);
}

/* Two levels of butterflies at once, w = w'^2: (x0, x2) and (x1, x3) with w, then (x0, x1) with w' and (x2, x3) with
 * i w'. K: the angle of w'. Takes 22 operations, two fewer than four butterflies, because w' x1 and w' w x3 are added
 * before either is scaled. */
template <bool Conjugate, int K>
__device__ __forceinline__ void radix4_butterfly(float2 &x0, float2 &x1, float2 &x2, float2 &x3) {
    typedef angle<K> a;
    if constexpr (K == 0) {
        trivial_butterfly<Conjugate, false>(x0, x2);
        trivial_butterfly<Conjugate, false>(x1, x3);
        trivial_butterfly<Conjugate, false>(x0, x1);
        trivial_butterfly<Conjugate, true>(x2, x3);
    } else if constexpr (K == 32) { /* w = i */
        trivial_butterfly<Conjugate, true>(x0, x2);
        trivial_butterfly<Conjugate, true>(x1, x3);
        butterfly<Conjugate, false>(x0, x1, a::cos, a::tan);
        butterfly<Conjugate, true>(x2, x3, a::cos, a::tan);
    } else {
        constexpr float sign = Conjugate ? -1.0f : 1.0f, c = a::cos, c2 = (float)a::c2, ratio = (float)(a::c3 / a::c);
        constexpr float t = sign * a::tan, t2 = sign * (float)(a::s2 / a::c2), t3 = sign * (float)(a::s3 / a::c3);
        const float2 u1 = make_float2(fmaf(-t, x1.y, x1.x), fmaf(t, x1.x, x1.y));
        const float2 u2 = make_float2(fmaf(-t2, x2.y, x2.x), fmaf(t2, x2.x, x2.y));
        const float2 u3 = make_float2(fmaf(-t3, x3.y, x3.x), fmaf(t3, x3.x, x3.y));
        const float2 sum = make_float2(fmaf(ratio, u3.x, u1.x), fmaf(ratio, u3.y, u1.y));
        const float2 rest = make_float2(fmaf(-ratio, u3.x, u1.x), fmaf(-ratio, u3.y, u1.y));
        const float2 p = make_float2(fmaf(c2, u2.x, x0.x), fmaf(c2, u2.y, x0.y));
        const float2 q = make_float2(fmaf(-c2, u2.x, x0.x), fmaf(-c2, u2.y, x0.y));
        x0 = make_float2(fmaf(c, sum.x, p.x), fmaf(c, sum.y, p.y));
        x1 = make_float2(fmaf(-c, sum.x, p.x), fmaf(-c, sum.y, p.y));
        x2 = make_float2(fmaf(-sign * c, rest.y, q.x), fmaf(sign * c, rest.x, q.y));
        x3 = make_float2(fmaf(sign * c, rest.y, q.x), fmaf(-sign * c, rest.x, q.y));
    }
}

/* Computes the first LEVELS levels of the tree, over 2^LEVELS registers. */
template <int LEVELS, bool RightAngle = false, int L = 0> __device__ __forceinline__ void forward_root(float2 *v) {
    if constexpr (L + 1 < LEVELS) {
        unroll<1 << (LEVELS - 2)>([v](auto index) {
            constexpr int i = decltype(index)::value, fourth = 1 << (LEVELS - L - 2), j = i / fourth;
            float2 *x = v + 4 * j * fourth + i % fourth;
            radix4_butterfly<false, 2 * bit_reversed(2 * j, 6) + (RightAngle ? 16 >> L : 0)>(
                x[0], x[fourth], x[2 * fourth], x[3 * fourth]);
        });
        forward_root<LEVELS, RightAngle, L + 2>(v);
    } else if constexpr (L < LEVELS) {
        unroll<1 << (LEVELS - 1)>([v](auto index) {
            constexpr int j = decltype(index)::value, k = 2 * bit_reversed(j & ~1, 6) + (RightAngle ? 32 >> L : 0);
            if constexpr (k == 0)
                trivial_butterfly<false, j % 2>(v[2 * j], v[2 * j + 1]);
            else
                butterfly<false, j % 2>(v[2 * j], v[2 * j + 1], angle<k>::cos, angle<k>::tan);
        });
    }
}

/* Computes the LEVELS levels below a node. Entry 0 of `twiddles` is that of the node, entry 2^(l-1) + e that of nodes 2
 * e and 2 e + 1, l levels below. Entries are `stride` apart. */
template <int LEVELS, int L = 0>
__device__ __forceinline__ void forward_node(float2 *v, const float2 *__restrict__ twiddles, int stride) {
    if constexpr (L < LEVELS) {
        const int half = 1 << (LEVELS - L - 1), entries = L ? 1 << (L - 1) : 1;
#pragma unroll
        for (int e = 0; e < entries; e++) {
            float2 w = __ldg(twiddles + ((L ? entries : 0) + e) * stride);
            float2 *even = v + 4 * e * half, *odd = even + 2 * half;
#pragma unroll
            for (int p = 0; p < half; p++) {
                butterfly<false, false>(even[p], even[p + half], w.x, w.y);
                if (L)
                    butterfly<false, true>(odd[p], odd[p + half], w.x, w.y);
            }
        }
        forward_node<LEVELS, L + 1>(v, twiddles, stride);
    }
}

/* Transforms the 2^LEVELS leaves of a node back. If LEVELS is odd, the first level stands alone and its twiddle is 1.
 */
template <int LEVELS, int S = 0> __device__ __forceinline__ void inverse_leaves(float2 *v) {
    if constexpr (S < LEVELS && (LEVELS - S) % 2) {
        unroll<1 << (LEVELS - 1)>([v](auto index) {
            constexpr int i = decltype(index)::value;
            trivial_butterfly<true, false>(v[2 * i], v[2 * i + 1]);
        });
        inverse_leaves<LEVELS, S + 1>(v);
    } else if constexpr (S < LEVELS) {
        unroll<1 << (LEVELS - 2)>([v](auto index) {
            constexpr int i = decltype(index)::value, half = 1 << S, p = i % half;
            float2 *x = v + i / half * 4 * half + p;
            radix4_butterfly<true, p *(64 >> S)>(x[0], x[2 * half], x[half], x[3 * half]);
        });
        inverse_leaves<LEVELS, S + 2>(v);
    }
}

/* Computes the LEVELS inverse levels above. Register j holds this thread's index in block j. Entry 0 of `twiddles`
 * serves the first level, entry 2^(s-1) + q serves registers q and q + 2^(s-1) of level s. */
template <int LEVELS, int S = 0>
__device__ __forceinline__ void inverse_blocks(float2 *v, const float2 *__restrict__ twiddles, int stride) {
    if constexpr (S < LEVELS) {
        const int half = 1 << S, entries = S ? half / 2 : 1;
#pragma unroll
        for (int q = 0; q < entries; q++) {
            float2 w = __ldg(twiddles + ((S ? entries : 0) + q) * stride);
#pragma unroll
            for (int g = 0; g < 1 << (LEVELS - S - 1); g++) {
                float2 *a = v + g * 2 * half + q;
                butterfly<true, false>(a[0], a[half], w.x, w.y);
                if (S)
                    butterfly<true, true>(a[half / 2], a[half / 2 + half], w.x, w.y);
            }
        }
        inverse_blocks<LEVELS, S + 1>(v, twiddles, stride);
    }
}

/* Multiplies v[p], 0 <= p < 2^BITS, by w and by the factor of each bit that is set in p. */
template <int BITS, bool Conjugate>
__device__ __forceinline__ void twiddle_leaves(float2 *v, float2 w, const float2 *factor) {
    if constexpr (BITS == 0) {
        *v = Conjugate ? mul_conj(*v, w) : mul(*v, w);
    } else {
        twiddle_leaves<BITS - 1, Conjugate>(v, w, factor);
        twiddle_leaves<BITS - 1, Conjugate>(v + (1 << (BITS - 1)), mul(w, factor[BITS - 1]), factor);
    }
}

/* Waits for the THREADS threads that share a transform: a warp, or the block. */
template <int THREADS> __device__ __forceinline__ void transform_barrier() {
    if (THREADS <= 32)
        __syncwarp();
    else
        __syncthreads();
}

/* Transform of 2^A 2^B points, B <= A. Registers before `forward` and after `inverse`: v[j] = index t + 2^B j.
 * `forward` and `inverse` each have one barrier between writing and reading shared memory; a caller that uses the
 * memory before or after them adds its own. A row has two entries of padding, which makes both steps free of bank
 * conflicts. */
template <int A, int B, bool RightAngle = false> struct fft_fma {
    static const int P = 1 << A, T = 1 << B, N = P * T, ROW = T + 2;
    static const int shared = P * ROW; /* float2 */
    static const int forward_twiddles = N / 2, inverse_twiddles = N / 2;

    static __device__ __forceinline__ void forward(float2 *v, float2 *s, int t, const float2 *__restrict__ twiddles) {
        forward_root<A, RightAngle>(v);
#pragma unroll
        for (int j = 0; j < P; j++)
            s[j * ROW + t] = v[j];
        transform_barrier<T>();
#pragma unroll
        for (int i = 0; i < P; i += 2) {
            float4 x = *(const float4 *)(s + (t + i / T * T) * ROW + i % T);
            v[i] = make_float2(x.x, x.y);
            v[i + 1] = make_float2(x.z, x.w);
        }
#pragma unroll
        for (int i = 0; i < P; i += T)
            forward_node<B>(v + i, twiddles + t + i, P);
    }

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ twiddles) {
#pragma unroll
        for (int i = 0; i < P; i += T)
            inverse_leaves<B>(v + i);
#pragma unroll
        for (int i = 0; i < P; i += 2)
            *(float4 *)(s + (t + i / T * T) * ROW + i % T) = make_float4(v[i].x, v[i].y, v[i + 1].x, v[i + 1].y);
        transform_barrier<T>();
#pragma unroll
        for (int j = 0; j < P; j++)
            v[j] = s[j * ROW + t];
        inverse_blocks<A>(v, twiddles + t, T);
    }
};

#endif
