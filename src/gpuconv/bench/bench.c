/* The benchmarks: what is timed, checked and told. */
#include "bench.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/statistics.h"
#include "libgpuconv/engine/backends.h"
#include "libgpuconv/report/plot.h"
#include "libgpuconv/report/report.h"
#include "material.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RUNS = 64 };

static const double error_bound = -120; /* dB */

/* What is predicted to take so many times longer than the plan's own choice is left out: nobody would choose it. */
static const double patience = 40;

static const gc_bench_case cases[] = {
    {"2^23 x 16", INT64_C(1) << 23, 16, 1},        {"2^23 x 64", INT64_C(1) << 23, 64, 1},
    {"2^23 x 512", INT64_C(1) << 23, 512, 1},      {"1 min mono x 0.4 s", 2880000, 19200, 1},
    {"10 min stereo x 1.5 s", 26460000, 66150, 2}, {"10 min stereo x 10 s", 26460000, 441000, 2},
    {"60 min stereo x 3 s", 172800000, 144000, 2},
};

const gc_bench_case *gc_bench_cases(int *count) {
    *count = (int)(sizeof cases / sizeof *cases);
    return cases;
}

static void note(const gc_bench *b, const char *text) {
    if (b->note)
        b->note(b->context, text);
}

static bool cancelled(const gc_bench *b) {
    return (b->cancel && *b->cancel) || gc_cancelled();
}

/* The backends to be measured: those that are there, or the one that was named. */
static int backends_of(const gc_bench *b, const gc_backend_tables *list[2]) {
    int count = 0;
    const gc_backend_tables *gpu = gc_backend_find(GPUCONV_BACKEND_CUDA);
    gc_device device;
    gpuconv_error reason = {0};
    if (gpu && b->config.backend != GPUCONV_BACKEND_CPU) {
        if (gpu->convolver->probe(&b->config, &device, &reason) == GPUCONV_OK)
            list[count++] = gpu;
        else
            note(b, reason.message);
    }
    if (b->config.backend != GPUCONV_BACKEND_CUDA)
        list[count++] = gc_backend_find(GPUCONV_BACKEND_CPU);
    return count;
}

static gpuconv_status none(gpuconv_error *error) {
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "no backend of that name can be measured here");
}

gpuconv_status gc_bench_ceilings(gc_bench *b, gpuconv_error *error) {
    const gc_backend_tables *list[2];
    int count = backends_of(b, list);
    if (!count)
        return none(error);
    for (int i = 0; i < count; i++) {
        gc_device device;
        gc_peak_rates c = {0};
        char name[64];
        gpuconv_status status = list[i]->convolver->probe(&b->config, &device, error);
        if (!status)
            status = list[i]->measure->peak_rates(&b->config, &c, error);
        if (status)
            return status;
        b->arithmetic[list[i]->convolver->id] = c.arithmetic;
        b->bus[list[i]->convolver->id] = c.both_at_once;
        b->copy[list[i]->convolver->id] = c.copy;
        const char *id = gpuconv_backend_name(list[i]->convolver->id);
        const struct {
            const char *what;
            double value;
            const char *unit;
        } rows[] = {{"multiply-add loop", c.arithmetic * 1e-12, "TFLOP/s"},
                    {"copy", c.copy * 1e-9, "GB/s"},
                    {"launch", c.launch * 1e6, "us"},
                    {"bus to the device", c.to_device * 1e-9, "GB/s"},
                    {"bus from the device", c.from_device * 1e-9, "GB/s"},
                    {"bus both ways, each", c.both_at_once * 1e-9, "GB/s"}};
        snprintf(name, sizeof name, "%s device", id);
        gc_report_text(b->report, "ceilings", name, device.name);
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            if (!(rows[k].value > 0))
                continue;
            snprintf(name, sizeof name, "%s %s", id, rows[k].what);
            gc_report_measure(b->report, "ceilings", name, rows[k].value, rows[k].unit, 1, 0);
        }
    }
    return GPUCONV_OK;
}

