/*
 * Reading files and pipes through libsndfile, and loading the module that decodes what libsndfile does not read.
 *
 * Pipes. Raw samples, and a WAV, RF64 or BW64 with a complete header and a fixed number of bytes per frame, are
 * streamed: libsndfile reads them while they arrive, from a virtual file, behind a header that gc_riff_parse writes.
 * Every other stream is spooled first: copied into an unnamed temporary file. Numbers from a header are checked against
 * the bytes that were read before they are used as an offset or a loop bound. libsndfile seeks in the header while it
 * opens a file, and reads the first samples to recognise their format. A source therefore keeps the header and the
 * first samples in `head`, and forgets all bytes behind them once they were read.
 */
#include "file.h"

#include "buffered_io.h"
#include "extent.h"
#include "format.h"
#include "gpuconv.h"
#include "libgpuconv/core/descriptor.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/lines.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/module.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/dsp/finite.h"
#include "media.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum gc_source_kind {
    GC_SOURCE_HEADER = 0, /* a file with a header */
    GC_SOURCE_RAW,        /* samples of a fixed number of bytes */
    GC_SOURCE_ENCODED     /* samples without a header, compressed in blocks */
} gc_source_kind;

/* ---- Pipes ------------------------------------------------------------------------------------------------------- */

enum {
    MAX_HEADER = 1 << 20, /* a stream with a longer header is spooled */
    PEEKED_BYTES =
        16, /* of the samples; libsndfile reads them on opening: read beforehand so that opening never blocks */
    KEPT_SAMPLES = 4096,  /* bytes of samples that stay in `head` */
    SPOOL_BYTES = 1 << 16 /* bytes that are copied at a time */
};

int64_t gc_spool_most = INT64_C(4) << 30;

typedef struct gc_source {
    int fd, err;
    const volatile int *cancel;
    const char *name; /* not owned */
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
} gc_source;

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

