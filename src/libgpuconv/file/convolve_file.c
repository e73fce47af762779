/* gpuconv_convolve_file: checks the job, runs it, starts again on the CPU if the GPU fails, and compares and draws
 * afterwards. */

#include "job.h"

#include "gpuconv.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/conv/plan.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/sized_struct.h"
#include "libgpuconv/ir/prepare.h"
#include "libgpuconv/ir/read_files.h"
#include "libgpuconv/ir/settings.h"
#include "libgpuconv/report/plot.h"

#include <string.h>
#include <sys/stat.h>

/* ---- Files that are not replaced by mistake ---------------------------------------------------------------------- */

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
    const char *const named[] = {p->speakers, job->path, job->head, job->receiver_path};
    bool read = gc_ir_reads_file(job->response, job->output);
    for (int i = 0; i < 4; i++)
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

/* Refuses to replace an existing output that the response is read from, or that is the response of an earlier job whose
 * result is the response of this one: they have changed places. This is certain if the response has exactly the frames
 * of the input convolved with the output. An output of more than a minute is no response; one as long as the input is a
 * result of mode "same" or of no tail. Refuses nothing if the job says `force`. Returns ARGUMENT. */
static gpuconv_status check_overwrite(const gpuconv_job *job, gpuconv_error *error) {
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

/* ---- The job ----------------------------------------------------------------------------------------------------- */

/* Runs the comparison and the drawing that the job asks for. The output is complete. */
static gpuconv_status compare_and_draw(const gc_file_task *t, const gpuconv_config *config, gpuconv_report *report,
                                       gpuconv_error *error) {
    const gpuconv_job *job = t->job;
    gpuconv_status status = GPUCONV_OK;
    if (job->compare)
        status = gc_compare(t, config, report, error);
    if (!status && job->plot)
        status = gc_draw_job(job, t->ir, NULL, error);
    if (status == GPUCONV_ERROR_CANCELLED)
        gc_fail(error, status, "%s: written whole; then interrupted while %s", job->output,
                job->compare ? "comparing or drawing" : "drawing");
    return status;
}

/* Checks before the job that its drawing can be written and would not overwrite a file of the job. */
static gpuconv_status check_plot(const gpuconv_job *job, gpuconv_error *error) {
    const gpuconv_preparation *p = job->preparation;
    const char *const files[] = {job->input, job->response, job->output, p->speakers};
    gpuconv_status status = gc_ir_keep_files(job->plot, files, 4, error);
    if (!status)
        status = gc_ir_keep_files(job->plot, p->series, p->series_count, error);
    return status ? status : gc_plot_check(job->plot, error);
}

/* Runs the job once, with what follows it. */
static gpuconv_status attempt(const gpuconv_job *job, const gpuconv_config *config, gpuconv_report *report,
                              bool announce, gpuconv_error *error) {
    gc_file_task t;
    gpuconv_status status = gc_file_task_open(&t, job, error);
    t.announce = announce;
    if (!status && gc_moves(job)) {
        status = gc_move_file(job, config, t.transfer.reader, report, error);
    } else if (!status) {
        status = gc_file_task_convolve(&t, config, report, error);
        if (!status)
            status = compare_and_draw(&t, config, report, error);
    }
    gc_file_task_free(&t);
    return status;
}

/* Returns whether a path can be read or written only once: standard input or output, a named pipe, a device. */
static bool is_stream(const char *path) {
    struct stat st;
    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

/* Returns whether bytes that are written to a path come after earlier ones: standard output, a pipe or a socket. */
static bool is_pipe(const char *path) {
    struct stat st;
    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)));
}

/* Checks before the job that it can be run again for a comparison. */
static gpuconv_status check_compare(const gpuconv_job *job, gpuconv_error *error) {
    const char *once = is_stream(job->input)      ? job->input
                       : is_stream(job->response) ? job->response
                       : is_pipe(job->output)     ? job->output
                                                  : NULL;
    if (!(job->compare_seconds >= 0 && job->compare_seconds <= 86400))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "comparing for %g s is out of range; use 0 to 86400 s",
                       job->compare_seconds);
    if (once)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: comparing runs the job several times, and a pipe passes only once; use a regular file",
                       strcmp(once, "-") != 0 ? once
                       : once == job->output  ? "standard output"
                                              : "standard input");
    if (gc_is_same_file(job->input, job->output) || gc_is_same_file(job->response, job->output))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: comparing reads the input and the response again, which the output would replace; name "
                       "another output",
                       job->output);
    return GPUCONV_OK;
}

static gpuconv_status run_job(const gpuconv_job *job, const gpuconv_config *config, gpuconv_report *report,
                              gpuconv_error *error) {
    if (!job->input || !job->response || !job->output)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a job needs an input, a response and an output");
    bool in_stream = is_stream(job->input), out_stream = is_stream(job->output);
    if (strcmp(job->input, "-") == 0 && strcmp(job->response, "-") == 0)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "input and response cannot both be standard input");
    if (job->plot && (in_stream || out_stream))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "drawing reads the job's files again: use regular files");
    gpuconv_status status = check_overwrite(job, error);
    if (!status && job->compare)
        status = check_compare(job, error);
    if (!status && job->plot)
        status = check_plot(job, error);
    if (!status)
        status = attempt(job, config, report, true, error);
    if (status == GPUCONV_ERROR_DEVICE && config->backend == GPUCONV_BACKEND_AUTO && !in_stream && !out_stream) {
        /* The GPU failed during the job. The output has not appeared yet, so the CPU starts again. */
        gc_note(job, "starting again on the CPU: %s", error->message);
        gpuconv_config cpu = *config;
        cpu.backend = GPUCONV_BACKEND_CPU;
        status = attempt(job, &cpu, report, false, error);
    }
    return status;
}

/* The structures of a job, in this version. */
typedef struct job_structures {
    gpuconv_job job; /* job.preparation points to `preparation` */
    gpuconv_preparation preparation;
    gpuconv_config config;
} job_structures;

/* Reads the structures of a caller of any version. Returns ARGUMENT. */
static gpuconv_status read_structures(const gpuconv_job *job, const gpuconv_config *config, job_structures *own,
                                      gpuconv_error *error) {
    own->job = gpuconv_job_default();
    gpuconv_status status = gc_sized_struct_read(
        &(gc_sized_struct){&own->job, sizeof own->job, GC_SIZE_UP_TO(gpuconv_job, cancel), "gpuconv_job"}, job, error);
    if (!status)
        status = gc_preparation_read(own->job.preparation, &own->preparation, error);
    own->job.preparation = &own->preparation;
    if (!status)
        status = gc_settings_check(&own->job, offsetof(gc_settings, job), sizeof own->job, error);
    return status ? status : gc_config_read(config, &own->config, error);
}

gpuconv_status gpuconv_convolve_file(const gpuconv_job *job, const gpuconv_config *config, gpuconv_report *report,
                                     gpuconv_error *error) {
    gpuconv_error local = {0};
    job_structures own;
    gpuconv_status status = read_structures(job, config, &own, error);
    if (status)
        return status;
    const volatile int *before = gc_cancel_flag();
    if (own.job.cancel)
        gpuconv_cancel_set(own.job.cancel);
    status = run_job(&own.job, &own.config, report, error ? error : &local);
    gpuconv_cancel_set(before);
    return status;
}
