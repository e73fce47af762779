/* Draws the plug-in's window with cairo. Of a spatial form it draws the head from above with the directions of the set
 * and the sources: a direction is as far from the middle as it is below the zenith; one below the horizon is hollow. */
#include "window.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FONT = 12 };

static const double floor_level = -80; /* dB at the lower edge of the envelope */
static const double meter_least = -60, meter_most = 6;

typedef struct color {
    double r, g, b, a;
} color;

static const color panel_color = {0.09, 0.10, 0.11, 1}, text_color = {0.88, 0.89, 0.90, 1},
                   faint_color = {0.55, 0.57, 0.60, 1}, accent_color = {0.95, 0.66, 0.24, 1},
                   selected_color = {0.24, 0.30, 0.38, 1};
static const color background = {0.13, 0.14, 0.16, 1}, alarm = {0.90, 0.28, 0.22, 1}, good = {0.33, 0.72, 0.47, 1};
static const color channel_color[WAVE_CHANNELS] = {
    {0.35, 0.66, 0.95, 0.75}, {0.42, 0.82, 0.62, 0.55}, {0.80, 0.60, 0.90, 0.45}, {0.90, 0.80, 0.50, 0.40}};

static void paint_part(cairo_t *cr, color c, double opacity) {
    cairo_set_source_rgba(cr, c.r, c.g, c.b, c.a * opacity);
}

static void paint(cairo_t *cr, color c) {
    paint_part(cr, c, 1);
}

static void draw_fill(cairo_t *cr, rectangle r, color c) {
    paint(cr, c);
    cairo_rectangle(cr, r.x, r.y, r.w, r.h);
    cairo_fill(cr);
}

/* Copies text without the bytes from `gap` to `end`, "..." in their place, at boundaries of characters. */
static void leave_out(const char *what, size_t gap, size_t end, char *to, size_t size) {
    while (gap > 0 && ((unsigned char)what[gap] & 0xc0) == 0x80)
        gap--;
    while (((unsigned char)what[end] & 0xc0) == 0x80)
        end++;
    (void)snprintf(to, size, "%.*s...%s", (int)gap, what, what + end);
}

/* Writes text from x on, shortened in the middle to fit `width`; align 0.5: centred in it. @return its width */
static double draw_text(cairo_t *cr, rectangle r, double align, color c, const char *what) {
    char shown[WINDOW_PATH_MOST + 8];
    cairo_text_extents_t e;
    size_t length = strlen(what), kept = length;
    (void)snprintf(shown, sizeof shown, "%s", what);
    cairo_text_extents(cr, shown, &e);
    while (e.x_advance > r.w && kept > 0) {
        kept--;
        leave_out(what, kept / 2, length - (kept - kept / 2), shown, sizeof shown);
        cairo_text_extents(cr, shown, &e);
    }
    paint(cr, c);
    cairo_move_to(cr, r.x + align * (r.w - e.x_advance), r.y + r.h * 0.5 + 4.5);
    cairo_show_text(cr, shown);
    return e.x_advance;
}

/* Writes a duration with its unit, milliseconds below a second. */
static void format_seconds(char *to, size_t size, const char *name, double seconds) {
    if (seconds < 1)
        (void)snprintf(to, size, "%s%.*f ms", name, seconds > 0 && seconds < 0.0995 ? 1 : 0, 1000 * seconds);
    else
        (void)snprintf(to, size, "%s%.2f s", name, seconds);
}

/* Draws a frame around the part that has the keyboard. */
static void draw_focus(cairo_t *cr, const window *w, part which, rectangle r) {
    if (w->focus != which)
        return;
    paint(cr, accent_color);
    cairo_set_line_width(cr, 1);
    cairo_rectangle(cr, r.x + 0.5, r.y + 0.5, r.w - 1, r.h - 1);
    cairo_stroke(cr);
}

static const char *last_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Draws the field of the search: the typed text, or the name of the folder. */
static void draw_search(cairo_t *cr, const window *w) {
    const rectangle r = window_search(w);
    const bool typing = w->focus == PART_LIST || *w->search;
    char shown[WINDOW_PATH_MOST + 2];
    draw_fill(cr, r, panel_color);
    (void)snprintf(shown, sizeof shown, "%s|", w->search);
    const char *name = *w->search ? shown : w->folder.is_recent ? "recent files" : last_name(w->folder.path);
    draw_text(cr, (rectangle){r.x + 6, r.y, r.w - 12, r.h}, 0, *w->search ? accent_color : faint_color, name);
    if (typing)
        draw_focus(cr, w, w->focus, r);
}

