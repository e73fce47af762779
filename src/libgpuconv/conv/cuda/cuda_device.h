/*
 * CUDA devices: their discovery and messages, resources that are released together, and page-locked host memory.
 *
 * A gc_cuda_resources owns streams, events, graphs and memory of one device. It keeps the first error: once `err` is
 * set, the functions that create resources do nothing and return NULL, so that a caller creates everything and then
 * checks `err` once. For one thread at a time.
 *
 * Device memory comes from a pool of its own, in the order of a stream of its own. Neither allocating nor freeing it
 * waits for the work of others on the device, and the device's default pool belongs to the program.
 *
 * Page-locked memory is kept for reuse, because the driver waits for all work on the device when it is freed or
 * unlocked: up to 256 MB in all are given to the next caller whom they fit, which also saves the time that locking
 * takes.
 */
#ifndef GC_CUDA_CUDA_DEVICE_H
#define GC_CUDA_CUDA_DEVICE_H

#include "libgpuconv/conv/plan.h"

#include <cuda_runtime_api.h>

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

/* Returns the number of CUDA devices; 0 with the reason in *error. Creates no context. */
int gc_cuda_count_devices(gpuconv_error *error);

/* Stores `wanted` in *device, or, if it is negative, the number of the device with the most multiprocessors.
 * @return GPUCONV_ERROR_DEVICE if there is no such device or no usable device */
gpuconv_status gc_cuda_choose_device(int wanted, int *device, gpuconv_error *error);

/* Fills *properties with those of a device, within the limits of GPUCONV_CUDA_LIMITS; all of its memory counts. Creates
 * no context. */
cudaError_t gc_cuda_read_device(int device, gc_device *properties);

/* Makes `device` the thread's current device and stores in *caller what gc_cuda_leave needs. Every function of a
 * backend that a program calls enters its device and leaves it, so that the program keeps its own. */
cudaError_t gc_cuda_enter(int device, int *caller);

/* Makes the device that was current before gc_cuda_enter current again. */
void gc_cuda_leave(int caller);

/* Stores the bytes of a device that are free, which starts the device. */
cudaError_t gc_cuda_free_memory(int device, double *bytes);

/* Starts a device. Refuses it if the slots of one worker of a batch, some 90 MB on an H200, and the kernels may not
 * fit, so that a batch that may use the CPU does. @return DEVICE */
gpuconv_status gc_cuda_init_device(int device, gpuconv_error *error);

/* Does what gc_cuda_check does for an object of `bytes` bytes of device memory. Where memory is missing, the message
 * gives the needed and the free bytes: call it when the memory of the object has been released.
 * @return GPUCONV_ERROR_MEMORY if memory is missing */
gpuconv_status gc_cuda_check_memory(gpuconv_error *error, int device, cudaError_t err, const char *what, int64_t bytes);

/* Stores the text of `err` on a device in *error and clears the runtime's last error.
 * @return GPUCONV_ERROR_DEVICE, or GPUCONV_OK if `err` is cudaSuccess */
gpuconv_status gc_cuda_check(gpuconv_error *error, int device, cudaError_t err);

/* Checks that the device of an object is current. Returns ARGUMENT if it is not. */
gpuconv_status gc_cuda_check_current(int device, gpuconv_error *error);

/* ---- Resources --------------------------------------------------------------------------------------------------- */

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

/* Uploads a table of `count` complex numbers that `write` writes for a transform: its points or the number of its
 * size. */
const float2 *gc_cuda_twiddles(gc_cuda_resources *resources, void (*write)(int64_t transform, float2 *table),
                               int64_t transform, int64_t count);

/* Allocates page-locked host memory, not initialised. */
void *gc_cuda_pinned(gc_cuda_resources *resources, int64_t bytes);

/* Waits for all streams of the set, releases everything and leaves the thread's current device as it was; clears the
 * runtime's last error if there was one. `err` remains. */
void gc_cuda_resources_free(gc_cuda_resources *resources);

/* ---- Page-locked memory ------------------------------------------------------------------------------------------ */

/* Stores at least `bytes` bytes in *memory, not initialised, page-locked for all devices. Any thread may call it. */
cudaError_t gc_cuda_pinned_new(int64_t bytes, void **memory);

/* Keeps the memory for reuse; no work may use it any more. Past the limit the memory that has been kept longest is
 * freed, which waits for the devices. */
void gc_cuda_pinned_free(void *memory);

/* As in gc_backend. */
float *gc_cuda_alloc_pinned(int device, int64_t floats);
void gc_cuda_free_pinned(int device, float *pinned);

/* ---- Kept samples: upload and release of gc_backend -------------------------------------------------------------- */

float *gc_cuda_keep(int device, const float *samples, int64_t floats);
void gc_cuda_release(int device, float *samples);

/* Returns the memory of released samples to the device. */
void gc_cuda_trim_kept(int device);

#endif
