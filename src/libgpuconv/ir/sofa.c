/* The set of measured responses: memory, the division of its measurements by distance, search, and the response of
 * a direction.
 *
 * The response of a direction is made from those of the measurements around it. Their delays and what remains of them
 * are interpolated apart: every response is shifted so that its delay becomes the weighted mean of all delays, and the
 * shifted ones are added by their weights. The sum is scaled to the weighted mean of their energies. Shifts by
 * fractions of a frame are windowed sines cardinal of 2 x GC_HALF_SINC taps.
 *
 * The delay within a measured response is the lag at which it correlates best with its own minimum-phase version, below
 * a few kHz, where a head delays all frequencies alike (Nam, Abel & Smith, A method for estimating interaural time
 * difference for binaural synthesis, AES 125 (2008)). The lag is refined by a parabola. */
#include "sofa.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/dsp/fourier.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- The delay within a response --------------------------------------------------------------------------------- */

/* The part of a response that is looked at: frames before its peak, and all of them; and the transform's length as a
 * multiple of it, which keeps the aliasing of the cepstrum low. */
enum { BEFORE_PEAK = 512, WINDOW = 2048, OVERSIZE = 4 };

static const double low_pass = 3000; /* Hz */

/* Turns a spectrum into that of its minimum-phase version: by the folded cepstrum, as gpuconv_ir_minimum_phase. `work`
 * has room for 2 x points. Returns false without memory. */
static bool make_minimum_phase(const double *re, const double *im, int64_t points, double *work) {
    double *minimal_re = work, *minimal_im = work + points, most = 0;
    for (int64_t k = 0; k < points; k++)
        most = fmax(most, hypot(re[k], im[k]));
    for (int64_t k = 0; k < points; k++)
        minimal_re[k] = log(fmax(hypot(re[k], im[k]), most * 1e-8));
    return gc_fourier_minimum_phase(minimal_re, minimal_im, points);
}

/* Computes the correlation with the minimum-phase version into `re`. `minimal` is the logarithm of its spectrum. */
static bool correlate(double *re, double *im, const double *minimal, int64_t points, double rate) {
    for (int64_t k = 0; k < points; k++) {
        const double frequency = (double)gc_min(k, points - k) * rate / (double)points / low_pass;
        const double gain = exp(minimal[k] - pow(frequency, 4)), phase = -minimal[points + k];
        const double x = re[k], y = im[k];
        re[k] = gain * (x * cos(phase) - y * sin(phase));
        im[k] = gain * (x * sin(phase) + y * cos(phase));
    }
    return gc_fourier(re, im, points, 1);
}

/* Returns the place of the largest value, refined by the parabola through it and its neighbours. */
static double find_peak(const double *values, int64_t count) {
    int64_t at = 0;
    for (int64_t i = 1; i < count; i++)
        at = values[i] > values[at] ? i : at;
    if (at == 0 || at == count - 1)
        return (double)at;
    const double before = values[at - 1], after = values[at + 1], bend = before - 2 * values[at] + after;
    return (double)at + (bend < 0 ? 0.5 * (before - after) / bend : 0);
}

/* Measures the delay of `frames` taps. Returns false without memory. */
static bool measure(const float *taps, int64_t frames, double rate, double *delay) {
    int64_t peak = 0;
    for (int64_t i = 1; i < frames; i++)
        peak = fabsf(taps[i]) > fabsf(taps[peak]) ? i : peak;
    const int64_t begin = gc_max(0, peak - BEFORE_PEAK), length = gc_min(WINDOW, frames - begin);
    const int64_t points = gc_power_of_two(OVERSIZE * gc_max(length, 4));
    *delay = (double)peak;
    if (taps[peak] == 0)
        return true;
    double *re = gc_calloc(4 * points, sizeof *re), *im = re ? re + points : NULL, *work = re ? re + 2 * points : NULL;
    for (int64_t i = 0; re && i < length; i++)
        re[i] = (double)taps[begin + i];
    const bool ok = re && gc_fourier(re, im, points, -1) && make_minimum_phase(re, im, points, work) &&
                    correlate(re, im, work, points, rate);
    if (ok)
        *delay = (double)begin + find_peak(re, length);
    free(re);
    return ok;
}

gpuconv_status gc_sofa_onset(const gpuconv_sofa *s, int measurement, int receiver, double *frames,
                             gpuconv_error *error) {
    _Atomic(double) *kept = &s->onset[(int64_t)measurement * s->receivers + receiver];
    *frames = atomic_load_explicit(kept, memory_order_relaxed);
    if (!isnan(*frames))
        return GPUCONV_OK;
    if (!measure(gc_sofa_taps(s, measurement, receiver), s->responses->frames, s->responses->rate, frames))
        return gc_fail_memory(error, "the delay of a response");
    atomic_store_explicit(kept, *frames, memory_order_relaxed); /* the same from every thread that measures it */
    return GPUCONV_OK;
}

