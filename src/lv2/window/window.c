/* The plug-in's window on X11: opens it inside the host's, and handles the mouse and the keyboard. A key types a value
 * for the knob that has the keyboard, or a text that the list is searched for, or a path. Files are dropped by the
 * protocol Xdnd of version 5 (freedesktop.org), in which a program is asked for its list of URIs. */
#include "window.h"

#include <X11/Xatom.h>
#include <X11/Xutil.h>
#include <X11/keysym.h>
#include <cairo/cairo-xlib.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- The envelope of a response, which a thread reads, so that a large file does not stop the window ---- */

/* Reads the directions of a set, or some of many. */
static gpuconv_status read_set(const char *path, wave *w, gpuconv_error *error) {
    gpuconv_sofa *set;
    gpuconv_status status = gpuconv_sofa_open(path, 0, &set, error);
    if (status)
        return status;
    w->total = gpuconv_sofa_directions(set);
    w->rate = gpuconv_sofa_rate(set);
    const int step = (w->total - 1) / WAVE_BINS + 1;
    for (int i = 0; i < w->total; i += step) {
        double at[3];
        gpuconv_sofa_position(set, i, at);
        float *direction = w->direction[w->directions++];
        direction[0] = (float)(atan2(at[1], at[0]) * 180 / M_PI);
        direction[1] = (float)(atan2(at[2], hypot(at[0], at[1])) * 180 / M_PI);
    }
    gpuconv_sofa_free(set);
    return status;
}

/* Takes the magnitudes of the first routes. */
static void measure(const gpuconv_ir *ir, wave *w) {
    int64_t frames = gpuconv_ir_frames(ir);
    double most = 0;
    (void)gpuconv_ir_peak(ir, &most);
    for (int i = 0; i < gpuconv_ir_inputs(ir); i++)
        for (int o = 0; o < gpuconv_ir_outputs(ir) && w->channels < WAVE_CHANNELS; o++) {
            const float *taps = gpuconv_ir_taps(ir, i, o);
            if (!taps)
                continue;
            float *peak = w->peak[w->channels++];
            for (int64_t f = 0; f < frames; f++) {
                float magnitude = fabsf(taps[f]) / (float)(most > 0 ? most : 1);
                int bin = (int)((double)f / (double)frames * WAVE_BINS);
                peak[bin] = fmaxf(peak[bin], magnitude);
            }
        }
    w->total = gpuconv_ir_routes(ir);
    w->rate = gpuconv_ir_rate(ir);
    w->seconds = (double)frames / w->rate;
}

static void *read_wave(void *argument) {
    wave_reader *r = argument;
    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_ir *ir = NULL;
    (void)gpuconv_cancel_set(&r->cancel);
    memset(&r->made, 0, sizeof r->made);
    if (r->is_set)
        (void)read_set(r->path, &r->made, &error);
    else if (gpuconv_ir_load_as(r->path, 48000, NULL, &ir, &error) == GPUCONV_OK)
        measure(ir, &r->made);
    (void)snprintf(r->made.message, sizeof r->made.message, "%.199s", error.message);
    gpuconv_ir_free(ir);
    atomic_store(&r->done, true);
    return NULL;
}

/* Cancels a read in progress and waits for its thread. */
static void wave_reader_end(wave_reader *r) {
    if (!r->running)
        return;
    __atomic_store_n(&r->cancel, 1, __ATOMIC_RELAXED);
    pthread_join(r->thread, NULL);
    r->running = false;
}

/* Starts to read a response or a set; a read in progress is cancelled. */
static void wave_reader_begin(wave_reader *r, bool is_set, const char *path) {
    wave_reader_end(r);
    r->cancel = 0;
    r->is_set = is_set;
    atomic_store(&r->done, false);
    (void)snprintf(r->path, sizeof r->path, "%s", path);
    r->running = pthread_create(&r->thread, NULL, read_wave, r) == 0; /* without it, no envelope is shown */
}

/* Copies the envelope once it is there. @return whether it is new */
static bool wave_reader_take(wave_reader *r, wave *to) {
    if (!r->running || !atomic_load(&r->done))
        return false;
    wave_reader_end(r);
    *to = r->made;
    return true;
}

enum { DOUBLE_CLICK = 400 /* ms */, GRIP = 8 /* pixels beside a handle */ };

