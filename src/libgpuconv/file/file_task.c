/* One run of a job from file to file: prepares the response, plans, and transfers through an engine; its notes and its
 * report. A thread starts the GPU meanwhile, because that takes as long as reading a large matrix of responses. The
 * context of a device belongs to the process: the thread that convolves finds it made. */
#include "job.h"

#include "gpuconv.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/conv/plan.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"
#include "libgpuconv/ir/object.h"
#include "libgpuconv/ir/prepare.h"
#include "libgpuconv/report/report.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>

/* ---- Notes ------------------------------------------------------------------------------------------------------- */

void gc_note(const gpuconv_job *job, const char *format, ...) {
    if (!job->note)
        return;
    char text[512];
    va_list args;
    va_start(args, format);
    gc_visible_print(text, sizeof text, format, args);
    va_end(args);
    job->note(job->context, text);
}

void gc_send_progress(const gpuconv_job *job, const gc_reader *reader, int64_t frames, double begin, const char *step) {
    const gc_audio_info *in = gc_reader_info(reader);
    const gpuconv_progress p = {sizeof p, frames, in->frames, in->rate, gc_now() - begin, step};
    if (job->progress)
        job->progress(job->context, &p);
}

/* Sends a note about samples of the output that are not finite, if there are any. */
static void note_output(const gpuconv_job *job, const gc_writer *writer) {
    int64_t first = 0;
    const int64_t count = gc_writer_nonfinite(writer, &first);
    if (count > 0)
        gc_note(job,
                "%s: %lld sample%s not finite (NaN or infinity), the first at frame %lld; the input is too large for "
                "single precision, --algorithm direct has more room",
                job->output, (long long)count, count == 1 ? " is" : "s are", (long long)first);
}

/* Sends a note about clipped samples, if there are any, with the gain that avoids them. The gain is rounded down to 0.1
 * dB and keeps the peak one quantisation step below full scale, because full scale itself clips and samples are
 * rounded. The margin is at least 1e-6, which covers the rounding of the floats. */
static void note_overs(const gpuconv_job *job, gc_pcm out, const gc_pcm_overs *overs) {
    if (overs->clipped == 0)
        return;
    double peak = (double)overs->peak, full = 1 - fmax(ldexp(1, 1 - out.bits), 1e-6);
    double gain = floor(10 * (job->gain - 20 * log10(peak / full))) / 10;
    long long count = (long long)overs->clipped;
    const char *plural = count == 1 ? "" : "s";
    if (peak <= full)
        gc_note(job, "%s: %lld sample%s not a number (NaN), written as silence", job->output, count, plural);
    else if (gc_is_gain(gain))
        gc_note(job, "%s: %lld sample%s clipped; --gain %.1f would avoid it", job->output, count, plural, gain);
    else
        gc_note(job, "%s: %lld sample%s clipped", job->output, count, plural);
}

/* Sends notes about what the input holds and was not read, and about its samples that were not finite. */
static void note_input(const gpuconv_job *job, const gc_reader *reader) {
    int64_t first, count = gc_reader_nonfinite(reader, &first);
    if (*gc_reader_note(reader))
        gc_note(job, "%s: %s", job->input, gc_reader_note(reader));
    if (count == 1)
        gc_note(job, "%s: 1 sample is not finite (NaN or infinity) and was taken as silence; it is at frame %lld",
                job->input, (long long)first);
    else if (count > 1)
        gc_note(
            job,
            "%s: %lld samples are not finite (NaN or infinity) and were taken as silence; the first is at frame %lld",
            job->input, (long long)count, (long long)first);
}

/* ---- Report ------------------------------------------------------------------------------------------------------ */

