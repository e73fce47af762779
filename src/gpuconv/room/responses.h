/* The kinds of response there are; each file of that name holds one model. */
#ifndef GPUCONV_ROOM_RESPONSES_H
#define GPUCONV_ROOM_RESPONSES_H

#include "synth.h"

#define ROOM_OCTAVES 9 /* 62.5 Hz to 16 kHz */

struct receiver {
    double at[3];
    double aim;  /* degrees in the floor plan, 0 along x, 90 along y */
    double omni; /* 1 an omnidirectional microphone, 0.5 a cardioid */
};

struct room {
    double size[3];             /* metres */
    double decay[ROOM_OCTAVES]; /* RT60 in seconds that the walls alone would give; the air takes its part on top */
    double share[6];            /* how much each wall absorbs against the others: x low, x high, y low, ... z high */
    double scattering;          /* part of the energy that each reflection spreads in all directions */
    double mixing;              /* seconds until which single reflections are followed */
    double build;               /* seconds the diffuse field takes to fill (aisles, side chapels), 0 for at once */
    double seconds;
    int sources, receivers;
    double source[2][3];
    struct receiver receiver[2];
};

/* Each makes a sound, to be freed in any case. False: no memory. */

/* Channels: every receiver of the first source, then every receiver of the second. */
bool gc_room_response(const struct room *room, uint64_t seed, gc_sound *sound);

struct plate {
    double size[2];     /* metres */
    double thickness;   /* millimetres of steel */
    double decay_low;   /* RT60 in the bass, seconds */
    double decay_slope; /* what 1 / RT60 grows by for each hertz */
    double seconds;
};

/* A sheet of 2 m by 1 m and half a millimetre, its damper half closed: RT60 2 s. */
struct plate gc_plate_default(void);
bool gc_plate_response(const struct plate *plate, gc_sound *sound);
bool gc_spring_response(double seconds, gc_sound *sound);
bool gc_cabinet_response(gc_sound *sound);
bool gc_telephone_response(gc_sound *sound);

#endif
