/* Writing through libsndfile. A file takes its name when it is whole (core/output_file.h); devices and pipes, which
 * cannot be renamed, are written in place. */
#include "file.h"
#include "format.h"
#include "libgpuconv/core/descriptor.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/output_file.h"
#include "library.h"
#include "pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct gc_writer {
    SNDFILE *file;
    char *path; /* as messages call it */
    gc_output_file *output;
    gc_sink pipe; /* where it goes when there is no way back */
    bool through; /* it does */
    int fd;       /* the output's; standard output's: ours to close unless -1 */
    bool standard;
    int failure; /* errno of the first write that failed */
    gc_pcm pcm;
    int channels;
    bool plain;
    int64_t most; /* bytes that the header can tell; 0: any number */
    char name[96], note[256];
};

static int open_standard(gpuconv_error *error) {
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
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
    if (w->most > 0 && lseek(w->fd, 0, SEEK_CUR) > w->most - count)
        w->failure = w->failure ? w->failure : EFBIG;
    if (w->failure)
        return 0;
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

static int failure_of(const gc_writer *w) {
    return w->failure ? w->failure : w->pipe.failure;
}

/* A pipe, and standard output that is appended to or stands behind something, cannot be wound back: it is written by
 * way of a sink, which needs to know how much there will be. */
static bool has_no_way_back(const gc_writer *w) {
    struct stat st;
    int flags = fcntl(w->fd, F_GETFL);
    if (fstat(w->fd, &st) != 0)
        return false;
    if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
        return true;
    return w->standard && S_ISREG(st.st_mode) && ((flags >= 0 && flags & O_APPEND) || lseek(w->fd, 0, SEEK_CUR) > 0);
}

/* Opens, and if that fails, once more to learn the reason, which goes to w->note. */
static SNDFILE *open_or_say_why(SF_VIRTUAL_IO *io, SF_INFO *info, void *context, gc_writer *w) {
    const SF_INFO wanted = *info;
    SNDFILE *file = gc_library_open(io, SFM_WRITE, info, context);
    if (file || failure_of(w) || w->pipe.sent > 0 || io->seek(0, SEEK_SET, context) != 0)
        return file;
    *info = wanted;
    return gc_library_open_again(io, SFM_WRITE, info, context, w->note, sizeof w->note);
}

static SNDFILE *open_library(gc_writer *w, SF_INFO *info, int64_t frames, const volatile int *cancel) {
    static const SF_VIRTUAL_IO io = {io_length, io_seek, io_read, io_write, io_tell};
    w->through = has_no_way_back(w);
    if (!w->through)
        return open_or_say_why((SF_VIRTUAL_IO *)&io, info, w, w);
    gc_pipe_out out = w->standard ? gc_pipe_out_begin(w->fd, false, cancel)
                                  : (gc_pipe_out){.fd = w->fd, .hide_signal = true, .cancel = cancel};
    w->fd = out.fd;
    gc_sink_begin(&w->pipe, out, info->format, info->channels, frames);
    return open_or_say_why(gc_sink_io(), info, &w->pipe, w);
}

/* Why a write failed: the system's word goes before the library's. */
static gpuconv_status fail_writing(gpuconv_error *error, const gc_writer *w, const char *why) {
    if (failure_of(w) == ECANCELED)
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted", w->path);
    return gc_format_fail(error, GPUCONV_ERROR_FILE, w->path, "", failure_of(w) ? strerror(failure_of(w)) : why);
}

/* Whether the path is written as a stream, which needs no header that tells its length. */
static bool is_stream(const char *path) {
    struct stat st;
    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
}

/* A WAV that may pass 4 GiB becomes RF64 where that really holds the encoding. One of unknown length that cannot stays
 * a WAV, and writing ends where its header does; one that is known to be too long is refused. */
static gpuconv_status widen(const char *path, int channels, int rate, int64_t frames, int *format,
                            gpuconv_error *error) {
    const int64_t most = gc_format_most_bytes(*format);
    const bool large = frames >= 0 && (double)frames * gc_format_frame_bytes(*format, channels) > (double)most;
    const int wide = (*format & ~SF_FORMAT_TYPEMASK) | SF_FORMAT_RF64;
    char container[48], encoding[48];
    if (most == 0 || !(large || frames < 0))
        return GPUCONV_OK;
    const bool stream = is_stream(path);
    if (!large && stream)
        return GPUCONV_OK;
    if ((*format & SF_FORMAT_TYPEMASK) == SF_FORMAT_WAV && gc_format_works(wide, channels, rate)) {
        *format = wide;
        return GPUCONV_OK;
    }
    if (!large || stream)
        return GPUCONV_OK;
    gc_format_container_name(*format, container, sizeof container);
    gc_format_encoding_name(*format, encoding, sizeof encoding);
    return gc_fail(error, GPUCONV_ERROR_FORMAT,
                   "%s: %lld frames of %s pass the 4 GiB that %s holds; use w64 or caf, or wav with --encoding s16",
                   path, (long long)frames, encoding, container);
}

/* The format of the output: what was wished for, else what the name says, else WAV on a pipe. */
static gpuconv_status choose_format(const char *path, const gc_output_wish *wish, const gc_audio_info *like,
                                    int channels, int64_t frames, int *format, gpuconv_error *error) {
    bool standard = strcmp(path, "-") == 0;
    const char *named = wish && wish->format ? wish->format : NULL;
    int container = named ? gc_format_container_named(named) : standard ? SF_FORMAT_WAV : gc_format_container(path);
    if (!container && named)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "no such format: '%s'; such as wav, flac, aiff, w64, rf64, caf, "
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
                       "no such encoding: '%s'; such as u8, s16, s24, s32, float, double, ulaw, alaw and vorbis are",
                       wish->encoding);
    *format = encoding ? gc_format_exactly(container, encoding, channels, like->rate)
                       : gc_format_for(container, like->file_format, channels, like->rate);
    if (!*format && encoding)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: this format cannot hold %d channels at %d Hz as %s", path,
                       channels, like->rate, wish->encoding);
    if (!*format)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: this format cannot hold %d channels at %d Hz", path, channels,
                       like->rate);
    return widen(path, channels, like->rate, frames, format, error);
}

