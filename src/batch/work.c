/*
 * A worker decodes files into its lane's input until that has as many as suit the device, convolves all of them at
 * once, and encodes the results; other workers' lanes meanwhile do the rest, so that files, bus and GPU are all busy.
 *
 * What does not fit a lane, or sums several routes into an output, is streamed through an engine of one thread, so that
 * any length takes the same memory: which way an entry goes follows from the entry alone, and so does every bit of its
 * result.
 */
#include "work.h"

#include "../core/clock.h"
#include "../core/error.h"
#include "../core/folder.h"
#include "../core/memory.h"
#include "../dsp/ir.h"
#include "../dsp/simd.h"
#include "../pipeline/transfer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANE_ITEMS = 512, LANE_FILES = 128, FILE_FLOATS = 1 << 20, FILE_BYTES = 4 * FILE_FLOATS };

/* A file that is open: what is read of it, and what it becomes. */
typedef struct open_file {
    int64_t entry;
    gc_reader *reader;
    gc_response *response;
    bool fresh;     /* nobody else has had the response */
    int64_t frames; /* to be read; -1: not known */
    /* In the lane: from which byte on, how many bytes, and from one channel to the next; what is stored there. */
    int64_t in_at, in_bytes, in_row, out_at, out_bytes, out_row;
    gc_pcm in_pcm, out_pcm;
    bool stored; /* the output as the file will store it */
    int item;    /* its first one there */
    double began;
    char *path;
    gc_audio_info info;
} open_file;

static void close_file(const gc_worker *w, open_file *f) {
    gc_reader_free(f->reader);
    if (f->response)
        gc_responses_give_back(w->responses, f->response);
    free(f->path);
    *f = (open_file){0};
}

/* Where the entry begins and how much of it there is. */
static gpuconv_status choose_part(const gc_entry *e, open_file *f, gpuconv_error *error) {
    double rate = f->info.rate;
    int64_t all = f->info.frames, want = e->length < 0 ? -1 : (int64_t)llrint(e->length * rate);
    int64_t from = (int64_t)llrint(e->offset * rate);
    if (e->somewhere) {
        uint64_t state = e->seed;
        int64_t spare = all < 0 ? 0 : all - want;
        from = spare > 0 ? (int64_t)(gc_random(&state) % (uint64_t)(spare + 1)) : 0;
    }
    if (want == 0 || (all >= 0 && from >= all && from > 0))
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: nothing of it lies at %g s for %g s", e->input, e->offset,
                       e->length);
    if (from > 0) {
        gpuconv_status status = gc_reader_seek(f->reader, from, error);
        if (status)
            return status;
    }
    f->frames = all < 0 ? want : want < 0 ? all - from : gc_min(want, all - from);
    return GPUCONV_OK;
}

static gpuconv_status open_entry(const gc_worker *w, int64_t number, open_file *f, gpuconv_error *error) {
    const gc_entry *e = &w->manifest->entry[number];
    *f = (open_file){.entry = number, .began = gc_now()};
    if (e->wrong)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "line %lld: %s", (long long)e->line, e->wrong);
    size_t room = strlen(w->folder) + strlen(e->output) + 2;
    f->path = gc_calloc((int64_t)room, 1);
    if (!f->path)
        return gc_fail_memory(error, e->output);
    (void)snprintf(f->path, room, "%s/%s", w->folder, e->output);
    gpuconv_status status = gc_reader_new(e->input, &f->reader, error);
    if (status)
        return status;
    f->info = *gc_reader_info(f->reader);
    status = choose_part(e, f, error);
    if (status)
        return status;
    gc_response_wish wish = {e->response, e->gain, e->wet, e->dry, f->info.rate, f->info.channels};
    return gc_responses_take(w->responses, &wish, &f->response, &f->fresh, error);
}

static gpuconv_status open_output(open_file *f, gc_writer **writer, gpuconv_error *error) {
    const gpuconv_ir *ir = f->response->ir;
    gpuconv_status status = gc_make_folders(f->path, error);
    int64_t frames = f->frames < 0 ? -1 : f->frames + ir->frames - 1 - ir->lead;
    return status ? status : gc_writer_new(f->path, NULL, &f->info, ir->outputs, frames, writer, error);
}

