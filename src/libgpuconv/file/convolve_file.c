/* gpuconv_convolve_file: a job's response and plan, the passage from file to file, and what is told of it. */
#include "job.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/visible.h"
#include "libgpuconv/ir/prepare.h"
#include "libgpuconv/report/plot.h"
#include "libgpuconv/report/report.h"
#include "transfer.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Silence before a response is what lies this far under its peak; so much of it is worth a word. */
static const double onset_level = -60, onset_told = 0.005;

typedef struct task {
    const gpuconv_job *job;
    bool announce; /* tell of what became of the response, and of a fallback */
    double began;
    gc_transfer transfer;
} task;

gpuconv_job gpuconv_job_default(void) {
    return (gpuconv_job){.preparation = gpuconv_preparation_default(), .tail = HUGE_VAL};
}

static void note(const gpuconv_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(const gpuconv_job *job, const char *format, ...) {
    if (!job->note)
        return;
    char text[512];
    va_list args;
    va_start(args, format);
    gc_visible_print(text, sizeof text, format, args);
    va_end(args);
    job->note(job->context, text);
}

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

/* What there is to know of a response before levels are laid on it. */
static void report_response(gpuconv_report *r, const gpuconv_ir *ir) {
    double peak, rate = gpuconv_ir_rate(ir);
    int64_t at = gpuconv_ir_peak(ir, &peak);
    gc_report_text(r, "response", "history", gpuconv_ir_history(ir));
    gc_report_count(r, "response", "frames", gpuconv_ir_frames(ir));
    gc_report_count(r, "response", "frames before time zero", gpuconv_ir_lead(ir));
    gc_report_measure(r, "response", "silence before it", (double)gpuconv_ir_onset(ir, onset_level) / rate, "s", 1, 0);
    gc_report_measure(r, "response", "peak", 20 * log10(peak), "dB", 1, 0);
    gc_report_measure(r, "response", "peak at", (double)at / rate, "s", 1, 0);
}

static void report_timeline(gpuconv_report *r, const gc_stream_stats *m) {
    static const char *const names[] = {"copy-in begin", "copy-in end",    "compute begin",
                                        "compute end",   "copy-out begin", "copy-out end"};
    for (int i = 0; i < m->passages; i++) {
        const gc_chunk_times *p = &m->passage[i];
        double values[] = {p->copy_in[0], p->copy_in[1], p->compute[0], p->compute[1], p->copy_out[0], p->copy_out[1]};
        gc_report_row(r, "timeline", 6, names, values);
    }
}

static void report_transfer(gpuconv_report *r, const gpuconv_job *job, const gc_transfer *t, const gc_stream_stats *m,
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
    gc_report_count(r, "files", "input samples not finite", gc_reader_not_finite(t->reader, NULL));
    gc_report_count(r, "files", "clipped samples", m->overs.clipped);
    gc_report_measure(r, "files", "output peak", 20 * log10((double)m->overs.peak), "dBFS", 1, 0);
    gc_report_measure(r, "times", "set-up", setup, "s", 1, 0);
    gc_report_measure(r, "times", "read", t->read_seconds, "s", 1, 0);
    gc_report_measure(r, "times", "copy-in", m->copy_in, "s", 1, 0);
    gc_report_measure(r, "times", "compute", m->compute, "s", 1, 0);
    gc_report_measure(r, "times", "copy-out", m->copy_out, "s", 1, 0);
    gc_report_measure(r, "times", "write", t->write_seconds, "s", 1, 0);
    gc_report_measure(r, "times", "wall", wall, "s", 1, 0);
    gc_report_measure(r, "times", "times real time", (double)t->read / in->rate / wall, "x", 1, 0);
}

/* The advice is in steps of 0.1 dB, rounded down, and leaves a step of the output's scale, since full scale itself
 * clips and samples are rounded; 1e-6 of it covers what the floats in between round. */
static void note_overs(const gpuconv_job *job, gc_pcm out, const gc_stream_stats *m) {
    if (m->overs.clipped == 0)
        return;
    double peak = (double)m->overs.peak, full = 1 - fmax(ldexp(1, 1 - out.bits), 1e-6);
    double gain = floor(10 * (job->gain - 20 * log10(peak / full))) / 10;
    long long count = (long long)m->overs.clipped;
    const char *plural = count == 1 ? "" : "s";
    if (peak <= full)
        note(job, "%s: %lld sample%s not a number, silence instead", job->output, count, plural);
    else if (gc_is_gain(gain))
        note(job, "%s: %lld sample%s clipped; --gain %.1f would avoid it", job->output, count, plural, gain);
    else
        note(job, "%s: %lld sample%s clipped", job->output, count, plural);
}

static void note_not_finite(const gpuconv_job *job, const gc_reader *reader) {
    int64_t first, count = gc_reader_not_finite(reader, &first);
    if (count == 1)
        note(job, "%s: 1 sample is not finite (NaN or infinity) and was taken as silence; it is at frame %lld",
             job->input, (long long)first);
    else if (count > 1)
        note(job,
             "%s: %lld samples are not finite (NaN or infinity) and were taken as silence; the first is at frame %lld",
             job->input, (long long)count, (long long)first);
}

/* Once the output could be opened, so that a command that only failed tells one thing: why. */
static void announce_choices(const gpuconv_job *job, const gpuconv_ir *shaped, const gpuconv_plan *plan,
                             const gc_writer *writer) {
    double silence = (double)gpuconv_ir_onset(shaped, onset_level) / gpuconv_ir_rate(shaped), peak;
    if (*gpuconv_ir_history(shaped))
        note(job, "%s: %s", job->response, gpuconv_ir_history(shaped));
    if (gpuconv_ir_peak(shaped, &peak), peak == 0)
        note(job, "%s: the response is silent", job->response);
    else if (silence >= onset_told && gpuconv_ir_lead(shaped) == 0 && !(job->preparation.predelay > 0))
        note(job, "%s: begins with %.1f ms of silence, which is heard as latency; --align onset cuts it off",
             job->response, silence * 1e3);
    if (*gpuconv_plan_note(plan))
        note(job, "%s", gpuconv_plan_note(plan));
    if (*gc_writer_note(writer))
        note(job, "%s: %s", job->output, gc_writer_note(writer));
}

/* Prepares the response. *shaped gets it without gain and mix, *ir with them and with the gain of the job. Returns the
 * errors of gpuconv_ir_prepare. */
static gpuconv_status prepare(const gpuconv_job *job, const gc_audio_info *in, gpuconv_ir **shaped, gpuconv_ir **ir,
                              gpuconv_error *error) {
    const gpuconv_preparation *p = &job->preparation;
    gpuconv_status status = gc_ir_prepare_shape(job->response, p, in->channels, in->rate, job->cancel, shaped, error);
    if (status)
        return status;
    gpuconv_ir *mixed = NULL;
    gpuconv_error inner = {0};
    status = gc_ir_apply_levels(*shaped, p, &mixed, &inner);
    if (!status)
        status = gpuconv_ir_gain(mixed, job->gain, ir, &inner);
    gpuconv_ir_free(mixed);
    return status ? gc_fail(error, status, "%s: %s", job->response, inner.message) : GPUCONV_OK;
}

/* Which frames of the result are written. */
static gpuconv_status choose_window(const gpuconv_job *job, const gc_audio_info *in, const gpuconv_ir *ir,
                                    gc_transfer *t, gpuconv_error *error) {
    int64_t tail = gpuconv_ir_frames(ir) - 1, lead = gpuconv_ir_lead(ir);
    double keep = (double)lead + job->tail * in->rate;
    if (!(job->tail >= 0) || !(job->tail_floor <= 0 && job->tail_floor >= -300))
        return gc_fail(
            error, GPUCONV_ERROR_ARGUMENT,
            "a tail has 0 seconds or more, and its floor lies below 0 dBFS, down to -300; not %g s and %g dBFS",
            job->tail, job->tail_floor);
    switch (job->mode) {
    case GPUCONV_MODE_FULL:
        t->skip = lead;
        t->after = keep < (double)tail ? (int64_t)llrint(keep) : tail;
        break;
    case GPUCONV_MODE_SAME:
        t->skip = t->after = tail / 2;
        break;
    case GPUCONV_MODE_VALID:
        t->skip = tail;
        t->after = 0;
        if (in->frames >= 0 && in->frames <= tail)
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: of %lld frames none are valid behind a response of %lld",
                           job->input, (long long)in->frames, (long long)tail + 1);
        break;
    default:
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "no such mode: %d", (int)job->mode);
    }
    t->floor = job->tail_floor < 0 ? (float)pow(10, job->tail_floor / 20) : 0;
    t->dither = job->dither;
    t->convert = job->dither || job->tail_floor < 0 || t->skip > 0 || t->after < tail;
    return GPUCONV_OK;
}

