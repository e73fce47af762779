/* Writes the dry sounds of this folder except the speech: generate-samples OUTDIR.
 *
 * Each sound shows another property of a reverberation: strings its colour, drums its attack, and a click the response
 * itself. Each peaks at -6 dBFS, the level that the responses in impulses/ are scaled for. */
#include "../impulses/collection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PEAK 0.5 /* -6 dBFS */
#define SOURCE "samples/generate.c"

struct note {
    double start, length; /* seconds */
    int pitch;            /* MIDI, 69 is A4 = 440 Hz */
    double strength;
};

/* Three bars of picked chords, A minor, F, G, and a strum on C. */
static const struct note phrase[] = {
    {0.05, 1.60, 45, 1.0},  {0.30, 1.35, 52, 0.7},  {0.55, 1.10, 57, 0.8},  {0.80, 0.85, 60, 0.8},
    {1.05, 0.62, 64, 0.9},  {1.30, 0.35, 60, 0.6},  {1.56, 1.60, 41, 1.0},  {1.80, 1.35, 48, 0.7},
    {2.05, 1.10, 57, 0.8},  {2.30, 0.24, 65, 0.9},  {2.55, 0.62, 64, 0.8},  {2.81, 0.35, 60, 0.6},
    {3.06, 1.30, 43, 1.0},  {3.31, 1.08, 50, 0.7},  {3.56, 0.83, 55, 0.8},  {3.82, 0.57, 59, 0.8},
    {4.08, 0.32, 62, 0.85}, {4.420, 2.2, 48, 0.95}, {4.452, 2.2, 55, 0.75}, {4.486, 2.2, 60, 0.75},
    {4.522, 2.1, 64, 0.8},  {4.561, 2.1, 67, 0.9},
};

/* Modes of a guitar's air and plates: frequency, Q, and gain at each of two microphones. */
static const struct body_mode {
    double hz, q, left, right;
} body[] = {
    {101, 14, 1.00, 0.95}, {196, 18, 0.90, 0.70},  {231, 20, 0.45, 0.65}, {294, 22, 0.30, -0.45},
    {385, 25, 0.50, 0.35}, {446, 25, -0.35, 0.4},  {558, 28, 0.40, 0.30}, {713, 30, 0.30, -0.3},
    {904, 30, 0.25, 0.35}, {1180, 32, -0.2, 0.25}, {1560, 32, 0.25, 0.2}, {2090, 30, 0.2, -0.2},
};

static double raised_cosine(double x) {
    return fabs(x) < 1 ? 0.5 + 0.5 * cos(M_PI * x) : 0;
}

/* Adds one polarisation of a plucked string: Karplus and Strong 1983 with the tuning, decay and pick position of Jaffe
 * and Smith 1983. The loop consists of a delay line, a lowpass with a delay of `lowpass` frames, and an allpass for the
 * fractional delay. */
static void pluck(const struct note *note, double detune, double gain, struct noise *noise, double *out, long frames) {
    double hz = 440 * pow(2, (note->pitch - 69) / 12.0) * detune, period = RATE / hz;
    double lowpass = 0.18, rest = period - lowpass;
    long line_frames = (long)(rest - 0.4);
    double fraction = rest - (double)line_frames, allpass = (1 - fraction) / (1 + fraction);
    double *line = allocate((size_t)line_frames, sizeof *line);
    long start = lround(note->start * RATE), end = start + lround(note->length * RATE);
    double ring = pow(10, -3 / (hz * 4.2 * pow(220 / hz, 0.45))), damped = pow(10, -3 / (hz * 0.16));
    double width = (0.00024 - 0.00010 * note->strength) * RATE, pick = 0.17 * period;
    double last = 0, allpass_in = 0, allpass_out = 0;
    for (long n = start; n < frames; n++) {
        double t = (double)(n - start) - width;
        double force = raised_cosine(t / width) - raised_cosine((t - pick) / width);
        if (t + width < period)
            force += 0.04 * (2 * gc_noise_uniform(noise) - 1);
        long slot = (n - start) % line_frames;
        double value = line[slot];
        double smooth = (1 - lowpass) * value + lowpass * last;
        last = value;
        double tuned = allpass * (smooth - allpass_out) + allpass_in;
        allpass_in = smooth;
        allpass_out = tuned;
        line[slot] = note->strength * force + (n < end ? ring : damped) * tuned;
        out[n] += gain * line[slot];
    }
    free(line);
}

