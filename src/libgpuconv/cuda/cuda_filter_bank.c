/* A bank on a CUDA device: spectra made once; then each period a copy in, a graph with what its output waits for and
 * the copy out, and behind that a graph with the further levels, which the next period finds done. */
#include "libgpuconv/engine/filter_bank.h"

#include "kernels/engine/kernels.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS_MOST = 1 << 20, UPLOAD = 1 << 24 }; /* floats of responses that cross the bus at a time */

struct gc_bank {
    int device;
    gck_bank at;
    float *out; /* pinned */
    int64_t *tick;
    cudaStream_t stream;
    cudaGraphExec_t now, later;
    cudaEvent_t done;
    size_t bytes; /* of device memory */
    char plan[256];
};

static gpuconv_status failed_on(const gc_bank *b, cudaError_t failed, gpuconv_error *error) {
    (void)cudaGetLastError();
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "CUDA device %d: %s", b->device, cudaGetErrorString(failed));
}

static void close_bank(gc_bank *b) {
    if (!b)
        return;
    cudaSetDevice(b->device);
    if (b->stream)
        cudaStreamSynchronize(b->stream); /* nothing may still write to what is freed */
    if (b->now)
        cudaGraphExecDestroy(b->now);
    if (b->later)
        cudaGraphExecDestroy(b->later);
    if (b->done)
        cudaEventDestroy(b->done);
    for (int k = 0; k < GCK_BANK_LEVELS; k++) {
        gck_bank_level *l = &b->at.level[k];
        cudaFree((void *)l->table);
        cudaFree((void *)l->spectra);
        cudaFree(l->delay);
        cudaFree(l->future);
    }
    cudaFree((void *)b->at.in);
    cudaFree(b->at.out);
    cudaFree(b->at.ring);
    cudaFree(b->tick);
    cudaFreeHost(b->out);
    if (b->stream)
        cudaStreamDestroy(b->stream);
    free(b);
}

/* ---- How responses are cut --------------------------------------------------------------------------------------- */

/* Bytes that a channel moves in a period: spectra of blocks and of the response, and per block the window, the spectrum
 * and the result, counted three times over for the transform's own time. */
static double level_cost(int64_t hop, int64_t block, int64_t partitions) {
    return ((double)partitions * 16 + 3 * 20) * (double)hop / ((double)hop / (double)block);
}

/* All cuts of up to four levels, hops growing; the cheapest is left in *best. */
static void search(gck_bank *best, double *least, gck_bank now, double cost, int64_t taps) {
    gck_bank_level *last = &now.level[now.levels - 1];
    int64_t from = now.levels > 1 ? last->hop : 0, left = taps > from ? taps - from : 1;
    last->partitions = (int)((left + last->hop - 1) / last->hop);
    double whole = cost + level_cost(last->hop, now.block, last->partitions);
    if (whole < *least) {
        *least = whole;
        *best = now;
    }
    for (int64_t hop = 2 * last->hop; hop <= GCK_BANK_HOP_MOST && hop < taps && now.levels < GCK_BANK_LEVELS;
         hop *= 2) {
        gck_bank next = now;
        last = &next.level[next.levels - 1];
        last->partitions = (int)((hop - from) / last->hop);
        if (last->partitions < 1)
            continue;
        next.level[next.levels++] = (gck_bank_level){.hop = hop, .periods = (int)(hop / now.block)};
        search(best, least, next, cost + level_cost(last->hop, now.block, last->partitions), taps);
    }
}

static void describe(gc_bank *b) {
    size_t used = 0;
    for (int k = 0; k < b->at.levels && used < sizeof b->plan; k++)
        used += (size_t)snprintf(b->plan + used, sizeof b->plan - used, "%s%d x %lld", k ? ", " : "",
                                 b->at.level[k].partitions, (long long)b->at.level[k].hop);
    if (used < sizeof b->plan)
        (void)snprintf(b->plan + used, sizeof b->plan - used, "; %.2f GB on the device", (double)b->bytes * 1e-9);
}

/* ---- Making one -------------------------------------------------------------------------------------------------- */

static cudaError_t zeros(gc_bank *b, void **to, size_t bytes) {
    cudaError_t failed = cudaMalloc(to, bytes);
    b->bytes += failed ? 0 : bytes;
    return failed ? failed : cudaMemsetAsync(*to, 0, bytes, b->stream);
}

