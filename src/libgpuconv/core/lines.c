/* Splits a text into lines. The buffer grows up to the length of the longest line. */
#include "lines.h"

#include "cancel.h"
#include "descriptor.h"
#include "error.h"
#include "files.h"
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PORTION = 1 << 16 };

gpuconv_status gc_lines_open(gc_lines *l, const char *path, int64_t longest, int64_t most, gpuconv_error *error) {
    struct stat st;
    *l = (gc_lines){.name = path, .longest = longest, .most = most, .fd = gc_open_to_read(path)};
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

/* Reads until `bytes` bytes are in the buffer or the text has ended. */
static gpuconv_status reach(gc_lines *l, int64_t bytes, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    while (!status && !l->ended && l->end - l->begin < bytes)
        status = fill(l, error);
    return status;
}

/* Skips a byte order mark at the beginning of the text. */
static gpuconv_status skip_mark(gc_lines *l, gpuconv_error *error) {
    static const char mark[] = "\xEF\xBB\xBF";
    const int64_t length = sizeof mark - 1;
    gpuconv_status status = l->begun ? GPUCONV_OK : reach(l, length, error);
    if (!status && !l->begun && l->end - l->begin >= length && memcmp(l->buffer + l->begin, mark, (size_t)length) == 0)
        l->begin += length;
    l->begun = true;
    return status;
}

gpuconv_status gc_lines_peek(gc_lines *l, int64_t bytes, const char **text, int64_t *length, gpuconv_error *error) {
    gpuconv_status status = skip_mark(l, error);
    if (!status)
        status = reach(l, bytes, error);
    *text = l->buffer + l->begin;
    *length = l->end - l->begin;
    return status;
}

/* Returns the first LF or CR of some bytes; NULL: there is none. */
static const char *find_ending(const char *from, size_t bytes) {
    const char *newline = memchr(from, '\n', bytes), *end = newline ? newline : from + bytes;
    const char *carriage_return = memchr(from, '\r', (size_t)(end - from));
    return carriage_return ? carriage_return : newline;
}

gpuconv_status gc_lines_next(gc_lines *l, char **line, gpuconv_error *error) {
    int64_t length = 0; /* without its ending */
    const char *ending = NULL;
    *line = NULL;
    l->number++;
    gpuconv_status status = skip_mark(l, error);
    while (!status) {
        const char *from = l->buffer + l->begin;
        const int64_t left = l->end - l->begin;
        if (left > length)
            ending = find_ending(from + length, (size_t)(left - length));
        const int64_t whole = ending ? ending - from : left;
        if (whole > length && memchr(from + length, '\0', (size_t)(whole - length)))
            return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s, line %lld: a zero byte: not plain text; save it as UTF-8",
                           l->name, (long long)l->number);
        length = whole;
        if (length > l->longest)
            return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s, line %lld: longer than %lld bytes", l->name,
                           (long long)l->number, (long long)l->longest);
        if (l->ended || (ending && (*ending == '\n' || left > length + 1))) /* the byte behind a CR is known */
            break;
        ending = NULL;
        status = fill(l, error);
    }
    if (status || (!ending && length == 0))
        return status;
    *line = l->buffer + l->begin;
    const bool more = l->end - l->begin > length + 1;
    l->ending = !ending ? "" : *ending == '\n' ? "\n" : more && ending[1] == '\n' ? "\r\n" : "\r";
    l->begin += length + (int64_t)strlen(l->ending);
    (*line)[length] = '\0';
    return GPUCONV_OK;
}

void gc_lines_close(gc_lines *l) {
    if (l->fd >= 0)
        close(l->fd);
    free(l->buffer);
    *l = (gc_lines){.fd = -1};
}
