/* Reads HDF5 files as netCDF-4 and h5py write them: data sets of numbers in the root group, and texts that
 * describe the file or a data set. Every number of the file that is an address, a size or a count is checked against
 * the file before it is used, and the work and the memory are bounded by the size of the file, so that a file of any
 * content is read or refused. Everything can be cancelled by the thread's flag (core/cancel.h).
 *
 * The sections that comments name are those of the HDF5 File Format Specification, version 3.0. */
#ifndef GC_IR_HDF5_H
#define GC_IR_HDF5_H

#include "gpuconv.h"

#include <stdbool.h>

typedef struct gc_hdf5 gc_hdf5;

enum { GC_HDF5_MAX_RANK = 4, GC_HDF5_MAX_FILTERS = 8 };

/* A text attribute that is looked for. */
typedef struct gc_hdf5_text {
    const char *name;
    bool found;
    char value[128]; /* cut off if it is longer; "" if the attribute has another type than text */
} gc_hdf5_text;

typedef enum gc_hdf5_kind {
    GC_HDF5_OTHER,
    GC_HDF5_FLOAT,
    GC_HDF5_SIGNED,
    GC_HDF5_UNSIGNED,
    GC_HDF5_TEXT,
    GC_HDF5_TEXT_IN_HEAP
} gc_hdf5_kind;

typedef struct gc_hdf5_type {
    gc_hdf5_kind kind;
    int64_t size; /* bytes of one value */
    bool is_big_endian;
} gc_hdf5_type;

typedef struct gc_hdf5_space {
    int rank;
    int64_t size[GC_HDF5_MAX_RANK], values; /* the dimensions and their product */
    uint64_t limit[GC_HDF5_MAX_RANK];       /* to which the dimensions may grow; UINT64_MAX: without limit */
} gc_hdf5_space;

typedef enum gc_hdf5_layout { GC_HDF5_UNREAD, GC_HDF5_PLAIN, GC_HDF5_CHUNKED } gc_hdf5_layout;

/* How the places of chunks are stored (IV.A.2.i, VII). */
typedef enum gc_hdf5_index {
    GC_HDF5_TREE_1,
    GC_HDF5_SINGLE,
    GC_HDF5_IMPLICIT,
    GC_HDF5_FIXED_ARRAY,
    GC_HDF5_GROWING_ARRAY, /* "extensible array" */
    GC_HDF5_TREE_2
} gc_hdf5_index;

/* A data set, as its object header states it. */
typedef struct gc_hdf5_set {
    const char *name;
    gc_hdf5_space space;
    gc_hdf5_type type;
    gc_hdf5_layout layout;
    uint64_t address;                    /* of the values, or of the index of the chunks */
    int64_t bytes;                       /* of GC_HDF5_PLAIN */
    int64_t chunk[GC_HDF5_MAX_RANK + 1]; /* of GC_HDF5_CHUNKED: its dimensions, and the bytes of a value */
    int chunk_rank, filter_count;        /* dimensions of a chunk and one */
    gc_hdf5_index index;
    uint64_t single_bytes; /* of the chunk of GC_HDF5_SINGLE in the file, if it has filters */
    uint32_t single_left_out;
    uint16_t filter[GC_HDF5_MAX_FILTERS]; /* in the order of writing */
} gc_hdf5_set;

/* Opens a regular file. *error (may be NULL) gets the messages of all calls on the file. @return FILE, FORMAT, MEMORY
 */
gpuconv_status gc_hdf5_open(const char *path, gc_hdf5 **file, gpuconv_error *error);
void gc_hdf5_close(gc_hdf5 *file);

/* Finds texts that describe the file. @return FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gc_hdf5_find_texts(gc_hdf5 *file, gc_hdf5_text *texts, int count);

/* Finds a data set of the root group and texts that describe it; *found is false if there is none of this name.
 * @return FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gc_hdf5_find(gc_hdf5 *file, const char *name, gc_hdf5_text *texts, int count, gc_hdf5_set *set,
                            bool *found);

/* Reads set->space.values numbers, rounded to float, into new memory. @return FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gc_hdf5_read(gc_hdf5 *file, const gc_hdf5_set *set, float **values);

#endif
