/* What can be done to a response before it is used, in time: cutting, fading, turning round, delaying, resampling. */
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "object.h"

#include <math.h>
#include <soxr.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

static gpuconv_status no_memory(gpuconv_error *error) {
    return gc_fail_memory(error, "the response");
}

static double seconds(const gpuconv_ir *ir, int64_t frames) {
    return (double)frames / ir->rate;
}

/* Frames from .. from + frames of it, of which those outside are zeros; time zero stays where it was in time. */
static gpuconv_ir *window_of(const gpuconv_ir *ir, int64_t from, int64_t frames) {
    gpuconv_ir *made = gc_ir_like(ir, frames, ir->rate);
    int64_t begin = gc_max(from, 0), end = gc_min(from + frames, ir->frames);
    for (int p = 0; made && p < ir->planes && begin < end; p++)
        memcpy(made->taps + p * frames + begin - from, gc_ir_plane(ir, p) + begin,
               (size_t)(end - begin) * sizeof(float));
    return made;
}

gpuconv_status gpuconv_ir_cut(const gpuconv_ir *ir, int64_t start, int64_t frames, gpuconv_ir **cut,
                              gpuconv_error *error) {
    *cut = NULL;
    if (start < 0 || frames == 0 || frames < -1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a part begins at 0 or later and has at least one frame");
    if (start >= ir->frames)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the response has %lld frames, %g s, and none from %g s on",
                       (long long)ir->frames, seconds(ir, ir->frames), seconds(ir, start));
    int64_t most = ir->frames - start;
    frames = frames < 0 ? most : gc_min(frames, most);
    gpuconv_ir *made = window_of(ir, start, frames);
    if (!made)
        return no_memory(error);
    made->lead = gc_max(0, ir->lead - start);
    return gc_ir_finish(made, cut, error, "cut to %g s from %g s on", seconds(ir, frames), seconds(ir, start));
}

gpuconv_status gpuconv_ir_trim(const gpuconv_ir *ir, double decibels, gpuconv_ir **trimmed, gpuconv_error *error) {
    *trimmed = NULL;
    if (!(decibels < 0 && decibels >= -300))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "trimming begins between -300 and 0 dB, not at %g", decibels);
    double most;
    gpuconv_ir_peak(ir, &most);
    double level = most * pow(10, decibels / 20);
    int64_t end = 1;
    for (int p = 0; p < ir->planes; p++) {
        const float *taps = gc_ir_plane(ir, p);
        for (int64_t i = ir->frames - 1; i >= end; i--)
            if (fabs((double)taps[i]) >= level && taps[i] != 0)
                end = i + 1;
    }
    end = gc_max(end, gc_min(ir->lead + 1, ir->frames));
    gpuconv_ir *made = window_of(ir, 0, end);
    if (!made)
        return no_memory(error);
    return gc_ir_finish(made, trimmed, error, "trimmed from %g to %g s, where it stays under %g dB",
                        seconds(ir, ir->frames), seconds(ir, end), decibels);
}

gpuconv_status gpuconv_ir_fade(const gpuconv_ir *ir, int64_t in, int64_t out, gpuconv_ir **faded,
                               gpuconv_error *error) {
    *faded = NULL;
    if (in < 0 || out < 0)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a fade has 0 frames or more");
    gpuconv_ir *made = window_of(ir, 0, ir->frames);
    if (!made)
        return no_memory(error);
    in = gc_min(in, ir->frames);
    out = gc_min(out, ir->frames);
    for (int p = 0; p < ir->planes; p++) {
        float *taps = made->taps + p * ir->frames;
        for (int64_t i = 0; i < in; i++)
            taps[i] *= (float)(0.5 - 0.5 * cos(pi * (double)i / (double)in));
        for (int64_t i = 0; i < out; i++)
            taps[ir->frames - 1 - i] *= (float)(0.5 - 0.5 * cos(pi * (double)i / (double)out));
    }
    return gc_ir_finish(made, faded, error, "faded in over %g s and out over %g s", seconds(ir, in), seconds(ir, out));
}

