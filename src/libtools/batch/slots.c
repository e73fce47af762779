/* Slots of a batch worker: while one slot's tasks are convolved, the next slot is filled. */
#include "slots.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/ir/object.h"
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2, SLOT_OUTPUTS = 512, SLOT_TASKS = 128, FILE_FLOATS = 1 << 20, FILE_BYTES = 4 * FILE_FLOATS };

/* A slot with this many bytes is started at once: more bytes would be evicted from the caches before they are used. */
enum { ENOUGH_BYTES = 2 << 20 };

typedef struct gc_slot {
    gc_batch_slot *device;
    bool in_flight; /* the device convolves: its buffers must not be touched */
    gc_task task[SLOT_TASKS];
    gc_batch_item item[SLOT_OUTPUTS]; /* one for each part */
    int tasks, items, outputs;
    int64_t in_used, out_used; /* bytes */
} gc_slot;

struct gc_slots {
    const gc_worker *w;
    char where[16]; /* the device's name in reports */
    gc_slot slot[SLOTS];
    int count, filling;
    int tasks_max; /* per slot: 1 on the CPU, which convolves a file while it is in the cache */
    gc_scratch scratch;
};

static int64_t total_frames(const gc_part *p) {
    return p->frames + p->response->ir->frames - 1;
}

/* Decides whether one part can be convolved in a slot, and chooses how. */
static bool accepts_part(const gc_slots *s, gc_part *p) {
    const gc_batch_backend *b = s->w->backend;
    const gpuconv_ir *ir = p->response->ir;
    return p->frames > 0 && gc_ir_one_route_each(ir) && ir->outputs <= SLOT_OUTPUTS / 8 &&
           ir->inputs * gc_round_up(p->frames, 4) <= FILE_FLOATS &&
           ir->outputs * gc_round_up(total_frames(p), 4) <= FILE_FLOATS &&
           (!b->choose || b->choose(s->slot[0].device, ir, p->frames, &p->choice));
}

const char *gc_slots_where(const gc_slots *s) {
    return s->where;
}

bool gc_slots_accept(const gc_slots *s, gc_task *t) {
    int64_t in = 0, out = 0;
    int outputs = 0;
    for (int i = 0; i < t->parts; i++) {
        gc_part *p = &t->part[i];
        if (!accepts_part(s, p))
            return false;
        in += i < t->sources ? p->response->ir->inputs * gc_round_up(p->frames, 4) : 0;
        out += p->response->ir->outputs * gc_round_up(total_frames(p), 4);
        outputs += p->response->ir->outputs;
    }
    return in <= FILE_FLOATS && out <= FILE_FLOATS && outputs <= SLOT_OUTPUTS;
}

/* Chooses the sample formats and the layout of a task in the buffers of a slot. */
static gpuconv_status choose_layout(const gc_worker *w, gc_task *t, gpuconv_error *error) {
    const gc_output_options wish = gc_task_options(w, t);
    const gc_recipe *r = gc_entry_recipe(gc_task_entry(w, t));
    gpuconv_status status = GPUCONV_OK;
    for (int i = 0; i < t->parts && !status; i++) {
        gc_part *p = &t->part[i];
        const int outputs = p->response->ir->outputs;
        const int64_t total = total_frames(p);
        p->in = (gc_batch_samples){.format = p->info.pcm, .channels = p->info.channels};
        p->in_bytes = i < t->sources ? gc_round_up(p->frames * p->info.channels * gc_pcm_bytes(p->info.pcm), 16) : 0;
        t->stored = !t->mixed && p->skip == 0 && p->frames + p->after == total && r->tail_floor >= 0 && !r->dither;
        p->out = (gc_batch_samples){.channels = outputs};
        status = gc_writer_predict_pcm(t->path, &wish, &p->info, outputs, total, &p->out.format, error);
        if (!t->stored) {
            p->out.format = (gc_pcm){GC_F32, 32};
            p->out.row = 4 * gc_round_up(total, 4);
        }
        p->out_bytes =
            gc_round_up(t->stored ? outputs * total * gc_pcm_bytes(p->out.format) : outputs * p->out.row, 16);
    }
    return status;
}

