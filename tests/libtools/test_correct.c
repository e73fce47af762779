/* Filters that correct measured responses (libtools/room/correct.h). Measurements are made here of equalisers, all-pass
 * filters, echoes and noise; what a filter does to them is computed by convolution and Fourier sums of this file. */
#include "files.h"
#include "harness.h"
#include "libgpuconv/ir/object.h"
#include "libtools/room/correct.h"

#include <complex.h>
#include <math.h>

enum { RATE = 48000, FRAMES = 24000, DIRECT = 480 };

static const double pi = 3.14159265358979323846;

/* ---- Measurements ------------------------------------------------------------------------------------------------ */

/* Coefficients b0 b1 b2 a1 a2 with a0 = 1. */
typedef struct section {
    double c[5];
} section;

static section peak(double hz, double gain, double q) {
    const double a = pow(10, gain / 40), w = 2 * pi * hz / RATE, alpha = sin(w) / 2 / q, n = 1 + alpha / a;
    return (section){{(1 + alpha * a) / n, -2 * cos(w) / n, (1 - alpha * a) / n, -2 * cos(w) / n, (1 - alpha / a) / n}};
}

static section all_pass(double hz, double q) {
    const double w = 2 * pi * hz / RATE, alpha = sin(w) / 2 / q, n = 1 + alpha;
    return (section){{(1 - alpha) / n, -2 * cos(w) / n, 1, -2 * cos(w) / n, (1 - alpha) / n}};
}

static void filter(section s, double *x, int64_t frames) {
    double x1 = 0, x2 = 0, y1 = 0, y2 = 0;
    for (int64_t n = 0; n < frames; n++) {
        const double y = s.c[0] * x[n] + s.c[1] * x1 + s.c[2] * x2 - s.c[3] * y1 - s.c[4] * y2;
        x2 = x1;
        x1 = x[n];
        y2 = y1;
        x[n] = y1 = y;
    }
}

/* What a position measures. */
typedef struct place {
    double gain, echo, all_pass, noise; /* factor; of a reflection; Hz, 0: none; of the peak */
    int64_t delay, echo_delay;
    uint64_t seed;
} place;

static void measure(const place *p, float *to) {
    static double x[FRAMES];
    oracle_random random = {.state = p->seed + 1};
    memset(x, 0, sizeof x);
    x[DIRECT + p->delay] = p->gain;
    x[DIRECT + p->delay + p->echo_delay] += p->gain * p->echo;
    filter(peak(60, 6, 2), x, FRAMES);
    filter(peak(180, -5, 1.5), x, FRAMES);
    filter(peak(900, 4, 3), x, FRAMES);
    filter(peak(9000, 5, 2), x, FRAMES);
    if (p->all_pass > 0)
        filter(all_pass(p->all_pass, 0.7), x, FRAMES);
    for (int64_t n = 0; n < FRAMES; n++)
        to[n] = (float)(x[n] + p->noise * (double)oracle_uniform(&random));
}

/* Writes a measurement with a channel for each place. */
static const char *write_measurement(const char *name, const place *places, int channels) {
    guarded g = guarded_new(channels, FRAMES);
    const char *path = files_path("%s", name);
    for (int c = 0; c < channels; c++)
        measure(&places[c], g.channel[c]);
    files_write(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &g);
    guarded_free(&g);
    return path;
}

static gc_correction correct(const gc_correction_options *o) {
    gc_correction c;
    gpuconv_error error = {0};
    CHECK(gc_correct(o, &c, &error) == GPUCONV_OK, "no correction: %s", error.message);
    return c;
}

/* ---- What a filter does, independently --------------------------------------------------------------------------- */

NOT_SANITIZED static double complex sum_at(const float *x, int64_t frames, double hz) {
    double complex sum = 0, phase = 1;
    const double complex turn = cexp(-(double complex)_Complex_I * 2 * pi * hz / RATE);
    for (int64_t n = 0; n < frames; n++) {
        sum += (double)x[n] * phase;
        phase *= turn;
    }
    return sum;
}

