/* Writing through libsndfile. A file being written has no name, or a temporary one in its folder, until it is whole;
 * devices and pipes, which cannot be renamed, are written in place. */
#include "file.h"
#include "format.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sndfile.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_ROOM = 17 }; /* of what makes a temporary name unique, with its end */

struct gc_writer {
    SNDFILE *file;
    char *path, *target; /* as given; behind symbolic links */
    char *temporary;     /* beside the target; NULL when written in place */
    bool named;          /* a file of that name is there */
    int fd, failure;     /* ours to close unless -1; errno of the first write that failed */
    gc_sink pipe;        /* where it goes when there is no way back */
    bool through;        /* it does */
    gc_pcm pcm;
    int channels;
    bool plain;
    char name[96];
};

/* Where the output will really lie: behind symbolic links, so that a link stays a link. */
static char *resolve(const char *path) {
    char *real = realpath(path, NULL);
    return real || errno == ENOMEM ? real : strdup(path);
}

/* Puts a name into w->temporary, beside the target, that no other writer has. */
static void name_temporary(gc_writer *w) {
    static _Atomic unsigned made;
    unsigned random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
        random = (unsigned)getpid();
    char *name = strrchr(w->temporary, '-') + 1;
    snprintf(name, NAME_ROOM, "%08x%08x", random, atomic_fetch_add(&made, 1));
}

/* A new file in the target's folder, without a name where the system can: then nobody sees it, and nothing is left of
 * it however this process ends. */
