/* Sound files in blocks, figures in rows, parts of responses. */
#include "library.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/ir/object.h"
#include "libtools/room/figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sound files ---- */

enum { BLOCK = 65536 };

/* Makes room for `frames` frames in every channel. */
static bool grow(gcpy_audio *audio, int64_t *capacity, int64_t frames) {
    if (frames > INT64_MAX / 16 / audio->channels)
        return false;
    float *larger = malloc((size_t)gc_max(1, frames * audio->channels) * sizeof *larger);
    if (!larger)
        return false;
    for (int c = 0; audio->samples && c < audio->channels; c++)
        memcpy(larger + c * frames, audio->samples + c * *capacity, (size_t)audio->frames * sizeof *larger);
    free(audio->samples);
    audio->samples = larger;
    *capacity = frames;
    return true;
}

/* Reads blocks until `want` frames are there (-1: until the end). */
static gpuconv_status read_blocks(gc_reader *reader, int64_t want, gcpy_audio *audio, int64_t *capacity, float *block,
                                  gpuconv_error *error) {
    while (want < 0 || audio->frames < want) {
        const int64_t ask = want < 0 ? BLOCK : gc_min(BLOCK, want - audio->frames);
        int64_t got;
        gpuconv_status status = gc_reader_read_floats(reader, block, ask, &got, error);
        if (status || got == 0)
            return status;
        if (audio->frames + got > *capacity && !grow(audio, capacity, 2 * (audio->frames + got)))
            return gc_fail_memory(error, "the samples of a file");
        for (int c = 0; c < audio->channels; c++)
            for (int64_t i = 0; i < got; i++)
                audio->samples[c * *capacity + audio->frames + i] = block[i * audio->channels + c];
        audio->frames += got;
    }
    return GPUCONV_OK;
}

/* Moves the channels together where fewer frames came than there is room for. */
static void pack(gcpy_audio *audio, int64_t capacity) {
    for (int c = 1; c < audio->channels && audio->frames < capacity; c++)
        memmove(audio->samples + c * audio->frames, audio->samples + c * capacity,
                (size_t)audio->frames * sizeof *audio->samples);
}

gpuconv_status gcpy_read(const char *path, const char *raw, int64_t start, int64_t frames, gcpy_audio *audio,
                         gpuconv_error *error) {
    gc_reader *reader = NULL;
    const gc_input_options options = {.raw = raw, .cancel = gc_cancel_flag()};
    float *block = NULL;
    int64_t capacity = 0;
    *audio = (gcpy_audio){0};
    gpuconv_status status = gc_reader_open(path, &options, &reader, error);
    if (status)
        return status;
    const gc_audio_info *info = gc_reader_info(reader);
    audio->channels = info->channels;
    audio->rate = info->rate;
    if (start > 0 || frames >= 0)
        status = gc_reader_count(reader, error);
    const int64_t left = info->frames < 0 ? -1 : info->frames - start;
    if (!status && (start < 0 || (info->frames >= 0 && start > 0 && left <= 0)))
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: start %lld is not within its %lld frames", path,
                         (long long)start, (long long)info->frames);
    if (!status && left >= 0 && frames > left)
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: %lld frames from %lld on are not within its %lld frames",
                         path, (long long)frames, (long long)start, (long long)info->frames);
    if (!status && start > 0)
        status = gc_reader_seek(reader, start, error);
    if (!status) {
        const int64_t want = frames < 0 ? left : frames;
        block = gc_calloc(BLOCK, (int64_t)audio->channels * (int64_t)sizeof *block);
        if (!block || !grow(audio, &capacity, want < 0 ? BLOCK : gc_min(want, INT64_C(1) << 28)))
            status = gc_fail_memory(error, "the samples of a file");
        else
            status = read_blocks(reader, want, audio, &capacity, block, error);
        if (!status && (frames < 0 || frames == left))
            status = gc_reader_check_end(reader, error);
        else if (!status && audio->frames < frames)
            status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: ends after %lld of %lld frames", path,
                             (long long)(start + audio->frames), (long long)(start + frames));
    }
    (void)snprintf(audio->note, sizeof audio->note, "%s", gc_reader_note(reader));
    audio->nonfinite = gc_reader_nonfinite(reader, NULL);
    free(block);
    gc_reader_free(reader);
    if (status) {
        free(audio->samples);
        audio->samples = NULL;
    } else {
        pack(audio, capacity);
    }
    return status;
}

