/* Reading files and pipes through libsndfile. */
#include "buffered_io.h"
#include "file.h"
#include "format.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/lines.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/finite.h"
#include "media.h"
#include "open_input.h"
#include "pipe_source.h"
#include "riff.h"
#include "sndfile_open.h"

#include <errno.h>
#include <fcntl.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 17 }; /* floats are checked for NaN in pieces of this size, while they are in the cache */

struct gc_reader {
    SNDFILE *file;
    /* libsndfile reads from one of the two: */
    gc_buffered_io disk;        /* a regular file; its descriptor is owned, -1: none */
    unsigned char *header;      /* the header of `disk` that libsndfile reads; NULL: that of the file */
    gc_source *pipe;            /* NULL: none */
    const volatile int *cancel; /* NULL: none */
    bool keep_nonfinite;
    int64_t at;                               /* the next frame */
    int64_t nonfinite_count, first_nonfinite; /* samples; frame */
    char *path;                               /* the name in messages */
    gc_audio_info info;
    char name[96];
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
    if (r->pipe && gc_source_is_empty(r->pipe))
        return 0;
    if (r->pipe && !gc_source_knows_length(r->pipe))
        return -1;
    if (r->pipe && info->frames >= placeholder / (info->channels > 0 ? info->channels : 1) / 2)
        return -1;
    return info->frames < SF_COUNT_MAX / 2 ? info->frames : -1;
}

/* Checks and stores the properties of the opened file. */
static gpuconv_status set_info(gc_reader *r, const SF_INFO *info, gpuconv_error *error) {
    int64_t frames = frame_count(r, info);
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
    return GPUCONV_OK;
}

static int64_t read_disk(void *disk, int64_t at, void *bytes, int64_t count) {
    SF_VIRTUAL_IO *io = gc_buffered_io_callbacks();
    return io->seek(at, SEEK_SET, disk) == at ? io->read(bytes, count, disk) : 0;
}

/* Replaces the header of a WAV. Returns false without memory. */
static bool replace_header(gc_reader *r) {
    const gc_riff_input in = {.read = read_disk, .file = &r->disk, .length = r->disk.length};
    gc_riff riff;
    const bool ok = gc_riff_parse(&in, &riff);
    r->disk.at = 0;
    r->header = riff.header;
    if (ok && r->header)
        gc_buffered_io_set_header(&r->disk, r->header, riff.header_bytes, riff.begin, riff.bytes);
    return ok;
}

/* Opens a file that libsndfile refused for the reason `why`, if the module for other formats reads it: its samples come
 * from a temporary file, whose descriptor replaces the reader's. */
static gpuconv_status open_media(gc_reader *r, int64_t size, SF_INFO *info, char *why, size_t room,
                                 gpuconv_error *error) {
    gc_media media;
    int fd;
    gpuconv_status status = gc_media_spool(r->disk.fd, size, r->path, r->cancel, &media, &fd, error);
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
    *info = (SF_INFO){.format = SF_FORMAT_RAW | SF_FORMAT_FLOAT | SF_ENDIAN_CPU,
                      .channels = media.channels,
                      .samplerate = media.rate};
    (void)snprintf(r->name, sizeof r->name, "%s", media.name);
    r->file = gc_sndfile_open(gc_buffered_io_callbacks(), SFM_READ, info, &r->disk);
    return r->file ? GPUCONV_OK : fail_reading(error, r, "its samples cannot be read");
}

/* Opens a regular file; `fd` is the reader's already. */
static gpuconv_status open_disk(gc_reader *r, int fd, int64_t size, SF_INFO *info, gpuconv_error *error) {
    const SF_INFO initial = *info;
    char why[256];
    gc_buffered_io_begin(&r->disk, fd, size);
    const bool whole = r->disk.begin == 0;
    if (!info->format && !replace_header(r))
        return gc_fail_memory(error, r->path);
    r->file = gc_sndfile_open(gc_buffered_io_callbacks(), SFM_READ, info, &r->disk);
    if (r->file)
        return GPUCONV_OK;
    *info = initial;
    r->disk.at = 0;
    r->file = gc_sndfile_open_for_reason(gc_buffered_io_callbacks(), SFM_READ, info, &r->disk, why, sizeof why);
    if (!r->file && r->disk.err)
        return fail_system(error, r, r->disk.err);
    if (r->file)
        return GPUCONV_OK;
    return initial.format || !whole ? fail_reading(error, r, why) : open_media(r, size, info, why, sizeof why, error);
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
    gpuconv_status status = gc_source_new(fd, r->path, source_kind(info), r->cancel, &r->pipe, error);
    if (status)
        return status;
    if (!gc_source_is_spooled(r->pipe)) {
        char why[256];
        r->file = gc_sndfile_open(gc_source_callbacks(), SFM_READ, info, r->pipe);
        if (!r->file) {
            *info = raw;
            gc_source_rewind(r->pipe);
            r->file = gc_sndfile_open_for_reason(gc_source_callbacks(), SFM_READ, info, r->pipe, why, sizeof why);
        }
        if (gc_source_failure(r->pipe))
            return fail_system(error, r, gc_source_failure(r->pipe));
        if (!r->file)
            return fail_reading(error, r, why);
        if (gc_source_start_streaming(r->pipe))
            return GPUCONV_OK;
        sf_close(r->file); /* libsndfile reads this header differently: give it a file */
        r->file = NULL;
        *info = raw;
        status = gc_source_spool(r->pipe, error);
        if (status)
            return status;
    }
    struct stat st;
    int file = gc_source_release_file(r->pipe);
    gc_source_free(r->pipe);
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
    return status ? status : set_info(r, &info, error);
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
    struct stat st;
    int fd;
    *reader = NULL;
    gpuconv_status status = gc_open_input(path, options ? options->kind : GC_INPUT_ANY, &fd, &st, error);
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
        gc_source_set_cancel(r->pipe, cancel);
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
    while (*got < frames) {
        void *to = (char *)raw + *got * frame;
        sf_count_t n = read_frames(r, pcm, to, gc_min(piece, frames - *got));
        if (n <= 0)
            break;
        if (check)
            zero_nonfinite(r, to, n);
        r->at += n;
        *got += n;
    }
    int err = r->pipe ? gc_source_failure(r->pipe) : r->disk.err;
    if (*got < frames && err)
        return fail_system(error, r, err);
    if (*got < frames && sf_error(r->file) != SF_ERR_NO_ERROR)
        return fail_reading(error, r, sf_strerror(r->file));
    return GPUCONV_OK;
}

gpuconv_status gc_reader_check_end(const gc_reader *r, gpuconv_error *error) {
    return r->at >= r->info.frames
               ? GPUCONV_OK
               : gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: damaged or cut off: ends after %lld of %lld frames", r->path,
                         (long long)r->at, (long long)r->info.frames);
}

int64_t gc_reader_nonfinite(const gc_reader *r, int64_t *first) {
    if (first)
        *first = r->first_nonfinite;
    return r->nonfinite_count;
}

gpuconv_status gc_reader_seek(gc_reader *r, int64_t at, gpuconv_error *error) {
    if (sf_seek(r->file, at, SEEK_SET) == at) {
        r->at = at;
        return GPUCONV_OK;
    }
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot seek to frame %lld", r->path, (long long)at);
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
    gc_source_free(r->pipe);
    free(r->path);
    free(r);
}

void *gc_reader_sndfile(const gc_reader *r) {
    return r->file;
}
