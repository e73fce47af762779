/*
 * A source in a direction is the nearest measured response. Ambisonics are decoded by a fit: the response at a
 * direction u is taken as the sum of c_k Y_k(u) over the harmonics, with the c_k that fit all measurements best (least
 * squares); the response of ambisonic channel k is then c_k, because a plane wave from u has the channels Y_k(u).
 */
#include "spatial.h"

#include "directions.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "spherical.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Makes a dense response from `inputs` channels to the receivers, with zeroed taps. Route and plane of input i and
 * receiver r have the number r x inputs + i. */
static gpuconv_ir *blank(const gc_sofa *s, int inputs) {
    const int routes = inputs * s->receivers;
    gpuconv_ir *made = gc_ir_blank(inputs, s->receivers, routes, routes, s->frames, s->rate);
    for (int p = 0; made && p < routes; p++)
        made->route[p] = (gc_route){p % inputs, p / inputs, p};
    if (made) {
        made->lead = s->lead;
        made->routed = true;
    }
    return made;
}

static float *taps_of(gpuconv_ir *ir, int input, int receiver) {
    return ir->taps + ((int64_t)receiver * ir->inputs + input) * ir->frames;
}

/* Returns the measurement nearest to a channel's direction. */
static int nearest(const gc_sofa *s, const gc_directions *d, const gc_rotation *head, int channel, double *degrees) {
    double at[3];
    gc_rotate_to_head(head, d->at[channel], at);
    return gc_sofa_nearest(s, at, degrees);
}

/* Takes the nearest measurement for every direction. Returns MEMORY, CANCELLED. */
static gpuconv_status take_nearest(const gc_sofa *s, const gc_directions *d, const gc_rotation *head, gpuconv_ir **ir,
                                   gpuconv_error *error) {
    double farthest = 0, degrees;
    int worst = 0;
    gpuconv_ir *made = blank(s, d->count);
    if (!made)
        return gc_fail_memory(error, "the response");
    for (int i = 0; i < d->count; i++) {
        if (gc_cancelled()) {
            gpuconv_ir_free(made);
            return gc_fail_cancelled(error, "the response");
        }
        const int m = nearest(s, d, head, i, &degrees);
        if (degrees > farthest) {
            farthest = degrees;
            worst = i;
        }
        for (int r = 0; r < s->receivers; r++)
            memcpy(taps_of(made, i, r), gc_sofa_taps(s, m, r), (size_t)s->frames * sizeof(float));
    }
    if (farthest < 0.01)
        return gc_ir_finish(made, ir, error, "%d of its %d directions", d->count, s->measurements);
    return gc_ir_finish(made, ir, error,
                        "the nearest of its %d directions for each channel; channel %d is %.1f degrees away from it",
                        s->measurements, worst + 1, farthest);
}

/* Sums over the measurements: products of harmonics, and products of harmonics and taps. Returns false if the work was
 * cancelled. */
static bool sum_measurements(const gc_sofa *s, int order, double *gram, double *right) {
    const int n = (order + 1) * (order + 1);
    const int64_t columns = s->receivers * s->frames;
    double y[GC_AMBISONIC_CHANNELS];
    for (int m = 0; m < s->measurements; m++) {
        if (gc_cancelled())
            return false;
        const float *taps = gc_sofa_taps(s, m, 0);
        gc_spherical_harmonics(order, s->position + 3 * (int64_t)m, y);
        for (int i = 0; i < n; i++) {
            for (int k = 0; k < n; k++)
                gram[i * n + k] += y[i] * y[k];
            for (int64_t c = 0; c < columns; c++)
                right[i * columns + c] += y[i] * (double)taps[c];
        }
    }
    return true;
}

/* Writes the fitted responses, turned with the head: channel k of the room is the sum over the head's channels i of
 * turn[i][k] times theirs. */
static void write_fit(const double *fit, const double *turn, int n, gpuconv_ir *made) {
    for (int k = 0; k < n; k++)
        for (int r = 0; r < made->outputs; r++) {
            float *to = taps_of(made, k, r);
            for (int64_t f = 0; f < made->frames; f++) {
                double sum = 0;
                for (int i = 0; i < n; i++)
                    sum += turn[i * n + k] * fit[((int64_t)i * made->outputs + r) * made->frames + f];
                to[f] = (float)sum;
            }
        }
}

