/* Room acoustic parameters of constructed responses: double slopes, filters, doubts, interaural correlation,
 * lateral energy and strength, whose values follow from their construction. */
#include "check.h"
#include "libtools/room/figures.h"
#include "oracle.h"

#include <math.h>

enum { RATE = 48000 };

/* A decay of two exponentials: energy of a frame A exp(-a t) + B exp(-b t). */
typedef struct slopes {
    double level[2], decay[2]; /* dB at the beginning, seconds for 60 dB */
} slopes;

static double energy_at(const slopes *s, double t) {
    double sum = 0;
    for (int k = 0; k < 2; k++)
        sum += pow(10, s->level[k] / 10 - 6 * t / s->decay[k]);
    return sum;
}

/* Returns the energy from t on, in closed form. */
static double remaining_at(const slopes *s, double t) {
    double sum = 0;
    for (int k = 0; k < 2; k++)
        sum += pow(10, s->level[k] / 10 - 6 * t / s->decay[k]) * s->decay[k] / (6 * log(10));
    return sum;
}

/* Returns taps with exactly this energy and random signs. */
static float *make(const slopes *s, double seconds, int64_t *frames) {
    oracle_random random = {.state = 99};
    *frames = (int64_t)(seconds * RATE);
    float *taps = calloc((size_t)*frames, sizeof *taps);
    CHECK(taps, "no memory");
    for (int64_t i = 0; i < *frames; i++)
        taps[i] = (float)((oracle_uniform(&random) < 0 ? -1 : 1) * sqrt(energy_at(s, (double)i / RATE)));
    return taps;
}

/* A line by least squares through the closed form between two levels: its time for 60 dB and 1000 (1 - r^2). */
static gc_decay_line expected(const slopes *s, double top, double bottom) {
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
    for (int64_t i = 0;; i++) {
        double t = (double)i / RATE, level = 10 * log10(remaining_at(s, t) / remaining_at(s, 0));
        if (level > top)
            continue;
        if (level < bottom)
            break;
        n++;
        sx += t;
        sy += level;
        sxx += t * t;
        sxy += t * level;
        syy += level * level;
    }
    double dx = n * sxx - sx * sx, dy = n * syy - sy * sy, dxy = n * sxy - sx * sy;
    return (gc_decay_line){-60 * dx / dxy, 1000 * (1 - dxy * dxy / dx / dy), 0};
}

static void near(const char *what, double got, double want, double part) {
    CHECK(fabs(got - want) <= part * fabs(want), "%s is %.6g instead of %.6g", what, got, want);
}

static void double_slopes_have_the_computed_times(void **state) {
    (void)state;
    static const slopes all[] = {
        {{0, -15}, {0.5, 2.5}}, {{0, -25}, {0.4, 2}}, {{0, -18}, {0.3, 1.5}}, {{0, -20}, {0.4, 3}}};
    for (int k = 0; k < COUNT(all); k++) {
        int64_t frames;
        float *taps = make(&all[k], 4.5, &frames);
        gc_acoustics a;
        assert_true(gc_acoustics_of(taps, frames, RATE, 0, &a, NULL));
        gc_decay_line t20 = expected(&all[k], -5, -25), t30 = expected(&all[k], -5, -35);
        near("EDT", a.edt, expected(&all[k], 0, -10).time, 0.002);
        near("T20", a.t20, t20.time, 0.002);
        near("T30", a.t30, t30.time, 0.002);
        near("curvature", a.curvature, 100 * (t30.time / t20.time - 1), 0.02);
        near("non-linearity of T20", a.nonlinearity20, t20.nonlinearity, 0.02);
        near("non-linearity of T30", a.nonlinearity30, t30.nonlinearity, 0.02);
        CHECK(fabs(a.edt / a.t20 - 1) > 0.05 && fabs(a.t30 / a.t20 - 1) > 0.03,
              "EDT %g, T20 %g and T30 %g are too alike", a.edt, a.t20, a.t30);
        CHECK(!(a.doubt & GC_DOUBT_CURVED) == (fabs(a.curvature) <= 10), "curvature %g is flagged wrongly",
              a.curvature);
        for (int c = 0; c < 2; c++) {
            double late = remaining_at(&all[k], c ? 0.08 : 0.05), early = remaining_at(&all[k], 0) - late;
            double got = c ? a.c80 : a.c50;
            CHECK(fabs(got - 10 * log10(early / late)) < 0.01, "C%d is %g", c ? 80 : 50, got);
        }
        free(taps);
    }
}

