/* Prepared responses: their transforms, in device memory, and their replacement in place. */
#include "cuda_arrays.h"

#include "cuda_device.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/ir/object.h"

#include <stdlib.h>

enum { ROWS_MIN = 64, DIRECT_TAPS_MAX = 8192, DIRECT_SAMPLES_MAX = 1 << 20 };

/* Makes responses without their transforms and plans these for signals of `frames` frames. Of the rows that are
 * convolved at a time there are taken to be ROWS_MIN or more: what is kept is used often, mostly with batches.
 * Returns NULL with a status in *status. */
static gc_cuda_responses *blank(const gc_cuda_arrays *cuda, const gpuconv_responses *base, int64_t frames,
                                gpuconv_status *status, gpuconv_error *error) {
    *status = gc_cuda_check_current(cuda->base.device, error);
    gc_cuda_responses *r = *status ? NULL : gc_calloc(1, sizeof *r);
    if (!r) {
        *status = *status ? *status : gc_fail_memory(error, "prepared responses");
        return NULL;
    }
    r->base = *base;
    gc_cuda_resources_init(&r->resources, cuda->base.device);
    const gc_problem problem = {
        .kind = GC_ROWS,
        .rows = {.shape = {.operation = GPUCONV_ARRAYS_CONVOLVE,
                           .routes = base->routes,
                           .rows = gc_max(base->routes.routes ? base->routes.inputs : base->rows, ROWS_MIN),
                           .batch = 1,
                           .group = 1,
                           .responses = base->rows,
                           .taps = base->taps,
                           .signal_frames = frames,
                           .output_frames = frames},
                 .spectra = true}};
    gc_rows_plan_make(&cuda->figures, &cuda->costs, &problem, &r->plan);
    return r;
}

/* Queues what fills r->samples and r->spectra, which hold what the rows have up to r->base.taps frames, and zeros
 * behind. */
static cudaError_t transform(const gc_cuda_arrays *cuda, gc_cuda_responses *r, const gpuconv_rows *from,
                             cudaStream_t stream) {
    const gpuconv_rows samples = gpuconv_rows_of_floats(r->samples, r->base.rows, r->base.taps);
    cudaError_t err = r->samples ? gc_cuda_move(from, &samples, stream) : cudaSuccess;
    return GC_CUDA_TRY(err, r->plan.algorithm->spectra(r, from, gc_rows_twiddles(cuda, &r->plan), stream));
}

/* Allocates r->spectra, and r->samples where jobs may be small enough for direct sums, and queues what fills them. */
static cudaError_t fill(const gc_cuda_arrays *cuda, gc_cuda_responses *r, const gpuconv_rows *rows,
                        cudaStream_t stream) {
    const int64_t points = r->plan.points, transforms = r->base.rows * r->plan.parts;
    if (transforms > INT64_MAX / points / (int64_t)sizeof *r->spectra)
        return cudaErrorMemoryAllocation;
    r->spectra = gc_cuda_memory(&r->resources, transforms * points * (int64_t)sizeof *r->spectra);
    if (!r->base.routes.routes && r->base.taps <= DIRECT_TAPS_MAX && r->base.rows * r->base.taps <= DIRECT_SAMPLES_MAX)
        r->samples = gc_cuda_memory(&r->resources, r->base.rows * r->base.taps * (int64_t)sizeof *r->samples);
    cudaError_t err = r->resources.err;
    return GC_CUDA_TRY(err, transform(cuda, r, rows, stream));
}

/* Stores the responses, or frees them after an error, whose status it returns. */
static gpuconv_status made(gc_cuda_responses *r, cudaError_t err, gpuconv_responses **responses, gpuconv_error *error) {
    const int device = r->base.device;
    const int64_t bytes = r->resources.device_bytes;
    if (err)
        gc_cuda_free_responses(&r->base);
    else
        *responses = &r->base;
    return err ? gc_cuda_check_memory(error, device, err, "a set of prepared responses", bytes) : GPUCONV_OK;
}

gpuconv_status gc_cuda_new_responses(const gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t frames,
                                     struct CUstream_st *stream, gpuconv_responses **responses, gpuconv_error *error) {
    const gc_cuda_arrays *cuda = (const gc_cuda_arrays *)arrays;
    const gpuconv_responses base = {&gc_rows_cuda, arrays->device, response->rows, response->frames, {0}};
    gpuconv_status status;
    gc_cuda_responses *r = blank(cuda, &base, frames, &status, error);
    if (!r)
        return status;
    cudaError_t err = fill(cuda, r, response, stream);
    GC_CUDA_TRY(err, cudaStreamSynchronize(stream));
    return made(r, err, responses, error);
}

