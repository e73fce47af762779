/*
 * Streaming on device buffers. Blocks of a power of two from 32 to 1024 frames go through a bank, whose
 * partitions grow (cuda_bank.c). Other blocks are one job each, on a window of the last taps - 1 frames and the
 * block:
 *
 *      window     |--- history ---|--- block ---|       history: the last taps - 1 frames of the window before
 */
#include "cuda_arrays.h"

#include "cuda_bank.h"
#include "cuda_device.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <stdlib.h>
#include <string.h>

typedef struct cuda_streamer {
    gpuconv_streamer base;
    gc_cuda_resources resources;
    int64_t history_frames;
    /* A bank, and its samples where the caller's are not contiguous floats. */
    gc_bank *bank;
    float *in, *out;
    /* Or one job for each block. */
    gpuconv_responses *responses;
    gc_cuda_call call; /* its plan, which does not depend on the output's type */
    float *history, *window;
} cuda_streamer;

/* ---- Creation ---------------------------------------------------------------------------------------------------- */

static void copy_response(void *context, int route, float *taps) {
    const gpuconv_rows *host = context;
    memcpy(taps, (const float *)host->data + route % host->rows * host->stride, (size_t)host->frames * sizeof *taps);
}

/* Copies the responses to host memory, as floats for the bank, by way of device memory. Returns the first error. */
static cudaError_t fetch_responses(const gpuconv_arrays *arrays, const gpuconv_rows *response, cudaStream_t stream,
                                   gpuconv_rows *host) {
    gc_cuda_resources r;
    const int64_t bytes = response->rows * response->frames * (int64_t)sizeof(float);
    gc_cuda_resources_init(&r, arrays->device);
    const gpuconv_rows to = gpuconv_rows_of_floats(gc_cuda_memory(&r, bytes), response->rows, response->frames);
    cudaError_t err = r.err;
    *host = gpuconv_rows_of_floats(gc_calloc(bytes, 1), response->rows, response->frames);
    GC_CUDA_TRY(err, host->data ? cudaSuccess : cudaErrorMemoryAllocation);
    GC_CUDA_TRY(err, gc_cuda_move(response, &to, stream));
    GC_CUDA_TRY(err, cudaMemcpyAsync(host->data, to.data, (size_t)bytes, cudaMemcpyDeviceToHost, stream));
    GC_CUDA_TRY(err, cudaStreamSynchronize(stream));
    gc_cuda_resources_free(&r);
    return err;
}

static gpuconv_status check_cuda(const cuda_streamer *s, cudaError_t err, gpuconv_error *error) {
    return gc_cuda_check_memory(error, s->base.arrays->device, err, "a streamer", s->resources.device_bytes);
}

static gpuconv_status open_bank(cuda_streamer *s, const gpuconv_rows *response, cudaStream_t stream,
                                gpuconv_error *error) {
    gpuconv_rows host = {0};
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
    free(host.data);
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
    job.signal = gpuconv_rows_of_floats(s->window, s->base.channels, window);
    job.output = gpuconv_rows_of_floats(NULL, s->base.channels, s->base.block);
    job.offset = s->history_frames;
    job.prepared = s->responses;
    return job;
}

static gpuconv_status open_window(cuda_streamer *s, const gpuconv_rows *response, cudaStream_t stream,
                                  gpuconv_error *error) {
    const int64_t window = s->history_frames + s->base.block, each = sizeof(float);
    gpuconv_status status =
        gc_cuda_new_responses(s->base.arrays, response, s->base.block, stream, &s->responses, error);
    if (status)
        return status;
    s->history = gc_cuda_memory(&s->resources, s->base.channels * s->history_frames * each);
    s->window = gc_cuda_memory(&s->resources, s->base.channels * window * each);
    const gpuconv_arrays_job job = block_job(s);
    status = gc_cuda_prepare((const gc_cuda_arrays *)s->base.arrays, &job, &s->call, error);
    if (status)
        return status;
    s->call.workspace = gc_cuda_memory(&s->resources, s->call.plan.bytes);
    GC_CUDA_TRY(s->resources.err,
                cudaMemsetAsync(s->history, 0, (size_t)(s->base.channels * s->history_frames * each), stream));
    GC_CUDA_TRY(s->resources.err, cudaStreamSynchronize(stream));
    return check_cuda(s, s->resources.err, error);
}