static void draw_list(cairo_t *cr, const window *w) {
    rectangle r = window_list(w);
    draw_search(cr, w);
    draw_fill(cr, r, panel_color);
    int rows = (int)(r.h / ROW);
    for (int i = 0; i < rows && w->scroll + i < w->folder.count; i++) {
        const folder_entry *e = folder_at(&w->folder, w->scroll + i);
        rectangle row = {r.x, r.y + i * ROW, r.w, ROW};
        char name[WINDOW_PATH_MOST];
        if (!e->is_folder && folder_path_of(&w->folder, e, name) && strcmp(name, w->path[w->slot]) == 0)
            draw_fill(cr, row, selected_color);
        (void)snprintf(name, sizeof name, "%s%s", *e->name == '/' ? last_name(e->name) : e->name,
                       e->is_folder ? "/" : "");
        if (w->focus == PART_LIST && w->scroll + i == w->cursor)
            draw_focus(cr, w, PART_LIST, row);
        draw_text(cr, (rectangle){row.x + 8, row.y, row.w - 20, row.h}, 0, e->is_folder ? faint_color : text_color,
                  name);
    }
    if (w->folder.count > rows) {
        double share = (double)rows / w->folder.count;
        draw_fill(cr, (rectangle){r.x + r.w - 5, r.y + r.h * w->scroll / w->folder.count, 4, fmax(8, r.h * share)},
                  faint_color);
    }
    if (w->folder.count == 0)
        draw_text(cr, (rectangle){r.x + 8, r.y, r.w - 16, ROW}, 0, faint_color,
                  *w->search ? "nothing of this name" : "nothing here");
}

/* Returns the height of a magnitude above the lower edge, 0..1. */
static double height(double magnitude) {
    double level = magnitude > 0 ? 20 * log10(magnitude) : floor_level;
    return fmax(0, 1 - level / floor_level);
}

/* Returns half a cosine from 0 to 1 over `length`. */
static double rise(double t, double length) {
    return t >= length ? 1 : 0.5 - 0.5 * cos(M_PI * fmax(t, 0) / length);
}

/* Returns the gain of the fade and of the attack at a time of the file. */
static double fade_gain(const window *w, bounds b, double t) {
    const bool reversed = w->value[REVERSE] > 0;
    const double attack = (double)w->value[ATTACK] * 1e-3 / fmax((double)w->value[STRETCH], 0.25);
    const double from_start = t - b.start, from_end = b.end - t;
    return rise(reversed ? from_start : from_end, reversed ? b.fade - b.start : b.end - b.fade) *
           rise(reversed ? from_end : from_start, attack);
}

/* Returns the part of the wave that a channel is drawn in: they stand one above the other. */
static rectangle lane(const window *w, int channel) {
    const rectangle r = window_wave(w);
    const double height = r.h / w->wave.channels;
    return (rectangle){r.x, r.y + channel * height, r.w, height};
}

/* Draws a channel's envelope: outside of the kept part faint_color, in its fade as attenuated. */
static void draw_envelope(cairo_t *cr, const window *w, int channel) {
    const rectangle r = lane(w, channel);
    bounds b = window_bounds(w);
    for (int pass = 0; pass < 2; pass++) {
        color c = channel_color[channel];
        c.a *= pass ? 1 : 0.25;
        paint(cr, c);
        for (int bin = 0; bin < WAVE_BINS; bin++) {
            double t = (bin + 0.5) * w->wave.seconds / WAVE_BINS, magnitude = (double)w->wave.peak[channel][bin];
            bool kept = t >= b.start && t <= b.end;
            if (pass && kept)
                magnitude *= fade_gain(w, b, t);
            double h = (pass && !kept) ? 0 : height(magnitude) * r.h;
            cairo_rectangle(cr, r.x + r.w * bin / WAVE_BINS, r.y + r.h - h, r.w / WAVE_BINS, h);
        }
        cairo_fill(cr);
    }
}

static void draw_handle(cairo_t *cr, rectangle r, double x, const char *name, bool low, bool focused) {
    paint(cr, accent_color);
    cairo_set_line_width(cr, focused ? 3.5 : 1.5);
    cairo_move_to(cr, x, r.y);
    cairo_line_to(cr, x, r.y + r.h);
    cairo_stroke(cr);
    cairo_rectangle(cr, x - 5, low ? r.y + r.h - 12 : r.y, 10, 12);
    cairo_fill(cr);
    cairo_text_extents_t e;
    cairo_text_extents(cr, name, &e);
    double left = x + 9 + e.x_advance > r.x + r.w ? x - 9 - e.x_advance : x + 9;
    draw_text(cr, (rectangle){left, low ? r.y + r.h - 14 : r.y + 1, e.x_advance + 1, 12}, 0, accent_color, name);
}

