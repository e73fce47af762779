/* Impulse responses: making, routing and levelling. Every step returns a new object. */
#include "ir.h"

#include "../core/error.h"
#include "../core/memory.h"

#include <math.h>
#include <soxr.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

gpuconv_ir *gc_ir_blank(int inputs, int outputs, int planes, int routes, int64_t frames, double rate) {
    gpuconv_ir *ir = gc_calloc(1, sizeof *ir);
    if (!ir)
        return NULL;
    int64_t taps;
    if (!__builtin_mul_overflow((int64_t)planes, frames, &taps))
        ir->taps = gc_calloc(taps, sizeof *ir->taps);
    ir->route = gc_calloc(routes, sizeof *ir->route);
    atomic_init(&ir->references, 1);
    ir->rate = rate;
    ir->frames = frames;
    ir->inputs = inputs;
    ir->outputs = outputs;
    ir->planes = planes;
    ir->routes = routes;
    if (!ir->taps || !ir->route) {
        gpuconv_ir_free(ir);
        return NULL;
    }
    return ir;
}

gpuconv_ir *gc_ir_hold(const gpuconv_ir *ir) {
    gpuconv_ir *held = (gpuconv_ir *)ir; /* the count is the one part that changes */
    atomic_fetch_add(&held->references, 1);
    return held;
}

void gpuconv_ir_free(gpuconv_ir *ir) {
    if (!ir || atomic_fetch_sub(&ir->references, 1) != 1)
        return;
    free(ir->taps);
    free(ir->route);
    free(ir);
}

gpuconv_status gpuconv_ir_new(const float *const *taps, int channels, int64_t frames, double rate, gpuconv_ir **ir,
                              gpuconv_error *error) {
    *ir = NULL;
    if (channels < 1 || channels > GC_CHANNELS_MOST)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has 1 to %d channels, not %d", GC_CHANNELS_MOST,
                       channels);
    if (frames < 1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has at least one frame");
    if (!(rate > 0) || !isfinite(rate))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a rate is positive, not %g", rate);
    for (int c = 0; c < channels; c++)
        for (int64_t i = 0; i < frames; i++)
            if (!isfinite(taps[c][i]))
                return gc_fail(error, GPUCONV_ERROR_FORMAT, "the response is not finite at frame %lld of channel %d",
                               (long long)i, c + 1);
    gpuconv_ir *made = gc_ir_blank(1, channels, channels, channels, frames, rate);
    if (!made)
        return gc_fail_memory(error, "the response");
    for (int c = 0; c < channels; c++) {
        memcpy(made->taps + (int64_t)c * frames, taps[c], (size_t)frames * sizeof(float));
        made->route[c] = (gc_route){0, c, c};
    }
    *ir = made;
    return GPUCONV_OK;
}

/* A copy with the same taps and another matrix; the caller fills the routes. */
static gpuconv_ir *rerouted(const gpuconv_ir *ir, int inputs, int outputs, int routes) {
    gpuconv_ir *made = gc_ir_blank(inputs, outputs, ir->planes, routes, ir->frames, ir->rate);
    if (made)
        memcpy(made->taps, ir->taps, (size_t)(ir->planes * ir->frames) * sizeof(float));
    return made;
}

gpuconv_status gpuconv_ir_route(const gpuconv_ir *ir, int inputs, gpuconv_ir **routed, gpuconv_error *error) {
    *routed = NULL;
    if (inputs < 1 || inputs > GC_CHANNELS_MOST)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "an input has 1 to %d channels, not %d", GC_CHANNELS_MOST,
                       inputs);
    if (ir->inputs != 1 || ir->routes != ir->planes)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the response has been routed already");
    int c = ir->planes;
    gpuconv_ir *made = NULL;
    if (inputs == 1) {
        if (!(made = rerouted(ir, 1, c, c)))
            return gc_fail_memory(error, "the response");
        memcpy(made->route, ir->route, (size_t)c * sizeof *made->route);
    } else if (c == 1 || c == inputs) {
        if (!(made = rerouted(ir, inputs, inputs, inputs)))
            return gc_fail_memory(error, "the response");
        for (int i = 0; i < inputs; i++)
            made->route[i] = (gc_route){i, i, c == 1 ? 0 : i};
    } else if (inputs == 2 && c == 4) {
        if (!(made = rerouted(ir, 2, 2, 4)))
            return gc_fail_memory(error, "the response");
        for (int i = 0; i < 4; i++) /* planes are source-major, routes output-major */
            made->route[i] = (gc_route){i % 2, i / 2, i % 2 * 2 + i / 2};
    } else {
        return gc_fail(error, GPUCONV_ERROR_TOPOLOGY,
                       "%d channels of response do not fit %d of input; 1 or %d%s would, and any number fits a mono "
                       "input",
                       c, inputs, inputs, inputs == 2 ? " or 4 (true stereo)" : "");
    }
    *routed = made;
    return GPUCONV_OK;
}

