/* The LV2 plug-in's signal path on the audio thread: predelay, convolution, wet and dry gain, bypass and meters.
 *
 *      in --+-- predelay -- convolver -- cuts, width -- wet --+-- + -- active ------+-- + -- out
 *           +-- latency --+----------------------------- dry --+                     |
 *                         +------------------------------------------- 1 - active ---+
 *
 * The dry signal is delayed by the plug-in's latency, as in gpuconv_ir_mix. */
#include "plugin.h"

#include <math.h>
#include <string.h>

static const float level_most = 24;        /* dB */
static const float level_least = -90;      /* dB; a level port there, and a meter below, is silence */
static const float bypass_seconds = 0.02F; /* of the crossfade between the effect and the input */
static const float meter_fall = 20;        /* dB per second */

void gc_lv2_clear_signal(plugin *p) {
    delay_line *line = &p->line;
    memset(line->samples, 0, (size_t)(line->capacity * p->inputs) * sizeof *line->samples);
    line->position = 0;
    line->predelay = line->dry = (delay_tap){-1, -1, 0};
    gc_lv2_clear_wet(p);
    p->wet = p->dry = p->active = -1; /* the first block takes them from the ports without a ramp */
    memset(p->peak, 0, sizeof p->peak);
    atomic_store(&p->started, false);
}

/* Returns the gain of a level port, limited to the port's range; 0 at -90 dB and below, for NaN, and without a port. */
static float port_gain(const float *decibels) {
    return !decibels || !(*decibels > level_least) ? 0 : powf(10, fminf(*decibels, level_most) / 20);
}

/* Returns the predelay of the port in frames; 0 for NaN. */
static double port_delay(const plugin *p) {
    double frames = (double)(p->parameter[PREDELAY] ? *p->parameter[PREDELAY] : 0) * 1e-3 * p->rate;
    return frames > 0 ? frames : 0;
}

/* Starts a crossfade to the wanted delay, limited to the delay line, unless one is in progress. */
static void retarget(const delay_line *line, delay_tap *tap, double frames) {
    const int64_t most = line->capacity - CHUNK;
    int64_t wanted = (int64_t)llrint(fmin(frames, (double)most));
    if (tap->delay < 0)
        tap->delay = tap->previous_delay = wanted;
    if (wanted != tap->delay && tap->fade_left == 0) {
        tap->previous_delay = tap->delay;
        tap->delay = wanted;
        tap->fade_left = line->fade_frames;
    }
}

/* Reads n frames per input, of which the first one was written at `position`. */
static void read_tap(const plugin *p, delay_tap *tap, int64_t position, int64_t n, float *const *out) {
    const delay_line *l = &p->line;
    for (int64_t i = 0; i < n; i++) {
        int64_t current = (position + i + l->capacity - tap->delay) % l->capacity;
        int64_t previous = (position + i + l->capacity - tap->previous_delay) % l->capacity;
        float part = tap->fade_left > 0 ? (float)tap->fade_left / (float)l->fade_frames : 0;
        for (int c = 0; c < p->inputs; c++) {
            const float *samples = l->samples + c * l->capacity;
            out[c][i] = samples[current] + part * (samples[previous] - samples[current]);
        }
        tap->fade_left -= tap->fade_left > 0;
    }
}

/* Returns a sample of the host's; silence instead of NaN or infinity. */
static float without_nan(float sample) {
    return isfinite(sample) ? sample : 0;
}

/* Writes n input frames from frame `from` to the delay line and reads both taps. */
static void run_delays(plugin *p, int64_t from, int64_t n, float *const *delayed, float *const *dry) {
    delay_line *l = &p->line;
    int64_t position = l->position;
    retarget(l, &l->predelay, port_delay(p));
    retarget(l, &l->dry, atomic_load(&p->lead));
    for (int64_t i = 0; i < n; i++) {
        for (int c = 0; c < p->inputs; c++)
            l->samples[c * l->capacity + l->position] = without_nan(p->in[c][from + i]);
        l->position = (l->position + 1) % l->capacity;
    }
    read_tap(p, &l->predelay, position, n, delayed);
    read_tap(p, &l->dry, position, n, dry);
}

