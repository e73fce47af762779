/* The comparison with cuFFT: overlap-save over pairs of blocks in batches of complex transforms, at the fastest of a
 * few sizes. The cuFFT library is opened at run time, so that gpuconv does not depend on it. */
#include "cuda_time_plan.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Constants of cufft.h. */
enum { C2C = 0x29, FORWARD = -1, INVERSE = 1 };

enum { SIZES = 5, RUNS_MAX = 64 };

typedef struct cufft {
    void *library;
    int (*plan)(int *handle, int points, int type, int batch);
    int (*stream)(int handle, cudaStream_t stream);
    int (*run)(int handle, float2 *in, float2 *out, int direction);
    int (*destroy)(int handle);
} cufft;

/* A convolution by cuFFT with one size of transforms. */
typedef struct convolution {
    const cufft *f;
    int handle;
    gck_matrix matrix;
    gck_reference_blocks blocks;
    float2 *spectra;
} convolution;

/* The parameters of gc_cuda_time_reference and the best result so far. */
typedef struct measurement {
    const gpuconv_plan *plan;
    const float *const *in;
    int64_t frames;
    float *const *out;
    int runs;
    double *seconds;
    double best; /* sum of `seconds` */
} measurement;

/* Opens the library and looks up its functions. Returns false if it is not installed. */
static bool open_library(cufft *f) {
    static const char *const names[] = {"libcufft.so.12", "libcufft.so.11", "libcufft.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names && !f->library; i++)
        f->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!f->library)
        return false;
    *(void **)&f->plan = dlsym(f->library, "cufftPlan1d");
    *(void **)&f->stream = dlsym(f->library, "cufftSetStream");
    *(void **)&f->run = dlsym(f->library, "cufftExecC2C");
    *(void **)&f->destroy = dlsym(f->library, "cufftDestroy");
    return f->plan && f->stream && f->run && f->destroy;
}

/* Returns the CUDA status for a status of cuFFT. */
static cudaError_t status_of(int cufft_status) {
    return cufft_status ? cudaErrorUnknown : cudaSuccess;
}

static cudaError_t convolve(void *context, cudaStream_t stream) {
    convolution *c = context;
    float2 *blocks = c->blocks.blocks;
    cudaError_t err = gck_reference_gather(&c->matrix, &c->blocks, stream);
    GC_CUDA_TRY(err, status_of(c->f->run(c->handle, blocks, blocks, FORWARD)));
    GC_CUDA_TRY(err, gck_reference_multiply(&c->matrix, &c->blocks, c->spectra, stream));
    GC_CUDA_TRY(err, status_of(c->f->run(c->handle, blocks, blocks, INVERSE)));
    return GC_CUDA_TRY(err, gck_reference_scatter(&c->matrix, &c->blocks, stream));
}

/* Computes the spectra of the response, also by cuFFT. */
static void make_spectra(gc_cuda_timer *t, convolution *c, const gpuconv_ir *ir) {
    int handle;
    cudaError_t *err = &t->resources.err;
    const int64_t points = c->blocks.points;
    float2 *host = gc_calloc(ir->planes * points, sizeof *host);
    if (!host) {
        *err = cudaErrorMemoryAllocation;
        return;
    }
    for (int p = 0; p < ir->planes; p++)
        for (int64_t k = 0; k < ir->frames; k++)
            host[p * points + k].x = gc_ir_plane(ir, p)[k] / (float)points;
    gc_cuda_timer_copy(t, c->spectra, host, ir->planes * points * (int64_t)sizeof *host, cudaMemcpyHostToDevice);
    free(host);
    if (*err || c->f->plan(&handle, (int)points, C2C, ir->planes) != 0)
        return;
    *err = status_of(c->f->stream(handle, t->stream));
    GC_CUDA_TRY(*err, status_of(c->f->run(handle, c->spectra, c->spectra, FORWARD)));
    c->f->destroy(handle);
}

