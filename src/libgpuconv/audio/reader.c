/* Reading through libsndfile: files, and pipes that are read as they come. */
#include "buffered_io.h"
#include "file.h"
#include "format.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct gc_reader {
    SNDFILE *file;
    /* What the library reads from: a regular file (its descriptor ours to close, -1: none), or else a pipe. */
    gc_paged disk;
    gc_source *pipe;
    char *path;
    gc_audio_info info;
    char name[96];
};

static gpuconv_status refuse(const char *path, const struct stat *st, gpuconv_error *error) {
    if (S_ISDIR(st->st_mode))
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: is a directory", path);
    if (S_ISREG(st->st_mode) && st->st_size == 0)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: the file is empty", path);
    return GPUCONV_OK;
}

static gpuconv_status fail_reading(gpuconv_error *error, const char *path, SNDFILE *file) {
    return gc_format_fail(error, GPUCONV_ERROR_FORMAT, path, "not readable as audio: ", sf_strerror(file));
}

gc_audio_info gc_audio_floats(int channels, int rate, int64_t frames) {
    return (gc_audio_info){.channels = channels,
                           .rate = rate,
                           .frames = frames,
                           .file_format = SF_FORMAT_FLOAT,
                           .pcm = {GC_F32, 32},
                           .name = "float"};
}

gc_audio_info gc_audio_integers(int channels, int rate, int64_t frames) {
    gc_audio_info info = gc_audio_floats(channels, rate, frames);
    info.file_format = SF_FORMAT_PCM_24;
    info.pcm = (gc_pcm){GC_S24, 24};
    info.name = "signed 24 bit PCM";
    return info;
}

/* What headers cannot say, or say of pipes only: a length that nobody could have written is not known. */
static int64_t length_of(const gc_reader *r, const SF_INFO *info) {
    const int64_t unwritten = INT64_C(1) << 30; /* four thousand million bytes of 32 bits: a header's largest number */
    if (r->pipe && info->frames >= unwritten / (info->channels > 0 ? info->channels : 1) / 2)
        return -1;
    return info->frames < SF_COUNT_MAX / 2 ? info->frames : -1;
}

static gpuconv_status take_over(gc_reader *r, const SF_INFO *info, gpuconv_error *error) {
    int64_t frames = length_of(r, info);
    if (frames == 0)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: holds no frames", r->path);
    if (info->channels < 1 || info->channels > 1024 || info->samplerate < 1)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: %d channels at %d Hz cannot be used", r->path, info->channels,
                       info->samplerate);
    gc_format_name(info->format, r->name, sizeof r->name);
    r->info = (gc_audio_info){.channels = info->channels,
                              .rate = info->samplerate,
                              .frames = frames,
                              .file_format = info->format,
                              .pcm = gc_format_pcm(info->format),
                              .name = r->name};
    return GPUCONV_OK;
}

/* fd is the reader's from here on. */
static gpuconv_status open_library(gc_reader *r, int fd, const struct stat *st, const char *raw, gpuconv_error *error) {
    SF_INFO info = {0};
    if (raw && !gc_format_raw(raw, &info)) {
        close(fd);
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "'%.60s' describes no raw samples; RATE,CHANNELS,ENCODING such as 48000,2,s16 does", raw);
    }
    if (S_ISREG(st->st_mode)) {
        gc_paged_begin(&r->disk, fd, st->st_size);
        r->file = sf_open_virtual(gc_paged_io(), SFM_READ, &info, &r->disk);
    } else {
        gpuconv_status status = gc_source_new(fd, r->path, raw != NULL, &r->pipe, error);
        if (status)
            return status;
        r->file = sf_open_virtual(gc_source_io(), SFM_READ, &info, r->pipe);
    }
    if (!r->file)
        return fail_reading(error, r->path, NULL);
    return take_over(r, &info, error);
}

static int open_input(const char *path, struct stat *st, gpuconv_error *error) {
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, st) != 0) {
        int reason = errno;
        if (fd >= 0)
            close(fd);
        gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", standard ? "standard input" : path, strerror(reason));
        return -1;
    }
    if (standard && isatty(fd)) {
        close(fd);
        gc_fail(error, GPUCONV_ERROR_FILE, "standard input is a terminal; a file or a pipe is wanted");
        return -1;
    }
    return fd;
}

gpuconv_status gc_reader_new_raw(const char *path, const char *raw, gc_reader **reader, gpuconv_error *error) {
    *reader = NULL;
    struct stat st;
    int fd = open_input(path, &st, error);
    if (fd < 0)
        return GPUCONV_ERROR_FILE;
    if (strcmp(path, "-") == 0)
        path = "standard input";
    gpuconv_status status = refuse(path, &st, error);
    if (status) {
        close(fd);
        return status;
    }
    gc_reader *r = gc_calloc(1, sizeof *r);
    if (!r || !(r->path = strdup(path))) {
        close(fd);
        free(r);
        return gc_fail_memory(error, path);
    }
    r->disk.fd = -1;
    status = open_library(r, fd, &st, raw, error);
    if (status) {
        gc_reader_free(r);
        return status;
    }
    *reader = r;
    return GPUCONV_OK;
}

gpuconv_status gc_reader_new(const char *path, gc_reader **reader, gpuconv_error *error) {
    return gc_reader_new_raw(path, NULL, reader, error);
}

const gc_audio_info *gc_reader_info(const gc_reader *r) {
    return &r->info;
}

static gpuconv_status read_as(gc_reader *r, gc_pcm pcm, void *raw, int64_t frames, int64_t *got, gpuconv_error *error) {
    int64_t frame = (int64_t)r->info.channels * gc_pcm_bytes(pcm);
    *got = 0;
    while (*got < frames) {
        void *to = (char *)raw + *got * frame;
        sf_count_t want = frames - *got, n = 0;
        switch (pcm.container) {
        case GC_S16:
            n = sf_readf_short(r->file, to, want);
            break;
        case GC_S24:
            n = sf_read_raw(r->file, to, want * frame) / frame;
            break;
        case GC_S32:
            n = sf_readf_int(r->file, to, want);
            break;
        case GC_F32:
            n = sf_readf_float(r->file, to, want);
            break;
        }
        if (n <= 0)
            break;
        *got += n;
    }
    int failure = r->pipe ? gc_source_failure(r->pipe) : r->disk.failure;
    if (*got < frames && failure)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", r->path, strerror(failure));
    if (*got < frames && sf_error(r->file) != SF_ERR_NO_ERROR)
        return fail_reading(error, r->path, r->file);
    return GPUCONV_OK;
}

gpuconv_status gc_reader_seek(gc_reader *r, int64_t at, gpuconv_error *error) {
    if (sf_seek(r->file, at, SEEK_SET) == at)
        return GPUCONV_OK;
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s: frame %lld cannot be reached", r->path, (long long)at);
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
        sf_close(r->file); /* read only: nothing can be lost */
    if (r->disk.fd >= 0)
        close(r->disk.fd);
    gc_source_free(r->pipe);
    free(r->path);
    free(r);
}

void *gc_reader_library(const gc_reader *r) {
    return r->file;
}
