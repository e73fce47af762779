/* The upload of cuda_resources.h. Ordinary host memory reaches a device through page-locked memory. The driver copies
 * it there with one thread, at 8 GB/s; here, from 32 MB on, several threads copy a piece each and queue it, which fills
 * the bus. */
#include "cuda_device.h"
#include "cuda_resources.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"

#include <string.h>

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
