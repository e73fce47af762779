/* Writes outputs from planar floats. */
#include "store.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/dsp/dither.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/ir/object.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Enlarges the scratch memory. Returns false without memory. */
static bool enlarge(gc_scratch *s, int64_t bytes) {
    if (bytes > s->raw_bytes) {
        free(s->raw);
        s->raw = gc_calloc(bytes, 1);
        s->raw_bytes = s->raw ? bytes : 0;
    }
    return s->raw != NULL;
}

void gc_scratch_free(gc_scratch *s) {
    free(s->raw);
    *s = (gc_scratch){0};
}

gpuconv_status gc_store_samples(const gc_worker *w, gc_writer *writer, const void *raw, int64_t frames,
                                gpuconv_error *error) {
    const bool copied = gc_writer_is_plain(writer);
    while (copied && sem_wait(w->copy_permits) != 0)
        ; /* interrupted by a signal */
    gpuconv_status status = gc_writer_write(writer, raw, frames, error);
    if (copied)
        sem_post(w->copy_permits);
    return status;
}

/* Interleaves samples and packs them with dither. @return MEMORY */
static gpuconv_status pack_dithered(const float *const *row, int channels, int64_t frames, gc_pcm pcm, void *raw,
                                    gc_pcm_overs *overs, gpuconv_error *error) {
    gc_dither dither = gc_dither_begin(pcm, true);
    float *samples = gc_calloc(frames * channels, sizeof *samples);
    if (!samples)
        return gc_fail_memory(error, "dither");
    for (int c = 0; c < channels; c++)
        for (int64_t i = 0; i < frames; i++)
            samples[i * channels + c] = row[c][i];
    gc_dither_pack(&dither, samples, frames * channels, raw, overs);
    free(samples);
    return GPUCONV_OK;
}

/* The samples of one output file. */
typedef struct output {
    const char *path;
    const float *const *row;
    int channels;
    int64_t frames;
} output;

/* Creates a file and writes its samples. The caller commits and frees the writer, also after a failure. */
static gpuconv_status write_output(const gc_worker *w, gc_task *t, const output *o, gc_scratch *scratch,
                                   gc_writer **writer, gc_pcm_overs *overs, gpuconv_error *error) {
    gpuconv_status status = gc_task_open_output(w, t, o->path, o->channels, o->frames, writer, error);
    if (status)
        return status;
    const gc_pcm pcm = gc_writer_pcm(*writer);
    if (!enlarge(scratch, o->frames * o->channels * gc_pcm_bytes(pcm)))
        return gc_fail_memory(error, o->path);
    if (gc_entry_recipe(gc_task_entry(w, t))->dither)
        status = pack_dithered(o->row, o->channels, o->frames, pcm, scratch->raw, overs, error);
    else
        gc_pcm_pack(gc_simd_best(), pcm, o->row, 0, o->channels, o->frames, scratch->raw, overs);
    return status ? status : gc_store_samples(w, *writer, scratch->raw, o->frames, error);
}

/* Returns the first frame of a part's window. */
static void window_rows(const gc_part *p, float *const *row, int channels, const float **window) {
    for (int c = 0; c < channels; c++)
        window[c] = row[c] + p->skip;
}

static int64_t window_frames(const gc_part *p) {
    return p->frames + p->after - p->skip;
}

/* Returns the frames up to which the output is input, and behind which it is the tail. */
static int64_t body_frames(const gc_part *p) {
    return gc_max(0, p->frames - p->skip);
}

/* Adds up parts [from, from + sources). */
static gpuconv_status add_up(const gc_task *t, int from, float *const *const *rows, gc_mix *mix, gpuconv_error *error) {
    int channels = gpuconv_ir_outputs(t->part[0].response->ir);
    int64_t frames = 0;
    for (int i = 0; i < t->sources; i++) /* both outputs have the length of the first */
        frames = gc_max(frames, t->part[i].start + window_frames(&t->part[i]));
    const float **window = gc_calloc(channels, (int64_t)sizeof *window);
    gpuconv_status status =
        window ? gc_mix_new(mix, channels, frames, t->part[0].info.rate, error) : gc_fail_memory(error, "a mix");
    for (int i = from; i < from + t->sources && !status; i++) {
        window_rows(&t->part[i], rows[i], channels, window);
        gc_mix_add(mix, window, window_frames(&t->part[i]), t->part[i].start);
    }
    free((void *)window);
    return status;
}

/* Adds the entry's noise. */
static gpuconv_status add_noise(const gc_worker *w, gc_task *t, gc_mix *mix, gpuconv_error *error) {
    const gc_entry *e = gc_task_entry(w, t);
    const char *path = gc_entry_noise(e);
    gpuconv_error inner = {0};
    gc_response *noise;
    bool is_new, silent;
    if (!path)
        return GPUCONV_OK;
    const gc_response_request request = {
        .path = path, .recipe = gc_recipe_default(), .rate = mix->rate, .shared = true, .kind = GC_RESPONSE_NOISE};
    gpuconv_status status = gc_responses_acquire(w->responses, &request, &noise, &is_new, error);
    if (status)
        return status;
    t->noise_state = noise->state;
    int64_t from = (int64_t)llrint(e->extra->noise_offset * mix->rate);
    if (e->extra->noise_random) {
        uint64_t state = e->seed ^ UINT64_C(0x9ddfea08eb382d69);
        from = (int64_t)(gc_random_bits(&state) % (uint64_t)noise->ir->frames);
    }
    from %= noise->ir->frames;
    t->noise_offset = (double)from / mix->rate;
    status = gc_mix_add_noise(mix, noise->ir, from, e->extra->snr, &silent, &inner);
    gc_responses_release(w->responses, noise);
    if (status)
        return gc_fail(error, status, "%s: %s", path, inner.message);
    if (silent)
        (void)snprintf(t->note, sizeof t->note, "signal or noise is silent; no noise was added");
    return GPUCONV_OK;
}

