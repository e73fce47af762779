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

#define BLOCK_MAX (INT64_C(1) << 30)
enum { CHANNELS_MAX = 1 << 20 };

struct gpuconv_cuda_streamer {
    const gpuconv_cuda *cuda;
    gc_cuda_resources resources;
    int64_t channels, block, history_frames;
    /* A bank, and its samples where the caller's are not contiguous floats. */
    gc_bank *bank;
    float *in, *out;
    /* Or one job for each block. */
    gpuconv_cuda_responses *responses;
    float *history, *window;
    void *workspace;
    size_t workspace_bytes;
};

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
static cudaError_t fetch_responses(const gpuconv_cuda *cuda, const gpuconv_cuda_array *response, cudaStream_t stream,
                                   host_responses *host) {
    gc_cuda_resources r;
    const int64_t bytes = response->rows * response->frames * (int64_t)sizeof(float);
    gc_cuda_resources_init(&r, cuda->device);
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

static gpuconv_status check_cuda(const gpuconv_cuda_streamer *s, cudaError_t err, gpuconv_error *error) {
    return gc_cuda_check_memory(error, s->cuda->device, err, "a streamer", s->resources.device_bytes);
}

static gpuconv_status open_bank(gpuconv_cuda_streamer *s, const gpuconv_cuda_array *response, cudaStream_t stream,
                                gpuconv_error *error) {
    host_responses host = {0};
    const int64_t bytes = s->channels * s->block * (int64_t)sizeof(float);
    gc_route *route = gc_calloc(s->channels, sizeof *route);
    gpuconv_status status = route ? check_cuda(s, fetch_responses(s->cuda, response, stream, &host), error)
                                  : gc_fail_memory(error, "a streamer on the GPU");
    for (int c = 0; route && c < s->channels; c++)
        route[c] = (gc_route){.input = c, .output = c};
    if (!status)
        status = gc_bank_cuda.open(&(gc_bank_options){.inputs = (int)s->channels,
                                                      .outputs = (int)s->channels,
                                                      .routes = (int)s->channels,
                                                      .route = route,
                                                      .block = (int)s->block,
                                                      .taps = response->frames,
                                                      .device = s->cuda->device,
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

static gpuconv_cuda_array floats(float *data, int64_t rows, int64_t frames, int64_t stride) {
    return (gpuconv_cuda_array){.data = data, .rows = rows, .frames = frames, .stride = stride};
}

/* Returns the job of a block without its output's memory and type. */
static gpuconv_cuda_job block_job(const gpuconv_cuda_streamer *s) {
    const int64_t window = s->history_frames + s->block;
    gpuconv_cuda_job job = gpuconv_cuda_job_default();
    job.signal = floats(s->window, s->channels, window, window);
    job.output = floats(NULL, s->channels, s->block, s->block);
    job.offset = s->history_frames;
    job.prepared = s->responses;
    return job;
}

static gpuconv_status open_window(gpuconv_cuda_streamer *s, const gpuconv_cuda_array *response, cudaStream_t stream,
                                  gpuconv_error *error) {
    const int64_t window = s->history_frames + s->block, each = sizeof(float);
    gpuconv_status status = gpuconv_cuda_responses_new(s->cuda, response, s->block, stream, &s->responses, error);
    if (status)
        return status;
    s->history = gc_cuda_memory(&s->resources, s->channels * s->history_frames * each);
    s->window = gc_cuda_memory(&s->resources, s->channels * window * each);
    const gpuconv_cuda_job job = block_job(s);
    status = gpuconv_cuda_workspace(s->cuda, &job, &s->workspace_bytes, error);
    if (status)
        return status;
    s->workspace = gc_cuda_memory(&s->resources, (int64_t)s->workspace_bytes);
    GC_CUDA_TRY(s->resources.err,
                cudaMemsetAsync(s->history, 0, (size_t)(s->channels * s->history_frames * each), stream));
    GC_CUDA_TRY(s->resources.err, cudaStreamSynchronize(stream));
    return check_cuda(s, s->resources.err, error);
}

gpuconv_status gpuconv_cuda_streamer_new(const gpuconv_cuda *cuda, const gpuconv_cuda_array *response, int64_t channels,
                                         int64_t block, struct CUstream_st *stream, gpuconv_cuda_streamer **streamer,
                                         gpuconv_error *error) {
    if (!gc_begin(streamer, cuda && response ? cuda : NULL, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_status status = gc_job_check_array(response, "response", false, error);
    if (!status)
        status = gc_job_check_data(response, "response", error);
    if (!status)
        status = gc_job_check_device(cuda->device, error);
    if (status)
        return status;
    if (channels < 1 || channels > CHANNELS_MAX)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "channels is %lld; use 1 to %d", (long long)channels,
                       CHANNELS_MAX);
    if (block < 1 || block > BLOCK_MAX)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "block is %lld; use 1 to 2^30 frames", (long long)block);
    if (response->starts || response->lengths)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "response.%s is given; use rows of equal length and a stride",
                       response->starts ? "starts" : "lengths");
    gpuconv_cuda_streamer *s = gc_calloc(1, sizeof *s);
    if (!s)
        return gc_fail_memory(error, "a streamer");
    s->cuda = cuda;
    s->channels = channels;
    s->block = block;
    s->history_frames = response->frames - 1;
    gc_cuda_resources_init(&s->resources, cuda->device);
    const bool partitions = block >= GCK_BANK_BLOCK_MIN && block <= GCK_BANK_BLOCK_MAX && (block & (block - 1)) == 0;
    status = partitions ? open_bank(s, response, stream, error) : open_window(s, response, stream, error);
    if (status)
        gpuconv_cuda_streamer_free(s);
    else
        *streamer = s;
    return status;
}

void gpuconv_cuda_streamer_free(gpuconv_cuda_streamer *streamer) {
    int current = -1;
    if (!streamer)
        return;
    (void)cudaGetDevice(&current);
    gc_bank_cuda.free(streamer->bank);
    gpuconv_cuda_responses_free(streamer->responses);
    gc_cuda_resources_free(&streamer->resources);
    free(streamer);
    if (current >= 0)
        (void)cudaSetDevice(current);
}

/* ---- Use --------------------------------------------------------------------------------------------------------- */

static gpuconv_status check_block(const gpuconv_cuda_streamer *s, const gpuconv_cuda_array *a, const char *name,
                                  bool written, gpuconv_error *error) {
    gpuconv_status status = gc_job_check_array(a, name, written, error);
    if (!status)
        status = gc_job_check_data(a, name, error);
    if (status)
        return status;
    if (a->rows != s->channels || a->frames != s->block)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s has %lld rows of %lld frames; use %lld rows of %lld", name,
                       (long long)a->rows, (long long)a->frames, (long long)s->channels, (long long)s->block);
    if (a->starts || a->lengths)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s.%s is given; use a stride and whole blocks", name,
                       a->starts ? "starts" : "lengths");
    return GPUCONV_OK;
}

/* Returns whether the rows are contiguous floats. */
static bool contiguous(const gpuconv_cuda_streamer *s, const gpuconv_cuda_array *a) {
    return a->type == GPUCONV_CUDA_F32 && (a->stride == s->block || s->channels == 1);
}

static cudaError_t queue_bank(gpuconv_cuda_streamer *s, const gpuconv_cuda_array *in, const gpuconv_cuda_array *out,
                              cudaStream_t stream) {
    const gpuconv_cuda_array buffer_in = floats(s->in, s->channels, s->block, s->block);
    const gpuconv_cuda_array buffer_out = floats(s->out, s->channels, s->block, s->block);
    const gck_rows from = gc_job_rows(in), to = gc_job_rows(out), own_in = gc_job_rows(&buffer_in),
                   own_out = gc_job_rows(&buffer_out);
    const bool move_in = !contiguous(s, in), move_out = !contiguous(s, out);
    cudaError_t err = move_in ? gck_move(&from, &own_in, s->channels, s->block, stream) : cudaSuccess;
    GC_CUDA_TRY(err, gc_cuda_bank_queue(s->bank, move_in ? s->in : in->data, move_out ? s->out : out->data, stream));
    return move_out ? GC_CUDA_TRY(err, gck_move(&own_out, &to, s->channels, s->block, stream)) : err;
}

static cudaError_t queue_window(gpuconv_cuda_streamer *s, const gpuconv_cuda_array *in, const gpuconv_cuda_array *out,
                                cudaStream_t stream) {
    const int64_t before = s->history_frames, window = before + s->block;
    const gpuconv_cuda_array kept = floats(s->history, s->channels, before, before);
    const gpuconv_cuda_array head = floats(s->window, s->channels, before, window);
    const gpuconv_cuda_array body = floats(s->window + before, s->channels, s->block, window);
    const gpuconv_cuda_array tail = floats(s->window + s->block, s->channels, before, window);
    const gck_rows from = gc_job_rows(in), history = gc_job_rows(&kept), first = gc_job_rows(&head),
                   second = gc_job_rows(&body), last = gc_job_rows(&tail);
    gpuconv_cuda_job job = block_job(s);
    job.output = *out;
    gc_job_shape shape;
    gc_job_plan plan;
    if (gc_job_prepare(s->cuda, &job, NULL, &shape, &plan, NULL))
        return cudaErrorInvalidValue;
    cudaError_t err = before ? gck_move(&history, &first, s->channels, before, stream) : cudaSuccess;
    GC_CUDA_TRY(err, gck_move(&from, &second, s->channels, s->block, stream));
    GC_CUDA_TRY(err, gc_job_run(s->cuda, &job, &shape, &plan, s->workspace, stream));
    return before ? GC_CUDA_TRY(err, gck_move(&last, &history, s->channels, before, stream)) : err;
}

gpuconv_status gpuconv_cuda_streamer_process(gpuconv_cuda_streamer *s, const gpuconv_cuda_array *in,
                                             const gpuconv_cuda_array *out, struct CUstream_st *stream,
                                             gpuconv_error *error) {
    gpuconv_status status = s && in && out ? check_block(s, in, "in", false, error) : gc_fail_null(error, __func__);
    if (!status)
        status = check_block(s, out, "out", true, error);
    if (!status)
        status = gc_job_check_device(s->cuda->device, error);
    if (!status && in->data == out->data && (in->type != out->type || in->stride != out->stride))
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                         "out.data is in.data with another type or stride; use the same ones, or other memory");
    if (status)
        return status;
    return gc_cuda_check(error, s->cuda->device,
                         s->bank ? queue_bank(s, in, out, stream) : queue_window(s, in, out, stream));
}

gpuconv_status gpuconv_cuda_streamer_reset(gpuconv_cuda_streamer *s, struct CUstream_st *stream, gpuconv_error *error) {
    gpuconv_status status = s ? gc_job_check_device(s->cuda->device, error) : gc_fail_null(error, __func__);
    if (status)
        return status;
    const size_t bytes = (size_t)(s->channels * s->history_frames) * sizeof(float);
    return gc_cuda_check(error, s->cuda->device,
                         s->bank ? gc_cuda_bank_reset(s->bank, stream) : cudaMemsetAsync(s->history, 0, bytes, stream));
}
