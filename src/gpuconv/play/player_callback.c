/* The player's device callback: fetches input frames, convolves them, mixes wet and dry signal, records the result. */
#include "libgpuconv/core/clock.h"
#include "libgpuconv/dsp/finite.h"
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
    const int64_t position = atomic_fetch_add_explicit(&p->position, got, memory_order_relaxed);
    if (p->motion && got > 0)
        gpuconv_motion_seek(p->motion, position);
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

/* Keeps n input frames and reads them again, delayed by the response's lead, as gpuconv_ir_mix delays the dry signal. A
 * changed delay is crossfaded within the chunk. */
static void delay_dry(gc_player *p, const float *const *in, float *const *out, int64_t n) {
    const int64_t mask = GC_PLAYER_HISTORY - 1, most = GC_PLAYER_HISTORY - GC_PLAYER_CHUNK;
    const int64_t from = p->current_lead, to = gc_min(atomic_load(&p->lead), most);
    for (int c = 0; c < p->inputs; c++) {
        float *history = p->history + (int64_t)c * GC_PLAYER_HISTORY;
        for (int64_t i = 0; i < n; i++)
            history[(p->history_at + i) & mask] = in[c][i];
        for (int64_t i = 0; i < n; i++) {
            float old = history[(p->history_at + i - from) & mask], new = history[(p->history_at + i - to) & mask];
            out[c][i] = old + (new - old) * (float)(i + 1) / (float)n;
        }
    }
    p->history_at = (p->history_at + n) & mask;
    p->current_lead = to;
}

/* Mixes wet and dry signal into `out`, with a linear ramp from the current factors to the requested ones, and updates
 * the peak meters. gpuconv_ir_mix cannot do this: it puts fixed levels into the taps, and a listener changes these
 * levels while the response plays. As there, input k goes to output k, and a single input to every output. */
static void mix(gc_player *p, const float *const *dry, const float *const *wet, float *const *out, int64_t n) {
    double gain = atomic_load(&p->gain), wet_target = gain * atomic_load(&p->wet),
           dry_target = gain * atomic_load(&p->dry);
    if (atomic_load(&p->bypassed)) {
        wet_target = 0;
        dry_target = gain;
    }
    for (int c = 0; c < p->outputs; c++) {
        const float *dry_channel = p->inputs == 1 ? dry[0] : c < p->inputs ? dry[c] : NULL;
        float peak = 0;
        for (int64_t i = 0; i < n; i++) {
            double ramp = (double)(i + 1) / (double)n;
            double w = p->current_wet + (wet_target - p->current_wet) * ramp;
            double d = p->current_dry + (dry_target - p->current_dry) * ramp;
            float y = (float)((w != 0 ? w * (double)wet[c][i] : 0) + (dry_channel ? d * (double)dry_channel[i] : 0));
            out[c][i] = y;
            float magnitude = fabsf(y);
            peak = magnitude > peak ? magnitude : peak;
        }
        update_peak(p, c, peak);
    }
    p->current_wet = wet_target;
    p->current_dry = dry_target;
}

/* Copies n frames of a live input; NaN and infinite samples become silence. */
static void copy_live(gc_player *p, const float *const *in, int64_t at, float *const *planes, int64_t n) {
    int64_t replaced = 0, first;
    for (int c = 0; c < p->inputs; c++) {
        memcpy(planes[c], in[c] + at, (size_t)n * sizeof(float));
        replaced += gc_zero_nonfinite(planes[c], n, &first);
    }
    if (replaced)
        atomic_fetch_add_explicit(&p->nonfinite, replaced, memory_order_relaxed);
}

/* Counts n frames. Those past the limit become silence, which is played for the device's latency, and then playing
 * ends. Returns the number of frames before the limit. */
static int64_t count_frames(gc_player *p, float *const *out, int64_t n) {
    const int64_t before = atomic_load_explicit(&p->frames, memory_order_relaxed), after = before + n;
    const int64_t heard = gc_min(n, gc_max(0, p->limit - before));
    for (int c = 0; c < p->outputs; c++)
        memset(out[c] + heard, 0, (size_t)(n - heard) * sizeof(float));
    if (after >= p->limit && after - p->limit >= p->drain_frames)
        atomic_store(&p->finished, true);
    atomic_store_explicit(&p->frames, after, memory_order_relaxed);
    return heard;
}

/* Hands a chunk to the recorder thread; drops it if the ring is full, because the callback must not wait. */
static void record(gc_player *p, float *const *out, float *interleaved, int64_t n) {
    if (!atomic_load_explicit(&p->recording, memory_order_acquire) || gc_frame_ring_space(&p->recorded) < n)
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
    float *input[GC_PLAYER_CHANNELS], *dry[GC_PLAYER_CHANNELS] = {NULL};
    float *wet[GC_PLAYER_CHANNELS] = {NULL}, *mixed[GC_PLAYER_CHANNELS] = {NULL};
    float *interleaved = p->scratch + (int64_t)(2 * p->inputs + p->outputs) * CHUNK;
    for (int c = 0; c < p->inputs; c++)
        input[c] = p->scratch + (int64_t)c * CHUNK;
    for (int c = 0; c < p->inputs; c++)
        dry[c] = p->scratch + (int64_t)(p->inputs + c) * CHUNK;
    for (int c = 0; c < p->outputs; c++)
        wet[c] = p->scratch + (int64_t)(2 * p->inputs + c) * CHUNK;
    for (int64_t at = 0; at < frames; at += CHUNK) {
        int64_t n = gc_min(CHUNK, frames - at);
        for (int c = 0; c < p->outputs; c++)
            mixed[c] = out[c] + at;
        if (p->reader)
            fetch_file(p, input, interleaved, n);
        else
            copy_live(p, in, at, input, n);
        if (p->motion)
            gpuconv_motion_process(p->motion, (const float *const *)input, wet, n);
        else
            gpuconv_realtime_process(p->realtime, (const float *const *)input, wet, n);
        delay_dry(p, (const float *const *)input, dry, n);
        mix(p, (const float *const *)dry, (const float *const *)wet, mixed, n);
        record(p, mixed, interleaved, count_frames(p, mixed, n));
    }
    update_load(p, gc_now() - start, frames);
}
