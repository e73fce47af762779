/*
 * Lanes on cores: a signal is convolved as a whole in the lane's memory, through a response that is met once, with
 * tables and scratch that the lane keeps from one signal to the next. A file of seconds costs less to convolve than an
 * engine costs to make.
 */
#include "libgpuconv/engine/batch_convolver.h"

#include "cpu_cost.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/processor.h"
#include "libgpuconv/dsp/fft.h"
#include "libgpuconv/engine/costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* For blocks of one size. */
typedef struct transform {
    gc_fft *fft;
    float *block, *response, *work; /* samples; spectra */
} transform;

struct gc_batch_slot {
    float *in, *out;
    gc_costs costs;
    gc_schedule schedule;                 /* of the file at hand */
    transform size[GC_FFT_MOST_LOG2 + 1]; /* by the logarithm of their points, as they are wanted */
    int64_t padded;
    float *pad; /* a signal with silence around it */
};

static int devices(gpuconv_error *error) {
    (void)error;
    return 1;
}

static void free_lane(gc_batch_slot *l) {
    if (!l)
        return;
    for (int i = 0; i <= GC_FFT_MOST_LOG2; i++) {
        gc_fft_free(l->size[i].fft);
        free(l->size[i].block);
        free(l->size[i].response);
        free(l->size[i].work);
    }
    free(l->in);
    free(l->out);
    free(l->pad);
    free(l);
}

static gpuconv_status new_lane(int device, int64_t bytes, int items, gc_batch_slot **lane, gpuconv_error *error) {
    (void)device;
    (void)items;
    gc_batch_slot *l = gc_calloc(1, sizeof *l);
    *lane = NULL;
    if (l) {
        char name[128];
        l->in = gc_calloc(bytes, 1);
        l->out = gc_calloc(bytes, 1);
        gc_processor_name(name, sizeof name);
        l->costs = gc_costs_of_cpu(name);
    }
    if (!l || !l->in || !l->out) {
        free_lane(l);
        return gc_fail_memory(error, "a lane");
    }
    *lane = l;
    return GPUCONV_OK;
}

/* Plans as the command alone does, whatever its threads, so that a file gives the same bytes either way. Partitions are
 * left to the engine. */
static bool suits(gc_batch_slot *l, const gpuconv_ir *ir, int64_t frames) {
    gpuconv_plan plan = {.ir = (gpuconv_ir *)ir, .device = {.threads = 1}};
    gpuconv_error none;
    double least = HUGE_VAL;
    for (int a = GPUCONV_ALGORITHM_DIRECT; a <= GPUCONV_ALGORITHM_PARTITIONED; a++) {
        if (gc_cpu_plan_by(&l->costs, &plan, (gpuconv_algorithm)a, frames, &none) == GPUCONV_OK && plan.cost < least) {
            least = plan.cost;
            l->schedule = plan.schedule;
        }
    }
    return least < HUGE_VAL && l->schedule.algorithm != GPUCONV_ALGORITHM_PARTITIONED;
}

static void *in(gc_batch_slot *l) {
    return l->in;
}

static const void *out(gc_batch_slot *l) {
    return l->out;
}

/* Frames from `at` on, silence where the signal is not. */
static void piece(const float *x, int64_t frames, int64_t at, int64_t count, float *to) {
    const int64_t before = gc_min(count, gc_max(0, -at)), from = at + before;
    const int64_t there = gc_max(0, gc_min(frames - from, count - before));
    memset(to, 0, (size_t)before * sizeof *to);
    if (there > 0)
        memcpy(to + before, x + from, (size_t)there * sizeof *to);
    memset(to + before + there, 0, (size_t)(count - before - there) * sizeof *to);
}

static bool direct(gc_batch_slot *l, const gc_batch_item *item) {
    const int64_t total = item->frames + item->taps_count - 1, before = item->taps_count - 1;
    if (before + total > l->padded) {
        free(l->pad);
        l->padded = before + total;
        l->pad = gc_calloc(l->padded, sizeof *l->pad);
    }
    if (!l->pad) {
        l->padded = 0;
        return false;
    }
    piece(l->in + item->in.at / 4, item->frames, -before, before + total, l->pad);
    gc_simd_best()->direct(l->pad + before, item->taps, item->taps_count, l->out + item->out.at / 4, total, 0);
    return true;
}

/* NULL: no memory. */
static const transform *transform_of(gc_batch_slot *l, int64_t points) {
    int log2 = 0;
    while (INT64_C(1) << log2 < points)
        log2++;
    transform *t = &l->size[log2];
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

static bool overlap_save(gc_batch_slot *l, const gc_batch_item *item) {
    const gc_schedule *s = &l->schedule;
    const transform *t = transform_of(l, s->transform);
    if (!t)
        return false;
    const int64_t points = s->transform, before = points - s->hop, total = item->frames + item->taps_count - 1;
    const float *x = l->in + item->in.at / 4, *const factor[] = {t->work}, *const by[] = {t->response};
    float *y = l->out + item->out.at / 4;
    const float scale = 2 / (float)points;
    for (int64_t k = 0; k < item->taps_count; k++)
        t->block[k] = item->taps[k] * scale;
    memset(t->block + item->taps_count, 0, (size_t)(points - item->taps_count) * sizeof *t->block);
    gc_fft_forward(t->fft, t->block, t->response);
    for (int64_t n = 0; n < total; n += s->hop) {
        const int64_t at = n - before;
        const bool inside = at >= 0 && at + points <= item->frames;
        if (!inside)
            piece(x, item->frames, at, points, t->block);
        gc_fft_forward(t->fft, inside ? x + at : t->block, t->work);
        if (n + s->hop <= total) {
            gc_fft_backward(t->fft, factor, by, 1, t->work, y + n, before);
        } else {
            gc_fft_backward(t->fft, factor, by, 1, t->work, t->block, before);
            memcpy(y + n, t->block, (size_t)(total - n) * sizeof *y);
        }
    }
    return true;
}

static gpuconv_status begin(gc_batch_slot *l, const gc_batch_item *items, int count, int64_t in_bytes,
                            int64_t out_bytes, gpuconv_error *error) {
    (void)in_bytes;
    (void)out_bytes;
    bool (*convolve)(gc_batch_slot *, const gc_batch_item *) =
        l->schedule.algorithm == GPUCONV_ALGORITHM_DIRECT ? direct : overlap_save;
    for (int i = 0; i < count; i++)
        if (!convolve(l, &items[i]))
            return gc_fail_memory(error, "a lane's scratch");
    return GPUCONV_OK;
}

/* All was done when it was begun. */
static gpuconv_status finish(gc_batch_slot *l, gc_batch_item *items, int count, gpuconv_error *error) {
    (void)l;
    (void)items;
    (void)count;
    (void)error;
    return GPUCONV_OK;
}

/* Where the response lies is where it is wanted. */
static float *keep(int device, const float *planes, int64_t floats) {
    (void)device;
    (void)floats;
    return (float *)planes;
}

static void forget(int device, float *planes) { /* NOLINT(readability-non-const-parameter): as the seam has it */
    (void)device;
    (void)planes;
}

const gc_batch_backend gc_batch_cpu = {
    .slots = 1,
    .devices = devices,
    .new_slot = new_lane,
    .suits = suits,
    .in = in,
    .out = out,
    .begin = begin,
    .finish = finish,
    .free = free_lane,
    .keep = keep,
    .forget = forget,
};
