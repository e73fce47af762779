/* Edits of responses in time: cutting, trimming, fading, reversing, delaying, aligning, resampling, stretching. */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/resampler.h"
#include "object.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

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
    gpuconv_ir *made = copy_window(ir, 0, end);
    if (!made)
        return fail_memory(error);
    return gc_ir_finish(made, trimmed, error, "trimmed from %g to %g s, where it stays under %g dB",
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
            taps[i] *= (float)(0.5 - 0.5 * cos(pi * (double)i / (double)in));
        for (int64_t i = 0; i < out; i++)
            taps[ir->frames - 1 - i] *= (float)(0.5 - 0.5 * cos(pi * (double)i / (double)out));
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
    gpuconv_ir *made = copy_window(ir, -frames, ir->frames + frames);
    if (!made)
        return fail_memory(error);
    return gc_ir_finish(made, delayed, error, "delayed by %g s", to_seconds(ir, frames));
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

static double energy_of(const float *taps, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)taps[i] * (double)taps[i];
    return sum;
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
    const double total = energy_of(taps, s->before + s->frames + s->after);
    if (energy_of(taps, s->before) > droppable_energy * total)
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
    if (made->lead > 0)
        return gc_ir_finish(made, resampled, error,
                            "resampled from %.0f to %.0f Hz, its level rescaled by %.4f, %lld frames of it before time "
                            "zero",
                            ir->rate, rate, ir->rate / rate, (long long)made->lead);
    return gc_ir_finish(made, resampled, error, "resampled from %.0f to %.0f Hz, its level rescaled by %.4f", ir->rate,
                        rate, ir->rate / rate);
}

gpuconv_status gpuconv_ir_stretch(const gpuconv_ir *ir, double factor, gpuconv_ir **stretched, gpuconv_error *error) {
    if (!gc_begin(stretched, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (!(factor >= 0.01 && factor <= 100))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response is stretched to 0.01 to 100 times its length, not %g",
                       factor);
    gpuconv_ir *made;
    gpuconv_status status = interpolate(ir, factor, ir->rate, &made, error);
    return status ? status : gc_ir_finish(made, stretched, error, "stretched to %g times its length", factor);
}
