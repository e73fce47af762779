/* Slots of a batch worker: while one slot's tasks are convolved, the next slot is filled. */
#include "slots.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/ir/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2, SLOT_ITEMS = 512, SLOT_TASKS = 128, FILE_FLOATS = 1 << 20, FILE_BYTES = 4 * FILE_FLOATS };

/* A slot with this many bytes is started at once: more bytes would be evicted from the caches before they are used. */
enum { ENOUGH_BYTES = 2 << 20 };

typedef struct gc_slot {
    gc_batch_slot *device;
    bool in_flight; /* the device convolves: its buffers must not be touched */
    gc_task task[SLOT_TASKS];
    gc_batch_item item[SLOT_ITEMS];
    int tasks, items;
    int64_t in_used, out_used; /* bytes */
} gc_slot;

struct gc_slots {
    const gc_worker *w;
    char where[16]; /* the device's name in reports */
    gc_slot slot[SLOTS];
    int count, filling;
    int tasks_max; /* per slot: 1 on the CPU, which convolves a file while it is in the cache */
    void *raw;     /* samples of one file in its own format */
    int64_t raw_bytes;
    float **rows; /* first sample of each channel of a file */
    int rows_capacity;
};

bool gc_slots_accept(const gc_slots *s, const gc_task *t) {
    const gc_batch_backend *b = s->w->backend;
    const gpuconv_ir *ir = t->response->ir;
    int64_t total = t->frames + ir->frames - 1;
    return t->frames > 0 && ir->lead == 0 && gc_ir_one_route_each(ir) &&
           ir->inputs * gc_round_up(t->frames, 4) <= FILE_FLOATS &&
           ir->outputs * gc_round_up(total, 4) <= FILE_FLOATS && ir->outputs <= SLOT_ITEMS / 8 &&
           (!b->suits || b->suits(s->slot[0].device, ir, t->frames));
}

/* Chooses the sample formats and the layout of a task in the buffers of a slot. */
static gpuconv_status choose_layout(const gc_worker *w, gc_task *t, gpuconv_error *error) {
    const gpuconv_ir *ir = t->response->ir;
    const int64_t total = t->frames + ir->frames - 1, taps = w->backend->stored_taps;
    const gc_pcm floats = {GC_F32, 32};
    t->in_pcm = taps > 0 ? t->info.pcm : floats;
    t->in_row = taps > 0 ? gc_pcm_bytes(t->in_pcm) : 4 * gc_round_up(t->frames, 4);
    t->in_bytes = gc_round_up(ir->inputs * (taps > 0 ? t->frames * t->in_row : t->in_row), 16);
    gpuconv_status status = gc_writer_predict_pcm(t->path, &t->info, ir->outputs, total, &t->out_pcm, error);
    t->stored = taps > 0 && (ir->frames <= taps || t->out_pcm.container == GC_F32);
    if (!t->stored)
        t->out_pcm = floats;
    t->out_row = t->stored ? gc_pcm_bytes(t->out_pcm) : 4 * gc_round_up(total, 4);
    t->out_bytes = gc_round_up(ir->outputs * (t->stored ? total * t->out_row : t->out_row), 16);
    return status;
}

static bool fits(const gc_slot *slot, const gc_task *t) {
    return slot->tasks < SLOT_TASKS && slot->items + t->response->ir->outputs <= SLOT_ITEMS &&
           slot->in_used + t->in_bytes <= FILE_BYTES && slot->out_used + t->out_bytes <= FILE_BYTES;
}

/* Returns the response's planes in the memory of the worker's device, after copying them there at the first call. NULL:
 * out of memory on the device. */
static const float *device_planes(const gc_worker *w, gc_response *r) {
    gc_responses_lock(w->responses, r);
    if (!r->planes[w->device])
        r->planes[w->device] = w->backend->keep(w->device, r->ir->taps, r->ir->planes * r->ir->frames);
    const float *planes = r->planes[w->device];
    gc_responses_unlock(w->responses, r);
    return planes;
}

/* Places the planes of the task's response where the device can read them. A response that is used for the first time
 * is copied into the slot's input at byte *at, with *planes NULL; one that is used again is kept on the device, at
 * *planes.
 * @return false: out of memory on the device */
static bool place_response(const gc_worker *w, gc_slot *slot, const gc_task *t, int64_t *at, const float **planes) {
    const gpuconv_ir *ir = t->response->ir;
    const int64_t bytes = gc_round_up(ir->planes * ir->frames * (int64_t)sizeof(float), 16);
    *at = slot->in_used;
    *planes = NULL;
    if (w->backend->stored_taps > 0 && t->response_is_new && slot->in_used + bytes <= FILE_BYTES) {
        memcpy((char *)w->backend->in(slot->device) + *at, ir->taps, (size_t)(ir->planes * ir->frames) * sizeof(float));
        slot->in_used += bytes;
        return true;
    }
    *planes = device_planes(w, t->response);
    return *planes != NULL;
}