static gpuconv_status fail_source(const gc_source *s, const char *what, const char *folder, gpuconv_error *error) {
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

/* Copies the bytes that were read so far and the rest of the stream into a file. Only before start_streaming.
 * @return FILE, MEMORY, CANCELLED */
static gpuconv_status spool_source(gc_source *s, gpuconv_error *error) {
    char folder[4096];
    int fd = gc_os_spool_file(folder, sizeof folder);
    if (fd < 0) {
        s->err = errno;
        return fail_source(s, "cannot create a temporary file in ", folder, error);
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
    return s->err ? fail_source(s, "cannot copy it to a temporary file in ", folder, error) : GPUCONV_OK;
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
        return fail_source(s, "", "", error);
    if (s->kept == 0)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: is empty", s->name);
    if (kind == GC_SOURCE_RAW) {
        s->length = GC_RIFF_UNBOUNDED;
        s->keep = KEPT_SAMPLES;
        return reserve_head(s, s->keep) ? GPUCONV_OK : fail_source(s, "", "", error);
    }
    if (kind == GC_SOURCE_HEADER && !gc_riff_parse(&in, &riff))
        s->err = ENOMEM;
    const bool streamed = riff.begin > 0 && riff.has_fixed_frames;
    if (!s->err && streamed && fill_head(s, riff.begin + PEEKED_BYTES) && replace_header(s, &riff))
        return GPUCONV_OK;
    if (riff.header != s->head)
        free(riff.header);
    return s->err ? fail_source(s, "", "", error) : spool_source(s, error);
}

static void free_source(gc_source *s) {
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    free(s->head);
    free(s->original);
    free(s);
}

/* Creates a source and reads the header, or spools the stream. Takes ownership of `fd`, also on failure. `name` is used
 * in messages. @return FILE, FORMAT (the stream is empty), MEMORY, CANCELLED (*cancel, which may be NULL, was raised)
 */
static gpuconv_status new_source(int fd, const char *name, gc_source_kind kind, const volatile int *cancel,
                                 gc_source **source, gpuconv_error *error) {
    *source = NULL;
    gc_source *s = gc_calloc(1, sizeof *s);
    if (!s) {
        close(fd);
        return gc_fail_memory(error, name);
    }
    s->name = name;
    s->fd = fd;
    s->cancel = cancel;
    s->raw = kind == GC_SOURCE_RAW;
    gpuconv_status status = read_header(s, kind, error);
    if (status)
        free_source(s);
    else
        *source = s;
    return status;
}

/* Call after gc_sndfile_open. Returns true if libsndfile's position is the first sample behind the header; from then on
 * the source can be read forward only, at any distance. Returns false if libsndfile reads the header differently: spool
 * the source then. */
static bool start_streaming(gc_source *s) {
    s->streaming = s->raw || s->at == s->begin;
    return s->streaming;
}

static sf_count_t source_length(void *source) {
    return ((gc_source *)source)->length;
}

/* Accepts any position up to GC_RIFF_UNBOUNDED. While libsndfile searches the header for chunks, it may seek to bytes
 * that are no longer kept, where it then reads nothing. After start_streaming such a seek fails. */
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

/* Reads and discards bytes up to s->at. Does nothing before start_streaming: the header is in `head` then.
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

/* Returns the callbacks for gc_sndfile_open of a source that was not spooled. */
static SF_VIRTUAL_IO *source_callbacks(void) {
    static SF_VIRTUAL_IO io = {source_length, source_seek, source_read, NULL, source_tell};
    return &io;
}

/* ---- Files that libsndfile does not read ------------------------------------------------------------------------- */

static gc_media_decode_function *module;

static void load_module(void) {
    char why[400];
    *(void **)&module = gc_module_load("gpuconv-media", GC_MEDIA_DECODE, why, sizeof why);
}

/* Decodes a file into an unnamed temporary file, which the caller closes. *fd -1: the module is not there, or the file
 * is none of its kinds; `hint` then gets a text for the message of the failure, which may be "". Fails with FORMAT,
 * FILE or CANCELLED. */
static gpuconv_status spool_media(int from, int64_t size, const char *path, const volatile int *cancel, gc_media *media,
                                  int *fd, gpuconv_error *error) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char folder[4096];
    *fd = -1;
    *media = (gc_media){.frames = 0};
    pthread_once(&once, load_module);
    if (!module && gc_ending_find(path, "m4a|m4b|mp4|aac|wma|webm|mka|amr|ac3|ape|mov") >= 0)
        (void)snprintf(media->why, sizeof media->why, "%s",
                       "; M4A, AAC, WMA and others need the module gpuconv-media, which is built with libavformat-dev");
    if (!module)
        return GPUCONV_OK;
    int spool = gc_os_spool_file(folder, sizeof folder);
    if (spool < 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot create a temporary file in %s: %s", path, folder,
                       strerror(errno));
    if (module(from, size, spool, cancel, media) && lseek(spool, 0, SEEK_SET) == 0) {
        *fd = spool;
        return GPUCONV_OK;
    }
    close(spool);
    if (cancel && *cancel)
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted", path);
    if (media->recognised)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: not readable as audio: %s", path, media->why);
    *media->why = '\0';
    return GPUCONV_OK;
}

/* ---- Opening: files, named pipes and standard input -------------------------------------------------------------- */

/* Returns whether an open file is a pipe or a socket, and its name that of a descriptor which the process has open. */
static bool is_open_pipe(const char *path, const struct stat *st) {
    return (S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode)) &&
           (strcmp(path, "standard input") == 0 || strcmp(path, "/dev/stdin") == 0 ||
            strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/self/fd/", 14) == 0);
}

static gpuconv_status check_type(const char *path, gc_input_kind kind, const struct stat *st, gpuconv_error *error) {
    const bool any = kind == GC_INPUT_ANY || (kind == GC_INPUT_REGULAR_OR_FD && is_open_pipe(path, st));
    const bool device = S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode);
    if (S_ISDIR(st->st_mode) || device || (!any && !S_ISREG(st->st_mode)))
        return gc_input_file_check(path, st, error);
    if (S_ISREG(st->st_mode) && st->st_size == 0)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: the file is empty", path);
    return GPUCONV_OK;
}

/* Opens a path, or standard input for "-", of a kind that is allowed, without waiting for the writer of a named pipe.
 * @return FILE, FORMAT (an empty file) */
