/*
 * Convolution and correlation of rows of halves by transforms on tensor cores. Contract: job.h.
 *
 * The transform has N = 256 R1 complex points, R1 = 8 or 16, and the roots e^(2 pi i (k + 1/4) / N): a product of
 * spectra is a product of polynomials modulo x^N - i. The real part of the result is frames 0 ... N - 1 of the whole
 * convolution, the imaginary part the N frames behind. A real row of N frames needs no zeros then, and the first and
 * the last step of the transform have half of the arithmetic. With the conjugated spectrum of the response the real
 * part is the correlation.
 *
 * Point m = 256 n1 + 16 n2 + n3, frequency k = k1 + R1 k2 + 16 R1 k3. A block of 8 warps computes 8192 / N rows that
 * share a response, and takes the next ones until there are none:
 *
 *      forward     n1 -> k1, n2 -> k2             each warp for two n3
 *      multiply    n3 -> k3, spectrum, k3 -> n3   each warp for two k2, in place
 *      inverse     k2 -> n2, k1 -> n1             each warp for two n3
 *
 * Each step multiplies by a matrix of roots. The accumulators of a product have the layout of the operand of the next
 * one, so that the points pass through shared memory twice, not five times. Every number is split into two halves
 * (tensor.cuh). The 16 x 16 matrices have a common scale with which their entries are halves within 2^-15.9: one
 * product for each half of the points. The matrix over n1, which contains the factors of n3, is split as well; the
 * samples are not, they are halves. One level of radix 2 of each transform of 16 points is done in floats before the
 * product (n2, k3) or after it (n3, k2), which halves the products.
 *
 * Range: a row is scaled by a power of two so that its largest magnitude is between 128 and 256, and a response so that
 * its magnitudes add up to at most 1. No number exceeds 256 sqrt(2 N) then, and a number that is 2^-20 of the largest
 * has the bits of its first half. The last step restores the scale in floats.
 *
 * What it buys over transforms in floats (chip.cu): 1.24 times the speed with 2048 frames and 1.15 with 4096 (64 x 768
 * rows, H200); nothing with 8192, where the matrices do not fit into the first-level cache (docs/experiments/jobs.md).
 */
#include "tensor.cuh"

#include "kernels/engine/async_copy.cuh"
#include "kernels/engine/rows.cuh"

#include "tensor_tables.cuh"

/* Blocks of a multiprocessor. Those of architecture 120 have less shared memory than one block takes; with the
 * registers of one block alone no kernel spills there. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 1200
#define TENSOR_RESIDENT 1
#else
#define TENSOR_RESIDENT 2
#endif

namespace {

enum {
    THREADS = 256,   /* of a block */
    POINTS = 8192,   /* of its rows at a time */
    TURNS = 4,       /* items whose rows are described */
    OWN_BYTES = 2048 /* of shared memory for the descriptions, at most */
};

/* A row of a block: point p is source[p] from `begin` to `end`, target[p] is written from `first` to `last`, with zeros
 * from `valued` on. */
struct block_row {
    const __half *source;
    __half *target;
    int begin, end, first, valued, last;
    int response;
    unsigned peak;                   /* bits of the largest magnitude that was loaded */
    bool whole_source, whole_target; /* all N points exist, in aligned units of 8 */
};

/* The complex numbers of a thread in a 16 x 16 tile: [column / 8][2 (row / 8) + column % 2] of row lane / 4 and column
 * 2 (lane % 4). */
struct tile {
    float re[2][4], im[2][4];
};

/* Transforms the columns of a tile after a multiplication by w[row / 8][column / 8], two factors each. The radix-2
 * level: with u = w0 z0 the sum is u + w1 z1, and the difference 2 u - sum. Swap: real and imaginary parts change
 * their roles, which makes it the inverse. */
template <bool Swap, int Halves>
__device__ __forceinline__ void transform_columns(tile &z, tile &d, const float4 (&w)[Halves][2], const dft &f) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float4 v0 = w[i / 2 % Halves][0], v1 = w[i / 2 % Halves][1];
        const float c0 = i % 2 ? v0.z : v0.x, s0 = i % 2 ? v0.w : v0.y;
        const float c1 = i % 2 ? v1.z : v1.x, s1 = i % 2 ? v1.w : v1.y;
        const float x = z.re[1][i], y = z.im[1][i];
        rotate<false>(z.re[0][i], z.im[0][i], c0, s0);
        const float u = z.re[0][i], v = z.im[0][i];
        z.re[0][i] = (u + x * c1) - y * s1;
        z.im[0][i] = (v + x * s1) + y * c1;
        z.re[1][i] = fmaf(2.0f, u, -z.re[0][i]);
        z.im[1][i] = fmaf(2.0f, v, -z.im[0][i]);
    }
