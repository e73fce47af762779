/*
 * Batches on CUDA devices, all in the slot's own stream: samples cross the bus as files store them, are converted to
 * floats, convolved row by row and converted back. The rows have different lengths, and each has a response of its own:
 * those with the same transforms are one launch of the kernels of rows (kernels/engine/rows/chip.cu).
 */
#include "cuda_arrays.h"
#include "cuda_device.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/ir/object.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Slots ------------------------------------------------------------------------------------------------------- */

/* A row, or a part of its response with what it adds to the output. Samples are counted from the beginning of the
 * slot's device memory. */
typedef struct row {
    int64_t signal, response, output; /* first samples */
    int64_t frames, taps, end;        /* of the signal, the response and the output */
    int part;                         /* 0 overwrites the output, the others are added to it */
    int size, overlap;                /* of the transforms; points that segments share */
    int splits;                       /* ranges of segments, which different blocks compute */
} row;

/* The columns of the table that the kernels read: three beginnings and three lengths. */
enum { COLUMNS = 6 };

/* Buffers of samples. The tables of a batch (files, then rows) follow the input samples, the counts of clipped samples
 * follow the output samples. */
typedef struct cuda_slot {
    gc_batch_slot base; /* page-locked host memory, one allocation */
    gc_cuda_resources resources;
    gck_device device;
    char *device_in, *device_out; /* one allocation */
    float *floats_in, *floats_out;
    row *row;
    const float2 *twiddles[GCK_CHIP_SIZES]; /* NULL: the size has not been used */
    float2 *scratch;
    const unsigned long long *clipped; /* in base.out: one per item of the current work */
    cudaStream_t stream;
} cuda_slot;

static void free_slot(gc_batch_slot *slot) {
    cuda_slot *s = (cuda_slot *)slot;
    if (!s)
        return;
    gc_cuda_trim_kept(s->resources.device);
    gc_cuda_resources_free(&s->resources);
    free(s->row);
    free(s);
}

/* Returns the largest size of the transforms of a device: every device has that of 4096 points. */
static int largest_size(const gck_device *device) {
    int size = GCK_CHIP_SIZES - 1;
    while (gck_chip_query(size).shared_bytes > device->shared_bytes)
        size--;
    return size;
}

/* Returns the blocks that compute rows at a time. */
static int64_t blocks_of(const gck_device *device, const gck_chip_sizes *sizes) {
    return (int64_t)device->multiprocessors * sizes->resident;
}

/* Returns the offset of the next part of an allocation, of which `used` bytes are taken. */
static int64_t next_part(int64_t *used, int64_t bytes) {
    int64_t at = *used;
    *used += gc_round_up(bytes, 256);
    return at;
}

/* Allocates the memory of a slot. Samples of a file have at least two bytes, floats four. Each part of a response but
 * the last has the points of the largest transform, and a frame of the output for each of them. */
