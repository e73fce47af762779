/* Rooms described by a text, drawn from its ranges and simulated (gpuconv_rooms.h): for gpuconv ir synth room, and for
 * the rows of a batch, whose response is then "room:" and the text of a room without ranges. */
#ifndef GPUCONV_ROOM_ROOM_SET_H
#define GPUCONV_ROOM_ROOM_SET_H

#include "gpuconv_rooms.h"

enum { GC_ROOM_SOURCES = 300, GC_ROOM_RECEIVERS = 1024, GC_ROOM_WALLS = 1024 };
#define GC_ROOM_PREFIX "room:"

/* A lowest and a highest value. */
typedef struct gc_room_span {
    double low, high;
} gc_room_span;

typedef struct gc_room_set {
    gc_room_span size[3]; /* metres; 0: the default */
    gc_room_span
        rt60[GPUCONV_ROOM_BANDS]; /* seconds, of the walls; drawn together. 0 without `walls`: from the volume */
    char walls[GC_ROOM_WALLS];    /* "absorption=..." or "materials=...", from which `absorption` follows; "" */
    double absorption[6][GPUCONV_ROOM_BANDS];
    gc_room_span distance;  /* metres from the first source to receivers that are drawn; 0 and 0: any */
    int sources, receivers; /* that are given */
    int drawn;              /* receivers that are drawn if none is given */
    int pattern;            /* of the receivers; those that are drawn point to the source */
    int ambisonic;
    char sofa[GC_ROOM_WALLS]; /* a set whose head the receivers are; "" */
    double images;            /* seconds until which there are images, then noise; negative: to the mixing time */
    uint64_t seed;
    int64_t count; /* of rooms; 0: one, without a number in its name and without a table */
    gpuconv_room_point source[GC_ROOM_SOURCES], receiver[GC_ROOM_RECEIVERS];
} gc_room_set;

/* Sets *set to one drawn receiver and defaults. */
void gc_room_set_init(gc_room_set *set);

/* Sets what a key says, with the values of the options of gpuconv ir synth: size, rt60, distance, absorption,
 * materials, pattern, channels, ambisonic, sofa, images, source, receiver, receivers, seed. source and receiver add
 * one.
 * @return ARGUMENT (the message begins with the key, and has the value and its range), or as a list is read */
gpuconv_status gc_room_set_put(gc_room_set *set, const char *key, const char *value, gpuconv_error *error);

/* Sets *set from "KEY=VALUE KEY=VALUE ...", with or without GC_ROOM_PREFIX. sofa stands last: its name may have blanks.
 * @return as gc_room_set_put */
gpuconv_status gc_room_set_parse(const char *text, gc_room_set *set, gpuconv_error *error);

/* Returns whether a response is the text of a room. */
bool gc_is_room(const char *response);

/* Returns the path of the file of a response: itself, or the SOFA set of a room, or NULL. */
const char *gc_response_path(const char *response);

/* Draws room `index` with `sources` sources, the first of which are those that are given: a set without ranges, whose
 * numbers have three decimals. It depends on the seed, the index and the set only.
 * @return ARGUMENT (no place at such a distance) */
gpuconv_status gc_room_set_draw(const gc_room_set *set, int64_t index, int sources, gc_room_set *drawn,
                                gpuconv_error *error);

/* Returns the text of a drawn room with all its sources, or with one and a seed of its own; to be freed. NULL: out of
 * memory. */
char *gc_room_set_text(const gc_room_set *drawn, int source);
enum { GC_ROOM_ALL_SOURCES = -1 };

/* Simulates a drawn room, where 1 is the pressure at 1 m of the source. The channels are: every receiver of the first
 * source, each with its ambisonic channels or those of `ears`, then every receiver of the second.
 * @param ears  the open set of drawn->sofa; NULL: none
 * @return ARGUMENT, MEMORY, CANCELLED */
gpuconv_status gc_room_set_simulate(const gc_room_set *drawn, const gpuconv_sofa *ears, gpuconv_arrays *place,
                                    double rate, gpuconv_ir **ir, gpuconv_error *error);

/* A room in which ends move. */
typedef struct gc_room_job {
    gc_room_set set;
    gpuconv_room room;
    gpuconv_rooms_job job; /* points to the others; its source is NULL if the text names none */
} gc_room_job;

/* Reads the text of a room, and draws what has ranges. Without `receiver` there is one, whose place has to come from a
 * path. @return as gc_room_set_parse; ARGUMENT (no receiver: `receiver_moves` is false) */
gpuconv_status gc_room_job_read(const char *text, bool receiver_moves, gc_room_job *to, gpuconv_error *error);

/* Returns the seconds in which a core simulates the drawn room that gave *ir, about; 0 if `response` is no room. */
double gc_room_seconds(const char *response, const gpuconv_ir *ir);

/* Writes the responses as 32-bit floats: STEM-0001.wav and so on, and the table STEM.csv, if set->count is not 0. Room
 * i depends on the seed and i only. @return as the functions above, FILE, FORMAT */
gpuconv_status gc_room_set_write(const gc_room_set *set, double rate, const char *path, gpuconv_error *error);

#endif
