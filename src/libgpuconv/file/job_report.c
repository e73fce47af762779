/* The report of gpuconv_convolve_file: plan, response, files, times and timeline. */
#include "job.h"

#include "libgpuconv/report/report.h"

#include <math.h>

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
        gc_report_row(r, "timeline", 6, names, values);
    }
}

static void report_files(gpuconv_report *r, const gc_job_result *result) {
    const gc_transfer *t = result->transfer;
    const gc_audio_info *in = gc_reader_info(t->reader);
    gc_report_text(r, "files", "input", result->job->input);
    gc_report_text(r, "files", "input format", in->name);
    gc_report_count(r, "files", "input rate", in->rate);
    gc_report_count(r, "files", "input frames", t->read);
    gc_report_text(r, "files", "response", result->job->response);
    gc_report_text(r, "files", "output", result->job->output);
    gc_report_text(r, "files", "output format", gc_writer_name(t->writer));
    gc_report_count(r, "files", "output frames", t->written);
    gc_report_count(r, "files", "input samples not finite", gc_reader_nonfinite(t->reader, NULL));
    gc_report_count(r, "files", "clipped samples", result->stats->overs.clipped);
    gc_report_measure(r, "files", "output peak", 20 * log10((double)result->stats->overs.peak), "dBFS", 1, 0);
}

static void report_times(gpuconv_report *r, const gc_job_result *result) {
    const gc_transfer *t = result->transfer;
    gc_report_measure(r, "times", "set-up", result->setup, "s", 1, 0);
    gc_report_measure(r, "times", "read", t->read_seconds, "s", 1, 0);
    gc_report_measure(r, "times", "copy-in", result->stats->copy_in, "s", 1, 0);
    gc_report_measure(r, "times", "compute", result->stats->compute, "s", 1, 0);
    gc_report_measure(r, "times", "copy-out", result->stats->copy_out, "s", 1, 0);
    gc_report_measure(r, "times", "write", t->write_seconds, "s", 1, 0);
    gc_report_measure(r, "times", "wall", result->wall, "s", 1, 0);
    gc_report_measure(r, "times", "times real time", (double)t->read / gc_reader_info(t->reader)->rate / result->wall,
                      "x", 1, 0);
}

void gc_report_job(gpuconv_report *report, const gc_job_result *result) {
    report_plan(report, result->plan, result->ir);
    report_response(report, result->shaped);
    report_files(report, result);
    report_times(report, result);
    report_timeline(report, result->stats);
}

void gc_report_move(gpuconv_report *report, const gc_job_result *result) {
    report_files(report, result);
    report_times(report, result);
}
