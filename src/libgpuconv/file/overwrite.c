/* Protects existing files from being replaced by mistake. */
#include "overwrite.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/output_file.h"
#include "libgpuconv/ir/read_files.h"

#include <string.h>
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

/* Returns whether the output is a file that the response is read from. */
static bool is_read(const gpuconv_job *job) {
    const gpuconv_preparation *p = job->preparation;
    const char *const named[] = {p->speakers, job->path, job->head};
    bool read = gc_ir_reads_file(job->response, job->output);
    for (int i = 0; i < 3; i++)
        read = read || (named[i] && gc_is_same_file(named[i], job->output));
    for (int i = 0; i < p->series_count && !read; i++)
        read = gc_ir_reads_file(p->series[i], job->output);
    return read;
}

/* Returns whether response and output have changed places. */
static bool are_exchanged(const gpuconv_job *job) {
    double in_rate = 0, ir_rate = 0, out_rate = 0;
    const int64_t out = find_frames(job->output, &out_rate);
    const int64_t in = out < 0 || job->raw ? -1 : find_frames(job->input, &in_rate);
    const int64_t ir = in < 0 ? -1 : find_frames(job->response, &ir_rate);
    return in > 1 && in != out && in_rate == ir_rate && in_rate == out_rate && ir - in == out - 1 &&
           (double)out <= LONGEST_RESPONSE * out_rate;
}

gpuconv_status gc_check_overwrite(const gpuconv_job *job, gpuconv_error *error) {
    struct stat file;
    if (job->force || strcmp(job->output, "-") == 0 || stat(job->output, &file) != 0)
        return GPUCONV_OK;
    if (is_read(job))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: the response is read from this file, so it is not replaced; choose another name for the "
                       "output; force (--force) replaces it",
                       job->output);
    if (!gc_is_same_file(job->input, job->output) && are_exchanged(job))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: is the response of which %s is a result with the input, so it is not replaced; the order "
                       "is IN IR OUT; force (--force) replaces it",
                       job->output, job->response);
    return GPUCONV_OK;
}
