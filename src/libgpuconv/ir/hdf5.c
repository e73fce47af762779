/* The HDF5 file: blocks of metadata, trees and heaps, object headers, and the search of the root group.
 *
 * An object header (IV.A.1) is one block or several, whose messages say what a data set is, or are the links of a
 * group. Messages that an object keeps outside its header are in a fractal heap (III.G), whose places a tree of version
 * 2 (III.A.2) has. The symbol tables of older groups are trees of version 1 (III.A.1). Every block costs a part of the
 * file's budget, so that structures that refer to each other without end are refused. */
#include "hdf5.h"

#include "hdf5_block.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/input_file.h"
#include "libgpuconv/core/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOT_FOLLOWED "is a link to another place or file, which is not followed"

/* What is looked for in an object, and what its header states. */
typedef struct gc_hdf5_object {
    const char *link; /* a name in a group; NULL: none */
    uint64_t target;  /* of the link; all ones: not found */
    gc_hdf5_text *texts;
    int text_count;
    gc_hdf5_set set;
    uint64_t link_heap, link_index, text_heap, text_index; /* all ones: none */
    uint64_t symbol_tree, symbol_heap;                     /* of a group without link messages; all ones: none */
} gc_hdf5_object;

/* The type of the records of a tree of version 2 that is an index of names. */
typedef enum gc_hdf5_records { GC_HDF5_LINKS = 5, GC_HDF5_ATTRIBUTES = 8 } gc_hdf5_records;

/* Takes every message that a fractal heap keeps for an index of names. */
typedef bool gc_hdf5_take(gc_hdf5 *file, gc_block *message, gc_hdf5_object *object);

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

enum { FETCH_COST = 64 /* bytes of the budget that each block takes besides its own */ };

bool gc_hdf5_damaged(gc_hdf5 *f, const char *what) {
    f->status = gc_fail(f->error, GPUCONV_ERROR_FORMAT, "%s: %s%sis damaged: %s", f->path, f->set ? f->set : "",
                        f->set ? " " : "", what);
    return false;
}

bool gc_hdf5_missing(gc_hdf5 *f) {
    f->status = gc_fail(f->error, GPUCONV_ERROR_FORMAT,
                        "%s: %s: values are missing, or were never written; write the file again with all of them",
                        f->path, f->set);
    return false;
}

bool gc_hdf5_unread(gc_hdf5 *f, const char *what) {
    f->status = gc_fail(f->error, GPUCONV_ERROR_FORMAT,
                        "%s: %s%s%s; save it again as netCDF-4, without filters other than deflate and shuffle",
                        f->path, f->set ? f->set : "", f->set ? ": " : "", what);
    return false;
}

bool gc_hdf5_fail_memory(gc_hdf5 *f) {
    f->status = gc_fail_memory(f->error, f->path);
    return false;
}

bool gc_hdf5_read_bytes(gc_hdf5 *f, uint64_t address, int64_t bytes, void *to) {
    if (bytes < 0 || address > f->size || (uint64_t)bytes > f->size - address)
        return gc_hdf5_damaged(f, "an address points behind the end of the file");
    for (int64_t done = 0; done < bytes;) {
        const int64_t piece = gc_min(bytes - done, 1 << 20);
        const ssize_t got = pread(f->fd, (char *)to + done, (size_t)piece, (off_t)(f->base + address + (uint64_t)done));
        if (gc_cancelled()) {
            f->status = gc_fail_cancelled(f->error, f->path);
            return false;
        }
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            f->status = gc_fail(f->error, GPUCONV_ERROR_FILE, "%s: %s", f->path, strerror(errno));
            return false;
        }
        if (got == 0)
            return gc_hdf5_damaged(f, "the file became shorter while it was read");
        done += got;
    }
    return true;
}

uint8_t *gc_hdf5_fetch(gc_hdf5 *f, uint64_t address, int64_t bytes, gc_block *block) {
    if (bytes < 0 || (uint64_t)bytes > f->size || bytes + FETCH_COST > f->budget) {
        gc_hdf5_damaged(f, bytes >= 0 && (uint64_t)bytes <= f->size ? "its structures refer to each other without end"
                                                                    : "a block is longer than the file");
        return NULL;
    }
    f->budget -= bytes + FETCH_COST;
    uint8_t *own = gc_alloc(gc_max(bytes, 1), 1);
    if (!own) {
        gc_hdf5_fail_memory(f);
        return NULL;
    }
    if (!gc_hdf5_read_bytes(f, address, bytes, own)) {
        free(own);
        return NULL;
    }
    *block = (gc_block){own, bytes, address, false};
    return own;
}

