/* Creates and removes the temporary folder of a test and reads and writes audio files. */
#include "files.h"

#include <dirent.h>
#include <unistd.h>

static char folder[256];

int files_begin(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/gpuconv-test-XXXXXX", base && *base ? base : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

int files_end(void **state) {
    (void)state;
    struct dirent **list;
    const int count = scandir(folder, &list, NULL, NULL);
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i]->d_name, ".") != 0 && strcmp(list[i]->d_name, "..") != 0)
            unlink(files_path("%s", list[i]->d_name));
        free(list[i]);
    }
    if (count >= 0)
        free((void *)list);
    return rmdir(folder);
}

const char *files_path(const char *format, ...) {
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % COUNT(paths)];
    int n = snprintf(path, sizeof paths[0], "%s/", folder);
    va_list args;
    va_start(args, format);
    vsnprintf(path + n, sizeof paths[0] - (size_t)n, format, args);
    va_end(args);
    return path;
}

void files_write(const char *path, int format, int rate, const guarded *samples) {
    SF_INFO info = {.format = format, .channels = samples->channels, .samplerate = rate};
    unlink(path); /* a new file is closed faster: some file systems flush a file that was overwritten */
    SNDFILE *file = sf_open(path, SFM_WRITE, &info);
    CHECK(file, "%s: %s", path, sf_strerror(NULL));
    float *block = malloc((size_t)samples->channels * (size_t)samples->frames * sizeof *block);
    CHECK(block, "no memory");
    for (int64_t i = 0; i < samples->frames; i++)
        for (int c = 0; c < samples->channels; c++)
            block[i * samples->channels + c] = samples->channel[c][i];
    CHECK(sf_writef_float(file, block, samples->frames) == samples->frames, "%s: %s", path, sf_strerror(file));
    CHECK(sf_close(file) == 0, "%s: not closed", path);
    free(block);
}

guarded files_read(const char *path, SF_INFO *info) {
    *info = (SF_INFO){0};
    SNDFILE *file = sf_open(path, SFM_READ, info);
    CHECK(file, "%s: %s", path, sf_strerror(NULL));
    guarded samples = guarded_new(info->channels, info->frames);
    float *block = malloc((size_t)info->channels * (size_t)info->frames * sizeof *block);
    CHECK(block, "no memory");
    CHECK(sf_readf_float(file, block, info->frames) == info->frames, "%s: shorter than its header says", path);
    for (int64_t i = 0; i < samples.frames; i++)
        for (int c = 0; c < samples.channels; c++)
            samples.channel[c][i] = block[i * samples.channels + c];
    free(block);
    sf_close(file);
    return samples;
}

const char *files_source(const char *below) {
    static char path[512];
    const char *source = getenv("SOURCE");
    snprintf(path, sizeof path, "%s/%s", source && *source ? source : TESTS_SOURCE, below);
    return path;
}
