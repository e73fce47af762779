/*
 * Batches on CUDA devices, all in the slot's own stream: samples cross the bus as files store them, are converted to
 * floats, convolved row by row and converted back. The rows have different lengths, and each has a response of its own:
 * a row is cut into pieces of one transform (kernels/engine/rows/job.h).
 */
#include "cuda_batch.h"
#include "cuda_device.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/ir/object.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- Rows of different lengths ----------------------------------------------------------------------------------- */

/* A piece has as many hops as fit into PIECE frames: several thread blocks share a long row, so that no block is busy
 * alone at the end. Segments begin at multiples of ALIGNMENT frames. */
enum { PIECE = 1 << 18, HOP_MAX = 1 << 15, ALIGNMENT = 32 };

/* The time of a transform with its part of loads and stores, in that of a short one. A ratio and no cost of a device: a
 * row has the same transforms, and so the same samples, on all of them. */
static const double transform_work[GCK_ITEM_SIZES] = {1, 4.71, 4.71};

cudaError_t gc_cuda_items_init(gc_cuda_items *rows, gc_cuda_resources *r) {
    gck_device device = {0};
    int64_t scratch = 0;
    GC_CUDA_TRY(r->err, gck_device_query(r->device, &device));
    for (int i = 0; i < GCK_ITEM_SIZES; i++) {
        const gck_item_sizes sizes = gck_item_query(i);
        float2 *table = gc_cuda_host_table(r, sizes.twiddles, sizeof *table);
        if (table)
            gck_item_twiddles(i, table);
        rows->twiddles[i] = gc_cuda_upload(r, table, sizes.twiddles * (int64_t)sizeof *table);
        free(table);
        scratch = gc_max(scratch, sizes.points * sizes.resident * device.multiprocessors);
    }
    rows->scratch = gc_cuda_memory(r, scratch * (int64_t)sizeof *rows->scratch);
    rows->next = gc_cuda_memory(r, GCK_ITEM_SIZES * (int64_t)sizeof *rows->next);
    return r->err;
}

int64_t gc_cuda_items_pieces(int64_t rows, int64_t frames) {
    return rows + frames / (PIECE - HOP_MAX) + 1;
}

/* Lays out a row for transforms of one size and estimates its time, in that of a short transform. Returns false if the
 * size does not take the row: only the last one takes responses of several parts. */
static bool estimate_work(int size, gck_item *row, double *work) {
    const int64_t points = gck_item_query(size).points, total = row->frames + (int64_t)row->taps - 1;
    row->size = size;
    row->part = row->taps <= points + points / 2 ? row->taps : (int)points;
    row->overlap = total <= 2 * points ? 0 : (int)gc_round_up(row->part - 1, ALIGNMENT);
    const int64_t hop = 2 * points - row->overlap, parts = gc_divide_up(row->taps, row->part);
    *work = (double)parts * (1 + 2 * (double)gc_divide_up(total, hop)) * transform_work[size];
    return parts == 1 || size == GCK_ITEM_SIZES - 1;
}

int gc_cuda_items_cut(const gck_item *row, gck_item *pieces) {
    const int64_t total = row->frames + (int64_t)row->taps - 1;
    gck_item best = *row, piece = *row;
    double least = HUGE_VAL;
    for (int size = 0; size < GCK_ITEM_SIZES; size++) {
        double work;
        if (estimate_work(size, &piece, &work) && work < least) {
            least = work;
            best = piece;
        }
    }
    const int64_t hop = 2 * gck_item_query(best.size).points - best.overlap, step = PIECE / hop * hop;
    int n = 0;
    for (int64_t at = 0; at < total; at += step) {
        best.first = (int)at;
        best.end = (int)gc_min(at + step, total);
        pieces[n++] = best;
    }
    return n;
}

static int by_size_and_length(const void *a, const void *b) {
    const gck_item *x = a, *y = b;
    const int64_t m = x->end - x->first, n = y->end - y->first;
    return x->size != y->size ? x->size - y->size : (m < n) - (m > n);
}

void gc_cuda_items_sort(gck_item *pieces, int64_t count, int *counts) {
    memset(counts, 0, GCK_ITEM_SIZES * sizeof *counts);
    for (int64_t i = 0; i < count; i++)
        counts[pieces[i].size]++;
    qsort(pieces, (size_t)count, sizeof *pieces, by_size_and_length);
}

cudaError_t gc_cuda_items_convolve(const gc_cuda_items *rows, const gck_item *pieces, const int *counts,
                                   cudaStream_t stream) {
    cudaError_t err = cudaMemsetAsync(rows->next, 0, GCK_ITEM_SIZES * sizeof *rows->next, stream);
    for (int i = 0; i < GCK_ITEM_SIZES; pieces += counts[i++]) {
        const gck_items items = {.items = pieces,
                                 .count = counts[i],
                                 .next = rows->next + i,
                                 .twiddles = rows->twiddles[i],
                                 .scratch = rows->scratch};
        if (counts[i] > 0)
            GC_CUDA_TRY(err, gck_convolve_items(i, &items, stream));
    }
    return err;
}

