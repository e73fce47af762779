/* Where the parts of the plug-in's window are, and how places relate to values. */
#include "window.h"

#include <math.h>

const knob window_knobs[KNOBS] = {{TRIM, "Trim", "dB", -120, 0, 0, false, 0},
                                  {STRETCH, "Stretch", "x", 0.25, 4, 1, true, 2},
                                  {ATTACK, "Attack", "ms", 0, 1000, 0, false, 0},
                                  {PREDELAY, "Predelay", "ms", 0, 500, 0, false, 0},
                                  {WIDTH, "Width", "%", 0, 200, 100, false, 0},
                                  {LOW_CUT, "Low cut", "Hz", 20, 2000, 20, true, 0},
                                  {HIGH_CUT, "High cut", "Hz", 500, 20000, 20000, true, 0},
                                  {WET, "Wet", "dB", -90, 24, 0, false, 1},
                                  {DRY, "Dry", "dB", -90, 24, -90, false, 1},
                                  {GAIN, "Gain", "dB", -90, 24, 0, false, 1}};

enum {
    LIST_WIDTH = 200,
    EDGE = 12,
    TOP = 44,
    LEFT = LIST_WIDTH + 2 * EDGE,
    KNOB_COLUMNS = 5,
    KNOB_ROW = 88,
    KNOB_ROWS = 2 * KNOB_ROW,
    RIGHT = 84, /* of the meters and the buttons beneath them */
    BUTTON = 22
};

rectangle window_list(const window *w) {
    int rows = (w->height - TOP - EDGE) / ROW;
    return (rectangle){EDGE, TOP, LIST_WIDTH, rows * ROW};
}

rectangle window_wave(const window *w) {
    return (rectangle){LEFT, TOP, w->width - LEFT - EDGE, w->height - TOP - KNOB_ROWS - 2 * EDGE};
}

rectangle window_button(const window *w, int index) {
    if (index == BYPASS)
        return (rectangle){w->width - EDGE - RIGHT, 12, RIGHT, BUTTON};
    return (rectangle){w->width - EDGE - RIGHT, w->height - EDGE - BUTTON - (index == REVERSED ? BUTTON + 4 : 0), RIGHT,
                       BUTTON};
}

rectangle window_knob(const window *w, int index) {
    double width = floor((w->width - LEFT - RIGHT - 2 * EDGE) / (double)KNOB_COLUMNS);
    const int row = index / KNOB_COLUMNS, column = index % KNOB_COLUMNS;
    return (rectangle){LEFT + column * width, w->height - KNOB_ROWS - EDGE + row * KNOB_ROW, width, KNOB_ROW};
}

rectangle window_meter(const window *w, int index) {
    double x = w->width - EDGE - RIGHT + index * 18 + (index >= 2 ? 12 : 0);
    return (rectangle){x, w->height - KNOB_ROWS - EDGE, 14, KNOB_ROWS - 2 * BUTTON - 4 - 24};
}

double knob_place(const knob *k, double value) {
    double place =
        k->logarithmic ? log(value / k->least) / log(k->most / k->least) : (value - k->least) / (k->most - k->least);
    return fmin(fmax(place, 0), 1); /* 0 for NaN */
}

double knob_value(const knob *k, double place) {
    place = fmin(fmax(place, 0), 1);
    return k->logarithmic ? k->least * pow(k->most / k->least, place) : k->least + place * (k->most - k->least);
}

/* Returns the end of the part before `end` that is above the trim level. */
static double trimmed_end(const window *w, double start, double end) {
    double floor = pow(10, (double)w->value[TRIM] / 20);
    if (!(w->value[TRIM] < 0) || !w->wave.channels)
        return end;
    int first = (int)(start / w->wave.seconds * WAVE_BINS), last = (int)(end / w->wave.seconds * WAVE_BINS);
    last = last < WAVE_BINS ? last : WAVE_BINS - 1;
    for (int bin = last; bin >= first && bin >= 0; bin--)
        for (int c = 0; c < w->wave.channels; c++)
            if ((double)w->wave.peak[c][bin] >= floor)
                return fmin(end, (bin + 1) * w->wave.seconds / WAVE_BINS);
    return start;
}

bounds window_bounds(const window *w) {
    double all = w->wave.seconds, start = fmin(fmax((double)w->value[START], 0), all);
    double end = w->value[LENGTH] > 0 ? fmin(all, start + (double)w->value[LENGTH]) : all;
    end = trimmed_end(w, start, end);
    double stretch = w->value[STRETCH] > 0 ? (double)w->value[STRETCH] : 1;
    double fade = fmin(end - start, fmax(0, (double)w->value[FADE]) / stretch);
    return (bounds){start, end, w->value[REVERSE] > 0 ? start + fade : end - fade};
}

double window_time_to_x(const window *w, double seconds) {
    rectangle r = window_wave(w);
    return r.x + (w->wave.seconds > 0 ? seconds / w->wave.seconds : 0) * r.w;
}
