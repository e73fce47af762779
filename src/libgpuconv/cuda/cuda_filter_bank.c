/* Filter banks on a CUDA device. The spectra are computed once. Each period copies the inputs to the device, runs a
 * graph with the first level and the copy of the outputs, and then a graph with the further levels, whose results are
 * ready for the next period. */
#include "libgpuconv/engine/filter_bank.h"

#include "cuda_device.h"
#include "cuda_resources.h"
#include "kernels/engine/kernels.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Responses are copied to the device in pieces of at most UPLOAD_FLOATS, or of one response. */
enum { CHANNELS_MAX = 1 << 20, TAPS_MAX = 1 << 26, UPLOAD_FLOATS = 1 << 24 };

struct gc_filter_bank {
    gc_cuda_resources resources;
    gck_filter_bank kernel; /* the kernels' argument */
    float *in;              /* device memory */
    float *out;             /* pinned */
    int64_t *period;        /* device memory */
    float2 *spectra[GCK_FILTER_BANK_LEVELS_MAX];
    cudaStream_t stream;
    cudaGraphExec_t first_level, next_levels;
    cudaEvent_t done; /* the outputs of the period have been copied */
    char plan[256];
};

static void close_bank(gc_filter_bank *b) {
    if (!b)
        return;
    gc_cuda_resources_free(&b->resources);
    free(b);
}

/* ---- Partitions of the responses --------------------------------------------------------------------------------- */

/* Returns the bytes that a channel moves per period: spectra of blocks and of the response, and per block the window,
 * the spectrum and the result, counted three times to account for the time of the transform. */
static double level_cost(int64_t hop, int64_t block, int64_t partitions) {
    return ((double)partitions * 16 + 3 * 20) * (double)hop / ((double)hop / (double)block);
}

/* Tries all partitions into up to GCK_FILTER_BANK_LEVELS_MAX levels that begin with those of `bank`, hops growing, and
 * stores the cheapest in *best. cost: of all levels of `bank` but the last. */
static void search(gck_filter_bank *best, double *least, gck_filter_bank bank, double cost, int64_t taps) {
    gck_filter_bank_level *last = &bank.level[bank.levels - 1];
    int64_t from = bank.levels > 1 ? last->hop : 0, left = taps > from ? taps - from : 1;
    last->partitions = (int)((left + last->hop - 1) / last->hop);
    double total = cost + level_cost(last->hop, bank.block, last->partitions);
    if (total < *least) {
        *least = total;
        *best = bank;
    }
    for (int64_t hop = 2 * last->hop;
         hop <= GCK_FILTER_BANK_HOP_MAX && hop < taps && bank.levels < GCK_FILTER_BANK_LEVELS_MAX; hop *= 2) {
        gck_filter_bank next = bank;
        last = &next.level[next.levels - 1];
        last->partitions = (int)((hop - from) / last->hop);
        if (last->partitions < 1)
            continue;
        next.level[next.levels++] = (gck_filter_bank_level){.hop = hop, .periods = (int)(hop / bank.block)};
        search(best, least, next, cost + level_cost(last->hop, bank.block, last->partitions), taps);
    }
}

static void describe(gc_filter_bank *b) {
    size_t used = 0;
    for (int k = 0; k < b->kernel.levels && used < sizeof b->plan; k++)
        used += (size_t)snprintf(b->plan + used, sizeof b->plan - used, "%s%d x %lld", k ? ", " : "",
                                 b->kernel.level[k].partitions, (long long)b->kernel.level[k].hop);
    if (used < sizeof b->plan)
        (void)snprintf(b->plan + used, sizeof b->plan - used, "; %.2f GB on the device",
                       (double)b->resources.device_bytes * 1e-9);
}

/* ---- Creation ---------------------------------------------------------------------------------------------------- */

/* Allocates device memory and queues clearing it. */
static void *zeroed(gc_filter_bank *b, int64_t bytes) {
    void *p = gc_cuda_memory(&b->resources, bytes);
    GC_CUDA_TRY(b->resources.err, cudaMemsetAsync(p, 0, (size_t)bytes, b->stream));
    return p;
}

