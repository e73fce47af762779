/* The public functions of an open set. */
#include "ambisonic.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "prepare.h"
#include "sofa.h"

#include <math.h>
#include <string.h>

/* Resamples the responses, and converts the delays. Returns ARGUMENT, MEMORY, CANCELLED, UNSUPPORTED. */
static gpuconv_status resample(gpuconv_sofa *s, double rate, gpuconv_error *error) {
    const double ratio = rate / s->responses->rate;
    gpuconv_error inner = {0};
    gpuconv_ir *resampled;
    gpuconv_status status = gpuconv_ir_resample(s->responses, rate, &resampled, &inner);
    if (status)
        return gc_fail(error, status, "%s: %s", s->name, inner.message);
    gpuconv_ir_free(s->responses);
    s->responses = resampled;
    s->longest_delay *= ratio;
    s->fractions = false;
    for (int64_t i = 0; i < (int64_t)s->measurements * s->receivers; i++) {
        s->delay[i] *= ratio;
        s->fractions = s->fractions || s->delay[i] != floor(s->delay[i]);
    }
    return GPUCONV_OK;
}

gpuconv_status gpuconv_sofa_open(const char *path, double rate, gpuconv_sofa **set, gpuconv_error *error) {
    gpuconv_sofa *s;
    if (!gc_begin(set, path, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (rate != 0 && !gc_is_rate(rate))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a set has a rate of 1 to %d Hz, not %g", GC_MAX_RATE, rate);
    gpuconv_status status = gc_sofa_load(path, GPUCONV_INTERPOLATE_AUTO, &s, error);
    if (!status && rate != 0 && rate != s->responses->rate)
        status = resample(s, rate, error);
    if (status)
        gpuconv_sofa_free(s);
    else
        *set = s;
    return status;
}

int gpuconv_sofa_directions(const gpuconv_sofa *s) {
    return s ? s->measurements : 0;
}

int gpuconv_sofa_receivers(const gpuconv_sofa *s) {
    return s ? s->receivers : 0;
}

double gpuconv_sofa_rate(const gpuconv_sofa *s) {
    return s ? s->responses->rate : 0;
}

int64_t gpuconv_sofa_frames(const gpuconv_sofa *s) {
    return s ? gc_sofa_form_of(s, true).frames : 0;
}

int64_t gpuconv_sofa_lead(const gpuconv_sofa *s) {
    return s ? gc_sofa_form_of(s, true).lead : 0;
}

const char *gpuconv_sofa_title(const gpuconv_sofa *s) {
    return s ? s->title : "";
}

void gpuconv_sofa_position(const gpuconv_sofa *s, int direction, double xyz[3]) {
    const bool known = s && direction >= 0 && direction < s->measurements;
    for (int k = 0; xyz && k < 3; k++)
        xyz[k] = known ? s->position[3 * (int64_t)direction + k] : 0;
}

int gpuconv_sofa_nearest(const gpuconv_sofa *s, const double xyz[3], double *degrees) {
    double angle = 0;
    const int direction = s && xyz ? gc_sofa_nearest(s, xyz, &angle) : 0;
    if (degrees)
        *degrees = angle;
    return direction;
}

/* Returns whether a position is finite and has a direction. */
static bool is_position(const double xyz[3]) {
    return isfinite(xyz[0]) && isfinite(xyz[1]) && isfinite(xyz[2]) && (xyz[0] != 0 || xyz[1] != 0 || xyz[2] != 0);
}

gpuconv_status gpuconv_sofa_respond(const gpuconv_sofa *s, const double *xyz, int64_t count,
                                    gpuconv_interpolate interpolate, bool by_distance, float *taps,
                                    gpuconv_error *error) {
    gpuconv_preparation straight = gpuconv_preparation_default();
    straight.interpolate = interpolate;
    straight.by_distance = by_distance;
    return gpuconv_sofa_respond_turned(s, xyz, count, &straight, taps, error);
}

gpuconv_status gpuconv_sofa_respond_turned(const gpuconv_sofa *s, const double *xyz, int64_t count,
                                           const gpuconv_preparation *preparation, float *taps, gpuconv_error *error) {
    gpuconv_preparation p;
    if (!s || !xyz || !taps)
        return gc_fail_null(error, __func__);
    gpuconv_status status = gc_preparation_read(preparation, &p, error);
    if (!status)
        status = gc_preparation_check(&p, error);
    if (status)
        return status;
    if (count < 1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "at least one direction is needed, not %lld", (long long)count);
    const gc_sofa_form form = gc_sofa_form_of(s, true);
    const gc_rotation head = gc_rotation_of(p.yaw, p.pitch, p.roll);
    status = gc_sofa_choose(s, &p.interpolate, error);
    for (int64_t i = 0; i < count && !status; i++) {
        double at[3];
        gc_blend blend;
        if (gc_cancelled())
            return gc_fail_cancelled(error, s->name);
        if (!is_position(xyz + 3 * i))
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "position %lld has no direction: %g, %g, %g",
                           (long long)i + 1, xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]);
        gc_rotate_to_head(&head, xyz + 3 * i, at);
        gc_sofa_blend(s, at, xyz + 3 * i, p.interpolate, p.by_distance, &blend);
        status = gc_sofa_respond(s, &blend, form, taps + i * s->receivers * form.frames, form.frames, error);
    }
    return status;
}
