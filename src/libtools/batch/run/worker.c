/*
 * The loop of a batch worker. An entry is convolved in a slot if slots_accept says so; else - its length is unknown, it
 * is too long, or an output is the sum of several routes - it is streamed through an engine on the same device, which
 * takes the same memory for any length, or rendered in memory if it is mixed. The choice depends on the entry alone, so
 * its samples do, too.
 *
 * A slot holds the decoded inputs of several tasks in buffers of a device; the device convolves all of them at once. A
 * worker has two slots, so that it decodes and encodes files in one while the device convolves the other; it works with
 * one slot if there is no memory for two.
 */
#include "worker.h"

#include "libgpuconv/conv/engine.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/pcm.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/file/transfer.h"
#include "libgpuconv/ir/object.h"
#include "task.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The engine of a task that no slot takes ---- */

/* The job of an engine: inputs of `frames` frames (-1: unknown), interleaved samples of the formats `in` and `out`. */
typedef struct engine_wish {
    const gpuconv_ir *ir;
    int64_t frames;
    gc_pcm in, out;
} engine_wish;

static gpuconv_status make(const engine_wish *e, const gpuconv_config *config, const gpuconv_plan **plan,
                           gpuconv_engine **engine, gpuconv_error *error) {
    gpuconv_plan *made = NULL;
    gpuconv_status status = gpuconv_plan_new(e->ir, config, &made, error);
    if (!status)
        status = gc_engine_new(made, e->in, e->out, engine, error);
    *plan = made;
    gpuconv_plan_free(made); /* the engine keeps it */
    return status;
}

/* Makes an engine on the worker's GPU, or on all cores if the GPU cannot; in a batch on the CPU, whose workers occupy
 * the cores, on one thread. *plan: valid as long as the engine, which the caller frees. Fails as gpuconv_plan_new and
 * gpuconv_engine_new. */
static gpuconv_status worker_engine(const gc_worker *w, const engine_wish *e, const gpuconv_plan **plan,
                                    gpuconv_engine **engine, gpuconv_error *error) {
    gpuconv_config config = gpuconv_config_default();
    gpuconv_error ignored;
    config.frames = e->frames;
    config.backend = GPUCONV_BACKEND_CUDA;
    config.device = w->device;
    if (w->devices > 0 && !make(e, &config, plan, engine, &ignored))
        return GPUCONV_OK;
    config.backend = GPUCONV_BACKEND_CPU;
    config.threads = w->devices > 0 ? 0 : 1;
    return make(e, &config, plan, engine, error);
}

/* ---- Rendering: mixed outputs of any length, in memory ---- */

enum { PIECE = 1 << 16 };

/* Enlarges planar samples, of which `used` frames are kept. @return MEMORY */
static gpuconv_status enlarge(gc_mix *m, int64_t used, gpuconv_error *error) {
    gc_mix larger;
    gpuconv_status status = gc_mix_new(&larger, m->channels, gc_max(2 * m->frames, PIECE), m->rate, error);
    if (status)
        return status;
    for (int c = 0; c < m->channels; c++)
        memcpy(larger.row[c], m->row[c], (size_t)used * sizeof(float));
    gc_mix_free(m);
    *m = larger;
    return GPUCONV_OK;
}

/* Reads the input of a part up to its end, if its length is unknown. */
static gpuconv_status read_input(const gc_worker *w, gc_task *t, gc_part *p, gc_mix *x, gpuconv_error *error) {
    const int channels = p->info.channels;
    int64_t got = 1, used = 0;
    float *piece = gc_calloc((int64_t)PIECE * channels, sizeof *piece);
    gpuconv_status status = piece ? gc_mix_new(x, channels, p->frames < 0 ? PIECE : p->frames, p->info.rate, error)
                                  : gc_fail_memory(error, t->path);
    while (!status && got > 0 && used != p->frames) {
        if (used == x->frames && (status = enlarge(x, used, error)) != GPUCONV_OK)
            break;
        const int64_t wanted = gc_min(PIECE, x->frames - used);
        status = gc_reader_read_floats(p->reader, piece, wanted, &got, error);
        for (int c = 0; c < channels; c++)
            for (int64_t i = 0; i < got; i++)
                x->row[c][used + i] = piece[i * channels + c];
        used += status ? 0 : got;
    }
    free(piece);
    if (!status)
        status = gc_task_check_input(w, t, p, used, error);
    if (!status && used == 0)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "the input holds no frames");
    x->frames = p->frames = used;
    return status;
}

