/* Edits of responses. In time: cutting, trimming, fading, reversing, delaying, aligning, resampling, stretching. In
 * level: gain, mix with the input, and normalisation by one gain for all routes. Through their spectra: two responses
 * in series, and conversion to minimum phase. The peak, and the first frame that reaches a level, are searched in
 * blocks that stay in the cache. */
#include "object.h"
#include "settings.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/dsp/finite.h"
#include "libgpuconv/dsp/fourier.h"
#include "libgpuconv/dsp/loudness.h"
#include "libgpuconv/dsp/resampler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Peak and onset ---------------------------------------------------------------------------------------------- */

enum { BLOCK = 4096 };

/* Returns the first frame in which any channel reaches the level; `frames` if there is none. */
static int64_t find_level(const gpuconv_ir *ir, float level) {
    int64_t first = ir->frames;
    for (int p = 0; p < ir->planes; p++) {
        const float *taps = gc_ir_plane(ir, p);
        int64_t at = 0;
        while (at < first && gc_magnitude(taps + at, gc_min(BLOCK, first - at)) < level)
            at += BLOCK;
        while (at < first && fabsf(taps[at]) < level)
            at++;
        first = gc_min(first, at);
    }
    return first;
}

float gc_ir_magnitude(const gpuconv_ir *ir) {
    return gc_magnitude(ir->taps, (int64_t)ir->planes * ir->frames);
}

int64_t gc_ir_find_onset(const gpuconv_ir *ir, float peak, double decibels) {
    return peak > 0 ? find_level(ir, peak * (float)gc_level_factor(fmin(decibels, 0))) : 0;
}

int64_t gpuconv_ir_peak(const gpuconv_ir *ir, double *magnitude) {
    const float peak = ir ? gc_ir_magnitude(ir) : 0;
    if (magnitude)
        *magnitude = (double)peak;
    return ir ? find_level(ir, peak) : 0;
}

