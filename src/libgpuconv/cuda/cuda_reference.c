/*
 * The comparison with cuFFT as its best users use it: overlap-save, in two forms, each at several transform sizes; the
 * fastest counts.
 *
 *      real     cuFFT reads the overlapping blocks of the signal itself (a batch of real transforms whose inputs are
 *               `hop` apart), one kernel multiplies, one keeps the last `hop` samples of each block
 *      pairs    two blocks of the signal are the real and the imaginary part of one complex transform
 *
 * Callbacks could fuse the other kernels into the transforms; the shared library has them only as code that is compiled
 * at run time. In their place the two transforms alone are measured: no callback makes the whole faster than that.
 *
 * The library is opened at run time, so that gpuconv does not depend on it.
 */
#include "cuda_time_plan.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/module.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Constants of cufft.h. */
enum { C2C = 0x29, R2C = 0x2a, C2R = 0x2c, FORWARD = -1, INVERSE = 1 };

/* Transform sizes, in halves of the smallest power of two that is at least twice the response. */
static const int sizes[] = {2, 3, 4, 6, 8, 16};

typedef struct cufft {
    void *library;
    int (*plan)(int *handle, int rank, int *n, int *in_shape, int in_step, int in_next, int *out_shape, int out_step,
                int out_next, int type, int batch);
    int (*stream)(int handle, cudaStream_t stream);
    int (*forward)(int handle, float *in, float2 *out);
    int (*inverse)(int handle, float2 *in, float *out);
    int (*complex)(int handle, float2 *in, float2 *out, int direction);
    int (*destroy)(int handle);
} cufft;

/* A convolution by cuFFT with one size of transforms. */
typedef struct convolution {
    const cufft *f;
    int forward, inverse; /* plans: real: all blocks of one output, all blocks; pairs: the same plan of all pairs */
    bool pairs, transforms_only;
    gck_matrix matrix;
    const gck_route *host_route;
    gck_reference_blocks blocks;
    float2 *spectra;
} convolution;

/* The parameters of gc_cuda_time_reference, the samples on the device and the best result so far. */
typedef struct measurement {
    const gpuconv_plan *plan;
    const gc_timing *timing;
    int64_t front, in_stride, out_stride; /* front: zeros before the first frame of a channel */
    float *in, *result;                   /* device memory */
    double *transforms;                   /* of gc_reference */
    double best;                          /* sum over the runs */
} measurement;

/* Opens the library and looks up its functions. Returns false if it is not installed. */
static bool open_library(cufft *f) {
    static const char *const names[] = {"libcufft.so.12", "libcufft.so.11", "libcufft.so", NULL};
    f->library = gc_library_open(names, false);
    return f->library && gc_library_find(f->library, "cufftPlanMany", &f->plan) &&
           gc_library_find(f->library, "cufftSetStream", &f->stream) &&
           gc_library_find(f->library, "cufftExecR2C", &f->forward) &&
           gc_library_find(f->library, "cufftExecC2R", &f->inverse) &&
           gc_library_find(f->library, "cufftExecC2C", &f->complex) &&
           gc_library_find(f->library, "cufftDestroy", &f->destroy);
}

/* Returns the CUDA status for a status of cuFFT. */
static cudaError_t status_of(int cufft_status) {
    return cufft_status ? cudaErrorUnknown : cudaSuccess;
}

/* Queues the forward transforms of all blocks; real ones read the signal, one output at a time. */
static cudaError_t transform(const convolution *c) {
    const gck_reference_blocks *b = &c->blocks;
    cudaError_t err = cudaSuccess;
    if (c->pairs)
        return status_of(c->f->complex(c->forward, b->spectra, b->spectra, FORWARD));
    for (int o = 0; o < c->matrix.outputs; o++) {
        const float *in = c->matrix.in + c->host_route[o].input * c->matrix.in_stride - (b->points - b->hop);
        GC_CUDA_TRY(err, status_of(c->f->forward(c->forward, (float *)in, b->spectra + o * b->blocks * b->row)));
    }
    return err;
}

static cudaError_t transform_back(const convolution *c) {
    const gck_reference_blocks *b = &c->blocks;
    return status_of(c->pairs ? c->f->complex(c->forward, b->spectra, b->spectra, INVERSE)
                              : c->f->inverse(c->inverse, b->spectra, b->samples));
}

static cudaError_t convolve(void *context, cudaStream_t stream) {
    const convolution *c = context;
    const bool whole = !c->transforms_only;
    cudaError_t err = whole ? gck_reference_gather(&c->matrix, &c->blocks, stream) : cudaSuccess;
    GC_CUDA_TRY(err, transform(c));
    if (whole)
        GC_CUDA_TRY(err, gck_reference_multiply(&c->matrix, &c->blocks, c->spectra, stream));
    GC_CUDA_TRY(err, transform_back(c));
    return whole ? GC_CUDA_TRY(err, gck_reference_scatter(&c->matrix, &c->blocks, stream)) : err;
}

/* Makes a plan of `batch` transforms of a type; R2C: of blocks `next` samples apart. Returns false if it failed. */
static bool make_plan(const cufft *f, const gck_reference_blocks *b, int type, int64_t next, int64_t batch,
                      cudaStream_t stream, int *plan) {
    int n = (int)b->points, row = (int)b->row;
    const int in = type == R2C ? (int)next : row, out = type == C2R ? n : row;
    int in_shape = type == R2C ? n : row, out_shape = out;
    return f->plan(plan, 1, &n, &in_shape, 1, in, &out_shape, 1, out, type, (int)batch) == 0 &&
           f->stream(*plan, stream) == 0;
}

