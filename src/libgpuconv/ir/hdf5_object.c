/* Object headers of an HDF5 file (IV.A.1), and their messages: what a data set is, and the links of a
 * group. */
#include "hdf5_block.h"

#include "libgpuconv/core/memory.h"

#include <stdlib.h>
#include <string.h>

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

bool gc_hdf5_take_link(gc_hdf5 *f, gc_block *b, gc_hdf5_object *o) {
    const int version = (int)gc_block_number(b, 1), flags = (int)gc_block_number(b, 1);
    const int kind = flags & 8 ? (int)gc_block_number(b, 1) : 0;
    (void)gc_block_take(b, (flags & 4 ? 8 : 0) + (flags & 16 ? 1 : 0)); /* order of creation, encoding */
    const uint64_t length = gc_block_number(b, 1 << (flags & 3));
    const gc_block name = gc_block_take(b, length <= INT64_MAX ? (int64_t)length : -1);
    if (version != 1 || name.cut)
        return gc_hdf5_damaged(f, "a link of the root group");
    if (!o->link || !gc_hdf5_is_named(&name, o->link))
        return true;
    o->target = gc_block_offset(f, b);
    return kind == 0 || gc_hdf5_unread(f, GC_HDF5_LINK);
}

/* Copies a text, which may end with zeros, and ends it with '\0'. */
static void copy_text(const gc_block *from, char *to, int64_t size) {
    const int64_t bytes = gc_min(from->left, size - 1);
    memcpy(to, from->at, (size_t)bytes);
    to[bytes] = '\0';
}

bool gc_hdf5_take_attribute(gc_hdf5 *f, gc_block *b, gc_hdf5_object *o) {
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
        if (gc_hdf5_is_named(&name, o->texts[i].name))
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
        return length == 0 || gc_hdf5_text_of_heap(f, heap, number, text->value, sizeof text->value);
    }
    return !b->cut || gc_hdf5_damaged(f, "an attribute");
}

bool gc_hdf5_text_of_heap(gc_hdf5 *f, uint64_t address, uint64_t number, char *to, int64_t size) {
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
        return gc_hdf5_take_link(f, b, o);
    case MESSAGE_ATTRIBUTE:
        return gc_hdf5_take_attribute(f, b, o);
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

bool gc_hdf5_object_read(gc_hdf5 *f, uint64_t address, gc_hdf5_object *o) {
    header h = {0};
    o->target = o->link_heap = o->link_index = o->text_heap = o->text_index = o->set.address = UINT64_MAX;
    o->symbol_tree = o->symbol_heap = UINT64_MAX;
    o->set.layout = GC_HDF5_UNREAD;
    if (!take_first(f, address, &h, o))
        return false;
    for (int i = 0; i < h.pieces; i++)
        if (!take_further(f, &h.piece[i], &h, o))
            return false;
    if (o->link && gc_hdf5_is_defined(f, o->symbol_tree) && !gc_hdf5_find_symbol(f, o))
        return false;
    if (o->link && !gc_hdf5_is_defined(f, o->target) && gc_hdf5_is_defined(f, o->link_heap) &&
        !gc_hdf5_take_all(f, o->link_heap, o->link_index, GC_HDF5_LINKS, gc_hdf5_take_link, o))
        return false;
    return o->text_count == 0 || !gc_hdf5_is_defined(f, o->text_heap) ||
           gc_hdf5_take_all(f, o->text_heap, o->text_index, GC_HDF5_ATTRIBUTES, gc_hdf5_take_attribute, o);
}
