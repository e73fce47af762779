/* Reading of text files line by line, from files, named pipes and devices. LF, CR LF or CR ends a line, and a byte
 * order mark is skipped. The memory does not depend on the length of the text: a line and the text have limits, and a
 * signal ends the wait for a pipe. */
#ifndef GC_CORE_LINES_H
#define GC_CORE_LINES_H

#include "gpuconv.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct gc_lines {
    const char *name;      /* of the file, in messages; not copied */
    int64_t longest, most; /* bytes of a line and of the text; a longer one is refused */
    int64_t number;        /* of the line that gc_lines_next returned, from 1 */
    const char *ending;    /* of the same line: "\n", "\r\n", "\r"; "": the text ended */
    /* Reads 1 to `bytes` bytes, or 0 at the end. NULL: reads from fd. */
    gpuconv_status (*read)(struct gc_lines *lines, char *to, int64_t bytes, int64_t *got, gpuconv_error *error);
    int fd;
    char *buffer;
    int64_t capacity, begin, end, total; /* begin, end: of the bytes in the buffer that no line had yet */
    bool begun, ended;
} gc_lines;

/* Opens a file. Fails with FILE (also: a folder). After gc_lines_close(), also after a failure, it may be opened again.
 */
gpuconv_status gc_lines_open(gc_lines *lines, const char *path, int64_t longest, int64_t most, gpuconv_error *error);

/* Opens a file like gc_lines_open(), and fails with FILE if it is a pipe or a device. */
gpuconv_status gc_lines_open_regular(gc_lines *lines, const char *path, int64_t longest, int64_t most,
                                     gpuconv_error *error);

/* Finds the bytes that come next, without taking them: at least `bytes` unless the text ends before. They are valid
 * until the next call. Fails as gc_lines_next. */
gpuconv_status gc_lines_peek(gc_lines *lines, int64_t bytes, const char **text, int64_t *length, gpuconv_error *error);

/* Returns the next line in *line, ended by NUL instead of its ending, and valid until the next call. *line NULL: the
 * text has ended. Fails with FILE, FORMAT (a NUL byte, a limit), MEMORY or CANCELLED, by the calling thread's flag. */
gpuconv_status gc_lines_next(gc_lines *lines, char **line, gpuconv_error *error);

/* Closes the file and frees the buffer. */
void gc_lines_close(gc_lines *lines);

#endif