/* Enlarges s->raw to at least `bytes`. @return false: out of memory */
static bool reserve_raw(gc_slots *s, int64_t bytes) {
    if (bytes > s->raw_bytes) {
        free(s->raw);
        s->raw = gc_calloc(bytes, 1);
        s->raw_bytes = s->raw ? bytes : 0;
    }
    return s->raw != NULL;
}

/* Enlarges s->rows to at least `channels`. An input may have more channels than a slot has items, because a matrix may
 * use a few of them only. @return false: out of memory */
static bool reserve_rows(gc_slots *s, int channels) {
    if (channels > s->rows_capacity) {
        free((void *)s->rows);
        s->rows = gc_calloc(channels, sizeof *s->rows);
        s->rows_capacity = s->rows ? channels : 0;
    }
    return s->rows != NULL;
}

/* Adds one item per route of the task's response to the slot. */
static void add_items(const gc_slots *s, gc_slot *slot, const gc_task *t, int64_t taps_at, const float *planes) {
    const gpuconv_ir *ir = t->response->ir;
    const int in_step = s->w->backend->stored_taps > 0 ? t->info.channels : 1;
    for (int r = 0; r < ir->routes; r++) {
        const gc_route *route = &ir->route[r];
        const int64_t plane = route->plane * ir->frames;
        slot->item[slot->items++] = (gc_batch_item){
            .in = {t->in_at + route->input * t->in_row, t->in_pcm, in_step},
            .out = {t->out_at + route->output * t->out_row, t->out_pcm, t->stored ? ir->outputs : 1},
            .frames = t->frames,
            .taps_count = ir->frames,
            .taps = planes ? planes + plane : NULL,
            .taps_at = taps_at + plane * (int64_t)sizeof(float),
        };
    }
}

/* Reads the task's input and appends it to the slot that is being filled. */
static gpuconv_status load(gc_slots *s, gc_task *t, gpuconv_error *error) {
    gc_slot *slot = &s->slot[s->filling];
    const gc_batch_backend *b = s->w->backend;
    const int channels = t->info.channels;
    const bool as_is = b->stored_taps > 0;
    char *in = (char *)b->in(slot->device) + slot->in_used;
    int64_t got, taps_at;
    const float *planes;
    if (!as_is && (!reserve_raw(s, t->frames * channels * gc_pcm_bytes(t->info.pcm)) || !reserve_rows(s, channels)))
        return gc_fail_memory(error, t->path);
    gpuconv_status status = gc_reader_read(t->reader, as_is ? in : s->raw, t->frames, &got, error);
    if (status)
        return status;
    if (got != t->frames)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: ends after %lld of %lld frames",
                       s->w->manifest->entry[t->entry].input, (long long)got, (long long)t->frames);
    if (!as_is) {
        for (int c = 0; c < channels; c++)
            s->rows[c] = (float *)(void *)(in + c * t->in_row);
        gc_pcm_unpack(gc_simd_best(), t->info.pcm, s->raw, channels, t->frames, s->rows, 0);
    }
    t->in_at = slot->in_used;
    t->out_at = slot->out_used;
    t->item = slot->items;
    slot->in_used += t->in_bytes;
    if (!place_response(s->w, slot, t, &taps_at, &planes)) {
        slot->in_used = t->in_at;
        return gc_fail_memory(error, t->path);
    }
    add_items(s, slot, t, taps_at, planes);
    slot->out_used += t->out_bytes;
    t->not_finite = gc_reader_nonfinite(t->reader, NULL);
    gc_reader_free(t->reader); /* now, because a process has few file descriptors */
    t->reader = NULL;
    slot->task[slot->tasks++] = *t;
    return GPUCONV_OK;
}

/* Writes samples. Threads that only copy samples into files are limited by w->copy_permits, because they contend inside
 * the kernel; threads that encode are not. */
static gpuconv_status write_samples(const gc_worker *w, gc_writer *writer, const void *raw, int64_t frames,
                                    gpuconv_error *error) {
    const bool copied = gc_writer_is_plain(writer);
    while (copied && sem_wait(w->copy_permits) != 0)
        ; /* interrupted by a signal */
    gpuconv_status status = gc_writer_write(writer, raw, frames, error);
    if (copied)
        sem_post(w->copy_permits);
    return status;
}

/* Writes the output of one task of a slot and commits it. */
static gpuconv_status store(gc_slots *s, const gc_slot *slot, gc_task *t, int64_t *clipped, gpuconv_error *error) {
    const gpuconv_ir *ir = t->response->ir;
    char *out = (char *)s->w->backend->out(slot->device) + t->out_at; /* only read */
    int64_t frames = t->frames + ir->frames - 1;
    gc_writer *writer = NULL;
    gc_pcm_overs overs = {0};
    gpuconv_status status = gc_task_open_output(s->w, t, &writer, error);
    if (!status && t->stored) {
        for (int r = 0; r < ir->routes; r++)
            overs.clipped += slot->item[t->item + r].clipped;
        status = write_samples(s->w, writer, out, frames, error);
    } else if (!status) {
        if (!reserve_raw(s, frames * ir->outputs * gc_pcm_bytes(gc_writer_pcm(writer))) ||
            !reserve_rows(s, ir->outputs))
            status = gc_fail_memory(error, t->path);
        for (int c = 0; c < ir->outputs && !status; c++)
            s->rows[c] = (float *)(void *)(out + c * t->out_row);
        if (!status) {
            gc_pcm_pack(gc_simd_best(), gc_writer_pcm(writer), (const float *const *)s->rows, 0, ir->outputs, frames,
                        s->raw, &overs);
            status = write_samples(s->w, writer, s->raw, frames, error);
        }
    }
    if (!status)
        status = gc_task_commit(s->w, t, writer, s->where, overs.clipped, error);
    gc_writer_free(writer);
    *clipped = overs.clipped;
    return status;
}

