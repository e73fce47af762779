/* Models of impulse responses: room (room.c), plate (plate.c), spring tank (spring.c), cabinet and telephone
 * (speaker.c). */
#ifndef GPUCONV_ROOM_RESPONSES_H
#define GPUCONV_ROOM_RESPONSES_H

#include "synth.h"

#define ROOM_OCTAVES 9 /* 62.5 Hz to 16 kHz */

struct receiver {
    double at[3];
    double aim;  /* direction of the main axis in the floor plan, degrees: 0 along x, 90 along y */
    double omni; /* directivity: 1 for an omnidirectional microphone, 0.5 for a cardioid */
};

struct room {
    double size[3];             /* metres */
    double decay[ROOM_OCTAVES]; /* RT60 in seconds caused by the walls alone; air absorption shortens it */
    double share[6];            /* relative absorption of each wall: x low, x high, y low, ... z high */
    double scattering;          /* part of the energy, 0..1, that each reflection scatters in all directions */
    double mixing;              /* mixing time in seconds, until which single reflections are computed */
    double
        build; /* time constant in seconds with which the diffuse field builds up (aisles, side chapels); 0: at once */
    double seconds;
    int sources, receivers;
    double source[2][3];
    struct receiver receiver[2];
};

/* Each gc_*_response writes a new sound to *sound, which the caller frees in any case. It returns false if memory is
 * exhausted. If the thread's cancel flag is raised meanwhile (core/cancel.h), the sound is incomplete. */

/* Returns the RT60 in seconds that the absorption of air alone causes at a frequency. */
double gc_room_air_decay(double hz);

/* The channels are: every receiver of the first source, then every receiver of the second. */
bool gc_room_response(const struct room *room, uint64_t seed, gc_sound *sound);

struct plate {
    double size[2];     /* metres */
    double thickness;   /* millimetres of steel */
    double decay_low;   /* RT60 in the bass, seconds */
    double decay_slope; /* increase of 1 / RT60 per hertz */
    double seconds;
};

/* Returns a sheet of 2 m by 1 m and half a millimetre with its damper half closed: RT60 2 s. */
struct plate gc_plate_default(void);
bool gc_plate_response(const struct plate *plate, gc_sound *sound);
bool gc_spring_response(double seconds, gc_sound *sound);
bool gc_cabinet_response(gc_sound *sound);
bool gc_telephone_response(gc_sound *sound);

#endif