static cudaError_t allocate(cuda_slot *s, int64_t bytes, int outputs) {
    gc_cuda_resources *r = &s->resources;
    if (GC_CUDA_TRY(r->err, gck_device_query(r->device, &s->device)))
        return r->err;
    const int largest = largest_size(&s->device);
    const int64_t rows = outputs + bytes / 2 / gck_chip_query(largest).points;
    int64_t used = 0, scratch = 0;
    next_part(&used, bytes + 2 * outputs * (int64_t)sizeof(gck_file) + rows * COLUMNS * (int64_t)sizeof(int64_t));
    const int64_t out = next_part(&used, bytes + outputs * (int64_t)sizeof *s->clipped), host_bytes = used;
    const int64_t floats_in = next_part(&used, 2 * bytes), floats_out = next_part(&used, 2 * bytes);
    for (int size = 0; size <= largest; size++) {
        const gck_chip_sizes sizes = gck_chip_query(size);
        scratch = gc_max(scratch, blocks_of(&s->device, &sizes) * sizes.groups * sizes.points);
    }
    s->stream = gc_cuda_stream(r);
    s->base.in = gc_cuda_pinned(r, host_bytes);
    s->device_in = gc_cuda_memory(r, used);
    s->scratch = gc_cuda_memory(r, scratch * (int64_t)sizeof *s->scratch);
    s->row = gc_cuda_host_table(r, rows, sizeof *s->row);
    if (r->err)
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

/* The tables of a batch, in the slot's input buffer. */
typedef struct tables {
    files unpacked, packed;
    int64_t *columns;
    int rows;
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
    t->columns = (int64_t *)(void *)(t->packed.file + t->packed.count);
}

/* ---- Rows of different lengths ----------------------------------------------------------------------------------- */

/* Fills the transforms of a row of `frames` frames and `taps` taps, and the taps of its parts: only the largest size
 * takes responses of several. Segments begin at multiples of an eighth of the points, so that many rows share a launch.
 * Returns the time of the row on a busy device, in that of a point of the largest size. */
static double set_transforms(row *r, int size, int largest, int64_t frames, int64_t taps) {
    const int64_t points = gck_chip_query(size).points, total = frames + taps - 1;
    r->size = size;
    r->taps = taps <= points + points / 2 ? taps : points;
    r->overlap = total <= 2 * points ? 0 : (int)gc_round_up(r->taps - 1, points / 8);
    const int64_t parts = gc_divide_up(taps, r->taps), segments = gc_divide_up(total, 2 * points - r->overlap);
    return parts > 1 && size < largest ? HUGE_VAL : (double)parts * (1 + 2 * (double)segments) * gc_chip_work(size);
}

/* Adds the parts of a row, whose first samples, frames and taps are given. Its transforms depend on the lengths alone,
 * so that it has the same samples in every batch. */
static void add_row(cuda_slot *s, const row *given, tables *t) {
    enum { SPLIT = 1 << 18 }; /* frames that a block computes, so that none is busy alone at the end */
    const int64_t taps = given->taps;
    const int largest = largest_size(&s->device);
    row r = *given, best = r;
    double least = HUGE_VAL;
    for (int size = 0; size <= largest; size++) {
        const double work = set_transforms(&r, size, largest, r.frames, taps);
        if (work < least) {
            least = work;
            best = r;
        }
    }
    const int64_t each = best.taps;
    for (int64_t first = 0; first < taps; first += each, best.part++) {
        best.taps = gc_min(each, taps - first);
        best.end = r.frames + taps - 1 - first;
        best.splits = (int)gc_divide_up(best.end, SPLIT);
        s->row[t->rows++] = best;
        best.response += each;
        best.output += each;
    }
}

/* Adds the rows of an item: one for each route of its response. */
static void add_rows(cuda_slot *s, const gc_batch_item *item, tables *t) {
    const gpuconv_ir *ir = item->ir;
    const char *kept = (const char *)item->planes;
    /* Kept responses are elsewhere in the memory of the device. */
    const int64_t planes = (kept ? (intptr_t)kept - (intptr_t)s->device_in : item->planes_at) / (int64_t)sizeof(float);
    const float *first = (const float *)(const void *)s->device_in;
    for (int i = 0; i < ir->routes; i++) {
        const row r = {.signal = input_of(s, item, ir->route[i].input) - first,
                       .response = planes + ir->route[i].plane * ir->frames,
                       .output = output_of(s, item, ir->route[i].output) - first,
                       .frames = item->frames,
                       .taps = ir->frames};
        add_row(s, &r, t);
    }
}

/* Compares what the rows of a launch have in common; the parts of a row are added in their order. */
static int by_launch(const row *a, const row *b) {
    return a->part != b->part         ? a->part - b->part
           : a->size != b->size       ? a->size - b->size
           : a->overlap != b->overlap ? a->overlap - b->overlap
                                      : a->splits - b->splits;
}

static int by_launch_and_length(const void *a, const void *b) {
    const row *x = a, *y = b;
    const int launch = by_launch(x, y);
    return launch ? launch : (x->end < y->end) - (x->end > y->end);
}

/* Sorts the rows, from long to short in a launch, and writes their table. */
static void write_columns(const cuda_slot *s, const tables *t) {
    const int n = t->rows;
    qsort(s->row, (size_t)n, sizeof *s->row, by_launch_and_length);
    for (int i = 0; i < n; i++) {
        const row *r = &s->row[i];
        const int64_t values[COLUMNS] = {r->signal, r->response, r->output, r->frames, r->taps, r->end};
        for (int k = 0; k < COLUMNS; k++)
            t->columns[k * n + i] = values[k];
    }
}

/* Loads the kernels of a size and makes their table, at the first use. */
static cudaError_t prepare_size(cuda_slot *s, int size) {
    gc_cuda_resources *r = &s->resources;
    if (s->twiddles[size])
        return cudaSuccess;
    GC_CUDA_TRY(r->err, gck_chip_load_size(size));
    s->twiddles[size] = gc_cuda_twiddles(r, gck_chip_twiddles, size, gck_chip_query(size).twiddles);
    return r->err;
}

/* Queues the rows first .. end - 1, which have a launch in common. columns: in device memory. */
static cudaError_t convolve(cuda_slot *s, const tables *t, const int64_t *columns, int first, int end) {
    const row *r = &s->row[first];
    const gck_chip_sizes sizes = gck_chip_query(r->size);
    const int64_t hop = 2 * sizes.points - r->overlap;
    gck_rows rows[COLUMNS / 2];
    for (int k = 0; k < COLUMNS / 2; k++)
        rows[k] = (gck_rows){.data = s->device_in,
                             .frames = r->end,
                             .step = 1,
                             .starts = columns + k * t->rows + first,
                             .lengths = columns + (k + COLUMNS / 2) * t->rows + first,
                             .sample = GCK_F32};
    const int64_t items = (int64_t)(end - first) * r->splits;
    const gck_chip_job job = {
        .source = rows[0],
        .response = rows[1],
        .target = {rows[2], r->part > 0},
        .sharing = {.rows = end - first, .group = 1, .responses = end - first},
        .taps = sizes.points + sizes.points / 2,
        .shift = -r->overlap,
        .segments = (int)gc_divide_up(r->end, hop),
        .hop = (int)hop,
        .lo = r->overlap,
        .splits = r->splits,
        .blocks = (unsigned)gc_min(gc_divide_up(items, sizes.groups), blocks_of(&s->device, &sizes)),
        .twiddles = s->twiddles[r->size],
        .scratch = s->scratch,
    };
    return gck_chip_convolve(r->size, &job, s->stream);
}

/* Queues the conversions and the convolutions; the tables are in device memory, at the same place as in host memory. */
static cudaError_t launch(cuda_slot *s, const tables *t) {
    const char *device = s->device_in;
    const gck_file *unpacked = (const gck_file *)(const void *)(device + ((char *)t->unpacked.file - s->base.in));
    const gck_file *packed = unpacked + t->unpacked.count;
    const int64_t *columns = (const int64_t *)(const void *)(packed + t->packed.count);
    cudaError_t err = gck_unpack_files(unpacked, t->unpacked.count, t->unpacked.samples, s->stream);
    for (int first = 0, end; first < t->rows && !err; first = end) {
        for (end = first + 1; end < t->rows && by_launch(&s->row[first], &s->row[end]) == 0;)
            end++;
        err = prepare_size(s, s->row[first].size);
        GC_CUDA_TRY(err, convolve(s, t, columns, first, end));
    }
    return GC_CUDA_TRY(err, gck_pack_files(packed, t->packed.count, t->packed.samples, s->stream));
}

/* ---- Work of a slot ---------------------------------------------------------------------------------------------- */

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
    write_columns(s, &t);
    s->clipped = (const unsigned long long *)(const void *)(s->base.out + counts_at);
    int caller;
    cudaError_t err = gc_cuda_enter(s->resources.device, &caller);
    GC_CUDA_TRY(err,
                cudaMemcpyAsync(s->device_in, s->base.in, (size_t)((char *)(t.columns + COLUMNS * t.rows) - s->base.in),
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
    .new_slot = new_slot,
    .begin = begin,
    .finish = finish,
    .free = free_slot,
};
