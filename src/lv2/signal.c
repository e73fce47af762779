/* The LV2 plug-in's signal path on the audio thread: predelay, convolution, filters, wet and dry gain, bypass and
 * meters.
 *
 *           +-- predelay -- convolver -- part --+
 *           |                                    |
 *      in --+-- predelay -- convolver -- part --+-- + -- cuts, width -- wet --+-- + -- active ------+-- + -- out
 *           +-- latency --+----------------------------------------------- dry --+                  |
 *                         +---------------------------------------------------------- 1 - active ---+
 *
 * The dry signal is delayed by the plug-in's latency, as in gpuconv_ir_mix. A spatial form has its sources (space.c) in
 * the place of the convolvers.
 *
 * Each cut is a state variable filter with trapezoidal integration and the response of a Butterworth filter of second
 * order (Zavalishin, The Art of VA Filter Design, 2.1.2, section 4.4). A cut that is off and a width of 100 % leave the
 * samples unchanged. */
#include "plugin.h"

#include <math.h>
#include <string.h>

/* ---- The wet signal's filters and width -------------------------------------------------------------------------- */

static const float low_cut_off = 20, high_cut_off = 20000; /* Hz; there the ports turn the filters off */
static const float switch_seconds = 0.02F;                 /* of the crossfade when a filter is turned on or off */

/* Turns the filters and the width of the wet signal off without a crossfade; the next block takes them from the ports.
 */
static void lv2_clear_wet(plugin *p) {
    memset(&p->low_cut, 0, sizeof p->low_cut);
    memset(&p->high_cut, 0, sizeof p->high_cut);
    p->width = -1;
}

/* Clears integrators that overflowed, or that are so small that the processor would slow down. */
static void clean_state(cut *f) {
    for (int c = 0; c < OUTPUTS; c++)
        if (!(fabsf(f->state[c][0]) + fabsf(f->state[c][1]) < 1e30F) ||
            fabsf(f->state[c][0]) + fabsf(f->state[c][1]) < 1e-20F)
            f->state[c][0] = f->state[c][1] = 0;
}

/* Filters n frames. The frequency moves within them to `hertz`. */
static void run_cut(plugin *p, cut *f, bool is_high_pass, bool is_on, float hertz, float *const *samples, int64_t n) {
    const float k = 1.41421356F, target = is_on ? 1 : 0, step = 1 / (switch_seconds * (float)p->rate);
    const float g = tanf(3.14159265F * fminf(hertz / (float)p->rate, 0.49F));
    if (!is_on && f->part == 0)
        return;
    if (f->g == 0)
        f->g = g;
    const float way = is_on ? (g - f->g) / (float)n : 0; /* off: fades out at the frequency that it had */
    for (int64_t i = 0; i < n; i++) {
        f->g += way;
        f->part = is_on ? fminf(f->part + step, target) : fmaxf(f->part - step, target);
        const float a1 = 1 / (1 + f->g * (f->g + k)), a2 = f->g * a1, a3 = f->g * a2;
        for (int c = 0; c < OUTPUTS; c++) {
            float *s = f->state[c], in = samples[c][i], rest = in - s[1];
            float band = a1 * s[0] + a2 * rest, low = s[1] + a2 * s[0] + a3 * rest;
            s[0] = 2 * band - s[0];
            s[1] = 2 * low - s[1];
            float out = is_high_pass ? in - k * band - low : low;
            samples[c][i] = in + f->part * (out - in);
        }
    }
    clean_state(f);
    if (f->part == 0)
        memset(f, 0, sizeof *f);
}

/* Filters n frames of the convolved signal and changes its width, as the ports say. */
static void lv2_shape_wet(plugin *p, float *const *convolved, int64_t n) {
    const float *value = p->parameter[HIGH_CUT];
    const float low = gc_lv2_limited(p->parameter[LOW_CUT], low_cut_off, 2000);
    const float high = value && isfinite(*value) ? gc_lv2_limited(value, 500, high_cut_off) : high_cut_off;
    if (p->width < 0) {
        p->low_cut.part = low > low_cut_off ? 1 : 0;
        p->high_cut.part = high < high_cut_off ? 1 : 0;
    }
    run_cut(p, &p->low_cut, true, low > low_cut_off, low, convolved, n);
    run_cut(p, &p->high_cut, false, high < high_cut_off, high, convolved, n);
    value = p->parameter[WIDTH];
    const float width = value && isfinite(*value) ? gc_lv2_limited(value, 0, 200) / 100 : 1;
    if (p->width < 0)
        p->width = width;
    if (width == 1 && p->width == 1)
        return;
    const float way = (width - p->width) / (float)n;
    for (int64_t i = 0; i < n; i++) {
        p->width += way;
        float middle = 0.5F * (convolved[0][i] + convolved[1][i]);
        float side = p->width * 0.5F * (convolved[0][i] - convolved[1][i]);
        convolved[0][i] = middle + side;
        convolved[1][i] = middle - side;
    }
    p->width = width;
}

/* ---- The path ---------------------------------------------------------------------------------------------------- */

static const float level_most = 24;        /* dB */
static const float level_least = -90;      /* dB; a level port there, and a meter below, is silence */
static const float bypass_seconds = 0.02F; /* of the crossfade between the effect and the input, and of responses */
static const float meter_fall = 20;        /* dB per second */