#pragma unroll
    for (int o = 0; o < 2; o++) {
        unsigned h[4], l[4];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            split(z.re[o][2 * r], z.re[o][2 * r + 1], h[Swap ? 2 + r : r], l[Swap ? 2 + r : r]);
            split(z.im[o][2 * r], z.im[o][2 * r + 1], h[Swap ? r : 2 + r], l[Swap ? r : 2 + r]);
        }
        set_product(Swap ? d.im[o] : d.re[o], h, f.m[o][0], f.m[o][1]);
        set_product(Swap ? d.re[o] : d.im[o], h, f.m[o][2], f.m[o][3]);
        add_product(Swap ? d.im[o] : d.re[o], l, f.m[o][0], f.m[o][1]);
        add_product(Swap ? d.re[o] : d.im[o], l, f.m[o][2], f.m[o][3]);
    }
}

/* ---- Rows in shared memory --------------------------------------------------------------------------------------- */

/* Returns the place of the words of points n3 = 2 p, 2 p + 1 of the results of a row. */
template <class K> __device__ __forceinline__ int result_word(int p, int n1, int n2) {
    return p * (16 * K::R1) + (((n1 >> 3) * 2 + (n1 & 1)) * 2 + (n2 >> 3)) * 32 +
           ((((n1 >> 1) & 3) ^ (n2 >> 3) ^ ((p >> 2) << 1)) << 3) + (n2 & 7);
}

/* Describes row number r of an item. The items of a response follow one another. Rows with lengths are an exception,
 * because the last rows of each response may not exist: the items of all responses take turns there, so that every
 * block computes about as many existing rows. */
template <class K>
__device__ __forceinline__ void describe_row(block_row *to, const gck_tensor_job &a, int item, int r) {
    const bool in_turns = a.target.lengths;
    const int response = in_turns ? item % a.sharing.responses : item / a.per_response;
    const int index = (in_turns ? item / a.sharing.responses : item % a.per_response) * K::ROWS + r;
    const int row = sharing_row(a.sharing, response, index);
    block_row d = {};
    d.response = response;
    if (response < a.sharing.responses && row < a.sharing.rows) {
        const written_frames written = frames_to_write({a.target, 0}, row);
        d.source = (const __half *)a.source.data + row_start(a.source, row) + a.shift;
        d.target = (__half *)a.target.data + row_start(a.target, row) - a.lo;
        d.begin = within(-a.shift, K::N);
        d.end = within(row_frames(a.source, row) - a.shift, K::N);
        d.first = a.lo;
        d.valued = within(a.lo + written.valued, K::N);
        d.last = within(a.lo + written.end, K::N);
        d.whole_source = d.begin == 0 && d.end == K::N && (uintptr_t)d.source % 16 == 0;
        d.whole_target = d.first == 0 && d.valued == K::N && (uintptr_t)d.target % 16 == 0;
    }
    *to = d;
}

/* Loads 8 points of a row, with zeros in the place of points that do not exist. A shift by other than a multiple of 8
 * frames gives addresses that are no multiples of 16 bytes. */
template <class K> __device__ __forceinline__ void load_part(uint4 *to, const block_row &row, int point) {
    const bool inside = point >= row.begin && point + 8 <= row.end,
               outside = point + 8 <= row.begin || point >= row.end;
    if (outside || (inside && (uintptr_t)(row.source + point) % 16 == 0)) {
        copy_16(to, inside ? row.source + point : NULL, inside ? 16 : 0);
        return;
    }
    unsigned x[8];
#pragma unroll
    for (int j = 0; j < 8; j++)
        x[j] = load_16_if(row.source + point + j, point + j >= row.begin && point + j < row.end);
    *to = make_uint4(x[0] | x[1] << 16, x[2] | x[3] << 16, x[4] | x[5] << 16, x[6] | x[7] << 16);
}

/* Begins to load the rows of an item. Thread t loads units t, t + 256, ... . */
template <class K> __device__ __forceinline__ void load_rows(uint4 *to, const block_row *rows) {
    const int tid = thread_of_phase();
    to += source_unit(tid);
#pragma unroll 1
    for (int r = 0; r < K::ROWS; r++, to += K::R1 / 8 * THREADS) {
        const block_row &row = rows[r];
        const bool whole = row.whole_source;
#pragma unroll
        for (int i = 0; i < K::R1 / 8; i++)
            if (whole)
                copy_16(to + THREADS * i, row.source + 8 * (tid + i * THREADS), 16);
            else
                load_part<K>(to + THREADS * i, row, 8 * (tid + i * THREADS));
    }
}

