/* The set of measured responses: memory, the division of its measurements by distance, and search. */
#include "sofa.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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
    const char *dot = strrchr(path, '.');
    return dot && gc_same_word(dot, ".sofa");
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
    *degrees = angle * 180 / 3.14159265358979323846;
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