/* ---- The list ---------------------------------------------------------------------------------------------------- */

static void scroll_by(window *w, int rows) {
    int shown = (int)(window_list(w).h / ROW), most = w->folder.count > shown ? w->folder.count - shown : 0;
    w->scroll += rows;
    w->scroll = w->scroll < 0 ? 0 : w->scroll > most ? most : w->scroll;
    w->dirty = true;
}

/* Shows the list again after the folder or the search has changed. */
static void refresh_list(window *w) {
    folder_search(&w->folder, *w->search == '/' || *w->search == '~' ? "" : w->search);
    w->scroll = w->cursor = 0;
    w->dirty = true;
}

static void open_folder(window *w, const char *path) {
    *w->search = '\0';
    (void)folder_read(&w->folder, path); /* without memory only a part is shown */
    refresh_list(w);
}

/* Cuts the last name off a path. @return false: it has no folder */
static bool cut_name(char *path) {
    char *slash = strrchr(path, '/');
    if (slash)
        slash[slash == path] = '\0';
    return slash;
}

/* Moves to the folder above. */
static void open_parent(window *w) {
    char path[WINDOW_PATH_MOST];
    (void)snprintf(path, sizeof path, "%s", w->folder.path);
    if (cut_name(path))
        open_folder(w, path);
}

/* Opens a folder in the list, or asks the plug-in for a file. */
static void choose_path(window *w, const char *path) {
    struct stat s;
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) {
        open_folder(w, path);
        return;
    }
    folder_remember(path);
    w->set_path(w->context, w->slot, path);
}

/* Opens the row of the list. */
static void choose_row(window *w, int row) {
    char path[WINDOW_PATH_MOST];
    if (row < 0 || row >= w->folder.count)
        return;
    const folder_entry *e = folder_at(&w->folder, row);
    if (strcmp(e->name, "..") == 0)
        open_parent(w);
    else if (folder_path_of(&w->folder, e, path))
        choose_path(w, path);
}

/* Shows the response of the slot: its envelope, and its folder, unless recent files are listed. */
static void show_slot(window *w, bool with_folder) {
    char folder_path[WINDOW_PATH_MOST], own[PATH_MAX], included[WINDOW_PATH_MOST];
    struct stat about;
    const char *path = w->path[w->slot];
    (void)snprintf(folder_path, sizeof folder_path, "%s", path);
    if (with_folder && !w->folder.is_recent && cut_name(folder_path)) {
        if (realpath(w->bundle, own) && strcmp(own, folder_path) == 0 && !folder_recall(&w->folder, folder_path)) {
            const int length =
                snprintf(included, sizeof included, "%s/impulses", own); /* beside the default response */
            const bool is_there =
                !w->folder.sets && length < WINDOW_PATH_MOST && stat(included, &about) == 0 && S_ISDIR(about.st_mode);
            (void)snprintf(folder_path, sizeof folder_path, "%s", is_there ? included : own);
        }
        if (strcmp(folder_path, w->folder.path) != 0)
            open_folder(w, folder_path);
    }
    wave_reader_end(&w->reader);
    w->wave.channels = w->wave.directions = 0;
    (void)snprintf(w->wave.message, sizeof w->wave.message, "%s", *path ? "" : "choose a second response");
    if (*path)
        wave_reader_begin(&w->reader, w->form.is_space, path);
    w->dirty = true;
}

void window_show_path(window *w, int slot, const char *path) {
    char resolved[PATH_MAX];
    const char *full = realpath(path, resolved) ? resolved : path;
    const bool is_new = strcmp(full, w->path[slot]) != 0; /* the same one leaves the folder that is looked at */
    (void)snprintf(w->path[slot], sizeof w->path[slot], "%s", full);
    if (slot == w->slot)
        show_slot(w, is_new);
}

void window_show_error(window *w, const char *error) {
    w->dirty = w->dirty || strcmp(w->error, error) != 0;
    (void)snprintf(w->error, sizeof w->error, "%s", error);
}

/* ---- Files that are dropped -------------------------------------------------------------------------------------- */

static Atom atom(const window *w, const char *name) {
    return XInternAtom(w->display, name, False);
}

/* Says to other programs that files can be dropped here, and handles their messages. */
static void accept_drops(window *w) {
    const Atom version = 5;
    XChangeProperty(w->display, w->id, atom(w, "XdndAware"), XA_ATOM, 32, PropModeReplace,
                    (const unsigned char *)&version, 1);
}

