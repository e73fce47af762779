/* Impulse responses from files. */
#include "../dsp/ir.h"
#include "../core/error.h"
#include "../core/memory.h"
#include "file.h"

#include <stdlib.h>
#include <string.h>

/* Reads all of a file into planar floats, block by block: its length may not be known beforehand. */
static gpuconv_status read_planes(gc_reader *reader, float ***planes, int64_t *frames, gpuconv_error *error) {
    int channels = gc_reader_info(reader)->channels;
    int64_t length = gc_max(1, 65536 / channels), promised = gc_reader_info(reader)->frames;
    int64_t room = gc_max(length, gc_min(4 * length, promised)); /* a header may promise anything: grow as it comes */
    float *block = gc_calloc(length * channels, sizeof *block);
    float **p = gc_calloc(channels, sizeof *p);
    gpuconv_status status = block && p ? GPUCONV_OK : gc_fail_memory(error, "the response");
    for (int c = 0; !status && c < channels; c++)
        if (!(p[c] = gc_calloc(room, sizeof **p)))
            status = gc_fail_memory(error, "the response");
    *frames = 0;
    for (int64_t got = length; !status && got == length; *frames += got) {
        status = gc_reader_read_floats(reader, block, length, &got, error);
        if (!status && *frames + got > room) {
            room *= 2;
            for (int c = 0; !status && c < channels; c++) {
                float *larger = gc_calloc(room, sizeof *larger);
                if (larger)
                    memcpy(larger, p[c], (size_t)*frames * sizeof *larger);
                else
                    status = gc_fail_memory(error, "the response");
                if (larger) {
                    free(p[c]);
                    p[c] = larger;
                }
            }
        }
        for (int c = 0; !status && c < channels; c++)
            for (int64_t i = 0; i < got; i++)
                p[c][*frames + i] = block[i * channels + c];
    }
    free(block);
    *planes = p;
    return status;
}

gpuconv_status gpuconv_ir_load(const char *path, gpuconv_ir **ir, gpuconv_error *error) {
    *ir = NULL;
    gc_reader *reader;
    gpuconv_status status = gc_reader_new(path, &reader, error);
    if (status)
        return status;
    int channels = gc_reader_info(reader)->channels;
    float **planes = NULL;
    int64_t frames = 0;
    status = read_planes(reader, &planes, &frames, error);
    gpuconv_error inner = {0};
    if (!status) {
        status =
            gpuconv_ir_new((const float *const *)planes, channels, frames, gc_reader_info(reader)->rate, ir, &inner);
        if (status)
            gc_fail(error, status, "%s: %.400s", path, inner.message);
    }
    for (int c = 0; planes && c < channels; c++)
        free(planes[c]);
    free(planes);
    gc_reader_free(reader);
    return status;
}
