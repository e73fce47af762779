/*
 * Direct convolution; compiled once for each instruction set, with GC_SIMD naming it.
 *
 * A vector holds LANES outputs that lie a segment apart, not side by side:
 *
 *      lane 0: x[0] x[1] x[2] ...        row i of the transposed input = x[i], x[SEGMENT + i], x[2 SEGMENT + i], ...
 *      lane 1: x[SEGMENT] ...            y_i += h[k] row_(i-k): every load aligned, every lane busy
 *
 * ROWS output rows stay in registers while UNROLL taps at a time pass over them; row m of the input serves up to UNROLL
 * products before the next one is loaded, so that loads are a small part of the instructions. The transpose costs two
 * moves a sample and pays from a few dozen taps on.
 */
#include "simd.h"

#include "../core/memory.h"
#include "fft_kernels.h"
#include "vector.h"

#include <string.h>

#if defined(__AVX512F__) || defined(__aarch64__)
enum { ROWS = 24 }; /* of 32 registers */
#elif defined(__AVX2__)
enum { ROWS = 10 };
#else
enum { ROWS = 8 };
#endif

enum { UNROLL = 4, SEGMENT = 20 * ROWS, TAPS = 256 }; /* what a block reads stays in the first-level cache */

typedef double wide __attribute__((vector_size(LANES * 8)));

/* The value, in a register here and now: left alone, the compiler moves products far from where they stand and runs out
 * of registers for the sums. */
EXPANDED vec pinned(vec v) {
#if defined(__x86_64__)
    __asm__ volatile("" : "+v"(v));
#elif defined(__aarch64__)
    __asm__ volatile("" : "+w"(v));
#endif
    return v;
}

/* UNROLL taps, `step` apart: acc[r] += sum over u of h[u step] x[r + u step]. A row of the input serves as many sums,
 * which come up again only after UNROLL x step others: with a step of 1 each waits for its last product. */
EXPANDED void some_taps(vec *acc, const vec *x, const float *h, int step) {
    vec tap[UNROLL];
#pragma GCC unroll 4
    for (int u = 0; u < UNROLL; u++)
        tap[u] = broadcast(h[u * step]);
#pragma GCC unroll 40
    for (int m = 0; m < ROWS + (UNROLL - 1) * step; m++) {
        vec row = x[m];
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++)
            if (m - u * step >= 0 && m - u * step < ROWS)
                acc[m - u * step] = pinned(acc[m - u * step] + tap[u] * row);
    }
}

/* `taps` (a multiple of UNROLL) reversed taps over ROWS rows: y[r] = sum over j of h[j] x[r + j]. */
static void rows(const vec *x, const float *h, int64_t taps, vec *y) {
    vec acc[ROWS];
    int64_t j = 0;
#pragma GCC unroll 24
    for (int r = 0; r < ROWS; r++)
        acc[r] = (vec){0};
    for (; j + UNROLL * UNROLL <= taps; j += UNROLL * UNROLL)
        for (int s = 0; s < UNROLL; s++)
            some_taps(acc, x + j + s, h + j + s, UNROLL);
    for (; j < taps; j += UNROLL)
        some_taps(acc, x + j, h + j, 1);
#pragma GCC unroll 24
    for (int r = 0; r < ROWS; r++)
        y[r] = acc[r];
}

/* LANES rows of what stands transposed: LANES stretches of the signal, `length` apart. */
EXPANDED void gather_rows(const float *x, int64_t length, vec *to) {
    vec v[LANES];
#pragma GCC unroll 16
    for (int l = 0; l < LANES; l++)
        v[l] = load(x + l * length);
    transpose(v);
#pragma GCC unroll 16
    for (int l = 0; l < LANES; l++)
        to[l] = v[l];
}

