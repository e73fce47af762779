/* Computes the figures of a file band by band. */
#include "figures.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/ir/object.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gc_figures_options gc_figures_default(void) {
    return (gc_figures_options){
        .per_octave = 1, .levels = {.speech = (double)NAN}, .reference_level = (double)NAN, .reference_distance = 10};
}

/* The bands of a file: the whole spectrum first. */
typedef struct band_list {
    gc_octave_band band[1 + GC_OCTAVE_BANDS];
    int count;
} band_list;

static const gc_octave_band *filter_of(const gc_octave_band *band) {
    return band->nominal > 0 ? band : NULL;
}

static band_list list_bands(const gc_figures_options *o, double rate) {
    band_list list = {.count = 1};
    list.band[0] = (gc_octave_band){0};
    if (o->per_octave)
        list.count += gc_octave_bands(o->per_octave, rate, list.band + 1);
    return list;
}

/* Computes the speech transmission index of a channel. */
static bool add_speech(gc_channel *c, double rate, const gc_figures_options *o, gc_speech *speech) {
    for (int k = 0; k < GC_SPEECH_BANDS; k++) {
        gc_octave_band band = gc_octave_of_speech(k);
        gc_acoustics unused;
        if (!(band.high < rate / 2))
            continue;
        if (!gc_channel_band(c, &band, &unused, NULL))
            return false;
        gc_speech_band(c, rate, k, &o->levels, speech);
    }
    gc_speech_finish(speech);
    return true;
}

/* Computes the parameters of one channel in every band. */
static bool add_channel(gc_figures *f, const band_list *list, const gc_figures_options *o, int channel, int64_t onset) {
    gc_channel *c = gc_channel_new(gc_ir_plane(f->ir, channel), f->ir->frames, f->ir->rate, onset);
    gc_speech *speech = &f->speech[channel];
    bool good = c != NULL;
    for (int k = 0; k < GC_SPEECH_BANDS; k++)
        speech->mti[k] = (double)NAN;
    for (int b = 0; b < list->count && good; b++) {
        gc_figure *figure = &f->figure[channel * f->bands + b];
        const double none = (double)NAN;
        *figure = (gc_figure){
            .channel = channel, .band = list->band[b], .strength = none, .lateral = none, .ears = {none, none, none}};
        good = gc_channel_band(c, filter_of(&list->band[b]), &figure->a, &f->decay[channel * f->bands + b]);
    }
    good = good && add_speech(c, f->ir->rate, o, speech);
    gc_channel_free(c);
    return good;
}

/* Computes the interaural correlation of a file with two channels. */
static bool add_ears(gc_figures *f, const band_list *list) {
    gc_ears *ears = gc_ears_new(gc_ir_plane(f->ir, 0), gc_ir_plane(f->ir, 1), f->ir->frames, f->ir->rate);
    bool good = ears != NULL;
    for (int b = 0; b < list->count && good; b++) {
        good = gc_ears_band(ears, filter_of(&list->band[b]), &f->figure[b].ears);
        f->figure[f->bands + b].ears = f->figure[b].ears;
    }
    gc_ears_free(ears);
    return good;
}

/* Computes the lateral energy fraction of channel 1, or of channel 2 if the figure-eight microphone is channel 1. */
static bool add_lateral(gc_figures *f, const band_list *list, int side) {
    int omni = side == 1 ? 1 : 0;
    gc_channel *a = gc_channel_new(gc_ir_plane(f->ir, omni), f->ir->frames, f->ir->rate, -1), *b = NULL;
    if (a)
        b = gc_channel_new(gc_ir_plane(f->ir, side - 1), f->ir->frames, f->ir->rate, gc_channel_onset(a));
    bool good = a && b;
    for (int k = 0; k < list->count && good; k++) {
        const gc_octave_band *band = filter_of(&list->band[k]);
        gc_acoustics unused;
        good = gc_channel_band(a, band, &unused, NULL) && gc_channel_band(b, band, &unused, NULL);
        if (good)
            f->figure[omni * f->bands + k].lateral = gc_lateral_fraction(a, b);
    }
    gc_channel_free(a);
    gc_channel_free(b);
    return good;
}

/* Computes the sound strength: ISO 3382-1:2009, A.2.1, from the level at 10 m in a free field. @param level of each
 * band of the reference */
static void add_strength(gc_figures *f, const double *level, double distance) {
    for (int c = 0; c < f->channels; c++)
        for (int b = 0; b < f->bands; b++) {
            gc_figure *figure = &f->figure[c * f->bands + b];
            double energy = figure->a.energy, ten_metres = level[b] + 20 * log10(distance / 10);
            figure->strength = energy > 0 ? 10 * log10(energy) - ten_metres : (double)NAN;
        }
}

/* Computes the level of the reference in each band. */
static gpuconv_status read_reference(const gc_figures_options *o, double rate, const band_list *list, double *level,
                                     gpuconv_error *error) {
    for (int b = 0; b < list->count; b++)
        level[b] = o->reference_level;
    if (!o->reference)
        return GPUCONV_OK;
    gpuconv_ir *ir = NULL;
    gpuconv_status status = gpuconv_ir_load(o->reference, &ir, error);
    if (!status && ir->rate != rate)
        status =
            gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: a reference must have the response's rate, %g Hz, not %g Hz",
                    o->reference, rate, ir->rate);
    gc_channel *c = status ? NULL : gc_channel_new(gc_ir_plane(ir, 0), ir->frames, rate, -1);
    if (!status && !c)
        status = gc_fail_memory(error, o->reference);
    for (int b = 0; b < list->count && !status; b++) {
        gc_acoustics a;
        if (!gc_channel_band(c, filter_of(&list->band[b]), &a, NULL))
            status = gc_fail_memory(error, o->reference);
        else
            level[b] = a.energy > 0 ? 10 * log10(a.energy) : (double)NAN;
    }
    gc_channel_free(c);
    gpuconv_ir_free(ir);
    return status;
}

