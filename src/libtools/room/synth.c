/*
 * Synthesis: building blocks (sound, noise, filters), and the models of a plate, a spring tank, a cabinet and a
 * telephone.
 */
#include "synth.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/dsp/fourier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Building blocks --------------------------------------------------------------------------------------------- */

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
            samples[n] *= 0.5 - 0.5 * cos(M_PI * (double)n / (double)in);
        for (long n = 0; n < out && n < sound->frames; n++)
            samples[sound->frames - 1 - n] *= 0.5 - 0.5 * cos(M_PI * (double)n / (double)out);
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
    return radius * cos(2 * M_PI * gc_noise_uniform(noise));
}

/* Coefficients from Bristow-Johnson's Audio EQ Cookbook. */
static struct biquad biquad_scale(double b0, double b1, double b2, double a0, double a1, double a2) {
    return (struct biquad){b0 / a0, b1 / a0, b2 / a0, a1 / a0, a2 / a0};
}

struct biquad gc_biquad_lowpass(double hz, double q) {
    double c = cos(2 * M_PI * hz / RATE), alpha = sin(2 * M_PI * hz / RATE) / (2 * q);
    return biquad_scale((1 - c) / 2, 1 - c, (1 - c) / 2, 1 + alpha, -2 * c, 1 - alpha);
}

struct biquad gc_biquad_highpass(double hz, double q) {
    double c = cos(2 * M_PI * hz / RATE), alpha = sin(2 * M_PI * hz / RATE) / (2 * q);
    return biquad_scale((1 + c) / 2, -1 - c, (1 + c) / 2, 1 + alpha, -2 * c, 1 - alpha);
}

struct biquad gc_biquad_bandpass(double hz, double q) {
    double c = cos(2 * M_PI * hz / RATE), alpha = sin(2 * M_PI * hz / RATE) / (2 * q);
    return biquad_scale(alpha, 0, -alpha, 1 + alpha, -2 * c, 1 - alpha);
}