/* Feeds all of the input and takes all of the result. */
static gpuconv_status run_engine(gpuconv_engine *engine, const gc_mix *x, gc_mix *y, const volatile int *cancel,
                                 gpuconv_error *error) {
    const float **in = gc_calloc(x->channels, (int64_t)sizeof *in);
    float **out = gc_calloc(y->channels, (int64_t)sizeof *out);
    gpuconv_status status = in && out ? GPUCONV_OK : gc_fail_memory(error, "a convolution");
    int64_t fed = 0, taken = 0;
    while (!status && taken < y->frames) {
        int64_t produced = 0;
        const int64_t n = gc_min(PIECE, x->frames - fed);
        for (int c = 0; c < x->channels; c++)
            in[c] = x->row[c] + fed;
        for (int c = 0; c < y->channels; c++)
            out[c] = y->row[c] + taken;
        status = n > 0 ? gpuconv_engine_process(engine, in, n, out, &produced)
                       : gpuconv_engine_drain(engine, out, gc_min(PIECE, y->frames - taken), &produced);
        if (status)
            gc_fail(error, status, "the convolution failed");
        else if (n == 0 && produced == 0)
            status = gc_fail(error, GPUCONV_ERROR_STATE, "the convolution ended after %lld of %lld frames",
                             (long long)taken, (long long)y->frames);
        else if (cancel && *cancel)
            status = gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
        fed += n;
        taken += status ? 0 : produced;
    }
    free((void *)in);
    free((void *)out);
    return status;
}

/* Convolves an input with the response of a part. *on_gpu: becomes false if a GPU did not compute it. */
static gpuconv_status convolve(const gc_worker *w, const gc_part *p, const gc_mix *x, gc_mix *y, bool *on_gpu,
                               gpuconv_error *error) {
    const gpuconv_ir *ir = p->response->ir;
    const gc_pcm floats = {GC_F32, 32};
    const gpuconv_plan *plan;
    gpuconv_engine *engine = NULL;
    gpuconv_status status = gc_mix_new(y, ir->outputs, x->frames + ir->frames - 1, x->rate, error);
    if (!status)
        status = worker_engine(w, &(engine_wish){ir, x->frames, floats, floats}, &plan, &engine, error);
    *on_gpu = *on_gpu && !status && gpuconv_plan_backend(plan) == GPUCONV_BACKEND_CUDA;
    if (!status)
        status = run_engine(engine, x, y, w->cancel, error);
    gpuconv_engine_free(engine);
    return status;
}

/* Reads the input of source `i` and convolves it for the output and for the early reflections. */
static gpuconv_status render_source(const gc_worker *w, gc_task *t, int i, gc_mix *results, bool *on_gpu,
                                    gpuconv_error *error) {
    gpuconv_error inner = {0};
    gc_mix x = {0};
    gc_part *p = &t->part[i];
    const gc_source source = gc_entry_source(gc_task_entry(w, t), i);
    gpuconv_status status = read_input(w, t, p, &x, &inner);
    if (!status) {
        t->not_finite += gc_reader_nonfinite(p->reader, NULL);
        gc_reader_free(p->reader);
        p->reader = NULL;
        if (gc_entry_recipe(gc_task_entry(w, t))->settings.level == GC_LEVEL_INPUT)
            p->power = gc_mean_power((const float *const *)x.row, x.channels, x.frames);
        status = gc_task_set_window(w, t, p, &inner);
    }
    if (!status)
        status = convolve(w, p, &x, &results[i], on_gpu, &inner);
    if (!status && t->early_path) {
        t->part[t->sources + i].frames = p->frames;
        status = convolve(w, &t->part[t->sources + i], &x, &results[t->sources + i], on_gpu, &inner);
    }
    gc_mix_free(&x);
    return status ? gc_fail(error, status, "%s: %s", source.input, inner.message) : GPUCONV_OK;
}

