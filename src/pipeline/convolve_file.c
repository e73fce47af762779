/* gpuconv_convolve_file: a job's response and plan, the passage from file to file, and what is told of it. */
#include "../audio/file.h"
#include "../core/clock.h"
#include "../core/error.h"
#include "../core/memory.h"
#include "../report/report.h"
#include "pipeline.h"
#include "transfer.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct task {
    const gpuconv_job *job;
    bool announce; /* tell of resampling and of a fallback */
    gc_transfer transfer;
} task;

gpuconv_job gpuconv_job_default(void) {
    return (gpuconv_job){0};
}

static void note(const gpuconv_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(const gpuconv_job *job, const char *format, ...) {
    if (!job->note)
        return;
    char text[512];
    va_list args;
    va_start(args, format);
    if (vsnprintf(text, sizeof text, format, args) >= 0)
        job->note(job->context, text);
    va_end(args);
}

gpuconv_status gc_prepare_response(const char *path, double gain, int channels, double rate, double *recorded,
                                   gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_ir *now, *next;
    *ir = NULL;
    gpuconv_status status = gpuconv_ir_load(path, &now, error);
    if (status)
        return status;
    *recorded = gpuconv_ir_rate(now);
    if (*recorded != rate) {
        status = gpuconv_ir_resample(now, rate, &next, error);
        gpuconv_ir_free(now);
        if (status)
            return status;
        now = next;
    }
    if (gain != 0) {
        status = gpuconv_ir_gain(now, gain, &next, error);
        gpuconv_ir_free(now);
        if (status)
            return status;
        now = next;
    }
    gpuconv_error inner = {0};
    status = gpuconv_ir_route(now, channels, ir, &inner);
    if (status)
        gc_fail(error, status, "%s: %.400s", path, inner.message);
    gpuconv_ir_free(now);
    return status;
}

static void report_plan(gpuconv_report *r, const gpuconv_plan *plan, const gpuconv_ir *ir) {
    gc_report_text(r, "convolution", "backend", gpuconv_backend_name(gpuconv_plan_backend(plan)));
    gc_report_text(r, "convolution", "device", gpuconv_plan_device(plan));
    gc_report_text(r, "convolution", "algorithm", gpuconv_algorithm_name(gpuconv_plan_algorithm(plan)));
    gc_report_text(r, "convolution", "why", gpuconv_plan_why(plan));
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

static void report_timeline(gpuconv_report *r, const gc_measurement *m) {
    static const char *const names[] = {"copy-in begin", "copy-in end",    "compute begin",
                                        "compute end",   "copy-out begin", "copy-out end"};
    for (int i = 0; i < m->passages; i++) {
        const gc_passage *p = &m->passage[i];
        double values[] = {p->copy_in[0], p->copy_in[1], p->compute[0], p->compute[1], p->copy_out[0], p->copy_out[1]};
        gc_report_row(r, "timeline", 6, names, values);
    }
}

static void report_transfer(gpuconv_report *r, const gpuconv_job *job, const gc_transfer *t, const gc_measurement *m,
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
static void note_overs(const gpuconv_job *job, gc_pcm out, const gc_measurement *m) {
    if (m->overs.clipped == 0)
        return;
    double peak = (double)m->overs.peak, full = 1 - fmax(ldexp(1, 1 - out.bits), 1e-6);
    double gain = floor(10 * (job->gain - 20 * log10(peak / full))) / 10;
    long long count = (long long)m->overs.clipped;
    const char *plural = count == 1 ? "" : "s";
    if (peak <= full)
        note(job, "%s: %lld sample%s not a number, silence instead", job->output, count, plural);
    else if (gain >= -200)
        note(job, "%s: %lld sample%s clipped; --gain %.1f would avoid it", job->output, count, plural, gain);
    else
        note(job, "%s: %lld sample%s clipped", job->output, count, plural);
}

/* Once the output could be opened, so that a command that only failed tells one thing: why. */
static void announce_choices(const gpuconv_job *job, double recorded, double rate, const gpuconv_plan *plan) {
    if (recorded != rate)
        note(job, "%s: resampled from %.0f to %.0f Hz, its level rescaled by %.4f", job->response, recorded, rate,
             recorded / rate);
    if (*gpuconv_plan_note(plan))
        note(job, "%s", gpuconv_plan_note(plan));
}

/* Everything after the input is open. The engine uses the plan, the plan the response: each outlives what it serves. */
static gpuconv_status convolve(task *t, const gpuconv_config *config, gpuconv_report *report, double began,
                               gpuconv_error *error) {
    const gpuconv_job *job = t->job;
    gc_transfer *through = &t->transfer;
    const gc_audio_info *in = gc_reader_info(through->reader);
    gpuconv_ir *ir = NULL;
    gpuconv_plan *plan = NULL;
    gpuconv_config chosen = *config;
    chosen.frames = in->frames;
    double recorded = in->rate;
    gpuconv_status status =
        gc_prepare_response(job->response, job->gain, in->channels, in->rate, &recorded, &ir, error);
    if (!status)
        status = gpuconv_plan_new(ir, &chosen, &plan, error);
    int64_t frames = in->frames < 0 ? -1 : in->frames + (ir ? gpuconv_ir_frames(ir) : 0) - 1;
    if (!status)
        status = gc_writer_new(job->output, in, gpuconv_ir_outputs(ir), frames, &through->writer, error);
    if (!status)
        status = gc_engine_new(plan, in->pcm, gc_writer_pcm(through->writer), &through->engine, error);
    if (!status && t->announce)
        announce_choices(job, recorded, in->rate, plan);
    double setup = gc_now() - began;
    if (!status) {
        through->chunk = gpuconv_plan_chunk(plan);
        status = gc_transfer_run(through, error);
    }
    if (!status)
        status = gc_writer_commit(through->writer, error);
    if (!status) {
        gc_measurement m;
        gc_engine_measure(through->engine, &m);
        report_plan(report, plan, ir);
        report_transfer(report, job, through, &m, setup, gc_now() - began);
        report_timeline(report, &m);
        note_overs(job, gc_writer_pcm(through->writer), &m);
    }
    gpuconv_engine_free(through->engine);
    gc_writer_free(through->writer);
    if (!status && job->compare)
        status = gc_compare(job, ir, plan, report, error);
    gpuconv_plan_free(plan);
    gpuconv_ir_free(ir);
    return status;
}

static gpuconv_status attempt(const gpuconv_job *job, const gpuconv_config *config, gpuconv_report *report,
                              bool announce, gpuconv_error *error) {
    double began = gc_now();
    task t = {.job = job, .announce = announce};
    t.transfer = (gc_transfer){.output = job->output, .limit = -1, .cancel = job->cancel};
    gpuconv_status status = gc_reader_new(job->input, &t.transfer.reader, error);
    if (status)
        return status;
    status = convolve(&t, config, report, began, error);
    gc_reader_free(t.transfer.reader);
    return status;
}

gpuconv_status gpuconv_convolve_file(const gpuconv_job *job, const gpuconv_config *config, gpuconv_report *report,
                                     gpuconv_error *error) {
    gpuconv_error local = {0};
    error = error ? error : &local;
    if (!job->input || !job->response || !job->output)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a job names an input, a response and an output");
    gpuconv_status status = attempt(job, config, report, true, error);
    if (status == GPUCONV_ERROR_DEVICE && config->backend == GPUCONV_BACKEND_AUTO) {
        /* The GPU failed under way: nothing has its name yet, so the CPU begins anew. */
        note(job, "starting again on the CPU: %s", error->message);
        gpuconv_config cpu = *config;
        cpu.backend = GPUCONV_BACKEND_CPU;
        status = attempt(job, &cpu, report, false, error);
    }
    return status;
}
