/*
 * Measures convolutions in memory: the cases that the documentation quotes, by every algorithm; time against the length
 * of the response or the input; batches on all devices; the machine's peak rates and the drawing of a roofline.
 *
 * The material is random from a fixed seed. Every output is verified, by direct sums at some frames and by sums over
 * all of its samples, with code that the backends do not share. A plan is timed several times after a warm-up; its
 * outputs are NaN before.
 */
#include "bench.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/core/statistics.h"
#include "libgpuconv/report/plot.h"
#include "libgpuconv/report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The largest relative RMS error in dB of a correct output. */
#define GC_BENCH_ERROR_BOUND (-120.0)

/* The largest error in dB that sums over the whole output may show: it is an estimate within 6 dB. */
#define GC_BENCH_WHOLE_BOUND (-110.0)

/* An algorithm is skipped if its predicted time exceeds that of the planner's choice by this factor. */
#define GC_BENCH_SLOWEST 40.0

typedef struct gc_bench_result {
    double seconds, spread; /* median, half of the range */
    double error;           /* dB */
    char name[96];          /* backend, algorithm, transform size */
} gc_bench_result;

/* Returns the number of outputs, and of responses. */
static int outputs_of(const gc_bench_case *what) {
    return what->outputs ? what->outputs : what->channels;
}
static int responses_of(const gc_bench_case *what) {
    return what->channels * (what->outputs ? what->outputs : 1);
}

/* ---- Material ---------------------------------------------------------------------------------------------------- */

/* Allocates a zeroed plane per channel. @return NULL if memory is exhausted */
static float **planar(int channels, int64_t frames) {
    float **p = gc_calloc(channels, sizeof *p);
    for (int c = 0; p && c < channels; c++) {
        p[c] = gc_calloc(frames, sizeof **p);
        if (!p[c]) {
            for (int k = 0; k < c; k++)
                free(p[k]);
            free(p);
            return NULL;
        }
    }
    return p;
}

static void free_planar(float **p, int channels) {
    for (int c = 0; p && c < channels; c++)
        free(p[c]);
    free(p);
}

void gc_material_free(gc_material *m) {
    free_planar(m->in, m->what.channels);
    free_planar(m->out, outputs_of(&m->what));
    free_planar(m->taps, responses_of(&m->what));
    gpuconv_ir_free(m->ir);
    free(m->sums);
    *m = (gc_material){0};
}

/* Returns whether a long loop must end at frame i: checks the cancel flag every 65536 frames. */
static bool cancelled_at(int64_t i) {
    return i % 65536 == 65535 && gc_cancelled();
}

gpuconv_status gc_bench_response(const gc_bench_case *what, const float *const *taps, double rate, gpuconv_ir **ir,
                                 gpuconv_error *error) {
    gpuconv_ir *unrouted = NULL;
    if (what->outputs)
        return gpuconv_ir_new_matrix(taps, what->channels, what->outputs, what->taps, rate, ir, error);
    gpuconv_status status = gpuconv_ir_new(taps, what->channels, what->taps, rate, &unrouted, error);
    if (!status)
        status = gpuconv_ir_route(unrouted, what->channels, ir, error);
    gpuconv_ir_free(unrouted);
    return status;
}

gpuconv_status gc_material_new(const gc_bench_case *what, gc_material *m, gpuconv_error *error) {
    *m = (gc_material){.what = *what};
    uint64_t state = (uint64_t)(what->frames * 31 + what->taps) | 1;
    m->in = planar(what->channels, what->frames);
    m->out = planar(outputs_of(what), what->frames);
    m->taps = planar(responses_of(what), what->taps);
    m->sums = gc_calloc(what->channels, sizeof *m->sums);
    gpuconv_status status = m->in && m->out && m->taps && m->sums ? GPUCONV_OK : gc_fail_memory(error, "the benchmark");
    for (int c = 0; !status && c < responses_of(what); c++) {
        for (int64_t i = 0; c < what->channels && i < what->frames && !cancelled_at(i); i++)
            m->in[c][i] = gc_random_float(&state);
        for (int64_t i = 0; i < what->taps && !cancelled_at(i); i++) /* decays by 60 dB */
            m->taps[c][i] = gc_random_float(&state) * (float)exp(-6.9 * (double)i / (double)what->taps);
        if (!what->outputs) /* for a matrix they would take minutes */
            m->sums[c] = gc_point_sums_of_convolution(m->in[c], what->frames, m->taps[c], what->taps, what->frames);
        if (gc_cancelled())
            status = gc_fail_cancelled(error, "the benchmark");
    }
    if (!status)
        status = gc_bench_response(what, (const float *const *)m->taps, 48000, &m->ir, error);
    if (status)
        gc_material_free(m);
    return status;
}

