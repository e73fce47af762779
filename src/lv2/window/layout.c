/* The places of the parts of the plug-in's window, and the values of places. */
#include "window.h"

#include <math.h>

enum {
    LIST_WIDTH = 200,
    EDGE = 12,
    TOP = 44,
    LEFT = LIST_WIDTH + 2 * EDGE,
    AXIS = 18,  /* beneath the wave */
    RIGHT = 84, /* of the meters and the buttons beneath them */
    BUTTON = 22,
    RECENT_WIDTH = 56
};

static const knob reverb_knobs[] =
    {{TRIM, "Trim", " dB", -120, 0, 0, false, 0},        {STRETCH, "Stretch", " x", 0.25, 4, 1, true, 2},
     {ATTACK, "Attack", " ms", 0, 1000, 0, false, 0},    {PREDELAY, "Predelay", " ms", 0, 500, 0, false, 0},
     {CROSSFADE, "Second", " %", 0, 100, 0, false, 0},   {WIDTH, "Width", " %", 0, 200, 100, false, 0},
     {LOW_CUT, "Low cut", " Hz", 20, 2000, 20, true, 0}, {HIGH_CUT, "High cut", " Hz", 500, 20000, 20000, true, 0},
     {WET, "Wet", " dB", -90, 24, 0, false, 1},          {DRY, "Dry", " dB", -90, 24, -90, false, 1},
     {GAIN, "Gain", " dB", -90, 24, 0, false, 1}},
                  space_knobs[] = {{AZIMUTH, "Azimuth", "\u00b0", -180, 180, 0, false, 0},
                                   {ELEVATION, "Elevation", "\u00b0", -90, 90, 0, false, 0},
                                   {SPREAD, "Width", "\u00b0", 0, 180, 60, false, 0},
                                   {GAIN, "Gain", " dB", -90, 24, 0, false, 1},
                                   {OSC_PORT, "OSC port", "", 1024, 65535, 9000, false, 0}};

static const button reverb_buttons[] = {{"bypass", ENABLED, true, 0, -1, RIGHT},
                                        {"recent", PORTS, false, 0, -1, RECENT_WIDTH},
                                        {"second", PORTS, false, RIGHT + 6, -1, RIGHT - 20},
                                        {"unload", PORTS, false, RIGHT + 6, 0, 56},
                                        {"reverse", REVERSE, false, 0, BUTTON + 4, RIGHT},
                                        {"autogain", AUTOGAIN, false, 0, 0, RIGHT}},
                    space_buttons[] = {{"bypass", ENABLED, true, 0, -1, RIGHT},
                                       {"recent", PORTS, false, 0, -1, RECENT_WIDTH},
                                       {"head: OSC", TRACKED, false, 0, 0, RIGHT}};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

const panel window_panels[2] = {{reverb_knobs, COUNT(reverb_knobs), 6, reverb_buttons, COUNT(reverb_buttons)},
                                {space_knobs, COUNT(space_knobs), 5, space_buttons, COUNT(space_buttons)}};

/* Returns the height of a row of knobs, which grow with the window. */
static double knob_row(const window *w) {
    const double across = w->width / (double)WINDOW_WIDTH, down = w->height / (double)WINDOW_HEIGHT;
    return floor(KNOB_HEIGHT * fmax(1, fmin(across, down)));
}

rectangle window_search(const window *w) {
    (void)w;
    return (rectangle){EDGE, 12, LIST_WIDTH - RECENT_WIDTH - 6, BUTTON};
}

rectangle window_list(const window *w) {
    int rows = (w->height - TOP - EDGE) / ROW;
    return (rectangle){EDGE, TOP, LIST_WIDTH, rows * ROW};
}

rectangle window_wave(const window *w) {
    if (w->form.is_space) /* beside the meters */
        return (rectangle){LEFT, TOP, w->width - LEFT - 2 * EDGE - RIGHT, w->height - TOP - knob_row(w) - 2 * EDGE};
    return (rectangle){LEFT, TOP, w->width - LEFT - EDGE, w->height - TOP - 2 * knob_row(w) - 2 * EDGE - AXIS};
}

rectangle window_button(const window *w, int index) {
    const button *b = &w->panel->button[index];
    if (index == RECENT)
        return (rectangle){EDGE + LIST_WIDTH - RECENT_WIDTH, 12, RECENT_WIDTH, BUTTON};
    const double top = b->bottom < 0 ? 12 : w->height - EDGE - BUTTON - b->bottom;
    return (rectangle){w->width - EDGE - b->right - b->width, top, b->width, BUTTON};
}

bool window_has_button(const window *w, int index) {
    const bool unloads = !w->form.is_space && index == UNLOAD;
    return index < w->panel->buttons && (!unloads || (w->slot == 1 && *w->path[1]));
}

rectangle window_knob(const window *w, int index) {
    const int columns = w->panel->columns, row = index / columns, column = index % columns;
    double width = floor((w->width - LEFT - RIGHT - 2 * EDGE) / (double)columns);
    const int rows = (w->panel->knobs - 1) / columns + 1;
    const double height = knob_row(w);
    return (rectangle){LEFT + column * width, w->height - EDGE - (rows - row) * height, width, height};
}

rectangle window_meter(const window *w, int index) {
    double x = w->width - EDGE - RIGHT + index * 18 + (index >= 2 ? 12 : 0);
    const double top = w->form.is_space ? TOP : w->height - 2 * knob_row(w) - EDGE;
    return (rectangle){x, top, 14, w->height - EDGE - 2 * BUTTON - 4 - 24 - top};
}

double window_normal(const window *w, int index) {
    const knob *k = &w->panel->knob[index];
    return k->port == SPREAD && w->form.inputs == 1 ? 0 : k->normal; /* one channel has no width of its own */
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

/* Returns the circle of the horizon around the head: the rectangle around it. */
static rectangle horizon(const window *w) {
    const rectangle r = window_wave(w);
    const double size = fmin(r.w, r.h) - 44;
    return (rectangle){r.x + (r.w - size) / 2, r.y + (r.h - size) / 2, size, size};
}

void window_direction_to_xy(const window *w, double azimuth, double elevation, double *x, double *y) {
    const rectangle r = horizon(w);
    const double radius = r.w / 2 * (1 - fabs(elevation) / 90), angle = azimuth * M_PI / 180;
    *x = r.x + r.w / 2 - radius * sin(angle);
    *y = r.y + r.h / 2 - radius * cos(angle);
}

void window_xy_to_direction(const window *w, double x, double y, double *azimuth, double *elevation) {
    const rectangle r = horizon(w);
    const double left = r.x + r.w / 2 - x, front = r.y + r.h / 2 - y;
    *azimuth = atan2(left, front) * 180 / M_PI;
    *elevation = 90 * (1 - fmin(1, hypot(left, front) / (r.w / 2)));
}
