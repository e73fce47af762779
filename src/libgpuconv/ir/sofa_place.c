/* Places of SOFA files relative to the head, as AES69 defines ListenerPosition, ListenerView and ListenerUp. */
#include "sofa_place.h"

#include "direction_tree.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* Converts a row to x, y, z. */
static void convert(const gc_places *p, int64_t row, double to[3]) {
    const float *from = p->value + (p->count == 3 ? 0 : 3 * row);
    for (int k = 0; k < 3; k++)
        to[k] = (double)from[k];
    if (p->spherical) {
        const double azimuth = to[0] * pi / 180, elevation = to[1] * pi / 180, radius = to[2];
        to[0] = radius * cos(elevation) * cos(azimuth);
        to[1] = radius * cos(elevation) * sin(azimuth);
        to[2] = radius * sin(elevation);
    }
}

static void cross(const double a[3], const double b[3], double to[3]) {
    for (int k = 0; k < 3; k++)
        to[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
}

/* Computes the axes of the head: unit vectors to the front, to the left and up. A view in spherical coordinates has no
 * roll: the files do not tell in which coordinates they give the direction up beside it. */
static void find_axes(const gc_room *room, int64_t measurement, double axis[3][3]) {
    const double least = 1e-6;
    double view[3], up[3] = {0, 0, 1}, left[3];
    convert(&room->view, measurement, view);
    if (room->up.count && !room->view.spherical)
        convert(&room->up, measurement, up);
    (void)gc_unit_vector(view, axis[0]);
    cross(up, axis[0], left);
    if (gc_unit_vector(left, axis[1]) < least) { /* looks along its direction up: any roll */
        const double other[3] = {axis[0][2], axis[0][0], axis[0][1]};
        cross(other, axis[0], left);
        (void)gc_unit_vector(left, axis[1]);
    }
    cross(axis[0], axis[1], axis[2]);
}

void gc_room_locate(const gc_room *room, int64_t measurement, int64_t emitter, bool turned, double to[3]) {
    double other[3];
    convert(&room->source, measurement, to);
    if (room->emitter.count) {
        convert(&room->emitter, emitter, other);
        for (int k = 0; k < 3; k++)
            to[k] += other[k];
    }
    if (room->listener.count) {
        convert(&room->listener, measurement, other);
        for (int k = 0; k < 3; k++)
            to[k] -= other[k];
    }
    if (turned && room->view.count) {
        double axis[3][3];
        find_axes(room, measurement, axis);
        memcpy(other, to, sizeof other);
        for (int k = 0; k < 3; k++)
            to[k] = axis[k][0] * other[0] + axis[k][1] * other[1] + axis[k][2] * other[2];
    }
}
