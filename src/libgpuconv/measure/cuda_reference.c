/*
 * The comparison with cuFFT as its best users use it: overlap-save at several transform sizes, of which the fastest
 * counts. Two blocks of the signal are the real and the imaginary part of one complex transform. Batches of real
 * transforms that read the overlapping blocks themselves were slower in every row of the record of an H200.
 *
 * Callbacks could fuse the other kernels into the transforms; the shared library has them only as code that is compiled
 * at run time. In their place the two transforms alone are measured: no callback makes the whole faster than that.
 *
 * The library is opened at run time, so that gpuconv does not depend on it.
 */
#include "cuda_timing.h"

#include "kernels/measure/measure.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/module.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Constants of cufft.h. */
enum { C2C = 0x29, FORWARD = -1, INVERSE = 1 };

/* Transform sizes, in halves of the smallest power of two that is at least twice the response. */
static const int sizes[] = {2, 3, 4, 6, 8, 16};

typedef struct cufft {
    void *library;
    int (*plan)(int *handle, int rank, int *n, int *in_shape, int in_step, int in_next, int *out_shape, int out_step,
                int out_next, int type, int batch);
    int (*stream)(int handle, cudaStream_t stream);
    int (*transform)(int handle, float2 *in, float2 *out, int direction);
    int (*destroy)(int handle);
} cufft;

/* A convolution by cuFFT with one size of transforms. */
typedef struct convolution {
    const cufft *f;
    int handle; /* plan of all transforms */
    bool transforms_only;
    gck_routes routes;
    gck_reference_blocks blocks;
    float2 *spectra;
} convolution;

/* The parameters of gc_cuda_time_reference, the samples on the device and the best result so far. */
typedef struct measurement {
    const gpuconv_plan *plan;
    const gc_timing *timing;
    int64_t front, in_stride, out_stride; /* front: zeros before the first frame of a channel */
    float *in, *result;                   /* device memory */
    const gck_route *route;               /* device memory: of each output */
    double *transforms;                   /* of gc_reference */
    double best;                          /* sum over the runs */
} measurement;

/* Opens the library and looks up its functions. Returns false if it is not installed. */
static bool open_library(cufft *f) {
    static const char *const names[] = {"libcufft.so.12", "libcufft.so.11", "libcufft.so", NULL};
    f->library = gc_library_open(names, false);
    return f->library && gc_library_find(f->library, "cufftPlanMany", &f->plan) &&
           gc_library_find(f->library, "cufftSetStream", &f->stream) &&
           gc_library_find(f->library, "cufftExecC2C", &f->transform) &&
           gc_library_find(f->library, "cufftDestroy", &f->destroy);
}

/* Makes a plan of `batch` transforms. Returns false if it failed. */
static bool make_plan(const cufft *f, int64_t points, int64_t batch, cudaStream_t stream, int *plan) {
    int n = (int)points;
    return f->plan(plan, 1, &n, &n, 1, n, &n, 1, n, C2C, (int)batch) == 0 && f->stream(*plan, stream) == 0;
}

/* Queues transforms in place. */
static cudaError_t transform(const cufft *f, int handle, float2 *at, int direction) {
    return f->transform(handle, at, at, direction) ? cudaErrorUnknown : cudaSuccess;
}

static cudaError_t convolve(void *context, cudaStream_t stream) {
    const convolution *c = context;
    const bool whole = !c->transforms_only;
    cudaError_t err = whole ? gck_reference_gather(&c->routes, &c->blocks, stream) : cudaSuccess;
    GC_CUDA_TRY(err, transform(c->f, c->handle, c->blocks.spectra, FORWARD));
    if (whole)
        GC_CUDA_TRY(err, gck_reference_multiply(&c->routes, &c->blocks, c->spectra, stream));
    GC_CUDA_TRY(err, transform(c->f, c->handle, c->blocks.spectra, INVERSE));
    return whole ? GC_CUDA_TRY(err, gck_reference_scatter(&c->routes, &c->blocks, stream)) : err;
}

/* Computes the spectra of the response, also by cuFFT. */
static void make_spectra(gc_cuda_timer *t, convolution *c, const gpuconv_ir *ir) {
    int handle;
    gc_cuda_resources *r = &t->resources;
    const int64_t points = c->blocks.points;
    float2 *host = gc_cuda_host_table(r, ir->planes * points, sizeof *host);
    for (int p = 0; p < ir->planes && host; p++)
        for (int64_t k = 0; k < ir->frames; k++)
            host[p * points + k].x = gc_ir_plane(ir, p)[k] / (float)points;
    c->spectra = gc_cuda_upload(r, host, ir->planes * points * (int64_t)sizeof *host);
    free(host);
    if (r->err || !make_plan(c->f, points, ir->planes, t->stream, &handle)) {
        GC_CUDA_TRY(r->err, cudaErrorUnknown);
        return;
    }
    GC_CUDA_TRY(r->err, transform(c->f, handle, c->spectra, FORWARD));
    GC_CUDA_TRY(r->err, cudaStreamSynchronize(t->stream));
    c->f->destroy(handle);
}

