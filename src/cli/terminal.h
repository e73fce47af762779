/* Lines that fit the terminal: its width, the width of text on it, and lines that leave out what has no room. */
#ifndef GPUCONV_CLI_TERMINAL_H
#define GPUCONV_CLI_TERMINAL_H

#include <stddef.h>

/* Returns how many columns the terminal behind a descriptor has: by its own word, else by COLUMNS in the environment,
 * else 80. */
int gc_terminal_columns(int descriptor);

/* Returns how many columns UTF-8 text takes on a terminal: 2 for a wide character, 0 for a combining one. A control
 * character or a byte that is no UTF-8 counts 1. */
int gc_display_columns(const char *text);

/* Copies text so that it takes at most `columns` columns and `room` bytes with its end: what is longer is shortened in
 * the middle, where "..." stands. Control characters and bytes that are no UTF-8 become '?'. */
void gc_shorten(const char *text, int columns, char *to, size_t room);

enum { GC_PARTS_MOST = 16, GC_PART_BYTES = 128 };

/* A line made of parts. */
typedef struct gc_status_line {
    struct {
        char text[GC_PART_BYTES];
        int rank;
    } part[GC_PARTS_MOST];
    int count;
    const char *name; /* stands at `name_at` and is shortened; NULL: none */
    int name_at;
} gc_status_line;

/* Appends a part. Where the line is too long, parts of the highest rank are left out first, the last of them before
 * others; parts of rank 0 always stay. */
void gc_status_part(gc_status_line *line, int rank, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Appends h:mm:ss or m:ss behind `before`. */
void gc_status_time(gc_status_line *line, int rank, const char *before, double seconds, const char *after);

/* Appends a name, which is shortened in the middle before it hides a part of rank 1. `name` must outlive the line. */
void gc_status_name(gc_status_line *line, const char *name);

/* Writes the line in at most `columns` columns into `text`. 0 columns: as long as it is. */
void gc_status_write(const gc_status_line *line, int columns, char *text, size_t room);

#endif
