/* Trees of version 1 of an HDF5 file (III.A.1), and the symbol tables of groups, which are such trees. */
#include "hdf5_block.h"

#include <stdlib.h>

enum { MAX_LEVEL = 16 /* of a tree */ };

/* A tree that is read. */
typedef struct tree {
    gc_hdf5 *file;
    int type;
    int64_t key_bytes;
    gc_hdf5_take_child *take;
    void *context;
} tree;

/* Takes the entries of a node and of all nodes below it. `level`: of the node; -1: any. */
static bool walk_node(const tree *t, uint64_t address, int level) {
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
    return walk_node(&(tree){f, type, key_bytes, take, context}, address, -1);
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
        if (!name.cut && gc_hdf5_is_named(&name, s->object->link)) {
            s->object->target = object;
            ok = gc_hdf5_is_defined(f, object) || gc_hdf5_unread(f, GC_HDF5_LINK);
        }
    }
    free(own);
    return ok;
}

bool gc_hdf5_find_symbol(gc_hdf5 *f, gc_hdf5_object *o) {
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
