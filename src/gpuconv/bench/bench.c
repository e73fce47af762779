/* Times the cases of the documentation, or a single one, with every algorithm of every backend. */
#include "bench.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/statistics.h"
#include "libgpuconv/report/report.h"
#include "timing.h"

#include <math.h>
#include <stdio.h>

static const gc_bench_case cases[] = {
    {"2^23 x 16", INT64_C(1) << 23, 16, 1, 0},
    {"2^23 x 64", INT64_C(1) << 23, 64, 1, 0},
    {"2^23 x 512", INT64_C(1) << 23, 512, 1, 0},
    {"1 min mono x 0.4 s", 2880000, 19200, 1, 0},
    {"10 min stereo x 1.5 s", 26460000, 66150, 2, 0},
    {"10 min stereo x 10 s", 26460000, 441000, 2, 0},
    {"60 min stereo x 3 s", 172800000, 144000, 2, 0},
    {"16 x 16 x 1 s over 60 s", 2880000, 48000, 16, 16},
    {"64 x 64 x 0.5 s over 10 s", 480000, 24000, 64, 64},
    {"64 x 64 x 0.5 s over 30 s", 1440000, 24000, 64, 64},
    {"128 x 128 x 0.25 s over 10 s", 480000, 12000, 128, 128},
    {"1 x 512 x 256 over 60 s", 2880000, 256, 1, 512},
};

const gc_bench_case *gc_bench_cases(int *count) {
    *count = (int)(sizeof cases / sizeof *cases);
    return cases;
}

/* What the times of a backend are compared with. */
typedef struct bounds {
    double copy;       /* seconds that copying the same number of samples takes */
    double early_copy; /* the same, each copy starting before the previous one has ended; NaN: not on this processor */
    double arithmetic; /* peak operations per second; 0: not measured */
} bounds;

/* Reports one result. @param operations that were executed; 0: unknown */
static void report_result(const gc_bench *b, const gc_bench_case *what, const gc_bench_result *r, double operations,
                          bool chosen, const bounds *bound) {
    static const char *const names[] = {"ms",      "spread",    "GB/s",     "x copy", "x early copy",
                                        "TFLOP/s", "% of loop", "error dB", "chosen"};
    char label[160];
    double rate = operations > 0 ? operations / r->seconds : (double)NAN;
    double values[] = {r->seconds * 1e3,
                       r->spread * 1e3,
                       4.0 * (double)what->frames * (what->channels + gc_bench_outputs(what)) / r->seconds * 1e-9,
                       r->seconds / bound->copy,
                       r->seconds / bound->early_copy,
                       rate * 1e-12,
                       bound->arithmetic > 0 ? rate / bound->arithmetic * 100 : (double)NAN,
                       r->error,
                       chosen};
    snprintf(label, sizeof label, "%s: %s", what->name, r->name);
    gc_report_named_row(b->report, "convolutions", label, (int)(sizeof values / sizeof *values), names, values);
}

/* Times copying the samples on the same device in the same run, the lower bound of the time of a convolution: once with
 * each copy after the previous one, once launched early as convolutions are, if the processor does that. */
static gpuconv_status time_copies(const gc_bench *b, const gc_backend *backend, const gc_bench_case *what,
                                  bounds *bound, gpuconv_error *error) {
    const char *id = gpuconv_backend_name(backend->id);
    const int64_t bytes = 2 * what->frames * (what->channels + gc_bench_outputs(what));
    double seconds[GC_BENCH_RUNS_MOST];
    gc_bench_result plain = {.error = (double)NAN}, early = plain;
    gpuconv_status status = gc_measures_find(backend->id)->copy(&b->config, bytes, b->runs, false, seconds, error);
    if (status)
        return status;
    plain.seconds = bound->copy = gc_median(seconds, b->runs, &plain.spread);
    status = gc_measures_find(backend->id)->copy(&b->config, bytes, b->runs, true, seconds, error);
    if (status && status != GPUCONV_ERROR_UNSUPPORTED)
        return status;
    bound->early_copy = status ? (double)NAN : gc_median(seconds, b->runs, &early.spread);
    snprintf(plain.name, sizeof plain.name, "%s, a copy of the samples", id);
    report_result(b, what, &plain, 0, false, bound);
    early.seconds = bound->early_copy;
    snprintf(early.name, sizeof early.name, "%s, a copy launched early", id);
    if (!status)
        report_result(b, what, &early, 0, false, bound);
    return GPUCONV_OK;
}

