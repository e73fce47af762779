/*
 * Pipes behind the file library's virtual files.
 *
 * A source keeps the header, in which the library looks for chunks and to which it comes back, and the first samples
 * behind it, which the library looks at; it forgets what was read behind them.
 *
 * A sink writes the header once. The library begins with one of no length and comes back to it at the end: instead the
 * length is put into the first, and what comes later for a place that is gone is dropped.
 */
#include "pipe.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "riff.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A header that is longer is not read as it comes. Of the samples the library looks at the first few bytes while it
 * opens the stream: they are read before, so that opening never waits. */
enum { HEAD = 1 << 20, LOOKED_AT = 16, KEPT_SAMPLES = 4096, SPOOLED_AT_ONCE = 1 << 16 };

/* The size of a file whose length is not known: more than any pipe can carry, and far from the limits of the type. */
static const int64_t endless = INT64_C(1) << 60;

struct gc_source {
    int fd, failure;
    const volatile int *cancel;
    char *name;
    bool raw, spooled, settled;
    bool ended;          /* nothing more will come */
    int64_t at, end;     /* where the library is; bytes that were read */
    int64_t kept, keep;  /* of them in head; so many are to be kept */
    int64_t length;      /* as the library is told */
    gc_riff riff;        /* without raw */
    unsigned char *said; /* the header as it came, where the library is shown another; NULL */
    int64_t room;        /* bytes of head */
    unsigned char *head;
};

static bool read_all(gc_source *s, unsigned char *to, int64_t count, int64_t *got) {
    *got = 0;
    while (*got < count && !s->ended && !s->failure) {
        int64_t n;
        s->failure = gc_read_some(s->fd, to + *got, count - *got, &n, s->cancel);
        s->ended = !s->failure && n == 0;
        *got += n;
    }
    return !s->failure;
}

/* Makes room for so many bytes at the beginning. ENOMEM in s->failure. */
static bool make_room(gc_source *s, int64_t bytes) {
    if (bytes <= s->room)
        return true;
    const int64_t room = gc_max(bytes, 2 * s->room);
    unsigned char *larger = gc_calloc(room, 1);
    if (!larger) {
        s->failure = ENOMEM;
        return false;
    }
    if (s->kept > 0)
        memcpy(larger, s->head, (size_t)s->kept);
    free(s->head);
    s->head = larger;
    s->room = room;
    return true;
}

/* Reads on until `count` bytes are kept, or the stream ends. */
static bool keep_until(gc_source *s, int64_t count) {
    int64_t got = 0;
    bool good = make_room(s, count) && (count <= s->kept || read_all(s, s->head + s->kept, count - s->kept, &got));
    s->kept += got;
    s->end = s->kept;
    return good;
}

static gpuconv_status fail(const gc_source *s, const char *what, const char *folder, gpuconv_error *error) {
    if (s->failure == ECANCELED)
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted", s->name);
    if (s->failure == ENOMEM)
        return gc_fail_memory(error, s->name);
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s%s%s%s", s->name, what, folder, *what ? ": " : "",
                   strerror(s->failure));
}

static int open_nameless(const char *folder) {
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    (void)snprintf(path, sizeof path, "%.4000s/gpuconv-XXXXXX", folder);
    fd = mkstemp(path);
    if (fd >= 0)
        unlink(path);
    return fd;
}

gpuconv_status gc_source_spool(gc_source *s, gpuconv_error *error) {
    const char *folder = getenv("TMPDIR");
    folder = folder && *folder ? folder : "/tmp";
    int fd = open_nameless(folder);
    if (fd < 0) {
        s->failure = errno;
        return fail(s, "no room to keep it in ", folder, error);
    }
    if (s->said)
        memcpy(s->head, s->said, (size_t)s->riff.begin);
    const gc_pipe_out out = {.fd = fd, .cancel = s->cancel};
    int64_t got = make_room(s, SPOOLED_AT_ONCE) ? s->kept : 0;
    while (got > 0 && !s->failure) {
        int failed = gc_pipe_out_write(&out, s->head, got);
        got = 0;
        if (!failed)
            (void)read_all(s, s->head, SPOOLED_AT_ONCE, &got);
        s->failure = s->failure ? s->failure : failed;
    }
    close(s->fd);
    s->fd = fd;
    s->spooled = true;
    if (!s->failure && lseek(fd, 0, SEEK_SET) != 0)
        s->failure = errno;
    return s->failure ? fail(s, "keeping it in ", folder, error) : GPUCONV_OK;
}