/* Returns the corrected response of a place at a frequency. way: of the filter's channels. */
static double complex corrected_at(const gc_correction *c, const float *response, int way, double hz) {
    return sum_at(response, FRAMES, hz) * sum_at(gc_ir_plane(c->filter, way), c->filter->frames, hz);
}

/* Returns the level of a third octave in dB. */
static double third_octave(const gc_correction *c, const float *response, int way, double centre) {
    double sum = 0;
    for (int k = -8; k <= 8; k++) {
        const double complex h = corrected_at(c, response, way, centre * exp2(k / 51.0));
        sum += creal(h * conj(h)) / 17;
    }
    return 10 * log10(sum);
}

/* Fails unless all third octaves lie within `most` dB of the target. */
static void check_levels(const gc_correction *c, const float *response, int way, double fall, double most) {
    const double mean = third_octave(c, response, way, 1000);
    for (int b = 14; b <= 42; b++) {
        const double hz = pow(10, b / 10.0), level = third_octave(c, response, way, hz);
        const double want = -fall * (log(fmax(hz, 200) / 1000) / log(100));
        CHECK(fabs(level - mean - want) <= most, "%g Hz is %.2f dB, and 1000 Hz %.2f", hz, level, mean);
    }
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static void a_loudspeaker_is_within_half_a_decibel_of_its_target(void **state) {
    (void)state;
    const place one = {.gain = 0.5};
    const char *const files[] = {write_measurement("one.wav", &one, 1)};
    float response[FRAMES];
    measure(&one, response);
    for (int k = 0; k < 4; k++) {
        gc_correction_options o = GC_CORRECTION_DEFAULT;
        o.measured = files;
        o.files = 1;
        o.smoothing = 24;
        o.phase = k % 2 ? GC_CORRECT_LINEAR : GC_CORRECT_MINIMUM;
        o.target = k / 2 ? "house" : NULL;
        gc_correction c = correct(&o);
        check_levels(&c, response, 0, k / 2 ? 6 : 0, 0.5);
        gc_correction_free(&c);
    }
}

static void the_prediction_is_what_convolving_gives(void **state) {
    (void)state;
    const place one = {.gain = 1, .echo = 0.4, .echo_delay = 700};
    const char *const files[] = {write_measurement("echo.wav", &one, 1)};
    float response[FRAMES];
    measure(&one, response);
    gc_correction_options o = GC_CORRECTION_DEFAULT;
    o.measured = files;
    o.files = 1;
    o.window = 1000; /* as long as the response, nearly */
    o.smoothing = 0;
    o.limit = 0; /* so that the corrected response is not flat */
    gc_correction c = correct(&o);
    /* The window opens with half a cosine around the direct sound: at high frequencies it differs from 1 by little. */
    double offset = 0;
    for (int i = 0; i < c.points; i += 40)
        if (c.hz[i] > 100 && c.hz[i] < 700) {
            const double complex h = corrected_at(&c, response, 0, c.hz[i]);
            const double got = 20 * log10(cabs(h)) - c.channel[0].after[i];
            offset = offset == 0 ? got : offset;
            CHECK(fabs(got - offset) < 0.02, "at %g Hz the prediction is off by %g dB", c.hz[i], got - offset);
        }
    gc_correction_free(&c);
}

static void gain_stays_below_its_limit_and_the_ranges_are_told(void **state) {
    (void)state;
    const place one = {.gain = 1};
    const char *const files[] = {write_measurement("limited.wav", &one, 1)};
    gc_correction_options o = GC_CORRECTION_DEFAULT;
    o.measured = files;
    o.files = 1;
    o.limit = 2;
    gc_correction c = correct(&o);
    double most = -100;
    for (int64_t k = 1; k < 400; k++) {
        const double hz = 20 * pow(1000, (double)k / 400);
        most = fmax(most, 20 * log10(cabs(sum_at(gc_ir_plane(c.filter, 0), c.filter->frames, hz))));
        const int i = (int)lrint(48 * log2(hz / 5));
        const bool dip = hz > 150 && hz < 215;
        CHECK(!dip || c.channel[0].limited[i], "%g Hz is not told as limited", hz);
    }
    CHECK(most < 2.1 && most > 1.9, "the filter has a gain of %.2f dB", most);
    gc_correction_free(&c);
}

/* Returns the largest excess phase from 40 to 400 Hz in radians, apart from a delay, of a response with a flat
 * magnitude. */
static double excess_of(const gc_correction *c, const float *response) {
    double worst = 0, sum = 0, squares = 0, phase[60], last = 0;
    for (int k = 0; k < 60; k++) {
        const double hz = 40 * pow(10, k / 60.0), delay = (double)(c->lead + DIRECT) / RATE;
        phase[k] = carg(corrected_at(c, response, 0, hz) * cexp((double complex)_Complex_I * 2 * pi * hz * delay));
        phase[k] += k ? 2 * pi * rint((last - phase[k]) / 2 / pi) : 0;
        last = phase[k];
        sum += phase[k] * hz;
        squares += hz * hz;
    }
    for (int k = 0; k < 60; k++) {
        const double hz = 40 * pow(10, k / 60.0);
        worst = fmax(worst, fabs(phase[k] - hz * sum / squares));
    }
    return worst;
}

static void mixed_phase_removes_excess_phase_within_the_bound_of_pre_ringing(void **state) {
    (void)state;
    const place one = {.gain = 1, .all_pass = 100};
    const char *const files[] = {write_measurement("all-pass.wav", &one, 1)};
    static const double bounds[] = {-20, -60};
    float response[FRAMES];
    double left[3];
    measure(&one, response);
    for (int k = 0; k < 3; k++) {
        gc_correction_options o = GC_CORRECTION_DEFAULT;
        o.measured = files;
        o.files = 1;
        o.smoothing = 24;
        o.phase = k < 2 ? GC_CORRECT_MIXED : GC_CORRECT_MINIMUM;
        o.pre_ringing = bounds[k % 2];
        gc_correction c = correct(&o);
        left[k] = excess_of(&c, response);
        CHECK(k == 2 || c.channel[0].pre_ringing <= o.pre_ringing, "%.1f dB of pre-ringing", c.channel[0].pre_ringing);
        check_levels(&c, response, 0, 0, 0.5);
        gc_correction_free(&c);
    }
    CHECK(left[0] < 0.15 && left[2] > 1 && left[1] > left[0] && left[1] < left[2],
          "excess phases of %.2f, %.2f and without correction %.2f", left[0], left[1], left[2]);
}

static void channels_get_the_same_level_and_delay(void **state) {
    (void)state;
    const place two[] = {{.gain = 1, .delay = 90}, {.gain = 0.5, .delay = 0}};
    const char *const files[] = {write_measurement("two.wav", two, 2)};
    float response[2][FRAMES];
    int64_t peak_at[2] = {0};
    double level[2];
    gc_correction_options o = GC_CORRECTION_DEFAULT;
    o.measured = files;
    o.files = 1;
    o.limit = 1; /* is relative to the level that the channel needs */
    gc_correction c = correct(&o);
    for (int k = 0; k < 2; k++) {
        measure(&two[k], response[k]);
        level[k] = third_octave(&c, response[k], k, 3000);
        const float *f = gc_ir_plane(c.filter, k);
        for (int64_t n = 0; n < 2000; n++)
            peak_at[k] = fabsf(f[n]) > fabsf(f[peak_at[k]]) ? n : peak_at[k];
    }
    CHECK(fabs(level[0] - level[1]) < 0.05, "levels of %.2f and %.2f dB", level[0], level[1]);
    CHECK(peak_at[1] - peak_at[0] == 90, "delays of %d and %d frames", (int)peak_at[0], (int)peak_at[1]);
    gc_correction_free(&c);
}

static void more_positions_deviate_less_as_told(void **state) {
    (void)state;
    place seats[3];
    char path[3][512];
    const char *files[3];
    float response[FRAMES];
    for (int p = 0; p < 3; p++) {
        seats[p] = (place){.gain = 1, .echo = 0.5, .echo_delay = 300 + 211 * p, .seed = (uint64_t)p, .noise = 1e-5};
        (void)snprintf(path[p], sizeof path[p], "%s",
                       write_measurement(p == 0   ? "s0.wav"
                                         : p == 1 ? "s1.wav"
                                                  : "s2.wav",
                                         &seats[p], 1));
        files[p] = path[p];
    }
    double mean[2] = {0};
    for (int count = 1; count <= 3; count += 2) {
        gc_correction_options o = GC_CORRECTION_DEFAULT;
        o.measured = files;
        o.files = count;
        gc_correction c = correct(&o);
        for (int p = 0; p < 3; p++) {
            measure(&seats[p], response);
            const double at_1k = third_octave(&c, response, 0, 1000);
            for (int b = 16; b <= 40; b++)
                mean[count / 2] += pow(third_octave(&c, response, 0, pow(10, b / 10.0)) - at_1k, 2);
        }
        gc_correction_free(&c);
    }
    CHECK(mean[1] < 0.8 * mean[0], "three positions %.2f, one %.2f", mean[1], mean[0]);
}

static void a_list_of_equalisers_becomes_their_response(void **state) {
    (void)state;
    static const char list[] = "Filter Settings file\n\nRoom EQ V5.31\nDated: today\nNotes:none\n\nEqualiser: Generic\n"
                               "Preamp: -6.0 dB\nFilter  1: ON  PK       Fc    60.0 Hz  Gain   6.0 dB  Q  2.000\n"
                               "Filter  2: OFF PK Fc 100 Hz Gain 9 dB Q 1\nFilter  3: ON  None\n"
                               "Filter 4: ON PK Fc 900 Hz Gain 4 dB BW Oct 0.4798\n# a comment\n"
                               "Filter: ON AP Fc 100 Hz Q 0.7\n";
    const char *path = files_path("eq.txt");
    FILE *to = fopen(path, "w");
    CHECK(to && fputs(list, to) >= 0 && fclose(to) == 0, "cannot write %s", path);
    gc_correction_options o = GC_CORRECTION_DEFAULT;
    o.eq = path;
    gc_correction c = correct(&o);
    static double want[FRAMES];
    memset(want, 0, sizeof want);
    want[0] = pow(10, -6 / 20.0);
    filter(peak(60, 6, 2), want, FRAMES);
    filter(peak(900, 4, 1 / (2 * sinh(log(2) / 2 * 0.4798))), want, FRAMES);
    filter(all_pass(100, 0.7), want, FRAMES);
    const oracle_error e = oracle_compare(gc_ir_plane(c.filter, 0), want, 12000);
    CHECK(e.rms < -120, "an error of %.1f dB", e.rms);
    gc_correction_free(&c);
    static const struct {
        const char *text, *says;
    } bad[] = {{"Filter 1: ON XX Fc 100 Hz Gain 1 dB Q 1\n", "no filter that is known"},
               {"Filter 1: ON PK Fc 30000 Hz Gain 1 dB Q 1\n", "below half of the rate"},
               {"Filter 1: ON PK Fc 100 Hz Gain 1 dB\n", "\"Q\""},
               {"Filter 1: ON PK Fc abc Hz Gain 1 dB Q 1\n", "no number"},
               {"Filter 1: maybe PK Fc 100 Hz Gain 1 dB Q 1\n", "neither"},
               {"Preamp: loud\n", "-120 to 120"},
               {"Preamp: 0 dB\nGraphicEQ: 20 0; 100 3\n", "line 2"},
               {"nothing\n", "no line of"}};
    for (int k = 0; k < COUNT(bad); k++) {
        gpuconv_error error = {0};
        to = fopen(path, "w");
        CHECK(to && fputs(bad[k].text, to) >= 0 && fclose(to) == 0, "cannot write %s", path);
        CHECK(gc_correct(&o, &c, &error) == GPUCONV_ERROR_FORMAT && strstr(error.message, bad[k].says),
              "'%s' gives '%s'", bad[k].text, error.message);
        gc_correction_free(&c);
    }
}

static void ways_of_a_crossover_add_up(void **state) {
    (void)state;
    static const char *const texts[] = {"lr2:300,2000", "lr4:80,2500", "lr8:100,400,3000"};
    const int step = HARNESS_FEWER > 1 ? 3 : 1;
    for (int k = 0; k < 2 * COUNT(texts); k += step) {
        gc_correction_options o = GC_CORRECTION_DEFAULT;
        CHECK(gc_crossover_parse(texts[k / 2], &o.crossover), "%s", texts[k / 2]);
        o.phase = k % 2 ? GC_CORRECT_LINEAR : GC_CORRECT_MINIMUM;
        gc_correction c = correct(&o);
        CHECK(c.filter->planes == o.crossover.count + 1, "%d ways", c.filter->planes);
        for (double hz = 20; hz < 20000; hz *= 1.3) {
            double complex sum = 0;
            for (int way = 0; way < c.filter->planes; way++)
                sum += sum_at(gc_ir_plane(c.filter, way), c.filter->frames, hz);
            CHECK(fabs(20 * log10(cabs(sum))) < 0.001, "%s add up to %.4f dB at %g Hz", texts[k / 2],
                  20 * log10(cabs(sum)), hz);
        }
        const double first = 20 * log10(cabs(sum_at(gc_ir_plane(c.filter, 0), c.filter->frames, o.crossover.hz[0])));
        CHECK(fabs(first + 6.02) < 0.15, "%s: the lowest way has %.2f dB at its crossover", texts[k / 2], first);
        gc_correction_free(&c);
    }
    gc_crossover parsed;
    static const char *const bad[] = {
        "lr3:100", "lr4", "lr4:", "lr4:100,", "lr4:200,100", "lr4:0.5", "lr4:1,2,3,4,5,6,7,8", ""};
    for (int k = 0; k < COUNT(bad); k++)
        CHECK(!gc_crossover_parse(bad[k], &parsed), "'%s' is accepted", bad[k]);
}

enum { HEAD_FRAMES = 96 };

/* Loudspeakers before the head of tests/sofa/head.sofa: a response [loudspeaker][ear][frame]. */
static void measure_head(const char *const *directions, int speakers, float (*to)[2][HEAD_FRAMES]) {
    for (int s = 0; s < speakers; s++) {
        gpuconv_preparation p = gpuconv_preparation_default();
        gpuconv_error error = {0};
        gpuconv_ir *ir;
        p.direction = directions[s];
        CHECK(gpuconv_ir_prepare(TESTS_SOURCE "/tests/sofa/head.sofa", &p, 1, RATE, &ir, &error) == GPUCONV_OK, "%s",
              error.message);
        for (int e = 0; e < 2; e++)
            memcpy(to[s][e], gpuconv_ir_taps(ir, 0, e), sizeof to[s][e]);
        gpuconv_ir_free(ir);
    }
}

/* Returns what an ear hears of the signal for `signal` through the filters. */
static double complex heard_at(const gc_correction *c, const float (*h)[2][HEAD_FRAMES], int ear, int signal,
                               double hz) {
    double complex sum = 0;
    for (int s = 0; s < c->speakers; s++)
        sum += sum_at(h[s][ear], HEAD_FRAMES, hz) *
               sum_at(gc_ir_plane(c->filter, signal * c->speakers + s), c->filter->frames, hz);
    return sum;
}

/* Two loudspeakers, 30 degrees to the left and right: what separates the ears is as told, before and after, far more
 * than the head alone, and no filter has more gain than allowed. */
static void cross_talk_of_a_head_is_cancelled_as_told(void **state) {
    static const char *const at[] = {"30,0", "-30,0"};
    float h[2][2][HEAD_FRAMES];
    (void)state;
    measure_head(at, 2, h);
    guarded g = guarded_new(4, HEAD_FRAMES);
    for (int c = 0; c < 4; c++)
        memcpy(g.channel[c], h[c / 2][c % 2], sizeof h[0][0]);
    const char *const files[] = {files_path("head.wav")};
    files_write(files[0], SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &g);
    guarded_free(&g);
    for (int limited = 0; limited < 2; limited++) {
        gc_correction_options o = GC_CORRECTION_DEFAULT;
        o.measured = files;
        o.files = 1;
        o.matrix = true;
        o.seconds = 0.1;
        o.delay = 0.03;
        o.low = 100;
        o.limit = limited ? 3 : 12;
        gc_correction c = correct(&o);
        assert_int_equal(c.filter->planes, 4);
        assert_int_equal(c.lead, 1440);
        for (int b = 2; b < 9; b++) /* 125 Hz to 8 kHz */
            for (int ear = 0; ear < 2; ear++) {
                const double centre = 1000 * exp2(b - 5);
                double own = 0, other = 0, direct = 0, crossed = 0, gain = 0;
                for (double hz = fmax(100, centre / sqrt(2)); hz < centre * sqrt(2); hz += centre / 100) {
                    own += pow(cabs(heard_at(&c, h, ear, ear, hz)), 2);
                    other += pow(cabs(heard_at(&c, h, ear, !ear, hz)), 2);
                    direct += pow(cabs(sum_at(h[ear][ear], HEAD_FRAMES, hz)), 2);
                    crossed += pow(cabs(sum_at(h[!ear][ear], HEAD_FRAMES, hz)), 2);
                    for (int s = 0; s < 2; s++)
                        gain = fmax(gain, cabs(sum_at(gc_ir_plane(c.filter, ear * 2 + s), c.filter->frames, hz)));
                }
                const gc_separation *told = &c.separation[ear][b];
                const double before = 10 * log10(direct / crossed), after = 10 * log10(own / other);
                CHECK(fabs(told->before - before) < 0.1, "%g Hz: %.2f dB before, told %.2f", centre, before,
                      told->before);
                CHECK(fabs(fmin(told->after, 60) - fmin(after, 60)) < 0.5, "%g Hz: %.2f dB after, told %.2f", centre,
                      after, told->after);
                CHECK(after > before + (limited ? 9 : 35), "%g Hz: %.1f dB before and %.1f after", centre, before,
                      after);
                CHECK(20 * log10(gain) < o.limit + 0.3, "%g Hz: a gain of %.2f dB", centre, 20 * log10(gain));
            }
        gc_correction_free(&c);
    }
}

/* Each ear a file, and more loudspeakers than ears: both hear their own signal alone, flat and after the told delay. */
static void more_loudspeakers_than_ears_are_inverted_flat_and_causal(void **state) {
    static const char *const at[] = {"30,0", "-30,0", "0,0"};
    float h[3][2][HEAD_FRAMES];
    char path[2][512];
    (void)state;
    measure_head(at, 3, h);
    for (int e = 0; e < 2; e++) {
        guarded g = guarded_new(3, HEAD_FRAMES);
        for (int s = 0; s < 3; s++)
            memcpy(g.channel[s], h[s][e], sizeof h[0][0]);
        (void)snprintf(path[e], sizeof path[e], "%s", files_path("ear%d.wav", e));
        files_write(path[e], SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &g);
        guarded_free(&g);
    }
    const char *const files[] = {path[0], path[1]};
    gc_correction_options o = GC_CORRECTION_DEFAULT;
    o.measured = files;
    o.files = 2;
    o.matrix = true;
    o.low = 200;
    gc_correction c = correct(&o);
    assert_int_equal(c.filter->planes, 6);
    for (double hz = 220; hz < 18000; hz *= 1.13) {
        const double complex late = cexp(-(double complex)_Complex_I * 2 * pi * hz / RATE * (double)c.lead);
        const double complex one =
            heard_at(&c, h, 0, 0, 300) / cexp(-(double complex)_Complex_I * 2 * pi * 300 / RATE * (double)c.lead);
        for (int e = 0; e < 2; e++) {
            CHECK(cabs(heard_at(&c, h, e, e, hz) - one * late) < 0.01 * cabs(one),
                  "%g Hz: not flat or not delayed as told", hz);
            CHECK(cabs(heard_at(&c, h, e, !e, hz)) < 0.003 * cabs(one), "%g Hz: the other ear is heard", hz);
        }
    }
    gc_correction_free(&c);
    gpuconv_error error = {0};
    o.files = 1;
    CHECK(gc_correct(&o, &c, &error) == GPUCONV_ERROR_ARGUMENT &&
              strstr(error.message, "3 channels in 1 file are no matrix"),
          "%s", error.message);
    gc_correction_free(&c);
}

static void unusable_measurements_are_refused(void **state) {
    (void)state;
    const place quiet = {.gain = 1, .noise = 0.03}, none = {.gain = 0, .noise = 0.3}, good = {.gain = 1};
    const place two[] = {{.gain = 1}, {.gain = 1}};
    char path[4][512];
    (void)snprintf(path[0], sizeof *path, "%s", write_measurement("quiet.wav", &quiet, 1));
    (void)snprintf(path[1], sizeof *path, "%s", write_measurement("none.wav", &none, 1));
    (void)snprintf(path[2], sizeof *path, "%s", write_measurement("good.wav", &good, 1));
    (void)snprintf(path[3], sizeof *path, "%s", write_measurement("pair.wav", two, 2));
    const struct {
        const char *files[2];
        int count;
        double low, high;
        const char *says;
    } all[] = {{{path[0]}, 1, 20, 0, "dB below the direct sound"},
               {{path[1]}, 1, 20, 0, "no direct sound"},
               {{path[2], path[3]}, 2, 20, 0, "2 channels"},
               {{path[2]}, 1, 1, 0, "the range is 1 to"},
               {{path[2]}, 1, 20, 30, "at least an octave"}};
    for (int k = 0; k < COUNT(all); k++) {
        gpuconv_error error = {0};
        gc_correction c;
        gc_correction_options o = GC_CORRECTION_DEFAULT;
        o.measured = all[k].files;
        o.files = all[k].count;
        o.low = all[k].low;
        o.high = all[k].high;
        CHECK(gc_correct(&o, &c, &error) != GPUCONV_OK && strstr(error.message, all[k].says), "case %d: '%s'", k,
              error.message);
        gc_correction_free(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loudspeaker_is_within_half_a_decibel_of_its_target),
        cmocka_unit_test(the_prediction_is_what_convolving_gives),
        cmocka_unit_test(gain_stays_below_its_limit_and_the_ranges_are_told),
        cmocka_unit_test(mixed_phase_removes_excess_phase_within_the_bound_of_pre_ringing),
        cmocka_unit_test(channels_get_the_same_level_and_delay),
        cmocka_unit_test(more_positions_deviate_less_as_told),
        cmocka_unit_test(a_list_of_equalisers_becomes_their_response),
        cmocka_unit_test(ways_of_a_crossover_add_up),
        cmocka_unit_test(cross_talk_of_a_head_is_cancelled_as_told),
        cmocka_unit_test(more_loudspeakers_than_ears_are_inverted_flat_and_causal),
        cmocka_unit_test(unusable_measurements_are_refused)};
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