/* Reads the inputs, convolves every part with an engine of its own  and stores the outputs. The memory
 * grows with the length of the input. device: the name of the worker's device. Fails as the reader, worker_engine
 * and gc_store_rows. */
static gpuconv_status render(const gc_worker *w, gc_task *t, const char *device, gpuconv_error *error) {
    bool on_gpu = true;
    gc_mix *results = gc_calloc(t->parts, sizeof *results);
    float ***rows = gc_calloc(t->parts, (int64_t)sizeof *rows);
    gc_scratch scratch = {0};
    gpuconv_status status = results && rows ? GPUCONV_OK : gc_fail_memory(error, t->path);
    for (int i = 0; i < t->sources && !status; i++)
        status = render_source(w, t, i, results, &on_gpu, error);
    for (int i = 0; i < t->parts && !status; i++)
        rows[i] = results[i].row;
    t->where = on_gpu ? device : "cpu";
    if (!status)
        status = gc_store_rows(w, t, (float *const *const *)rows, &scratch, error);
    for (int i = 0; i < t->parts && results; i++)
        gc_mix_free(&results[i]);
    gc_scratch_free(&scratch);
    free((void *)rows);
    free(results);
    return status;
}

/* ---- Slots ---- */

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

typedef struct worker_slots {
    const gc_worker *w;
    char where[16]; /* the device's name in reports */
    gc_slot slot[SLOTS];
    int count, filling;
    int tasks_max; /* per slot: 1 on the CPU, which convolves a file while it is in the cache */
    gc_scratch scratch;
} worker_slots;

static int64_t total_frames(const gc_part *p) {
    return p->frames + p->response->ir->frames - 1;
}

/* Decides whether one part can be convolved in a slot, and chooses how. */
static bool accepts_part(const worker_slots *s, gc_part *p) {
    const gc_batch_backend *b = s->w->backend->batch;
    const gpuconv_ir *ir = p->response->ir;
    return p->frames > 0 && gc_ir_one_route_each(ir) && ir->outputs <= SLOT_OUTPUTS / 8 &&
           ir->inputs * gc_round_up(p->frames, 4) <= FILE_FLOATS &&
           ir->outputs * gc_round_up(total_frames(p), 4) <= FILE_FLOATS &&
           (!b->choose || b->choose(s->slot[0].device, ir, p->frames, &p->choice));
}

/* Returns the name of the worker's device in reports. */
static const char *slots_where(const worker_slots *s) {
    return s->where;
}

/* Decides whether a task can be convolved in a slot: its length is known, it fits, and no output is the sum of several
 * routes. Stores how each part is convolved. Depends on the task and the device only, so that every run computes the
 * same samples. */
