/* Decompresses lists with zlib while they are read. A file without the magic number of gzip is text. */
#include "text_file.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/descriptor.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Ten million rows of 1.7 kB fit. Manifests are compressed to a tenth, and hardly to a fortieth; deflate can reach
 * 1032. */
#define MOST_BYTES (INT64_C(1) << 34)
enum { PORTION = 1 << 16, FREE_BYTES = 1 << 26, MOST_RATIO = 100, GZIP = 16 };

struct gc_text_file {
    gc_lines lines; /* first: `read` gets it */
    z_stream inflater;
    bool inflating, compressed, member_ended, file_ended;
    int64_t bytes; /* of the file so far */
    unsigned char in[PORTION];
};

/* Reads a portion of the file behind the bytes that are left of the last one. */
static gpuconv_status read_portion(gc_text_file *f, gpuconv_error *error) {
    int64_t got = 0;
    memmove(f->in, f->inflater.next_in, f->inflater.avail_in);
    f->inflater.next_in = f->in;
    const int err =
        gc_read_some(f->lines.fd, f->in + f->inflater.avail_in, PORTION - f->inflater.avail_in, &got, gc_cancel_flag());
    f->inflater.avail_in += (unsigned)got;
    f->bytes += got;
    f->file_ended = !err && got == 0;
    return !err               ? GPUCONV_OK
           : err == ECANCELED ? gc_fail_cancelled(error, f->lines.name)
                              : gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", f->lines.name, strerror(err));
}

/* Decides whether a member of gzip begins here. What follows the last member is ignored, as gzip does. */
static bool begins_member(const gc_text_file *f) {
    return f->inflater.avail_in >= 2 && f->inflater.next_in[0] == 0x1f && f->inflater.next_in[1] == 0x8b;
}

/* Decompresses up to `bytes` bytes; *got 0: the text has ended. */
static gpuconv_status inflate_some(gc_text_file *f, char *to, int64_t bytes, int64_t *got, gpuconv_error *error) {
    z_stream *z = &f->inflater;
    z->next_out = (unsigned char *)to;
    z->avail_out = (unsigned)bytes;
    while (z->avail_out == (unsigned)bytes) {
        if (z->avail_in < 2 && !f->file_ended) {
            gpuconv_status status = read_portion(f, error);
            if (status)
                return status;
            continue;
        }
        if (f->member_ended && !begins_member(f))
            break;
        if (f->member_ended)
            (void)inflateReset(z);
        const int result = inflate(z, Z_NO_FLUSH);
        f->member_ended = result == Z_STREAM_END;
        if (result == Z_MEM_ERROR)
            return gc_fail_memory(error, f->lines.name);
        if ((result != Z_OK && result != Z_STREAM_END) ||
            (f->file_ended && z->avail_in == 0 && !f->member_ended && z->avail_out > 0))
            return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: its compression is damaged or cut off", f->lines.name);
    }
    *got = bytes - z->avail_out;
    if (f->lines.total + *got > FREE_BYTES + MOST_RATIO * f->bytes)
        return gc_fail(
            error, GPUCONV_ERROR_FORMAT,
            "%s: its text is more than %d times as long as the file, so it is no list; decompress it if it is",
            f->lines.name, MOST_RATIO);
    return GPUCONV_OK;
}

static gpuconv_status read_text(gc_lines *lines, char *to, int64_t bytes, int64_t *got, gpuconv_error *error) {
    gc_text_file *f = (gc_text_file *)(void *)lines;
    while (f->inflater.avail_in < 2 && !f->file_ended && !f->compressed) {
        gpuconv_status status = read_portion(f, error);
        if (status)
            return status;
    }
    if (f->bytes > 0 && lines->total == 0)
        f->compressed |= begins_member(f);
    if (f->compressed)
        return inflate_some(f, to, bytes, got, error);
    *got = gc_min(bytes, f->inflater.avail_in);
    memcpy(to, f->inflater.next_in, (size_t)*got);
    f->inflater.next_in += *got;
    f->inflater.avail_in -= (unsigned)*got;
    return GPUCONV_OK;
}

gpuconv_status gc_text_file_open(const char *path, gc_text_file **file, gpuconv_error *error) {
    gc_text_file *f = calloc(1, sizeof *f);
    *file = NULL;
    if (!f)
        return gc_fail_memory(error, path);
    gpuconv_status status = gc_lines_open(&f->lines, path, GC_TEXT_LINE, MOST_BYTES, error);
    if (!status) {
        f->lines.read = read_text;
        f->inflater.next_in = f->in;
        f->inflating = inflateInit2(&f->inflater, MAX_WBITS + GZIP) == Z_OK;
        status = f->inflating ? GPUCONV_OK : gc_fail_memory(error, path);
    }
    if (status) {
        gc_text_file_close(f);
        return status;
    }
    *file = f;
    return GPUCONV_OK;
}

gc_lines *gc_text_file_lines(gc_text_file *f) {
    return &f->lines;
}

void gc_text_file_close(gc_text_file *f) {
    if (!f)
        return;
    if (f->inflating)
        (void)inflateEnd(&f->inflater);
    gc_lines_close(&f->lines);
    free(f);
}