static void tell(const gc_worker *w, const open_file *f, gpuconv_status status, const gpuconv_error *error,
                 const char *where, int64_t clipped) {
    gc_outcome o = {.status = status, .where = where, .seconds = gc_now() - f->began, .clipped = clipped};
    if (status)
        (void)snprintf(o.reason, sizeof o.reason, "%s", error->message);
    else
        o.audio = (double)f->frames / f->info.rate;
    w->tell(w->context, f->entry, &o);
}

/* ---- Streamed ---------------------------------------------------------------------------------------------------- */

static gpuconv_status stream(const gc_worker *w, open_file *f, int64_t *clipped, gpuconv_error *error) {
    gpuconv_config config = gpuconv_config_default();
    gpuconv_plan *plan = NULL;
    gc_transfer t = {.reader = f->reader, .output = f->path, .limit = f->frames, .cancel = w->cancel};
    const gc_pcm floats = {GC_F32, 32};
    t.skip = gpuconv_ir_lead(f->response->ir);
    t.after = gpuconv_ir_frames(f->response->ir) - 1;
    t.convert = t.skip > 0;
    config.backend = GPUCONV_BACKEND_CPU;
    config.threads = 1;
    config.frames = f->frames;
    gpuconv_status status = gpuconv_plan_new(f->response->ir, &config, &plan, error);
    if (!status)
        status = open_output(f, &t.writer, error);
    if (!status)
        status = gc_engine_new(plan, f->info.pcm, t.convert ? floats : gc_writer_pcm(t.writer), &t.engine, error);
    if (!status) {
        t.chunk = gpuconv_plan_chunk(plan);
        status = gc_transfer_run(&t, error);
    }
    if (!status)
        status = gc_writer_commit(t.writer, error);
    if (!status) {
        gc_measurement m;
        gc_engine_measure(t.engine, &m);
        *clipped = t.convert ? t.overs.clipped : m.overs.clipped;
        f->frames = t.read;
    }
    gpuconv_engine_free(t.engine);
    gc_writer_free(t.writer);
    gpuconv_plan_free(plan);
    return status;
}

/* A part that is cut off has the whole plan's frames; an input of unknown length has none. */
static void by_engine(const gc_worker *w, open_file *f) {
    gpuconv_error error = {0};
    int64_t clipped = 0;
    gpuconv_status status = stream(w, f, &clipped, &error);
    if (status != GPUCONV_ERROR_CANCELLED)
        tell(w, f, status, &error, "cpu", clipped);
    close_file(w, f);
}

/* ---- On a lane --------------------------------------------------------------------------------------------------- */

typedef struct lane {
    const gc_worker *w;
    gc_lane *lane;
    char where[16];
    open_file file[LANE_FILES];
    gc_lane_item item[LANE_ITEMS];
    int files, items, most; /* a core does one file at a time, while it is in the cache */
    int64_t in_used, out_used;
    void *raw; /* a file's samples as it stores them */
    int64_t raw_bytes;
} lane;

static bool for_lane(const lane *l, const open_file *f) {
    const gc_batch_backend *b = l->w->backend;
    const gpuconv_ir *ir = f->response->ir;
    int64_t total = f->frames + ir->frames - 1;
    return f->frames > 0 && ir->lead == 0 && gc_ir_one_route_each(ir) &&
           ir->inputs * gc_round_up(f->frames, 4) <= FILE_FLOATS &&
           ir->outputs * gc_round_up(total, 4) <= FILE_FLOATS && ir->outputs <= LANE_ITEMS / 8 &&
           (!b->suits || b->suits(l->lane, ir, f->frames));
}

/* How the file is to lie in the lane. */
static gpuconv_status lay_out(const lane *l, open_file *f, gpuconv_error *error) {
    const gpuconv_ir *ir = f->response->ir;
    const int64_t total = f->frames + ir->frames - 1, taps = l->w->backend->stored_taps;
    const gc_pcm floats = {GC_F32, 32};
    f->in_pcm = taps > 0 ? f->info.pcm : floats;
    f->in_row = taps > 0 ? gc_pcm_bytes(f->in_pcm) : 4 * gc_round_up(f->frames, 4);
    f->in_bytes = gc_round_up(ir->inputs * (taps > 0 ? f->frames * f->in_row : f->in_row), 16);
    gpuconv_status status = gc_writer_pcm_of(f->path, &f->info, ir->outputs, total, &f->out_pcm, error);
    f->stored = taps > 0 && (ir->frames <= taps || f->out_pcm.container == GC_F32);
    if (!f->stored)
        f->out_pcm = floats;
    f->out_row = f->stored ? gc_pcm_bytes(f->out_pcm) : 4 * gc_round_up(total, 4);
    f->out_bytes = gc_round_up(ir->outputs * (f->stored ? total * f->out_row : f->out_row), 16);
    return status;
}

