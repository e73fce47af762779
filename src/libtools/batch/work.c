/*
 * The loop of a batch worker. An entry is convolved in a slot if gc_slots_accept says so; else - its length is unknown,
 * it is too long, or an output is the sum of several routes - it is streamed through an engine on the same device,
 * which takes the same memory for any length, or rendered in memory if it is mixed. The choice depends on the entry
 * alone, so its samples do, too.
 */
#include "work.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/file/transfer.h"
#include "render.h"
#include "slots.h"
#include "worker_engine.h"

#include <math.h>

/* Streams a task through an engine. device: the name of the worker's device. */
static gpuconv_status stream(const gc_worker *w, gc_task *task, const char *device, gpuconv_error *error) {
    gc_part *p = &task->part[0];
    const gc_recipe *recipe = gc_entry_recipe(gc_task_entry(w, task));
    const int64_t tail = gpuconv_ir_frames(p->response->ir) - 1;
    gpuconv_plan *plan = NULL;
    gc_transfer t = {.reader = p->reader, .output = task->path, .limit = p->frames, .cancel = w->cancel};
    const gc_pcm floats = {GC_F32, 32};
    t.skip = p->skip;
    t.after = p->after;
    t.dither = recipe->dither;
    t.floor = recipe->tail_floor < 0 ? (float)pow(10, recipe->tail_floor / 20) : 0;
    t.convert = t.dither || t.floor > 0 || t.skip > 0 || t.after < tail;
    const int64_t frames = p->frames < 0 || t.floor > 0 ? -1 : p->frames + t.after - t.skip;
    gpuconv_status status =
        gc_task_open_output(w, task, task->path, gpuconv_ir_outputs(p->response->ir), frames, &t.writer, error);
    if (!status)
        status = gc_worker_engine(w, p->response->ir, p->frames, p->info.pcm,
                                  t.convert ? floats : gc_writer_pcm(t.writer), &plan, &t.engine, error);
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
    gpuconv_plan_free(plan);
    return status;
}

static void stream_and_report(const gc_worker *w, gc_task *task, const char *device) {
    gpuconv_error error = {0};
    task->where = "cpu";
    const gpuconv_status status = task->mixed ? gc_render(w, task, device, &error) : stream(w, task, device, &error);
    if (status != GPUCONV_ERROR_CANCELLED)
        gc_task_report(w, task, status, &error);
    gc_task_close(w, task);
}

/* Opens the next entry and convolves it. @return an error of the device; errors of the entry are reported */
static gpuconv_status process_entry(const gc_worker *w, gc_slots *slots, int64_t entry, gpuconv_error *error) {
    gpuconv_error entry_error = {0};
    gc_task task;
    gpuconv_status err = gc_task_open(w, entry, &task, &entry_error);
    if (err) {
        if (err != GPUCONV_ERROR_CANCELLED)
            gc_task_report(w, &task, err, &entry_error);
        gc_task_close(w, &task);
        return GPUCONV_OK;
    }
    if (gc_slots_accept(slots, &task))
        return gc_slots_add(slots, &task, error);
    stream_and_report(w, &task, gc_slots_where(slots));
    return GPUCONV_OK;
}

gpuconv_status gc_work(const gc_worker *w, bool *has_slot, gpuconv_error *error) {
    gc_slots *slots;
    gpuconv_status status = gc_slots_new(w, &slots, error);
    *has_slot = !status;
    if (status)
        return status;
    int64_t entry;
    while (!status && !gc_flag_is_raised(w->cancel) && w->next(w->context, &entry))
        status = process_entry(w, slots, entry, error);
    if (!status)
        status = gc_slots_flush(slots, error);
    gpuconv_error later = {0};
    gpuconv_status finished = gc_slots_finish(slots, status ? &later : error);
    gc_slots_free(slots);
    return status ? status : finished;
}
