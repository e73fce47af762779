/*
 * Banks in real time on a CUDA device (kernels/engine/bank/bank.cu). The spectra are computed once. A period with few
 * samples copies the inputs to the device, runs a graph with the first level and the copy of the outputs, and then a
 * graph with the further levels, whose results are needed later. With more samples the bus takes most of the time. Then
 * groups of channels of a diagonal bank follow each other, so that both directions of the bus work at once:
 *
 *      copy-in    inputs -> device         group g + 1
 *      compute    first level              group g          the further levels follow the last group
 *      copy-out   device -> outputs        group g - 1
 */
#include "cuda_bank.h"

#include "cuda_algorithm.h"
#include "cuda_device.h"
#include "kernels/engine/kernels.h"
#include "libgpuconv/conv/plan.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <stdlib.h>

enum { DIAGONAL_MAX = 1 << 20, CHANNELS_MAX = 4096, ROUTES_MAX = 1 << 24, TAPS_MAX = 1 << 26 };

/* Responses are copied to the device in pieces of at most UPLOAD_FLOATS, or of one response. */
enum { UPLOAD_FLOATS = 1 << 24 };

/* Blocks of threads of the products of a level, per multiprocessor, that fill it. */
enum { PRODUCT_BLOCKS = 6 };

/* A group has at least GROUP_BYTES bytes of samples. Its kernel and its copies take some 20 us beyond their bytes, so
 * that more and smaller groups are slower. */
enum { GROUPS_MAX = 8, GROUP_BYTES = 2500000 };

_Static_assert((int)GC_LEVELS_MAX == (int)GCK_BANK_LEVELS_MAX, "plan and kernels have the same levels");

struct gc_bank {
    gc_cuda_resources resources;
    gck_bank kernel; /* the kernels' argument */
    float *in;       /* device memory */
    float *out;      /* page-locked */
    cudaStream_t stream;
    cudaGraphExec_t first_level, next_levels;
    cudaEvent_t done; /* the outputs of the period have been copied */
    int groups;       /* 1: the copies are on `stream`, and there are no events */
    cudaStream_t copy_in, copy_out;
    cudaEvent_t arrived[GROUPS_MAX], computed[GROUPS_MAX]; /* of each group */
    cudaEvent_t copied;                                    /* the outputs of all groups */
    char plan[256];
};

static void close_bank(gc_bank *b) {
    if (!b)
        return;
    gc_cuda_resources_free(&b->resources);
    free(b);
}

static void describe(gc_bank *b) {
    size_t used = 0;
    for (int k = 0; k < b->kernel.levels && used < sizeof b->plan; k++)
        used += (size_t)gc_format(b->plan + used, sizeof b->plan - used, "%s%d x %lld", k ? ", " : "",
                                  b->kernel.level[k].partitions, (long long)b->kernel.level[k].hop);
    if (used < sizeof b->plan)
        (void)gc_format(b->plan + used, sizeof b->plan - used, "; %.2f GB on the device",
                        (double)b->resources.device_bytes * 1e-9);
}

/* ---- Creation: memory and responses ------------------------------------------------------------------------------ */

/* Allocates device memory and queues clearing it. */
static void *zeroed(gc_bank *b, int64_t bytes) {
    void *p = gc_cuda_memory(&b->resources, bytes);
    GC_CUDA_TRY(b->resources.err, cudaMemsetAsync(p, 0, (size_t)bytes, b->stream));
    return p;
}

static void upload_routes(gc_bank *b, const gc_bank_options *o) {
    gc_cuda_resources *r = &b->resources;
    int *row = gc_cuda_host_table(r, o->outputs + 1, sizeof *row);
    int *input = gc_cuda_host_table(r, o->routes, sizeof *input);
    for (int i = 0; input && i < o->routes; i++) {
        input[i] = o->route[i].input;
        row[o->route[i].output + 1] = i + 1;
    }
    for (int k = 0; input && k < o->outputs; k++) /* an output without routes ends where the one before ends */
        row[k + 1] = (int)gc_max(row[k + 1], row[k]);
    b->kernel.row = gc_cuda_upload(r, row, (o->outputs + 1) * (int64_t)sizeof *row);
    b->kernel.input = gc_cuda_upload(r, input, o->routes * (int64_t)sizeof *input);
    free(row);
    free(input);
}

