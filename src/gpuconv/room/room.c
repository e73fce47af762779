/* Shoebox rooms: single reflections from image sources while the ear can tell them apart, then a diffuse tail.
 *
 * The two share one energy budget.  An image of order n keeps (1 - scattering)^n of its energy; what the reflections
 * have spread by then is the tail's.  As the images of a room of volume V arrive at the rate 4 pi c^3 t^2 / V and each
 * is 1 / (c t) strong, the sum of both carries 4 pi c / V per second, times the decay, so the tail needs no level of
 * its own and the distance to the source alone makes the room sound near or far.
 *
 * Everything is built per third of an octave and summed in the frequency domain, where the weights add up to one. */
#include "responses.h"

#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fourier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPEED 343.2         /* of sound at 20 degrees C, m/s */
#define LEAD 48             /* frames before the direct sound: room for the interpolation's first half */
#define SINC_HALF 24        /* frames either side of a fractional delay */
#define BANDS 26            /* thirds of octaves, 62.5 Hz to 20 kHz: whole octaves would show as steps in the decay */
#define NEPERS_60DB 13.8155 /* ln(10^6): an energy that falls by 60 dB */

struct image {
    double distance, gain;
    int hits[6]; /* reflections at each wall */
};

struct images {
    struct image *item;
    size_t count, room;
};

static double band_centre(int band) {
    return 62.5 * exp2(band / 3.0);
}

static double wall_decay(const struct room *room, int band) {
    int below = band / 3 < ROOM_OCTAVES - 1 ? band / 3 : ROOM_OCTAVES - 2;
    return room->decay[below] * pow(room->decay[below + 1] / room->decay[below], band / 3.0 - below);
}

/* Pure-tone air absorption in nepers of energy per metre at 20 degrees C, 50 % humidity, one atmosphere: ISO 9613-1,
 * equations 3 to 5, where the temperature ratio to the reference is one. */
static double air_absorption(double hz) {
    const double kelvin = 293.15, water = 1.153; /* molar concentration of water vapour in per cent */
    double oxygen = 24 + 4.04e4 * water * (0.02 + water) / (0.391 + water);
    double nitrogen = 9 + 280 * water;
    double relaxation = 0.01275 * exp(-2239.1 / kelvin) / (oxygen + hz * hz / oxygen) +
                        0.1068 * exp(-3352 / kelvin) / (nitrogen + hz * hz / nitrogen);
    return 2 * hz * hz * (1.84e-11 + relaxation);
}

static double volume(const struct room *room) {
    return room->size[0] * room->size[1] * room->size[2];
}

static double wall_area(const struct room *room, int wall) {
    return volume(room) / room->size[wall / 2];
}

static double surface(const struct room *room) {
    double sum = 0;
    for (int wall = 0; wall < 6; wall++)
        sum += wall_area(room, wall);
    return sum;
}

/* Energy lost per reflection at each wall, in nepers, from the wanted decay: Eyring 1930 solved for the mean exponent
 * and dealt out by the walls' shares. */
static void wall_losses(const struct room *room, int band, double loss[6]) {
    double mean = 4 * volume(room) * NEPERS_60DB / (SPEED * wall_decay(room, band) * surface(room));
    double weight = 0;
    for (int wall = 0; wall < 6; wall++)
        weight += room->share[wall] * wall_area(room, wall) / surface(room);
    for (int wall = 0; wall < 6; wall++)
        loss[wall] = mean * room->share[wall] / weight;
}

/* How much of the energy that arrives at a time is still in single reflections of this strength. */
static double mixing_window(const struct room *room, double seconds) {
    double x = (seconds - room->mixing) / (0.5 * room->mixing);
    return x <= 0 ? 1 : x >= 1 ? 0 : 0.5 + 0.5 * cos(PI * x);
}

static double sensitivity(const struct receiver *receiver, const double towards[3], double distance) {
    double aim = receiver->aim * PI / 180;
    double cosine = (towards[0] * cos(aim) + towards[1] * sin(aim)) / distance;
    return receiver->omni + (1 - receiver->omni) * cosine;
}

static bool images_add(struct images *images, const struct image *image) {
    if (images->count == images->room) {
        size_t room = images->room ? 2 * images->room : 1024;
        struct image *item = realloc(images->item, room * sizeof *item);
        if (!item)
            return false;
        images->item = item;
        images->room = room;
    }
    images->item[images->count++] = *image;
    return true;
}

/* Allen and Berkley 1979.  Exact mirror images line up into sweeping echoes, so each is moved by a
 * little, as walls with any relief do (De Sena et al., On the modeling of rectangular geometries, 2015). */