/* LANES x `length` outputs for at most TAPS taps. */
static void block(const float *x, const float *h, int64_t taps, int64_t length, vec *out) {
    vec in[SEGMENT + TAPS + UNROLL + LANES];
    float reversed[TAPS + UNROLL];
    int64_t padded = gc_round_up(taps, UNROLL), needed = length + taps - 1, i = 0;
    memset(reversed, 0, sizeof reversed);
    for (int64_t k = 0; k < taps; k++)
        reversed[taps - 1 - k] = h[k];
    const float *first = x - (taps - 1);
    for (; i + LANES <= needed; i += LANES)
        gather_rows(first + i, length, in + i);
    for (; i < needed; i++) { /* what lies behind the last output is not ours to read */
        vec row;
#pragma GCC unroll 16
        for (int l = 0; l < LANES; l++)
            row[l] = first[i + l * length];
        in[i] = row;
    }
    for (; i < length + padded; i++)
        in[i] = (vec){0};
    for (i = 0; i < length; i += ROWS)
        rows(in + i, reversed, padded, out + i);
}

/* y += what stands transposed in out. */
static void scatter(vec *out, int64_t length, float *y) {
    int64_t i = 0;
    for (; i + LANES <= length; i += LANES) {
        transpose(out + i);
#pragma GCC unroll 16
        for (int l = 0; l < LANES; l++) {
            float *to = y + i + l * length;
            store(to, load(to) + out[i + l]);
        }
    }
    for (; i < length; i++)
        for (int l = 0; l < LANES; l++)
            y[i + l * length] += out[i][l];
}

/* LANES x `length` outputs, length being a multiple of ROWS up to SEGMENT. Sums of a few hundred products are good to
 * 128 dB in floats; the sums of those sums are kept in doubles, so that the error does not grow with the response. */
static void segment(const float *x, const float *h, int64_t taps, int64_t length, float *y) {
    vec out[SEGMENT];
    if (taps <= TAPS) {
        block(x, h, taps, length, out);
    } else {
        wide total[SEGMENT];
        memset(total, 0, (size_t)length * sizeof *total);
        for (int64_t k = 0; k < taps; k += TAPS) {
            block(x - k, h + k, gc_min(TAPS, taps - k), length, out);
            for (int64_t i = 0; i < length; i++)
                total[i] += __builtin_convertvector(out[i], wide);
        }
        for (int64_t i = 0; i < length; i++)
            out[i] = __builtin_convertvector(total[i], vec);
    }
    scatter(out, length, y);
}

/* Fewer outputs than fill the lanes: vectors along time, one tap after another. */
static void remainder_outputs(const float *x, const float *h, int64_t taps, float *y, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        wide total = {0};
        for (int64_t k = 0; k < taps; k += TAPS) {
            vec sum = {0};
            for (int64_t j = k; j < gc_min(taps, k + TAPS); j++)
                sum += h[j] * load(x + i - j);
            total += __builtin_convertvector(sum, wide);
        }
        store(y + i, load(y + i) + __builtin_convertvector(total, vec));
    }
    for (; i < n; i++) {
        double total = 0;
        for (int64_t k = 0; k < taps; k++)
            total += (double)h[k] * (double)x[i - k];
        y[i] += (float)total;
    }
}

static void direct(const float *x, const float *h, int64_t taps, float *y, int64_t n) {
    int64_t i = 0;
    for (int64_t length; (length = gc_min(SEGMENT, (n - i) / (LANES * ROWS) * ROWS)) > 0; i += LANES * length)
        segment(x + i, h, taps, length, y + i);
    remainder_outputs(x + i, h, taps, y + i, n - i);
}

static float multiply_add_loop(int64_t rounds, double *operations) {
    enum { SUMS = 12 };
    vec sum[SUMS], a = broadcast(0.999f), b = broadcast(0.001f);
    for (int i = 0; i < SUMS; i++)
        sum[i] = broadcast((float)i);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < SUMS; i++)
            sum[i] = sum[i] * a + b;
    }
    for (int i = 1; i < SUMS; i++)
        sum[0] += sum[i];
    *operations = 2.0 * SUMS * LANES * (double)rounds;
    return sum[0][0];
}

extern const gc_fft_kernels GC_FFT_SET;
extern gc_pcm_unpacker GC_PCM_UNPACK;
extern gc_pcm_packer GC_PCM_PACK;

const gc_simd GC_SIMD = {SET_NAME, direct, multiply_add_loop, &GC_FFT_SET, GC_PCM_UNPACK, GC_PCM_PACK};