/* Draws times beneath the wave, at steps of 1, 2 or 5. */
static void draw_axis(cairo_t *cr, const window *w) {
    const rectangle r = window_wave(w);
    const double all = w->wave.seconds, apart = 64, decade = pow(10, floor(log10(all * apart / r.w)));
    const double times = all * apart / r.w / decade, step = decade * (times <= 1   ? 1
                                                                      : times <= 2 ? 2
                                                                      : times <= 5 ? 5
                                                                                   : 10);
    char label[40];
    for (int i = 0; i * step <= all; i++) {
        const double x = window_time_to_x(w, i * step);
        draw_fill(cr, (rectangle){x, r.y + r.h, 1, 4}, faint_color);
        (void)snprintf(label, sizeof label, "%g%s", i * step * (all < 1 ? 1000 : 1), i ? "" : all < 1 ? " ms" : " s");
        draw_text(cr, (rectangle){x + 4, r.y + r.h + 2, 60, 16}, 0, faint_color, label);
    }
}

static void draw_wave(cairo_t *cr, const window *w) {
    rectangle r = window_wave(w);
    char label[200];
    draw_fill(cr, r, panel_color);
    if (!w->wave.channels) {
        draw_text(cr, r, 0.5, *w->wave.message && *w->path[w->slot] ? alarm : faint_color,
                  *w->wave.message ? w->wave.message : "reading ...");
        return;
    }
    draw_axis(cr, w);
    for (int c = 0; c < w->wave.channels; c++) {
        const rectangle l = lane(w, c);
        const int step = l.h < 100 ? -40 : -20;
        for (int level = step; level > floor_level; level += step) {
            const double y = l.y + level / floor_level * l.h;
            draw_fill(cr, (rectangle){l.x, y, l.w, 1}, (color){1, 1, 1, 0.08});
            (void)snprintf(label, sizeof label, "%d dB", level);
            draw_text(cr, (rectangle){l.x + l.w - 50, y + 2, 46, 12}, 1, faint_color, label);
        }
        draw_envelope(cr, w, c);
        draw_fill(cr, (rectangle){l.x, l.y + l.h - 1, l.w, c + 1 < w->wave.channels}, faint_color);
    }
    bounds b = window_bounds(w);
    format_seconds(label, sizeof label, "fade ", (double)w->value[FADE]);
    draw_handle(cr, (rectangle){r.x, r.y + 18, r.w, r.h - 18}, window_time_to_x(w, b.fade), label, true,
                w->focus == PART_FADE);
    format_seconds(label, sizeof label, "start ", b.start);
    draw_handle(cr, r, window_time_to_x(w, b.start), label, false, w->focus == PART_START);
    format_seconds(label, sizeof label, "length ", b.end - b.start);
    draw_handle(cr, (rectangle){r.x, r.y + 16, r.w, r.h - 16}, window_time_to_x(w, b.end), label, false,
                w->focus == PART_END);
}

/* Draws why the last response was not loaded across the wave, without the folder of the file. */
static void draw_error(cairo_t *cr, const window *w) {
    rectangle r = window_wave(w);
    const char *colon = strstr(w->error, ": "), *shown = w->error;
    for (const char *c = w->error; *c == '/' && colon && c < colon; c += strcspn(c + 1, "/") + 1)
        shown = c + 1;
    r.y += floor(r.h / 2) - 12;
    r.h = 24;
    draw_fill(cr, r, alarm);
    draw_text(cr, (rectangle){r.x + 8, r.y, r.w - 16, r.h}, 0, text_color, shown);
}

static void draw_knob(cairo_t *cr, const window *w, int index) {
    const double from = 0.75 * M_PI, span = 1.5 * M_PI;
    const knob *k = &w->panel->knob[index];
    rectangle r = window_knob(w, index);
    const double s = r.h / KNOB_HEIGHT, x = r.x + r.w / 2, y = r.y + 42 * s;
    double value = (double)w->value[k->port];
    char shown[40];
    cairo_set_font_size(cr, FONT * s);
    draw_text(cr, (rectangle){r.x, r.y, r.w, 16 * s}, 0.5, faint_color, k->name);
    cairo_set_line_width(cr, 6 * s);
    paint(cr, panel_color);
    cairo_new_path(cr);
    cairo_arc(cr, x, y, 20 * s, from, from + span);
    cairo_stroke(cr);
    paint(cr, accent_color);
    cairo_arc(cr, x, y, 20 * s, from, from + fmax(0.001, span * knob_place(k, value)));
    cairo_stroke(cr);
    if ((k->port == TRIM && value >= 0) || (k->port == LOW_CUT && value <= k->least) ||
        (k->port == HIGH_CUT && value >= k->most))
        (void)snprintf(shown, sizeof shown, "off");
    else if (k->least == -90 && value <= -90)
        (void)snprintf(shown, sizeof shown, "-inf dB");
    else
        (void)snprintf(shown, sizeof shown, "%.*f%s", k->decimals, value, k->unit);
    const bool typing = w->focus == (part)(PART_KNOB + index) && *w->typed;
    if (typing)
        (void)snprintf(shown, sizeof shown, "%s|", w->typed);
    draw_text(cr, (rectangle){r.x, r.y + 68 * s, r.w, 16 * s}, 0.5, typing ? accent_color : text_color, shown);
    cairo_set_font_size(cr, FONT);
    draw_focus(cr, w, (part)(PART_KNOB + index), r);
}

