/* The steps from a response file to a routed response, in the order of gpuconv_preparation. */
#include "prepare.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/sized_struct.h"
#include "object.h"
#include "settings.h"
#include "spatial.h"

#include <math.h>
#include <string.h>

void gpuconv_preparation_init(gpuconv_preparation *preparation, size_t size) {
    const gpuconv_preparation defaults = {.dry = -HUGE_VAL};
    gc_sized_struct_init(preparation, size, &defaults, sizeof defaults);
}

gpuconv_status gc_preparation_read(const gpuconv_preparation *from, gpuconv_preparation *preparation,
                                   gpuconv_error *error) {
    *preparation = gpuconv_preparation_default();
    const gc_sized_struct own = {preparation, sizeof *preparation, GC_SIZE_UP_TO(gpuconv_preparation, dry),
                                 "gpuconv_preparation"};
    return from ? gc_sized_struct_read(&own, from, error) : GPUCONV_OK;
}

gpuconv_status gpuconv_ir_load(const char *path, gpuconv_ir **ir, gpuconv_error *error) {
    const gc_ir_form form = {.kind = GC_INPUT_REGULAR};
    return gc_begin(ir, path, __func__, error) ? gc_ir_load_from(path, &form, ir, error) : GPUCONV_ERROR_ARGUMENT;
}

