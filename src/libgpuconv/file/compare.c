/*
 * How much faster, honestly: the same excerpt through several engines, one after another, each given all the time it
 * wants, each output held against the first's. Every way is timed whole (set-up, transfer, computing) and computing
 * only.
 */
#include "job.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/engine/engine.h"
#include "libgpuconv/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 4 };

/* The excerpt is what one core's direct loop manages in about this time, at a rate any core of today reaches. */
static const double direct_seconds = 2.0, direct_rate = 5e9;

typedef struct way {
    const char *label;
    gpuconv_backend backend;
    gpuconv_algorithm algorithm;
    int threads;
    double whole, transfer_and_compute, compute; /* seconds */
    float *out;
    bool ran;
} way;

typedef struct excerpt {
    float *samples; /* interleaved */
    int64_t frames;
    int channels;
} excerpt;

static gpuconv_status read_excerpt(const gpuconv_job *job, const gpuconv_ir *ir, excerpt *x, double *seconds,
                                   gpuconv_error *error) {
    gc_reader *reader;
    gpuconv_status status = gc_reader_new(job->input, &reader, error);
    if (status)
        return status;
    double work = (double)gpuconv_ir_frames(ir) * gpuconv_ir_routes(ir);
    int64_t most = gc_max(4096, (int64_t)(direct_seconds * direct_rate / work));
    const gc_audio_info *info = gc_reader_info(reader);
    x->channels = info->channels;
    if (info->frames >= 0)
        most = gc_min(most, info->frames);
    most = gc_min(most, INT64_C(1) << 26);
    x->samples = gc_calloc(most, x->channels * (int64_t)sizeof *x->samples);
    status = x->samples ? GPUCONV_OK : gc_fail_memory(error, "the comparison");
    for (int64_t got = 1; !status && got > 0 && x->frames < most; x->frames += got) {
        const int64_t piece = gc_min(INT64_C(1) << 20, most - x->frames);
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

static gpuconv_status feed(gpuconv_engine *engine, const gpuconv_plan *plan, const excerpt *x, float *out, int outputs,
                           int64_t total) {
    int64_t chunk = gpuconv_plan_chunk(plan), taken = 0;
    int64_t lag = gpuconv_plan_latency(plan) / chunk, given = 0;
    gpuconv_status status = GPUCONV_OK;
    bool flushed = false;
    while (!status && taken < total) {
        const void *raw;
        if (gc_cancelled())
            return GPUCONV_ERROR_CANCELLED;
        int64_t frames;
        if (given * chunk < total && given * chunk - taken <= lag * chunk) {
            void *in;
            int64_t n = gc_max(0, gc_min(chunk, x->frames - given * chunk));
            if ((status = gc_engine_acquire(engine, &in)) != GPUCONV_OK)
                break;
            memcpy(in, x->samples + given * chunk * x->channels, (size_t)(n * x->channels) * sizeof(float));
            status = gc_engine_submit(engine, n);
            given++;
            continue;
        }
        if (!flushed) {
            flushed = given * chunk >= total;
            if (flushed && (status = gc_engine_flush(engine)) != GPUCONV_OK)
                break;
        }
        if ((status = gc_engine_take(engine, &raw, &frames)) != GPUCONV_OK || frames == 0)
            break;
        memcpy(out + taken * outputs, raw, (size_t)(frames * outputs) * sizeof(float));
        taken += frames;
        gc_engine_release(engine);
    }
    return status;
}

static gpuconv_status run(way *w, const gpuconv_ir *ir, const excerpt *x, int64_t total, const gpuconv_config *wish,
                          gpuconv_error *error) {
    gpuconv_plan *plan = NULL;
    gpuconv_engine *engine = NULL;
    gpuconv_config config = *wish;
    config.frames = x->frames;
    int outputs = gpuconv_ir_outputs(ir);
    w->out = gc_calloc(total, outputs * (int64_t)sizeof *w->out);
    if (!w->out)
        return gc_fail_memory(error, "the comparison");
    memset(w->out, 0xff, (size_t)(total * outputs) * sizeof *w->out); /* NaN: what is not written shows */
    double began = gc_now();
    gpuconv_status status = gpuconv_plan_new(ir, &config, &plan, error);
    if (!status)
        status = gpuconv_engine_new(plan, &engine, error);
    double fed = gc_now();
    if (!status && (status = feed(engine, plan, x, w->out, outputs, total)) != GPUCONV_OK)
        gc_fail(error, status, "comparing: %s", gc_engine_failure(engine, status));
    if (!status) {
        gc_stream_stats m;
        double end = gc_now();
        gc_engine_measure(engine, &m);
        w->whole = end - began;
        w->transfer_and_compute = end - fed;
        w->compute = m.compute;
        w->ran = true;
    }
    gpuconv_engine_free(engine);
    gpuconv_plan_free(plan);
    return status;
}

/* 20 log10 of the root mean square of a - b over that of b. */
static double residual(const float *a, const float *b, int64_t n) {
    double error = 0, power = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)a[i] - (double)b[i];
        error += d * d;
        power += (double)b[i] * (double)b[i];
    }
    return 10 * log10(error / power);
}

