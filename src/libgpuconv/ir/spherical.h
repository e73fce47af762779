/* Spherical harmonics of ambisonics: order ACN, normalisation SN3D, and fits of functions on the sphere. */
#ifndef GC_IR_SPHERICAL_H
#define GC_IR_SPHERICAL_H

#include <stdbool.h>
#include <stdint.h>

enum { GC_AMBISONIC_ORDER = 7, GC_AMBISONIC_CHANNELS = (GC_AMBISONIC_ORDER + 1) * (GC_AMBISONIC_ORDER + 1) };

/* Returns the ambisonic order of a number of channels, 1 to 7; 0 if it is none. */
int gc_ambisonic_order(int channels);

/* Writes the (order + 1)^2 harmonics at a direction (x front, y left, z up; of any length but 0). */
void gc_spherical_harmonics(int order, const double direction[3], double *values);

/* A rotation as a matrix of rows; and the one that turns the head by yaw (to the left), then pitch (up), then roll (to
 * the right), in degrees. */
typedef struct gc_rotation {
    double row[3][3];
} gc_rotation;
gc_rotation gc_rotation_of(double yaw, double pitch, double roll);

/* Turns a direction from the room's coordinates into those of the turned head. */
void gc_rotate_to_head(const gc_rotation *head, const double room[3], double to[3]);

/* Solves the least squares problem sum over points of |Y(point) x - values|^2 for all columns: normal equations of
 * `channels` unknowns by Cholesky. `gram` (channels x channels) and `right` (channels x columns, overwritten by the
 * solution) are sums over the points. *regularised is set where the points do not determine the solution well and a
 * term was added. Returns false if they do not determine it at all. */
bool gc_solve_normal(double *gram, int channels, double *right, int64_t columns, bool *regularised);

/* Fills `matrix` (channels x channels) such that the harmonics of a direction in the head's coordinates are the matrix
 * times those in the room's coordinates. */
bool gc_rotate_harmonics(int order, const gc_rotation *head, double *matrix);

#endif