static void report_plan(gpuconv_report *r, const gpuconv_plan *plan, const gpuconv_ir *ir) {
    gc_report_text(r, "convolution", "backend", gpuconv_backend_name(gpuconv_plan_backend(plan)));
    gc_report_text(r, "convolution", "device", gpuconv_plan_device(plan));
    gc_report_text(r, "convolution", "algorithm", gpuconv_algorithm_name(gpuconv_plan_algorithm(plan)));
    gc_report_text(r, "convolution", "why", gpuconv_plan_reason(plan));
    if (*gpuconv_plan_note(plan))
        gc_report_text(r, "convolution", "note", gpuconv_plan_note(plan));
    gc_report_count(r, "convolution", "threads", gpuconv_plan_threads(plan));
    gc_report_count(r, "convolution", "inputs", gpuconv_ir_inputs(ir));
    gc_report_count(r, "convolution", "outputs", gpuconv_ir_outputs(ir));
    gc_report_count(r, "convolution", "routes", gpuconv_ir_routes(ir));
    gc_report_count(r, "convolution", "response frames", gpuconv_ir_frames(ir));
    gc_report_count(r, "convolution", "transform points", gpuconv_plan_transform(plan));
    gc_report_count(r, "convolution", "hop frames", gpuconv_plan_hop(plan));
    gc_report_count(r, "convolution", "partitions", gpuconv_plan_partitions(plan));
    gc_report_count(r, "convolution", "chunk frames", gpuconv_plan_chunk(plan));
}

/* Reports the response before gains and the wet/dry mix. */
static void report_response(gpuconv_report *r, const gpuconv_ir *ir) {
    double peak, rate = gpuconv_ir_rate(ir);
    int64_t at = gpuconv_ir_peak(ir, &peak);
    gc_report_text(r, "response", "history", gpuconv_ir_history(ir));
    gc_report_count(r, "response", "frames", gpuconv_ir_frames(ir));
    gc_report_count(r, "response", "frames before time zero", gpuconv_ir_lead(ir));
    gc_report_measure(r, "response", "silence before it", (double)gpuconv_ir_onset(ir, GC_ONSET_LEVEL) / rate, "s", 1,
                      0);
    gc_report_measure(r, "response", "peak", 20 * log10(peak), "dB", 1, 0);
    gc_report_measure(r, "response", "peak at", (double)at / rate, "s", 1, 0);
}

static void report_timeline(gpuconv_report *r, const gc_stream_stats *stats) {
    static const char *const names[] = {"copy-in begin", "copy-in end",    "compute begin",
                                        "compute end",   "copy-out begin", "copy-out end"};
    for (int i = 0; i < stats->timed_chunks; i++) {
        const gc_chunk_times *p = &stats->times[i];
        double values[] = {p->copy_in[0], p->copy_in[1], p->compute[0], p->compute[1], p->copy_out[0], p->copy_out[1]};
        gc_report_named_row(r, "timeline", NULL, 6, names, values);
    }
}

void gc_report_run(gpuconv_report *r, const gpuconv_job *job, const gc_transfer *t, const gc_stream_stats *stats,
                   double setup, double wall) {
    const gc_audio_info *in = gc_reader_info(t->reader);
    gc_report_text(r, "files", "input", job->input);
    gc_report_text(r, "files", "input format", in->name);
    gc_report_count(r, "files", "input rate", in->rate);
    gc_report_count(r, "files", "input frames", t->read);
    gc_report_text(r, "files", "response", job->response);
    gc_report_text(r, "files", "output", job->output);
    gc_report_text(r, "files", "output format", gc_writer_name(t->writer));
    gc_report_count(r, "files", "output frames", t->written);
    gc_report_count(r, "files", "input samples not finite", gc_reader_nonfinite(t->reader, NULL));
    gc_report_count(r, "files", "clipped samples", stats->overs.clipped);
    gc_report_measure(r, "files", "output peak", 20 * log10((double)stats->overs.peak), "dBFS", 1, 0);
    gc_report_measure(r, "times", "set-up", setup, "s", 1, 0);
    gc_report_measure(r, "times", "read", t->read_seconds, "s", 1, 0);
    gc_report_measure(r, "times", "copy-in", stats->copy_in, "s", 1, 0);
    gc_report_measure(r, "times", "compute", stats->compute, "s", 1, 0);
    gc_report_measure(r, "times", "copy-out", stats->copy_out, "s", 1, 0);
    gc_report_measure(r, "times", "write", t->write_seconds, "s", 1, 0);
    gc_report_measure(r, "times", "wall", wall, "s", 1, 0);
    gc_report_measure(r, "times", "times real time", (double)t->read / in->rate / wall, "x", 1, 0);
    note_input(job, t->reader);
    note_output(job, t->writer);
    note_overs(job, gc_writer_pcm(t->writer), &stats->overs);
}

