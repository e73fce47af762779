/* Reads fuzzed bytes from a file in memory as if it were a pipe, without a thread or process per run. */
#include "fuzz_reader.h"

#include "libgpuconv/audio/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK = 700, MAX_FRAMES_PER_BYTE = 8192, MAX_BLOCKS = 3000 };

static int open_bytes(const uint8_t *bytes, size_t size) {
    static int file = -1;
    if (file < 0) {
        file = memfd_create("fuzz", MFD_CLOEXEC);
        (void)setenv("TMPDIR", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", 1);
    }
    if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, bytes, size, 0) != (ssize_t)size ||
        lseek(file, 0, SEEK_SET) != 0)
        abort();
    return dup(file);
}

/* Aborts on NaN or infinity: the reader replaces such samples by zeros and counts them. */
static void check_floats(const float *samples, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(samples[i]))
            abort();
}

/* Reads to the end. Aborts if the reader returns more frames than the bytes can encode, whatever the header says. */
static void read_to_the_end(gc_reader *reader, size_t size, bool plain, uint32_t steps) {
    const gc_audio_info *info = gc_reader_info(reader);
    const int64_t bytes = gc_pcm_bytes(info->pcm), most = ((int64_t)size + 64) * MAX_FRAMES_PER_BYTE;
    void *block = malloc((size_t)(BLOCK * info->channels) * sizeof(double));
    int64_t all = 0;
    if (!block)
        abort();
    for (int i = 0; i < MAX_BLOCKS; i++) {
        gpuconv_error error = {GPUCONV_OK, ""};
        const uint32_t step = steps >> i % 8 * 4 & 15;
        const int64_t want = step & 4 ? 1 + step : BLOCK;
        const bool floats = step & 1;
        int64_t got = -1;
        if (step == 10 && gc_reader_seek(reader, (int64_t)steps % 3000, &error) == GPUCONV_OK)
            all = 0;
        gpuconv_status status = floats ? gc_reader_read_floats(reader, block, want, &got, &error)
                                       : gc_reader_read(reader, block, want, &got, &error);
        if (got < 0 || got > want || (status && !*error.message))
            abort();
        if (floats || info->pcm.container == GC_F32)
            check_floats(block, got * info->channels);
        all += got;
        if (all > most || (plain && all * info->channels * (bytes < 4 ? 1 : 4) > (int64_t)size))
            abort();
        if (status || got < want)
            break;
    }
    free(block);
}

void fuzz_read(const uint8_t *bytes, size_t size, bool regular, const char *raw, uint32_t steps) {
    gc_reader *reader;
    gpuconv_error error = {GPUCONV_OK, ""};
    const gc_input_options wish = {.raw = raw};
    gpuconv_status status =
        gc_reader_open_descriptor(open_bytes(bytes, size), regular, (int64_t)size, "fuzz", &wish, &reader, &error);
    if (!status == !reader || (status && strncmp(error.message, "fuzz: ", 6) != 0))
        abort();
    if (!reader)
        return;
    const gc_audio_info *info = gc_reader_info(reader);
    if (info->channels < 1 || info->channels > 1024 || info->rate < 1 || info->rate > GC_MAX_RATE || info->frames == 0)
        abort();
    /* PCM in WAV: the bytes bound the number of samples. Some codecs are delivered as PCM too. */
    const bool wav = strncmp(info->name, "WAV", 3) == 0 || strncmp(info->name, "RF64", 4) == 0;
    const bool plain = !regular && wav && (strstr(info->name, "PCM") != NULL) && !strstr(info->name, "ADPCM");
    read_to_the_end(reader, size, plain, steps);
    gc_reader_free(reader);
}
