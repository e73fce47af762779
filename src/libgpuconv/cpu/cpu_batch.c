/*
 * Batch slots on the CPU. A slot convolves each channel of a file as a row (row_convolve.h) with the plan of an engine,
 * and transforms the response for every row. Samples are converted as an engine converts them. FFT tables and scratch
 * memory are kept from one file to the next: for a file of a few seconds the convolution takes less time than creating
 * an engine.
 */
#include "libgpuconv/engine/batch_convolver.h"

#include "cpu_algorithm.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/processor.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/ir/object.h"
#include "row_convolve.h"

#include <stdlib.h>

/* Samples of a file as floats, channel after channel; grows on use. */
typedef struct planar {
    float *samples, **row;
    int64_t floats;
    int channels;
} planar;

struct gc_batch_slot {
    void *in, *out;
    gc_costs costs;
    planar input, output;
    gc_row_tables tables;
    gc_row_scratch scratch;
};

static int devices(gpuconv_error *error) {
    (void)error;
    return 1;
}

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
    if (!slot)
        return;
    gc_row_tables_free(&slot->tables);
    gc_row_scratch_free(&slot->scratch);
    free_planar(&slot->input);
    free_planar(&slot->output);
    free(slot->in);
    free(slot->out);
    free(slot);
}

static gpuconv_status new_slot(int device, int64_t bytes, int outputs, gc_batch_slot **slot, gpuconv_error *error) {
    (void)device;
    (void)outputs;
    gc_batch_slot *made = gc_calloc(1, sizeof *made);
    *slot = NULL;
    if (made) {
        char name[128];
        made->in = gc_calloc(bytes, 1);
        made->out = gc_calloc(bytes, 1);
        gc_processor_name(name, sizeof name);
        made->costs = gc_costs_of_cpu(name);
    }
    if (!made || !made->in || !made->out) {
        free_slot(made);
        return gc_fail_memory(error, "a batch slot");
    }
    *slot = made;
    return GPUCONV_OK;
}

/* Plans as gpuconv_plan_new does for one file; the number of threads does not matter. Returns false for the algorithms
 * that rows do not have. */
static bool choose(const gc_batch_slot *slot, const gpuconv_ir *ir, int64_t frames, gc_choice *choice) {
    const gc_device device = {.threads = 1};
    gc_problem problem;
    gpuconv_error ignored;
    const bool planned =
        gc_problem_init(&problem, ir, frames, 0) &&
        gc_algorithms_choose(gc_cpu_algorithms, &problem, &device, &slot->costs, choice, NULL, &ignored) == GPUCONV_OK;
    gc_problem_free(&problem);
    return planned && (choice->algorithm == &gc_cpu_direct.row || choice->algorithm == &gc_cpu_overlap_save.row);
}

static void *in(gc_batch_slot *slot) {
    return slot->in;
}

static const void *out(gc_batch_slot *slot) {
    return slot->out;
}

/* Places the planar floats of an item: in the buffers of the slot where those are planar floats, else in scratch
 * memory. Unpacks the input. Returns false without memory. */
static bool place(gc_batch_slot *slot, const gc_batch_item *item) {
    const int64_t total = item->frames + item->ir->frames - 1;
    if (!reserve(&slot->input, item->in.channels, item->frames) || !reserve(&slot->output, item->out.channels, total))
        return false;
    gc_pcm_unpack(gc_simd_best(), item->in.format, (char *)slot->in + item->in.at, item->in.channels, item->frames,
                  slot->input.row, 0);
    for (int c = 0; item->out.row && c < item->out.channels; c++)
        slot->output.row[c] = (float *)(void *)((char *)slot->out + item->out.at + c * item->out.row);
    return true;
}

/* Convolves the channels of one item as rows. Returns false if there is too little memory. */
static bool convolve(gc_batch_slot *slot, gc_batch_item *item) {
    const gpuconv_ir *ir = item->ir;
    const int64_t total = item->frames + ir->frames - 1;
    gc_pcm_overs overs = {0};
    bool done = place(slot, item);
    for (int r = 0; r < ir->routes && done; r++) {
        const gc_route *route = &ir->route[r];
        const gc_row row = {.signal = {slot->input.row[route->input], item->frames, 1, GPUCONV_SAMPLE_F32},
                            .response = {item->planes + route->plane * ir->frames, ir->frames, 1, GPUCONV_SAMPLE_F32},
                            .output = slot->output.row[route->output],
                            .output_step = 1,
                            .output_frames = total};
        gc_row_plan plan;
        gc_row_plan_fill(&item->choice, &row, &plan);
        done = (!plan.transform || gc_row_tables_add(&slot->tables, plan.transform)) &&
               gc_row_convolve(&slot->tables, &slot->scratch, &plan, &row, NULL, plan.first_block, plan.blocks);
    }
    if (done && !item->out.row)
        gc_pcm_pack(gc_simd_best(), item->out.format, (const float *const *)slot->output.row, 0, item->out.channels,
                    total, (char *)slot->out + item->out.at, &overs);
    item->clipped = overs.clipped;
    return done;
}

static gpuconv_status begin(gc_batch_slot *slot, gc_batch_item *items, int count, int64_t in_bytes, int64_t out_bytes,
                            gpuconv_error *error) {
    (void)in_bytes;
    (void)out_bytes;
    bool done = true;
    for (int i = 0; i < count && done; i++)
        done = convolve(slot, &items[i]);
    slot->scratch.kept.data = NULL; /* the next items may have other taps in the same place */
    return done && !gc_cancelled() ? GPUCONV_OK : gc_fail_memory(error, "the scratch memory of a batch slot");
}

/* Does nothing: `begin` has computed the items. */
static gpuconv_status finish(gc_batch_slot *slot, gc_batch_item *items, int count, gpuconv_error *error) {
    (void)slot;
    (void)items;
    (void)count;
    (void)error;
    return GPUCONV_OK;
}

const gc_batch_backend gc_batch_cpu = {
    .slots = 1,
    .devices = devices,
    .new_slot = new_slot,
    .choose = choose,
    .in = in,
    .out = out,
    .begin = begin,
    .finish = finish,
    .free = free_slot,
};
