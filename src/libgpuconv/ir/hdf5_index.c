/* The messages that an object of an HDF5 file keeps outside its header: a tree of version 2 (III.A.2) has the places of
 * the messages in a fractal heap (III.G). */
#include "hdf5_block.h"

#include "libgpuconv/core/memory.h"

#include <stdlib.h>

enum { MAX_DEPTH = 16 }; /* of a tree */

/* A fractal heap. An object's place is its offset in the space of the heap, which a table of blocks covers: in every
 * row `width` blocks, of the size `first` in the rows 0 and 1, and of twice the size of the row before from then on. */
typedef struct heap {
    int offset_bytes, length_bytes; /* of a place */
    uint64_t width, first, max_direct, root;
    int rows; /* of the root's table; 0: the root is a block of objects */
} heap;

/* Returns the number of bytes of numbers up to `limit`. */
static int bytes_for(uint64_t limit) {
    int bytes = 1;
    while (bytes < 8 && limit >> (8 * bytes))
        bytes++;
    return bytes;
}

static bool open_heap(gc_hdf5 *f, uint64_t address, heap *h) {
    gc_block b;
    uint8_t *own = gc_hdf5_fetch_signed(f, address, 22 + 3 * f->offset_bytes + 12 * f->length_bytes, "FRHP", &b);
    if (!own)
        return false;
    (void)gc_block_take(&b, 3); /* version, bytes of a place */
    const bool filtered = gc_block_number(&b, 2);
    (void)gc_block_take(&b, 1);
    const uint64_t max_managed = gc_block_number(&b, 4);
    (void)gc_block_take(&b, 2 * f->offset_bytes + 10 * f->length_bytes);
    *h = (heap){.width = gc_block_number(&b, 2)};
    h->first = gc_block_length(f, &b);
    h->max_direct = gc_block_length(f, &b);
    const int bits = (int)gc_block_number(&b, 2);
    (void)gc_block_take(&b, 2);
    h->root = gc_block_offset(f, &b);
    h->rows = (int)gc_block_number(&b, 2);
    h->offset_bytes = (bits + 7) / 8;
    h->length_bytes = (int)gc_min(bytes_for(h->max_direct - 1), bytes_for(max_managed));
    free(own);
    if (filtered)
        return gc_hdf5_unread(f, "compresses its names");
    if (b.cut || bits < 1 || bits > 64 || !gc_is_power_of_two(h->width) || !gc_is_power_of_two(h->first) ||
        !gc_is_power_of_two(h->max_direct) || h->first > h->max_direct || h->max_direct > UINT32_MAX || h->rows > 64)
        return gc_hdf5_damaged(f, "the sizes of a heap");
    return true;
}

/* Finds the address of a place: goes down from the root's table to a block of objects. */
static bool find_place(gc_hdf5 *f, const heap *h, uint64_t offset, uint64_t *address) {
    uint64_t block = h->root, bytes = h->first;
    bool direct = h->rows == 0;
    for (int depth = 0; !direct; depth++) {
        uint64_t row = 0, row_start = 0;
        bytes = h->first;
        while (row_start <= offset && offset - row_start >= bytes * h->width && bytes < UINT64_MAX / 4 / h->width) {
            row_start += bytes * h->width;
            bytes = h->first << row++; /* rows 0 and 1 have the same size */
        }
        const uint64_t column = (offset - row_start) / bytes;
        gc_block b;
        if (depth == MAX_DEPTH || column >= h->width || (depth == 0 && row >= (uint64_t)h->rows))
            return gc_hdf5_damaged(f, "a place in a heap");
        const int64_t prefix = 5 + (int64_t)f->offset_bytes + h->offset_bytes;
        uint8_t *own = gc_hdf5_fetch_signed(f, block, prefix, "FHIB", &b);
        if (!own)
            return false;
        free(own);
        const uint64_t entry = block + (uint64_t)prefix + (row * h->width + column) * (uint64_t)f->offset_bytes;
        own = gc_hdf5_fetch(f, entry, f->offset_bytes, &b);
        if (!own)
            return false;
        block = gc_block_offset(f, &b);
        free(own);
        offset -= row_start + column * bytes;
        direct = bytes <= h->max_direct;
    }
    if (offset >= bytes || !gc_hdf5_is_defined(f, block))
        return gc_hdf5_damaged(f, "a place in a heap");
    *address = block + offset;
    return true;
}

/* A tree of version 2. */
typedef struct tree {
    gc_hdf5_take_record *take;
    void *context;
    int record_bytes;
    int64_t node_bytes;
    int count_bytes;                /* of the number of records of a node */
    int total_bytes[MAX_DEPTH + 1]; /* of the number of all records below a node, by its depth; 0 for leaves */
} tree;

