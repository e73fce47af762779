/*
 * Batch slots on the CPU. A slot convolves the channels of a file as rows (rows.h) on the calling thread, with the plan
 * of an engine. Samples are converted as an engine converts them. FFT plans and scratch memory are kept from one file
 * to the next: for a file of a few seconds the convolution takes less time than creating an engine.
 */
#include "libgpuconv/conv/backend.h"

#include "cpu_algorithm.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/ir/object.h"
#include "rows.h"

#include <stdlib.h>

enum { CHANNELS_MAX = 64 }; /* of a file; a file with more takes an engine */

typedef struct cpu_slot {
    gc_batch_slot base;
    gc_rows rows;
    float *scratch; /* samples of a file as floats, channel after channel; grows on use */
    int64_t scratch_floats;
    float *input[CHANNELS_MAX], *output[CHANNELS_MAX];
} cpu_slot;

static void free_slot(gc_batch_slot *slot) {
    cpu_slot *s = (cpu_slot *)slot;
    if (!s)
        return;
    gc_rows_free(&s->rows);
    free(s->scratch);
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
    return planned && gc_max(ir->inputs, ir->outputs) <= CHANNELS_MAX &&
           (choice->algorithm == &gc_cpu_direct.row || choice->algorithm == &gc_cpu_overlap_save.row);
}

/* Places the planar floats of an item: in the buffers of the slot where those are planar floats, else in scratch
 * memory. Unpacks the input. Returns false without memory. */
static bool place(cpu_slot *slot, const gc_batch_item *item) {
    const gc_batch_samples *in = &item->in, *out = &item->out;
    const int64_t total = item->frames + item->ir->frames - 1, in_row = gc_round_up(item->frames, 16);
    const int64_t out_row = gc_round_up(total, 16), floats = in->channels * in_row + out->channels * out_row;
    if (floats > slot->scratch_floats) {
        free(slot->scratch);
        slot->scratch = gc_calloc(floats, sizeof *slot->scratch);
        slot->scratch_floats = slot->scratch ? floats : 0;
    }
    if (!slot->scratch)
        return false;
    for (int c = 0; c < in->channels; c++)
        slot->input[c] = slot->scratch + c * in_row;
    for (int c = 0; c < out->channels; c++)
        slot->output[c] = out->row ? (float *)(void *)(slot->base.out + out->at + c * out->row)
                                   : slot->scratch + in->channels * in_row + c * out_row;
    gc_pcm_unpack(gc_simd_best(), in->format, slot->base.in + in->at, in->channels, item->frames, slot->input, 0);
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
    *row = (gc_row){.signal = floats(c->slot->input[route->input], item->frames),
                    .taps = floats((float *)item->planes + route->plane * ir->frames, ir->frames),
                    .output = floats(c->slot->output[route->output], item->frames + ir->frames - 1),
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
        gc_pcm_pack(gc_simd_best(), &(gc_pcm_target){item->out.format, slot->base.out + item->out.at, &overs},
                    (const float *const *)slot->output, 0, item->out.channels, total);
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
