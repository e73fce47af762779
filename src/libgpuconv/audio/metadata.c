/* What a file says beside its samples, carried from one to the next. */
#include "file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <sndfile.h>
#include <stdlib.h>

/* Copies a chunk that the library hands over in one piece; what the new format cannot hold is left behind. */
static gpuconv_status copy_piece(SNDFILE *from, SNDFILE *to, int get, int set, int64_t bytes, gpuconv_error *error) {
    void *piece = gc_calloc(1, bytes);
    if (!piece)
        return gc_fail_memory(error, "what the file says beside its samples");
    if (sf_command(from, get, piece, (int)bytes) == SF_TRUE)
        (void)sf_command(to, set, piece, (int)bytes);
    free(piece);
    return GPUCONV_OK;
}

gpuconv_status gc_metadata_copy(const gc_reader *reader, gc_writer *writer, gpuconv_error *error) {
    SNDFILE *from = gc_reader_library(reader), *to = gc_writer_library(writer);
    for (int kind = SF_STR_FIRST; kind <= SF_STR_LAST; kind++) {
        const char *text = sf_get_string(from, kind);
        if (text && kind != SF_STR_SOFTWARE) /* the library would put its own name behind it, again and again */
            (void)sf_set_string(to, kind, text);
    }
    uint32_t cues = 0;
    gpuconv_status status = GPUCONV_OK;
    if (sf_command(from, SFC_GET_CUE_COUNT, &cues, sizeof cues) == SF_TRUE && cues > 0 && cues <= 65536)
        status = copy_piece(from, to, SFC_GET_CUE, SFC_SET_CUE,
                            (int64_t)sizeof(uint32_t) + (int64_t)cues * (int64_t)sizeof(SF_CUE_POINT), error);
    if (!status)
        status = copy_piece(from, to, SFC_GET_INSTRUMENT, SFC_SET_INSTRUMENT, sizeof(SF_INSTRUMENT), error);
    if (!status)
        status = copy_piece(from, to, SFC_GET_BROADCAST_INFO, SFC_SET_BROADCAST_INFO, sizeof(SF_BROADCAST_INFO) + 15872,
                            error);
    if (!status)
        status = copy_piece(from, to, SFC_GET_CART_INFO, SFC_SET_CART_INFO, sizeof(SF_CART_INFO) + 15872, error);
    return status;
}
