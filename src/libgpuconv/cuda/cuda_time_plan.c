/* What a GPU can do at most, and convolutions timed on samples that lie in its memory. A sample of time is a row of
 * launches, so that what a launch costs the host hides behind the one before, as it does in use. Launches take turns
 * among several places where the samples lie, so that none finds them in the cache. */
#include "cuda_time_plan.h"

#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <string.h>

/* A row is as long as it takes to be timed well. */
enum { ROW_MOST = 48, RUNS = 10, PLACES = 3 };

/* Samples beyond this many bytes leave no cache to speak of: one place does. */
static const int64_t beyond_caches = INT64_C(1) << 28;

gpuconv_status gc_cuda_stage_init(gc_cuda_stage *s, int device) {
    *s = (gc_cuda_stage){0};
    s->failed = cudaSetDevice(device);
    if (!s->failed)
        s->failed = cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking);
    if (!s->failed)
        s->failed = cudaEventCreate(&s->begin);
    if (!s->failed)
        s->failed = cudaEventCreate(&s->end);
    return s->failed ? GPUCONV_ERROR_DEVICE : GPUCONV_OK;
}

void *gc_cuda_stage_take(gc_cuda_stage *s, int64_t bytes, int fill) {
    void *p = NULL;
    if (!s->failed && s->pieces == GC_CUDA_PIECES)
        s->failed = cudaErrorMemoryAllocation;
    if (!s->failed)
        s->failed = cudaMalloc(&p, (size_t)bytes);
    if (s->failed)
        return NULL;
    s->piece[s->pieces++] = p;
    s->failed = cudaMemset(p, fill, (size_t)bytes);
    return p;
}

void gc_cuda_stage_time(gc_cuda_stage *s, cudaError_t (*launch)(void *context, cudaStream_t stream), void *context,
                        int runs, double *seconds) {
    double start = gc_now(), passed;
    int launches = 0;
    do { /* until the clock has risen */
        if (!s->failed)
            s->failed = launch(context, s->stream);
        if (!s->failed)
            s->failed = cudaStreamSynchronize(s->stream);
        passed = gc_now() - start;
        launches++;
    } while (!s->failed && passed < 0.05);
    int row = (int)fmin(ROW_MOST, ceil(1e-3 * launches / passed));
    for (int run = 0; run < runs && !s->failed; run++) {
        float ms = 0;
        s->failed = cudaEventRecord(s->begin, s->stream);
        for (int k = 0; k < row && !s->failed; k++)
            s->failed = launch(context, s->stream);
        if (!s->failed)
            s->failed = cudaEventRecord(s->end, s->stream);
        if (!s->failed)
            s->failed = cudaEventSynchronize(s->end);
        if (!s->failed)
            s->failed = cudaEventElapsedTime(&ms, s->begin, s->end);
        seconds[run] = 1e-3 * (double)ms / row;
    }
}

gpuconv_status gc_cuda_stage_end(gc_cuda_stage *s, gpuconv_error *error) {
    if (s->stream)
        cudaStreamSynchronize(s->stream); /* what failed is known */
    while (s->pieces > 0)
        cudaFree(s->piece[--s->pieces]);
    if (s->begin)
        cudaEventDestroy(s->begin);
    if (s->end)
        cudaEventDestroy(s->end);
    if (s->stream)
        cudaStreamDestroy(s->stream);
    if (!s->failed)
        return GPUCONV_OK;
    cudaGetLastError(); /* a failed allocation is over once it was told */
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "the benchmark failed on the GPU: %s", cudaGetErrorString(s->failed));
}

/* ---- Ceilings ---------------------------------------------------------------------------------------------------- */

typedef struct load {
    float *a, *b;
    int64_t floats, stride; /* of a place */
    int blocks, places, turn;
} load;

static cudaError_t multiply_add(void *context, cudaStream_t stream) {
    load *l = context;
    return gck_ceiling_fma(l->a, l->blocks, 2048, stream);
}

static cudaError_t copy(void *context, cudaStream_t stream) {
    load *l = context;
    int64_t at = l->stride * (l->turn++ % l->places);
    return gck_ceiling_copy(l->a + at, l->b + at, l->floats, stream);
}

static cudaError_t nothing(void *context, cudaStream_t stream) {
    (void)context;
    return gck_ceiling_empty(stream);
}

static double median(double *t, int n) {
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && t[k] < t[k - 1]; k--) {
            double x = t[k];
            t[k] = t[k - 1];
            t[k - 1] = x;
        }
    return n % 2 ? t[n / 2] : (t[n / 2 - 1] + t[n / 2]) / 2;
}

/* The bus with pinned memory: to the device, from it, both at once. */
static void measure_bus(gc_cuda_stage *s, void *device_in, void *device_out, int64_t bytes, gc_ceilings *c) {
    void *up = NULL, *down = NULL;
    cudaStream_t other = NULL;
    if (!s->failed)
        s->failed = cudaHostAlloc(&up, (size_t)bytes, cudaHostAllocDefault);
    if (!s->failed)
        s->failed = cudaHostAlloc(&down, (size_t)bytes, cudaHostAllocDefault);
    if (!s->failed)
        s->failed = cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    for (int r = 0; r < RUNS; r++) {
        for (int way = 0; way < 3 && !s->failed; way++) {
            double begin = gc_now();
            if (way != 1)
                s->failed = cudaMemcpyAsync(device_in, up, (size_t)bytes, cudaMemcpyHostToDevice, s->stream);
            if (way != 0 && !s->failed)
                s->failed = cudaMemcpyAsync(down, device_out, (size_t)bytes, cudaMemcpyDeviceToHost, other);
            if (!s->failed)
                s->failed = cudaDeviceSynchronize();
            double rate = (double)bytes / (gc_now() - begin);
            double *best = way == 0 ? &c->to_device : way == 1 ? &c->from_device : &c->both_at_once;
            *best = fmax(*best, rate);
        }
    }
    if (other)
        cudaStreamDestroy(other);
    cudaFreeHost(up);
    cudaFreeHost(down);
}

