/* Small reads are served from the buffer; large ones go directly to the destination. */
#include "buffered_io.h"

#include "libgpuconv/core/memory.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void gc_buffered_io_begin(gc_buffered_io *f, int fd, int64_t size) {
    off_t begin = lseek(fd, 0, SEEK_CUR);
    f->fd = fd;
    f->err = 0;
    f->origin = f->begin = begin > 0 ? begin : 0;
    f->length = f->end = size > f->begin ? size - f->begin : 0;
    f->at = f->buffer_at = f->buffer_bytes = f->head_bytes = 0;
    f->head = NULL;
}

void gc_buffered_io_set_header(gc_buffered_io *f, const unsigned char *head, int64_t head_bytes, int64_t from,
                               int64_t bytes) {
    f->head = head;
    f->head_bytes = head_bytes;
    f->begin = f->origin + from;
    f->buffer_bytes = 0;
    f->length = f->end = head_bytes + bytes;
    f->at = 0;
}

void gc_buffered_io_claim(gc_buffered_io *f, int64_t length) {
    f->length = length;
}

/* Reads up to `bytes` bytes at `at`, fewer at the end of the file or after an error (in f->err). */
static int64_t read_file_at(gc_buffered_io *f, void *to, int64_t bytes, int64_t at) {
    int64_t done = 0;
    while (done < bytes) {
        ssize_t n = pread(f->fd, (char *)to + done, (size_t)(bytes - done), f->begin + at + done);
        if (n > 0) {
            done += n;
        } else if (n == 0) {
            break;
        } else if (errno != EINTR) {
            f->err = f->err ? f->err : errno;
            break;
        }
    }
    return done;
}

static sf_count_t io_length(void *file) {
    return ((gc_buffered_io *)file)->length;
}

static sf_count_t io_tell(void *file) {
    return ((gc_buffered_io *)file)->at;
}

static sf_count_t io_seek(sf_count_t offset, int whence, void *file) {
    gc_buffered_io *f = file;
    int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? f->at : f->length, to;
    if (__builtin_add_overflow(from, offset, &to) || to < 0)
        return -1;
    return f->at = to;
}

/* Reads up to `count` bytes of the file at `at`, through the buffer if they are few. */
static int64_t read_buffered(gc_buffered_io *f, void *bytes, int64_t count, int64_t at) {
    const bool in_buffer = at >= f->buffer_at && at < f->buffer_at + f->buffer_bytes;
    if (!(in_buffer && count <= f->buffer_at + f->buffer_bytes - at)) {
        if (count > GC_BUFFERED_IO_BYTES / 4)
            return read_file_at(f, bytes, count, at);
        f->buffer_at = at;
        f->buffer_bytes = read_file_at(f, f->buffer, GC_BUFFERED_IO_BYTES, at);
    }
    const int64_t got = gc_min(count, f->buffer_at + f->buffer_bytes - at);
    memcpy(bytes, f->buffer + (at - f->buffer_at), (size_t)got);
    return got;
}

static sf_count_t io_read(void *bytes, sf_count_t count, void *file) {
    gc_buffered_io *f = file;
    const int64_t at = f->length > f->end && f->at >= f->length - 128 ? f->at - f->length + f->end : f->at;
    int64_t done = 0;
    count = gc_min(count, f->end - at);
    if (count <= 0 || at < 0)
        return 0;
    if (at < f->head_bytes) {
        done = gc_min(count, f->head_bytes - at);
        memcpy(bytes, f->head + at, (size_t)done);
    }
    if (done < count)
        done += read_buffered(f, (char *)bytes + done, count - done, at + done - f->head_bytes);
    f->at += done;
    return done;
}

SF_VIRTUAL_IO *gc_buffered_io_callbacks(void) {
    static SF_VIRTUAL_IO io = {io_length, io_seek, io_read, NULL, io_tell};
    return &io;
}
