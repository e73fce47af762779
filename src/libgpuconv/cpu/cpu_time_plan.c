/* Times a plan on the CPU with samples that already lie in memory. */
#include "section.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/engine/measure_backend.h"

#include <stdlib.h>
#include <string.h>

/* Floats of a page of memory, and between channels beyond whole pages: a processor lets a load wait for an earlier
 * store whose address differs from its own in whole pages. */
enum { PAGE = 1024, APART = 272 };

/* A convolver with planar buffers for the whole signal, laid out as the stream of cpu_backend.c lays out a chunk. */
typedef struct workspace {
    const gpuconv_plan *plan;
    gc_convolver *convolver;
    gc_pool *pool;
    float *samples;          /* of the inputs, then of the outputs */
    int64_t history, stride; /* frames before the signal; floats of a channel */
    float **chunk;           /* per channel: where the current chunk begins */
} workspace;

static float *signal_of(const workspace *w, int channel) {
    return w->samples + channel * w->stride + w->history;
}

/* Allocates everything and copies the inputs. Outputs are filled with NaN, so that samples that are not written show.
 * Returns false if there is too little memory. */
static bool prepare(workspace *w, const gc_timing *timing) {
    const gpuconv_plan *plan = w->plan;
    const int inputs = plan->ir->inputs, channels = inputs + plan->ir->outputs;
    w->history = gc_round_up(gc_schedule_overlap(&plan->choice.schedule), 16);
    w->stride = w->history + gc_round_up(gc_round_up(timing->frames, plan->choice.chunk), PAGE) + APART;
    w->pool = gc_pool_new(plan->device.threads);
    w->convolver = w->pool ? gc_section_new_whole(plan, w->pool) : NULL;
    w->samples = gc_calloc(channels, w->stride * (int64_t)sizeof *w->samples);
    w->chunk = gc_calloc(channels, sizeof *w->chunk);
    if (!w->convolver || !w->samples || !w->chunk)
        return false;
    for (int c = 0; c < inputs && !gc_cancelled(); c++)
        memcpy(signal_of(w, c), timing->in[c], (size_t)timing->frames * sizeof(float));
    for (int c = inputs; c < channels && !gc_cancelled(); c++)
        memset(signal_of(w, c), 0xff, (size_t)(w->stride - w->history) * sizeof(float));
    return true;
}

/* Convolves the signal chunk by chunk. Returns false if the thread's cancel flag is set. */
static bool run_once(const workspace *w, int64_t frames) {
    const int inputs = w->plan->ir->inputs, channels = inputs + w->plan->ir->outputs;
    const int64_t chunk = w->plan->choice.chunk;
    gc_section_reset(w->convolver);
    for (int64_t first = 0; first < frames && !gc_cancelled(); first += chunk) {
        for (int c = 0; c < channels; c++)
            w->chunk[c] = signal_of(w, c) + first;
        gc_section_run(w->convolver, w->pool, w->chunk, w->chunk + inputs, gc_min(chunk, frames - first));
    }
    return !gc_cancelled();
}

gpuconv_status gc_cpu_time_plan(const gpuconv_plan *plan, const gc_timing *timing, gpuconv_error *error) {
    workspace w = {.plan = plan};
    bool ok = prepare(&w, timing);
    for (int run = -1; ok && run < timing->runs; run++) { /* run -1 warms up */
        double begin = gc_now();
        ok = run_once(&w, timing->frames);
        if (run >= 0)
            timing->seconds[run] = gc_now() - begin;
    }
    for (int c = 0; ok && c < plan->ir->outputs; c++)
        memcpy(timing->out[c], signal_of(&w, plan->ir->inputs + c), (size_t)timing->frames * sizeof(float));
    gc_section_free(w.convolver);
    gc_pool_free(w.pool);
    free(w.chunk);
    free(w.samples);
    return ok ? GPUCONV_OK : gc_fail_memory(error, "the benchmark");
}
