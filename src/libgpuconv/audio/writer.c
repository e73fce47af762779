/*
 * Writing files and pipes through libsndfile. A file takes its name on commit (core/files.h); devices and pipes
 * are written in place.
 *
 * libsndfile writes a header of length zero, then the samples, and corrects the header at the end. A pipe cannot seek:
 * the sink, a virtual file, holds the header back until samples follow, completes its length fields from the expected
 * number of frames (or says that the length is unknown), and discards later writes to positions that were already sent.
 */
#include "file.h"

#include "format.h"
#include "libgpuconv/core/descriptor.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/finite.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct gc_sink {
    gc_pipe_out out;
    int err; /* errno value of the first failed write, or ECANCELED; 0: none */
    int format, channels;
    int64_t frames;       /* -1: unknown */
    uint32_t speakers;    /* the mask that replaces that of libsndfile's header */
    int64_t at;           /* libsndfile's position in bytes */
    int64_t sent;         /* bytes that were written to the pipe */
    int64_t header_bytes; /* bytes of `header` that are not sent yet */
    unsigned char header[32768];
} gc_sink;

/* ---- Pipes ------------------------------------------------------------------------------------------------------- */

/* Initialises a sink for `frames` frames (-1: unknown) of libsndfile's `format`. */
static void sink_begin(gc_sink *s, gc_pipe_out out, int format, int channels, int64_t frames, uint32_t speakers) {
    *s = (gc_sink){.out = out, .format = format, .channels = channels, .frames = frames, .speakers = speakers};
}

