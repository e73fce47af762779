/* Reads, convolves and encodes clips. */
#include "clip.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/finite.h"
#include "libgpuconv/dsp/loudness.h"
#include "libgpuconv/ir/object.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096 };

/* Allocates the samples. */
static gpuconv_status make(gc_clip *clip, int channels, int64_t frames, double rate, gpuconv_error *error) {
    *clip = (gc_clip){.channels = channels, .frames = frames, .rate = rate, .loudness = -HUGE_VAL};
    clip->samples = gc_calloc(frames * channels, sizeof *clip->samples);
    return clip->samples ? GPUCONV_OK : gc_fail_memory(error, "a sound of the page");
}

/* Measures level and loudness. */
static void measure(gc_clip *clip) {
    clip->peak = (double)gc_magnitude(clip->samples, clip->frames * clip->channels);
    const float *channel[GC_CLIP_CHANNELS];
    for (int c = 0; c < clip->channels; c++)
        channel[c] = clip->samples + c;
    if (!gc_loudness(channel, clip->channels, clip->channels, clip->frames, clip->rate, &clip->loudness))
        clip->loudness = -HUGE_VAL;
}

gpuconv_status gc_clip_read(const char *path, gc_clip *clip, gpuconv_error *error) {
    gc_reader *reader;
    *clip = (gc_clip){0};
    const gc_input_options wish = {.kind = GC_INPUT_REGULAR};
    gpuconv_status status = gc_reader_open(path, &wish, &reader, error);
    if (status)
        return status;
    const gc_audio_info *info = gc_reader_info(reader);
    int64_t most = (int64_t)GC_CLIP_SECONDS * info->rate, frames = info->frames < 0 ? most : info->frames, done = 0;
    float *block = gc_calloc((int64_t)BLOCK * info->channels, sizeof *block);
    status = make(clip, info->channels > 1 ? GC_CLIP_CHANNELS : 1, gc_min(frames, most), info->rate, error);
    if (!status && !block)
        status = gc_fail_memory(error, path);
    clip->cut = frames > most;
    for (int64_t got = 1; !status && got > 0 && done < clip->frames; done += got) {
        status = gc_reader_read_floats(reader, block, gc_min(BLOCK, clip->frames - done), &got, error);
        for (int64_t i = 0; !status && i < got; i++)
            for (int c = 0; c < clip->channels; c++)
                clip->samples[(done + i) * clip->channels + c] = block[i * info->channels + c];
    }
    free(block);
    gc_reader_free(reader);
    if (status) {
        gc_clip_free(clip);
        return status;
    }
    clip->frames = done;
    measure(clip);
    return GPUCONV_OK;
}

gpuconv_status gc_clip_of_response(const gpuconv_ir *ir, gc_clip *clip, gpuconv_error *error) {
    int64_t frames = gc_min(ir->frames, (int64_t)(GC_CLIP_SECONDS * ir->rate));
    gpuconv_status status = make(clip, ir->planes > 1 ? 2 : 1, frames, ir->rate, error);
    if (status)
        return status;
    for (int c = 0; c < clip->channels; c++)
        for (int64_t i = 0; i < frames; i++)
            clip->samples[i * clip->channels + c] = gc_ir_plane(ir, c)[i];
    clip->cut = frames < ir->frames;
    measure(clip);
    return GPUCONV_OK;
}

/* Copies a block of planes into the clip, as far as it has room. */
static void append(gc_clip *clip, int64_t *at, float *const *planes, int outputs, int64_t frames) {
    for (int64_t i = 0; i < frames && *at < clip->frames; i++, ++*at)
        for (int c = 0; c < clip->channels; c++)
            clip->samples[*at * clip->channels + c] = planes[c < outputs ? c : 0][i];
}

/* Runs the engine over the clip. @param memory room for BLOCK frames of every input and output */
static gpuconv_status run_engine(gpuconv_engine *engine, const gc_clip *dry, int outputs, float *memory, gc_clip *wet) {
    const float *in[2];
    float *out[GC_MAX_CHANNELS];
    int64_t at = 0, produced = 1;
    gpuconv_status status = GPUCONV_OK;
    for (int c = 0; c < dry->channels; c++)
        in[c] = memory + (int64_t)c * BLOCK;
    for (int c = 0; c < outputs; c++)
        out[c] = memory + (int64_t)(dry->channels + c) * BLOCK;
    for (int64_t done = 0; done < dry->frames && !status; done += BLOCK) {
        int64_t frames = gc_min(BLOCK, dry->frames - done);
        for (int c = 0; c < dry->channels; c++)
            for (int64_t i = 0; i < frames; i++)
                memory[(int64_t)c * BLOCK + i] = dry->samples[(done + i) * dry->channels + c];
        status = gpuconv_engine_process(engine, in, frames, out, &produced);
        if (!status)
            append(wet, &at, out, outputs, produced);
    }
    produced = 1;
    while (!status && produced > 0) {
        status = gpuconv_engine_drain(engine, out, BLOCK, &produced);
        if (!status)
            append(wet, &at, out, outputs, produced);
    }
    return status;
}