/* Fits the harmonics of an order. Returns TOPOLOGY, MEMORY, CANCELLED. */
static gpuconv_status fit_ambisonics(const gc_sofa *s, const char *name, int order, const gc_rotation *head,
                                     gpuconv_ir **ir, gpuconv_error *error) {
    const int n = (order + 1) * (order + 1);
    bool regularised = false;
    if (s->measurements < n)
        return gc_fail(error, GPUCONV_ERROR_TOPOLOGY,
                       "%s: %d directions do not determine ambisonics of order %d, which needs %d or more", name,
                       s->measurements, order, n);
    double *gram = gc_calloc((int64_t)n * n, sizeof *gram), *turn = gc_calloc((int64_t)n * n, sizeof *turn);
    double *right = gc_calloc(n * s->receivers, s->frames * (int64_t)sizeof *right);
    gpuconv_ir *made = blank(s, n);
    gpuconv_status status = gram && turn && right && made ? GPUCONV_OK : gc_fail_memory(error, "the response");
    if (!status) {
        if (!sum_measurements(s, order, gram, right))
            status = gc_fail_cancelled(error, name);
        else if (!gc_solve_normal(gram, n, right, s->receivers * s->frames, &regularised) ||
                 !gc_rotate_harmonics(order, head, turn))
            status = gc_fail(error, GPUCONV_ERROR_TOPOLOGY,
                             "%s: its directions do not determine ambisonics of order %d", name, order);
    }
    if (!status)
        write_fit(right, turn, n, made);
    free(gram);
    free(turn);
    free(right);
    if (status) {
        gpuconv_ir_free(made);
        return status;
    }
    return gc_ir_finish(made, ir, error, "ambisonics of order %d (ACN, SN3D) fitted to %d directions%s", order,
                        s->measurements,
                        regularised ? ", which leave a part of the sphere open: the fit is regularised" : "");
}

/* Finds the directions of the channels: the one given, those of a layout, or the front if there is only one. */
static gpuconv_status find_directions(const char *name, const gc_scene *scene, int inputs, int measurements,
                                      gc_directions *d, gpuconv_error *error) {
    d->count = 1;
    if (scene->direction && !gc_direction_parse(scene->direction, d->at[0]))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "'%.40s' is not a direction AZIMUTH,ELEVATION[,DISTANCE] in degrees and metres, such as 30,0",
                       scene->direction);
    if (scene->layout) {
        gpuconv_status status = gc_directions_of_layout(scene->layout, d, error);
        if (status)
            return status;
    }
    if (!scene->direction && !scene->layout) {
        (void)gc_direction_parse("0,0", d->at[0]);
        if (measurements > 1)
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                           "%s: has %d directions; choose with --direction AZIMUTH,ELEVATION or --layout NAME", name,
                           measurements);
    }
    if (d->count != inputs)
        return gc_fail(error, GPUCONV_ERROR_TOPOLOGY,
                       "%s: %d direction%s for an input of %d channel%s; use a --layout of as many channels%s", name,
                       d->count, d->count == 1 ? "" : "s", inputs, inputs == 1 ? "" : "s",
                       inputs == 1 ? ", or --direction" : "");
    return GPUCONV_OK;
}

bool gc_spatial_has_directions(const gc_scene *scene) {
    return !scene->layout || strcmp(scene->layout, "ambisonic") != 0;
}

gpuconv_status gc_spatial_make(const gc_sofa *s, const char *name, const gc_scene *scene, int inputs, gpuconv_ir **ir,
                               gpuconv_error *error) {
    const gc_rotation head = gc_rotation_of(scene->head.yaw, scene->head.pitch, scene->head.roll);
    *ir = NULL;
    if (scene->direction && scene->layout)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a direction and a layout exclude each other");
    if (!gc_spatial_has_directions(scene)) {
        const int order = gc_ambisonic_order(inputs);
        if (!order)
            return gc_fail(error, GPUCONV_ERROR_TOPOLOGY,
                           "ambisonics of order 1 to 7 have 4, 9, 16, 25, 36, 49 or 64 channels, not %d", inputs);
        return fit_ambisonics(s, name, order, &head, ir, error);
    }
    gc_directions *d = gc_calloc(1, sizeof *d);
    gpuconv_status status =
        d ? find_directions(name, scene, inputs, s->measurements, d, error) : gc_fail_memory(error, "the response");
    if (!status)
        status = take_nearest(s, d, &head, ir, error);
    free(d);
    return status;
}

gpuconv_status gc_spatial_find(const gc_sofa *s, const char *name, const gc_scene *scene, int inputs, int *measurement,
                               gpuconv_error *error) {
    const gc_rotation head = gc_rotation_of(scene->head.yaw, scene->head.pitch, scene->head.roll);
    double degrees;
    gc_directions *d = gc_calloc(1, sizeof *d);
    gpuconv_status status =
        d ? find_directions(name, scene, inputs, s->measurements, d, error) : gc_fail_memory(error, "the response");
    for (int i = 0; !status && i < inputs; i++)
        measurement[i] = nearest(s, d, &head, i, &degrees);
    free(d);
    return status;
}

gpuconv_status gc_spatial_make_channel(const gc_sofa *s, int measurement, int channel, int inputs, gpuconv_ir **ir,
                                       gpuconv_error *error) {
    gpuconv_ir *made = gc_ir_blank(inputs, s->receivers, s->receivers, s->receivers, s->frames, s->rate);
    for (int r = 0; made && r < s->receivers; r++) {
        made->route[r] = (gc_route){channel, r, r};
        memcpy(made->taps + r * s->frames, gc_sofa_taps(s, measurement, r), (size_t)s->frames * sizeof(float));
    }
    if (made) {
        made->lead = s->lead;
        made->routed = true;
    }
    return gc_ir_finish(made, ir, error, "direction %d of %d for channel %d", measurement + 1, s->measurements,
                        channel + 1);
}
