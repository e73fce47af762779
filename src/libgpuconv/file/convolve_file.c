/* gpuconv_convolve_file: prepares the response, plans, runs the transfer from file to file, and sends notes and
 * progress. */
#include "early_start.h"
#include "job.h"
#include "job_notes.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/sized_struct.h"
#include "libgpuconv/engine/plan.h"
#include "libgpuconv/ir/prepare.h"
#include "libgpuconv/ir/read_files.h"
#include "libgpuconv/report/plot.h"
#include "libgpuconv/report/report.h"
#include "move_file.h"
#include "overwrite.h"
#include "transfer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Seconds of silence before the onset of a response from which on a note is sent. */
static const double noted_silence = 0.005;

/* One attempt to run a job. */
typedef struct task {
    const gpuconv_job *job;
    bool announce;           /* send notes about the response and about a fallback */
    double begin;            /* time of the start, seconds */
    gpuconv_ir *shaped, *ir; /* the response before and after gains and the wet/dry mix */
    float peak;              /* of `shaped` */
    double silence;          /* at its beginning, seconds */
    gpuconv_plan *plan;
    gc_transfer transfer;
} task;

/* Sends notes about the response, the plan and the output. Called after the output was opened, so that a job that fails
 * earlier gives only its error. */
static void note_choices(const task *t) {
    const gpuconv_job *job = t->job;
    const char *history = gpuconv_ir_history(t->shaped), *writing = gc_writer_note(t->transfer.writer);
    if (*history)
        gc_note(job, "%s: %s", job->response, history);
    if (t->peak == 0)
        gc_note(job, "%s: the response is silent", job->response);
    else if (t->silence >= noted_silence && gpuconv_ir_lead(t->shaped) == 0 && !(job->preparation->predelay > 0))
        gc_note(job, "%s: begins with %.1f ms of silence, which is heard as latency; --align onset cuts it off",
                job->response, t->silence * 1e3);
    if (*gpuconv_plan_note(t->plan))
        gc_note(job, "%s", gpuconv_plan_note(t->plan));
    if (*writing)
        gc_note(job, "%s: %s", job->output, writing);
}

/* Prepares the response. *shaped gets it without gain and mix, *ir with them and with the gain of the job. Returns the
 * errors of gpuconv_ir_prepare. */
static gpuconv_status prepare(const gpuconv_job *job, const gc_audio_info *in, gpuconv_ir **shaped, gpuconv_ir **ir,
                              gpuconv_error *error) {
    const gpuconv_preparation *p = job->preparation;
    gpuconv_status status = gc_ir_prepare_shape(&(gc_response_source){job->response, GC_INPUT_REGULAR_OR_FD, NULL}, p,
                                                in->channels, in->rate, shaped, error);
    if (status)
        return status;
    gpuconv_ir *mixed = NULL;
    gpuconv_error inner = {0};
    status = gc_ir_apply_levels(*shaped, p, &mixed, &inner);
    if (!status && job->gain == 0)
        *ir = gc_ir_hold(mixed);
    else if (!status)
        status = gpuconv_ir_gain(mixed, job->gain, ir, &inner);
    gpuconv_ir_free(mixed);
    return status ? gc_fail(error, status, "%s: %s", job->response, inner.message) : GPUCONV_OK;
}

/* Finds what note_choices says of the response. */
static void measure_response(task *t) {
    t->peak = gc_ir_magnitude(t->shaped);
    t->silence = (double)gc_ir_find_onset(t->shaped, t->peak, GC_ONSET_LEVEL) / gpuconv_ir_rate(t->shaped);
}

/* Sets which frames of the result are written, and whether the engine must give floats. */
static gpuconv_status choose_window(const gpuconv_job *job, const gc_audio_info *in, const gpuconv_ir *ir,
                                    gc_transfer *t, gpuconv_error *error) {
    int64_t tail = gpuconv_ir_frames(ir) - 1, lead = gpuconv_ir_lead(ir);
    double kept = (double)lead + job->tail * in->rate;
    if (!(job->tail >= 0) || !(job->tail_floor <= 0 && job->tail_floor >= -300))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "a tail of %g s down to %g dBFS is out of range; use 0 s or more and -300 to 0 dBFS", job->tail,
                       job->tail_floor);
    switch (job->mode) {
    case GPUCONV_MODE_FULL:
        t->skip = lead;
        t->after = kept < (double)tail ? (int64_t)llrint(kept) : tail;
        break;
    case GPUCONV_MODE_SAME:
        t->skip = t->after = tail / 2;
        break;
    case GPUCONV_MODE_VALID:
        t->skip = tail;
        t->after = 0;
        if (in->frames >= 0 && in->frames <= tail)
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                           "%s: of %lld frames none are valid with a response of %lld frames", job->input,
                           (long long)in->frames, (long long)tail + 1);
        break;
    default:
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "unknown mode %d", (int)job->mode);
    }
    t->floor = job->tail_floor < 0 ? (float)pow(10, job->tail_floor / 20) : 0;
    t->dither = job->dither;
    t->convert = job->dither || job->tail_floor < 0 || t->skip > 0 || t->after < tail;
    return GPUCONV_OK;
}

static void progress(void *context, int64_t frames) {
    const task *t = context;
    gc_send_progress(t->job, t->transfer.reader, frames, t->begin);
}

