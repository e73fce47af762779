/* The HDF5 file: opening, its superblock, and the search of the root group. */
#include "hdf5.h"

#include "hdf5_block.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/input_file.h"
#include "libgpuconv/core/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    return gc_hdf5_object_read(f, f->root, &root) ? GPUCONV_OK : f->status;
}

gpuconv_status gc_hdf5_find(gc_hdf5 *f, const char *name, gc_hdf5_text *texts, int count, gc_hdf5_set *set,
                            bool *found) {
    gc_hdf5_object root = {.link = name};
    *found = false;
    f->set = name;
    if (!gc_hdf5_object_read(f, f->root, &root))
        return f->status;
    if (!gc_hdf5_is_defined(f, root.target))
        return GPUCONV_OK;
    gc_hdf5_object object = {.texts = texts, .text_count = count, .set.name = name};
    if (!gc_hdf5_object_read(f, root.target, &object))
        return f->status;
    *set = object.set;
    *found = true;
    return GPUCONV_OK;
}
