/* From a response file to what a plan takes: every step that was wished for, in the order of gpuconv_preparation. */
#include "prepare.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "object.h"

#include <math.h>
#include <string.h>
#include <strings.h>

gpuconv_preparation gpuconv_preparation_default(void) {
    return (gpuconv_preparation){.dry = -HUGE_VAL};
}

bool gc_is_matrix(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (strcasecmp(dot, ".conf") == 0 || strcasecmp(dot, ".txt") == 0 || strcasecmp(dot, ".matrix") == 0);
}

/* At the rate that is wanted. */
static gpuconv_status load(const char *path, double rate, const volatile int *cancel, gpuconv_ir **ir,
                           gpuconv_error *error) {
    gpuconv_error inner = {0};
    gpuconv_status status =
        gc_is_matrix(path) ? gc_ir_load_matrix(path, rate, cancel, ir, error) : gc_ir_load(path, cancel, ir, error);
    if (status || gpuconv_ir_rate(*ir) == rate)
        return status;
    gpuconv_ir *recorded = *ir;
    status = gpuconv_ir_resample(recorded, rate, ir, &inner);
    gpuconv_ir_free(recorded);
    return status ? gc_fail(error, status, "%s: %s", path, inner.message) : GPUCONV_OK;
}

/* Frames of so many seconds; -1: no such number. */
static int64_t frames_of(double seconds, double rate) {
    double frames = seconds * rate;
    return frames >= 0 && frames < 0x1p40 ? (int64_t)llrint(frames) : -1;
}

static bool in_range(double decibels) {
    return decibels >= -200 && decibels <= 200;
}

/* The steps; each is one call of the library, or none. */
typedef enum step {
    CUT,
    TRIM,
    ALIGN,
    REVERSE,
    STRETCH,
    MINIMUM_PHASE,
    FADE,
    THEN,
    PREDELAY,
    ROUTE,
    NORMALIZE,
    GAIN,
    MIX,
    STEPS
} step;

typedef struct wish {
    const gpuconv_preparation *p;
    int inputs, then; /* which one of p->series is next */
    double rate;
    const volatile int *cancel;
} wish;

static gpuconv_status in_series(const gpuconv_ir *ir, const wish *w, gpuconv_ir **next, gpuconv_error *error) {
    const char *path = w->p->series[w->then];
    gpuconv_error inner = {0};
    gpuconv_ir *other;
    gpuconv_status status = load(path, w->rate, w->cancel, &other, error);
    if (status)
        return status;
    status = gpuconv_ir_series(ir, other, next, &inner);
    gpuconv_ir_free(other);
    return status ? gc_fail(error, status, "with %s: %s", path, inner.message) : GPUCONV_OK;
}

/* Leaves *next at NULL when the step is not wanted. */
static gpuconv_status take(step s, const gpuconv_ir *ir, const wish *w, gpuconv_ir **next, gpuconv_error *error) {
    const gpuconv_preparation *p = w->p;
    switch (s) {
    case CUT:
        return p->start > 0 || p->length > 0
                   ? gpuconv_ir_cut(ir, frames_of(p->start, w->rate),
                                    p->length > 0 ? gc_max(1, frames_of(p->length, w->rate)) : -1, next, error)
                   : GPUCONV_OK;
    case TRIM:
        return p->trim != 0 ? gpuconv_ir_trim(ir, p->trim, next, error) : GPUCONV_OK;
    case ALIGN:
        return p->align ? gpuconv_ir_align(ir, p->align, next, error) : GPUCONV_OK;
    case REVERSE:
        return p->reverse ? gpuconv_ir_reverse(ir, next, error) : GPUCONV_OK;
    case STRETCH:
        return p->stretch != 0 && p->stretch != 1 ? gpuconv_ir_stretch(ir, p->stretch, next, error) : GPUCONV_OK;
    case MINIMUM_PHASE:
        return p->minimum_phase ? gpuconv_ir_minimum_phase(ir, next, error) : GPUCONV_OK;
    case FADE:
        return p->fade > 0 ? gpuconv_ir_fade(ir, 0, frames_of(p->fade, w->rate), next, error) : GPUCONV_OK;
    case THEN:
        return w->then < p->series_count ? in_series(ir, w, next, error) : GPUCONV_OK;
    case PREDELAY:
        return p->predelay > 0 ? gpuconv_ir_delay(ir, frames_of(p->predelay, w->rate), next, error) : GPUCONV_OK;
    case ROUTE:
        return gpuconv_ir_route_as(ir, w->inputs, p->layout, next, error);
    case NORMALIZE:
        return p->normalize ? gpuconv_ir_normalize(ir, p->normalize, NULL, next, error) : GPUCONV_OK;
    case GAIN:
        return p->gain != 0 ? gpuconv_ir_gain(ir, p->gain, next, error) : GPUCONV_OK;
    default:
        return p->wet != 0 || p->dry > -HUGE_VAL ? gpuconv_ir_mix(ir, p->wet, p->dry, next, error) : GPUCONV_OK;
    }
}