/* A convolution's figures. */
typedef struct outcome {
    double seconds, spread, error;
    char name[96];
} outcome;

/* Where it was computed and how, as rows name it. */
static void describe(const gpuconv_plan *plan, char name[96]) {
    const char *backend = gpuconv_backend_name(plan->backend->id),
               *how = gpuconv_algorithm_name(plan->schedule.algorithm);
    if (plan->schedule.algorithm == GPUCONV_ALGORITHM_DIRECT)
        snprintf(name, 96, "%s, %s", backend, how);
    else
        snprintf(name, 96, "%s, %s, %lld points", backend, how, (long long)plan->schedule.transform);
}

static void poison(const gc_material *m) {
    for (int c = 0; c < m->what.channels; c++)
        memset(m->out[c], 0xff, (size_t)m->what.frames * sizeof(float));
}

static gpuconv_status verify(const gc_bench *b, const gc_material *m, outcome *o, gpuconv_error *error) {
    o->error = gc_material_error(m);
    if (cancelled(b))
        return gc_fail_cancelled(error, "the benchmark");
    if (o->error <= error_bound)
        return GPUCONV_OK;
    gc_report_text(b->report, "wrong", m->what.name, o->name);
    return gc_fail(error, GPUCONV_ERROR_STATE, "%s by %s is wrong: %.1f dB", m->what.name, o->name, o->error);
}

static gpuconv_status try_plan(const gc_bench *b, const gpuconv_plan *plan, gc_material *m, outcome *o,
                               gpuconv_error *error) {
    double seconds[MOST_RUNS];
    describe(plan, o->name);
    poison(m);
    gpuconv_status status =
        gc_backend_find(plan->backend->id)
            ->measure->time_plan(plan, (const float *const *)m->in, m->what.frames, m->out, b->runs, seconds, error);
    if (status)
        return status;
    o->seconds = gc_median(seconds, b->runs, &o->spread);
    return verify(b, m, o, error);
}

/* Multiplications and additions of a plan for every output, a complex transform of n points counting 5 n log2 n and
 * carrying 2 n real ones. */
static double operations_of(const gc_schedule *s) {
    if (s->algorithm == GPUCONV_ALGORITHM_DIRECT)
        return 2.0 * (double)s->taps;
    double n = (double)s->transform;
    return (5 * n * log2(n / 2) +
            (s->algorithm == GPUCONV_ALGORITHM_PARTITIONED ? 4.0 * (double)s->partitions : 3.0) * n) /
           (double)s->hop;
}

static void place(const gc_bench *b, const gpuconv_plan *plan, const gc_bench_case *what, const outcome *o) {
    gc_roofline *r = b->roofline;
    if (!r || r->points == GC_BENCH_POINTS)
        return;
    double each = operations_of(&plan->schedule);
    r->backend[r->points] = plan->backend->id;
    r->intensity[r->points] = each / 8;
    r->rate[r->points++] = each * (double)what->frames * what->channels / o->seconds;
}