/* Waits for the slot's convolutions, if they are in flight, then stores, reports and closes its tasks and empties the
 * slot. An error of the device (`err`, or that of waiting) is reported for every task and returned. */
static gpuconv_status finish_slot(gc_slots *s, gc_slot *slot, gpuconv_status err, gpuconv_error *error) {
    if (slot->in_flight && !err)
        err = s->w->backend->finish(slot->device, slot->item, slot->items, error);
    for (int i = 0; i < slot->tasks; i++) {
        gpuconv_error why = *error;
        int64_t clipped = 0;
        bool stop = gc_flag_is_raised(s->w->cancel);
        gpuconv_status status = err ? err : stop ? GPUCONV_OK : store(s, slot, &slot->task[i], &clipped, &why);
        if (!stop)
            gc_task_report(s->w, &slot->task[i], status, &why, s->where, clipped);
        gc_task_close(s->w, &slot->task[i]);
    }
    slot->in_flight = false;
    slot->tasks = slot->items = 0;
    slot->in_used = slot->out_used = 0;
    return err;
}

/* Starts convolving the slot that was filled, and finishes the one to be filled next. */
gpuconv_status gc_slots_flush(gc_slots *s, gpuconv_error *error) {
    gc_slot *slot = &s->slot[s->filling];
    if (slot->tasks == 0)
        return GPUCONV_OK;
    gpuconv_status err =
        s->w->backend->begin(slot->device, slot->item, slot->items, slot->in_used, slot->out_used, error);
    if (err)
        return finish_slot(s, slot, err, error);
    slot->in_flight = true;
    s->filling = (s->filling + 1) % s->count;
    return finish_slot(s, &s->slot[s->filling], GPUCONV_OK, error);
}

gpuconv_status gc_slots_add(gc_slots *s, gc_task *t, gpuconv_error *error) {
    gpuconv_error why = {0};
    gpuconv_status status = GPUCONV_OK, loaded = choose_layout(s->w, t, &why);
    if (!loaded && !fits(&s->slot[s->filling], t)) {
        loaded = status = gc_slots_flush(s, error);
        why = *error;
    }
    if (!loaded)
        loaded = load(s, t, &why);
    if (loaded) {
        gc_task_report(s->w, t, loaded, &why, s->where, 0);
        gc_task_close(s->w, t);
    }
    const gc_slot *slot = &s->slot[s->filling];
    const bool enough = slot->tasks == s->tasks_max || gc_max(slot->in_used, slot->out_used) >= ENOUGH_BYTES;
    return status || !enough ? status : gc_slots_flush(s, error);
}

gpuconv_status gc_slots_finish(gc_slots *s, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    for (int i = 0; i < s->count; i++)
        if (s->slot[i].in_flight) {
            gpuconv_error later = {0};
            gpuconv_status err = finish_slot(s, &s->slot[i], GPUCONV_OK, status ? &later : error);
            status = status ? status : err;
        }
    return status;
}

gpuconv_status gc_slots_new(const gc_worker *w, gc_slots **slots, gpuconv_error *error) {
    *slots = NULL;
    gc_slots *s = gc_calloc(1, sizeof *s);
    if (!s)
        return gc_fail_memory(error, "a worker");
    s->w = w;
    s->tasks_max = w->devices == 0 ? 1 : SLOT_TASKS;
    if (w->devices == 0)
        (void)snprintf(s->where, sizeof s->where, "cpu");
    else
        (void)snprintf(s->where, sizeof s->where, "cuda %d", w->device);
    gpuconv_status status = GPUCONV_OK;
    for (; s->count < w->backend->slots && !status; s->count += !status) {
        gpuconv_error unused;
        status = w->backend->new_slot(w->device, FILE_BYTES, SLOT_ITEMS, &s->slot[s->count].device,
                                      s->count ? &unused : error);
    }
    if (s->count == 0) {
        gc_slots_free(s);
        return status;
    }
    *slots = s;
    return GPUCONV_OK;
}

void gc_slots_free(gc_slots *s) {
    if (!s)
        return;
    for (int i = 0; i < s->count; i++) {
        for (int k = 0; k < s->slot[i].tasks; k++)
            gc_task_close(s->w, &s->slot[i].task[k]);
        s->w->backend->free(s->slot[i].device);
    }
    free((void *)s->rows);
    free(s->raw);
    free(s);
}