gpuconv_status gpuconv_ir_load_as(const char *path, double rate, const char *raw, gpuconv_ir **ir,
                                  gpuconv_error *error) {
    const gc_ir_form form = {.kind = GC_INPUT_REGULAR, .raw = raw, .rate = rate};
    if (!gc_begin(ir, path, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (rate != 0 && !gc_is_rate(rate))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has a rate of 1 to %d Hz, not %g", GC_MAX_RATE, rate);
    return raw || !gc_is_matrix(path) ? gc_ir_load_from(path, &form, ir, error)
                                      : gc_matrix_load(path, rate > 0 ? rate : 48000, rate, ir, error);
}

/* Reads the responses of a SOFA file for an input. */
static gpuconv_status load_sofa(const char *path, const gpuconv_preparation *p, int inputs, gpuconv_ir **ir,
                                gpuconv_error *error) {
    gpuconv_sofa *sofa;
    gpuconv_status status = gc_sofa_load(path, p->interpolate, &sofa, error);
    if (status)
        return status;
    status = gc_spatial_make(sofa, p, false, inputs, ir, error);
    gpuconv_sofa_free(sofa);
    return status;
}

/* Divides a packed response, before any step could shift or mix its pieces. */
static gpuconv_status unpack(const char *path, int inputs, gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_error inner = {0};
    gpuconv_ir *packed = *ir;
    gpuconv_status status = gc_ir_unpack(packed, inputs, ir, &inner);
    gpuconv_ir_free(packed);
    return status ? gc_fail(error, status, "%s: %s", path, inner.message) : GPUCONV_OK;
}

/* Reads the file of a source, a response, a matrix or a SOFA file, for an input of `inputs` channels. A packed response
 * gets the channels of GPUCONV_LAYOUT_OUTPUT, unless it is one that applies to all channels. in_series: the file is a
 * member of a series, which may apply to all channels. */
static gpuconv_status load(const gc_response_source *from, const gpuconv_preparation *p, int inputs, double rate,
                           bool in_series, gpuconv_ir **ir, gpuconv_error *error) {
    const char *path = from->path;
    const gc_ir_form form = {from->kind, in_series ? NULL : p->raw, p->file_rate};
    if (!form.raw && gc_is_sofa(path))
        return load_sofa(path, p, inputs, ir, error);
    if (!form.raw && gc_is_matrix(path))
        return gc_matrix_load(path, rate, p->file_rate, ir, error);
    gpuconv_status status = gc_ir_load_from(path, &form, ir, error);
    if (status || p->layout != GPUCONV_LAYOUT_PACKED || (in_series && (*ir)->planes == 1))
        return status;
    return unpack(path, inputs, ir, error);
}

/* Converts a time of 0 seconds or more to frames, at most 2^40, which is longer than any response. */
static int64_t to_frames(double seconds, double rate) {
    return llrint(fmin(seconds * rate, 0x1p40));
}

/* Each step is at most one call of the library. */
typedef enum step {
    STEP_CUT, /* before resampling, so that it falls on a frame of the file */
    STEP_RESAMPLE,
    STEP_TRIM,
    STEP_ALIGN,
    STEP_REVERSE,
    STEP_STRETCH,
    STEP_MINIMUM_PHASE,
    STEP_FADE,
    STEP_SERIES, /* repeated for every response in the series */
    STEP_PREDELAY,
    STEP_ROUTE,
    STEP_NORMALIZE,
    STEP_COUNT
} step;

typedef struct preparation_state {
    const gpuconv_preparation *p;
    int inputs;
    int series_index; /* next response of p->series */
    double rate;
} preparation_state;

/* Takes the part from `start` on, counted from time zero. A part from there on keeps the lead. */
static gpuconv_status apply_cut(const gpuconv_ir *ir, const gpuconv_preparation *p, gpuconv_ir **next,
                                gpuconv_error *error) {
    const int64_t start = to_frames(p->start, ir->rate), length = gc_max(1, to_frames(p->length, ir->rate));
    const int64_t skipped = start > 0 ? start + ir->lead : 0, kept = start > 0 ? 0 : ir->lead;
    return gpuconv_ir_cut(ir, skipped, p->length > 0 ? kept + length : -1, next, error);
}

static gpuconv_status apply_resampling(const gpuconv_ir *ir, double rate, gpuconv_ir **next, gpuconv_error *error) {
    return ir->rate != rate ? gpuconv_ir_resample(ir, rate, next, error) : GPUCONV_OK;
}

static gpuconv_status apply_series(const gpuconv_ir *ir, const preparation_state *state, gpuconv_ir **next,
                                   gpuconv_error *error) {
    const char *path = state->p->series[state->series_index];
    gpuconv_error inner = {0};
    gpuconv_ir *other, *resampled = NULL;
    const gc_response_source from = {.path = path, .kind = GC_INPUT_REGULAR};
    gpuconv_status status = load(&from, state->p, state->inputs, state->rate, true, &other, error);
    if (status)
        return status;
    status = apply_resampling(other, state->rate, &resampled, &inner);
    if (!status)
        status = gpuconv_ir_series(ir, resampled ? resampled : other, next, &inner);
    gpuconv_ir_free(resampled);
    gpuconv_ir_free(other);
    return status ? gc_fail(error, status, "with %s: %s", path, inner.message) : GPUCONV_OK;
}

/* Applies one step. *next stays NULL if the step changes nothing. */
static gpuconv_status apply_step(step s, const gpuconv_ir *ir, const preparation_state *state, gpuconv_ir **next,
                                 gpuconv_error *error) {
    const gpuconv_preparation *p = state->p;
    const double rate = state->rate;
    switch (s) {
    case STEP_CUT:
        return p->start > 0 || p->length > 0 ? apply_cut(ir, p, next, error) : GPUCONV_OK;
    case STEP_RESAMPLE:
        return apply_resampling(ir, rate, next, error);
    case STEP_TRIM:
        return p->trim != 0 ? gpuconv_ir_trim(ir, p->trim, next, error) : GPUCONV_OK;
    case STEP_ALIGN:
        return p->align ? gpuconv_ir_align(ir, p->align, next, error) : GPUCONV_OK;
    case STEP_REVERSE:
        return p->reverse ? gpuconv_ir_reverse(ir, next, error) : GPUCONV_OK;
    case STEP_STRETCH:
        return p->stretch != 0 && p->stretch != 1 ? gpuconv_ir_stretch(ir, p->stretch, next, error) : GPUCONV_OK;
    case STEP_MINIMUM_PHASE:
        return p->minimum_phase ? gpuconv_ir_minimum_phase(ir, next, error) : GPUCONV_OK;
    case STEP_FADE:
        return p->fade > 0 ? gpuconv_ir_fade(ir, 0, to_frames(p->fade, rate), next, error) : GPUCONV_OK;
    case STEP_SERIES:
        return state->series_index < p->series_count ? apply_series(ir, state, next, error) : GPUCONV_OK;
    case STEP_PREDELAY:
        return p->predelay > 0 ? gpuconv_ir_delay(ir, to_frames(p->predelay, rate), next, error) : GPUCONV_OK;
    case STEP_ROUTE:
        return gpuconv_ir_route_as(ir, state->inputs,
                                   p->layout == GPUCONV_LAYOUT_PACKED ? GPUCONV_LAYOUT_OUTPUT : p->layout, next, error);
    default:
        return p->normalize ? gpuconv_ir_normalize(ir, p->normalize, NULL, next, error) : GPUCONV_OK;
    }
}

gpuconv_status gc_preparation_check(const gpuconv_preparation *p, gpuconv_error *error) {
    const gpuconv_status status = gc_settings_check(p, offsetof(gc_settings, preparation), sizeof *p, error);
    if (status)
        return status;
    if (p->series_count < 0)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the number of responses in series is 0 or more, not %d",
                       p->series_count);
    if (p->series_count > 0 && !p->series)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the list of %d responses in series is NULL", p->series_count);
    for (int i = 0; i < p->series_count; i++)
        if (!p->series[i])
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "response %d in series has no path", i + 1);
    return GPUCONV_OK;
}