/* Says what became of an encoding that was not asked for and could not be kept. */
static void note_encoding(gc_writer *w, int format, int like) {
    char container[48], before[48], now[48];
    if (!gc_format_compressed(like) || ((format ^ like) & SF_FORMAT_SUBMASK) == 0)
        return;
    gc_format_container_name(format, container, sizeof container);
    gc_format_encoding_name(like, before, sizeof before);
    gc_format_encoding_name(format, now, sizeof now);
    (void)snprintf(w->note, sizeof w->note, "%s cannot hold %s; written as %s", container, before, now);
}

static gpuconv_status open_output(gc_writer *w, const gc_output_wish *wish, gpuconv_error *error) {
    if (w->standard) {
        w->fd = open_standard(error);
        return w->fd < 0 ? GPUCONV_ERROR_FILE : GPUCONV_OK;
    }
    gpuconv_status status =
        gc_output_file_new(w->path, wish ? wish->name : GC_OUTPUT_GIVEN, wish ? wish->cancel : NULL, &w->output, error);
    if (!status)
        w->fd = gc_output_file_descriptor(w->output);
    return status;
}

gpuconv_status gc_writer_new(const char *path, const gc_output_wish *wish, const gc_audio_info *like, int channels,
                             int64_t frames, gc_writer **writer, gpuconv_error *error) {
    *writer = NULL;
    int format = 0;
    gpuconv_status status = choose_format(path, wish, like, channels, frames, &format, error);
    if (status)
        return status;
    gc_writer *w = gc_calloc(1, sizeof *w);
    if (!w)
        return gc_fail_memory(error, path);
    w->fd = -1;
    w->standard = strcmp(path, "-") == 0;
    if (!(w->path = strdup(w->standard ? "standard output" : path))) {
        gc_writer_free(w);
        return gc_fail_memory(error, path);
    }
    w->channels = channels;
    w->pcm = gc_format_pcm(format);
    w->plain = gc_format_plain(format);
    w->most = gc_format_most_bytes(format);
    gc_format_name(format, w->name, sizeof w->name);
    if (!(wish && wish->encoding))
        note_encoding(w, format, like->file_format);
    status = open_output(w, wish, error);
    if (status) {
        gc_writer_free(w);
        return status;
    }
    SF_INFO info = {.format = format, .channels = channels, .samplerate = like->rate};
    w->file = open_library(w, &info, frames, wish ? wish->cancel : NULL);
    if (!w->file) {
        status = fail_writing(error, w, *w->note ? w->note : "cannot be begun");
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
    int format = 0;
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

const char *gc_writer_note(const gc_writer *w) {
    return w->note;
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

/* Clears the time of writing in a file that is whole. @return 0 or an errno */
static int forget_time(int fd) {
    unsigned char head[4096];
    ssize_t got = pread(fd, head, sizeof head, 0);
    if (got < 0)
        return errno;
    unsigned char cleared[sizeof head];
    memcpy(cleared, head, (size_t)got);
    gc_sink_forget_time(cleared, got);
    if (memcmp(cleared, head, (size_t)got) == 0)
        return 0;
    ssize_t put = pwrite(fd, cleared, (size_t)got, 0);
    return put == got ? 0 : put < 0 ? errno : EIO;
}

gpuconv_status gc_writer_commit(gc_writer *w, gpuconv_error *error) {
    return gc_writer_commit_after(w, NULL, NULL, error);
}

gpuconv_status gc_writer_commit_after(gc_writer *w,
                                      gpuconv_status (*whole)(void *context, int fd, gpuconv_error *error),
                                      void *context, gpuconv_error *error) {
    int failed = sf_error(w->file);
    int closed = sf_close(w->file);
    w->file = NULL;
    if (!failed && !closed && w->through)
        (void)gc_sink_end(&w->pipe); /* its failure is failure_of(w) */
    else if (!failed && !closed && !w->failure && w->pcm.container == GC_F32 && w->output)
        w->failure = forget_time(w->fd);
    if (failed || closed || failure_of(w))
        return fail_writing(error, w, sf_error_number(failed ? failed : closed));
    gpuconv_status refused = whole ? whole(context, w->fd, error) : GPUCONV_OK;
    if (refused)
        return refused;
    int fd = w->fd;
    w->fd = -1;
    if (w->output)
        return gc_output_file_commit(w->output, error);
    if (close(fd) != 0) {
        w->failure = errno;
        return fail_writing(error, w, "");
    }
    return GPUCONV_OK;
}

void gc_writer_free(gc_writer *w) {
    if (!w)
        return;
    if (w->file)
        sf_close(w->file); /* given up: what it says no longer matters */
    if (!w->output && w->fd >= 0)
        close(w->fd);
    gc_output_file_free(w->output);
    free(w->path);
    free(w);
}

void *gc_writer_library(const gc_writer *w) {
    return w->file;
}
