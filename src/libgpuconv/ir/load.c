/* Reading and writing of impulse responses as audio files. */
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/dsp/finite.h"
#include "libgpuconv/dsp/simd.h"
#include "numbers.h"
#include "object.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PIECE = 65536,     /* samples that are read at once: they stay in the cache */
    BELIEVED = 1 << 28 /* samples for which memory is reserved because a header says so: 1 GiB */
};

/* The planes of a file that is read. */
typedef struct growing {
    const char *path; /* for messages */
    float *taps;      /* channels x capacity */
    int channels;
    int64_t frames, capacity;
} growing;

/* Moves the planes to a block of another capacity. Returns false without memory; the planes stay valid. */
static bool resize(growing *g, int64_t capacity) {
    float *other = gc_alloc(capacity, g->channels * (int64_t)sizeof *other);
    if (!other)
        return false;
    for (int c = 0; c < g->channels && g->frames > 0; c++)
        memcpy(other + c * capacity, g->taps + c * g->capacity, (size_t)g->frames * sizeof *other);
    free(g->taps);
    g->taps = other;
    g->capacity = capacity;
    return true;
}

/* Reads the next piece of a file through `raw`; *got is less than `want` at its end. Returns FILE, FORMAT, MEMORY,
 * CANCELLED. */
static gpuconv_status read_piece(gc_reader *reader, void *raw, growing *g, int64_t want, int64_t *got,
                                 gpuconv_error *error) {
    float *plane[GC_MAX_CHANNELS];
    const gc_pcm pcm = gc_reader_info(reader)->pcm;
    *got = 0;
    if (g->frames + want > g->capacity && !resize(g, 2 * (g->frames + want)))
        return gc_fail_memory(error, "the response");
    if (gc_cancelled())
        return gc_fail_cancelled(error, "the response");
    gpuconv_status status = gc_reader_read(reader, raw, want, got, error);
    for (int c = 0; c < g->channels; c++)
        plane[c] = g->taps + c * g->capacity;
    gc_pcm_unpack(gc_simd_best(), pcm, raw, g->channels, *got, plane, g->frames);
    for (int c = 0; c < g->channels && pcm.container == GC_F32 && !status; c++) {
        const int64_t end = g->frames + *got, first = g->frames + gc_find_not_finite(plane[c] + g->frames, *got);
        if (first < end)
            status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: the response is not finite at frame %lld of channel %d",
                             g->path, (long long)first, c + 1);
    }
    g->frames += *got;
    return status;
}

/* Reads a file into planes of exactly its frames, piece by piece, because the length in a header may be wrong or
 * missing: of a length that is not BELIEVED, the planes grow as they fill. g->taps may be allocated on failure too.
 * Returns FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status read_planes(gc_reader *reader, growing *g, gpuconv_error *error) {
    const gc_audio_info *info = gc_reader_info(reader);
    const int64_t announced = info->frames, piece = gc_max(1, PIECE / info->channels);
    int64_t want = piece, got = piece;
    void *raw = gc_alloc(piece, info->channels * (int64_t)gc_pcm_bytes(info->pcm));
    g->channels = info->channels;
    gpuconv_status status = GPUCONV_OK;
    if (!raw || !resize(g, announced > 0 && announced <= BELIEVED / info->channels ? announced : piece))
        status = gc_fail_memory(error, "the response");
    while (!status && got == want && g->frames != announced) {
        want = announced > 0 ? gc_min(piece, announced - g->frames) : piece;
        status = read_piece(reader, raw, g, want, &got, error);
    }
    free(raw);
    if (!status)
        status = gc_reader_check_end(reader, error);
    if (!status && g->frames != g->capacity && g->frames > 0 && !resize(g, g->frames))
        status = gc_fail_memory(error, "the response");
    return status;
}

/* Opens an array of NumPy as raw samples. Returns FILE, FORMAT, MEMORY. */
static gpuconv_status open_npy(const char *path, const gc_ir_form *form, gc_npy *npy, gc_reader **reader,
                               gpuconv_error *error) {
    char raw[80];
    int64_t size;
    const gc_input_options wish = {.raw = raw, .cancel = gc_cancel_flag(), .keep_nonfinite = true};
    const int fd = gc_input_file_open(path, &size, error);
    if (fd < 0)
        return GPUCONV_ERROR_FILE;
    gpuconv_status status = gc_npy_parse(fd, size, path, npy, error);
    if (!status && !gc_is_rate(form->rate))
        status = gc_fail_without_rate(path, error);
    if (status) {
        close(fd);
        return status;
    }
    (void)snprintf(raw, sizeof raw, "%d,%d,%s", (int)lrint(form->rate), npy->planar ? 1 : npy->channels, npy->encoding);
    return gc_reader_open_descriptor(fd, true, size, path, &wish, reader, error);
}

/* Opens the samples of a response. Returns as gc_reader_open. */
static gpuconv_status open_samples(const char *path, const gc_ir_form *form, gc_npy *npy, gc_reader **reader,
                                   gpuconv_error *error) {
    const gc_input_options wish = {
        .kind = form->kind, .raw = form->raw, .cancel = gc_cancel_flag(), .keep_nonfinite = true};
    gpuconv_error inner = {0};
    if (!form->raw && gc_ending_find(path, "npy") == 0)
        return open_npy(path, form, npy, reader, error);
    const gpuconv_status status = gc_reader_open(path, &wish, reader, &inner);
    const bool is_raw = status == GPUCONV_ERROR_FORMAT && !form->raw &&
                        gc_ending_find(path, "pcm|raw|bin|f32|f64|dbl|s16|s24|s32") >= 0;
    return !status ? status
                   : gc_fail(error, status, "%s%s", inner.message,
                             is_raw ? "; of samples without a header, give rate, channels and encoding, such as "
                                      "--ir-raw 48000,1,double"
                                    : "");
}

gpuconv_status gc_ir_load_from(const char *path, const gc_ir_form *form, gpuconv_ir **ir, gpuconv_error *error) {
    *ir = NULL;
    gc_reader *reader;
    gc_npy npy = {0};
    if (!form->raw && gc_is_text_of_taps(path))
        return gc_ir_read_text(path, form->rate, ir, error);
    gpuconv_status status = open_samples(path, form, &npy, &reader, error);
    if (status)
        return status;
    growing g = {.path = path};
    status = read_planes(reader, &g, error);
    if (!status && g.frames == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: holds no frames", path);
    if (npy.planar) {
        g.channels = npy.channels;
        g.frames = npy.frames;
    }
    const double rate = npy.encoding ? form->rate : gc_reader_info(reader)->rate;
    if (status)
        free(g.taps);
    else if (!(*ir = gc_ir_own(g.taps, g.channels, g.frames, rate)))
        status = gc_fail_memory(error, path);
    if (!status && !gc_ir_append_history(*ir, "%s", gc_reader_note(reader))) {
        gpuconv_ir_free(*ir);
        *ir = NULL;
        status = gc_fail_memory(error, path);
    }
    gc_reader_free(reader);
    return status;
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
        gc_pcm_pack(gc_simd_best(), &(gc_pcm_target){pcm, raw, &overs}, planes, 0, ir->planes, ir->frames);
        status = gc_writer_write(writer, raw, ir->frames, error);
    }
    if (!status)
        status = gc_writer_commit(writer, error);
    free(raw);
    free(planes);
    gc_writer_free(writer);
    return status;
}
