/* Prepared responses: their transforms, in device memory, and their replacement in place. */
#include "job.h"

#include "cuda_device.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/ir/object.h"

#include <stdlib.h>

enum { ROWS_MIN = 64, DIRECT_TAPS_MAX = 8192, DIRECT_SAMPLES_MAX = 1 << 20 };

/* Chooses the transform for signals of `frames` frames. rows: that are convolved at a time, taken to be ROWS_MIN or
 * more: what is kept is used often, mostly with batches. */
static void choose(const gc_cuda_arrays *cuda, gc_cuda_responses *r, int64_t rows, int64_t frames) {
    const gc_job_shape shape = {.operation = GPUCONV_ARRAYS_CONVOLVE,
                                .routes = r->base.routes,
                                .rows = gc_max(rows, ROWS_MIN),
                                .batch = 1,
                                .group = 1,
                                .responses = r->base.rows,
                                .taps = r->base.taps,
                                .signal_frames = frames,
                                .output_frames = frames};
    gc_problem problem;
    gc_job_plan plan;
    gc_job_problem(&shape, true, false, NULL, &problem);
    gc_job_plan_make(&cuda->figures, &cuda->costs, &problem, &plan);
    r->transform = plan.transform;
    r->parts = gc_job_parts(plan.points, r->base.taps);
}

/* Queues the copy of the responses into r->samples, with zeros up to r->base.taps frames. */
static cudaError_t copy_samples(gc_cuda_responses *r, const gck_rows *rows, cudaStream_t stream) {
    const gck_rows to = {
        .data = r->samples, .frames = r->base.taps, .stride = r->base.taps, .step = 1, .sample = GCK_F32};
    return r->samples ? gck_move(rows, &to, r->base.rows, r->base.taps, stream) : cudaSuccess;
}

/* Queues the transforms into r->spectra, which hold what the rows have up to r->base.taps frames, and zeros behind. */
static cudaError_t transform(const gc_cuda_arrays *cuda, gc_cuda_responses *r, const gck_rows *rows,
                             cudaStream_t stream) {
    const int size = r->transform.size;
    const float2 *twiddles = gc_job_twiddles(cuda, r->transform);
    const int64_t points = gc_job_points(r->transform);
    if (r->transform.kind == GC_JOB_CHIP)
        return gck_chip_spectra(size, rows, r->base.rows, r->base.taps, twiddles, r->spectra, stream);
    const int64_t part_taps = r->parts == 1 ? r->base.taps : points;
    const gck_3pass_blocks from = {.rows = *rows,
                                   .count = (int)r->base.rows,
                                   .blocks = (int)r->parts,
                                   .step = part_taps,
                                   .window = (int)part_taps,
                                   .scale = 1.0f / (float)points};
    cudaError_t err = gck_3pass_forward(size, &from, twiddles, r->spectra, stream);
    return GC_CUDA_TRY(err, gck_3pass_spectra(size, r->base.rows * r->parts, twiddles, r->spectra, stream));
}

/* Allocates r->spectra, and r->samples where jobs may be small enough for direct sums, and queues what fills them. */
static cudaError_t fill(const gc_cuda_arrays *cuda, gc_cuda_responses *r, const gck_rows *rows, cudaStream_t stream) {
    const int64_t points = gc_job_points(r->transform), transforms = r->base.rows * r->parts;
    if (transforms > INT64_MAX / points / (int64_t)sizeof *r->spectra)
        return cudaErrorMemoryAllocation;
    r->spectra = gc_cuda_memory(&r->resources, transforms * points * (int64_t)sizeof *r->spectra);
    if (!r->base.routes.routes && r->base.taps <= DIRECT_TAPS_MAX && r->base.rows * r->base.taps <= DIRECT_SAMPLES_MAX)
        r->samples = gc_cuda_memory(&r->resources, r->base.rows * r->base.taps * (int64_t)sizeof *r->samples);
    cudaError_t err = r->resources.err;
    GC_CUDA_TRY(err, copy_samples(r, rows, stream));
    return GC_CUDA_TRY(err, transform(cuda, r, rows, stream));
}

