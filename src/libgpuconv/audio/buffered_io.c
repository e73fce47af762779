/* Small reads come out of a page, large ones go to their place. */
#include "buffered_io.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void gc_buffered_io_begin(gc_buffered_io *f, int fd, int64_t size) {
    off_t begin = lseek(fd, 0, SEEK_CUR);
    f->fd = fd;
    f->failure = 0;
    f->begin = begin > 0 ? begin : 0;
    f->length = size > f->begin ? size - f->begin : 0;
    f->at = f->page_at = f->page_bytes = 0;
}

/* As much as there is, or as can be read. */
static int64_t fetch(gc_buffered_io *f, void *to, int64_t bytes, int64_t at) {
    int64_t done = 0;
    while (done < bytes) {
        ssize_t n = pread(f->fd, (char *)to + done, (size_t)(bytes - done), f->begin + at + done);
        if (n > 0) {
            done += n;
        } else if (n == 0) {
            break;
        } else if (errno != EINTR) {
            f->failure = f->failure ? f->failure : errno;
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

static sf_count_t io_read(void *bytes, sf_count_t count, void *file) {
    gc_buffered_io *f = file;
    if (count <= 0)
        return 0;
    const bool inside = f->at >= f->page_at && f->at < f->page_at + f->page_bytes;
    if (!(inside && count <= f->page_at + f->page_bytes - f->at)) {
        if (count > GC_PAGE / 4) {
            int64_t got = fetch(f, bytes, count, f->at);
            f->at += got;
            return got;
        }
        f->page_at = f->at;
        f->page_bytes = fetch(f, f->page, GC_PAGE, f->at);
    }
    const int64_t there = f->page_at + f->page_bytes - f->at, got = count < there ? count : there;
    memcpy(bytes, f->page + (f->at - f->page_at), (size_t)got);
    f->at += got;
    return got;
}

SF_VIRTUAL_IO *gc_buffered_io_io(void) {
    static SF_VIRTUAL_IO io = {io_length, io_seek, io_read, NULL, io_tell};
    return &io;
}
