/* Audio files: the only place that knows the file library. Samples pass as the file stores them, interleaved. */
#ifndef GC_AUDIO_FILE_H
#define GC_AUDIO_FILE_H

#include "gpuconv.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/output_file.h"
#include "libgpuconv/dsp/pcm.h"

typedef struct gc_reader gc_reader;

typedef struct gc_audio_info {
    int channels, rate;
    int64_t frames;   /* -1: not known before the end */
    int file_format;  /* the file library's own code, for gc_writer_new */
    gc_pcm pcm;       /* how gc_reader_read delivers samples */
    const char *name; /* of container and sample format, such as "WAV, signed 16 bit PCM"; static for the reader */
} gc_audio_info;

/* What floats that come from no file are like, for gc_writer_new. */
gc_audio_info gc_audio_floats(int channels, int rate, int64_t frames);

/* The same of 24-bit integers. */
gc_audio_info gc_audio_integers(int channels, int rate, int64_t frames);

/* How an input is to be read; all zero: a file with a header. */
typedef struct gc_input_wish {
    const char *raw;            /* RATE,CHANNELS,ENCODING of samples without a header; NULL: there is one */
    const volatile int *cancel; /* looked at while a pipe gives nothing; NULL: none */
    bool as_is;                 /* keep samples that are not finite, for a caller that refuses them */
} gc_input_wish;

/* Opens a file with at least one channel and one frame; "-" is standard input. Pipes: a WAV or RF64 of PCM, floats, mu-
 * or A-law and raw samples are read as they come, anything else by way of a file without a name in $TMPDIR or /tmp.
 * `wish` may be NULL. FILE, FORMAT, MEMORY, ARGUMENT (raw), CANCELLED; the message begins with the path. */
gpuconv_status gc_reader_open(const char *path, const gc_input_wish *wish, gc_reader **reader, gpuconv_error *error);

/* The same without a wish. */
gpuconv_status gc_reader_new(const char *path, gc_reader **reader, gpuconv_error *error);

/* The same of a descriptor, which is the reader's even after a failure: a regular file of so many bytes, or whatever
 * else, which is read as a pipe is. */
gpuconv_status gc_reader_from(int fd, bool regular, int64_t size, const char *name, const gc_input_wish *wish,
                              gc_reader **reader, gpuconv_error *error);

/* Another flag from here on; NULL: none. */
void gc_reader_cancel_by(gc_reader *reader, const volatile int *cancel);

const gc_audio_info *gc_reader_info(const gc_reader *reader);

/* Goes on from frame `at` of the file, 0 .. its length. FILE where the format cannot. */
gpuconv_status gc_reader_seek(gc_reader *reader, int64_t at, gpuconv_error *error);

/* Reads up to `frames` frames; *got is less only at the end. FILE, CANCELLED (a pipe gave nothing). */
gpuconv_status gc_reader_read(gc_reader *reader, void *raw, int64_t frames, int64_t *got, gpuconv_error *error);

/* The same as floats, whatever the file stores. */
gpuconv_status gc_reader_read_floats(gc_reader *reader, float *samples, int64_t frames, int64_t *got,
                                     gpuconv_error *error);

/* How many samples that were read are not finite and were delivered as 0; *first (may be NULL) is the first one's
 * frame, from the beginning of the file. */
int64_t gc_reader_not_finite(const gc_reader *reader, int64_t *first);
void gc_reader_free(gc_reader *reader);

typedef struct gc_writer gc_writer;

/* How an output is to be written; all zero: as the path and the input have it. */
typedef struct gc_output_wish {
    const char *format, *encoding; /* by name; NULL: as the path and the input have it */
    gc_output_name name;           /* who chose the path */
    const volatile int *cancel;    /* NULL: none */
} gc_output_wish;

/* Begins a file beside `path` that takes its name only on commit. The container follows the extension, the sample
 * format follows `like` where the container really holds it, else the nearest that loses nothing, else the container's
 * own; a WAV that `frames` (-1: unknown) would take past 4 GiB becomes RF64 if that holds the sample format. "-" is
 * standard output, a WAV unless `wish` (may be NULL) says else. A named pipe is written as it is, once it has a reader.
 * FILE, FORMAT (unknown extension, impossible channels or rate), ARGUMENT (unknown names), MEMORY, CANCELLED. */
gpuconv_status gc_writer_new(const char *path, const gc_output_wish *wish, const gc_audio_info *like, int channels,
                             int64_t frames, gc_writer **writer, gpuconv_error *error);

/* Carries over what a file says beside its samples: strings (title, artist, comment, ...), cue points, loops, and the
 * broadcast and cart chunks, as far as the new format holds them. Before the first sample. MEMORY. */
gpuconv_status gc_metadata_copy(const gc_reader *from, gc_writer *to, gpuconv_error *error);

/* What a writer made with these would want, without one. */
gpuconv_status gc_writer_pcm_of(const char *path, const gc_audio_info *like, int channels, int64_t frames, gc_pcm *pcm,
                                gpuconv_error *error);

/* What to hand to gc_writer_write. */
gc_pcm gc_writer_pcm(const gc_writer *writer);

/* Whether samples go into the file as they are, so that writing is copying. */
bool gc_writer_plain(const gc_writer *writer);
int gc_writer_channels(const gc_writer *writer);
const char *gc_writer_name(const gc_writer *writer);

/* What became of the input's encoding where it could not be kept, such as "WAV cannot hold MPEG Layer III; written as
 * 32 bit float"; "" otherwise. */
const char *gc_writer_note(const gc_writer *writer);

/* @return FILE, CANCELLED (while a pipe's reader takes nothing) */
gpuconv_status gc_writer_write(gc_writer *writer, const void *raw, int64_t frames, gpuconv_error *error);

/* Closes the file and gives it its name, replacing an older one. FILE. The writer must still be freed. */
gpuconv_status gc_writer_commit(gc_writer *writer, gpuconv_error *error);

/* Does the same, and calls `whole` (may be NULL) in between: the file behind `fd` is whole and has no name yet. A
 * status that `whole` returns is returned, and the file gets no name. */
gpuconv_status gc_writer_commit_after(gc_writer *writer,
                                      gpuconv_status (*whole)(void *context, int fd, gpuconv_error *error),
                                      void *context, gpuconv_error *error);

/* Without a commit before, removes what was written. */
void gc_writer_free(gc_writer *writer);

/* gpuconv_ir_load of a file or pipe that can be interrupted; `cancel` may be NULL. CANCELLED. */
gpuconv_status gc_ir_load(const char *path, const volatile int *cancel, gpuconv_ir **ir, gpuconv_error *error);

/* gpuconv_ir_load_matrix, whose files may be pipes. CANCELLED. */
gpuconv_status gc_ir_load_matrix(const char *path, double rate, const volatile int *cancel, gpuconv_ir **ir,
                                 gpuconv_error *error);

/* A response's planes as the channels of a new file: of floats, which a container that has none refuses, or of 24 bits.
 * FILE, FORMAT, MEMORY. */
gpuconv_status gc_ir_write(const gpuconv_ir *ir, const char *path, bool floats, gpuconv_error *error);

/* The file library's own objects, for what else the audio folder does with them. */
void *gc_reader_library(const gc_reader *reader);
void *gc_writer_library(const gc_writer *writer);

#endif