/* Uploads the route of each output. */
static const gck_route *upload_routes(gc_cuda_timer *t, const gpuconv_ir *ir) {
    gck_route *route = gc_calloc(ir->outputs, sizeof *route);
    if (!route)
        GC_CUDA_TRY(t->resources.err, cudaErrorMemoryAllocation);
    for (int o = 0; route && o < ir->outputs; o++)
        route[o] = (gck_route){ir->route[o].input, ir->route[o].plane};
    const gck_route *device = gc_cuda_upload(&t->resources, route, ir->outputs * (int64_t)sizeof *route);
    free(route);
    return device;
}

/* Measures one size, and stores times and samples if it is the fastest so far. Returns false if it failed, usually
 * because the device has too little memory. */
static bool time_size(measurement *m, const cufft *f, int64_t points) {
    const gpuconv_ir *ir = m->plan->ir;
    double times[RUNS_MAX], sum = 0;
    gc_cuda_timer t;
    gc_cuda_timer_init(&t, m->plan->device.number);
    convolution c = {.f = f, .blocks = {.points = points, .hop = points - ir->frames + 1}};
    c.blocks.pairs = (m->frames + 2 * c.blocks.hop - 1) / (2 * c.blocks.hop);
    int64_t length = c.blocks.pairs * 2 * c.blocks.hop, stride = points + length;
    float *samples = gc_cuda_timer_memory(&t, ir->inputs * stride * 4, 0);
    float *result = gc_cuda_timer_memory(&t, ir->outputs * length * 4, 0xff);
    c.blocks.blocks = gc_cuda_timer_memory(&t, ir->outputs * c.blocks.pairs * points * 8, 0);
    c.spectra = gc_cuda_timer_memory(&t, ir->planes * points * 8, 0);
    for (int i = 0; i < ir->inputs && !t.resources.err; i++)
        gc_cuda_timer_copy(&t, samples + i * stride + points, m->in[i], m->frames * 4, cudaMemcpyHostToDevice);
    c.matrix = (gck_matrix){.in = t.resources.err ? NULL : samples + points,
                            .out = result,
                            .in_stride = stride,
                            .out_stride = length,
                            .inputs = ir->inputs,
                            .outputs = ir->outputs,
                            .single = 1,
                            .route = upload_routes(&t, ir)};
    bool planned = !t.resources.err && f->plan(&c.handle, (int)points, C2C, (int)(ir->outputs * c.blocks.pairs)) == 0;
    if (planned) {
        t.resources.err = status_of(f->stream(c.handle, t.stream));
        make_spectra(&t, &c, ir);
        gc_cuda_timer_run(&t, convolve, &c, m->runs, times);
        for (int r = 0; r < m->runs && !t.resources.err; r++)
            sum += times[r];
        if (!t.resources.err && sum < m->best) {
            m->best = sum;
            memcpy(m->seconds, times, (size_t)m->runs * sizeof *times);
            for (int o = 0; o < ir->outputs; o++)
                gc_cuda_timer_copy(&t, m->out[o], result + o * length, m->frames * 4, cudaMemcpyDeviceToHost);
        }
        f->destroy(c.handle);
    }
    return gc_cuda_timer_end(&t, NULL) == GPUCONV_OK && planned;
}

gpuconv_status gc_cuda_time_reference(const gpuconv_plan *plan, const float *const *in, int64_t frames,
                                      float *const *out, int runs, double *seconds, char name[64],
                                      gpuconv_error *error) {
    cufft f = {0};
    if (plan->ir->routes != plan->ir->outputs)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                       "the comparison with cuFFT supports only one route per output");
    if (!open_library(&f)) {
        if (f.library)
            dlclose(f.library);
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "cuFFT is not installed");
    }
    measurement m = {plan, in, frames, out, runs, seconds, HUGE_VAL};
    int64_t points = 1024, best_points = 0;
    while (points < 2 * plan->ir->frames)
        points *= 2;
    for (int k = 0; k < SIZES; k++, points *= 2) {
        double previous = m.best;
        if (!time_size(&m, &f, points))
            break;
        best_points = m.best < previous ? points : best_points;
    }
    dlclose(f.library);
    snprintf(name, 64, "cuFFT overlap-save, %lld points", (long long)best_points);
    return best_points ? GPUCONV_OK : gc_fail(error, GPUCONV_ERROR_DEVICE, "cuFFT failed at every size");
}
