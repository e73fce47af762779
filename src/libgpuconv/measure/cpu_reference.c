/* Reference measurement with FFTW: overlap-save with real FFTs, planned with FFTW_MEASURE, on all cores, at the fastest
 * of a few transform sizes. FFTW is loaded with dlopen, so that the library does not depend on it. */
#include "measure.h"

#include "libgpuconv/conv/plan.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/module.h"
#include "libgpuconv/core/pool.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The values of FFTW_MEASURE and FFTW_ESTIMATE. Longer transforms are planned with FFTW_ESTIMATE: measuring them takes
 * more time than it can save. */
enum { MEASURE = 0, ESTIMATE = 64 };
static const int64_t max_measured_points = INT64_C(1) << 17;

typedef float bin[2];

typedef struct fftw {
    void *library;
    void *(*forward)(int points, float *in, bin *out, unsigned flags);
    void *(*backward)(int points, bin *in, float *out, unsigned flags);
    void (*run_forward)(const void *plan, float *in, bin *out);
    void (*run_backward)(const void *plan, bin *in, float *out);
    void (*destroy)(void *plan);
} fftw;

/* An overlap-save convolution at one transform size. */
typedef struct convolution {
    const fftw *f;
    const gpuconv_plan *plan;
    const float *const *in; /* with at least one block of zeros before and after the signal */
    float *const *out;
    void *forward, *backward; /* FFTW's plans */
    bin *spectra;             /* per plane of the response */
    float *signals;           /* per worker: `points` samples */
    bin *bins;                /* per worker: one spectrum */
    int64_t points, hop, frames, blocks;
    int64_t stride; /* between spectra, rounded up: FFTW's plans need the alignment that they were made with */
} convolution;

static bool open_library(fftw *f) {
    static const char *const names[] = {"libfftw3f.so.3", "libfftw3f.so", "libfftw3f.3.dylib", NULL};
    f->library = gc_library_open(names, false);
    return f->library && gc_library_find(f->library, "fftwf_plan_dft_r2c_1d", &f->forward) &&
           gc_library_find(f->library, "fftwf_plan_dft_c2r_1d", &f->backward) &&
           gc_library_find(f->library, "fftwf_execute_dft_r2c", &f->run_forward) &&
           gc_library_find(f->library, "fftwf_execute_dft_c2r", &f->run_backward) &&
           gc_library_find(f->library, "fftwf_destroy_plan", &f->destroy);
}

/* Convolves one block of one route. */
static void convolve_block(void *context, int64_t index, int worker) {
    convolution *c = context;
    const gc_route *route = &c->plan->ir->route[index / c->blocks];
    int64_t bins = c->points / 2 + 1, at = index % c->blocks * c->hop;
    float *signal = c->signals + worker * c->points;
    bin *x = c->bins + worker * c->stride;
    const bin *h = c->spectra + route->plane * c->stride;
    memcpy(signal, c->in[route->input] + at - (c->points - c->hop), (size_t)c->points * sizeof *signal);
    c->f->run_forward(c->forward, signal, x);
    for (int64_t k = 0; k < bins; k++) {
        float re = x[k][0] * h[k][0] - x[k][1] * h[k][1], im = x[k][0] * h[k][1] + x[k][1] * h[k][0];
        x[k][0] = re;
        x[k][1] = im;
    }
    c->f->run_backward(c->backward, x, signal);
    memcpy(c->out[route->output] + at, signal + c->points - c->hop,
           (size_t)gc_min(c->hop, c->frames - at) * sizeof *signal);
}

