/* cuFFT as others use it, to be compared with: overlap-save over pairs of blocks in batches of complex transforms, at
 * the best of a few sizes. The library is opened when it is wanted, so that nothing of ours depends on it. */
#include "cuda_time_plan.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { C2C = 0x29, FORWARD = -1, INVERSE = 1 };

typedef struct cufft {
    void *library;
    int (*plan)(int *handle, int points, int type, int batch);
    int (*stream)(int handle, cudaStream_t stream);
    int (*run)(int handle, float2 *in, float2 *out, int direction);
    int (*destroy)(int handle);
} cufft;

typedef struct work {
    const cufft *f;
    int handle;
    gck_matrix matrix;
    int64_t points, hop, pairs;
    float2 *blocks, *spectra;
} work;

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

static cudaError_t convolve(void *context, cudaStream_t stream) {
    work *w = context;
    cudaError_t failed = gck_peer_gather(&w->matrix, w->points, w->hop, w->pairs, w->blocks, stream);
    if (!failed && w->f->run(w->handle, w->blocks, w->blocks, FORWARD) != 0)
        failed = cudaErrorUnknown;
    if (!failed)
        failed = gck_peer_multiply(&w->matrix, w->points, w->pairs, w->spectra, w->blocks, stream);
    if (!failed && w->f->run(w->handle, w->blocks, w->blocks, INVERSE) != 0)
        failed = cudaErrorUnknown;
    if (!failed)
        failed = gck_peer_scatter(&w->matrix, w->points, w->hop, w->pairs, w->blocks, stream);
    return failed;
}

/* The responses' spectra, by the library too. */
static void make_spectra(gc_cuda_stage *s, work *w, const gpuconv_ir *ir) {
    int handle;
    float2 *host = gc_calloc(ir->planes * w->points, sizeof *host);
    if (!host) {
        s->failed = cudaErrorMemoryAllocation;
        return;
    }
    for (int p = 0; p < ir->planes; p++)
        for (int64_t k = 0; k < ir->frames; k++)
            host[p * w->points + k].x = gc_ir_plane(ir, p)[k] / (float)w->points;
    if (!s->failed)
        s->failed =
            cudaMemcpy(w->spectra, host, (size_t)(ir->planes * w->points) * sizeof *host, cudaMemcpyHostToDevice);
    free(host);
    if (s->failed || w->f->plan(&handle, (int)w->points, C2C, ir->planes) != 0)
        return;
    if (w->f->stream(handle, s->stream) != 0 || w->f->run(handle, w->spectra, w->spectra, FORWARD) != 0)
        s->failed = cudaErrorUnknown;
    w->f->destroy(handle);
}

/* All runs at one size; false: no memory for it. Seconds and samples are those of the quickest size so far. */
static bool time_size(const cufft *f, const gpuconv_plan *plan, int64_t points, const float *const *in, int64_t frames,
                      float *const *out, int runs, double *seconds, double *least) {
    const gpuconv_ir *ir = plan->ir;
    double times[64], sum = 0;
    gc_cuda_stage s;
    gc_cuda_stage_init(&s, plan->device.number);
    work w = {.f = f, .points = points, .hop = points - ir->frames + 1};
    w.pairs = (frames + 2 * w.hop - 1) / (2 * w.hop);
    int64_t whole = w.pairs * 2 * w.hop, stride = points + whole;
    gck_route *route = gc_calloc(ir->outputs, sizeof *route);
    float *samples = gc_cuda_stage_take(&s, ir->inputs * stride * 4, 0);
    float *result = gc_cuda_stage_take(&s, ir->outputs * whole * 4, 0xff);
    gck_route *routes = gc_cuda_stage_take(&s, ir->outputs * (int64_t)sizeof *route, 0);
    w.blocks = gc_cuda_stage_take(&s, ir->outputs * w.pairs * points * 8, 0);
    w.spectra = gc_cuda_stage_take(&s, ir->planes * points * 8, 0);
    for (int o = 0; route && o < ir->outputs; o++)
        route[o] = (gck_route){ir->route[o].input, ir->route[o].plane};
    if (!s.failed && route)
        s.failed = cudaMemcpy(routes, route, (size_t)ir->outputs * sizeof *route, cudaMemcpyHostToDevice);
    for (int c = 0; c < ir->inputs && !s.failed; c++)
        s.failed = cudaMemcpy(samples + c * stride + points, in[c], (size_t)frames * 4, cudaMemcpyHostToDevice);
    w.matrix = (gck_matrix){.in = samples + points,
                            .out = result,
                            .in_stride = stride,
                            .out_stride = whole,
                            .inputs = ir->inputs,
                            .outputs = ir->outputs,
                            .single = 1,
                            .route = routes};
    bool planned = !s.failed && route && f->plan(&w.handle, (int)points, C2C, (int)(ir->outputs * w.pairs)) == 0;
    if (planned) {
        if (f->stream(w.handle, s.stream) != 0)
            s.failed = cudaErrorUnknown;
        make_spectra(&s, &w, ir);
        gc_cuda_stage_time(&s, convolve, &w, runs, times);
        for (int r = 0; r < runs; r++)
            sum += times[r];
        if (!s.failed && sum < *least) {
            *least = sum;
            memcpy(seconds, times, (size_t)runs * sizeof *seconds);
            for (int o = 0; o < ir->outputs && !s.failed; o++)
                s.failed = cudaMemcpy(out[o], result + o * whole, (size_t)frames * 4, cudaMemcpyDeviceToHost);
        }
        f->destroy(w.handle);
    }
    free(route);
    gpuconv_error ignored;
    return gc_cuda_stage_end(&s, &ignored) == GPUCONV_OK && planned;
}

gpuconv_status gc_cuda_peer(const gpuconv_plan *plan, const float *const *in, int64_t frames, float *const *out,
                            int runs, double *seconds, char name[64], gpuconv_error *error) {
    cufft f = {0};
    if (plan->ir->routes != plan->ir->outputs)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "the comparison with cuFFT knows one route an output only");
    if (!open_library(&f)) {
        if (f.library)
            dlclose(f.library);
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "cuFFT is not installed");
    }
    int64_t points = 1024, best = 0;
    double least = HUGE_VAL;
    while (points < 2 * plan->ir->frames)
        points *= 2;
    for (int k = 0; k < 5; k++, points *= 2) {
        double before = least;
        if (!time_size(&f, plan, points, in, frames, out, runs, seconds, &least))
            break;
        best = least < before ? points : best;
    }
    dlclose(f.library);
    snprintf(name, 64, "cuFFT overlap-save, %lld points", (long long)best);
    return best ? GPUCONV_OK : gc_fail(error, GPUCONV_ERROR_DEVICE, "cuFFT ran at no size");
}
