/*
 * Direct convolution; compiled once for each instruction set, with GC_SIMD naming it.
 *
 * A vector holds LANES outputs that lie SEGMENT apart, not side by side:
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

enum { UNROLL = 4, SEGMENT = 20 * ROWS, TAPS = 256 };

typedef double wide __attribute__((vector_size(LANES * 8)));

/* `taps` (a multiple of UNROLL) reversed taps over ROWS rows: acc[r] += sum over j of h[j] x[r + j]. */
static void rows(const vec *x, const float *h, int64_t taps, vec *y) {
    vec acc[ROWS];
#pragma GCC unroll 24
    for (int r = 0; r < ROWS; r++)
        acc[r] = y[r];
    for (int64_t j = 0; j < taps; j += UNROLL) {
        vec tap[UNROLL];
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++)
            tap[u] = broadcast(h[j + u]);
#pragma GCC unroll 28
        for (int m = 0; m < ROWS + UNROLL - 1; m++) {
            vec row = x[j + m];
#pragma GCC unroll 4
            for (int u = 0; u < UNROLL; u++)
                if (m - u >= 0 && m - u < ROWS)
                    acc[m - u] += tap[u] * row;
        }
    }
#pragma GCC unroll 24
    for (int r = 0; r < ROWS; r++)
        y[r] = acc[r];
}

/* out += LANES x SEGMENT outputs for at most TAPS taps. */
static void block(const float *x, const float *h, int64_t taps, vec *out) {
    vec in[SEGMENT + TAPS + UNROLL];
    float reversed[TAPS + UNROLL];
    int64_t padded = gc_round_up(taps, UNROLL);
    memset(reversed, 0, sizeof reversed);
    for (int64_t k = 0; k < taps; k++)
        reversed[taps - 1 - k] = h[k];
    const float *first = x - (taps - 1);
    for (int64_t i = 0; i < SEGMENT + taps - 1; i++) {
        vec row;
#pragma GCC unroll 16
        for (int l = 0; l < LANES; l++)
            row[l] = first[i + (int64_t)l * SEGMENT];
        in[i] = row;
    }
    for (int64_t i = SEGMENT + taps - 1; i < SEGMENT + padded; i++)
        in[i] = (vec){0};
    for (int64_t i = 0; i < SEGMENT; i += ROWS)
        rows(in + i, reversed, padded, out + i);
}

/* Sums of a few hundred products are good to 128 dB in floats; the sums of those sums are kept in doubles, so that the
 * error does not grow with the response. */
static void segment(const float *x, const float *h, int64_t taps, float *y) {
    wide total[SEGMENT];
    memset(total, 0, sizeof total);
    for (int64_t k = 0; k < taps; k += TAPS) {
        vec out[SEGMENT];
        memset(out, 0, sizeof out);
        block(x - k, h + k, gc_min(TAPS, taps - k), out);
        for (int64_t i = 0; i < SEGMENT; i++)
            total[i] += __builtin_convertvector(out[i], wide);
    }
    for (int64_t i = 0; i < SEGMENT; i++) {
#pragma GCC unroll 16
        for (int l = 0; l < LANES; l++)
            y[i + (int64_t)l * SEGMENT] += (float)total[i][l];
    }
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
    int64_t whole = n / (LANES * SEGMENT) * (LANES * SEGMENT);
    for (int64_t i = 0; i < whole; i += LANES * SEGMENT)
        segment(x + i, h, taps, y + i);
    remainder_outputs(x + whole, h, taps, y + whole, n - whole);
}

extern const gc_fft_kernels GC_FFT_SET;
extern gc_pcm_unpacker GC_PCM_UNPACK;
extern gc_pcm_packer GC_PCM_PACK;

const gc_simd GC_SIMD = {SET_NAME, direct, &GC_FFT_SET, GC_PCM_UNPACK, GC_PCM_PACK};