uint8_t *gc_hdf5_fetch_signed(gc_hdf5 *f, uint64_t address, int64_t bytes, const char *letters, gc_block *block) {
    uint8_t *own = gc_hdf5_fetch(f, address, bytes, block);
    if (own && (bytes < 4 || memcmp(own, letters, 4) != 0)) {
        char what[64] = "a block does not begin with ....";
        memcpy(strstr(what, "...."), letters, 4);
        gc_hdf5_damaged(f, what);
        free(own);
        return NULL;
    }
    if (own)
        (void)gc_block_take(block, 4);
    return own;
}

gc_block gc_block_take(gc_block *b, int64_t bytes) {
    if (bytes < 0 || bytes > b->left) {
        b->cut = true;
        bytes = b->left;
    }
    const gc_block taken = {b->at, bytes, b->address, b->cut};
    b->at += bytes;
    b->address += (uint64_t)bytes;
    b->left -= bytes;
    return taken;
}

uint64_t gc_block_number(gc_block *b, int bytes) {
    const gc_block taken = gc_block_take(b, bytes);
    uint64_t value = 0;
    for (int i = 0; !taken.cut && i < bytes; i++)
        value |= (uint64_t)taken.at[i] << (8 * i);
    return value;
}

uint64_t gc_block_offset(const gc_hdf5 *f, gc_block *b) {
    return gc_block_number(b, f->offset_bytes);
}

uint64_t gc_block_length(const gc_hdf5 *f, gc_block *b) {
    return gc_block_number(b, f->length_bytes);
}

bool gc_hdf5_is_defined(const gc_hdf5 *f, uint64_t address) {
    return address != UINT64_MAX >> (64 - 8 * f->offset_bytes) && address != UINT64_MAX;
}

/* Returns whether the bytes of a name in the file, which may end with zeros, are a name. */
static bool is_named(const gc_block *b, const char *name) {
    const int64_t length = (int64_t)strlen(name);
    return b->left >= length && memcmp(b->at, name, (size_t)length) == 0 && (b->left == length || !b->at[length]);
}

/* ---- Trees of version 2, and fractal heaps ----------------------------------------------------------------------- */

enum { MAX_DEPTH = 16 }; /* of a tree */

/* A fractal heap. An object's place is its offset in the space of the heap, which a table of blocks covers: in every
 * row `width` blocks, of the size `first` in the rows 0 and 1, and of twice the size of the row before from then on. */
typedef struct fractal_heap {
    int offset_bytes, length_bytes; /* of a place */
    uint64_t width, first, max_direct, root;
    int rows; /* of the root's table; 0: the root is a block of objects */
} fractal_heap;

/* Returns the number of bytes of numbers up to `limit`. */
static int bytes_for(uint64_t limit) {
    int bytes = 1;
    while (bytes < 8 && limit >> (8 * bytes))
        bytes++;
    return bytes;
}

