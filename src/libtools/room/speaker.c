/* Synthesises the responses of two loudspeakers, a guitar cabinet and a telephone handset, as chains of filters with
 * many small cone resonances and delayed paths to the microphone. */
#include "responses.h"

#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

#define LEAD 12

struct stage {
    enum { LOW, HIGH, PEAK } kind;
    double hz, q, db;
};

struct path {
    double milliseconds, gain, top_hz; /* top_hz: lowpass, as off-axis paths have less treble; 0: none */
};

/* Filters the samples in place through all stages. */
static void run_stages(const struct stage *stages, size_t count, double *samples, long frames) {
    for (size_t i = 0; i < count; i++) {
        const struct stage *stage = &stages[i];
        gc_biquad_run(stage->kind == LOW    ? gc_biquad_lowpass(stage->hz, stage->q)
                      : stage->kind == HIGH ? gc_biquad_highpass(stage->hz, stage->q)
                                            : gc_biquad_peak(stage->hz, stage->q, stage->db),
                      samples, frames);
    }
}

/* Break-up of a paper cone: many narrow modes, excited in random phase. */
struct breakup {
    double from, to; /* Hz */
    int modes;
    double gain;
    uint64_t seed;
};

static void add_breakup(double *samples, long frames, const struct breakup *b) {
    struct noise noise = gc_noise_seed(b->seed);
    for (int i = 0; i < b->modes; i++) {
        double hz = b->from * pow(b->to / b->from, (i + gc_noise_uniform(&noise)) / b->modes);
        double decay = hz / (6 + 6 * gc_noise_uniform(&noise)), strength = b->gain * gc_noise_normal(&noise);
        double phase = 2 * PI * gc_noise_uniform(&noise);
        for (long n = LEAD; n < frames; n++) {
            double t = (double)(n - LEAD) / RATE;
            samples[n] += strength * exp(-2 * decay * t) * sin(2 * PI * hz * t + phase) * 2 * PI * hz / RATE;
        }
    }
}

/* Adds the cone's sound to the first channel along every path. @return false if memory is exhausted */
static bool add_paths(gc_sound *audio, const double *cone, const struct path *paths, size_t count) {
    double *one = gc_calloc(audio->frames, (int64_t)sizeof *one);
    if (!one)
        return false;
    for (size_t p = 0; p < count; p++) {
        long delay = lround(paths[p].milliseconds * RATE / 1000);
        for (long n = 0; n < audio->frames; n++)
            one[n] = n >= delay ? paths[p].gain * cone[n - delay] : 0;
        if (paths[p].top_hz > 0)
            gc_biquad_run(gc_biquad_lowpass(paths[p].top_hz, 0.6), one, audio->frames);
        for (long n = 0; n < audio->frames; n++)
            audio->channel[0][n] += one[n];
    }
    free(one);
    return true;
}

/* Everything that distinguishes one loudspeaker from another. */
struct speaker {
    const struct stage *stages;
    size_t stage_count;
    const struct path *paths;
    size_t path_count;
    struct breakup breakup;
};

/* Writes the response of a loudspeaker to a unit impulse. @return false if memory is exhausted */
static bool render_speaker(gc_sound *sound, const struct speaker *s) {
    double *cone = gc_calloc(sound->frames, (int64_t)sizeof *cone);
    bool good = cone != NULL;
    if (good) {
        cone[LEAD] = 1;
        add_breakup(cone, sound->frames, &s->breakup);
        run_stages(s->stages, s->stage_count, cone, sound->frames);
        good = add_paths(sound, cone, s->paths, s->path_count);
    }
    free(cone);
    gc_sound_fade(sound, LEAD / 2, sound->frames / 3);
    return good;
}

bool gc_cabinet_response(gc_sound *sound) {
    static const struct stage stages[] = {
        {HIGH, 72, 0.9, 0},  {PEAK, 112, 1.6, 5},  {PEAK, 420, 0.8, -4}, {PEAK, 950, 2, -2},
        {PEAK, 1550, 3, 2},  {PEAK, 2450, 2.2, 6}, {PEAK, 3000, 5, -4},  {PEAK, 3700, 3, 5},
        {LOW, 4900, 0.9, 0}, {LOW, 5300, 0.8, 0},  {LOW, 7000, 0.6, 0},
    };
    /* The close cone, the three others of the cabinet, the reflection from the floor. */
    static const struct path paths[] = {
        {0, 1, 0}, {0.73, 0.22, 3200}, {0.79, 0.20, 2900}, {1.11, 0.13, 2200}, {2.63, 0.16, 2600},
    };
    static const struct speaker cabinet = {.stages = stages,
                                           .stage_count = sizeof stages / sizeof *stages,
                                           .paths = paths,
                                           .path_count = sizeof paths / sizeof *paths,
                                           .breakup = {900, 6000, 28, 0.014, 412}};
    return gc_sound_create(sound, 1, RATE * 45 / 1000) && render_speaker(sound, &cabinet);
}

bool gc_telephone_response(gc_sound *sound) {
    static const struct stage stages[] = {
        {HIGH, 310, 0.6, 0}, {HIGH, 290, 1.2, 0},  {PEAK, 850, 2, 3},    {PEAK, 1350, 2.5, -4}, {PEAK, 1950, 3, 4},
        {PEAK, 2750, 4, 6},  {LOW, 3350, 0.52, 0}, {LOW, 3400, 0.71, 0}, {LOW, 3400, 1.93, 0},
    };
    /* The receiver at the ear, the echo of the ear canal, and two weak echoes of the hybrid over the line. */
    static const struct path paths[] = {{0, 1, 0}, {0.19, -0.3, 0}, {9.4, 0.07, 2600}, {18.8, -0.02, 2000}};
    static const struct speaker telephone = {.stages = stages,
                                             .stage_count = sizeof stages / sizeof *stages,
                                             .paths = paths,
                                             .path_count = sizeof paths / sizeof *paths,
                                             .breakup = {500, 4000, 14, 0.012, 1876}};
    return gc_sound_create(sound, 1, RATE * 40 / 1000) && render_speaker(sound, &telephone);
}