/* Times every algorithm that fits the response, or the configured one. */
static gpuconv_status time_algorithms(const gc_bench *b, gpuconv_config config, gc_material *m, const bounds *bound,
                                      gpuconv_error *error) {
    const gpuconv_algorithm only = config.algorithm;
    double operations = 2.0 * (double)m->what.frames * (double)m->what.taps * gc_bench_responses(&m->what);
    gpuconv_algorithm chosen = GPUCONV_ALGORITHM_AUTO;
    double slowest = HUGE_VAL;
    gpuconv_plan *plan = NULL;
    gpuconv_status status = GPUCONV_OK;
    if (only == GPUCONV_ALGORITHM_AUTO && (status = gpuconv_plan_new(m->ir, &config, &plan, error)) == GPUCONV_OK) {
        chosen = plan->choice.algorithm->id;
        slowest = GC_BENCH_SLOWEST * plan->choice.predicted;
        gpuconv_plan_free(plan);
    }
    for (const gc_algorithm *const *row = gc_backend_find(config.backend)->algorithms; *row && !status; row++) {
        gpuconv_error reason = {0};
        gc_bench_result r = {0};
        config.algorithm = (*row)->id;
        if ((*row)->kind != GC_STREAM || (only != GPUCONV_ALGORITHM_AUTO && config.algorithm != only))
            continue;
        if (gpuconv_plan_new(m->ir, &config, &plan, &reason) != GPUCONV_OK)
            continue; /* this algorithm does not support the response */
        if (plan->choice.predicted <= slowest) {
            status = gc_bench_time_plan(b, plan, m, &r, error);
            if (!status) {
                gc_roofline_add(b, plan, &m->what, r.seconds);
                report_result(b, &m->what, &r, plan->choice.schedule.transform ? 0 : operations,
                              config.algorithm == chosen, bound);
            }
        }
        gpuconv_plan_free(plan);
        if (!status && gc_cancelled())
            status = gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
    }
    return status;
}

/* Times the reference library of a backend, FFTW or cuFFT. If it is not installed, a note says so. */
static gpuconv_status time_reference(const gc_bench *b, const gc_backend *backend, gpuconv_config config,
                                     gc_material *m, const bounds *bound, gpuconv_error *error) {
    gpuconv_plan *plan = NULL;
    gc_bench_result r = {0}, transforms = {.error = (double)NAN};
    gc_reference reference;
    double seconds[GC_BENCH_RUNS_MOST];
    gpuconv_error reason = {0};
    config.algorithm = GPUCONV_ALGORITHM_AUTO;
    gpuconv_status status = gpuconv_plan_new(m->ir, &config, &plan, error);
    if (status)
        return status;
    gc_bench_poison(m);
    const gc_timing timing = {(const float *const *)m->in, m->out, m->what.frames, b->runs, seconds};
    if (gc_measures_find(backend->id)->time_reference(plan, &timing, &reference, &reason)) {
        gc_bench_note(b, reason.message);
    } else {
        r.seconds = gc_median(seconds, b->runs, &r.spread);
        snprintf(r.name, sizeof r.name, "%s", reference.name);
        status = gc_bench_verify(b, m, &r, error);
        if (!status)
            report_result(b, &m->what, &r, 0, false, bound);
        if (!status && !isnan(reference.transforms[0])) {
            transforms.seconds = gc_median(reference.transforms, b->runs, &transforms.spread);
            snprintf(transforms.name, sizeof transforms.name, "the transforms of cuFFT alone");
            report_result(b, &m->what, &transforms, 0, false, bound);
        }
    }
    gpuconv_plan_free(plan);
    return status;
}

/* Times the material on one backend. */
static gpuconv_status convolve_on(const gc_bench *b, const gc_backend *backend, gc_material *m, gpuconv_error *error) {
    gpuconv_config config = b->config;
    config.backend = backend->id;
    config.frames = m->what.frames;
    bounds bound = {.arithmetic = b->arithmetic[backend->id]};
    gpuconv_status status = time_copies(b, backend, &m->what, &bound, error);
    if (!status)
        status = time_algorithms(b, config, m, &bound, error);
    if (!status && b->time_reference)
        status = time_reference(b, backend, config, m, &bound, error);
    return status;
}

gpuconv_status gc_bench_convolve(const gc_bench *b, const gc_bench_case *what, gpuconv_error *error) {
    const gc_backend *list[GC_BACKENDS];
    gc_material m;
    int count = gc_bench_backends(b, list);
    gpuconv_status status = count ? gc_material_new(what, &m, error) : gc_bench_fail_no_backend(error);
    if (status)
        return status;
    for (int i = 0; i < count && !status; i++)
        status = convolve_on(b, list[i], &m, error);
    gc_material_free(&m);
    return status;
}
