/*
 * The tables of rows/tensor.cu: matrices as operands of products, and factors between the steps, in the order in which
 * the threads of a warp read them. They are computed on the host in double precision. Included behind tensor.cuh.
 *
 * The factors of a step also contain the scales: the matrices of 16 points have TENSOR_SCALE, and all steps together
 * are unitary but for the square root of 2 that the real parts lack.
 */
#ifndef GC_KERNELS_TENSOR_TABLES_CUH
#define GC_KERNELS_TENSOR_TABLES_CUH

#include <math.h>
#include <string.h>

namespace {

/* With this factor 1, cos pi/8, cos pi/4 and sin pi/8 are halves within 2^-15.9. */
#define TENSOR_SCALE 1.860330105f

/* Sizes and places, in units of 16 bytes, for transforms of 256 R1 points. */
template <int R1_> struct tensor_layout {
    static const int R1 = R1_, N = 256 * R1, LOG = R1 == 8 ? 11 : 12;
    static const int ROWS = 8192 / N;                         /* of a block */
    static const int TILES = R1 / 8;                          /* of a warp, in a row */
    static const int PARTS = R1 == 8 ? 1 : 4, M1 = 2 * PARTS; /* operands of the first matrix, of one n3 and of two */
    static const int DFT = 256, SMALL = DFT + 5 * 32;         /* the part of the table in shared memory */
    static const int TWIST = SMALL, UNTWIST = TWIST + R1 / 4 * 32;
    static const int FIRST = UNTWIST + R1 / 4 * 32, LAST = FIRST + 16 * PARTS * 32, TABLE = LAST + 16 * PARTS * 32;
    static const int BYTES = (8192 / 2 + 2 * 1024 + SMALL) * 16;

    static __host__ __device__ constexpr int matrix_of(int n3, int part) {
        return (n3 * PARTS + part) * 32;
    }
};

/* Returns k2 of column s behind the step over n2, and n3 of column s behind the inverse step over k3. */
__host__ __device__ constexpr int slot_of(int s) {
    return 2 * (s & 7) + (s >> 3);
}

/* Returns n3 of element e of a warp in the first step. */
__host__ __device__ constexpr int n3_of(int warp, int e) {
    return 4 * (warp & 3) + (warp >> 2) + 2 * e;
}

struct complex_number {
    double re, im;
};

/* Returns e^(2 pi i turns) times `scale`. */
inline complex_number root_of(double turns, double scale) {
    const double angle = 2 * 3.14159265358979323846 * (turns - floor(turns));
    return {scale * cos(angle), scale * sin(angle)};
}

/* Returns two numbers rounded to halves. rest: returns the errors of this rounding as halves instead. */
inline unsigned half_words(const double *x, bool rest) {
    unsigned word = 0;
    for (int i = 0; i < 2; i++) {
        const double first = (double)__half2float(__float2half_rn((float)x[i]));
        const __half h = __float2half_rn((float)(rest ? x[i] - first : x[i]));
        word |= (unsigned)__half_as_ushort(h) << (16 * i);
    }
    return word;
}

/* Writes the operand of a 16 x 16 matrix, m(row, k) with adjacent k, for 32 threads: rows g and g + 8 of k from 2 t
 * on, and the same of k from 2 t + 8 on. rest(k): whether it is the second half of an entry. by_row: instead the words
 * of row g come first, as pairs of operands of 8 columns. */
template <typename Matrix, typename Rest> void write_matrix(uint4 *to, Matrix m, Rest rest, bool by_row) {
    for (int lane = 0; lane < 32; lane++) {
        unsigned word[4];
        for (int i = 0; i < 4; i++) {
            const int row = lane / 4 + 8 * (i & 1), k = 2 * (lane % 4) + 8 * (i >> 1);
            const double pair[2] = {m(row, k), m(row, k + 1)};
            word[i] = half_words(pair, rest(k));
        }
        to[lane] =
            by_row ? make_uint4(word[0], word[2], word[1], word[3]) : make_uint4(word[0], word[1], word[2], word[3]);
    }
}

/* Writes 8 columns of the DFT of 16 points as a real matrix: real parts of 8 points, then their imaginary parts. Its
 * roots are e^(2 pi i sign (in + in_shift) (out + out_shift) / 8). */
inline void write_dft(uint4 *to, double sign, double in_shift, double out_shift, bool by_row) {
    write_matrix(
        to,
        [=](int out, int in) {
            const complex_number w =
                root_of(sign * (in % 8 + in_shift) * (out % 8 + out_shift) / 8, (double)TENSOR_SCALE);
            return in < 8 ? (out < 8 ? w.re : w.im) : (out < 8 ? -w.im : w.re);
        },
        [](int) { return false; }, by_row);
}

/* Writes the first matrix of n3 forward, and the last one back, which has real results. */
template <class K> void write_edges(uint4 *table, int n3) {
    const double norm = 1 / sqrt((double)K::R1);
    for (int i = 0; i < K::PARTS; i++) {
        const bool eight = K::R1 == 8;
        const auto root = [=](int k1, int n1, double scale) {
            return root_of((k1 % K::R1 + 0.25) * (256 * (n1 % K::R1) + n3) / K::N, scale);
        };
        write_matrix(
            table + K::FIRST + K::matrix_of(n3, i),
            [=](int row, int k) {
                const complex_number w = root(row, k, 1);
                return (eight ? row >= 8 : i >= 2) ? w.im : w.re;
            },
            [=](int k) { return eight ? k >= 8 : i % 2 == 1; }, false);
        write_matrix(
            table + K::LAST + K::matrix_of(n3, i),
            [=](int n1, int k) {
                const complex_number w = root(k, n1, norm);
                return (eight ? k >= 8 : i % 2 == 1) ? w.im : w.re;
            },
            [=](int) { return i >= 2; }, true);
        if (eight) { /* rows 0 ... 7 only: the first halves of the entries, then the second ones */
            uint4 rest[32];
            write_matrix(
                rest,
                [=](int n1, int k) {
                    const complex_number w = root(k, n1, norm);
                    return k >= 8 ? w.im : w.re;
                },
                [](int) { return true; }, true);
            for (int lane = 0; lane < 32; lane++) {
                uint4 *to = table + K::LAST + K::matrix_of(n3, i) + lane;
                *to = make_uint4(to->x, to->y, rest[lane].x, rest[lane].y);
            }
        }
    }
}

inline uint4 factors_of(complex_number a, complex_number b) {
    const float x[4] = {(float)a.re, (float)a.im, (float)b.re, (float)b.im};
    uint4 v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* Writes the factors between the steps. */
template <class K> void write_factors(uint4 *table) {
    const double both = 1 / (4 * (double)TENSOR_SCALE), norm = 1 / sqrt((double)K::R1);
    const auto outer = [=](int k1, int n2, double scale) { return root_of(n2 * (k1 + 0.25) / (16 * K::R1), scale); };
    const auto inner = [=](int k2, int n3) { return root_of(n3 * k2 / 256.0, both); };
    for (int i = 0; i < 128; i++) {
        const int warp = i / 16, e = i / 8 % 2, s = i % 8 / 4 * 8 + i % 4 * 2, n3 = n3_of(warp, e);
        const int k2 = slot_of(2 * warp + e);
        table[i] = factors_of(inner(slot_of(s), n3), inner(slot_of(s + 1), n3));
        table[128 + i] = factors_of(inner(k2, slot_of(s)), inner(k2, slot_of(s + 1)));
    }
    for (int i = 0; i < K::R1 / 4 * 32; i++) {
        const int lane = i % 32, g = lane / 4, t = lane % 4, part = i / 32;
        const int k1 = 8 * (part / 2) + g, n2 = 8 * (part % 2) + 2 * t;
        table[K::TWIST + i] = factors_of(outer(k1, n2, norm), outer(k1, n2 + 1, norm));
        const int column = 8 * (part % K::TILES) + 2 * t, row = 8 * (part / K::TILES) + g;
        table[K::UNTWIST + i] = factors_of(outer(column, row, both), outer(column + 1, row, both));
    }
}

/* Writes the table of a size, in host memory. */
template <class K> void write_tensor_tables(uint4 *table) {
    write_factors<K>(table);
    write_dft(table + K::DFT, 1, 0, 0, true);           /* even frequencies, or even points */
    write_dft(table + K::DFT + 32, 1, 0, 0.5, true);    /* odd frequencies, the radix-2 level before */
    write_dft(table + K::DFT + 64, 1, 0.5, 0, true);    /* odd points, the radix-2 level behind */
    write_dft(table + K::DFT + 96, -1, 0, 0, false);    /* the inverse: even points */
    write_dft(table + K::DFT + 128, -1, 0.5, 0, false); /* odd points */
    for (int n3 = 0; n3 < 16; n3++)
        write_edges<K>(table, n3);
}

} // namespace

#endif