/* ---- The response of a direction --------------------------------------------------------------------------------- */

gc_sofa_form gc_sofa_form_of(const gpuconv_sofa *s, bool interpolated) {
    const int64_t lead = interpolated || s->fractions ? GC_HALF_SINC : 0;
    return (gc_sofa_form){s->responses->frames + (int64_t)ceil(s->longest_delay) + 2 * lead, s->responses->lead + lead};
}

/* Adds `gain` times a response, delayed by `whole` frames, to `frames` frames; what lies outside of them is left out.
 */
static void add_shifted(const float *taps, int64_t length, int64_t whole, double gain, float *to, int64_t frames) {
    const int64_t begin = gc_max(0, -whole), end = gc_min(length, frames - whole);
    const float factor = (float)gain;
    for (int64_t i = begin; i < end; i++)
        to[whole + i] += factor * taps[i];
}

/* As add_shifted, by any delay: with a Blackman window. */
static void add_delayed(const float *taps, int64_t length, double delay, double gain, float *to, int64_t frames) {
    const double exact = 1e-9, nearest = nearbyint(delay);
    if (fabs(delay - nearest) < exact) {
        add_shifted(taps, length, (int64_t)nearest, gain, to, frames);
        return;
    }
    const int64_t whole = (int64_t)floor(delay);
    const double part = delay - (double)whole, sine = sin(M_PI * part) * gain / M_PI;
    for (int k = 1 - GC_HALF_SINC; k <= GC_HALF_SINC; k++) {
        const double x = k - part, c = cos(M_PI * x / GC_HALF_SINC), window = 0.34 + 0.5 * c + 0.16 * c * c;
        add_shifted(taps, length, whole + k, (k % 2 ? sine : -sine) / x * (fabs(x) < GC_HALF_SINC ? window : 0), to,
                    frames);
    }
}

/* Returns the delay that the file gives a response, in frames. */
static double delay_of(const gpuconv_sofa *s, int measurement, int receiver) {
    return s->delay[(int64_t)measurement * s->receivers + receiver];
}

gpuconv_status gc_sofa_delay(const gpuconv_sofa *s, const gc_blend *b, int receiver, double *frames,
                             gpuconv_error *error) {
    *frames = 0;
    for (int k = 0; k < 3; k++) {
        double onset;
        gpuconv_status status = gc_sofa_onset(s, b->measurement[k], receiver, &onset, error);
        if (status)
            return status;
        *frames += b->weight[k] * (onset + delay_of(s, b->measurement[k], receiver));
    }
    return GPUCONV_OK;
}

gpuconv_status gc_sofa_align(const gpuconv_sofa *s, const gc_blend *b, int receiver, double at, gc_span to,
                             gpuconv_error *error) {
    const double most = 4; /* of the scale: a sum that nearly cancels is not raised to noise */
    double energy = 0;
    for (int k = 0; k < 3; k++) {
        double onset;
        if (b->weight[k] == 0)
            continue;
        gpuconv_status status = gc_sofa_onset(s, b->measurement[k], receiver, &onset, error);
        if (status)
            return status;
        memset(to.work, 0, (size_t)to.frames * sizeof *to.work);
        add_delayed(gc_sofa_taps(s, b->measurement[k], receiver), s->responses->frames, at - onset, 1, to.work,
                    to.frames);
        energy += b->weight[k] * gc_energy(to.work, to.frames);
        add_shifted(to.work, to.frames, 0, b->weight[k], to.taps, to.frames);
    }
    const double sum = gc_energy(to.taps, to.frames), scale = sum > 0 ? fmin(sqrt(energy / sum), most) * b->gain : 1;
    for (int64_t i = 0; i < to.frames; i++)
        to.taps[i] = (float)(scale * (double)to.taps[i]);
    return GPUCONV_OK;
}