/* Finds the largest magnitude of each row among the units that this thread has loaded. */
template <class K> __device__ __forceinline__ void find_peaks(const uint4 *from, block_row *rows) {
    const int tid = thread_of_phase();
    from += source_unit(tid);
#pragma unroll
    for (int r = 0; r < K::ROWS; r++) {
        unsigned peak = 0;
#pragma unroll
        for (int i = 0; i < K::R1 / 8; i++)
            peak = max(peak, peak_of(from[(r * (K::R1 / 8) + i) * THREADS]));
        peak = largest_of_warp(peak);
        if (tid % 32 == 0)
            atomicMax(&rows[r].peak, peak);
    }
}

/* Stores those of 8 points of a row that are frames of the target. */
template <class K> __device__ __forceinline__ void store_part(const block_row &row, int point, uint4 v) {
    if (point >= row.first && point + 8 <= row.valued && (uintptr_t)(row.target + point) % 16 == 0) {
        *(uint4 *)(row.target + point) = v;
        return;
    }
    const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const unsigned short bits = (unsigned short)(words[j / 2] >> 16 * (j % 2));
        if (point + j >= row.first && point + j < row.last)
            row.target[point + j] = __ushort_as_half(point + j < row.valued ? bits : (unsigned short)0);
    }
}

/* Stores the results of an item. */
template <class K> __device__ __forceinline__ void store_rows(const unsigned *from, const block_row *rows) {
    const int tid = thread_of_phase();
    from += result_word<K>(4 * (tid & 1), tid / 32, (tid >> 1) & 15);
#pragma unroll 1
    for (int r = 0; r < K::ROWS; r++, from += K::N / 2) {
        const block_row &row = rows[r];
        const bool whole = row.whole_target;
#pragma unroll
        for (int i = 0; i < K::R1 / 8; i++) {
            const int point = 8 * (tid + i * THREADS);
            const unsigned *w = from + 128 * i;
            const uint4 v = make_uint4(w[0], w[16 * K::R1], w[32 * K::R1], w[48 * K::R1]);
            if (whole)
                *(uint4 *)(row.target + point) = v;
            else
                store_part<K>(row, point, v);
        }
    }
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

/* Loads the samples of two n3 as operands, scaled: b[element][n2 / 8][pair of n1]. */
template <class K>
__device__ __forceinline__ void load_samples(unsigned (&b)[2][2][K::R1 / 8], const unsigned *from, int warp,
                                             int scale) {
    const unsigned factor = (unsigned)scale << 10 | (unsigned)scale << 26, which = warp >> 2 ? 0x7632 : 0x5410;
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
        for (int i = 0; i < K::R1 / 8; i++) {
            const unsigned *a = from + (8 * i * 32 + 16 * j) * 4;
            const uint2 v0 = *(const uint2 *)a, v1 = *(const uint2 *)(a + 32 * 4);
            b[0][j][i] = multiply_halves(__byte_perm(v0.x, v1.x, which), factor);
            b[1][j][i] = multiply_halves(__byte_perm(v0.y, v1.y, which), factor);
        }
}

/* n1 -> k1 of the samples of element e. R1 = 8: a product contains the real and the imaginary parts of one tile, and
 * both halves of the matrix; the rows of a tile are those of two elements then. */
template <class K>
__device__ __forceinline__ void transform_samples(tile &c, const unsigned (&m1)[K::M1][4],
                                                  const unsigned (&b)[2][2][K::R1 / 8], int e) {
    if constexpr (K::R1 == 8) {
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                float v[4];
                set_product(v, m1[h], b[h][j][0], b[h][j][0]);
                c.re[j][2 * h] = v[0], c.re[j][2 * h + 1] = v[1];
                c.im[j][2 * h] = v[2], c.im[j][2 * h + 1] = v[3];
            }
    } else {
#pragma unroll
        for (int j = 0; j < 2; j++) {
            set_product(c.re[j], m1[4 * e], b[e][j][0], b[e][j][1]);
            set_product(c.im[j], m1[4 * e + 2], b[e][j][0], b[e][j][1]);
            add_product(c.re[j], m1[4 * e + 1], b[e][j][0], b[e][j][1]);
            add_product(c.im[j], m1[4 * e + 3], b[e][j][0], b[e][j][1]);
        }
    }
}

