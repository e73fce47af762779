/* The terminal: its width, the width of UTF-8 text, and status lines that leave out parts in order to fit. */
#ifndef GPUCONV_CLI_TERMINAL_H
#define GPUCONV_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the columns of the terminal at a descriptor: as the terminal reports, else as COLUMNS in the environment
 * says, else 80. */
int gc_terminal_columns(int descriptor);

/* Returns how many columns UTF-8 text takes on a terminal: 2 for a wide character, 0 for a combining one. A control
 * character or an invalid byte counts 1. */
int gc_display_columns(const char *text);

/* Copies text so that it takes at most `columns` columns and `size` bytes, including the terminating zero. The middle
 * of a longer text is replaced by "...". Control characters and invalid bytes become '?'. */
void gc_shorten(const char *text, int columns, char *to, size_t size);

/* A name of a list. */
typedef struct gc_names {
    const char *const *name;
    int count, shown; /* the number of names, and the index of the one that is shown */
} gc_names;

/* Shortens the name that is shown, as gc_shorten does. If the width allows it, the result fits no other name: folders
 * that all names have in common are left out first, then the gap is moved from the middle. `size` is at least 4. */
void gc_shorten_among(const gc_names *names, int columns, char *to, size_t size);

enum { GC_PARTS_MOST = 16, GC_PART_BYTES = 128 };

/* A status line made of parts. */
typedef struct gc_status_line {
    struct {
        char text[GC_PART_BYTES];
        int rank;
    } part[GC_PARTS_MOST];
    int count;
    const gc_names *names; /* one is shown before part `name_at` and shortened to fit; NULL: no name */
    int name_at;
} gc_status_line;

/* Appends a part. If the line is too long, parts of the highest rank are left out first, from the last one; parts of
 * rank 0 are always shown. */
void gc_status_part(gc_status_line *line, int rank, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Appends `before`, the time as h:mm:ss or m:ss, and `after`. */
void gc_status_time(gc_status_line *line, int rank, const char *before, double seconds, const char *after);

/* Appends a name. It is shortened to 12 columns before a part of rank 1 is left out. `names` must outlive the line. */
void gc_status_name(gc_status_line *line, const gc_names *names);

/* Writes the line into `text`, in at most `columns` columns; 0 means no limit. */
void gc_status_write(const gc_status_line *line, int columns, char *text, size_t size);

/* ---- Progress on standard error: on a terminal one line that is redrawn, else a new line every ten seconds ---- */

typedef struct gc_meter {
    bool quiet, terminal, drawn;
    double printed; /* seconds after the beginning at which a line was last due */
} gc_meter;

gc_meter gc_meter_begin(bool quiet);

/* Returns whether a new line is due, `seconds` after the beginning. */
bool gc_meter_due(gc_meter *meter, double seconds);

/* Prints the line, within the width of the terminal. */
void gc_meter_print(gc_meter *meter, const gc_status_line *line);

/* Draws a line over the last one on a terminal, one column narrower than the terminal, so that it never scrolls. */
void gc_meter_draw(const gc_status_line *line);

/* Erases the line from the terminal; called before a message is printed. */
void gc_meter_clear(gc_meter *meter);

/* Appends a bar such as [#####     ] for a share from 0 to 1. */
void gc_meter_bar(gc_status_line *line, int rank, double share);

#endif
