/* Building blocks of synthesis. */
#include "synth.h"

#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/dsp/fourier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool gc_sound_create(gc_sound *sound, int channels, long frames) {
    *sound = (gc_sound){.channels = channels, .frames = frames};
    for (int c = 0; c < channels; c++)
        if (!(sound->channel[c] = gc_calloc(frames, (int64_t)sizeof(double))))
            return false;
    return true;
}

void gc_sound_free(gc_sound *sound) {
    for (int c = 0; c < sound->channels; c++)
        free(sound->channel[c]);
    memset(sound, 0, sizeof *sound);
}

double gc_sound_peak(const gc_sound *sound) {
    double peak = 0;
    for (int c = 0; c < sound->channels; c++)
        for (long n = 0; n < sound->frames; n++)
            peak = fmax(peak, fabs(sound->channel[c][n]));
    return peak;
}

void gc_sound_scale(gc_sound *sound, double gain) {
    for (int c = 0; c < sound->channels; c++)
        for (long n = 0; n < sound->frames; n++)
            sound->channel[c][n] *= gain;
}

void gc_sound_fade(gc_sound *sound, long in, long out) {
    for (int c = 0; c < sound->channels; c++) {
        double *samples = sound->channel[c];
        for (long n = 0; n < in && n < sound->frames; n++)
            samples[n] *= 0.5 - 0.5 * cos(PI * (double)n / (double)in);
        for (long n = 0; n < out && n < sound->frames; n++)
            samples[sound->frames - 1 - n] *= 0.5 - 0.5 * cos(PI * (double)n / (double)out);
    }
}

void gc_sound_trim(gc_sound *sound, double threshold) {
    long last = 0;
    for (int c = 0; c < sound->channels; c++)
        for (long n = last; n < sound->frames; n++)
            if (fabs(sound->channel[c][n]) >= threshold)
                last = n;
    sound->frames = last + 1;
}

/* Computes the power gain of one output for pink noise from 60 Hz to 12 kHz: the mean over logarithmic frequency of the
 * spectrum that all inputs together have at this output. @return false if memory is exhausted */
static bool pink_power(const gc_sound *sound, int output, double *mean) {
    int64_t size = gc_power_of_two(sound->frames);
    double *re = gc_calloc(size, (int64_t)sizeof *re), *im = gc_calloc(size, (int64_t)sizeof *im);
    bool good = re && im;
    for (int c = output; good && c < sound->channels; c += 2)
        for (long n = 0; n < sound->frames; n++)
            re[n] += sound->channel[c][n];
    good = good && gc_fourier(re, im, size, -1);
    double power = 0, weight = 0;
    for (int64_t k = 1; good && k < size / 2; k++) {
        double hz = (double)k * RATE / (double)size;
        if (hz < 60 || hz > 12000)
            continue;
        power += (re[k] * re[k] + im[k] * im[k]) / hz;
        weight += 1 / hz;
    }
    free(re);
    free(im);
    *mean = power / weight;
    return good;
}

bool gc_sound_normalize(gc_sound *sound) {
    double gain = 0, power;
    for (int output = 0; output < sound->channels && output < 2; output++) {
        if (!pink_power(sound, output, &power))
            return false;
        gain = fmax(gain, sqrt(power));
    }
    gc_sound_scale(sound, 1 / gain);
    return true;
}

/* xoshiro256** seeded through splitmix64 (Blackman and Vigna, Scrambled linear pseudorandom number generators, 2018):
 * small, in the public domain, and identical on every machine. */
struct noise gc_noise_seed(uint64_t seed) {
    struct noise noise;
    for (int i = 0; i < 4; i++)
        noise.state[i] = gc_random_bits(&seed);
    return noise;
}

static uint64_t rotate(uint64_t value, int count) {
    return (value << count) | (value >> (64 - count));
}

double gc_noise_uniform(struct noise *noise) {
    uint64_t *s = noise->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return ldexp((double)(result >> 11), -53);
}

/* Box and Muller 1958. The second value of each pair is discarded, so that the generator has no further state. */
double gc_noise_normal(struct noise *noise) {
    double radius = sqrt(-2 * log(1 - gc_noise_uniform(noise)));
    return radius * cos(2 * PI * gc_noise_uniform(noise));
}

/* Coefficients from Bristow-Johnson's Audio EQ Cookbook. */
static struct biquad biquad_scale(double b0, double b1, double b2, double a0, double a1, double a2) {
    return (struct biquad){b0 / a0, b1 / a0, b2 / a0, a1 / a0, a2 / a0};
}

struct biquad gc_biquad_lowpass(double hz, double q) {
    double c = cos(2 * PI * hz / RATE), alpha = sin(2 * PI * hz / RATE) / (2 * q);
    return biquad_scale((1 - c) / 2, 1 - c, (1 - c) / 2, 1 + alpha, -2 * c, 1 - alpha);
}

struct biquad gc_biquad_highpass(double hz, double q) {
    double c = cos(2 * PI * hz / RATE), alpha = sin(2 * PI * hz / RATE) / (2 * q);
    return biquad_scale((1 + c) / 2, -1 - c, (1 + c) / 2, 1 + alpha, -2 * c, 1 - alpha);
}

struct biquad gc_biquad_bandpass(double hz, double q) {
    double c = cos(2 * PI * hz / RATE), alpha = sin(2 * PI * hz / RATE) / (2 * q);
    return biquad_scale(alpha, 0, -alpha, 1 + alpha, -2 * c, 1 - alpha);
}

struct biquad gc_biquad_peak(double hz, double q, double db) {
    double c = cos(2 * PI * hz / RATE), alpha = sin(2 * PI * hz / RATE) / (2 * q), gain = pow(10, db / 40);
    return biquad_scale(1 + alpha * gain, -2 * c, 1 - alpha * gain, 1 + alpha / gain, -2 * c, 1 - alpha / gain);
}

void gc_biquad_run(struct biquad biquad, double *samples, long frames) {
    double s1 = 0, s2 = 0;
    for (long n = 0; n < frames; n++) {
        double in = samples[n], out = biquad.b0 * in + s1;
        s1 = biquad.b1 * in - biquad.a1 * out + s2;
        s2 = biquad.b2 * in - biquad.a2 * out;
        samples[n] = out;
    }
}