/* Multiplies the tiles of two n3 by the factors of n3 k2, and stores them as units of the next step. */
template <class K> __device__ __forceinline__ void exchange_forward(uint4 *to, tile (&d)[K::TILES], const float4 *t2) {
    constexpr bool both = K::R1 == 8; /* both columns are rows of one tile */
#pragma unroll
    for (int j = 0; j < 2; j++) {
        const float4 w0 = t2[j * 4], w1 = t2[8 + j * 4];
#pragma unroll
        for (int o = 0; o < (both ? 1 : 2); o++) {
            uint4 hi, lo;
#pragma unroll
            for (int w = 0; w < 2; w++) {
                const int q = both ? w : o, i0 = both ? w : 2 * w + o, i1 = both ? 2 + w : i0;
                float r0 = d[0].re[j][i0], m0 = d[0].im[j][i0];
                float r1 = d[K::TILES - 1].re[j][i1], m1 = d[K::TILES - 1].im[j][i1];
                rotate<false>(r0, m0, q ? w0.z : w0.x, q ? w0.w : w0.y);
                rotate<false>(r1, m1, q ? w1.z : w1.x, q ? w1.w : w1.y);
                split(r0, r1, w ? hi.y : hi.x, w ? lo.y : lo.x);
                split(m0, m1, w ? hi.w : hi.z, w ? lo.w : lo.z);
            }
            uint4 *const at = to + j * (64 * K::R1) + (both ? 0 : 2 * o) * 8;
            at[0] = hi;
            at[(both ? 2 : 16) * 8] = lo;
        }
    }
}

/* n1 -> k1, n2 -> k2. */
template <class K>
__device__ __forceinline__ void transform_forward(const uint4 *source, uint4 *units, const uint4 *small,
                                                  const uint4 *table, const block_row *rows) {
    const int tid = thread_of_phase(), lane = tid % 32, warp = tid / 32, g = lane / 4, t = lane % 4;
    unsigned m1[K::M1][4];
    float4 t1[K::R1 / 8][2];
    dft f;
    load_dft(f, small + K::DFT + lane, small + K::DFT + 32 + lane);
#pragma unroll
    for (int i = 0; i < K::M1; i++)
        put(m1[i], load_table(table + K::FIRST + K::matrix_of(n3_of(warp, i / (K::M1 / 2)), i % (K::M1 / 2)) + lane));
#pragma unroll
    for (int i = 0; i < K::R1 / 4; i++)
        t1[i / 2][i % 2] = load_table((const float4 *)table + K::TWIST + i * 32 + lane);
    const int s = (t & 1) | (t >> 1) << 2;
    const unsigned *from =
        (const unsigned *)source + (2 * t * 32 + ((2 * g + ((warp & 3) >> 1)) ^ s)) * 4 + 2 * (warp & 1);
    const float4 *t2 = (const float4 *)small + warp * 16 + t;
    uint4 *to = units + t * (16 * K::R1) + ((g >> 1) * 4 + (warp >> 2)) * 8 + (((warp & 3) ^ t) | (g & 1) << 2);
#pragma unroll 1
    for (int r = 0; r < K::ROWS; r++, from += K::N / 2, to += K::N / 2) {
        unsigned b[2][2][K::R1 / 8];
        tile d[K::TILES];
        load_samples<K>(b, from, warp, scale_of_row(rows[r].peak));
#pragma unroll
        for (int e = 0; e < K::TILES; e++) {
            tile c;
            transform_samples<K>(c, m1, b, e);
            transform_columns<false>(c, d[e], t1, f);
        }
        exchange_forward<K>(to, d, t2);
    }
}

/* n3 -> k3 of tile b of a row; units: those of this thread. */
template <class K>
__device__ __forceinline__ void transform_units(tile &d, const uint4 *units, int b, const dft &after) {
    float re[2][4], im[2][4];
#pragma unroll
    for (int part = 0; part < 2; part++)
#pragma unroll
        for (int o = 0; o < 2; o++) {
            unsigned a[4];
            put(a, units[K::R1 == 8 ? (2 * part + o) * 8 : (16 * part + 2 * b + o) * 8]);
            if (part) {
                add_product(re[o], a, after.m[o][0], after.m[o][1]);
                add_product(im[o], a, after.m[o][2], after.m[o][3]);
            } else {
                set_product(re[o], a, after.m[o][0], after.m[o][1]);
                set_product(im[o], a, after.m[o][2], after.m[o][3]);
            }
        }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        d.re[0][i] = re[0][i] + re[1][i], d.re[1][i] = re[0][i] - re[1][i];
        d.im[0][i] = im[0][i] + im[1][i], d.im[1][i] = im[0][i] - im[1][i];
    }
}

