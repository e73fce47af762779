/* CUDA devices, their resources, and page-locked memory (cuda_device.h). */
#include "cuda_device.h"
#include "kernels/engine/kernels.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

int gc_cuda_count_devices(gpuconv_error *error) {
    int driver = 0, count = 0;
    if (gck_unknown_limit()) {
        gc_fail(error, GPUCONV_ERROR_DEVICE,
                "GPUCONV_CUDA_LIMITS: \"%s\" is no limit; use shared=KB (48 or more), architecture=N (75 or more), "
                "no-early-launch and no-tensor-cores",
                gck_unknown_limit());
        return 0;
    }
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        gc_fail(error, GPUCONV_ERROR_DEVICE, "no NVIDIA driver is installed");
        return 0;
    }
    cudaError_t err = cudaGetDeviceCount(&count);
    if (err || count == 0) {
        gc_fail(error, GPUCONV_ERROR_DEVICE, "no CUDA device: %s", cudaGetErrorString(err ? err : cudaErrorNoDevice));
        return 0;
    }
    return count;
}

gpuconv_status gc_cuda_choose_device(int wanted, int *device, gpuconv_error *error) {
    int count = gc_cuda_count_devices(error), most = 0;
    if (count == 0)
        return GPUCONV_ERROR_DEVICE;
    if (wanted >= count)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "there is no CUDA device %d; use 0 to %d", wanted, count - 1);
    *device = wanted;
    for (int d = 0; d < count && wanted < 0; d++) {
        int multiprocessors = 0;
        cudaError_t err = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, d);
        if (err)
            return gc_cuda_check(error, d, err);
        if (multiprocessors > most) {
            most = multiprocessors;
            *device = d;
        }
    }
    return GPUCONV_OK;
}

/* What is taken where the driver does not say. */
static const double some_clock = 1.5e9, some_bandwidth = 6e11;

/* Transforms of this many bytes for each multiprocessor fill the device many times over; more only take memory. */
enum { WORKSPACE_BYTES = 4 << 20 };

cudaError_t gc_cuda_read_device(int number, gc_device *d) {
    int clock = 0, memory_clock = 0, bus = 0;
    struct cudaDeviceProp p;
    gck_device offered;
    cudaError_t err = cudaGetDeviceProperties(&p, number);
    GC_CUDA_TRY(err, gck_device_query(number, &offered));
    GC_CUDA_TRY(err, cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, number));
    GC_CUDA_TRY(err, cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, number));
    GC_CUDA_TRY(err, cudaDeviceGetAttribute(&bus, cudaDevAttrGlobalMemoryBusWidth, number));
    if (err)
        return err;
    *d = (gc_device){.number = number,
                     .memory = (double)p.totalGlobalMem,
                     .tensor_cores = offered.tensor_cores != 0,
                     .multiprocessors = offered.multiprocessors,
                     .lanes = offered.architecture == 75 || offered.architecture == 80 ? 64 : 128,
                     .clock = clock > 0 ? 1e3 * clock : some_clock,
                     /* two transfers per clock of 1 kHz */
                     .bandwidth = memory_clock > 0 && bus > 0 ? 2e3 * memory_clock * bus / 8 : some_bandwidth,
                     .cache = p.l2CacheSize,
                     .shared_memory = offered.shared_bytes,
                     .resident_shared_memory = (int64_t)p.sharedMemPerMultiprocessor,
                     .resident_threads = p.maxThreadsPerMultiProcessor,
                     .workspace = (int64_t)offered.multiprocessors * WORKSPACE_BYTES};
    snprintf(d->name, sizeof d->name, "%.127s", p.name);
    return cudaSuccess;
}

cudaError_t gc_cuda_enter(int device, int *caller) {
    int current = -1;
    *caller = -1;
    cudaError_t err = cudaGetDevice(&current);
    if (err || current == device)
        return err;
    err = cudaSetDevice(device);
    if (!err)
        *caller = current;
    return err;
}

void gc_cuda_leave(int caller) {
    if (caller >= 0)
        (void)cudaSetDevice(caller);
}

