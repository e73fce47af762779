/*
 * A worker decodes files into a lane's input until that has as many as suit the device, has all of them convolved at
 * once, decodes the next ones into its other lane meanwhile, and encodes the results: files, bus and GPU are all busy.
 *
 * What does not fit a lane, or sums several routes into an output, is streamed through an engine of one thread, so that
 * any length takes the same memory: which way an entry goes follows from the entry alone, and so does every bit of its
 * result.
 */
#include "work.h"

#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/folder.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/file/transfer.h"
#include "libgpuconv/ir/object.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 2, LANE_ITEMS = 512, LANE_FILES = 128, FILE_FLOATS = 1 << 20, FILE_BYTES = 4 * FILE_FLOATS };
enum { ENOUGH_BYTES = 2 << 20 }; /* more would only leave the caches on its way */

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
    gc_state input_was, output_is;
    bool in_place; /* the output is the input or the response */
    char *path;
    gc_audio_info info;
    char note[256];     /* of the writer */
    int64_t not_finite; /* samples, once the reader is gone */
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

static bool same_file(const gc_state *a, const gc_state *b) {
    return a->size >= 0 && b->size >= 0 && a->device == b->device && a->inode == b->inode;
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
    f->input_was = gc_state_of_path(e->input);
    const gc_input_options input = {.cancel = w->cancel};
    gpuconv_status status = gc_reader_open(e->input, &input, &f->reader, error);
    if (status)
        return status;
    f->info = *gc_reader_info(f->reader);
    status = choose_part(e, f, error);
    if (status)
        return status;
    gc_response_wish wish = {e->response,  e->gain,          e->wet,    e->dry,
                             f->info.rate, f->info.channels, e->shared, w->cancel};
    status = gc_responses_take(w->responses, &wish, &f->response, &f->fresh, error);
    if (!status) {
        gc_state there = gc_state_of_path(f->path);
        f->in_place = same_file(&there, &f->input_was) || same_file(&there, &f->response->was);
    }
    return status;
}

static gpuconv_status open_output(const gc_worker *w, open_file *f, gc_writer **writer, gpuconv_error *error) {
    const gpuconv_ir *ir = f->response->ir;
    gpuconv_status status = gc_create_parent_folders(f->path, error);
    int64_t frames = f->frames < 0 ? -1 : f->frames + ir->frames - 1 - ir->lead;
    const gc_output_options wish = {.path_kind = GC_OUTPUT_PROGRAM_PATH, .cancel = w->cancel};
    if (!status)
        status = gc_writer_new(f->path, &wish, &f->info, ir->outputs, frames, writer, error);
    if (!status)
        (void)snprintf(f->note, sizeof f->note, "%s", gc_writer_note(*writer));
    return status;
}

static gc_outcome outcome_of(const open_file *f, const char *where, int64_t clipped) {
    return (gc_outcome){.where = where,
                        .seconds = gc_now() - f->began,
                        .audio = (double)f->frames / f->info.rate,
                        .clipped = clipped,
                        .input = f->input_was,
                        .response = f->response->was,
                        .output = f->output_is,
                        .in_place = f->in_place};
}

static void tell(const gc_worker *w, const open_file *f, gpuconv_status status, const gpuconv_error *error,
                 const char *where, int64_t clipped) {
    if (status == GPUCONV_ERROR_CANCELLED && w->cancel && *w->cancel)
        return; /* not done, and no fault of the entry's: --resume does it */
    gc_outcome o = {.status = status, .where = where, .seconds = gc_now() - f->began, .clipped = clipped};
    if (status)
        (void)snprintf(o.reason, sizeof o.reason, "%s", error->message);
    else
        o = outcome_of(f, where, clipped);
    (void)snprintf(o.note, sizeof o.note, "%s", f->note);
    o.not_finite = f->reader ? gc_reader_nonfinite(f->reader, NULL) : f->not_finite;
    w->tell(w->context, f->entry, &o);
}

