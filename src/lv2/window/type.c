/* Typing in the plug-in's window: a value for the knob that has the keyboard, else a text that the list is searched
 * for, or a path. */
#include "window.h"

#include <X11/Xutil.h>
#include <X11/keysym.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        window_change(w, k->port, fmin(fmax(value, k->least), k->most));
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
    window_refresh_list(w);
    path[WINDOW_PATH_MOST - 1] = '\0';
    window_choose_path(w, path);
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
    window_refresh_list(w);
    return true;
}

bool window_type(window *w, XKeyEvent *e, KeySym symbol) {
    char text[8] = "";
    KeySym given;
    const int length = XLookupString(e, text, sizeof text, &given, NULL);
    const unsigned char c = length == 1 && !(e->state & (ControlMask | Mod1Mask)) ? (unsigned char)*text : 0;
    w->dirty = true;
    return window_is_knob(w->focus)                                     ? type_value(w, c, symbol)
           : w->focus == PART_LIST || (w->focus == PART_NONE && c != 0) ? type_search(w, c, symbol)
                                                                        : false;
}