gpuconv_status gc_bench_draw_roofline(const gc_bench *b, const char *path, gpuconv_error *error) {
    enum { CORNERS = 21, MOST = CORNERS + GC_BENCH_POINTS };
    const gc_roofline *r = b->roofline;
    double x[MOST], y[4][MOST];
    char labels[4][48];
    gc_plot p = {.title = "Operations a second against operations a byte",
                 .x_label = "operations for each byte of input and output",
                 .y_label = "Gflop/s",
                 .steps = CORNERS + r->points,
                 .x = x};
    for (int i = 0; i < p.steps; i++)
        x[i] = i < CORNERS ? ldexp(1, i - 4) : r->intensity[i - CORNERS];
    for (int id = 0; id < 3; id++) {
        if (!(b->arithmetic[id] > 0 && b->copy[id] > 0))
            continue;
        const char *name = gpuconv_backend_name((gpuconv_backend)id);
        double *roof = y[p.series], *points = y[p.series + 1];
        for (int i = 0; i < p.steps; i++) {
            bool point = i >= CORNERS;
            roof[i] = point ? (double)NAN : fmin(b->copy[id] * x[i], b->arithmetic[id]) * 1e-9;
            points[i] = point && r->backend[i - CORNERS] == id ? r->rate[i - CORNERS] * 1e-9 : (double)NAN;
        }
        for (int k = 0; k < 2; k++) {
            snprintf(labels[p.series], sizeof labels[0], "%s, %s", name,
                     k ? "convolutions" : "copy and multiply-add loop");
            p.label[p.series] = labels[p.series];
            p.points[p.series] = k == 1;
            p.y[p.series] = y[p.series];
            p.series++;
        }
    }
    return gc_plot_write(&p, path, b->cancel, error);
}

static void tell(const gc_bench *b, const gc_bench_case *what, const outcome *o, double operations, bool chosen,
                 double copy, double arithmetic) {
    static const char *const names[] = {"ms", "spread", "GB/s", "x copy", "TFLOP/s", "% of loop", "error dB", "chosen"};
    char label[160];
    double values[] = {o->seconds * 1e3,
                       o->spread * 1e3,
                       8.0 * (double)what->frames * what->channels / o->seconds * 1e-9,
                       o->seconds / copy,
                       operations > 0 ? operations / o->seconds * 1e-12 : (double)NAN,
                       operations > 0 && arithmetic > 0 ? operations / o->seconds / arithmetic * 100 : (double)NAN,
                       o->error,
                       chosen};
    snprintf(label, sizeof label, "%s: %s", what->name, o->name);
    gc_report_named_row(b->report, "convolutions", label, (int)(sizeof values / sizeof *values), names, values);
}

/* Copying as many samples, by the same processor, now: a convolution's lower bound. */
static gpuconv_status measure_copy(const gc_bench *b, const gc_backend_tables *backend, const gc_bench_case *what,
                                   double *median, gpuconv_error *error) {
    double seconds[MOST_RUNS];
    outcome o = {.error = (double)NAN};
    int64_t bytes = 4 * what->frames * what->channels;
    gpuconv_status status = backend->measure->copy(&b->config, bytes, b->runs, seconds, error);
    if (status)
        return status;
    snprintf(o.name, sizeof o.name, "%s, a copy of the samples", gpuconv_backend_name(backend->convolver->id));
    o.seconds = *median = gc_median(seconds, b->runs, &o.spread);
    tell(b, what, &o, 0, false, *median, 0);
    return GPUCONV_OK;
}