struct biquad gc_biquad_peak(double hz, double q, double db) {
    double c = cos(2 * M_PI * hz / RATE), alpha = sin(2 * M_PI * hz / RATE) / (2 * q), gain = pow(10, db / 40);
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

/* ---- Plate ------------------------------------------------------------------------------------------------------- */

#define STIFFNESS 0.764 /* sqrt(E h^2 / (12 rho (1 - nu^2))) of 0.5 mm steel, m^2/s */
#define TOP_HZ 17500.0
#define UNEVEN 0.0015 /* relative random deviation of mode frequencies; exact ones realign in phase: audible echoes */
#define LANES 8       /* modes computed together, because each recursion alone is bound by its latency */

struct mode {
    double hz, decay, left, right; /* decay: nepers of amplitude per second */
};

/* Returns the amplitude of mode (m, n) at a point, given as fractions of the sides. */
static double shape(int m, int n, const double at[2]) {
    return 2 * sin(m * M_PI * at[0]) * sin(n * M_PI * at[1]);
}

/* RT60 2.7 s in the bass, 2.1 s at 1 kHz, 0.9 s at 8 kHz. The sides have no simple ratio, so that no modes coincide. */
struct plate gc_plate_default(void) {
    return (struct plate){
        .size = {2.02, 0.993}, .thickness = 0.5, .decay_low = 2.7, .decay_slope = 9e-5, .seconds = 2.3};
}

static double decay_time(const struct plate *plate, double hz) {
    return 1 / (1 / plate->decay_low + hz * plate->decay_slope);
}

/* Returns the gain of the pickups at a frequency: flat from 90 Hz to 14 kHz. Below, the electronics attenuate rumble;
 * above, a fade prevents audible ringing at the highest mode. */
static double tone(double hz) {
    double low = pow(hz / 70, 4), top = hz <= 13000 ? 1 : 0.5 + 0.5 * cos(M_PI * (hz - 13000) / (TOP_HZ - 13000));
    return low / (1 + low) * top;
}

static int compare_hz(const void *a, const void *b) {
    const struct mode *x = a, *y = b;
    return (x->hz > y->hz) - (x->hz < y->hz);
}

/* Lists the modes from 25 Hz to TOP_HZ, sorted by frequency and followed by at least LANES empty ones. @return NULL if
 * memory is exhausted */
static struct mode *find_modes(const struct plate *plate, size_t *count) {
    static const double driver[2] = {0.4137, 0.3842}, left[2] = {0.1713, 0.6871}, right[2] = {0.7931, 0.7219};
    const double scale = M_PI * (STIFFNESS * (plate->thickness / 0.5)) / 2, x = plate->size[0], y = plate->size[1];
    int most_m = (int)(x * sqrt(TOP_HZ / scale)), most_n = (int)(y * sqrt(TOP_HZ / scale));
    struct mode *modes = gc_calloc((int64_t)(most_m + 1) * (most_n + 1) + LANES, (int64_t)sizeof *modes);
    if (!modes)
        return NULL;
    struct noise noise = gc_noise_seed(140);
    *count = 0;
    for (int m = 1; m <= most_m; m++)
        for (int n = 1; n <= most_n; n++) {
            double hz = scale * (m * m / (x * x) + n * n / (y * y));
            hz *= 1 + UNEVEN * gc_noise_normal(&noise);
            if (hz > TOP_HZ || hz < 25)
                continue;
            double strength = shape(m, n, driver) * tone(hz);
            modes[(*count)++] = (struct mode){.hz = hz,
                                              .decay = log(1000) / decay_time(plate, hz),
                                              .left = strength * shape(m, n, left),
                                              .right = strength * shape(m, n, right)};
        }
    qsort(modes, *count, sizeof *modes, compare_hz);
    return modes;
}

/* Adds LANES modes to the sound. Pickups sense velocity, so an excited mode is a decaying cosine:
 * y[n] = 2 r cos(w) y[n-1] - r^2 y[n-2]. */
static void run_modes(const struct mode modes[LANES], gc_sound *audio) {
    double twice_cos[LANES], square[LANES], current[LANES], previous[LANES];
    double slowest = HUGE_VAL;
    for (int i = 0; i < LANES; i++) {
        double radius = exp(-modes[i].decay / RATE), angle = 2 * M_PI * modes[i].hz / RATE;
        twice_cos[i] = 2 * radius * cos(angle);
        square[i] = radius * radius;
        current[i] = 1;
        previous[i] = cos(angle) / radius;
        if (modes[i].hz > 0)
            slowest = fmin(slowest, modes[i].decay);
    }
    long frames = (long)fmin((double)audio->frames, log(1e6) / slowest * RATE); /* down to -120 dB */
    for (long t = 0; t < frames; t++) {
        double left = 0, right = 0;
        for (int i = 0; i < LANES; i++) {
            left += modes[i].left * current[i];
            right += modes[i].right * current[i];
            double next = twice_cos[i] * current[i] - square[i] * previous[i];
            previous[i] = current[i];
            current[i] = next;
        }
        audio->channel[0][t] += left;
        audio->channel[1][t] += right;
    }
}

bool gc_plate_response(const struct plate *plate, gc_sound *sound) {
    size_t count;
    if (!gc_sound_create(sound, 2, (long)(plate->seconds * RATE)))
        return false;
    struct mode *modes = find_modes(plate, &count);
    if (!modes)
        return false;
    for (size_t i = 0; i < count && !gc_cancelled(); i += LANES)
        run_modes(&modes[i], sound);
    free(modes);
    gc_sound_fade(sound, 24, sound->frames / 5);
    return true;
}

/* ---- Spring tank ------------------------------------------------------------------------------------------------- */

#define SPRINGS 4
#define SPRING_LEAD 24

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
        out[n] = run_chain(spring, history, n, (n == SPRING_LEAD) + spring->feedback * damped);
    }
    free(history);
    return true;
}

/* Limits low chirps to below their transition frequency, and the fast chirps to above 4.7 kHz: Butterworth filters of
 * twelfth order. */
static void limit_band(const struct spring *spring, double *samples, long frames) {
    for (int pair = 0; pair < 6; pair++) {
        double q = 1 / (2 * sin((2 * pair + 1) * M_PI / 24));
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
    gc_sound_fade(sound, SPRING_LEAD / 2, sound->frames / 5);
    return good;
}

/* ---- Cabinet and telephone --------------------------------------------------------------------------------------- */

#define CABINET_LEAD 12

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
        double phase = 2 * M_PI * gc_noise_uniform(&noise);
        for (long n = CABINET_LEAD; n < frames; n++) {
            double t = (double)(n - CABINET_LEAD) / RATE;
            samples[n] += strength * exp(-2 * decay * t) * sin(2 * M_PI * hz * t + phase) * 2 * M_PI * hz / RATE;
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
        cone[CABINET_LEAD] = 1;
        add_breakup(cone, sound->frames, &s->breakup);
        run_stages(s->stages, s->stage_count, cone, sound->frames);
        good = add_paths(sound, cone, s->paths, s->path_count);
    }
    free(cone);
    gc_sound_fade(sound, CABINET_LEAD / 2, sound->frames / 3);
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
