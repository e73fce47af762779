/* Synthesises the impulse response of a shoebox room: early reflections by the image source method, then a diffuse
 * tail.
 *
 * Early reflections and tail share one energy budget. An image source of order n keeps (1 - scattering)^n of its
 * energy; the scattered rest belongs to the tail. The images of a room of volume V arrive at the rate 4 pi c^3 t^2 / V
 * and each has the amplitude 1 / (c t), so that early reflections and tail together carry the energy 4 pi c / V per
 * second, times the decay. The tail therefore needs no level parameter, and the ratio of direct to reverberant sound
 * follows from the distance between source and receiver.
 *
 * The response is computed per band of a third of an octave. The bands are summed in the frequency domain with weights
 * that add up to one.
 *
 * Below stand the parameters of a synthesis of any kind: checked, turned into a model's description, rendered and
 * written to a file. */
#include "synth.h"

#include "acoustics.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fourier.h"
#include "libgpuconv/ir/object.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPEED 343.2  /* of sound at 20 degrees C, m/s */
#define LEAD 48      /* frames before the direct sound, for the first half of the interpolation kernel */
#define SINC_HALF 24 /* frames of the interpolation kernel on each side of a fractional delay */
#define BANDS 26 /* of a third of an octave, 62.5 Hz to 20 kHz; with octaves the decay times would change in steps */
#define NEPERS_60DB 13.8155 /* ln(10^6): 60 dB of energy in nepers */

struct image {
    double distance, gain;
    int hits[6]; /* reflections at each wall */
};

struct images {
    struct image *item;
    size_t count, capacity;
};

/* The way from one source to one receiver. */
struct path {
    const struct room *room;
    const double *source;
    const struct receiver *receiver;
    double direct;            /* seconds until the direct sound */
    double start;             /* time of the first frame in seconds */
    const double *pulses;     /* the excitation of the diffuse tail: noise of unit power */
    const double *first_tail; /* the pulses of receiver 0, with which the tail correlates; NULL for receiver 0 itself */
    long frames;
};

/* Returns the centre frequency of a band in Hz. */
static double band_centre(int band) {
    return 62.5 * exp2(band / 3.0);
}

/* Returns the RT60 that the walls alone cause in a band, in seconds; interpolates between octaves. */
static double wall_decay(const struct room *room, int band) {
    int below = band / 3 < ROOM_OCTAVES - 1 ? band / 3 : ROOM_OCTAVES - 2;
    return room->decay[below] * pow(room->decay[below + 1] / room->decay[below], band / 3.0 - below);
}

/* Returns the pure-tone absorption of air in nepers of energy per metre at 20 degrees C, 50 % humidity and one
 * atmosphere: ISO 9613-1, equations 3 to 5 with a temperature ratio of one. */
static double air_absorption(double hz) {
    const double kelvin = 293.15, water = 1.153; /* molar concentration of water vapour in per cent */
    double oxygen = 24 + 4.04e4 * water * (0.02 + water) / (0.391 + water);
    double nitrogen = 9 + 280 * water;
    double relaxation = 0.01275 * exp(-2239.1 / kelvin) / (oxygen + hz * hz / oxygen) +
                        0.1068 * exp(-3352 / kelvin) / (nitrogen + hz * hz / nitrogen);
    return 2 * hz * hz * (1.84e-11 + relaxation);
}

/* Returns the RT60 in seconds that the absorption of air alone causes at a frequency. */
static double air_decay(double hz) {
    return NEPERS_60DB / (SPEED * air_absorption(hz));
}

static double volume(const struct room *room) {
    return room->size[0] * room->size[1] * room->size[2];
}

static double wall_area(const struct room *room, int wall) {
    return volume(room) / room->size[wall / 2];
}

static double surface_area(const struct room *room) {
    double sum = 0;
    for (int wall = 0; wall < 6; wall++)
        sum += wall_area(room, wall);
    return sum;
}

/* Computes the energy that each wall absorbs per reflection, in nepers, from the requested decay: Eyring's formula
 * (1930) solved for the mean absorption exponent, which is divided among the walls in proportion to room->share. */