/* Measures `c` into times and returns their sum, HUGE_VAL after an error. */
static double time_runs(gc_cuda_timer *t, convolution *c, bool transforms_only, int runs, double *times) {
    double sum = 0;
    c->transforms_only = transforms_only;
    gc_cuda_timer_run(t, convolve, c, runs, times);
    for (int r = 0; r < runs && !t->resources.err; r++)
        sum += times[r];
    return t->resources.err ? HUGE_VAL : sum;
}

/* Measures the convolution and, if it is the fastest so far, stores its times and samples, and the times of its
 * transforms alone. */
static void time_both(measurement *m, gc_cuda_timer *t, convolution *c) {
    double times[GC_TIMING_RUNS_MAX];
    const int outputs = c->routes.outputs;
    gc_cuda_timer_fill(t, m->result, outputs * m->out_stride * 4, 0xff);
    double sum = time_runs(t, c, false, m->timing->runs, times);
    if (!(sum < m->best))
        return;
    m->best = sum;
    memcpy(m->timing->seconds, times, (size_t)m->timing->runs * sizeof *times);
    for (int o = 0; o < outputs; o++)
        gc_cuda_timer_copy(t, m->timing->out[o], m->result + o * m->out_stride, m->timing->frames * 4,
                           cudaMemcpyDeviceToHost);
    (void)time_runs(t, c, true, m->timing->runs, m->transforms);
}

/* Measures one size. Returns false if it failed, usually because the device has too little memory. */
static bool time_size(measurement *m, const cufft *f, int64_t points) {
    const gpuconv_ir *ir = m->plan->ir;
    gc_cuda_timer t;
    gc_cuda_timer_init(&t, m->plan->device.number);
    convolution c = {.f = f, .blocks = {.points = points, .hop = points - ir->frames + 1}};
    gck_reference_blocks *b = &c.blocks;
    b->pairs = (m->timing->frames + 2 * b->hop - 1) / (2 * b->hop);
    b->spectra = gc_cuda_timer_memory(&t, ir->outputs * b->pairs * points * 8, 0);
    c.routes = (gck_routes){.in = m->in + m->front,
                            .out = m->result,
                            .in_stride = m->in_stride,
                            .out_stride = m->out_stride,
                            .inputs = ir->inputs,
                            .outputs = ir->outputs,
                            .single = 1,
                            .route = m->route};
    const bool planned = !t.resources.err && make_plan(f, points, ir->outputs * b->pairs, t.stream, &c.handle);
    if (planned) {
        make_spectra(&t, &c, ir);
        time_both(m, &t, &c);
        f->destroy(c.handle);
    }
    return gc_cuda_timer_end(&t, NULL) == GPUCONV_OK && planned;
}

/* Uploads the route of each output. */
static const gck_route *upload_routes(gc_cuda_resources *r, const gpuconv_ir *ir) {
    gck_route *route = gc_cuda_host_table(r, ir->outputs, sizeof *route);
    for (int o = 0; o < ir->outputs && route; o++)
        route[o] = (gck_route){ir->route[o].input, ir->route[o].plane};
    const gck_route *device = gc_cuda_upload(r, route, ir->outputs * (int64_t)sizeof *route);
    free(route);
    return device;
}

/* Times all sizes. The samples lie behind as many zeros, and before as much room, as the largest size needs.
 * Returns the fastest size, 0 if none worked. */
static int64_t time_sizes(measurement *m, const cufft *f, int64_t least) {
    const gpuconv_ir *ir = m->plan->ir;
    enum { SIZES = sizeof sizes / sizeof *sizes };
    int64_t best = 0;
    gc_cuda_timer samples;
    m->front = least / 2 * sizes[SIZES - 1];
    m->out_stride = gc_round_up(m->timing->frames, 32) + 2 * m->front;
    m->in_stride = m->front + m->out_stride;
    gc_cuda_timer_init(&samples, m->plan->device.number);
    m->in = gc_cuda_timer_samples(&samples, m->timing, ir->inputs, 1, m->in_stride, m->front);
    m->result = gc_cuda_timer_memory(&samples, ir->outputs * m->out_stride * 4, 0xff);
    m->route = upload_routes(&samples.resources, ir);
    for (int k = 0; k < SIZES && !samples.resources.err; k++) {
        const int64_t points = least / 2 * sizes[k];
        const double previous = m->best;
        if (time_size(m, f, points) && m->best < previous)
            best = points;
    }
    return gc_cuda_timer_end(&samples, NULL) == GPUCONV_OK ? best : 0;
}

gpuconv_status gc_cuda_time_reference(const gpuconv_plan *plan, const gc_timing *timing, gc_reference *reference,
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
    measurement m = {.plan = plan, .timing = timing, .transforms = reference->transforms, .best = HUGE_VAL};
    int64_t points = 1024;
    while (points < 2 * plan->ir->frames)
        points *= 2;
    points = time_sizes(&m, &f, points);
    dlclose(f.library);
    snprintf(reference->name, sizeof reference->name, "cuFFT overlap-save, pairs, %lld points", (long long)points);
    return points ? GPUCONV_OK : gc_fail(error, GPUCONV_ERROR_DEVICE, "cuFFT failed at every size");
}
