/*
 * Filters are windowed sines cardinal (Blackman) of 2 x GC_DELAY_REACH taps at PHASES fractions of a frame; between
 * them the taps are linear, with an error of pi^2 / (8 PHASES^2) at half the rate, -106 dB.
 */
#include "delay_line.h"

#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

enum { PHASES = 512, TAPS = 2 * GC_DELAY_REACH };

struct gc_delay_line {
    float taps[PHASES + 1][TAPS]; /* tap k is that of frame k + 1 - GC_DELAY_REACH */
};

/* Returns the filter at a distance of x frames. */
static double sinc(double x) {
    const double pi = 3.14159265358979323846, angle = pi * x / GC_DELAY_REACH;
    if (fabs(x) >= GC_DELAY_REACH)
        return 0;
    const double window = 0.42 + 0.5 * cos(angle) + 0.08 * cos(2 * angle);
    return x == 0 ? 1 : window * sin(pi * x) / (pi * x);
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

void gc_delay_line_read(const gc_delay_line *line, const float *x, double from, double to, int64_t frames, float *y) {
    const double step = (to - from) / (double)frames;
    for (int64_t i = 0; i < frames; i++) {
        const double place = (double)i - (from + step * (double)i), whole = floor(place);
        const double phase = (place - whole) * PHASES;
        const int below = (int)phase;
        const float part = (float)(phase - below), *a = line->taps[below], *b = line->taps[below + 1];
        const float *at = x + (int64_t)whole + 1 - GC_DELAY_REACH;
        float first = 0, second = 0;
        for (int k = 0; k < TAPS; k++) {
            first += a[k] * at[k];
            second += b[k] * at[k];
        }
        y[i] = first + part * (second - first);
    }
}