static bool fits(const lane *l, const open_file *f) {
    int64_t room = l->w->backend->room(l->lane);
    return l->files < l->most && l->items + f->response->ir->outputs <= LANE_ITEMS &&
           l->in_used + f->in_bytes <= room && l->out_used + f->out_bytes <= room;
}

/* The response's planes on the lane's device. NULL: no memory there. */
static const float *planes_of(const lane *l, gc_response *r) {
    const gc_worker *w = l->w;
    gc_responses_lock(w->responses, r);
    if (!r->planes[w->device])
        r->planes[w->device] = w->backend->keep(w->device, r->ir->taps, r->ir->planes * r->ir->frames);
    const float *planes = r->planes[w->device];
    gc_responses_unlock(w->responses, r);
    return planes;
}

/* A response that is met for the first time travels with the samples; one that comes again stays on the device. *at:
 * where in the lane's input its planes lie, or where on the device, if that is not NULL. False: no memory there. */
static bool place_response(lane *l, const open_file *f, int64_t *at, const float **planes) {
    const gpuconv_ir *ir = f->response->ir;
    const int64_t bytes = gc_round_up(ir->planes * ir->frames * (int64_t)sizeof(float), 16);
    *at = l->in_used;
    *planes = NULL;
    if (l->w->backend->stored_taps > 0 && f->fresh && l->in_used + bytes <= l->w->backend->room(l->lane)) {
        memcpy((char *)l->w->backend->in(l->lane) + *at, ir->taps, (size_t)(ir->planes * ir->frames) * sizeof(float));
        l->in_used += bytes;
        return true;
    }
    *planes = planes_of(l, f->response);
    return *planes != NULL;
}

static bool raw_room(lane *l, int64_t bytes) {
    if (bytes > l->raw_bytes) {
        free(l->raw);
        l->raw = gc_calloc(bytes, 1);
        l->raw_bytes = l->raw ? bytes : 0;
    }
    return l->raw != NULL;
}

/* Reads a file into the lane, behind what is there. */
static gpuconv_status load(lane *l, open_file *f, gpuconv_error *error) {
    const gpuconv_ir *ir = f->response->ir;
    const gc_batch_backend *b = l->w->backend;
    const int channels = f->info.channels;
    const bool as_is = b->stored_taps > 0;
    char *in = (char *)b->in(l->lane) + l->in_used;
    int64_t got, taps_at;
    const float *planes;
    if (!as_is && !raw_room(l, f->frames * channels * gc_pcm_bytes(f->info.pcm)))
        return gc_fail_memory(error, f->path);
    gpuconv_status status = gc_reader_read(f->reader, as_is ? in : l->raw, f->frames, &got, error);
    if (status)
        return status;
    if (got != f->frames)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: ends after %lld of %lld frames",
                       l->w->manifest->entry[f->entry].input, (long long)got, (long long)f->frames);
    if (!as_is) {
        float *planar[LANE_ITEMS];
        for (int c = 0; c < channels; c++)
            planar[c] = (float *)(void *)(in + c * f->in_row);
        gc_pcm_unpack(gc_simd_best(), f->info.pcm, l->raw, channels, f->frames, planar, 0);
    }
    f->in_at = l->in_used;
    f->out_at = l->out_used;
    f->item = l->items;
    l->in_used += f->in_bytes;
    if (!place_response(l, f, &taps_at, &planes)) {
        l->in_used = f->in_at;
        return gc_fail_memory(error, f->path);
    }
    for (int r = 0; r < ir->routes; r++) {
        const gc_route *route = &ir->route[r];
        const int64_t plane = route->plane * ir->frames;
        l->item[l->items++] = (gc_lane_item){
            .in = {f->in_at + route->input * f->in_row, f->in_pcm, as_is ? channels : 1},
            .out = {f->out_at + route->output * f->out_row, f->out_pcm, f->stored ? ir->outputs : 1},
            .frames = f->frames,
            .taps_count = ir->frames,
            .taps = planes ? planes + plane : NULL,
            .taps_at = taps_at + plane * (int64_t)sizeof(float),
        };
    }
    l->out_used += f->out_bytes;
    gc_reader_free(f->reader); /* at once: descriptors are few */
    f->reader = NULL;
    l->file[l->files++] = *f;
    return GPUCONV_OK;
}