gpuconv_status gpuconv_ir_gain(const gpuconv_ir *ir, double decibels, gpuconv_ir **scaled, gpuconv_error *error) {
    *scaled = NULL;
    if (!(decibels >= -200 && decibels <= 200))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a gain lies within -200 and 200 dB, not %g", decibels);
    gpuconv_ir *made = rerouted(ir, ir->inputs, ir->outputs, ir->routes);
    if (!made)
        return gc_fail_memory(error, "the response");
    memcpy(made->route, ir->route, (size_t)ir->routes * sizeof *made->route);
    double factor = pow(10, decibels / 20);
    bool finite = true;
    for (int64_t i = 0; i < (int64_t)ir->planes * ir->frames; i++) {
        made->taps[i] = (float)(factor * (double)ir->taps[i]);
        finite &= isfinite(made->taps[i]) != 0;
    }
    if (!finite) {
        gpuconv_ir_free(made);
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a gain of %g dB takes the response beyond what floats hold",
                       decibels);
    }
    *scaled = made;
    return GPUCONV_OK;
}

static double factor_of(double decibels) {
    return decibels > -HUGE_VAL ? pow(10, decibels / 20) : 0;
}

/* A plane a route: where a route's output also takes the input itself, its taps are no longer anyone else's. */
gpuconv_status gpuconv_ir_mix(const gpuconv_ir *ir, double wet, double dry, gpuconv_ir **mixed, gpuconv_error *error) {
    *mixed = NULL;
    if (!(wet <= 200 && (wet >= -200 || wet <= -HUGE_VAL)) || !(dry <= 200 && (dry >= -200 || dry <= -HUGE_VAL)))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "wet and dry lie within -200 and 200 dB, not %g and %g", wet,
                       dry);
    gpuconv_ir *made = gc_ir_blank(ir->inputs, ir->outputs, ir->routes, ir->routes, ir->frames, ir->rate);
    if (!made)
        return gc_fail_memory(error, "the response");
    double much = factor_of(wet), straight = factor_of(dry);
    bool finite = true;
    for (int r = 0; r < ir->routes; r++) {
        const gc_route *route = &ir->route[r];
        const float *from = gc_ir_plane(ir, route->plane);
        float *to = made->taps + (int64_t)r * ir->frames;
        bool same = route->input == route->output || ir->inputs == 1;
        for (int64_t i = 0; i < ir->frames; i++) {
            to[i] = (float)(much * (double)from[i] + (same && i == 0 ? straight : 0));
            finite &= isfinite(to[i]) != 0;
        }
        made->route[r] = (gc_route){route->input, route->output, r};
    }
    if (!finite) {
        gpuconv_ir_free(made);
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a gain of %g dB takes the response beyond what floats hold",
                       wet);
    }
    *mixed = made;
    return GPUCONV_OK;
}

gpuconv_status gpuconv_ir_resample(const gpuconv_ir *ir, double rate, gpuconv_ir **resampled, gpuconv_error *error) {
    *resampled = NULL;
    if (!(rate > 0) || !isfinite(rate))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a rate is positive, not %g", rate);
    double length = ceil((double)ir->frames * rate / ir->rate);
    if (!(length < 0x1p53))
        return gc_fail_memory(error, "the resampled response");
    int64_t frames = gc_max(1, (int64_t)length);
    gpuconv_ir *made = gc_ir_blank(ir->inputs, ir->outputs, ir->planes, ir->routes, frames, rate);
    if (!made)
        return gc_fail_memory(error, "the resampled response");
    memcpy(made->route, ir->route, (size_t)ir->routes * sizeof *made->route);
    /* A response is a density over time: its sum, not its height, must survive, hence old / new. */
    soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
    io.scale = ir->rate / rate;
    soxr_quality_spec_t quality = soxr_quality_spec(SOXR_VHQ, 0);
    soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
    for (int p = 0; p < ir->planes; p++) {
        size_t used, done;
        soxr_error_t failure =
            soxr_oneshot(ir->rate, rate, 1, gc_ir_plane(ir, p), (size_t)ir->frames, &used,
                         made->taps + (int64_t)p * frames, (size_t)frames, &done, &io, &quality, &runtime);
        if (failure) {
            gpuconv_ir_free(made);
            return gc_fail(error, GPUCONV_ERROR_MEMORY, "resampling the response failed: %s", failure);
        }
    }
    *resampled = made;
    return GPUCONV_OK;
}

int gpuconv_ir_inputs(const gpuconv_ir *ir) {
    return ir->inputs;
}

int gpuconv_ir_outputs(const gpuconv_ir *ir) {
    return ir->outputs;
}

int gpuconv_ir_routes(const gpuconv_ir *ir) {
    return ir->routes;
}

int64_t gpuconv_ir_frames(const gpuconv_ir *ir) {
    return ir->frames;
}

double gpuconv_ir_rate(const gpuconv_ir *ir) {
    return ir->rate;
}