static gpuconv_status open_input(const char *path, gc_input_kind kind, int *fd, struct stat *st, gpuconv_error *error) {
    const bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    gpuconv_status status = GPUCONV_OK;
    *fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : gc_open_to_read(path);
    if (*fd < 0 || fstat(*fd, st) != 0)
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", name, strerror(errno));
    else if (standard && isatty(*fd))
        status = gc_fail(error, GPUCONV_ERROR_FILE, "standard input is a terminal; redirect a file or a pipe to it");
    else
        status = check_type(name, kind, st, error);
    if (status && *fd >= 0)
        close(*fd);
    return status;
}

/* ---- Readers ----------------------------------------------------------------------------------------------------- */

enum { PIECE_BYTES = 1 << 17 }; /* floats are checked for NaN in pieces of this size, while they are in the cache */

struct gc_reader {
    SNDFILE *file;
    /* libsndfile reads from one of the two: */
    gc_buffered_io disk;        /* a regular file; its descriptor is owned, -1: none */
    unsigned char *header;      /* the header of `disk` that libsndfile reads; NULL: that of the file */
    SF_INFO initial;            /* the format of `disk` that libsndfile gets before it reads the header */
    gc_link *link;              /* Ogg: its streams, one after the other; else NULL */
    int links, current;         /* `current`: the one that is open */
    int64_t link_at;            /* its first frame in the whole */
    int64_t counted;            /* frames that the file holds; -1: as libsndfile says */
    bool goes_on;               /* libsndfile does not stop behind them */
    gc_source *pipe;            /* NULL: none */
    const volatile int *cancel; /* NULL: none */
    bool keep_nonfinite;
    int64_t at;                               /* the next frame */
    int64_t nonfinite_count, first_nonfinite; /* samples; frame */
    char *path;                               /* the name in messages */
    gc_audio_info info;
    char name[96], note[128];
};

/* Refuses a directory and an empty file. */
static gpuconv_status fail_reading(gpuconv_error *error, const gc_reader *r, const char *why) {
    return gc_format_fail(error, GPUCONV_ERROR_FORMAT, r->path, "not readable as audio: ", why);
}

/* Fails with the message of a system error. */
static gpuconv_status fail_system(gpuconv_error *error, const gc_reader *r, int err) {
    if (err == ECANCELED)
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted", r->path);
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", r->path, strerror(err));
}

gc_audio_info gc_audio_info_float(int channels, int rate, int64_t frames) {
    return (gc_audio_info){.channels = channels,
                           .rate = rate,
                           .frames = frames,
                           .file_format = SF_FORMAT_FLOAT,
                           .pcm = {GC_F32, 32},
                           .name = "float"};
}

gc_audio_info gc_audio_info_s24(int channels, int rate, int64_t frames) {
    gc_audio_info info = gc_audio_info_float(channels, rate, frames);
    info.file_format = SF_FORMAT_PCM_24;
    info.pcm = (gc_pcm){GC_S24, 24};
    info.name = "signed 24 bit PCM";
    return info;
}

/* Returns the number of frames, or -1 if it is unknown. The length in the header of a pipe is ignored if it is so large
 * that the program that wrote it cannot have known the length. */
static int64_t frame_count(const gc_reader *r, const SF_INFO *info) {
    const int64_t placeholder = INT64_C(1) << 30; /* samples of 32 bits in 4 GiB, the limit of a 32-bit size */
    if (r->pipe && r->pipe->ended && r->pipe->end <= r->pipe->begin)
        return 0;
    if (r->pipe && r->pipe->length >= GC_RIFF_UNBOUNDED)
        return -1;
    if (r->pipe && info->frames >= placeholder / (info->channels > 0 ? info->channels : 1) / 2)
        return -1;
    return info->frames < SF_COUNT_MAX / 2 ? info->frames : -1;
}