/* The flag for a straight decay is absent, and the impulse-to-noise ratio is that of the construction. */
static void doubts_follow_noise_and_filter(void **state) {
    (void)state;
    static const slopes straight = {{0, -300}, {1, 1}};
    static const double noise[] = {-60, -50, -40, -30};
    static const unsigned doubt[] = {0, 0, GC_DOUBT_NOISE30, GC_DOUBT_NOISE20 | GC_DOUBT_NOISE30};
    for (int k = 0; k < COUNT(noise); k++) {
        int64_t frames;
        oracle_random random = {.state = 5};
        float *taps = make(&straight, 2.5, &frames);
        for (int64_t i = 0; i < frames; i++)
            taps[i] += (float)(pow(10, noise[k] / 20) * sqrt(3)) * oracle_uniform(&random);
        gc_acoustics a;
        assert_true(gc_acoustics_of(taps, frames, RATE, 0, &a, NULL));
        CHECK(fabs(a.inr + noise[k]) < 1, "INR is %g dB with noise at %g dB", a.inr, noise[k]);
        CHECK((a.doubt & (GC_DOUBT_NOISE20 | GC_DOUBT_NOISE30)) == doubt[k], "noise at %g dB: doubt %u", noise[k],
              a.doubt);
        CHECK(!(a.doubt & (GC_DOUBT_FILTER | GC_DOUBT_CURVED)), "doubt %u", a.doubt);
        free(taps);
    }
    float click[4800] = {[100] = 1};
    gc_acoustics a;
    assert_true(gc_acoustics_of(click, COUNT(click), RATE, 125, &a, NULL)); /* all that decays is the filter */
    CHECK(a.doubt & GC_DOUBT_FILTER || isnan(a.edt), "the filter's own decay is not flagged");
    CHECK(isnan(a.c80) && a.d50 > 0.99, "C80 %g and D50 %g of a click", a.c80, a.d50);
    int64_t frames;
    static const slopes fast = {{0, -300}, {0.05, 1}}; /* 44 Hz x 0.05 s = 2 */
    float *taps = make(&fast, 0.5, &frames);
    assert_true(gc_acoustics_of(taps, frames, RATE, 63, &a, NULL));
    CHECK(a.doubt & GC_DOUBT_FILTER, "a decay of 50 ms at 63 Hz is not flagged");
    assert_true(gc_acoustics_of(taps, frames, RATE, 1000, &a, NULL));
    CHECK(!(a.doubt & GC_DOUBT_FILTER), "a decay of 50 ms at 1000 Hz is flagged");
    free(taps);
}

/* Describes a decay of 1 s that is cut off at a level, after which `after` dB of noise may follow. */
static gc_acoustics cut_decay(double end, double noise, double after, double band) {
    static const slopes straight = {{0, -300}, {1, 1}};
    int64_t frames;
    oracle_random random = {.state = 5};
    float *taps = make(&straight, 1.3, &frames);
    const int64_t cut = (int64_t)(-end / 60 * RATE), rest = (int64_t)(after / 60 * RATE);
    for (int64_t i = 0; i < frames; i++)
        taps[i] = (i < cut ? taps[i] : 0) + (float)(pow(10, noise / 20) * sqrt(3)) * oracle_uniform(&random);
    gc_acoustics a;
    assert_true(gc_acoustics_of(taps, cut + rest < frames ? cut + rest : frames, RATE, band, &a, NULL));
    free(taps);
    return a;
}

/* Each error above 5 % has a doubt, wherever the response ends, and a decay with the range of ISO 3382 has none. */
static void a_response_that_ends_in_the_range_is_doubtful(void **state) {
    (void)state;
    static const double bands[] = {0, 1000};
    const unsigned doubt20 = GC_DOUBT_END20 | GC_DOUBT_NOISE20, doubt30 = doubt20 | GC_DOUBT_END30 | GC_DOUBT_NOISE30;
    int far = 0;
    for (int b = 0; b < COUNT(bands); b++) {
        const gc_acoustics clean = cut_decay(-150, -300, 0, bands[b]);
        CHECK(!clean.doubt, "%g Hz: doubt %u of a clean decay", bands[b], clean.doubt);
        /* The record ends with the decay, in a faint noise; noise begins 3 or 5.9 dB before its end. */
        static const double noises[][2] = {{-300, 0}, {-90, 20}, {3, 0}, {5.9, 0}};
        for (int k = 0; k < COUNT(noises); k++)
            for (double end = -57; end <= -24; end += 1.5) {
                const double *n = noises[k];
                const gc_acoustics a = cut_decay(end, n[0] > 0 ? end + n[0] : n[0], n[1], bands[b]);
                const double wrong20 = fabs(a.t20 / clean.t20 - 1), wrong30 = fabs(a.t30 / clean.t30 - 1);
                CHECK(!(wrong20 > 0.05) || a.doubt & doubt20, "%g Hz, end %g, noise %g: T20 is wrong by %.1f %%",
                      bands[b], end, n[0], 100 * wrong20);
                CHECK(!(wrong30 > 0.05) || a.doubt & doubt30, "%g Hz, end %g, noise %g: T30 is wrong by %.1f %%",
                      bands[b], end, n[0], 100 * wrong30);
                far += wrong20 > 0.05 || wrong30 > 0.05;
                CHECK(end > -54 || n[0] > 0 || !(a.doubt & (GC_DOUBT_END20 | GC_DOUBT_END30)),
                      "%g Hz, end %g, noise %g: doubt %u", bands[b], end, n[0], a.doubt);
                CHECK(end > -44 || n[0] > 0 || !(a.doubt & GC_DOUBT_END20), "%g Hz, end %g, noise %g: doubt %u",
                      bands[b], end, n[0], a.doubt);
            }
    }
    CHECK(far > 20, "only %d decays are wrong", far);
}

