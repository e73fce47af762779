/*
 * Arrays on a device (gpuconv_arrays.h): plans of rows, prepared responses, jobs, and streamers.
 *
 * Streamers. Blocks of a power of two from 32 to 1024 frames go through a bank, whose partitions grow (cuda_bank.c).
 * Other blocks are one job each, on a window of the last taps - 1 frames and the block:
 *
 *      window     |--- history ---|--- block ---|       history: the last taps - 1 frames of the window before
 */
#include "cuda_arrays.h"
#include "cuda_algorithm.h"
#include "cuda_bank.h"
#include "cuda_device.h"
#include "libgpuconv/conv/plan.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/ir/object.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Queues the copy of to->frames frames of rows, with zeros behind the end of a row of `from`. gates: or NULL. */
static cudaError_t move_gated(const gpuconv_rows *from, const gck_gates *gates, const gpuconv_rows *to, bool accumulate,
                              cudaStream_t stream) {
    const gck_rows source = gc_cuda_kernel_rows(from);
    const gck_target target = {gc_cuda_kernel_rows(to), accumulate};
    return to->frames ? gck_move(&source, gates, &target, to->rows, to->frames, stream) : cudaSuccess;
}

static cudaError_t move(const gpuconv_rows *from, const gpuconv_rows *to, cudaStream_t stream) {
    return move_gated(from, NULL, to, false, stream);
}

/* ---- Plans ------------------------------------------------------------------------------------------------------- */

void gc_rows_plan_make(const gc_device *device, const gc_costs *costs, const gc_problem *p, gc_rows_plan *plan) {
    gc_choice choice = {0};
    const gpuconv_status status = gc_algorithms_choose(gc_cuda_algorithms, p, device, costs, &choice, NULL, NULL);
    *plan = status ? (gc_rows_plan){.algorithm = NULL} : choice.rows;
}

/* ---- Prepared responses ------------------------------------------------------------------------------------------ */

enum { ROWS_MIN = 64, DIRECT_TAPS_MAX = 8192, DIRECT_SAMPLES_MAX = 1 << 20 };

static void free_responses(gpuconv_responses *responses) {
    gc_cuda_resources_free(&((gc_cuda_responses *)responses)->resources);
    free(responses);
}

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
    if (r->plan.points > 0)
        return r;
    *status = gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "no algorithm keeps spectra of %lld responses of %lld frames",
                      (long long)base->rows, (long long)base->taps);
    free_responses(&r->base);
    return NULL;
}

/* Queues what fills r->samples and r->spectra, which hold what the rows have up to r->base.taps frames, and zeros
 * behind. */
static cudaError_t transform(const gc_cuda_arrays *cuda, gc_cuda_responses *r, const gpuconv_rows *from,
                             cudaStream_t stream) {
    const gpuconv_rows samples = gpuconv_rows_of_floats(r->samples, r->base.rows, r->base.taps);
    cudaError_t err = r->samples ? move(from, &samples, stream) : cudaSuccess;
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
        free_responses(&r->base);
    else
        *responses = &r->base;
    return err ? gc_cuda_check_memory(error, device, err, "a set of prepared responses", bytes) : GPUCONV_OK;
}