/* Returns the parts into which the sums of a level are divided, so that they fill the device. */
static int count_splits(const gck_bank *k, const gck_bank_level *l, int64_t routes, int64_t multiprocessors) {
    const int64_t due = gc_divide_up(k->outputs, l->periods), lanes = gc_min(l->hop / 2, 64);
    const int64_t blocks = due * (l->hop / 2 / lanes), of_output = gc_divide_up(routes, k->outputs);
    return (int)gc_max(
        1, gc_min(gc_min(PRODUCT_BLOCKS * multiprocessors / blocks, GCK_BANK_SPLITS_MAX), of_output * lanes / 256));
}

/* Returns the floats of a level's outputs to come. */
static int64_t future_floats(const gck_bank *k, int number) {
    return number ? (k->diagonal ? 1 : 2) * k->outputs * k->level[number].hop : 0;
}

static void make_level(gc_bank *b, int number, int64_t routes, int multiprocessors) {
    gck_bank *k = &b->kernel;
    gck_bank_level *l = &k->level[number];
    const int64_t each = sizeof(float2), spectra = l->partitions * l->hop * each;
    l->periods = (int)(l->hop / k->block);
    l->table = gc_cuda_twiddles(&b->resources, gck_bank_twiddles, l->hop, l->hop);
    l->spectra = gc_cuda_memory(&b->resources, routes * spectra);
    l->delay = zeroed(b, k->inputs * spectra);
    if (!k->diagonal) {
        l->splits = count_splits(k, l, routes, multiprocessors);
        l->sums = gc_cuda_memory(&b->resources, k->outputs * l->splits * l->hop * each);
    }
    if (number > 0)
        l->future = zeroed(b, future_floats(k, number) * (int64_t)sizeof(float));
}

/* Copies the responses to the device, some at a time, and computes the spectra of all levels. */
static cudaError_t transform_responses(gc_bank *b, const gc_bank_options *o) {
    const int64_t most = gc_max(1, gc_min(o->routes, UPLOAD_FLOATS / o->taps));
    gc_cuda_resources buffers;
    gc_cuda_resources_init(&buffers, b->resources.device);
    float *host = gc_cuda_pinned(&buffers, most * o->taps * (int64_t)sizeof *host);
    float *copy = gc_cuda_memory(&buffers, most * o->taps * (int64_t)sizeof *copy);
    cudaError_t err = buffers.err;
    for (int64_t first = 0; first < o->routes && !err; first += most) {
        const int64_t n = gc_min(most, o->routes - first);
        const gck_responses responses = {copy, (int)n, o->taps};
        for (int64_t i = 0; i < n; i++)
            o->response(o->context, (int)(first + i), host + i * o->taps);
        err = cudaMemcpyAsync(copy, host, (size_t)(n * o->taps) * sizeof(float), cudaMemcpyHostToDevice, b->stream);
        for (int k = 0; k < b->kernel.levels; k++)
            GC_CUDA_TRY(err, gck_bank_spectra(&b->kernel.level[k], &responses, first, b->stream));
        GC_CUDA_TRY(err, cudaStreamSynchronize(b->stream));
    }
    gc_cuda_resources_free(&buffers);
    return err;
}

/* ---- Creation: groups of channels and graphs --------------------------------------------------------------------- */

typedef struct group {
    int first, count; /* channels */
    int64_t at;       /* of the first sample */
    size_t bytes;
} group;

/* Returns group g of the inputs or outputs. */
static group group_of(const gc_bank *b, int g, int64_t channels) {
    const int64_t block = b->kernel.block, first = channels * g / b->groups;
    const int64_t count = channels * (g + 1) / b->groups - first;
    return (group){(int)first, (int)count, first * block, (size_t)(count * block) * sizeof(float)};
}