static void wall_losses(const struct room *room, int band, double loss[6]) {
    double mean = 4 * volume(room) * NEPERS_60DB / (SPEED * wall_decay(room, band) * surface_area(room));
    double weight = 0;
    for (int wall = 0; wall < 6; wall++)
        weight += room->share[wall] * wall_area(room, wall) / surface_area(room);
    for (int wall = 0; wall < 6; wall++)
        loss[wall] = mean * room->share[wall] / weight;
}

/* Returns the share of the energy arriving at time `seconds` that the early reflections carry: 1 at first, 0 after the
 * mixing time. */
static double mixing_window(const struct room *room, double seconds) {
    double x = (seconds - room->mixing) / (0.5 * room->mixing);
    return x <= 0 ? 1 : x >= 1 ? 0 : 0.5 + 0.5 * cos(PI * x);
}

/* Returns the gain of a receiver's directivity pattern for sound from the direction `towards`. */
static double sensitivity(const struct receiver *receiver, const double towards[3], double distance) {
    double aim = receiver->aim * PI / 180;
    double cosine = (towards[0] * cos(aim) + towards[1] * sin(aim)) / distance;
    return receiver->omni + (1 - receiver->omni) * cosine;
}

/* Appends an image. @return false if memory is exhausted */
static bool images_add(struct images *images, const struct image *image) {
    if (images->count == images->capacity) {
        size_t capacity = images->capacity ? 2 * images->capacity : 1024;
        struct image *item = realloc(images->item, capacity * sizeof *item);
        if (!item)
            return false;
        images->item = item;
        images->capacity = capacity;
    }
    images->item[images->count++] = *image;
    return true;
}

/* Computes the image that lies in grid cell `cell`, mirrored in the axes whose bits are set in `mirror`. Exact image
 * positions produce audible sweeping echoes, so every image is displaced at random, as walls with relief would do (De
 * Sena et al., On the modeling of rectangular geometries, 2015). */
static struct image find_image(const struct path *p, const int cell[3], int mirror, struct noise *noise) {
    const struct room *room = p->room;
    struct image image = {0};
    double towards[3], square = 0;
    int order = 0;
    for (int axis = 0; axis < 3; axis++) {
        int flip = mirror >> axis & 1;
        image.hits[2 * axis] = abs(cell[axis] - flip);
        image.hits[2 * axis + 1] = abs(cell[axis]);
        order += image.hits[2 * axis] + image.hits[2 * axis + 1];
        towards[axis] =
            (flip ? -p->source[axis] : p->source[axis]) + 2 * cell[axis] * room->size[axis] - p->receiver->at[axis];
    }
    double jitter = fmin(0.01 * order, 0.05) * cbrt(volume(room)) / 3;
    for (int axis = 0; axis < 3; axis++) {
        towards[axis] += jitter * (2 * gc_noise_uniform(noise) - 1);
        square += towards[axis] * towards[axis];
    }
    image.distance = sqrt(square);
    image.gain = sensitivity(p->receiver, towards, image.distance) / image.distance *
                 sqrt(pow(1 - room->scattering, order) * mixing_window(room, image.distance / SPEED));
    return image;
}

/* Lists the image sources that arrive before 1.5 times the mixing time (Allen and Berkley 1979). @return false if
 * memory is exhausted */
static bool find_images(const struct path *p, struct noise *noise, struct images *images) {
    const struct room *room = p->room;
    *images = (struct images){0};
    double reach = 1.5 * room->mixing * SPEED;
    int most[3];
    for (int axis = 0; axis < 3; axis++)
        most[axis] = (int)ceil(reach / (2 * room->size[axis])) + 1;
    for (int x = -most[0]; x <= most[0] && !gc_cancelled(); x++)
        for (int y = -most[1]; y <= most[1]; y++)
            for (int z = -most[2]; z <= most[2]; z++)
                for (int mirror = 0; mirror < 8; mirror++) {
                    struct image image = find_image(p, (const int[3]){x, y, z}, mirror, noise);
                    if (image.distance < reach && !images_add(images, &image))
                        return false;
                }
    return true;
}

/* Adds a pulse at the fractional frame `at`: a Hann-windowed sinc (Laakso et al., Splitting the unit delay, 1996). */
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