static cudaError_t make_level(gc_bank *b, int number) {
    gck_bank_level *l = &b->at.level[number];
    size_t channels = (size_t)b->at.channels, hop = (size_t)l->hop;
    float2 *table = gc_calloc(l->hop, (int64_t)sizeof *table), *there = NULL;
    if (!table)
        return cudaErrorMemoryAllocation;
    for (int64_t m = 0; m < l->hop; m++) {
        double angle = -2 * 3.14159265358979323846 * (double)m / (double)l->hop;
        table[m] = (float2){(float)cos(angle), (float)sin(angle)};
    }
    cudaError_t failed = zeros(b, (void **)&there, hop * sizeof *there);
    l->table = there;
    if (!failed)
        failed = cudaMemcpyAsync(there, table, hop * sizeof *there, cudaMemcpyHostToDevice, b->stream);
    if (!failed)
        failed = cudaStreamSynchronize(b->stream);
    free(table);
    if (!failed)
        failed = zeros(b, (void **)&l->spectra, channels * (size_t)l->partitions * hop * sizeof(float2));
    if (!failed)
        failed = zeros(b, (void **)&l->delay, channels * (size_t)l->partitions * hop * sizeof(float2));
    if (!failed && number > 0)
        failed = zeros(b, (void **)&l->future, channels * hop * sizeof(float));
    return failed;
}

/* Responses go over a few channels at a time. */
static cudaError_t send_responses(gc_bank *b, const gc_bank_config *c) {
    int64_t some = gc_max(1, gc_min(c->channels, UPLOAD / c->taps));
    float *host = NULL, *device = NULL;
    size_t bytes = (size_t)(some * c->taps) * sizeof(float);
    cudaError_t failed = cudaHostAlloc((void **)&host, bytes, cudaHostAllocPortable);
    if (!failed)
        failed = cudaMalloc((void **)&device, bytes);
    for (int64_t first = 0; first < c->channels && !failed; first += some) {
        int64_t n = gc_min(some, c->channels - first);
        for (int64_t i = 0; i < n; i++)
            c->response(c->context, (int)(first + i), host + i * c->taps);
        failed =
            cudaMemcpyAsync(device, host, (size_t)(n * c->taps) * sizeof(float), cudaMemcpyHostToDevice, b->stream);
        for (int k = 0; k < b->at.levels && !failed; k++) {
            gck_bank_level *l = &b->at.level[k];
            int64_t each = l->partitions * l->hop;
            failed = gck_bank_spectra(l->hop, device, (int)n, c->taps, k ? l->hop : 0, l->partitions, l->table,
                                      (float2 *)l->spectra + first * each, b->stream);
        }
        if (!failed)
            failed = cudaStreamSynchronize(b->stream);
    }
    cudaFree(device);
    cudaFreeHost(host);
    return failed;
}

static cudaError_t queue_now(gc_bank *b) {
    size_t bytes = (size_t)b->at.channels * (size_t)b->at.block * sizeof(float);
    cudaError_t failed = gck_bank_first(&b->at, b->stream);
    return failed ? failed : cudaMemcpyAsync(b->out, b->at.out, bytes, cudaMemcpyDeviceToHost, b->stream);
}

static cudaError_t queue_later(gc_bank *b) {
    cudaError_t failed = cudaSuccess;
    for (int k = 1; k < b->at.levels && !failed; k++)
        failed = gck_bank_next(&b->at, k, b->stream);
    return failed ? failed : gck_bank_advance(b->tick, b->stream);
}

static cudaError_t capture(gc_bank *b, cudaError_t (*queue)(gc_bank *b), cudaGraphExec_t *graph) {
    cudaGraph_t made = NULL;
    cudaError_t failed = cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal), inside = cudaSuccess;
    if (!failed) {
        inside = queue(b);
        failed = cudaStreamEndCapture(b->stream, &made);
    }
    if (!failed && inside)
        failed = inside;
    if (!failed)
        failed = cudaGraphInstantiate(graph, made, 0);
    if (made)
        cudaGraphDestroy(made);
    return failed;
}

static cudaError_t make(gc_bank *b, const gc_bank_config *c) {
    size_t samples = (size_t)c->channels * (size_t)c->block * sizeof(float);
    cudaError_t failed = cudaSetDevice(b->device);
    if (!failed)
        failed = cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking);
    if (!failed)
        failed = cudaEventCreateWithFlags(&b->done, cudaEventDisableTiming);
    if (!failed)
        failed = zeros(b, (void **)&b->at.in, samples);
    if (!failed)
        failed = zeros(b, (void **)&b->at.out, samples);
    if (!failed)
        failed = zeros(b, (void **)&b->at.ring, (size_t)c->channels * (size_t)b->at.room * sizeof(float));
    if (!failed)
        failed = zeros(b, (void **)&b->tick, sizeof *b->tick);
    b->at.tick = b->tick;
    if (!failed)
        failed = cudaHostAlloc((void **)&b->out, samples, cudaHostAllocPortable);
    for (int k = 0; k < b->at.levels && !failed; k++)
        failed = make_level(b, k);
    if (!failed)
        failed = send_responses(b, c);
    /* Once without a graph, so that every kernel is loaded: a period of silence. */
    if (!failed)
        failed = queue_now(b);
    if (!failed)
        failed = queue_later(b);
    if (!failed)
        failed = cudaStreamSynchronize(b->stream);
    if (!failed)
        failed = capture(b, queue_now, &b->now);
    if (!failed)
        failed = capture(b, queue_later, &b->later);
    return failed;
}