gpuconv_status gc_cuda_check(gpuconv_error *error, int device, cudaError_t err) {
    if (!err)
        return GPUCONV_OK;
    (void)cudaGetLastError();
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "CUDA device %d: %s", device, cudaGetErrorString(err));
}

gpuconv_status gc_cuda_check_current(int device, gpuconv_error *error) {
    int current = -1;
    const cudaError_t err = cudaGetDevice(&current);
    if (err)
        return gc_cuda_check(error, device, err);
    if (current != device)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "the current device is %d; make device %d current, to which the object belongs", current,
                       device);
    return GPUCONV_OK;
}

cudaError_t gc_cuda_free_memory(int device, double *bytes) {
    size_t available = 0, total = 0;
    int caller;
    cudaError_t err = gc_cuda_enter(device, &caller);
    GC_CUDA_TRY(err, cudaMemGetInfo(&available, &total));
    gc_cuda_leave(caller);
    *bytes = (double)available;
    return err;
}

gpuconv_status gc_cuda_check_memory(gpuconv_error *error, int device, cudaError_t err, const char *what,
                                    int64_t bytes) {
    const double needed = (double)bytes / GC_MEMORY_SHARE;
    double available;
    if (err != cudaErrorMemoryAllocation)
        return gc_cuda_check(error, device, err);
    (void)cudaGetLastError();
    if (gc_cuda_free_memory(device, &available) || available >= needed) /* host memory is missing */
        return gc_fail_memory(error, what);
    return gc_fail(error, GPUCONV_ERROR_MEMORY, "%s needs %.2f GB on CUDA device %d, of which %.2f GB are free", what,
                   needed * 1e-9, device, available * 1e-9);
}

gpuconv_status gc_cuda_init_device(int device, gpuconv_error *error) {
    const double least = 0x1p27;
    double available = 0;
    const cudaError_t err = gc_cuda_free_memory(device, &available);
    if (!err && available < least)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "batches need %.2f GB on CUDA device %d, of which %.2f GB are free",
                       least * 1e-9, device, available * 1e-9);
    return gc_cuda_check(error, device, err);
}

/* ---- Page-locked memory ------------------------------------------------------------------------------------------ */

static const int64_t kept_bytes_max = INT64_C(256) << 20;

/* A block of page-locked memory, in use or kept. */
typedef struct block {
    void *memory;
    int64_t bytes;
    bool registered; /* allocated by gc_alloc and then locked */
    bool kept;
    int64_t number; /* of the call that kept it */
} block;

static block *blocks;
static int block_count, block_capacity;
static int64_t kept_bytes, calls;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Takes the smallest kept block with `bytes` to twice as many. Returns NULL if there is none. Call it with the mutex.
 */
static void *take_kept(int64_t bytes) {
    block *best = NULL;
    for (int i = 0; i < block_count; i++)
        if (blocks[i].kept && blocks[i].bytes >= bytes && blocks[i].bytes <= 2 * bytes + 65536 &&
            (!best || blocks[i].bytes < best->bytes))
            best = &blocks[i];
    if (!best)
        return NULL;
    best->kept = false;
    kept_bytes -= best->bytes;
    return best->memory;
}

/* Makes room for one more block. Call it with the mutex. */
static bool reserve_pinned(void) {
    if (block_count < block_capacity)
        return true;
    int more = block_capacity ? 2 * block_capacity : 32;
    block *list = realloc(blocks, (size_t)more * sizeof *list);
    if (!list)
        return false;
    blocks = list;
    block_capacity = more;
    return true;
}

/* Pieces of memory whose pages are given by the operating system when they are first written. */
typedef struct pages {
    char *memory;
    int64_t bytes;
} pages;

enum { PINNED_PIECE_BYTES = 8 << 20, PINNED_LARGE_BYTES = 1 << 20, PAGE_BYTES = 4096, THREADS_MAX = 8 };

