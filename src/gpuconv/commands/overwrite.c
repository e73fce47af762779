/* Protects existing files from being replaced by mistake. */
#include "overwrite.h"

#include "cli/cli.h"
#include "libgpuconv/audio/file.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

static bool is_same_file(const char *path, const struct stat *other) {
    struct stat file;
    return stat(path, &file) == 0 && file.st_dev == other->st_dev && file.st_ino == other->st_ino;
}

/* Returns the duration of an audio file in seconds; -1 if it is not a regular file, or no audio file. */
static double find_duration(const char *path, double *rate) {
    struct stat file;
    gc_reader *reader;
    gpuconv_error error = {0};
    /* Opening a named pipe would block and take its data. */
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode) || gc_reader_new(path, &reader, &error) != GPUCONV_OK)
        return -1;
    const gc_audio_info *info = gc_reader_info(reader);
    *rate = info->rate;
    double seconds = info->frames < 0 ? -1 : (double)info->frames / info->rate;
    gc_reader_free(reader);
    return seconds;
}

int gc_check_overwrite(const gc_overwrite *o) {
    struct stat file;
    double rate = 0, ignored;
    if (o->no_clobber && lstat(o->output, &file) == 0)
        return gc_print_error(GC_EXIT_FAILED, "%s: exists, and --no-clobber is given; choose another name for OUT",
                              o->output);
    if (stat(o->output, &file) != 0 || is_same_file(o->input, &file) || is_same_file(o->response, &file))
        return GC_EXIT_DONE;
    double out = find_duration(o->output, &rate), response = out < 0 ? -1 : find_duration(o->response, &ignored);
    if (out < 0 || response < 0)
        return GC_EXIT_DONE;
    /* A pipe, or samples without a header, counts as longer than OUT. */
    double in = o->input_raw || strcmp(o->input, "-") == 0 ? -1 : find_duration(o->input, &ignored);
    bool is_as_convolved = in >= 0 && fabs(in + out - 1 / rate - response) < 0.5 / rate;
    if (out > response - 0.5 / rate || !(in < 0 || out < in || is_as_convolved))
        return GC_EXIT_DONE;
    return gc_print_error(
        GC_EXIT_FAILED,
        "%s: exists and may be an impulse response (%.3g s; IR has %.3g s), so it is not replaced; the order is "
        "IN IR OUT; --force replaces it",
        o->output, out, response);
}
