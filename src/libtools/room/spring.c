/* Synthesises the response of a spring tank: each spring is a feedback loop of a delay and a long chain of allpasses.
 * In a coil low frequencies travel faster than those near the transition frequency, so every echo is a chirp, which
 * grows longer with each pass through the loop.
 *
 * Model: Välimäki, Parker and Abel, Parametric spring reverberation effect, JAES 58 (2010): stretched
 * allpasses for the low chirps, unstretched ones of the opposite sign for the faint fast chirps above. */
#include "responses.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

#define SPRINGS 4
#define LEAD 24

struct spring {
    int stretch;    /* the transition frequency is rate / (2 stretch) */
    int stages;     /* allpasses in the chain */
    double allpass; /* their coefficient */
    double delay;   /* of the loop's delay line, seconds */
    double feedback;
    double gain;
};

static const struct spring tank[SPRINGS] = {
    {.stretch = 5, .stages = 84, .allpass = 0.70, .delay = 0.0521, .feedback = -0.855, .gain = 1.0},
    {.stretch = 6, .stages = 70, .allpass = 0.68, .delay = 0.0632, .feedback = -0.835, .gain = 0.85},
    {.stretch = 5, .stages = 96, .allpass = 0.66, .delay = 0.0417, .feedback = -0.88, .gain = 0.7},
    {.stretch = 1, .stages = 160, .allpass = -0.60, .delay = 0.0229, .feedback = -0.62, .gain = 0.03},
};

/* Returns sample n of the output of the allpass chain, each stage y[n] = a x[n] + x[n-k] - a y[n-k]. The past output of
 * a stage is the past input of the next stage, so both share one history. */
static double run_chain(const struct spring *spring, double *history, long n, double value) {
    int k = spring->stretch, slot = (int)(n % k);
    for (int stage = 0; stage <= spring->stages; stage++) {
        double *past_input = &history[stage * k + slot];
        double past = *past_input;
        *past_input = value;
        if (stage < spring->stages)
            value = spring->allpass * (value - past_input[k]) + past;
    }
    return value;
}

/* Writes the response of one spring. The delay varies slowly at random, which blurs the late echoes, as in the paper.
 * @return false if memory is exhausted */
static bool run_spring(const struct spring *spring, struct noise *noise, double *out, long frames) {
    double *history = gc_calloc((int64_t)(spring->stages + 1) * spring->stretch, (int64_t)sizeof *history);
    if (!history)
        return false;
    double wander = 0, drift = 0, damped = 0;
    for (long n = 0; n < frames; n++) {
        if (n % 64 == 0)
            drift = 6 * gc_noise_normal(noise);
        wander += 0.002 * (drift - wander);
        double at = (double)n - spring->delay * RATE + wander, delayed = 0;
        if (at > 0) {
            long whole = (long)at;
            delayed = out[whole] + (at - (double)whole) * (out[whole + 1] - out[whole]);
        }
        damped += 0.65 * (delayed - damped);
        out[n] = run_chain(spring, history, n, (n == LEAD) + spring->feedback * damped);
    }
    free(history);
    return true;
}

/* Limits low chirps to below their transition frequency, and the fast chirps to above 4.7 kHz: Butterworth filters of
 * twelfth order. */
static void limit_band(const struct spring *spring, double *samples, long frames) {
    for (int pair = 0; pair < 6; pair++) {
        double q = 1 / (2 * sin((2 * pair + 1) * PI / 24));
        gc_biquad_run(spring->stretch > 1 ? gc_biquad_lowpass(0.93 * RATE / (2 * spring->stretch), q)
                                          : gc_biquad_highpass(4700, q),
                      samples, frames);
    }
}

bool gc_spring_response(double seconds, gc_sound *sound) {
    if (!gc_sound_create(sound, 1, (long)(seconds * RATE)))
        return false;
    double *one = gc_calloc(sound->frames, (int64_t)sizeof *one);
    bool good = one != NULL;
    struct noise noise = gc_noise_seed(1939);
    for (int s = 0; s < SPRINGS && good && !gc_cancelled(); s++) {
        for (long n = 0; n < sound->frames; n++)
            one[n] = 0;
        good = run_spring(&tank[s], &noise, one, sound->frames);
        limit_band(&tank[s], one, sound->frames);
        for (long n = 0; n < sound->frames; n++)
            sound->channel[0][n] += tank[s].gain * one[n];
    }
    free(one);
    gc_biquad_run(gc_biquad_highpass(70, 0.7), sound->channel[0], sound->frames); /* the transducers */
    gc_biquad_run(gc_biquad_peak(140, 1.0, 4), sound->channel[0], sound->frames);
    gc_biquad_run(gc_biquad_lowpass(9000, 0.7), sound->channel[0], sound->frames);
    gc_sound_fade(sound, LEAD / 2, sound->frames / 5);
    return good;
}
