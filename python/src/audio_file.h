/* Whole sound files as planar floats, with the reader and the writer of the command, so that both give the same bytes.
 */
#ifndef GPUCONV_PYTHON_AUDIO_FILE_H
#define GPUCONV_PYTHON_AUDIO_FILE_H

#include "gpuconv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A file that was read. */
typedef struct gcpy_audio {
    float *samples; /* planar, channels x frames; freed with free() */
    int channels, rate;
    int64_t frames;
    int64_t nonfinite; /* samples that were NaN or infinite and are 0 */
    char note[160];    /* of what the file holds and was not read; "": nothing */
} gcpy_audio;

/* Reads `frames` frames (-1: to the end) from frame `start` on. `raw`: RATE,CHANNELS,ENCODING of samples without a
 * header, or NULL. Returns ARGUMENT (behind the end), FILE, FORMAT, MEMORY, CANCELLED. */
gpuconv_status gcpy_read(const char *path, const char *raw, int64_t start, int64_t frames, gcpy_audio *audio,
                         gpuconv_error *error);

/* Writes `frames` frames. `format` and `encoding` are names or NULL: the container of the path's extension, and 32-bit
 * floats or the nearest encoding of the container. *clipped gets the number of samples that did not fit an integer
 * encoding. Returns ARGUMENT, FILE, FORMAT, MEMORY, CANCELLED. */
gpuconv_status gcpy_write(const char *path, const char *format, const char *encoding, const float *const *channel,
                          int channels, int64_t frames, int rate, int64_t *clipped, gpuconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