static bool slots_accept(const worker_slots *s, gc_task *t) {
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
        t->stored = !t->mixed && p->window.skip == 0 && p->frames + p->window.after == total &&
                    !(p->window.floor > 0) && !r->settings.job.dither;
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
        r->planes[w->device] = w->backend->upload(w->device, r->ir->taps, r->ir->planes * r->ir->frames);
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
    item->planes = w->backend->upload ? NULL : ir->taps;
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
static gpuconv_status load_input(const worker_slots *s, gc_slot *slot, const gc_task *t, gc_part *p,
                                 gpuconv_error *error) {
    char *in = slot->device->in + slot->in_used;
    int64_t got;
    gpuconv_status status = gc_reader_read(p->reader, in, p->frames, &got, error);
    if (status)
        return status;
    status = gc_task_check_input(s->w, t, p, got, error);
    if (status)
        return status;
    if (gc_entry_recipe(gc_task_entry(s->w, t))->settings.level == GC_LEVEL_INPUT && !measure_power(p, in))
        return gc_fail_memory(error, t->path);
    p->in.at = slot->in_used;
    slot->in_used += p->in_bytes;
    return GPUCONV_OK;
}

/* Reads the task's inputs and appends its parts to the slot that is being filled. */
static gpuconv_status load(worker_slots *s, gc_task *t, gpuconv_error *error) {
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
static gpuconv_status store_as_is(worker_slots *s, const gc_slot *slot, gc_task *t, gpuconv_error *error) {
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
static gpuconv_status store(worker_slots *s, const gc_slot *slot, gc_task *t, gpuconv_error *error) {
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
static gpuconv_status finish_slot(worker_slots *s, gc_slot *slot, gpuconv_status err, gpuconv_error *error) {
    if (slot->in_flight && !err && s->w->backend->batch->finish)
        err = s->w->backend->batch->finish(slot->device, slot->item, slot->items, error);
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
static gpuconv_status slots_flush(worker_slots *s, gpuconv_error *error) {
    gc_slot *slot = &s->slot[s->filling];
    if (slot->tasks == 0)
        return GPUCONV_OK;
    gpuconv_status err =
        s->w->backend->batch->begin(slot->device, slot->item, slot->items, slot->in_used, slot->out_used, error);
    if (err)
        return finish_slot(s, slot, err, error);
    slot->in_flight = true;
    s->filling = (s->filling + 1) % s->count;
    return finish_slot(s, &s->slot[s->filling], GPUCONV_OK, error);
}

/* Adds an accepted task, and starts the slot once it is full. Errors of the task are reported; an error of the device
 * is reported for every task in the slot and returned. The slots own the task's files from here on. */
static gpuconv_status slots_add(worker_slots *s, gc_task *t, gpuconv_error *error) {
    gpuconv_error why = {0};
    gpuconv_status status = GPUCONV_OK, loaded = choose_layout(s->w, t, &why);
    if (!loaded && !fits(&s->slot[s->filling], t)) {
        loaded = status = slots_flush(s, error);
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
    return status || !enough ? status : slots_flush(s, error);
}

/* Waits for all slots in flight and stores their outputs. Returns the first error of the device. */
static gpuconv_status slots_finish(worker_slots *s, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    for (int i = 0; i < s->count; i++)
        if (s->slot[i].in_flight) {
            gpuconv_error later = {0};
            gpuconv_status err = finish_slot(s, &s->slot[i], GPUCONV_OK, status ? &later : error);
            status = status ? status : err;
        }
    return status;
}

/* Frees the slots; tasks that were not started are closed without a report. */
static void slots_free(worker_slots *s) {
    if (!s)
        return;
    for (int i = 0; i < s->count; i++) {
        for (int k = 0; k < s->slot[i].tasks; k++)
            gc_task_close(s->w, &s->slot[i].task[k]);
        s->w->backend->batch->free(s->slot[i].device);
    }
    gc_scratch_free(&s->scratch);
    free(s);
}

/* Creates as many slots as the backend proposes, or fewer if memory is short, at least one. Fails with DEVICE or MEMORY
 * if there is not even one. */
static gpuconv_status slots_new(const gc_worker *w, worker_slots **made, gpuconv_error *error) {
    *made = NULL;
    worker_slots *s = gc_calloc(1, sizeof *s);
    if (!s)
        return gc_fail_memory(error, "a worker");
    s->w = w;
    s->tasks_max = w->devices == 0 ? 1 : SLOT_TASKS;
    if (w->devices == 0)
        (void)snprintf(s->where, sizeof s->where, "cpu");
    else
        (void)snprintf(s->where, sizeof s->where, "cuda %d", w->device);
    gpuconv_status status = GPUCONV_OK;
    for (; s->count < w->backend->batch->slots && !status; s->count += !status) {
        gpuconv_error unused;
        status = w->backend->batch->new_slot(w->device, FILE_BYTES, SLOT_OUTPUTS, &s->slot[s->count].device,
                                             s->count ? &unused : error);
    }
    if (s->count == 0) {
        slots_free(s);
        return status;
    }
    *made = s;
    return GPUCONV_OK;
}

/* ---- Streaming, and the loop ---- */

/* Streams a task through an engine. device: the name of the worker's device. */
static gpuconv_status stream(const gc_worker *w, gc_task *task, const char *device, gpuconv_error *error) {
    gc_part *p = &task->part[0];
    const gpuconv_plan *plan;
    gc_transfer t = {.reader = p->reader, .output = task->path, .limit = -1, .cancel = w->cancel};
    const gc_pcm floats = {GC_F32, 32};
    gc_transfer_keep(&t, &p->window, p->response->ir, gc_entry_recipe(gc_task_entry(w, task))->settings.job.dither);
    const int64_t frames = gc_window_frames(&p->window, p->frames);
    gpuconv_status status =
        gc_task_open_output(w, task, task->path, gpuconv_ir_outputs(p->response->ir), frames, &t.writer, error);
    if (!status)
        status = worker_engine(
            w, &(engine_wish){p->response->ir, p->frames, p->info.pcm, t.convert ? floats : gc_writer_pcm(t.writer)},
            &plan, &t.engine, error);
    if (!status) {
        task->where = gpuconv_plan_backend(plan) == GPUCONV_BACKEND_CUDA ? device : "cpu";
        t.chunk = gpuconv_plan_chunk(plan);
        status = gc_transfer_run(&t, error);
    }
    if (!status)
        status = gc_task_check_input(w, task, p, t.read, error);
    if (!status) {
        gc_stream_stats stats;
        gc_engine_measure(t.engine, &stats);
        task->clipped = t.convert ? t.overs.clipped : stats.overs.clipped;
        p->frames = t.read;
        task->written = t.written;
        status = gc_task_commit(task, t.writer, false, error);
    }
    gpuconv_engine_free(t.engine);
    gc_writer_free(t.writer);
    return status;
}

static void stream_and_report(const gc_worker *w, gc_task *task, const char *device) {
    gpuconv_error error = {0};
    task->where = "cpu";
    const gpuconv_status status = task->mixed ? render(w, task, device, &error) : stream(w, task, device, &error);
    if (status != GPUCONV_ERROR_CANCELLED)
        gc_task_report(w, task, status, &error);
    gc_task_close(w, task);
}

/* Opens the next entry and convolves it. @return an error of the device; errors of the entry are reported */
static gpuconv_status process_entry(const gc_worker *w, worker_slots *slots, int64_t entry, gpuconv_error *error) {
    gpuconv_error entry_error = {0};
    gc_task task;
    gpuconv_status err = gc_task_open(w, entry, &task, &entry_error);
    if (err) {
        if (err != GPUCONV_ERROR_CANCELLED)
            gc_task_report(w, &task, err, &entry_error);
        gc_task_close(w, &task);
        return GPUCONV_OK;
    }
    if (slots_accept(slots, &task))
        return slots_add(slots, &task, error);
    stream_and_report(w, &task, slots_where(slots));
    return GPUCONV_OK;
}

gpuconv_status gc_work(const gc_worker *w, bool *has_slot, gpuconv_error *error) {
    worker_slots *slots;
    gpuconv_status status = slots_new(w, &slots, error);
    *has_slot = !status;
    if (status)
        return status;
    int64_t entry;
    while (!status && !gc_flag_is_raised(w->cancel) && w->next(w->context, &entry))
        status = process_entry(w, slots, entry, error);
    if (!status)
        status = slots_flush(slots, error);
    gpuconv_error later = {0};
    gpuconv_status finished = slots_finish(slots, status ? &later : error);
    slots_free(slots);
    return status ? status : finished;
}