static void put_little(unsigned char *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

/* Returns the offset of the size field of the chunk `name` in a header that ends with the header of the data chunk, or
 * 0 if the chunk does not exist. */
static int64_t chunk_size_offset(const unsigned char *header, int64_t count, const char *name) {
    for (int64_t at = 12; at + 8 <= count;) {
        if (memcmp(header + at, name, 4) == 0)
            return at + 4;
        uint64_t size = header[at + 4] | (uint64_t)header[at + 5] << 8 | (uint64_t)header[at + 6] << 16 |
                        (uint64_t)header[at + 7] << 24;
        at += 8 + (int64_t)((size + 1) & ~UINT64_C(1));
    }
    return 0;
}

/* Clears the time stamp in the PEAK chunk of a WAV or RF64 header, so that the same samples give the same bytes.
 * libsndfile writes that chunk into RF64 although SFC_SET_ADD_PEAK_CHUNK is off. */
static void sink_clear_peak_time(unsigned char *header, int64_t count) {
    int64_t size = count >= 12 && memcmp(header + 8, "WAVE", 4) == 0 ? chunk_size_offset(header, count, "PEAK") : 0;
    if (size && size + 12 <= count)
        memset(header + size + 8, 0, 4);
}

/* Returns the offset of the mask of speakers in a WAV or RF64 header; 0: it has none. */
static int64_t sink_speakers_offset(const unsigned char *header, int64_t count) {
    const bool wav = count >= 12 && memcmp(header + 8, "WAVE", 4) == 0;
    const int64_t size = wav ? chunk_size_offset(header, count, "fmt ") : 0, tag = size + 4;
    return size && tag + 40 <= count && header[tag] == 0xfe && header[tag + 1] == 0xff ? tag + 20 : 0;
}

/* Writes the lengths and the mask of speakers into the header of a WAV, RF64 or AU; an unknown length is written as all
 * ones. */
static void complete_header(const gc_sink *s, unsigned char *header, int64_t count) {
    static const int sizes[] = {0, 1, 2, 3, 4, 1, 4, 8}; /* bytes per sample, indexed by libsndfile's encoding */
    int code = s->format & SF_FORMAT_SUBMASK, sample = code < 8 ? sizes[code] : code <= SF_FORMAT_ALAW ? 1 : 0;
    const int64_t mask = sink_speakers_offset(header, count);
    sink_clear_peak_time(header, count);
    if (mask)
        put_little(header + mask, s->speakers, 4);
    bool known = s->frames >= 0 && sample;
    uint64_t bytes = known ? (uint64_t)s->frames * (uint64_t)s->channels * (uint64_t)sample : UINT32_MAX;
    uint64_t all = known ? bytes + (bytes & 1) + (uint64_t)count - 8 : UINT32_MAX;
    if (count >= 12 && memcmp(header, "RIFF", 4) == 0) {
        int64_t data = chunk_size_offset(header, count, "data"), fact = chunk_size_offset(header, count, "fact");
        put_little(header + 4, all < UINT32_MAX ? all : UINT32_MAX, 4);
        if (data)
            put_little(header + data, bytes < UINT32_MAX ? bytes : UINT32_MAX, 4);
        if (fact)
            put_little(header + fact + 4, known ? (uint64_t)s->frames : UINT32_MAX, 4);
    } else if (count >= 48 && memcmp(header, "RF64", 4) == 0 && known) {
        int64_t ds64 = chunk_size_offset(header, count, "ds64");
        if (ds64) {
            put_little(header + ds64 + 4, all, 8);
            put_little(header + ds64 + 12, bytes, 8);
            put_little(header + ds64 + 20, (uint64_t)s->frames, 8);
        }
    } else if (count >= 24 && memcmp(header, ".snd", 4) == 0) {
        for (int i = 0; i < 4; i++)
            header[8 + i] = (unsigned char)((bytes < UINT32_MAX ? bytes : UINT32_MAX) >> (24 - 8 * i));
    }
}

static sf_count_t sink_length(void *sink) {
    const gc_sink *s = sink;
    return s->sent + s->header_bytes;
}

static sf_count_t sink_seek(sf_count_t offset, int whence, void *sink) {
    gc_sink *s = sink;
    int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? s->at : s->sent + s->header_bytes, to;
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

/* Writes bytes to the pipe. After the first error all further bytes are dropped: an encoder may continue to write while
 * it is closed. */
static bool send_bytes(gc_sink *s, const void *bytes, int64_t count) {
    if (!s->err && count > 0)
        s->err = gc_pipe_out_write(&s->out, bytes, count);
    s->sent += s->err ? 0 : count;
    return !s->err;
}

/* Completes and sends the pending header. */
static bool send_header(gc_sink *s) {
    int64_t count = s->header_bytes;
    s->header_bytes = 0;
    complete_header(s, s->header, count);
    return send_bytes(s, s->header, count);
}

/* libsndfile writes the header when it opens the sink, and again before the first sample if a setting has changed. A
 * write at position 0 is therefore kept until bytes behind it arrive. */
static sf_count_t sink_write(const void *bytes, sf_count_t count, void *sink) {
    gc_sink *s = sink;
    if (s->sent == 0 && s->at == 0 && count <= (sf_count_t)sizeof s->header) {
        memcpy(s->header, bytes, (size_t)count);
        s->header_bytes = s->at = count;
        return s->err ? 0 : count;
    }
    if (s->header_bytes && !send_header(s))
        return 0;
    int64_t dropped = gc_min(count, gc_max(0, s->sent - s->at)); /* bytes at positions that were already sent */
    if (!send_bytes(s, (const char *)bytes + dropped, count - dropped))
        return dropped;
    s->at += count;
    return count;
}

/* Sends the header of a file without samples. Call after sf_close. @return 0, or the errno value of the first failed
 * write */
static int sink_end(gc_sink *s) {
    if (s->header_bytes)
        (void)send_header(s);
    return s->err;
}

static sf_count_t sink_tell(void *sink) {
    return ((gc_sink *)sink)->at;
}

/* Returns the callbacks for gc_sndfile_open. */
static SF_VIRTUAL_IO *sink_callbacks(void) {
    static SF_VIRTUAL_IO io = {sink_length, sink_seek, sink_read, sink_write, sink_tell};
    return &io;
}

/* ---- Writers ----------------------------------------------------------------------------------------------------- */

struct gc_writer {
    SNDFILE *file;
    char *path;             /* the name in messages */
    gc_output_file *output; /* NULL: standard output */
    gc_sink pipe;           /* used if the output cannot seek */
    bool uses_pipe;
    int fd; /* owned by `output`, or by the writer if that is NULL; -1: closed */
    bool is_stdout;
    int err; /* errno value of the first failed write; 0: none */
    gc_pcm pcm;
    int channels;
    bool plain;
    int64_t written, nonfinite_count, first_nonfinite; /* frames; samples; frame */
    uint32_t speakers;                                 /* mask of a WAV or RF64 */
    int64_t speakers_at;                               /* its offset in bytes; 0: the header has none */
    int64_t max_bytes;                                 /* file size that the header can state; 0: no limit */
    char name[96], note[256];
};

/* Duplicates standard output. Returns -1 with the error in *error; a terminal is refused. */
static int open_stdout(gpuconv_error *error) {
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

/* Callbacks for libsndfile that store write errors: sf_close does not report an error of a compressing encoder's last
 * writes, and a truncated file must not be committed. Of a failed write at the end of a file nothing stays, so that the
 * file holds what libsndfile counts. Encoders are told that their writes succeed: some print a line about a failure. */
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

static sf_count_t io_tell(void *writer) {
    return lseek(((gc_writer *)writer)->fd, 0, SEEK_CUR);
}

static sf_count_t io_write(const void *bytes, sf_count_t count, void *writer) {
    gc_writer *w = writer;
    sf_count_t done = 0;
    const sf_count_t at = io_tell(w);
    if (at == 0)
        w->speakers_at = sink_speakers_offset(bytes, count);
    if (w->max_bytes > 0 && at > w->max_bytes - count)
        w->err = w->err ? w->err : EFBIG;
    if (w->err)
        return w->plain ? 0 : count;
    while (done < count) {
        ssize_t n = write(w->fd, (const char *)bytes + done, (size_t)(count - done));
        if (n > 0)
            done += n;
        else if (n == 0 || errno != EINTR)
            break;
    }
    if (done < count && !w->err)
        w->err = errno ? errno : EIO;
    if (done < count && !w->plain)
        return count;
    if (done < count && io_length(w) == at + done && ftruncate(w->fd, at) == 0 && io_seek(at, SEEK_SET, w) == at)
        return 0;
    return done;
}

/* Returns the errno value of the first failed write, or 0. */
static int write_error(const gc_writer *w) {
    return w->err ? w->err : w->pipe.err;
}

/* Returns true if the output cannot seek to its first byte: a pipe or socket, or standard output in append mode or
 * behind other data. Such an output is written through a sink. */
static bool cannot_seek(const gc_writer *w) {
    struct stat st;
    int flags = fcntl(w->fd, F_GETFL);
    if (fstat(w->fd, &st) != 0)
        return false;
    if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
        return true;
    return w->is_stdout && S_ISREG(st.st_mode) && ((flags >= 0 && flags & O_APPEND) || lseek(w->fd, 0, SEEK_CUR) > 0);
}

/* Opens the file with libsndfile. On failure, opens it again to get the reason, which is stored in w->note. */
static SNDFILE *open_sndfile(SF_VIRTUAL_IO *io, SF_INFO *info, void *context, gc_writer *w) {
    const SF_INFO initial = *info;
    SNDFILE *file = gc_sndfile_open(io, SFM_WRITE, info, context);
    if (file || write_error(w) || w->pipe.sent > 0 || io->seek(0, SEEK_SET, context) != 0)
        return file;
    *info = initial;
    return gc_sndfile_open_for_reason(io, SFM_WRITE, info, context, w->note, sizeof w->note);
}

static SNDFILE *open_for_writing(gc_writer *w, SF_INFO *info, int64_t frames, const volatile int *cancel) {
    static const SF_VIRTUAL_IO io = {io_length, io_seek, io_read, io_write, io_tell};
    w->uses_pipe = cannot_seek(w);
    if (!w->uses_pipe)
        return open_sndfile((SF_VIRTUAL_IO *)&io, info, w, w);
    if (!gc_format_streams(info->format)) {
        (void)snprintf(
            w->note, sizeof w->note, "%s",
            "is a pipe, and the header of this format states the length, which is known at the end; use wav, "
            "au, flac, ogg, opus, mp3 or raw, or a regular file");
        return NULL;
    }
    gc_pipe_out out = w->is_stdout ? gc_pipe_out_begin(w->fd, false, cancel)
                                   : (gc_pipe_out){.fd = w->fd, .hide_signal = true, .cancel = cancel};
    w->fd = out.fd;
    sink_begin(&w->pipe, out, info->format, info->channels, frames, w->speakers);
    return open_sndfile(sink_callbacks(), info, &w->pipe, w);
}

/* Fails with the reason of a failed write: the system's if there is one, else libsndfile's (`why`). */
static gpuconv_status fail_writing(gpuconv_error *error, const gc_writer *w, const char *why) {
    if (write_error(w) == ECANCELED)
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted", w->path);
    return gc_format_fail(error, GPUCONV_ERROR_FILE, w->path, "", write_error(w) ? strerror(write_error(w)) : why);
}

/* Returns true if the path is standard output or a named pipe, whose header may have an unknown length. */
static bool is_stream(const char *path) {
    struct stat st;
    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
}

/* Changes a WAV that may exceed 4 GiB to RF64 if RF64 supports the encoding. If it does not, a file that is known to be
 * too long is refused; a file of unknown length stays a WAV, and writing past its limit fails. */
static gpuconv_status choose_rf64(const char *path, int channels, int rate, int64_t frames, int *format,
                                  gpuconv_error *error) {
    const int64_t max_bytes = gc_format_max_bytes(*format);
    const bool large = frames >= 0 && (double)frames * gc_format_frame_bytes(*format, channels) > (double)max_bytes;
    const int rf64 = (*format & ~SF_FORMAT_TYPEMASK) | SF_FORMAT_RF64;
    char container[48], encoding[48];
    if (max_bytes == 0 || !(large || frames < 0))
        return GPUCONV_OK;
    const bool stream = is_stream(path);
    if (!large && stream)
        return GPUCONV_OK;
    if ((*format & SF_FORMAT_TYPEMASK) == SF_FORMAT_WAV && gc_format_works(rf64, channels, rate)) {
        *format = rf64;
        return GPUCONV_OK;
    }
    if (!large || stream)
        return GPUCONV_OK;
    gc_format_container_name(*format, container, sizeof container);
    gc_format_encoding_name(*format, encoding, sizeof encoding);
    return gc_fail(error, GPUCONV_ERROR_FORMAT,
                   "%s: %lld frames of %s exceed the 4 GiB limit of %s; use w64 or caf, or wav with --encoding s16",
                   path, (long long)frames, encoding, container);
}

/* Chooses the format of the output: the options first, then the path's extension, then WAV for standard output. */
static gpuconv_status choose_format(const char *path, const gc_output_options *options, const gc_audio_info *like,
                                    int channels, int64_t frames, int *format, gpuconv_error *error) {
    bool is_stdout = strcmp(path, "-") == 0;
    const char *named = options && options->format ? options->format : NULL;
    int container = named ? gc_container_from_name(named) : is_stdout ? SF_FORMAT_WAV : gc_container_of_path(path);
    if (!container && named)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "unknown format '%s'; use for example wav, flac, aiff, w64, rf64, caf, au, ogg, opus, "
                       "mp3 or raw",
                       named);
    if (!container)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "%s: the extension names no known format; use wav, flac, aiff, w64, rf64, caf, au, ogg, opus or "
                       "mp3, or name the format with --format",
                       path);
    int encoding = options && options->encoding ? gc_encoding_from_name(options->encoding) : 0;
    if (options && options->encoding && !encoding)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "unknown encoding '%s'; use for example u8, s16, s24, s32, float, double, ulaw, alaw or vorbis",
                       options->encoding);
    const int only = container & SF_FORMAT_SUBMASK; /* some names of formats stand for one encoding, such as opus */
    if (encoding && only && encoding != only)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: files of this name hold %s, not %s; choose another name, or --format", path,
                       gc_encoding_name_of(only), options->encoding);
    *format = encoding ? gc_format_exact(container, encoding, channels, like->rate)
                       : gc_format_nearest(container, like->file_format, channels, like->rate);
    if (!*format && encoding)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: this format cannot hold %d channels at %d Hz as %s", path,
                       channels, like->rate, options->encoding);
    if (!*format)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: this format cannot hold %d channel%s at %d Hz%s", path,
                       channels, channels == 1 ? "" : "s", like->rate,
                       only == SF_FORMAT_OPUS ? "; Opus has 8000, 12000, 16000, 24000 and 48000 Hz" : "");
    if (options && options->compression && (*format & SF_FORMAT_TYPEMASK) != SF_FORMAT_FLAC)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: levels of compression are FLAC's; use --format flac", path);
    const gpuconv_status status = choose_rf64(path, channels, like->rate, frames, format, error);
    const int masked = (*format & ~SF_FORMAT_TYPEMASK) | SF_FORMAT_WAVEX;
    if (!status && like->speakers && (*format & SF_FORMAT_TYPEMASK) == SF_FORMAT_WAV &&
        gc_format_works(masked, channels, like->rate))
        *format = masked;
    return status;
}

