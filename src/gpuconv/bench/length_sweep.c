/* Times one case for many lengths of its response or of its input. */
#include "timing.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/report/plot.h"
#include "libgpuconv/report/report.h"

#include <math.h>
#include <stdio.h>

enum { LENGTHS = 40 };

/* The algorithms of streams that a backend has at most, and before them the planner's choice. */
enum { WAYS = GC_ALGORITHMS_MAX };

/* Milliseconds by backend, way and length; NaN: not measured. */
typedef struct sweep {
    const gc_backend *backend[GC_BACKENDS];
    int backends, lengths;
    double length[LENGTHS], time[GC_BACKENDS][WAYS][LENGTHS];
} sweep;

/* Fills the ways of a backend: NULL, for the planner's choice, and the algorithms of streams. Returns their number. */
static int list_ways(const gc_backend *backend, const gc_algorithm *ways[WAYS]) {
    int count = 0;
    ways[count++] = NULL;
    for (const gc_algorithm *const *row = backend->algorithms; *row && count < WAYS; row++)
        if ((*row)->kind == GC_STREAM)
            ways[count++] = *row;
    return count;
}

/* Times every algorithm of one backend at one length, and the planner's choice. @param time receives milliseconds */
static gpuconv_status time_length(const gc_bench *b, const gc_backend *backend, gc_material *m, double time[WAYS],
                                  gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    gpuconv_config config = b->config;
    gpuconv_plan *plan;
    double slowest = HUGE_VAL;
    const gc_algorithm *ways[WAYS];
    const int count = list_ways(backend, ways);
    config.backend = backend->id;
    config.frames = m->what.frames;
    for (int a = 0; a < count && !status; a++) {
        gpuconv_error reason = {0};
        gc_bench_result r = {0};
        time[a] = (double)NAN;
        config.algorithm = ways[a] ? ways[a]->id : GPUCONV_ALGORITHM_AUTO;
        if (gpuconv_plan_new(m->ir, &config, &plan, &reason) != GPUCONV_OK)
            continue; /* this algorithm does not support the response */
        if (!ways[a])
            slowest = GC_BENCH_SLOWEST * plan->choice.predicted;
        if (plan->choice.predicted <= slowest) {
            status = gc_bench_time_plan(b, plan, m, &r, error);
            time[a] = r.seconds * 1e3;
        }
        gpuconv_plan_free(plan);
    }
    return status;
}

/* Reports the times of one backend at one length: the planner's choice, every algorithm, and the ratio of the choice to
 * the best time. */
static void report_times(const gc_bench *b, const gc_backend *backend, double length, const double time[WAYS]) {
    const gc_algorithm *ways[WAYS];
    const int count = list_ways(backend, ways);
    char text[WAYS][32];
    const char *names[WAYS + 2] = {"length"};
    double values[WAYS + 2] = {length}, best = HUGE_VAL;
    for (int a = 0; a < count; a++) {
        snprintf(text[a], sizeof text[a], "%s ms", ways[a] ? ways[a]->name : "chosen");
        names[a + 1] = text[a];
        values[a + 1] = time[a];
        best = time[a] < best ? time[a] : best;
    }
    names[count + 1] = "chosen / best";
    values[count + 1] = time[0] / best;
    gc_report_named_row(b->report, "sweep", gpuconv_backend_name(backend->id), count + 2, names, values);
}

/* Times all backends at the next length and reports a row for each. */
static gpuconv_status add_length(const gc_bench *b, sweep *s, gc_material *m, int64_t length, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    s->length[s->lengths] = (double)length;
    for (int i = 0; i < s->backends && !status; i++) {
        double time[WAYS];
        for (int a = 0; a < WAYS; a++)
            time[a] = (double)NAN;
        status = time_length(b, s->backend[i], m, time, error);
        for (int a = 0; a < WAYS; a++)
            s->time[i][a][s->lengths] = time[a];
        if (!status)
            report_times(b, s->backend[i], (double)length, time);
    }
    s->lengths++;
    return status;
}

/* Draws the times of all backends and algorithms against the length. */
static gpuconv_status draw(const sweep *s, const char *title, const char *x_label, const char *path,
                           gpuconv_error *error) {
    gc_plot p = {.title = title, .x_label = x_label, .y_label = "milliseconds", .steps = s->lengths, .x = s->length};
    char labels[GC_PLOT_SERIES][48];
    for (int i = 0; i < s->backends; i++) {
        const gc_algorithm *ways[WAYS];
        const int count = list_ways(s->backend[i], ways);
        for (int a = 0; a < count && p.series < GC_PLOT_SERIES; a++) {
            snprintf(labels[p.series], sizeof labels[0], "%s, %s", gpuconv_backend_name(s->backend[i]->id),
                     ways[a] ? ways[a]->name : "the plan's choice");
            p.label[p.series] = labels[p.series];
            p.y[p.series++] = s->time[i][a];
        }
    }
    return gc_plot_write(&p, path, error);
}

gpuconv_status gc_bench_sweep(const gc_bench *b, const gc_bench_case *base, gc_bench_axis axis, int64_t most,
                              const char *plot, gpuconv_error *error) {
    sweep s = {0};
    s.backends = gc_bench_backends(b, s.backend);
    if (!s.backends)
        return gc_bench_fail_no_backend(error);
    gpuconv_status status = GPUCONV_OK;
    for (int64_t n = axis == GC_BENCH_TAPS ? 1 : 1024; n <= most && s.lengths < LENGTHS && !status; n *= 2) {
        gc_bench_case what = *base;
        gc_material m;
        *(axis == GC_BENCH_TAPS ? &what.taps : &what.frames) = n;
        status = gc_material_new(&what, &m, error);
        if (status)
            break;
        status = add_length(b, &s, &m, n, error);
        gc_material_free(&m);
        if (!status && gc_cancelled())
            status = gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
    }
    if (status || !plot)
        return status;
    const char *x_label = axis == GC_BENCH_TAPS ? "frames of the response" : "frames of the input";
    return draw(&s, base->name, x_label, plot, error);
}
