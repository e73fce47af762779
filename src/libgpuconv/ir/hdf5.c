/* Reads HDF5 files: blocks of metadata, trees and heaps, object headers, the search of the root group, and the values
 * of a data set. A function that returns bool returns false after a failure, which is then in file->status and the
 * file's message.
 *
 * An object header (IV.A.1) is one block or several, whose messages say what a data set is, or are the links of a
 * group. Messages that an object keeps outside its header are in a fractal heap (III.G), whose places a tree of version
 * 2 (III.A.2) has. The symbol tables of older groups are trees of version 1 (III.A.1). Every block costs a part of the
 * file's budget, so that structures that refer to each other without end are refused.
 *
 * The values are in one piece, or in chunks. The place of a chunk is in a tree, or in an array: the fixed array
 * (VII.C), or the extensible array (VII.D), in which blocks of elements become longer the farther they are from the
 * beginning. Long blocks have pages, each with a checksum behind it, and a bit for each page that was written. */
#include "hdf5.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

struct gc_hdf5 {
    const char *path, *set;             /* the file, and the data set that is read; NULL: none yet */
    int fd, offset_bytes, length_bytes; /* sizes of addresses and lengths in the file */
    uint64_t base, size, root;          /* origin of addresses; bytes from there; address of the root group's header */
    int64_t budget;                     /* bytes of metadata that may still be read: the end of every loop in a file */
    gpuconv_status status;
    gpuconv_error *error;
};

/* Bytes of metadata that are taken one after the other. Behind the end every number is 0 and `cut` is set. */
typedef struct gc_block {
    const uint8_t *at;
    int64_t left;
    uint64_t address; /* of `at` in the file */
    bool cut;
} gc_block;

static inline bool gc_is_power_of_two(uint64_t n) {
    return n && !(n & (n - 1));
}

/* Takes an entry of a leaf of a tree of version 1. */
typedef bool gc_hdf5_take_child(void *context, gc_block *key, uint64_t child);

/* Takes a record of a tree of version 2. */
typedef bool gc_hdf5_take_record(void *context, gc_block *record);

#define NOT_FOLLOWED "is a link to another place or file, which is not followed"

/* A search in an object: the names to find, and the results from its header. */
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

/* Fails with FORMAT: the file contradicts itself, or is cut off. */
static bool fail_damaged(gc_hdf5 *f, const char *what) {
    f->status = gc_fail(f->error, GPUCONV_ERROR_FORMAT, "%s: %s%sis damaged: %s", f->path, f->set ? f->set : "",
                        f->set ? " " : "", what);
    return false;
}

/* Fails with FORMAT: values of the data set are not in the file. HDF5 files may leave out those that were never
 * written.
 */
static bool fail_missing(gc_hdf5 *f) {
    f->status = gc_fail(f->error, GPUCONV_ERROR_FORMAT,
                        "%s: %s: values are missing, or were never written; write the file again with all of them",
                        f->path, f->set);
    return false;
}

/* Fails with FORMAT: the file uses a part of HDF5 that is not read. */
static bool fail_unread(gc_hdf5 *f, const char *what) {
    f->status = gc_fail(f->error, GPUCONV_ERROR_FORMAT,
                        "%s: %s%s%s; save it again as netCDF-4, without filters other than deflate and shuffle",
                        f->path, f->set ? f->set : "", f->set ? ": " : "", what);
    return false;
}

static bool fail_memory(gc_hdf5 *f) {
    f->status = gc_fail_memory(f->error, f->path);
    return false;
}

/* Reads bytes that are not metadata: those of the values. Fails if the file has less. */
static bool read_bytes(gc_hdf5 *f, uint64_t address, int64_t bytes, void *to) {
    if (bytes < 0 || address > f->size || (uint64_t)bytes > f->size - address)
        return fail_damaged(f, "an address points behind the end of the file");
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
            return fail_damaged(f, "the file became shorter while it was read");
        done += got;
    }
    return true;
}

/* Reads a block of metadata. The caller frees what is returned; NULL after a failure. */
static uint8_t *fetch(gc_hdf5 *f, uint64_t address, int64_t bytes, gc_block *block) {
    if (bytes < 0 || (uint64_t)bytes > f->size || bytes + FETCH_COST > f->budget) {
        fail_damaged(f, bytes >= 0 && (uint64_t)bytes <= f->size ? "its structures refer to each other without end"
                                                                 : "a block is longer than the file");
        return NULL;
    }
    f->budget -= bytes + FETCH_COST;
    uint8_t *own = gc_alloc(gc_max(bytes, 1), 1);
    if (!own) {
        fail_memory(f);
        return NULL;
    }
    if (!read_bytes(f, address, bytes, own)) {
        free(own);
        return NULL;
    }
    *block = (gc_block){own, bytes, address, false};
    return own;
}