/* Notes for the user that a compressed encoding of the input was replaced by another, unless the user `chose` it, or
 * that input and output have more bits than the samples in between. */
static void note_encoding(gc_writer *w, int format, int like, bool chose) {
    char container[48], old_encoding[48], new_encoding[48];
    gc_format_container_name(format, container, sizeof container);
    gc_format_encoding_name(like, old_encoding, sizeof old_encoding);
    gc_format_encoding_name(format, new_encoding, sizeof new_encoding);
    if (!chose && gc_format_is_compressed(like) && ((format ^ like) & SF_FORMAT_SUBMASK) != 0)
        (void)snprintf(w->note, sizeof w->note, "%s cannot hold %s; written as %s", container, old_encoding,
                       new_encoding);
    else if (gc_format_exceeds_float(like) && gc_format_exceeds_float(format))
        (void)snprintf(w->note, sizeof w->note,
                       "%s with 24 significant bits, because samples are computed as 32 bit floats", new_encoding);
}

static gpuconv_status open_output(gc_writer *w, const gc_output_options *options, gpuconv_error *error) {
    if (w->is_stdout) {
        w->fd = open_stdout(error);
        return w->fd < 0 ? GPUCONV_ERROR_FILE : GPUCONV_OK;
    }
    gpuconv_status status = gc_output_file_new(w->path, options ? options->path_kind : GC_OUTPUT_USER_PATH,
                                               options ? options->cancel : NULL, &w->output, error);
    if (!status)
        w->fd = gc_output_file_descriptor(w->output);
    return status;
}