/* Checks and stores the properties of the opened file. */
static gpuconv_status set_info(gc_reader *r, const SF_INFO *info, gpuconv_error *error) {
    const int64_t frames = r->counted >= 0 ? r->counted : frame_count(r, info);
    if (frames == 0)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: holds no frames", r->path);
    if (info->channels < 1 || info->channels > GC_MAX_CHANNELS || info->samplerate < 1 ||
        info->samplerate > GC_MAX_RATE)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "%s: %d channels at %d Hz are not supported; use 1 to %d channels at 1 to %d Hz", r->path,
                       info->channels, info->samplerate, GC_MAX_CHANNELS, GC_MAX_RATE);
    if (!*r->name)
        gc_format_name(info->format, r->name, sizeof r->name);
    r->info = (gc_audio_info){.channels = info->channels,
                              .rate = info->samplerate,
                              .frames = frames,
                              .file_format = info->format,
                              .pcm = gc_format_pcm(info->format),
                              .name = r->name};
    int map[GC_MAX_CHANNELS];
    (void)gc_format_read_speakers(r->file, info->channels, map, &r->info.speakers);
    return GPUCONV_OK;
}

static int64_t read_disk(void *disk, int64_t at, void *bytes, int64_t count) {
    SF_VIRTUAL_IO *io = gc_buffered_io_callbacks();
    return io->seek(at, SEEK_SET, disk) == at ? io->read(bytes, count, disk) : 0;
}

/* Refuses a file that ends before the samples that its header states. */
static gpuconv_status check_missing(const gc_reader *r, int64_t missing, int64_t stated, gpuconv_error *error) {
    return missing > 0 ? gc_fail(error, GPUCONV_ERROR_FORMAT,
                                 "%s: damaged or cut off: of %lld bytes of samples that its header states, %lld are "
                                 "missing",
                                 r->path, (long long)stated, (long long)missing)
                       : GPUCONV_OK;
}

/* Takes the frames that the `fact` chunk of coded samples states, if they end in the last block. */
static void take_fact(gc_reader *r, const gc_riff *riff, const SF_INFO *info) {
    if (riff->has_fixed_frames || riff->fact <= 0 || riff->blocks < 1 || riff->fact == info->frames)
        return;
    if (riff->fact < info->frames && riff->fact > info->frames - info->frames / riff->blocks)
        r->counted = riff->fact;
    else
        (void)snprintf(r->note, sizeof r->note, "its header states %lld frames, and %lld are there",
                       (long long)riff->fact, (long long)info->frames);
}

/* Finds the extent of a file that is no WAV, and has libsndfile read to its end. */
static gpuconv_status find_extent(gc_reader *r, const gc_riff_input *in, gpuconv_error *error) {
    gc_extent e;
    const bool ok = gc_extent_find(in, &e);
    r->link = e.link;
    r->links = e.links;
    r->counted = e.frames;
    r->goes_on = e.goes_on;
    (void)snprintf(r->note, sizeof r->note, "%s", e.note);
    if (!ok || (e.goes_on && !(r->header = gc_calloc(GC_FLAC_HEAD, 1))))
        return gc_fail_memory(error, r->path);
    if (e.goes_on && gc_extent_open_flac(in, r->header))
        gc_buffered_io_set_header(&r->disk, r->header, GC_FLAC_HEAD, GC_FLAC_HEAD, in->length - GC_FLAC_HEAD);
    else if (r->links > 1)
        gc_buffered_io_set_header(&r->disk, NULL, 0, r->link[0].begin, r->link[0].bytes);
    else if (e.skip > 0)
        gc_buffered_io_set_header(&r->disk, NULL, 0, e.skip, in->length - e.skip);
    if (e.claimed > 0)
        gc_buffered_io_claim(&r->disk, e.claimed);
    return check_missing(r, e.missing, e.stated, error);
}

/* Compares the sizes in the header of a file with the file, and replaces the header where libsndfile would not read it
 * to its end. *riff: of a WAV. Returns FORMAT, MEMORY. */
static gpuconv_status read_sizes(gc_reader *r, gc_riff *riff, gpuconv_error *error) {
    const gc_riff_input in = {.read = read_disk, .file = &r->disk, .length = r->disk.length};
    const bool ok = gc_riff_parse(&in, riff);
    r->disk.at = 0;
    r->header = riff->header;
    if (!ok)
        return gc_fail_memory(error, r->path);
    if (!r->header)
        return find_extent(r, &in, error);
    gc_buffered_io_set_header(&r->disk, r->header, riff->header_bytes, riff->begin, riff->bytes);
    if (riff->behind > 1)
        (void)snprintf(r->note, sizeof r->note, "%lld bytes behind the samples that its header states are not read",
                       (long long)riff->behind);
    return check_missing(r, riff->missing, riff->stated, error);
}

