/*
 * Transforms in registers, for convolution, written around fused multiply-adds.
 *
 * Forward walks a tree of polynomials: x^M - e^(i a) = (x^(M/2) - w)(x^(M/2) + w), w = e^(i a / 2), so that the
 * remainders of A + x^(M/2) B are A + w B and A - w B. The root is x^N - 1. Node J of depth d has a = 2 pi v(J), v(J)
 * being the d bits of J reversed behind the binary point; the signal enters in natural order, leaf J is the transform
 * at frequency v(J) N, and nobody puts the leaves in order. Backward is decimation in time from that order: blocks S_J
 * of h places are joined to S[n] = S_2J[n] + w S_(2J+1)[n], S[n + h] = the difference, w = e^(-i pi n / h).
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

/* cos and tan of pi k / 64, 0 <= k < 32; k is known when this is compiled. */
__device__ __forceinline__ float cos_of(int k) {
    switch (k) {
    case 0:
        return 1.0f;
    case 1:
        return 0.99879545620517241f;
    case 2:
        return 0.99518472667219693f;
    case 3:
        return 0.98917650996478101f;
    case 4:
        return 0.98078528040323043f;
    case 5:
        return 0.97003125319454397f;
    case 6:
        return 0.95694033573220882f;
    case 7:
        return 0.94154406518302081f;
    case 8:
        return 0.92387953251128674f;
    case 9:
        return 0.90398929312344334f;
    case 10:
        return 0.88192126434835505f;
    case 11:
        return 0.85772861000027212f;
    case 12:
        return 0.83146961230254524f;
    case 13:
        return 0.80320753148064494f;
    case 14:
        return 0.77301045336273699f;
    case 15:
        return 0.74095112535495911f;
    case 16:
        return 0.70710678118654757f;
    case 17:
        return 0.67155895484701833f;
    case 18:
        return 0.63439328416364549f;
    case 19:
        return 0.59569930449243347f;
    case 20:
        return 0.55557023301960229f;
    case 21:
        return 0.51410274419322166f;
    case 22:
        return 0.47139673682599781f;
    case 23:
        return 0.4275550934302822f;
    case 24:
        return 0.38268343236508984f;
    case 25:
        return 0.33688985339222005f;
    case 26:
        return 0.29028467725446233f;
    case 27:
        return 0.24298017990326398f;
    case 28:
        return 0.19509032201612833f;
    case 29:
        return 0.14673047445536175f;
    case 30:
        return 0.09801714032956077f;
    default:
        return 0.049067674327418126f;
    }
}

__device__ __forceinline__ float tan_of(int k) {
    switch (k) {
    case 0:
        return 0.0f;
    case 1:
        return 0.049126849769467254f;
    case 2:
        return 0.098491403357164248f;
    case 3:
        return 0.14833598753834742f;
    case 4:
        return 0.19891236737965801f;
    case 5:
        return 0.25048696019130545f;
    case 6:
        return 0.3033466836073424f;
    case 7:
        return 0.35780572131452409f;
    case 8:
        return 0.41421356237309503f;
    case 9:
        return 0.47296477589131991f;
    case 10:
        return 0.53451113595079158f;
    case 11:
        return 0.59937693368192368f;
    case 12:
        return 0.66817863791929888f;
    case 13:
        return 0.74165054627203542f;
    case 14:
        return 0.82067879082866024f;
    case 15:
        return 0.90634716901914703f;
    case 16:
        return 1.0f;
    case 17:
        return 1.1033299757334758f;
    case 18:
        return 1.2185035255879764f;
    case 19:
        return 1.3483439134867199f;
    case 20:
        return 1.4966057626654889f;
    case 21:
        return 1.6683992055835071f;
    case 22:
        return 1.8708684117893888f;
    case 23:
        return 2.1143223575486401f;
    case 24:
        return 2.4142135623730949f;
    case 25:
        return 2.7948127724904768f;
    case 26:
        return 3.296558208938321f;
    case 27:
        return 3.9922237837700827f;
    case 28:
        return 5.0273394921258463f;
    case 29:
        return 6.7414524054149885f;
    case 30:
        return 10.153170387608842f;
    default:
        return 20.355467624987142f;
    }
}

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

/* The first LEVELS levels of the tree, over 2^LEVELS registers. Its root is x^N - 1, or x^N - i with a Quarter: there a
 * real signal x^2N + 1 lies folded in half, its second half as imaginary part. */
template <int LEVELS, bool Quarter = false, int L = 0> __device__ __forceinline__ void down_root(float2 *v) {
    if constexpr (L < LEVELS) {
        const int half = 1 << (LEVELS - L - 1);
#pragma unroll
        for (int i = 0; i < 1 << (LEVELS - 1); i++) {
            const int j = i / half, k = 2 * reversed(j & ~1, 5) + (Quarter ? 16 >> L : 0);
            float2 &a = v[2 * j * half + i % half], &b = v[2 * j * half + i % half + half];
            if (k == 0 && j == 0)
                plain_butterfly<false, false>(a, b);
            else if (k == 0)
                plain_butterfly<false, true>(a, b);
            else if (j % 2 == 0)
                butterfly<false, false>(a, b, cos_of(k), tan_of(k));
            else
                butterfly<false, true>(a, b, cos_of(k), tan_of(k));
        }
        down_root<LEVELS, Quarter, L + 1>(v);
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

/* 2^LEVELS leaves of a node back to places. */
template <int LEVELS, int S = 0> __device__ __forceinline__ void up_leaves(float2 *v) {
    if constexpr (S < LEVELS) {
        const int half = 1 << S;
#pragma unroll
        for (int i = 0; i < 1 << (LEVELS - 1); i++) {
            const int p = i % half, late = half > 1 && p >= half / 2;
            const int k = (late ? p - half / 2 : p) * (64 >> S);
            float2 &a = v[i / half * 2 * half + p], &b = v[i / half * 2 * half + p + half];
            if (k == 0 && !late)
                plain_butterfly<true, false>(a, b);
            else if (k == 0)
                plain_butterfly<true, true>(a, b);
            else if (!late)
                butterfly<true, false>(a, b, cos_of(k), tan_of(k));
            else
                butterfly<true, true>(a, b, cos_of(k), tan_of(k));
        }
        up_leaves<LEVELS, S + 1>(v);
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
template <int A, int B> struct tree {
    static const int P = 1 << A, T = 1 << B, N = P * T, ROW = T + 2;
    static const int shared = P * ROW; /* float2 */
    static const int down_turns = N / 2, up_turns = N / 2;

    static __device__ __forceinline__ void forward(float2 *v, float2 *s, int t, const float2 *__restrict__ turns) {
        down_root<A>(v);
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
template <int A> struct incomplete_tree {
    static const int P = 1 << A, T = 2 << A, N = P * T, ROW = T + 2;
    static const int shared = P * ROW;
    static const int down_turns = P * P / 2, parity_turns = P, up_turns = P * T / 2;

    static __device__ __forceinline__ void forward(float2 *v, float2 *s, int t, const float2 *__restrict__ turns) {
        down_root<A>(v);
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
