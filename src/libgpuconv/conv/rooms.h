/* Rooms (gpuconv_rooms.h) as every backend takes them: checked, with the losses of their walls. */
#ifndef GC_CONV_ROOMS_H
#define GC_CONV_ROOMS_H

#include "gpuconv_rooms.h"

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
} gc_rooms;

/* Returns the centre of a band in Hz. */
double gc_room_centre(int band);

/* Returns the weight of one of `bands` bands at a frequency. */
double gc_room_weight(int band, int bands, double hz);

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