/* Queues the first level of each group, once its inputs have arrived, and the copy of its outputs. For capture: the
 * arrival of inputs is an event from outside the graph. */
static cudaError_t queue_first_level(gc_bank *b) {
    const bool events = b->groups > 1;
    cudaError_t err = cudaSuccess;
    for (int g = 0; g < b->groups; g++) {
        const group part = group_of(b, g, b->kernel.outputs);
        if (events)
            GC_CUDA_TRY(err, cudaStreamWaitEvent(b->stream, b->arrived[g], cudaEventWaitExternal));
        GC_CUDA_TRY(err, gck_bank_run(&b->kernel, 0, part.first, part.count, b->stream));
        if (events) {
            GC_CUDA_TRY(err, cudaEventRecord(b->computed[g], b->stream));
            GC_CUDA_TRY(err, cudaStreamWaitEvent(b->copy_out, b->computed[g], 0));
        }
        GC_CUDA_TRY(err, cudaMemcpyAsync(b->out + part.at, b->kernel.out + part.at, part.bytes, cudaMemcpyDeviceToHost,
                                         b->copy_out));
    }
    if (events) {
        GC_CUDA_TRY(err, cudaEventRecord(b->copied, b->copy_out));
        GC_CUDA_TRY(err, cudaStreamWaitEvent(b->stream, b->copied, 0));
    }
    return err;
}

static cudaError_t run_next_levels(const gck_bank *k, cudaStream_t stream) {
    cudaError_t err = cudaSuccess;
    for (int i = 1; i < k->levels; i++)
        GC_CUDA_TRY(err, gck_bank_run(k, i, 0, k->outputs, stream));
    return GC_CUDA_TRY(err, gck_bank_advance(k, stream));
}

static cudaError_t queue_next_levels(gc_bank *b) {
    return run_next_levels(&b->kernel, b->stream);
}

/* Creates the streams and events of the groups, if the samples of a period suffice for more than one. */
static void make_groups(gc_bank *b) {
    gc_cuda_resources *r = &b->resources;
    const int64_t bytes = (int64_t)b->kernel.inputs * b->kernel.block * (int64_t)sizeof(float);
    if (!b->kernel.diagonal || bytes < 2 * GROUP_BYTES || b->kernel.inputs < 2)
        return;
    b->groups = (int)gc_min(gc_min(GROUPS_MAX, b->kernel.inputs), bytes / GROUP_BYTES);
    b->copy_in = gc_cuda_stream(r);
    b->copy_out = gc_cuda_stream(r);
    b->copied = gc_cuda_event(r, cudaEventDisableTiming);
    for (int g = 0; g < b->groups; g++) {
        b->arrived[g] = gc_cuda_event(r, cudaEventDisableTiming);
        b->computed[g] = gc_cuda_event(r, cudaEventDisableTiming);
    }
}

/* Makes a graph of the work that `queue` queues on the stream. Returns NULL after an error. */
static cudaGraphExec_t capture(gc_bank *b, cudaError_t (*queue)(gc_bank *bank)) {
    gc_cuda_resources *r = &b->resources;
    cudaGraph_t graph = NULL;
    if (GC_CUDA_TRY(r->err, cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal)))
        return NULL;
    cudaError_t queue_err = queue(b);
    r->err = cudaStreamEndCapture(b->stream, &graph); /* also after an error: the capture must end */
    GC_CUDA_TRY(r->err, queue_err);
    cudaGraphExec_t instance = gc_cuda_graph(r, graph);
    if (graph)
        cudaGraphDestroy(graph);
    return instance;
}

/* ---- Creation ---------------------------------------------------------------------------------------------------- */