static bool find_images(const struct room *room, const double source[3], const struct receiver *receiver,
                        struct noise *noise, struct images *images) {
    *images = (struct images){0};
    double reach = 1.5 * room->mixing * SPEED;
    int most[3];
    for (int axis = 0; axis < 3; axis++)
        most[axis] = (int)ceil(reach / (2 * room->size[axis])) + 1;
    for (int x = -most[0]; x <= most[0]; x++)
        for (int y = -most[1]; y <= most[1]; y++)
            for (int z = -most[2]; z <= most[2]; z++)
                for (int mirror = 0; mirror < 8; mirror++) {
                    const int cell[3] = {x, y, z};
                    struct image image = {0};
                    double towards[3], square = 0;
                    int order = 0;
                    for (int axis = 0; axis < 3; axis++) {
                        int flip = mirror >> axis & 1;
                        image.hits[2 * axis] = abs(cell[axis] - flip);
                        image.hits[2 * axis + 1] = abs(cell[axis]);
                        order += image.hits[2 * axis] + image.hits[2 * axis + 1];
                        towards[axis] = (flip ? -source[axis] : source[axis]) + 2 * cell[axis] * room->size[axis] -
                                        receiver->at[axis];
                    }
                    double jitter = fmin(0.01 * order, 0.05) * cbrt(volume(room)) / 3;
                    for (int axis = 0; axis < 3; axis++) {
                        towards[axis] += jitter * (2 * gc_noise_uniform(noise) - 1);
                        square += towards[axis] * towards[axis];
                    }
                    image.distance = sqrt(square);
                    image.gain = sensitivity(receiver, towards, image.distance) / image.distance *
                                 sqrt(pow(1 - room->scattering, order) * mixing_window(room, image.distance / SPEED));
                    if (image.distance < reach && !images_add(images, &image))
                        return false;
                }
    return true;
}

/* A pulse between frames: sinc under a Hann window (Laakso et al., Splitting the unit delay, 1996). */
static void add_pulse(double *samples, long frames, double at, double gain) {
    long first = (long)floor(at) - SINC_HALF + 1;
    for (long n = first; n < first + 2 * SINC_HALF; n++) {
        double x = (double)n - at;
        if (n < 0 || n >= frames)
            continue;
        double sinc = fabs(x) < 1e-9 ? 1 : sin(PI * x) / (PI * x);
        samples[n] += gain * sinc * (0.5 + 0.5 * cos(PI * x / SINC_HALF));
    }
}

/* Pulses of random sign at the rate at which reflections arrive, unit power throughout (Heinz 1993; Schröder
 * 2011).  Relief splits every reflection, hence ten pulses for each that a flat-walled room would have. */
static void scatter_pulses(const struct room *room, double *samples, long frames, double start, struct noise *noise) {
    for (long n = 0; n < frames; n++) {
        double t = start + (double)n / RATE;
        double chance = fmax(800, 40 * PI * pow(SPEED, 3) * t * t / volume(room)) / RATE;
        if (chance > 0.5)
            samples[n] = gc_noise_normal(noise);
        else if (gc_noise_uniform(noise) < chance)
            samples[n] = (gc_noise_uniform(noise) < 0.5 ? -1 : 1) / sqrt(chance);
    }
}

static double tail_envelope(const struct room *room, const struct receiver *receiver, double direct, double loss,
                            double t) {
    double since = t - direct;
    if (since <= 0)
        return 0;
    double mean_path = 4 * volume(room) / surface(room);
    double single = pow(1 - room->scattering, SPEED * since / mean_path) * mixing_window(room, t);
    double filled = room->build > 0 ? 1 - exp(-since / room->build) : 1;
    double picked_up = receiver->omni * receiver->omni + (1 - receiver->omni) * (1 - receiver->omni) / 3;
    return sqrt(4 * PI * SPEED / (volume(room) * RATE) * exp(-loss * t) * (1 - single) * filled * picked_up);
}

/* Cosine-squared crossfades between neighbouring bands, and a soft end before half the rate. */
static double band_weight(int band, double hz) {
    double place = fmin(fmax(3 * log2(fmax(hz, 1) / 62.5), 0), BANDS - 1), off = fabs(place - band);
    double weight = off < 1 ? 0.5 + 0.5 * cos(PI * off) : 0;
    if (hz > 19000)
        weight *= hz >= 22000 ? 0 : 0.5 + 0.5 * cos(PI * (hz - 19000) / 3000);
    return weight;
}

