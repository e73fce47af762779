/*
 * libsndfile seeks in the header while it opens a file, and reads the first samples to recognise their format. A source
 * therefore keeps the header and the first samples in `head`, and forgets all bytes behind them once they were read.
 */
#include "pipe_source.h"

#include "extent.h"
#include "libgpuconv/core/descriptor.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_HEADER = 1 << 20, /* a stream with a longer header is spooled */
    PEEKED_BYTES =
        16, /* of the samples; libsndfile reads them on opening: read beforehand so that opening never blocks */
    KEPT_SAMPLES = 4096,  /* bytes of samples that stay in `head` */
    SPOOL_BYTES = 1 << 16 /* bytes that are copied at a time */
};

int64_t gc_spool_most = INT64_C(4) << 30;

struct gc_source {
    int fd, err;
    const volatile int *cancel;
    char *name;
    bool raw, spooled, streaming;
    bool ended;              /* read() has returned 0 */
    int64_t at;              /* libsndfile's position in bytes */
    int64_t end;             /* bytes that libsndfile was given or that are in `head` */
    int64_t kept, keep;      /* bytes in `head`; bytes that `head` is meant to keep */
    int64_t length;          /* the file size that libsndfile is told */
    int64_t begin;           /* bytes of the header that replaces the original one; 0: none does */
    unsigned char *original; /* the header as it was read, if `head` contains another one; else NULL */
    int64_t original_bytes;
    int64_t room; /* allocated bytes of `head` */
    unsigned char *head;
};

/* Reads `count` bytes, or fewer at the end of the stream. Returns false on an error, which is in s->err. */
static bool read_all(gc_source *s, unsigned char *to, int64_t count, int64_t *got) {
    *got = 0;
    while (*got < count && !s->ended && !s->err) {
        int64_t n;
        s->err = gc_read_some(s->fd, to + *got, count - *got, &n, s->cancel);
        s->ended = !s->err && n == 0;
        *got += n;
    }
    return !s->err;
}

/* Enlarges `head` to at least `bytes` bytes. Returns false without memory (ENOMEM in s->err). */
static bool reserve_head(gc_source *s, int64_t bytes) {
    if (bytes <= s->room)
        return true;
    const int64_t room = gc_max(bytes, 2 * s->room);
    unsigned char *larger = gc_calloc(room, 1);
    if (!larger) {
        s->err = ENOMEM;
        return false;
    }
    if (s->kept > 0)
        memcpy(larger, s->head, (size_t)s->kept);
    free(s->head);
    s->head = larger;
    s->room = room;
    return true;
}

/* Reads until `head` has `count` bytes or the stream ends. */
static bool fill_head(gc_source *s, int64_t count) {
    int64_t got = 0;
    bool ok = reserve_head(s, count) && (count <= s->kept || read_all(s, s->head + s->kept, count - s->kept, &got));
    s->kept += got;
    s->end = s->kept;
    return ok;
}

static gpuconv_status fail(const gc_source *s, const char *what, const char *folder, gpuconv_error *error) {
    if (s->err == ECANCELED)
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted", s->name);
    if (s->err == ENOMEM)
        return gc_fail_memory(error, s->name);
    if (s->err == EFBIG && s->spooled)
        return gc_fail(error, GPUCONV_ERROR_FILE,
                       "%s: its format cannot be read while it arrives, and more than %lld MiB are not copied to a "
                       "temporary file; write it to a file first",
                       s->name, (long long)(gc_spool_most >> 20));
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s%s%s%s", s->name, what, folder, *what ? ": " : "",
                   strerror(s->err));
}

gpuconv_status gc_source_spool(gc_source *s, gpuconv_error *error) {
    char folder[4096];
    int fd = gc_os_spool_file(folder, sizeof folder);
    if (fd < 0) {
        s->err = errno;
        return fail(s, "cannot create a temporary file in ", folder, error);
    }
    const gc_pipe_out out = {.fd = fd, .cancel = s->cancel};
    if (s->original)
        s->err = gc_pipe_out_write(&out, s->original, s->original_bytes);
    int64_t got = reserve_head(s, SPOOL_BYTES) ? s->kept - s->begin : 0;
    const unsigned char *bytes = s->head + s->begin;
    int64_t copied = 0;
    while (got > 0 && !s->err) {
        int err = (copied += got) > gc_spool_most ? EFBIG : gc_pipe_out_write(&out, bytes, got);
        got = 0;
        if (!err)
            (void)read_all(s, s->head, SPOOL_BYTES, &got);
        bytes = s->head;
        s->err = s->err ? s->err : err;
    }
    close(s->fd);
    s->fd = fd;
    s->spooled = true;
    if (!s->err && lseek(fd, 0, SEEK_SET) != 0)
        s->err = errno;
    return s->err ? fail(s, "cannot copy it to a temporary file in ", folder, error) : GPUCONV_OK;
}

/* Reads bytes of the header, as a gc_riff_input. */
static int64_t read_header_bytes(void *source, int64_t at, void *bytes, int64_t count) {
    gc_source *s = source;
    if (at + count > MAX_HEADER || !fill_head(s, at + count))
        return 0;
    const int64_t got = gc_max(0, gc_min(count, s->kept - at));
    if (got > 0)
        memcpy(bytes, s->head + at, (size_t)got);
    return got;
}

