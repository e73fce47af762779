/* Levels of responses: gain, mix with the input, and normalisation by one gain for all routes. */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/dsp/fourier.h"
#include "libgpuconv/dsp/loudness.h"
#include "object.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    if (!gc_begin(scaled, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (!gc_is_gain(decibels))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a gain is -%d to %d dB, not %g", GC_MAX_DECIBELS,
                       GC_MAX_DECIBELS, decibels);
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
    if (!gc_is_mix_level(wet) || !gc_is_mix_level(dry))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "wet and dry are -%d to %d dB, or -inf, not %g and %g",
                       GC_MAX_DECIBELS, GC_MAX_DECIBELS, wet, dry);
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
