/* Sets of measured responses: SOFA files (AES69), such as head-related impulse responses. */
#ifndef GC_IR_SOFA_H
#define GC_IR_SOFA_H

#include "object.h"
#include "sphere.h"

/* Frames before and after it over which a shift by a fraction of a frame spreads a response. */
enum { GC_HALF_SINC = 32 };

/* The measurements of about the same distance; in a set of several loudspeakers, those of one of them. */
typedef struct gc_shell {
    double distance;   /* mean, in metres */
    double speaker[3]; /* of a loudspeaker: unit vector to it along the axes of the room */
    gc_direction_tree *tree;
    gc_sphere_mesh *mesh; /* NULL: not made yet */
} gc_shell;

/* Ends the line on a set whose receivers were exchanged. */
#define GC_SOFA_EXCHANGED "; the file has the right receiver first: both are exchanged"

/* An open set: one response for each measurement and receiver (ear), at the direction of its source. */
struct gpuconv_sofa {
    char *name;            /* of the file */
    gpuconv_ir *responses; /* as stored, without the delays of the file: plane measurement x receivers + receiver */
    int measurements, receivers;
    int speakers;     /* above 1: loudspeakers of a room with a turning head; measurement i is of number i % speakers */
    double *position; /* per measurement: x to the front, y to the left, z up; in metres */
    double *delay;    /* per response: frames by which the file delays it */
    _Atomic(double) *onset; /* per response: delay within its taps in frames; NaN: not computed yet */
    double longest_delay;
    bool fractions; /* a delay is no whole number of frames */
    bool exchanged; /* the file has the right one of two receivers first */
    int shells;
    gc_shell *shell; /* by rising distance, or per loudspeaker */
    char conventions[128], title[128], listener[128];
};

/* The frames of a response that a set gives, and those of them before time zero. */
typedef struct gc_sofa_form {
    int64_t frames, lead;
} gc_sofa_form;

/* The measurements that give the response of a direction. */
typedef struct gc_blend {
    int measurement[3];
    double weight[3]; /* sum 1; weight[0] is 1 if the direction has a measurement of its own */
    double degrees;   /* between the direction and the nearest measurement */
    double gain;      /* of the distance; 1 without */
} gc_blend;

/* Reads a regular file, and makes the meshes for the interpolation. Returns FILE, FORMAT, MEMORY, CANCELLED,
 * UNSUPPORTED (a build without zlib, or without libqhull for TRIANGLE). */
gpuconv_status gc_sofa_load(const char *path, gpuconv_interpolate how, gpuconv_sofa **sofa, gpuconv_error *error);

/* Makes a set that owns `responses`, also on failure, with zeroed positions and delays. Returns NULL without memory. */
gpuconv_sofa *gc_sofa_new(gpuconv_ir *responses, int measurements, int receivers);

/* Sorts the measurements into shells, once the positions are set. Returns MEMORY, CANCELLED. */
gpuconv_status gc_sofa_make_shells(gpuconv_sofa *sofa, gpuconv_error *error);

/* Makes the meshes of the shells. AUTO does without those that cannot be had. Returns MEMORY, CANCELLED; with TRIANGLE
 * also FORMAT (the directions cannot be divided) and UNSUPPORTED (a build without libqhull). */
gpuconv_status gc_sofa_make_meshes(gpuconv_sofa *sofa, gpuconv_interpolate how, gpuconv_error *error);

/* Replaces AUTO by TRIANGLE if the set has its meshes, else by NEAREST. Returns ARGUMENT (an unknown value),
 * UNSUPPORTED (TRIANGLE without meshes). */
gpuconv_status gc_sofa_choose(const gpuconv_sofa *sofa, gpuconv_interpolate *how, gpuconv_error *error);

/* Returns whether a file of this name is read as a SOFA file. */
bool gc_is_sofa(const char *path);

/* Returns the number of the measurement whose direction is nearest to that of `at` (x, y, z) on the shell whose
 * distance is nearest to its length, and among those of the same direction nearest in distance. *degrees gets the angle
 * between them. */
int gc_sofa_nearest(const gpuconv_sofa *sofa, const double at[3], double *degrees);

/* Finds the measurements for a direction, as gc_sofa_choose has chosen: `at` in the coordinates of the head, `room` the
 * same one in those of the room, by which a set of several loudspeakers chooses the nearest of them. `by_distance`: the
 * gain is the distance of the measurements divided by that of `at`. */
void gc_sofa_blend(const gpuconv_sofa *sofa, const double at[3], const double room[3], gpuconv_interpolate how,
                   bool by_distance, gc_blend *blend);

/* Returns the form in which responses of single measurements keep every frame, or that of interpolated ones. */
gc_sofa_form gc_sofa_form_of(const gpuconv_sofa *sofa, bool interpolated);

/* Writes the responses of a direction: `receivers` rows of form.frames taps, `stride` taps apart. Any number of threads
 * may call it. Returns MEMORY, CANCELLED. */
gpuconv_status gc_sofa_respond(const gpuconv_sofa *sofa, const gc_blend *blend, gc_sofa_form form, float *to,
                               int64_t stride, gpuconv_error *error);

/* The memory of a response: zeroed taps, and as much memory to work in. */
typedef struct gc_span {
    float *taps, *work;
    int64_t frames;
} gc_span;

/* Returns the delay of a direction's response at a receiver, in frames after the first stored one. Any number of
 * threads may call it, as the next one. Returns MEMORY, CANCELLED. */
gpuconv_status gc_sofa_delay(const gpuconv_sofa *sofa, const gc_blend *blend, int receiver, double *frames,
                             gpuconv_error *error);

/* Writes what remains of that response without its delay: as if its delay were `at` frames. A measurement lies at
 * at - onset there, and what lies outside of the span, also of the GC_HALF_SINC frames around it, is left out. Returns
 * MEMORY, CANCELLED. */
gpuconv_status gc_sofa_align(const gpuconv_sofa *sofa, const gc_blend *blend, int receiver, double at, gc_span to,
                             gpuconv_error *error);

/* Returns the delay within the taps of a response, in frames, and keeps it. Any number of threads may
 * call it. Returns MEMORY, CANCELLED. */
gpuconv_status gc_sofa_onset(const gpuconv_sofa *sofa, int measurement, int receiver, double *frames,
                             gpuconv_error *error);

/* Returns the taps of a measurement and a receiver as they are stored. */
static inline const float *gc_sofa_taps(const gpuconv_sofa *sofa, int measurement, int receiver) {
    return gc_ir_plane(sofa->responses, measurement * sofa->receivers + receiver);
}

/* ---- Spectra (sofa_file.c) --------------------------------------------------------------------------------------- */

/* `count` spectra of `bins` values at rising frequencies in Hz. Owned by the caller. */
typedef struct gc_spectra {
    int64_t count, bins;
    const float *frequency, *real, *imag;
} gc_spectra;

/* The responses of the spectra, one after the other. */
typedef struct gc_from_spectra {
    float *taps; /* count x frames, owned by the caller */
    int64_t frames, lead;
    double rate; /* Hz */
} gc_from_spectra;

/* Computes the responses. The last frequency is half their sampling rate. `path` is named in messages.
 * @return FORMAT (frequencies that are not uniform, or begin neither at 0 nor at their first step), MEMORY, CANCELLED
 */
gpuconv_status gc_spectra_invert(const char *path, const gc_spectra *spectra, gc_from_spectra *to,
                                 gpuconv_error *error);

#endif