/* Multiplies the tiles of two k2 by the conjugated factors of n3 k2, and stores them as units of the last step. */
template <class K> __device__ __forceinline__ void exchange_inverse(uint4 *to, tile (&y)[K::TILES], const float4 *t2) {
    constexpr bool both = K::R1 == 8;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        const float4 w0 = t2[j * 4], w1 = t2[8 + j * 4];
#pragma unroll
        for (int r = 0; r < (both ? 1 : 2); r++)
#pragma unroll
            for (int b = 0; b < 2; b++) {
                const int i0 = 2 * r + b, i1 = both ? 2 + b : i0;
                float r0 = y[0].re[j][i0], m0 = y[0].im[j][i0];
                float r1 = y[K::TILES - 1].re[j][i1], m1 = y[K::TILES - 1].im[j][i1];
                rotate<true>(r0, m0, b ? w0.z : w0.x, b ? w0.w : w0.y);
                rotate<true>(r1, m1, b ? w1.z : w1.x, b ? w1.w : w1.y);
                uint4 v;
                split(r0, r1, v.x, v.z);
                split(m0, m1, v.y, v.w);
                to[(16 * r + 2 * b + j) * 8] = v;
            }
    }
}

/* n3 -> k3, spectrum, k3 -> n3, in place. */
template <class K>
__device__ __forceinline__ void multiply_by_spectrum(uint4 *units, const uint4 *small, const float4 *spectrum) {
    const int tid = thread_of_phase(), lane = tid % 32, warp = tid / 32, g = lane / 4, t = lane % 4;
    const float4 *t2 = (const float4 *)small + 128 + warp * 16 + t;
    const uint4 *matrices = small + K::DFT + lane;
    dft before, after;
    load_dft(before, matrices, matrices + 32);
    load_dft(after, matrices, matrices + 64);
    spectrum += warp * (K::TILES * 128) + lane;
    units += warp * (16 * K::R1) + (g >> 1) * 32 + ((t ^ (warp & 3)) | (g & 1) << 2);
    float4 h[K::TILES][2][2]; /* [k2][row / 8][k3 / 8] */
#pragma unroll
    for (int i = 0; i < K::TILES * 4; i++)
        h[i / 4][i / 2 % 2][i % 2] = load_spectrum(spectrum + i * 32);
#pragma unroll 1
    for (int r = 0; r < K::ROWS; r++, units += K::N / 2) {
        tile y[K::TILES];
#pragma unroll
        for (int b = 0; b < K::TILES; b++) {
            tile d;
            transform_units<K>(d, units, b, after);
            transform_columns<true>(d, y[b], h[b], before);
        }
        __syncwarp(); /* all lanes have read what the stores overwrite */
        exchange_inverse<K>(units, y, t2);
    }
}

/* k2 -> n2 of element e, with the factors of k1 n2. units: those of this thread. */
template <class K>
__device__ __forceinline__ void inverse_columns(tile &z, const uint4 *units, const unsigned (&f)[2][4],
                                                const float4 (&t1)[2][K::R1 / 8]) {
#pragma unroll
    for (int c = 0; c < K::R1 / 8; c++) {
        const uint4 v0 = units[c * 128], v1 = units[64 * K::R1 + c * 128];
        float even[4], odd[4];
        set_product(even, f[0], v0.x, v0.y);
        set_product(odd, f[1], v1.x, v1.y);
        add_product(even, f[0], v0.z, v0.w);
        add_product(odd, f[1], v1.z, v1.w);
#pragma unroll
        for (int b = 0; b < 2; b++) {
            z.re[c][b] = even[b] + odd[b], z.re[c][2 + b] = even[b] - odd[b];
            z.im[c][b] = even[2 + b] + odd[2 + b], z.im[c][2 + b] = even[2 + b] - odd[2 + b];
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float4 w = t1[r][c];
            rotate<true>(z.re[c][2 * r], z.im[c][2 * r], w.x, w.y);
            rotate<true>(z.re[c][2 * r + 1], z.im[c][2 * r + 1], w.z, w.w);
        }
    }
}