static void touch(void *context, int64_t index, int worker) {
    const pages *p = context;
    (void)worker;
    for (int64_t i = index * PINNED_PIECE_BYTES; i < gc_min((index + 1) * PINNED_PIECE_BYTES, p->bytes);
         i += PAGE_BYTES)
        p->memory[i] = 0;
}

/* Writes to all pages with several threads: the operating system clears them, which takes longer than locking them. */
static void touch_pages(char *memory, int64_t bytes) {
    const int64_t pieces = gc_divide_up(bytes, PINNED_PIECE_BYTES);
    gc_pool *pool = pieces > 1 ? gc_pool_new((int)gc_min(gc_min(pieces, THREADS_MAX), gc_processor_count())) : NULL;
    if (pool) /* without one, cudaHostRegister touches them */
        gc_pool_run(pool, touch, &(pages){memory, bytes}, pieces);
    gc_pool_free(pool);
}

/* Allocates a block. A large one is allocated in huge pages and then locked, in a fraction of the driver's time. */
static cudaError_t allocate(block *b) {
    if (b->bytes >= PINNED_LARGE_BYTES) {
        b->memory = gc_alloc(b->bytes, 1);
        if (!b->memory)
            return cudaErrorMemoryAllocation;
        touch_pages(b->memory, b->bytes);
        const cudaError_t err = cudaHostRegister(b->memory, (size_t)b->bytes, cudaHostRegisterPortable);
        b->registered = !err;
        if (err)
            free(b->memory);
        if (err != cudaErrorNotSupported)
            return err;
        (void)cudaGetLastError();
    }
    return cudaHostAlloc(&b->memory, (size_t)b->bytes, cudaHostAllocPortable);
}

cudaError_t gc_cuda_pinned_new(int64_t bytes, void **memory) {
    block made = {.bytes = gc_max(bytes, 1)};
    cudaError_t err = cudaSuccess;
    pthread_mutex_lock(&mutex);
    *memory = take_kept(made.bytes);
    if (!*memory) {
        err = reserve_pinned() ? allocate(&made) : cudaErrorMemoryAllocation;
        if (!err) {
            blocks[block_count++] = made;
            *memory = made.memory;
        }
    }
    pthread_mutex_unlock(&mutex);
    return err;
}

/* Removes the block that has been kept longest from the list if the kept ones exceed the limit. Returns it; memory
 * NULL: nothing to free. Call it with the mutex. */
static block remove_oldest(void) {
    int oldest = -1;
    for (int i = 0; i < block_count && kept_bytes > kept_bytes_max; i++)
        if (blocks[i].kept && (oldest < 0 || blocks[i].number < blocks[oldest].number))
            oldest = i;
    if (oldest < 0)
        return (block){.memory = NULL};
    const block b = blocks[oldest];
    kept_bytes -= b.bytes;
    blocks[oldest] = blocks[--block_count];
    return b;
}

/* Keeps a block. One that exceeds the limit alone is the next to be freed. Call it with the mutex. */
static void keep(void *memory) {
    for (int i = 0; i < block_count; i++)
        if (blocks[i].memory == memory) {
            blocks[i].kept = true;
            blocks[i].number = blocks[i].bytes > kept_bytes_max ? 0 : ++calls;
            kept_bytes += blocks[i].bytes;
        }
}

void gc_cuda_pinned_free(void *memory) {
    block old = {.memory = memory};
    for (bool first = true; old.memory; first = false) {
        pthread_mutex_lock(&mutex);
        if (first)
            keep(memory);
        old = remove_oldest();
        pthread_mutex_unlock(&mutex);
        if (old.memory && !old.registered) {
            cudaFreeHost(old.memory);
        } else if (old.memory) {
            cudaHostUnregister(old.memory);
            free(old.memory);
        }
    }
}

float *gc_cuda_alloc_pinned(int wanted, int64_t floats) {
    void *pinned = NULL;
    int device, caller;
    if (gc_cuda_choose_device(wanted, &device, NULL))
        return NULL;
    cudaError_t err = gc_cuda_enter(device, &caller);
    GC_CUDA_TRY(err, gc_cuda_pinned_new(floats * (int64_t)sizeof(float), &pinned));
    gc_cuda_leave(caller);
    if (err)
        (void)cudaGetLastError();
    return err ? NULL : pinned;
}