static void update_peak(float *peak, const float *samples, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        *peak = fmaxf(*peak, fabsf(without_nan(samples[i])));
}

/* Lets the meters fall by the block's duration, before the block's own peaks are taken in. */
static void decay_peaks(plugin *p, int64_t frames) {
    float factor = powf(10, -meter_fall / 20 * (float)((double)frames / p->rate));
    for (int i = 0; i < 4; i++)
        p->peak[i] = p->peak[i] > 1e-5F ? fminf(p->peak[i], 1e6F) * factor : 0;
}

static void report_peaks(const plugin *p) {
    for (int i = 0; i < 4; i++)
        if (p->reported[PEAK_IN + i])
            *p->reported[PEAK_IN + i] = fmaxf(level_least, 20 * log10f(fmaxf(p->peak[i], 1e-9F)));
}

/* The gains of a block and how they move with each frame. */
typedef struct ramp {
    float wet, dry, active; /* steps per frame */
    float target;           /* of `active` */
} ramp;

/* Returns a sample with a gain; 0 if that is 0, also of a convolution that has overflowed. */
static float scaled(float gain, float sample) {
    return gain != 0 ? gain * sample : 0;
}

/* Writes n frames to the outputs and advances the gains. */
static void mix(plugin *p, const ramp *step, int64_t at, int64_t n, float *const *convolved, float *const *dry) {
    for (int64_t i = 0; i < n; i++) {
        p->wet += step->wet;
        p->dry += step->dry;
        p->active = step->active > 0 ? fminf(p->active + step->active, step->target)
                                     : fmaxf(p->active + step->active, step->target);
        for (int c = 0; c < OUTPUTS; c++) {
            float input = dry[c][i], effect = scaled(p->wet, convolved[c][i]) + scaled(p->dry, input);
            /* The sum would round a soft effect as the loud input. */
            p->out[c][at + i] = p->active == 1 ? effect : input + scaled(p->active, effect - input);
        }
    }
}

/* Returns how the gains move to those of the ports within the block; bypass takes its own time. */
static ramp prepare_ramp(plugin *p, float wet, float dry, float frames) {
    float target = p->parameter[ENABLED] && !(*p->parameter[ENABLED] > 0) ? 0 : 1;
    if (p->wet < 0) {
        p->wet = wet;
        p->dry = dry;
        p->active = target;
    }
    float bypass = 1 / (bypass_seconds * (float)p->rate);
    return (ramp){(wet - p->wet) / frames, (dry - p->dry) / frames, target > p->active ? bypass : -bypass, target};
}

void gc_lv2_run_signal(plugin *p, int64_t frames) {
    float gain = port_gain(p->parameter[GAIN]), wet = gain * port_gain(p->parameter[WET]),
          dry = gain * port_gain(p->parameter[DRY]);
    const int second = p->inputs - 1;
    float *delayed[] = {p->block[0], p->block[second]}, *straight[] = {p->block[2], p->block[2 + second]},
          *convolved[] = {p->block[4], p->block[5]};
    const ramp step = prepare_ramp(p, wet, dry, frames > 0 ? (float)frames : 1);
    decay_peaks(p, frames);
    for (int64_t at = 0; at < frames; at += CHUNK) {
        int64_t n = frames - at < CHUNK ? frames - at : CHUNK;
        for (int c = 0; c < 2; c++)
            update_peak(&p->peak[c], p->in[c] + at, n);
        /* The host may use the same buffers for input and output: the input is read before an output is written. */
        run_delays(p, at, n, delayed, straight);
        gpuconv_realtime_process(p->realtime, (const float *const *)delayed, convolved, n);
        gc_lv2_shape_wet(p, convolved, n);
        mix(p, &step, at, n, convolved, straight);
        for (int c = 0; c < OUTPUTS; c++)
            update_peak(&p->peak[2 + c], p->out[c] + at, n);
    }
    if (frames > 0) {
        p->wet = wet;
        p->dry = dry;
        atomic_store(&p->started, true);
    }
    report_peaks(p);
}