/* k1 -> n1 of element e, of which only the real parts are computed. */
template <class K>
__device__ __forceinline__ void inverse_samples(float (&y)[K::R1 / 8][4], const tile &z, const unsigned (&m1)[K::M1][4],
                                                int e) {
    unsigned h[2][4], l[2][4]; /* [real, imaginary]; R1 = 8: both in [0] */
#pragma unroll
    for (int c = 0; c < K::R1 / 8; c++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            constexpr int im = K::R1 / 8 - 1;
            const int at = 2 * c + r, to = K::R1 == 8 ? 2 + r : at;
            split(z.re[c][2 * r], z.re[c][2 * r + 1], h[0][at], l[0][at]);
            split(z.im[c][2 * r], z.im[c][2 * r + 1], h[im][to], l[im][to]);
        }
    if constexpr (K::R1 == 8) {
        set_product(y[0], h[0], m1[e][0], m1[e][1]);
        add_product(y[0], l[0], m1[e][0], m1[e][1]);
        add_product(y[0], h[0], m1[e][2], m1[e][3]);
    } else {
#pragma unroll
        for (int part = 0; part < 6; part++) /* hi hi, lo hi, hi lo; of the real and the imaginary parts */
#pragma unroll
            for (int n = 0; n < 2; n++) {
                const int imaginary = part & 1, i = 4 * e + 2 * (part >> 2) + imaginary;
                const unsigned(&a)[4] = part >> 1 == 1 ? l[imaginary] : h[imaginary];
                if (part)
                    add_product(y[n], a, m1[i][2 * n], m1[i][2 * n + 1]);
                else
                    set_product(y[n], a, m1[i][2 * n], m1[i][2 * n + 1]);
            }
    }
}

