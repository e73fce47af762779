/*
 * gc_compare: convolves an excerpt of the input in several ways, one after another, times each and compares its output
 * with that of the first. Three times are measured: the whole (set-up, transfer and computing), without set-up, and
 * computing only.
 */
#include "job.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/engine/backend.h"
#include "libgpuconv/engine/engine.h"
#include "libgpuconv/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 4 };

/* The excerpt is so long that direct convolution on one core takes about this time, at a rate that current cores reach.
 */
static const double direct_seconds = 2.0, direct_rate = 5e9; /* multiply-adds per second */

/* A way to convolve, with its result. */
typedef struct candidate {
    const char *label;
    gpuconv_backend backend;
    gpuconv_algorithm algorithm;
    int threads;
    double whole, transfer_and_compute, compute; /* seconds */
    float *out;                                  /* interleaved */
} candidate;

typedef struct excerpt {
    float *samples; /* interleaved */
    int64_t frames;
    int channels;
} excerpt;

/* Reads the beginning of the input. *seconds is its duration. */
static gpuconv_status read_excerpt(const gpuconv_job *job, const gpuconv_ir *ir, excerpt *x, double *seconds,
                                   gpuconv_error *error) {
    gc_reader *reader;
    gpuconv_status status = gc_reader_new(job->input, &reader, error);
    if (status)
        return status;
    double work = (double)gpuconv_ir_frames(ir) * gpuconv_ir_routes(ir);
    int64_t length = gc_max(4096, (int64_t)(direct_seconds * direct_rate / work));
    const gc_audio_info *info = gc_reader_info(reader);
    x->channels = info->channels;
    if (info->frames >= 0)
        length = gc_min(length, info->frames);
    length = gc_min(length, INT64_C(1) << 26);
    x->samples = gc_calloc(length, x->channels * (int64_t)sizeof *x->samples);
    status = x->samples ? GPUCONV_OK : gc_fail_memory(error, "the comparison");
    for (int64_t got = 1; !status && got > 0 && x->frames < length; x->frames += got) {
        const int64_t piece = gc_min(INT64_C(1) << 20, length - x->frames);
        status = gc_cancelled()
                     ? gc_fail_cancelled(error, "the comparison")
                     : gc_reader_read_floats(reader, x->samples + x->frames * x->channels, piece, &got, error);
        if (status)
            got = 0;
    }
    *seconds = (double)x->frames / info->rate;
    gc_reader_free(reader);
    return status;
}

/* The input, the engine and the output of one convolution. */
typedef struct convolution {
    gpuconv_engine *engine;
    const excerpt *x;
    float *out;     /* interleaved */
    int outputs;    /* channels */
    int64_t total;  /* frames of the result */
    int64_t chunk;  /* frames of the plan */
    int64_t chunks; /* submitted */
    int64_t taken;  /* frames of the result */
} convolution;

/* Submits the next chunk of the excerpt, or an empty one behind its end. */
static gpuconv_status submit_chunk(convolution *p) {
    void *in;
    const int64_t at = p->chunks * p->chunk, frames = gc_max(0, gc_min(p->chunk, p->x->frames - at));
    gpuconv_status status = gc_engine_acquire(p->engine, &in);
    if (status)
        return status;
    memcpy(in, p->x->samples + at * p->x->channels, (size_t)(frames * p->x->channels) * sizeof(float));
    p->chunks++;
    return gc_engine_submit(p->engine, frames);
}

/* Copies the next chunk of the result; *frames is 0 at its end. */
static gpuconv_status take_chunk(convolution *p, int64_t *frames) {
    const void *raw;
    gpuconv_status status = gc_engine_take(p->engine, &raw, frames);
    if (status || *frames == 0)
        return status;
    memcpy(p->out + p->taken * p->outputs, raw, (size_t)(*frames * p->outputs) * sizeof(float));
    p->taken += *frames;
    gc_engine_release(p->engine);
    return GPUCONV_OK;
}

/* Convolves the excerpt with as many chunks in flight as the plan allows. */
static gpuconv_status convolve_excerpt(convolution *p, int64_t latency) {
    gpuconv_status status = GPUCONV_OK;
    bool flushed = false;
    for (int64_t frames = 1; !status && frames > 0 && p->taken < p->total;) {
        const int64_t submitted = p->chunks * p->chunk;
        if (gc_cancelled())
            return GPUCONV_ERROR_CANCELLED;
        if (submitted < p->total && submitted - p->taken <= latency) {
            status = submit_chunk(p);
            continue;
        }
        if (!flushed && submitted >= p->total) {
            flushed = true;
            status = gc_engine_flush(p->engine);
        }
        if (!status)
            status = take_chunk(p, &frames);
    }
    return status;
}