gpuconv_status gpuconv_ir_reverse(const gpuconv_ir *ir, gpuconv_ir **reversed, gpuconv_error *error) {
    *reversed = NULL;
    gpuconv_ir *made = gc_ir_like(ir, ir->frames, ir->rate);
    if (!made)
        return no_memory(error);
    made->lead = 0;
    for (int p = 0; p < ir->planes; p++)
        for (int64_t i = 0; i < ir->frames; i++)
            made->taps[p * ir->frames + i] = gc_ir_plane(ir, p)[ir->frames - 1 - i];
    return gc_ir_finish(made, reversed, error, "reversed");
}

gpuconv_status gpuconv_ir_delay(const gpuconv_ir *ir, int64_t frames, gpuconv_ir **delayed, gpuconv_error *error) {
    *delayed = NULL;
    if (frames < 0 || frames > INT64_MAX / 2 - ir->frames)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a delay has 0 frames or more");
    gpuconv_status fits = gc_ir_fits(ir->planes, (double)ir->frames + (double)frames, 0, error);
    if (fits)
        return fits;
    gpuconv_ir *made = window_of(ir, -frames, ir->frames + frames);
    if (!made)
        return no_memory(error);
    return gc_ir_finish(made, delayed, error, "delayed by %g s", seconds(ir, frames));
}

gpuconv_status gpuconv_ir_align(const gpuconv_ir *ir, gpuconv_align how, gpuconv_ir **aligned, gpuconv_error *error) {
    *aligned = NULL;
    if ((unsigned)how > GPUCONV_ALIGN_PEAK)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "no such alignment: %d", (int)how);
    int64_t onset = how == GPUCONV_ALIGN_ONSET ? gpuconv_ir_onset(ir, -60) : 0;
    gpuconv_ir *made = window_of(ir, onset, ir->frames - onset);
    if (!made)
        return no_memory(error);
    if (how == GPUCONV_ALIGN_PEAK) {
        made->lead = gpuconv_ir_peak(ir, NULL);
        return gc_ir_finish(made, aligned, error, "its peak, at %g s, taken for time zero", seconds(ir, made->lead));
    }
    made->lead = gc_max(0, ir->lead - onset);
    if (onset == 0)
        return gc_ir_finish(made, aligned, error, "%s", "");
    return gc_ir_finish(made, aligned, error, "%g s of silence before it cut off", seconds(ir, onset));
}

/* ---- At another rate --------------------------------------------------------------------------------------------- */

/* Frames, as recorded, that the interpolation is given room for before the first one. */
enum { LEAD_ROOM = 2048 };

/* Between rates that differ by more, the converter's filters alone take seconds. */
static const double ratio_most = 1000;

/* How much of a plane's energy may be lost for the sake of beginning at time zero: -60 dB is under any noise floor. */
static const double lost_most = 1e-6, lead_least = 1e-12;

/* Frames that the converter gets or gives in one call, between two looks at the flag. */
enum { PIECE = 1 << 16 };

/* Feeds `frames` of `from` and takes `n` frames to `to`, zeros where the converter gives no more. NULL, or what went
 * wrong; ends early once cancelled. */
static soxr_error_t pass(soxr_t converter, const float *from, int64_t frames, float *to, int64_t n) {
    int64_t fed = 0, taken = 0;
    bool dry = false; /* the end of the input is told, and nothing comes any more */
    while (taken < n && !dry && !gc_cancelled()) {
        size_t used, done;
        const bool more = fed < frames;
        soxr_error_t failure =
            soxr_process(converter, more ? from + fed : NULL, more ? (size_t)gc_min(PIECE, frames - fed) : 0, &used,
                         to + taken, (size_t)gc_min(PIECE, n - taken), &done);
        if (failure)
            return failure;
        fed += more ? (int64_t)used : 0;
        taken += (int64_t)done;
        dry = !more && done == 0;
    }
    return NULL;
}

/* One plane of `room` + frames, through the converter. */
static gpuconv_status convert(const float *taps, int64_t frames, int64_t room, double ratio, float *to, int64_t n,
                              gpuconv_error *error) {
    /* A response is a density over time: its sum, not its height, must survive. */
    soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
    io.scale = 1 / ratio;
    soxr_quality_spec_t quality = soxr_quality_spec(SOXR_VHQ, 0);
    soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
    float *padded = gc_calloc(room + frames, sizeof *padded);
    if (!padded)
        return no_memory(error);
    memcpy(padded + room, taps, (size_t)frames * sizeof *padded);
    soxr_error_t failure = NULL;
    soxr_t converter = soxr_create(1, ratio, 1, &failure, &io, &quality, &runtime);
    if (!failure)
        failure = pass(converter, padded, room + frames, to, n);
    soxr_delete(converter);
    free(padded);
    if (gc_cancelled())
        return gc_fail_cancelled(error, "the resampled response");
    return failure ? gc_fail(error, GPUCONV_ERROR_MEMORY, "resampling the response failed: %s", failure) : GPUCONV_OK;
}

