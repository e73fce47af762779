/* Where the parts of the plug-in's window are, and how places relate to values. */
#include "window.h"

#include <math.h>

const knob window_knobs[KNOBS] = {
    {TRIM, "Trim", "dB", -120, 0, 0, false, 0},        {STRETCH, "Stretch", "x", 0.25, 4, 1, true, 2},
    {PREDELAY, "Predelay", "ms", 0, 500, 0, false, 0}, {WET, "Wet", "dB", -90, 24, 0, false, 1},
    {DRY, "Dry", "dB", -90, 24, -90, false, 1},        {GAIN, "Gain", "dB", -90, 24, 0, false, 1}};

enum { LIST_WIDTH = 230, EDGE = 12, TOP = 44, KNOB_ROW = 108 };

rectangle window_list(const window *w) {
    int rows = (w->height - TOP - EDGE) / ROW;
    return (rectangle){EDGE, TOP, LIST_WIDTH, rows * ROW};
}

rectangle window_wave(const window *w) {
    double x = LIST_WIDTH + 2 * EDGE;
    return (rectangle){x, TOP, w->width - x - EDGE, w->height - TOP - KNOB_ROW - 2 * EDGE};
}

rectangle window_bypass(const window *w) {
    return (rectangle){w->width - EDGE - 90, 12, 90, 22};
}

rectangle window_knob(const window *w, int index) {
    double x = LIST_WIDTH + 2 * EDGE + index * KNOB_SIZE;
    return (rectangle){x, w->height - KNOB_ROW - EDGE, KNOB_SIZE, KNOB_ROW};
}

rectangle window_meter(const window *w, int index) {
    double x = w->width - EDGE - 84 + index * 18 + (index >= 2 ? 12 : 0);
    return (rectangle){x, w->height - KNOB_ROW - EDGE, 14, KNOB_ROW - 18};
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
    return (bounds){start, end, fmax(start, end - fmax(0, (double)w->value[FADE]) / stretch)};
}

double window_time_to_x(const window *w, double seconds) {
    rectangle r = window_wave(w);
    return r.x + (w->wave.seconds > 0 ? seconds / w->wave.seconds : 0) * r.w;
}