static void progress(void *context, int64_t frames) {
    const task *t = context;
    const gc_audio_info *in = gc_reader_info(t->transfer.reader);
    gpuconv_progress p = {frames, in->frames, in->rate, gc_now() - t->began};
    t->job->progress(t->job->context, &p);
}

/* Everything after the input is open. The engine uses the plan, the plan the response: each outlives what it serves. */
static gpuconv_status convolve(task *t, const gpuconv_config *config, gpuconv_report *report, gpuconv_error *error) {
    const gpuconv_job *job = t->job;
    gc_transfer *through = &t->transfer;
    const gc_audio_info *in = gc_reader_info(through->reader);
    const gc_output_wish wish = {.format = job->format, .encoding = job->encoding, .cancel = job->cancel};
    const gc_pcm floats = {GC_F32, 32};
    gpuconv_ir *shaped = NULL, *ir = NULL;
    gpuconv_plan *plan = NULL;
    gpuconv_config chosen = *config;
    chosen.frames = in->frames;
    gpuconv_status status = prepare(job, in, &shaped, &ir, error);
    if (!status)
        status = choose_window(job, in, ir, through, error);
    if (!status)
        status = gpuconv_plan_new(ir, &chosen, &plan, error);
    int64_t frames = in->frames < 0 || through->floor > 0 ? -1 : in->frames + through->after - through->skip;
    if (!status)
        status = gc_writer_new(job->output, &wish, in, gpuconv_ir_outputs(ir), frames, &through->writer, error);
    if (!status)
        status = gc_metadata_copy(through->reader, through->writer, error);
    if (!status)
        status = gc_engine_new(plan, in->pcm, through->convert ? floats : gc_writer_pcm(through->writer),
                               &through->engine, error);
    if (!status && t->announce)
        announce_choices(job, shaped, plan, through->writer);
    double setup = gc_now() - t->began;
    if (!status) {
        through->chunk = gpuconv_plan_chunk(plan);
        status = gc_transfer_run(through, error);
    }
    if (!status)
        status = gc_writer_commit(through->writer, error);
    if (!status) {
        gc_stream_stats m;
        gc_engine_measure(through->engine, &m);
        m.overs = through->convert ? through->overs : m.overs;
        report_plan(report, plan, ir);
        report_response(report, shaped);
        report_transfer(report, job, through, &m, setup, gc_now() - t->began);
        report_timeline(report, &m);
        note_not_finite(job, through->reader);
        note_overs(job, gc_writer_pcm(through->writer), &m);
    }
    gpuconv_engine_free(through->engine);
    gc_writer_free(through->writer);
    const bool whole = !status;
    if (!status && job->compare)
        status = gc_compare(job, ir, plan, report, error);
    if (!status && job->plot)
        status = gc_draw_job(job, ir, error);
    if (whole && status == GPUCONV_ERROR_CANCELLED)
        gc_fail(error, status, "%s: written whole; then interrupted while %s", job->output,
                job->compare ? "comparing or drawing" : "drawing");
    gpuconv_plan_free(plan);
    gpuconv_ir_free(ir);
    gpuconv_ir_free(shaped);
    return status;
}