/* Fills `samples` with pulses of random sign and unit power, whose density grows as that of the reflections (Heinz
 * 1993; Schröder 2011). Walls with relief split every reflection: the density is ten times that of a room with flat
 * walls. */
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

/* Returns the amplitude of the diffuse tail at time t (seconds). @param loss nepers of energy per second */
static double tail_envelope(const struct path *p, double loss, double t) {
    const struct room *room = p->room;
    double omni = p->receiver->omni, since = t - p->direct;
    if (since <= 0)
        return 0;
    double mean_path = 4 * volume(room) / surface_area(room);
    double early = pow(1 - room->scattering, SPEED * since / mean_path) * mixing_window(room, t);
    double filled = room->build > 0 ? 1 - exp(-since / room->build) : 1;
    double received = omni * omni + (1 - omni) * (1 - omni) / 3; /* mean over all directions */
    return sqrt(4 * PI * SPEED / (volume(room) * RATE) * exp(-loss * t) * (1 - early) * filled * received);
}

/* Returns the weight of a band at a frequency: cosine-squared crossfades between neighbouring bands, and a fade to zero
 * from 19 to 22 kHz. */
static double band_weight(int band, double hz) {
    double place = fmin(fmax(3 * log2(fmax(hz, 1) / 62.5), 0), BANDS - 1), off = fabs(place - band);
    double weight = off < 1 ? 0.5 + 0.5 * cos(PI * off) : 0;
    if (hz > 19000)
        weight *= hz >= 22000 ? 0 : 0.5 + 0.5 * cos(PI * (hz - 19000) / 3000);
    return weight;
}

/* Returns the correlation of a diffuse field between the two receivers at a frequency (Cook et al. 1955). */
static double diffuse_correlation(const struct room *room, double hz) {
    double square = 0;
    for (int axis = 0; axis < 3; axis++)
        square += pow(room->receiver[0].at[axis] - room->receiver[1].at[axis], 2);
    double x = 2 * PI * hz * sqrt(square) / SPEED;
    return x < 1e-6 ? 1 : sin(x) / x;
}

static double distance(const double a[3], const double b[3]) {
    return sqrt(pow(a[0] - b[0], 2) + pow(a[1] - b[1], 2) + pow(a[2] - b[2], 2));
}

/* Adds the images and the diffuse tail, both with the decay of one band, to `samples`. */
static void render_band(const struct path *p, const struct images *images, int band, double *samples) {
    const struct room *room = p->room;
    double loss[6], air = air_absorption(band_centre(band));
    wall_losses(room, band, loss);
    for (size_t i = 0; i < images->count && !(i % 4096 == 4095 && gc_cancelled()); i++) {
        const struct image *image = &images->item[i];
        double nepers = air * image->distance;
        for (int wall = 0; wall < 6; wall++)
            nepers += loss[wall] * image->hits[wall];
        add_pulse(samples, p->frames, (image->distance / SPEED - p->start) * RATE, image->gain * exp(-nepers / 2));
    }
    double correlation = p->first_tail ? diffuse_correlation(room, band_centre(band)) : 0;
    double own = sqrt(1 - correlation * correlation);
    double rate = NEPERS_60DB / wall_decay(room, band) + air * SPEED;
    for (long n = 0; n < p->frames && !(n % 65536 == 65535 && gc_cancelled()); n++) {
        double pulse = p->first_tail ? correlation * p->first_tail[n] + own * p->pulses[n] : p->pulses[n];
        samples[n] += pulse * tail_envelope(p, rate, p->start + (double)n / RATE);
    }
}

/* Writes the response of one path: the weighted sum of all bands. @return false if memory is exhausted or the work was
 * cancelled */
