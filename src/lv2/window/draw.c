/* Draws the plug-in's window with cairo. */
#include "window.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double floor_level = -80; /* dB at the lower edge of the envelope */
static const double meter_least = -60, meter_most = 6;

typedef struct color {
    double r, g, b, a;
} color;

static const color background = {0.13, 0.14, 0.16, 1}, panel = {0.09, 0.10, 0.11, 1}, text = {0.88, 0.89, 0.90, 1},
                   faint = {0.55, 0.57, 0.60, 1}, accent = {0.95, 0.66, 0.24, 1}, selected = {0.24, 0.30, 0.38, 1},
                   alarm = {0.90, 0.28, 0.22, 1}, good = {0.33, 0.72, 0.47, 1};
static const color channel_color[WAVE_CHANNELS] = {
    {0.35, 0.66, 0.95, 0.75}, {0.42, 0.82, 0.62, 0.55}, {0.80, 0.60, 0.90, 0.45}, {0.90, 0.80, 0.50, 0.40}};

static void paint(cairo_t *cr, color c) {
    cairo_set_source_rgba(cr, c.r, c.g, c.b, c.a);
}

static void fill(cairo_t *cr, rectangle r, color c) {
    paint(cr, c);
    cairo_rectangle(cr, r.x, r.y, r.w, r.h);
    cairo_fill(cr);
}

/* Writes text from x on, shortened with "..." at a character's boundary to fit `width`; align 0.5: centred in it. */
static void write(cairo_t *cr, rectangle r, double align, color c, const char *what) {
    char shown[WINDOW_PATH_MOST + 8];
    cairo_text_extents_t e;
    size_t length = strlen(what);
    (void)snprintf(shown, sizeof shown, "%s", what);
    cairo_text_extents(cr, shown, &e);
    while (e.x_advance > r.w && length > 0) {
        do
            length--;
        while (length > 0 && ((unsigned char)what[length] & 0xc0) == 0x80);
        (void)snprintf(shown, sizeof shown, "%.*s...", (int)length, what);
        cairo_text_extents(cr, shown, &e);
    }
    paint(cr, c);
    cairo_move_to(cr, r.x + align * (r.w - e.x_advance), r.y + r.h * 0.5 + 4.5);
    cairo_show_text(cr, shown);
}

static const char *last_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void draw_list(cairo_t *cr, const window *w) {
    rectangle r = window_list(w);
    write(cr, (rectangle){r.x, 12, r.w, 22}, 0, faint, last_name(w->folder.path));
    fill(cr, r, panel);
    size_t folder_length = strlen(w->folder.path);
    int rows = (int)(r.h / ROW);
    for (int i = 0; i < rows && w->scroll + i < w->folder.count; i++) {
        const folder_entry *e = &w->folder.entry[w->scroll + i];
        rectangle row = {r.x, r.y + i * ROW, r.w, ROW};
        bool current = !e->is_folder && strncmp(w->path, w->folder.path, folder_length) == 0 &&
                       strcmp(last_name(w->path), e->name) == 0;
        char name[WINDOW_PATH_MOST];
        (void)snprintf(name, sizeof name, "%s%s", e->name, e->is_folder ? "/" : "");
        if (current)
            fill(cr, row, selected);
        write(cr, (rectangle){row.x + 8, row.y, row.w - 20, row.h}, 0, e->is_folder ? faint : text, name);
    }
    if (w->folder.count > rows) {
        double share = (double)rows / w->folder.count;
        fill(cr, (rectangle){r.x + r.w - 5, r.y + r.h * w->scroll / w->folder.count, 4, fmax(8, r.h * share)}, faint);
    }
}

/* Returns the height of a magnitude above the lower edge, 0..1. */
static double height(double magnitude) {
    double level = magnitude > 0 ? 20 * log10(magnitude) : floor_level;
    return fmax(0, 1 - level / floor_level);
}

/* Draws a channel's envelope: outside of the kept part faint, in its fade as attenuated. */
static void draw_envelope(cairo_t *cr, const window *w, int channel) {
    rectangle r = window_wave(w);
    bounds b = window_bounds(w);
    for (int pass = 0; pass < 2; pass++) {
        color c = channel_color[channel];
        c.a *= pass ? 1 : 0.25;
        paint(cr, c);
        for (int bin = 0; bin < WAVE_BINS; bin++) {
            double t = (bin + 0.5) * w->wave.seconds / WAVE_BINS, magnitude = (double)w->wave.peak[channel][bin];
            bool kept = t >= b.start && t <= b.end;
            if (pass && kept && t > b.fade)
                magnitude *= 0.5 + 0.5 * cos(3.14159265358979 * (t - b.fade) / (b.end - b.fade));
            double h = (pass && !kept) ? 0 : height(magnitude) * r.h;
            cairo_rectangle(cr, r.x + r.w * bin / WAVE_BINS, r.y + r.h - h, r.w / WAVE_BINS, h);
        }
        cairo_fill(cr);
    }
}

static void draw_handle(cairo_t *cr, rectangle r, double x, const char *name, bool low) {
    paint(cr, accent);
    cairo_set_line_width(cr, 1.5);
    cairo_move_to(cr, x, r.y);
    cairo_line_to(cr, x, r.y + r.h);
    cairo_stroke(cr);
    cairo_rectangle(cr, x - 5, low ? r.y + r.h - 12 : r.y, 10, 12);
    cairo_fill(cr);
    cairo_text_extents_t e;
    cairo_text_extents(cr, name, &e);
    double left = x + 9 + e.x_advance > r.x + r.w ? x - 9 - e.x_advance : x + 9;
    write(cr, (rectangle){left, low ? r.y + r.h - 14 : r.y + 1, e.x_advance + 1, 12}, 0, accent, name);
}