typedef struct written {
    const gc_worker *w;
    open_file *f;
    const char *where;
    int64_t clipped;
} written;

/* Notes what the output is. One that replaces its own input or response is told before it does: see history.h. */
static gpuconv_status is_whole(void *context, int fd, gpuconv_error *error) {
    const written *o = context;
    struct stat st;
    if (fstat(fd, &st) != 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", o->f->path, strerror(errno));
    o->f->output_is = gc_state_of(&st);
    if (!o->f->in_place)
        return GPUCONV_OK;
    if (!gc_state_digest(fd, &o->f->output_is))
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", o->f->path, strerror(errno));
    gc_outcome outcome = outcome_of(o->f, o->where, o->clipped);
    outcome.replacing = true;
    return o->w->replace(o->w->context, o->f->entry, &outcome, error);
}

static gpuconv_status commit(const gc_worker *w, open_file *f, gc_writer *writer, const char *where, int64_t clipped,
                             gpuconv_error *error) {
    written o = {w, f, where, clipped};
    return gc_writer_commit_checked(writer, is_whole, &o, error);
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
        status = open_output(w, f, &t.writer, error);
    if (!status)
        status = gc_engine_new(plan, f->info.pcm, t.convert ? floats : gc_writer_pcm(t.writer), &t.engine, error);
    if (!status) {
        t.chunk = gpuconv_plan_chunk(plan);
        status = gc_transfer_run(&t, error);
    }
    if (!status) {
        gc_stream_stats m;
        gc_engine_measure(t.engine, &m);
        *clipped = t.convert ? t.overs.clipped : m.overs.clipped;
        f->frames = t.read;
        status = commit(w, f, t.writer, "cpu", *clipped, error);
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
    gc_batch_slot *lane;
    bool begun; /* it convolves: what it holds is the device's */
    open_file file[LANE_FILES];
    gc_batch_item item[LANE_ITEMS];
    int files, items;
    int64_t in_used, out_used;
} lane;

typedef struct lanes {
    const gc_worker *w;
    char where[16];
    lane lane[LANES];
    int count, filling;
    int most;  /* files in one: a core does one at a time, while it is in the cache */
    void *raw; /* a file's samples as it stores them */
    int64_t raw_bytes;
    float **rows; /* where each channel of a file begins; as many as any file so far has had */
    int rows_room;
} lanes;

static bool for_lane(const lanes *s, const open_file *f) {
    const gc_batch_backend *b = s->w->backend;
    const gpuconv_ir *ir = f->response->ir;
    int64_t total = f->frames + ir->frames - 1;
    return f->frames > 0 && ir->lead == 0 && gc_ir_one_route_each(ir) &&
           ir->inputs * gc_round_up(f->frames, 4) <= FILE_FLOATS &&
           ir->outputs * gc_round_up(total, 4) <= FILE_FLOATS && ir->outputs <= LANE_ITEMS / 8 &&
           (!b->suits || b->suits(s->lane[0].lane, ir, f->frames));
}

/* How the file is to lie in the lane. */
static gpuconv_status lay_out(const gc_worker *w, open_file *f, gpuconv_error *error) {
    const gpuconv_ir *ir = f->response->ir;
    const int64_t total = f->frames + ir->frames - 1, taps = w->backend->stored_taps;
    const gc_pcm floats = {GC_F32, 32};
    f->in_pcm = taps > 0 ? f->info.pcm : floats;
    f->in_row = taps > 0 ? gc_pcm_bytes(f->in_pcm) : 4 * gc_round_up(f->frames, 4);
    f->in_bytes = gc_round_up(ir->inputs * (taps > 0 ? f->frames * f->in_row : f->in_row), 16);
    gpuconv_status status = gc_writer_predict_pcm(f->path, &f->info, ir->outputs, total, &f->out_pcm, error);
    f->stored = taps > 0 && (ir->frames <= taps || f->out_pcm.container == GC_F32);
    if (!f->stored)
        f->out_pcm = floats;
    f->out_row = f->stored ? gc_pcm_bytes(f->out_pcm) : 4 * gc_round_up(total, 4);
    f->out_bytes = gc_round_up(ir->outputs * (f->stored ? total * f->out_row : f->out_row), 16);
    return status;
}

static bool fits(const lane *l, const open_file *f) {
    return l->files < LANE_FILES && l->items + f->response->ir->outputs <= LANE_ITEMS &&
           l->in_used + f->in_bytes <= FILE_BYTES && l->out_used + f->out_bytes <= FILE_BYTES;
}

/* The response's planes on the lane's device. NULL: no memory there. */
static const float *planes_of(const gc_worker *w, gc_response *r) {
    gc_responses_lock(w->responses, r);
    if (!r->planes[w->device])
        r->planes[w->device] = w->backend->keep(w->device, r->ir->taps, r->ir->planes * r->ir->frames);
    const float *planes = r->planes[w->device];
    gc_responses_unlock(w->responses, r);
    return planes;
}

/* A response that is met for the first time travels with the samples; one that comes again stays on the device. *at:
 * where in the lane's input its planes lie, or where on the device, if that is not NULL. False: no memory there. */
static bool place_response(const gc_worker *w, lane *l, const open_file *f, int64_t *at, const float **planes) {
    const gpuconv_ir *ir = f->response->ir;
    const int64_t bytes = gc_round_up(ir->planes * ir->frames * (int64_t)sizeof(float), 16);
    *at = l->in_used;
    *planes = NULL;
    if (w->backend->stored_taps > 0 && f->fresh && l->in_used + bytes <= FILE_BYTES) {
        memcpy((char *)w->backend->in(l->lane) + *at, ir->taps, (size_t)(ir->planes * ir->frames) * sizeof(float));
        l->in_used += bytes;
        return true;
    }
    *planes = planes_of(w, f->response);
    return *planes != NULL;
}

static bool raw_room(lanes *s, int64_t bytes) {
    if (bytes > s->raw_bytes) {
        free(s->raw);
        s->raw = gc_calloc(bytes, 1);
        s->raw_bytes = s->raw ? bytes : 0;
    }
    return s->raw != NULL;
}

/* Makes s->rows large enough for `channels` of an input or output, which may be more than a lane has items: a matrix
 * can take a few of many inputs. */
static bool rows_room(lanes *s, int channels) {
    if (channels > s->rows_room) {
        free((void *)s->rows);
        s->rows = gc_calloc(channels, sizeof *s->rows);
        s->rows_room = s->rows ? channels : 0;
    }
    return s->rows != NULL;
}

/* Reads a file into the lane, behind what is there. */
static gpuconv_status load(lanes *s, open_file *f, gpuconv_error *error) {
    lane *l = &s->lane[s->filling];
    const gpuconv_ir *ir = f->response->ir;
    const gc_batch_backend *b = s->w->backend;
    const int channels = f->info.channels;
    const bool as_is = b->stored_taps > 0;
    char *in = (char *)b->in(l->lane) + l->in_used;
    int64_t got, taps_at;
    const float *planes;
    if (!as_is && (!raw_room(s, f->frames * channels * gc_pcm_bytes(f->info.pcm)) || !rows_room(s, channels)))
        return gc_fail_memory(error, f->path);
    gpuconv_status status = gc_reader_read(f->reader, as_is ? in : s->raw, f->frames, &got, error);
    if (status)
        return status;
    if (got != f->frames)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: ends after %lld of %lld frames",
                       s->w->manifest->entry[f->entry].input, (long long)got, (long long)f->frames);
    if (!as_is) {
        for (int c = 0; c < channels; c++)
            s->rows[c] = (float *)(void *)(in + c * f->in_row);
        gc_pcm_unpack(gc_simd_best(), f->info.pcm, s->raw, channels, f->frames, s->rows, 0);
    }
    f->in_at = l->in_used;
    f->out_at = l->out_used;
    f->item = l->items;
    l->in_used += f->in_bytes;
    if (!place_response(s->w, l, f, &taps_at, &planes)) {
        l->in_used = f->in_at;
        return gc_fail_memory(error, f->path);
    }
    for (int r = 0; r < ir->routes; r++) {
        const gc_route *route = &ir->route[r];
        const int64_t plane = route->plane * ir->frames;
        l->item[l->items++] = (gc_batch_item){
            .in = {f->in_at + route->input * f->in_row, f->in_pcm, as_is ? channels : 1},
            .out = {f->out_at + route->output * f->out_row, f->out_pcm, f->stored ? ir->outputs : 1},
            .frames = f->frames,
            .taps_count = ir->frames,
            .taps = planes ? planes + plane : NULL,
            .taps_at = taps_at + plane * (int64_t)sizeof(float),
        };
    }
    l->out_used += f->out_bytes;
    f->not_finite = gc_reader_nonfinite(f->reader, NULL);
    gc_reader_free(f->reader); /* at once: descriptors are few */
    f->reader = NULL;
    l->file[l->files++] = *f;
    return GPUCONV_OK;
}

/* Samples that are encoded take a core, however many do; those that go into the file as they are take the system. */
static gpuconv_status write_samples(const gc_worker *w, gc_writer *writer, const void *raw, int64_t frames,
                                    gpuconv_error *error) {
    const bool copied = gc_writer_is_plain(writer);
    while (copied && sem_wait(w->copying) != 0)
        ; /* a signal came */
    gpuconv_status status = gc_writer_write(writer, raw, frames, error);
    if (copied)
        sem_post(w->copying);
    return status;
}

static gpuconv_status store(lanes *s, const lane *l, open_file *f, int64_t *clipped, gpuconv_error *error) {
    const gpuconv_ir *ir = f->response->ir;
    char *out = (char *)s->w->backend->out(l->lane) + f->out_at; /* read only */
    int64_t frames = f->frames + ir->frames - 1;
    gc_writer *writer = NULL;
    gc_pcm_overs overs = {0};
    gpuconv_status status = open_output(s->w, f, &writer, error);
    if (!status && f->stored) {
        for (int r = 0; r < ir->routes; r++)
            overs.clipped += l->item[f->item + r].clipped;
        status = write_samples(s->w, writer, out, frames, error);
    } else if (!status) {
        if (!raw_room(s, frames * ir->outputs * gc_pcm_bytes(gc_writer_pcm(writer))) || !rows_room(s, ir->outputs))
            status = gc_fail_memory(error, f->path);
        for (int c = 0; c < ir->outputs && !status; c++)
            s->rows[c] = (float *)(void *)(out + c * f->out_row);
        if (!status) {
            gc_pcm_pack(gc_simd_best(), gc_writer_pcm(writer), (const float *const *)s->rows, 0, ir->outputs, frames,
                        s->raw, &overs);
            status = write_samples(s->w, writer, s->raw, frames, error);
        }
    }
    if (!status)
        status = commit(s->w, f, writer, s->where, overs.clipped, error);
    gc_writer_free(writer);
    *clipped = overs.clipped;
    return status;
}

/* Waits for what the lane has begun and writes it. A device that failed is told for every file, and returned. */
static gpuconv_status settle(lanes *s, lane *l, gpuconv_status failed, gpuconv_error *error) {
    if (l->begun && !failed)
        failed = s->w->backend->finish(l->lane, l->item, l->items, error);
    for (int i = 0; i < l->files; i++) {
        gpuconv_error why = *error;
        int64_t clipped = 0;
        bool stop = s->w->cancel && *s->w->cancel;
        gpuconv_status status = failed ? failed : stop ? GPUCONV_OK : store(s, l, &l->file[i], &clipped, &why);
        if (!stop)
            tell(s->w, &l->file[i], status, &why, s->where, clipped);
        close_file(s->w, &l->file[i]);
    }
    l->begun = false;
    l->files = l->items = 0;
    l->in_used = l->out_used = 0;
    return failed;
}

/* Has the lane that was filled convolved; the next one to be filled is written and empty. */
static gpuconv_status flush(lanes *s, gpuconv_error *error) {
    lane *l = &s->lane[s->filling];
    if (l->files == 0)
        return GPUCONV_OK;
    gpuconv_status failed = s->w->backend->begin(l->lane, l->item, l->items, l->in_used, l->out_used, error);
    if (failed)
        return settle(s, l, failed, error);
    l->begun = true;
    s->filling = (s->filling + 1) % s->count;
    return settle(s, &s->lane[s->filling], GPUCONV_OK, error);
}

static gpuconv_status on_lane(lanes *s, open_file *f, gpuconv_error *error) {
    gpuconv_error why = {0};
    gpuconv_status status = GPUCONV_OK, loaded = lay_out(s->w, f, &why);
    if (!loaded && !fits(&s->lane[s->filling], f)) {
        loaded = status = flush(s, error);
        why = *error;
    }
    if (!loaded)
        loaded = load(s, f, &why);
    if (loaded) {
        tell(s->w, f, loaded, &why, s->where, 0);
        close_file(s->w, f);
    }
    const lane *l = &s->lane[s->filling];
    const bool enough = l->files == s->most || gc_max(l->in_used, l->out_used) >= ENOUGH_BYTES;
    return status || !enough ? status : flush(s, error);
}

/* ---- Both -------------------------------------------------------------------------------------------------------- */

static gpuconv_status every(lanes *s, gpuconv_error *error) {
    const gc_worker *w = s->w;
    gpuconv_status status = GPUCONV_OK;
    int64_t number;
    while (!status && !(w->cancel && *w->cancel) && w->next(w->context, &number)) {
        gpuconv_error why = {0};
        open_file f;
        gpuconv_status failed = open_entry(w, number, &f, &why);
        if (failed) {
            if (failed != GPUCONV_ERROR_CANCELLED)
                tell(w, &f, failed, &why, "", 0);
            close_file(w, &f);
        } else if (for_lane(s, &f)) {
            status = on_lane(s, &f, error);
        } else {
            by_engine(w, &f);
        }
    }
    if (!status)
        status = flush(s, error);
    for (int i = 0; i < s->count; i++)
        if (s->lane[i].begun) {
            gpuconv_error why = {0};
            gpuconv_status failed = settle(s, &s->lane[i], GPUCONV_OK, status ? &why : error);
            status = status ? status : failed;
        }
    return status;
}

gpuconv_status gc_work(const gc_worker *w, bool *began, gpuconv_error *error) {
    lanes *s = gc_calloc(1, sizeof *s);
    *began = false;
    if (!s)
        return gc_fail_memory(error, "a lane");
    s->w = w;
    s->most = w->devices == 0 ? 1 : LANE_FILES;
    if (w->devices == 0)
        (void)snprintf(s->where, sizeof s->where, "cpu");
    else
        (void)snprintf(s->where, sizeof s->where, "cuda %d", w->device);
    gpuconv_status status = GPUCONV_OK;
    for (; s->count < w->backend->slots && !status; s->count += !status) {
        gpuconv_error why;
        status =
            w->backend->new_slot(w->device, FILE_BYTES, LANE_ITEMS, &s->lane[s->count].lane, s->count ? &why : error);
    }
    *began = s->count > 0;
    if (*began)
        status = every(s, error);
    for (int i = 0; i < s->count; i++) {
        for (int k = 0; k < s->lane[i].files; k++)
            close_file(w, &s->lane[i].file[k]);
        w->backend->free(s->lane[i].lane);
    }
    free((void *)s->rows);
    free(s->raw);
    free(s);
    return status;
}