/* Plans the levels within the limits of the device. A level of blocks alone always fits. */
static void make_plan(gc_bank *b, const gc_bank_options *o, const gc_device *device) {
    const gc_problem problem = {.kind = GC_BANK,
                                .bank = {.gpu = o,
                                         .diagonal = gc_bank_is_diagonal(o),
                                         .longest_hop = gck_bank_longest_hop(device->shared_memory)}};
    const gc_costs costs = gc_costs_of_cuda(device);
    gc_choice choice = {0};
    (void)gc_algorithms_choose(gc_cuda_algorithms, &problem, device, &costs, &choice, NULL, NULL);
    gck_bank *k = &b->kernel;
    *k = (gck_bank){.inputs = o->inputs, .outputs = o->outputs, .block = o->block, .diagonal = problem.bank.diagonal};
    for (; k->levels < choice.levels.count; k->levels++) {
        const gc_level *l = &choice.levels.level[k->levels];
        k->level[k->levels] = (gck_bank_level){.hop = l->hop, .first_tap = l->first_tap, .partitions = l->partitions};
        k->ring_frames = 2 * l->hop;
    }
}

/* Creates everything on the device. Returns the first error. */
static cudaError_t init(gc_bank *b, const gc_bank_options *o, int multiprocessors) {
    const int64_t each = sizeof(float);
    gc_cuda_resources *r = &b->resources;
    gck_bank *k = &b->kernel;
    b->stream = b->copy_in = b->copy_out = gc_cuda_stream(r);
    b->groups = 1;
    b->done = gc_cuda_event(r, cudaEventDisableTiming);
    b->out = gc_cuda_pinned(r, o->outputs * o->block * each);
    k->in = b->in = zeroed(b, o->inputs * o->block * each);
    k->out = zeroed(b, o->outputs * o->block * each);
    k->period = zeroed(b, sizeof *k->period);
    k->ring = zeroed(b, o->inputs * k->ring_frames * each);
    if (!k->diagonal)
        upload_routes(b, o);
    for (int i = 0; i < k->levels; i++)
        make_level(b, i, o->routes, multiprocessors);
    GC_CUDA_TRY(r->err, transform_responses(b, o));
    /* One period of silence without a graph, so that every kernel is loaded. */
    GC_CUDA_TRY(r->err, queue_first_level(b));
    GC_CUDA_TRY(r->err, queue_next_levels(b));
    GC_CUDA_TRY(r->err, cudaStreamSynchronize(b->stream));
    make_groups(b);
    b->first_level = capture(b, queue_first_level);
    b->next_levels = capture(b, queue_next_levels);
    return r->err;
}

static bool routes_fit(const gc_bank_options *o) {
    for (int i = 0; i < o->routes; i++)
        if (o->route[i].input < 0 || o->route[i].input >= o->inputs ||
            o->route[i].output < (i ? o->route[i - 1].output : 0) || o->route[i].output >= o->outputs)
            return false;
    return true;
}

static gpuconv_status check(const gc_bank_options *o, gpuconv_error *error) {
    const int most = gc_bank_is_diagonal(o) ? DIAGONAL_MAX : CHANNELS_MAX;
    const int block = o->block;
    if (o->inputs < 1 || o->inputs > most || o->outputs < 1 || o->outputs > most || o->routes < 1 ||
        o->routes > ROUTES_MAX || block < GCK_BANK_BLOCK_MIN || block > GCK_BANK_BLOCK_MAX ||
        (block & (block - 1)) != 0 || o->taps < 1 || o->taps > TAPS_MAX)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%d inputs, %d outputs, %d routes, blocks of %d frames and %lld taps are not a bank in real "
                       "time; use 1 to %d channels with a response each, or a matrix of up to %d channels and %d "
                       "routes, blocks of a power of two from %d to %d frames, and 1 to %d taps",
                       o->inputs, o->outputs, o->routes, block, (long long)o->taps, DIAGONAL_MAX, CHANNELS_MAX,
                       ROUTES_MAX, GCK_BANK_BLOCK_MIN, GCK_BANK_BLOCK_MAX, TAPS_MAX);
    return routes_fit(o) ? GPUCONV_OK
                         : gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                                   "a route has an input or output that does not exist, or is not sorted by output");
}

