/* Ambisonics: spherical harmonics (order ACN, normalisation SN3D), rotations, and binaural decoders: responses of the
 * harmonics, fitted to a set once, and turned with a head. */
#ifndef GC_IR_AMBISONIC_H
#define GC_IR_AMBISONIC_H

#include "sofa.h"

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

/* Fills `matrix` (channels x channels) such that the harmonics of a direction in the head's coordinates are the matrix
 * times those in the room's coordinates, in the order and normalisation of a convention. */
bool gc_rotate_harmonics(int order, const gc_rotation *head, gpuconv_ambisonics convention, double *matrix);

typedef struct gc_decoder gc_decoder;

/* Fits the responses of the harmonics of an order to all measurements. Returns ARGUMENT (FUMA above order 3), TOPOLOGY
 * (too few directions), MEMORY, CANCELLED. */
gpuconv_status gc_decoder_new(const gpuconv_sofa *sofa, int order, gpuconv_decode how, bool equalize,
                              gpuconv_ambisonics convention, gc_decoder **decoder, gpuconv_error *error);
void gc_decoder_free(gc_decoder *decoder);

/* Makes the responses for a turned head. `head` NULL: of the head's own harmonics, in ACN and SN3D. Returns MEMORY,
 * CANCELLED. */
gpuconv_status gc_decoder_turn(const gc_decoder *decoder, const gc_rotation *head, gpuconv_ir **ir,
                               gpuconv_error *error);

#endif
