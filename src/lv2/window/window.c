/* The plug-in's window on X11: opening it inside the host's, and what the mouse does. */
#include "window.h"

#include <X11/Xutil.h>
#include <cairo/cairo-xlib.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOUBLE_CLICK = 400 /* ms */, GRIP = 8 /* pixels beside a handle */ };

bool window_open(window *w, Window parent) {
    w->width = WINDOW_WIDTH;
    w->height = WINDOW_HEIGHT;
    w->display = XOpenDisplay(NULL);
    if (!w->display)
        return false;
    int screen = DefaultScreen(w->display);
    if (!parent)
        parent = RootWindow(w->display, screen);
    w->id = XCreateSimpleWindow(w->display, parent, 0, 0, WINDOW_WIDTH, WINDOW_HEIGHT, 0, 0,
                                BlackPixel(w->display, screen));
    XSizeHints *hints = XAllocSizeHints();
    if (hints) {
        hints->flags = PMinSize | PBaseSize;
        hints->min_width = WINDOW_LEAST_WIDTH;
        hints->min_height = WINDOW_LEAST_HEIGHT;
        hints->base_width = WINDOW_WIDTH;
        hints->base_height = WINDOW_HEIGHT;
        XSetWMNormalHints(w->display, w->id, hints);
        XFree(hints);
    }
    XSelectInput(w->display, w->id,
                 ExposureMask | StructureNotifyMask | ButtonPressMask | ButtonReleaseMask | ButtonMotionMask);
    w->surface =
        cairo_xlib_surface_create(w->display, w->id, DefaultVisual(w->display, screen), WINDOW_WIDTH, WINDOW_HEIGHT);
    XMapWindow(w->display, w->id);
    XFlush(w->display);
    w->dirty = true;
    return cairo_surface_status(w->surface) == CAIRO_STATUS_SUCCESS;
}

void window_close(window *w) {
    wave_reader_end(&w->reader);
    folder_free(&w->folder);
    if (w->surface)
        cairo_surface_destroy(w->surface);
    if (w->display) {
        XDestroyWindow(w->display, w->id);
        XCloseDisplay(w->display);
    }
}

/* ---- The list ---------------------------------------------------------------------------------------------------- */

static void scroll_by(window *w, int rows) {
    int shown = (int)(window_list(w).h / ROW), most = w->folder.count > shown ? w->folder.count - shown : 0;
    w->scroll += rows;
    w->scroll = w->scroll < 0 ? 0 : w->scroll > most ? most : w->scroll;
    w->dirty = true;
}

static void open_folder(window *w, const char *path) {
    (void)folder_read(&w->folder, path); /* what fitted into memory is shown */
    w->scroll = 0;
    w->dirty = true;
}

/* Moves to the folder above. */
static void open_parent(window *w) {
    char path[WINDOW_PATH_MOST];
    (void)snprintf(path, sizeof path, "%s", w->folder.path);
    char *slash = strrchr(path, '/');
    if (!slash)
        return;
    slash[slash == path] = '\0';
    open_folder(w, path);
}

static void choose_row(window *w, int row) {
    char path[WINDOW_PATH_MOST];
    if (row < 0 || row >= w->folder.count)
        return;
    const folder_entry *e = &w->folder.entry[row];
    if (strcmp(e->name, "..") == 0) {
        open_parent(w);
        return;
    }
    int length = snprintf(path, sizeof path, "%s/%s", strcmp(w->folder.path, "/") == 0 ? "" : w->folder.path, e->name);
    if (length < 0 || length >= (int)sizeof path)
        return;
    if (e->is_folder)
        open_folder(w, path);
    else
        w->set_path(w->context, path);
}

void window_show_path(window *w, const char *path) {
    char resolved[PATH_MAX], folder_path[WINDOW_PATH_MOST];
    const char *full = realpath(path, resolved) ? resolved : path;
    (void)snprintf(folder_path, sizeof folder_path, "%s", full);
    char *slash = strrchr(folder_path, '/');
    if (slash)
        slash[slash == folder_path] = '\0';
    (void)snprintf(w->path, sizeof w->path, "%s", full);
    if (slash && strcmp(folder_path, w->folder.path) != 0)
        open_folder(w, folder_path);
    w->wave.channels = 0;
    w->wave.message[0] = '\0';
    wave_reader_begin(&w->reader, full);
    w->dirty = true;
}

/* ---- The mouse --------------------------------------------------------------------------------------------------- */

static bool is_inside(rectangle r, double x, double y) {
    return x >= r.x && x < r.x + r.w && y >= r.y && y < r.y + r.h;
}

