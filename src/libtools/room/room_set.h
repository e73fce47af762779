/* Responses of rooms with given or drawn sizes, decay times, materials and positions, written to files with a table of
 * what was drawn (gpuconv ir synth room). */
#ifndef GPUCONV_ROOM_ROOM_SET_H
#define GPUCONV_ROOM_ROOM_SET_H

#include "gpuconv_rooms.h"

/* A lowest and a highest value. */
typedef struct gc_span {
    double low, high;
} gc_span;

typedef struct gc_room_set {
    gc_span size[3];                  /* metres */
    gc_span rt60[GPUCONV_ROOM_BANDS]; /* seconds, of the walls; drawn together. 0: `absorption` */
    double absorption[6][GPUCONV_ROOM_BANDS];
    gc_span distance; /* metres from the first source to receivers that are drawn; 0 and 0: any */
    const gpuconv_room_point *source, *receiver;
    int sources, receivers; /* 0: one source, `drawn` receivers are drawn */
    int drawn;
    double omni; /* pattern of receivers that are drawn, which point to the source */
    int ambisonic;
    double rate, images; /* seconds until which there are images, then noise; negative: to the mixing time */
    uint64_t seed;
    int64_t count; /* of rooms; 0: one, without a number in its name and without a table */
} gc_room_set;

/* Names of materials, for gc_word_find. */
extern const char gc_material_words[];

/* Fills the octaves of a wall with those of a material. */
void gc_material_absorption(int material, double absorption[GPUCONV_ROOM_BANDS]);

/* Spreads 1, 6 (125 to 4000 Hz) or 9 values over the octaves. @return false for another number of values */
bool gc_room_spread(const double *values, int count, double octaves[GPUCONV_ROOM_BANDS]);

/* Reads rows of X Y Z, or of X Y Z AZIMUTH ELEVATION, from a table of text. The caller frees the points.
 * @return FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gc_room_points_read(const char *path, gpuconv_room_point **points, int *count, gpuconv_error *error);

/* Writes the responses as 32-bit floats, where 1 is the pressure at 1 m of the source: STEM-0001.wav and so on, and the
 * table STEM.csv, if set->count is not 0. The channels are: every receiver of the first source, each with its ambisonic
 * channels, then every receiver of the second. Room i depends on the seed and i only.
 * @return ARGUMENT (also: no place at such a distance), FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gc_room_set_write(const gc_room_set *set, const char *path, gpuconv_error *error);

#endif