/* Opens a file that libsndfile refused for the reason `why`, if the module for other formats reads it: its samples come
 * from a temporary file, whose descriptor replaces the reader's. */
static gpuconv_status open_media(gc_reader *r, int64_t size, SF_INFO *info, char *why, size_t room,
                                 gpuconv_error *error) {
    gc_media media;
    int fd;
    gpuconv_status status = spool_media(r->disk.fd, size, r->path, r->cancel, &media, &fd, error);
    if (!status && fd < 0) {
        const size_t length = strcspn(why, "\n"), end = length > 0 && why[length - 1] == '.' ? length - 1 : length;
        if (*media.why)
            (void)snprintf(why + end, room - end, "%s", media.why);
        return fail_reading(error, r, why);
    }
    if (status)
        return status;
    close(r->disk.fd);
    gc_buffered_io_begin(&r->disk, fd, media.frames * media.channels * (int64_t)sizeof(float));
    r->links = 0;
    r->counted = -1;
    r->goes_on = false;
    *r->note = '\0';
    *info = (SF_INFO){.format = SF_FORMAT_RAW | SF_FORMAT_FLOAT | SF_ENDIAN_CPU,
                      .channels = media.channels,
                      .samplerate = media.rate};
    r->initial = *info;
    (void)snprintf(r->name, sizeof r->name, "%s", media.name);
    r->file = gc_sndfile_open(gc_buffered_io_callbacks(), SFM_READ, info, &r->disk);
    return r->file ? GPUCONV_OK : fail_reading(error, r, "its samples cannot be read");
}

/* Has libsndfile open `disk` from its first byte. Returns false if it cannot. */
static bool open_sndfile(gc_reader *r, SF_INFO *info) {
    *info = r->initial;
    r->disk.at = 0;
    r->file = gc_sndfile_open(gc_buffered_io_callbacks(), SFM_READ, info, &r->disk);
    return r->file != NULL;
}

/* Opens a stream of an Ogg file in place of the one that is open, or the file again from its beginning. */
static gpuconv_status reopen(gc_reader *r, int link, gpuconv_error *error) {
    SF_INFO info;
    sf_close(r->file);
    r->file = NULL;
    r->current = link;
    r->at = r->link_at = 0;
    for (int i = 0; i < link; i++)
        r->at = r->link_at += r->link[i].frames;
    if (r->links > 1)
        gc_buffered_io_set_header(&r->disk, NULL, 0, r->link[link].begin, r->link[link].bytes);
    if (!open_sndfile(r, &info))
        return r->disk.err ? fail_system(error, r, r->disk.err) : fail_reading(error, r, "its next stream is damaged");
    if (r->links > 1)
        r->link[link].frames = frame_count(r, &info);
    if (r->links > 1 && r->info.channels > 0 && (info.channels != r->info.channels || info.samplerate != r->info.rate))
        return fail_reading(error, r, "its streams have different channels or rates; split it");
    return GPUCONV_OK;
}

/* Counts the frames of the streams that follow the first one. */
static gpuconv_status count_links(gc_reader *r, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    int64_t frames = 0;
    r->link[0].frames = r->info.frames;
    for (int i = 1; i < r->links && !status; i++)
        status = reopen(r, i, error);
    for (int i = 0; i < r->links && frames >= 0; i++)
        frames = r->link[i].frames < 0 ? -1 : frames + r->link[i].frames;
    r->info.frames = frames;
    if (!status && frames < 0)
        status = fail_reading(error, r, "the length of one of its streams is unknown; split it");
    return status ? status : reopen(r, 0, error);
}