static bool render_channel(const struct path *p, struct noise *noise, double *samples) {
    int64_t size = gc_power_of_two(p->frames + RATE / 10);
    double *re = gc_calloc(size, 4 * (int64_t)sizeof *re);
    if (!re)
        return false;
    double *im = re + size, *sum_re = im + size, *sum_im = sum_re + size;
    struct images images;
    bool good = find_images(p, noise, &images);
    for (int band = 0; band < BANDS && good; band++) {
        memset(re, 0, 2 * (size_t)size * sizeof *re);
        render_band(p, &images, band, re);
        good = gc_fourier(re, im, size, -1);
        for (int64_t k = 0; k < size; k++) {
            double weight = band_weight(band, (double)(k <= size / 2 ? k : size - k) * RATE / (double)size);
            sum_re[k] += weight * re[k];
            sum_im[k] += weight * im[k];
        }
    }
    good = good && gc_fourier(sum_re, sum_im, size, 1);
    for (long n = 0; n < p->frames; n++)
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
    double *tails = gc_calloc(sound->frames, 2 * (int64_t)sizeof *tails); /* one for each receiver */
    bool good = tails != NULL;
    for (int s = 0; s < room->sources; s++)
        for (int r = 0; r < room->receivers && good; r++) {
            double *pulses = tails + r * sound->frames;
            memset(pulses, 0, (size_t)sound->frames * sizeof *pulses);
            scatter_pulses(room, pulses, sound->frames, start, &noise);
            struct path path = {.room = room,
                                .source = room->source[s],
                                .receiver = &room->receiver[r],
                                .direct = distance(room->source[s], room->receiver[r].at) / SPEED,
                                .start = start,
                                .pulses = pulses,
                                .first_tail = r ? tails : NULL,
                                .frames = sound->frames};
            good = render_channel(&path, &noise, sound->channel[s * room->receivers + r]);
        }
    free(tails);
    /* All images are positive, so their sum has a constant pressure that no real source produces. Allen and Berkley
     * remove it by a highpass too. The filter is causal, so that it does not ring before the direct sound. */
    for (int c = 0; c < sound->channels; c++) {
        gc_biquad_run(gc_biquad_highpass(25, 0.54), sound->channel[c], sound->frames);
        gc_biquad_run(gc_biquad_highpass(25, 1.31), sound->channel[c], sound->frames);
    }
    gc_sound_fade(sound, LEAD - SINC_HALF, sound->frames / 6);
    return good;
}

/* ---- Parameters -------------------------------------------------------------------------------------------------- */

gc_synth gc_synth_default(void) {
    return (gc_synth){.kind = GC_SYNTH_ROOM, .channels = 2, .rate = RATE, .seed = 1};
}

static double least(double a, double b) {
    return a < b ? a : b;
}

/* Returns the decay time of walls that cause `rt60` together with air, at a frequency where air alone has a longer one.
 */
static double decay_of_walls(double rt60, double hz) {
    return 1 / (1 / rt60 - 1 / air_decay(hz));
}

/* Sets the walls' decay times from the RT60 at 1 kHz, at most 20 s, where air alone has 37 s. Up to 1 kHz it rises
 * towards the bass. Above, the walls absorb a little more than at 1 kHz, and what air absorbs, most of all at 8 kHz and
 * 16 kHz, shortens it. */
static void set_decay(struct room *room, double rt60) {
    static const double shape[ROOM_OCTAVES] = {1.12, 1.08, 1.04, 1.02, 1, 0.98, 0.93, 0.86, 0.78};
    for (int o = 0; o < ROOM_OCTAVES; o++)
        room->decay[o] =
            o < 4 ? decay_of_walls(rt60 * shape[o], 62.5 * exp2(o)) : decay_of_walls(rt60, 1000) * shape[o];
}

static gpuconv_status fail_decay(double rt60, gpuconv_error *error) {
    return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                   "a response of this size cannot have an RT60 of %g s at 1 kHz; use a longer RT60 or a smaller size",
                   rt60);
}

/* Measures how far T30 of a channel at 1 kHz, as `gpuconv ir info` prints it, is from `rt60`: 0.1 if it is 10 % longer.
 * `taps` has room for the channel. Returns MEMORY, ARGUMENT (more than twice or less than half: not the same decay). */
static gpuconv_status measure_decay(const gc_sound *sound, int channel, double rt60, float *taps, double *off,
                                    gpuconv_error *error) {
    gc_acoustics measured;
    for (long n = 0; n < sound->frames; n++)
        taps[n] = (float)sound->channel[channel][n];
    if (!gc_acoustics_of(taps, sound->frames, RATE, 1000, &measured, NULL))
        return gc_fail_memory(error, "the response");
    *off = measured.t30 / rt60 - 1;
    return *off > -0.5 && *off < 1 ? GPUCONV_OK : fail_decay(rt60, error);
}