static void draw_wave(cairo_t *cr, const window *w) {
    rectangle r = window_wave(w);
    char label[200];
    fill(cr, r, panel);
    if (!w->wave.channels) {
        write(cr, r, 0.5, w->wave.message[0] ? alarm : faint, w->wave.message[0] ? w->wave.message : "reading ...");
        return;
    }
    for (int level = -20; level > floor_level; level -= 20) {
        double y = r.y + level / floor_level * r.h;
        fill(cr, (rectangle){r.x, y, r.w, 1}, (color){1, 1, 1, 0.08});
        (void)snprintf(label, sizeof label, "%d dB", level);
        write(cr, (rectangle){r.x + r.w - 50, y - 14, 46, 12}, 1, faint, label);
    }
    for (int c = w->wave.channels - 1; c >= 0; c--)
        draw_envelope(cr, w, c);
    bounds b = window_bounds(w);
    (void)snprintf(label, sizeof label, "fade %.2f s", (double)w->value[FADE]);
    draw_handle(cr, (rectangle){r.x, r.y + 18, r.w, r.h - 18}, window_time_to_x(w, b.fade), label, true);
    (void)snprintf(label, sizeof label, "start %.3f s", b.start);
    draw_handle(cr, r, window_time_to_x(w, b.start), label, false);
    (void)snprintf(label, sizeof label, "length %.2f s", b.end - b.start);
    draw_handle(cr, (rectangle){r.x, r.y + 16, r.w, r.h - 16}, window_time_to_x(w, b.end), label, false);
}

static void draw_knob(cairo_t *cr, const window *w, int index) {
    const double from = 0.75 * 3.14159265358979, span = 1.5 * 3.14159265358979;
    const knob *k = &window_knobs[index];
    rectangle r = window_knob(w, index);
    double value = (double)w->value[k->port], x = r.x + r.w / 2, y = r.y + 50;
    char shown[40];
    write(cr, (rectangle){r.x, r.y, r.w, 16}, 0.5, faint, k->name);
    cairo_set_line_width(cr, 6);
    paint(cr, panel);
    cairo_new_path(cr);
    cairo_arc(cr, x, y, 24, from, from + span);
    cairo_stroke(cr);
    paint(cr, accent);
    cairo_arc(cr, x, y, 24, from, from + fmax(0.001, span * knob_place(k, value)));
    cairo_stroke(cr);
    if (k->port == TRIM && value >= 0)
        (void)snprintf(shown, sizeof shown, "off");
    else if (k->least == -90 && value <= -90)
        (void)snprintf(shown, sizeof shown, "-inf dB");
    else
        (void)snprintf(shown, sizeof shown, "%.*f %s", k->decimals, value, k->unit);
    write(cr, (rectangle){r.x, r.y + 86, r.w, 16}, 0.5, text, shown);
}

static void draw_meter(cairo_t *cr, const window *w, int index) {
    rectangle r = window_meter(w, index);
    double level = (double)w->value[PEAK_IN + index];
    double share = fmin(fmax((level - meter_least) / (meter_most - meter_least), 0), 1);
    fill(cr, r, panel);
    fill(cr, (rectangle){r.x, r.y + r.h * (1 - share), r.w, r.h * share}, level > 0 ? alarm : good);
    fill(cr, (rectangle){r.x, r.y + r.h * meter_most / (meter_most - meter_least), r.w, 1}, faint);
    if (index % 2 == 0)
        write(cr, (rectangle){r.x - 2, r.y + r.h + 2, 36, 16}, 0.5, faint, index ? "out" : "in");
}

static void draw_title(cairo_t *cr, const window *w) {
    rectangle r = window_wave(w), b = window_bypass(w);
    char title[WINDOW_PATH_MOST + 100];
    (void)snprintf(title, sizeof title, "%s", last_name(w->path));
    if (w->wave.channels)
        (void)snprintf(title, sizeof title, "%s   %d channel%s, %.0f Hz, %.2f s", last_name(w->path), w->wave.total,
                       w->wave.total == 1 ? "" : "s", w->wave.rate, w->wave.seconds);
    write(cr, (rectangle){r.x, 12, b.x - r.x - 12, 22}, 0, text, title);
    bool bypassed = !(w->value[ENABLED] > 0);
    fill(cr, b, bypassed ? alarm : selected);
    write(cr, b, 0.5, text, bypassed ? "bypassed" : "bypass");
}

void window_draw(window *w) {
    cairo_t *cr = cairo_create(w->surface);
    cairo_push_group(cr); /* drawn aside and shown at once */
    paint(cr, background);
    cairo_paint(cr);
    cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cr, 12);
    draw_title(cr, w);
    draw_list(cr, w);
    draw_wave(cr, w);
    for (int i = 0; i < KNOBS; i++)
        draw_knob(cr, w, i);
    for (int i = 0; i < 4; i++)
        draw_meter(cr, w, i);
    cairo_pop_group_to_source(cr);
    cairo_paint(cr);
    cairo_destroy(cr);
    cairo_surface_flush(w->surface);
}
