/* Reading and writing of impulse responses as audio files. */
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/simd.h"
#include "object.h"

#include <stdlib.h>
#include <string.h>

/* Reallocates each plane to `capacity` frames. Returns false without memory; the planes stay valid. */
static bool grow_planes(float **planes, int channels, int64_t frames, int64_t capacity) {
    for (int c = 0; c < channels; c++) {
        float *larger = gc_calloc(capacity, sizeof *larger);
        if (!larger)
            return false;
        memcpy(larger, planes[c], (size_t)frames * sizeof *larger);
        free(planes[c]);
        planes[c] = larger;
    }
    return true;
}

/* Reads a file into planar floats, piece by piece, because the length in a header may be wrong or missing. *planes may
 * be allocated on failure too. Returns FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status read_planes(gc_reader *reader, float ***planes, int64_t *frames, gpuconv_error *error) {
    const int channels = gc_reader_info(reader)->channels;
    const int64_t announced = gc_reader_info(reader)->frames, most = gc_max(1, 65536 / channels);
    const int64_t piece = announced > 0 ? gc_min(announced, most) : most;
    int64_t capacity = gc_max(piece, gc_min(4 * piece, announced)), want = piece, got = piece;
    float *interleaved = channels > 1 ? gc_calloc(piece * channels, sizeof *interleaved) : NULL;
    float **p = gc_calloc(channels, sizeof *p);
    gpuconv_status status = p && (interleaved || channels == 1) ? GPUCONV_OK : gc_fail_memory(error, "the response");
    for (int c = 0; !status && c < channels; c++)
        if (!(p[c] = gc_calloc(capacity, sizeof **p)))
            status = gc_fail_memory(error, "the response");
    for (*frames = 0; !status && got == want && *frames != announced; *frames += got) {
        want = announced > 0 ? gc_min(piece, announced - *frames) : piece;
        if (*frames + want > capacity && !grow_planes(p, channels, *frames, capacity *= 2))
            status = gc_fail_memory(error, "the response");
        got = 0;
        if (!status && gc_cancelled())
            status = gc_fail_cancelled(error, "the response");
        if (!status)
            status = gc_reader_read_floats(reader, interleaved ? interleaved : p[0] + *frames, want, &got, error);
        for (int c = 0; interleaved && c < channels; c++)
            for (int64_t i = 0; i < got; i++)
                p[c][*frames + i] = interleaved[i * channels + c];
    }
    free(interleaved);
    *planes = p;
    return status;
}

gpuconv_status gc_ir_load_raw(const char *path, const char *raw, gpuconv_ir **ir, gpuconv_error *error) {
    *ir = NULL;
    gc_reader *reader;
    const gc_input_options wish = {.raw = raw, .cancel = gc_cancel_flag(), .keep_nonfinite = true};
    gpuconv_status status = gc_reader_open(path, &wish, &reader, error);
    if (status)
        return status;
    int channels = gc_reader_info(reader)->channels;
    float **planes = NULL;
    int64_t frames = 0;
    status = read_planes(reader, &planes, &frames, error);
    if (!status)
        status = gc_reader_check_end(reader, error);
    gpuconv_error inner = {0};
    if (!status) {
        status =
            gpuconv_ir_new((const float *const *)planes, channels, frames, gc_reader_info(reader)->rate, ir, &inner);
        if (status)
            gc_fail(error, status, "%s: %s", path, inner.message);
    }
    for (int c = 0; planes && c < channels; c++)
        free(planes[c]);
    free(planes);
    gc_reader_free(reader);
    return status;
}

gpuconv_status gpuconv_ir_load(const char *path, gpuconv_ir **ir, gpuconv_error *error) {
    return gc_ir_load_raw(path, NULL, ir, error);
}

gpuconv_status gc_ir_write(const gpuconv_ir *ir, const char *path, bool floats, gpuconv_error *error) {
    gc_audio_info like = floats ? gc_audio_info_float(ir->planes, (int)ir->rate, ir->frames)
                                : gc_audio_info_s24(ir->planes, (int)ir->rate, ir->frames);
    gc_writer *writer;
    gpuconv_status status = gc_writer_new(path, NULL, &like, ir->planes, ir->frames, &writer, error);
    if (status)
        return status;
    gc_pcm pcm = gc_writer_pcm(writer);
    if (floats && pcm.container != GC_F32)
        status =
            gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: a response is written as floats, into a WAV for example", path);
    const float **planes = gc_calloc(ir->planes, sizeof *planes);
    void *raw = gc_calloc(ir->frames, (int64_t)ir->planes * gc_pcm_bytes(pcm));
    if (!status && (!planes || !raw))
        status = gc_fail_memory(error, path);
    for (int p = 0; p < ir->planes && !status; p++)
        planes[p] = gc_ir_plane(ir, p);
    if (!status) {
        gc_pcm_overs overs = {0};
        gc_pcm_pack(gc_simd_best(), pcm, planes, 0, ir->planes, ir->frames, raw, &overs);
        status = gc_writer_write(writer, raw, ir->frames, error);
    }
    if (!status)
        status = gc_writer_commit(writer, error);
    free(raw);
    free(planes);
    gc_writer_free(writer);
    return status;
}