/* Changes the decay of a channel until its T30 is `rt60`: that of a single response deviates from its model by chance,
 * by several per cent if it is short. A step is halved each time it went too far. Returns as measure_decay. */
static gpuconv_status adjust_decay(gc_sound *sound, int channel, double rt60, float *taps, gpuconv_error *error) {
    double off = 0, before = 0, step = 1;
    gpuconv_status status = measure_decay(sound, channel, rt60, taps, &off, error);
    for (int pass = 0; !status && pass < 12 && fabs(off) > 0.002; pass++) {
        step = off * before < 0 ? step / 2 : step;
        const double nepers = step * log(1000) * (1 / (1 + off) - 1) / rt60 / RATE;
        for (long n = 0; n < sound->frames; n++)
            sound->channel[channel][n] *= exp(nepers * (double)n);
        before = off;
        status = measure_decay(sound, channel, rt60, taps, &off, error);
    }
    return status || fabs(off) < 0.01 ? status : fail_decay(rt60, error);
}

static gpuconv_status adjust_decays(gc_sound *sound, double rt60, gpuconv_error *error) {
    float *taps = gc_calloc(sound->frames, sizeof *taps);
    gpuconv_status status = taps ? GPUCONV_OK : gc_fail_memory(error, "the response");
    for (int c = 0; c < sound->channels && !status; c++)
        status = adjust_decay(sound, c, rt60, taps, error);
    free(taps);
    return status;
}

static gpuconv_status describe_room(const gc_synth *s, struct room *room, double *decay, gpuconv_error *error) {
    static const double standard[3] = {8, 6, 3.2};
    *room = (struct room){.share = {0.9, 1.1, 1.0, 0.9, 1.3, 0.8}, .scattering = 0.2};
    double volume = 1;
    for (int axis = 0; axis < 3; axis++) {
        room->size[axis] = s->size[axis] != 0 ? s->size[axis] : standard[axis];
        if (!(room->size[axis] >= 1.5 && room->size[axis] <= 200))
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a room measures 1.5 to 200 m each way, not %g",
                           room->size[axis]);
        volume *= room->size[axis];
    }
    double rt60 = s->rt60 != 0 ? s->rt60 : least(0.15 * cbrt(volume), 6);
    if (!(rt60 >= 0.1 && rt60 <= 20))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a room's RT60 is 0.1 to 20 s, not %g", rt60);
    set_decay(room, rt60);
    *decay = rt60;
    room->mixing = 0.06 + 0.004 * cbrt(volume);
    room->seconds = 1.1 * rt60 + 0.1;
    double farthest = 0.8 * room->size[0] - 0.2, distance = s->distance != 0 ? s->distance : 0.35 * room->size[0];
    if (!(distance >= 0.3 && distance <= farthest))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "source and microphones of this room are 0.3 to %.1f m apart, not %g", farthest, distance);
    if (s->channels != 1 && s->channels != 2 && s->channels != 4)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a room has 1, 2 or 4 channels, not %d", s->channels);
    room->sources = s->channels == 4 ? 2 : 1;
    room->receivers = s->channels == 1 ? 1 : 2;
    double x = 0.13 * room->size[0], y = room->size[1], height = least(1.5, 0.55 * room->size[2]);
    double spread = least(0.24 * y, 3), pair = least(0.12 * y, 0.6);
    for (int i = 0; i < room->sources; i++) {
        double off = room->sources == 1 ? 0.01 * y : (i ? 1 : -1) * spread;
        memcpy(room->source[i], (double[3]){x, 0.47 * y + off, height}, sizeof room->source[i]);
    }
    for (int i = 0; i < room->receivers; i++) {
        double off = room->receivers == 1 ? 0 : (i ? 1 : -1) * pair / 2;
        struct receiver *r = &room->receiver[i];
        memcpy(r->at, (double[3]){x + distance, 0.48 * y + off, 1.07 * height}, sizeof r->at);
        r->aim = room->receivers == 1 ? 180 : i ? 150 : 210; /* towards the source, a pair at an angle */
        r->omni = 0.7;
    }
    return GPUCONV_OK;
}

