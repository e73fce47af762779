/* Batches on CUDA devices. Samples cross the bus to the device and back, the kernel runs in between, all in the slot's
 * own stream. */
#include "cuda_batch.h"

#include "cuda_device.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENT_HOPS = 8 }; /* hops per segment, which one thread block computes */

static int count_devices(gpuconv_error *error) {
    int count = gc_cuda_count_devices(error);
    /* All devices or none: how an entry is computed must not depend on the device. */
    for (int d = 0; d < count; d++) {
        gck_batch_sizes sizes;
        cudaError_t err = gck_batch_query(d, &sizes);
        if (err) {
            (void)cudaGetLastError();
            gc_fail(error, GPUCONV_ERROR_DEVICE, "CUDA device %d: %s", d,
                    err == cudaErrorNotSupported
                        ? "batches need 64 KB of shared memory per block, more than the device has"
                        : cudaGetErrorString(err));
            return 0;
        }
    }
    return count;
}

/* Starts a device. Refuses it if the slots of one worker, some 60 MB on an H200, and the kernels may not fit, so that a
 * batch that may use the CPU does. */
static gpuconv_status init_device(int device, gpuconv_error *error) {
    const double least = 0x1p27;
    double available = 0;
    const cudaError_t err = gc_cuda_free_memory(device, &available);
    if (!err && available < least)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "batches need %.2f GB on CUDA device %d, of which %.2f GB are free",
                       least * 1e-9, device, available * 1e-9);
    return gc_cuda_check(error, device, err);
}

/* ---- Kept responses ---------------------------------------------------------------------------------------------- */

/* Memory of the responses that a device keeps. Its pool holds on to freed memory, so that neither allocating nor
 * freeing waits for the work of slots; freeing a slot returns it. Never destroyed. */
typedef struct kept {
    bool ready;
    cudaMemPool_t pool; /* NULL: the device has no memory pools */
    cudaStream_t stream;
} kept;

enum { DEVICES_MAX = 64 };

static kept kept_by_device[DEVICES_MAX];
static pthread_mutex_t kept_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Stores the memory of kept responses of the current device, creating it at the first call. */
static cudaError_t kept_of(int device, kept *k) {
    uint64_t keep_all = UINT64_MAX;
    if (device >= DEVICES_MAX)
        return cudaErrorInvalidDevice;
    cudaError_t err = cudaSuccess;
    pthread_mutex_lock(&kept_mutex);
    kept *own = &kept_by_device[device];
    if (!own->stream)
        err = cudaStreamCreateWithFlags(&own->stream, cudaStreamNonBlocking);
    if (!own->ready) {
        GC_CUDA_TRY(err, gc_cuda_pool(device, &own->pool));
        if (own->pool)
            GC_CUDA_TRY(err, cudaMemPoolSetAttribute(own->pool, cudaMemPoolAttrReleaseThreshold, &keep_all));
        own->ready = !err;
    }
    *k = *own;
    pthread_mutex_unlock(&kept_mutex);
    return err;
}

/* Returns the memory of forgotten responses to the device. */
static void trim_kept(int device) {
    pthread_mutex_lock(&kept_mutex);
    if (device < DEVICES_MAX && kept_by_device[device].pool)
        (void)cudaMemPoolTrimTo(kept_by_device[device].pool, 0);
    pthread_mutex_unlock(&kept_mutex);
}