static bool open_heap(gc_hdf5 *f, uint64_t address, fractal_heap *h) {
    gc_block b;
    uint8_t *own = gc_hdf5_fetch_signed(f, address, 22 + 3 * f->offset_bytes + 12 * f->length_bytes, "FRHP", &b);
    if (!own)
        return false;
    (void)gc_block_take(&b, 3); /* version, bytes of a place */
    const bool filtered = gc_block_number(&b, 2);
    (void)gc_block_take(&b, 1);
    const uint64_t max_managed = gc_block_number(&b, 4);
    (void)gc_block_take(&b, 2 * f->offset_bytes + 10 * f->length_bytes);
    *h = (fractal_heap){.width = gc_block_number(&b, 2)};
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
static bool find_place(gc_hdf5 *f, const fractal_heap *h, uint64_t offset, uint64_t *address) {
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
    fractal_heap heap;
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

static bool take_all(gc_hdf5 *f, uint64_t heap_address, uint64_t index, gc_hdf5_records kind, gc_hdf5_take *take,
                     gc_hdf5_object *o) {
    messages m = {.file = f, .kind = kind, .take = take, .object = o};
    return open_heap(f, heap_address, &m.heap) && gc_hdf5_walk_records(f, index, (int)kind, take_record, &m);
}

/* ---- Trees of version 1, and symbol tables ----------------------------------------------------------------------- */

enum { MAX_LEVEL = 16 /* of a tree */ };

/* A tree that is read. */
typedef struct old_tree {
    gc_hdf5 *file;
    int type;
    int64_t key_bytes;
    gc_hdf5_take_child *take;
    void *context;
} old_tree;

/* Takes the entries of a node and of all nodes below it. `level`: of the node; -1: any. */
static bool walk_node(const old_tree *t, uint64_t address, int level) {
    gc_hdf5 *f = t->file;
    gc_block b;
    const int64_t prefix = 8 + 2 * f->offset_bytes;
    uint8_t *own = gc_hdf5_fetch_signed(f, address, prefix, "TREE", &b);
    if (!own)
        return false;
    const int type = (int)gc_block_number(&b, 1), own_level = (int)gc_block_number(&b, 1);
    const int64_t entries = (int64_t)gc_block_number(&b, 2);
    free(own);
    if (type != t->type || own_level > MAX_LEVEL || (level >= 0 && own_level != level))
        return gc_hdf5_damaged(f, "a node of a tree");
    own = gc_hdf5_fetch(f, address + (uint64_t)prefix, entries * (t->key_bytes + f->offset_bytes), &b);
    bool ok = own;
    for (int64_t i = 0; i < entries && ok; i++) {
        gc_block key = gc_block_take(&b, t->key_bytes);
        const uint64_t child = gc_block_offset(f, &b);
        ok = own_level ? walk_node(t, child, own_level - 1) : t->take(t->context, &key, child);
    }
    free(own);
    return ok;
}

bool gc_hdf5_walk(gc_hdf5 *f, uint64_t address, int type, int64_t key_bytes, gc_hdf5_take_child *take, void *context) {
    return walk_node(&(old_tree){f, type, key_bytes, take, context}, address, -1);
}

/* A search for a name. */
typedef struct search {
    gc_hdf5 *file;
    gc_block names; /* the data of the local heap */
    gc_hdf5_object *object;
} search;

/* Compares the names of a node of symbols. */
static bool take_symbols(void *context, gc_block *key, uint64_t address) {
    enum { PREFIX = 8, REST = 24 /* bytes behind the two addresses of a symbol */ };
    search *s = context;
    gc_hdf5 *f = s->file;
    gc_block b;
    (void)key;
    uint8_t *own = gc_hdf5_fetch_signed(f, address, PREFIX, "SNOD", &b);
    if (!own)
        return false;
    (void)gc_block_take(&b, 2);
    const int64_t symbols = (int64_t)gc_block_number(&b, 2);
    free(own);
    own = gc_hdf5_fetch(f, address + PREFIX, symbols * (2 * f->offset_bytes + REST), &b);
    bool ok = own;
    for (int64_t i = 0; i < symbols && ok; i++) {
        const uint64_t offset = gc_block_offset(f, &b), object = gc_block_offset(f, &b);
        (void)gc_block_take(&b, REST);
        gc_block name = s->names;
        (void)gc_block_take(&name, offset <= INT64_MAX ? (int64_t)offset : -1);
        if (!name.cut && is_named(&name, s->object->link)) {
            s->object->target = object;
            ok = gc_hdf5_is_defined(f, object) || gc_hdf5_unread(f, NOT_FOLLOWED);
        }
    }
    free(own);
    return ok;
}

/* Finds object->link in the symbol table of a group (III.B, III.C, III.D). */
static bool find_symbol(gc_hdf5 *f, gc_hdf5_object *o) {
    search s = {.file = f, .object = o};
    gc_block b;
    uint8_t *own = gc_hdf5_fetch_signed(f, o->symbol_heap, 8 + 2 * f->length_bytes + f->offset_bytes, "HEAP", &b);
    if (!own)
        return false;
    (void)gc_block_take(&b, 4);
    const uint64_t bytes = gc_block_length(f, &b);
    (void)gc_block_take(&b, f->length_bytes);
    const uint64_t names = gc_block_offset(f, &b);
    free(own);
    own = gc_hdf5_fetch(f, names, bytes <= INT64_MAX ? (int64_t)bytes : -1, &s.names);
    const bool ok = own && gc_hdf5_walk(f, o->symbol_tree, 0, f->length_bytes, take_symbols, &s);
    free(own);
    return ok;
}

/* ---- Object headers ---------------------------------------------------------------------------------------------- */

enum {
    MESSAGE_SPACE = 1,
    MESSAGE_LINK_INFO = 2,
    MESSAGE_TYPE = 3,
    MESSAGE_LINK = 6,
    MESSAGE_LAYOUT = 8,
    MESSAGE_FILTERS = 11,
    MESSAGE_ATTRIBUTE = 12,
    MESSAGE_CONTINUATION = 16,
    MESSAGE_SYMBOL_TABLE = 17,
    MESSAGE_ATTRIBUTE_INFO = 21,
    SHARED = 2,            /* flag of a message: its content is elsewhere */
    MAX_CONTINUATIONS = 64 /* blocks of an object header */
};

/* A further block of an object header. */
typedef struct piece {
    uint64_t address, bytes;
} piece;

/* The blocks of an object header that are read one after the other. */
typedef struct header {
    bool is_old;    /* version 1 */
    bool has_order; /* messages have the order of their creation */
    int pieces;
    piece piece[MAX_CONTINUATIONS];
} header;

/* Reads a dataspace message (IV.A.2.b). Returns false if it is none that is read. */
static bool take_space(const gc_hdf5 *f, gc_block *b, gc_hdf5_space *space) {
    enum { NULL_SPACE = 2 };
    const int version = (int)gc_block_number(b, 1);
    *space = (gc_hdf5_space){.rank = (int)gc_block_number(b, 1), .values = 1};
    const bool has_limits = gc_block_number(b, 1) & 1;
    const int kind = (int)gc_block_number(b, version == 1 ? 5 : 1);
    if (version < 1 || version > 2 || space->rank > GC_HDF5_MAX_RANK)
        return false;
    for (int i = 0; i < space->rank; i++) {
        const uint64_t size = gc_block_length(f, b);
        if (size > INT64_MAX || __builtin_mul_overflow(space->values, (int64_t)size, &space->values))
            return false;
        space->size[i] = (int64_t)size;
    }
    for (int i = 0; i < space->rank; i++) {
        const uint64_t limit = has_limits ? gc_block_length(f, b) : (uint64_t)space->size[i];
        space->limit[i] = limit == UINT64_MAX >> (64 - 8 * f->length_bytes) ? UINT64_MAX : limit;
    }
    if (version == 2 && kind == NULL_SPACE)
        space->values = 0;
    return !b->cut;
}

/* Returns whether the bit fields of a floating-point type are those of IEEE 754 in 4 or 8 bytes. */
static bool is_ieee(gc_block *b, int64_t size) {
    static const uint64_t of_float[] = {0, 32, 23, 8, 0, 23, 127}, of_double[] = {0, 64, 52, 11, 0, 52, 1023};
    static const int bytes[] = {2, 2, 1, 1, 1, 1, 4};
    bool same = size == 4 || size == 8;
    for (int i = 0; i < 7; i++)
        same = gc_block_number(b, bytes[i]) == (size == 4 ? of_float : of_double)[i] && same;
    return same && !b->cut;
}

/* Returns whether the bit fields of an integer type take all bits of 1, 2, 4 or 8 bytes. */
static bool is_integer(gc_block *b, int64_t size) {
    const uint64_t offset = gc_block_number(b, 2), precision = gc_block_number(b, 2);
    return (size == 1 || size == 2 || size == 4 || size == 8) && offset == 0 && precision == 8 * (uint64_t)size &&
           !b->cut;
}

/* Reads a datatype message (IV.A.2.d). */
static gc_hdf5_type take_type(gc_block *b) {
    enum { CLASS_INTEGER = 0, CLASS_FLOAT = 1, CLASS_TEXT = 3, CLASS_LIST = 9 };
    const int class = (int)gc_block_number(b, 1) & 15, bits = (int)gc_block_number(b, 3);
    gc_hdf5_type type = {.size = (int64_t)gc_block_number(b, 4)};
    if (class == CLASS_FLOAT && is_ieee(b, type.size)) {
        type.kind = (bits & 64) ? GC_HDF5_OTHER : GC_HDF5_FLOAT; /* 64: the order of bytes of a VAX */
        type.is_big_endian = bits & 1;
    } else if (class == CLASS_INTEGER && is_integer(b, type.size)) {
        type.kind = (bits & 8) ? GC_HDF5_SIGNED : GC_HDF5_UNSIGNED;
        type.is_big_endian = bits & 1;
    } else if (class == CLASS_TEXT) {
        type.kind = GC_HDF5_TEXT;
    } else if (class == CLASS_LIST && (bits & 15) == 1) {
        type.kind = GC_HDF5_TEXT_IN_HEAP;
    }
    return type;
}

/* Reads the chunks of a data layout message of version 4 or 5, which are alike. Returns false if it is none that is
 * read.
 */
static bool take_chunks(const gc_hdf5 *f, gc_block *b, gc_hdf5_set *set) {
    enum { EDGES_WITHOUT_FILTERS = 1, HAS_FILTERS = 2 };
    static const int parameters[] = {[GC_HDF5_FIXED_ARRAY] = 1, [GC_HDF5_GROWING_ARRAY] = 5, [GC_HDF5_TREE_2] = 6};
    const int flags = (int)gc_block_number(b, 1);
    set->chunk_rank = (int)gc_block_number(b, 1);
    const int bytes = (int)gc_block_number(b, 1);
    if ((flags & EDGES_WITHOUT_FILTERS) || set->chunk_rank > GC_HDF5_MAX_RANK + 1 || bytes > 8)
        return false;
    for (int i = 0; i < set->chunk_rank; i++)
        set->chunk[i] = (int64_t)gc_block_number(b, bytes);
    const int index = (int)gc_block_number(b, 1);
    if (index < GC_HDF5_SINGLE || index > GC_HDF5_TREE_2)
        return false;
    set->index = (gc_hdf5_index)index;
    if (index == GC_HDF5_SINGLE && (flags & HAS_FILTERS)) {
        set->single_bytes = gc_block_length(f, b);
        set->single_left_out = (uint32_t)gc_block_number(b, 4);
    }
    (void)gc_block_take(b, parameters[index]);
    set->address = gc_block_offset(f, b);
    return true;
}

/* Reads a data layout message (IV.A.2.i). One that is not read leaves GC_HDF5_UNREAD. */
static void take_layout(const gc_hdf5 *f, gc_block *b, gc_hdf5_set *set) {
    enum { COMPACT = 0, CONTIGUOUS = 1, CHUNKED = 2 };
    const int version = (int)gc_block_number(b, 1), class = (int)gc_block_number(b, 1);
    set->layout = GC_HDF5_UNREAD;
    if (version == 3 && class == CHUNKED) {
        set->chunk_rank = (int)gc_block_number(b, 1);
        set->address = gc_block_offset(f, b);
        for (int i = 0; i < set->chunk_rank && i <= GC_HDF5_MAX_RANK; i++)
            set->chunk[i] = (int64_t)gc_block_number(b, 4);
        if (set->chunk_rank <= GC_HDF5_MAX_RANK + 1)
            set->layout = GC_HDF5_CHUNKED;
    } else if ((version == 4 || version == 5) && class == CHUNKED) {
        set->layout = take_chunks(f, b, set) ? GC_HDF5_CHUNKED : GC_HDF5_UNREAD;
    } else if (version >= 3 && version <= 5 && class == CONTIGUOUS) {
        set->address = gc_block_offset(f, b);
        const uint64_t bytes = gc_block_length(f, b);
        set->bytes = bytes <= INT64_MAX ? (int64_t)bytes : -1;
        set->layout = GC_HDF5_PLAIN;
    } else if (version >= 3 && version <= 5 && class == COMPACT) {
        set->bytes = (int64_t)gc_block_number(b, 2);
        set->address = b->address;
        set->layout = GC_HDF5_PLAIN;
    }
}

/* Reads a filter pipeline message (IV.A.2.l). */
static bool take_filters(gc_hdf5 *f, gc_block *b, gc_hdf5_set *set) {
    const int version = (int)gc_block_number(b, 1), count = (int)gc_block_number(b, 1);
    if (count > GC_HDF5_MAX_FILTERS)
        return gc_hdf5_damaged(f, "a data set has more than 8 filters");
    if (version == 1)
        (void)gc_block_take(b, 6);
    set->filter_count = count;
    for (int i = 0; i < count; i++) {
        const uint16_t id = (uint16_t)gc_block_number(b, 2);
        int64_t name = version == 1 || id >= 256 ? (int64_t)gc_block_number(b, 2) : 0;
        (void)gc_block_take(b, 2); /* flags */
        const int64_t values = (int64_t)gc_block_number(b, 2), padding = version == 1 ? values % 2 * 4 : 0;
        (void)gc_block_take(b, (version == 1 ? gc_round_up(name, 8) : name) + 4 * values + padding);
        set->filter[i] = id;
    }
    return true;
}

/* Reads a link info (IV.A.2.c) or attribute info message (IV.A.2.v), which are alike but for a size. */
static void take_info(const gc_hdf5 *f, gc_block *b, int order_bytes, uint64_t *heap, uint64_t *index) {
    (void)gc_block_take(b, 1);
    if (gc_block_number(b, 1) & 1)
        (void)gc_block_take(b, order_bytes);
    *heap = gc_block_offset(f, b);
    *index = gc_block_offset(f, b);
}

/* Reads a link message (IV.A.2.g), an attribute message (IV.A.2.m) into the object if it is looked for. */
static bool take_link(gc_hdf5 *f, gc_block *b, gc_hdf5_object *o) {
    const int version = (int)gc_block_number(b, 1), flags = (int)gc_block_number(b, 1);
    const int kind = flags & 8 ? (int)gc_block_number(b, 1) : 0;
    (void)gc_block_take(b, (flags & 4 ? 8 : 0) + (flags & 16 ? 1 : 0)); /* order of creation, encoding */
    const uint64_t length = gc_block_number(b, 1 << (flags & 3));
    const gc_block name = gc_block_take(b, length <= INT64_MAX ? (int64_t)length : -1);
    if (version != 1 || name.cut)
        return gc_hdf5_damaged(f, "a link of the root group");
    if (!o->link || !is_named(&name, o->link))
        return true;
    o->target = gc_block_offset(f, b);
    return kind == 0 || gc_hdf5_unread(f, NOT_FOLLOWED);
}

/* Copies a text, which may end with zeros, and ends it with '\0'. */
static void copy_text(const gc_block *from, char *to, int64_t size) {
    const int64_t bytes = gc_min(from->left, size - 1);
    memcpy(to, from->at, (size_t)bytes);
    to[bytes] = '\0';
}

/* Copies a text of a global heap (III.E) and ends it with '\0'. */
static bool read_text_of_heap(gc_hdf5 *f, uint64_t address, uint64_t number, char *to, int64_t size) {
    gc_block b;
    uint8_t *own = gc_hdf5_fetch_signed(f, address, 8 + f->length_bytes, "GCOL", &b);
    if (!own)
        return false;
    (void)gc_block_take(&b, 4);
    const uint64_t bytes = gc_block_length(f, &b);
    free(own);
    own = bytes <= f->size ? gc_hdf5_fetch_signed(f, address, (int64_t)bytes, "GCOL", &b) : NULL;
    if (!own)
        return f->status ? false : gc_hdf5_damaged(f, "a heap of texts");
    (void)gc_block_take(&b, 4 + f->length_bytes);
    bool found = false;
    while (!found && b.left > 0 && !b.cut) {
        const uint64_t object = gc_block_number(&b, 2);
        (void)gc_block_take(&b, 6);
        const uint64_t length = gc_block_length(f, &b);
        if (length > f->size)
            break;
        const gc_block text = gc_block_take(&b, (int64_t)length);
        (void)gc_block_take(&b, gc_min(b.left, gc_round_up((int64_t)length, 8) - (int64_t)length));
        found = object == number && !text.cut;
        if (found)
            copy_text(&text, to, size);
    }
    free(own);
    return found || gc_hdf5_damaged(f, "a text is not in its heap");
}

static bool take_attribute(gc_hdf5 *f, gc_block *b, gc_hdf5_object *o) {
    const int version = (int)gc_block_number(b, 1), flags = (int)gc_block_number(b, 1);
    const int64_t step = version == 1 ? 8 : 1; /* version 1 fills its parts up to multiples of 8 bytes */
    const int64_t name_bytes = (int64_t)gc_block_number(b, 2), type_bytes = (int64_t)gc_block_number(b, 2);
    const int64_t space_bytes = (int64_t)gc_block_number(b, 2);
    if (version == 3)
        (void)gc_block_take(b, 1); /* encoding of the name */
    const gc_block name = gc_block_take(b, gc_round_up(name_bytes, step));
    gc_block type_block = gc_block_take(b, gc_round_up(type_bytes, step));
    gc_block space_block = gc_block_take(b, gc_round_up(space_bytes, step));
    if (version < 1 || version > 3 || b->cut)
        return gc_hdf5_damaged(f, "an attribute");
    gc_hdf5_text *text = NULL;
    for (int i = 0; i < o->text_count; i++)
        if (is_named(&name, o->texts[i].name))
            text = &o->texts[i];
    if (!text)
        return true;
    text->found = true;
    text->value[0] = '\0';
    gc_hdf5_space space;
    const gc_hdf5_type type = take_type(&type_block);
    if ((version > 1 && flags) || !take_space(f, &space_block, &space) || space.values != 1)
        return true;
    if (type.kind == GC_HDF5_TEXT) {
        const gc_block value = gc_block_take(b, type.size);
        copy_text(&value, text->value, sizeof text->value);
    } else if (type.kind == GC_HDF5_TEXT_IN_HEAP) {
        const uint64_t length = gc_block_number(b, 4), heap = gc_block_offset(f, b), number = gc_block_number(b, 4);
        return length == 0 || read_text_of_heap(f, heap, number, text->value, sizeof text->value);
    }
    return !b->cut || gc_hdf5_damaged(f, "an attribute");
}

/* Reads a message of an object header. */
static bool take_message(gc_hdf5 *f, int kind, gc_block *b, header *h, gc_hdf5_object *o) {
    switch (kind) {
    case MESSAGE_SPACE:
        return take_space(f, b, &o->set.space) ||
               gc_hdf5_unread(f, "a data set has more than 4 dimensions, or sizes that are too large");
    case MESSAGE_TYPE:
        o->set.type = take_type(b);
        return true;
    case MESSAGE_LAYOUT:
        take_layout(f, b, &o->set);
        return true;
    case MESSAGE_FILTERS:
        return take_filters(f, b, &o->set);
    case MESSAGE_LINK:
        return take_link(f, b, o);
    case MESSAGE_ATTRIBUTE:
        return take_attribute(f, b, o);
    case MESSAGE_LINK_INFO:
        take_info(f, b, 8, &o->link_heap, &o->link_index);
        return true;
    case MESSAGE_ATTRIBUTE_INFO:
        take_info(f, b, 2, &o->text_heap, &o->text_index);
        return true;
    case MESSAGE_SYMBOL_TABLE:
        o->symbol_tree = gc_block_offset(f, b);
        o->symbol_heap = gc_block_offset(f, b);
        return true;
    case MESSAGE_CONTINUATION:
        if (h->pieces == MAX_CONTINUATIONS)
            return gc_hdf5_damaged(f, "an object has more than 64 headers");
        h->piece[h->pieces].address = gc_block_offset(f, b);
        h->piece[h->pieces++].bytes = gc_block_length(f, b);
        return true;
    default:
        return true;
    }
}

/* Reads the messages of a block of an object header. A gap at its end is shorter than a message. */
static bool take_messages(gc_hdf5 *f, gc_block *b, header *h, gc_hdf5_object *o) {
    const int prefix = h->is_old ? 8 : h->has_order ? 6 : 4;
    while (b->left >= prefix) {
        const int kind = (int)gc_block_number(b, h->is_old ? 2 : 1);
        const int64_t bytes = (int64_t)gc_block_number(b, 2);
        const int flags = (int)gc_block_number(b, 1);
        (void)gc_block_take(b, h->is_old ? 3 : prefix - 4);
        gc_block message = gc_block_take(b, bytes);
        if (message.cut)
            return gc_hdf5_damaged(f, "a message of an object header is longer than the header");
        if (!(flags & SHARED) && !take_message(f, kind, &message, h, o))
            return false;
        if (message.cut)
            return gc_hdf5_damaged(f, "a message of an object header is cut off");
    }
    return true;
}

/* Reads the first block of an object header. */
static bool take_first(gc_hdf5 *f, uint64_t address, header *h, gc_hdf5_object *o) {
    enum { LONGEST = 34 }; /* of what is before the messages */
    gc_block b;
    if (address >= f->size)
        return gc_hdf5_damaged(f, "an object is behind the end of the file");
    uint8_t *own = gc_hdf5_fetch(f, address, gc_min(LONGEST, (int64_t)(f->size - address)), &b);
    if (!own)
        return false;
    const bool known = b.left >= 6 && memcmp(b.at, "OHDR\2", 5) == 0;
    h->is_old = b.at[0] == 1;
    (void)gc_block_take(&b, h->is_old ? 8 : 5);
    const int flags = h->is_old ? 2 : (int)gc_block_number(&b, 1);         /* 2: the size has 4 bytes */
    (void)gc_block_take(&b, (flags & 32 ? 16 : 0) + (flags & 16 ? 4 : 0)); /* times, limits */
    const uint64_t bytes = gc_block_number(&b, 1 << (flags & 3));
    (void)gc_block_take(&b, h->is_old ? 4 : 0);
    const uint64_t start = b.address;
    const bool fits = !b.cut && bytes <= f->size;
    free(own);
    if (!known && !h->is_old)
        return gc_hdf5_damaged(f, "an address does not lead to an object");
    h->has_order = flags & 4;
    own = fits ? gc_hdf5_fetch(f, start, (int64_t)bytes, &b) : NULL;
    if (!own)
        return f->status ? false : gc_hdf5_damaged(f, "an object header is longer than the file");
    const bool ok = take_messages(f, &b, h, o);
    free(own);
    return ok;
}

/* Reads a further block: four letters, messages, and a checksum of four bytes; version 1: messages. */
static bool take_further(gc_hdf5 *f, const piece *p, header *h, gc_hdf5_object *o) {
    gc_block b;
    if (p->bytes < 8 || p->bytes > f->size)
        return gc_hdf5_damaged(f, "an object header continues behind the end of the file");
    uint8_t *own = h->is_old ? gc_hdf5_fetch(f, p->address, (int64_t)p->bytes, &b)
                             : gc_hdf5_fetch_signed(f, p->address, (int64_t)p->bytes - 4, "OCHK", &b);
    const bool ok = own && take_messages(f, &b, h, o);
    free(own);
    return ok;
}

/* Reads the object header at an address (IV.A.1). */
static bool read_object(gc_hdf5 *f, uint64_t address, gc_hdf5_object *o) {
    header h = {0};
    o->target = o->link_heap = o->link_index = o->text_heap = o->text_index = o->set.address = UINT64_MAX;
    o->symbol_tree = o->symbol_heap = UINT64_MAX;
    o->set.layout = GC_HDF5_UNREAD;
    if (!take_first(f, address, &h, o))
        return false;
    for (int i = 0; i < h.pieces; i++)
        if (!take_further(f, &h.piece[i], &h, o))
            return false;
    if (o->link && gc_hdf5_is_defined(f, o->symbol_tree) && !find_symbol(f, o))
        return false;
    if (o->link && !gc_hdf5_is_defined(f, o->target) && gc_hdf5_is_defined(f, o->link_heap) &&
        !take_all(f, o->link_heap, o->link_index, GC_HDF5_LINKS, take_link, o))
        return false;
    return o->text_count == 0 || !gc_hdf5_is_defined(f, o->text_heap) ||
           take_all(f, o->text_heap, o->text_index, GC_HDF5_ATTRIBUTES, take_attribute, o);
}

/* ---- The file ---------------------------------------------------------------------------------------------------- */

enum {
    FREE_BUDGET = 65536, /* besides the multiple of the file's size */
    TIMES_READ = 16      /* how often the whole file may be read as metadata */
};

/* Takes the superblock (II.A). Returns false if it is none. */
static bool take_superblock(gc_hdf5 *f, gc_block *b) {
    if (b->left < 12 || memcmp(b->at, "\211HDF\r\n\032\n", 8) != 0)
        return false;
    const int version = b->at[8];
    const bool is_old = version < 2;
    (void)gc_block_take(b, is_old ? 13 : 9); /* versions of its parts */
    f->offset_bytes = (int)gc_block_number(b, 1);
    f->length_bytes = (int)gc_block_number(b, 1);
    if (version > 3 || f->offset_bytes < 2 || f->offset_bytes > 8 || f->length_bytes < 2 || f->length_bytes > 8)
        return false;
    (void)gc_block_take(b, !is_old ? 1 : version == 0 ? 9 : 13);
    const uint64_t base = gc_block_offset(f, b);
    (void)gc_block_take(b, f->offset_bytes); /* free space, or the extension */
    const uint64_t end = gc_block_offset(f, b);
    (void)gc_block_take(b, is_old ? 2 * f->offset_bytes : 0); /* driver, name of the root group */
    f->root = gc_block_offset(f, b);
    return base == f->base && end <= f->base + f->size && !b->cut;
}

/* Finds the superblock: at the beginning of the file, or behind a block of the user's, of 512, 1024, 2048 ... bytes. */
static bool read_superblock(gc_hdf5 *f) {
    enum { LONGEST = 96, LEAST = 512 };
    const uint64_t size = f->size;
    bool ok = false;
    while (!ok && f->base < size) {
        gc_block b;
        f->size = size - f->base;
        uint8_t *own = gc_hdf5_fetch(f, 0, gc_min((int64_t)f->size, LONGEST), &b);
        if (!own)
            return false;
        ok = take_superblock(f, &b);
        free(own);
        if (!ok)
            f->base = gc_max(LEAST, 2 * (int64_t)f->base);
    }
    return ok || gc_hdf5_damaged(f, "it does not begin as HDF5 does, or its end is missing");
}

gpuconv_status gc_hdf5_open(const char *path, gc_hdf5 **file, gpuconv_error *error) {
    int64_t size;
    *file = NULL;
    const int fd = gc_input_file_open(path, &size, error);
    if (fd < 0)
        return GPUCONV_ERROR_FILE;
    gc_hdf5 *f = gc_calloc(1, sizeof *f);
    if (!f) {
        close(fd);
        return gc_fail_memory(error, path);
    }
    *f = (gc_hdf5){.path = path, .fd = fd, .size = (uint64_t)size, .error = error};
    f->budget = FREE_BUDGET + TIMES_READ * gc_min(size, INT64_MAX / (2 * TIMES_READ));
    if (!read_superblock(f)) {
        const gpuconv_status status = f->status;
        gc_hdf5_close(f);
        return status;
    }
    *file = f;
    return GPUCONV_OK;
}

void gc_hdf5_close(gc_hdf5 *f) {
    if (!f)
        return;
    close(f->fd);
    free(f);
}

gpuconv_status gc_hdf5_find_texts(gc_hdf5 *f, gc_hdf5_text *texts, int count) {
    gc_hdf5_object root = {.texts = texts, .text_count = count};
    return read_object(f, f->root, &root) ? GPUCONV_OK : f->status;
}

gpuconv_status gc_hdf5_find(gc_hdf5 *f, const char *name, gc_hdf5_text *texts, int count, gc_hdf5_set *set,
                            bool *found) {
    gc_hdf5_object root = {.link = name};
    *found = false;
    f->set = name;
    if (!read_object(f, f->root, &root))
        return f->status;
    if (!gc_hdf5_is_defined(f, root.target))
        return GPUCONV_OK;
    gc_hdf5_object object = {.texts = texts, .text_count = count, .set.name = name};
    if (!read_object(f, root.target, &object))
        return f->status;
    *set = object.set;
    *found = true;
    return GPUCONV_OK;
}