/* Starts a device. Refuses it if the slots of one worker, some 90 MB on an H200, and the kernels may not fit, so that a
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
    cudaMemPool_t pool;  /* NULL: the device has no memory pools */
    cudaStream_t stream; /* NULL: not created yet */
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

/* Buffers of samples. The tables of a batch (files, then pieces of rows) follow the input samples, the counts of
 * clipped samples follow the output samples. */
typedef struct cuda_slot {
    gc_batch_slot base; /* page-locked host memory, one allocation */
    gc_cuda_resources resources;
    char *device_in, *device_out; /* one allocation */
    float *floats_in, *floats_out;
    gc_cuda_items items;
    const unsigned long long *clipped; /* in base.out: one per item of the current work */
    cudaStream_t stream;
} cuda_slot;

static void free_slot(gc_batch_slot *slot) {
    cuda_slot *s = (cuda_slot *)slot;
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

/* Allocates the memory of a slot. Samples of a file have at least two bytes, floats four. */
static cudaError_t allocate(cuda_slot *s, int64_t bytes, int outputs) {
    gc_cuda_resources *r = &s->resources;
    const int64_t pieces = gc_cuda_items_pieces(outputs, bytes / 2);
    int64_t used = 0;
    next_part(&used, bytes + 2 * outputs * (int64_t)sizeof(gck_file) + pieces * (int64_t)sizeof(gck_item));
    const int64_t out = next_part(&used, bytes + outputs * (int64_t)sizeof *s->clipped), host_bytes = used;
    const int64_t floats_in = next_part(&used, 2 * bytes), floats_out = next_part(&used, 2 * bytes);
    s->stream = gc_cuda_stream(r);
    s->base.in = gc_cuda_pinned(r, host_bytes);
    s->device_in = gc_cuda_memory(r, used);
    if (GC_CUDA_TRY(r->err, gc_cuda_items_init(&s->items, r)))
        return r->err;
    s->base.out = s->base.in + out;
    s->device_out = s->device_in + out;
    s->floats_in = (float *)(void *)(s->device_in + floats_in);
    s->floats_out = (float *)(void *)(s->device_in + floats_out);
    return cudaSuccess;
}

static gpuconv_status new_slot(int device, int64_t bytes, int outputs, gc_batch_slot **slot, gpuconv_error *error) {
    *slot = NULL;
    cuda_slot *s = gc_calloc(1, sizeof *s);
    if (!s)
        return gc_fail_memory(error, "a batch");
    int caller;
    gc_cuda_resources_init(&s->resources, device);
    cudaError_t err = gc_cuda_enter(device, &caller);
    GC_CUDA_TRY(err, allocate(s, bytes, outputs));
    gc_cuda_leave(caller);
    if (err) {
        const int64_t bytes_asked = s->resources.device_bytes;
        free_slot(&s->base);
        return gc_cuda_check_memory(error, device, err, "a batch", bytes_asked);
    }
    *slot = &s->base;
    return GPUCONV_OK;
}

static int64_t total_frames(const gc_batch_item *item) {
    return item->frames + item->ir->frames - 1;
}

static bool are_planar(const gc_batch_samples *samples) {
    return samples->format.container == GC_F32 && (samples->row > 0 || samples->channels == 1);
}

/* Return where a channel of an item is in device memory as floats: in the buffer itself, or converted, at twice the
 * distance from the beginning. */
static float *input_of(const cuda_slot *s, const gc_batch_item *item, int channel) {
    return are_planar(&item->in) ? (float *)(void *)(s->device_in + item->in.at)
                                 : s->floats_in + item->in.at / 2 + channel * item->frames;
}

static float *output_of(const cuda_slot *s, const gc_batch_item *item, int channel) {
    return are_planar(&item->out) ? (float *)(void *)(s->device_out + item->out.at + channel * item->out.row)
                                  : s->floats_out + item->out.at / 2 + channel * total_frames(item);
}

/* Files that are converted. */
typedef struct files {
    gck_file *file;
    int count;
    int64_t samples; /* of the largest file */
} files;

/* The tables of a batch, in the slot's input buffer, and what the launchers need to know. */
typedef struct tables {
    files unpacked, packed;
    gck_item *pieces;
    int pieces_count, counts[GCK_ITEM_SIZES];
} tables;

/* Adds a file whose samples are not in rows of floats. */
static void add_file(files *f, const gc_batch_samples *samples, gck_file file) {
    if (are_planar(samples))
        return;
    file.channels = samples->channels;
    file.format = samples->format;
    f->file[f->count++] = file;
    f->samples = gc_max(f->samples, file.frames * file.channels);
}

/* Adds the files that are converted. An input that several items share is converted once for each of them, with the
 * same result. */
static void add_files(const cuda_slot *s, const gc_batch_item *items, int count, unsigned long long *clipped,
                      tables *t) {
    for (const gc_batch_item *item = items; item < items + count; item++)
        add_file(&t->unpacked, &item->in,
                 (gck_file){.raw = s->device_in + item->in.at, .planar = input_of(s, item, 0), .frames = item->frames});
    t->packed.file = t->unpacked.file + t->unpacked.count;
    for (const gc_batch_item *item = items; item < items + count; item++)
        add_file(&t->packed, &item->out,
                 (gck_file){.raw = s->device_out + item->out.at,
                            .planar = output_of(s, item, 0),
                            .frames = total_frames(item),
                            .clipped = clipped++});
    t->pieces = (gck_item *)(void *)(t->packed.file + t->packed.count);
}

/* Adds the rows of an item: one for each route of its response. */
static void add_rows(const cuda_slot *s, const gc_batch_item *item, tables *t) {
    const gpuconv_ir *ir = item->ir;
    const float *planes = item->planes ? item->planes : (const float *)(const void *)(s->device_in + item->planes_at);
    for (int r = 0; r < ir->routes; r++) {
        const gck_item row = {.signal = input_of(s, item, ir->route[r].input),
                              .response = planes + ir->route[r].plane * ir->frames,
                              .output = output_of(s, item, ir->route[r].output),
                              .frames = (int)item->frames,
                              .taps = (int)ir->frames};
        t->pieces_count += gc_cuda_items_cut(&row, t->pieces + t->pieces_count);
    }
}

/* Queues the conversions and the convolutions; `tables` is in device memory, at the same place as in host memory. */
static cudaError_t launch(const cuda_slot *s, const tables *t) {
    const char *device = s->device_in;
    const gck_file *unpacked = (const gck_file *)(const void *)(device + ((char *)t->unpacked.file - s->base.in));
    const gck_file *packed = unpacked + t->unpacked.count;
    const gck_item *pieces = (const gck_item *)(const void *)(packed + t->packed.count);
    cudaError_t err = gck_unpack_files(unpacked, t->unpacked.count, t->unpacked.samples, s->stream);
    GC_CUDA_TRY(err, gc_cuda_items_convolve(&s->items, pieces, t->counts, s->stream));
    return GC_CUDA_TRY(err, gck_pack_files(packed, t->packed.count, t->packed.samples, s->stream));
}

static gpuconv_status begin(gc_batch_slot *slot, gc_batch_item *items, int count, int64_t in_bytes, int64_t out_bytes,
                            gpuconv_error *error) {
    cuda_slot *s = (cuda_slot *)slot;
    const int64_t counts_at = gc_round_up(out_bytes, 16);
    const size_t count_bytes = (size_t)count * sizeof *s->clipped;
    unsigned long long *clipped = (unsigned long long *)(void *)(s->device_out + counts_at);
    tables t = {.unpacked.file = (gck_file *)(void *)(s->base.in + gc_round_up(in_bytes, 16))};
    add_files(s, items, count, clipped, &t);
    for (int i = 0; i < count; i++)
        add_rows(s, &items[i], &t);
    gc_cuda_items_sort(t.pieces, t.pieces_count, t.counts);
    s->clipped = (const unsigned long long *)(const void *)(s->base.out + counts_at);
    int caller;
    cudaError_t err = gc_cuda_enter(s->resources.device, &caller);
    GC_CUDA_TRY(err,
                cudaMemcpyAsync(s->device_in, s->base.in, (size_t)((char *)(t.pieces + t.pieces_count) - s->base.in),
                                cudaMemcpyHostToDevice, s->stream));
    GC_CUDA_TRY(err, cudaMemsetAsync(clipped, 0, count_bytes, s->stream));
    GC_CUDA_TRY(err, launch(s, &t));
    GC_CUDA_TRY(err, cudaMemcpyAsync(s->base.out, s->device_out, (size_t)counts_at + count_bytes,
                                     cudaMemcpyDeviceToHost, s->stream));
    gc_cuda_leave(caller);
    return gc_cuda_check(error, s->resources.device, err);
}

static gpuconv_status finish(gc_batch_slot *slot, gc_batch_item *items, int count, gpuconv_error *error) {
    const cuda_slot *s = (const cuda_slot *)slot;
    int caller;
    cudaError_t err = gc_cuda_enter(s->resources.device, &caller);
    GC_CUDA_TRY(err, cudaStreamSynchronize(s->stream));
    gc_cuda_leave(caller);
    for (int i = 0; i < count && !err; i++)
        items[i].clipped = (int64_t)s->clipped[i];
    return gc_cuda_check(error, s->resources.device, err);
}

const gc_batch_backend gc_batch_cuda = {
    .slots = 2,
    .devices = gc_cuda_count_devices,
    .init_device = init_device,
    .new_slot = new_slot,
    .begin = begin,
    .finish = finish,
    .free = free_slot,
    .upload_taps = upload_taps,
    .free_taps = free_taps,
};
