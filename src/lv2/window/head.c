/* Draws the head from above with the directions of the set and the sources. A direction is as far from the middle as it
 * is below the zenith; one below the horizon is hollow. */
#include "window.h"

#include <math.h>
#include <stdio.h>

static const double pi = 3.14159265358979;

static void paint(cairo_t *cr, color c, double opacity) {
    cairo_set_source_rgba(cr, c.r, c.g, c.b, c.a * opacity);
}

static void draw_dot(cairo_t *cr, const window *w, const double at[2], double size, color c, double opacity) {
    double x, y;
    window_direction_to_xy(w, at[0], at[1], &x, &y);
    cairo_new_path(cr);
    cairo_arc(cr, x, y, size, 0, 2 * pi);
    paint(cr, c, opacity);
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
        cairo_arc(cr, middle[0], middle[1], radius * (1 - elevation / 90.0), 0, 2 * pi);
        paint(cr, window_text, elevation ? 0.08 : 0.3);
        cairo_set_line_width(cr, 1);
        cairo_stroke(cr);
    }
    for (int i = 0; i < 4; i++) {
        if (i == 2 && *w->wave.message)
            continue; /* the message is there */
        const double angle = i * pi / 2, away = radius + (i % 2 ? 28 : 12);
        draw_text(cr, (rectangle){middle[0] - sin(angle) * away - 25, middle[1] - cos(angle) * away - 8, 50, 16}, 0.5,
                  window_faint, names[i]);
    }
}

/* Draws the head as it is turned: its nose, and its ears. */
static void draw_listener(cairo_t *cr, const window *w) {
    double x, y;
    window_direction_to_xy(w, 0, 90, &x, &y);
    cairo_save(cr);
    cairo_translate(cr, x, y);
    cairo_rotate(cr, -(double)w->value[YAW] * pi / 180);
    paint(cr, w->value[TRACKED] > 0 ? window_accent : window_faint, 1);
    cairo_set_line_width(cr, 2);
    cairo_new_path(cr);
    cairo_move_to(cr, -4, -15);
    cairo_line_to(cr, 0, -22);
    cairo_line_to(cr, 4, -15);
    cairo_stroke(cr);
    cairo_save(cr);
    cairo_scale(cr, 0.85, 1);
    cairo_arc(cr, 0, 0, 16, 0, 2 * pi);
    cairo_restore(cr);
    cairo_stroke(cr);
    for (int side = -1; side <= 1; side += 2) {
        cairo_arc(cr, side * 15.5, 0, 3.5, 0, 2 * pi);
        cairo_fill(cr);
    }
    cairo_restore(cr);
}

void draw_head(cairo_t *cr, const window *w) {
    static const char *const names[] = {"L", "R"};
    const rectangle r = window_wave(w);
    char label[80];
    draw_fill(cr, r, window_panel);
    draw_horizon(cr, w);
    for (int i = 0; i < w->wave.directions; i++)
        draw_dot(cr, w, (const double[]){(double)w->wave.direction[i][0], (double)w->wave.direction[i][1]}, 1.5,
                 window_selected, 1.0);
    draw_listener(cr, w);
    const double azimuth = (double)w->value[AZIMUTH], elevation = (double)w->value[ELEVATION];
    const double spread = (double)w->value[SPREAD];
    for (double way = -0.5; way <= 0.5 && spread > 0; way += 0.01)
        draw_dot(cr, w, (const double[]){azimuth + way * spread, elevation}, 1, window_accent, 0.5);
    for (int c = 0; c < 2; c++) {
        double x, y, at[2] = {azimuth + (c ? -0.5 : 0.5) * spread, elevation};
        draw_dot(cr, w, at, 8, window_accent, 1);
        window_direction_to_xy(w, at[0], at[1], &x, &y);
        if (spread > 0)
            draw_text(cr, (rectangle){x - 10, y - 8, 20, 16}, 0.5, elevation < 0 ? window_accent : window_panel,
                      names[c]);
    }
    if (w->value[TRACKED] > 0) {
        (void)snprintf(label, sizeof label, "yaw %.0f, pitch %.0f, roll %.0f", (double)w->value[YAW],
                       (double)w->value[PITCH], (double)w->value[ROLL]);
        draw_text(cr, (rectangle){r.x + 8, r.y + 6, 220, 16}, 0, window_accent, label);
    }
}
