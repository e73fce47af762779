/* Hash table of responses by path and preparation, and a list of the unreferenced ones: the least recently used is
 * evicted first. */
#include "responses.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/map.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/ir/object.h"
#include "libgpuconv/ir/prepare.h"
#include "libgpuconv/ir/sofa.h"
#include "libtools/batch/entry/text.h"
#include "libtools/room/room_set.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STRIPES = 64, PLACES = 256 };

struct gc_responses {
    pthread_mutex_t lock;            /* of all but planes[] */
    pthread_mutex_t stripe[STRIPES]; /* of planes[]; a response uses the one that its address selects */
    pthread_cond_t ready;
    int64_t bytes_max, bytes;
    gc_response *oldest, *youngest; /* list of unreferenced responses */
    void (*release)(int device, float *planes);
    gc_map table;                  /* from a key to its response */
    gpuconv_arrays *place[PLACES]; /* that no thread has taken; the first `places` */
    int places;
};

gc_responses *gc_responses_new(int64_t bytes, void (*release)(int device, float *planes)) {
    gc_responses *r = gc_calloc(1, sizeof *r);
    if (!r)
        return NULL;
    pthread_mutex_init(&r->lock, NULL);
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&r->stripe[i], NULL);
    pthread_cond_init(&r->ready, NULL);
    r->bytes_max = bytes;
    r->release = release;
    return r;
}

/* Frees what prepare() has made. */
static void free_made(const gc_response *made) {
    gpuconv_sofa_free(made->ears);
    if (!made->ears)
        gpuconv_ir_free(made->ir);
}

static void free_response(gc_responses *r, gc_response *response) {
    for (int d = 0; d < GC_BATCH_DEVICES; d++)
        if (response->planes[d])
            r->release(d, response->planes[d]);
    free_made(response);
    free(response->key);
    free(response);
}

void gc_responses_free(gc_responses *r) {
    if (!r)
        return;
    for (int64_t i = 0; i < r->table.slots; i++)
        if (r->table.slot[i].key)
            free_response(r, r->table.slot[i].value);
    gc_map_free(&r->table);
    while (r->places > 0)
        gpuconv_arrays_free(r->place[--r->places]);
    pthread_mutex_destroy(&r->lock);
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_destroy(&r->stripe[i]);
    pthread_cond_destroy(&r->ready);
    free(r);
}

static pthread_mutex_t *stripe_of(gc_responses *r, const gc_response *response) {
    return &r->stripe[(uintptr_t)response / sizeof *response % STRIPES];
}

void gc_responses_lock(gc_responses *r, const gc_response *response) {
    pthread_mutex_lock(stripe_of(r, response));
}

void gc_responses_unlock(gc_responses *r, const gc_response *response) {
    pthread_mutex_unlock(stripe_of(r, response));
}

/* Removes a response from the table. Requires the lock, like the functions below. */
static void remove_from_table(gc_responses *r, const gc_response *response) {
    gc_map_remove(&r->table, response->key, strlen(response->key));
    r->bytes -= response->bytes;
}

static void add_unreferenced(gc_responses *r, gc_response *response) {
    response->older = r->youngest;
    response->younger = NULL;
    *(r->youngest ? &r->youngest->younger : &r->oldest) = response;
    r->youngest = response;
}

static void remove_unreferenced(gc_responses *r, gc_response *response) {
    *(response->older ? &response->older->younger : &r->oldest) = response->younger;
    *(response->younger ? &response->younger->older : &r->youngest) = response->older;
    response->older = response->younger = NULL;
}

/* Evicts unreferenced responses until the limit is kept. */
static void evict(gc_responses *r) {
    while (r->bytes > r->bytes_max && r->oldest) {
        gc_response *response = r->oldest;
        remove_unreferenced(r, response);
        remove_from_table(r, response);
        free_response(r, response);
    }
}

gpuconv_status gc_responses_take_place(gc_responses *r, gpuconv_arrays **place, gpuconv_error *error) {
    pthread_mutex_lock(&r->lock);
    *place = r->places > 0 ? r->place[--r->places] : NULL;
    pthread_mutex_unlock(&r->lock);
    return *place ? GPUCONV_OK : gpuconv_arrays_new_cpu(1, place, error);
}

void gc_responses_return_place(gc_responses *r, gpuconv_arrays *place) {
    pthread_mutex_lock(&r->lock);
    if (place && r->places < PLACES) {
        r->place[r->places++] = place;
        place = NULL;
    }
    pthread_mutex_unlock(&r->lock);
    gpuconv_arrays_free(place);
}