/* Returns the mean power of all inputs. */
static double input_power(const gc_task *t) {
    double sum = 0;
    for (int i = 0; i < t->sources; i++)
        sum += t->part[i].power;
    return sum;
}

/* Makes the mix: sum, end of the tail, noise, level and gain. *factor: of level and gain. */
static gpuconv_status make_mix(const gc_worker *w, gc_task *t, float *const *const *rows, gc_mix *mix, double *factor,
                               gpuconv_error *error) {
    const gc_entry *e = gc_task_entry(w, t);
    const gc_recipe *r = gc_entry_recipe(e);
    gpuconv_error inner = {0};
    gpuconv_status status = add_up(t, 0, rows, mix, error);
    *factor = 1;
    if (!status && r->tail_floor < 0) {
        int64_t body = 0;
        for (int i = 0; i < t->sources; i++)
            body = gc_max(body, t->part[i].start + body_frames(&t->part[i]));
        mix->frames = gc_audible_frames((const float *const *)mix->row, mix->channels, mix->frames, body,
                                        pow(10, r->tail_floor / 20));
    }
    if (!status)
        status = add_noise(w, t, mix, error);
    if (!status && r->level) {
        status = gc_mix_find_level(mix, r->level, r->level_db, input_power(t), factor, &inner);
        *factor *= pow(10, e->gain / 20);
        if (status)
            gc_fail(error, status, "%s: %s", e->output, inner.message);
    }
    if (!status)
        gc_mix_scale(mix, *factor);
    return status;
}

/* Writes and commits the early reflections, with the level of the output. */
static gpuconv_status store_early(const gc_worker *w, gc_task *t, float *const *const *rows, const gc_mix *whole,
                                  double factor, gc_scratch *scratch, gpuconv_error *error) {
    gc_mix mix = {0};
    gc_writer *writer = NULL;
    gc_pcm_overs overs = {0};
    gpuconv_status status = add_up(t, t->sources, rows, &mix, error);
    if (!status) {
        gc_mix_scale(&mix, factor);
        const output o = {t->early_path, (const float *const *)mix.row, mix.channels, whole->frames};
        status = write_output(w, t, &o, scratch, &writer, &overs, error);
    }
    if (!status)
        status = gc_task_commit(t, writer, true, error);
    gc_writer_free(writer);
    gc_mix_free(&mix);
    return status;
}

static gpuconv_status store_mixed(const gc_worker *w, gc_task *t, float *const *const *rows, gc_scratch *scratch,
                                  gpuconv_error *error) {
    gc_mix mix = {0};
    gc_writer *writer = NULL;
    gc_pcm_overs overs = {0};
    double factor;
    char note[sizeof t->note];
    gpuconv_status status = make_mix(w, t, rows, &mix, &factor, error);
    (void)snprintf(note, sizeof note, "%s", t->note);
    const output o = {t->path, (const float *const *)mix.row, mix.channels, mix.frames};
    if (!status)
        status = write_output(w, t, &o, scratch, &writer, &overs, error);
    if (!*note)
        (void)snprintf(note, sizeof note, "%s", t->note);
    if (!status && t->early_path) /* has its name only if the first output is complete */
        status = store_early(w, t, rows, &mix, factor, scratch, error);
    (void)snprintf(t->note, sizeof t->note, "%s", note);
    t->written = mix.frames;
    if (!status)
        status = gc_task_commit(t, writer, false, error);
    gc_writer_free(writer);
    gc_mix_free(&mix);
    t->clipped = overs.clipped;
    return status;
}

gpuconv_status gc_store_rows(const gc_worker *w, gc_task *t, float *const *const *rows, gc_scratch *scratch,
                             gpuconv_error *error) {
    if (t->mixed)
        return store_mixed(w, t, rows, scratch, error);
    const gc_recipe *r = gc_entry_recipe(gc_task_entry(w, t));
    const gc_part *p = &t->part[0];
    const int channels = gpuconv_ir_outputs(p->response->ir);
    gc_writer *writer = NULL;
    gc_pcm_overs overs = {0};
    const float **window = gc_calloc(channels, (int64_t)sizeof *window);
    if (!window)
        return gc_fail_memory(error, t->path);
    window_rows(p, rows[0], channels, window);
    output o = {t->path, window, channels, window_frames(p)};
    if (r->tail_floor < 0)
        o.frames = gc_audible_frames(window, channels, o.frames, body_frames(p), pow(10, r->tail_floor / 20));
    gpuconv_status status = o.frames > 0
                                ? write_output(w, t, &o, scratch, &writer, &overs, error)
                                : gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: nothing is left to write", t->path);
    t->written = o.frames;
    if (!status)
        status = gc_task_commit(t, writer, false, error);
    gc_writer_free(writer);
    free((void *)window);
    t->clipped = overs.clipped;
    return status;
}