gpuconv_status gc_cuda_new_streamer(gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t channels,
                                    int64_t block, struct CUstream_st *stream, gpuconv_streamer **streamer,
                                    gpuconv_error *error) {
    gpuconv_status status = gc_cuda_check_current(arrays->device, error);
    cuda_streamer *s = status ? NULL : gc_calloc(1, sizeof *s);
    if (!s)
        return status ? status : gc_fail_memory(error, "a streamer");
    s->base = (gpuconv_streamer){arrays, channels, block};
    s->history_frames = response->frames - 1;
    gc_cuda_resources_init(&s->resources, arrays->device);
    const bool partitions = block >= GCK_BANK_BLOCK_MIN && block <= GCK_BANK_BLOCK_MAX && (block & (block - 1)) == 0;
    status = partitions ? open_bank(s, response, stream, error) : open_window(s, response, stream, error);
    if (status)
        gc_cuda_free_streamer(&s->base);
    else
        *streamer = &s->base;
    return status;
}

void gc_cuda_free_streamer(gpuconv_streamer *streamer) {
    cuda_streamer *s = (cuda_streamer *)streamer;
    gc_bank_cuda.free(s->bank);
    gpuconv_responses_free(s->responses);
    gc_cuda_resources_free(&s->resources);
    free(s);
}

/* ---- Use --------------------------------------------------------------------------------------------------------- */

/* Returns whether the rows are contiguous floats. */
static bool contiguous(const cuda_streamer *s, const gpuconv_rows *a) {
    return a->type == GPUCONV_SAMPLE_F32 && a->step == 1 && (a->stride == s->base.block || s->base.channels == 1);
}

static cudaError_t queue_bank(cuda_streamer *s, const gpuconv_rows *in, const gpuconv_rows *out, cudaStream_t stream) {
    const gpuconv_rows buffer_in = gpuconv_rows_of_floats(s->in, s->base.channels, s->base.block);
    const gpuconv_rows buffer_out = gpuconv_rows_of_floats(s->out, s->base.channels, s->base.block);
    const bool move_in = !contiguous(s, in), move_out = !contiguous(s, out);
    cudaError_t err = move_in ? gc_cuda_move(in, &buffer_in, stream) : cudaSuccess;
    GC_CUDA_TRY(err, gc_cuda_bank_queue(s->bank, move_in ? s->in : in->data, move_out ? s->out : out->data, stream));
    return move_out ? GC_CUDA_TRY(err, gc_cuda_move(&buffer_out, out, stream)) : err;
}

static cudaError_t queue_window(cuda_streamer *s, const gpuconv_rows *in, const gpuconv_rows *out,
                                cudaStream_t stream) {
    const int64_t before = s->history_frames, window = before + s->base.block;
    const gpuconv_rows kept = gpuconv_rows_of_floats(s->history, s->base.channels, before);
    const gpuconv_rows head = floats(s->window, s->base.channels, before, window);
    const gpuconv_rows body = floats(s->window + before, s->base.channels, s->base.block, window);
    const gpuconv_rows tail = floats(s->window + s->base.block, s->base.channels, before, window);
    gpuconv_arrays_job job = block_job(s);
    job.output = *out;
    gc_cuda_call call = s->call;
    call.job = &job;
    cudaError_t err = gc_cuda_move(&kept, &head, stream);
    GC_CUDA_TRY(err, gc_cuda_move(in, &body, stream));
    GC_CUDA_TRY(err, call.plan.algorithm->run(&call, stream));
    return GC_CUDA_TRY(err, gc_cuda_move(&tail, &kept, stream));
}

gpuconv_status gc_cuda_process(gpuconv_streamer *streamer, const gpuconv_rows *in, const gpuconv_rows *out,
                               struct CUstream_st *stream, gpuconv_error *error) {
    cuda_streamer *s = (cuda_streamer *)streamer;
    const int device = s->base.arrays->device;
    const gpuconv_status status = gc_cuda_check_current(device, error);
    if (status)
        return status;
    return gc_cuda_check(error, device, s->bank ? queue_bank(s, in, out, stream) : queue_window(s, in, out, stream));
}

gpuconv_status gc_cuda_reset(gpuconv_streamer *streamer, struct CUstream_st *stream, gpuconv_error *error) {
    cuda_streamer *s = (cuda_streamer *)streamer;
    const int device = s->base.arrays->device;
    const gpuconv_status status = gc_cuda_check_current(device, error);
    if (status)
        return status;
    const size_t bytes = (size_t)(s->base.channels * s->history_frames) * sizeof(float);
    return gc_cuda_check(error, device,
                         s->bank ? gc_cuda_bank_reset(s->bank, stream) : cudaMemsetAsync(s->history, 0, bytes, stream));
}