static gpuconv_status convolve_on(const gc_bench *b, const gc_backend_tables *backend, gc_material *m,
                                  gpuconv_error *error) {
    double copy, arithmetic = b->arithmetic[backend->convolver->id];
    double operations = 2.0 * (double)m->what.frames * (double)m->what.taps * m->what.channels;
    gpuconv_config config = b->config;
    gpuconv_algorithm chosen = GPUCONV_ALGORITHM_AUTO;
    double limit = HUGE_VAL;
    gpuconv_plan *plan = NULL;
    config.backend = backend->convolver->id;
    config.frames = m->what.frames;
    gpuconv_status status = measure_copy(b, backend, &m->what, &copy, error);
    if (!status && b->config.algorithm == GPUCONV_ALGORITHM_AUTO &&
        (status = gpuconv_plan_new(m->ir, &config, &plan, error)) == GPUCONV_OK) {
        chosen = plan->schedule.algorithm;
        limit = patience * plan->predicted;
        gpuconv_plan_free(plan);
    }
    for (int a = GPUCONV_ALGORITHM_DIRECT; a <= GPUCONV_ALGORITHM_PARTITIONED && !status; a++) {
        gpuconv_error reason = {0};
        outcome o = {0};
        config.algorithm = (gpuconv_algorithm)a;
        if (b->config.algorithm != GPUCONV_ALGORITHM_AUTO && config.algorithm != b->config.algorithm)
            continue;
        if (gpuconv_plan_new(m->ir, &config, &plan, &reason) != GPUCONV_OK)
            continue; /* an algorithm that does not fit this response has no figure */
        if (plan->predicted <= limit) {
            status = try_plan(b, plan, m, &o, error);
            if (!status)
                place(b, plan, &m->what, &o);
            if (!status)
                tell(b, &m->what, &o, a == GPUCONV_ALGORITHM_DIRECT ? operations : 0, config.algorithm == chosen, copy,
                     arithmetic);
        }
        gpuconv_plan_free(plan);
        if (!status && cancelled(b))
            status = gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
    }
    if (status || !b->peers)
        return status;
    config.algorithm = GPUCONV_ALGORITHM_AUTO;
    status = gpuconv_plan_new(m->ir, &config, &plan, error);
    if (status)
        return status;
    outcome o = {0};
    double seconds[MOST_RUNS];
    gpuconv_error reason = {0};
    poison(m);
    if (backend->measure->time_reference(plan, (const float *const *)m->in, m->what.frames, m->out, b->runs, seconds,
                                         o.name, &reason)) {
        note(b, reason.message);
    } else {
        o.seconds = gc_median(seconds, b->runs, &o.spread);
        status = verify(b, m, &o, error);
        if (!status)
            tell(b, &m->what, &o, 0, false, copy, arithmetic);
    }
    gpuconv_plan_free(plan);
    return status;
}

gpuconv_status gc_bench_convolve(const gc_bench *b, const gc_bench_case *what, gpuconv_error *error) {
    const gc_backend_tables *list[2];
    gc_material m;
    int count = backends_of(b, list);
    gpuconv_status status = count ? gc_material_new(what, &m, error) : none(error);
    if (status)
        return status;
    for (int i = 0; i < count && !status; i++)
        status = convolve_on(b, list[i], &m, error);
    gc_material_free(&m);
    return status;
}

/* ---- Batches ----------------------------------------------------------------------------------------------------- */

gpuconv_status gc_bench_batch(const gc_bench *b, const gc_bench_case *what, int64_t signals, gpuconv_error *error) {
    enum { DEVICES = 64 };
    static const char *const names[] = {"devices", "ms", "spread", "GB/s", "signals a second", "of linear", "error dB"};
    const gc_backend_tables *gpu = gc_backend_find(GPUCONV_BACKEND_CUDA);
    if (!gpu)
        return gc_backend_fail_missing(error);
    int device[DEVICES], count = (int)gc_min(DEVICES, gpu->batch->devices(error));
    double seconds[MOST_RUNS], one = 0;
    if (count == 0)
        return GPUCONV_ERROR_DEVICE;
    for (int i = 0; i < count; i++)
        device[i] = i;
    for (int n = 1; n <= count; n = n < count && 2 * n > count ? count : 2 * n) {
        double off, spread;
        char label[160];
        gpuconv_status status =
            gpu->batch->time_batch(device, n, signals, what->frames, what->taps, b->runs, seconds, &off, error);
        if (status)
            return status;
        double time = gc_median(seconds, b->runs, &spread), bytes = 4.0 * (double)(2 * what->frames + 2 * what->taps);
        one = n == 1 ? time : one;
        double values[] = {
            n,          time * 1e3, spread * 1e3, bytes * (double)signals * n / time * 1e-9, (double)signals * n / time,
            one / time, off};
        snprintf(label, sizeof label, "%s: %lld a device", what->name, (long long)signals);
        gc_report_named_row(b->report, "batches", label, 7, names, values);
        if (!(off <= error_bound))
            return gc_fail(error, GPUCONV_ERROR_STATE, "a batch is wrong: %.1f dB", off);
    }
    return GPUCONV_OK;
}