gpuconv_status gc_cuda_ceilings(const gpuconv_config *config, gc_ceilings *c, gpuconv_error *error) {
    const int64_t floats = INT64_C(1) << 27, operations = 256 * 2048 * 64 * 2; /* of a block */
    gc_device device;
    gpuconv_status status = gc_backend_cuda.probe(config, &device, error);
    if (status)
        return status;
    gc_cuda_stage s;
    double seconds[RUNS];
    gc_cuda_stage_init(&s, device.number);
    *c = (gc_ceilings){0};
    load l = {.floats = floats, .places = 1, .blocks = device.multiprocessors * 32};
    l.a = gc_cuda_stage_take(&s, 4 * floats, 0);
    l.b = gc_cuda_stage_take(&s, 4 * floats, 0);
    gc_cuda_stage_time(&s, multiply_add, &l, RUNS, seconds);
    c->arithmetic = (double)operations * l.blocks / median(seconds, RUNS);
    gc_cuda_stage_time(&s, copy, &l, RUNS, seconds);
    c->copy = 8.0 * (double)floats / median(seconds, RUNS);
    gc_cuda_stage_time(&s, nothing, &l, RUNS, seconds);
    c->launch = median(seconds, RUNS);
    measure_bus(&s, l.a, l.b, INT64_C(1) << 28, c);
    return gc_cuda_stage_end(&s, error);
}

gpuconv_status gc_cuda_copy(const gpuconv_config *config, int64_t bytes, int runs, double *seconds,
                            gpuconv_error *error) {
    gc_device device;
    gpuconv_status status = gc_backend_cuda.probe(config, &device, error);
    if (status)
        return status;
    gc_cuda_stage s;
    gc_cuda_stage_init(&s, device.number);
    load l = {.floats = bytes / 4, .stride = gc_round_up(bytes / 4, 64), .places = bytes > beyond_caches ? 1 : PLACES};
    l.a = gc_cuda_stage_take(&s, l.places * l.stride * 4, 0);
    l.b = gc_cuda_stage_take(&s, l.places * l.stride * 4, 0);
    gc_cuda_stage_time(&s, copy, &l, runs, seconds);
    return gc_cuda_stage_end(&s, error);
}

/* ---- Convolutions ------------------------------------------------------------------------------------------------ */

typedef struct convolution {
    gc_cuda_convolver convolver;
    const float *in;
    float *out;
    int64_t frames, in_place, out_place; /* floats of a place */
    int places, turn;
} convolution;

static cudaError_t convolve(void *context, cudaStream_t stream) {
    convolution *c = context;
    int64_t place = c->turn++ % c->places;
    return gc_cuda_convolver_run(&c->convolver, c->in + place * c->in_place, c->out + place * c->out_place, c->frames,
                                 stream);
}

gpuconv_status gc_cuda_trial(const gpuconv_plan *plan, const float *const *in, int64_t frames, float *const *out,
                             int runs, double *seconds, gpuconv_error *error) {
    const gpuconv_ir *ir = plan->ir;
    const gc_schedule *s = &plan->schedule;
    int64_t step = s->algorithm == GPUCONV_ALGORITHM_DIRECT         ? 32
                   : s->algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE ? s->hop
                                                                    : 2 * s->hop,
            whole = gc_round_up(frames, step);
    int64_t before = gc_round_up(gc_schedule_history(s) + 32, 32), stride = before + whole;
    gpuconv_plan resident = {.ir = plan->ir, .device = plan->device, .schedule = plan->schedule, .chunk = whole};
    convolution c = {.frames = frames, .in_place = ir->inputs * stride, .out_place = ir->outputs * whole};
    c.places = 4 * c.in_place > beyond_caches ? 1 : PLACES;
    gc_cuda_stage stage;
    gc_cuda_stage_init(&stage, plan->device.number);
    float *samples = gc_cuda_stage_take(&stage, c.places * c.in_place * 4, 0);
    c.out = gc_cuda_stage_take(&stage, c.places * c.out_place * 4, 0xff); /* NaN */
    for (int i = 0; i < c.places * ir->inputs && !stage.failed; i++)
        stage.failed =
            cudaMemcpy(samples + i * stride + before, in[i % ir->inputs], (size_t)frames * 4, cudaMemcpyHostToDevice);
    c.in = samples + before;
    if (!stage.failed) {
        stage.failed = gc_cuda_convolver_init(&c.convolver, &resident, stride, whole, stage.stream);
        gc_cuda_stage_time(&stage, convolve, &c, runs, seconds);
        for (int o = 0; o < ir->outputs && !stage.failed; o++)
            stage.failed = cudaMemcpy(out[o], c.out + o * whole, (size_t)frames * 4, cudaMemcpyDeviceToHost);
        gc_cuda_convolver_free(&c.convolver);
    }
    return gc_cuda_stage_end(&stage, error);
}