gpuconv_status gc_sofa_respond(const gpuconv_sofa *s, const gc_blend *b, gc_sofa_form form, float *to, int64_t stride,
                               gpuconv_error *error) {
    const bool single = b->weight[0] == 1;
    const double lead = (double)(form.lead - s->responses->lead);
    float *work = single ? NULL : gc_alloc(form.frames, sizeof *work);
    gpuconv_status status = single || work ? GPUCONV_OK : gc_fail_memory(error, s->name);
    for (int r = 0; r < s->receivers && !status; r++) {
        float *row = to + r * stride;
        double delay = 0;
        memset(row, 0, (size_t)form.frames * sizeof *row);
        if (single)
            add_delayed(gc_sofa_taps(s, b->measurement[0], r), s->responses->frames,
                        lead + delay_of(s, b->measurement[0], r), b->gain, row, form.frames);
        else if (!(status = gc_sofa_delay(s, b, r, &delay, error)))
            status = gc_sofa_align(s, b, r, lead + delay, (gc_span){row, work, form.frames}, error);
    }
    free(work);
    return status;
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Measurements that a shell has at least: sets with fewer at a distance are one shell of all distances. */
enum { LEAST_OF_SHELL = 12 };

/* Ratio of successive distances from which on a shell begins. */
static const double next_shell = 1.03;

gpuconv_sofa *gc_sofa_new(gpuconv_ir *responses, int measurements, int receivers) {
    const int64_t count = (int64_t)measurements * receivers;
    gpuconv_sofa *s = responses ? gc_calloc(1, sizeof *s) : NULL;
    if (!s) {
        gpuconv_ir_free(responses);
        return NULL;
    }
    s->responses = responses;
    s->measurements = measurements;
    s->receivers = receivers;
    s->speakers = 1;
    s->position = gc_calloc(measurements, 3 * (int64_t)sizeof *s->position);
    s->delay = gc_calloc(count, sizeof *s->delay);
    s->onset = gc_calloc(count, sizeof *s->onset);
    if (!s->position || !s->delay || !s->onset) {
        gpuconv_sofa_free(s);
        return NULL;
    }
    for (int64_t i = 0; i < count; i++)
        atomic_init(&s->onset[i], NAN);
    return s;
}

void gpuconv_sofa_free(gpuconv_sofa *s) {
    if (!s)
        return;
    for (int i = 0; i < s->shells; i++) {
        gc_direction_tree_free(s->shell[i].tree);
        gc_sphere_mesh_free(s->shell[i].mesh);
    }
    gpuconv_ir_free(s->responses);
    free(s->name);
    free(s->shell);
    free(s->position);
    free(s->delay);
    free(s->onset);
    free(s);
}

bool gc_is_sofa(const char *path) {
    return gc_ending_find(path, "sofa") == 0;
}

/* ---- Shells ------------------------------------------------------------------------------------------------------ */

/* A measurement and its distance, for sorting. */
typedef struct place {
    double distance;
    int measurement, speaker;
} place;

static int compare_places(const void *a, const void *b) {
    const place *one = a, *other = b;
    if (one->speaker != other->speaker)
        return one->speaker - other->speaker;
    if (one->distance != other->distance)
        return one->distance < other->distance ? -1 : 1;
    return one->measurement - other->measurement;
}

/* Returns the end of the shell that begins at `begin` in the sorted places. */
static int end_of_shell(const gpuconv_sofa *s, const place *places, int begin) {
    int end = begin + 1;
    while (end < s->measurements && (s->speakers > 1 ? places[end].speaker == places[begin].speaker
                                                     : places[end].distance <= next_shell * places[end - 1].distance))
        end++;
    return end;
}

/* Returns the number of shells; 1 if one of several distances would have too few measurements. */
static int count_shells(const gpuconv_sofa *s, const place *places) {
    int shells = 0;
    for (int begin = 0, end; begin < s->measurements; begin = end, shells++) {
        end = end_of_shell(s, places, begin);
        if (end - begin < LEAST_OF_SHELL && s->speakers == 1)
            return 1;
    }
    return shells;
}

/* Fills a shell with sorted places. `index` has room for them. Returns false without memory. */
static bool fill_shell(const gpuconv_sofa *s, const place *places, int count, int *index, gc_shell *shell) {
    for (int i = 0; i < count; i++) {
        index[i] = places[i].measurement;
        shell->distance += places[i].distance / count;
    }
    shell->tree = gc_direction_tree_new(s->position, index, count);
    return shell->tree;
}

/* Sorts the measurements by loudspeaker and distance. Returns NULL without memory. */
static place *sort_places(const gpuconv_sofa *s) {
    place *places = gc_calloc(s->measurements, sizeof *places);
    double nearest = HUGE_VAL, farthest = 0;
    for (int m = 0; places && m < s->measurements; m++) {
        double unit[3];
        places[m] = (place){gc_unit_vector(s->position + 3 * (int64_t)m, unit), m, m % s->speakers};
        nearest = fmin(nearest, places[m].distance);
        farthest = fmax(farthest, places[m].distance);
    }
    /* One shell needs no order, and sorting a million places cannot be cancelled. */
    if (places && (s->speakers > 1 || farthest > next_shell * nearest))
        qsort(places, (size_t)s->measurements, sizeof *places, compare_places);
    return places;
}

gpuconv_status gc_sofa_make_shells(gpuconv_sofa *s, gpuconv_error *error) {
    place *places = sort_places(s);
    int *index = gc_calloc(s->measurements, sizeof *index);
    const int shells = places ? count_shells(s, places) : 1;
    s->shell = gc_calloc(shells, sizeof *s->shell);
    bool ok = places && index && s->shell;
    for (int begin = 0, end; ok && s->shells < shells; begin = end) {
        end = shells == 1 ? s->measurements : end_of_shell(s, places, begin);
        ok = fill_shell(s, places + begin, end - begin, index, &s->shell[s->shells++]);
    }
    free(places);
    free(index);
    if (ok && gc_cancelled())
        return gc_fail_cancelled(error, "the directions");
    return ok ? GPUCONV_OK : gc_fail_memory(error, "the directions");
}

gpuconv_status gc_sofa_make_meshes(gpuconv_sofa *s, gpuconv_interpolate how, gpuconv_error *error) {
    gpuconv_error inner = {0};
    for (int i = 0; i < s->shells; i++) {
        gpuconv_status status = gc_sphere_mesh_new(s->shell[i].tree, &s->shell[i].mesh, &inner);
        if (status && (how == GPUCONV_INTERPOLATE_TRIANGLE || status == GPUCONV_ERROR_MEMORY))
            return gc_fail(error, status, "%s: %s", s->name, inner.message);
    }
    return GPUCONV_OK;
}

gpuconv_status gc_sofa_choose(const gpuconv_sofa *s, gpuconv_interpolate *how, gpuconv_error *error) {
    bool meshes = true;
    for (int i = 0; i < s->shells; i++)
        meshes = meshes && s->shell[i].mesh;
    if (*how == GPUCONV_INTERPOLATE_AUTO)
        *how = meshes ? GPUCONV_INTERPOLATE_TRIANGLE : GPUCONV_INTERPOLATE_NEAREST;
    if (*how == GPUCONV_INTERPOLATE_NEAREST || (*how == GPUCONV_INTERPOLATE_TRIANGLE && meshes))
        return GPUCONV_OK;
    if (*how == GPUCONV_INTERPOLATE_TRIANGLE)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "%s: its directions were not divided into triangles", s->name);
    return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "unknown interpolation %d", (int)*how);
}

