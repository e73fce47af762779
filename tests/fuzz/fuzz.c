/* Creates a folder in memory with two small audio files and writes the fuzzed bytes into a file there. */
#include "fuzz.h"

#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[128];

static void remove_folder(void) {
    static const char *const names[] = {"a.wav",    "b.wav",    "sub",        "default.flac", "file.txt", "file.conf",
                                        "file.wav", "file.csv", "file.jsonl", "file.tsv",     "file.scp", "file.sofa"};
    char name[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(name, sizeof name, "%s/%s", folder, names[i]);
        if (unlink(name) != 0)
            (void)rmdir(name);
    }
    (void)rmdir(folder);
}

static void make_wav(const char *name, int channels, int frames) {
    char where[128];
    short samples[64];
    SF_INFO info = {.format = SF_FORMAT_WAV | SF_FORMAT_PCM_16, .channels = channels, .samplerate = 48000};
    snprintf(where, sizeof where, "%s/%s", folder, name);
    SNDFILE *file = sf_open(where, SFM_WRITE, &info);
    for (int i = 0; i < 64; i++)
        samples[i] = (short)(1000 * i);
    if (!file || sf_writef_short(file, samples, frames) != frames || sf_close(file) != 0)
        abort();
}

const char *fuzz_file(const char *name, const uint8_t *bytes, size_t size) {
    if (!*folder) {
        snprintf(folder, sizeof folder, "%s/gpuconv-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (!mkdtemp(folder))
            abort();
        (void)atexit(remove_folder);
        make_wav("a.wav", 2, 7);
        make_wav("b.wav", 1, 30);
        snprintf(path, sizeof path, "%s/sub", folder);
        if (mkdir(path, 0700) != 0)
            abort();
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f) != 0)
        abort();
    return path;
}
