/* Copying metadata from one file to another. */
#include "file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <sndfile.h>
#include <stdlib.h>

/* Copies one metadata structure of `bytes` bytes with the sf_command pair `get` and `set`. A structure that the input
 * does not have or the output format does not support is skipped. */
static gpuconv_status copy_structure(SNDFILE *from, SNDFILE *to, int get, int set, int64_t bytes,
                                     gpuconv_error *error) {
    void *data = gc_calloc(1, bytes);
    if (!data)
        return gc_fail_memory(error, "the metadata of the file");
    if (sf_command(from, get, data, (int)bytes) == SF_TRUE)
        (void)sf_command(to, set, data, (int)bytes);
    free(data);
    return GPUCONV_OK;
}

gpuconv_status gc_metadata_copy(const gc_reader *reader, gc_writer *writer, gpuconv_error *error) {
    SNDFILE *from = gc_reader_sndfile(reader), *to = gc_writer_sndfile(writer);
    for (int kind = SF_STR_FIRST; kind <= SF_STR_LAST; kind++) {
        const char *text = sf_get_string(from, kind);
        if (text && kind != SF_STR_SOFTWARE) /* libsndfile appends its own name on every copy */
            (void)sf_set_string(to, kind, text);
    }
    uint32_t cues = 0;
    gpuconv_status status = GPUCONV_OK;
    if (sf_command(from, SFC_GET_CUE_COUNT, &cues, sizeof cues) == SF_TRUE && cues > 0 && cues <= 65536)
        status = copy_structure(from, to, SFC_GET_CUE, SFC_SET_CUE,
                                (int64_t)sizeof(uint32_t) + (int64_t)cues * (int64_t)sizeof(SF_CUE_POINT), error);
    if (!status)
        status = copy_structure(from, to, SFC_GET_INSTRUMENT, SFC_SET_INSTRUMENT, sizeof(SF_INSTRUMENT), error);
    if (!status)
        status = copy_structure(from, to, SFC_GET_BROADCAST_INFO, SFC_SET_BROADCAST_INFO,
                                sizeof(SF_BROADCAST_INFO) + 15872, error);
    if (!status)
        status = copy_structure(from, to, SFC_GET_CART_INFO, SFC_SET_CART_INFO, sizeof(SF_CART_INFO) + 15872, error);
    return status;
}