/* Takes bytes as a block of their own. */
static gc_block take_bytes(gc_block *b, int64_t bytes) {
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

/* Reads a block that begins with these four letters, which are skipped. */
static uint8_t *fetch_signed(gc_hdf5 *f, uint64_t address, int64_t bytes, const char *letters, gc_block *block) {
    uint8_t *own = fetch(f, address, bytes, block);
    if (own && (bytes < 4 || memcmp(own, letters, 4) != 0)) {
        char what[64] = "a block does not begin with ....";
        memcpy(strstr(what, "...."), letters, 4);
        fail_damaged(f, what);
        free(own);
        return NULL;
    }
    if (own)
        (void)take_bytes(block, 4);
    return own;
}

/* Take a number of 0 to 8 bytes, an address and a length. */
static uint64_t take_number(gc_block *b, int bytes) {
    const gc_block taken = take_bytes(b, bytes);
    uint64_t value = 0;
    for (int i = 0; !taken.cut && i < bytes; i++)
        value |= (uint64_t)taken.at[i] << (8 * i);
    return value;
}

static uint64_t take_offset(const gc_hdf5 *f, gc_block *b) {
    return take_number(b, f->offset_bytes);
}

static uint64_t take_length(const gc_hdf5 *f, gc_block *b) {
    return take_number(b, f->length_bytes);
}

/* Returns whether an address is defined: not all ones. */
static bool is_defined(const gc_hdf5 *f, uint64_t address) {
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
    uint8_t *own = fetch_signed(f, address, 22 + 3 * f->offset_bytes + 12 * f->length_bytes, "FRHP", &b);
    if (!own)
        return false;
    (void)take_bytes(&b, 3); /* version, bytes of a place */
    const bool filtered = take_number(&b, 2);
    (void)take_bytes(&b, 1);
    const uint64_t max_managed = take_number(&b, 4);
    (void)take_bytes(&b, 2 * f->offset_bytes + 10 * f->length_bytes);
    *h = (fractal_heap){.width = take_number(&b, 2)};
    h->first = take_length(f, &b);
    h->max_direct = take_length(f, &b);
    const int bits = (int)take_number(&b, 2);
    (void)take_bytes(&b, 2);
    h->root = take_offset(f, &b);
    h->rows = (int)take_number(&b, 2);
    h->offset_bytes = (bits + 7) / 8;
    h->length_bytes = (int)gc_min(bytes_for(h->max_direct - 1), bytes_for(max_managed));
    free(own);
    if (filtered)
        return fail_unread(f, "compresses its names");
    if (b.cut || bits < 1 || bits > 64 || !gc_is_power_of_two(h->width) || !gc_is_power_of_two(h->first) ||
        !gc_is_power_of_two(h->max_direct) || h->first > h->max_direct || h->max_direct > UINT32_MAX || h->rows > 64)
        return fail_damaged(f, "the sizes of a heap");
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
            return fail_damaged(f, "a place in a heap");
        const int64_t prefix = 5 + (int64_t)f->offset_bytes + h->offset_bytes;
        uint8_t *own = fetch_signed(f, block, prefix, "FHIB", &b);
        if (!own)
            return false;
        free(own);
        const uint64_t entry = block + (uint64_t)prefix + (row * h->width + column) * (uint64_t)f->offset_bytes;
        own = fetch(f, entry, f->offset_bytes, &b);
        if (!own)
            return false;
        block = take_offset(f, &b);
        free(own);
        offset -= row_start + column * bytes;
        direct = bytes <= h->max_direct;
    }
    if (offset >= bytes || !is_defined(f, block))
        return fail_damaged(f, "a place in a heap");
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
        return fail_damaged(f, "a node of an index has more records than fit into it");
    uint8_t *own = fetch_signed(f, address, bytes, depth ? "BTIN" : "BTLF", &b);
    if (!own)
        return false;
    (void)take_bytes(&b, 2);
    gc_block own_records = take_bytes(&b, records * t->record_bytes);
    bool ok = true;
    for (int64_t i = 0; i <= records && ok; i++) {
        if (depth) {
            const uint64_t child = take_offset(f, &b);
            const int64_t count = (int64_t)take_number(&b, t->count_bytes);
            (void)take_bytes(&b, t->total_bytes[depth - 1]);
            ok = take_node(f, t, child, depth - 1, count);
        }
        gc_block record = take_bytes(&own_records, i < records ? t->record_bytes : 0);
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

/* Takes the records of a tree of version 2 (III.A.2) of a type in their order. */
static bool walk_records(gc_hdf5 *f, uint64_t address, int type, gc_hdf5_take_record *take, void *context) {
    enum { OVERHEAD = 10 };
    gc_block b;
    tree t = {.take = take, .context = context};
    uint8_t *own = fetch_signed(f, address, 18 + f->offset_bytes, "BTHD", &b);
    if (!own)
        return false;
    (void)take_bytes(&b, 1);
    const int own_type = (int)take_number(&b, 1);
    t.node_bytes = (int64_t)take_number(&b, 4);
    t.record_bytes = (int)take_number(&b, 2);
    const int depth = (int)take_number(&b, 2);
    (void)take_bytes(&b, 2);
    const uint64_t root = take_offset(f, &b);
    const int64_t records = (int64_t)take_number(&b, 2);
    free(own);
    if (own_type != type || depth > MAX_DEPTH || t.record_bytes < 1 || t.node_bytes < OVERHEAD + t.record_bytes)
        return fail_damaged(f, "the sizes of an index");
    if (!is_defined(f, root))
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
    (void)take_bytes(record, m->kind == GC_HDF5_LINKS ? 4 : 0); /* a checksum of the name */
    const int flags = (int)take_number(record, 1);
    const uint64_t offset = take_number(record, m->heap.offset_bytes);
    const uint64_t bytes = take_number(record, m->heap.length_bytes);
    uint64_t address = 0;
    if ((flags & KIND) != MANAGED)
        return true;
    if (record->cut || bytes > f->size)
        return fail_damaged(f, "a record of an index");
    if (!find_place(f, &m->heap, offset, &address))
        return false;
    gc_block message;
    uint8_t *own = fetch(f, address, (int64_t)bytes, &message);
    const bool ok = own && m->take(f, &message, m->object);
    free(own);
    return ok;
}

static bool take_all(gc_hdf5 *f, uint64_t heap_address, uint64_t index, gc_hdf5_records kind, gc_hdf5_take *take,
                     gc_hdf5_object *o) {
    messages m = {.file = f, .kind = kind, .take = take, .object = o};
    return open_heap(f, heap_address, &m.heap) && walk_records(f, index, (int)kind, take_record, &m);
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
    uint8_t *own = fetch_signed(f, address, prefix, "TREE", &b);
    if (!own)
        return false;
    const int type = (int)take_number(&b, 1), own_level = (int)take_number(&b, 1);
    const int64_t entries = (int64_t)take_number(&b, 2);
    free(own);
    if (type != t->type || own_level > MAX_LEVEL || (level >= 0 && own_level != level))
        return fail_damaged(f, "a node of a tree");
    own = fetch(f, address + (uint64_t)prefix, entries * (t->key_bytes + f->offset_bytes), &b);
    bool ok = own;
    for (int64_t i = 0; i < entries && ok; i++) {
        gc_block key = take_bytes(&b, t->key_bytes);
        const uint64_t child = take_offset(f, &b);
        ok = own_level ? walk_node(t, child, own_level - 1) : t->take(t->context, &key, child);
    }
    free(own);
    return ok;
}

/* Takes the entries of a tree of version 1 (III.A.1) in their order. `type`: 0 for groups, 1 for chunks. */
static bool walk_tree(gc_hdf5 *f, uint64_t address, int type, int64_t key_bytes, gc_hdf5_take_child *take,
                      void *context) {
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
    uint8_t *own = fetch_signed(f, address, PREFIX, "SNOD", &b);
    if (!own)
        return false;
    (void)take_bytes(&b, 2);
    const int64_t symbols = (int64_t)take_number(&b, 2);
    free(own);
    own = fetch(f, address + PREFIX, symbols * (2 * f->offset_bytes + REST), &b);
    bool ok = own;
    for (int64_t i = 0; i < symbols && ok; i++) {
        const uint64_t offset = take_offset(f, &b), object = take_offset(f, &b);
        (void)take_bytes(&b, REST);
        gc_block name = s->names;
        (void)take_bytes(&name, offset <= INT64_MAX ? (int64_t)offset : -1);
        if (!name.cut && is_named(&name, s->object->link)) {
            s->object->target = object;
            ok = is_defined(f, object) || fail_unread(f, NOT_FOLLOWED);
        }
    }
    free(own);
    return ok;
}

/* Finds object->link in the symbol table of a group (III.B, III.C, III.D). */
static bool find_symbol(gc_hdf5 *f, gc_hdf5_object *o) {
    search s = {.file = f, .object = o};
    gc_block b;
    uint8_t *own = fetch_signed(f, o->symbol_heap, 8 + 2 * f->length_bytes + f->offset_bytes, "HEAP", &b);
    if (!own)
        return false;
    (void)take_bytes(&b, 4);
    const uint64_t bytes = take_length(f, &b);
    (void)take_bytes(&b, f->length_bytes);
    const uint64_t names = take_offset(f, &b);
    free(own);
    own = fetch(f, names, bytes <= INT64_MAX ? (int64_t)bytes : -1, &s.names);
    const bool ok = own && walk_tree(f, o->symbol_tree, 0, f->length_bytes, take_symbols, &s);
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
    const int version = (int)take_number(b, 1);
    *space = (gc_hdf5_space){.rank = (int)take_number(b, 1), .values = 1};
    const bool has_limits = take_number(b, 1) & 1;
    const int kind = (int)take_number(b, version == 1 ? 5 : 1);
    if (version < 1 || version > 2 || space->rank > GC_HDF5_MAX_RANK)
        return false;
    for (int i = 0; i < space->rank; i++) {
        const uint64_t size = take_length(f, b);
        if (size > INT64_MAX || __builtin_mul_overflow(space->values, (int64_t)size, &space->values))
            return false;
        space->size[i] = (int64_t)size;
    }
    for (int i = 0; i < space->rank; i++) {
        const uint64_t limit = has_limits ? take_length(f, b) : (uint64_t)space->size[i];
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
        same = take_number(b, bytes[i]) == (size == 4 ? of_float : of_double)[i] && same;
    return same && !b->cut;
}

/* Returns whether the bit fields of an integer type take all bits of 1, 2, 4 or 8 bytes. */
static bool is_integer(gc_block *b, int64_t size) {
    const uint64_t offset = take_number(b, 2), precision = take_number(b, 2);
    return (size == 1 || size == 2 || size == 4 || size == 8) && offset == 0 && precision == 8 * (uint64_t)size &&
           !b->cut;
}

/* Reads a datatype message (IV.A.2.d). */
static gc_hdf5_type take_type(gc_block *b) {
    enum { CLASS_INTEGER = 0, CLASS_FLOAT = 1, CLASS_TEXT = 3, CLASS_LIST = 9 };
    const int class = (int)take_number(b, 1) & 15, bits = (int)take_number(b, 3);
    gc_hdf5_type type = {.size = (int64_t)take_number(b, 4)};
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
    const int flags = (int)take_number(b, 1);
    set->chunk_rank = (int)take_number(b, 1);
    const int bytes = (int)take_number(b, 1);
    if ((flags & EDGES_WITHOUT_FILTERS) || set->chunk_rank > GC_HDF5_MAX_RANK + 1 || bytes > 8)
        return false;
    for (int i = 0; i < set->chunk_rank; i++)
        set->chunk[i] = (int64_t)take_number(b, bytes);
    const int index = (int)take_number(b, 1);
    if (index < GC_HDF5_SINGLE || index > GC_HDF5_TREE_2)
        return false;
    set->index = (gc_hdf5_index)index;
    if (index == GC_HDF5_SINGLE && (flags & HAS_FILTERS)) {
        set->single_bytes = take_length(f, b);
        set->single_left_out = (uint32_t)take_number(b, 4);
    }
    (void)take_bytes(b, parameters[index]);
    set->address = take_offset(f, b);
    return true;
}

/* Reads a data layout message (IV.A.2.i). One that is not read leaves GC_HDF5_UNREAD. */
static void take_layout(const gc_hdf5 *f, gc_block *b, gc_hdf5_set *set) {
    enum { COMPACT = 0, CONTIGUOUS = 1, CHUNKED = 2 };
    const int version = (int)take_number(b, 1), class = (int)take_number(b, 1);
    set->layout = GC_HDF5_UNREAD;
    if (version == 3 && class == CHUNKED) {
        set->chunk_rank = (int)take_number(b, 1);
        set->address = take_offset(f, b);
        for (int i = 0; i < set->chunk_rank && i <= GC_HDF5_MAX_RANK; i++)
            set->chunk[i] = (int64_t)take_number(b, 4);
        if (set->chunk_rank <= GC_HDF5_MAX_RANK + 1)
            set->layout = GC_HDF5_CHUNKED;
    } else if ((version == 4 || version == 5) && class == CHUNKED) {
        set->layout = take_chunks(f, b, set) ? GC_HDF5_CHUNKED : GC_HDF5_UNREAD;
    } else if (version >= 3 && version <= 5 && class == CONTIGUOUS) {
        set->address = take_offset(f, b);
        const uint64_t bytes = take_length(f, b);
        set->bytes = bytes <= INT64_MAX ? (int64_t)bytes : -1;
        set->layout = GC_HDF5_PLAIN;
    } else if (version >= 3 && version <= 5 && class == COMPACT) {
        set->bytes = (int64_t)take_number(b, 2);
        set->address = b->address;
        set->layout = GC_HDF5_PLAIN;
    }
}

/* Reads a filter pipeline message (IV.A.2.l). */
static bool take_filters(gc_hdf5 *f, gc_block *b, gc_hdf5_set *set) {
    const int version = (int)take_number(b, 1), count = (int)take_number(b, 1);
    if (count > GC_HDF5_MAX_FILTERS)
        return fail_damaged(f, "a data set has more than 8 filters");
    if (version == 1)
        (void)take_bytes(b, 6);
    set->filter_count = count;
    for (int i = 0; i < count; i++) {
        const uint16_t id = (uint16_t)take_number(b, 2);
        int64_t name = version == 1 || id >= 256 ? (int64_t)take_number(b, 2) : 0;
        (void)take_bytes(b, 2); /* flags */
        const int64_t values = (int64_t)take_number(b, 2), padding = version == 1 ? values % 2 * 4 : 0;
        (void)take_bytes(b, (version == 1 ? gc_round_up(name, 8) : name) + 4 * values + padding);
        set->filter[i] = id;
    }
    return true;
}

/* Reads a link info (IV.A.2.c) or attribute info message (IV.A.2.v), which are alike but for a size. */
static void take_info(const gc_hdf5 *f, gc_block *b, int order_bytes, uint64_t *heap, uint64_t *index) {
    (void)take_bytes(b, 1);
    if (take_number(b, 1) & 1)
        (void)take_bytes(b, order_bytes);
    *heap = take_offset(f, b);
    *index = take_offset(f, b);
}

/* Reads a link message (IV.A.2.g), an attribute message (IV.A.2.m) into the object if it is looked for. */
static bool take_link(gc_hdf5 *f, gc_block *b, gc_hdf5_object *o) {
    const int version = (int)take_number(b, 1), flags = (int)take_number(b, 1);
    const int kind = flags & 8 ? (int)take_number(b, 1) : 0;
    (void)take_bytes(b, (flags & 4 ? 8 : 0) + (flags & 16 ? 1 : 0)); /* order of creation, encoding */
    const uint64_t length = take_number(b, 1 << (flags & 3));
    const gc_block name = take_bytes(b, length <= INT64_MAX ? (int64_t)length : -1);
    if (version != 1 || name.cut)
        return fail_damaged(f, "a link of the root group");
    if (!o->link || !is_named(&name, o->link))
        return true;
    o->target = take_offset(f, b);
    return kind == 0 || fail_unread(f, NOT_FOLLOWED);
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
    uint8_t *own = fetch_signed(f, address, 8 + f->length_bytes, "GCOL", &b);
    if (!own)
        return false;
    (void)take_bytes(&b, 4);
    const uint64_t bytes = take_length(f, &b);
    free(own);
    own = bytes <= f->size ? fetch_signed(f, address, (int64_t)bytes, "GCOL", &b) : NULL;
    if (!own)
        return f->status ? false : fail_damaged(f, "a heap of texts");
    (void)take_bytes(&b, 4 + f->length_bytes);
    bool found = false;
    while (!found && b.left > 0 && !b.cut) {
        const uint64_t object = take_number(&b, 2);
        (void)take_bytes(&b, 6);
        const uint64_t length = take_length(f, &b);
        if (length > f->size)
            break;
        const gc_block text = take_bytes(&b, (int64_t)length);
        (void)take_bytes(&b, gc_min(b.left, gc_round_up((int64_t)length, 8) - (int64_t)length));
        found = object == number && !text.cut;
        if (found)
            copy_text(&text, to, size);
    }
    free(own);
    return found || fail_damaged(f, "a text is not in its heap");
}

static bool take_attribute(gc_hdf5 *f, gc_block *b, gc_hdf5_object *o) {
    const int version = (int)take_number(b, 1), flags = (int)take_number(b, 1);
    const int64_t step = version == 1 ? 8 : 1; /* version 1 fills its parts up to multiples of 8 bytes */
    const int64_t name_bytes = (int64_t)take_number(b, 2), type_bytes = (int64_t)take_number(b, 2);
    const int64_t space_bytes = (int64_t)take_number(b, 2);
    if (version == 3)
        (void)take_bytes(b, 1); /* encoding of the name */
    const gc_block name = take_bytes(b, gc_round_up(name_bytes, step));
    gc_block type_block = take_bytes(b, gc_round_up(type_bytes, step));
    gc_block space_block = take_bytes(b, gc_round_up(space_bytes, step));
    if (version < 1 || version > 3 || b->cut)
        return fail_damaged(f, "an attribute");
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
        const gc_block value = take_bytes(b, type.size);
        copy_text(&value, text->value, sizeof text->value);
    } else if (type.kind == GC_HDF5_TEXT_IN_HEAP) {
        const uint64_t length = take_number(b, 4), heap = take_offset(f, b), number = take_number(b, 4);
        return length == 0 || read_text_of_heap(f, heap, number, text->value, sizeof text->value);
    }
    return !b->cut || fail_damaged(f, "an attribute");
}

/* Reads a message of an object header. */
static bool take_message(gc_hdf5 *f, int kind, gc_block *b, header *h, gc_hdf5_object *o) {
    switch (kind) {
    case MESSAGE_SPACE:
        return take_space(f, b, &o->set.space) ||
               fail_unread(f, "a data set has more than 4 dimensions, or sizes that are too large");
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
        o->symbol_tree = take_offset(f, b);
        o->symbol_heap = take_offset(f, b);
        return true;
    case MESSAGE_CONTINUATION:
        if (h->pieces == MAX_CONTINUATIONS)
            return fail_damaged(f, "an object has more than 64 headers");
        h->piece[h->pieces].address = take_offset(f, b);
        h->piece[h->pieces++].bytes = take_length(f, b);
        return true;
    default:
        return true;
    }
}

/* Reads the messages of a block of an object header. A gap at its end is shorter than a message. */
static bool take_messages(gc_hdf5 *f, gc_block *b, header *h, gc_hdf5_object *o) {
    const int prefix = h->is_old ? 8 : h->has_order ? 6 : 4;
    while (b->left >= prefix) {
        const int kind = (int)take_number(b, h->is_old ? 2 : 1);
        const int64_t bytes = (int64_t)take_number(b, 2);
        const int flags = (int)take_number(b, 1);
        (void)take_bytes(b, h->is_old ? 3 : prefix - 4);
        gc_block message = take_bytes(b, bytes);
        if (message.cut)
            return fail_damaged(f, "a message of an object header is longer than the header");
        if (!(flags & SHARED) && !take_message(f, kind, &message, h, o))
            return false;
        if (message.cut)
            return fail_damaged(f, "a message of an object header is cut off");
    }
    return true;
}

/* Reads the first block of an object header. */
static bool take_first(gc_hdf5 *f, uint64_t address, header *h, gc_hdf5_object *o) {
    enum { LONGEST = 34 }; /* of what is before the messages */
    gc_block b;
    if (address >= f->size)
        return fail_damaged(f, "an object is behind the end of the file");
    uint8_t *own = fetch(f, address, gc_min(LONGEST, (int64_t)(f->size - address)), &b);
    if (!own)
        return false;
    const bool known = b.left >= 6 && memcmp(b.at, "OHDR\2", 5) == 0;
    h->is_old = b.at[0] == 1;
    (void)take_bytes(&b, h->is_old ? 8 : 5);
    const int flags = h->is_old ? 2 : (int)take_number(&b, 1);          /* 2: the size has 4 bytes */
    (void)take_bytes(&b, (flags & 32 ? 16 : 0) + (flags & 16 ? 4 : 0)); /* times, limits */
    const uint64_t bytes = take_number(&b, 1 << (flags & 3));
    (void)take_bytes(&b, h->is_old ? 4 : 0);
    const uint64_t start = b.address;
    const bool fits = !b.cut && bytes <= f->size;
    free(own);
    if (!known && !h->is_old)
        return fail_damaged(f, "an address does not lead to an object");
    h->has_order = flags & 4;
    own = fits ? fetch(f, start, (int64_t)bytes, &b) : NULL;
    if (!own)
        return f->status ? false : fail_damaged(f, "an object header is longer than the file");
    const bool ok = take_messages(f, &b, h, o);
    free(own);
    return ok;
}

/* Reads a further block: four letters, messages, and a checksum of four bytes; version 1: messages. */
static bool take_further(gc_hdf5 *f, const piece *p, header *h, gc_hdf5_object *o) {
    gc_block b;
    if (p->bytes < 8 || p->bytes > f->size)
        return fail_damaged(f, "an object header continues behind the end of the file");
    uint8_t *own = h->is_old ? fetch(f, p->address, (int64_t)p->bytes, &b)
                             : fetch_signed(f, p->address, (int64_t)p->bytes - 4, "OCHK", &b);
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
    if (o->link && is_defined(f, o->symbol_tree) && !find_symbol(f, o))
        return false;
    if (o->link && !is_defined(f, o->target) && is_defined(f, o->link_heap) &&
        !take_all(f, o->link_heap, o->link_index, GC_HDF5_LINKS, take_link, o))
        return false;
    return o->text_count == 0 || !is_defined(f, o->text_heap) ||
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
    (void)take_bytes(b, is_old ? 13 : 9); /* versions of its parts */
    f->offset_bytes = (int)take_number(b, 1);
    f->length_bytes = (int)take_number(b, 1);
    if (version > 3 || f->offset_bytes < 2 || f->offset_bytes > 8 || f->length_bytes < 2 || f->length_bytes > 8)
        return false;
    (void)take_bytes(b, !is_old ? 1 : version == 0 ? 9 : 13);
    const uint64_t base = take_offset(f, b);
    (void)take_bytes(b, f->offset_bytes); /* free space, or the extension */
    const uint64_t end = take_offset(f, b);
    (void)take_bytes(b, is_old ? 2 * f->offset_bytes : 0); /* driver, name of the root group */
    f->root = take_offset(f, b);
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
        uint8_t *own = fetch(f, 0, gc_min((int64_t)f->size, LONGEST), &b);
        if (!own)
            return false;
        ok = take_superblock(f, &b);
        free(own);
        if (!ok)
            f->base = gc_max(LEAST, 2 * (int64_t)f->base);
    }
    return ok || fail_damaged(f, "it does not begin as HDF5 does, or its end is missing");
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
    if (!is_defined(f, root.target))
        return GPUCONV_OK;
    gc_hdf5_object object = {.texts = texts, .text_count = count, .set.name = name};
    if (!read_object(f, root.target, &object))
        return f->status;
    *set = object.set;
    *found = true;
    return GPUCONV_OK;
}

/* An array of the places of chunks (VII.C, VII.D): its header, and the run of elements that was used last. */
typedef struct gc_hdf5_array {
    bool has_filters;
    int element_bytes, page_bits; /* pages have 2^page_bits elements */
    uint64_t block, elements;     /* elements: of a fixed array */
    int max_bits;                 /* of an extensible array */
    uint64_t in_index, min_elements, min_pointers;
    uint64_t first, count, address; /* of the run: its first element, their number, where they are */
} gc_hdf5_array;

/* The place of a chunk in the file. Bit i of left_out: the chunk is without filter i. */
typedef struct gc_hdf5_place {
    uint64_t address, bytes;
    uint32_t left_out;
} gc_hdf5_place;

/* ---- Arrays of places -------------------------------------------------------------------------------------------- */

enum { PREFIX = 6, CHECKSUM = 4 }; /* bytes: letters, version and type before a block; behind a block or a page */

static int log_of(uint64_t n) {
    return 63 - __builtin_clzll(n);
}

static bool open_array(gc_hdf5 *f, const gc_hdf5_set *set, gc_hdf5_array *a) {
    const bool is_fixed = set->index == GC_HDF5_FIXED_ARRAY;
    gc_block b;
    uint8_t *own = fetch_signed(
        f, set->address, is_fixed ? 8 + f->length_bytes + f->offset_bytes : 12 + 6 * f->length_bytes + f->offset_bytes,
        is_fixed ? "FAHD" : "EAHD", &b);
    if (!own)
        return false;
    (void)take_bytes(&b, 1);
    *a = (gc_hdf5_array){.has_filters = take_number(&b, 1), .min_elements = 1, .min_pointers = 1};
    a->element_bytes = (int)take_number(&b, 1);
    if (!is_fixed) {
        a->max_bits = (int)take_number(&b, 1);
        a->in_index = take_number(&b, 1);
        a->min_elements = take_number(&b, 1);
        a->min_pointers = take_number(&b, 1);
    }
    a->page_bits = (int)take_number(&b, 1);
    a->elements = take_length(f, &b);
    (void)take_bytes(&b, is_fixed ? 0 : 5 * f->length_bytes);
    a->block = take_offset(f, &b);
    free(own);
    const int size_bytes = a->element_bytes - f->offset_bytes - 4;
    if (!is_defined(f, a->block) || a->has_filters != (set->filter_count > 0) || a->page_bits > 32 ||
        (a->has_filters ? size_bytes < 1 || size_bytes > 8 : size_bytes != -4) || (is_fixed && a->elements > f->size) ||
        !gc_is_power_of_two(a->min_elements) || !gc_is_power_of_two(a->min_pointers))
        return fail_damaged(f, "the sizes of an array of chunks");
    return true;
}

/* Checks that a block begins with these four letters. */
static bool check_block(gc_hdf5 *f, uint64_t address, const char *letters) {
    gc_block b;
    uint8_t *own = fetch_signed(f, address, 4, letters, &b);
    free(own);
    return own;
}

/* Reads the address of a block that begins with these four letters. */
static bool read_address(gc_hdf5 *f, uint64_t at, const char *letters, uint64_t *address) {
    gc_block b;
    uint8_t *own = fetch(f, at, f->offset_bytes, &b);
    if (!own)
        return false;
    *address = take_offset(f, &b);
    free(own);
    return is_defined(f, *address) ? check_block(f, *address, letters) : fail_missing(f);
}

/* Reduces the run, which is a whole block, to the page of an element. The bits of the pages begin with bit `first_bit`
 * of the byte at the address `bits`. */
static bool find_page(gc_hdf5 *f, gc_hdf5_array *a, uint64_t number, uint64_t bits, uint64_t first_bit) {
    const uint64_t page = UINT64_C(1) << a->page_bits, i = (number - a->first) / page, bit = first_bit + i;
    gc_block b;
    uint8_t *own = fetch(f, bits + bit / 8, 1, &b);
    const bool is_written = own && (*own << bit % 8 & 128);
    free(own);
    a->first += i * page;
    a->count = gc_min(page, a->count - i * page);
    a->address += CHECKSUM + i * (page * (uint64_t)a->element_bytes + CHECKSUM);
    return is_written || (own && fail_missing(f));
}

/* Finds the run of an element of a fixed array. */
static bool find_fixed(gc_hdf5 *f, gc_hdf5_array *a, uint64_t number) {
    const uint64_t page = UINT64_C(1) << a->page_bits, bits = a->block + PREFIX + (uint64_t)f->offset_bytes;
    const uint64_t pages = a->elements > page ? (a->elements + page - 1) / page : 0;
    a->first = 0;
    a->count = a->elements;
    a->address = bits + (pages + 7) / 8;
    if (number >= a->elements)
        return fail_damaged(f, "an array of chunks is too short");
    return check_block(f, a->block, "FADB") && (!pages || find_page(f, a, number, bits, 0));
}

/* Finds the run of an element of an extensible array. Super block k has 2^(k/2) blocks of min_elements 2^((k+1)/2)
 * elements. The index block has the first elements, the addresses of the blocks of the first super blocks, which are
 * not stored, and the addresses of the other super blocks. */
static bool find_growing(gc_hdf5 *f, gc_hdf5_array *a, uint64_t number) {
    const uint64_t address = (uint64_t)f->offset_bytes, before = PREFIX + address;
    const uint64_t pointers = a->block + before + a->in_index * (uint64_t)a->element_bytes;
    const uint64_t prefix = before + (uint64_t)(a->max_bits + 7) / 8; /* of super blocks and blocks */
    if (number < a->in_index) {
        a->first = 0;
        a->count = a->in_index;
        a->address = a->block + before;
        return check_block(f, a->block, "EAIB");
    }
    const uint64_t rest = number - a->in_index;
    const int k = log_of(rest / a->min_elements + 1), stored = 2 * log_of(a->min_pointers);
    const uint64_t at = rest - a->min_elements * ((UINT64_C(1) << k) - 1);
    const uint64_t elements = a->min_elements << (k + 1) / 2, blocks = UINT64_C(1) << k / 2, i = at / elements;
    const uint64_t page = UINT64_C(1) << a->page_bits, pages = elements > page ? elements / page : 0;
    uint64_t super = 0, block, entry = pointers + (2 * (blocks - 1) + (k % 2 ? blocks : 0) + i) * address;
    if (k >= stored) {
        entry = pointers + (2 * (a->min_pointers - 1) + (uint64_t)(k - stored)) * address;
        if (!read_address(f, entry, "EASB", &super))
            return false;
        entry = super + prefix + blocks * ((pages + 7) / 8) + i * address;
    } else if (pages) {
        return fail_damaged(f, "a block of an array of chunks is too long");
    }
    if (!read_address(f, entry, "EADB", &block))
        return false;
    a->first = number - at % elements;
    a->count = elements;
    a->address = block + prefix;
    return !pages || find_page(f, a, number, super + prefix, i * pages);
}

/* Finds element `number`; place->bytes remains unchanged if the array has no sizes. */
static bool find_element(gc_hdf5 *f, const gc_hdf5_set *set, gc_hdf5_array *a, uint64_t number, gc_hdf5_place *p) {
    gc_block b;
    if ((number < a->first || number - a->first >= a->count) &&
        !(set->index == GC_HDF5_FIXED_ARRAY ? find_fixed : find_growing)(f, a, number))
        return false;
    uint8_t *own = fetch(f, a->address + (number - a->first) * (uint64_t)a->element_bytes, a->element_bytes, &b);
    if (!own)
        return false;
    p->address = take_offset(f, &b);
    if (a->has_filters) {
        p->bytes = take_number(&b, a->element_bytes - f->offset_bytes - 4);
        p->left_out = (uint32_t)take_number(&b, 4);
    }
    free(own);
    return true;
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

enum {
    FILTER_DEFLATE = 1,
    FILTER_SHUFFLE = 2,
    FILTER_CHECKSUM = 3, /* fletcher32 */
    PIECE = 1 << 16,     /* values between two looks at the flag of cancellation */
    MAX_RATIO = 1032,    /* of deflate: bytes that one byte gives at most */
    SPARE = 1 << 16      /* bytes by which a filter may make a chunk longer */
};

/* A data set that is read. */
typedef struct reading {
    gc_hdf5 *file;
    const gc_hdf5_set *set;
    float *values;
    int64_t chunk_values, chunk_bytes, room; /* room: bytes of each buffer */
    uint8_t *buffer, *other;                 /* the chunk, before and after a filter */
    int64_t chunks, next;                    /* of the grid of chunks; the next one in their order */
    uint64_t stored;                         /* bytes of the file that the chunks so far take */
} reading;

static bool is_cancelled(gc_hdf5 *f) {
    if (gc_cancelled())
        f->status = gc_fail_cancelled(f->error, f->path);
    return f->status != GPUCONV_OK;
}

/* Returns value number i of an array as the file stores it. */
static float value_at(const gc_hdf5_type *type, const uint8_t *array, int64_t i) {
    const int size = (int)type->size;
    const uint8_t *from = array + i * size;
    uint64_t bits = 0;
    for (int b = 0; b < size; b++)
        bits |= (uint64_t)from[type->is_big_endian ? size - 1 - b : b] << (8 * b);
    if (type->kind == GC_HDF5_UNSIGNED)
        return (float)bits;
    if (type->kind == GC_HDF5_SIGNED)
        return (float)((int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size));
    if (size == 4) {
        const uint32_t half = (uint32_t)bits;
        float value;
        memcpy(&value, &half, sizeof value);
        return value;
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

/* Reads values that are in one piece. */
static bool read_plain(gc_hdf5 *f, const gc_hdf5_set *set, float *values) {
    const int64_t size = set->type.size;
    if (set->bytes < set->space.values * size || !is_defined(f, set->address))
        return fail_missing(f);
    uint8_t *raw = gc_alloc(PIECE, size);
    bool ok = raw || fail_memory(f);
    for (int64_t at = 0; at < set->space.values && ok; at += PIECE) {
        const int64_t count = gc_min(PIECE, set->space.values - at);
        ok = read_bytes(f, set->address + (uint64_t)(at * size), count * size, raw);
        for (int64_t i = 0; i < count && ok; i++)
            values[at + i] = value_at(&set->type, raw, i);
    }
    free(raw);
    return ok;
}

/* Undoes deflate. *bytes is the size before and after. */
static bool inflate_chunk(reading *r, int64_t *bytes) {
    enum { WINDOW = 1 << 20 };
    z_stream z = {.next_in = r->buffer, .avail_in = (uInt)*bytes};
    int got = inflateInit(&z);
    if (got != Z_OK)
        return fail_memory(r->file);
    int64_t done = 0;
    while (got == Z_OK && done < r->room && !is_cancelled(r->file)) {
        const int64_t window = gc_min(WINDOW, r->room - done);
        z.next_out = r->other + done;
        z.avail_out = (uInt)window;
        got = inflate(&z, Z_NO_FLUSH);
        done += window - z.avail_out;
    }
    (void)inflateEnd(&z);
    if (r->file->status)
        return false;
    if (got != Z_STREAM_END)
        return fail_damaged(r->file, "a chunk cannot be decompressed");
    *bytes = done;
    return true;
}

/* Undoes shuffle: byte b of all values follows byte b - 1 of all values. */
static bool unshuffle_chunk(reading *r, int64_t bytes) {
    const int64_t size = r->set->type.size, count = bytes / size;
    for (int64_t at = 0; at < count; at += PIECE) {
        if (is_cancelled(r->file))
            return false;
        const int64_t end = gc_min(count, at + PIECE);
        for (int64_t b = 0; b < size; b++)
            for (int64_t i = at; i < end; i++)
                r->other[i * size + b] = r->buffer[b * count + i];
    }
    memcpy(r->other + count * size, r->buffer + count * size, (size_t)(bytes - count * size));
    return true;
}

static void swap_buffers(reading *r) {
    uint8_t *swapped = r->buffer;
    r->buffer = r->other;
    r->other = swapped;
}

/* Undoes the filters of a chunk of `bytes` bytes in r->buffer, the last one first. Bit i of `left_out`: the chunk is
 * without filter i. */
static bool undo_filters(reading *r, int64_t bytes, uint32_t left_out) {
    const gc_hdf5_set *set = r->set;
    for (int i = set->filter_count - 1; i >= 0; i--) {
        if (left_out >> i & 1)
            continue;
        if (set->filter[i] == FILTER_CHECKSUM) {
            bytes -= 4;
        } else {
            if (!(set->filter[i] == FILTER_DEFLATE ? inflate_chunk(r, &bytes) : unshuffle_chunk(r, bytes)))
                return false;
            swap_buffers(r);
        }
        if (bytes < 0)
            break;
    }
    return bytes == r->chunk_bytes || fail_damaged(r->file, "a chunk has another size than its data set states");
}

/* Copies the values of a chunk that are inside the data set. A row is along the last dimension. */
static bool place_chunk(const reading *r, const int64_t *start) {
    const gc_hdf5_space *space = &r->set->space;
    const int64_t *chunk = r->set->chunk;
    const int last = space->rank - 1;
    const int64_t length = gc_min(chunk[last], space->size[last] - start[last]), rows = r->chunk_values / chunk[last];
    for (int64_t row = 0; row < rows; row++) {
        int64_t rest = row, to = 0, stride = space->size[last];
        bool inside = true;
        for (int d = last - 1; d >= 0; d--) {
            const int64_t at = start[d] + rest % chunk[d];
            inside = inside && at < space->size[d];
            to += at * stride;
            rest /= chunk[d];
            stride *= space->size[d];
        }
        if (row % 1024 == 0 && is_cancelled(r->file))
            return false;
        for (int64_t i = 0; i < length && inside; i++)
            r->values[to + start[last] + i] = value_at(&r->set->type, r->buffer, row * chunk[last] + i);
    }
    return true;
}

/* Computes where in the data set the next chunk begins. Every index has the chunks in this order. */
static void find_start(const reading *r, int64_t *start) {
    int64_t rest = r->next;
    for (int d = r->set->space.rank - 1; d >= 0; d--) {
        const int64_t chunk = r->set->chunk[d], count = (r->set->space.size[d] + chunk - 1) / chunk;
        start[d] = rest % count * chunk;
        rest /= count;
    }
}

/* Reads the next chunk. `position`: where it is according to an index, in values or in chunks; empty: not stated. */
static bool read_chunk(reading *r, const gc_hdf5_place *p, gc_block *position, bool in_chunks) {
    gc_hdf5 *f = r->file;
    int64_t start[GC_HDF5_MAX_RANK];
    bool same = r->next < r->chunks;
    find_start(r, start);
    for (int d = 0; d < r->set->space.rank && position; d++)
        same = take_number(position, 8) == (uint64_t)(start[d] / (in_chunks ? r->set->chunk[d] : 1)) && same;
    if (!same || !is_defined(f, p->address))
        return fail_missing(f);
    if (p->bytes > (uint64_t)r->room)
        return fail_damaged(f, "a chunk is longer than its values");
    r->stored += p->bytes;
    if (r->stored > f->size)
        return fail_damaged(f, "the chunks are longer than the file");
    r->next++;
    return read_bytes(f, p->address, (int64_t)p->bytes, r->buffer) && undo_filters(r, (int64_t)p->bytes, p->left_out) &&
           place_chunk(r, start);
}

/* Reads the chunk of an entry of a tree of version 1. */
static bool read_child(void *context, gc_block *key, uint64_t address) {
    gc_hdf5_place p = {.address = address, .bytes = take_number(key, 4)};
    p.left_out = (uint32_t)take_number(key, 4);
    return read_chunk(context, &p, key, false);
}

/* Reads the chunk of a record of a tree of version 2. */
static bool read_record(void *context, gc_block *record) {
    reading *r = context;
    gc_hdf5_place p = {.bytes = (uint64_t)r->chunk_bytes};
    const int64_t own = record->left - 8 * (int64_t)r->set->space.rank; /* bytes of the place */
    const int bytes = (int)own - r->file->offset_bytes - 4;             /* of the size */
    p.address = take_offset(r->file, record);
    if (r->set->filter_count && bytes >= 1 && bytes <= 8) {
        p.bytes = take_number(record, bytes);
        p.left_out = (uint32_t)take_number(record, 4);
    }
    return read_chunk(r, &p, record, true);
}

/* Computes the number of a chunk in an array, which has room for all chunks of a data set that has grown to its limits.
 * The dimension without limit comes first. Returns false if the number is too large. */
static bool number_chunk(const gc_hdf5_set *set, const int64_t *start, uint64_t *number) {
    int endless = 0;
    if (set->space.rank < 1)
        return false;
    for (int d = 0; d < set->space.rank; d++)
        if (set->index == GC_HDF5_GROWING_ARRAY && set->space.limit[d] == UINT64_MAX)
            endless = d;
    *number = (uint64_t)(start[endless] / set->chunk[endless]);
    for (int d = 0; d < set->space.rank; d++) {
        const uint64_t chunk = (uint64_t)set->chunk[d];
        const uint64_t count = (set->space.limit[d] - 1) / chunk + 1;
        if (d != endless && (__builtin_mul_overflow(*number, count, number) ||
                             __builtin_add_overflow(*number, (uint64_t)start[d] / chunk, number)))
            return false;
    }
    return true;
}

/* Reads all chunks, one after the other, by an index in which a chunk is found by its number. */
static bool read_numbered(reading *r) {
    const gc_hdf5_set *set = r->set;
    gc_hdf5_array array;
    const bool is_array = set->index == GC_HDF5_FIXED_ARRAY || set->index == GC_HDF5_GROWING_ARRAY;
    bool ok = !is_array || open_array(r->file, set, &array);
    while (ok && r->next < r->chunks) {
        int64_t start[GC_HDF5_MAX_RANK];
        uint64_t number;
        gc_hdf5_place p = {.address = set->address, .bytes = (uint64_t)r->chunk_bytes};
        find_start(r, start);
        if (!number_chunk(set, start, &number) || number > r->file->size)
            return fail_damaged(r->file, "the index of the chunks is longer than the file");
        if (is_array)
            ok = find_element(r->file, set, &array, number, &p);
        else if (set->index == GC_HDF5_IMPLICIT)
            p.address += number * (uint64_t)r->chunk_bytes;
        else if (set->filter_count)
            p = (gc_hdf5_place){set->address, set->single_bytes, set->single_left_out};
        ok = ok && read_chunk(r, &p, NULL, false);
    }
    return ok;
}

static bool read_by_index(reading *r) {
    enum { TYPE_CHUNKS = 1, TYPE_PLACES = 10, TYPE_PLACES_AND_SIZES = 11 };
    const gc_hdf5_set *set = r->set;
    if (set->index == GC_HDF5_TREE_1)
        return walk_tree(r->file, set->address, TYPE_CHUNKS, 8 + 8 * (int64_t)set->chunk_rank, read_child, r);
    if (set->index == GC_HDF5_TREE_2)
        return walk_records(r->file, set->address, set->filter_count ? TYPE_PLACES_AND_SIZES : TYPE_PLACES, read_record,
                            r);
    return read_numbered(r);
}

/* Checks the sizes of the chunks, and computes the grid. */
static bool measure_chunks(reading *r) {
    gc_hdf5 *f = r->file;
    const gc_hdf5_set *set = r->set;
    const int rank = set->space.rank;
    const uint64_t limit = f->size <= INT64_MAX / MAX_RATIO ? f->size * MAX_RATIO : INT64_MAX;
    bool ok = rank >= 1 && set->chunk_rank == rank + 1 && set->chunk[rank] == set->type.size;
    int64_t all;
    r->chunks = r->chunk_values = 1;
    for (int d = 0; d < rank && ok; d++) {
        const int64_t chunk = set->chunk[d], count = chunk > 0 ? (set->space.size[d] - 1) / chunk + 1 : 0;
        ok = chunk > 0 && chunk <= INT32_MAX && !__builtin_mul_overflow(r->chunk_values, chunk, &r->chunk_values) &&
             !__builtin_mul_overflow(r->chunks, count, &r->chunks);
    }
    ok = ok && !__builtin_mul_overflow(r->chunk_values, set->type.size, &r->chunk_bytes) &&
         r->chunk_bytes <= INT32_MAX && !__builtin_mul_overflow(r->chunk_bytes, r->chunks, &all);
    if (!ok || (uint64_t)all > limit)
        return fail_damaged(f, "the sizes of the chunks do not fit the data set or the file");
    r->room = r->chunk_bytes + SPARE + r->chunk_bytes / 1000;
    return true;
}

static bool read_chunked(gc_hdf5 *f, const gc_hdf5_set *set,
                         float *values) { /* NOLINT(readability-non-const-parameter): written through `reading` */
    reading r = {.file = f, .set = set, .values = values};
    for (int i = 0; i < set->filter_count; i++)
        if (set->filter[i] < FILTER_DEFLATE || set->filter[i] > FILTER_CHECKSUM)
            return fail_unread(f, "has a filter of HDF5 that is not read");
    if (!measure_chunks(&r))
        return false;
    if (!is_defined(f, set->address))
        return fail_missing(f);
    r.buffer = gc_alloc(r.room, 1);
    r.other = gc_alloc(r.room, 1);
    bool ok = (r.buffer && r.other) || fail_memory(f);
    ok = ok && read_by_index(&r) && (r.next == r.chunks || fail_missing(f));
    free(r.buffer);
    free(r.other);
    return ok;
}

gpuconv_status gc_hdf5_read(gc_hdf5 *f, const gc_hdf5_set *set, float **values) {
    const uint64_t ratio = set->layout == GC_HDF5_CHUNKED ? MAX_RATIO : 1;
    int64_t bytes;
    *values = NULL;
    f->set = set->name;
    if (set->type.kind < GC_HDF5_FLOAT || set->type.kind > GC_HDF5_UNSIGNED || set->layout == GC_HDF5_UNREAD)
        fail_unread(f, set->layout == GC_HDF5_UNREAD
                           ? "has a layout of HDF5 that is not read"
                           : "has values that are neither integers nor floating-point numbers");
    else if (set->space.values < 1 || __builtin_mul_overflow(set->space.values, set->type.size, &bytes) ||
             (uint64_t)bytes / ratio > f->size)
        fail_damaged(f, "a data set has no values, or more than the file");
    else if (!(*values = gc_alloc(set->space.values, sizeof **values)))
        fail_memory(f);
    else if (!(set->layout == GC_HDF5_CHUNKED ? read_chunked : read_plain)(f, set, *values)) {
        free(*values);
        *values = NULL;
    }
    return f->status;
}