static int ignore_error(Display *display, XErrorEvent *e) {
    (void)display, (void)e;
    return 0;
}

/* Sends a message to the source, which may have gone: X would end the program. */
static void answer(const window *w, const char *name, bool accepts) {
    const long action = accepts ? (long)atom(w, "XdndActionCopy") : 0;
    const bool is_status = strcmp(name, "XdndStatus") == 0;
    XEvent e = {.xclient = {.type = ClientMessage,
                            .display = w->display,
                            .window = w->source,
                            .message_type = atom(w, name),
                            .format = 32,
                            .data.l = {(long)w->id, accepts, is_status ? 0 : action, 0, is_status ? action : 0}}};
    XErrorHandler before = XSetErrorHandler(ignore_error);
    (void)XSendEvent(w->display, w->source, False, NoEventMask, &e);
    XSync(w->display, False);
    (void)XSetErrorHandler(before);
}

/* Decodes the first file of a list of URIs in place. @return its path, or NULL */
static const char *first_file(char *list) {
    static const char scheme[] = "file://";
    char *to;
    for (list[strcspn(list, "\r\n")] = '\0'; strncmp(list, scheme, sizeof scheme - 1) != 0;)
        return NULL;
    char *path = strchr(list + sizeof scheme - 1, '/'); /* behind the name of the machine */
    if (!path)
        return NULL;
    for (char *from = to = path; *from; from++) {
        const char digits[3] = {from[0] == '%' ? from[1] : '\0', from[0] == '%' && from[1] ? from[2] : '\0', '\0'};
        const bool coded = strlen(digits) == 2 && strspn(digits, "0123456789abcdefABCDEF") == 2;
        *to++ = coded ? (char)strtol(digits, NULL, 16) : *from;
        from += coded ? 2 : 0;
    }
    *to = '\0';
    return path;
}

/* Takes the list that the source has sent. */
static void take_list(window *w, Atom property) {
    Atom type;
    int format;
    unsigned long count, left;
    unsigned char *list = NULL;
    bool good =
        property != None && XGetWindowProperty(w->display, w->id, property, 0, WINDOW_PATH_MOST, True, AnyPropertyType,
                                               &type, &format, &count, &left, &list) == Success;
    good = good && list && format == 8;
    const char *path = good ? first_file((char *)list) : NULL;
    if (path && strlen(path) < WINDOW_PATH_MOST)
        choose_path(w, path);
    if (list)
        XFree(list);
    answer(w, "XdndFinished", path != NULL);
    w->source = None;
}

static void handle_drop(window *w, const XEvent *e) {
    const Atom selection = atom(w, "XdndSelection");
    if (e->type == SelectionNotify && e->xselection.selection == selection && w->source) {
        take_list(w, e->xselection.property);
    } else if (e->type == ClientMessage && e->xclient.format == 32) {
        const Atom kind = e->xclient.message_type;
        const long *data = e->xclient.data.l;
        if (kind == atom(w, "XdndPosition") || kind == atom(w, "XdndDrop"))
            w->source = (Window)data[0];
        if (kind == atom(w, "XdndPosition"))
            answer(w, "XdndStatus", true);
        else if (kind == atom(w, "XdndDrop"))
            XConvertSelection(w->display, selection, atom(w, "text/uri-list"), selection, w->id, (Time)data[2]);
    }
}

/* ---- Typing ------------------------------------------------------------------------------------------------------ */

/* Changes a control. */
static void change(window *w, port number, double value) {
    if (w->value[number] == (float)value)
        return;
    w->value[number] = (float)value;
    w->set_value(w->context, number, (float)value);
    w->dirty = true;
}

static bool is_knob(part p) {
    return p >= PART_KNOB && p < PART_BUTTON;
}

/* Appends a character of Latin 1 to a text in UTF-8, if there is room. */
static void append(char *text, size_t room, unsigned char c) {
    const size_t length = strlen(text);
    if (length + 3 > room)
        return;
    if (c < 0x80)
        (void)snprintf(text + length, room - length, "%c", c);
    else
        (void)snprintf(text + length, room - length, "%c%c", 0xc0 | c >> 6, 0x80 | (c & 0x3f));
}

