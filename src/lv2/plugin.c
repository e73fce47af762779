/* The convolver as an LV2 plug-in with one or two input channels and two output channels, in forms for reverb and for
 * sounds in space: instances, ports and the signal path.
 *
 * The response is a patch property, the path of a file. Hosts set it by a message to the control port, which is passed
 * to the worker: the worker reads and prepares the file and crossfades to the new response. Until the host sets a
 * response, the bundle's default response is used. */
#include "plugin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The signal path on the audio thread: predelay, convolution, filters, gain, bypass, meters ---- */

/*
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

/* Forgets the signal before the next block. */
static void clear_signal(plugin *p) {
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

/* Returns the larger lead of the responses, the latency in frames. */
static double longest_lead(plugin *p) {
    return fmax(atomic_load(&p->slot[0].lead), atomic_load(&p->slot[1].lead));
}

/* Writes n input frames from frame `from` to the delay line and reads its taps: two channels for each response, then
 * two of the dry signal. */
static void run_delays(plugin *p, int64_t from, int64_t n, float *const *delayed) {
    delay_line *l = &p->line;
    int64_t position = l->position;
    const double lead = longest_lead(p);
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

/* Runs the signal path on the audio thread: predelay, convolution, wet and dry gain, bypass, meters. */
static void run_signal(plugin *p, int64_t frames) {
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

/* ---- Instances and ports ----------------------------------------------------------------------------------------- */

static const double predelay_most = 0.5; /* seconds */

static void cleanup(LV2_Handle handle) {
    plugin *p = handle;
    for (int s = 0; s < SLOTS; s++)
        gpuconv_realtime_free(atomic_load(&p->slot[s].realtime));
    gc_lv2_free_space(p);
    (void)gc_lv2_track_head(p, 0, NULL);
    pthread_mutex_destroy(&p->loading);
    pthread_mutex_destroy(&p->path_lock);
    free(p->line.samples);
    free(p);
}

static LV2_Handle instantiate(const LV2_Descriptor *descriptor, double rate, const char *bundle,
                              const LV2_Feature *const *features) {
    gpuconv_error error = {GPUCONV_OK, ""};
    char path[PATH_MOST];
    const edits plain = {.stretch = 1};
    const lv2_form form = gc_lv2_form(descriptor->URI);
    int length = snprintf(path, sizeof path, "%sdefault.%s", bundle, form.is_space ? "sofa" : "flac");
    load first = {.path = path, .wanted = &plain};
    if (!(rate >= 1000 && rate <= 1e6) || length < 0 || length >= PATH_MOST)
        return NULL;
    plugin *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    pthread_mutex_init(&p->loading, NULL);
    pthread_mutex_init(&p->path_lock, NULL);
    p->rate = rate;
    p->form = form;
    atomic_store(&p->space.tracker, -1);
    for (; features && *features; features++) {
        if (strcmp((*features)->URI, LV2_URID__map) == 0)
            p->map = (*features)->data;
        else if (strcmp((*features)->URI, LV2_WORKER__schedule) == 0)
            p->worker = (*features)->data;
        else if (strcmp((*features)->URI, LV2_LOG__log) == 0)
            p->log.log = (*features)->data;
    }
    lv2_log_logger_set_map(&p->log, p->map);
    if (p->map)
        p->uri = gc_lv2_map_uris(p->map, &p->forge);
    p->line.capacity = (int64_t)(predelay_most * rate) + CHUNK;
    p->line.fade_frames = (int64_t)(0.02 * rate);
    p->line.samples = calloc((size_t)(p->line.capacity * p->form.inputs), sizeof *p->line.samples);
    if (!p->line.samples || !gc_lv2_load(p, &first, &error)) {
        gc_lv2_log_error(p, p->line.samples ? error.message : "out of memory");
        cleanup(p);
        return NULL;
    }
    p->requested = plain;
    (void)snprintf(p->slot[0].announced_path, sizeof p->slot[0].announced_path, "%s", path);
    return p;
}

static void connect(LV2_Handle handle, uint32_t index, void *data) {
    plugin *p = handle;
    uint32_t channel;
    const port number = gc_lv2_port_at(p->form, index, &channel);
    if (number == CONTROL) {
        p->control = data;
    } else if (number == NOTIFY) {
        p->notify = data;
    } else if (number < PORTS) {
        p->parameter[number] = data;
    } else if (channel < p->form.inputs) {
        p->in[channel] = data;
        if (p->form.inputs == 1)
            p->in[1] = data;
    } else if (channel < p->form.inputs + OUTPUTS) {
        p->out[channel - p->form.inputs] = data;
    }
}

static void activate(LV2_Handle handle) {
    plugin *p = handle;
    for (int s = 0; s < SLOTS; s++)
        gpuconv_realtime_reset(atomic_load(&p->slot[s].realtime));
    clear_signal(p);
}

static void run(LV2_Handle handle, uint32_t frames) {
    plugin *p = handle;
    gc_lv2_read_messages(p);
    gc_lv2_follow_edits(p);
    gc_lv2_look_for_missing(p, frames);
    gc_lv2_write_messages(p);
    run_signal(p, frames);
    if (p->parameter[LATENCY])
        *p->parameter[LATENCY] = (float)longest_lead(p);
    if (p->parameter[LATE_BLOCKS])
        *p->parameter[LATE_BLOCKS] = (float)(gpuconv_realtime_late_blocks(atomic_load(&p->slot[0].realtime)) +
                                             gpuconv_realtime_late_blocks(atomic_load(&p->slot[1].realtime)));
}

static const void *extension(const char *uri) {
    return strcmp(uri, LV2_WORKER__interface) == 0  ? (const void *)&gc_lv2_worker
           : strcmp(uri, LV2_STATE__interface) == 0 ? (const void *)&gc_lv2_state
                                                    : NULL;
}

LV2_SYMBOL_EXPORT const LV2_Descriptor *lv2_descriptor(uint32_t index) {
    static const LV2_Descriptor descriptors[] = {
        {PLUGIN_URI "stereo", instantiate, connect, activate, run, NULL, cleanup, extension},
        {PLUGIN_URI "mono", instantiate, connect, activate, run, NULL, cleanup, extension},
        {PLUGIN_URI "space-stereo", instantiate, connect, activate, run, NULL, cleanup, extension},
        {PLUGIN_URI "space-mono", instantiate, connect, activate, run, NULL, cleanup, extension},
    };
    return index < sizeof descriptors / sizeof *descriptors ? &descriptors[index] : NULL;
}
