/*
 * Pipes behind the file library's virtual files.
 *
 * A source keeps the first bytes, in which the library looks for chunks and to which it comes back, and forgets what
 * was read behind them. Behind the samples the library looks for more chunks; there a pipe has nothing to show.
 *
 * A sink writes the header once. The library begins with one of no length and comes back to it at the end: instead the
 * length is put into the first, and what comes later for a place that is gone is dropped.
 */
#include "pipe.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 1 << 16 };

struct gc_source {
    int fd, failure;
    bool spooled;    /* fd is a file, which can do everything itself */
    int64_t at, end; /* where the library is; bytes that were read */
    int64_t kept;    /* of them in head */
    unsigned char head[HEAD];
};

static ssize_t read_some(gc_source *s, void *to, size_t count) {
    ssize_t n;
    do {
        n = read(s->fd, to, count);
        if (n < 0 && errno == EAGAIN) { /* a pipe that somebody made impatient */
            struct pollfd wait = {.fd = s->fd, .events = POLLIN};
            (void)poll(&wait, 1, -1);
        }
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n < 0)
        s->failure = errno;
    return n;
}

static bool read_all(gc_source *s, unsigned char *to, int64_t count, int64_t *got) {
    ssize_t n = 1;
    for (*got = 0; *got < count && n > 0; *got += n > 0 ? n : 0)
        n = read_some(s, to + *got, (size_t)(count - *got));
    return n >= 0;
}

static bool write_all(int fd, const void *bytes, int64_t count) {
    for (int64_t done = 0; done < count;) {
        ssize_t n = write(fd, (const char *)bytes + done, (size_t)(count - done));
        if (n <= 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            (void)poll(&wait, 1, -1);
        } else if (n <= 0 && errno != EINTR) {
            return false;
        }
        done += n > 0 ? n : 0;
    }
    return true;
}

/* All of it into a file without a name, which takes fd's place. */
static gpuconv_status spool(gc_source *s, const char *name, gpuconv_error *error) {
    const char *folder = getenv("TMPDIR");
    folder = folder && *folder ? folder : "/tmp";
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        (void)snprintf(path, sizeof path, "%.4000s/gpuconv-XXXXXX", folder);
        fd = mkstemp(path);
        if (fd >= 0)
            unlink(path);
    }
    if (fd < 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: no room to keep it in %.200s: %s", name, folder,
                       strerror(errno));
    int64_t got = s->kept;
    bool good = true;
    while (good && got > 0) {
        good = write_all(fd, s->head, got);
        if (!good)
            s->failure = errno;
        good = good && read_all(s, s->head, HEAD, &got);
    }
    close(s->fd);
    s->fd = fd;
    s->spooled = true;
    if (!good || lseek(fd, 0, SEEK_SET) != 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: keeping it in %.200s: %s", name, folder, strerror(s->failure));
    return GPUCONV_OK;
}