/* Adds the body's modes, driven by the bridge, to the direct sound of the strings. */
static void add_body(const double *bridge, gc_sound *audio) {
    double *mode = allocate((size_t)audio->frames, sizeof *mode);
    size_t bytes = (size_t)audio->frames * sizeof *mode;
    for (size_t i = 0; i < sizeof body / sizeof *body; i++) {
        memcpy(mode, bridge, bytes);
        gc_biquad_run(gc_biquad_bandpass(body[i].hz, body[i].q / 4), mode, audio->frames);
        for (long n = 0; n < audio->frames; n++) {
            audio->channel[0][n] += body[i].left * mode[n];
            audio->channel[1][n] += body[i].right * mode[n];
        }
    }
    free(mode);
}

static gc_sound strings(void) {
    gc_sound audio = create(2, RATE * 64 / 10);
    struct noise noise = gc_noise_seed(440);
    double *bridge = allocate((size_t)audio.frames, sizeof *bridge);
    for (size_t i = 0; i < sizeof phrase / sizeof *phrase; i++) {
        /* Two slightly detuned polarisations beat slowly; low notes are panned to the left. */
        double pan = (phrase[i].pitch - 54) / 60.0;
        for (int c = 0; c < 2; c++)
            pluck(&phrase[i], c ? 1.0004 : 0.9997, 0.35 * (1 + (c ? pan : -pan)), &noise, audio.channel[c],
                  audio.frames);
        pluck(&phrase[i], 1, 1, &noise, bridge, audio.frames);
    }
    add_body(bridge, &audio);
    free(bridge);
    for (int c = 0; c < 2; c++) {
        gc_biquad_run(gc_biquad_highpass(60, 0.7), audio.channel[c], audio.frames);
        gc_biquad_run(gc_biquad_lowpass(7000, 0.6), audio.channel[c], audio.frames);
    }
    gc_sound_fade(&audio, 48, RATE * 7 / 10);
    return audio;
}

static void kick(double *out, long frames, double strength, struct noise *noise) {
    double phase = 0;
    for (long n = 0; n < frames && n < RATE / 2; n++) {
        double t = (double)n / RATE;
        phase += 2 * M_PI * (47 + 130 * exp(-t / 0.022) + 400 * exp(-t / 0.003)) / RATE;
        double beater = 0.12 * gc_noise_normal(noise) * exp(-t / 0.0025);
        out[n] += strength * ((sin(phase) * exp(-t / 0.13)) + beater) * fmin(1, t / 0.0006) * raised_cosine(t / 0.5);
    }
}

static void snare(double *out, long frames, double strength, struct noise *noise) {
    long length = frames < RATE / 2 ? frames : RATE / 2;
    double *wires = allocate((size_t)length, sizeof *wires);
    for (long n = 0; n < length; n++) {
        double t = (double)n / RATE;
        wires[n] = gc_noise_normal(noise) * (exp(-t / 0.05) + 0.4 * exp(-t / 0.11)) * fmin(1, t / 0.001);
    }
    gc_biquad_run(gc_biquad_highpass(900, 0.7), wires, length);
    gc_biquad_run(gc_biquad_peak(3600, 0.8, 5), wires, length);
    gc_biquad_run(gc_biquad_lowpass(9500, 0.7), wires, length);
    for (long n = 0; n < length; n++) {
        double t = (double)n / RATE, bend = 1 + 0.25 * exp(-t / 0.01);
        double head =
            sin(2 * M_PI * 182 * bend * t) * exp(-t / 0.075) + 0.6 * sin(2 * M_PI * 331 * bend * t) * exp(-t / 0.05);
        out[n] += strength * (0.5 * head + 0.17 * wires[n]) * raised_cosine(t / 0.5);
    }
    free(wires);
}

