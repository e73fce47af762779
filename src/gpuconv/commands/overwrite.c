/* Protects existing files from being replaced by mistake. */
#include "overwrite.h"

#include "cli/cli.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/output_file.h"
#include "libgpuconv/ir/read_files.h"

#include <sys/stat.h>

enum { LONGEST_RESPONSE = 60 /* seconds */ };

/* Returns the frames of an audio file, and its rate; -1 if it is not a regular file, or no audio file. */
static int64_t find_frames(const char *path, double *rate) {
    struct stat file;
    gc_reader *reader;
    gpuconv_error error = {0};
    /* Opening a named pipe would block and take its data. */
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode) || gc_reader_new(path, &reader, &error) != GPUCONV_OK)
        return -1;
    const gc_audio_info *info = gc_reader_info(reader);
    const int64_t frames = info->frames;
    *rate = info->rate;
    gc_reader_free(reader);
    return frames;
}

/* Returns whether OUT is a file that the response is read from. */
static bool is_read(const gc_overwrite *o) {
    const gpuconv_preparation *p = o->preparation;
    bool read = gc_ir_reads_file(o->response, o->output) || (p->speakers && gc_is_same_file(p->speakers, o->output)) ||
                (o->path && gc_is_same_file(o->path, o->output)) || (o->head && gc_is_same_file(o->head, o->output));
    for (int i = 0; i < p->series_count && !read; i++)
        read = gc_ir_reads_file(p->series[i], o->output);
    return read;
}

/* Returns whether IR and OUT have changed places. */
static bool are_exchanged(const gc_overwrite *o) {
    double in_rate = 0, ir_rate = 0, out_rate = 0;
    const int64_t out = find_frames(o->output, &out_rate);
    const int64_t in = out < 0 || o->input_raw ? -1 : find_frames(o->input, &in_rate);
    const int64_t ir = in < 0 ? -1 : find_frames(o->response, &ir_rate);
    return in > 1 && in != out && in_rate == ir_rate && in_rate == out_rate && ir - in == out - 1 &&
           (double)out <= LONGEST_RESPONSE * out_rate;
}

int gc_check_overwrite(const gc_overwrite *o) {
    struct stat file;
    if (lstat(o->output, &file) != 0)
        return GC_EXIT_DONE;
    if (o->no_clobber)
        return gc_print_error(GC_EXIT_FAILED, "%s: exists, and --no-clobber is given; choose another name for OUT",
                              o->output);
    if (is_read(o))
        return gc_print_error(GC_EXIT_FAILED,
                              "%s: IR is read from this file, so it is not replaced; choose another name for OUT; "
                              "--force replaces it",
                              o->output);
    if (!gc_is_same_file(o->input, o->output) && are_exchanged(o))
        return gc_print_error(
            GC_EXIT_FAILED,
            "%s: is the response of which %s is a result with IN, so it is not replaced; the order is "
            "IN IR OUT; --force replaces it",
            o->output, o->response);
    return GC_EXIT_DONE;
}
