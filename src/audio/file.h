/* Audio files: the only place that knows the file library. Samples pass as the file stores them, interleaved. */
#ifndef GC_AUDIO_FILE_H
#define GC_AUDIO_FILE_H

#include "../dsp/pcm.h"
#include "../gpuconv.h"

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

/* Opens a file with at least one channel and one frame. FILE, FORMAT, MEMORY; the message begins with the path. */
gpuconv_status gc_reader_new(const char *path, gc_reader **reader, gpuconv_error *error);
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

/* Begins a file beside `path` that takes its name only on commit. The container follows the extension, the sample
 * format follows `like` where the container has it, else the nearest that loses nothing, else the container's own; a
 * WAV that `frames` (-1: unknown) would take past 4 GiB becomes RF64. FILE, FORMAT (unknown extension, impossible
 * channels or rate), MEMORY. */
gpuconv_status gc_writer_new(const char *path, const gc_audio_info *like, int channels, int64_t frames,
                             gc_writer **writer, gpuconv_error *error);

/* What to hand to gc_writer_write. */
gc_pcm gc_writer_pcm(const gc_writer *writer);
const char *gc_writer_name(const gc_writer *writer);

gpuconv_status gc_writer_write(gc_writer *writer, const void *raw, int64_t frames, gpuconv_error *error);

/* Closes the file and gives it its name, replacing an older one. FILE. The writer must still be freed. */
gpuconv_status gc_writer_commit(gc_writer *writer, gpuconv_error *error);

/* Without a commit before, removes what was written. */
void gc_writer_free(gc_writer *writer);

#endif