gpuconv_status gc_writer_new(const char *path, const gc_output_options *options, const gc_audio_info *like,
                             int channels, int64_t frames, gc_writer **writer, gpuconv_error *error) {
    *writer = NULL;
    int format = 0;
    gpuconv_status status = choose_format(path, options, like, channels, frames, &format, error);
    if (status)
        return status;
    gc_writer *w = gc_calloc(1, sizeof *w);
    if (!w)
        return gc_fail_memory(error, path);
    w->fd = -1;
    w->is_stdout = strcmp(path, "-") == 0;
    if (!(w->path = strdup(w->is_stdout ? "standard output" : path))) {
        gc_writer_free(w);
        return gc_fail_memory(error, path);
    }
    w->channels = channels;
    w->pcm = gc_format_pcm(format);
    w->plain = gc_format_is_plain(format);
    w->max_bytes = gc_format_max_bytes(format);
    if (gc_format_has_mask(format))
        w->speakers = like->speakers ? like->speakers : channels == 1 ? 4 : channels == 2 ? 3 : 0;
    gc_format_name(format, w->name, sizeof w->name);
    status = open_output(w, options, error);
    if (status) {
        gc_writer_free(w);
        return status;
    }
    SF_INFO info = {.format = format, .channels = channels, .samplerate = like->rate};
    w->file = open_for_writing(w, &info, frames, options ? options->cancel : NULL);
    if (!w->file) {
        status = fail_writing(error, w, *w->note ? w->note : "cannot be created");
        gc_writer_free(w);
        return status;
    }
    note_encoding(w, format, like->file_format, options && options->encoding);
    /* The PEAK chunk contains a time stamp; without it, the same input gives the same bytes. */
    sf_command(w->file, SFC_SET_ADD_PEAK_CHUNK, NULL, SF_FALSE);
    if (options && options->compression) {
        double level = (options->compression - 1) / 8.0;
        sf_command(w->file, SFC_SET_COMPRESSION_LEVEL, &level, sizeof level);
    }
    if ((format & SF_FORMAT_TYPEMASK) == SF_FORMAT_RF64 && !w->uses_pipe &&
        !(options && options->format && strcmp(options->format, "rf64") == 0) &&
        gc_container_of_path(path) == SF_FORMAT_WAV)
        sf_command(w->file, SFC_RF64_AUTO_DOWNGRADE, NULL, SF_TRUE);
    *writer = w;
    return GPUCONV_OK;
}

