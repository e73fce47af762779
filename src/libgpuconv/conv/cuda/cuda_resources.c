/* CUDA resources that are released together. */
#include "cuda_resources.h"

#include "cuda_device.h"
#include "cuda_pinned.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef enum resource_kind { STREAM, EVENT, GRAPH, DEVICE_MEMORY, PINNED_MEMORY } resource_kind;

typedef struct gc_cuda_resource {
    resource_kind kind;
    void *handle;
} gc_cuda_resource;

void gc_cuda_resources_init(gc_cuda_resources *r, int device) {
    *r = (gc_cuda_resources){.device = device};
}

/* Makes room for one more entry of the list. Returns false if there was an error, now or before. */
static bool reserve(gc_cuda_resources *r) {
    if (!r->err && r->count == r->capacity) {
        int capacity = r->capacity ? 2 * r->capacity : 16;
        gc_cuda_resource *list = realloc(r->list, (size_t)capacity * sizeof *list);
        if (!list) {
            r->err = cudaErrorMemoryAllocation;
        } else {
            r->list = list;
            r->capacity = capacity;
        }
    }
    return !r->err;
}

/* Adds a resource that `err` says was created. Returns it, or NULL after an error. */
static void *add(gc_cuda_resources *r, resource_kind kind, void *handle) {
    if (r->err)
        return NULL;
    r->list[r->count++] = (gc_cuda_resource){kind, handle};
    return handle;
}

cudaStream_t gc_cuda_stream(gc_cuda_resources *r) {
    cudaStream_t stream = NULL;
    if (reserve(r))
        r->err = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    return add(r, STREAM, stream);
}

cudaEvent_t gc_cuda_event(gc_cuda_resources *r, unsigned flags) {
    cudaEvent_t event = NULL;
    if (reserve(r))
        r->err = cudaEventCreateWithFlags(&event, flags);
    return add(r, EVENT, event);
}

cudaGraphExec_t gc_cuda_graph(gc_cuda_resources *r, cudaGraph_t graph) {
    cudaGraphExec_t instance = NULL;
    if (reserve(r))
        r->err = cudaGraphInstantiate(&instance, graph, 0);
    return add(r, GRAPH, instance);
}

cudaError_t gc_cuda_pool(int device, cudaMemPool_t *pool) {
    const struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                                .location = {.type = cudaMemLocationTypeDevice, .id = device}};
    int supported = 0;
    cudaError_t err = cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device);
    *pool = NULL;
    return err || !supported ? err : cudaMemPoolCreate(pool, &properties);
}

/* Creates the stream and the pool of device memory. Returns false if there was an error, now or before. */
static bool prepare_memory(gc_cuda_resources *r) {
    if (r->err || r->order)
        return !r->err;
    r->err = cudaStreamCreateWithFlags(&r->order, cudaStreamNonBlocking);
    GC_CUDA_TRY(r->err, gc_cuda_pool(r->device, &r->pool));
    return !r->err;
}

void *gc_cuda_memory(gc_cuda_resources *r, int64_t bytes) {
    void *p = NULL;
    const size_t size = (size_t)gc_max(bytes, 1);
    if (reserve(r) && prepare_memory(r)) {
        r->err = r->pool ? cudaMallocFromPoolAsync(&p, size, r->pool, r->order) : cudaMalloc(&p, size);
        GC_CUDA_TRY(r->err, cudaStreamSynchronize(r->order)); /* other streams will use it */
    }
    r->device_bytes += bytes;
    return add(r, DEVICE_MEMORY, p);
}

void *gc_cuda_host_table(gc_cuda_resources *r, int64_t count, int64_t size) {
    void *table = r->err ? NULL : gc_calloc(count, size);
    if (!table && !r->err)
        r->err = cudaErrorMemoryAllocation;
    return table;
}

const float2 *gc_cuda_twiddles(gc_cuda_resources *r, void (*write)(int64_t points, float2 *table), int64_t points,
                               int64_t count) {
    float2 *table = gc_cuda_host_table(r, count, sizeof *table);
    if (table)
        write(points, table);
    const float2 *device = gc_cuda_upload(r, table, count * (int64_t)sizeof *table);
    free(table);
    return device;
}

void *gc_cuda_pinned(gc_cuda_resources *r, int64_t bytes) {
    void *p = NULL;
    if (reserve(r))
        r->err = gc_cuda_pinned_new(bytes, &p);
    return add(r, PINNED_MEMORY, p);
}

static void release(const gc_cuda_resources *r, const gc_cuda_resource *resource) {
    switch (resource->kind) {
    case STREAM:
        cudaStreamDestroy(resource->handle);
        break;
    case EVENT:
        cudaEventDestroy(resource->handle);
        break;
    case GRAPH:
        cudaGraphExecDestroy(resource->handle);
        break;
    case DEVICE_MEMORY:
        if (r->pool)
            cudaFreeAsync(resource->handle, r->order);
        else
            cudaFree(resource->handle);
        break;
    case PINNED_MEMORY:
        gc_cuda_pinned_free(resource->handle);
        break;
    }
}

