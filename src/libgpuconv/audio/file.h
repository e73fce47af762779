/* Audio files: the only place that knows the file library. Samples pass as the file stores them, interleaved. */
#ifndef GC_AUDIO_FILE_H
#define GC_AUDIO_FILE_H

#include "gpuconv.h"
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

/* Opens a file with at least one channel and one frame; "-" is standard input, which may be a pipe: WAV and raw samples
 * are read as they come, anything else by way of a file without a name in $TMPDIR or /tmp. FILE, FORMAT, MEMORY; the
 * message begins with the path. */
gpuconv_status gc_reader_new(const char *path, gc_reader **reader, gpuconv_error *error);

/* The same for samples without a header, described as RATE,CHANNELS,ENCODING; NULL: there is one. ARGUMENT. */
gpuconv_status gc_reader_new_raw(const char *path, const char *raw, gc_reader **reader, gpuconv_error *error);

const gc_audio_info *gc_reader_info(const gc_reader *reader);

/* Goes on from frame `at` of the file, 0 .. its length. FILE where the format cannot. */
gpuconv_status gc_reader_seek(gc_reader *reader, int64_t at, gpuconv_error *error);

/* Reads up to `frames` frames; *got is less only at the end. FILE. */
gpuconv_status gc_reader_read(gc_reader *reader, void *raw, int64_t frames, int64_t *got, gpuconv_error *error);

/* The same as floats, whatever the file stores. */
gpuconv_status gc_reader_read_floats(gc_reader *reader, float *samples, int64_t frames, int64_t *got,
                                     gpuconv_error *error);
void gc_reader_free(gc_reader *reader);

typedef struct gc_writer gc_writer;

/* What is wished for by name; NULL: as the path and the input have it. */
typedef struct gc_format_wish {
    const char *format, *encoding;
} gc_format_wish;

/* Begins a file beside `path` that takes its name only on commit. The container follows the extension, the sample
 * format follows `like` where the container has it, else the nearest that loses nothing, else the container's own; a
 * WAV that `frames` (-1: unknown) would take past 4 GiB becomes RF64. "-" is standard output, a WAV unless `wish` (may
 * be NULL) says else. FILE, FORMAT (unknown extension, impossible channels or rate), ARGUMENT (unknown names), MEMORY.
 */
gpuconv_status gc_writer_new(const char *path, const gc_format_wish *wish, const gc_audio_info *like, int channels,
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

gpuconv_status gc_writer_write(gc_writer *writer, const void *raw, int64_t frames, gpuconv_error *error);

/* Closes the file and gives it its name, replacing an older one. FILE. The writer must still be freed. */
gpuconv_status gc_writer_commit(gc_writer *writer, gpuconv_error *error);

/* Without a commit before, removes what was written. */
void gc_writer_free(gc_writer *writer);

/* A response's planes as the channels of a new file: of floats, which a container that has none refuses, or of 24 bits.
 * FILE, FORMAT, MEMORY. */
gpuconv_status gc_ir_write(const gpuconv_ir *ir, const char *path, bool floats, gpuconv_error *error);

/* The file library's own objects, for what else the audio folder does with them. */
void *gc_reader_library(const gc_reader *reader);
void *gc_writer_library(const gc_writer *writer);

#endif
