/*
 * Streaming on device buffers. Blocks of a power of two from 32 to 1024 frames go through a bank, whose
 * partitions grow (cuda_bank.c). Other blocks are one job each, on a window of the last taps - 1 frames and the
 * block:
 *
 *      window     |--- history ---|--- block ---|       history: the last taps - 1 frames of the window before
 */
#include "job.h"

#include "cuda_bank.h"
#include "cuda_device.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <stdlib.h>

typedef struct cuda_streamer {
    gpuconv_streamer base;
    gc_cuda_resources resources;
    int64_t history_frames;
    /* A bank, and its samples where the caller's are not contiguous floats. */
    gc_bank *bank;
    float *in, *out;
    /* Or one job for each block. */
    gpuconv_responses *responses;
    float *history, *window;
    void *workspace;
} cuda_streamer;

/* ---- Creation ---------------------------------------------------------------------------------------------------- */

/* The responses in host memory, for the bank. */
typedef struct host_responses {
    float *taps;
    int64_t rows, frames;
} host_responses;

static void copy_response(void *context, int route, float *taps) {
    const host_responses *h = context;
    const float *from = h->taps + route % h->rows * h->frames;
    for (int64_t k = 0; k < h->frames; k++)
        taps[k] = from[k];
}

/* Copies the responses to host memory, as floats, by way of device memory. Returns the first error. */
static cudaError_t fetch_responses(const gpuconv_arrays *arrays, const gpuconv_rows *response, cudaStream_t stream,
                                   host_responses *host) {
    gc_cuda_resources r;
    const int64_t bytes = response->rows * response->frames * (int64_t)sizeof(float);
    gc_cuda_resources_init(&r, arrays->device);
    const gck_rows from = gc_job_rows(response), to = {.data = gc_cuda_memory(&r, bytes),
                                                       .frames = response->frames,
                                                       .stride = response->frames,
                                                       .step = 1,
                                                       .sample = GCK_F32};
    cudaError_t err = r.err;
    *host = (host_responses){gc_calloc(bytes, 1), response->rows, response->frames};
    GC_CUDA_TRY(err, host->taps ? cudaSuccess : cudaErrorMemoryAllocation);
    GC_CUDA_TRY(err, gck_move(&from, &to, response->rows, response->frames, stream));
    GC_CUDA_TRY(err, cudaMemcpyAsync(host->taps, to.data, (size_t)bytes, cudaMemcpyDeviceToHost, stream));
    GC_CUDA_TRY(err, cudaStreamSynchronize(stream));
    gc_cuda_resources_free(&r);
    return err;
}

static gpuconv_status check_cuda(const cuda_streamer *s, cudaError_t err, gpuconv_error *error) {
    return gc_cuda_check_memory(error, s->base.arrays->device, err, "a streamer", s->resources.device_bytes);
}

static gpuconv_status open_bank(cuda_streamer *s, const gpuconv_rows *response, cudaStream_t stream,
                                gpuconv_error *error) {
    host_responses host = {0};
    const int64_t bytes = s->base.channels * s->base.block * (int64_t)sizeof(float);
    gc_route *route = gc_calloc(s->base.channels, sizeof *route);
    gpuconv_status status = route ? check_cuda(s, fetch_responses(s->base.arrays, response, stream, &host), error)
                                  : gc_fail_memory(error, "a streamer on the GPU");
    for (int c = 0; route && c < s->base.channels; c++)
        route[c] = (gc_route){.input = c, .output = c};
    if (!status)
        status = gc_bank_cuda.open(&(gc_bank_options){.inputs = (int)s->base.channels,
                                                      .outputs = (int)s->base.channels,
                                                      .routes = (int)s->base.channels,
                                                      .route = route,
                                                      .block = (int)s->base.block,
                                                      .taps = response->frames,
                                                      .device = s->base.arrays->device,
                                                      .response = copy_response,
                                                      .context = &host},
                                   &s->bank, error);
    free(route);
    free(host.taps);
    s->in = gc_cuda_memory(&s->resources, bytes);
    s->out = gc_cuda_memory(&s->resources, bytes);
    /* The bank has run one period of silence on a stream of its own. */
    if (!status && !s->resources.err) {
        s->resources.err = gc_cuda_bank_reset(s->bank, stream);
        GC_CUDA_TRY(s->resources.err, cudaStreamSynchronize(stream));
    }
    return status ? status : check_cuda(s, s->resources.err, error);
}

