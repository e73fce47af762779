/* Plays and records into memory. The device's callback only copies; this thread waits until it has finished. */
#include "take.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/finite.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct recorder {
    const gc_take_config *config;
    float *samples;
    _Atomic int64_t at; /* frames that are played and recorded */
} recorder;

/* The device's callback. */
static void exchange(void *context, const float *const *in, float *const *out, int64_t frames) {
    recorder *r = context;
    const gc_take_config *c = r->config;
    int64_t at = atomic_load_explicit(&r->at, memory_order_relaxed), n = gc_min(frames, c->recorded - at);
    for (int o = 0; o <= c->output; o++)
        memset(out[o], 0, (size_t)frames * sizeof(float));
    if (at < c->played)
        memcpy(out[c->output], c->samples + at, (size_t)gc_min(frames, c->played - at) * sizeof(float));
    for (int i = 0; i < c->inputs && n > 0; i++)
        memcpy(r->samples + i * c->recorded + at, in[i], (size_t)n * sizeof(float));
    atomic_store_explicit(&r->at, at + n, memory_order_release);
}

/* Waits until everything is recorded. @param xruns gets the gaps after the lead */
static gpuconv_status wait_for_end(const gc_sound_system *system, gc_sound_device *sound, recorder *r, int64_t *xruns,
                                   gpuconv_error *error) {
    const double period = 0.01;
    const struct timespec interval = {0, (long)(1e9 * period)};
    gc_sound_watch watch = {.rate = r->config->rate, .block = r->config->block};
    int64_t at = 0, before = 0;
    for (; gc_sound_works(&watch, system->is_active(sound), at, period); nanosleep(&interval, NULL)) {
        at = atomic_load_explicit(&r->at, memory_order_acquire);
        *xruns = system->xruns(sound) - before;
        if (at <= r->config->lead)
            before += *xruns;
        if (at >= r->config->recorded)
            return GPUCONV_OK;
        if (r->config->cancel && *r->config->cancel)
            return gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
    }
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "the sound device has failed, was removed, or delivers no sound");
}

gpuconv_status gc_take_record(const gc_take_config *c, gc_take *take, gpuconv_error *error) {
    const gc_sound_system *system;
    gc_sound_device *sound = NULL;
    recorder r = {.config = c};
    *take = (gc_take){0};
    gpuconv_status status = gc_sound_load(c->sound, &system, error);
    if (status)
        return status;
    r.samples = gc_calloc(c->recorded * c->inputs, sizeof *r.samples);
    if (!r.samples)
        return gc_fail_memory(error, "the recording");
    const gc_sound_config config = {.output = c->output_device,
                                    .input = c->input_device,
                                    .inputs = c->inputs,
                                    .outputs = c->output + 1,
                                    .rate = c->rate,
                                    .block = c->block,
                                    .callback = exchange,
                                    .context = &r};
    status = system->open(&config, &sound, error);
    if (!status) {
        status = system->start(sound, error);
        if (!status)
            status = wait_for_end(system, sound, &r, &take->xruns, error);
        system->close(sound, status == GPUCONV_ERROR_DEVICE ? GC_SOUND_ABANDON : GC_SOUND_ABORT);
    }
    int64_t first;
    take->nonfinite = status ? 0 : gc_zero_nonfinite(r.samples, c->recorded * c->inputs, &first);
    if (status)
        free(r.samples);
    else
        take->samples = r.samples;
    return status;
}