static void make_level(gc_filter_bank *b, int number) {
    gck_filter_bank_level *l = &b->kernel.level[number];
    gc_cuda_resources *r = &b->resources;
    int64_t channels = b->kernel.channels, spectra_bytes = channels * l->partitions * l->hop * (int64_t)sizeof(float2);
    float2 *table = gc_calloc(l->hop, (int64_t)sizeof *table);
    if (!table) {
        GC_CUDA_TRY(r->err, cudaErrorMemoryAllocation);
        return;
    }
    for (int64_t m = 0; m < l->hop; m++) {
        double angle = -2 * 3.14159265358979323846 * (double)m / (double)l->hop;
        table[m] = (float2){(float)cos(angle), (float)sin(angle)};
    }
    l->table = gc_cuda_upload(r, table, l->hop * (int64_t)sizeof *table);
    free(table);
    b->spectra[number] = zeroed(b, spectra_bytes);
    l->spectra = b->spectra[number];
    l->delay = zeroed(b, spectra_bytes);
    if (number > 0)
        l->future = zeroed(b, channels * l->hop * (int64_t)sizeof(float));
}

/* Copies the responses to the device, some channels at a time, and computes their spectra. */
static cudaError_t make_spectra(gc_filter_bank *b, const gc_filter_bank_config *c) {
    int64_t channels = gc_max(1, gc_min(c->channels, UPLOAD_FLOATS / c->taps));
    gc_cuda_resources buffers;
    gc_cuda_resources_init(&buffers, b->resources.device);
    float *host = gc_cuda_pinned(&buffers, channels * c->taps * (int64_t)sizeof *host);
    float *device = gc_cuda_memory(&buffers, channels * c->taps * (int64_t)sizeof *device);
    cudaError_t err = buffers.err;
    for (int64_t first = 0; first < c->channels && !err; first += channels) {
        int64_t n = gc_min(channels, c->channels - first);
        gck_responses responses = {device, (int)n, c->taps};
        for (int64_t i = 0; i < n; i++)
            c->response(c->context, (int)(first + i), host + i * c->taps);
        err = cudaMemcpyAsync(device, host, (size_t)(n * c->taps) * sizeof(float), cudaMemcpyHostToDevice, b->stream);
        for (int k = 0; k < b->kernel.levels; k++) {
            const gck_filter_bank_level *l = &b->kernel.level[k];
            GC_CUDA_TRY(err, gck_filter_bank_spectra(l, &responses, k ? l->hop : 0,
                                                     b->spectra[k] + first * l->partitions * l->hop, b->stream));
        }
        GC_CUDA_TRY(err, cudaStreamSynchronize(b->stream));
    }
    gc_cuda_resources_free(&buffers);
    return err;
}

static cudaError_t queue_first_level(gc_filter_bank *b) {
    size_t bytes = (size_t)b->kernel.channels * (size_t)b->kernel.block * sizeof(float);
    cudaError_t err = gck_filter_bank_first_level(&b->kernel, b->stream);
    return GC_CUDA_TRY(err, cudaMemcpyAsync(b->out, b->kernel.out, bytes, cudaMemcpyDeviceToHost, b->stream));
}

static cudaError_t queue_next_levels(gc_filter_bank *b) {
    cudaError_t err = cudaSuccess;
    for (int k = 1; k < b->kernel.levels; k++)
        GC_CUDA_TRY(err, gck_filter_bank_next_level(&b->kernel, k, b->stream));
    return GC_CUDA_TRY(err, gck_filter_bank_advance(b->period, b->stream));
}