/* Prepares the response, plans, creates the output file and the engine. The input is open. */
static gpuconv_status set_up(task *t, const gpuconv_config *config, gpuconv_error *error) {
    const gpuconv_job *job = t->job;
    gc_transfer *transfer = &t->transfer;
    const gc_audio_info *in = gc_reader_info(transfer->reader);
    const gc_pcm floats = {GC_F32, 32};
    gpuconv_config sized = *config;
    gc_early_start gpu;
    sized.frames = in->frames;
    sized.latency_frames = -1;
    gc_early_start_begin(&gpu, config, in->frames * in->channels);
    gpuconv_status status = prepare(job, in, &t->shaped, &t->ir, error);
    if (!status && t->announce)
        measure_response(t);
    gc_early_start_wait(&gpu);
    if (!status)
        status = choose_window(job, in, t->ir, transfer, error);
    if (!status)
        status = gpuconv_plan_new(t->ir, &sized, &t->plan, error);
    int64_t frames = in->frames < 0 || transfer->floor > 0 ? -1 : in->frames + transfer->after - transfer->skip;
    if (!status)
        status = gc_transfer_open(transfer, job, gpuconv_ir_outputs(t->ir), frames, error);
    if (!status)
        status = gc_engine_new(t->plan, in->pcm, transfer->convert ? floats : gc_writer_pcm(transfer->writer),
                               &transfer->engine, error);
    if (!status)
        transfer->chunk = gpuconv_plan_chunk(t->plan);
    return status;
}

/* Fills the report of a finished convolution and sends the notes about its samples. */
static void report_result(const task *t, double setup, gpuconv_report *report) {
    gc_stream_stats stats;
    gc_engine_measure(t->transfer.engine, &stats);
    if (t->transfer.convert)
        stats.overs = t->transfer.overs;
    gc_report_job(report, &(gc_job_result){.job = t->job,
                                           .plan = t->plan,
                                           .shaped = t->shaped,
                                           .ir = t->ir,
                                           .transfer = &t->transfer,
                                           .stats = &stats,
                                           .setup = setup,
                                           .wall = gc_now() - t->begin});
    gc_note_not_finite(t->job, t->transfer.reader);
    gc_note_overs(t->job, gc_writer_pcm(t->transfer.writer), &stats.overs);
}

/* Runs the comparison and the drawing that the job asks for. The output is complete. */
static gpuconv_status compare_and_draw(const task *t, gpuconv_report *report, gpuconv_error *error) {
    const gpuconv_job *job = t->job;
    gpuconv_status status = GPUCONV_OK;
    if (job->compare)
        status = gc_compare(job, t->ir, t->plan, report, error);
    if (!status && job->plot)
        status = gc_draw_job(job, t->ir, error);
    if (status == GPUCONV_ERROR_CANCELLED)
        gc_fail(error, status, "%s: written whole; then interrupted while %s", job->output,
                job->compare ? "comparing or drawing" : "drawing");
    return status;
}

/* Convolves the open input into the output file. */
static gpuconv_status convolve(task *t, const gpuconv_config *config, gpuconv_report *report, gpuconv_error *error) {
    gc_transfer *transfer = &t->transfer;
    gpuconv_status status = set_up(t, config, error);
    if (!status && t->announce)
        note_choices(t);
    double setup = gc_now() - t->begin;
    if (!status)
        status = gc_transfer_run(transfer, error);
    if (!status)
        status = gc_reader_check_end(transfer->reader, error);
    if (!status)
        status = gc_writer_commit(transfer->writer, error);
    if (!status)
        report_result(t, setup, report);
    gpuconv_engine_free(transfer->engine);
    gc_writer_free(transfer->writer);
    if (!status)
        status = compare_and_draw(t, report, error);
    gpuconv_plan_free(t->plan);
    gpuconv_ir_free(t->ir);
    gpuconv_ir_free(t->shaped);
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

/* Runs the job once. */
static gpuconv_status attempt(const gpuconv_job *job, const gpuconv_config *config, gpuconv_report *report,
                              bool announce, gpuconv_error *error) {
    task t = {.job = job, .announce = announce, .begin = gc_now()};
    t.transfer = (gc_transfer){.output = job->output,
                               .limit = -1,
                               .progress = job->progress ? progress : NULL,
                               .context = &t,
                               .cancel = gc_cancel_flag()};
    const gc_input_options wish = {.raw = job->raw, .cancel = gc_cancel_flag()};
    gpuconv_status status = gc_reader_open(job->input, &wish, &t.transfer.reader, error);
    if (status)
        return status;
    status = job->path || job->head ? gc_move_file(job, config, t.transfer.reader, report, error)
                                    : convolve(&t, config, report, error);
    gc_reader_free(t.transfer.reader);
    return status;
}

/* Returns whether a path can be read or written only once: standard input or output, a named pipe, a device. */
static bool is_stream(const char *path) {
    struct stat st;
    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

static gpuconv_status run_job(const gpuconv_job *job, const gpuconv_config *config, gpuconv_report *report,
                              gpuconv_error *error) {
    if (!job->input || !job->response || !job->output)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a job needs an input, a response and an output");
    bool in_stream = is_stream(job->input), out_stream = is_stream(job->output);
    if (strcmp(job->input, "-") == 0 && strcmp(job->response, "-") == 0)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "input and response cannot both be standard input");
    if ((job->compare && (in_stream || job->raw)) || (job->plot && (in_stream || out_stream)))
        return gc_fail(
            error, GPUCONV_ERROR_ARGUMENT,
            "comparing and drawing read the job's files again: use regular files, and to compare an input with "
            "a header");
    gpuconv_status status = gc_check_overwrite(job, error);
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