static int open_fresh(gc_writer *w) {
    const char *slash = strrchr(w->target, '/');
    int folder = slash ? (int)(slash - w->target) + 1 : 0;
    size_t size = (size_t)folder + sizeof "./.gpuconv-" + NAME_ROOM;
    w->temporary = gc_calloc((int64_t)size, 1);
    if (!w->temporary) {
        errno = ENOMEM;
        return -1;
    }
    snprintf(w->temporary, size, "%.*s.", folder, w->target);
    int fd = access("/proc/self/fd", X_OK) == 0 ? open(w->temporary, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666) : -1;
    snprintf(w->temporary, size, "%.*s.gpuconv-", folder, w->target);
    w->named = fd < 0;
    for (int attempt = 0; fd < 0 && attempt < 100; attempt++) {
        name_temporary(w);
        fd = open(w->temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0) {
        free(w->temporary);
        w->temporary = NULL;
        w->named = false;
    }
    return fd;
}

/* Gives the finished file its name at one stroke. */
static bool take_name(gc_writer *w) {
    char unnamed[64];
    if (!w->named) {
        snprintf(unnamed, sizeof unnamed, "/proc/self/fd/%d", w->fd);
        if (linkat(AT_FDCWD, unnamed, AT_FDCWD, w->target, AT_SYMLINK_FOLLOW) == 0)
            return true;
        if (errno != EEXIST)
            return false;
        name_temporary(w);
        if (linkat(AT_FDCWD, unnamed, AT_FDCWD, w->temporary, AT_SYMLINK_FOLLOW) != 0)
            return false;
        w->named = true;
    }
    if (rename(w->temporary, w->target) != 0)
        return false;
    w->named = false;
    return true;
}

/* Opens the file to write into: a fresh one beside the target, or the target where it is no regular file. */
static int open_output(gc_writer *w, gpuconv_error *error) {
    struct stat st;
    bool exists = stat(w->target, &st) == 0;
    if (exists && S_ISDIR(st.st_mode)) {
        gc_fail(error, GPUCONV_ERROR_FILE, "%s: is a directory", w->path);
        return -1;
    }
    if (exists && !S_ISREG(st.st_mode)) {
        int fd = open(w->target, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", w->path, strerror(errno));
        return fd;
    }
    if (exists && access(w->target, W_OK) != 0) {
        gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", w->path, strerror(errno));
        return -1;
    }
    int fd = open_fresh(w);
    if (fd < 0) {
        gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", w->path, strerror(errno));
    } else if (exists && fchmod(fd, st.st_mode & 07777) != 0) {
        gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", w->path, strerror(errno));
        close(fd);
        fd = -1;
    }
    return fd;
}

static int open_standard(gpuconv_error *error) {
    int fd = dup(STDOUT_FILENO);
    if (fd < 0) {
        gc_fail(error, GPUCONV_ERROR_FILE, "standard output: %s", strerror(errno));
    } else if (isatty(fd)) {
        close(fd);
        fd = -1;
        gc_fail(error, GPUCONV_ERROR_FILE, "standard output is a terminal; send it to a file or a pipe");
    }
    return fd;
}

/* The library writes through these: its encoders of compressed formats forget about writes that fail while they close,
 * and a full disk must not pass for a whole file. */
static sf_count_t io_length(void *writer) {
    struct stat st;
    return fstat(((gc_writer *)writer)->fd, &st) == 0 ? st.st_size : -1;
}

static sf_count_t io_seek(sf_count_t offset, int whence, void *writer) {
    return lseek(((gc_writer *)writer)->fd, offset, whence);
}

static sf_count_t io_read(void *bytes, sf_count_t count, void *writer) {
    return read(((gc_writer *)writer)->fd, bytes, (size_t)count);
}

static sf_count_t io_write(const void *bytes, sf_count_t count, void *writer) {
    gc_writer *w = writer;
    sf_count_t done = 0;
    while (done < count) {
        ssize_t n = write(w->fd, (const char *)bytes + done, (size_t)(count - done));
        if (n > 0)
            done += n;
        else if (n == 0 || errno != EINTR)
            break;
    }
    if (done < count && !w->failure)
        w->failure = errno ? errno : EIO;
    return done;
}

static sf_count_t io_tell(void *writer) {
    return lseek(((gc_writer *)writer)->fd, 0, SEEK_CUR);
}

/* What cannot be wound back is written by way of a sink, which needs to know how much there will be. */
static SNDFILE *open_library(gc_writer *w, int fd, SF_INFO *info, int64_t frames) {
    static const SF_VIRTUAL_IO io = {io_length, io_seek, io_read, io_write, io_tell};
    struct stat st;
    w->fd = fd;
    w->through = fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
    if (w->through) {
        gc_sink_begin(&w->pipe, fd, info->format, info->channels, frames);
        return sf_open_virtual(gc_sink_io(), SFM_WRITE, info, &w->pipe);
    }
    return sf_open_virtual((SF_VIRTUAL_IO *)&io, SFM_WRITE, info, w);
}

static int failure_of(const gc_writer *w) {
    return w->failure ? w->failure : w->pipe.failure;
}

/* Why a write failed: the system's word goes before the library's. */
static gpuconv_status fail_writing(gpuconv_error *error, const gc_writer *w, const char *why) {
    return gc_format_fail(error, GPUCONV_ERROR_FILE, w->path, "", failure_of(w) ? strerror(failure_of(w)) : why);
}

/* Headers, and what else a WAV may hold beside its samples, stay well under this. */
static const double wav_most = 4294967296.0 - 65536;

/* The format of the output: what was wished for, else what the name says, else WAV on a pipe. */
static gpuconv_status choose_format(const char *path, const gc_format_wish *wish, const gc_audio_info *like,
                                    int channels, int64_t frames, int *format, gpuconv_error *error) {
    bool standard = strcmp(path, "-") == 0;
    const char *named = wish && wish->format ? wish->format : NULL;
    int container = named ? gc_format_container_named(named) : standard ? SF_FORMAT_WAV : gc_format_container(path);
    if (!container && named)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "no such format: '%.40s'; such as wav, flac, aiff, w64, rf64, caf, "
                       "au, ogg, opus, mp3 and raw are",
                       named);
    if (!container)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "%s: the extension names no known format; wav, flac, aiff, w64, rf64, caf, au, ogg, opus and "
                       "mp3 do, and --format says it for any name",
                       path);
    int encoding = wish && wish->encoding ? gc_format_encoding_named(wish->encoding) : 0;
    if (wish && wish->encoding && !encoding)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "no such encoding: '%.40s'; such as u8, s16, s24, s32, float, double, ulaw, alaw and vorbis are",
                       wish->encoding);
    *format = encoding ? gc_format_exactly(container, encoding, channels, like->rate)
                       : gc_format_for(container, like->file_format, channels, like->rate);
    if (!*format && encoding)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: this format cannot hold %d channels at %d Hz as %s", path,
                       channels, like->rate, wish->encoding);
    if (!*format)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: this format cannot hold %d channels at %d Hz", path, channels,
                       like->rate);
    int sample_bytes = (*format & SF_FORMAT_SUBMASK) == SF_FORMAT_DOUBLE ? 8 : gc_pcm_bytes(gc_format_pcm(*format));
    bool large = (frames < 0 && !standard) || (double)frames * channels * sample_bytes > wav_most;
    if (container == SF_FORMAT_WAV && large)
        *format = (*format & ~SF_FORMAT_TYPEMASK) | SF_FORMAT_RF64;
    return GPUCONV_OK;
}