/* Replaces the header in `head` by the one of `riff`, which it takes over. */
static bool replace_header(gc_source *s, const gc_riff *riff) {
    const int64_t samples = s->kept - riff->begin;
    s->original = s->head;
    s->original_bytes = riff->begin;
    s->head = riff->header;
    s->begin = s->kept = s->room = riff->header_bytes;
    s->keep = s->begin + KEPT_SAMPLES;
    if (!reserve_head(s, s->keep))
        return false;
    memcpy(s->head + s->begin, s->original + riff->begin, (size_t)samples);
    s->end = s->kept += samples;
    s->length = riff->bytes < 0 ? GC_RIFF_UNBOUNDED : s->begin + riff->bytes;
    return true;
}

/* Reads the header, and spools the stream if it cannot be streamed. */
static gpuconv_status read_header(gc_source *s, gc_source_kind kind, gpuconv_error *error) {
    const gc_riff_input in = {.read = read_header_bytes, .file = s, .length = -1};
    gc_riff riff = {0};
    if (!fill_head(s, 1))
        return fail(s, "", "", error);
    if (s->kept == 0)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: is empty", s->name);
    if (kind == GC_SOURCE_RAW) {
        s->length = GC_RIFF_UNBOUNDED;
        s->keep = KEPT_SAMPLES;
        return reserve_head(s, s->keep) ? GPUCONV_OK : fail(s, "", "", error);
    }
    if (kind == GC_SOURCE_HEADER && !gc_riff_parse(&in, &riff))
        s->err = ENOMEM;
    const bool streamed = riff.begin > 0 && riff.has_fixed_frames;
    if (!s->err && streamed && fill_head(s, riff.begin + PEEKED_BYTES) && replace_header(s, &riff))
        return GPUCONV_OK;
    if (riff.header != s->head)
        free(riff.header);
    return s->err ? fail(s, "", "", error) : gc_source_spool(s, error);
}

gpuconv_status gc_source_new(int fd, const char *name, gc_source_kind kind, const volatile int *cancel,
                             gc_source **source, gpuconv_error *error) {
    *source = NULL;
    gc_source *s = gc_calloc(1, sizeof *s);
    if (!s || !(s->name = strdup(name))) {
        free(s);
        close(fd);
        return gc_fail_memory(error, name);
    }
    s->fd = fd;
    s->cancel = cancel;
    s->raw = kind == GC_SOURCE_RAW;
    gpuconv_status status = read_header(s, kind, error);
    if (status)
        gc_source_free(s);
    else
        *source = s;
    return status;
}

void gc_source_free(gc_source *s) {
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    free(s->head);
    free(s->original);
    free(s->name);
    free(s);
}

void gc_source_set_cancel(gc_source *s, const volatile int *cancel) {
    s->cancel = cancel;
}

bool gc_source_is_spooled(const gc_source *s) {
    return s->spooled;
}

int gc_source_release_file(gc_source *s) {
    int fd = s->fd;
    s->fd = -1;
    return fd;
}

void gc_source_rewind(gc_source *s) {
    s->at = 0;
}

bool gc_source_start_streaming(gc_source *s) {
    s->streaming = s->raw || s->at == s->begin;
    return s->streaming;
}

bool gc_source_knows_length(const gc_source *s) {
    return s->length < GC_RIFF_UNBOUNDED;
}

bool gc_source_is_empty(const gc_source *s) {
    return s->ended && s->end <= s->begin;
}

int gc_source_failure(const gc_source *s) {
    return s->err;
}

static sf_count_t source_length(void *source) {
    return ((gc_source *)source)->length;
}

/* Accepts any position up to GC_RIFF_UNBOUNDED. While libsndfile searches the header for chunks, it may seek to bytes
 * that are no longer kept, where it then reads nothing. After gc_source_start_streaming such a seek fails. */
static sf_count_t source_seek(sf_count_t offset, int whence, void *source) {
    gc_source *s = source;
    int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? s->at : s->length, to;
    if (__builtin_add_overflow(from, offset, &to) || to < 0 || to > GC_RIFF_UNBOUNDED)
        return -1;
    if (s->streaming && to < s->end && to >= s->kept)
        return -1;
    return s->at = to;
}

/* Reads bytes from the pipe and appends them to `head` while it is shorter than `keep`. */
static int64_t read_pipe(gc_source *s, unsigned char *to, int64_t count) {
    int64_t got;
    (void)read_all(s, to, count, &got);
    if (s->end == s->kept && s->kept < s->keep) {
        const int64_t more = gc_min(got, s->keep - s->kept);
        memcpy(s->head + s->kept, to, (size_t)more);
        s->kept += more;
    }
    s->end += got;
    return got;
}

/* Reads and discards bytes up to s->at. Does nothing before gc_source_start_streaming: the header is in `head` then.
 * Returns true if the position was reached. */
static bool skip(gc_source *s) {
    unsigned char skipped[16384];
    while (s->streaming && s->end < s->at)
        if (read_pipe(s, skipped, gc_min((int64_t)sizeof skipped, s->at - s->end)) == 0)
            break;
    return s->end == s->at;
}

static sf_count_t source_read(void *bytes, sf_count_t count, void *source) {
    gc_source *s = source;
    unsigned char *to = bytes;
    int64_t done = 0;
    if (count <= 0)
        return 0;
    if (s->at < s->kept) {
        done = gc_min(count, s->kept - s->at);
        memcpy(to, s->head + s->at, (size_t)done);
        s->at += done;
    }
    if (done < count && (s->at == s->end || (s->at > s->end && skip(s)))) {
        const int64_t got = read_pipe(s, to + done, count - done);
        s->at += got;
        done += got;
    }
    return done;
}

static sf_count_t source_tell(void *source) {
    return ((gc_source *)source)->at;
}

SF_VIRTUAL_IO *gc_source_callbacks(void) {
    static SF_VIRTUAL_IO io = {source_length, source_seek, source_read, NULL, source_tell};
    return &io;
}