/* Makes a graph of the work that `queue` queues. Returns NULL after an error. */
static cudaGraphExec_t capture(gc_filter_bank *b, cudaError_t (*queue)(gc_filter_bank *b)) {
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

/* Creates everything on the device. Returns the first error. */
static cudaError_t init(gc_filter_bank *b, const gc_filter_bank_config *c, int device) {
    const int64_t each = sizeof(float), samples = c->channels * c->block * each;
    gc_cuda_resources *r = &b->resources;
    gck_filter_bank *k = &b->kernel;
    gc_cuda_resources_init(r, device);
    b->stream = gc_cuda_stream(r);
    b->done = gc_cuda_event(r, cudaEventDisableTiming);
    b->in = zeroed(b, samples);
    b->period = zeroed(b, sizeof *b->period);
    b->out = gc_cuda_pinned(r, samples);
    k->in = b->in;
    k->out = zeroed(b, samples);
    k->ring = zeroed(b, c->channels * k->ring_frames * each);
    k->period = b->period;
    for (int i = 0; i < k->levels; i++)
        make_level(b, i);
    GC_CUDA_TRY(r->err, make_spectra(b, c));
    /* One period of silence without a graph, so that every kernel is loaded. */
    GC_CUDA_TRY(r->err, queue_first_level(b));
    GC_CUDA_TRY(r->err, queue_next_levels(b));
    GC_CUDA_TRY(r->err, cudaStreamSynchronize(b->stream));
    b->first_level = capture(b, queue_first_level);
    b->next_levels = capture(b, queue_next_levels);
    return r->err;
}

static gpuconv_status open_bank(const gc_filter_bank_config *c, gc_filter_bank **bank, gpuconv_error *error) {
    *bank = NULL;
    if (c->channels < 1 || c->channels > CHANNELS_MAX || c->block < GCK_FILTER_BANK_BLOCK_MIN ||
        c->block > GCK_FILTER_BANK_BLOCK_MAX || (c->block & (c->block - 1)) != 0 || c->taps < 1 || c->taps > TAPS_MAX)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%d channels, blocks of %d frames and %lld taps are not a filter bank; use 1 to %d channels, "
                       "blocks of a power of two from %d to %d frames, and 1 to %d taps",
                       c->channels, c->block, (long long)c->taps, CHANNELS_MAX, GCK_FILTER_BANK_BLOCK_MIN,
                       GCK_FILTER_BANK_BLOCK_MAX, TAPS_MAX);
    int device;
    gpuconv_status status = gc_cuda_choose_device(c->device, &device, error);
    if (status)
        return status;
    gc_filter_bank *b = gc_calloc(1, sizeof *b);
    if (!b)
        return gc_fail_memory(error, "a filter bank");
    gck_filter_bank start = {.channels = c->channels, .block = c->block, .levels = 1};
    start.level[0] = (gck_filter_bank_level){.hop = c->block, .periods = 1};
    double least = HUGE_VAL;
    search(&b->kernel, &least, start, 0, c->taps);
    b->kernel.ring_frames = 2 * b->kernel.level[b->kernel.levels - 1].hop;
    status = gc_cuda_check(error, device, init(b, c, device));
    if (status) {
        close_bank(b);
        return status;
    }
    describe(b);
    *bank = b;
    return GPUCONV_OK;
}

/* ---- Use --------------------------------------------------------------------------------------------------------- */

static gpuconv_status process(gc_filter_bank *b, const float *in, const float **out, gpuconv_error *error) {
    size_t bytes = (size_t)b->kernel.channels * (size_t)b->kernel.block * sizeof(float);
    cudaError_t err = cudaMemcpyAsync(b->in, in, bytes, cudaMemcpyHostToDevice, b->stream);
    GC_CUDA_TRY(err, cudaGraphLaunch(b->first_level, b->stream));
    GC_CUDA_TRY(err, cudaEventRecord(b->done, b->stream));
    GC_CUDA_TRY(err, cudaGraphLaunch(b->next_levels, b->stream));
    if (!err) {
        do /* polls, because the wait takes only microseconds */
            err = cudaEventQuery(b->done);
        while (err == cudaErrorNotReady);
    }
    *out = b->out;
    return gc_cuda_check(error, b->resources.device, err);
}

static float *pin(gc_filter_bank *b, int64_t floats) {
    float *pinned = NULL;
    (void)cudaSetDevice(b->resources.device);
    if (cudaHostAlloc((void **)&pinned, (size_t)floats * sizeof *pinned, cudaHostAllocPortable) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return pinned;
}

static void unpin(gc_filter_bank *b, float *pinned) {
    (void)cudaSetDevice(b->resources.device);
    cudaFreeHost(pinned);
}

static const char *plan(const gc_filter_bank *b) {
    return b->plan;
}

const gc_filter_bank_backend gc_filter_bank_cuda = {open_bank, process, pin, unpin, plan, close_bank};