typedef struct gc_early_start {
    pthread_t thread;
    bool started;
    gpuconv_config config;
    double seconds; /* that the start took; 0: none */
} gc_early_start;

/* ---- An early start of the GPU ----------------------------------------------------------------------------------- */

/* Samples that two cores convolve in about a second. */
static const int64_t many_samples = INT64_C(1) << 27;

static void *start_gpu(void *argument) {
    gc_early_start *s = argument;
    const double begin = gc_now();
    gpuconv_error ignored = {0}; /* the thread that convolves finds it again */
    const gc_backend *gpu = gc_backend_find(GPUCONV_BACKEND_CUDA);
    if (gpu)
        (void)gpu->start(&s->config, &ignored);
    s->seconds = gc_now() - begin;
    return NULL;
}

/* Begins to start the GPU if the backend is CUDA, or if it is AUTO and `samples` (of the input, all channels) are so
 * many that a GPU is worth its start. A failure is told by the plan, which starts the GPU itself then. */
static void early_start_begin(gc_early_start *s, const gpuconv_config *config, int64_t samples) {
    const bool wanted =
        config->backend == GPUCONV_BACKEND_CUDA || (config->backend == GPUCONV_BACKEND_AUTO && samples >= many_samples);
    s->config = *config;
    s->seconds = 0;
    s->started = wanted && pthread_create(&s->thread, NULL, start_gpu, s) == 0;
}

/* Waits until the GPU has started. Call it once for each gc_early_start_begin. */
static void early_start_wait(gc_early_start *s) {
    if (s->started)
        pthread_join(s->thread, NULL);
    s->started = false;
}

/* ---- The run ----------------------------------------------------------------------------------------------------- */

/* Seconds of silence before the onset of a response from which on a note is sent. */
static const double noted_silence = 0.005;

static void progress(void *context, int64_t frames) {
    const gc_file_task *t = context;
    gc_send_progress(t->job, t->transfer.reader, frames, t->begin, NULL);
}

gpuconv_status gc_file_task_open(gc_file_task *t, const gpuconv_job *job, gpuconv_error *error) {
    *t = (gc_file_task){.job = job, .part = -1, .begin = gc_now()};
    t->transfer = (gc_transfer){.output = job->output, .limit = -1, .context = t, .cancel = gc_cancel_flag()};
    const gc_input_options wish = {.raw = job->raw, .cancel = gc_cancel_flag()};
    return gc_reader_open(job->input, &wish, &t->transfer.reader, error);
}

void gc_file_task_free(gc_file_task *t) {
    gpuconv_engine_free(t->transfer.engine);
    gc_writer_free(t->transfer.writer);
    gc_reader_free(t->transfer.reader);
    gpuconv_plan_free(t->plan);
    gpuconv_ir_free(t->ir);
    gpuconv_ir_free(t->shaped);
}

/* Sends notes about the response, the plan and the output. Called after the output was opened, so that a job that fails
 * earlier gives only its error. */