/* Takes the records of a node and of all nodes below it. */
static bool take_node(gc_hdf5 *f, const tree *t, uint64_t address, int depth, int64_t records) {
    enum { PREFIX = 6 };
    const int64_t child_bytes = depth ? f->offset_bytes + t->count_bytes + t->total_bytes[depth - 1] : 0;
    const int64_t bytes = PREFIX + records * t->record_bytes + (records + 1) * child_bytes;
    gc_block b;
    if (bytes > t->node_bytes)
        return gc_hdf5_damaged(f, "a node of an index has more records than fit into it");
    uint8_t *own = gc_hdf5_fetch_signed(f, address, bytes, depth ? "BTIN" : "BTLF", &b);
    if (!own)
        return false;
    (void)gc_block_take(&b, 2);
    gc_block own_records = gc_block_take(&b, records * t->record_bytes);
    bool ok = true;
    for (int64_t i = 0; i <= records && ok; i++) {
        if (depth) {
            const uint64_t child = gc_block_offset(f, &b);
            const int64_t count = (int64_t)gc_block_number(&b, t->count_bytes);
            (void)gc_block_take(&b, t->total_bytes[depth - 1]);
            ok = take_node(f, t, child, depth - 1, count);
        }
        gc_block record = gc_block_take(&own_records, i < records ? t->record_bytes : 0);
        ok = ok && (i == records || t->take(t->context, &record));
    }
    free(own);
    return ok;
}

/* Computes the sizes of the numbers in nodes: they depend on how many records fit into the nodes below. */
static void size_numbers(const gc_hdf5 *f, tree *t, int depth) {
    enum { OVERHEAD = 10 }; /* of a node: letters, version, type, checksum */
    const uint64_t space = (uint64_t)t->node_bytes - OVERHEAD;
    uint64_t total = space / (uint64_t)t->record_bytes;
    t->count_bytes = bytes_for(total);
    t->total_bytes[0] = 0;
    for (int d = 1; d <= depth; d++) {
        const uint64_t child = (uint64_t)f->offset_bytes + (uint64_t)t->count_bytes + (uint64_t)t->total_bytes[d - 1];
        const uint64_t fit = space > child ? (space - child) / ((uint64_t)t->record_bytes + child) : 0;
        if (__builtin_mul_overflow(total, fit + 1, &total) || __builtin_add_overflow(total, fit, &total))
            total = UINT64_MAX;
        t->total_bytes[d] = bytes_for(total);
    }
}

bool gc_hdf5_walk_records(gc_hdf5 *f, uint64_t address, int type, gc_hdf5_take_record *take, void *context) {
    enum { OVERHEAD = 10 };
    gc_block b;
    tree t = {.take = take, .context = context};
    uint8_t *own = gc_hdf5_fetch_signed(f, address, 18 + f->offset_bytes, "BTHD", &b);
    if (!own)
        return false;
    (void)gc_block_take(&b, 1);
    const int own_type = (int)gc_block_number(&b, 1);
    t.node_bytes = (int64_t)gc_block_number(&b, 4);
    t.record_bytes = (int)gc_block_number(&b, 2);
    const int depth = (int)gc_block_number(&b, 2);
    (void)gc_block_take(&b, 2);
    const uint64_t root = gc_block_offset(f, &b);
    const int64_t records = (int64_t)gc_block_number(&b, 2);
    free(own);
    if (own_type != type || depth > MAX_DEPTH || t.record_bytes < 1 || t.node_bytes < OVERHEAD + t.record_bytes)
        return gc_hdf5_damaged(f, "the sizes of an index");
    if (!gc_hdf5_is_defined(f, root))
        return true;
    size_numbers(f, &t, depth);
    return take_node(f, &t, root, depth, records);
}

/* Messages that are taken from a heap. */
typedef struct messages {
    gc_hdf5 *file;
    heap heap;
    gc_hdf5_records kind;
    gc_hdf5_take *take;
    gc_hdf5_object *object;
} messages;

/* Takes the message of a record. Messages that are not in the blocks of the heap are longer than what is looked for. */
static bool take_record(void *context, gc_block *record) {
    enum { KIND = 0x30, MANAGED = 0 };
    const messages *m = context;
    gc_hdf5 *f = m->file;
    (void)gc_block_take(record, m->kind == GC_HDF5_LINKS ? 4 : 0); /* a checksum of the name */
    const int flags = (int)gc_block_number(record, 1);
    const uint64_t offset = gc_block_number(record, m->heap.offset_bytes);
    const uint64_t bytes = gc_block_number(record, m->heap.length_bytes);
    uint64_t address = 0;
    if ((flags & KIND) != MANAGED)
        return true;
    if (record->cut || bytes > f->size)
        return gc_hdf5_damaged(f, "a record of an index");
    if (!find_place(f, &m->heap, offset, &address))
        return false;
    gc_block message;
    uint8_t *own = gc_hdf5_fetch(f, address, (int64_t)bytes, &message);
    const bool ok = own && m->take(f, &message, m->object);
    free(own);
    return ok;
}

bool gc_hdf5_take_all(gc_hdf5 *f, uint64_t heap_address, uint64_t index, gc_hdf5_records kind, gc_hdf5_take *take,
                      gc_hdf5_object *o) {
    messages m = {.file = f, .kind = kind, .take = take, .object = o};
    return open_heap(f, heap_address, &m.heap) && gc_hdf5_walk_records(f, index, (int)kind, take_record, &m);
}
