/* What both generators share: buffers of planar sound, a fixed random sequence, biquads, a Fourier transform and the
 * one writer, so that every file of the collection gets its rate, its rounding and its manifest line in one place. */
#ifndef SYNTH_H
#define SYNTH_H

#include <stddef.h>
#include <stdint.h>

#define RATE 48000
#define PI 3.14159265358979323846
#define MAX_CHANNELS 4

struct audio {
    int channels;
    long frames;
    double *channel[MAX_CHANNELS];
};

struct label {
    const char *file;
    const char *source;
    const char *description;
    int bits; /* 16 or 24 */
};

struct noise {
    uint64_t state[4];
};

struct biquad {
    double b0, b1, b2, a1, a2;
};

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *allocate(size_t count, size_t size); /* zeroed, never NULL */

struct audio audio_create(int channels, long frames);
void audio_free(struct audio *audio);
double audio_peak(const struct audio *audio);
void audio_scale(struct audio *audio, double gain);
void audio_fade(struct audio *audio, long in, long out);
void audio_trim(struct audio *audio, double floor); /* drops the end that stays under the floor */
/* Writes the file and prints its manifest line, without the checksum, which only the finished file has. */
void audio_write(const struct audio *audio, const char *folder, const struct label *label);

struct noise noise_seed(uint64_t seed);
double noise_uniform(struct noise *noise); /* [0, 1) */
double noise_normal(struct noise *noise);

struct biquad biquad_lowpass(double hz, double q);
struct biquad biquad_highpass(double hz, double q);
struct biquad biquad_bandpass(double hz, double q); /* 0 dB at the centre */
struct biquad biquad_peak(double hz, double q, double db);
void biquad_run(struct biquad biquad, double *samples, long frames);

/* In place, unscaled, frames a power of two; direction -1 forwards, +1 back. */
void fourier(double *re, double *im, long frames, int direction);
long fourier_size(long frames);

#endif