/* Decays as short as bandwidth times time = 5 keep their times: the filter's decay lies before the direct sound. */
static void the_filter_does_not_lengthen_a_decay(void **state) {
    (void)state;
    int64_t frames;
    gc_octave_band band = gc_octave_at(250); /* 178 Hz wide */
    double t20 = 0;
    enum { TIMES = 24 };
    for (int seed = 0; seed < TIMES; seed++) { /* the mean of several noises */
        static const slopes s = {{0, -300}, {0.05, 1}};
        float *taps = make(&s, 0.5, &frames);
        oracle_random random = {.state = (uint64_t)seed + 1};
        for (int64_t i = 0; i < frames; i++)
            taps[i] *= oracle_uniform(&random) < 0 ? -1.0F : 1.0F;
        gc_acoustics a;
        assert_true(gc_acoustics_of(taps, frames, RATE, band.nominal, &a, NULL));
        t20 += a.t20 / TIMES;
        free(taps);
    }
    near("T20 at 250 Hz", t20, 0.05, 0.12);
}

/* IEC 61260-1:2014, table 1: class 1. Attenuation at normalised frequencies G^x of an octave filter; the breakpoints of
 * a third-octave filter follow from equation 10. */
static void the_filters_are_of_class_1(void **state) {
    (void)state;
    static const struct {
        double x, least, most;
    } limit[] = {{0, -0.4, 0.4},     {0.125, -0.4, 0.5}, {0.25, -0.4, 0.7}, {0.375, -0.4, 1.4}, {0.4999, -0.4, 5.3},
                 {0.5001, 1.6, 1e9}, {1, 16.6, 1e9},     {2, 40.5, 1e9},    {3, 60, 1e9},       {4, 70, 1e9}};
    const double g = pow(10, 0.3);
    for (int per_octave = 1; per_octave <= 3; per_octave += 2) {
        gc_octave_band band[GC_OCTAVE_BANDS];
        int count = gc_octave_bands(per_octave, RATE, band);
        assert_int_equal(count, per_octave == 1 ? 9 : 27);
        near("the lowest band", band[0].nominal, per_octave == 1 ? 63 : 50, 0);
        near("1 kHz", band[per_octave == 1 ? 4 : 13].centre, 1000, 1e-12);
        for (int b = 0; b < count; b++) {
            near("band edges", band[b].high / band[b].low, pow(g, 1.0 / per_octave), 1e-12);
            near("a nominal frequency", band[b].nominal, band[b].centre, 0.02);
            for (int k = 0; k < COUNT(limit); k++) {
                double ratio = 1 + (pow(g, 0.5 / per_octave) - 1) / (sqrt(g) - 1) * (pow(g, limit[k].x) - 1);
                for (int side = 0; side < 2; side++) {
                    double hz = side ? band[b].centre * ratio : band[b].centre / ratio;
                    double attenuation = -20 * log10(cabs(gc_octave_response(&band[b], hz)));
                    CHECK(attenuation >= limit[k].least && attenuation <= limit[k].most, "%g Hz at %g: %g dB",
                          band[b].nominal, hz, attenuation);
                }
            }
        }
    }
    assert_int_equal(gc_octave_bands(1, 44100, (gc_octave_band[GC_OCTAVE_BANDS]){{0}}), 8);
}

/* The one-sided autocorrelation: twice its real part is the power response. */
static void the_autocorrelation_belongs_to_the_filter(void **state) {
    (void)state;
    for (int speech = 0; speech < 2; speech++) {
        gc_octave_band band = speech ? gc_octave_of_speech(2) : gc_octave_at(500);
        gc_octave_correlation c = gc_octave_correlate(&band);
        for (double hz = 50; hz < 5000; hz *= 1.1) {
            double power = pow(cabs(gc_octave_response(&band, hz)), 2);
            double got = 2 * creal(gc_octave_one_sided(&c, hz));
            CHECK(fabs(got - power) < 1e-9, "%g Hz: %g instead of %g", hz, got, power);
        }
    }
}