static void draw_meter(cairo_t *cr, const window *w, int index) {
    rectangle r = window_meter(w, index);
    double level = (double)w->value[PEAK_IN + index];
    double share = fmin(fmax((level - meter_least) / (meter_most - meter_least), 0), 1);
    draw_fill(cr, r, panel_color);
    draw_fill(cr, (rectangle){r.x, r.y + r.h * (1 - share), r.w, r.h * share}, level > 0 ? alarm : good);
    draw_fill(cr, (rectangle){r.x, r.y + r.h * meter_most / (meter_most - meter_least), r.w, 1}, faint_color);
    if (index % 2 == 0)
        draw_text(cr, (rectangle){r.x - 2, r.y + r.h + 2, 36, 16}, 0.5, faint_color, index ? "out" : "in");
}

/* Writes the name of the response, shortened, and what it is. */
static void draw_title(cairo_t *cr, const window *w) {
    const double gap = 14;
    rectangle r = window_wave(w), b = window_button(w, w->form.is_space ? BYPASS : SECOND);
    char about[100] = "", length[40];
    cairo_text_extents_t e = {0};
    if (w->wave.channels) {
        format_seconds(length, sizeof length, "", w->wave.seconds);
        (void)snprintf(about, sizeof about, "%d channel%s, %.0f Hz, %s", w->wave.total, w->wave.total == 1 ? "" : "s",
                       w->wave.rate, length);
    } else if (w->wave.directions) {
        (void)snprintf(about, sizeof about, "%d directions, %.0f Hz", w->wave.total, w->wave.rate);
    }
    cairo_text_extents(cr, about, &e);
    double room = b.x - r.x - gap;
    double name = draw_text(cr, (rectangle){r.x, 12, room - (*about ? e.x_advance + gap : 0), 22}, 0, text_color,
                            last_name(w->path[w->slot]));
    draw_text(cr, (rectangle){r.x + name + gap, 12, room - name - gap, 22}, 0, faint_color, about);
}

static void draw_button(cairo_t *cr, const window *w, int index) {
    const button *k = &w->panel->button[index];
    const bool is_on = k->port < PORTS   ? (w->value[k->port] > 0) != k->inverted
                       : index == RECENT ? w->folder.is_recent
                                         : index == SECOND && w->slot == 1;
    rectangle r = window_button(w, index);
    draw_fill(cr, r, !is_on ? panel_color : index == BYPASS ? alarm : selected_color);
    draw_text(cr, r, 0.5, is_on ? text_color : faint_color, k->name);
    draw_focus(cr, w, (part)(PART_BUTTON + index), r);
}

/* ---- The head ---------------------------------------------------------------------------------------------------- */

static void draw_dot(cairo_t *cr, const window *w, const double at[2], double size, color c, double opacity) {
    double x, y;
    window_direction_to_xy(w, at[0], at[1], &x, &y);
    cairo_new_path(cr);
    cairo_arc(cr, x, y, size, 0, 2 * M_PI);
    paint_part(cr, c, opacity);
    cairo_set_line_width(cr, 1);
    if (at[1] < 0)
        cairo_stroke(cr);
    else
        cairo_fill(cr);
}

