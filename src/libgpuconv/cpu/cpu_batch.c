/*
 * Batch slots on the CPU. A slot convolves each signal as a row (row_convolve.h) with the plan of an engine, and
 * transforms the response for every signal. FFT tables and scratch memory are kept from one signal to the next: for a
 * file of a few seconds the convolution takes less time than creating an engine.
 */
#include "libgpuconv/engine/batch_convolver.h"

#include "cpu_algorithm.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/processor.h"
#include "row_convolve.h"

#include <stdlib.h>

struct gc_batch_slot {
    float *in, *out;
    gc_costs costs;
    gc_choice choice; /* for the current file, set by `prepare_plan` */
    gc_row_tables tables;
    gc_row_scratch scratch;
};

static int devices(gpuconv_error *error) {
    (void)error;
    return 1;
}

static void free_slot(gc_batch_slot *slot) {
    if (!slot)
        return;
    gc_row_tables_free(&slot->tables);
    gc_row_scratch_free(&slot->scratch);
    free(slot->in);
    free(slot->out);
    free(slot);
}

static gpuconv_status new_slot(int device, int64_t bytes, int items, gc_batch_slot **slot, gpuconv_error *error) {
    (void)device;
    (void)items;
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

/* Plans as gpuconv_plan_new does for one file, so that both give the same bytes; the number of threads does not matter.
 * Returns false for the other algorithms, which the engine does. */
static bool prepare_plan(gc_batch_slot *slot, const gpuconv_ir *ir, int64_t frames) {
    const gc_device device = {.threads = 1};
    gc_problem problem;
    gpuconv_error ignored;
    const bool planned = gc_problem_init(&problem, ir, frames, 0) &&
                         gc_algorithms_choose(gc_cpu_algorithms, &problem, &device, &slot->costs, &slot->choice, NULL,
                                              &ignored) == GPUCONV_OK;
    gc_problem_free(&problem);
    return planned &&
           (slot->choice.algorithm == &gc_cpu_direct.row || slot->choice.algorithm == &gc_cpu_overlap_save.row);
}

static void *in(gc_batch_slot *slot) {
    return slot->in;
}

static const void *out(gc_batch_slot *slot) {
    return slot->out;
}

/* Convolves one item as a row. Returns false if there is too little memory. */
static bool convolve(gc_batch_slot *slot, const gc_batch_item *item) {
    const gc_row row = {.signal = {slot->in + item->in.at / 4, item->frames, 1},
                        .response = {item->taps, item->taps_count, 1},
                        .output = slot->out + item->out.at / 4,
                        .output_step = 1,
                        .output_frames = item->frames + item->taps_count - 1};
    gc_row_plan plan;
    gc_row_plan_fill(&slot->choice, &row, &plan);
    return (!plan.transform || gc_row_tables_add(&slot->tables, plan.transform)) &&
           gc_row_convolve(&slot->tables, &slot->scratch, &plan, &row, NULL, plan.first_block, plan.blocks);
}

static gpuconv_status begin(gc_batch_slot *slot, const gc_batch_item *items, int count, int64_t in_bytes,
                            int64_t out_bytes, gpuconv_error *error) {
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

/* Returns the responses themselves: the CPU reads them where they are. */
static float *upload_taps(int device, const float *planes, int64_t floats) {
    (void)device;
    (void)floats;
    return (float *)planes;
}

static void free_taps(int device, float *planes) { /* NOLINT(readability-non-const-parameter): a table entry */
    (void)device;
    (void)planes;
}

const gc_batch_backend gc_batch_cpu = {
    .slots = 1,
    .devices = devices,
    .new_slot = new_slot,
    .prepare_plan = prepare_plan,
    .in = in,
    .out = out,
    .begin = begin,
    .finish = finish,
    .free = free_slot,
    .upload_taps = upload_taps,
    .free_taps = free_taps,
};