/* Sums over the checked frames: expected^2, (actual - expected)^2. */
typedef struct sums {
    double expected, error;
} sums;

/* Compares the output with direct sums at both ends and at random frames. @return false if a sample is not finite */
static bool compare(const gc_material *m, sums *s) {
    enum { MOST = 160, LEAST = 12 };
    const int outputs = outputs_of(&m->what), responses = responses_of(&m->what) / outputs;
    const int checked = responses * LEAST > MOST ? LEAST : MOST / responses;
    uint64_t state = 77;
    *s = (sums){0};
    for (int c = 0; c < outputs; c++) {
        for (int64_t i = 0; i < m->what.frames && !cancelled_at(i); i++)
            if (!isfinite(m->out[c][i]))
                return false;
        for (int k = 0; k < checked && !gc_cancelled(); k++) {
            int64_t at = k == 0 ? 0 : (int64_t)(((double)gc_random_float(&state) + 0.5) * (double)(m->what.frames - 1));
            at = k == 1 ? m->what.frames - 1 : at;
            double expected = 0, actual = (double)m->out[c][at];
            for (int r = 0; r < responses; r++) {
                const int input = m->what.outputs ? r : c;
                const float *x = m->in[input], *h = m->taps[m->what.outputs ? input * outputs + c : c];
                for (int64_t i = 0; i < m->what.taps && i <= at; i++)
                    expected += (double)h[i] * (double)x[at - i];
            }
            s->expected += expected * expected;
            s->error += (actual - expected) * (actual - expected);
        }
    }
    return true;
}

/* Returns the RMS error of `out` at 160 frames of each channel in dB, relative to direct sums in doubles; infinity if a
 * sample is NaN or infinite. */
static double material_error(const gc_material *m) {
    sums s;
    return compare(m, &s) ? 10 * log10(s.error / s.expected) : (double)INFINITY;
}

/* Returns the relative error of the whole output in dB, every sample included, estimated within 6 dB by sums at a few
 * points (dsp/point_sums.h). Of a matrix: material_error. */
static double material_whole_error(const gc_material *m) {
    double error = 0, energy = 0;
    if (m->what.outputs)
        return material_error(m);
    for (int c = 0; c < m->what.channels && !gc_cancelled(); c++) {
        const gc_point_sums got = gc_point_sums_of(m->out[c], m->what.frames);
        error += gc_point_sums_distance(&got, &m->sums[c]);
        for (int64_t i = 0; i < m->what.frames; i++)
            energy += (double)m->out[c][i] * (double)m->out[c][i];
    }
    return 10 * log10(error / energy);
}

/* ---- Times of a plan --------------------------------------------------------------------------------------------- */

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

/* Fills the outputs with NaN, so that a sample that is not written is detected. */
static void poison(const gc_material *m) {
    for (int c = 0; c < outputs_of(&m->what); c++)
        memset(m->out[c], 0xff, (size_t)m->what.frames * sizeof(float));
}

