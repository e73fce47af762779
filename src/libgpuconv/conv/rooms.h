/* Rooms (gpuconv_rooms.h) as every backend takes them: checked, with the losses of their walls. */
#ifndef GC_CONV_ROOMS_H
#define GC_CONV_ROOMS_H

#include "gpuconv_rooms.h"
#include "libgpuconv/dsp/image_kernels.h"

/* A room after the checks. */
typedef struct gc_room {
    double loss[6][GPUCONV_ROOM_BANDS]; /* nepers of energy at a reflection; HUGE_VAL: all of it */
    double reach;                       /* metres of the farthest image but the direct sound; HUGE_VAL: no limit */
    int bands;                          /* that are computed: all in use, or 1 if they are alike */
} gc_room;

typedef struct gc_rooms {
    gpuconv_rooms_job job;
    int channels;                   /* of a receiver */
    int bands;                      /* in use */
    double speed;                   /* of sound, m/s */
    double air[GPUCONV_ROOM_BANDS]; /* nepers of amplitude a metre */
    gc_room *room;
    bool aligned; /* on the CPU: the direct sound arrives at the frame job.origin */
    const gpuconv_room_point
        *first; /* a source and a receiver, around which the noise is drawn; NULL: those of a room */
} gc_rooms;

struct gpuconv_rooms_plan {
    gpuconv_arrays *place;
    gc_rooms rooms; /* without those of a run */
    void *state;    /* of the backend */
    int64_t bytes;  /* of the workspace */
};

/* Fills the filter that makes frames of an accumulator with GC_IMAGE_STEPS steps a frame (image_kernels.h). Returns
 * false without memory. */
bool gc_room_reduction(float taps[GC_IMAGE_TAPS]);

/* Returns the frames by which the filters of the bands are late at a rate. */
int64_t gc_room_band_lead(double rate);

/* Returns the filters of the bands, r->bands x (2 gc_room_band_lead + 1) taps, which add up to a pulse after
 * gc_room_band_lead frames; NULL without memory. The caller frees the result. */
float *gc_room_band_filters(const gc_rooms *r);

/* Fills the biquad {b0, b1, b2, a1, a2}, 0 or 1, of a high-pass of fourth order. */
void gc_room_highpass(const gpuconv_rooms_job *job, int section, double biquad[5]);

/* Checks the values of a room. Returns ARGUMENT. */
gpuconv_status gc_room_check(const gpuconv_room *room, int64_t index, gpuconv_error *error);

/* Returns the centre of a band in Hz. */
double gc_room_centre(int band);

/* Returns the distance of two places in metres. */
double gc_room_distance(const double a[3], const double b[3]);

/* Returns the speed of sound in m/s at a temperature in degrees C. */
double gc_speed_of_sound(double temperature);

/* Returns the pure-tone absorption of air at one atmosphere in nepers of energy a metre (ISO 9613-1, equations 3 to 5,
 * and B.1 to B.3 for the water).
 * @param temperature degrees C
 * @param humidity    per cent */
double gc_air_absorption(double hz, double temperature, double humidity);

#endif