/* Times one candidate and keeps its output. `config` says how it convolves. */
static gpuconv_status run(candidate *way, const gpuconv_ir *ir, const excerpt *x, const gpuconv_config *config,
                          gpuconv_error *error) {
    gpuconv_plan *plan = NULL;
    convolution p = {.x = x, .outputs = gpuconv_ir_outputs(ir), .total = x->frames + gpuconv_ir_frames(ir) - 1};
    way->out = p.out = gc_calloc(p.total, p.outputs * (int64_t)sizeof *p.out);
    if (!p.out)
        return gc_fail_memory(error, "the comparison");
    /* NaN, so that samples that are not written show */
    memset(p.out, 0xff, (size_t)(p.total * p.outputs) * sizeof *p.out);
    double begin = gc_now();
    gpuconv_status status = gpuconv_plan_new(ir, config, &plan, error);
    if (!status)
        status = gpuconv_engine_new(plan, &p.engine, error);
    double ready = gc_now();
    if (!status) {
        p.chunk = gpuconv_plan_chunk(plan);
        status = convolve_excerpt(&p, gpuconv_plan_latency(plan));
        if (status)
            gc_fail(error, status, "comparing: %s", gc_engine_failure(p.engine, status));
    }
    if (!status) {
        gc_stream_stats stats;
        double end = gc_now();
        gc_engine_measure(p.engine, &stats);
        way->whole = end - begin;
        way->transfer_and_compute = end - ready;
        way->compute = stats.compute;
    }
    gpuconv_engine_free(p.engine);
    gpuconv_plan_free(plan);
    return status;
}

/* Returns the level of a - b relative to b in dB: 20 log10 of the ratio of their RMS values. */
static double residual(const float *a, const float *b, int64_t n) {
    double error = 0, power = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)a[i] - (double)b[i];
        error += d * d;
        power += (double)b[i] * (double)b[i];
    }
    return 10 * log10(error / power);
}

/* Adds the comparison to the report; `samples` is the length of each output. */
static void report_comparison(gpuconv_report *report, const candidate *ways, double seconds, int64_t samples) {
    static const char *const names[] = {"whole s",     "no set-up s", "compute s",  "x whole",
                                        "x no set-up", "x compute",   "residual dB"};
    gc_report_measure(report, "comparison excerpt", "input", seconds, "s", 1, 0);
    gc_report_text(
        report, "comparison excerpt", "read as",
        "seconds with everything, without set-up, and computing only; x is how many times as long as this job's "
        "choice each took; residual is the difference between the outputs");
    for (int i = 0; i < CANDIDATES; i++) {
        const candidate *w = &ways[i], *chosen = &ways[0];
        double values[] = {w->whole,
                           w->transfer_and_compute,
                           w->compute,
                           w->whole / chosen->whole,
                           w->transfer_and_compute / chosen->transfer_and_compute,
                           w->compute / chosen->compute,
                           residual(chosen->out, w->out, samples)};
        gc_report_named_row(report, "comparison", w->label, 7, names, values);
    }
}

/* Returns the algorithm of the CPU that has no transforms. */
static gpuconv_algorithm find_direct(void) {
    const gc_algorithm *const *row = gc_backend_find(GPUCONV_BACKEND_CPU)->algorithms;
    while ((*row)->most > 0)
        row++;
    return (*row)->id;
}

gpuconv_status gc_compare(const gpuconv_job *job, const gpuconv_ir *ir, const gpuconv_plan *plan,
                          gpuconv_report *report, gpuconv_error *error) {
    const gpuconv_algorithm direct = find_direct();
    candidate ways[CANDIDATES] = {
        {.label = "this job's choice",
         .backend = gpuconv_plan_backend(plan),
         .algorithm = gpuconv_plan_algorithm(plan),
         .threads = gpuconv_plan_threads(plan)},
        {.label = "CPU direct, one core", .backend = GPUCONV_BACKEND_CPU, .algorithm = direct, .threads = 1},
        {.label = "CPU direct, all cores", .backend = GPUCONV_BACKEND_CPU, .algorithm = direct},
        {.label = "CPU best algorithm, all cores", .backend = GPUCONV_BACKEND_CPU},
    };
    excerpt x = {0};
    double seconds = 0;
    gpuconv_status status = read_excerpt(job, ir, &x, &seconds, error);
    int64_t total = x.frames + gpuconv_ir_frames(ir) - 1;
    for (int i = 0; !status && i < CANDIDATES; i++) {
        gpuconv_config config = gpuconv_config_default();
        config.backend = ways[i].backend;
        config.algorithm = ways[i].algorithm;
        config.threads = ways[i].backend == GPUCONV_BACKEND_CPU ? ways[i].threads : 0;
        config.frames = x.frames;
        status = run(&ways[i], ir, &x, &config, error);
    }
    if (!status)
        report_comparison(report, ways, seconds, total * gpuconv_ir_outputs(ir));
    for (int i = 0; i < CANDIDATES; i++)
        free(ways[i].out);
    free(x.samples);
    return status;
}