gpuconv_status gc_source_new(int fd, const char *name, bool raw, gc_source **source, gpuconv_error *error) {
    *source = NULL;
    gc_source *s = gc_calloc(1, sizeof *s);
    if (!s) {
        close(fd);
        return gc_fail_memory(error, name);
    }
    s->fd = fd;
    gpuconv_status status = GPUCONV_OK;
    if (!read_all(s, s->head, 12, &s->kept))
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", name, strerror(s->failure));
    else if (s->kept == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: is empty", name);
    s->end = s->kept;
    bool wav = s->kept == 12 && (memcmp(s->head, "RIFF", 4) == 0 || memcmp(s->head, "RF64", 4) == 0) &&
               memcmp(s->head + 8, "WAVE", 4) == 0;
    if (!status && !raw && !wav)
        status = spool(s, name, error);
    if (status)
        gc_source_free(s);
    else
        *source = s;
    return status;
}

void gc_source_free(gc_source *s) {
    if (!s)
        return;
    close(s->fd);
    free(s);
}

int gc_source_failure(const gc_source *s) {
    return s->failure;
}

static sf_count_t source_length(void *source) {
    gc_source *s = source;
    if (!s->spooled)
        return INT64_C(1) << 60; /* nobody knows; more than any header says */
    off_t at = lseek(s->fd, 0, SEEK_CUR), end = lseek(s->fd, 0, SEEK_END);
    (void)lseek(s->fd, at, SEEK_SET);
    return end;
}

static sf_count_t source_seek(sf_count_t offset, int whence, void *source) {
    gc_source *s = source;
    if (s->spooled)
        return lseek(s->fd, offset, whence);
    s->at = whence == SEEK_SET ? offset : whence == SEEK_CUR ? s->at + offset : source_length(s) + offset;
    return s->at;
}

/* From what is kept, else from the pipe; places that were passed, or lie far ahead, have nothing. */
static sf_count_t source_read(void *bytes, sf_count_t count, void *source) {
    gc_source *s = source;
    if (s->spooled) {
        int64_t got;
        (void)read_all(s, bytes, count, &got);
        return got;
    }
    unsigned char *to = bytes;
    sf_count_t done = 0;
    while (done < count && s->at < s->kept) {
        to[done++] = s->head[s->at++];
    }
    if (s->at > s->end && s->at - s->end <= HEAD) { /* a chunk that is skipped */
        unsigned char skipped[4096];
        int64_t got = 1;
        while (s->end < s->at && got > 0) {
            if (!read_all(s, skipped, gc_min((int64_t)sizeof skipped, s->at - s->end), &got))
                break;
            if (s->end == s->kept && s->kept + got <= HEAD) {
                memcpy(s->head + s->kept, skipped, (size_t)got);
                s->kept += got;
            }
            s->end += got;
        }
    }
    if (done < count && s->at == s->end) {
        int64_t got;
        (void)read_all(s, to + done, count - done, &got);
        if (s->end == s->kept && s->kept + got <= HEAD) {
            memcpy(s->head + s->kept, to + done, (size_t)got);
            s->kept += got;
        }
        s->end += got;
        s->at += got;
        done += got;
    }
    return done;
}

static sf_count_t source_tell(void *source) {
    gc_source *s = source;
    return s->spooled ? lseek(s->fd, 0, SEEK_CUR) : s->at;
}

SF_VIRTUAL_IO *gc_source_io(void) {
    static SF_VIRTUAL_IO io = {source_length, source_seek, source_read, NULL, source_tell};
    return &io;
}

/* ---- Sinks ------------------------------------------------------------------------------------------------------- */

void gc_sink_begin(gc_sink *s, int fd, int format, int channels, int64_t frames) {
    *s = (gc_sink){.fd = fd, .format = format, .channels = channels, .frames = frames};
}

static void put_little(unsigned char *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

/* The place of a chunk's size in a header that ends with the samples' own; 0: it has none. */
static int64_t size_of_chunk(const unsigned char *head, int64_t count, const char *name) {
    for (int64_t at = 12; at + 8 <= count;) {
        if (memcmp(head + at, name, 4) == 0)
            return at + 4;
        uint64_t size =
            head[at + 4] | (uint64_t)head[at + 5] << 8 | (uint64_t)head[at + 6] << 16 | (uint64_t)head[at + 7] << 24;
        at += 8 + (int64_t)((size + 1) & ~UINT64_C(1));
    }
    return 0;
}

/* Lengths into a header of a WAV, RF64 or AU, where there are none yet; all ones: not known. */
static void complete(const gc_sink *s, unsigned char *head, int64_t count) {
    static const int sizes[] = {0, 1, 2, 3, 4, 1, 4, 8}; /* by the format's code: bytes of a sample */
    int code = s->format & SF_FORMAT_SUBMASK, sample = code < 8 ? sizes[code] : code <= SF_FORMAT_ALAW ? 1 : 0;
    bool known = s->frames >= 0 && sample;
    uint64_t bytes = known ? (uint64_t)s->frames * (uint64_t)s->channels * (uint64_t)sample : UINT32_MAX;
    uint64_t all = known ? bytes + (bytes & 1) + (uint64_t)count - 8 : UINT32_MAX;
    if (count >= 12 && memcmp(head, "RIFF", 4) == 0) {
        int64_t data = size_of_chunk(head, count, "data"), fact = size_of_chunk(head, count, "fact");
        put_little(head + 4, all < UINT32_MAX ? all : UINT32_MAX, 4);
        if (data)
            put_little(head + data, bytes < UINT32_MAX ? bytes : UINT32_MAX, 4);
        if (fact)
            put_little(head + fact + 4, known ? (uint64_t)s->frames : UINT32_MAX, 4);
    } else if (count >= 48 && memcmp(head, "RF64", 4) == 0 && known) {
        int64_t wide = size_of_chunk(head, count, "ds64");
        if (wide) {
            put_little(head + wide + 4, all, 8);
            put_little(head + wide + 12, bytes, 8);
            put_little(head + wide + 20, (uint64_t)s->frames, 8);
        }
    } else if (count >= 24 && memcmp(head, ".snd", 4) == 0) {
        for (int i = 0; i < 4; i++)
            head[8 + i] = (unsigned char)((bytes < UINT32_MAX ? bytes : UINT32_MAX) >> (24 - 8 * i));
    }
}

static sf_count_t sink_length(void *sink) {
    return ((gc_sink *)sink)->sent;
}

static sf_count_t sink_seek(sf_count_t offset, int whence, void *sink) {
    gc_sink *s = sink;
    s->at = whence == SEEK_SET ? offset : (whence == SEEK_CUR ? s->at : s->sent) + offset;
    return s->at;
}

static sf_count_t sink_read(void *bytes, sf_count_t count, void *sink) {
    (void)bytes;
    (void)count;
    (void)sink;
    return 0;
}

static sf_count_t sink_write(const void *bytes, sf_count_t count, void *sink) {
    gc_sink *s = sink;
    unsigned char head[32768];
    int64_t gone = gc_min(count, gc_max(0, s->sent - s->at)); /* of these bytes, too late to change */
    const unsigned char *from = bytes;
    if (s->sent == 0 && count <= (sf_count_t)sizeof head) {
        memcpy(head, bytes, (size_t)count);
        complete(s, head, count);
        from = head;
    }
    if (count > gone && !write_all(s->fd, from + gone, count - gone)) {
        s->failure = errno ? errno : EIO;
        return gone;
    }
    s->sent += count - gone;
    s->at += count;
    return count;
}

static sf_count_t sink_tell(void *sink) {
    return ((gc_sink *)sink)->at;
}

SF_VIRTUAL_IO *gc_sink_io(void) {
    static SF_VIRTUAL_IO io = {sink_length, sink_seek, sink_read, sink_write, sink_tell};
    return &io;
}