/* Computes result->error. @return STATE if it exceeds the bound, CANCELLED */
static gpuconv_status verify(const gc_bench *b, const gc_material *m, gc_bench_result *r, gpuconv_error *error) {
    r->error = material_error(m);
    const double whole = material_whole_error(m);
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

/* Times a plan on the material and verifies its output. @return any status of the backend, STATE, CANCELLED */
static gpuconv_status time_plan(const gc_bench *b, const gpuconv_plan *plan, gc_material *m, gc_bench_result *r,
                                gpuconv_error *error) {
    double seconds[GC_BENCH_RUNS_MOST];
    name_plan(plan, r->name);
    poison(m);
    const gc_timing timing = {(const float *const *)m->in, m->out, m->what.frames, b->runs, seconds};
    gpuconv_status status = gc_measures_find(plan->backend->id)->time_plan(plan, &timing, error);
    if (status)
        return status;
    r->seconds = gc_median(seconds, b->runs, &r->spread);
    return verify(b, m, r, error);
}

/* ---- Cases ------------------------------------------------------------------------------------------------------- */

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

/* The peak rates and peers that the times of a backend are compared with. */
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
                       4.0 * (double)what->frames * (what->channels + outputs_of(what)) / r->seconds * 1e-9,
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
    const int64_t bytes = 2 * what->frames * (what->channels + outputs_of(what));
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
    const gpuconv_algorithm required_algorithm = config.algorithm;
    double operations = 2.0 * (double)m->what.frames * (double)m->what.taps * responses_of(&m->what);
    gpuconv_algorithm chosen = GPUCONV_ALGORITHM_AUTO;
    double slowest = HUGE_VAL;
    gpuconv_plan *plan = NULL;
    gpuconv_status status = GPUCONV_OK;
    if (required_algorithm == GPUCONV_ALGORITHM_AUTO &&
        (status = gpuconv_plan_new(m->ir, &config, &plan, error)) == GPUCONV_OK) {
        chosen = plan->choice.algorithm->id;
        slowest = GC_BENCH_SLOWEST * plan->choice.predicted;
        gpuconv_plan_free(plan);
    }
    for (const gc_algorithm *const *row = gc_backend_find(config.backend)->algorithms; *row && !status; row++) {
        gpuconv_error reason = {0};
        gc_bench_result r = {0};
        config.algorithm = (*row)->id;
        if ((*row)->kind != GC_STREAM ||
            (required_algorithm != GPUCONV_ALGORITHM_AUTO && config.algorithm != required_algorithm))
            continue;
        if (gpuconv_plan_new(m->ir, &config, &plan, &reason) != GPUCONV_OK)
            continue; /* this algorithm does not support the response */
        if (plan->choice.predicted <= slowest) {
            status = time_plan(b, plan, m, &r, error);
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
    poison(m);
    const gc_timing timing = {(const float *const *)m->in, m->out, m->what.frames, b->runs, seconds};
    if (gc_measures_find(backend->id)->time_reference(plan, &timing, &reference, &reason)) {
        gc_bench_note(b, reason.message);
    } else {
        r.seconds = gc_median(seconds, b->runs, &r.spread);
        snprintf(r.name, sizeof r.name, "%s", reference.name);
        status = verify(b, m, &r, error);
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

/* ---- Peak rates -------------------------------------------------------------------------------------------------- */

/* Reports the peak rates of one backend; a rate of 0 was not measured. */
static void report_rates(const gc_bench *b, const char *backend, const char *device, const gc_peak_rates *rates) {
    const struct {
        const char *what;
        double value;
        const char *unit;
    } rows[] = {{"multiply-add loop", rates->arithmetic * 1e-12, "TFLOP/s"},
                {"copy", rates->copy * 1e-9, "GB/s"},
                {"launch", rates->launch * 1e6, "us"},
                {"bus to the device", rates->to_device * 1e-9, "GB/s"},
                {"bus from the device", rates->from_device * 1e-9, "GB/s"},
                {"bus both ways, each", rates->both_at_once * 1e-9, "GB/s"}};
    char name[64];
    snprintf(name, sizeof name, "%s device", backend);
    gc_report_text(b->report, "ceilings", name, device);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (!(rows[k].value > 0))
            continue;
        snprintf(name, sizeof name, "%s %s", backend, rows[k].what);
        gc_report_measure(b->report, "ceilings", name, rows[k].value, rows[k].unit, 1, 0);
    }
}

gpuconv_status gc_bench_peak_rates(gc_bench *b, gpuconv_error *error) {
    const gc_backend *list[GC_BACKENDS];
    int count = gc_bench_backends(b, list);
    if (!count)
        return gc_bench_fail_no_backend(error);
    for (int i = 0; i < count; i++) {
        gc_device device;
        gc_peak_rates rates = {0};
        gpuconv_backend id = list[i]->id;
        gpuconv_status status = list[i]->probe(&b->config, &device, error);
        if (!status)
            status = gc_measures_find(list[i]->id)->peak_rates(&b->config, &rates, error);
        if (status)
            return status;
        b->arithmetic[id] = rates.arithmetic;
        b->bus[id] = rates.both_at_once;
        b->copy[id] = rates.copy;
        report_rates(b, gpuconv_backend_name(id), device.name, &rates);
    }
    return GPUCONV_OK;
}

/* ---- Roofline ---------------------------------------------------------------------------------------------------- */

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

/* ---- Lengths ----------------------------------------------------------------------------------------------------- */

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
            status = time_plan(b, plan, m, &r, error);
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
