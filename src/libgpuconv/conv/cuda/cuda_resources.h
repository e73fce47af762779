/*
 * CUDA resources that are released together, and checks of CUDA calls.
 *
 * A gc_cuda_resources owns streams, events, graphs and memory of one device. It keeps the first error: once `err` is
 * set, the functions that create resources do nothing and return NULL, so that a caller creates everything and then
 * checks `err` once. For one thread at a time.
 *
 * Device memory comes from a pool of its own, in the order of a stream of its own. Neither allocating nor freeing it
 * waits for the work of others on the device, and the device's default pool belongs to the program.
 */
#ifndef GC_CUDA_CUDA_RESOURCES_H
#define GC_CUDA_CUDA_RESOURCES_H

#include <cuda_runtime_api.h>
#include <stdint.h>

/* Evaluates `call` and stores its status in `err`, unless `err` already holds an error. */
#define GC_CUDA_TRY(err, call) ((err) = (err) ? (err) : (call))

struct gc_cuda_resource;

typedef struct gc_cuda_resources {
    int device;
    cudaError_t err;
    cudaStream_t order;   /* of allocations, uploads and releases; NULL before the first one */
    cudaMemPool_t pool;   /* NULL: the device has no memory pools */
    int64_t device_bytes; /* of device memory that was asked for, also after an error */
    int count, capacity;
    struct gc_cuda_resource *list;
} gc_cuda_resources;

/* Creates a pool of device memory; *pool is NULL if the device has no memory pools. */
cudaError_t gc_cuda_pool(int device, cudaMemPool_t *pool);

/* Makes an empty set of resources of `device`, which the caller has entered (gc_cuda_enter) when it calls the functions
 * below. */
void gc_cuda_resources_init(gc_cuda_resources *resources, int device);

cudaStream_t gc_cuda_stream(gc_cuda_resources *resources);

/* flags: as of cudaEventCreateWithFlags. */
cudaEvent_t gc_cuda_event(gc_cuda_resources *resources, unsigned flags);

/* Instantiates a graph; the caller keeps `graph`. */
cudaGraphExec_t gc_cuda_graph(gc_cuda_resources *resources, cudaGraph_t graph);

/* Allocates device memory, not initialised. */
void *gc_cuda_memory(gc_cuda_resources *resources, int64_t bytes);

/* Allocates device memory and copies `from` (host memory) there; `from` may be freed afterwards. Waits for nothing but
 * the copy, in which all cores take part from 32 MB on. */
void *gc_cuda_upload(gc_cuda_resources *resources, const void *from, int64_t bytes);

/* Returns `count` zeroed host entries for a table that will be uploaded, for the caller to free; NULL after an error.
 */
void *gc_cuda_host_table(gc_cuda_resources *resources, int64_t count, int64_t size);

/* Uploads a table of `count` complex numbers that `write` writes for transforms of `points` points. */
const float2 *gc_cuda_twiddles(gc_cuda_resources *resources, void (*write)(int64_t points, float2 *table),
                               int64_t points, int64_t count);

/* Allocates page-locked host memory, not initialised (cuda_pinned.h). */
void *gc_cuda_pinned(gc_cuda_resources *resources, int64_t bytes);

/* Waits for all streams of the set, releases everything and leaves the thread's current device as it was; clears the
 * runtime's last error if there was one. `err` remains. */
void gc_cuda_resources_free(gc_cuda_resources *resources);

#endif