static void note_choices(const gc_file_task *t) {
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
    gpuconv_status status =
        gc_ir_prepare_shape(&(gc_response_source){job->response, GC_INPUT_REGULAR_OR_FD, NULL, NULL}, p, in->channels,
                            in->rate, shaped, error);
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
static void measure_response(gc_file_task *t) {
    t->peak = gc_ir_magnitude(t->shaped);
    t->silence = (double)gc_ir_find_onset(t->shaped, t->peak, GC_ONSET_LEVEL) / gpuconv_ir_rate(t->shaped);
}

/* Prepares the response, plans, creates the output file and the engine. The input is open. */
static gpuconv_status set_up(gc_file_task *t, const gpuconv_config *config, gpuconv_error *error) {
    const gpuconv_job *job = t->job;
    gc_transfer *transfer = &t->transfer;
    const gc_audio_info *in = gc_reader_info(transfer->reader);
    const gc_pcm floats = {GC_F32, 32};
    gpuconv_config sized = *config;
    gc_early_start gpu;
    sized.frames = in->frames;
    early_start_begin(&gpu, config, in->frames * in->channels);
    gpuconv_status status = prepare(job, in, &t->shaped, &t->ir, error);
    if (!status && t->announce)
        measure_response(t);
    early_start_wait(&gpu);
    const double ready = gc_now();
    const gc_window_wish wish = {
        job, in->rate, in->frames, job->input, gpuconv_ir_lead(t->ir), gpuconv_ir_frames(t->ir) - 1};
    gc_window window;
    if (!status && !(status = gc_window_find(&wish, &window, error)))
        gc_transfer_keep(transfer, &window, t->ir, job->dither);
    if (!status)
        status = gpuconv_plan_new(t->ir, &sized, &t->plan, error);
    t->gpu_start = fmax(gpu.seconds, gc_now() - ready);
    const int64_t frames = gc_window_frames(&transfer->window, in->frames);
    if (!status)
        status = gc_transfer_open(transfer, job, gpuconv_ir_outputs(t->ir), gc_ir_keeps_channels(t->ir), frames, error);
    if (!status)
        status = gc_engine_new(t->plan, in->pcm, transfer->convert ? floats : gc_writer_pcm(transfer->writer),
                               &transfer->engine, error);
    if (!status)
        transfer->chunk = gpuconv_plan_chunk(t->plan);
    transfer->limit = t->part;
    t->setup = gc_now() - t->begin;
    return status;
}

/* Fills the report of a finished convolution and sends the notes about its samples. */
static void report_result(const gc_file_task *t, gpuconv_report *report) {
    gc_stream_stats stats;
    gc_engine_measure(t->transfer.engine, &stats);
    if (t->transfer.convert)
        stats.overs = t->transfer.overs;
    report_plan(report, t->plan, t->ir);
    report_response(report, t->shaped);
    gc_report_run(report, t->job, &t->transfer, &stats, t->setup, t->wall);
    report_timeline(report, &stats);
}

gpuconv_status gc_file_task_convolve(gc_file_task *t, const gpuconv_config *config, gpuconv_report *report,
                                     gpuconv_error *error) {
    gc_transfer *transfer = &t->transfer;
    gpuconv_config whole = *config;
    whole.latency_frames = -1;
    transfer->progress = t->job->progress ? progress : NULL;
    gpuconv_status status = set_up(t, &whole, error);
    if (!status && t->announce)
        note_choices(t);
    if (!status)
        status = gc_transfer_run(transfer, error);
    if (!status)
        status = gc_reader_check_end(transfer->reader, error);
    if (!status)
        status = gc_writer_commit(transfer->writer, error);
    t->wall = gc_now() - t->begin;
    if (!status)
        report_result(t, report);
    gpuconv_engine_free(transfer->engine);
    gc_writer_free(transfer->writer);
    transfer->engine = NULL;
    transfer->writer = NULL;
    return status;
}

gpuconv_status gc_file_task_try(gc_file_task *t, const gpuconv_config *config, int64_t part, gpuconv_error *error) {
    int64_t bytes;
    t->part = part;
    gpuconv_status status = set_up(t, config, error);
    if (!status)
        status = gc_transfer_run(&t->transfer, error);
    if (!status)
        status = gc_writer_complete(t->transfer.writer, &bytes, error);
    t->wall = gc_now() - t->begin;
    return status;
}
