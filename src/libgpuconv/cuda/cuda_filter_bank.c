/*
 * Filter banks on a CUDA device. The spectra are computed once. A period of a bank with few samples copies the inputs
 * to the device, runs a graph with the first level and the copy of the outputs, and then a graph with the further
 * levels, whose results are ready for the next period. With more samples the bus takes most of the time. Then groups of
 * channels follow each other, so that both directions of the bus work at once:
 *
 *      copy-in    inputs -> device         group g + 1
 *      compute    first level              group g          the further levels follow the last group
 *      copy-out   device -> outputs        group g - 1
 */
#include "cuda_filter_bank.h"

#include "cuda_bank.h"
#include "cuda_device.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS_MAX = 1 << 20, TAPS_MAX = 1 << 26 };

/* A group has at least GROUP_BYTES bytes of samples. Its kernel and its copies take some 20 us beyond their bytes, so
 * that more and smaller groups are slower. */
enum { GROUPS_MAX = 8, GROUP_BYTES = 2500000 };

struct gc_filter_bank {
    gc_cuda_resources resources;
    gck_filter_bank kernel; /* the kernels' argument */
    float *in;              /* device memory */
    float *out;             /* pinned */
    int64_t *period;        /* device memory */
    float2 *spectra[GCK_FILTER_BANK_LEVELS_MAX];
    cudaStream_t stream;
    cudaGraphExec_t first_level, next_levels;
    cudaEvent_t done;                                      /* the outputs of the period have been copied */
    int groups;                                            /* 1: one graph instead of groups */
    cudaStream_t copy_in, copy_out;                        /* NULL if there is one group */
    cudaEvent_t arrived[GROUPS_MAX], computed[GROUPS_MAX]; /* of each group */
    cudaEvent_t copied;                                    /* the outputs of all groups */
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
 * stores the cheapest in *best. cost: of all levels of `bank` but the last. shared: bytes of shared memory that a
 * transform may use. */
static void search(gck_filter_bank *best, double *least, gck_filter_bank bank, double cost, int64_t taps,
                   int64_t shared) {
    gck_filter_bank_level *last = &bank.level[bank.levels - 1];
    int64_t from = bank.levels > 1 ? last->hop : 0, left = taps > from ? taps - from : 1;
    last->partitions = (int)((left + last->hop - 1) / last->hop);
    double total = cost + level_cost(last->hop, bank.block, last->partitions);
    if (total < *least) {
        *least = total;
        *best = bank;
    }
    for (int64_t hop = 2 * last->hop; hop <= GCK_FILTER_BANK_HOP_MAX && gck_filter_bank_shared_bytes(hop) <= shared &&
                                      hop < taps && bank.levels < GCK_FILTER_BANK_LEVELS_MAX;
         hop *= 2) {
        gck_filter_bank next = bank;
        last = &next.level[next.levels - 1];
        last->partitions = (int)((hop - from) / last->hop);
        if (last->partitions < 1)
            continue;
        next.level[next.levels++] = (gck_filter_bank_level){.hop = hop, .periods = (int)(hop / bank.block)};
        search(best, least, next, cost + level_cost(last->hop, bank.block, last->partitions), taps, shared);
    }
}

static void describe(gc_filter_bank *b) {
    size_t used = 0;
    for (int k = 0; k < b->kernel.levels && used < sizeof b->plan; k++)
        used += (size_t)snprintf(b->plan + used, sizeof b->plan - used, "%s%d x %lld", k ? ", " : "",
                                 b->kernel.level[k].partitions, (long long)b->kernel.level[k].hop);
    if (used < sizeof b->plan)
        (void)gc_format(b->plan + used, sizeof b->plan - used, "; %.2f GB on the device",
                        (double)b->resources.device_bytes * 1e-9);
}

/* ---- Creation ---------------------------------------------------------------------------------------------------- */

static void *zeroed(gc_filter_bank *b, int64_t bytes) {
    return gc_cuda_bank_zeroed(&b->resources, bytes, b->stream);
}

static void make_level(gc_filter_bank *b, int number) {
    gck_filter_bank_level *l = &b->kernel.level[number];
    int64_t channels = b->kernel.channels, spectra_bytes = channels * l->partitions * l->hop * (int64_t)sizeof(float2);
    l->table = gc_cuda_bank_table(&b->resources, l->hop);
    b->spectra[number] = zeroed(b, spectra_bytes);
    l->spectra = b->spectra[number];
    l->delay = zeroed(b, spectra_bytes);
    if (number > 0)
        l->future = zeroed(b, channels * l->hop * (int64_t)sizeof(float));
}

static cudaError_t make_spectra(gc_filter_bank *b, const gc_filter_bank_config *c) {
    gc_cuda_bank_spectra levels[GCK_FILTER_BANK_LEVELS_MAX];
    for (int k = 0; k < b->kernel.levels; k++)
        levels[k] = (gc_cuda_bank_spectra){b->kernel.level[k], k ? b->kernel.level[k].hop : 0, b->spectra[k]};
    return gc_cuda_bank_transform(b->resources.device, c, levels, b->kernel.levels, b->stream);
}

static cudaError_t queue_first_level(gc_filter_bank *b) {
    size_t bytes = (size_t)b->kernel.channels * (size_t)b->kernel.block * sizeof(float);
    cudaError_t err = gck_filter_bank_first_level(&b->kernel, 0, b->kernel.channels, b->stream);
    return GC_CUDA_TRY(err, cudaMemcpyAsync(b->out, b->kernel.out, bytes, cudaMemcpyDeviceToHost, b->stream));
}

typedef struct group {
    int first, count; /* channels */
    int64_t at;       /* of the first sample */
    size_t bytes;
} group;

/* Returns the channels of group g. */
static group group_of(const gc_filter_bank *b, int g) {
    const int64_t channels = b->kernel.channels, block = b->kernel.block;
    const int64_t first = channels * g / b->groups, count = channels * (g + 1) / b->groups - first;
    return (group){(int)first, (int)count, first * block, (size_t)(count * block) * sizeof(float)};
}

/* Queues the first level of each group, once its inputs have arrived, and the copy of its outputs. For capture: the
 * arrival of inputs is an event from outside the graph. */
static cudaError_t queue_group_levels(gc_filter_bank *b) {
    cudaError_t err = cudaSuccess;
    for (int g = 0; g < b->groups; g++) {
        const group part = group_of(b, g);
        GC_CUDA_TRY(err, cudaStreamWaitEvent(b->stream, b->arrived[g], cudaEventWaitExternal));
        GC_CUDA_TRY(err, gck_filter_bank_first_level(&b->kernel, part.first, part.count, b->stream));
        GC_CUDA_TRY(err, cudaEventRecord(b->computed[g], b->stream));
        GC_CUDA_TRY(err, cudaStreamWaitEvent(b->copy_out, b->computed[g], 0));
        GC_CUDA_TRY(err, cudaMemcpyAsync(b->out + part.at, b->kernel.out + part.at, part.bytes, cudaMemcpyDeviceToHost,
                                         b->copy_out));
    }
    GC_CUDA_TRY(err, cudaEventRecord(b->copied, b->copy_out));
    return GC_CUDA_TRY(err, cudaStreamWaitEvent(b->stream, b->copied, 0));
}

static cudaError_t queue_next_levels(gc_filter_bank *b) {
    cudaError_t err = cudaSuccess;
    for (int k = 1; k < b->kernel.levels; k++)
        GC_CUDA_TRY(err, gck_filter_bank_next_level(&b->kernel, k, b->stream));
    return GC_CUDA_TRY(err, gck_filter_bank_advance(b->period, b->stream));
}

/* Creates the streams and events of the groups, if the samples of a period suffice for more than one. */
static void make_groups(gc_filter_bank *b) {
    gc_cuda_resources *r = &b->resources;
    const int64_t bytes = (int64_t)b->kernel.channels * b->kernel.block * (int64_t)sizeof(float);
    b->groups = (int)gc_max(1, gc_min(gc_min(GROUPS_MAX, b->kernel.channels), bytes / GROUP_BYTES));
    if (b->groups == 1)
        return;
    b->copy_in = gc_cuda_stream(r);
    b->copy_out = gc_cuda_stream(r);
    b->copied = gc_cuda_event(r, cudaEventDisableTiming);
    for (int g = 0; g < b->groups; g++) {
        b->arrived[g] = gc_cuda_event(r, cudaEventDisableTiming);
        b->computed[g] = gc_cuda_event(r, cudaEventDisableTiming);
    }
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
    make_groups(b);
    b->first_level = gc_cuda_bank_capture(r, b->stream, b->groups == 1 ? queue_first_level : queue_group_levels, b);
    b->next_levels = gc_cuda_bank_capture(r, b->stream, queue_next_levels, b);
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
    gck_device properties;
    double least = HUGE_VAL;
    int caller;
    cudaError_t err = gc_cuda_enter(device, &caller);
    GC_CUDA_TRY(err, gck_device_query(device, &properties));
    if (!err) {
        search(&b->kernel, &least, start, 0, c->taps, properties.shared_bytes);
        b->kernel.ring_frames = 2 * b->kernel.level[b->kernel.levels - 1].hop;
        err = init(b, c, device);
    }
    gc_cuda_leave(caller);
    if (err) {
        const int64_t bytes = b->resources.device_bytes;
        close_bank(b);
        return gc_cuda_check_memory(error, device, err, "a filter bank", bytes);
    }
    describe(b);
    *bank = b;
    return GPUCONV_OK;
}

/* ---- Use --------------------------------------------------------------------------------------------------------- */

/* Queues the first level of all channels and the copies of their samples. */
static cudaError_t queue_whole(gc_filter_bank *b, const float *in) {
    size_t bytes = (size_t)b->kernel.channels * (size_t)b->kernel.block * sizeof(float);
    cudaError_t err = cudaMemcpyAsync(b->in, in, bytes, cudaMemcpyHostToDevice, b->stream);
    GC_CUDA_TRY(err, cudaGraphLaunch(b->first_level, b->stream));
    return GC_CUDA_TRY(err, cudaEventRecord(b->done, b->stream));
}

/* The same in groups of channels. The buffers are free: `process` has waited for the copies of the last period. The
 * copies of the inputs are calls, because their address changes from period to period; all else is one graph, because
 * calls for each group would take longer than the groups. */
static cudaError_t queue_groups(gc_filter_bank *b, const float *in) {
    cudaError_t err = cudaSuccess;
    for (int g = 0; g < b->groups; g++) {
        const group part = group_of(b, g);
        GC_CUDA_TRY(err,
                    cudaMemcpyAsync(b->in + part.at, in + part.at, part.bytes, cudaMemcpyHostToDevice, b->copy_in));
        GC_CUDA_TRY(err, cudaEventRecord(b->arrived[g], b->copy_in));
    }
    GC_CUDA_TRY(err, cudaGraphLaunch(b->first_level, b->stream));
    return GC_CUDA_TRY(err, cudaEventRecord(b->done, b->stream));
}

static gpuconv_status process(gc_filter_bank *b, const float *in, const float **out, gpuconv_error *error) {
    int caller;
    cudaError_t err = gc_cuda_enter(b->resources.device, &caller);
    GC_CUDA_TRY(err, b->groups > 1 ? queue_groups(b, in) : queue_whole(b, in));
    GC_CUDA_TRY(err, cudaGraphLaunch(b->next_levels, b->stream));
    GC_CUDA_TRY(err, gc_cuda_bank_wait(b->done));
    gc_cuda_leave(caller);
    *out = b->out;
    return gc_cuda_check(error, b->resources.device, err);
}

cudaError_t gc_cuda_filter_bank_queue(gc_filter_bank *b, const float *in, float *out, cudaStream_t stream) {
    gck_filter_bank bank = b->kernel;
    bank.in = in;
    bank.out = out;
    cudaError_t err = gck_filter_bank_first_level(&bank, 0, bank.channels, stream);
    for (int k = 1; k < bank.levels; k++)
        GC_CUDA_TRY(err, gck_filter_bank_next_level(&bank, k, stream));
    return GC_CUDA_TRY(err, gck_filter_bank_advance(b->period, stream));
}

cudaError_t gc_cuda_filter_bank_reset(gc_filter_bank *b, cudaStream_t stream) {
    const gck_filter_bank *k = &b->kernel;
    const size_t channels = (size_t)k->channels;
    cudaError_t err = cudaMemsetAsync(b->period, 0, sizeof *b->period, stream);
    GC_CUDA_TRY(err, cudaMemsetAsync(k->ring, 0, channels * (size_t)k->ring_frames * sizeof(float), stream));
    for (int i = 0; i < k->levels; i++) {
        const gck_filter_bank_level *l = &k->level[i];
        GC_CUDA_TRY(err,
                    cudaMemsetAsync(l->delay, 0, channels * (size_t)(l->partitions * l->hop) * sizeof(float2), stream));
        if (l->future)
            GC_CUDA_TRY(err, cudaMemsetAsync(l->future, 0, channels * (size_t)l->hop * sizeof(float), stream));
    }
    return err;
}

static float *alloc_pinned(gc_filter_bank *b, int64_t floats) {
    return gc_cuda_bank_pinned(b->resources.device, floats);
}

static void free_pinned(gc_filter_bank *b, float *pinned) {
    gc_cuda_bank_free_pinned(b->resources.device, pinned);
}

static const char *plan(const gc_filter_bank *b) {
    return b->plan;
}

const gc_filter_bank_backend gc_filter_bank_cuda = {open_bank, process, alloc_pinned, free_pinned, plan, close_bank};
