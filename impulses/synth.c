/* The tools every synthesis here needs.  The programs are batch tools, so trouble of any kind ends them at once. */
#include "synth.h"

#include <math.h>
#include <sndfile.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        fail("out of memory for %zu items of %zu bytes", count, size);
    return memory;
}

struct audio audio_create(int channels, long frames) {
    struct audio audio = {.channels = channels, .frames = frames};
    if (channels < 1 || channels > MAX_CHANNELS || frames < 1)
        fail("cannot hold %d channels of %ld frames", channels, frames);
    for (int c = 0; c < channels; c++)
        audio.channel[c] = allocate((size_t)frames, sizeof *audio.channel[c]);
    return audio;
}

void audio_free(struct audio *audio) {
    for (int c = 0; c < audio->channels; c++)
        free(audio->channel[c]);
    memset(audio, 0, sizeof *audio);
}

double audio_peak(const struct audio *audio) {
    double peak = 0;
    for (int c = 0; c < audio->channels; c++)
        for (long n = 0; n < audio->frames; n++)
            peak = fmax(peak, fabs(audio->channel[c][n]));
    return peak;
}

void audio_scale(struct audio *audio, double gain) {
    for (int c = 0; c < audio->channels; c++)
        for (long n = 0; n < audio->frames; n++)
            audio->channel[c][n] *= gain;
}

void audio_fade(struct audio *audio, long in, long out) {
    for (int c = 0; c < audio->channels; c++) {
        double *samples = audio->channel[c];
        for (long n = 0; n < in && n < audio->frames; n++)
            samples[n] *= 0.5 - 0.5 * cos(PI * (double)n / (double)in);
        for (long n = 0; n < out && n < audio->frames; n++)
            samples[audio->frames - 1 - n] *= 0.5 - 0.5 * cos(PI * (double)n / (double)out);
    }
}

void audio_trim(struct audio *audio, double floor) {
    long last = 0;
    for (int c = 0; c < audio->channels; c++)
        for (long n = last; n < audio->frames; n++)
            if (fabs(audio->channel[c][n]) >= floor)
                last = n;
    audio->frames = last + 1;
}

/* Rounds without dither: the decays are noise-like far above one step, and dither would put a hiss under the silence
 * they end in.  The library takes integers of 32 bits of which a file keeps the high ones. */
static int *round_frames(const struct audio *audio, const struct label *label) {
    double scale = ldexp(1, label->bits - 1);
    long step = 1L << (32 - label->bits);
    int *frames = allocate((size_t)audio->frames * (size_t)audio->channels, sizeof *frames);
    for (long n = 0; n < audio->frames; n++)
        for (int c = 0; c < audio->channels; c++) {
            double value = audio->channel[c][n] * scale;
            if (!(fabs(value) <= scale - 1))
                fail("%s: frame %ld clips", label->file, n);
            frames[n * audio->channels + c] = (int)(lround(value) * step);
        }
    return frames;
}

void audio_write(const struct audio *audio, const char *folder, const struct label *label) {
    size_t length = strlen(folder) + strlen(label->file) + 2;
    char *path = allocate(length, 1);
    snprintf(path, length, "%s/%s", folder, label->file);
    int *frames = round_frames(audio, label);

    SF_INFO info = {.samplerate = RATE,
                    .channels = audio->channels,
                    .format = SF_FORMAT_FLAC | (label->bits > 16 ? SF_FORMAT_PCM_24 : SF_FORMAT_PCM_16)};
    SNDFILE *file = sf_open(path, SFM_WRITE, &info);
    if (!file)
        fail("%s: %s", path, sf_strerror(NULL));
    double densest = 1;
    if (sf_command(file, SFC_SET_COMPRESSION_LEVEL, &densest, sizeof densest) != SF_TRUE)
        fail("%s: cannot set the compression level", path);
    if (sf_set_string(file, SF_STR_TITLE, label->description) || sf_set_string(file, SF_STR_LICENSE, "MIT"))
        fail("%s: %s", path, sf_strerror(file));
    if (sf_writef_int(file, frames, audio->frames) != audio->frames)
        fail("%s: %s", path, sf_strerror(file));
    int error = sf_close(file);
    if (error)
        fail("%s: %s", path, sf_error_number(error));

    if (printf("%s\t%s\tMIT\t%d\t%d\t%ld\t%s\n", label->file, label->source, RATE, audio->channels, audio->frames,
               label->description) < 0 ||
        fflush(stdout))
        fail("cannot write the manifest line of %s", label->file);
    free(frames);
    free(path);
}