/* Removes the last character. @return false: there is none */
static bool shorten(char *text) {
    size_t length = strlen(text);
    if (length == 0)
        return false;
    while (--length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) {
    }
    text[length] = '\0';
    return true;
}

/* Reads a number with a sign, and a comma or a point, whatever the locale of the host. @return false: it is none */
static bool read_number(const char *text, double *value) {
    const bool negative = *text == '-';
    double scale = 0;
    bool digits = false;
    *value = 0;
    for (text += negative || *text == '+'; *text; text++) {
        if ((*text == '.' || *text == ',') && !(scale > 0)) {
            scale = 1;
        } else if (*text >= '0' && *text <= '9') {
            *value = 10 * *value + (*text - '0');
            scale *= 10;
            digits = true;
        } else {
            return false;
        }
    }
    *value = (negative ? -*value : *value) / fmax(scale, 1);
    return digits;
}

/* Gives the knob the value that was typed, limited to its range. */
static void take_value(window *w) {
    const knob *k = &w->panel->knob[w->focus - PART_KNOB];
    double value;
    if (read_number(w->typed, &value))
        change(w, k->port, fmin(fmax(value, k->least), k->most));
    *w->typed = '\0';
}

/* Types into the text of a knob. */
static bool type_value(window *w, unsigned char c, KeySym symbol) {
    const bool typing = *w->typed;
    if (c > ' ' && strchr("0123456789.,-+", c))
        append(w->typed, sizeof w->typed, c);
    else if (symbol == XK_BackSpace && typing)
        (void)shorten(w->typed);
    else if (symbol == XK_Escape && typing)
        *w->typed = '\0';
    else if (typing && (symbol == XK_Return || symbol == XK_KP_Enter || symbol == XK_Tab || symbol == XK_ISO_Left_Tab))
        take_value(w);
    else
        return false;
    return symbol != XK_Tab && symbol != XK_ISO_Left_Tab; /* which then also moves on */
}

/* Opens the path that was typed. */
static void take_path(window *w) {
    char path[2 * WINDOW_PATH_MOST];
    const char *home = getenv("HOME");
    const bool below_home = *w->search == '~' && home;
    (void)snprintf(path, sizeof path, "%s%s", below_home ? home : "", w->search + below_home);
    *w->search = '\0';
    refresh_list(w);
    path[WINDOW_PATH_MOST - 1] = '\0';
    choose_path(w, path);
}

/* Types into the search of the list. */
static bool type_search(window *w, unsigned char c, KeySym symbol) {
    if (symbol == XK_Escape && *w->search)
        *w->search = '\0';
    else if (symbol == XK_BackSpace && *w->search)
        (void)shorten(w->search);
    else if ((symbol == XK_Return || symbol == XK_KP_Enter) && (*w->search == '/' || *w->search == '~')) {
        take_path(w);
        return true;
    } else if ((c > ' ' && c != 0x7f) || (c == ' ' && *w->search)) {
        append(w->search, sizeof w->search, c);
        w->focus = PART_LIST;
    } else
        return false;
    refresh_list(w);
    return true;
}

/* Handles a key that types a value or a search. @return false: it has another meaning */
static bool type_key(window *w, XKeyEvent *e, KeySym symbol) {
    char text[8] = "";
    KeySym given;
    const int length = XLookupString(e, text, sizeof text, &given, NULL);
    const unsigned char c = length == 1 && !(e->state & (ControlMask | Mod1Mask)) ? (unsigned char)*text : 0;
    w->dirty = true;
    return is_knob(w->focus)                                            ? type_value(w, c, symbol)
           : w->focus == PART_LIST || (w->focus == PART_NONE && c != 0) ? type_search(w, c, symbol)
                                                                        : false;
}

/* ---- Opening and closing ----------------------------------------------------------------------------------------- */

/* Returns the scale of the user's text, whose resolution is 96 for 1. */
static double find_scale(Display *display) {
    const char *dpi = XGetDefault(display, "Xft", "dpi");
    const long number = dpi ? strtol(dpi, NULL, 10) : 0;
    return number > 0 ? (double)number / 96 : 1;
}

