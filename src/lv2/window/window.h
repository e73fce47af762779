/* The LV2 plug-in's window: its state, and the interfaces of its parts: LV2 messages (ui.c), X11 events (window.c),
 * drawing (draw.c), places (layout.c) and the list of a folder (folder.c).
 *
 * The host calls everything on its UI thread, except that window.c reads a response on a thread of its own. */
#ifndef GPUCONV_LV2_WINDOW_H
#define GPUCONV_LV2_WINDOW_H

#include "gpuconv.h"
#include "lv2/ports.h" /* before Xlib.h, whose Bool is the name of a member of LV2_Atom_Forge */

#include <X11/Xlib.h>
#include <cairo/cairo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { WINDOW_PATH_MOST = 4096, WAVE_BINS = 1024, WAVE_CHANNELS = 4, KNOBS_MOST = 11, BUTTONS_MOST = 6 };
/* In units that `scale` pixels make. */
enum { WINDOW_WIDTH = 840, WINDOW_HEIGHT = 480, WINDOW_LEAST_WIDTH = 700, WINDOW_LEAST_HEIGHT = 400 };

/* ---- The list of a folder ---- */
typedef struct folder_entry {
    char *name; /* path from the folder of the list; of recent files the whole path */
    bool is_folder;
    int shown; /* of the entry i: the number of the i-th one that is shown */
} folder_entry;

typedef struct folder {
    bool sets;                   /* of SOFA files, instead of audio and matrices */
    bool is_recent;              /* the files that were chosen last, not a folder */
    char path[WINDOW_PATH_MOST]; /* "" for recent files */
    bool is_deep;                /* the folders below were read too */
    folder_entry *entry;         /* folders first, each in the order of names with numbers by value; the first one is
                                    ".." except at the root; behind them those of the folders below */
    int total, count;            /* entries of the folder, and entries that are shown */
    int seen;                    /* names that were looked at */
} folder;

/* Reads a folder: its folders, and its files that look like responses; hidden ones are left out. A folder that cannot
 * be read is empty but for "..". @return false: out of memory */
bool folder_read(folder *f, const char *path);
void folder_free(folder *f);

/* Reads the files that were chosen last, in any window, the newest first. @return false: out of memory */
bool folder_read_recent(folder *f);

/* Shows only the entries whose name contains a text, in small or capital letters; of a folder also those some levels
 * below it, which the first search reads. An empty text shows the folder alone. */
void folder_search(folder *f, const char *text);

/* Returns an entry that is shown, from 0 to count - 1. */
const folder_entry *folder_at(const folder *f, int row);

/* Writes the path of an entry. @return false: it is too long */
bool folder_path_of(const folder *f, const folder_entry *e, char path[WINDOW_PATH_MOST]);

/* Stores a file as the newest one that was chosen; if it cannot be written, the next window does not know it. */
void folder_remember(const char *path);

/* Writes the folder of the newest file of `f`'s kind. @return whether there is one */
bool folder_recall(const folder *f, char path[WINDOW_PATH_MOST]);

/* ---- The envelope of a response ---- */
typedef struct wave {
    float peak[WAVE_CHANNELS][WAVE_BINS]; /* magnitudes relative to the largest */
    int channels;                         /* drawn ones, at most WAVE_CHANNELS; 0: nothing was read */
    int total;                            /* of the file; of a set its directions */
    float direction[WAVE_BINS][2];        /* of a set: azimuth and elevation of some */
    int directions;
    double seconds, rate;
    char message[200]; /* why nothing was read; "": none */
} wave;

typedef struct wave_reader {
    pthread_t thread;
    bool running, is_set;
    _Atomic bool done;
    volatile int cancel;
    char path[WINDOW_PATH_MOST];
    wave made; /* by the thread */
} wave_reader;

/* ---- The window ---- */
typedef enum part {
    PART_NONE,
    PART_LIST,
    PART_START,
    PART_END,
    PART_FADE,
    PART_SOURCE, /* around the head */
    PART_KNOB,   /* the first one */
    PART_BUTTON = PART_KNOB + KNOBS_MOST,
    PARTS = PART_BUTTON + BUTTONS_MOST
} part;