gpuconv_status gc_compare(const gpuconv_job *job, const gpuconv_ir *ir, const gpuconv_plan *plan,
                          gpuconv_report *report, gpuconv_error *error) {
    way ways[WAYS] = {
        {.label = "this job's choice",
         .backend = gpuconv_plan_backend(plan),
         .algorithm = gpuconv_plan_algorithm(plan),
         .threads = gpuconv_plan_threads(plan)},
        {.label = "CPU direct, one core",
         .backend = GPUCONV_BACKEND_CPU,
         .algorithm = GPUCONV_ALGORITHM_DIRECT,
         .threads = 1},
        {.label = "CPU direct, all cores", .backend = GPUCONV_BACKEND_CPU, .algorithm = GPUCONV_ALGORITHM_DIRECT},
        {.label = "CPU best algorithm, all cores", .backend = GPUCONV_BACKEND_CPU},
    };
    excerpt x = {0};
    double seconds = 0;
    gpuconv_status status = read_excerpt(job, ir, &x, &seconds, error);
    int64_t total = x.frames + gpuconv_ir_frames(ir) - 1;
    for (int i = 0; !status && i < WAYS; i++) {
        gpuconv_config wish = gpuconv_config_default();
        wish.backend = ways[i].backend;
        wish.algorithm = ways[i].algorithm;
        wish.threads = ways[i].backend == GPUCONV_BACKEND_CPU ? ways[i].threads : 0;
        status = run(&ways[i], ir, &x, total, &wish, error);
    }
    if (!status) {
        static const char *const names[] = {"whole s",     "no set-up s", "compute s",  "x whole",
                                            "x no set-up", "x compute",   "residual dB"};
        gc_report_measure(report, "comparison excerpt", "input", seconds, "s", 1, 0);
        gc_report_text(
            report, "comparison excerpt", "read as",
            "seconds with everything, without set-up, and computing only; x is how many times as long as this job's "
            "choice each took; residual is the difference between the outputs");
        for (int i = 0; i < WAYS; i++) {
            const way *w = &ways[i], *us = &ways[0];
            double values[] = {w->whole,
                               w->transfer_and_compute,
                               w->compute,
                               w->whole / us->whole,
                               w->transfer_and_compute / us->transfer_and_compute,
                               w->compute / us->compute,
                               residual(us->out, w->out, total * gpuconv_ir_outputs(ir))};
            gc_report_named_row(report, "comparison", w->label, 7, names, values);
        }
    }
    for (int i = 0; i < WAYS; i++)
        free(ways[i].out);
    free(x.samples);
    return status;
}