/* Adds a cymbal: inharmonic partials and noise. */
static void hat(double *out, long frames, double strength, double decay, struct noise *noise) {
    static const double partials[] = {4190, 5430, 6120, 7350, 8340, 9120, 10450, 11930};
    long length = frames < RATE / 2 ? frames : RATE / 2;
    double *metal = allocate((size_t)length, sizeof *metal);
    for (long n = 0; n < length; n++) {
        double t = (double)n / RATE;
        metal[n] = gc_noise_normal(noise);
        for (size_t i = 0; i < sizeof partials / sizeof *partials; i++)
            metal[n] += 0.25 * sin(2 * M_PI * partials[i] * t + (double)(i * i));
        metal[n] *= exp(-t / decay) * fmin(1, t / 0.0004) * raised_cosine(t / 0.5);
    }
    gc_biquad_run(gc_biquad_highpass(6500, 0.8), metal, length);
    gc_biquad_run(gc_biquad_highpass(5000, 0.7), metal, length);
    gc_biquad_run(gc_biquad_lowpass(15000, 0.7), metal, length);
    for (long n = 0; n < length; n++)
        out[n] += strength * 0.13 * metal[n];
    free(metal);
}

/* Returns two bars of sixteenths at 120 beats per minute, every second one 10 ms late. x: hit, g: soft hit, o: open
 * hat. */
static gc_sound drums(void) {
    static const char kicks[] = "x.....x.x.......x.....x.x..x....";
    static const char snares[] = "....x..g....x.......x..g....x.gx";
    static const char hats[] = "x.xgx.x.x.xgx.o.x.xgx.x.x.xgx.o.";
    gc_sound audio = create(1, RATE * 43 / 10);
    struct noise noise = gc_noise_seed(808);
    for (int step = 0; step < 32; step++) {
        long at = RATE / 100 + RATE / 8 * step + (step % 2 ? RATE / 100 : 0);
        double *out = audio.channel[0] + at;
        long left = audio.frames - at;
        double touch = 0.92 + 0.16 * gc_noise_uniform(&noise);
        if (kicks[step] == 'x')
            kick(out, left, touch, &noise);
        if (snares[step] != '.')
            snare(out, left, snares[step] == 'x' ? touch : 0.25 * touch, &noise);
        if (hats[step] != '.')
            hat(out, left, hats[step] == 'g' ? 0.5 * touch : touch, hats[step] == 'o' ? 0.14 : 0.028, &noise);
    }
    gc_biquad_run(gc_biquad_highpass(30, 0.7), audio.channel[0], audio.frames);
    gc_sound_fade(&audio, 48, RATE / 5);
    return audio;
}

/* Returns a click: a sinc of 20 kHz bandwidth with a Blackman window, without energy above a converter's passband. */
static gc_sound click(void) {
    gc_sound audio = create(1, RATE / 2);
    const long centre = RATE / 20, half = 96;
    for (long n = -half; n <= half; n++) {
        double x = 20000.0 / RATE * 2 * (double)n, w = M_PI * (double)n / (double)half;
        audio.channel[0][centre + n] = (n ? sin(M_PI * x) / (M_PI * x) : 1) * (0.42 + 0.5 * cos(w) + 0.08 * cos(2 * w));
    }
    return audio;
}

/* Scales to the peak level, writes and frees a sound. */
static void finish(gc_sound audio, const char *folder, const struct label *label) {
    gc_sound_scale(&audio, PEAK / gc_sound_peak(&audio));
    audio_write(&audio, folder, label);
    gc_sound_free(&audio);
}

int main(int argc, char **argv) {
    if (argc != 2)
        fail("usage: generate-samples OUTDIR");
    finish(strings(), argv[1],
           &(struct label){"strings.flac", SOURCE, "picked chords on plucked strings with a guitar body", 16});
    finish(drums(), argv[1], &(struct label){"drums.flac", SOURCE, "kick, snare and hat, two bars", 16});
    finish(click(), argv[1], &(struct label){"click.flac", SOURCE, "one band-limited click", 16});
    return 0;
}
