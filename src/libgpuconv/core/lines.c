/* Splits a text into lines. The buffer grows up to the length of the longest line. */
#include "lines.h"

#include "cancel.h"
#include "descriptor.h"
#include "error.h"
#include "input_file.h"
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PORTION = 1 << 16 };

/* Opens a file without waiting for a writer of a named pipe: reading waits, and can be interrupted. @return as open()
 */
static int open_to_read(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return fd < 0 && errno == EWOULDBLOCK ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : fd; /* a lease is broken */
}

gpuconv_status gc_lines_open(gc_lines *l, const char *path, int64_t longest, int64_t most, gpuconv_error *error) {
    struct stat st;
    *l = (gc_lines){.name = path, .longest = longest, .most = most, .fd = open_to_read(path)};
    if (l->fd < 0 || fstat(l->fd, &st) != 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(errno));
    return S_ISDIR(st.st_mode) ? gc_fail(error, GPUCONV_ERROR_FILE, "%s: is a directory", path) : GPUCONV_OK;
}

gpuconv_status gc_lines_open_regular(gc_lines *l, const char *path, int64_t longest, int64_t most,
                                     gpuconv_error *error) {
    int64_t size;
    *l = (gc_lines){.name = path, .longest = longest, .most = most, .fd = gc_input_file_open(path, &size, error)};
    return l->fd < 0 ? GPUCONV_ERROR_FILE : GPUCONV_OK;
}

static gpuconv_status read_descriptor(gc_lines *l, char *to, int64_t bytes, int64_t *got, gpuconv_error *error) {
    const int err = gc_read_some(l->fd, to, bytes, got, gc_cancel_flag());
    return !err               ? GPUCONV_OK
           : err == ECANCELED ? gc_fail_cancelled(error, l->name)
                              : gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", l->name, strerror(err));
}

/* Reads more bytes behind those in the buffer. */
static gpuconv_status fill(gc_lines *l, gpuconv_error *error) {
    int64_t got = 0;
    if (l->begin > 0) {
        memmove(l->buffer, l->buffer + l->begin, (size_t)(l->end - l->begin));
        l->end -= l->begin;
        l->begin = 0;
    }
    if (l->capacity - l->end < PORTION) {
        const int64_t capacity = gc_power_of_two(l->end + 2 * PORTION);
        char *larger = realloc(l->buffer, (size_t)capacity);
        if (!larger)
            return gc_fail_memory(error, l->name);
        l->buffer = larger;
        l->capacity = capacity;
    }
    gpuconv_status status =
        (l->read ? l->read : read_descriptor)(l, l->buffer + l->end, PORTION - 1, &got, error); /* - 1: for a NUL */
    l->end += got;
    l->total += got;
    l->ended = got == 0;
    if (!status && l->total > l->most)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: is longer than %lld bytes", l->name, (long long)l->most);
    return status;
}

gpuconv_status gc_lines_next(gc_lines *l, char **line, gpuconv_error *error) {
    int64_t length = 0; /* without a newline */
    const char *newline = NULL;
    *line = NULL;
    l->number++;
    for (;;) {
        const int64_t left = l->end - l->begin;
        if (left > length)
            newline = memchr(l->buffer + l->begin + length, '\n', (size_t)(left - length));
        const int64_t whole = newline ? newline - (l->buffer + l->begin) : left;
        if (whole > length && memchr(l->buffer + l->begin + length, '\0', (size_t)(whole - length)))
            return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s, line %lld: a zero byte: not plain text; save it as UTF-8",
                           l->name, (long long)l->number);
        length = whole;
        if (length > l->longest)
            return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s, line %lld: longer than %lld bytes", l->name,
                           (long long)l->number, (long long)l->longest);
        if (newline || l->ended)
            break;
        gpuconv_status status = fill(l, error);
        if (status)
            return status;
    }
    if (!newline && length == 0)
        return GPUCONV_OK;
    *line = l->buffer + l->begin;
    (*line)[length] = '\0';
    l->ended_by_newline = newline != NULL;
    l->begin += length + (newline != NULL);
    return GPUCONV_OK;
}

void gc_lines_close(gc_lines *l) {
    if (l->fd >= 0)
        close(l->fd);
    free(l->buffer);
    *l = (gc_lines){.fd = -1};
}