/* Simulates the room of a request; for a file *ir is NULL. */
static gpuconv_status simulate(gc_responses *r, const gc_response_request *q, gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_arrays *place = NULL;
    gc_room_set *set = gc_is_room(q->path) ? gc_alloc(2, sizeof *set) : NULL;
    *ir = NULL;
    if (!set)
        return gc_is_room(q->path) ? gc_fail_memory(error, "a room") : GPUCONV_OK;
    gc_response *ears = NULL;
    bool unused;
    gpuconv_status status = gc_room_set_parse(q->path, set, error);
    if (!status)
        status = gc_room_set_draw(set, 0, set->sources ? set->sources : 1, set + 1, error);
    if (!status && *set->sofa) {
        const gc_response_request open = {.path = set->sofa,
                                          .recipe = gc_recipe_default(),
                                          .rate = q->rate,
                                          .shared = true,
                                          .kind = GC_RESPONSE_EARS};
        status = gc_responses_acquire(r, &open, &ears, &unused, error);
    }
    if (!status)
        status = gc_responses_take_place(r, &place, error);
    if (!status)
        status = gc_room_set_simulate(set + 1, ears ? ears->ears : NULL, place, q->rate, ir, error);
    gc_responses_return_place(r, place);
    if (ears)
        gc_responses_release(r, ears);
    free(set);
    return status;
}

/* Reads noise and resamples it. */
static gpuconv_status prepare_noise(const gc_response_request *q, gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_error inner = {0};
    gpuconv_ir *read;
    gpuconv_status status = gpuconv_ir_load(q->path, &read, error);
    if (status)
        return status;
    if (read->rate == q->rate) {
        *ir = read;
        return GPUCONV_OK;
    }
    status = gpuconv_ir_resample(read, q->rate, ir, &inner);
    gpuconv_ir_free(read);
    return status ? gc_fail(error, status, "%s: %s", q->path, inner.message) : GPUCONV_OK;
}

/* Makes a response of the frames up to the end of the early reflections. */
static gpuconv_status keep_early(const gc_response_request *q, gpuconv_ir **ir, gpuconv_error *error) {
    const gpuconv_ir *whole = q->whole;
    const int64_t direct = gpuconv_ir_peak(whole, NULL);
    const double frames = (double)direct + q->recipe->settings.early_ms / 1000 * q->rate;
    const int64_t kept = frames < (double)whole->frames ? (int64_t)llrint(frames) + 1 : whole->frames;
    return gpuconv_ir_cut(whole, 0, gc_min(gc_max(kept, whole->lead + 1), whole->frames), ir, error);
}

/* Makes a response, or opens a set; what was made is freed by free_made. */
static gpuconv_status prepare(gc_responses *r, const gc_response_request *q, gc_response *made, gpuconv_error *error) {
    gpuconv_error inner = {0};
    gc_response_source from = {.path = q->path, .kind = GC_INPUT_REGULAR};
    gpuconv_ir **ir = &made->ir;
    if (q->kind == GC_RESPONSE_EARS) {
        const gpuconv_status opened = gpuconv_sofa_open(q->path, q->rate, &made->ears, error);
        made->ir = opened ? NULL : made->ears->responses;
        return opened;
    }
    if (q->kind == GC_RESPONSE_NOISE)
        return prepare_noise(q, ir, error);
    if (q->kind == GC_RESPONSE_EARLY)
        return keep_early(q, ir, error);
    gpuconv_preparation p = q->recipe->settings.preparation;
    p.wet = q->wet;
    p.dry = q->dry;
    gpuconv_status status = simulate(r, q, &from.made, error);
    if (!status)
        status = gc_ir_prepare(&from, &p, q->channels, q->rate, ir, error);
    if (!status && q->gain != 0) {
        gpuconv_ir *quiet = *ir;
        status = gpuconv_ir_gain(quiet, q->gain, ir, &inner);
        gpuconv_ir_free(quiet);
    }
    if (status && *inner.message)
        return gc_fail(error, status, "%s: %s", q->path, inner.message);
    return status;
}

