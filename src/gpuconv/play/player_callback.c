/* The player's device callback: fetches input frames, convolves them, mixes wet and dry signal, records the result. */
#include "libgpuconv/core/clock.h"
#include "player_state.h"

#include <math.h>

/* Fetches the next n frames of the file as planes. Frames that are not prefetched, or are past the end, are silence. */
static void fetch_file(gc_player *p, float *const *planes, float *interleaved, int64_t n) {
    if (atomic_load_explicit(&p->flush, memory_order_acquire)) {
        gc_frame_ring_discard(&p->prefetched);
        atomic_store_explicit(&p->flush, false, memory_order_release);
    }
    bool ended = atomic_load_explicit(&p->ended, memory_order_acquire);
    int64_t got = atomic_load(&p->paused) ? 0 : gc_min(n, gc_frame_ring_available(&p->prefetched));
    gc_frame_ring_read(&p->prefetched, interleaved, got);
    for (int c = 0; c < p->inputs; c++)
        for (int64_t i = 0; i < n; i++)
            planes[c][i] = i < got ? interleaved[i * p->inputs + c] : 0.0f;
    atomic_fetch_add_explicit(&p->position, got, memory_order_relaxed);
    if (got == n || atomic_load(&p->paused))
        return;
    if (!ended) {
        if (!atomic_load(&p->starting))
            atomic_fetch_add_explicit(&p->underruns, 1, memory_order_relaxed);
        return;
    }
    /* Play the tail, then silence for the device's latency: some sound servers discard buffered output on close. */
    if (got > 0 || p->tail_frames_left < 0)
        p->tail_frames_left = atomic_load(&p->tail) + p->drain_frames;
    p->tail_frames_left -= n - got;
    if (p->tail_frames_left <= 0)
        atomic_store(&p->finished, true);
}

static void update_peak(gc_player *p, int channel, float peak) {
    uint32_t bits, before = atomic_load_explicit(&p->peak[channel], memory_order_relaxed);
    memcpy(&bits, &peak, sizeof bits); /* non-negative floats have the same order as their bit patterns */
    if (bits > before)
        atomic_store_explicit(&p->peak[channel], bits, memory_order_relaxed);
    if (peak > 1)
        atomic_store_explicit(&p->clipped[channel], true, memory_order_relaxed);
}

/* Mixes wet and dry signal into `out`, with a linear ramp from the current factors to the requested ones, and updates
 * the peak meters. gpuconv_ir_mix cannot do this: it puts fixed levels into the taps, and a listener changes these
 * levels while the response plays. Dry inputs go to the outputs of their numbers, or a single one to all outputs. They
 * are left out if the numbers of inputs and outputs differ otherwise. */
static void mix(gc_player *p, const float *const *dry, const float *const *wet, float *const *out, int64_t n) {
    double gain = atomic_load(&p->gain), wet_target = gain * atomic_load(&p->wet),
           dry_target = gain * atomic_load(&p->dry);
    if (atomic_load(&p->bypassed)) {
        wet_target = 0;
        dry_target = gain;
    }
    const bool has_dry = p->inputs == p->outputs || p->inputs == 1;
    for (int c = 0; c < p->outputs; c++) {
        const float *dry_channel = dry[p->inputs == p->outputs ? c : 0];
        float peak = 0;
        for (int64_t i = 0; i < n; i++) {
            double ramp = (double)(i + 1) / (double)n;
            double w = p->current_wet + (wet_target - p->current_wet) * ramp;
            double d = p->current_dry + (dry_target - p->current_dry) * ramp;
            float y = (float)(w * (double)wet[c][i] + (has_dry ? d * (double)dry_channel[i] : 0));
            out[c][i] = y;
            float magnitude = fabsf(y);
            peak = magnitude > peak ? magnitude : peak;
        }
        update_peak(p, c, peak);
    }
    p->current_wet = wet_target;
    p->current_dry = dry_target;
}

/* Hands a chunk to the recorder thread; drops it if the ring is full, because the callback must not wait. */
static void record(gc_player *p, float *const *out, float *interleaved, int64_t n) {
    if (!p->recorder_running || gc_frame_ring_space(&p->recorded) < n)
        return;
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < p->outputs; c++)
            interleaved[i * p->outputs + c] = out[c][i];
    gc_frame_ring_write(&p->recorded, interleaved, n);
}

static void update_load(gc_player *p, double seconds, int64_t frames) {
    double available = (double)frames / p->rate;
    uint64_t load = (uint64_t)(1e6 * seconds / available);
    atomic_fetch_add_explicit(&p->busy_ns, (uint64_t)(seconds * 1e9), memory_order_relaxed);
    atomic_fetch_add_explicit(&p->available_ns, (uint64_t)(available * 1e9), memory_order_relaxed);
    if (load > atomic_load_explicit(&p->worst_load, memory_order_relaxed))
        atomic_store_explicit(&p->worst_load, load, memory_order_relaxed);
}

void gc_player_callback(void *context, const float *const *in, float *const *out, int64_t frames) {
    enum { CHUNK = GC_PLAYER_CHUNK };
    gc_player *p = context;
    double start = gc_now();
    float *dry[GC_PLAYER_CHANNELS], *wet[GC_PLAYER_CHANNELS], *mixed[GC_PLAYER_CHANNELS];
    float *interleaved = p->scratch + (int64_t)(p->inputs + p->outputs) * CHUNK;
    for (int c = 0; c < p->inputs; c++)
        dry[c] = p->scratch + (int64_t)c * CHUNK;
    for (int c = 0; c < p->outputs; c++)
        wet[c] = p->scratch + (int64_t)(p->inputs + c) * CHUNK;
    for (int64_t at = 0; at < frames; at += CHUNK) {
        int64_t n = gc_min(CHUNK, frames - at);
        for (int c = 0; c < p->outputs; c++)
            mixed[c] = out[c] + at;
        if (p->reader)
            fetch_file(p, dry, interleaved, n);
        else
            for (int c = 0; c < p->inputs; c++)
                memcpy(dry[c], in[c] + at, (size_t)n * sizeof(float));
        gpuconv_realtime_process(p->realtime, (const float *const *)dry, wet, n);
        mix(p, (const float *const *)dry, (const float *const *)wet, mixed, n);
        record(p, mixed, interleaved, n);
    }
    update_load(p, gc_now() - start, frames);
}
