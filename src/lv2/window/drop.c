/* Files that are dropped on the plug-in's window: the protocol Xdnd of version 5 (freedesktop.org), of which a program
 * is asked for its list of URIs. */
#include "window.h"

#include <X11/Xatom.h>
#include <stdlib.h>
#include <string.h>

static Atom atom(const window *w, const char *name) {
    return XInternAtom(w->display, name, False);
}

void window_accept_drops(window *w) {
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
        window_choose_path(w, path);
    if (list)
        XFree(list);
    answer(w, "XdndFinished", path != NULL);
    w->source = None;
}

void window_handle_drop(window *w, const XEvent *e) {
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
