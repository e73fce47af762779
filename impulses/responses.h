/* The kinds of response there are; each file of that name holds one model. */
#ifndef RESPONSES_H
#define RESPONSES_H

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

/* Channels: every receiver of the first source, then every receiver of the second. */
struct audio room_response(const struct room *room, uint64_t seed);
struct audio plate_response(double seconds);
struct audio spring_response(double seconds);
struct audio cabinet_response(void);
struct audio telephone_response(void);

#endif
