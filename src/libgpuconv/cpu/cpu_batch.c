/*
 * Batch slots on the CPU. A slot convolves the channels of a file as rows (rows.h) on the calling thread, with the plan
 * of an engine. Samples are converted as an engine converts them. FFT plans and scratch memory are kept from one file
 * to the next: for a file of a few seconds the convolution takes less time than creating an engine.
 */
#include "libgpuconv/engine/batch_convolver.h"

#include "cpu_algorithm.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/ir/object.h"
#include "rows.h"

#include <stdlib.h>

/* Samples of a file as floats, channel after channel; grows on use. */
typedef struct planar {
    float *samples, **row;
    int64_t floats;
    int channels;
} planar;

typedef struct cpu_slot {
    gc_batch_slot base;
    planar input, output;
    gc_rows rows;
} cpu_slot;

static void free_planar(planar *p) {
    free(p->samples);
    free((void *)p->row);
}

/* Makes rows for `channels` channels of `frames` frames. Returns false without memory. */
static bool reserve(planar *p, int channels, int64_t frames) {
    const int64_t pitch = gc_round_up(frames, 16), floats = pitch * channels;
    if (floats > p->floats || channels > p->channels) {
        free_planar(p);
        *p = (planar){gc_calloc(floats, sizeof *p->samples), gc_calloc(channels, sizeof *p->row), floats, channels};
        if (!p->samples || !p->row) {
            free_planar(p);
            *p = (planar){0};
            return false;
        }
    }
    for (int c = 0; c < channels; c++)
        p->row[c] = p->samples + c * pitch;
    return true;
}

static void free_slot(gc_batch_slot *slot) {
    cpu_slot *s = (cpu_slot *)slot;
    if (!s)
        return;
    gc_rows_free(&s->rows);
    free_planar(&s->input);
    free_planar(&s->output);
    free(s->base.in);
    free(s->base.out);
    free(s);
}

static gpuconv_status new_slot(int device, int64_t bytes, int outputs, gc_batch_slot **slot, gpuconv_error *error) {
    (void)device;
    (void)outputs;
    cpu_slot *made = gc_calloc(1, sizeof *made);
    *slot = NULL;
    if (made)
        made->base = (gc_batch_slot){gc_calloc(bytes, 1), gc_calloc(bytes, 1)};
    if (!made || !gc_rows_init(&made->rows, 1) || !made->base.in || !made->base.out) {
        free_slot((gc_batch_slot *)made);
        return gc_fail_memory(error, "a batch slot");
    }
    *slot = &made->base;
    return GPUCONV_OK;
}

/* Plans as gpuconv_plan_new does for one file. Returns false for the algorithms that rows do not have. */
static bool choose(const gc_batch_slot *slot, const gpuconv_ir *ir, int64_t frames, gc_choice *choice) {
    gpuconv_error ignored;
    const bool planned = gc_row_choose(gc_cpu_algorithms, &((const cpu_slot *)slot)->rows.costs, ir, frames, choice,
                                       &ignored) == GPUCONV_OK;
    return planned && (choice->algorithm == &gc_cpu_direct.row || choice->algorithm == &gc_cpu_overlap_save.row);
}

/* Places the planar floats of an item: in the buffers of the slot where those are planar floats, else in scratch
 * memory. Unpacks the input. Returns false without memory. */
static bool place(cpu_slot *slot, const gc_batch_item *item) {
    const int64_t total = item->frames + item->ir->frames - 1;
    if (!reserve(&slot->input, item->in.channels, item->frames) || !reserve(&slot->output, item->out.channels, total))
        return false;
    gc_pcm_unpack(gc_simd_best(), item->in.format, slot->base.in + item->in.at, item->in.channels, item->frames,
                  slot->input.row, 0);
    for (int c = 0; item->out.row && c < item->out.channels; c++)
        slot->output.row[c] = (float *)(void *)(slot->base.out + item->out.at + c * item->out.row);
    return true;
}

/* An item that is being convolved. */
typedef struct convolution {
    const cpu_slot *slot;
    const gc_batch_item *item;
} convolution;

static gc_array floats(float *data, int64_t frames) {
    return (gc_array){.data = data, .frames = frames, .step = 1};
}

/* Makes the row of a route. */
static void make_row(const void *context, int64_t index, int64_t term, gc_row *row) {
    (void)term;
    const convolution *c = context;
    const gc_batch_item *item = c->item;
    const gpuconv_ir *ir = item->ir;
    const gc_route *route = &ir->route[index];
    *row = (gc_row){.signal = floats(c->slot->input.row[route->input], item->frames),
                    .taps = floats((float *)item->planes + route->plane * ir->frames, ir->frames),
                    .output = floats(c->slot->output.row[route->output], item->frames + ir->frames - 1),
                    .schedule = item->choice.schedule};
}

/* Convolves the channels of one item as rows. */
static gpuconv_status convolve(cpu_slot *slot, gc_batch_item *item, gpuconv_error *error) {
    const gpuconv_ir *ir = item->ir;
    const int64_t total = item->frames + ir->frames - 1;
    const convolution c = {slot, item};
    gc_pcm_overs overs = {0};
    gpuconv_status status = place(slot, item) ? GPUCONV_OK : gc_fail_memory(error, "a batch slot");
    if (!status)
        status = gc_rows_convolve(&slot->rows, &(gc_row_list){ir->routes, true, make_row, &c}, error);
    if (!status && !item->out.row)
        gc_pcm_pack(gc_simd_best(), item->out.format, (const float *const *)slot->output.row, 0, item->out.channels,
                    total, slot->base.out + item->out.at, &overs);
    item->clipped = overs.clipped;
    return status;
}

static gpuconv_status begin(gc_batch_slot *slot, gc_batch_item *items, int count, int64_t in_bytes, int64_t out_bytes,
                            gpuconv_error *error) {
    (void)in_bytes;
    (void)out_bytes;
    cpu_slot *s = (cpu_slot *)slot;
    gpuconv_status status = GPUCONV_OK;
    for (int i = 0; i < count && !status; i++)
        status = convolve(s, &items[i], error);
    gc_rows_forget(&s->rows); /* the next items may have other taps in the same place */
    return status;
}

const gc_batch_backend gc_batch_cpu = {
    .slots = 1,
    .new_slot = new_slot,
    .choose = choose,
    .begin = begin,
    .free = free_slot,
};