static bool is_same_file(const char *a, const char *b) {
    struct stat first, second;
    return strcmp(a, b) == 0 || (stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
                                 first.st_ino == second.st_ino);
}

/* Refuses before the job what its drawing would fail at, or overwrite. */
static gpuconv_status check_plot(const gpuconv_job *job, gpuconv_error *error) {
    const char *const files[] = {job->input, job->response, job->output};
    for (int i = 0; i < 3; i++)
        if (is_same_file(job->plot, files[i]))
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                           "%s: the drawing would overwrite a file of the job; give it another name", job->plot);
    return gc_plot_check(job->plot, error);
}

static gpuconv_status attempt(const gpuconv_job *job, const gpuconv_config *config, gpuconv_report *report,
                              bool announce, gpuconv_error *error) {
    task t = {.job = job, .announce = announce, .began = gc_now()};
    t.transfer = (gc_transfer){.output = job->output,
                               .limit = -1,
                               .progress = job->progress ? progress : NULL,
                               .context = &t,
                               .cancel = gc_cancel_flag()};
    const gc_input_wish wish = {.raw = job->raw, .cancel = gc_cancel_flag()};
    gpuconv_status status = gc_reader_open(job->input, &wish, &t.transfer.reader, error);
    if (status)
        return status;
    status = convolve(&t, config, report, error);
    gc_reader_free(t.transfer.reader);
    return status;
}

/* Returns whether a path can be read or written only once: standard input or output, a named pipe, a device. */
static bool passes_once(const char *path) {
    struct stat st;
    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

static gpuconv_status run_job(const gpuconv_job *job, const gpuconv_config *config, gpuconv_report *report,
                              gpuconv_error *error) {
    if (!job->input || !job->response || !job->output)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a job names an input, a response and an output");
    bool once = passes_once(job->input), out_once = passes_once(job->output);
    if (strcmp(job->input, "-") == 0 && strcmp(job->response, "-") == 0)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "input and response cannot both be standard input");
    if ((job->compare && (once || job->raw)) || (job->plot && (once || out_once)))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "comparisons and drawings read a job's files again: they want files, a comparison one with a "
                       "header");
    gpuconv_status status = job->plot ? check_plot(job, error) : GPUCONV_OK;
    if (!status)
        status = attempt(job, config, report, true, error);
    if (status == GPUCONV_ERROR_DEVICE && config->backend == GPUCONV_BACKEND_AUTO && !once && !out_once) {
        /* The GPU failed under way: nothing has its name yet, so the CPU begins anew. */
        note(job, "starting again on the CPU: %s", error->message);
        gpuconv_config cpu = *config;
        cpu.backend = GPUCONV_BACKEND_CPU;
        status = attempt(job, &cpu, report, false, error);
    }
    return status;
}

gpuconv_status gpuconv_convolve_file(const gpuconv_job *job, const gpuconv_config *config, gpuconv_report *report,
                                     gpuconv_error *error) {
    gpuconv_error local = {0};
    const volatile int *before = gc_cancel_flag();
    if (job->cancel)
        gpuconv_cancel_set(job->cancel);
    gpuconv_status status = run_job(job, config, report, error ? error : &local);
    gpuconv_cancel_set(before);
    return status;
}