/* The loop over the channels. */
typedef struct channel_loop {
    gc_figures *f;
    const band_list *list;
    const gc_figures_options *options;
    int64_t onset; /* of the figure-eight channel */
    atomic_bool failed;
} channel_loop;

static void run_channel(void *context, int64_t c, int worker) {
    channel_loop *l = context;
    (void)worker;
    if (!add_channel(l->f, l->list, l->options, (int)c, c + 1 == l->options->lateral ? l->onset : -1))
        l->failed = true;
}

/* Computes the parameters of all channels on all cores. */
static bool add_channels(gc_figures *f, const band_list *list, const gc_figures_options *o, int64_t onset) {
    channel_loop loop = {.f = f, .list = list, .options = o, .onset = onset};
    gc_pool *pool = gc_pool_new((int)gc_min(gc_processor_count(), f->channels));
    if (!pool)
        return false;
    gc_pool_run(pool, run_channel, &loop, f->channels);
    gc_pool_free(pool);
    return !loop.failed && !gc_cancelled();
}

/* Allocates the figures and computes them. */
static gpuconv_status compute(gc_figures *f, const gc_figures_options *o, gpuconv_error *error) {
    band_list list = list_bands(o, f->ir->rate);
    double level[1 + GC_OCTAVE_BANDS] = {0};
    f->bands = list.count;
    f->figure = gc_calloc((int64_t)f->channels * f->bands, (int64_t)sizeof *f->figure);
    f->decay = gc_calloc((int64_t)f->channels * f->bands, (int64_t)sizeof *f->decay);
    f->speech = gc_calloc(f->channels, (int64_t)sizeof *f->speech);
    bool good = f->figure && f->decay && f->speech;
    int64_t onset = -1;
    if (good && o->lateral) { /* the figure-eight channel begins with the omnidirectional one, not at its own peak */
        gc_acoustics a;
        good = gc_acoustics_of(gc_ir_plane(f->ir, o->lateral == 1), f->ir->frames, f->ir->rate, 0, &a, NULL);
        onset = good ? llrint(a.onset * f->ir->rate) : -1;
    }
    good = good && add_channels(f, &list, o, onset);
    if (good && o->lateral)
        good = add_lateral(f, &list, o->lateral);
    else if (good && f->channels == 2)
        good = add_ears(f, &list);
    gpuconv_status status = good ? read_reference(o, f->ir->rate, &list, level, error) : gc_fail_memory(error, f->path);
    if (!status && (o->reference || !isnan(o->reference_level)))
        add_strength(f, level, o->reference_distance);
    return status;
}

/* Computes the figures of f->ir, and frees it after a failure. */
static gpuconv_status finish(gc_figures *f, const gc_figures_options *o, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    f->channels = f->ir->planes;
    if (o->lateral > f->channels || (o->lateral && f->channels < 2))
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                         "%s: the figure-eight channel %d needs as many channels and at least 2, not %d", f->path,
                         o->lateral, f->channels);
    if (!status)
        status = compute(f, o, error);
    if (status)
        gc_figures_free(f);
    return status;
}

gpuconv_status gc_figures_new(const char *path, const gc_figures_options *o, gc_figures *f, gpuconv_error *error) {
    *f = (gc_figures){.path = path};
    gpuconv_status status = gpuconv_ir_load(path, &f->ir, error);
    return status ? status : finish(f, o, error);
}

gpuconv_status gc_figures_of(const gpuconv_ir *ir, const char *name, const gc_figures_options *o, gc_figures *f,
                             gpuconv_error *error) {
    *f = (gc_figures){.path = name, .ir = gc_ir_hold(ir)};
    return finish(f, o, error);
}

gpuconv_status gc_figures_prepared(const char *input, const char *path, const gpuconv_preparation *preparation,
                                   const gc_figures_options *o, gc_figures *f, gpuconv_error *error) {
    gc_reader *reader;
    *f = (gc_figures){.path = path};
    const gc_input_options wish = {.kind = GC_INPUT_REGULAR};
    gpuconv_status status = gc_reader_open(input, &wish, &reader, error);
    if (status)
        return status;
    const gc_audio_info *info = gc_reader_info(reader);
    status = gpuconv_ir_prepare(path, preparation, info->channels, info->rate, &f->ir, error);
    gc_reader_free(reader);
    return status ? status : finish(f, o, error);
}

void gc_figures_shrink(gc_figures *f) {
    gpuconv_ir_free(f->ir);
    free(f->decay);
    f->ir = NULL;
    f->decay = NULL;
}

void gc_figures_free(gc_figures *f) {
    gc_figures_shrink(f);
    free(f->figure);
    free(f->speech);
    *f = (gc_figures){0};
}

const char *gc_doubt_text(unsigned doubt, char *text, size_t room) {
    static const char *const words[] = {"filter", "noise T20", "noise T30", "nonlinear",
                                        "curved", "end T20",   "end T30"};
    size_t used = 0;
    text[0] = '\0';
    if (doubt & GC_DOUBT_NOISE20) /* T30 is doubtful whenever T20 is */
        doubt &= ~(unsigned)GC_DOUBT_NOISE30;
    if (doubt & GC_DOUBT_END20)
        doubt &= ~(unsigned)GC_DOUBT_END30;
    for (size_t k = 0; k < sizeof words / sizeof *words && used < room; k++)
        if (doubt & 1U << k)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? "; " : "", words[k]);
    return text;
}