gpuconv_status gc_preparation_check(const gpuconv_preparation *p, gpuconv_error *error) {
    if (!(p->start >= 0 && p->length >= 0 && p->fade >= 0 && p->predelay >= 0 && p->start <= 1e6 && p->length <= 1e6 &&
          p->fade <= 1e6 && p->predelay <= 1e6))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "start, length, fade and predelay of a response are 0 to 1000000 seconds");
    if (!in_range(p->gain))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a gain lies within -200 and 200 dB, not %g", p->gain);
    if (!(p->trim == 0 || (p->trim < 0 && p->trim >= -300)))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "trimming begins between -300 and 0 dB, not at %g", p->trim);
    if (!(p->stretch == 0 || (p->stretch >= 0.01 && p->stretch <= 100)))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response is stretched to 0.01 to 100 times its length, not %g",
                       p->stretch);
    if (!(in_range(p->wet) || p->wet <= -HUGE_VAL) || !(in_range(p->dry) || p->dry <= -HUGE_VAL))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "wet and dry lie within -200 and 200 dB, not %g and %g", p->wet,
                       p->dry);
    if (p->series_count < 0)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a number of responses in series is 0 or more, not %d",
                       p->series_count);
    if (p->series_count > 0 && !p->series)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "no responses in series where %d were announced",
                       p->series_count);
    return GPUCONV_OK;
}

gpuconv_status gpuconv_ir_prepare(const char *path, const gpuconv_preparation *p, int inputs, double rate,
                                  gpuconv_ir **ir, gpuconv_error *error) {
    return gc_ir_prepare(path, p, inputs, rate, NULL, ir, error);
}

gpuconv_status gc_ir_prepare(const char *path, const gpuconv_preparation *p, int inputs, double rate,
                             const volatile int *cancel, gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_error inner = {0};
    gpuconv_ir *now = NULL, *next;
    *ir = NULL;
    gpuconv_status status = gc_preparation_check(p, error);
    if (!status && !gc_ir_rate_fits(rate))
        status =
            gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has a rate of 1 to %d Hz, not %g", GC_MAX_RATE, rate);
    if (!status)
        status = load(path, rate, cancel, &now, error);
    wish w = {p, inputs, 0, rate, cancel};
    for (int s = CUT; s < STEPS && !status;) {
        next = NULL;
        status = take((step)s, now, &w, &next, &inner);
        if (status)
            gc_fail(error, status, "%s: %s", path, inner.message);
        if (next) {
            gpuconv_ir_free(now);
            now = next;
        }
        if (s == THEN && w.then < p->series_count)
            w.then++; /* and again */
        else
            s++;
    }
    if (status)
        gpuconv_ir_free(now);
    else
        *ir = now;
    return status;
}