/* Has the library take a header of unknown length as one of a file that reaches to the end. */
static gpuconv_status open_end(gc_source *s, gpuconv_error *error) {
    s->said = gc_calloc(s->riff.begin, 1);
    if (!s->said)
        return gc_fail_memory(error, s->name);
    memcpy(s->said, s->head, (size_t)s->riff.begin);
    gc_riff_open_end(s->head, &s->riff, endless);
    return GPUCONV_OK;
}

/* Reads the header, and copies the stream where it cannot be read as it comes. */
static gpuconv_status begin(gc_source *s, gc_source_kind kind, gpuconv_error *error) {
    gc_riff_found found = GC_RIFF_MORE;
    s->riff.need = 1;
    while (found == GC_RIFF_MORE && s->riff.need <= HEAD && !s->ended) {
        if (!keep_until(s, s->riff.need))
            return fail(s, "", "", error);
        if (s->kept == 0)
            return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: is empty", s->name);
        if (kind != GC_SOURCE_HEADER)
            break;
        found = gc_riff_look(s->head, s->kept, &s->riff);
    }
    if (kind == GC_SOURCE_RAW) {
        s->length = endless;
        s->keep = KEPT_SAMPLES;
        return make_room(s, s->keep) ? GPUCONV_OK : fail(s, "", "", error);
    }
    if (found != GC_RIFF_SAMPLES)
        return gc_source_spool(s, error);
    if (!make_room(s, s->riff.begin + KEPT_SAMPLES) || !keep_until(s, s->riff.begin + LOOKED_AT))
        return fail(s, "", "", error);
    s->length = s->riff.bytes < 0 ? endless : s->riff.begin + s->riff.bytes;
    s->keep = s->riff.begin + KEPT_SAMPLES;
    return s->riff.bytes < 0 ? open_end(s, error) : GPUCONV_OK;
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
    gpuconv_status status = begin(s, kind, error);
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
    free(s->said);
    free(s->name);
    free(s);
}

void gc_source_cancel_by(gc_source *s, const volatile int *cancel) {
    s->cancel = cancel;
}

bool gc_source_spooled(const gc_source *s) {
    return s->spooled;
}

int gc_source_take_file(gc_source *s) {
    int fd = s->fd;
    s->fd = -1;
    return fd;
}

void gc_source_rewind(gc_source *s) {
    s->at = 0;
}

bool gc_source_settle(gc_source *s) {
    s->settled = s->raw || s->at == s->riff.begin;
    return s->settled;
}

bool gc_source_knows_length(const gc_source *s) {
    return s->length < endless;
}

bool gc_source_empty(const gc_source *s) {
    return s->ended && s->end <= (s->raw ? 0 : s->riff.begin);
}

int gc_source_failure(const gc_source *s) {
    return s->failure;
}

static sf_count_t source_length(void *source) {
    return ((gc_source *)source)->length;
}

/* Any place from the first byte to the last that may come. While the library looks for chunks it may ask for places
 * that are gone, and reads nothing there; behind that, a place that is gone cannot be reached. */
static sf_count_t source_seek(sf_count_t offset, int whence, void *source) {
    gc_source *s = source;
    int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? s->at : s->length, to;
    if (__builtin_add_overflow(from, offset, &to) || to < 0 || to > endless)
        return -1;
    if (s->settled && to < s->end && to >= s->kept)
        return -1;
    return s->at = to;
}

