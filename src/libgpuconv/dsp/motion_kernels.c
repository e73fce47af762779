/* Loops of sources that move; compiled once for each instruction set, with GC_MOTION_SET as the name of their table. */
#include "motion_kernels.h"

#include "vector.h"

#include <math.h>

/* Returns the sums over every LANES-th tap of the output of frame i. */
ALWAYS_INLINE vec delay_frame(const float *taps, const float *x, double place) {
    const double whole = floor(place), phase = (place - whole) * GC_DELAY_PHASES;
    const int below = (int)phase;
    const float *a = taps + (int64_t)below * GC_DELAY_TAPS, *b = a + GC_DELAY_TAPS;
    const float *at = x + (int64_t)whole + 1 - GC_DELAY_TAPS / 2;
    vec first = {0}, second = {0};
#pragma GCC unroll 16
    for (int k = 0; k < GC_DELAY_TAPS; k += LANES) {
        const vec v = load(at + k);
        first += load(a + k) * v;
        second += load(b + k) * v;
    }
    return first + broadcast((float)(phase - below)) * (second - first);
}

static void delay(const float *taps, const float *x, double from, double step, int64_t frames, float *y) {
    int64_t i = 0;
    for (; i + LANES <= frames; i += LANES) {
        vec row[LANES];
        for (int k = 0; k < LANES; k++)
            row[k] = delay_frame(taps, x, (double)(i + k) - (from + step * (double)(i + k)));
        transpose(row);
#pragma GCC unroll 16
        for (int k = 1; k < LANES; k++)
            row[0] += row[k];
        store(y + i, row[0]);
    }
    for (; i < frames; i++) {
        const vec row = delay_frame(taps, x, (double)i - (from + step * (double)i));
        y[i] = row[0];
        for (int k = 1; k < LANES; k++)
            y[i] += row[k];
    }
}

static float blend(const float *const spectrum[3], const float weight[3], int64_t n, float *sum) {
    const float *a = spectrum[0], *b = spectrum[1], *c = spectrum[2];
    const vec u = broadcast(weight[0]), v = broadcast(weight[1]), w = broadcast(weight[2]);
    vec energy[4] = {{0}};
    float total = 0;
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            const int64_t at = i + k * LANES;
            const vec x = u * load(a + at) + v * load(b + at) + w * load(c + at);
            energy[k] += x * x;
            store(sum + at, x);
        }
    for (; i < n; i++) {
        sum[i] = weight[0] * a[i] + weight[1] * b[i] + weight[2] * c[i];
        total += sum[i] * sum[i];
    }
    energy[0] += energy[1] + energy[2] + energy[3];
    for (int k = 0; k < LANES; k++)
        total += energy[0][k];
    return total;
}

static void copy_rows(const float *const *from, int64_t first, int64_t n, int64_t rows, float *to, int64_t pitch) {
    for (int64_t r = 0; r < rows; r++) {
        const float *x = from[r] + first;
        float *y = to + r * pitch;
        int64_t i = 0;
        for (; i < n && (uintptr_t)(y + i) % sizeof(vec) != 0; i++)
            y[i] = x[i];
        for (; i + LANES <= n; i += LANES)
            store_past_caches(y + i, load(x + i));
        for (; i < n; i++)
            y[i] = x[i];
    }
    fence_stores();
}

const gc_motion_kernels GC_MOTION_SET = {delay, blend, copy_rows};