/* ---- Search ------------------------------------------------------------------------------------------------------ */

static double length_of(const double v[3]) {
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

/* Returns the shell whose loudspeaker is nearest to a direction of the room; without loudspeakers, the one whose
 * distance is nearest to the length of the vector. */
static const gc_shell *find_shell(const gpuconv_sofa *s, const double room[3]) {
    double unit[3], nearest = HUGE_VAL;
    const double wanted = gc_unit_vector(room, unit);
    const gc_shell *best = &s->shell[0];
    for (int i = 0; i < s->shells; i++) {
        const double *at = s->shell[i].speaker;
        const double off = s->speakers > 1 ? -(at[0] * unit[0] + at[1] * unit[1] + at[2] * unit[2])
                                           : fabs(s->shell[i].distance - wanted);
        if (off < nearest) {
            nearest = off;
            best = &s->shell[i];
        }
    }
    return best;
}

/* Searches a shell. Returns the measurement. */
static int find_nearest(const gc_shell *shell, const double at[3], double *degrees) {
    double angle;
    const int measurement = gc_direction_tree_nearest(shell->tree, at, &angle);
    *degrees = angle * 180 / M_PI;
    return measurement;
}

int gc_sofa_nearest(const gpuconv_sofa *s, const double at[3], double *degrees) {
    return find_nearest(find_shell(s, at), at, degrees);
}

/* Puts the corner of the largest weight first. */
static void order_corners(gc_blend *b) {
    for (int k = 1; k < 3; k++)
        if (b->weight[k] > b->weight[0]) {
            const double weight = b->weight[0];
            const int measurement = b->measurement[0];
            b->weight[0] = b->weight[k];
            b->measurement[0] = b->measurement[k];
            b->weight[k] = weight;
            b->measurement[k] = measurement;
        }
}

void gc_sofa_blend(const gpuconv_sofa *s, const double at[3], const double room[3], gpuconv_interpolate how,
                   bool by_distance, gc_blend *b) {
    const double same = 1e-4; /* degrees */
    const gc_shell *shell = find_shell(s, room);
    const int nearest = find_nearest(shell, at, &b->degrees);
    if (how == GPUCONV_INTERPOLATE_NEAREST || b->degrees < same ||
        !gc_sphere_mesh_find(shell->mesh, at, nearest, b->measurement, b->weight)) {
        *b = (gc_blend){.measurement = {nearest, nearest, nearest}, .weight = {1, 0, 0}, .degrees = b->degrees};
    }
    order_corners(b);
    double distance = 0;
    for (int k = 0; k < 3; k++)
        distance += b->weight[k] * length_of(s->position + 3 * (int64_t)b->measurement[k]);
    b->gain = by_distance ? distance / length_of(at) : 1;
}
