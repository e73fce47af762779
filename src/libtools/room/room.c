/* Shoebox rooms of a few parameters, and the parameters of a synthesis of any kind: checked, turned into a model's
 * description, rendered and written to a file.
 *
 * A room is simulated by image sources until its mixing time, and by noise of the same energy from there on
 * (gpuconv_rooms.h), with the absorption of air at 20 degrees C and 50 % humidity. */
#include "synth.h"

#include "acoustics.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/conv/rooms.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/ir/object.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAD 48 /* frames before the direct sound, for the first half of the interpolation kernel */
enum { TEMPERATURE = 20, HUMIDITY = 50, KERNEL = 24 };

/* Returns the RT60 in seconds that the absorption of air alone causes at a frequency. */
static double air_decay(double hz) {
    return log(1e6) / (gc_speed_of_sound(TEMPERATURE) * gc_air_absorption(hz, TEMPERATURE, HUMIDITY));
}

gpuconv_status gc_room_response(const struct room *room, uint64_t seed, gc_sound *sound, gpuconv_error *error) {
    gpuconv_room walls = {.size = {room->size[0], room->size[1], room->size[2]}};
    gpuconv_rooms_job job = gpuconv_rooms_job_default();
    gpuconv_arrays *place = NULL;
    float *samples = NULL;
    double nearest = HUGE_VAL;
    for (int b = 0; b < GPUCONV_ROOM_BANDS; b++) {
        walls.rt60[b] = room->decay[b];
        for (int w = 0; w < 6; w++)
            walls.absorption[w][b] = -expm1(-0.1 * room->share[w]);
    }
    for (int i = 0; i < room->sources * room->receivers; i++)
        nearest = fmin(nearest,
                       gc_room_distance(room->source[i / room->receivers].at, room->receiver[i % room->receivers].at));
    job.room = &walls;
    job.rooms = 1;
    job.source = room->source;
    job.sources = room->sources;
    job.receiver = room->receiver;
    job.receivers = room->receivers;
    job.rate = RATE;
    job.frames = (int64_t)(room->seconds * RATE);
    job.origin = LEAD - (int64_t)(nearest / gc_speed_of_sound(TEMPERATURE) * RATE);
    job.formula = GPUCONV_ROOM_EYRING;
    job.air = job.tail = job.diffuse = true;
    job.images_seconds = 1.25 * room->mixing;
    job.highpass = 25;
    job.seed = seed;
    const int channels = room->sources * room->receivers;
    gpuconv_status status = GPUCONV_OK;
    if (!gc_sound_create(sound, channels, (long)job.frames) ||
        !(samples = gc_calloc(job.frames * channels, sizeof *samples)))
        status = gc_fail_memory(error, "the response");
    if (!status)
        status = gpuconv_arrays_new_cpu(0, &place, error);
    if (!status)
        status = gpuconv_rooms_simulate(place, &job, samples, error);
    for (int c = 0; c < channels && !status; c++)
        for (int64_t n = 0; n < job.frames; n++)
            sound->channel[c][n] = (double)samples[c * job.frames + n];
    gpuconv_arrays_free(place);
    free(samples);
    if (!status)
        gc_sound_fade(sound, LEAD - KERNEL, sound->frames / 6);
    return status;
}

/* ---- Parameters -------------------------------------------------------------------------------------------------- */

gc_synth gc_synth_default(void) {
    return (gc_synth){.kind = GC_SYNTH_ROOM, .channels = 2, .rate = RATE, .seed = 1};
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
    static const double shape[GPUCONV_ROOM_BANDS] = {1.12, 1.08, 1.04, 1.02, 1, 0.98, 0.93, 0.86, 0.78};
    for (int o = 0; o < GPUCONV_ROOM_BANDS; o++)
        room->decay[o] =
            o < 4 ? decay_of_walls(rt60 * shape[o], gc_room_centre(o)) : decay_of_walls(rt60, 1000) * shape[o];
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
    *room = (struct room){.share = {0.9, 1.1, 1.0, 0.9, 1.3, 0.8}};
    double volume = 1;
    for (int axis = 0; axis < 3; axis++) {
        room->size[axis] = s->size[axis] != 0 ? s->size[axis] : standard[axis];
        if (!(room->size[axis] >= 1.5 && room->size[axis] <= 200))
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a room measures 1.5 to 200 m each way, not %g",
                           room->size[axis]);
        volume *= room->size[axis];
    }
    double rt60 = s->rt60 != 0 ? s->rt60 : fmin(0.15 * cbrt(volume), 6);
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
    double x = 0.13 * room->size[0], y = room->size[1], height = fmin(1.5, 0.55 * room->size[2]);
    double spread = fmin(0.24 * y, 3), pair = fmin(0.12 * y, 0.6);
    for (int i = 0; i < room->sources; i++) {
        double off = room->sources == 1 ? 0.01 * y : (i ? 1 : -1) * spread;
        room->source[i] = (gpuconv_room_point){.at = {x, 0.47 * y + off, height}, .omni = 1};
    }
    for (int i = 0; i < room->receivers; i++) {
        double off = room->receivers == 1 ? 0 : (i ? 1 : -1) * pair / 2;
        room->receiver[i] = (gpuconv_room_point){.at = {x + distance, 0.48 * y + off, 1.07 * height},
                                                 .azimuth = room->receivers == 1 ? 180
                                                            : i                  ? 150
                                                                : 210, /* towards the source, a pair at an angle */
                                                 .omni = 0.7};
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
        if (!status)
            status = gc_room_response(&room, s->seed, sound, error);
        status = status == GPUCONV_ERROR_ARGUMENT && sound->frames ? fail_decay(decay, error) : status;
        good = !status;
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
    gc_sound_trim(sound, ldexp(0.5, -23));
    const int64_t frames = sound->frames;
    float *taps = gc_alloc(frames * sound->channels, sizeof *taps);
    for (int64_t i = 0; i < frames * sound->channels && taps; i++)
        taps[i] = (float)sound->channel[i / frames][i % frames];
    gpuconv_ir *made = taps ? gc_ir_own(taps, sound->channels, frames, RATE) : NULL;
    *ir = made;
    if (!made)
        return gc_fail_memory(error, "the response");
    if (rate == RATE)
        return GPUCONV_OK;
    const gpuconv_status status = gpuconv_ir_resample(made, rate, ir, error);
    gpuconv_ir_free(made);
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