gpuconv_status gc_clip_convolve(const gc_clip *dry, const gpuconv_ir *ir, gc_clip *wet, gpuconv_error *error) {
    gpuconv_config config = gpuconv_config_default();
    gpuconv_ir *resampled = NULL, *routed = NULL;
    gpuconv_plan *plan = NULL;
    gpuconv_engine *engine = NULL;
    float *memory = NULL;
    *wet = (gc_clip){0};
    config.backend = GPUCONV_BACKEND_CPU;
    config.frames = dry->frames;
    gpuconv_status status = gpuconv_ir_resample(ir, dry->rate, &resampled, error);
    if (!status)
        status = gpuconv_ir_route_as(resampled, dry->channels, GPUCONV_LAYOUT_STEREO, &routed, error);
    if (!status)
        status = gpuconv_plan_new(routed, &config, &plan, error);
    if (!status)
        status = gpuconv_engine_new(plan, &engine, error);
    if (!status) {
        int outputs = gpuconv_ir_outputs(routed);
        status = make(wet, outputs > 1 ? 2 : 1, dry->frames + gpuconv_ir_frames(routed) - 1, dry->rate, error);
        memory = gc_calloc((int64_t)BLOCK * (dry->channels + outputs), sizeof *memory);
        if (!status && !memory)
            status = gc_fail_memory(error, "a sound of the page");
        if (!status && (status = run_engine(engine, dry, outputs, memory, wet)) != GPUCONV_OK)
            status = gc_fail(error, status, "a sound of the page: %s", gpuconv_status_text(status));
    }
    free(memory);
    gpuconv_engine_free(engine);
    gpuconv_plan_free(plan);
    gpuconv_ir_free(routed);
    gpuconv_ir_free(resampled);
    if (status)
        gc_clip_free(wet);
    else
        measure(wet);
    return status;
}

void gc_clip_free(gc_clip *clip) {
    free(clip->samples);
    *clip = (gc_clip){0};
}

/* ---- WAV in base64 ----------------------------------------------------------------------------------------------- */

typedef struct encoder {
    FILE *to;
    unsigned bits; /* bytes that are not yet written */
    int bytes;     /* their number, 0 to 2 */
} encoder;

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_byte(encoder *e, unsigned byte) {
    e->bits = e->bits << 8 | (byte & 0xff);
    if (++e->bytes < 3)
        return;
    for (int shift = 18; shift >= 0; shift -= 6)
        fputc(alphabet[e->bits >> shift & 63], e->to);
    e->bits = 0;
    e->bytes = 0;
}

/* Writes a number of `bytes` bytes, the lowest first. */
static void put_number(encoder *e, uint32_t value, int bytes) {
    for (int k = 0; k < bytes; k++)
        put_byte(e, value >> 8 * k);
}

static void put_name(encoder *e, const char *name) {
    for (; *name; name++)
        put_byte(e, (unsigned char)*name);
}

/* Writes the rest, filled up with "=". */
static void finish(encoder *e) {
    int rest = e->bytes;
    if (!rest)
        return;
    unsigned bits = e->bits << 8 * (3 - rest);
    for (int k = 0; k < 4; k++)
        fputc(k <= rest ? alphabet[bits >> (18 - 6 * k) & 63] : '=', e->to);
}

void gc_clip_write(const gc_clip *clip, double gain, FILE *to) {
    encoder e = {.to = to};
    uint32_t channels = (uint32_t)clip->channels, rate = (uint32_t)lrint(clip->rate);
    int64_t samples = clip->frames * clip->channels; /* GC_CLIP_SECONDS keeps it far below 2^31 */
    put_name(&e, "RIFF");
    put_number(&e, (uint32_t)(36 + 2 * samples), 4);
    put_name(&e, "WAVEfmt ");
    put_number(&e, 16, 4);
    put_number(&e, 1, 2);
    put_number(&e, channels, 2);
    put_number(&e, rate, 4);
    put_number(&e, rate * channels * 2, 4);
    put_number(&e, channels * 2, 2);
    put_number(&e, 16, 2);
    put_name(&e, "data");
    put_number(&e, (uint32_t)(2 * samples), 4);
    for (int64_t i = 0; i < samples; i++) {
        double x = fmin(fmax(gain * (double)clip->samples[i], -1), 1);
        put_number(&e, (uint32_t)(int32_t)lrint(32767 * x), 2);
    }
    finish(&e);
}