static gpuconv_status new_responses(const gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t frames,
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

static gpuconv_status update_responses(const gpuconv_arrays *arrays, gpuconv_responses *responses,
                                       const gpuconv_rows *response, struct CUstream_st *stream, gpuconv_error *error) {
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

static gpuconv_status route_responses(const gpuconv_arrays *arrays, const gpuconv_ir *ir, int64_t frames,
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

static int64_t responses_bytes(const gpuconv_responses *responses) {
    return ((const gc_cuda_responses *)responses)->resources.device_bytes;
}

typedef struct cuda_streamer {
    gpuconv_streamer base;
    gc_cuda_resources resources;
    int64_t history_frames;
    float *out; /* the output of a block where the caller's samples are not adjacent, or not floats for a bank */
    /* A bank, and its input where the caller's samples are not contiguous floats. */
    gc_bank *bank;
    float *in;
    /* Or one job for each block. */
    gpuconv_responses *responses;
    gc_cuda_call call; /* its plan, which does not depend on the output's type */
    float *history, *window;
} cuda_streamer;

/* ---- Streamers -----------------------------------------------------------------------------------------------------
 */

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
    GC_CUDA_TRY(err, move(response, &to, stream));
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
    gpuconv_status status = new_responses(s->base.arrays, response, s->base.block, stream, &s->responses, error);
    if (status)
        return status;
    s->history = gc_cuda_memory(&s->resources, s->base.channels * s->history_frames * each);
    s->out = gc_cuda_memory(&s->resources, s->base.channels * s->base.block * each);
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

static void free_streamer(gpuconv_streamer *streamer) {
    cuda_streamer *s = (cuda_streamer *)streamer;
    gc_bank_cuda.free(s->bank);
    gpuconv_responses_free(s->responses);
    gc_cuda_resources_free(&s->resources);
    free(s);
}

static gpuconv_status new_streamer(gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t channels,
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
        free_streamer(&s->base);
    else
        *streamer = &s->base;
    return status;
}

/* Returns whether the rows are contiguous floats. */
static bool contiguous(const cuda_streamer *s, const gpuconv_rows *a) {
    return a->type == GPUCONV_SAMPLE_F32 && a->step == 1 && (a->stride == s->base.block || s->base.channels == 1);
}

static cudaError_t queue_bank(cuda_streamer *s, const gpuconv_rows *in, const gpuconv_rows *out, cudaStream_t stream) {
    const gpuconv_rows buffer_in = gpuconv_rows_of_floats(s->in, s->base.channels, s->base.block);
    const gpuconv_rows buffer_out = gpuconv_rows_of_floats(s->out, s->base.channels, s->base.block);
    const bool move_in = !contiguous(s, in), move_out = !contiguous(s, out);
    cudaError_t err = move_in ? move(in, &buffer_in, stream) : cudaSuccess;
    GC_CUDA_TRY(err, gc_cuda_bank_queue(s->bank, move_in ? s->in : in->data, move_out ? s->out : out->data, stream));
    return move_out ? GC_CUDA_TRY(err, move(&buffer_out, out, stream)) : err;
}

static cudaError_t queue_window(cuda_streamer *s, const gpuconv_rows *in, const gpuconv_rows *out,
                                cudaStream_t stream) {
    const int64_t before = s->history_frames, window = before + s->base.block;
    const gpuconv_rows kept = gpuconv_rows_of_floats(s->history, s->base.channels, before);
    const gpuconv_rows head = floats(s->window, s->base.channels, before, window);
    const gpuconv_rows body = floats(s->window + before, s->base.channels, s->base.block, window);
    const gpuconv_rows tail = floats(s->window + s->base.block, s->base.channels, before, window);
    const gpuconv_rows buffer = gpuconv_rows_of_floats(s->out, s->base.channels, s->base.block);
    gpuconv_arrays_job job = block_job(s);
    job.output = out->step == 1 ? *out : buffer;
    gc_cuda_call call = s->call;
    call.job = &job;
    cudaError_t err = move(&kept, &head, stream);
    GC_CUDA_TRY(err, move(in, &body, stream));
    GC_CUDA_TRY(err, call.plan.algorithm->run(&call, stream));
    if (out->step != 1)
        GC_CUDA_TRY(err, move(&buffer, out, stream));
    return GC_CUDA_TRY(err, move(&tail, &kept, stream));
}

static gpuconv_status process(gpuconv_streamer *streamer, const gpuconv_rows *in, const gpuconv_rows *out,
                              struct CUstream_st *stream, gpuconv_error *error) {
    cuda_streamer *s = (cuda_streamer *)streamer;
    const int device = s->base.arrays->device;
    const gpuconv_status status = gc_cuda_check_current(device, error);
    if (status)
        return status;
    return gc_cuda_check(error, device, s->bank ? queue_bank(s, in, out, stream) : queue_window(s, in, out, stream));
}

static gpuconv_status reset(gpuconv_streamer *streamer, struct CUstream_st *stream, gpuconv_error *error) {
    cuda_streamer *s = (cuda_streamer *)streamer;
    const int device = s->base.arrays->device;
    const gpuconv_status status = gc_cuda_check_current(device, error);
    if (status)
        return status;
    const size_t bytes = (size_t)(s->base.channels * s->history_frames) * sizeof(float);
    return gc_cuda_check(error, device,
                         s->bank ? gc_cuda_bank_reset(s->bank, stream) : cudaMemsetAsync(s->history, 0, bytes, stream));
}

/* ---- Places ------------------------------------------------------------------------------------------------------ */

/* Loads the kernels of an algorithm and makes the tables of the sizes that the device has. Returns the first error. */
static cudaError_t init_algorithm(gc_cuda_arrays *c, const gc_cuda_rows *a) {
    gc_cuda_resources *r = &c->resources;
    GC_CUDA_TRY(r->err, a->load((int)c->figures.shared_memory));
    for (int log2 = 1; log2 < (int)sizeof a->number; log2++) {
        const int size = gc_rows_size(a, &c->figures, INT64_C(1) << log2);
        if (size < 0 || c->twiddles[a->table + size])
            continue;
        c->twiddles[a->table + size] = gc_cuda_twiddles(r, a->twiddles, size, a->query(size).twiddles);
    }
    return r->err;
}

static cudaError_t init(gc_cuda_arrays *c) {
    gc_cuda_resources_init(&c->resources, c->base.device);
    GC_CUDA_TRY(c->resources.err, cudaFree(NULL)); /* creates the context in older runtimes */
    GC_CUDA_TRY(c->resources.err, gc_cuda_read_device(c->base.device, &c->figures));
    c->costs = gc_costs_of_cuda(&c->figures);
    c->figures.memory = HUGE_VAL; /* workspaces are the caller's */
    int tensor_cores = 0;         /* kernels that were compiled for an older architecture have no code for them */
    GC_CUDA_TRY(c->resources.err, gck_dense_uses_tensor_cores(&tensor_cores));
    c->figures.tensor_cores = c->figures.tensor_cores && tensor_cores;
    for (const gc_algorithm *const *a = gc_cuda_algorithms; *a; a++)
        if ((*a)->kind == GC_ROWS)
            GC_CUDA_TRY(c->resources.err, init_algorithm(c, (const gc_cuda_rows *)*a));
    GC_CUDA_TRY(c->resources.err, gck_rooms_load());
    GC_CUDA_TRY(c->resources.err, gck_move_load());
    return GC_CUDA_TRY(c->resources.err, gck_sequences_load());
}

static void free_arrays(gpuconv_arrays *arrays) {
    gc_cuda_resources_free(&((gc_cuda_arrays *)arrays)->resources);
    free(arrays);
}

static gpuconv_status open_arrays(int device, gpuconv_arrays **arrays, gpuconv_error *error) {
    int current = 0;
    const int count = gc_cuda_count_devices(error);
    if (count == 0)
        return GPUCONV_ERROR_DEVICE;
    gpuconv_status status = gc_cuda_check(error, device, cudaGetDevice(&current));
    if (status)
        return status;
    if (device >= count)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "device is %d; use 0 to %d, or -1 for the current one", device,
                       count - 1);
    gc_cuda_arrays *c = gc_calloc(1, sizeof *c);
    if (!c)
        return gc_fail_memory(error, "the tables of a device");
    c->base = (gpuconv_arrays){&gc_rows_cuda, device < 0 ? current : device};
    const cudaError_t err = init(c);
    status = err == cudaErrorMemoryAllocation ? gc_fail_memory(error, "the tables of a device")
                                              : gc_cuda_check(error, c->base.device, err);
    (void)cudaSetDevice(current);
    if (status)
        free_arrays(&c->base);
    else
        *arrays = &c->base;
    return status;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

gpuconv_status gc_cuda_plan(const gc_cuda_arrays *cuda, const gpuconv_arrays_job *job, gc_cuda_call *call,
                            gpuconv_error *error) {
    call->cuda = cuda;
    call->job = job;
    call->prepared = (const gc_cuda_responses *)job->prepared;
    const gc_cuda_responses *kept = job->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE ? NULL : call->prepared;
    const gc_problem problem = {
        .kind = GC_ROWS,
        .rows = {.shape = call->shape,
                 .spectra = kept,
                 .samples = !kept || kept->samples,
                 .required_algorithm = kept ? &kept->plan.algorithm->row : cuda->required_algorithm,
                 .required_points = kept ? 2 * kept->plan.points : cuda->required_points}};
    gc_rows_plan_make(&cuda->figures, &cuda->costs, &problem, &call->plan);
    return call->plan.algorithm ? GPUCONV_OK
                                : gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                                          "no algorithm serves the job as a whole%s; use fewer rows at a time",
                                          job->hop ? ", whose hop makes more than 2^29 blocks" : "");
}

gpuconv_status gc_cuda_prepare(const gc_cuda_arrays *cuda, const gpuconv_arrays_job *job, gc_cuda_call *call,
                               gpuconv_error *error) {
    const gpuconv_status status = gc_job_check(&cuda->base, job, &call->shape, error);
    return status ? status : gc_cuda_plan(cuda, job, call, error);
}

static gpuconv_status plan(const gpuconv_arrays_job *job, gc_job_plan *p, gpuconv_error *error) {
    gc_cuda_call call = {.shape = p->shape};
    const gpuconv_status status = gc_cuda_plan((const gc_cuda_arrays *)p->arrays, job, &call, error);
    p->how = call.plan;
    return status;
}

static gpuconv_status describe(const gpuconv_arrays_job *job, gc_job_plan *plan, gpuconv_error *error) {
    const gc_rows_plan *p = &plan->how;
    (void)job;
    (void)error;
    gc_format(plan->reason, sizeof plan->reason,
              "%s: transforms of %lld points, %lld segments of %lld frames, a workspace of %.1f MB; %.3g ms",
              p->algorithm->row.name, (long long)p->points, (long long)p->segments, (long long)p->hop,
              (double)p->bytes * 1e-6, p->seconds * 1e3);
    return GPUCONV_OK;
}

/* Returns contiguous rows in the workspace for the rows of an array. */
static gpuconv_rows rows_for(const gpuconv_rows *array, gpuconv_sample_type type, char **workspace) {
    gpuconv_rows made = gpuconv_rows_of_floats((float *)(void *)*workspace, array->rows, array->frames);
    made.type = type;
    made.lengths = array->lengths;
    *workspace += gc_round_up(array->rows * array->frames * (int64_t)sizeof(float), 256);
    return made;
}

/* An array of a job with its copy. */
typedef struct copied_array {
    const gpuconv_rows *array, *gate; /* gate: of a source, or NULL */
    gpuconv_rows *copy;
    bool written, added;
} copied_array;

/* Queues a call with copies: sources are copied to the workspace, through their gates, and targets come from there.
 * Copies have the type of the array, or are floats where they are multiplied or added to. */
static cudaError_t run_copied(const gc_cuda_call *call, cudaStream_t stream) {
    const gpuconv_arrays_job *job = call->job;
    const bool both = job->operation == GPUCONV_ARRAYS_GRADIENT_BOTH;
    const bool gated = call->shape.gates && !(call->plan.algorithm->gated && call->shape.gates & GC_GATES_ALIKE);
    gpuconv_arrays_job plain = *job;
    gc_cuda_call inner = *call;
    char *workspace = (char *)call->workspace + call->plan.copies_at;
    copied_array all[GC_JOB_ARRAYS] = {{&job->signal, gated ? job->pre : NULL, &plain.signal, false, false},
                                       {&job->output, gated ? job->post : NULL, &plain.output, false, false},
                                       {&job->response, NULL, &plain.response, false, false},
                                       {&job->signal_gradient, NULL, &plain.signal_gradient, false, false},
                                       {&job->response_gradient, NULL, &plain.response_gradient, false, false}};
    cudaError_t err = cudaSuccess;
    for (int i = 0; i < GC_JOB_ARRAYS; i++) {
        copied_array *a = &all[i];
        if (!(call->plan.copies & 1 << i))
            continue;
        a->written = both ? i > 2 : a->array == gc_job_written(job);
        a->added = a->written && job->accumulate && a->array != &job->signal_gradient;
        const bool floats = a->gate || a->added || (a->written && gated);
        *a->copy = rows_for(a->array, floats ? GPUCONV_SAMPLE_F32 : a->array->type, &workspace);
        const gck_gates gates = {.source = gc_cuda_kernel_rows_if(a->gate)};
        plain.accumulate = plain.accumulate && !a->added;
        if (!a->written)
            GC_CUDA_TRY(err, move_gated(a->array, &gates, a->copy, false, stream));
    }
    plain.pre = gated ? NULL : job->pre;
    plain.post = gated ? NULL : job->post;
    plain.skip = gated ? NULL : job->skip;
    inner.job = &plain;
    GC_CUDA_TRY(err, call->plan.algorithm->run(&inner, stream));
    gck_gates gates = {.factor = NULL};
    if (gated && job->operation != GPUCONV_ARRAYS_GRADIENT_RESPONSE)
        gates = gc_cuda_gates(job);
    gates.source = (gck_rows){.data = NULL};
    for (int i = 0; i < GC_JOB_ARRAYS; i++)
        if (all[i].written)
            GC_CUDA_TRY(err, move_gated(all[i].copy, &gates, all[i].array, all[i].added, stream));
    return err;
}

static gpuconv_status run(const gc_job_plan *plan, const gpuconv_arrays_job *job, void *workspace, size_t bytes,
                          struct CUstream_st *stream, gpuconv_error *error) {
    const int device = plan->arrays->device;
    const gc_cuda_call call = {.cuda = (const gc_cuda_arrays *)plan->arrays,
                               .job = job,
                               .prepared = (const gc_cuda_responses *)job->prepared,
                               .shape = plan->shape,
                               .plan = plan->how,
                               .workspace = workspace};
    const gpuconv_status status = gc_cuda_check_current(device, error);
    if (status)
        return status;
    const int64_t needed = call.plan.bytes;
    if (bytes < (size_t)needed || (needed && !workspace))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "workspace has %zu bytes%s; the job needs %lld", bytes,
                       workspace ? "" : " and is NULL", (long long)needed);
    if ((uintptr_t)workspace % 256 || (uintptr_t)job->transforms % 256)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s is %p; use an address aligned to 256 bytes",
                       (uintptr_t)workspace % 256 ? "workspace" : "job.transforms",
                       (uintptr_t)workspace % 256 ? workspace : job->transforms);
    return gc_cuda_check(error, device,
                         call.plan.copies_at ? run_copied(&call, stream) : call.plan.algorithm->run(&call, stream));
}