/* Bytes from the pipe; the first of them are kept. */
static int64_t read_on(gc_source *s, unsigned char *to, int64_t count) {
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

/* Reads up to s->at, which lies ahead. Before the source is settled only the header could want that, which is there. */
static bool skip(gc_source *s) {
    unsigned char skipped[16384];
    while (s->settled && s->end < s->at)
        if (read_on(s, skipped, gc_min((int64_t)sizeof skipped, s->at - s->end)) == 0)
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
        const int64_t got = read_on(s, to + done, count - done);
        s->at += got;
        done += got;
    }
    return done;
}

static sf_count_t source_tell(void *source) {
    return ((gc_source *)source)->at;
}

SF_VIRTUAL_IO *gc_source_io(void) {
    static SF_VIRTUAL_IO io = {source_length, source_seek, source_read, NULL, source_tell};
    return &io;
}

/* ---- Sinks ------------------------------------------------------------------------------------------------------- */

void gc_sink_begin(gc_sink *s, gc_pipe_out out, int format, int channels, int64_t frames) {
    *s = (gc_sink){.out = out, .format = format, .channels = channels, .frames = frames};
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

void gc_sink_forget_time(unsigned char *head, int64_t count) {
    int64_t size = count >= 12 && memcmp(head + 8, "WAVE", 4) == 0 ? size_of_chunk(head, count, "PEAK") : 0;
    if (size && size + 12 <= count)
        memset(head + size + 8, 0, 4);
}

/* Puts lengths into a header of a WAV, RF64 or AU, which has none yet; all ones: not known. */
static void complete(const gc_sink *s, unsigned char *head, int64_t count) {
    static const int sizes[] = {0, 1, 2, 3, 4, 1, 4, 8}; /* by the format's code: bytes of a sample */
    int code = s->format & SF_FORMAT_SUBMASK, sample = code < 8 ? sizes[code] : code <= SF_FORMAT_ALAW ? 1 : 0;
    gc_sink_forget_time(head, count);
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
    const gc_sink *s = sink;
    return s->sent + s->waiting;
}

static sf_count_t sink_seek(sf_count_t offset, int whence, void *sink) {
    gc_sink *s = sink;
    int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? s->at : s->sent + s->waiting, to;
    if (__builtin_add_overflow(from, offset, &to) || to < 0)
        return -1;
    return s->at = to;
}

static sf_count_t sink_read(void *bytes, sf_count_t count, void *sink) {
    (void)bytes;
    (void)count;
    (void)sink;
    return 0;
}

/* Sends bytes; a failure stays, because an encoder that is closed goes on writing. */
static bool send(gc_sink *s, const void *bytes, int64_t count) {
    if (!s->failure && count > 0)
        s->failure = gc_pipe_out_write(&s->out, bytes, count);
    s->sent += s->failure ? 0 : count;
    return !s->failure;
}

/* Sends the header that waits. */
static bool send_header(gc_sink *s) {
    int64_t count = s->waiting;
    s->waiting = 0;
    complete(s, s->head, count);
    return send(s, s->head, count);
}

/* The library writes a header when it opens the sink, and once more before the first sample when a setting has changed.
 * So a header at the beginning waits until bytes behind it come; afterwards nothing at its place can change. */
static sf_count_t sink_write(const void *bytes, sf_count_t count, void *sink) {
    gc_sink *s = sink;
    if (s->sent == 0 && s->at == 0 && count <= (sf_count_t)sizeof s->head) {
        memcpy(s->head, bytes, (size_t)count);
        s->waiting = s->at = count;
        return s->failure ? 0 : count;
    }
    if (s->waiting && !send_header(s))
        return 0;
    int64_t gone = gc_min(count, gc_max(0, s->sent - s->at)); /* of these bytes, too late to change */
    if (!send(s, (const char *)bytes + gone, count - gone))
        return gone;
    s->at += count;
    return count;
}

int gc_sink_end(gc_sink *s) {
    if (s->waiting)
        (void)send_header(s);
    return s->failure;
}

static sf_count_t sink_tell(void *sink) {
    return ((gc_sink *)sink)->at;
}

SF_VIRTUAL_IO *gc_sink_io(void) {
    static SF_VIRTUAL_IO io = {sink_length, sink_seek, sink_read, sink_write, sink_tell};
    return &io;
}
