/* Writes audio files with their manifest lines. Every error ends the program. */
#include "collection.h"

#include <math.h>
#include <sndfile.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        fail("out of memory for %zu items of %zu bytes", count, size);
    return memory;
}

gc_sound create(int channels, long frames) {
    gc_sound sound;
    if (!gc_sound_create(&sound, channels, frames))
        fail("out of memory for %d channels of %ld frames", channels, frames);
    return sound;
}

/* Returns interleaved integers, rounded without dither: the decays are noise-like far above one step, and dither would
 * add noise to the silence at their ends. libsndfile expects 32-bit integers and stores their upper bits. */
static int *round_frames(const gc_sound *audio, const struct label *label) {
    double scale = ldexp(1, label->bits - 1);
    long step = 1L << (32 - label->bits);
    int *frames = allocate((size_t)audio->frames * (size_t)audio->channels, sizeof *frames);
    for (long n = 0; n < audio->frames; n++)
        for (int c = 0; c < audio->channels; c++) {
            double value = audio->channel[c][n] * scale;
            if (!(fabs(value) <= scale - 1))
                fail("%s: frame %ld clips", label->file, n);
            frames[n * audio->channels + c] = (int)(lround(value) * step);
        }
    return frames;
}

void audio_write(const gc_sound *audio, const char *folder, const struct label *label) {
    size_t length = strlen(folder) + strlen(label->file) + 2;
    char *path = allocate(length, 1);
    snprintf(path, length, "%s/%s", folder, label->file);
    int *frames = round_frames(audio, label);

    SF_INFO info = {.samplerate = RATE,
                    .channels = audio->channels,
                    .format = SF_FORMAT_FLAC | (label->bits > 16 ? SF_FORMAT_PCM_24 : SF_FORMAT_PCM_16)};
    SNDFILE *file = sf_open(path, SFM_WRITE, &info);
    if (!file)
        fail("%s: %s", path, sf_strerror(NULL));
    double compression = 1; /* the highest */
    if (sf_command(file, SFC_SET_COMPRESSION_LEVEL, &compression, sizeof compression) != SF_TRUE)
        fail("%s: cannot set the compression level", path);
    if (sf_set_string(file, SF_STR_TITLE, label->description) || sf_set_string(file, SF_STR_LICENSE, "MIT"))
        fail("%s: %s", path, sf_strerror(file));
    if (sf_writef_int(file, frames, audio->frames) != audio->frames)
        fail("%s: %s", path, sf_strerror(file));
    int error = sf_close(file);
    if (error)
        fail("%s: %s", path, sf_error_number(error));

    if (printf("%s\t%s\tMIT\t%d\t%d\t%ld\t%s\n", label->file, label->source, RATE, audio->channels, audio->frames,
               label->description) < 0 ||
        fflush(stdout))
        fail("cannot write the manifest line of %s", label->file);
    free(frames);
    free(path);
}
