/* A table of responses by what was wished of them, and a list of those that nobody holds: the longest unused go first.
 */
#include "responses.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/hash.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/file/job.h"
#include "libgpuconv/ir/object.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CHAINS = 4096, STRIPES = 64 };

struct gc_responses {
    pthread_mutex_t lock, stripe[STRIPES];
    pthread_cond_t ready;
    int64_t most, bytes;
    gc_response *oldest, *youngest; /* of those that nobody holds */
    void (*forget)(int device, float *planes);
    gc_response *chain[CHAINS];
};

gc_responses *gc_responses_new(int64_t bytes, void (*forget)(int device, float *planes)) {
    gc_responses *r = gc_calloc(1, sizeof *r);
    if (!r)
        return NULL;
    pthread_mutex_init(&r->lock, NULL);
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&r->stripe[i], NULL);
    pthread_cond_init(&r->ready, NULL);
    r->most = bytes;
    r->forget = forget;
    return r;
}

static void drop(gc_responses *r, gc_response *one) {
    for (int d = 0; d < GC_BATCH_DEVICES; d++)
        if (one->planes[d])
            r->forget(d, one->planes[d]);
    gpuconv_ir_free(one->ir);
    free(one->key);
    free(one);
}

void gc_responses_free(gc_responses *r) {
    if (!r)
        return;
    for (int c = 0; c < CHAINS; c++)
        while (r->chain[c]) {
            gc_response *one = r->chain[c];
            r->chain[c] = one->next;
            drop(r, one);
        }
    pthread_mutex_destroy(&r->lock);
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_destroy(&r->stripe[i]);
    pthread_cond_destroy(&r->ready);
    free(r);
}

static pthread_mutex_t *stripe_of(gc_responses *r, const gc_response *one) {
    return &r->stripe[(uintptr_t)one / sizeof *one % STRIPES];
}

void gc_responses_lock(gc_responses *r, const gc_response *one) {
    pthread_mutex_lock(stripe_of(r, one));
}

void gc_responses_unlock(gc_responses *r, const gc_response *one) {
    pthread_mutex_unlock(stripe_of(r, one));
}

static size_t chain_of(const char *key) {
    return (size_t)(gc_hash(key) % CHAINS);
}

static void unlink_one(gc_responses *r, gc_response *one) {
    gc_response **at = &r->chain[chain_of(one->key)];
    while (*at != one)
        at = &(*at)->next;
    *at = one->next;
    r->bytes -= one->bytes;
}

/* Under the lock, as all that follows: onto the list of those that nobody holds, and off it. */
static void lay_down(gc_responses *r, gc_response *one) {
    one->older = r->youngest;
    one->younger = NULL;
    *(r->youngest ? &r->youngest->younger : &r->oldest) = one;
    r->youngest = one;
}

static void pick_up(gc_responses *r, gc_response *one) {
    *(one->older ? &one->older->younger : &r->oldest) = one->younger;
    *(one->younger ? &one->younger->older : &r->youngest) = one->older;
    one->older = one->younger = NULL;
}

static void make_room(gc_responses *r) {
    while (r->bytes > r->most && r->oldest) {
        gc_response *one = r->oldest;
        pick_up(r, one);
        unlink_one(r, one);
        drop(r, one);
    }
}

static gpuconv_status prepare(const gc_response_wish *w, gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_preparation p = gpuconv_preparation_default();
    p.gain = w->gain;
    p.wet = w->wet;
    p.dry = w->dry;
    return gpuconv_ir_prepare(w->path, &p, w->channels, w->rate, ir, error);
}

static gpuconv_status take_alone(const gc_response_wish *w, gc_response **response, bool *fresh, gpuconv_error *error) {
    gc_response *one = gc_calloc(1, sizeof *one);
    if (!one)
        return gc_fail_memory(error, w->path);
    gpuconv_status status = prepare(w, &one->ir, error);
    if (status) {
        free(one);
        return status;
    }
    *response = one;
    *fresh = true;
    return GPUCONV_OK;
}

gpuconv_status gc_responses_take(gc_responses *r, const gc_response_wish *w, gc_response **response, bool *fresh,
                                 gpuconv_error *error) {
    char numbers[160];
    *response = NULL;
    *fresh = false;
    if (!w->shared)
        return take_alone(w, response, fresh, error);
    int n =
        snprintf(numbers, sizeof numbers, "%.17g %.17g %.17g %.17g %d ", w->rate, w->gain, w->wet, w->dry, w->channels);
    size_t room = (size_t)n + strlen(w->path) + 1;
    char *key = gc_calloc((int64_t)room, 1);
    if (!key)
        return gc_fail_memory(error, w->path);
    (void)snprintf(key, room, "%s%s", numbers, w->path);
    pthread_mutex_lock(&r->lock);
    gc_response **chain = &r->chain[chain_of(key)], *one = *chain;
    while (one && strcmp(one->key, key) != 0)
        one = one->next;
    if (one) {
        if (one->holders++ == 0)
            pick_up(r, one);
        while (!one->ready)
            pthread_cond_wait(&r->ready, &r->lock);
        pthread_mutex_unlock(&r->lock);
        free(key);
        if (one->ir) {
            *response = one;
            return GPUCONV_OK;
        }
        gc_responses_give_back(r, one);
        gpuconv_ir *ir; /* it failed for somebody else: say why again */
        gpuconv_status status = prepare(w, &ir, error);
        if (!status) {
            gpuconv_ir_free(ir);
            status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: was not there a moment ago", w->path);
        }
        return status;
    }
    one = gc_calloc(1, sizeof *one);
    if (!one) {
        pthread_mutex_unlock(&r->lock);
        free(key);
        return gc_fail_memory(error, w->path);
    }
    *one = (gc_response){.key = key, .holders = 1, .next = *chain};
    *chain = one;
    pthread_mutex_unlock(&r->lock);
    gpuconv_ir *ir = NULL;
    gpuconv_status status = prepare(w, &ir, error);
    pthread_mutex_lock(&r->lock);
    one->ir = ir;
    one->ready = true;
    one->bytes = ir ? (int64_t)sizeof(float) * ir->planes * ir->frames : 0;
    r->bytes += one->bytes;
    pthread_cond_broadcast(&r->ready);
    pthread_mutex_unlock(&r->lock);
    if (status)
        gc_responses_give_back(r, one);
    else
        *response = one;
    *fresh = !status;
    return status;
}

void gc_responses_give_back(gc_responses *r, gc_response *one) {
    if (!one->key) {
        drop(r, one);
        return;
    }
    pthread_mutex_lock(&r->lock);
    if (--one->holders == 0 && one->ir) {
        lay_down(r, one);
        make_room(r);
    } else if (one->holders == 0) { /* the next one may have more luck */
        unlink_one(r, one);
        drop(r, one);
    }
    pthread_mutex_unlock(&r->lock);
}