/* xoshiro256** seeded through splitmix64 (Blackman and Vigna, Scrambled linear pseudorandom number generators, 2018):
 * small, public domain and the same on every machine. */
struct noise noise_seed(uint64_t seed) {
    struct noise noise;
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        noise.state[i] = z ^ (z >> 31);
    }
    return noise;
}

static uint64_t rotate(uint64_t value, int count) {
    return (value << count) | (value >> (64 - count));
}

double noise_uniform(struct noise *noise) {
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

/* Box and Muller 1958; the second value of each pair is dropped to keep the sequence free of hidden state. */
double noise_normal(struct noise *noise) {
    double radius = sqrt(-2 * log(1 - noise_uniform(noise)));
    return radius * cos(2 * PI * noise_uniform(noise));
}

/* The biquads are those of Bristow-Johnson's Audio EQ Cookbook. */
static struct biquad biquad_scale(double b0, double b1, double b2, double a0, double a1, double a2) {
    return (struct biquad){b0 / a0, b1 / a0, b2 / a0, a1 / a0, a2 / a0};
}

struct biquad biquad_lowpass(double hz, double q) {
    double c = cos(2 * PI * hz / RATE), alpha = sin(2 * PI * hz / RATE) / (2 * q);
    return biquad_scale((1 - c) / 2, 1 - c, (1 - c) / 2, 1 + alpha, -2 * c, 1 - alpha);
}

struct biquad biquad_highpass(double hz, double q) {
    double c = cos(2 * PI * hz / RATE), alpha = sin(2 * PI * hz / RATE) / (2 * q);
    return biquad_scale((1 + c) / 2, -1 - c, (1 + c) / 2, 1 + alpha, -2 * c, 1 - alpha);
}

struct biquad biquad_bandpass(double hz, double q) {
    double c = cos(2 * PI * hz / RATE), alpha = sin(2 * PI * hz / RATE) / (2 * q);
    return biquad_scale(alpha, 0, -alpha, 1 + alpha, -2 * c, 1 - alpha);
}

struct biquad biquad_peak(double hz, double q, double db) {
    double c = cos(2 * PI * hz / RATE), alpha = sin(2 * PI * hz / RATE) / (2 * q), gain = pow(10, db / 40);
    return biquad_scale(1 + alpha * gain, -2 * c, 1 - alpha * gain, 1 + alpha / gain, -2 * c, 1 - alpha / gain);
}

void biquad_run(struct biquad biquad, double *samples, long frames) {
    double s1 = 0, s2 = 0;
    for (long n = 0; n < frames; n++) {
        double in = samples[n], out = biquad.b0 * in + s1;
        s1 = biquad.b1 * in - biquad.a1 * out + s2;
        s2 = biquad.b2 * in - biquad.a2 * out;
        samples[n] = out;
    }
}

long fourier_size(long frames) {
    long size = 1;
    while (size < frames)
        size *= 2;
    return size;
}

/* Cooley and Tukey 1965, radix 2. */
void fourier(double *re, double *im, long frames, int direction) {
    for (long i = 1, j = 0; i < frames; i++) {
        long bit = frames / 2;
        for (; j & bit; bit /= 2)
            j ^= bit;
        j |= bit;
        if (i < j) {
            double swap = re[i];
            re[i] = re[j];
            re[j] = swap;
            swap = im[i];
            im[i] = im[j];
            im[j] = swap;
        }
    }
    long half_table = frames / 2;
    double *cosine = allocate((size_t)half_table, sizeof *cosine), *sine = allocate((size_t)half_table, sizeof *sine);
    for (long i = 0; i < half_table; i++) {
        cosine[i] = cos(2 * PI * (double)i / (double)frames);
        sine[i] = direction * sin(2 * PI * (double)i / (double)frames);
    }
    for (long half = 1; half < frames; half *= 2)
        for (long start = 0; start < frames; start += 2 * half)
            for (long k = 0; k < half; k++) {
                long a = start + k, b = a + half, w = k * (half_table / half);
                double x = re[b] * cosine[w] - im[b] * sine[w], y = re[b] * sine[w] + im[b] * cosine[w];
                re[b] = re[a] - x;
                im[b] = im[a] - y;
                re[a] += x;
                im[a] += y;
            }
    free(cosine);
    free(sine);
}
