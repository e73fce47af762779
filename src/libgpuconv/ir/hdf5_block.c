/* Blocks of metadata of an HDF5 file, the numbers in them, and the failures of the reader. */
#include "hdf5_block.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

bool gc_hdf5_is_named(const gc_block *b, const char *name) {
    const int64_t length = (int64_t)strlen(name);
    return b->left >= length && memcmp(b->at, name, (size_t)length) == 0 && (b->left == length || !b->at[length]);
}
