/* Building blocks of synthesis: planar sound, a reproducible random sequence, biquad filters. The collections of
 * samples and responses and `gpuconv ir synth` are made with them. Everything runs at RATE. */
#ifndef GPUCONV_ROOM_SYNTH_H
#define GPUCONV_ROOM_SYNTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RATE 48000
#define PI 3.14159265358979323846
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

#endif
