/*
 * Transforms in registers, for convolution, written around fused multiply-adds.
 *
 * Forward walks a tree of polynomials: x^M - e^(i a) = (x^(M/2) - w)(x^(M/2) + w), w = e^(i a / 2), so that the
 * remainders of A + x^(M/2) B are A + w B and A - w B. The root is x^N - 1, or x^N - i (a Quarter), which a real signal
 * of 2 N places is folded into (folded.cuh). Node J of depth d has a = 2 pi v(J), v(J) being the d bits of J reversed
 * behind the binary point, and 2^-d of the root's quarter; the signal enters in natural order and nobody puts the
 * leaves in order. Backward is decimation in time from that order: blocks S_J of h places are joined to S[n] = S_2J[n]
 * + w S_(2J+1)[n], S[n + h] = the difference, w = e^(-i pi n / h); with a Quarter place n then comes out turned by e^(i
 * pi n / 2 N).
 *
 * Both have the one butterfly a + w b, a - w b. With w = c (1 + i t) it takes six fused operations: b (1 + i t) in two,
 * c of it to and from a in four (Linzer & Feig, IEEE Trans. Signal Processing 41(1), 1993). An odd node turns by i
 * times what its even sibling turns by, which costs nothing.
 *
 * N = 2^A 2^B points are done by 2^B threads with 2^A registers each, in two steps with one exchange through shared
 * memory between them:
 *
 *      A levels     thread t holds places t + 2^B j                turns known to the compiler
 *      B levels     thread t holds nodes t, t + 2^B, ... whole     turns from a table, by node
 */
#ifndef GC_KERNELS_TREE_CUH
#define GC_KERNELS_TREE_CUH

#include "complex.cuh"

#include <utility>

/* f(0), f(1), ... f(N - 1) with numbers that are types, so that what follows from them is known when this is compiled.
 */
template <typename F, int... I> __device__ __forceinline__ void each_of(F &f, std::integer_sequence<int, I...>) {
    (f(std::integral_constant<int, I>()), ...);
}

template <int N, typename F> __device__ __forceinline__ void unrolled(F f) {
    each_of(f, std::make_integer_sequence<int, N>());
}

/* Of pi k / 256, 0 <= k < 128, by its series. */
constexpr double cos_or_sin(int k, bool sine) {
    const double x = k * (3.14159265358979323846 / 256);
    double sum = 0;
    for (int n = 22; n >= 0; n -= 2)
        sum = 1 - sum * x * x / ((n + 1 + sine) * (n + 2 + sine));
    return sine ? sum * x : sum;
}

/* pi K / 128, 0 <= K < 64 */
template <int K> struct angle {
    static constexpr double c = cos_or_sin(2 * K, false), s = cos_or_sin(2 * K, true);
    static constexpr double c2 = c * c - s * s, s2 = 2 * c * s, c3 = c * c2 - s * s2, s3 = s * c2 + c * s2;
    static constexpr float cos = (float)c, sin = (float)s, tan = (float)(s / c);
    static constexpr float tan_of_half = (float)(cos_or_sin(K, true) / cos_or_sin(K, false));
};

/* The lowest `bits` bits of j, reversed. */
__host__ __device__ constexpr int reversed(int j, int bits) {
    int r = 0;
    for (int i = 0; i < bits; i++)
        r |= (j >> i & 1) << (bits - 1 - i);
    return r;
}

/* a, b <- a + w b, a - w b with w = c (1 + i t), or its conjugate; Odd: w i, or its conjugate. */
template <bool Conjugate, bool Odd> __device__ __forceinline__ void butterfly(float2 &a, float2 &b, float c, float t) {
    float u = Conjugate ? fmaf(t, b.y, b.x) : fmaf(-t, b.y, b.x);
    float v = Conjugate ? fmaf(-t, b.x, b.y) : fmaf(t, b.x, b.y);
    float x = !Odd ? u : Conjugate ? v : -v, y = !Odd ? v : Conjugate ? -u : u;
    b.x = fmaf(-c, x, a.x);
    b.y = fmaf(-c, y, a.y);
    a.x = fmaf(c, x, a.x);
    a.y = fmaf(c, y, a.y);
}

/* The same with w = 1, or w = i. */
template <bool Conjugate, bool Odd> __device__ __forceinline__ void plain_butterfly(float2 &a, float2 &b) {
    float2 x = a, y = Odd ? quarter<!Conjugate>(b) : b;
    a = add(x, y);
    b = sub(x, y);
}