/* k2 -> n2, k1 -> n1; the results are halves in `results`. scale: that of the response. */
template <class K>
__device__ __forceinline__ void transform_inverse(const uint4 *units, unsigned *results, const uint4 *small,
                                                  const uint4 *table, const block_row *rows, const float *scale) {
    const int tid = thread_of_phase(), lane = tid % 32, warp = tid / 32, g = lane / 4, t = lane % 4;
    unsigned f[2][4], m1[K::M1][4];
    float4 t1[2][K::R1 / 8]; /* [n2 / 8][k1 / 8] */
    put(f[0], small[K::DFT + 96 + lane]);
    put(f[1], small[K::DFT + 128 + lane]);
#pragma unroll
    for (int i = 0; i < K::M1; i++)
        put(m1[i], load_table(table + K::LAST + K::matrix_of(2 * warp, 0) + i * 32 + lane));
#pragma unroll
    for (int i = 0; i < K::R1 / 4; i++)
        t1[i / (K::R1 / 8)][i % (K::R1 / 8)] = load_table((const float4 *)table + K::UNTWIST + i * 32 + lane);
    unsigned *const word[2] = {results + result_word<K>(warp, 2 * t, g), results + result_word<K>(warp, 2 * t, g + 8)};
    units += t * (16 * K::R1) + ((g >> 1) * 4 + (warp & 1) * 2) * 8 + (((warp >> 1) ^ t) | (g & 1) << 2);
#pragma unroll 1
    for (int r = 0; r < K::ROWS; r++, units += K::N / 2) {
        float y[2][K::R1 / 8][4];
#pragma unroll
        for (int e = 0; e < 2; e++) {
            tile z;
            inverse_columns<K>(z, units + 8 * e, f, t1);
            inverse_samples<K>(y[e], z, m1, e);
        }
        const float unscale = *scale * __uint_as_float((unsigned)(142 - scale_of_row(rows[r].peak)) << 23);
#pragma unroll
        for (int n = 0; n < K::R1 / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                word[i >> 1][r * (K::N / 2) + n * 128 + (i & 1) * 64] =
                    pack_halves(unscale * y[0][n][i], unscale * y[1][n][i]);
    }
}

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

/* Returns whether a row of a block has a frame that is written. */
template <class K> __device__ __forceinline__ bool is_written(const block_row *rows) {
    bool any = false;
#pragma unroll
    for (int r = 0; r < K::ROWS; r++)
        any |= rows[r].last > rows[r].first;
    return any;
}

/* An item is K::ROWS rows that share a response. While the block multiplies an item, it loads the samples of the next
 * one, whose rows it has described before. Each thread counts its items in shared memory, because the steps leave no
 * register free. */
template <class K>
__global__ void __launch_bounds__(THREADS, TENSOR_RESIDENT)
    tensor_convolve(const __grid_constant__ gck_tensor_job a, int items) {
#if __CUDA_ARCH__ >= 800
    extern __shared__ __align__(128) uint4 shared[];
    __shared__ block_row described[TURNS][K::ROWS];
    __shared__ volatile int turns[THREADS];
    uint4 *units = shared, *buffer = units + POINTS / 2, *small = buffer + 2 * (POINTS / 8);
    const uint4 *table = (const uint4 *)a.twiddles;
    const auto turn = [&](int ahead) { return turns[thread_of_phase()] + ahead; };
    const auto item_of = [](int turn) { return (int)blockIdx.x + turn * (int)gridDim.x; };
    const auto rows_of = [&](int turn) { return described[turn % TURNS]; };
    const auto buffer_of = [&](int turn) { return buffer + turn % 2 * (POINTS / 8); };
    for (int i = threadIdx.x; i < K::SMALL; i += THREADS)
        small[i] = table[i];
    turns[threadIdx.x] = 0;
    pdl_trigger();
    pdl_wait();
    if (threadIdx.x < K::ROWS)
        describe_row<K>(&described[0][threadIdx.x], a, blockIdx.x, threadIdx.x);
    __syncthreads();
    load_rows<K>(buffer, described[0]);
    wait_for_copies();
    find_peaks<K>(buffer, described[0]);
    __syncthreads();
#pragma unroll 1
    for (; item_of(turn(0)) < items; turns[thread_of_phase()] = turn(1)) {
        const bool written = is_written<K>(rows_of(turn(0)));
        if (threadIdx.x < K::ROWS)
            describe_row<K>(&rows_of(turn(1))[threadIdx.x], a, min(item_of(turn(1)), items), threadIdx.x);
        if (written)
            transform_forward<K>(buffer_of(turn(0)), units, small, table, rows_of(turn(0)));
        __syncthreads();
        load_rows<K>(buffer_of(turn(1)), rows_of(turn(1)));
        if (written)
            multiply_by_spectrum<K>(units, small,
                                    (const float4 *)a.spectra + (int64_t)rows_of(turn(0))->response * (K::N / 2));
        __syncthreads();
        if (written)
            transform_inverse<K>(units, (unsigned *)buffer_of(turn(0)), small, table, rows_of(turn(0)),
                                 a.scales + rows_of(turn(0))->response);
        wait_for_copies();
        find_peaks<K>(buffer_of(turn(1)), rows_of(turn(1)));
        __syncthreads();
        if (written)
            store_rows<K>((const unsigned *)buffer_of(turn(0)), rows_of(turn(0)));
    }
#endif
}

__device__ __forceinline__ float2 turn_of(float half_turns) {
    float s, c;
    sincospif(half_turns, &s, &c);
    return make_float2(c, s);
}

/* Returns the frequency of complex number i of a spectrum, in the order of the threads of multiply_by_spectrum. */
template <class K> __device__ __forceinline__ int frequency_of(int i) {
    const int lane = i >> 1 & 31, j = i >> 6 & 1, r = i >> 7 & 1, rest = i >> 8, g = lane / 4, t = lane % 4;
    const int b = K::R1 == 8 ? r : rest & 1, warp = K::R1 == 8 ? rest : rest / 2;
    const int k1 = K::R1 == 8 ? g : 8 * r + g, k2 = slot_of(2 * warp + b), k3 = 8 * j + 2 * t + (i & 1);
    return k1 + K::R1 * k2 + 16 * K::R1 * k3;
}

/* Returns the sum of a value of each thread, in an order that is always the same. parts: 264 floats. */
__device__ __forceinline__ float sum_of_block(float value, float *parts) {
    const int tid = threadIdx.x;
    float sum = 0.0f;
    parts[tid] = value;
    __syncthreads();
    for (int i = 0; i < 32 && tid < 8; i++)
        sum += parts[tid + 8 * i];
    if (tid < 8)
        parts[THREADS + tid] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int i = 0; i < 8; i++)
        sum += parts[THREADS + i];
    return sum;
}

/* Transforms N points in steps of radix 2; the frequencies are in bit-reversed order. roots: N. */
template <int N> __device__ __forceinline__ void transform_response(float2 *v, float2 *roots) {
    for (int i = threadIdx.x; i < N; i += THREADS) {
        const int size = i ? 1 << (31 - __clz(i)) : 1;
        roots[i] = turn_of((float)(i - size) / (float)size);
    }
    for (int size = N / 2; size; size /= 2) {
        __syncthreads();
        for (int i = threadIdx.x; i < N / 2; i += THREADS) {
            const int in = i % size, at = 2 * i - in;
            const float2 a = v[at], b = v[at + size], w = roots[size + in];
            const float x = a.x - b.x, y = a.y - b.y;
            v[at] = make_float2(a.x + b.x, a.y + b.y);
            v[at + size] = make_float2(x * w.x - y * w.y, x * w.y + y * w.x);
        }
    }
    __syncthreads();
}