gpuconv_status gc_cuda_update_responses(const gpuconv_arrays *arrays, gpuconv_responses *responses,
                                        const gpuconv_rows *response, struct CUstream_st *stream,
                                        gpuconv_error *error) {
    const gpuconv_status status = gc_cuda_check_current(arrays->device, error);
    return status ? status
                  : gc_cuda_check(
                        error, arrays->device,
                        transform((const gc_cuda_arrays *)arrays, (gc_cuda_responses *)responses, response, stream));
}

/* Copies the routes to the device: by output, transposed by input, and as they are. */
static cudaError_t upload_routes(gc_cuda_responses *r, const gpuconv_ir *ir) {
    const int64_t n = ir->routes, channels = ir->inputs + ir->outputs + 2;
    int *row = gc_calloc(channels, sizeof *row), *transposed_row = row ? row + ir->outputs + 1 : NULL;
    gck_route *route = gc_calloc(3 * n, sizeof *route), *transposed = route ? route + n : NULL;
    gc_cuda_resources *d = &r->resources;
    if (row && route) {
        int at = 0;
        for (int i = 0; i < ir->routes; i++) {
            route[i] = (gck_route){ir->route[i].input, ir->route[i].plane};
            route[2 * n + i] = (gck_route){ir->route[i].input, ir->route[i].output};
            row[ir->route[i].output + 1]++;
        }
        for (int o = 0; o < ir->outputs; o++)
            row[o + 1] += row[o];
        for (int input = 0; input < ir->inputs; input++) {
            for (int i = 0; i < ir->routes; i++)
                if (ir->route[i].input == input)
                    transposed[at++] = (gck_route){ir->route[i].output, ir->route[i].plane};
            transposed_row[input + 1] = at;
        }
        const int *rows = gc_cuda_upload(d, row, channels * (int64_t)sizeof *row);
        const gck_route *routes = gc_cuda_upload(d, route, 3 * n * (int64_t)sizeof *route);
        r->row = rows;
        r->transposed_row = rows ? rows + ir->outputs + 1 : NULL;
        r->route = routes;
        r->transposed_route = routes ? routes + n : NULL;
        r->ends = routes ? routes + 2 * n : NULL;
    } else {
        GC_CUDA_TRY(d->err, cudaErrorMemoryAllocation);
    }
    free(row);
    free(route);
    return d->err;
}

gpuconv_status gc_cuda_route_responses(const gpuconv_arrays *arrays, const gpuconv_ir *ir, int64_t frames,
                                       gpuconv_responses **responses, gpuconv_error *error) {
    const gc_cuda_arrays *cuda = (const gc_cuda_arrays *)arrays;
    const gpuconv_responses base = {
        &gc_rows_cuda, arrays->device, ir->planes, ir->frames, {ir->inputs, ir->outputs, ir->routes}};
    gpuconv_status status;
    gc_cuda_responses *r = blank(cuda, &base, frames, &status, error);
    if (!r)
        return status;
    gc_cuda_resources taps;
    gc_cuda_resources_init(&taps, cuda->base.device);
    float *planes = gc_cuda_upload(&taps, ir->taps, (int64_t)ir->planes * ir->frames * (int64_t)sizeof *planes);
    const gpuconv_rows rows = gpuconv_rows_of_floats(planes, ir->planes, ir->frames);
    const cudaStream_t stream = gc_cuda_stream(&taps);
    cudaError_t err = taps.err;
    GC_CUDA_TRY(err, upload_routes(r, ir));
    GC_CUDA_TRY(err, fill(cuda, r, &rows, stream));
    GC_CUDA_TRY(err, cudaStreamSynchronize(stream));
    gc_cuda_resources_free(&taps);
    return made(r, err, responses, error);
}

int64_t gc_cuda_responses_bytes(const gpuconv_responses *responses) {
    return ((const gc_cuda_responses *)responses)->resources.device_bytes;
}

void gc_cuda_free_responses(gpuconv_responses *responses) {
    gc_cuda_resources_free(&((gc_cuda_responses *)responses)->resources);
    free(responses);
}