static bool fits(const gc_slot *slot, const gc_task *t) {
    int64_t in = slot->in_used, out = slot->out_used;
    int outputs = slot->outputs;
    for (int i = 0; i < t->parts; i++) {
        in += t->part[i].in_bytes;
        out += t->part[i].out_bytes;
        outputs += t->part[i].response->ir->outputs;
    }
    return slot->tasks < SLOT_TASKS && outputs <= SLOT_OUTPUTS && in <= FILE_BYTES && out <= FILE_BYTES;
}

/* Returns the response's planes in the memory of the worker's device, after copying them there at the first call. NULL:
 * out of memory on the device. */
static const float *device_planes(const gc_worker *w, gc_response *r) {
    gc_responses_lock(w->responses, r);
    if (!r->planes[w->device])
        r->planes[w->device] = w->backend->upload_taps(w->device, r->ir->taps, r->ir->planes * r->ir->frames);
    const float *planes = r->planes[w->device];
    gc_responses_unlock(w->responses, r);
    return planes;
}

/* Places the planes of the part's response where the device can read them. A response that is used for the first time
 * is copied into the slot's input; one that is used again is kept on the device.
 * @return false: out of memory on the device */
static bool place_response(const gc_worker *w, gc_slot *slot, const gc_part *p, gc_batch_item *item) {
    const gpuconv_ir *ir = p->response->ir;
    const int64_t bytes = gc_round_up(ir->planes * ir->frames * (int64_t)sizeof(float), 16);
    item->planes = w->backend->upload_taps ? NULL : ir->taps;
    item->planes_at = slot->in_used;
    if (item->planes)
        return true;
    if (p->response_is_new && slot->in_used + bytes <= FILE_BYTES) {
        memcpy(slot->device->in + slot->in_used, ir->taps, (size_t)(ir->planes * ir->frames) * sizeof(float));
        slot->in_used += bytes;
        return true;
    }
    item->planes = device_planes(w, p->response);
    return item->planes != NULL;
}

/* Measures the input of a part, which lies in the slot as the file's samples. */
static bool measure_power(gc_part *p, const void *raw) {
    float **row = gc_calloc(p->info.channels, (int64_t)sizeof *row);
    const int64_t pitch = gc_round_up(p->frames, 16);
    float *samples = row ? gc_calloc(pitch * p->info.channels, sizeof *samples) : NULL;
    for (int c = 0; samples && c < p->info.channels; c++)
        row[c] = samples + c * pitch;
    if (samples) {
        gc_pcm_unpack(gc_simd_best(), p->info.pcm, raw, p->info.channels, p->frames, row, 0);
        p->power = gc_mean_power((const float *const *)row, p->info.channels, p->frames);
    }
    free(samples);
    free((void *)row);
    return samples != NULL;
}

/* Reads the input of a part into the slot. */
static gpuconv_status load_input(const gc_slots *s, gc_slot *slot, const gc_task *t, gc_part *p, gpuconv_error *error) {
    char *in = slot->device->in + slot->in_used;
    int64_t got;
    gpuconv_status status = gc_reader_read(p->reader, in, p->frames, &got, error);
    if (status)
        return status;
    status = gc_task_check_input(s->w, t, p, got, error);
    if (status)
        return status;
    if (gc_entry_recipe(gc_task_entry(s->w, t))->level == GC_LEVEL_INPUT && !measure_power(p, in))
        return gc_fail_memory(error, t->path);
    p->in.at = slot->in_used;
    slot->in_used += p->in_bytes;
    return GPUCONV_OK;
}