static gpuconv_status choose_device(int *device, gpuconv_error *error) {
    int driver = 0, count = 0, most = -1;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "no NVIDIA driver is installed");
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "no CUDA device");
    for (int d = 0, size = 0; d < count && *device < 0; d++)
        if (cudaDeviceGetAttribute(&size, cudaDevAttrMultiProcessorCount, d) == cudaSuccess && size > most)
            most = size;
    for (int d = 0, size = 0; d < count && *device < 0; d++)
        if (cudaDeviceGetAttribute(&size, cudaDevAttrMultiProcessorCount, d) == cudaSuccess && size == most)
            *device = d;
    return *device >= 0 && *device < count ? GPUCONV_OK
                                           : gc_fail(error, GPUCONV_ERROR_DEVICE, "no CUDA device %d", *device);
}

static gpuconv_status open_bank(const gc_bank_config *c, gc_bank **bank, gpuconv_error *error) {
    *bank = NULL;
    if (c->channels < 1 || c->channels > CHANNELS_MOST || c->block < GCK_BANK_BLOCK_LEAST ||
        c->block > GCK_BANK_BLOCK_MOST || (c->block & (c->block - 1)) != 0 || c->taps < 1 || c->taps > (1 << 26))
        return gc_fail(
            error, GPUCONV_ERROR_ARGUMENT,
            "a bank has 1 to %d channels, blocks of a power of two from %d to %d frames, and up to 2^26 taps",
            CHANNELS_MOST, GCK_BANK_BLOCK_LEAST, GCK_BANK_BLOCK_MOST);
    int device = c->device;
    gpuconv_status status = choose_device(&device, error);
    if (status)
        return status;
    gc_bank *b = gc_calloc(1, sizeof *b);
    if (!b)
        return gc_fail_memory(error, "a bank");
    b->device = device;
    gck_bank start = {.channels = c->channels, .block = c->block, .levels = 1};
    start.level[0] = (gck_bank_level){.hop = c->block, .periods = 1};
    double least = HUGE_VAL;
    search(&b->at, &least, start, 0, c->taps);
    b->at.room = 2 * b->at.level[b->at.levels - 1].hop;
    cudaError_t failed = make(b, c);
    if (failed) {
        status = failed_on(b, failed, error);
        close_bank(b);
        return status;
    }
    describe(b);
    *bank = b;
    return GPUCONV_OK;
}

/* ---- Serving ----------------------------------------------------------------------------------------------------- */

static gpuconv_status process(gc_bank *b, const float *in, const float **out, gpuconv_error *error) {
    size_t bytes = (size_t)b->at.channels * (size_t)b->at.block * sizeof(float);
    cudaError_t failed = cudaMemcpyAsync((void *)b->at.in, in, bytes, cudaMemcpyHostToDevice, b->stream);
    if (!failed)
        failed = cudaGraphLaunch(b->now, b->stream);
    if (!failed)
        failed = cudaEventRecord(b->done, b->stream);
    if (!failed)
        failed = cudaGraphLaunch(b->later, b->stream);
    if (!failed) {
        do /* without sleep: it is a matter of microseconds */
            failed = cudaEventQuery(b->done);
        while (failed == cudaErrorNotReady);
    }
    *out = b->out;
    return failed ? failed_on(b, failed, error) : GPUCONV_OK;
}

static float *pin(gc_bank *b, int64_t floats) {
    float *pinned = NULL;
    (void)cudaSetDevice(b->device);
    if (cudaHostAlloc((void **)&pinned, (size_t)floats * sizeof *pinned, cudaHostAllocPortable) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return pinned;
}

static void unpin(gc_bank *b, float *pinned) {
    (void)cudaSetDevice(b->device);
    cudaFreeHost(pinned);
}

static const char *plan(const gc_bank *b) {
    return b->plan;
}

const gc_bank_backend gc_bank_cuda = {open_bank, process, pin, unpin, plan, close_bank};