static gpuconv_status open_bank(const gc_bank_options *o, gc_bank **bank, gpuconv_error *error) {
    int device, caller;
    *bank = NULL;
    gpuconv_status status = check(o, error);
    if (!status)
        status = gc_cuda_choose_device(o->device, &device, error);
    if (status)
        return status;
    gc_bank *b = gc_calloc(1, sizeof *b);
    if (!b)
        return gc_fail_memory(error, "a bank in real time");
    gc_device properties;
    cudaError_t err = gc_cuda_enter(device, &caller);
    gc_cuda_resources_init(&b->resources, device);
    GC_CUDA_TRY(err, gc_cuda_read_device(device, &properties));
    if (!err) {
        make_plan(b, o, &properties);
        err = init(b, o, properties.multiprocessors);
    }
    gc_cuda_leave(caller);
    if (err) {
        const int64_t bytes = b->resources.device_bytes;
        close_bank(b);
        return gc_cuda_check_memory(error, device, err, "a bank in real time", bytes);
    }
    describe(b);
    *bank = b;
    return GPUCONV_OK;
}

/* ---- Use --------------------------------------------------------------------------------------------------------- */

/* Queues the copies of the inputs, the first level and the copies of the outputs. The buffers are free: `process` has
 * waited for the copies of the last period. The copies of the inputs are calls, because their address changes from
 * period to period; all else is one graph, because calls for each group would take longer than the groups. */
static cudaError_t queue_period(gc_bank *b, const float *in) {
    cudaError_t err = cudaSuccess;
    for (int g = 0; g < b->groups; g++) {
        const group part = group_of(b, g, b->kernel.inputs);
        GC_CUDA_TRY(err,
                    cudaMemcpyAsync(b->in + part.at, in + part.at, part.bytes, cudaMemcpyHostToDevice, b->copy_in));
        if (b->groups > 1)
            GC_CUDA_TRY(err, cudaEventRecord(b->arrived[g], b->copy_in));
    }
    GC_CUDA_TRY(err, cudaGraphLaunch(b->first_level, b->stream));
    GC_CUDA_TRY(err, cudaEventRecord(b->done, b->stream));
    return GC_CUDA_TRY(err, cudaGraphLaunch(b->next_levels, b->stream));
}

static gpuconv_status process(gc_bank *b, const float *in, const float **out, gpuconv_error *error) {
    int caller;
    cudaError_t err = gc_cuda_enter(b->resources.device, &caller);
    GC_CUDA_TRY(err, queue_period(b, in));
    if (!err) {
        do /* polls, because the wait takes only microseconds */
            err = cudaEventQuery(b->done);
        while (err == cudaErrorNotReady);
    }
    gc_cuda_leave(caller);
    *out = b->out;
    return gc_cuda_check(error, b->resources.device, err);
}

cudaError_t gc_cuda_bank_queue(gc_bank *b, const float *in, float *out, cudaStream_t stream) {
    gck_bank bank = b->kernel;
    bank.in = in;
    bank.out = out;
    cudaError_t err = gck_bank_run(&bank, 0, 0, bank.outputs, stream);
    return GC_CUDA_TRY(err, run_next_levels(&bank, stream));
}

cudaError_t gc_cuda_bank_reset(gc_bank *b, cudaStream_t stream) {
    const gck_bank *k = &b->kernel;
    const size_t inputs = (size_t)k->inputs;
    cudaError_t err = cudaMemsetAsync(k->period, 0, sizeof *k->period, stream);
    GC_CUDA_TRY(err, cudaMemsetAsync(k->ring, 0, inputs * (size_t)k->ring_frames * sizeof(float), stream));
    for (int i = 0; i < k->levels; i++) {
        const gck_bank_level *l = &k->level[i];
        GC_CUDA_TRY(err,
                    cudaMemsetAsync(l->delay, 0, inputs * (size_t)(l->partitions * l->hop) * sizeof(float2), stream));
        if (l->future)
            GC_CUDA_TRY(err, cudaMemsetAsync(l->future, 0, (size_t)future_floats(k, i) * sizeof(float), stream));
    }
    return err;
}

static const char *plan(const gc_bank *b) {
    return b->plan;
}

const gc_bank_backend gc_bank_cuda = {open_bank, process, plan, close_bank};