/* A block transforms a response. sign: -1 conjugates its spectrum. */
template <class K>
__global__ void __launch_bounds__(THREADS)
    tensor_spectra(const __grid_constant__ gck_rows response, int taps, float sign, float2 *spectra, float *scales) {
    extern __shared__ __align__(16) float2 points[];
    __shared__ float parts[THREADS + 8];
    pdl_trigger();
    pdl_wait();
    const int row = blockIdx.x, held = within(row_frames(response, row), min(taps, K::N));
    float magnitude = 0.0f;
    with_samples(response, row_start(response, row), 0, [&](auto h) {
        for (int m = threadIdx.x; m < K::N; m += THREADS) {
            points[m].x = m < held ? sample_of(h[m]) : 0.0f;
            magnitude += fabsf(points[m].x);
        }
    });
    const float sum = sum_of_block(magnitude, parts);
    const unsigned power = min(max(__float_as_uint(sum) >> 23, 30u), 250u);
    const float scale = __uint_as_float((253 - power) << 23), gain = scale * (0.25f / TENSOR_SCALE);
    for (int m = threadIdx.x; m < K::N; m += THREADS) {
        const float x = points[m].x * gain;
        const float2 w = turn_of((float)m * (0.5f / K::N));
        points[m] = make_float2(x * w.x, x * w.y);
    }
    transform_response<K::N>(points, points + K::N);
    for (int i = threadIdx.x; i < K::N; i += THREADS) {
        const float2 v = points[__brev((unsigned)frequency_of<K>(i)) >> (32 - K::LOG)];
        spectra[(int64_t)row * K::N + i] = make_float2(v.x, sign * v.y);
    }
    if (threadIdx.x == 0)
        scales[row] = 1.0f / scale;
}

/* The launchers of one size. */
template <class K> struct launchers {
    static const int spectra_bytes = 2 * K::N * (int)sizeof(float2);

    static cudaError_t load() {
        const cudaError_t err = load_kernel(tensor_convolve<K>, K::BYTES);
        return err ? err : load_kernel(tensor_spectra<K>, spectra_bytes);
    }

    static cudaError_t spectra(const gck_tensor_job *job, const gck_rows *response, int64_t taps, cudaStream_t stream) {
        const int count = job->sharing.responses, used = (int)(taps < K::N ? taps : K::N);
        return launch_dependent(tensor_spectra<K>, dim3((unsigned)count), THREADS, spectra_bytes, stream, *response,
                                used, job->reflect ? -1.0f : 1.0f, job->spectra, job->scales);
    }

    static cudaError_t convolve(const gck_tensor_job *job, cudaStream_t stream) {
        return launch_dependent(tensor_convolve<K>, dim3(job->blocks), THREADS, K::BYTES, stream, *job,
                                job->sharing.responses * job->per_response);
    }
};

} // namespace

gck_tensor_sizes gck_tensor_query(int size) {
    typedef tensor_layout<8> small;
    typedef tensor_layout<16> large;
    return size ? gck_tensor_sizes{large::N, large::TABLE * 2, large::BYTES + OWN_BYTES, large::ROWS}
                : gck_tensor_sizes{small::N, small::TABLE * 2, small::BYTES + OWN_BYTES, small::ROWS};
}

void gck_tensor_twiddles(int64_t size, float2 *twiddles) {
    if (size)
        write_tensor_tables<tensor_layout<16>>((uint4 *)twiddles);
    else
        write_tensor_tables<tensor_layout<8>>((uint4 *)twiddles);
}

cudaError_t gck_tensor_load(int shared_bytes_max) {
    cudaError_t err = cudaSuccess;
    if (tensor_layout<8>::BYTES + OWN_BYTES <= shared_bytes_max)
        err = launchers<tensor_layout<8>>::load();
    if (!err && tensor_layout<16>::BYTES + OWN_BYTES <= shared_bytes_max)
        err = launchers<tensor_layout<16>>::load();
    return err;
}

cudaError_t gck_tensor_convolve(int size, const gck_tensor_job *job, const gck_rows *response, int64_t taps,
                                cudaStream_t stream) {
    typedef launchers<tensor_layout<8>> small;
    typedef launchers<tensor_layout<16>> large;
    const cudaError_t err =
        size ? large::spectra(job, response, taps, stream) : small::spectra(job, response, taps, stream);
    return err ? err : size ? large::convolve(job, stream) : small::convolve(job, stream);
}