/* Allocates the buffers, plans the FFTs and transforms the response. Returns false if that fails. */
static bool prepare(convolution *c, int threads) {
    const gpuconv_ir *ir = c->plan->ir;
    c->stride = gc_round_up(c->points / 2 + 1, 16);
    c->signals = gc_calloc(threads * c->points, sizeof *c->signals);
    c->bins = gc_calloc(threads * c->stride, sizeof *c->bins);
    c->spectra = gc_calloc(ir->planes * c->stride, sizeof *c->spectra);
    if (!c->signals || !c->bins || !c->spectra || gc_cancelled())
        return false;
    unsigned flags = c->points <= max_measured_points ? MEASURE : ESTIMATE;
    c->forward = c->f->forward((int)c->points, c->signals, c->bins, flags);
    c->backward = c->f->backward((int)c->points, c->bins, c->signals, flags);
    if (!c->forward || !c->backward)
        return false;
    for (int p = 0; p < ir->planes; p++) {
        memset(c->signals, 0, (size_t)c->points * sizeof(float));
        for (int64_t k = 0; k < ir->frames; k++)
            c->signals[k] = gc_ir_plane(ir, p)[k] / (float)c->points;
        c->f->run_forward(c->forward, c->signals, c->spectra + p * c->stride);
    }
    return true;
}

static void release(convolution *c) {
    if (c->forward)
        c->f->destroy(c->forward);
    if (c->backward)
        c->f->destroy(c->backward);
    free(c->signals);
    free(c->bins);
    free(c->spectra);
}

/* Times all runs at one size. If their sum is below *least, writes the sum there and the times into `seconds`. */
static bool time_size(convolution *c, gc_pool *pool, int runs, double *seconds, double *least) {
    double times[64], sum = 0;
    bool ok = prepare(c, gc_pool_threads(pool));
    for (int run = -1; ok && run < runs; run++) { /* run -1 warms up */
        double begin = gc_now();
        gc_pool_run(pool, convolve_block, c, c->blocks * c->plan->ir->routes);
        ok = !gc_cancelled();
        if (run >= 0)
            sum += times[run] = gc_now() - begin;
    }
    if (ok && sum < *least) {
        *least = sum;
        memcpy(seconds, times, (size_t)runs * sizeof *seconds);
    }
    release(c);
    return ok;
}

/* Times four transform sizes, from the first power of two that is at least 1024 and twice the response, and writes the
 * times of the fastest one. */
static gpuconv_status measure(const fftw *f, const gpuconv_plan *plan, const gc_timing *timing, char name[64],
                              gpuconv_error *error) {
    const gpuconv_ir *ir = plan->ir;
    const int64_t frames = timing->frames;
    int64_t least = 1024, best = 0;
    while (least < 2 * ir->frames)
        least *= 2;
    int64_t padding = 8 * least, stride = padding + frames + padding;
    float *samples = gc_calloc(ir->inputs * stride, sizeof *samples);
    const float **padded = gc_calloc(ir->inputs, sizeof *padded);
    gc_pool *pool = gc_pool_new(plan->device.threads);
    bool ok = samples && padded && pool;
    for (int c = 0; ok && c < ir->inputs; c++) {
        float *to = samples + c * stride + padding;
        memcpy(to, timing->in[c], (size_t)frames * sizeof *to);
        padded[c] = to;
    }
    double total = HUGE_VAL;
    for (int64_t points = least; ok && points <= 8 * least && points <= INT64_C(1) << 24; points *= 2) {
        double before = total;
        convolution j = {.f = f, .plan = plan, .in = padded, .out = timing->out, .points = points, .frames = frames};
        j.hop = points - ir->frames + 1;
        j.blocks = gc_divide_up(frames, j.hop);
        ok = time_size(&j, pool, timing->runs, timing->seconds, &total);
        best = total < before ? points : best;
    }
    gc_pool_free(pool);
    free(padded);
    free(samples);
    snprintf(name, 64, "FFTW overlap-save, %lld points", (long long)best);
    return ok ? GPUCONV_OK : gc_fail_memory(error, "the benchmark");
}

gpuconv_status gc_cpu_time_reference(const gpuconv_plan *plan, const gc_timing *timing, gc_reference *reference,
                                     gpuconv_error *error) {
    fftw f = {0};
    reference->transforms[0] = (double)NAN;
    gpuconv_status status;
    if (plan->ir->routes != plan->ir->outputs)
        status =
            gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "the comparison with FFTW supports only one route per output");
    else if (!open_library(&f))
        status = gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "FFTW is not installed");
    else
        status = measure(&f, plan, timing, reference->name, error);
    if (f.library)
        dlclose(f.library);
    return status;
}
