/* What the files of the HDF5 reader share: the open file, and blocks of its metadata. A function that returns bool
 * returns false after a failure, which is then in file->status and the file's message. */
#ifndef GC_IR_HDF5_BLOCK_H
#define GC_IR_HDF5_BLOCK_H

#include "hdf5.h"

struct gc_hdf5 {
    const char *path, *set;             /* the file, and the data set that is read; NULL: none yet */
    int fd, offset_bytes, length_bytes; /* sizes of addresses and lengths in the file */
    uint64_t base, size, root; /* where addresses begin; bytes from there; address of the root group's header */
    int64_t budget;            /* bytes of metadata that may still be read: the end of every loop in a file */
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

/* Fails with FORMAT: values of the data set are not in the file. HDF5 files may leave out those that were never
 * written.
 */
bool gc_hdf5_missing(gc_hdf5 *file);

/* Fails with FORMAT: the file contradicts itself, or is cut off. */
bool gc_hdf5_damaged(gc_hdf5 *file, const char *what);

/* Fails with FORMAT: the file uses a part of HDF5 that is not read. */
bool gc_hdf5_unread(gc_hdf5 *file, const char *what);
bool gc_hdf5_fail_memory(gc_hdf5 *file);

/* Reads bytes that are not metadata: those of the values. Fails if the file has less. */
bool gc_hdf5_read_bytes(gc_hdf5 *file, uint64_t address, int64_t bytes, void *to);

/* Reads a block of metadata. The caller frees what is returned; NULL after a failure. */
uint8_t *gc_hdf5_fetch(gc_hdf5 *file, uint64_t address, int64_t bytes, gc_block *block);

/* Reads a block that begins with these four letters, which are skipped. */
uint8_t *gc_hdf5_fetch_signed(gc_hdf5 *file, uint64_t address, int64_t bytes, const char *letters, gc_block *block);

/* Take a number of 0 to 8 bytes, an address, a length, and bytes as a block of their own. */
uint64_t gc_block_number(gc_block *block, int bytes);
uint64_t gc_block_offset(const gc_hdf5 *file, gc_block *block);
uint64_t gc_block_length(const gc_hdf5 *file, gc_block *block);
gc_block gc_block_take(gc_block *block, int64_t bytes);

/* Returns whether an address is defined: not all ones. */
bool gc_hdf5_is_defined(const gc_hdf5 *file, uint64_t address);

static inline bool gc_is_power_of_two(uint64_t n) {
    return n && !(n & (n - 1));
}

/* Takes an entry of a leaf of a tree of version 1. */
typedef bool gc_hdf5_take_child(void *context, gc_block *key, uint64_t child);

/* Takes the entries of a tree of version 1 (III.A.1) in their order. `type`: 0 for groups, 1 for chunks. */
bool gc_hdf5_walk(gc_hdf5 *file, uint64_t address, int type, int64_t key_bytes, gc_hdf5_take_child *take,
                  void *context);

/* Takes a record of a tree of version 2. */
typedef bool gc_hdf5_take_record(void *context, gc_block *record);

/* Takes the records of a tree of version 2 (III.A.2) of a type in their order. */
bool gc_hdf5_walk_records(gc_hdf5 *file, uint64_t address, int type, gc_hdf5_take_record *take, void *context);

#endif
