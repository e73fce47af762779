/* The intermediate form of a matrix of responses: a list of entries, read from text and then summed into routes. */
#ifndef GC_IR_MATRIX_H
#define GC_IR_MATRIX_H

#include "libgpuconv/core/map.h"
#include "libgpuconv/core/table.h"
#include "object.h"
#include "read_files.h"

enum { GC_MATRIX_MAX_FILES = 16384, GC_MATRIX_MAX_FOLDER = 4096 };

/* A part of a channel of a file, a single tap or a Hilbert transform that is added to a route. */
typedef struct gc_matrix_entry {
    int input, output; /* from 0 */
    int file;          /* index of the file; -1: a single tap (dirac), or with a length a Hilbert transform */
    int channel;       /* of the file, from 0 */
    int line;          /* of the text */
    double factor;     /* gain */
    double delay, offset, length; /* frames (offset and length of the file), or seconds with `in_seconds`; length 0: to
                                     the end */
    bool in_seconds;
} gc_matrix_entry;

/* A route that follows another one. */
typedef struct gc_matrix_copy {
    int input, output, from_input, from_output, line;
} gc_matrix_copy;

typedef struct gc_matrix_file {
    char *path;
    gpuconv_ir *ir; /* NULL: not read yet */
    int line;       /* of its first use */
} gc_matrix_file;

/* A part of a file of another rate than the matrix, converted, or a Hilbert transform. */
typedef struct gc_matrix_part {
    int file;             /* -1: a Hilbert transform */
    int64_t from, frames; /* of the file */
    gpuconv_ir *ir;
} gc_matrix_part;

typedef struct gc_matrix {
    const char *path;
    char *home;   /* the folder of the text; ends with a slash; "": the current folder */
    char *folder; /* files are relative to it; in the same form */
    gc_matrix_entry *entry;
    int64_t entries, capacity;
    gc_matrix_copy *copy; /* in the order of the text */
    int64_t copies, copy_capacity;
    gc_matrix_file file[GC_MATRIX_MAX_FILES];
    gc_map by_path; /* from a path to its file */
    int files, inputs, outputs;
    gc_matrix_part *part;
    int64_t parts, part_capacity;
    int64_t hilbert_frames;    /* of all Hilbert transforms among them */
    bool resampled;            /* a part is of another rate */
    char ignored[400];         /* settings that do not change the samples, with ", " before each */
    int line;                  /* current line of the text, for messages */
    int64_t max_frames;        /* of a route; 0: no limit */
    double rate;               /* of the files; 0: not known yet */
    double rate_without_files; /* of the response if no file has one */
    double file_rate;          /* of files that state none; 0: these are refused */
} gc_matrix;

/* As gpuconv_ir_load_matrix. @param file_rate as in gc_matrix */
gpuconv_status gc_matrix_load(const char *path, double rate, double file_rate, gpuconv_ir **ir, gpuconv_error *error);

/* Fails with FORMAT; the message begins with the path and the current line. */
gpuconv_status gc_matrix_fail(const gc_matrix *matrix, gpuconv_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Notes that a setting was ignored, once. */
void gc_matrix_ignore(gc_matrix *matrix, const char *setting);

/* Enlarges the matrix, if it is smaller, to contain an input and an output (from 0). */
static inline void gc_matrix_grow(gc_matrix *matrix, int input, int output) {
    matrix->inputs = input >= matrix->inputs ? input + 1 : matrix->inputs;
    matrix->outputs = output >= matrix->outputs ? output + 1 : matrix->outputs;
}

/* Appends an entry of the current line. Returns FORMAT (too many), MEMORY. */
gpuconv_status gc_matrix_add(gc_matrix *matrix, const gc_matrix_entry *entry, gpuconv_error *error);

/* Notes that a route follows another one. Returns FORMAT (too many), MEMORY. */
gpuconv_status gc_matrix_add_copy(gc_matrix *matrix, const gc_matrix_copy *copy, gpuconv_error *error);

/* Gives the routes that follow another one its entries, instead of those before the copy. Returns FORMAT (nothing to
 * copy, entries behind the copy, too many), MEMORY. */
gpuconv_status gc_matrix_resolve_copies(gc_matrix *matrix, gpuconv_error *error);

/* Compares entries by output, input and line, for qsort. */
int gc_matrix_compare(const void *entry, const void *other);

/* Stores the index of a file in *index; lists the file at its first use. Returns FORMAT (too many), MEMORY. */
gpuconv_status gc_matrix_find_file(gc_matrix *matrix, const char *name, int *index, gpuconv_error *error);

/* Joins folder, name and suffix; an absolute name ignores the folder. Returns NULL without memory; the caller frees it.
 */
char *gc_matrix_join_path(const char *folder, const char *name, const char *suffix);

/* Reads the coefficients and filters of a configuration of BruteFIR. Returns FILE, FORMAT, MEMORY, CANCELLED. */
gpuconv_status gc_matrix_read_brutefir(gc_matrix *matrix, gc_lines *lines, gpuconv_error *error);

/* Lists a response that has been read under `path` and stores its index in *index; takes `ir` over, also on failure.
 * Returns FORMAT (too many), MEMORY. */
gpuconv_status gc_matrix_add_response(gc_matrix *matrix, const char *path, gpuconv_ir *ir, int *index,
                                      gpuconv_error *error);

/* Reads all listed files that have not been read, on all cores. The rate of a matrix that has none is that of the first
 * file. Returns the errors of reading, MEMORY, CANCELLED. */
gpuconv_status gc_matrix_load_files(gc_matrix *matrix, gpuconv_error *error);

/* Cuts a part out of a file and resamples it to the rate of the matrix. *part belongs to the matrix, which keeps it for
 * further entries. Returns MEMORY, CANCELLED, ARGUMENT (the rates differ too much). */
gpuconv_status gc_matrix_convert_part(gc_matrix *matrix, int file, int64_t from, int64_t frames,
                                      const gpuconv_ir **part, gpuconv_error *error);

/* Makes a Hilbert transform of `frames` frames, as zita-convolver's programs do; it belongs to the matrix, as a part.
 * Returns MEMORY, FORMAT (too many). */
gpuconv_status gc_matrix_make_hilbert(gc_matrix *matrix, int64_t frames, const gpuconv_ir **part, gpuconv_error *error);

/* Frees the files and the parts of them. */
void gc_matrix_free_files(gc_matrix *matrix);

/* Calls `visit` with the path of each file that a text file of routes names, up to its first error. */
void gc_matrix_visit_files(const char *path, gc_file_visit *visit, void *context);

#endif