bool window_open(window *w, Window parent) {
    w->width = WINDOW_WIDTH;
    w->height = WINDOW_HEIGHT;
    w->display = XOpenDisplay(NULL);
    if (!w->display)
        return false;
    w->scale = fmin(fmax(w->scale > 0 ? w->scale : find_scale(w->display), 1), 4);
    const int width = (int)(WINDOW_WIDTH * w->scale), height = (int)(WINDOW_HEIGHT * w->scale);
    int screen = DefaultScreen(w->display);
    if (!parent)
        parent = RootWindow(w->display, screen);
    w->id = XCreateSimpleWindow(w->display, parent, 0, 0, (unsigned)width, (unsigned)height, 0, 0,
                                BlackPixel(w->display, screen));
    XSizeHints *hints = XAllocSizeHints();
    if (hints) {
        hints->flags = PMinSize | PBaseSize;
        hints->min_width = (int)(WINDOW_LEAST_WIDTH * w->scale);
        hints->min_height = (int)(WINDOW_LEAST_HEIGHT * w->scale);
        hints->base_width = width;
        hints->base_height = height;
        XSetWMNormalHints(w->display, w->id, hints);
        XFree(hints);
    }
    XSelectInput(w->display, w->id,
                 ExposureMask | StructureNotifyMask | ButtonPressMask | ButtonReleaseMask | ButtonMotionMask |
                     KeyPressMask);
    w->surface = cairo_xlib_surface_create(w->display, w->id, DefaultVisual(w->display, screen), width, height);
    accept_drops(w);
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

/* ---- The mouse --------------------------------------------------------------------------------------------------- */

static bool is_inside(rectangle r, double x, double y) {
    return x >= r.x && x < r.x + r.w && y >= r.y && y < r.y + r.h;
}

/* Returns the part under the mouse. The fade's grip is at the lower edge, so that it can be taken where lines meet. */
static part find_part(const window *w, double x, double y) {
    rectangle r = window_wave(w);
    if (is_inside(window_list(w), x, y))
        return PART_LIST;
    for (int i = 0; i < w->panel->buttons; i++)
        if (window_has_button(w, i) && is_inside(window_button(w, i), x, y))
            return (part)(PART_BUTTON + i);
    for (int i = 0; i < w->panel->knobs; i++)
        if (is_inside(window_knob(w, i), x, y))
            return (part)(PART_KNOB + i);
    if (is_inside(window_search(w), x, y))
        return PART_LIST;
    if (w->form.is_space)
        return is_inside(r, x, y) ? PART_SOURCE : PART_NONE;
    if (y < r.y || y >= r.y + r.h || !w->wave.channels)
        return PART_NONE;
    bounds b = window_bounds(w);
    if (fabs(x - window_time_to_x(w, b.fade)) <= GRIP && y >= r.y + r.h * 0.6)
        return PART_FADE;
    if (fabs(x - window_time_to_x(w, b.end)) <= GRIP)
        return PART_END;
    return fabs(x - window_time_to_x(w, b.start)) <= GRIP ? PART_START : PART_NONE;
}

/* Moves a handle to a time of the file. */
static void move_handle(window *w, part which, double t) {
    double all = w->wave.seconds;
    bounds b = window_bounds(w);
    double stretch = w->value[STRETCH] > 0 ? (double)w->value[STRETCH] : 1;
    t = fmin(fmax(t, 0), all);
    if (which == PART_START) {
        double start = fmin(fmin(t, 30), b.end - 0.001), end = b.start + (double)w->value[LENGTH];
        if (w->value[LENGTH] > 0) /* the end stays */
            change(w, LENGTH, fmax(0.001, end - fmax(0, start)));
        change(w, START, fmax(0, start));
    } else if (which == PART_END) {
        change(w, LENGTH, t >= all ? 0 : fmin(60, fmax(0.001, t - b.start)));
    } else {
        change(w, FADE, fmin(30, fmax(0, w->value[REVERSE] > 0 ? t - b.start : b.end - t) * stretch));
    }
}

/* Moves the sources to a place around the head; they stay above or below it. */
static void move_source(window *w, double x, double y) {
    double azimuth, elevation;
    window_xy_to_direction(w, x, y, &azimuth, &elevation);
    change(w, AZIMUTH, azimuth);
    change(w, ELEVATION, w->value[ELEVATION] < 0 ? -elevation : elevation);
}

/* Turns a knob by the mouse's way; 200 units are its whole range, 2000 with Shift. */
static void drag_knob(window *w, double y, bool fine) {
    const knob *k = &w->panel->knob[w->dragged - PART_KNOB];
    double way = (w->grabbed_y - y) / (fine ? 2000 : 200);
    change(w, k->port, knob_value(k, knob_place(k, (double)w->grabbed[k->port]) + way));
}

/* Turns a knob by hundredths of its range. */
static void step_knob(window *w, part which, double hundredths) {
    const knob *k = &w->panel->knob[which - PART_KNOB];
    change(w, k->port, knob_value(k, knob_place(k, (double)w->value[k->port]) + hundredths * 0.01));
}

static void press_button(window *w, int index) {
    const port number = w->panel->button[index].port;
    if (number < PORTS) {
        change(w, number, w->value[number] > 0 ? 0 : 1);
    } else if (index == SECOND) {
        w->slot = !w->slot;
        show_slot(w, true);
    } else if (index == UNLOAD) {
        w->set_path(w->context, w->slot, "");
    } else if (w->folder.is_recent) {
        w->folder.is_recent = false;
        show_slot(w, true);
    } else {
        *w->search = '\0';
        (void)folder_read_recent(&w->folder); /* without memory only a part is shown */
        refresh_list(w);
    }
}

/* Sets a knob or a handle to its default. */
static void reset(window *w, part which) {
    if (is_knob(which))
        change(w, w->panel->knob[which - PART_KNOB].port, window_normal(w, which - PART_KNOB));
    else if (which == PART_SOURCE) {
        change(w, AZIMUTH, 0);
        change(w, ELEVATION, 0);
    } else if (which >= PART_START && which <= PART_FADE)
        change(w, which == PART_START ? START : which == PART_END ? LENGTH : FADE, 0);
}

static void press(window *w, const XButtonEvent *e) {
    const double x = e->x / w->scale, y = e->y / w->scale;
    part at = find_part(w, x, y);
    bool twice = at == w->clicked_part && e->time - w->clicked < DOUBLE_CLICK;
    if (e->button == Button4 || e->button == Button5) {
        int way = e->button == Button4 ? 1 : -1;
        if (at == PART_LIST)
            scroll_by(w, -3 * way);
        else if (is_knob(at))
            step_knob(w, at, way);
        return;
    }
    if (e->button != Button1)
        return;
    w->clicked = e->time;
    w->clicked_part = at;
    w->focus = is_knob(at) || is_inside(window_search(w), x, y) ? at : PART_NONE;
    *w->typed = '\0';
    w->dirty = true;
    w->grabbed_y = y;
    memcpy(w->grabbed, w->value, sizeof w->grabbed);
    if (at == PART_LIST && w->focus == PART_NONE) {
        w->cursor = w->scroll + (int)((y - window_list(w).y) / ROW);
        choose_row(w, w->cursor);
    } else if (at >= PART_BUTTON) {
        press_button(w, at - PART_BUTTON);
    } else if (twice) {
        reset(w, at);
    } else {
        w->dragged = at;
        if (at == PART_SOURCE)
            move_source(w, x, y);
    }
}

/* ---- The keyboard ------------------------------------------------------------------------------------------------ */

/* Returns whether the keyboard can choose a part; the handles are left out where there is no wave. */
static bool is_present(const window *w, int which) {
    if (which >= PART_BUTTON)
        return window_has_button(w, which - PART_BUTTON);
    return which >= PART_KNOB ? which < PART_KNOB + w->panel->knobs
                              : which == PART_LIST || (which >= PART_START && which <= PART_FADE && w->wave.channels);
}

/* Moves the keyboard to the next part. */
static void move_focus(window *w, int way) {
    int next = (int)w->focus;
    do
        next = (next + way + PARTS) % PARTS;
    while (!is_present(w, next));
    w->focus = (part)next;
    w->dirty = true;
}

/* Ends a drag and brings back the values before it. */
static void undo_drag(window *w) {
    static const port handles[] = {LENGTH, START, FADE, AZIMUTH, ELEVATION};
    if (is_knob(w->dragged))
        change(w, w->panel->knob[w->dragged - PART_KNOB].port,
               (double)w->grabbed[w->panel->knob[w->dragged - PART_KNOB].port]);
    else
        for (size_t i = 0; i < sizeof handles / sizeof *handles; i++)
            change(w, handles[i], (double)w->grabbed[handles[i]]);
    w->dragged = PART_NONE;
}

/* Moves the cursor of the list, and scrolls so that it is shown. */
static void move_cursor(window *w, int rows) {
    const int shown = (int)(window_list(w).h / ROW), last = w->folder.count - 1, to = w->cursor + rows;
    w->cursor = to < 0 || last < 0 ? 0 : to > last ? last : to;
    if (w->cursor < w->scroll || w->cursor >= w->scroll + shown)
        scroll_by(w, w->cursor < w->scroll ? w->cursor - w->scroll : w->cursor - w->scroll - shown + 1);
    w->dirty = true;
}

/* Moves what has the keyboard by steps to the right or up. */
static void step(window *w, int right, int up) {
    const bounds b = window_bounds(w);
    if (w->focus == PART_LIST && right < 0)
        open_parent(w);
    else if (w->focus == PART_LIST)
        move_cursor(w, -up);
    else if (is_knob(w->focus))
        step_knob(w, w->focus, right + up);
    else if (w->focus >= PART_START && w->focus <= PART_FADE && w->wave.channels)
        move_handle(w, w->focus,
                    (w->focus == PART_START ? b.start
                     : w->focus == PART_END ? b.end
                                            : b.fade) +
                        (right + up) * w->wave.seconds / 200);
}

static void press_key(window *w, XKeyEvent *e) {
    const KeySym symbol = XLookupKeysym(e, 0);
    if (type_key(w, e, symbol))
        return;
    switch (symbol) {
    case XK_Tab:
    case XK_ISO_Left_Tab:
        move_focus(w, e->state & ShiftMask ? -1 : 1);
        break;
    case XK_Escape:
        if (w->dragged != PART_NONE)
            undo_drag(w);
        else if (*w->error)
            window_show_error(w, "");
        else
            w->focus = PART_NONE;
        w->dirty = true;
        break;
    case XK_Left:
        step(w, -1, 0);
        break;
    case XK_Right:
        step(w, 1, 0);
        break;
    case XK_Up:
        step(w, 0, 1);
        break;
    case XK_Down:
        step(w, 0, -1);
        break;
    case XK_Home:
    case XK_Delete:
    case XK_BackSpace:
        reset(w, w->focus);
        break;
    case XK_Return:
    case XK_KP_Enter:
    case XK_space:
        if (w->focus == PART_LIST)
            choose_row(w, w->cursor);
        else if (w->focus >= PART_BUTTON)
            press_button(w, w->focus - PART_BUTTON);
        break;
    default:
        break;
    }
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

/* Asks X for the keyboard. For a window that is not shown that is an error, which ends programs. */
static void take_keyboard(const window *w, Time when) {
    XWindowAttributes a;
    if (XGetWindowAttributes(w->display, w->id, &a) && a.map_state == IsViewable)
        XSetInputFocus(w->display, w->id, RevertToParent, when);
}

/* Takes the size of the window over, in units. */
static void resize(window *w, int width, int height) {
    const int across = (int)(width / w->scale), down = (int)(height / w->scale);
    w->width = across > WINDOW_LEAST_WIDTH ? across : WINDOW_LEAST_WIDTH;
    w->height = down > WINDOW_LEAST_HEIGHT ? down : WINDOW_LEAST_HEIGHT;
    cairo_xlib_surface_set_size(w->surface, width, height);
    scroll_by(w, 0);
}

static void handle(window *w, XEvent *e) {
    switch (e->type) {
    case Expose:
        w->dirty = true;
        break;
    case ConfigureNotify:
        resize(w, e->xconfigure.width, e->xconfigure.height);
        break;
    case ButtonPress:
        take_keyboard(w, e->xbutton.time);
        press(w, &e->xbutton);
        break;
    case KeyPress:
        press_key(w, &e->xkey);
        break;
    case ButtonRelease:
        w->dragged = PART_NONE;
        break;
    case MotionNotify:
        if (is_knob(w->dragged))
            drag_knob(w, e->xmotion.y / w->scale, (e->xmotion.state & ShiftMask) != 0);
        else if (w->dragged == PART_SOURCE)
            move_source(w, e->xmotion.x / w->scale, e->xmotion.y / w->scale);
        else if (w->dragged >= PART_START && w->dragged <= PART_FADE && w->wave.channels)
            move_handle(w, w->dragged,
                        (e->xmotion.x / w->scale - window_wave(w).x) / window_wave(w).w * w->wave.seconds);
        break;
    default:
        handle_drop(w, e);
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