/* Checks what a preparation and a file need of each other. Returns ARGUMENT. */
static gpuconv_status check_source(const gc_response_source *from, const gpuconv_preparation *p, int inputs,
                                   double rate, gpuconv_error *error) {
    const char *path = from->path;
    gpuconv_status status = gc_preparation_check(p, error);
    if (!status && (p->direction || p->speakers) && !from->set && !gc_is_sofa(path))
        status =
            gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                    "%s: is no SOFA file; a direction or a layout chooses among the responses of a .sofa file", path);
    if (!status && !gc_is_rate(rate))
        status =
            gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has a rate of 1 to %d Hz, not %g", GC_MAX_RATE, rate);
    if (!status && (inputs < 1 || inputs > GC_MAX_CHANNELS))
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: an input has 1 to %d channels, not %d", path,
                         GC_MAX_CHANNELS, inputs);
    return status;
}

gpuconv_status gc_ir_prepare_shape(const gc_response_source *from, const gpuconv_preparation *p, int inputs,
                                   double rate, gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_error inner = {0};
    gpuconv_ir *current = from->made, *next;
    *ir = NULL;
    gpuconv_status status = check_source(from, p, inputs, rate, error);
    if (!status)
        status = from->set ? gc_spatial_make(from->set, p, false, inputs, &current, error)
                 : current ? GPUCONV_OK
                           : load(from, p, inputs, rate, false, &current, error);
    preparation_state state = {p, inputs, 0, rate};
    for (int s = STEP_CUT; s < STEP_COUNT && !status;) {
        next = NULL;
        status = apply_step((step)s, current, &state, &next, &inner);
        if (status)
            gc_fail(error, status, "%s: %s", from->path, inner.message);
        if (next) {
            gpuconv_ir_free(current);
            current = next;
        }
        if (s == STEP_SERIES && state.series_index < p->series_count)
            state.series_index++;
        else
            s++;
    }
    if (status)
        gpuconv_ir_free(current);
    else
        *ir = current;
    return status;
}

gpuconv_status gc_ir_apply_levels(const gpuconv_ir *ir, const gpuconv_preparation *p, gpuconv_ir **result,
                                  gpuconv_error *error) {
    gpuconv_ir *scaled = gc_ir_hold(ir);
    *result = NULL;
    if (p->gain != 0) {
        gpuconv_ir_free(scaled);
        gpuconv_status status = gpuconv_ir_gain(ir, p->gain, &scaled, error);
        if (status)
            return status;
    }
    if (p->wet == 0 && !(p->dry > -HUGE_VAL)) {
        *result = scaled;
        return GPUCONV_OK;
    }
    gpuconv_status status = gpuconv_ir_mix(scaled, p->wet, p->dry, result, error);
    gpuconv_ir_free(scaled);
    return status;
}

gpuconv_status gc_ir_prepare(const gc_response_source *from, const gpuconv_preparation *p, int inputs, double rate,
                             gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_error inner = {0};
    gpuconv_ir *shaped;
    gpuconv_preparation read;
    gpuconv_status status = gc_preparation_read(p, &read, error);
    if (!status)
        status = gc_ir_prepare_shape(from, &read, inputs, rate, &shaped, error);
    else
        gpuconv_ir_free(from->made);
    if (status)
        return status;
    status = gc_ir_apply_levels(shaped, &read, ir, &inner);
    gpuconv_ir_free(shaped);
    return status ? gc_fail(error, status, "%s: %s", from->path, inner.message) : GPUCONV_OK;
}

gpuconv_status gpuconv_ir_prepare(const char *path, const gpuconv_preparation *p, int inputs, double rate,
                                  gpuconv_ir **ir, gpuconv_error *error) {
    if (!gc_begin(ir, path, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    return gc_ir_prepare(&(gc_response_source){path, GC_INPUT_REGULAR, NULL, NULL}, p, inputs, rate, ir, error);
}

gpuconv_status gpuconv_sofa_prepare(const gpuconv_sofa *set, const gpuconv_preparation *p, int inputs, gpuconv_ir **ir,
                                    gpuconv_error *error) {
    if (!gc_begin(ir, set, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    return gc_ir_prepare(&(gc_response_source){set->name, GC_INPUT_REGULAR, set, NULL}, p, inputs, set->responses->rate,
                         ir, error);
}