void gc_cuda_free_pinned(int wanted, float *pinned) {
    int device, caller;
    if (!pinned || gc_cuda_choose_device(wanted, &device, NULL))
        return;
    (void)gc_cuda_enter(device, &caller);
    gc_cuda_pinned_free(pinned);
    gc_cuda_leave(caller);
}

/* ---- Resources --------------------------------------------------------------------------------------------------- */

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

const float2 *gc_cuda_twiddles(gc_cuda_resources *r, void (*write)(int64_t transform, float2 *table), int64_t transform,
                               int64_t count) {
    float2 *table = gc_cuda_host_table(r, count, sizeof *table);
    if (table)
        write(transform, table);
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

/* ---- Kept samples ------------------------------------------------------------------------------------------------ */

/* Memory of the samples that a device keeps. Its pool holds on to freed memory, so that neither allocating nor
 * freeing waits for the work of others; gc_cuda_trim_kept returns it. Never destroyed. */
typedef struct kept {
    cudaMemPool_t pool;  /* NULL: the device has no memory pools */
    cudaStream_t stream; /* NULL: not created yet */
} kept;

enum { DEVICES_MAX = 64 };

static kept kept_by_device[DEVICES_MAX];
static pthread_mutex_t kept_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Stores the memory of kept samples of the current device, creating it at the first call. */
static cudaError_t kept_of(int device, kept *k) {
    uint64_t keep_all = UINT64_MAX;
    if (device >= DEVICES_MAX)
        return cudaErrorInvalidDevice;
    cudaError_t err = cudaSuccess;
    pthread_mutex_lock(&kept_mutex);
    kept *own = &kept_by_device[device];
    if (!own->stream) {
        err = own->pool ? cudaSuccess : gc_cuda_pool(device, &own->pool);
        if (own->pool)
            GC_CUDA_TRY(err, cudaMemPoolSetAttribute(own->pool, cudaMemPoolAttrReleaseThreshold, &keep_all));
        GC_CUDA_TRY(err, cudaStreamCreateWithFlags(&own->stream, cudaStreamNonBlocking));
    }
    *k = *own;
    pthread_mutex_unlock(&kept_mutex);
    return err;
}

void gc_cuda_trim_kept(int device) {
    pthread_mutex_lock(&kept_mutex);
    if (device < DEVICES_MAX && kept_by_device[device].pool)
        (void)cudaMemPoolTrimTo(kept_by_device[device].pool, 0);
    pthread_mutex_unlock(&kept_mutex);
}

float *gc_cuda_keep(int device, const float *samples, int64_t floats) {
    float *to = NULL;
    size_t bytes = (size_t)floats * sizeof *to;
    kept k;
    int caller;
    cudaError_t err = gc_cuda_enter(device, &caller);
    GC_CUDA_TRY(err, kept_of(device, &k));
    if (!err)
        err = k.pool ? cudaMallocFromPoolAsync((void **)&to, bytes, k.pool, k.stream) : cudaMalloc((void **)&to, bytes);
    if (!err) {
        err = cudaMemcpyAsync(to, samples, bytes, cudaMemcpyHostToDevice, k.stream);
        GC_CUDA_TRY(err, cudaStreamSynchronize(k.stream));
        if (err)
            (void)(k.pool ? cudaFreeAsync(to, k.stream) : cudaFree(to));
    }
    gc_cuda_leave(caller);
    if (!err)
        return to;
    (void)cudaGetLastError();
    return NULL;
}

void gc_cuda_release(int device, float *samples) {
    kept k;
    int caller;
    if (gc_cuda_enter(device, &caller) == cudaSuccess && kept_of(device, &k) == cudaSuccess) {
        if (k.pool)
            cudaFreeAsync(samples, k.stream);
        else
            cudaFree(samples);
    }
    gc_cuda_leave(caller);
}
