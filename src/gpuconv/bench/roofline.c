/* Roofline diagram: the achieved rates of convolutions against their arithmetic intensity, below the peak rates. */
#include "timing.h"

#include "libgpuconv/report/plot.h"

#include <math.h>
#include <stdio.h>

/* Returns the multiplications and additions per frame of all channels. A complex transform of n / 2 points, which
 * transforms n real values, counts as 2.5 n log2(n / 2); every input and every output has one. Each of the n / 2 bins
 * has a complex product per route and partition, and the products of an output are added. */
static double operations_per_frame(const gpuconv_plan *plan) {
    const gc_schedule *s = &plan->choice.schedule;
    const double inputs = plan->ir->inputs, outputs = plan->ir->outputs, routes = plan->ir->routes;
    if (!s->transform)
        return 2 * routes * (double)s->taps;
    const double n = (double)s->transform, products = routes * (double)s->partitions;
    return n * (2.5 * (inputs + outputs) * log2(n / 2) + 4 * products - outputs) / (double)s->hop;
}

void gc_roofline_add(const gc_bench *b, const gpuconv_plan *plan, const gc_bench_case *what, double seconds) {
    gc_roofline *r = b->roofline;
    if (!r || r->points == GC_BENCH_POINTS)
        return;
    double operations = operations_per_frame(plan);
    r->backend[r->points] = plan->backend->id;
    r->intensity[r->points] = operations / (4.0 * (plan->ir->inputs + plan->ir->outputs));
    r->rate[r->points++] = operations * (double)what->frames / seconds;
}

gpuconv_status gc_bench_draw_roofline(const gc_bench *b, const char *path, gpuconv_error *error) {
    enum { CORNERS = 21, MOST = CORNERS + GC_BENCH_POINTS };
    const gc_roofline *r = b->roofline;
    double x[MOST], y[2 * GC_BACKENDS][MOST];
    char labels[2 * GC_BACKENDS][48];
    gc_plot p = {.title = "Operations per second against operations per byte",
                 .x_label = "operations for each byte of input and output",
                 .y_label = "Gflop/s",
                 .steps = CORNERS + r->points,
                 .x = x};
    for (int i = 0; i < p.steps; i++)
        x[i] = i < CORNERS ? ldexp(1, i - 4) : r->intensity[i - CORNERS];
    for (int id = 0; id < GC_BACKENDS; id++) {
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
    return gc_plot_write(&p, path, error);
}