/* Opens a regular file; `fd` is the reader's already. */
static gpuconv_status open_disk(gc_reader *r, int fd, int64_t size, SF_INFO *info, gpuconv_error *error) {
    char why[256];
    gc_riff riff = {0};
    r->initial = *info;
    gc_buffered_io_begin(&r->disk, fd, size);
    const bool whole = r->disk.begin == 0, raw = info->format != 0;
    gpuconv_status status = raw ? GPUCONV_OK : read_sizes(r, &riff, error);
    if (status)
        return status;
    if (!open_sndfile(r, info)) {
        *info = r->initial;
        r->disk.at = 0;
        r->file = gc_sndfile_open_for_reason(gc_buffered_io_callbacks(), SFM_READ, info, &r->disk, why, sizeof why);
    }
    if (!r->file && r->disk.err)
        return fail_system(error, r, r->disk.err);
    if (!r->file)
        return raw || !whole ? fail_reading(error, r, why) : open_media(r, size, info, why, sizeof why, error);
    take_fact(r, &riff, info);
    return GPUCONV_OK;
}

/* Returns how a pipe with this format is read: raw encodings with a fixed number of bytes per frame are streamed. */
static gc_source_kind source_kind(const SF_INFO *info) {
    const int code = info->format & SF_FORMAT_SUBMASK;
    if (!info->format)
        return GC_SOURCE_HEADER;
    return code <= SF_FORMAT_DOUBLE || code == SF_FORMAT_ULAW || code == SF_FORMAT_ALAW ? GC_SOURCE_RAW
                                                                                        : GC_SOURCE_ENCODED;
}

/* Opens a pipe. A stream that cannot be read without seeking is spooled and opened as a file. */
static gpuconv_status open_pipe(gc_reader *r, int fd, SF_INFO *info, gpuconv_error *error) {
    const SF_INFO raw = *info;
    gpuconv_status status = new_source(fd, r->path, source_kind(info), r->cancel, &r->pipe, error);
    if (status)
        return status;
    if (!r->pipe->spooled) {
        char why[256];
        r->file = gc_sndfile_open(source_callbacks(), SFM_READ, info, r->pipe);
        if (!r->file) {
            *info = raw;
            r->pipe->at = 0;
            r->file = gc_sndfile_open_for_reason(source_callbacks(), SFM_READ, info, r->pipe, why, sizeof why);
        }
        if (r->pipe->err)
            return fail_system(error, r, r->pipe->err);
        if (!r->file)
            return fail_reading(error, r, why);
        if (start_streaming(r->pipe))
            return GPUCONV_OK;
        sf_close(r->file); /* libsndfile reads this header differently: give it a file */
        r->file = NULL;
        *info = raw;
        status = spool_source(r->pipe, error);
        if (status)
            return status;
    }
    struct stat st;
    int file = r->pipe->fd;
    r->pipe->fd = -1;
    free_source(r->pipe);
    r->pipe = NULL;
    r->disk.fd = file;
    if (fstat(file, &st) != 0)
        return fail_system(error, r, errno);
    return open_disk(r, file, st.st_size, info, error);
}

/* Opens the descriptor and takes ownership of it. */
static gpuconv_status open_descriptor(gc_reader *r, int fd, bool regular, int64_t size, const char *raw,
                                      gpuconv_error *error) {
    SF_INFO info = {0};
    if (raw && !gc_format_parse_raw(raw, &info)) {
        close(fd);
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "'%s' does not describe raw samples; use RATE,CHANNELS,ENCODING such as 48000,2,s16", raw);
    }
    gpuconv_status status = regular ? open_disk(r, fd, size, &info, error) : open_pipe(r, fd, &info, error);
    if (!status)
        status = set_info(r, &info, error);
    return status || r->links < 2 ? status : count_links(r, error);
}

gpuconv_status gc_reader_open_descriptor(int fd, bool regular, int64_t size, const char *name,
                                         const gc_input_options *options, gc_reader **reader, gpuconv_error *error) {
    gc_reader *r = gc_calloc(1, sizeof *r);
    *reader = NULL;
    if (!r || !(r->path = strdup(name))) {
        close(fd);
        free(r);
        return gc_fail_memory(error, name);
    }
    r->disk.fd = -1;
    r->counted = -1;
    r->cancel = options ? options->cancel : NULL;
    r->keep_nonfinite = options && options->keep_nonfinite;
    gpuconv_status status = open_descriptor(r, fd, regular, size, options ? options->raw : NULL, error);
    if (status)
        gc_reader_free(r);
    else
        *reader = r;
    return status;
}