/* Draws the horizon with the names of its directions. */
static void draw_horizon(cairo_t *cr, const window *w) {
    static const char *const names[] = {"front", "left", "back", "right"};
    double middle[2], x, y;
    window_direction_to_xy(w, 0, 90, &middle[0], &middle[1]);
    window_direction_to_xy(w, 0, 0, &x, &y);
    const double radius = middle[1] - y;
    for (int elevation = 0; elevation < 90; elevation += 30) {
        cairo_new_path(cr);
        cairo_arc(cr, middle[0], middle[1], radius * (1 - elevation / 90.0), 0, 2 * M_PI);
        paint_part(cr, text_color, elevation ? 0.08 : 0.3);
        cairo_set_line_width(cr, 1);
        cairo_stroke(cr);
    }
    for (int i = 0; i < 4; i++) {
        if (i == 2 && *w->wave.message)
            continue; /* the message is there */
        const double angle = i * M_PI / 2, away = radius + (i % 2 ? 28 : 12);
        draw_text(cr, (rectangle){middle[0] - sin(angle) * away - 25, middle[1] - cos(angle) * away - 8, 50, 16}, 0.5,
                  faint_color, names[i]);
    }
}

/* Draws the head as it is turned: its nose, and its ears. */
static void draw_listener(cairo_t *cr, const window *w) {
    double x, y;
    window_direction_to_xy(w, 0, 90, &x, &y);
    cairo_save(cr);
    cairo_translate(cr, x, y);
    cairo_rotate(cr, -(double)w->value[YAW] * M_PI / 180);
    paint(cr, w->value[TRACKED] > 0 ? accent_color : faint_color);
    cairo_set_line_width(cr, 2);
    cairo_new_path(cr);
    cairo_move_to(cr, -4, -15);
    cairo_line_to(cr, 0, -22);
    cairo_line_to(cr, 4, -15);
    cairo_stroke(cr);
    cairo_save(cr);
    cairo_scale(cr, 0.85, 1);
    cairo_arc(cr, 0, 0, 16, 0, 2 * M_PI);
    cairo_restore(cr);
    cairo_stroke(cr);
    for (int side = -1; side <= 1; side += 2) {
        cairo_arc(cr, side * 15.5, 0, 3.5, 0, 2 * M_PI);
        cairo_fill(cr);
    }
    cairo_restore(cr);
}

/* Draws the head and its sources (head.c). */
static void draw_head(cairo_t *cr, const window *w) {
    static const char *const names[] = {"L", "R"};
    const rectangle r = window_wave(w);
    char label[80];
    draw_fill(cr, r, panel_color);
    draw_horizon(cr, w);
    for (int i = 0; i < w->wave.directions; i++)
        draw_dot(cr, w, (const double[]){(double)w->wave.direction[i][0], (double)w->wave.direction[i][1]}, 1.5,
                 selected_color, 1.0);
    draw_listener(cr, w);
    const double azimuth = (double)w->value[AZIMUTH], elevation = (double)w->value[ELEVATION];
    const double spread = (double)w->value[SPREAD];
    for (double way = -0.5; way <= 0.5 && spread > 0; way += 0.01)
        draw_dot(cr, w, (const double[]){azimuth + way * spread, elevation}, 1, accent_color, 0.5);
    for (int c = 0; c < 2; c++) {
        double x, y, at[2] = {azimuth + (c ? -0.5 : 0.5) * spread, elevation};
        draw_dot(cr, w, at, 8, accent_color, 1);
        window_direction_to_xy(w, at[0], at[1], &x, &y);
        if (spread > 0)
            draw_text(cr, (rectangle){x - 10, y - 8, 20, 16}, 0.5, elevation < 0 ? accent_color : panel_color,
                      names[c]);
    }
    if (w->value[TRACKED] > 0) {
        (void)snprintf(label, sizeof label, "yaw %.0f, pitch %.0f, roll %.0f", (double)w->value[YAW],
                       (double)w->value[PITCH], (double)w->value[ROLL]);
        draw_text(cr, (rectangle){r.x + 8, r.y + 6, 220, 16}, 0, accent_color, label);
    }
}

/* ---- All parts --------------------------------------------------------------------------------------------------- */

void window_draw(window *w) {
    cairo_t *cr = cairo_create(w->surface);
    cairo_scale(cr, w->scale, w->scale);
    cairo_push_group(cr); /* drawn aside and shown at once */
    paint(cr, background);
    cairo_paint(cr);
    cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cr, FONT);
    draw_title(cr, w);
    draw_list(cr, w);
    if (w->form.is_space)
        draw_head(cr, w);
    else
        draw_wave(cr, w);
    if (*w->error)
        draw_error(cr, w);
    for (int i = 0; i < w->panel->buttons; i++)
        if (window_has_button(w, i))
            draw_button(cr, w, i);
    for (int i = 0; i < w->panel->knobs; i++)
        draw_knob(cr, w, i);
    for (int i = 0; i < 4; i++)
        draw_meter(cr, w, i);
    cairo_pop_group_to_source(cr);
    cairo_paint(cr);
    cairo_destroy(cr);
    cairo_surface_flush(w->surface);
}