/* Computes the spectra of the response, also by cuFFT. */
static void make_spectra(gc_cuda_timer *t, convolution *c, const gpuconv_ir *ir) {
    int handle;
    gc_cuda_resources *r = &t->resources;
    const int64_t points = c->blocks.points, step = c->pairs ? 2 : 1, floats = ir->planes * points * step;
    float *host = gc_cuda_host_table(r, floats, sizeof *host);
    for (int p = 0; p < ir->planes && host; p++)
        for (int64_t k = 0; k < ir->frames; k++)
            host[(p * points + k) * step] = gc_ir_plane(ir, p)[k] / (float)points;
    float *device = gc_cuda_upload(r, host, floats * (int64_t)sizeof *host);
    free(host);
    if (r->err || !make_plan(c->f, &c->blocks, c->pairs ? C2C : R2C, points, ir->planes, t->stream, &handle)) {
        GC_CUDA_TRY(r->err, cudaErrorUnknown);
        return;
    }
    GC_CUDA_TRY(r->err, status_of(c->pairs ? c->f->complex(handle, (float2 *)(void *)device, c->spectra, FORWARD)
                                           : c->f->forward(handle, device, c->spectra)));
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
    const int outputs = c->matrix.outputs;
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

/* Makes the plans. Returns their number: 2, or 1 for pairs, if none failed. */
static int make_plans(convolution *c, cudaStream_t stream) {
    const gck_reference_blocks *b = &c->blocks;
    const int64_t all = c->matrix.outputs * b->blocks;
    if (c->pairs)
        return make_plan(c->f, b, C2C, 0, all, stream, &c->forward) ? 1 : 0;
    if (!make_plan(c->f, b, R2C, b->hop, b->blocks, stream, &c->forward))
        return 0;
    return make_plan(c->f, b, C2R, 0, all, stream, &c->inverse) ? 2 : 1;
}

/* Measures one size in one form. Returns false if it failed, usually because the device has too little memory. */
static bool time_size(measurement *m, const cufft *f, const gck_route *route, int64_t points, bool pairs) {
    const gpuconv_ir *ir = m->plan->ir;
    gc_cuda_timer t;
    gc_cuda_timer_init(&t, m->plan->device.number);
    convolution c = {.f = f, .pairs = pairs, .host_route = route};
    gck_reference_blocks *b = &c.blocks;
    b->points = points;
    b->hop = points - ir->frames + 1;
    if (!pairs)
        b->hop -= b->hop % 32; /* keeps blocks aligned for cuFFT and for copies of four samples */
    const int64_t step = pairs ? 2 * b->hop : b->hop;
    b->blocks = (m->timing->frames + step - 1) / step;
    b->row = pairs ? points : points / 2 + 2;
    b->spectra = gc_cuda_timer_memory(&t, ir->outputs * b->blocks * b->row * 8, 0);
    b->samples = pairs ? NULL : gc_cuda_timer_memory(&t, ir->outputs * b->blocks * points * 4, 0);
    c.spectra = gc_cuda_timer_memory(&t, ir->planes * b->row * 8, 0);
    c.matrix = (gck_matrix){.in = m->in + m->front,
                            .out = m->result,
                            .in_stride = m->in_stride,
                            .out_stride = m->out_stride,
                            .inputs = ir->inputs,
                            .outputs = ir->outputs,
                            .single = 1,
                            .route = gc_cuda_upload(&t.resources, route, ir->outputs * (int64_t)sizeof *route)};
    const int plans = t.resources.err ? 0 : make_plans(&c, t.stream);
    const bool planned = plans == (pairs ? 1 : 2);
    if (planned) {
        make_spectra(&t, &c, ir);
        time_both(m, &t, &c);
    }
    if (plans > 0)
        f->destroy(c.forward);
    if (plans > 1)
        f->destroy(c.inverse);
    return gc_cuda_timer_end(&t, NULL) == GPUCONV_OK && planned;
}

/* Times all sizes. The samples lie behind as many zeros, and before as much room, as the largest size needs.
 * Returns the fastest size and stores whether it has pairs; 0 if none worked. */
static int64_t time_sizes(measurement *m, const cufft *f, int64_t least, bool *pairs) {
    const gpuconv_ir *ir = m->plan->ir;
    int64_t best = 0;
    gc_cuda_timer samples;
    gck_route *route = gc_calloc(ir->outputs, sizeof *route);
    if (!route)
        return 0;
    for (int o = 0; o < ir->outputs; o++)
        route[o] = (gck_route){ir->route[o].input, ir->route[o].plane};
    m->front = least / 2 * sizes[sizeof sizes / sizeof *sizes - 1];
    m->out_stride = gc_round_up(m->timing->frames, 32) + 2 * m->front;
    m->in_stride = m->front + m->out_stride;
    gc_cuda_timer_init(&samples, m->plan->device.number);
    m->in = gc_cuda_timer_samples(&samples, m->timing, ir->inputs, 1, m->in_stride, m->front);
    m->result = gc_cuda_timer_memory(&samples, ir->outputs * m->out_stride * 4, 0xff);
    for (size_t k = 0; k < 2 * sizeof sizes / sizeof *sizes && !samples.resources.err; k++) {
        const int64_t points = least / 2 * sizes[k / 2];
        const double previous = m->best;
        if (time_size(m, f, route, points, k % 2) && m->best < previous) {
            best = points;
            *pairs = k % 2;
        }
    }
    free(route);
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
    bool pairs = false;
    points = time_sizes(&m, &f, points, &pairs);
    dlclose(f.library);
    snprintf(reference->name, sizeof reference->name, "cuFFT overlap-save, %s, %lld points", pairs ? "pairs" : "real",
             (long long)points);
    return points ? GPUCONV_OK : gc_fail(error, GPUCONV_ERROR_DEVICE, "cuFFT failed at every size");
}
