/* Arrays of the places of chunks in an HDF5 file: the fixed array (VII.C) and the extensible array (VII.D), in which
 * blocks of elements become longer the farther they are from the beginning. Long blocks have pages, each with a
 * checksum behind it, and a bit for each page that was written. */
#include "hdf5_block.h"

#include "libgpuconv/core/memory.h"

#include <stdlib.h>

enum { PREFIX = 6, CHECKSUM = 4 }; /* bytes: letters, version and type before a block; behind a block or a page */

static int log_of(uint64_t n) {
    return 63 - __builtin_clzll(n);
}

bool gc_hdf5_array_open(gc_hdf5 *f, const gc_hdf5_set *set, gc_hdf5_array *a) {
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

bool gc_hdf5_array_find(gc_hdf5 *f, const gc_hdf5_set *set, gc_hdf5_array *a, uint64_t number, gc_hdf5_place *p) {
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