gpuconv_status gc_reader_open(const char *path, const gc_input_options *options, gc_reader **reader,
                              gpuconv_error *error) {
    struct stat st = {0};
    int fd;
    *reader = NULL;
    gpuconv_status status = open_input(path, options ? options->kind : GC_INPUT_ANY, &fd, &st, error);
    if (status)
        return status;
    if (strcmp(path, "-") == 0)
        path = "standard input";
    return gc_reader_open_descriptor(fd, S_ISREG(st.st_mode), st.st_size, path, options, reader, error);
}

gpuconv_status gc_reader_new(const char *path, gc_reader **reader, gpuconv_error *error) {
    return gc_reader_open(path, NULL, reader, error);
}

void gc_reader_set_cancel(gc_reader *r, const volatile int *cancel) {
    r->cancel = cancel;
    if (r->pipe)
        r->pipe->cancel = cancel;
}

const gc_audio_info *gc_reader_info(const gc_reader *r) {
    return &r->info;
}

static sf_count_t read_frames(gc_reader *r, gc_pcm pcm, void *to, sf_count_t frames) {
    const int64_t frame = (int64_t)r->info.channels * gc_pcm_bytes(pcm);
    switch (pcm.container) {
    case GC_S16:
        return sf_readf_short(r->file, to, frames);
    case GC_S24:
        return sf_read_raw(r->file, to, frames * frame) / frame;
    case GC_S32:
        return sf_readf_int(r->file, to, frames);
    default:
        return sf_readf_float(r->file, to, frames);
    }
}

/* Replaces NaN and infinities by 0 and counts them. */
static void zero_nonfinite(gc_reader *r, float *samples, int64_t frames) {
    int64_t first;
    const int64_t count = gc_zero_nonfinite(samples, frames * r->info.channels, &first);
    if (count > 0 && r->nonfinite_count == 0)
        r->first_nonfinite = r->at + first / r->info.channels;
    r->nonfinite_count += count;
}

/* Reads frames as samples of type `pcm`. */
static gpuconv_status read_as(gc_reader *r, gc_pcm pcm, void *raw, int64_t frames, int64_t *got, gpuconv_error *error) {
    const int64_t frame = (int64_t)r->info.channels * gc_pcm_bytes(pcm);
    const bool check = r->info.pcm.container == GC_F32 && !r->keep_nonfinite;
    const int64_t piece = check ? gc_max(1, PIECE_BYTES / frame) : frames;
    *got = 0;
    if (r->info.frames >= 0)
        frames = gc_min(frames, r->info.frames - r->at);
    while (*got < frames) {
        void *to = (char *)raw + *got * frame;
        sf_count_t n = read_frames(r, pcm, to, gc_min(piece, frames - *got));
        if (n <= 0 && r->current + 1 < r->links && r->at == r->link_at + r->link[r->current].frames) {
            const gpuconv_status status = reopen(r, r->current + 1, error);
            if (status)
                return status;
            continue;
        }
        if (n <= 0)
            break;
        if (check)
            zero_nonfinite(r, to, n);
        r->at += n;
        *got += n;
    }
    int err = r->pipe ? r->pipe->err : r->disk.err;
    if (*got < frames && err)
        return fail_system(error, r, err);
    if (*got < frames && sf_error(r->file) != SF_ERR_NO_ERROR)
        return fail_reading(error, r, sf_strerror(r->file));
    return GPUCONV_OK;
}

gpuconv_status gc_reader_check_end(gc_reader *r, gpuconv_error *error) {
    float frame[GC_MAX_CHANNELS];
    if (r->at < r->info.frames)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: damaged or cut off: ends after %lld of %lld frames", r->path,
                       (long long)r->at, (long long)r->info.frames);
    if (r->goes_on && sf_readf_float(r->file, frame, 1) > 0)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "%s: damaged, or several files in one: goes on behind the %lld frames that its header states",
                       r->path, (long long)r->info.frames);
    return GPUCONV_OK;
}

const char *gc_reader_note(const gc_reader *r) {
    return r->note;
}

int64_t gc_reader_nonfinite(const gc_reader *r, int64_t *first) {
    if (first)
        *first = r->first_nonfinite;
    return r->nonfinite_count;
}

