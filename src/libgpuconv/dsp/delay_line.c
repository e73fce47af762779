/*
 * Filters are windowed sines cardinal (Blackman) of 2 x GC_DELAY_REACH taps at PHASES fractions of a frame; between
 * them the taps are linear, with an error of pi^2 / (8 PHASES^2) at half the rate, -106 dB.
 */
#include "delay_line.h"

#include "libgpuconv/core/memory.h"
#include "motion_kernels.h"
#include "simd.h"

#include <math.h>
#include <stdlib.h>

enum { PHASES = GC_DELAY_PHASES, TAPS = GC_DELAY_TAPS };

_Static_assert(2 * (int)GC_DELAY_REACH == (int)TAPS, "see motion_kernels.h");

struct gc_delay_line {
    float taps[PHASES + 1][TAPS]; /* tap k is that of frame k + 1 - GC_DELAY_REACH */
};

/* Returns the filter at a distance of x frames. */
static double sinc(double x) {
    const double angle = M_PI * x / GC_DELAY_REACH;
    if (fabs(x) >= GC_DELAY_REACH)
        return 0;
    const double window = 0.42 + 0.5 * cos(angle) + 0.08 * cos(2 * angle);
    return x == 0 ? 1 : window * sin(M_PI * x) / (M_PI * x);
}

gc_delay_line *gc_delay_line_new(void) {
    gc_delay_line *line = gc_calloc(1, sizeof *line);
    for (int p = 0; line && p <= PHASES; p++)
        for (int k = 0; k < TAPS; k++) {
            const int frame = k + 1 - GC_DELAY_REACH;
            /* exactly one tap at whole frames, where the sine is not exactly 0 */
            line->taps[p][k] = (float)(p % PHASES ? sinc(frame - (double)p / PHASES) : frame == p / PHASES);
        }
    return line;
}

void gc_delay_line_free(gc_delay_line *line) {
    free(line);
}

const float *gc_delay_line_filters(const gc_delay_line *line) {
    return line->taps[0];
}

void gc_delay_line_read(const gc_delay_line *line, const float *x, double from, double to, int64_t frames, float *y) {
    gc_simd_best()->motion->delay(line->taps[0], x, from, (to - from) / (double)frames, frames, y);
}