static gpuconv_status store(lane *l, open_file *f, int64_t *clipped, gpuconv_error *error) {
    const gpuconv_ir *ir = f->response->ir;
    const char *out = (const char *)l->w->backend->out(l->lane) + f->out_at;
    int64_t frames = f->frames + ir->frames - 1;
    gc_writer *writer = NULL;
    gc_pcm_overs overs = {0};
    gpuconv_status status = open_output(f, &writer, error);
    if (!status && f->stored) {
        for (int r = 0; r < ir->routes; r++)
            overs.clipped += l->item[f->item + r].clipped;
        status = gc_writer_write(writer, out, frames, error);
    } else if (!status) {
        const float *planar[LANE_ITEMS];
        for (int c = 0; c < ir->outputs; c++)
            planar[c] = (const float *)(const void *)(out + c * f->out_row);
        if (!raw_room(l, frames * ir->outputs * gc_pcm_bytes(gc_writer_pcm(writer))))
            status = gc_fail_memory(error, f->path);
        if (!status) {
            gc_pcm_pack(gc_simd_best(), gc_writer_pcm(writer), planar, 0, ir->outputs, frames, l->raw, &overs);
            status = gc_writer_write(writer, l->raw, frames, error);
        }
    }
    if (!status)
        status = gc_writer_commit(writer, error);
    gc_writer_free(writer);
    *clipped = overs.clipped;
    return status;
}

/* Convolves what the lane holds and writes it. A device that failed is told for every file, and returned. */
static gpuconv_status flush(lane *l, gpuconv_error *error) {
    if (l->files == 0)
        return GPUCONV_OK;
    gpuconv_status failed = l->w->backend->run(l->lane, l->item, l->items, l->in_used, l->out_used, error);
    for (int i = 0; i < l->files; i++) {
        gpuconv_error why = *error;
        int64_t clipped = 0;
        bool stop = l->w->cancel && *l->w->cancel;
        gpuconv_status status = failed ? failed : stop ? GPUCONV_OK : store(l, &l->file[i], &clipped, &why);
        if (!stop)
            tell(l->w, &l->file[i], status, &why, l->where, clipped);
        close_file(l->w, &l->file[i]);
    }
    l->files = l->items = 0;
    l->in_used = l->out_used = 0;
    return failed;
}

static gpuconv_status on_lane(lane *l, open_file *f, gpuconv_error *error) {
    gpuconv_error why = {0};
    gpuconv_status status = GPUCONV_OK, loaded = lay_out(l, f, &why);
    if (!loaded && !fits(l, f)) {
        loaded = status = flush(l, error);
        why = *error;
    }
    if (!loaded)
        loaded = load(l, f, &why);
    if (loaded) {
        tell(l->w, f, loaded, &why, l->where, 0);
        close_file(l->w, f);
    }
    return status || l->files < l->most ? status : flush(l, error);
}

/* ---- Both -------------------------------------------------------------------------------------------------------- */

static gpuconv_status every(lane *l, gpuconv_error *error) {
    const gc_worker *w = l->w;
    gpuconv_status status = GPUCONV_OK;
    int64_t number;
    while (!status && !(w->cancel && *w->cancel) && w->next(w->context, &number)) {
        gpuconv_error why = {0};
        open_file f;
        gpuconv_status failed = open_entry(w, number, &f, &why);
        if (failed) {
            tell(w, &f, failed, &why, "", 0);
            close_file(w, &f);
        } else if (for_lane(l, &f)) {
            status = on_lane(l, &f, error);
        } else {
            by_engine(w, &f);
        }
    }
    return status ? status : flush(l, error);
}

gpuconv_status gc_work(const gc_worker *w, gpuconv_error *error) {
    lane *l = gc_calloc(1, sizeof *l);
    if (!l)
        return gc_fail_memory(error, "a lane");
    l->w = w;
    const bool core = w->devices == 0;
    l->most = core ? 1 : LANE_FILES;
    (void)snprintf(l->where, sizeof l->where, core ? "cpu" : "cuda %d", w->device);
    gpuconv_status status =
        w->backend->lane(w->device, core ? FILE_BYTES : 2 * FILE_BYTES, LANE_ITEMS, &l->lane, error);
    if (!status)
        status = every(l, error);
    for (int i = 0; i < l->files; i++)
        close_file(w, &l->file[i]);
    w->backend->free(l->lane);
    free(l->raw);
    free(l);
    return status;
}