int64_t gpuconv_ir_onset(const gpuconv_ir *ir, double decibels) {
    return ir ? gc_ir_find_onset(ir, gc_ir_magnitude(ir), decibels) : 0;
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

static gpuconv_status fail_memory(gpuconv_error *error) {
    return gc_fail_memory(error, "the response");
}

static double to_seconds(const gpuconv_ir *ir, int64_t frames) {
    return (double)frames / ir->rate;
}

/* Copies frames from .. from + frames - 1 into a new response; frames outside of the old one are zeros. The lead is
 * that of the old one, and so is the ringing that is copied. Returns NULL without memory. */
static gpuconv_ir *copy_window(const gpuconv_ir *ir, int64_t from, int64_t frames) {
    gpuconv_ir *made = gc_ir_like(ir, frames, ir->rate);
    int64_t begin = gc_max(from, 0), end = gc_min(from + frames, ir->frames);
    for (int p = 0; made && p < ir->planes && begin < end; p++)
        memcpy(made->taps + p * frames + begin - from, gc_ir_plane(ir, p) + begin,
               (size_t)(end - begin) * sizeof(float));
    if (made)
        made->ring = gc_max(0, end - (ir->frames - ir->ring));
    return made;
}

gpuconv_status gpuconv_ir_cut(const gpuconv_ir *ir, int64_t start, int64_t frames, gpuconv_ir **cut,
                              gpuconv_error *error) {
    if (!gc_begin(cut, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (start < 0 || frames == 0 || frames < -1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a part begins at frame 0 or later and has at least one frame");
    if (start >= ir->frames)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the response has %lld frames (%g s); the part begins at %g s",
                       (long long)ir->frames, to_seconds(ir, ir->frames), to_seconds(ir, start));
    int64_t available = ir->frames - start;
    frames = frames < 0 ? available : gc_min(frames, available);
    gpuconv_ir *made = copy_window(ir, start, frames);
    if (!made)
        return fail_memory(error);
    made->lead = gc_max(0, ir->lead - start);
    return gc_ir_finish(made, cut, error, "cut to %g s from %g s on", to_seconds(ir, frames), to_seconds(ir, start));
}

gpuconv_status gpuconv_ir_trim(const gpuconv_ir *ir, double decibels, gpuconv_ir **trimmed, gpuconv_error *error) {
    if (!gc_begin(trimmed, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (!(decibels < 0 && decibels >= -300))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the level of trimming is -300 to 0 dB, not %g", decibels);
    double peak;
    gpuconv_ir_peak(ir, &peak);
    double level = peak * pow(10, decibels / 20);
    int64_t end = 1;
    for (int p = 0; p < ir->planes; p++) {
        const float *taps = gc_ir_plane(ir, p);
        for (int64_t i = ir->frames - 1; i >= end; i--)
            if (fabs((double)taps[i]) >= level && taps[i] != 0)
                end = i + 1;
    }
    end = gc_max(end, gc_min(ir->lead + 1, ir->frames));
    return gc_ir_finish(copy_window(ir, 0, end), trimmed, error, "trimmed from %g to %g s, where it stays under %g dB",
                        to_seconds(ir, ir->frames), to_seconds(ir, end), decibels);
}

gpuconv_status gpuconv_ir_fade(const gpuconv_ir *ir, int64_t in, int64_t out, gpuconv_ir **faded,
                               gpuconv_error *error) {
    if (!gc_begin(faded, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (in < 0 || out < 0)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a fade has 0 frames or more");
    gpuconv_ir *made = copy_window(ir, 0, ir->frames);
    if (!made)
        return fail_memory(error);
    in = gc_min(in, ir->frames);
    out = gc_min(out, ir->frames);
    for (int p = 0; p < ir->planes; p++) {
        float *taps = made->taps + p * ir->frames;
        for (int64_t i = 0; i < in; i++)
            taps[i] *= (float)(0.5 - 0.5 * cos(M_PI * (double)i / (double)in));
        for (int64_t i = 0; i < out; i++)
            taps[ir->frames - 1 - i] *= (float)(0.5 - 0.5 * cos(M_PI * (double)i / (double)out));
    }
    return gc_ir_finish(made, faded, error, "faded in over %g s and out over %g s", to_seconds(ir, in),
                        to_seconds(ir, out));
}

gpuconv_status gpuconv_ir_reverse(const gpuconv_ir *ir, gpuconv_ir **reversed, gpuconv_error *error) {
    if (!gc_begin(reversed, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_ir *made = gc_ir_like(ir, ir->frames, ir->rate);
    if (!made)
        return fail_memory(error);
    made->lead = ir->ring; /* time zero is the last frame of the response itself */
    made->ring = ir->lead;
    for (int p = 0; p < ir->planes; p++)
        for (int64_t i = 0; i < ir->frames; i++)
            made->taps[p * ir->frames + i] = gc_ir_plane(ir, p)[ir->frames - 1 - i];
    return gc_ir_finish(made, reversed, error, "reversed");
}

gpuconv_status gpuconv_ir_delay(const gpuconv_ir *ir, int64_t frames, gpuconv_ir **delayed, gpuconv_error *error) {
    if (!gc_begin(delayed, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (frames < 0 || frames > INT64_MAX / 2 - ir->frames)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a delay has 0 frames or more");
    gpuconv_status fits = gc_ir_check_memory(ir->planes, (double)ir->frames + (double)frames, 0, error);
    if (fits)
        return fits;
    return gc_ir_finish(copy_window(ir, -frames, ir->frames + frames), delayed, error, "delayed by %g s",
                        to_seconds(ir, frames));
}

gpuconv_status gpuconv_ir_align(const gpuconv_ir *ir, gpuconv_align how, gpuconv_ir **aligned, gpuconv_error *error) {
    if (!gc_begin(aligned, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if ((unsigned)how > GPUCONV_ALIGN_PEAK)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "unknown alignment %d", (int)how);
    int64_t onset = how == GPUCONV_ALIGN_ONSET ? gpuconv_ir_onset(ir, -60) : 0;
    gpuconv_ir *made = copy_window(ir, onset, ir->frames - onset);
    if (!made)
        return fail_memory(error);
    if (how == GPUCONV_ALIGN_PEAK) {
        made->lead = gpuconv_ir_peak(ir, NULL);
        return gc_ir_finish(made, aligned, error, "its peak, at %g s, taken for time zero", to_seconds(ir, made->lead));
    }
    made->lead = gc_max(0, ir->lead - onset);
    if (onset == 0)
        return gc_ir_finish(made, aligned, error, "%s", "");
    return gc_ir_finish(made, aligned, error, "%g s of silence before it cut off", to_seconds(ir, onset));
}

/* ---- Resampling --------------------------------------------------------------------------------------------- */

/* SILENCE: least frames of silence, at the lower of both rates, around the response on its way through the resampler,
 * whose filter rings over fewer than 130 frames of this rate. SEARCH: least number of lengths of the silence before it
 * among which one is chosen; 441 hold a whole number of frames at both rates if these are common ones. */
enum { SILENCE = 160, SEARCH = 512 };

/* For larger ratios of rates, designing the resampler's filters alone takes seconds. */
static const double max_ratio = 1000;

/* Share of a plane's energy before time zero below which it is dropped and the response gets no lead (-60 dB is below
 * any noise floor), and share that a lead and the ringing at the end may each leave out. */
static const double droppable_energy = 1e-6, truncation = 1e-12;

/* The parts of a response on its way through the resampler: silence before and after it, at the old rate, and the
 * frames of it and of the silence at the new one. */
typedef struct spans {
    int64_t old_before, old_frames, old_after, before, frames, after;
} spans;

/* Resamples one plane with the silence around it. Returns MEMORY, CANCELLED, UNSUPPORTED. */
static gpuconv_status resample_plane(const float *taps, const spans *s, double ratio, float *to, gpuconv_error *error) {
    const int64_t all = s->old_before + s->old_frames + s->old_after;
    float *padded = gc_calloc(all, sizeof *padded);
    if (!padded)
        return fail_memory(error);
    memcpy(padded + s->old_before, taps, (size_t)s->old_frames * sizeof *padded);
    /* A response is a density over time: its sum must be preserved, not its height. */
    gpuconv_status status = gc_resample(padded, all, ratio, 1 / ratio, to, s->before + s->frames + s->after, error);
    free(padded);
    return status;
}

/* Returns the length of the shortest part of n taps, which ends with the last of them or, `backwards`, begins with the
 * first, such that the others have at most the energy `most`. */
static int64_t shorten(const float *taps, int64_t n, bool backwards, double most) {
    double left_out = 0;
    int64_t i = 0;
    for (; i < n; i++) {
        const double tap = (double)taps[backwards ? n - 1 - i : i];
        left_out += tap * tap;
        if (!(left_out <= most))
            break;
    }
    return n - i;
}

/* Extends the lead and the ringing such that a resampled plane keeps both. */
static void keep_ends(const float *taps, const spans *s, int64_t *lead, int64_t *ring) {
    const double total = gc_energy(taps, s->before + s->frames + s->after);
    if (gc_energy(taps, s->before) > droppable_energy * total)
        *lead = gc_max(*lead, shorten(taps, s->before, false, truncation * total));
    *ring = gc_max(*ring, shorten(taps + s->before + s->frames, s->after, true, truncation * total));
}

/* Adds the sum of the `left_out` taps beyond an end, evenly, to the outermost of the `kept` ones, so that the gain at
 * 0 Hz stays. edge: the outermost tap that is kept; inwards: 1 at the first end, -1 at the last one. */
static void keep_sum(float *edge, int64_t left_out, int64_t kept, int inwards) {
    const int64_t n = gc_min(kept, 64); /* enough to change nothing in the upper pass band */
    double sum = 0;
    for (int64_t i = 1; i <= left_out; i++)
        sum += (double)edge[-i * inwards];
    for (int64_t i = 0; i < n; i++)
        edge[i * inwards] += (float)(sum / (double)n);
}

/* Divides the way through the resampler. The frames before time zero, `lead` more than the silence, are (nearly) a
 * whole number at both rates, so that time zero stays on a frame. */
static spans divide(const gpuconv_ir *ir, int64_t frames, int64_t lead, double ratio) {
    const int64_t shortest = (int64_t)ceil(SILENCE / fmin(1, ratio));
    int64_t best = shortest;
    double least = 1;
    for (int64_t k = shortest; k < shortest + gc_max(3 * shortest, SEARCH); k++) {
        const double exact = (double)(k + ir->lead) * ratio, off = fabs(exact - nearbyint(exact));
        if (off < least - 1e-9) {
            best = k;
            least = off;
        }
    }
    return (spans){.old_before = best,
                   .old_frames = ir->frames,
                   .old_after = shortest,
                   .before = llrint((double)(best + ir->lead) * ratio) - lead,
                   .frames = frames,
                   .after = (int64_t)((double)(shortest - 1) * ratio)};
}

/* Resamples all planes to `ratio` times as many frames and sets the rate of the result. Returns MEMORY, CANCELLED,
 * UNSUPPORTED. */
static gpuconv_status interpolate(const gpuconv_ir *ir, double ratio, double rate, gpuconv_ir **made,
                                  gpuconv_error *error) {
    const double length = ceil((double)ir->frames * ratio), silence = 1024 * fmax(ratio, 1 / ratio);
    /* All planes twice, each with its silence, and one plane at the old rate. */
    gpuconv_status fits = gc_ir_check_memory(
        ir->planes, length, 4 * ((double)ir->planes * (length + silence) + (double)ir->frames + silence), error);
    if (fits)
        return fits;
    const int64_t lead = llrint((double)ir->lead * ratio);
    const spans s = divide(ir, gc_max(1, (int64_t)length), lead, ratio);
    const int64_t all = s.before + s.frames + s.after;
    int64_t before = 0, after = 0;
    float *plane = gc_calloc((int64_t)ir->planes * all, sizeof *plane);
    gpuconv_status status = plane ? GPUCONV_OK : gc_fail_memory(error, "the resampled response");
    for (int p = 0; !status && p < ir->planes; p++) {
        status = resample_plane(gc_ir_plane(ir, p), &s, ratio, plane + p * all, error);
        if (!status)
            keep_ends(plane + p * all, &s, &before, &after);
    }
    const int64_t kept = before + s.frames + after;
    gpuconv_ir *done = status ? NULL : gc_ir_like(ir, kept, rate);
    if (!status && !done)
        status = gc_fail_memory(error, "the resampled response");
    for (int p = 0; !status && p < ir->planes; p++) {
        float *first = plane + p * all + s.before - before;
        keep_sum(first, s.before - before, kept, 1);
        keep_sum(first + kept - 1, s.after - after, kept, -1);
        memcpy(done->taps + p * kept, first, (size_t)kept * sizeof *plane);
    }
    if (!status) {
        done->lead = before + lead;
        done->ring = after + (int64_t)((double)ir->ring * ratio);
    }
    free(plane);
    *made = done;
    return status;
}

gpuconv_status gpuconv_ir_resample(const gpuconv_ir *ir, double rate, gpuconv_ir **resampled, gpuconv_error *error) {
    if (!gc_begin(resampled, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    const double ratio = rate / ir->rate;
    if (!gc_is_rate(rate) || !(ratio >= 1 / max_ratio && ratio <= max_ratio))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "a response of %g Hz can be resampled to 1 to %d Hz and by a factor of at most %g, not to %g Hz",
                       ir->rate, GC_MAX_RATE, max_ratio, rate);
    gpuconv_ir *made;
    gpuconv_status status = interpolate(ir, ratio, rate, &made, error);
    if (status)
        return status;
    char lead[64] = "";
    if (made->lead > 0)
        (void)snprintf(lead, sizeof lead, ", %lld frames of it before time zero", (long long)made->lead);
    return gc_ir_finish(made, resampled, error, "resampled from %.0f to %.0f Hz, its level rescaled by %.4f%s",
                        ir->rate, rate, ir->rate / rate, lead);
}

gpuconv_status gpuconv_ir_stretch(const gpuconv_ir *ir, double factor, gpuconv_ir **stretched, gpuconv_error *error) {
    if (!gc_begin(stretched, ir, __func__, error) || gc_setting_check(GC_SETTING_STRETCH, factor, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_ir *made;
    gpuconv_status status = interpolate(ir, factor, ir->rate, &made, error);
    return status ? status : gc_ir_finish(made, stretched, error, "stretched to %g times its length", factor);
}

/* ---- Level ------------------------------------------------------------------------------------------------------- */

/* Frees a response that a gain took beyond the range of floats. Returns ARGUMENT. */
static gpuconv_status fail_overflow(gpuconv_ir *made, double decibels, gpuconv_error *error) {
    gpuconv_ir_free(made);
    return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a gain of %g dB takes the response beyond the range of floats",
                   decibels);
}

/* Multiplies every tap by a gain; adds nothing to the history. Returns ARGUMENT, MEMORY. */
static gpuconv_status scale(const gpuconv_ir *ir, double decibels, gpuconv_ir **scaled, gpuconv_error *error) {
    gpuconv_ir *made = gc_ir_like(ir, ir->frames, ir->rate);
    if (!made)
        return gc_fail_memory(error, "the response");
    double factor = gc_level_factor(decibels);
    bool finite = true;
    for (int64_t i = 0; i < (int64_t)ir->planes * ir->frames; i++) {
        made->taps[i] = (float)(factor * (double)ir->taps[i]);
        finite &= isfinite(made->taps[i]) != 0;
    }
    if (!finite)
        return fail_overflow(made, decibels, error);
    *scaled = made;
    return GPUCONV_OK;
}

gpuconv_status gpuconv_ir_gain(const gpuconv_ir *ir, double decibels, gpuconv_ir **scaled, gpuconv_error *error) {
    if (!gc_begin(scaled, ir, __func__, error) || gc_setting_check(GC_SETTING_GAIN, decibels, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_ir *made;
    gpuconv_status status = scale(ir, decibels, &made, error);
    return status ? status : gc_ir_finish(made, scaled, error, "gain %+g dB", decibels);
}

/* ---- Mix --------------------------------------------------------------------------------------------------------- */

/* Returns whether the dry input is added to this route: to the output of its number, or to all if it is the only
 * input. */
static bool takes_dry_input(const gpuconv_ir *ir, int input, int output) {
    return input == output || ir->inputs == 1;
}

/* Lists the routes of the mix in order of output and input: routes of the response with their planes, and additional
 * routes for the dry input with plane -1. Returns their number. */
static int mix_routes(const gpuconv_ir *ir, bool dry, gc_route *route) {
    int count = 0, r = 0;
    for (int o = 0; o < ir->outputs; o++) {
        for (int i = 0; i < ir->inputs; i++) {
            bool exists = r < ir->routes && ir->route[r].input == i && ir->route[r].output == o;
            if (exists || (dry && takes_dry_input(ir, i, o)))
                route[count++] = (gc_route){i, o, exists ? ir->route[r].plane : -1};
            r += exists;
        }
    }
    return count;
}

/* Every route of the mix gets its own plane, because the dry input changes the taps of some routes only. */
gpuconv_status gpuconv_ir_mix(const gpuconv_ir *ir, double wet, double dry, gpuconv_ir **mixed, gpuconv_error *error) {
    if (!gc_begin(mixed, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (!ir->routed)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response is routed before it is mixed with its input");
    if (gc_setting_check(GC_SETTING_WET, wet, error) || gc_setting_check(GC_SETTING_DRY, dry, error))
        return GPUCONV_ERROR_ARGUMENT;
    gc_route *route = gc_calloc((int64_t)ir->inputs * ir->outputs, sizeof *route);
    if (!route)
        return gc_fail_memory(error, "the routes");
    double wet_factor = gc_level_factor(wet), dry_factor = gc_level_factor(dry);
    int routes = mix_routes(ir, dry_factor > 0, route);
    gpuconv_status fits = gc_ir_check_memory(routes, (double)ir->frames, 0, error);
    if (fits) {
        free(route);
        return fits;
    }
    gpuconv_ir *made = gc_ir_blank(ir->inputs, ir->outputs, routes, routes, ir->frames, ir->rate);
    bool finite = true;
    for (int r = 0; made && r < routes; r++) {
        const float *from = route[r].plane >= 0 ? gc_ir_plane(ir, route[r].plane) : NULL;
        float *to = made->taps + (int64_t)r * ir->frames;
        bool takes_dry = takes_dry_input(ir, route[r].input, route[r].output);
        for (int64_t i = 0; i < ir->frames; i++) {
            to[i] = (float)((from ? wet_factor * (double)from[i] : 0) + (takes_dry && i == ir->lead ? dry_factor : 0));
            finite &= isfinite(to[i]) != 0;
        }
        made->route[r] = (gc_route){route[r].input, route[r].output, r};
    }
    free(route);
    if (!finite)
        return fail_overflow(made, wet, error);
    if (made) {
        made->lead = ir->lead;
        made->routed = ir->routed;
        if (ir->history && !gc_ir_append_history(made, "%s", ir->history)) {
            gpuconv_ir_free(made);
            made = NULL;
        }
    }
    return gc_ir_finish(made, mixed, error, "wet %g dB, dry %g dB", wet, dry);
}

/* ---- Normalisation ----------------------------------------------------------------------------------------------- */

/* Sums, for each output, the magnitudes of the taps of its routes to this power (1 or 2). Returns the largest sum. */
static double largest_sum(const gpuconv_ir *ir, int power) {
    double largest = 0, sum = 0;
    for (int r = 0; r < ir->routes; r++) {
        const float *taps = gc_ir_plane(ir, ir->route[r].plane);
        if (r == 0 || ir->route[r].output != ir->route[r - 1].output)
            sum = 0;
        for (int64_t i = 0; i < ir->frames; i++) {
            double t = fabs((double)taps[i]);
            sum += power == 1 ? t : t * t;
        }
        largest = fmax(largest, sum);
    }
    return largest;
}

/* Fills n samples with pink noise: white noise through Kellet's three-pole filter, -3 dB per octave within 0.3 dB. */
static void fill_pink(double *to, int64_t n, uint64_t seed) {
    double b0 = 0, b1 = 0, b2 = 0;
    uint64_t state = seed * GC_SPLITMIX_STEP + 1;
    for (int64_t i = 0; i < n; i++) {
        double white = gc_random_uniform(&state);
        b0 = 0.99765 * b0 + white * 0.0990460;
        b1 = 0.96300 * b1 + white * 0.2965164;
        b2 = 0.57000 * b2 + white * 1.0526913;
        to[i] = 0.25 * (b0 + b1 + b2 + white * 0.1848);
    }
}

/* Returns the number of frames between the silence at both ends, and stores the first of them in *first. The response
 * must not be silent. */
static int64_t count_used_frames(const gpuconv_ir *ir, int64_t *first) {
    int64_t end = 0;
    *first = ir->frames;
    for (int p = 0; p < ir->planes; p++) {
        const float *taps = gc_ir_plane(ir, p);
        for (int64_t i = 0; i < *first; i++)
            if (taps[i] != 0)
                *first = i;
        for (int64_t i = ir->frames - 1; i >= end; i--)
            if (taps[i] != 0)
                end = i + 1;
    }
    return end - *first;
}

/*
 * Computes the gain that keeps the loudness of pink noise: the mean power of the outputs equals that of the inputs.
 * Each input has its own noise, and only the time in which the whole response sounds is measured. The response is first
 * scaled to unit energy, because BS.1770 ignores signals below a gate.
 */
static gpuconv_status loudness_gain(const gpuconv_ir *ir, double *decibels, gpuconv_error *error) {
    if (!(ir->rate >= 16 && ir->rate <= 2822400)) /* the rates that libebur128 supports */
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "loudness is measured at 16 to 2822400 Hz, not at %g", ir->rate);
    int64_t first, m = count_used_frames(ir, &first), steady = (int64_t)(3 * ir->rate) + 1, n = m - 1 + steady;
    double unit_gain = 1 / sqrt(largest_sum(ir, 2)), before = 0, after = 0, power;
    double *noise = gc_calloc(n, (int64_t)sizeof *noise), *taps = gc_calloc(m, (int64_t)sizeof *taps);
    double *out = gc_calloc(n + m - 1, (int64_t)sizeof *out), *sum = gc_calloc(steady, (int64_t)sizeof *sum);
    gpuconv_status status = noise && taps && out && sum ? GPUCONV_OK : gc_fail_memory(error, "the response's loudness");
    for (int i = 0; !status && i < ir->inputs; i++) {
        fill_pink(noise, n, (uint64_t)i + 1);
        status = gc_loudness_power(noise + m - 1, steady, ir->rate, &power, error);
        before += power / ir->inputs;
    }
    for (int r = 0; !status && r < ir->routes; r++) {
        const float *from = gc_ir_plane(ir, ir->route[r].plane);
        for (int64_t i = 0; i < m; i++)
            taps[i] = unit_gain * (double)from[first + i];
        fill_pink(noise, n, (uint64_t)ir->route[r].input + 1);
        if (!gc_fourier_convolve(noise, n, taps, m, out))
            status = gc_fail_memory(error, "the response's loudness");
        for (int64_t i = 0; i < steady; i++)
            sum[i] += out[m - 1 + i];
        bool last = r + 1 == ir->routes || ir->route[r + 1].output != ir->route[r].output;
        if (!status && last) {
            status = gc_loudness_power(sum, steady, ir->rate, &power, error);
            after += power / ir->outputs;
            memset(sum, 0, (size_t)steady * sizeof *sum);
        }
    }
    free(noise);
    free(taps);
    free(out);
    free(sum);
    if (!status)
        *decibels = 10 * log10(before / after) + 20 * log10(unit_gain);
    return status;
}

gpuconv_status gpuconv_ir_normalize(const gpuconv_ir *ir, gpuconv_normalize how, double *decibels,
                                    gpuconv_ir **normalized, gpuconv_error *error) {
    static const char *const names[] = {"none", "peak", "l1", "energy", "loudness"};
    double gain = 0, most;
    if (!gc_begin(normalized, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (decibels)
        *decibels = 0;
    if ((size_t)how >= sizeof names / sizeof *names)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "no such way to normalise: %d", (int)how);
    gpuconv_ir_peak(ir, &most);
    if (how != GPUCONV_NORMALIZE_NONE && !(most > 0))
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "the response is silent and cannot be normalised");
    gpuconv_status status = GPUCONV_OK;
    if (how == GPUCONV_NORMALIZE_PEAK)
        gain = -20 * log10(most);
    else if (how == GPUCONV_NORMALIZE_L1)
        gain = -20 * log10(largest_sum(ir, 1));
    else if (how == GPUCONV_NORMALIZE_ENERGY)
        gain = -10 * log10(largest_sum(ir, 2));
    else if (how == GPUCONV_NORMALIZE_LOUDNESS)
        status = loudness_gain(ir, &gain, error);
    if (status)
        return status;
    if (!(fabs(gain) <= 400))
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "normalising the response needs a gain of more than 400 dB");
    gpuconv_ir *made;
    status = scale(ir, gain, &made, error);
    if (status)
        return status;
    if (decibels)
        *decibels = gain;
    if (how == GPUCONV_NORMALIZE_NONE)
        return gc_ir_finish(made, normalized, error, "%s", "");
    return gc_ir_finish(made, normalized, error, "normalised by %s: %+.2f dB", names[how],
                        fabs(gain) < 0.005 ? 0.0 : gain);
}

/* ---- Spectra ----------------------------------------------------------------------------------------------------- */

/* Converts n floats to doubles. */
static void widen(const float *from, double *to, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        to[i] = (double)from[i];
}

gpuconv_status gpuconv_ir_series(const gpuconv_ir *a, const gpuconv_ir *b, gpuconv_ir **both, gpuconv_error *error) {
    if (!gc_begin(both, a && b ? a : NULL, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    const gpuconv_ir *wide = a->planes >= b->planes ? a : b; /* the result has its routes */
    bool both_unrouted = !a->routed && !b->routed;
    if ((a->planes != 1 && b->planes != 1 && a->planes != b->planes) ||
        (a->planes != 1 && b->planes != 1 && !both_unrouted))
        return gc_fail(
            error, GPUCONV_ERROR_TOPOLOGY,
            "responses of %d and %d channels cannot be in series; both need the same number, or one of them 1 channel",
            a->planes, b->planes);
    if (a->rate != b->rate)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "responses in series must have the same rate, not %g and %g Hz",
                       a->rate, b->rate);
    if (a->planes == b->planes && b->routed)
        wide = b;
    int64_t frames = a->frames + b->frames - 1;
    /* Complex FFTs in double precision of the next power of two, and their twiddle factors. */
    gpuconv_status fits = gc_ir_check_memory(wide->planes, (double)frames,
                                             24.0 * (double)gc_power_of_two(frames) + 16.0 * (double)frames, error);
    if (fits)
        return fits;
    gpuconv_ir *made = gc_ir_like(wide, frames, a->rate);
    double *x = gc_calloc(a->frames, (int64_t)sizeof *x), *y = gc_calloc(b->frames, (int64_t)sizeof *y);
    double *out = gc_calloc(frames, (int64_t)sizeof *out);
    bool ok = made && x && y && out, finite = true;
    for (int p = 0; ok && p < wide->planes; p++) {
        widen(gc_ir_plane(a, a->planes == 1 ? 0 : p), x, a->frames);
        widen(gc_ir_plane(b, b->planes == 1 ? 0 : p), y, b->frames);
        ok = gc_fourier_convolve(x, a->frames, y, b->frames, out);
        for (int64_t i = 0; ok && i < frames; i++) {
            made->taps[p * frames + i] = (float)out[i];
            finite &= isfinite((float)out[i]) != 0;
        }
    }
    free(x);
    free(y);
    free(out);
    if (!ok || !finite) {
        gpuconv_ir_free(made);
        return ok ? gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the result in series is beyond the range of floats")
                  : gc_fail_memory(error, "the response");
    }
    made->lead = a->lead + b->lead;
    made->ring = a->ring + b->ring;
    return gc_ir_finish(made, both, error, "in series with another of %g s", (double)b->frames / b->rate);
}

/* Points between two checks of the cancel flag. */
enum { CANCEL_INTERVAL = 1 << 16 };

/* Returns whether the work was cancelled; looks at the flag once per CANCEL_INTERVAL points. */
static bool cancelled_at(int64_t k) {
    return k % CANCEL_INTERVAL == CANCEL_INTERVAL - 1 && gc_cancelled();
}

/* Replaces the plane in `re` (padded with zeros to `points`) by its minimum-phase version, times `points`. `im` is zero
 * on entry. Returns false without memory. */
static bool convert_to_minimum_phase(double *re, double *im, int64_t points) {
    if (!gc_fourier(re, im, points, -1))
        return false;
    double most = 0;
    for (int64_t k = 0; k < points && !cancelled_at(k); k++)
        most = fmax(most, hypot(re[k], im[k]));
    for (int64_t k = 0; k < points && !cancelled_at(k); k++)
        re[k] = log(fmax(hypot(re[k], im[k]), fmax(most * 1e-10, 1e-300)));
    if (!gc_fourier_minimum_phase(re, im, points))
        return false;
    for (int64_t k = 0; k < points && !cancelled_at(k); k++) {
        double magnitude = exp(re[k]), phase = im[k];
        re[k] = magnitude * cos(phase);
        im[k] = magnitude * sin(phase);
    }
    return gc_fourier(re, im, points, 1);
}

gpuconv_status gpuconv_ir_minimum_phase(const gpuconv_ir *ir, gpuconv_ir **minimal, gpuconv_error *error) {
    if (!gc_begin(minimal, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    /* Eight times the length keeps the aliasing of the cepstrum low. */
    int64_t points = gc_power_of_two(gc_max(8 * ir->frames, 4096));
    gpuconv_status fits = gc_ir_check_memory(ir->planes, (double)ir->frames, 24.0 * (double)points, error);
    if (fits)
        return fits;
    gpuconv_ir *made = gc_ir_like(ir, ir->frames, ir->rate);
    double *re = gc_calloc(points, (int64_t)sizeof *re), *im = gc_calloc(points, (int64_t)sizeof *im);
    bool ok = made && re && im;
    for (int p = 0; ok && p < ir->planes; p++) {
        widen(gc_ir_plane(ir, p), re, ir->frames);
        for (int64_t i = 0; i < points; i++) {
            re[i] = i < ir->frames ? re[i] : 0;
            im[i] = 0;
        }
        ok = convert_to_minimum_phase(re, im, points);
        for (int64_t i = 0; ok && i < ir->frames; i++)
            made->taps[p * ir->frames + i] = (float)(re[i] / (double)points);
    }
    free(re);
    free(im);
    if (!ok) {
        gpuconv_ir_free(made);
        return gc_fail_memory(error, "the response");
    }
    made->lead = made->ring = 0;
    return gc_ir_finish(made, minimal, error, "made minimum phase");
}
