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
static void choose(const gpuconv_cuda *cuda, gpuconv_cuda_responses *r, int64_t rows, int64_t frames) {
    const gc_job_shape shape = {.operation = GPUCONV_CUDA_CONVOLVE,
                                .routes = r->routes,
                                .rows = gc_max(rows, ROWS_MIN),
                                .batch = 1,
                                .group = 1,
                                .responses = r->rows,
                                .taps = r->taps,
                                .signal_frames = frames,
                                .output_frames = frames};
    gc_job_plan plan;
    gc_job_plan_make(&cuda->figures, &shape, true, NULL, &plan);
    r->transform = plan.transform;
    r->parts = gc_job_parts(plan.transform, r->taps);
}

static int64_t points_of(gc_job_transform t) {
    return t.kind == GC_JOB_CHIP ? gck_chip_query(t.size).points : gck_3pass_query(t.size).points;
}

/* Queues the copy of the responses into r->samples, with zeros up to r->taps frames. */
static cudaError_t copy_samples(gpuconv_cuda_responses *r, const gck_rows *rows, cudaStream_t stream) {
    const gck_rows to = {.data = r->samples, .frames = r->taps, .stride = r->taps, .step = 1, .sample = GCK_F32};
    return r->samples ? gck_move(rows, &to, r->rows, r->taps, stream) : cudaSuccess;
}

/* Queues the transforms into r->spectra, which hold what the rows have up to r->taps frames, and zeros behind. */
static cudaError_t transform(const gpuconv_cuda *cuda, gpuconv_cuda_responses *r, const gck_rows *rows,
                             cudaStream_t stream) {
    const int size = r->transform.size;
    const float2 *twiddles = gc_job_twiddles(cuda, r->transform);
    const int64_t points = points_of(r->transform);
    if (r->transform.kind == GC_JOB_CHIP)
        return gck_chip_spectra(size, rows, r->rows, r->taps, twiddles, r->spectra, stream);
    const int64_t part_taps = r->parts == 1 ? r->taps : points;
    const gck_3pass_blocks from = {.rows = *rows,
                                   .count = (int)r->rows,
                                   .blocks = (int)r->parts,
                                   .step = part_taps,
                                   .window = (int)part_taps,
                                   .scale = 1.0f / (float)points};
    cudaError_t err = gck_3pass_forward(size, &from, twiddles, r->spectra, stream);
    return GC_CUDA_TRY(err, gck_3pass_spectra(size, r->rows * r->parts, twiddles, r->spectra, stream));
}

/* Allocates r->spectra, and r->samples where jobs may be small enough for direct sums, and queues what fills them. */
static cudaError_t fill(const gpuconv_cuda *cuda, gpuconv_cuda_responses *r, const gck_rows *rows,
                        cudaStream_t stream) {
    const int64_t points = points_of(r->transform), transforms = r->rows * r->parts;
    if (transforms > INT64_MAX / points / (int64_t)sizeof *r->spectra)
        return cudaErrorMemoryAllocation;
    r->spectra = gc_cuda_memory(&r->resources, transforms * points * (int64_t)sizeof *r->spectra);
    if (!r->routes.routes && r->taps <= DIRECT_TAPS_MAX && r->rows * r->taps <= DIRECT_SAMPLES_MAX)
        r->samples = gc_cuda_memory(&r->resources, r->rows * r->taps * (int64_t)sizeof *r->samples);
    cudaError_t err = r->resources.err;
    GC_CUDA_TRY(err, copy_samples(r, rows, stream));
    return GC_CUDA_TRY(err, transform(cuda, r, rows, stream));
}

static gpuconv_status blank(const gpuconv_cuda *cuda, int64_t frames, gpuconv_cuda_responses **responses,
                            gpuconv_error *error) {
    *responses = NULL;
    if (frames < 1 || frames > GC_JOB_FRAMES_MAX)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "frames is %lld; use 1 to 2^40", (long long)frames);
    gpuconv_status status = gc_job_check_device(cuda->device, error);
    if (status)
        return status;
    gpuconv_cuda_responses *r = gc_calloc(1, sizeof *r);
    if (!r)
        return gc_fail_memory(error, "prepared responses");
    r->device = cuda->device;
    gc_cuda_resources_init(&r->resources, cuda->device);
    *responses = r;
    return GPUCONV_OK;
}