/* Reads and discards frames up to frame `to`, or to the end of the file. */
static gpuconv_status discard(gc_reader *r, int64_t to, gpuconv_error *error) {
    const int64_t count = r->nonfinite_count, first = r->first_nonfinite, step = 1 << 14;
    gpuconv_status status = GPUCONV_OK;
    float *block = gc_calloc(step, r->info.channels * (int64_t)sizeof *block);
    if (!block)
        return gc_fail_memory(error, r->path);
    for (int64_t got = 1; got > 0 && r->at < to && !status;)
        status = r->cancel && *r->cancel ? fail_system(error, r, ECANCELED)
                                         : gc_reader_read_floats(r, block, gc_min(step, to - r->at), &got, error);
    free(block);
    r->nonfinite_count = count;
    r->first_nonfinite = first;
    return status;
}

/* Returns a frame of a stream from which decoding gives the samples of the whole from frame `at` on; 0: the first. A
 * frame of Vorbis needs the one before; the state of an Opus decoder has converged after two seconds, of which four are
 * given. libsndfile takes the last page for longer than it is. */
static int64_t safe_place(const gc_reader *r, int64_t at) {
    const int code = r->info.file_format & SF_FORMAT_SUBMASK;
    if (r->links == 0 || (code != SF_FORMAT_VORBIS && code != SF_FORMAT_OPUS))
        return 0;
    const double scale = code == SF_FORMAT_OPUS ? r->info.rate / 48000.0 : 1;
    const double end = scale * (double)r->link[r->current].safe - r->info.rate / 2.0;
    return gc_max(0, gc_min(at - 4 * (int64_t)r->info.rate, (int64_t)fmax(0, fmin(end, 0x1p62))));
}

/* Sets the next frame of a format whose decoder needs what stands before: decodes from a safe place on. */
static gpuconv_status seek_by_decoding(gc_reader *r, int64_t at, gpuconv_error *error) {
    int link = 0;
    int64_t begin = 0;
    while (link + 1 < r->links && at >= begin + r->link[link].frames)
        begin += r->link[link++].frames;
    const int current = r->current;
    r->current = link;
    const int64_t safe = safe_place(r, at - begin);
    r->current = current;
    gpuconv_status status = GPUCONV_OK;
    if (link != current || at < r->at || r->at < begin + safe) {
        status = reopen(r, link, error);
        if (!status && safe > 0 && sf_seek(r->file, safe, SEEK_SET) == safe)
            r->at += safe;
    }
    return status ? status : discard(r, at, error);
}

gpuconv_status gc_reader_seek(gc_reader *r, int64_t at, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    if (at == r->at)
        return GPUCONV_OK;
    if (r->pipe || gc_format_seeks(r->info.file_format)) {
        if (sf_seek(r->file, at, SEEK_SET) == at)
            r->at = at;
    } else {
        status = seek_by_decoding(r, at, error);
    }
    if (!status && r->at != at)
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot seek to frame %lld", r->path, (long long)at);
    return status;
}

gpuconv_status gc_reader_count(gc_reader *r, gpuconv_error *error) {
    const int64_t at = r->at;
    if (r->info.frames >= 0 || r->pipe)
        return GPUCONV_OK;
    gpuconv_status status = discard(r, INT64_MAX, error);
    if (status)
        return status;
    r->info.frames = r->at;
    return gc_reader_seek(r, at, error);
}

gpuconv_status gc_reader_read(gc_reader *r, void *raw, int64_t frames, int64_t *got, gpuconv_error *error) {
    return read_as(r, r->info.pcm, raw, frames, got, error);
}

gpuconv_status gc_reader_read_floats(gc_reader *r, float *samples, int64_t frames, int64_t *got, gpuconv_error *error) {
    return read_as(r, (gc_pcm){GC_F32, 32}, samples, frames, got, error);
}

void gc_reader_free(gc_reader *r) {
    if (!r)
        return;
    if (r->file)
        sf_close(r->file); /* opened for reading: no data can be lost */
    if (r->disk.fd >= 0)
        close(r->disk.fd);
    free(r->header);
    free(r->link);
    free_source(r->pipe);
    free(r->path);
    free(r);
}

void *gc_reader_sndfile(const gc_reader *r) {
    return r->file;
}