/* Prepares a response outside the table. */
static gpuconv_status prepare_unshared(gc_responses *r, const gc_response_request *q, gc_response **made,
                                       gpuconv_error *error) {
    gc_response *response = gc_calloc(1, sizeof *response);
    if (!response)
        return gc_fail_memory(error, q->path);
    response->state = gc_state_of_response(q->path);
    gpuconv_status status = prepare(r, q, response, error);
    if (status) {
        free(response);
        return status;
    }
    *made = response;
    return GPUCONV_OK;
}

/* Returns the key of a request, to be freed. NULL: out of memory. */
static char *key_of(const gc_response_request *q) {
    /* recipes of a manifest are all different, so the address stands for the settings */
    return gc_text_of("%.17g %.17g %.17g %.17g %d %d %p %s", q->rate, q->gain, q->wet, q->dry, q->channels,
                      (int)q->kind, (const void *)q->recipe, q->path);
}

/* Finds the response with this key and references it; if there is none, adds one that is not ready. *found: it was in
 * the table. The key is owned by the table, or freed. NULL: out of memory. */
static gc_response *find_or_add(gc_responses *r, char *key, bool *found) {
    pthread_mutex_lock(&r->lock);
    gc_response *response = gc_map_get(&r->table, key, strlen(key));
    *found = response != NULL;
    if (response) {
        if (response->references++ == 0)
            remove_unreferenced(r, response);
    } else if ((response = gc_calloc(1, sizeof *response))) {
        void **place = gc_map_put(&r->table, key, strlen(key));
        *response = (gc_response){.key = key, .references = 1};
        if (place)
            *place = response;
        else
            free(response);
        response = place ? response : NULL;
    }
    if (*found || !response)
        free(key);
    pthread_mutex_unlock(&r->lock);
    return response;
}

/* Waits until another thread has prepared a response. If that failed, prepares it once more for the error message. */
static gpuconv_status wait_until_ready(gc_responses *r, const gc_response_request *q, gc_response *response,
                                       gpuconv_error *error) {
    pthread_mutex_lock(&r->lock);
    while (!response->ready)
        pthread_cond_wait(&r->ready, &r->lock);
    pthread_mutex_unlock(&r->lock);
    if (response->ir)
        return GPUCONV_OK;
    gc_responses_release(r, response);
    gc_response made = {0};
    gpuconv_status status = prepare(r, q, &made, error);
    if (!status) {
        free_made(&made);
        status =
            gc_fail(error, GPUCONV_ERROR_FILE, "%s: could not be read a moment ago; it has changed since", q->path);
    }
    return status;
}

/* Prepares a response that was added to the table, and wakes the threads that wait for it. */
static gpuconv_status prepare_added(gc_responses *r, const gc_response_request *q, gc_response *response,
                                    gpuconv_error *error) {
    gc_response made = {.state = gc_state_of_response(q->path)};
    gpuconv_status status = prepare(r, q, &made, error);
    pthread_mutex_lock(&r->lock);
    response->ir = made.ir;
    response->ears = made.ears;
    response->state = made.state;
    response->ready = true;
    response->bytes = made.ir ? (int64_t)sizeof(float) * made.ir->planes * made.ir->frames : 0;
    r->bytes += response->bytes;
    pthread_cond_broadcast(&r->ready);
    pthread_mutex_unlock(&r->lock);
    if (status)
        gc_responses_release(r, response);
    return status;
}

gpuconv_status gc_responses_acquire(gc_responses *r, const gc_response_request *q, gc_response **response, bool *is_new,
                                    gpuconv_error *error) {
    gpuconv_status status;
    bool found = false;
    *response = NULL;
    *is_new = false;
    if (!q->shared) {
        status = prepare_unshared(r, q, response, error);
        *is_new = !status;
        return status;
    }
    char *key = key_of(q);
    gc_response *shared = key ? find_or_add(r, key, &found) : NULL;
    if (!shared)
        return gc_fail_memory(error, q->path);
    status = found ? wait_until_ready(r, q, shared, error) : prepare_added(r, q, shared, error);
    *response = status ? NULL : shared;
    *is_new = !status && !found;
    return status;
}

void gc_responses_release(gc_responses *r, gc_response *response) {
    if (!response->key) {
        free_response(r, response);
        return;
    }
    pthread_mutex_lock(&r->lock);
    if (--response->references == 0 && response->ir) {
        add_unreferenced(r, response);
        evict(r);
    } else if (response->references == 0) { /* a failed one is not kept: the next request tries again */
        remove_from_table(r, response);
        free_response(r, response);
    }
    pthread_mutex_unlock(&r->lock);
}