/* Two ears hear a common noise and noises of their own; the right ear hears the common one 0.4 ms later. */
static void interaural_correlation_is_that_of_the_construction(void **state) {
    (void)state;
    enum { N = RATE * 2, LATE = 19 };
    static float left[N], right[N + LATE];
    oracle_random random = {.state = 3};
    for (int64_t i = 0; i < N; i++) {
        double t = (double)i / RATE, level = pow(10, -3 * t);
        double share = t < 0.08 ? 0.8 : 0.2; /* of the energy that both ears share */
        double common = (double)oracle_uniform(&random), own = (double)oracle_uniform(&random);
        left[i] = (float)(level * (sqrt(share) * common + sqrt(1 - share) * own));
        own = (double)oracle_uniform(&random);
        right[i + LATE] = (float)(level * (sqrt(share) * common + sqrt(1 - share) * own));
    }
    gc_interaural got;
    gc_octave_band band = gc_octave_at(2000);
    gc_ears *ears = gc_ears_new(left, right, N, RATE);
    assert_non_null(ears);
    assert_true(gc_ears_band(ears, NULL, &got));
    CHECK(fabs(got.early - 0.8) < 0.03 && fabs(got.late - 0.2) < 0.03, "early %g, late %g", got.early, got.late);
    CHECK(got.all > got.late && got.all < got.early, "IACC %g", got.all);
    assert_true(gc_ears_band(ears, &band, &got));
    CHECK(fabs(got.early - 0.8) < 0.08 && fabs(got.late - 0.2) < 0.08, "2 kHz: early %g, late %g", got.early, got.late);
    gc_ears_free(ears);
    ears = gc_ears_new(left, left, N, RATE);
    assert_non_null(ears);
    assert_true(gc_ears_band(ears, &band, &got));
    near("IACC of equal ears", got.all, 1, 1e-9);
    near("early IACC of equal ears", got.early, 1, 1e-9);
    gc_ears_free(ears);
}

/* The shortest responses: no read outside them, and parameters that cannot be determined are NaN. */
static void the_shortest_responses_are_analysed(void **state) {
    (void)state;
    static const float taps[] = {0.5F, -0.25F, 0.1F};
    for (int64_t frames = 1; frames <= COUNT(taps); frames++)
        for (double rate = 1; rate <= 1e7; rate *= 10) {
            gc_octave_band band[GC_OCTAVE_BANDS];
            gc_acoustics a;
            gc_interaural got;
            gc_ears *ears = gc_ears_new(taps, taps, frames, rate);
            assert_non_null(ears);
            assert_true(gc_ears_band(ears, NULL, &got));
            near("IACC", got.all, 1, 1e-9);
            assert_true(isnan(got.late) || rate < 100);
            for (int k = gc_octave_bands(1, rate, band) - 1; k >= 0; k--)
                assert_true(gc_ears_band(ears, &band[k], &got) &&
                            gc_acoustics_of(taps, frames, rate, band[k].nominal, &a, NULL));
            assert_true(gc_acoustics_of(taps, frames, rate, 0, &a, NULL));
            assert_true(isnan(a.t30) || rate < 100);
            gc_ears_free(ears);
        }
}

/* A figure-eight channel with half the amplitude after the direct sound, which it does not hear. */
static void lateral_energy_is_that_of_the_construction(void **state) {
    (void)state;
    static const slopes s = {{0, -300}, {1, 1}};
    int64_t frames;
    float *omni = make(&s, 1.5, &frames), *side = calloc((size_t)frames, sizeof *side);
    assert_non_null(side);
    for (int64_t i = RATE / 1000; i < frames; i++)
        side[i] = omni[i] / 2;
    gc_channel *a = gc_channel_new(omni, frames, RATE, -1), *b = gc_channel_new(side, frames, RATE, 0);
    gc_acoustics unused;
    assert_true(a && b && gc_channel_band(a, NULL, &unused, NULL) && gc_channel_band(b, NULL, &unused, NULL));
    double k = 6 * log(10), want = 0.25 * (exp(-k * 0.005) - exp(-k * 0.08)) / (1 - exp(-k * 0.08));
    near("LF", gc_lateral_fraction(a, b), want, 0.002);
    gc_channel_free(a);
    gc_channel_free(b);
    free(omni);
    free(side);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(double_slopes_have_the_computed_times),
        cmocka_unit_test(doubts_follow_noise_and_filter),
        cmocka_unit_test(a_response_that_ends_in_the_range_is_doubtful),
        cmocka_unit_test(the_filter_does_not_lengthen_a_decay),
        cmocka_unit_test(the_filters_are_of_class_1),
        cmocka_unit_test(the_autocorrelation_belongs_to_the_filter),
        cmocka_unit_test(interaural_correlation_is_that_of_the_construction),
        cmocka_unit_test(the_shortest_responses_are_analysed),
        cmocka_unit_test(lateral_energy_is_that_of_the_construction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