typedef struct knob {
    port port;
    const char *name, *unit;
    double least, most, normal;
    bool logarithmic;
    int decimals;
} knob;

typedef struct button {
    const char *name;
    port port;         /* that it turns on and off; PORTS: none */
    bool inverted;     /* it is on while the port is off */
    int right, bottom; /* its place: units from the right and from the lower edge; below 0: in the first line */
    int width;
} button;

/* The parts of a form of the plug-in. */
typedef struct panel {
    const knob *knob;
    int knobs, columns;
    const button *button;
    int buttons;
} panel;

/* The buttons that all panels begin with: bypass, and the list of recent files; then those of the second response. */
enum { BYPASS, RECENT, SECOND, UNLOAD };

extern const panel window_panels[2]; /* of reverbs and of spatial forms */

typedef struct rectangle {
    double x, y, w, h;
} rectangle;

typedef struct window {
    Display *display;
    Window id;
    cairo_surface_t *surface;
    double scale; /* pixels of a unit; 0 before window_open: as X says */
    int width, height;
    bool dirty;
    float value[PORTS];
    char bundle[WINDOW_PATH_MOST]; /* of the plug-in; its response is shown with the folder of the last window */
    lv2_form form;
    const panel *panel;
    int slot;                           /* the response that is shown and chosen */
    char path[SLOTS][WINDOW_PATH_MOST]; /* of the responses; "": none */
    char error[512];                    /* why the last one was not loaded; "": it was */
    char search[WINDOW_PATH_MOST];      /* the text that the list is searched for, or a typed path */
    char typed[24];                     /* value for the knob that has the keyboard */
    Window source;                      /* of a file that is dragged over the window */
    folder folder;
    int scroll, cursor; /* first row shown, and the row that the keyboard chooses */
    part focus;         /* of the keyboard */
    wave wave;
    wave_reader reader;
    part dragged;
    double grabbed_y;
    float grabbed[PORTS]; /* the values at the press, which Escape brings back */
    Time clicked;         /* for double clicks */
    part clicked_part;
    void (*set_value)(void *context, port number, float value);
    void (*set_path)(void *context, int slot, const char *path);
    void *context;
} window;

/* Opens the window inside `parent`. @return false: no display, or out of memory */
bool window_open(window *w, Window parent);
void window_close(window *w);

/* Handles the events that have arrived and draws the window if something has changed. */
void window_idle(window *w);

/* Shows another response in a slot: its folder, its name and its envelope. */
void window_show_path(window *w, int slot, const char *path);

/* Shows why a response was not loaded, until Escape is pressed or another one is; "": nothing. */
void window_show_error(window *w, const char *error);

/* Places of the parts of the window. Rows of the list are ROW high, those of knobs KNOB_HEIGHT and more in a larger
 * window. */
enum { ROW = 20, KNOB_HEIGHT = 88 };
rectangle window_list(const window *w);
rectangle window_search(const window *w);
rectangle window_wave(const window *w);
rectangle window_button(const window *w, int index);

/* Returns whether a button is drawn and can be pressed. "unload" is there only while a second response is shown. */
bool window_has_button(const window *w, int index);

rectangle window_knob(const window *w, int index);
rectangle window_meter(const window *w, int index);

/* The edits in seconds of the file: where the response begins and ends, and where its fade begins. */
typedef struct bounds {
    double start, end, fade;
} bounds;
bounds window_bounds(const window *w);
double window_time_to_x(const window *w, double seconds);

/* The default of a knob. */
double window_normal(const window *w, int index);

/* A knob's place from 0 to 1, and its value there. */
double knob_place(const knob *k, double value);
double knob_value(const knob *k, double place);

/* The place of a direction around the head, seen from above, and its inverse. */
void window_direction_to_xy(const window *w, double azimuth, double elevation, double *x, double *y);
void window_xy_to_direction(const window *w, double x, double y, double *azimuth, double *elevation);

void window_draw(window *w);

#endif