/* Returns the status of `err`; after an error it frees *responses. */
static gpuconv_status made(gpuconv_cuda_responses **responses, cudaError_t err, gpuconv_error *error) {
    if (!err)
        return GPUCONV_OK;
    const int device = (*responses)->device;
    const int64_t bytes = (*responses)->resources.device_bytes;
    gpuconv_cuda_responses_free(*responses);
    *responses = NULL;
    return gc_cuda_check_memory(error, device, err, "a set of prepared responses", bytes);
}

gpuconv_status gpuconv_cuda_responses_new(const gpuconv_cuda *cuda, const gpuconv_cuda_array *response, int64_t frames,
                                          struct CUstream_st *stream, gpuconv_cuda_responses **responses,
                                          gpuconv_error *error) {
    if (!gc_begin(responses, cuda && response ? cuda : NULL, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_status status = gc_job_check_array(response, "response", false, error);
    if (!status)
        status = gc_job_check_data(response, "response", error);
    if (!status)
        status = blank(cuda, frames, responses, error);
    if (status)
        return status;
    gpuconv_cuda_responses *r = *responses;
    r->rows = response->rows;
    r->taps = response->frames;
    choose(cuda, r, r->rows, frames);
    const gck_rows rows = gc_job_rows(response);
    cudaError_t err = fill(cuda, r, &rows, stream);
    return made(responses, GC_CUDA_TRY(err, cudaStreamSynchronize(stream)), error);
}

/* Returns ARGUMENT unless the array fits the object. */
static gpuconv_status check_update(const gpuconv_cuda *cuda, const gpuconv_cuda_responses *r,
                                   const gpuconv_cuda_array *response, gpuconv_error *error) {
    gpuconv_status status = gc_job_check_array(response, "response", false, error);
    if (!status)
        status = gc_job_check_data(response, "response", error);
    if (status)
        return status;
    if (r->device != cuda->device)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "responses are on device %d, cuda is of device %d", r->device,
                       cuda->device);
    if (r->routes.routes)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "responses have routes; make new ones with gpuconv_cuda_responses_route");
    if (response->rows != r->rows)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "response.rows is %lld; use %lld, as before",
                       (long long)response->rows, (long long)r->rows);
    if (response->frames > r->taps)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "response.frames is %lld; use at most %lld, for which the responses were made",
                       (long long)response->frames, (long long)r->taps);
    return gc_job_check_device(cuda->device, error);
}

gpuconv_status gpuconv_cuda_responses_update(const gpuconv_cuda *cuda, gpuconv_cuda_responses *responses,
                                             const gpuconv_cuda_array *response, struct CUstream_st *stream,
                                             gpuconv_error *error) {
    gpuconv_status status =
        cuda && responses && response ? check_update(cuda, responses, response, error) : gc_fail_null(error, __func__);
    if (status)
        return status;
    const gck_rows rows = gc_job_rows(response);
    cudaError_t err = copy_samples(responses, &rows, stream);
    return gc_cuda_check(error, cuda->device, GC_CUDA_TRY(err, transform(cuda, responses, &rows, stream)));
}

/* Copies the routes to the device: by output, transposed by input, and as they are. */
static cudaError_t upload_routes(gpuconv_cuda_responses *r, const gpuconv_ir *ir) {
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

gpuconv_status gpuconv_cuda_responses_route(const gpuconv_cuda *cuda, const gpuconv_ir *ir, int64_t frames,
                                            gpuconv_cuda_responses **responses, gpuconv_error *error) {
    if (!gc_begin(responses, cuda && ir ? cuda : NULL, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_status status = blank(cuda, frames, responses, error);
    if (status)
        return status;
    gpuconv_cuda_responses *r = *responses;
    r->rows = ir->planes;
    r->taps = ir->frames;
    r->routes = (gc_job_routes){ir->inputs, ir->outputs, ir->routes};
    choose(cuda, r, ir->inputs, frames);
    gc_cuda_resources taps;
    gc_cuda_resources_init(&taps, cuda->device);
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
    return made(responses, err, error);
}

int64_t gpuconv_cuda_responses_bytes(const gpuconv_cuda_responses *responses) {
    return responses ? responses->resources.device_bytes : 0;
}

void gpuconv_cuda_responses_free(gpuconv_cuda_responses *responses) {
    int current = -1;
    if (!responses)
        return;
    (void)cudaGetDevice(&current);
    gc_cuda_resources_free(&responses->resources);
    free(responses);
    if (current >= 0)
        (void)cudaSetDevice(current);
}
