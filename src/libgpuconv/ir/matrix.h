/* The intermediate form of a matrix of responses: a list of entries, read from text and then summed into routes. */
#ifndef GC_IR_MATRIX_H
#define GC_IR_MATRIX_H

#include "object.h"

#include <stdio.h>

enum { GC_MATRIX_MAX_FILES = 4096, GC_MATRIX_MAX_FOLDER = 4096 };

/* A part of a channel of a file, or a single tap, that is added to a route. */
typedef struct gc_matrix_entry {
    int input, output;            /* from 0 */
    int file;                     /* index of the file; -1: a single tap (dirac) */
    int channel;                  /* of the file, from 0 */
    int line;                     /* of the text */
    double factor;                /* gain */
    double delay, offset, length; /* frames, or seconds with `in_seconds`; length 0: to the end */
    bool in_seconds;
} gc_matrix_entry;

typedef struct gc_matrix_file {
    char *path;
    gpuconv_ir *ir;
} gc_matrix_file;

typedef struct gc_matrix {
    const char *path;
    char *folder; /* files are relative to it; ends with a slash; "": the current folder */
    gc_matrix_entry *entry;
    int64_t entries, capacity;
    gc_matrix_file file[GC_MATRIX_MAX_FILES];
    int files, inputs, outputs;
    int line;           /* current line of the text, for messages */
    int64_t max_frames; /* of a route; 0: no limit */
    double rate;        /* of the files; 0: not known yet */
} gc_matrix;

/* Fails with FORMAT; the message begins with the path and the current line. */
gpuconv_status gc_matrix_fail(const gc_matrix *matrix, gpuconv_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends an entry of the current line. Returns FORMAT (too many), MEMORY. */
gpuconv_status gc_matrix_add(gc_matrix *matrix, const gc_matrix_entry *entry, gpuconv_error *error);

/* Stores the index of a file in *index and reads the file at its first use. Returns the errors of reading, MEMORY. */
gpuconv_status gc_matrix_find_file(gc_matrix *matrix, const char *name, int *index, gpuconv_error *error);

/* Joins folder, name and suffix; an absolute name ignores the folder. Returns NULL without memory; the caller frees it.
 */
char *gc_matrix_join_path(const char *folder, const char *name, const char *suffix);

/* Reads the entries of a text file; `jconvolver` selects the grammar. Returns FILE, FORMAT, MEMORY, CANCELLED. */
gpuconv_status gc_matrix_read_text(gc_matrix *matrix, FILE *file, bool jconvolver, gpuconv_error *error);

#endif
