/* The filters and the width of the LV2 plug-in's wet signal, on the audio thread.
 *
 * Each cut is a state variable filter with trapezoidal integration and the response of a Butterworth filter of second
 * order (Zavalishin, The Art of VA Filter Design, 2.1.2, section 4.4). A cut that is off and a width of 100 % leave the
 * samples unchanged. */
#include "plugin.h"

#include <math.h>
#include <string.h>

static const float low_cut_off = 20, high_cut_off = 20000; /* Hz; there the ports turn the filters off */
static const float switch_seconds = 0.02F;                 /* of the crossfade when a filter is turned on or off */

void gc_lv2_clear_wet(plugin *p) {
    memset(&p->low_cut, 0, sizeof p->low_cut);
    memset(&p->high_cut, 0, sizeof p->high_cut);
    p->width = -1;
}

/* Clears integrators that overflowed, or that are so small that the processor would slow down. */
static void clean_state(cut *f) {
    for (int c = 0; c < OUTPUTS; c++)
        if (!(fabsf(f->state[c][0]) + fabsf(f->state[c][1]) < 1e30F) ||
            fabsf(f->state[c][0]) + fabsf(f->state[c][1]) < 1e-20F)
            f->state[c][0] = f->state[c][1] = 0;
}

/* Filters n frames. The frequency moves within them to `hertz`. */
static void run_cut(plugin *p, cut *f, bool is_high_pass, bool is_on, float hertz, float *const *samples, int64_t n) {
    const float k = 1.41421356F, target = is_on ? 1 : 0, step = 1 / (switch_seconds * (float)p->rate);
    const float g = tanf(3.14159265F * fminf(hertz / (float)p->rate, 0.49F));
    if (!is_on && f->part == 0)
        return;
    if (f->g == 0)
        f->g = g;
    const float way = is_on ? (g - f->g) / (float)n : 0; /* off: fades out at the frequency that it had */
    for (int64_t i = 0; i < n; i++) {
        f->g += way;
        f->part = is_on ? fminf(f->part + step, target) : fmaxf(f->part - step, target);
        const float a1 = 1 / (1 + f->g * (f->g + k)), a2 = f->g * a1, a3 = f->g * a2;
        for (int c = 0; c < OUTPUTS; c++) {
            float *s = f->state[c], in = samples[c][i], rest = in - s[1];
            float band = a1 * s[0] + a2 * rest, low = s[1] + a2 * s[0] + a3 * rest;
            s[0] = 2 * band - s[0];
            s[1] = 2 * low - s[1];
            float out = is_high_pass ? in - k * band - low : low;
            samples[c][i] = in + f->part * (out - in);
        }
    }
    clean_state(f);
    if (f->part == 0)
        memset(f, 0, sizeof *f);
}

void gc_lv2_shape_wet(plugin *p, float *const *convolved, int64_t n) {
    const float *value = p->parameter[HIGH_CUT];
    const float low = gc_lv2_limited(p->parameter[LOW_CUT], low_cut_off, 2000);
    const float high = value && isfinite(*value) ? gc_lv2_limited(value, 500, high_cut_off) : high_cut_off;
    if (p->width < 0) {
        p->low_cut.part = low > low_cut_off ? 1 : 0;
        p->high_cut.part = high < high_cut_off ? 1 : 0;
    }
    run_cut(p, &p->low_cut, true, low > low_cut_off, low, convolved, n);
    run_cut(p, &p->high_cut, false, high < high_cut_off, high, convolved, n);
    value = p->parameter[WIDTH];
    const float width = value && isfinite(*value) ? gc_lv2_limited(value, 0, 200) / 100 : 1;
    if (p->width < 0)
        p->width = width;
    if (width == 1 && p->width == 1)
        return;
    const float way = (width - p->width) / (float)n;
    for (int64_t i = 0; i < n; i++) {
        p->width += way;
        float middle = 0.5F * (convolved[0][i] + convolved[1][i]);
        float side = p->width * 0.5F * (convolved[0][i] - convolved[1][i]);
        convolved[0][i] = middle + side;
        convolved[1][i] = middle - side;
    }
    p->width = width;
}
