/* Synthesises an impulse response from a few parameters and writes it to a file (gpuconv ir synth). */
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
    double size[3]; /* metres; a plate has two sides; 0 for the default: 8 x 6 x 3.2, or 2.02 x 0.993 */
    double rt60;    /* T30 of every channel at 1 kHz, air included, in seconds; 0 for the default: from a room's volume,
                       2.1 for a plate */
    double distance; /* room only: metres from source to microphones; 0: 0.35 of the room's length */
    int channels;    /* room only: 1, 2, or 4 for true stereo */
    double rate;     /* frames a second */
    uint64_t seed;   /* room only: of the random sequence */
} gc_synth;

/* Returns the parameters of a stereo room at 48000 Hz. */
gc_synth gc_synth_default(void);

/* Writes the response at unity gain for pink noise, as 24-bit samples where the file type allows it.
 * @return ARGUMENT if a value is outside its range (0 selects a default; NaN and negative values are errors) or the
 * size cannot have the RT60, FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gc_synth_write(const gc_synth *synth, const char *path, gpuconv_error *error);

#endif
