/* A response from a few numbers, as a file. */
#ifndef GPUCONV_ROOM_MAKE_H
#define GPUCONV_ROOM_MAKE_H

#include "gpuconv.h"

typedef enum gc_synth_kind {
    GC_SYNTH_ROOM = 0,
    GC_SYNTH_PLATE,
    GC_SYNTH_SPRING,
    GC_SYNTH_CABINET,
    GC_SYNTH_TELEPHONE
} gc_synth_kind;

typedef struct gc_synth {
    gc_synth_kind kind;
    double size[3];  /* metres: of a room, or the first two of a plate; 0: 8 x 6 x 3.2, or 2.02 x 0.993 */
    double rt60;     /* seconds at 1 kHz; 0: a room's by its volume, a plate's 2.1, a spring's own */
    double distance; /* of a room's source and microphones, metres; 0: 0.35 of the room's length */
    int channels;    /* of a room: 1, 2, or 4 for true stereo */
    double rate;     /* frames a second */
    uint64_t seed;   /* of a room's irregularities */
} gc_synth;

/* A stereo room at 48000 Hz. */
gc_synth gc_synth_default(void);

/* At unity gain for pink noise, as 24-bit samples or what the file's name stands for. ARGUMENT, FILE, FORMAT, MEMORY.
 */
gpuconv_status gc_synth_write(const gc_synth *synth, const char *path, gpuconv_error *error);

#endif