/* Converts and writes all frames, and gives the file its name. */
static gpuconv_status write_blocks(gc_writer *writer, const float *const *channel, int channels, int64_t frames,
                                   int64_t *clipped, gpuconv_error *error) {
    const gc_pcm pcm = gc_writer_pcm(writer);
    gc_pcm_overs overs = {0};
    gpuconv_status status = GPUCONV_OK;
    char *raw = gc_calloc(BLOCK, (int64_t)channels * gc_pcm_bytes(pcm));
    if (!raw)
        return gc_fail_memory(error, "a block of samples");
    for (int64_t at = 0; at < frames && !status; at += BLOCK) {
        const int64_t count = gc_min(BLOCK, frames - at);
        gc_pcm_pack(gc_simd_best(), &(gc_pcm_target){pcm, raw, &overs}, channel, at, channels, count);
        status = gc_writer_write(writer, raw, count, error);
    }
    *clipped = overs.clipped;
    free(raw);
    return status ? status : gc_writer_commit(writer, error);
}

gpuconv_status gcpy_write(const char *path, const char *format, const char *encoding, const float *const *channel,
                          int channels, int64_t frames, int rate, int64_t *clipped, gpuconv_error *error) {
    const gc_output_options options = {.format = format, .encoding = encoding, .cancel = gc_cancel_flag()};
    const gc_audio_info like = gc_audio_info_float(channels, rate, frames);
    gc_writer *writer = NULL;
    *clipped = 0;
    gpuconv_status status = gc_writer_new(path, &options, &like, channels, frames, &writer, error);
    if (!status)
        status = write_blocks(writer, channel, channels, frames, clipped, error);
    gc_writer_free(writer);
    return status;
}

/* ---- Figures ---- */

static void fill(const gc_figures *all, const gc_figure *f, gcpy_figure *to) {
    const gc_acoustics *a = &f->a;
    const double sti = f->band.nominal > 0 ? (double)NAN : all->speech[f->channel].sti;
    const double values[GCPY_FIGURES] = {f->channel,    f->band.nominal, a->edt,      a->t20,     a->t30,
                                         a->c50,        a->c80,          a->d50,      a->centre,  a->noise,
                                         a->inr,        a->onset,        f->strength, f->lateral, f->ears.all,
                                         f->ears.early, f->ears.late,    sti};
    memcpy(to->value, values, sizeof values);
    (void)gc_doubt_text(a->doubt, to->doubt, sizeof to->doubt);
}

gpuconv_status gcpy_figures(const gpuconv_ir *ir, const gcpy_figures_options *o, gcpy_figure **figures, int *count,
                            gpuconv_error *error) {
    gc_figures all;
    gc_figures_options options = gc_figures_default();
    options.per_octave = o->per_octave;
    options.lateral = o->lateral;
    options.reference = o->reference;
    options.reference_level = o->reference_level;
    options.reference_distance = o->reference_distance;
    options.levels.speech = o->speech_level;
    options.levels.has_noise = o->noise_level != NULL;
    for (int k = 0; k < GC_SPEECH_BANDS && o->noise_level; k++)
        options.levels.noise[k] = o->noise_level[k];
    *figures = NULL;
    gpuconv_status status = gc_figures_of(ir, "the response", &options, &all, error);
    if (status)
        return status;
    *count = all.channels * all.bands;
    *figures = gc_calloc(*count, sizeof **figures);
    if (!*figures)
        status = gc_fail_memory(error, "the figures of a response");
    for (int i = 0; i < *count && !status; i++)
        fill(&all, &all.figure[i], *figures + i);
    gc_figures_free(&all);
    return status;
}

/* ---- Responses ---- */

gpuconv_status gcpy_restore(gpuconv_ir *ir, int64_t lead, const char *history, gpuconv_error *error) {
    if (lead < 0 || lead >= ir->frames)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a lead of %lld frames does not fit a response of %lld",
                       (long long)lead, (long long)ir->frames);
    ir->lead = lead;
    return gc_ir_append_history(ir, "%s", history) ? GPUCONV_OK : gc_fail_memory(error, "the history of a response");
}

bool gcpy_is_routed(const gpuconv_ir *ir) {
    return ir->routed;
}

bool gcpy_has_cuda(void) {
    return gc_backend_find(GPUCONV_BACKEND_CUDA) != NULL;
}