static gpuconv_status describe_plate(const gc_synth *s, struct plate *plate, gpuconv_error *error) {
    *plate = gc_plate_default();
    for (int axis = 0; axis < 2; axis++)
        plate->size[axis] = s->size[axis] != 0 ? s->size[axis] : plate->size[axis];
    if (!(plate->size[0] >= 0.2 && plate->size[0] <= 5 && plate->size[1] >= 0.2 && plate->size[1] <= 5))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a plate measures 0.2 to 5 m each way");
    if (s->rt60 != 0) { /* scales both parts of the losses; the default has 2.1 s at 1 kHz */
        double standard = 1 / (1 / plate->decay_low + 1000 * plate->decay_slope), ratio = s->rt60 / standard;
        if (!(s->rt60 >= 0.1 && s->rt60 <= 20))
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a plate's RT60 is 0.1 to 20 s, not %g", s->rt60);
        plate->decay_low *= ratio;
        plate->decay_slope /= ratio;
        plate->seconds = 1.1 * s->rt60;
    }
    return GPUCONV_OK;
}

/* Renders the sound at RATE and normalises it. */
static gpuconv_status synthesize(const gc_synth *s, gc_sound *sound, gpuconv_error *error) {
    struct room room;
    struct plate plate;
    double decay = s->rt60; /* 0: the model's own */
    gpuconv_status status = GPUCONV_OK;
    bool good = false;
    *sound = (gc_sound){0};
    if (!(s->rate >= 1000 && s->rate <= 1e6 && s->rate == floor(s->rate)))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a rate is a whole number from 1000 to 1000000 Hz, not %g",
                       s->rate);
    switch (s->kind) {
    case GC_SYNTH_ROOM:
        status = describe_room(s, &room, &decay, error);
        good = !status && gc_room_response(&room, s->seed, sound);
        break;
    case GC_SYNTH_PLATE:
        status = describe_plate(s, &plate, error);
        good = !status && gc_plate_response(&plate, sound);
        break;
    case GC_SYNTH_SPRING:
        good = gc_spring_response(2.6, sound);
        break;
    case GC_SYNTH_CABINET:
        good = gc_cabinet_response(sound);
        break;
    default:
        good = gc_telephone_response(sound);
    }
    if (good && decay > 0 && s->kind <= GC_SYNTH_PLATE && !gc_cancelled())
        status = adjust_decays(sound, decay, error);
    good = good && !gc_cancelled() && gc_sound_normalize(sound);
    return status ? status : good ? GPUCONV_OK : gc_fail_memory(error, "the response");
}

/* Trims the sound and converts it to a response object at `rate`. */
static gpuconv_status to_response(gc_sound *sound, double rate, gpuconv_ir **ir, gpuconv_error *error) {
    float *planes[MAX_CHANNELS] = {0};
    gpuconv_status status = GPUCONV_OK;
    *ir = NULL;
    gc_sound_trim(sound, ldexp(0.5, -23));
    for (int c = 0; c < sound->channels && !status; c++) {
        if (!(planes[c] = gc_calloc(sound->frames, sizeof **planes)))
            status = gc_fail_memory(error, "the response");
        for (long i = 0; i < sound->frames && !status; i++)
            planes[c][i] = (float)sound->channel[c][i];
    }
    if (!status)
        status = gpuconv_ir_new((const float *const *)planes, sound->channels, sound->frames, RATE, ir, error);
    for (int c = 0; c < sound->channels; c++)
        free(planes[c]);
    if (!status && rate != RATE) {
        gpuconv_ir *original = *ir;
        status = gpuconv_ir_resample(original, rate, ir, error);
        gpuconv_ir_free(original);
    }
    return status;
}

gpuconv_status gc_synth_write(const gc_synth *s, const char *path, gpuconv_error *error) {
    gc_sound sound;
    gpuconv_ir *ir = NULL;
    gpuconv_status status = synthesize(s, &sound, error);
    if (!status)
        status = to_response(&sound, s->rate, &ir, error);
    gc_sound_free(&sound);
    if (!status)
        status = gc_ir_write(ir, path, false, error);
    gpuconv_ir_free(ir);
    return status;
}