/* The kernel writes `table`. NOLINTNEXTLINE(readability-non-const-parameter) */
static gpuconv_status sort(const gpuconv_arrays *arrays, const gpuconv_sequences *s, int64_t *table,
                           struct CUstream_st *stream, gpuconv_error *error) {
    const gpuconv_status status = gc_cuda_check_current(arrays->device, error);
    if (status)
        return status;
    gck_sequences k = {.offsets = s->offsets,
                       .frames = s->frames,
                       .taps = s->taps,
                       .sequences = (int)s->sequences,
                       .channels = (int)s->channels,
                       .classes = s->classes,
                       .own = (int)s->own,
                       .table = table,
                       .cleared = gc_cuda_kernel_rows_if(s->output)};
    memcpy(k.bounds, s->bounds, (size_t)s->classes * sizeof *k.bounds);
    return gc_cuda_check(error, arrays->device, gck_sort_sequences(&k, stream));
}

const gc_rows_executor gc_rows_cuda = {
    .open = open_arrays,
    .free = free_arrays,
    .plan = plan,
    .describe = describe,
    .run = run,
    .sort = sort,
    .new_responses = new_responses,
    .route_responses = route_responses,
    .update_responses = update_responses,
    .responses_bytes = responses_bytes,
    .free_responses = free_responses,
    .new_streamer = new_streamer,
    .process = process,
    .reset = reset,
    .free_streamer = free_streamer,
    .plan_rooms = gc_cuda_plan_rooms,
    .simulate = gc_cuda_simulate,
    .free_rooms = gc_cuda_free_rooms,
};
