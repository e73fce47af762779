/* The values of a data set of an HDF5 file: in one piece, or in chunks.
 *
 * The place of a chunk is in a tree, or in an array: the fixed array (VII.C), or the extensible array (VII.D), in which
 * blocks of elements become longer the farther they are from the beginning. Long blocks have pages, each with a
 * checksum behind it, and a bit for each page that was written. */
#include "hdf5_block.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* An array of the places of chunks (VII.C, VII.D): its header, and the run of elements that was used last. */
typedef struct gc_hdf5_array {
    bool has_filters;
    int element_bytes, page_bits; /* pages have 2^page_bits elements */
    uint64_t block, elements;     /* elements: of a fixed array */
    int max_bits;                 /* of an extensible array */
    uint64_t in_index, min_elements, min_pointers;
    uint64_t first, count, address; /* of the run: its first element, their number, where they are */
} gc_hdf5_array;

/* Where a chunk is in the file. Bit i of left_out: the chunk is without filter i. */
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
    uint8_t *own = gc_hdf5_fetch_signed(
        f, set->address, is_fixed ? 8 + f->length_bytes + f->offset_bytes : 12 + 6 * f->length_bytes + f->offset_bytes,
        is_fixed ? "FAHD" : "EAHD", &b);
    if (!own)
        return false;
    (void)gc_block_take(&b, 1);
    *a = (gc_hdf5_array){.has_filters = gc_block_number(&b, 1), .min_elements = 1, .min_pointers = 1};
    a->element_bytes = (int)gc_block_number(&b, 1);
    if (!is_fixed) {
        a->max_bits = (int)gc_block_number(&b, 1);
        a->in_index = gc_block_number(&b, 1);
        a->min_elements = gc_block_number(&b, 1);
        a->min_pointers = gc_block_number(&b, 1);
    }
    a->page_bits = (int)gc_block_number(&b, 1);
    a->elements = gc_block_length(f, &b);
    (void)gc_block_take(&b, is_fixed ? 0 : 5 * f->length_bytes);
    a->block = gc_block_offset(f, &b);
    free(own);
    const int size_bytes = a->element_bytes - f->offset_bytes - 4;
    if (!gc_hdf5_is_defined(f, a->block) || a->has_filters != (set->filter_count > 0) || a->page_bits > 32 ||
        (a->has_filters ? size_bytes < 1 || size_bytes > 8 : size_bytes != -4) || (is_fixed && a->elements > f->size) ||
        !gc_is_power_of_two(a->min_elements) || !gc_is_power_of_two(a->min_pointers))
        return gc_hdf5_damaged(f, "the sizes of an array of chunks");
    return true;
}

/* Checks that a block begins with these four letters. */
static bool check_block(gc_hdf5 *f, uint64_t address, const char *letters) {
    gc_block b;
    uint8_t *own = gc_hdf5_fetch_signed(f, address, 4, letters, &b);
    free(own);
    return own;
}

/* Reads the address of a block that begins with these four letters. */
static bool read_address(gc_hdf5 *f, uint64_t at, const char *letters, uint64_t *address) {
    gc_block b;
    uint8_t *own = gc_hdf5_fetch(f, at, f->offset_bytes, &b);
    if (!own)
        return false;
    *address = gc_block_offset(f, &b);
    free(own);
    return gc_hdf5_is_defined(f, *address) ? check_block(f, *address, letters) : gc_hdf5_missing(f);
}

/* Reduces the run, which is a whole block, to the page of an element. The bits of the pages begin with bit `first_bit`
 * of the byte at the address `bits`. */
static bool find_page(gc_hdf5 *f, gc_hdf5_array *a, uint64_t number, uint64_t bits, uint64_t first_bit) {
    const uint64_t page = UINT64_C(1) << a->page_bits, i = (number - a->first) / page, bit = first_bit + i;
    gc_block b;
    uint8_t *own = gc_hdf5_fetch(f, bits + bit / 8, 1, &b);
    const bool is_written = own && (*own << bit % 8 & 128);
    free(own);
    a->first += i * page;
    a->count = gc_min(page, a->count - i * page);
    a->address += CHECKSUM + i * (page * (uint64_t)a->element_bytes + CHECKSUM);
    return is_written || (own && gc_hdf5_missing(f));
}