void gc_cuda_resources_free(gc_cuda_resources *r) {
    int caller = -1;
    if (r->count > 0 || r->order)
        (void)gc_cuda_enter(r->device, &caller);
    for (int i = 0; i < r->count; i++)
        if (r->list[i].kind == STREAM) /* work in flight must not access memory that is released */
            cudaStreamSynchronize(r->list[i].handle);
    while (r->count > 0)
        release(r, &r->list[--r->count]);
    if (r->order) {
        cudaStreamSynchronize(r->order);
        cudaStreamDestroy(r->order);
    }
    if (r->pool)
        cudaMemPoolDestroy(r->pool);
    gc_cuda_leave(caller);
    free(r->list);
    r->list = NULL;
    r->order = NULL;
    r->pool = NULL;
    r->capacity = 0;
    if (r->err)
        (void)cudaGetLastError();
}

/* ---- Upload -------------------------------------------------------------------------------------------------------
 * Ordinary host memory reaches a device through page-locked memory. The driver copies it there with one thread, at
 * 8 GB/s; here, from 32 MB on, several threads copy a piece each and queue it, which fills the bus. */

enum { PIECE_BYTES = 4 << 20, LARGE_BYTES = 32 << 20, WORKERS_MAX = 8 };

typedef struct upload {
    char *to;
    const char *from;
    int64_t bytes;
    int device, workers;
    cudaStream_t stream;
    char *staging;                  /* PIECE_BYTES for each worker */
    cudaEvent_t event[WORKERS_MAX]; /* the piece in the worker's memory has been copied */
    cudaError_t err[WORKERS_MAX];
} upload;

static void copy_piece(void *context, int64_t index, int worker) {
    upload *u = context;
    const int64_t at = index * PIECE_BYTES;
    const size_t bytes = (size_t)gc_min(PIECE_BYTES, u->bytes - at);
    char *staging = u->staging + worker * PIECE_BYTES;
    cudaError_t *err = &u->err[worker];
    int caller = -1;
    GC_CUDA_TRY(*err, gc_cuda_enter(u->device, &caller));
    GC_CUDA_TRY(*err, cudaEventSynchronize(u->event[worker]));
    if (!*err)
        memcpy(staging, u->from + at, bytes);
    GC_CUDA_TRY(*err, cudaMemcpyAsync(u->to + at, staging, bytes, cudaMemcpyHostToDevice, u->stream));
    GC_CUDA_TRY(*err, cudaEventRecord(u->event[worker], u->stream));
    gc_cuda_leave(caller);
}

/* Copies all pieces. A part of them would be of no use, so that the threads do not look at the caller's flag. */
static cudaError_t copy_pieces(upload *u) {
    const volatile int *flag = gc_cancel_flag();
    gpuconv_cancel_set(NULL);
    gc_pool *pool = gc_pool_new(u->workers);
    if (pool)
        gc_pool_run(pool, copy_piece, u, gc_divide_up(u->bytes, PIECE_BYTES));
    gc_pool_free(pool);
    gpuconv_cancel_set(flag);
    cudaError_t err = pool ? cudaSuccess : cudaErrorMemoryAllocation;
    for (int i = 0; i < u->workers; i++)
        GC_CUDA_TRY(err, u->err[i]);
    return err;
}

static cudaError_t copy_large(upload *u) {
    gc_cuda_resources r;
    gc_cuda_resources_init(&r, u->device);
    u->workers = (int)gc_min(WORKERS_MAX, gc_processor_count());
    u->staging = gc_cuda_pinned(&r, (int64_t)u->workers * PIECE_BYTES);
    for (int i = 0; i < u->workers; i++)
        u->event[i] = gc_cuda_event(&r, cudaEventDisableTiming);
    cudaError_t err = GC_CUDA_TRY(r.err, copy_pieces(u));
    const cudaError_t done = cudaStreamSynchronize(u->stream); /* also after an error: the copies read the staging */
    gc_cuda_resources_free(&r);
    return err ? err : done;
}

void *gc_cuda_upload(gc_cuda_resources *r, const void *from, int64_t bytes) {
    void *p = gc_cuda_memory(r, bytes);
    if (!r->err && bytes >= LARGE_BYTES) {
        r->err = copy_large(&(upload){.to = p, .from = from, .bytes = bytes, .device = r->device, .stream = r->order});
    } else {
        GC_CUDA_TRY(r->err, cudaMemcpyAsync(p, from, (size_t)bytes, cudaMemcpyHostToDevice, r->order));
        GC_CUDA_TRY(r->err, cudaStreamSynchronize(r->order));
    }
    return r->err ? NULL : p;
}