/* Reads the task's inputs and appends its parts to the slot that is being filled. */
static gpuconv_status load(gc_slots *s, gc_task *t, gpuconv_error *error) {
    gc_slot *slot = &s->slot[s->filling];
    const int64_t in_before = slot->in_used, out_before = slot->out_used;
    const int items_before = slot->items, outputs_before = slot->outputs;
    gpuconv_status status = GPUCONV_OK;
    for (int i = 0; i < t->parts && !status; i++) {
        gc_part *p = &t->part[i];
        if (i < t->sources)
            status = load_input(s, slot, t, p, error);
        else
            p->in.at = t->part[p->input_of].in.at;
        p->out.at = slot->out_used;
        p->item = slot->items++;
        slot->item[p->item] = (gc_batch_item){
            .ir = p->response->ir, .in = p->in, .out = p->out, .frames = p->frames, .choice = p->choice};
        if (!status && !place_response(s->w, slot, p, &slot->item[p->item]))
            status = gc_fail_memory(error, t->path);
        slot->out_used += p->out_bytes;
        slot->outputs += p->out.channels;
    }
    if (status) {
        slot->in_used = in_before;
        slot->out_used = out_before;
        slot->items = items_before;
        slot->outputs = outputs_before;
        return status;
    }
    for (int i = 0; i < t->sources; i++) { /* now, because a process has few file descriptors */
        t->not_finite += gc_reader_nonfinite(t->part[i].reader, NULL);
        gc_reader_free(t->part[i].reader);
        t->part[i].reader = NULL;
    }
    slot->task[slot->tasks++] = *t;
    return GPUCONV_OK;
}

/* Writes an output that the slot delivers in the file's own format, and commits it. */
static gpuconv_status store_as_is(gc_slots *s, const gc_slot *slot, gc_task *t, gpuconv_error *error) {
    const gc_part *p = &t->part[0];
    const char *out = slot->device->out + p->out.at;
    gc_writer *writer = NULL;
    t->written = total_frames(p);
    gpuconv_status status = gc_task_open_output(s->w, t, t->path, p->response->ir->outputs, t->written, &writer, error);
    t->clipped = slot->item[p->item].clipped;
    if (!status)
        status = gc_store_samples(s->w, writer, out, t->written, error);
    if (!status)
        status = gc_task_commit(t, writer, false, error);
    gc_writer_free(writer);
    return status;
}

/* Writes the output of one task of a slot and commits it. */
static gpuconv_status store(gc_slots *s, const gc_slot *slot, gc_task *t, gpuconv_error *error) {
    char *out = slot->device->out; /* only read */
    if (t->stored)
        return store_as_is(s, slot, t, error);
    const int channels = t->part[0].response->ir->outputs;
    float **row = gc_calloc((int64_t)t->parts * channels, (int64_t)sizeof *row);
    float ***rows = gc_calloc(t->parts, (int64_t)sizeof *rows);
    for (int i = 0; row && rows && i < t->parts; i++) {
        rows[i] = row + i * channels;
        for (int c = 0; c < channels; c++)
            rows[i][c] = (float *)(void *)(out + t->part[i].out.at + c * t->part[i].out.row);
    }
    gpuconv_status status = row && rows ? gc_store_rows(s->w, t, (float *const *const *)rows, &s->scratch, error)
                                        : gc_fail_memory(error, t->path);
    free((void *)rows);
    free((void *)row);
    return status;
}

/* Waits for the slot's convolutions, if they are in flight, then stores, reports and closes its tasks and empties the
 * slot. An error of the device (`err`, or that of waiting) is reported for every task and returned. */
static gpuconv_status finish_slot(gc_slots *s, gc_slot *slot, gpuconv_status err, gpuconv_error *error) {
    if (slot->in_flight && !err && s->w->backend->finish)
        err = s->w->backend->finish(slot->device, slot->item, slot->items, error);
    for (int i = 0; i < slot->tasks; i++) {
        gpuconv_error why = *error;
        slot->task[i].where = s->where;
        bool stop = gc_flag_is_raised(s->w->cancel);
        gpuconv_status status = err ? err : stop ? GPUCONV_OK : store(s, slot, &slot->task[i], &why);
        if (!stop)
            gc_task_report(s->w, &slot->task[i], status, &why);
        gc_task_close(s->w, &slot->task[i]);
    }
    slot->in_flight = false;
    slot->tasks = slot->items = slot->outputs = 0;
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
        t->where = s->where;
        gc_task_report(s->w, t, loaded, &why);
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
        status = w->backend->new_slot(w->device, FILE_BYTES, SLOT_OUTPUTS, &s->slot[s->count].device,
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
    gc_scratch_free(&s->scratch);
    free(s);
}