/* Two levels at once, w being w' twice: x0, x2 <- x0 + w x2, x0 - w x2 and x1, x3 likewise; then x0 and x1 with w', x2
 * and x3 with i w'. K: the angle of w'. Two operations less than four butterflies take, as w' x1 and w' w x3 meet
 * before either is scaled: 22. */
template <bool Conjugate, int K>
__device__ __forceinline__ void double_butterfly(float2 &x0, float2 &x1, float2 &x2, float2 &x3) {
    typedef angle<K> a;
    if constexpr (K == 0) {
        plain_butterfly<Conjugate, false>(x0, x2);
        plain_butterfly<Conjugate, false>(x1, x3);
        plain_butterfly<Conjugate, false>(x0, x1);
        plain_butterfly<Conjugate, true>(x2, x3);
    } else if constexpr (K == 32) { /* w = i */
        plain_butterfly<Conjugate, true>(x0, x2);
        plain_butterfly<Conjugate, true>(x1, x3);
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

/* The first LEVELS levels of the tree, over 2^LEVELS registers. */
template <int LEVELS, bool Quarter = false, int L = 0> __device__ __forceinline__ void down_root(float2 *v) {
    if constexpr (L + 1 < LEVELS) {
        unrolled<1 << (LEVELS - 2)>([v](auto number) {
            constexpr int i = decltype(number)::value, fourth = 1 << (LEVELS - L - 2), j = i / fourth;
            float2 *x = v + 4 * j * fourth + i % fourth;
            double_butterfly<false, 2 * reversed(2 * j, 6) + (Quarter ? 16 >> L : 0)>(x[0], x[fourth], x[2 * fourth],
                                                                                      x[3 * fourth]);
        });
        down_root<LEVELS, Quarter, L + 2>(v);
    } else if constexpr (L < LEVELS) {
        unrolled<1 << (LEVELS - 1)>([v](auto number) {
            constexpr int j = decltype(number)::value, k = 2 * reversed(j & ~1, 6) + (Quarter ? 32 >> L : 0);
            if constexpr (k == 0)
                plain_butterfly<false, j % 2>(v[2 * j], v[2 * j + 1]);
            else
                butterfly<false, j % 2>(v[2 * j], v[2 * j + 1], angle<k>::cos, angle<k>::tan);
        });
    }
}

/* LEVELS levels below a node: entry 0 of its turns is its own, entry 2^(l-1) + e that of nodes 2e and 2e + 1, l levels
 * down. Entries lie `stride` apart. */
template <int LEVELS, int L = 0>
__device__ __forceinline__ void down_node(float2 *v, const float2 *__restrict__ turns, int stride) {
    if constexpr (L < LEVELS) {
        const int half = 1 << (LEVELS - L - 1), entries = L ? 1 << (L - 1) : 1;
#pragma unroll
        for (int e = 0; e < entries; e++) {
            float2 w = __ldg(turns + ((L ? entries : 0) + e) * stride);
            float2 *even = v + 4 * e * half, *odd = even + 2 * half;
#pragma unroll
            for (int p = 0; p < half; p++) {
                butterfly<false, false>(even[p], even[p + half], w.x, w.y);
                if (L)
                    butterfly<false, true>(odd[p], odd[p + half], w.x, w.y);
            }
        }
        down_node<LEVELS, L + 1>(v, turns, stride);
    }
}

/* 2^LEVELS leaves of a node back to places. The first level alone, if their number is odd, turns nothing. */
template <int LEVELS, int S = 0> __device__ __forceinline__ void up_leaves(float2 *v) {
    if constexpr (S < LEVELS && (LEVELS - S) % 2) {
        unrolled<1 << (LEVELS - 1)>([v](auto number) {
            constexpr int i = decltype(number)::value;
            plain_butterfly<true, false>(v[2 * i], v[2 * i + 1]);
        });
        up_leaves<LEVELS, S + 1>(v);
    } else if constexpr (S < LEVELS) {
        unrolled<1 << (LEVELS - 2)>([v](auto number) {
            constexpr int i = decltype(number)::value, half = 1 << S, p = i % half;
            float2 *x = v + i / half * 4 * half + p;
            double_butterfly<true, p *(64 >> S)>(x[0], x[2 * half], x[half], x[3 * half]);
        });
        up_leaves<LEVELS, S + 2>(v);
    }
}

/* The LEVELS levels above, register j being block j's place of this thread. Entry 0 of its turns serves the first
 * level, entry 2^(s-1) + q registers q and q + 2^(s-1) of level s. */
template <int LEVELS, int S = 0>
__device__ __forceinline__ void up_blocks(float2 *v, const float2 *__restrict__ turns, int stride) {
    if constexpr (S < LEVELS) {
        const int half = 1 << S, entries = S ? half / 2 : 1;
#pragma unroll
        for (int q = 0; q < entries; q++) {
            float2 w = __ldg(turns + ((S ? entries : 0) + q) * stride);
#pragma unroll
            for (int g = 0; g < 1 << (LEVELS - S - 1); g++) {
                float2 *a = v + g * 2 * half + q;
                butterfly<true, false>(a[0], a[half], w.x, w.y);
                if (S)
                    butterfly<true, true>(a[half / 2], a[half / 2 + half], w.x, w.y);
            }
        }
        up_blocks<LEVELS, S + 1>(v, turns, stride);
    }
}

/* Waits for the THREADS threads that share a transform: a warp, or the block. */
template <int THREADS> __device__ __forceinline__ void transform_barrier() {
    if (THREADS <= 32)
        __syncwarp();
    else
        __syncthreads();
}

/* The transform of 2^A 2^B points, B <= A. Registers before `forward` and after `inverse`: v[j] = place t + 2^B j.
 * Shared memory is read and written between the first and the last barrier of each; whoever uses it before or after
 * sets one more. A row has two places to spare, so that neither step meets a bank twice. */
template <int A, int B, bool Quarter = false> struct tree {
    static const int P = 1 << A, T = 1 << B, N = P * T, ROW = T + 2;
    static const int shared = P * ROW; /* float2 */
    static const int down_turns = N / 2, up_turns = N / 2;

    static __device__ __forceinline__ void forward(float2 *v, float2 *s, int t, const float2 *__restrict__ turns) {
        down_root<A, Quarter>(v);
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
            down_node<B>(v + i, turns + t + i, P);
    }

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ turns) {
#pragma unroll
        for (int i = 0; i < P; i += T)
            up_leaves<B>(v + i);
#pragma unroll
        for (int i = 0; i < P; i += 2)
            *(float4 *)(s + (t + i / T * T) * ROW + i % T) = make_float4(v[i].x, v[i].y, v[i + 1].x, v[i + 1].y);
        transform_barrier<T>();
#pragma unroll
        for (int j = 0; j < P; j++)
            v[j] = s[j * ROW + t];
        up_blocks<A>(v, turns + t, T);
    }
};

/*
 * The same for 2^(2A+1) points by 2^(A+1) threads, two to a node of the second step, which hold its even and odd
 * places. The last level stays undone: a leaf is a polynomial y0 + y1 x modulo x^2 - r, its two coefficients in the two
 * threads, and a product of leaves is y0 h0 + r y1 h1 and y0 h1 + y1 h0: one exchange between neighbours instead of two
 * levels (of incomplete transforms: Kyber's, Avanzi et al., 2017). The odd thread's result comes turned by half of r's
 * angle, which is what the way back wants; all of it stands in the response's spectrum, two factors a register.
 */
template <int A, bool Quarter = false> struct incomplete_tree {
    static const int P = 1 << A, T = 2 << A, N = P * T, ROW = T + 2;
    static const int shared = P * ROW;
    static const int down_turns = P * P / 2, parity_turns = P, up_turns = P * T / 2;

    static __device__ __forceinline__ void forward(float2 *v, float2 *s, int t, const float2 *__restrict__ turns) {
        down_root<A, Quarter>(v);
#pragma unroll
        for (int j = 0; j < P; j++)
            s[j * ROW + t] = v[j];
        transform_barrier<T>();
#pragma unroll
        for (int q = 0; q < P; q++)
            v[q] = s[(t >> 1) * ROW + 2 * q + (t & 1)];
        down_node<A>(v, turns + (t >> 1), P);
    }

    /* parity: turns of level s + 1 at places 2 q and 2 q + 1; turns: as above. */
    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ parity,
                                                   const float2 *__restrict__ turns) {
        up_blocks<A>(v, parity + (t & 1), 2);
#pragma unroll
        for (int q = 0; q < P; q++)
            s[(t >> 1) * ROW + 2 * q + (t & 1)] = v[q];
        transform_barrier<T>();
#pragma unroll
        for (int j = 0; j < P; j++)
            v[j] = s[j * ROW + t];
        up_blocks<A>(v, turns + t, T);
    }
};

#endif
