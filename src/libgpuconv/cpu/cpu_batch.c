/*
 * Batch slots on the CPU. A slot convolves each signal as a whole in its own buffers and transforms the response for
 * every signal. FFT tables and scratch memory are kept from one signal to the next: for a file of a few seconds the
 * convolution takes less time than creating an engine.
 */
#include "libgpuconv/engine/batch_convolver.h"

#include "cpu_algorithm.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/processor.h"
#include "libgpuconv/dsp/fft.h"
#include "libgpuconv/engine/choose.h"

#include <stdlib.h>
#include <string.h>

/* An FFT of one size with its buffers. */
typedef struct transform {
    gc_fft *fft;
    float *block;           /* samples */
    float *response, *work; /* spectra */
} transform;

struct gc_batch_slot {
    float *in, *out;
    gc_costs costs;
    gc_choice choice;                    /* of the current file, set by `prepare_plan` */
    transform size[GC_FFT_MAX_LOG2 + 1]; /* by log2 of the points; created on first use */
    float *padded;                       /* a signal with zeros before and after it */
    int64_t padded_size;
};

static int devices(gpuconv_error *error) {
    (void)error;
    return 1;
}

static void free_slot(gc_batch_slot *slot) {
    if (!slot)
        return;
    for (int i = 0; i <= GC_FFT_MAX_LOG2; i++) {
        gc_fft_free(slot->size[i].fft);
        free(slot->size[i].block);
        free(slot->size[i].response);
        free(slot->size[i].work);
    }
    free(slot->in);
    free(slot->out);
    free(slot->padded);
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

/* Copies `count` frames of the signal from frame `at` on, with zeros before frame 0 and behind the end. */
static void copy_padded(const float *x, int64_t frames, int64_t at, int64_t count, float *to) {
    const int64_t before = gc_min(count, gc_max(0, -at)), from = at + before;
    const int64_t inside = gc_max(0, gc_min(frames - from, count - before));
    memset(to, 0, (size_t)before * sizeof *to);
    if (inside > 0)
        memcpy(to + before, x + from, (size_t)inside * sizeof *to);
    memset(to + before + inside, 0, (size_t)(count - before - inside) * sizeof *to);
}

/* Convolves one item directly. Returns false if there is too little memory. */
static bool direct(gc_batch_slot *slot, const gc_batch_item *item) {
    const int64_t total = item->frames + item->taps_count - 1, before = item->taps_count - 1;
    if (before + total > slot->padded_size) {
        free(slot->padded);
        slot->padded_size = before + total;
        slot->padded = gc_calloc(slot->padded_size, sizeof *slot->padded);
    }
    if (!slot->padded) {
        slot->padded_size = 0;
        return false;
    }
    copy_padded(slot->in + item->in.at / 4, item->frames, -before, before + total, slot->padded);
    gc_simd_best()->direct(slot->padded + before, item->taps, item->taps_count, slot->out + item->out.at / 4, total, 0);
    return true;
}

/* Returns the FFT of a size and creates it on first use. Returns NULL if there is too little memory. */
static const transform *get_transform(gc_batch_slot *slot, int64_t points) {
    int log2 = 0;
    while (INT64_C(1) << log2 < points)
        log2++;
    transform *t = &slot->size[log2];
    if (!t->fft)
        t->fft = gc_fft_new(gc_simd_best(), points);
    if (t->fft && !t->block)
        t->block = gc_calloc(points, sizeof *t->block);
    if (t->fft && !t->response)
        t->response = gc_calloc(gc_fft_floats(t->fft), sizeof *t->response);
    if (t->fft && !t->work)
        t->work = gc_calloc(gc_fft_floats(t->fft), sizeof *t->work);
    return t->block && t->response && t->work ? t : NULL;
}

/* Convolves one item by overlap-save. Returns false if there is too little memory. */
static bool overlap_save(gc_batch_slot *slot, const gc_batch_item *item) {
    const gc_schedule *s = &slot->choice.schedule;
    const transform *t = get_transform(slot, s->transform);
    if (!t)
        return false;
    const int64_t points = s->transform, before = points - s->hop, total = item->frames + item->taps_count - 1;
    const float *x = slot->in + item->in.at / 4, *const factor[] = {t->work}, *const by[] = {t->response};
    float *y = slot->out + item->out.at / 4;
    const float scale = 2 / (float)points;
    for (int64_t k = 0; k < item->taps_count; k++)
        t->block[k] = item->taps[k] * scale;
    memset(t->block + item->taps_count, 0, (size_t)(points - item->taps_count) * sizeof *t->block);
    gc_fft_forward(t->fft, t->block, t->response);
    for (int64_t n = 0; n < total; n += s->hop) {
        const int64_t at = n - before;
        const bool inside = at >= 0 && at + points <= item->frames;
        if (!inside)
            copy_padded(x, item->frames, at, points, t->block);
        gc_fft_forward(t->fft, inside ? x + at : t->block, t->work);
        if (n + s->hop <= total) {
            gc_fft_inverse(t->fft, factor, by, 1, t->work, y + n, before);
        } else {
            gc_fft_inverse(t->fft, factor, by, 1, t->work, t->block, before);
            memcpy(y + n, t->block, (size_t)(total - n) * sizeof *y);
        }
    }
    return true;
}

static gpuconv_status begin(gc_batch_slot *slot, const gc_batch_item *items, int count, int64_t in_bytes,
                            int64_t out_bytes, gpuconv_error *error) {
    (void)in_bytes;
    (void)out_bytes;
    bool (*convolve)(gc_batch_slot *, const gc_batch_item *) =
        slot->choice.algorithm == &gc_cpu_direct.row ? direct : overlap_save;
    for (int i = 0; i < count; i++)
        if (!convolve(slot, &items[i]))
            return gc_fail_memory(error, "the scratch memory of a batch slot");
    return GPUCONV_OK;
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