void gc_lv2_clear_signal(plugin *p) {
    delay_line *line = &p->line;
    memset(line->samples, 0, (size_t)(line->capacity * p->form.inputs) * sizeof *line->samples);
    line->position = 0;
    line->dry = (delay_tap){-1, -1, 0};
    for (int s = 0; s < SLOTS; s++) {
        line->predelay[s] = line->dry;
        p->slot[s].part = -1;
        p->slot[s].quiet = 0;
    }
    gc_lv2_clear_space(p);
    lv2_clear_wet(p);
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
        for (int c = 0; c < (int)p->form.inputs; c++) {
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

double gc_lv2_lead(plugin *p) {
    return fmax(atomic_load(&p->slot[0].lead), atomic_load(&p->slot[1].lead));
}

/* Writes n input frames from frame `from` to the delay line and reads its taps: two channels for each response, then
 * two of the dry signal. */
static void run_delays(plugin *p, int64_t from, int64_t n, float *const *delayed) {
    delay_line *l = &p->line;
    int64_t position = l->position;
    const double lead = gc_lv2_lead(p);
    for (int s = 0; s < SLOTS; s++)
        retarget(l, &l->predelay[s], port_delay(p) + lead - atomic_load(&p->slot[s].lead));
    retarget(l, &l->dry, lead);
    for (int64_t i = 0; i < n; i++) {
        for (int c = 0; c < (int)p->form.inputs; c++)
            l->samples[c * l->capacity + l->position] = without_nan(p->in[c][from + i]);
        l->position = (l->position + 1) % l->capacity;
    }
    for (int s = 0; s < SLOTS; s++)
        read_tap(p, &l->predelay[s], position, n, delayed + 2 * s);
    read_tap(p, &l->dry, position, n, delayed + 2 * SLOTS);
}

/* Returns the gain of a slot that the crossfade asks for: those of both keep the power of different responses. */
static float wanted_part(const plugin *p, int s) {
    const float way = atomic_load(&p->slot[1].present) ? gc_lv2_limited(p->parameter[CROSSFADE], 0, 100) / 100 : 0;
    return way <= 0   ? (float)(s == 0)
           : way >= 1 ? (float)(s == 1)
           : s        ? sinf(1.57079633F * way)
                      : cosf(1.57079633F * way);
}

/* Convolves n frames with the response of a slot and multiplies them by its gain. A slot that is not heard is fed with
 * silence until it has nothing left to sound, and then rests. @return false: there is nothing to be heard */
static bool run_slot(plugin *p, int s, int64_t n, float *const *in, float *const *out) {
    slot *r = &p->slot[s];
    gpuconv_realtime *realtime = atomic_load(&r->realtime);
    const float wanted = wanted_part(p, s), step = 1 / (bypass_seconds * (float)p->rate);
    if (r->part < 0)
        r->part = wanted;
    const bool rests = wanted == 0 && r->part == 0;
    if (!realtime || (rests && r->quiet > atomic_load(&r->frames)))
        return false;
    for (int c = 0; c < (int)p->form.inputs && rests; c++)
        memset(in[c], 0, (size_t)n * sizeof *in[c]);
    r->quiet = rests ? r->quiet + n : 0;
    gpuconv_realtime_set_freewheel(realtime, p->parameter[FREEWHEEL] && *p->parameter[FREEWHEEL] > 0);
    gpuconv_realtime_process(realtime, (const float *const *)in, out, n);
    for (int64_t i = 0; i < n && !(wanted == 1 && r->part == 1); i++) {
        r->part += fmaxf(-step, fminf(step, wanted - r->part));
        for (int c = 0; c < OUTPUTS; c++)
            out[c][i] = r->part != 0 ? r->part * out[c][i] : 0; /* also of a convolution that has overflowed */
    }
    return true;
}

/* Convolves n frames with both responses. */
static void convolve(plugin *p, int64_t n, float *const *in, float *const *out) {
    const bool first = run_slot(p, 0, n, in, out), second = run_slot(p, 1, n, in + 2, out + OUTPUTS);
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < OUTPUTS; c++)
            out[c][i] = (first ? out[c][i] : 0) + (second ? out[OUTPUTS + c][i] : 0);
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
        if (p->parameter[PEAK_IN + i])
            *p->parameter[PEAK_IN + i] = fmaxf(level_least, 20 * log10f(fmaxf(p->peak[i], 1e-9F)));
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
    const float gain = port_gain(p->parameter[GAIN]), dry = gain * port_gain(p->parameter[DRY]),
                wet = gain * (p->form.is_space ? 1 : port_gain(p->parameter[WET]));
    const int second = (int)p->form.inputs - 1;
    float *taps[2 * SLOTS + 2], *convolved[OUTPUTS * SLOTS];
    for (int s = 0; s <= SLOTS; s++) {
        taps[2 * s] = p->block[2 * s];
        taps[2 * s + 1] = p->block[2 * s + second];
    }
    for (int c = 0; c < OUTPUTS * SLOTS; c++)
        convolved[c] = p->block[2 * SLOTS + 2 + c];
    const ramp step = prepare_ramp(p, wet, dry, frames > 0 ? (float)frames : 1);
    decay_peaks(p, frames);
    for (int64_t at = 0; at < frames; at += CHUNK) {
        int64_t n = frames - at < CHUNK ? frames - at : CHUNK;
        for (int c = 0; c < 2; c++)
            update_peak(&p->peak[c], p->in[c] + at, n);
        /* The host may use the same buffers for input and output: the input is read before an output is written. */
        run_delays(p, at, n, taps);
        if (p->form.is_space)
            gc_lv2_run_space(p, taps, convolved, n);
        else
            convolve(p, n, taps, convolved);
        lv2_shape_wet(p, convolved, n);
        mix(p, &step, at, n, convolved, taps + 2 * SLOTS);
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