/* The likeness of a diffuse field at two points, per frequency (Cook et al. 1955). */
static double likeness(const struct room *room, double hz) {
    double square = 0;
    for (int axis = 0; axis < 3; axis++)
        square += pow(room->receiver[0].at[axis] - room->receiver[1].at[axis], 2);
    double x = 2 * PI * hz * sqrt(square) / SPEED;
    return x < 1e-6 ? 1 : sin(x) / x;
}

static double distance(const double a[3], const double b[3]) {
    return sqrt(pow(a[0] - b[0], 2) + pow(a[1] - b[1], 2) + pow(a[2] - b[2], 2));
}

static void render_band(const struct room *room, const struct images *images, const struct receiver *receiver,
                        double direct, double start, int band, const double *pulses, const double *shared,
                        double *samples, long frames) {
    double loss[6], air = air_absorption(band_centre(band));
    wall_losses(room, band, loss);
    for (size_t i = 0; i < images->count; i++) {
        const struct image *image = &images->item[i];
        double nepers = air * image->distance;
        for (int wall = 0; wall < 6; wall++)
            nepers += loss[wall] * image->hits[wall];
        add_pulse(samples, frames, (image->distance / SPEED - start) * RATE, image->gain * exp(-nepers / 2));
    }
    double like = shared ? likeness(room, band_centre(band)) : 0;
    double rate = NEPERS_60DB / wall_decay(room, band) + air * SPEED;
    for (long n = 0; n < frames; n++) {
        double pulse = shared ? like * shared[n] + sqrt(1 - like * like) * pulses[n] : pulses[n];
        samples[n] += pulse * tail_envelope(room, receiver, direct, rate, start + (double)n / RATE);
    }
}

static bool render_channel(const struct room *room, const double source[3], const struct receiver *receiver,
                           double start, const double *pulses, const double *shared, struct noise *noise,
                           double *samples, long frames) {
    int64_t size = gc_power_of_two(frames + RATE / 10);
    double *re = gc_calloc(size, 4 * (int64_t)sizeof *re);
    if (!re)
        return false;
    double *im = re + size, *sum_re = im + size, *sum_im = sum_re + size;
    struct images images;
    bool good = find_images(room, source, receiver, noise, &images);
    for (int band = 0; band < BANDS && good; band++) {
        memset(re, 0, 2 * (size_t)size * sizeof *re);
        render_band(room, &images, receiver, distance(source, receiver->at) / SPEED, start, band, pulses, shared, re,
                    frames);
        good = gc_fourier(re, im, size, -1);
        for (int64_t k = 0; k < size; k++) {
            double weight = band_weight(band, (double)(k <= size / 2 ? k : size - k) * RATE / (double)size);
            sum_re[k] += weight * re[k];
            sum_im[k] += weight * im[k];
        }
    }
    good = good && gc_fourier(sum_re, sum_im, size, 1);
    for (long n = 0; n < frames; n++)
        samples[n] = sum_re[n] / (double)size;
    free(images.item);
    free(re);
    return good;
}

bool gc_room_response(const struct room *room, uint64_t seed, gc_sound *sound) {
    struct noise noise = gc_noise_seed(seed);
    if (!gc_sound_create(sound, room->sources * room->receivers, (long)(room->seconds * RATE)))
        return false;
    double nearest = HUGE_VAL;
    for (int s = 0; s < room->sources; s++)
        for (int r = 0; r < room->receivers; r++)
            nearest = fmin(nearest, distance(room->source[s], room->receiver[r].at));
    double start = nearest / SPEED - (double)LEAD / RATE;
    double *both = gc_calloc(sound->frames, 2 * (int64_t)sizeof *both);
    bool good = both != NULL;
    for (int s = 0; s < room->sources; s++)
        for (int r = 0; r < room->receivers && good; r++) {
            double *pulses = both + r * sound->frames;
            memset(pulses, 0, (size_t)sound->frames * sizeof *pulses);
            scatter_pulses(room, pulses, sound->frames, start, &noise);
            good = render_channel(room, room->source[s], &room->receiver[r], start, pulses, r ? both : NULL, &noise,
                                  sound->channel[s * room->receivers + r], sound->frames);
        }
    free(both);
    /* All images being positive, this model piles up pressure that no source could make (Allen and Berkley cut it
     * the same way); the filter is causal, so that the bass it takes away does not ring ahead of the direct sound. */
    for (int c = 0; c < sound->channels; c++) {
        gc_biquad_run(gc_biquad_highpass(25, 0.54), sound->channel[c], sound->frames);
        gc_biquad_run(gc_biquad_highpass(25, 1.31), sound->channel[c], sound->frames);
    }
    gc_sound_fade(sound, LEAD - SINC_HALF, sound->frames / 6);
    return good;
}
