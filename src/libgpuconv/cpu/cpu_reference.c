/* FFTW as others use it, to be compared with: overlap-save with real transforms, planned by measuring, on all cores, at
 * the best of a few sizes. The library is opened when it is wanted, so that nothing of ours depends on it. */
#include "cpu_convolver.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* FFTW_MEASURE, and FFTW_ESTIMATE where measuring would take longer than all that it could save. */
enum { MEASURE = 0, ESTIMATE = 64 };
static const int64_t most_measured = INT64_C(1) << 17;

typedef float bin[2];

typedef struct fftw {
    void *library;
    void *(*forward)(int points, float *in, bin *out, unsigned flags);
    void *(*backward)(int points, bin *in, float *out, unsigned flags);
    void (*run_forward)(const void *plan, float *in, bin *out);
    void (*run_backward)(const void *plan, bin *in, float *out);
    void (*destroy)(void *plan);
} fftw;

typedef struct job {
    const fftw *f;
    const gpuconv_plan *plan;
    const float *const *in; /* behind `taps - 1` zeros, a block of zeros after them */
    float *const *out;
    void *forward, *backward;
    bin *spectra;   /* a plane */
    float *signals; /* a worker: points floats */
    bin *bins;      /* a worker */
    int64_t points, hop, frames, blocks;
    int64_t stride; /* between spectra: a plan wants the alignment that it was made for */
} job;

static bool open_library(fftw *f) {
    static const char *const names[] = {"libfftw3f.so.3", "libfftw3f.so", "libfftw3f.3.dylib"};
    for (size_t i = 0; i < sizeof names / sizeof *names && !f->library; i++)
        f->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!f->library)
        return false;
    *(void **)&f->forward = dlsym(f->library, "fftwf_plan_dft_r2c_1d");
    *(void **)&f->backward = dlsym(f->library, "fftwf_plan_dft_c2r_1d");
    *(void **)&f->run_forward = dlsym(f->library, "fftwf_execute_dft_r2c");
    *(void **)&f->run_backward = dlsym(f->library, "fftwf_execute_dft_c2r");
    *(void **)&f->destroy = dlsym(f->library, "fftwf_destroy_plan");
    return f->forward && f->backward && f->run_forward && f->run_backward && f->destroy;
}

static void block(void *context, int64_t index, int worker) {
    job *j = context;
    const gc_route *route = &j->plan->ir->route[index / j->blocks];
    int64_t bins = j->points / 2 + 1, at = index % j->blocks * j->hop;
    float *signal = j->signals + worker * j->points;
    bin *x = j->bins + worker * j->stride;
    const bin *h = j->spectra + route->plane * j->stride;
    memcpy(signal, j->in[route->input] + at - (j->points - j->hop), (size_t)j->points * sizeof *signal);
    j->f->run_forward(j->forward, signal, x);
    for (int64_t k = 0; k < bins; k++) {
        float re = x[k][0] * h[k][0] - x[k][1] * h[k][1], im = x[k][0] * h[k][1] + x[k][1] * h[k][0];
        x[k][0] = re;
        x[k][1] = im;
    }
    j->f->run_backward(j->backward, x, signal);
    memcpy(j->out[route->output] + at, signal + j->points - j->hop,
           (size_t)gc_min(j->hop, j->frames - at) * sizeof *signal);
}

/* All runs at one size; the seconds only where they beat those before. */
static bool time_size(job *j, gc_pool *pool, int runs, double *seconds, double *least) {
    const gpuconv_ir *ir = j->plan->ir;
    int64_t stride = gc_round_up(j->points / 2 + 1, 16);
    int threads = gc_pool_threads(pool);
    j->signals = gc_calloc(threads * j->points, sizeof *j->signals);
    j->bins = gc_calloc(threads * stride, sizeof *j->bins);
    j->spectra = gc_calloc(ir->planes * stride, sizeof *j->spectra);
    j->stride = stride;
    bool made = j->signals && j->bins && j->spectra && !gc_cancelled();
    if (made) {
        unsigned flags = j->points <= most_measured ? MEASURE : ESTIMATE;
        j->forward = j->f->forward((int)j->points, j->signals, j->bins, flags);
        j->backward = j->f->backward((int)j->points, j->bins, j->signals, flags);
        made = j->forward && j->backward;
    }
    for (int p = 0; made && p < ir->planes; p++) {
        memset(j->signals, 0, (size_t)j->points * sizeof(float));
        for (int64_t k = 0; k < ir->frames; k++)
            j->signals[k] = gc_ir_plane(ir, p)[k] / (float)j->points;
        j->f->run_forward(j->forward, j->signals, j->spectra + p * stride);
    }
    double times[64], sum = 0;
    for (int run = -1; made && run < runs; run++) {
        double begin = gc_now();
        gc_pool_run(pool, block, j, j->blocks * ir->routes);
        made = !gc_cancelled();
        if (run >= 0)
            sum += times[run] = gc_now() - begin;
    }
    if (made && sum < *least) {
        *least = sum;
        memcpy(seconds, times, (size_t)runs * sizeof *seconds);
    }
    if (j->forward)
        j->f->destroy(j->forward);
    if (j->backward)
        j->f->destroy(j->backward);
    free(j->signals);
    free(j->bins);
    free(j->spectra);
    j->forward = j->backward = NULL;
    return made;
}

static gpuconv_status measure(const fftw *f, const gpuconv_plan *plan, const float *const *in, int64_t frames,
                              float *const *out, int runs, double *seconds, char name[64], gpuconv_error *error) {
    const gpuconv_ir *ir = plan->ir;
    int64_t least = 1024, best = 0;
    while (least < 2 * ir->frames)
        least *= 2;
    int64_t front = 8 * least, stride = front + frames + front;
    float *samples = gc_calloc(ir->inputs * stride, sizeof *samples);
    const float **padded = gc_calloc(ir->inputs, sizeof *padded);
    gc_pool *pool = gc_pool_new(plan->device.threads);
    bool made = samples && padded && pool;
    for (int c = 0; made && c < ir->inputs; c++) {
        float *to = samples + c * stride + front;
        memcpy(to, in[c], (size_t)frames * sizeof *to);
        padded[c] = to;
    }
    double total = HUGE_VAL;
    for (int64_t points = least; made && points <= 8 * least && points <= INT64_C(1) << 24; points *= 2) {
        double before = total;
        job j = {.f = f, .plan = plan, .in = padded, .out = out, .points = points, .frames = frames};
        j.hop = points - ir->frames + 1;
        j.blocks = (frames + j.hop - 1) / j.hop;
        made = time_size(&j, pool, runs, seconds, &total);
        best = total < before ? points : best;
    }
    gc_pool_free(pool);
    free(padded);
    free(samples);
    snprintf(name, 64, "FFTW overlap-save, %lld points", (long long)best);
    return made ? GPUCONV_OK : gc_fail_memory(error, "the benchmark");
}

gpuconv_status gc_cpu_time_reference(const gpuconv_plan *plan, const float *const *in, int64_t frames,
                                     float *const *out, int runs, double *seconds, char name[64],
                                     gpuconv_error *error) {
    fftw f = {0};
    gpuconv_status status;
    if (plan->ir->routes != plan->ir->outputs)
        status = gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "the comparison with FFTW knows one route an output only");
    else if (!open_library(&f))
        status = gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "FFTW is not installed");
    else
        status = measure(&f, plan, in, frames, out, runs, seconds, name, error);
    if (f.library)
        dlclose(f.library);
    return status;
}