gpuconv_status gc_writer_new(const char *path, const gc_format_wish *wish, const gc_audio_info *like, int channels,
                             int64_t frames, gc_writer **writer, gpuconv_error *error) {
    *writer = NULL;
    int format;
    gpuconv_status status = choose_format(path, wish, like, channels, frames, &format, error);
    if (status)
        return status;
    bool standard = strcmp(path, "-") == 0;
    gc_writer *w = gc_calloc(1, sizeof *w);
    if (w)
        w->fd = -1;
    if (!w || !(w->path = strdup(standard ? "standard output" : path)) || !(w->target = resolve(path))) {
        gc_writer_free(w);
        return gc_fail_memory(error, path);
    }
    w->channels = channels;
    w->pcm = gc_format_pcm(format);
    w->plain = gc_format_plain(format);
    gc_format_name(format, w->name, sizeof w->name);
    int fd = standard ? open_standard(error) : open_output(w, error);
    if (fd < 0) {
        gc_writer_free(w);
        return GPUCONV_ERROR_FILE;
    }
    SF_INFO info = {.format = format, .channels = channels, .samplerate = like->rate};
    w->file = open_library(w, fd, &info, frames);
    if (!w->file) {
        status = fail_writing(error, w, sf_strerror(NULL));
        gc_writer_free(w);
        return status;
    }
    /* The peak chunk holds a time stamp: the same input is to give the same bytes. */
    sf_command(w->file, SFC_SET_ADD_PEAK_CHUNK, NULL, SF_FALSE);
    if ((format & SF_FORMAT_TYPEMASK) == SF_FORMAT_RF64 && !w->through &&
        !(wish && wish->format && strcmp(wish->format, "rf64") == 0) && gc_format_container(path) == SF_FORMAT_WAV)
        sf_command(w->file, SFC_RF64_AUTO_DOWNGRADE, NULL, SF_TRUE);
    *writer = w;
    return GPUCONV_OK;
}

gpuconv_status gc_writer_pcm_of(const char *path, const gc_audio_info *like, int channels, int64_t frames, gc_pcm *pcm,
                                gpuconv_error *error) {
    int format;
    gpuconv_status status = choose_format(path, NULL, like, channels, frames, &format, error);
    if (!status)
        *pcm = gc_format_pcm(format);
    return status;
}

gc_pcm gc_writer_pcm(const gc_writer *w) {
    return w->pcm;
}

bool gc_writer_plain(const gc_writer *w) {
    return w->plain;
}

int gc_writer_channels(const gc_writer *w) {
    return w->channels;
}

const char *gc_writer_name(const gc_writer *w) {
    return w->name;
}

gpuconv_status gc_writer_write(gc_writer *w, const void *raw, int64_t frames, gpuconv_error *error) {
    sf_count_t done = 0;
    int64_t frame = (int64_t)w->channels * gc_pcm_bytes(w->pcm);
    switch (w->pcm.container) {
    case GC_S16:
        done = sf_writef_short(w->file, raw, frames);
        break;
    case GC_S24:
        done = sf_write_raw(w->file, raw, frames * frame) / frame;
        break;
    case GC_S32:
        done = sf_writef_int(w->file, raw, frames);
        break;
    case GC_F32:
        done = sf_writef_float(w->file, raw, frames);
        break;
    }
    if (done != frames || failure_of(w))
        return fail_writing(error, w, sf_strerror(w->file));
    return GPUCONV_OK;
}

gpuconv_status gc_writer_commit(gc_writer *w, gpuconv_error *error) {
    int failed = sf_error(w->file);
    int closed = sf_close(w->file);
    w->file = NULL;
    if (failed || closed || failure_of(w))
        return fail_writing(error, w, sf_error_number(failed ? failed : closed));
    /* Only a file that has a name already can wait with its own until it is closed: network drives tell late. */
    bool late = w->named;
    if (w->temporary && !late && !take_name(w))
        w->failure = errno;
    if (w->fd >= 0 && close(w->fd) != 0 && !w->failure)
        w->failure = errno;
    w->fd = -1;
    if (w->temporary && late && !w->failure && !take_name(w))
        w->failure = errno;
    return w->failure ? fail_writing(error, w, "") : GPUCONV_OK;
}

void gc_writer_free(gc_writer *w) {
    if (!w)
        return;
    if (w->file)
        sf_close(w->file); /* given up: what it says no longer matters */
    if (w->fd >= 0)
        close(w->fd);
    if (w->named)
        unlink(w->temporary);
    free(w->temporary);
    free(w->target);
    free(w->path);
    free(w);
}

void *gc_writer_library(const gc_writer *w) {
    return w->file;
}