/* Returns the part under the mouse. The fade's grip is at the lower edge, so that it can be taken where lines meet. */
static part find_part(const window *w, double x, double y) {
    rectangle r = window_wave(w);
    if (is_inside(window_list(w), x, y))
        return PART_LIST;
    if (is_inside(window_bypass(w), x, y))
        return PART_BYPASS;
    for (int i = 0; i < KNOBS; i++)
        if (is_inside(window_knob(w, i), x, y))
            return (part)(PART_KNOB + i);
    if (y < r.y || y >= r.y + r.h || !w->wave.channels)
        return PART_NONE;
    bounds b = window_bounds(w);
    if (fabs(x - window_time_to_x(w, b.fade)) <= GRIP && y >= r.y + r.h * 0.6)
        return PART_FADE;
    if (fabs(x - window_time_to_x(w, b.end)) <= GRIP)
        return PART_END;
    return fabs(x - window_time_to_x(w, b.start)) <= GRIP ? PART_START : PART_NONE;
}

static void change(window *w, port number, double value) {
    if (w->value[number] == (float)value)
        return;
    w->value[number] = (float)value;
    w->set_value(w->context, number, (float)value);
    w->dirty = true;
}

/* Moves a handle to the mouse. */
static void drag_handle(window *w, double x) {
    rectangle r = window_wave(w);
    double all = w->wave.seconds, t = fmin(fmax((x - r.x) / r.w, 0), 1) * all;
    bounds b = window_bounds(w);
    double stretch = w->value[STRETCH] > 0 ? (double)w->value[STRETCH] : 1;
    if (w->dragged == PART_START) {
        double start = fmin(fmin(t, 30), b.end - 0.001), end = b.start + (double)w->value[LENGTH];
        if (w->value[LENGTH] > 0) /* the end stays */
            change(w, LENGTH, fmax(0.001, end - fmax(0, start)));
        change(w, START, fmax(0, start));
    } else if (w->dragged == PART_END) {
        change(w, LENGTH, t >= all ? 0 : fmin(60, fmax(0.001, t - b.start)));
    } else {
        change(w, FADE, fmin(30, fmax(0, b.end - t) * stretch));
    }
}

/* Turns a knob by the mouse's way; 200 pixels are its whole range, 2000 with Shift. */
static void drag_knob(window *w, double y, bool fine) {
    const knob *k = &window_knobs[w->dragged - PART_KNOB];
    double way = (w->grabbed_y - y) / (fine ? 2000 : 200);
    change(w, k->port, knob_value(k, knob_place(k, w->grabbed_value) + way));
}

static void press(window *w, const XButtonEvent *e) {
    part at = find_part(w, e->x, e->y);
    bool twice = at == w->clicked_part && e->time - w->clicked < DOUBLE_CLICK;
    w->clicked = e->time;
    w->clicked_part = at;
    if (e->button == Button4 || e->button == Button5) {
        int way = e->button == Button4 ? 1 : -1;
        if (at == PART_LIST) {
            scroll_by(w, -3 * way);
        } else if (at >= PART_KNOB) {
            const knob *k = &window_knobs[at - PART_KNOB];
            change(w, k->port, knob_value(k, knob_place(k, (double)w->value[k->port]) + way * 0.01));
        }
    } else if (e->button == Button1) {
        if (at == PART_LIST)
            choose_row(w, w->scroll + (int)((e->y - window_list(w).y) / ROW));
        else if (at == PART_BYPASS)
            change(w, ENABLED, w->value[ENABLED] > 0 ? 0 : 1);
        else if (at >= PART_KNOB && twice)
            change(w, window_knobs[at - PART_KNOB].port, window_knobs[at - PART_KNOB].normal);
        else
            w->dragged = at;
        w->grabbed_y = e->y;
        w->grabbed_value = at >= PART_KNOB ? (double)w->value[window_knobs[at - PART_KNOB].port] : 0;
    }
}

static void handle(window *w, XEvent *e) {
    switch (e->type) {
    case Expose:
        w->dirty = true;
        break;
    case ConfigureNotify:
        w->width = e->xconfigure.width > WINDOW_LEAST_WIDTH ? e->xconfigure.width : WINDOW_LEAST_WIDTH;
        w->height = e->xconfigure.height > WINDOW_LEAST_HEIGHT ? e->xconfigure.height : WINDOW_LEAST_HEIGHT;
        cairo_xlib_surface_set_size(w->surface, w->width, w->height);
        scroll_by(w, 0);
        break;
    case ButtonPress:
        press(w, &e->xbutton);
        break;
    case ButtonRelease:
        w->dragged = PART_NONE;
        break;
    case MotionNotify:
        if (w->dragged >= PART_KNOB)
            drag_knob(w, e->xmotion.y, (e->xmotion.state & ShiftMask) != 0);
        else if (w->dragged >= PART_START && w->dragged <= PART_FADE && w->wave.channels)
            drag_handle(w, e->xmotion.x);
        break;
    default:
        break;
    }
}

void window_idle(window *w) {
    while (XPending(w->display)) {
        XEvent e;
        XNextEvent(w->display, &e);
        handle(w, &e);
    }
    if (wave_reader_take(&w->reader, &w->wave))
        w->dirty = true;
    if (w->dirty) {
        w->dirty = false;
        window_draw(w);
        XFlush(w->display);
    }
}