gpuconv_status gc_writer_predict_pcm(const char *path, const gc_output_options *options, const gc_audio_info *like,
                                     int channels, int64_t frames, gc_pcm *pcm, gpuconv_error *error) {
    int format = 0;
    gpuconv_status status = choose_format(path, options, like, channels, frames, &format, error);
    if (!status)
        *pcm = gc_format_pcm(format);
    return status;
}

gc_pcm gc_writer_pcm(const gc_writer *w) {
    return w->pcm;
}

bool gc_writer_is_plain(const gc_writer *w) {
    return w->plain;
}

int gc_writer_channels(const gc_writer *w) {
    return w->channels;
}

void gc_writer_add_note(gc_writer *w, const char *text) {
    const size_t used = strlen(w->note);
    (void)snprintf(w->note + used, sizeof w->note - used, "%s%s", used ? "; " : "", text);
}

uint32_t gc_writer_speakers(const gc_writer *w) {
    return w->speakers;
}

const char *gc_writer_note(const gc_writer *w) {
    return w->note;
}

const char *gc_writer_name(const gc_writer *w) {
    return w->name;
}

/* Counts NaN and infinities. */
static void count_nonfinite(gc_writer *w, const float *samples, int64_t frames) {
    const int64_t count = frames * w->channels;
    for (int64_t i = gc_find_not_finite(samples, count); i < count; i++)
        if (!isfinite(samples[i]) && w->nonfinite_count++ == 0)
            w->first_nonfinite = w->written + i / w->channels;
}