static gpuconv_rows floats(float *data, int64_t rows, int64_t frames, int64_t stride) {
    return (gpuconv_rows){.data = data, .rows = rows, .frames = frames, .stride = stride, .step = 1};
}

/* Returns the job of a block without its output's memory and type. */
static gpuconv_arrays_job block_job(const cuda_streamer *s) {
    const int64_t window = s->history_frames + s->base.block;
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.signal = floats(s->window, s->base.channels, window, window);
    job.output = floats(NULL, s->base.channels, s->base.block, s->base.block);
    job.offset = s->history_frames;
    job.prepared = s->responses;
    return job;
}

static gpuconv_status open_window(cuda_streamer *s, const gpuconv_rows *response, cudaStream_t stream,
                                  gpuconv_error *error) {
    const int64_t window = s->history_frames + s->base.block, each = sizeof(float);
    gc_job_shape shape;
    gc_job_plan plan = {0};
    gpuconv_status status = gc_job_new_responses(s->base.arrays, response, s->base.block, stream, &s->responses, error);
    if (status)
        return status;
    s->history = gc_cuda_memory(&s->resources, s->base.channels * s->history_frames * each);
    s->window = gc_cuda_memory(&s->resources, s->base.channels * window * each);
    const gpuconv_arrays_job job = block_job(s);
    status = gc_job_prepare((const gc_cuda_arrays *)s->base.arrays, &job, NULL, &shape, &plan, error);
    if (status)
        return status;
    s->workspace = gc_cuda_memory(&s->resources, plan.bytes);
    GC_CUDA_TRY(s->resources.err,
                cudaMemsetAsync(s->history, 0, (size_t)(s->base.channels * s->history_frames * each), stream));
    GC_CUDA_TRY(s->resources.err, cudaStreamSynchronize(stream));
    return check_cuda(s, s->resources.err, error);
}

gpuconv_status gc_job_new_streamer(gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t channels,
                                   int64_t block, struct CUstream_st *stream, gpuconv_streamer **streamer,
                                   gpuconv_error *error) {
    gpuconv_status status = gc_job_check_device(arrays->device, error);
    cuda_streamer *s = status ? NULL : gc_calloc(1, sizeof *s);
    if (!s)
        return status ? status : gc_fail_memory(error, "a streamer");
    s->base = (gpuconv_streamer){arrays, channels, block};
    s->history_frames = response->frames - 1;
    gc_cuda_resources_init(&s->resources, arrays->device);
    const bool partitions = block >= GCK_BANK_BLOCK_MIN && block <= GCK_BANK_BLOCK_MAX && (block & (block - 1)) == 0;
    status = partitions ? open_bank(s, response, stream, error) : open_window(s, response, stream, error);
    if (status)
        gc_job_free_streamer(&s->base);
    else
        *streamer = &s->base;
    return status;
}

void gc_job_free_streamer(gpuconv_streamer *streamer) {
    cuda_streamer *s = (cuda_streamer *)streamer;
    gc_bank_cuda.free(s->bank);
    gpuconv_responses_free(s->responses);
    gc_cuda_resources_free(&s->resources);
    free(s);
}

/* ---- Use --------------------------------------------------------------------------------------------------------- */

/* Returns whether the rows are contiguous floats. */
static bool contiguous(const cuda_streamer *s, const gpuconv_rows *a) {
    return a->type == GPUCONV_SAMPLE_F32 && (a->stride == s->base.block || s->base.channels == 1);
}

