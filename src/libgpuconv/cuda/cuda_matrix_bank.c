/*
 * Matrices in real time on a CUDA device (kernels/engine/matrix_bank.cu). A period copies the inputs to the device,
 * runs a graph with the first level and the copy of the outputs, and then a graph with the further levels, whose
 * results are needed later.
 */
#include "cuda_bank.h"
#include "cuda_device.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS_MAX = GCK_FILTER_BANK_LEVELS_MAX, CHANNELS_MAX = 4096, ROUTES_MAX = 1 << 24, TAPS_MAX = 1 << 26 };

/* Blocks of threads of the products of a level, per multiprocessor, that fill it. */
enum { PRODUCT_BLOCKS = 6 };

struct gc_filter_bank {
    gc_cuda_resources resources;
    gck_matrix_bank kernel; /* the kernels' argument */
    int routes;
    float *in;       /* device memory */
    float *out;      /* page-locked */
    int64_t *period; /* device memory */
    gc_cuda_bank_spectra spectra[LEVELS_MAX];
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

/* Returns the first tap of a level. */
static int64_t first_tap(const gck_matrix_bank *bank, int number) {
    return number ? 2 * bank->level[number].hop : 0;
}

/* Returns the bytes that a period moves for the last level of `bank`: the spectra of the responses of a block, those of
 * the inputs as often, and the windows, spectra and results. A period waits for the first level, which counts twice. */
static double level_cost(const gck_matrix_bank *bank, int routes) {
    const gck_matrix_bank_level *l = &bank->level[bank->levels - 1];
    const double spectra = 16.0 * routes * l->partitions, transforms = 60.0 * (bank->inputs + bank->outputs);
    return (bank->levels == 1 ? 2 : 1) * (spectra + transforms) * bank->block;
}

/* Tries all partitions into up to LEVELS_MAX levels that begin with those of `bank`, hops growing, and stores the
 * cheapest in *best. cost: of all levels of `bank` but the last. shared: bytes of shared memory that a transform may
 * use. */
static void search(gck_matrix_bank *best, double *least, gck_matrix_bank bank, double cost, int routes, int64_t taps,
                   int64_t shared) {
    gck_matrix_bank_level *last = &bank.level[bank.levels - 1];
    const int64_t from = first_tap(&bank, bank.levels - 1);
    last->partitions = (int)((taps - from + last->hop - 1) / last->hop);
    const double total = cost + level_cost(&bank, routes);
    if (total < *least) {
        *least = total;
        *best = bank;
    }
    for (int64_t hop = 2 * last->hop; hop <= GCK_FILTER_BANK_HOP_MAX && gck_filter_bank_shared_bytes(hop) <= shared &&
                                      2 * hop < taps && bank.levels < LEVELS_MAX;
         hop *= 2) {
        gck_matrix_bank next = bank;
        next.level[bank.levels - 1].partitions = (int)((2 * hop - from) / last->hop);
        const double before = cost + level_cost(&next, routes);
        next.level[next.levels++] = (gck_matrix_bank_level){.hop = hop, .periods = (int)(hop / bank.block)};
        search(best, least, next, before, routes, taps, shared);
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

/* Uploads the routes in the order of the outputs. */
static void make_routes(gc_filter_bank *b, const gc_filter_bank_config *c) {
    gc_cuda_resources *r = &b->resources;
    gck_matrix_bank *k = &b->kernel;
    int *row = gc_calloc(c->outputs + 1, sizeof *row);
    gck_matrix_bank_route *route = gc_calloc(c->channels, sizeof *route);
    if (!row || !route) {
        GC_CUDA_TRY(r->err, cudaErrorMemoryAllocation);
    } else {
        for (int i = 0; i < c->channels; i++)
            row[c->route[i].output + 1]++;
        for (int o = 0; o < c->outputs; o++)
            row[o + 1] += row[o];
        for (int i = c->channels - 1; i >= 0; i--) /* row[o + 1]: behind the routes of o that are left */
            route[--row[c->route[i].output + 1]] = (gck_matrix_bank_route){c->route[i].input, i};
        memmove(row, row + 1, (size_t)c->outputs * sizeof *row);
        row[c->outputs] = c->channels;
        k->row = gc_cuda_upload(r, row, (c->outputs + 1) * (int64_t)sizeof *row);
        k->route = gc_cuda_upload(r, route, c->channels * (int64_t)sizeof *route);
    }
    free(row);
    free(route);
}

static void make_level(gc_filter_bank *b, int number, int multiprocessors) {
    gck_matrix_bank *k = &b->kernel;
    gck_matrix_bank_level *l = &k->level[number];
    const int64_t each = sizeof(float2), due = (k->outputs + l->periods - 1) / l->periods;
    const int64_t lanes = gc_min(l->hop / 2, 64), blocks = due * (l->hop / 2 / lanes);
    const int64_t routes = (b->routes + k->outputs - 1) / k->outputs;
    l->splits = (int)gc_max(
        1, gc_min(gc_min(PRODUCT_BLOCKS * multiprocessors / blocks, GCK_MATRIX_BANK_SPLITS_MAX), routes * lanes / 256));
    l->table = gc_cuda_bank_table(&b->resources, l->hop);
    float2 *spectra = gc_cuda_memory(&b->resources, b->routes * l->partitions * l->hop * each);
    l->spectra = spectra;
    l->delay = zeroed(b, k->inputs * l->partitions * l->hop * each);
    l->sums = zeroed(b, k->outputs * l->splits * l->hop * each);
    if (number > 0)
        l->future = zeroed(b, 2 * k->outputs * l->hop * (int64_t)sizeof(float));
    b->spectra[number] = (gc_cuda_bank_spectra){
        {.hop = l->hop, .partitions = l->partitions, .table = l->table}, first_tap(k, number), spectra};
}

static cudaError_t queue_first_level(gc_filter_bank *b) {
    const size_t bytes = (size_t)b->kernel.outputs * (size_t)b->kernel.block * sizeof(float);
    cudaError_t err = gck_matrix_bank_first_level(&b->kernel, b->stream);
    return GC_CUDA_TRY(err, cudaMemcpyAsync(b->out, b->kernel.out, bytes, cudaMemcpyDeviceToHost, b->stream));
}

static cudaError_t queue_next_levels(gc_filter_bank *b) {
    cudaError_t err = cudaSuccess;
    for (int k = 1; k < b->kernel.levels; k++)
        GC_CUDA_TRY(err, gck_matrix_bank_next_level(&b->kernel, k, b->stream));
    return GC_CUDA_TRY(err, gck_filter_bank_advance(b->period, b->stream));
}

/* Creates everything on the device. Returns the first error. */
static cudaError_t init(gc_filter_bank *b, const gc_filter_bank_config *c, int device, int multiprocessors) {
    const int64_t each = sizeof(float);
    gc_cuda_resources *r = &b->resources;
    gck_matrix_bank *k = &b->kernel;
    gc_cuda_resources_init(r, device);
    b->routes = c->channels;
    b->stream = gc_cuda_stream(r);
    b->done = gc_cuda_event(r, cudaEventDisableTiming);
    b->in = zeroed(b, c->inputs * c->block * each);
    b->period = zeroed(b, sizeof *b->period);
    b->out = gc_cuda_pinned(r, c->outputs * c->block * each);
    k->in = b->in;
    k->out = zeroed(b, c->outputs * c->block * each);
    k->ring_frames = 2 * k->level[k->levels - 1].hop;
    k->ring = zeroed(b, c->inputs * k->ring_frames * each);
    k->period = b->period;
    make_routes(b, c);
    for (int i = 0; i < k->levels; i++)
        make_level(b, i, multiprocessors);
    GC_CUDA_TRY(r->err, gc_cuda_bank_transform(device, c, b->spectra, k->levels, b->stream));
    /* One period of silence without a graph, so that every kernel is loaded. */
    GC_CUDA_TRY(r->err, queue_first_level(b));
    GC_CUDA_TRY(r->err, queue_next_levels(b));
    GC_CUDA_TRY(r->err, cudaStreamSynchronize(b->stream));
    b->first_level = gc_cuda_bank_capture(r, b->stream, queue_first_level, b);
    b->next_levels = gc_cuda_bank_capture(r, b->stream, queue_next_levels, b);
    return r->err;
}

static bool routes_fit(const gc_filter_bank_config *c) {
    for (int i = 0; i < c->channels; i++)
        if (c->route[i].input < 0 || c->route[i].input >= c->inputs || c->route[i].output < 0 ||
            c->route[i].output >= c->outputs)
            return false;
    return true;
}

static gpuconv_status check(const gc_filter_bank_config *c, gpuconv_error *error) {
    const int block = c->block;
    if (c->inputs < 1 || c->inputs > CHANNELS_MAX || c->outputs < 1 || c->outputs > CHANNELS_MAX || c->channels < 1 ||
        c->channels > ROUTES_MAX || block < GCK_FILTER_BANK_BLOCK_MIN || block > GCK_FILTER_BANK_BLOCK_MAX ||
        (block & (block - 1)) != 0 || c->taps < 1 || c->taps > TAPS_MAX)
        return gc_fail(
            error, GPUCONV_ERROR_ARGUMENT,
            "%d inputs, %d outputs, %d routes, blocks of %d frames and %lld taps are not a matrix in real "
            "time; use 1 to %d channels, up to %d routes, blocks of a power of two from %d to %d frames, and "
            "1 to %d taps",
            c->inputs, c->outputs, c->channels, block, (long long)c->taps, CHANNELS_MAX, ROUTES_MAX,
            GCK_FILTER_BANK_BLOCK_MIN, GCK_FILTER_BANK_BLOCK_MAX, TAPS_MAX);
    return routes_fit(c) ? GPUCONV_OK
                         : gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a route has an input or output that does not exist");
}

static gpuconv_status open_bank(const gc_filter_bank_config *c, gc_filter_bank **bank, gpuconv_error *error) {
    int device, caller;
    *bank = NULL;
    gpuconv_status status = check(c, error);
    if (!status)
        status = gc_cuda_choose_device(c->device, &device, error);
    if (status)
        return status;
    gc_filter_bank *b = gc_calloc(1, sizeof *b);
    if (!b)
        return gc_fail_memory(error, "a matrix in real time");
    gck_matrix_bank start = {.inputs = c->inputs, .outputs = c->outputs, .block = c->block, .levels = 1};
    start.level[0] = (gck_matrix_bank_level){.hop = c->block, .periods = 1};
    gck_device properties;
    double least = HUGE_VAL;
    cudaError_t err = gc_cuda_enter(device, &caller);
    GC_CUDA_TRY(err, gck_device_query(device, &properties));
    if (!err) {
        search(&b->kernel, &least, start, 0, c->channels, c->taps, properties.shared_bytes);
        err = init(b, c, device, properties.multiprocessors);
    }
    gc_cuda_leave(caller);
    if (err) {
        const int64_t bytes = b->resources.device_bytes;
        close_bank(b);
        return gc_cuda_check_memory(error, device, err, "a matrix in real time", bytes);
    }
    describe(b);
    *bank = b;
    return GPUCONV_OK;
}

/* ---- Use --------------------------------------------------------------------------------------------------------- */

static gpuconv_status process(gc_filter_bank *b, const float *in, const float **out, gpuconv_error *error) {
    const size_t bytes = (size_t)b->kernel.inputs * (size_t)b->kernel.block * sizeof(float);
    int caller;
    cudaError_t err = gc_cuda_enter(b->resources.device, &caller);
    GC_CUDA_TRY(err, cudaMemcpyAsync(b->in, in, bytes, cudaMemcpyHostToDevice, b->stream));
    GC_CUDA_TRY(err, cudaGraphLaunch(b->first_level, b->stream));
    GC_CUDA_TRY(err, cudaEventRecord(b->done, b->stream));
    GC_CUDA_TRY(err, cudaGraphLaunch(b->next_levels, b->stream));
    GC_CUDA_TRY(err, gc_cuda_bank_wait(b->done));
    gc_cuda_leave(caller);
    *out = b->out;
    return gc_cuda_check(error, b->resources.device, err);
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

const gc_filter_bank_backend gc_matrix_bank_cuda = {open_bank, process, alloc_pinned, free_pinned, plan, close_bank};
