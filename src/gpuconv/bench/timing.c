/* Times and verifies single plans. */
#include "timing.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/statistics.h"
#include "libgpuconv/report/report.h"

#include <stdio.h>
#include <string.h>

void gc_bench_note(const gc_bench *b, const char *text) {
    if (b->note)
        b->note(text);
}

int gc_bench_backends(const gc_bench *b, const gc_backend *list[GC_BACKENDS]) {
    int count = 0;
    const gc_backend *gpu = gc_backend_find(GPUCONV_BACKEND_CUDA);
    gc_device device;
    gpuconv_error reason = {0};
    if (gpu && b->config.backend != GPUCONV_BACKEND_CPU) {
        if (gpu->probe(&b->config, &device, &reason) == GPUCONV_OK)
            list[count++] = gpu;
        else
            gc_bench_note(b, reason.message);
    }
    if (b->config.backend != GPUCONV_BACKEND_CUDA)
        list[count++] = gc_backend_find(GPUCONV_BACKEND_CPU);
    return count;
}

gpuconv_status gc_bench_fail_no_backend(gpuconv_error *error) {
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "the selected backend is not available on this machine");
}

/* Writes the name of a plan for reports: backend, algorithm and transform size. */
static void name_plan(const gpuconv_plan *plan, char name[96]) {
    const char *backend = gpuconv_backend_name(plan->backend->id),
               *algorithm = gpuconv_algorithm_name(plan->choice.algorithm->id);
    if (!plan->choice.schedule.transform)
        snprintf(name, 96, "%s, %s", backend, algorithm);
    else
        snprintf(name, 96, "%s, %s, %lld points", backend, algorithm, (long long)plan->choice.schedule.transform);
}

void gc_bench_poison(const gc_material *m) {
    for (int c = 0; c < gc_bench_outputs(&m->what); c++)
        memset(m->out[c], 0xff, (size_t)m->what.frames * sizeof(float));
}

gpuconv_status gc_bench_verify(const gc_bench *b, const gc_material *m, gc_bench_result *r, gpuconv_error *error) {
    r->error = gc_material_error(m);
    const double whole = gc_material_whole_error(m);
    if (gc_cancelled())
        return gc_fail_cancelled(error, "the benchmark");
    if (r->error <= GC_BENCH_ERROR_BOUND && whole <= GC_BENCH_WHOLE_BOUND)
        return GPUCONV_OK;
    gc_report_text(b->report, "wrong", m->what.name, r->name);
    return gc_fail(
        error, GPUCONV_ERROR_STATE,
        "%s by %s is wrong: the error is %.1f dB and may be at most %g dB; over the whole output it is about "
        "%.1f dB and may be %g dB",
        m->what.name, r->name, r->error, GC_BENCH_ERROR_BOUND, whole, GC_BENCH_WHOLE_BOUND);
}

gpuconv_status gc_bench_time_plan(const gc_bench *b, const gpuconv_plan *plan, gc_material *m, gc_bench_result *r,
                                  gpuconv_error *error) {
    double seconds[GC_BENCH_RUNS_MOST];
    name_plan(plan, r->name);
    gc_bench_poison(m);
    const gc_timing timing = {(const float *const *)m->in, m->out, m->what.frames, b->runs, seconds};
    gpuconv_status status = gc_measures_find(plan->backend->id)->time_plan(plan, &timing, error);
    if (status)
        return status;
    r->seconds = gc_median(seconds, b->runs, &r->spread);
    return gc_bench_verify(b, m, r, error);
}