/* ---- Sweeps ------------------------------------------------------------------------------------------------------ */

enum { LENGTHS = 40 };

/* One backend's times at one length: of each algorithm, and of what the plan chooses by itself. */
static gpuconv_status sweep_step(const gc_bench *b, const gc_backend_tables *backend, gc_material *m, double *y,
                                 gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    gpuconv_config config = b->config;
    gpuconv_plan *plan;
    double limit = HUGE_VAL;
    config.backend = backend->convolver->id;
    config.frames = m->what.frames;
    for (int a = GPUCONV_ALGORITHM_AUTO; a <= GPUCONV_ALGORITHM_PARTITIONED && !status; a++) {
        gpuconv_error reason = {0};
        outcome o = {0};
        y[a] = (double)NAN;
        config.algorithm = (gpuconv_algorithm)a;
        if (gpuconv_plan_new(m->ir, &config, &plan, &reason) != GPUCONV_OK)
            continue;
        if (a == GPUCONV_ALGORITHM_AUTO)
            limit = patience * plan->predicted;
        if (plan->predicted <= limit) {
            status = try_plan(b, plan, m, &o, error);
            y[a] = o.seconds * 1e3;
        }
        gpuconv_plan_free(plan);
    }
    return status;
}

gpuconv_status gc_bench_sweep(const gc_bench *b, const gc_bench_case *base, gc_bench_axis axis, int64_t most,
                              const char *plot, gpuconv_error *error) {
    static const char *const names[] = {"length",          "chosen ms",      "direct ms",
                                        "overlap-save ms", "partitioned ms", "chosen / best"};
    static const char *const lines[] = {"the plan's choice", "direct", "overlap-save", "partitioned"};
    const gc_backend_tables *list[2];
    int count = backends_of(b, list);
    if (!count)
        return none(error);
    double x[LENGTHS], y[2][4][LENGTHS];
    int steps = 0;
    gpuconv_status status = GPUCONV_OK;
    for (int64_t n = axis == GC_BENCH_TAPS ? 1 : 1024; n <= most && steps < LENGTHS && !status; n *= 2, steps++) {
        gc_bench_case what = *base;
        gc_material m;
        *(axis == GC_BENCH_TAPS ? &what.taps : &what.frames) = n;
        status = gc_material_new(&what, &m, error);
        if (status)
            break;
        x[steps] = (double)n;
        for (int i = 0; i < count && !status; i++) {
            double t[4] = {(double)NAN, (double)NAN, (double)NAN, (double)NAN}, best = HUGE_VAL;
            status = sweep_step(b, list[i], &m, t, error);
            for (int a = 0; a < 4; a++) {
                y[i][a][steps] = t[a];
                best = t[a] < best ? t[a] : best;
            }
            double values[] = {(double)n, t[0], t[1], t[2], t[3], t[0] / best};
            if (!status)
                gc_report_named_row(b->report, "sweep", gpuconv_backend_name(list[i]->convolver->id), 6, names, values);
        }
        gc_material_free(&m);
        if (!status && cancelled(b))
            status = gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
    }
    if (status || !plot)
        return status;
    gc_plot p = {.title = base->name,
                 .x_label = axis == GC_BENCH_TAPS ? "frames of the response" : "frames of the input",
                 .y_label = "milliseconds",
                 .steps = steps,
                 .x = x};
    char labels[8][48];
    for (int i = 0; i < count; i++)
        for (int a = 0; a < 4; a++) {
            snprintf(labels[p.series], sizeof labels[0], "%s, %s", gpuconv_backend_name(list[i]->convolver->id),
                     lines[a]);
            p.label[p.series] = labels[p.series];
            p.y[p.series++] = y[i][a];
        }
    return gc_plot_write(&p, plot, b->cancel, error);
}
