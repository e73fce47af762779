/* The LV2 plug-in's window: its state, and the interfaces of its parts: LV2 messages (ui.c), X11 events (window.c),
 * drawing (draw.c), the list of a folder (folder.c) and the envelope of the response (wave.c).
 *
 * The host calls everything on its UI thread, except that wave.c reads a response on a thread of its own. */
#ifndef GPUCONV_LV2_WINDOW_H
#define GPUCONV_LV2_WINDOW_H

#include "gpuconv.h"
#include "lv2/ports.h"

#include <X11/Xlib.h>
#include <cairo/cairo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { WINDOW_PATH_MOST = 4096, WAVE_BINS = 1024, WAVE_CHANNELS = 4, KNOBS = 10 };
/* In units that `scale` pixels make. */
enum { WINDOW_WIDTH = 840, WINDOW_HEIGHT = 480, WINDOW_LEAST_WIDTH = 700, WINDOW_LEAST_HEIGHT = 400 };

/* ---- The list of a folder ---- */
typedef struct folder_entry {
    char *name;
    bool is_folder;
} folder_entry;

typedef struct folder {
    char path[WINDOW_PATH_MOST];
    folder_entry *entry; /* folders first, each in the order of names with numbers by value; the first one is ".."
                            except at the root */
    int count;
} folder;

/* Reads a folder: its folders, and its files that look like audio or a matrix; hidden ones are left out. A folder that
 * cannot be read is empty but for "..". @return false: out of memory */
bool folder_read(folder *f, const char *path);
void folder_free(folder *f);

/* Stores a path as the folder in which the next window starts; if it cannot be written, the next one does not know it.
 */
void folder_remember(const char *path);

/* Reads the folder that was stored last. @return whether there is one */
bool folder_recall(char path[WINDOW_PATH_MOST]);

/* ---- The envelope of a response ---- */
typedef struct wave {
    float peak[WAVE_CHANNELS][WAVE_BINS]; /* magnitudes relative to the largest */
    int channels;                         /* drawn ones, at most WAVE_CHANNELS; 0: nothing was read */
    int total;                            /* of the file */
    double seconds, rate;
    char message[200]; /* why nothing was read; "": none */
} wave;

typedef struct wave_reader {
    pthread_t thread;
    bool running;
    _Atomic bool done;
    volatile int cancel;
    char path[WINDOW_PATH_MOST];
    wave made; /* by the thread */
} wave_reader;

/* Starts to read a response; a read in progress is cancelled. */
void wave_reader_begin(wave_reader *r, const char *path);

/* Copies the envelope once it is there. @return whether it is new */
bool wave_reader_take(wave_reader *r, wave *to);

/* Cancels a read in progress and waits for its thread. */
void wave_reader_end(wave_reader *r);

/* ---- The window ---- */
typedef enum part {
    PART_NONE,
    PART_LIST,
    PART_START,
    PART_END,
    PART_FADE,
    PART_KNOB, /* the first one; KNOBS of them */
    PART_BUTTON = PART_KNOB + KNOBS,
    PARTS = PART_BUTTON + 3
} part;

/* The buttons, from PART_BUTTON on. */
enum { BYPASS, REVERSED, LEVELLED, BUTTONS };

typedef struct knob {
    port port;
    const char *name, *unit;
    double least, most, normal;
    bool logarithmic;
    int decimals;
} knob;

extern const knob window_knobs[KNOBS];

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
    char path[WINDOW_PATH_MOST];   /* of the response */
    char error[512];               /* why the last one was not loaded; "": it was */
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
    void (*set_path)(void *context, const char *path);
    void *context;
} window;

/* Opens the window inside `parent`. @return false: no display, or out of memory */
bool window_open(window *w, Window parent);
void window_close(window *w);

/* Handles the events that have arrived and draws the window if something has changed. */
void window_idle(window *w);

/* Shows another response: its folder, its name and its envelope. */
void window_show_path(window *w, const char *path);

/* Shows why a response was not loaded, until Escape is pressed or another one is; "": nothing. */
void window_show_error(window *w, const char *error);

/* Where the parts are. Rows of the list are ROW high. */
enum { ROW = 20 };
rectangle window_list(const window *w);
rectangle window_wave(const window *w);
rectangle window_button(const window *w, int index);
rectangle window_knob(const window *w, int index);
rectangle window_meter(const window *w, int index);

/* The edits in seconds of the file: where the response begins and ends, and where its fade begins. */
typedef struct bounds {
    double start, end, fade;
} bounds;
bounds window_bounds(const window *w);
double window_time_to_x(const window *w, double seconds);

/* A knob's place from 0 to 1, and its value there. */
double knob_place(const knob *k, double value);
double knob_value(const knob *k, double place);

void window_draw(window *w);

#endif