static cudaError_t queue_bank(cuda_streamer *s, const gpuconv_rows *in, const gpuconv_rows *out, cudaStream_t stream) {
    const gpuconv_rows buffer_in = floats(s->in, s->base.channels, s->base.block, s->base.block);
    const gpuconv_rows buffer_out = floats(s->out, s->base.channels, s->base.block, s->base.block);
    const gck_rows from = gc_job_rows(in), to = gc_job_rows(out), own_in = gc_job_rows(&buffer_in),
                   own_out = gc_job_rows(&buffer_out);
    const bool move_in = !contiguous(s, in), move_out = !contiguous(s, out);
    cudaError_t err = move_in ? gck_move(&from, &own_in, s->base.channels, s->base.block, stream) : cudaSuccess;
    GC_CUDA_TRY(err, gc_cuda_bank_queue(s->bank, move_in ? s->in : in->data, move_out ? s->out : out->data, stream));
    return move_out ? GC_CUDA_TRY(err, gck_move(&own_out, &to, s->base.channels, s->base.block, stream)) : err;
}

static cudaError_t queue_window(cuda_streamer *s, const gpuconv_rows *in, const gpuconv_rows *out,
                                cudaStream_t stream) {
    const int64_t before = s->history_frames, window = before + s->base.block;
    const gpuconv_rows kept = floats(s->history, s->base.channels, before, before);
    const gpuconv_rows head = floats(s->window, s->base.channels, before, window);
    const gpuconv_rows body = floats(s->window + before, s->base.channels, s->base.block, window);
    const gpuconv_rows tail = floats(s->window + s->base.block, s->base.channels, before, window);
    const gck_rows from = gc_job_rows(in), history = gc_job_rows(&kept), first = gc_job_rows(&head),
                   second = gc_job_rows(&body), last = gc_job_rows(&tail);
    gpuconv_arrays_job job = block_job(s);
    job.output = *out;
    gc_job_shape shape;
    gc_job_plan plan;
    const gc_cuda_arrays *cuda = (const gc_cuda_arrays *)s->base.arrays;
    if (gc_job_prepare(cuda, &job, NULL, &shape, &plan, NULL))
        return cudaErrorInvalidValue;
    cudaError_t err = before ? gck_move(&history, &first, s->base.channels, before, stream) : cudaSuccess;
    GC_CUDA_TRY(err, gck_move(&from, &second, s->base.channels, s->base.block, stream));
    GC_CUDA_TRY(err, gc_job_run(cuda, &job, &shape, &plan, s->workspace, stream));
    return before ? GC_CUDA_TRY(err, gck_move(&last, &history, s->base.channels, before, stream)) : err;
}

gpuconv_status gc_job_process(gpuconv_streamer *streamer, const gpuconv_rows *in, const gpuconv_rows *out,
                              struct CUstream_st *stream, gpuconv_error *error) {
    cuda_streamer *s = (cuda_streamer *)streamer;
    const int device = s->base.arrays->device;
    const gpuconv_status status = gc_job_check_device(device, error);
    if (status)
        return status;
    return gc_cuda_check(error, device, s->bank ? queue_bank(s, in, out, stream) : queue_window(s, in, out, stream));
}

gpuconv_status gc_job_reset(gpuconv_streamer *streamer, struct CUstream_st *stream, gpuconv_error *error) {
    cuda_streamer *s = (cuda_streamer *)streamer;
    const int device = s->base.arrays->device;
    const gpuconv_status status = gc_job_check_device(device, error);
    if (status)
        return status;
    const size_t bytes = (size_t)(s->base.channels * s->history_frames) * sizeof(float);
    return gc_cuda_check(error, device,
                         s->bank ? gc_cuda_bank_reset(s->bank, stream) : cudaMemsetAsync(s->history, 0, bytes, stream));
}