/* Makes responses without their transforms. Returns NULL with a status in *status. */
static gc_cuda_responses *blank(const gc_cuda_arrays *cuda, int64_t rows, int64_t taps, gc_job_routes routes,
                                gpuconv_status *status, gpuconv_error *error) {
    *status = gc_job_check_device(cuda->base.device, error);
    gc_cuda_responses *r = *status ? NULL : gc_calloc(1, sizeof *r);
    if (!r) {
        *status = *status ? *status : gc_fail_memory(error, "prepared responses");
        return NULL;
    }
    r->base = (gpuconv_responses){&gc_rows_cuda, cuda->base.device, rows, taps, routes};
    gc_cuda_resources_init(&r->resources, cuda->base.device);
    return r;
}

/* Stores the responses, or frees them after an error, whose status it returns. */
static gpuconv_status made(gc_cuda_responses *r, cudaError_t err, gpuconv_responses **responses, gpuconv_error *error) {
    const int device = r->base.device;
    const int64_t bytes = r->resources.device_bytes;
    if (err)
        gc_job_free_responses(&r->base);
    else
        *responses = &r->base;
    return err ? gc_cuda_check_memory(error, device, err, "a set of prepared responses", bytes) : GPUCONV_OK;
}

gpuconv_status gc_job_new_responses(const gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t frames,
                                    struct CUstream_st *stream, gpuconv_responses **responses, gpuconv_error *error) {
    const gc_cuda_arrays *cuda = (const gc_cuda_arrays *)arrays;
    gpuconv_status status;
    gc_cuda_responses *r = blank(cuda, response->rows, response->frames, (gc_job_routes){0}, &status, error);
    if (!r)
        return status;
    choose(cuda, r, r->base.rows, frames);
    const gck_rows rows = gc_job_rows(response);
    cudaError_t err = fill(cuda, r, &rows, stream);
    GC_CUDA_TRY(err, cudaStreamSynchronize(stream));
    return made(r, err, responses, error);
}

gpuconv_status gc_job_update_responses(const gpuconv_arrays *arrays, gpuconv_responses *responses,
                                       const gpuconv_rows *response, struct CUstream_st *stream, gpuconv_error *error) {
    gc_cuda_responses *r = (gc_cuda_responses *)responses;
    const gpuconv_status status = gc_job_check_device(arrays->device, error);
    if (status)
        return status;
    const gck_rows rows = gc_job_rows(response);
    cudaError_t err = copy_samples(r, &rows, stream);
    return gc_cuda_check(error, arrays->device,
                         GC_CUDA_TRY(err, transform((const gc_cuda_arrays *)arrays, r, &rows, stream)));
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

gpuconv_status gc_job_route_responses(const gpuconv_arrays *arrays, const gpuconv_ir *ir, int64_t frames,
                                      gpuconv_responses **responses, gpuconv_error *error) {
    const gc_cuda_arrays *cuda = (const gc_cuda_arrays *)arrays;
    const gc_job_routes shape = {ir->inputs, ir->outputs, ir->routes};
    gpuconv_status status;
    gc_cuda_responses *r = blank(cuda, ir->planes, ir->frames, shape, &status, error);
    if (!r)
        return status;
    choose(cuda, r, ir->inputs, frames);
    gc_cuda_resources taps;
    gc_cuda_resources_init(&taps, cuda->base.device);
    const gck_rows rows = {
        .data = gc_cuda_upload(&taps, ir->taps, (int64_t)ir->planes * ir->frames * (int64_t)sizeof(float)),
        .frames = ir->frames,
        .stride = ir->frames,
        .step = 1,
        .sample = GCK_F32};
    const cudaStream_t stream = gc_cuda_stream(&taps);
    cudaError_t err = taps.err;
    GC_CUDA_TRY(err, upload_routes(r, ir));
    GC_CUDA_TRY(err, fill(cuda, r, &rows, stream));
    GC_CUDA_TRY(err, cudaStreamSynchronize(stream));
    gc_cuda_resources_free(&taps);
    return made(r, err, responses, error);
}

int64_t gc_job_responses_bytes(const gpuconv_responses *responses) {
    return ((const gc_cuda_responses *)responses)->resources.device_bytes;
}

void gc_job_free_responses(gpuconv_responses *responses) {
    gc_cuda_resources_free(&((gc_cuda_responses *)responses)->resources);
    free(responses);
}