/* The least lead among `room` frames that leaves no more than its share of the energy before it; 0 where the loss of
 * all of it is nothing. */
static int64_t find_lead(const float *taps, int64_t room, int64_t n) {
    double total = 0, before = 0;
    for (int64_t i = 0; i < n; i++)
        total += (double)taps[i] * (double)taps[i];
    for (int64_t i = 0; i < room; i++)
        before += (double)taps[i] * (double)taps[i];
    if (!(before > lost_most * total))
        return 0;
    double left = 0;
    int64_t i = 0;
    while (i < room && left + (double)taps[i] * (double)taps[i] <= lead_least * total) {
        left += (double)taps[i] * (double)taps[i];
        i++;
    }
    return room - i;
}

/* `ratio` times as many frames for the same stretch of time, which is then called `rate`. */
static gpuconv_status interpolate(const gpuconv_ir *ir, double ratio, double rate, gpuconv_ir **made,
                                  gpuconv_error *error) {
    double length = ceil((double)ir->frames * ratio);
    /* All planes twice, with the room before them, and one as it was recorded. */
    gpuconv_status fits =
        gc_ir_fits(ir->planes, length, 4 * ((double)ir->planes * (length + 131072) + (double)ir->frames), error);
    if (fits)
        return fits;
    int64_t frames = gc_max(1, (int64_t)length), before = 0;
    /* Whole numbers of frames on both sides keep time zero on a frame: ratios of rates are those of integers here. */
    int64_t least = gc_max(64, gc_min(LEAD_ROOM, (int64_t)(65536 / ratio)));
    int64_t old_room = least, room = llrint((double)least * ratio);
    for (int64_t k = least; k < 2 * least; k++)
        if (fabs((double)k * ratio - nearbyint((double)k * ratio)) <
            fabs((double)old_room * ratio - (double)room) - 1e-9) {
            old_room = k;
            room = llrint((double)k * ratio);
        }
    int64_t all = room + frames;
    float *plane = gc_calloc((int64_t)ir->planes * all, sizeof *plane);
    gpuconv_status status = plane ? GPUCONV_OK : gc_fail_memory(error, "the resampled response");
    for (int p = 0; !status && p < ir->planes; p++) {
        status = convert(gc_ir_plane(ir, p), ir->frames, old_room, ratio, plane + p * all, all, error);
        before = status ? 0 : gc_max(before, find_lead(plane + p * all, room, all));
    }
    int64_t lead = (int64_t)llrint((double)ir->lead * ratio);
    gpuconv_ir *done = status ? NULL : gc_ir_like(ir, before + frames, rate);
    if (!status && !done)
        status = gc_fail_memory(error, "the resampled response");
    for (int p = 0; !status && p < ir->planes; p++)
        memcpy(done->taps + p * (before + frames), plane + p * all + room - before,
               (size_t)(before + frames) * sizeof *plane);
    if (!status)
        done->lead = before + lead;
    free(plane);
    *made = done;
    return status;
}

gpuconv_status gpuconv_ir_resample(const gpuconv_ir *ir, double rate, gpuconv_ir **resampled, gpuconv_error *error) {
    *resampled = NULL;
    const double ratio = rate / ir->rate;
    if (!gc_ir_rate_fits(rate) || !(ratio >= 1 / ratio_most && ratio <= ratio_most))
        return gc_fail(
            error, GPUCONV_ERROR_ARGUMENT,
            "a response of %g Hz is resampled to 1 to %d Hz, and to %g times its rate or a part of that at the "
            "most, not to %g Hz",
            ir->rate, GC_MAX_RATE, ratio_most, rate);
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
    *stretched = NULL;
    if (!(factor >= 0.01 && factor <= 100))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response is stretched to 0.01 to 100 times its length, not %g",
                       factor);
    gpuconv_ir *made;
    gpuconv_status status = interpolate(ir, factor, ir->rate, &made, error);
    return status ? status : gc_ir_finish(made, stretched, error, "stretched to %g times its length", factor);
}