/* Copies a response to device memory. Returns NULL if there is no memory. */
static float *upload_taps(int device, const float *planes, int64_t floats) {
    float *to = NULL;
    size_t bytes = (size_t)floats * sizeof *to;
    kept k;
    int caller;
    cudaError_t err = gc_cuda_enter(device, &caller);
    GC_CUDA_TRY(err, kept_of(device, &k));
    if (!err)
        err = k.pool ? cudaMallocFromPoolAsync((void **)&to, bytes, k.pool, k.stream) : cudaMalloc((void **)&to, bytes);
    if (!err) {
        err = cudaMemcpyAsync(to, planes, bytes, cudaMemcpyHostToDevice, k.stream);
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

static void free_taps(int device, float *planes) {
    kept k;
    int caller;
    if (gc_cuda_enter(device, &caller) == cudaSuccess && kept_of(device, &k) == cudaSuccess) {
        if (k.pool)
            cudaFreeAsync(planes, k.stream);
        else
            cudaFree(planes);
    }
    gc_cuda_leave(caller);
}

/* ---- Slots ------------------------------------------------------------------------------------------------------- */

static void free_slot(gc_batch_slot *s) {
    if (!s)
        return;
    trim_kept(s->resources.device);
    gc_cuda_resources_free(&s->resources);
    free(s);
}

/* Returns the offset of the next part of an allocation, of which `used` bytes are taken. */
static int64_t next_part(int64_t *used, int64_t bytes) {
    int64_t at = *used;
    *used += gc_round_up(bytes, 256);
    return at;
}

cudaError_t gc_cuda_batch_allocate(gc_batch_slot *s, int64_t bytes, int items) {
    gc_cuda_resources *r = &s->resources;
    gck_batch_sizes sizes;
    if (GC_CUDA_TRY(r->err, gck_batch_query(r->device, &sizes)))
        return r->err;
    /* A sample has at least two bytes. */
    const int64_t segments = items + bytes / 2 / GC_CUDA_SEGMENT_MIN + 1, twiddle_bytes = sizes.twiddles * 8;
    int64_t used = 0;
    next_part(&used, bytes + segments * (int64_t)sizeof(gck_batch_item));
    const int64_t out = next_part(&used, bytes + items * (int64_t)sizeof *s->clipped), host_bytes = used;
    const int64_t twiddles = next_part(&used, twiddle_bytes);
    const int64_t spectra = next_part(&used, sizes.spectra * (int64_t)sizeof(float2));
    const int64_t next_item = next_part(&used, GCK_BATCH_CLASSES * sizeof(int));
    float2 *table = gc_calloc(sizes.twiddles, sizeof *table);
    if (!table)
        return r->err = cudaErrorMemoryAllocation;
    gck_batch_twiddles(table);
    s->stream = gc_cuda_stream(r);
    s->in = gc_cuda_pinned(r, host_bytes);
    s->device_in = gc_cuda_memory(r, used);
    if (!r->err) {
        s->out = s->in + out;
        s->device_out = s->device_in + out;
        s->memory = (gck_batch_memory){.twiddles = (float2 *)(s->device_in + twiddles),
                                       .spectra = (float2 *)(s->device_in + spectra),
                                       .next_item = (int *)(s->device_in + next_item)};
        r->err =
            cudaMemcpyAsync(s->device_in + twiddles, table, (size_t)twiddle_bytes, cudaMemcpyHostToDevice, s->stream);
    }
    GC_CUDA_TRY(r->err, cudaStreamSynchronize(s->stream));
    free(table);
    return r->err;
}

static gpuconv_status new_slot(int device, int64_t bytes, int items, gc_batch_slot **slot, gpuconv_error *error) {
    *slot = NULL;
    gc_batch_slot *s = gc_calloc(1, sizeof *s);
    if (!s)
        return gc_fail_memory(error, "a batch");
    int caller;
    gc_cuda_resources_init(&s->resources, device);
    cudaError_t err = gc_cuda_enter(device, &caller);
    GC_CUDA_TRY(err, gc_cuda_batch_allocate(s, bytes, items));
    gc_cuda_leave(caller);
    if (err) {
        const int64_t bytes_asked = s->resources.device_bytes;
        free_slot(s);
        return gc_cuda_check_memory(error, device, err, "a batch", bytes_asked);
    }
    *slot = s;
    return GPUCONV_OK;
}

static void *in(gc_batch_slot *s) {
    return s->in;
}

static const void *out(gc_batch_slot *s) {
    return s->out;
}

/* Several thread blocks share a long item, so that no block is busy alone at the end. */
int gc_cuda_batch_cut(const gc_batch_item *item, char *device_in, char *device_out,
                      unsigned long long *clipped, /* NOLINT(readability-non-const-parameter): the kernel writes it */
                      gck_batch_item *to) {
    int64_t total = item->frames + item->taps_count - 1, step = total;
    int n = 0;
    if (item->taps_count <= GCK_BATCH_PART_TAPS)
        step = SEGMENT_HOPS * (2 * (int64_t)GCK_BATCH_PART_TAPS - (item->taps_count + 2) / 4 * 4);
    for (int64_t at = 0; at < total; at += step)
        to[n++] = (gck_batch_item){.in = {device_in + item->in.at, item->in.format, item->in.step},
                                   .out = {device_out + item->out.at, item->out.format, item->out.step},
                                   .taps = item->taps ? item->taps : (const void *)(device_in + item->taps_offset),
                                   .frames = item->frames,
                                   .first = at,
                                   .end = gc_min(at + step, total),
                                   .taps_count = item->taps_count,
                                   .wet = 1,
                                   .clipped = clipped};
    return n;
}

static int by_class_and_length(const void *a, const void *b) {
    const gck_batch_item *x = a, *y = b;
    const int first = gck_batch_class_of(x), second = gck_batch_class_of(y);
    int64_t m = x->end - x->first, n = y->end - y->first;
    return first != second ? first - second : (m < n) - (m > n);
}

void gc_cuda_batch_sort(gck_batch_item *segments, int count, int *counts) {
    memset(counts, 0, GCK_BATCH_CLASSES * sizeof *counts);
    for (int i = 0; i < count; i++)
        counts[gck_batch_class_of(&segments[i])]++;
    qsort(segments, (size_t)count, sizeof *segments, by_class_and_length);
}

static gpuconv_status begin(gc_batch_slot *s, const gc_batch_item *items, int count, int64_t in_bytes,
                            int64_t out_bytes, gpuconv_error *error) {
    const int64_t segments_at = gc_round_up(in_bytes, 16), counts_at = gc_round_up(out_bytes, 16);
    const size_t count_bytes = (size_t)count * sizeof *s->clipped;
    gck_batch_item *segments = (gck_batch_item *)(void *)(s->in + segments_at);
    unsigned long long *clipped = (unsigned long long *)(void *)(s->device_out + counts_at);
    int n = 0, counts[GCK_BATCH_CLASSES];
    for (int i = 0; i < count; i++)
        n += gc_cuda_batch_cut(&items[i], s->device_in, s->device_out, clipped + i, segments + n);
    gc_cuda_batch_sort(segments, n, counts);
    s->clipped = (const unsigned long long *)(const void *)(s->out + counts_at);
    int caller;
    cudaError_t err = gc_cuda_enter(s->resources.device, &caller);
    GC_CUDA_TRY(err, cudaMemcpyAsync(s->device_in, s->in, (size_t)segments_at + (size_t)n * sizeof *segments,
                                     cudaMemcpyHostToDevice, s->stream));
    GC_CUDA_TRY(err, cudaMemsetAsync(clipped, 0, count_bytes, s->stream));
    GC_CUDA_TRY(err, gck_batch((const gck_batch_item *)(const void *)(s->device_in + segments_at), counts, &s->memory,
                               s->stream));
    GC_CUDA_TRY(err, cudaMemcpyAsync(s->out, s->device_out, (size_t)counts_at + count_bytes, cudaMemcpyDeviceToHost,
                                     s->stream));
    gc_cuda_leave(caller);
    return gc_cuda_check(error, s->resources.device, err);
}

static gpuconv_status finish(gc_batch_slot *s, gc_batch_item *items, int count, gpuconv_error *error) {
    int caller;
    cudaError_t err = gc_cuda_enter(s->resources.device, &caller);
    GC_CUDA_TRY(err, cudaStreamSynchronize(s->stream));
    gc_cuda_leave(caller);
    for (int i = 0; i < count && !err; i++)
        items[i].clipped = (int64_t)s->clipped[i];
    return gc_cuda_check(error, s->resources.device, err);
}

const gc_batch_backend gc_batch_cuda = {
    .file_format_taps = GCK_BATCH_PART_TAPS,
    .slots = 2,
    .devices = count_devices,
    .init_device = init_device,
    .new_slot = new_slot,
    .in = in,
    .out = out,
    .begin = begin,
    .finish = finish,
    .free = free_slot,
    .time_batch = gc_cuda_time_batch,
    .upload_taps = upload_taps,
    .free_taps = free_taps,
};