int64_t gc_writer_nonfinite(const gc_writer *w, int64_t *first) {
    if (first)
        *first = w->first_nonfinite;
    return w->nonfinite_count;
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
        count_nonfinite(w, raw, frames);
        done = sf_writef_float(w->file, raw, frames);
        break;
    }
    w->written += done;
    if (done != frames || write_error(w))
        return fail_writing(error, w, sf_strerror(w->file));
    return GPUCONV_OK;
}

void gc_writer_forgive(gc_writer *w) {
    if (w->plain && !w->uses_pipe)
        w->err = 0;
}

/* Replaces the mask of speakers in a complete file: libsndfile states speakers of its own choice where it knows none.
 * @return 0 or an errno value */
static int put_speakers(const gc_writer *w) {
    const unsigned char mask[4] = {(unsigned char)w->speakers, (unsigned char)(w->speakers >> 8),
                                   (unsigned char)(w->speakers >> 16), (unsigned char)(w->speakers >> 24)};
    const ssize_t put = pwrite(w->fd, mask, sizeof mask, w->speakers_at);
    return put == sizeof mask ? 0 : put < 0 ? errno : EIO;
}

/* Clears the time stamp in the PEAK chunk of a complete file. @return 0 or an errno value */
static int clear_peak_time(int fd) {
    unsigned char head[4096];
    ssize_t got = pread(fd, head, sizeof head, 0);
    if (got < 0)
        return errno == EBADF ? 0 : errno; /* a device, which is open for writing only */
    unsigned char cleared[sizeof head];
    memcpy(cleared, head, (size_t)got);
    sink_clear_peak_time(cleared, got);
    if (memcmp(cleared, head, (size_t)got) == 0)
        return 0;
    ssize_t put = pwrite(fd, cleared, (size_t)got, 0);
    return put == got ? 0 : put < 0 ? errno : EIO;
}

gpuconv_status gc_writer_complete(gc_writer *w, int64_t *bytes, gpuconv_error *error) {
    struct stat st;
    int sf_err = sf_error(w->file);
    int close_err = sf_close(w->file);
    w->file = NULL;
    if (!sf_err && !close_err && w->uses_pipe)
        (void)sink_end(&w->pipe); /* its error is in write_error(w) */
    else if (!sf_err && !close_err && !w->err && w->pcm.container == GC_F32 && w->output)
        w->err = clear_peak_time(w->fd);
    if (!sf_err && !close_err && !w->err && w->speakers_at > 0)
        w->err = put_speakers(w);
    if (sf_err || close_err || write_error(w))
        return fail_writing(error, w, write_error(w) ? "" : sf_error_number(sf_err ? sf_err : close_err));
    if (fstat(w->fd, &st) != 0) {
        w->err = errno;
        return fail_writing(error, w, "");
    }
    *bytes = st.st_size;
    return GPUCONV_OK;
}

gpuconv_status gc_writer_commit(gc_writer *w, gpuconv_error *error) {
    int64_t bytes;
    const gpuconv_status status = w->file ? gc_writer_complete(w, &bytes, error) : GPUCONV_OK;
    if (status)
        return status;
    int fd = w->fd;
    w->fd = -1;
    if (w->output)
        return gc_output_file_commit(w->output, error);
    if (close(fd) != 0) {
        w->err = errno;
        return fail_writing(error, w, "");
    }
    return GPUCONV_OK;
}

void gc_writer_free(gc_writer *w) {
    if (!w)
        return;
    if (w->file)
        sf_close(w->file); /* the file is discarded: an error does not matter */
    if (!w->output && w->fd >= 0)
        close(w->fd);
    gc_output_file_free(w->output);
    free(w->path);
    free(w);
}

void *gc_writer_sndfile(const gc_writer *w) {
    return w->file;
}