/* Finds the run of an element of a fixed array. */
static bool find_fixed(gc_hdf5 *f, gc_hdf5_array *a, uint64_t number) {
    const uint64_t page = UINT64_C(1) << a->page_bits, bits = a->block + PREFIX + (uint64_t)f->offset_bytes;
    const uint64_t pages = a->elements > page ? (a->elements + page - 1) / page : 0;
    a->first = 0;
    a->count = a->elements;
    a->address = bits + (pages + 7) / 8;
    if (number >= a->elements)
        return gc_hdf5_damaged(f, "an array of chunks is too short");
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
        return gc_hdf5_damaged(f, "a block of an array of chunks is too long");
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
    uint8_t *own =
        gc_hdf5_fetch(f, a->address + (number - a->first) * (uint64_t)a->element_bytes, a->element_bytes, &b);
    if (!own)
        return false;
    p->address = gc_block_offset(f, &b);
    if (a->has_filters) {
        p->bytes = gc_block_number(&b, a->element_bytes - f->offset_bytes - 4);
        p->left_out = (uint32_t)gc_block_number(&b, 4);
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
    if (set->bytes < set->space.values * size || !gc_hdf5_is_defined(f, set->address))
        return gc_hdf5_missing(f);
    uint8_t *raw = gc_alloc(PIECE, size);
    bool ok = raw || gc_hdf5_fail_memory(f);
    for (int64_t at = 0; at < set->space.values && ok; at += PIECE) {
        const int64_t count = gc_min(PIECE, set->space.values - at);
        ok = gc_hdf5_read_bytes(f, set->address + (uint64_t)(at * size), count * size, raw);
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
        return gc_hdf5_fail_memory(r->file);
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
        return gc_hdf5_damaged(r->file, "a chunk cannot be decompressed");
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
    return bytes == r->chunk_bytes || gc_hdf5_damaged(r->file, "a chunk has another size than its data set states");
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
        same = gc_block_number(position, 8) == (uint64_t)(start[d] / (in_chunks ? r->set->chunk[d] : 1)) && same;
    if (!same || !gc_hdf5_is_defined(f, p->address))
        return gc_hdf5_missing(f);
    if (p->bytes > (uint64_t)r->room)
        return gc_hdf5_damaged(f, "a chunk is longer than its values");
    r->stored += p->bytes;
    if (r->stored > f->size)
        return gc_hdf5_damaged(f, "the chunks are longer than the file");
    r->next++;
    return gc_hdf5_read_bytes(f, p->address, (int64_t)p->bytes, r->buffer) &&
           undo_filters(r, (int64_t)p->bytes, p->left_out) && place_chunk(r, start);
}

/* Reads the chunk of an entry of a tree of version 1. */
static bool read_child(void *context, gc_block *key, uint64_t address) {
    gc_hdf5_place p = {.address = address, .bytes = gc_block_number(key, 4)};
    p.left_out = (uint32_t)gc_block_number(key, 4);
    return read_chunk(context, &p, key, false);
}

/* Reads the chunk of a record of a tree of version 2. */
static bool read_record(void *context, gc_block *record) {
    reading *r = context;
    gc_hdf5_place p = {.bytes = (uint64_t)r->chunk_bytes};
    const int64_t own = record->left - 8 * (int64_t)r->set->space.rank; /* bytes of the place */
    const int bytes = (int)own - r->file->offset_bytes - 4;             /* of the size */
    p.address = gc_block_offset(r->file, record);
    if (r->set->filter_count && bytes >= 1 && bytes <= 8) {
        p.bytes = gc_block_number(record, bytes);
        p.left_out = (uint32_t)gc_block_number(record, 4);
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
            return gc_hdf5_damaged(r->file, "the index of the chunks is longer than the file");
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
        return gc_hdf5_walk(r->file, set->address, TYPE_CHUNKS, 8 + 8 * (int64_t)set->chunk_rank, read_child, r);
    if (set->index == GC_HDF5_TREE_2)
        return gc_hdf5_walk_records(r->file, set->address, set->filter_count ? TYPE_PLACES_AND_SIZES : TYPE_PLACES,
                                    read_record, r);
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
        return gc_hdf5_damaged(f, "the sizes of the chunks do not fit the data set or the file");
    r->room = r->chunk_bytes + SPARE + r->chunk_bytes / 1000;
    return true;
}

static bool read_chunked(gc_hdf5 *f, const gc_hdf5_set *set,
                         float *values) { /* NOLINT(readability-non-const-parameter): written through `reading` */
    reading r = {.file = f, .set = set, .values = values};
    for (int i = 0; i < set->filter_count; i++)
        if (set->filter[i] < FILTER_DEFLATE || set->filter[i] > FILTER_CHECKSUM)
            return gc_hdf5_unread(f, "has a filter of HDF5 that is not read");
    if (!measure_chunks(&r))
        return false;
    if (!gc_hdf5_is_defined(f, set->address))
        return gc_hdf5_missing(f);
    r.buffer = gc_alloc(r.room, 1);
    r.other = gc_alloc(r.room, 1);
    bool ok = (r.buffer && r.other) || gc_hdf5_fail_memory(f);
    ok = ok && read_by_index(&r) && (r.next == r.chunks || gc_hdf5_missing(f));
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
        gc_hdf5_unread(f, set->layout == GC_HDF5_UNREAD
                              ? "has a layout of HDF5 that is not read"
                              : "has values that are neither integers nor floating-point numbers");
    else if (set->space.values < 1 || __builtin_mul_overflow(set->space.values, set->type.size, &bytes) ||
             (uint64_t)bytes / ratio > f->size)
        gc_hdf5_damaged(f, "a data set has no values, or more than the file");
    else if (!(*values = gc_alloc(set->space.values, sizeof **values)))
        gc_hdf5_fail_memory(f);
    else if (!(set->layout == GC_HDF5_CHUNKED ? read_chunked : read_plain)(f, set, *values)) {
        free(*values);
        *values = NULL;
    }
    return f->status;
}
