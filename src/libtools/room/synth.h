/* Building blocks of synthesis: planar sound, a reproducible random sequence, biquad filters. The collections of
 * samples and responses and `gpuconv ir synth` are made with them. Everything runs at RATE. */
#ifndef GPUCONV_ROOM_SYNTH_H
#define GPUCONV_ROOM_SYNTH_H

#include "gpuconv_rooms.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- Building blocks --------------------------------------------------------------------------------------------- */

#define RATE 48000
#define MAX_CHANNELS 4

typedef struct gc_sound {
    int channels;
    long frames;
    double *channel[MAX_CHANNELS];
} gc_sound;

struct noise {
    uint64_t state[4];
};

struct biquad {
    double b0, b1, b2, a1, a2;
};

/* Creates silence. The caller frees the sound, also after a failure. @return false if memory is exhausted */
bool gc_sound_create(gc_sound *sound, int channels, long frames);
void gc_sound_free(gc_sound *sound);
double gc_sound_peak(const gc_sound *sound);
void gc_sound_scale(gc_sound *sound, double gain);
/* Fades in over the first `in` frames and out over the last `out`. */
void gc_sound_fade(gc_sound *sound, long in, long out);

/* Removes the frames after the last sample that reaches `threshold`. */
void gc_sound_trim(gc_sound *sound, double threshold);

/* Scales to unity gain for pink noise, 60 Hz to 12 kHz, in the louder output. Even channels belong to the first output,
 * odd ones to the second. @return false if memory is exhausted */
bool gc_sound_normalize(gc_sound *sound);

struct noise gc_noise_seed(uint64_t seed);
double gc_noise_uniform(struct noise *noise); /* uniform in [0, 1) */
double gc_noise_normal(struct noise *noise);  /* normal, standard deviation 1 */

struct biquad gc_biquad_lowpass(double hz, double q);
struct biquad gc_biquad_highpass(double hz, double q);
struct biquad gc_biquad_bandpass(double hz, double q); /* 0 dB at the centre */
struct biquad gc_biquad_peak(double hz, double q, double db);
/* Filters the samples in place. */
void gc_biquad_run(struct biquad biquad, double *samples, long frames);

/* ---- Models of impulse responses --------------------------------------------------------------------------------- */

struct room {
    double size[3];                   /* metres */
    double decay[GPUCONV_ROOM_BANDS]; /* RT60 in seconds caused by the walls alone; air absorption shortens it */
    double share[6];                  /* relative absorption of each wall: x low, x high, y low, ... z high */
    double mixing;                    /* mixing time in seconds, until which single reflections are computed */
    double seconds;
    int sources, receivers;
    gpuconv_room_point source[2], receiver[2];
};

/* Each gc_*_response writes a new sound to *sound, which the caller frees in any case. It returns false if memory is
 * exhausted. If the thread's cancel flag is raised meanwhile (core/cancel.h), the sound is incomplete. */

/* The channels are: every receiver of the first source, then every receiver of the second. Returns ARGUMENT (no walls
 * have such a decay), MEMORY, CANCELLED; the caller frees the sound in any case. */
gpuconv_status gc_room_response(const struct room *room, uint64_t seed, gc_sound *sound, gpuconv_error *error);

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

/* ---- Responses from a few parameters (gpuconv ir synth) ---------------------------------------------------------- */

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
