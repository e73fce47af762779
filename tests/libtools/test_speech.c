/* The speech transmission index of constructed responses against IEC 60268-16: each weight, level, threshold and
 * modulation frequency alone, and values worked by hand. */
#include "check.h"
#include "libtools/room/figures.h"
#include "oracle.h"

#include <math.h>

enum { RATE = 48000 };
static const double pi = 3.14159265358979323846;

/* The constants of IEC 60268-16 for male speech: weights and redundancy corrections of editions 4 and 5, levels of the
 * octaves of edition 5, reception thresholds, and modulation
 * frequencies. */
static const double alpha[] = {0.085, 0.127, 0.230, 0.233, 0.309, 0.224, 0.173};
static const double beta[] = {0.085, 0.078, 0.065, 0.011, 0.047, 0.095};
static const double male[] = {-2.5, 0.5, 0, -6, -12, -18, -24};
static const double threshold[] = {46, 27, 12, 6.5, 7.5, 8, 12};
static const double modulation[] = {0.63, 0.8, 1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8, 10, 12.5};

static void near(const char *what, double got, double want, double part) {
    CHECK(fabs(got - want) <= part * fabs(want), "%s is %.6g instead of %.6g", what, got, want);
}

/* The octaves of speech: a tone at the centre of the octave below is 42 dB weaker or more, the edges are at -3 dB. */
static void the_filters_of_speech_are_steep(void **state) {
    (void)state;
    for (int k = 0; k < GC_SPEECH_BANDS; k++) {
        gc_octave_band band = gc_octave_of_speech(k);
        near("an octave", band.nominal, 125 * exp2(k), 0);
        double edge = -20 * log10(cabs(gc_octave_response(&band, band.low)));
        double below = -20 * log10(cabs(gc_octave_response(&band, band.centre / 2)));
        double centre = cabs(gc_octave_response(&band, band.centre * 1.02));
        CHECK(fabs(edge - 3.01) < 0.01 && below >= 42 && fabs(centre - 1) < 1e-6, "%g Hz: %g, %g dB", band.nominal,
              edge, below);
    }
}

static gc_speech speech_of(const float *taps, int64_t frames, const gc_speech_levels *levels) {
    gc_speech s;
    gc_channel *c = gc_channel_new(taps, frames, RATE, -1);
    assert_non_null(c);
    for (int k = 0; k < GC_SPEECH_BANDS; k++) {
        gc_octave_band band = gc_octave_of_speech(k);
        gc_acoustics unused;
        assert_true(gc_channel_band(c, &band, &unused, NULL));
        gc_speech_band(c, RATE, k, levels, &s);
    }
    gc_speech_finish(&s);
    gc_channel_free(c);
    return s;
}

/* An exponential decay has the modulation transfer function 1 / sqrt(1 + (2 pi F T / 13.8)^2). */
static void the_speech_index_is_that_of_the_construction(void **state) {
    (void)state;
    static const double times[] = {0.5, 1, 2, 4};
    gc_speech_levels levels = {.speech = (double)NAN};
    for (int k = 0; k < COUNT(times); k++) {
        double sum = 0;
        const int frames = (int)(2 * times[k] * RATE);
        float *taps = calloc((size_t)frames, sizeof *taps);
        assert_non_null(taps);
        oracle_random random = {.state = 99};
        for (int i = 0; i < frames; i++)
            taps[i] = (float)((oracle_uniform(&random) < 0 ? -1 : 1) * pow(10, -3 * i / (times[k] * RATE)));
        for (int f = 0; f < COUNT(modulation); f++) {
            double m = 1 / sqrt(1 + pow(2 * pi * modulation[f] * times[k] / (6 * log(10)), 2));
            sum += (fmin(fmax(10 * log10(m / (1 - m)), -15), 15) + 15) / 30 / COUNT(modulation);
        }
        gc_speech got = speech_of(taps, frames, &levels);
        CHECK(fabs(got.sti - sum) < 0.015, "STI of %g s is %.4f instead of %.4f", times[k], got.sti, sum);
        free(taps);
    }
    float click[9600] = {[10] = 1};
    near("STI of a click", speech_of(click, COUNT(click), &levels).sti, 1, 1e-6);
}

/* Levels: noise as strong as the speech gives a signal-to-noise ratio of 0 dB, a transmission index of 0.5. */
static void noise_and_level_reduce_the_speech_index(void **state) {
    (void)state;
    float click[9600] = {[10] = 1};
    gc_speech_levels levels = {.speech = 70, .has_noise = true};
    for (int k = 0; k < GC_SPEECH_BANDS; k++)
        levels.noise[k] = 70 + male[k];
    gc_speech equal = speech_of(click, COUNT(click), &levels);
    CHECK(equal.sti > 0.46 && equal.sti <= 0.5, "0 dB: STI %g", equal.sti);
    for (int k = 0; k < GC_SPEECH_BANDS; k++)
        levels.noise[k] -= 15;
    CHECK(speech_of(click, COUNT(click), &levels).sti > 0.9, "15 dB: STI is low");
    levels.has_noise = false;
    levels.speech = 0;
    CHECK(speech_of(click, COUNT(click), &levels).sti < 0.12, "below the threshold of hearing STI is high");
    /* 1 kHz at 60 dBA: speech 54 dB, the octave below 60 dB masks by 0.5 60 - 65 = -35 dB, the threshold is 6.5 dB. */
    levels.speech = 60;
    double ratio = 54 - 10 * log10(pow(10, (60 - 35) / 10.0) + pow(10, 0.65));
    near("the index at 1 kHz", speech_of(click, COUNT(click), &levels).mti[3], (fmin(ratio, 15) + 15) / 30, 1e-6);
    levels.speech = 100; /* 94 dB; the octave below, 100 dB, masks by -10 dB */
    near("the index at 1 kHz and 100 dBA", speech_of(click, COUNT(click), &levels).mti[3], (94 - 90 + 15) / 30.0, 1e-4);
}

static double sti_of(const double mti[GC_SPEECH_BANDS]) {
    gc_speech s = {0};
    memcpy(s.mti, mti, sizeof s.mti);
    gc_speech_finish(&s);
    return s.sti;
}

/* One octave alone has its weight, and two neighbours the sum of theirs without their redundancy. */
static void each_octave_of_speech_has_its_weight(void **state) {
    (void)state;
    double ones[GC_SPEECH_BANDS], want = 0;
    for (int k = 0; k < GC_SPEECH_BANDS; k++) {
        double one[GC_SPEECH_BANDS] = {0}, pair[GC_SPEECH_BANDS] = {0};
        one[k] = 1;
        near("a weight", sti_of(one), alpha[k], 1e-12);
        one[k] = 0.3;
        near("a weight", sti_of(one), 0.3 * alpha[k], 1e-12);
        for (int other = k + 1; other < GC_SPEECH_BANDS; other++) {
            memset(pair, 0, sizeof pair);
            pair[k] = 0.9;
            pair[other] = 0.4;
            const double shared = other == k + 1 ? beta[k] * sqrt(0.9 * 0.4) : 0;
            near("two weights", sti_of(pair), 0.9 * alpha[k] + 0.4 * alpha[other] - shared, 1e-12);
        }
        ones[k] = 1;
    }
    near("STI of full indices", sti_of(ones), 1, 1e-12);
    /* worked by hand: MTI 0.3, 0.4 ... 0.9 */
    const double rising[] = {0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
    for (int k = 0; k < GC_SPEECH_BANDS; k++)
        want += alpha[k] * rising[k] - (k ? beta[k - 1] * sqrt(rising[k - 1] * rising[k]) : 0);
    near("worked indices", want, 0.659460, 1e-6);
    near("STI of worked indices", sti_of(rising), want, 1e-12);
    ones[3] = (double)NAN;
    assert_true(isnan(sti_of(ones)));
}

/* The modulation transfer index of an octave of a click, whose modulation only noise, masking and threshold reduce. */
static double index_by_levels(const gc_speech_levels *l, int k) {
    const double s = pow(10, (l->speech + male[k]) / 10), n = l->has_noise ? pow(10, l->noise[k] / 10) : 0;
    double masked = 0;
    if (k > 0) {
        const double below =
            pow(10, (l->speech + male[k - 1]) / 10) + (l->has_noise ? pow(10, l->noise[k - 1] / 10) : 0);
        const double level = 10 * log10(below);
        const double amd = level < 63    ? 0.5 * level - 65
                           : level < 67  ? 1.8 * level - 146.9
                           : level < 100 ? 0.5 * level - 59.8
                                         : -10;
        masked = below * pow(10, amd / 10);
    }
    const double ratio = 10 * log10(s / (n + masked + pow(10, threshold[k] / 10)));
    return (fmin(fmax(ratio, -15), 15) + 15) / 30;
}

static void each_level_of_speech_and_noise_counts(void **state) {
    (void)state;
    static const double speech[] = {15, 30, 45, 60, 64.5, 66, 75, 95, 102, 115};
    float click[9600] = {[10] = 1};
    for (int s = 0; s < COUNT(speech); s++)
        for (int noisy = -1; noisy < GC_SPEECH_BANDS; noisy++) { /* -1: no noise; else one octave is noisy */
            gc_speech_levels levels = {.speech = speech[s], .has_noise = noisy >= 0};
            for (int k = 0; k < GC_SPEECH_BANDS; k++)
                levels.noise[k] = speech[s] + male[k] - (k == noisy ? 3 : 40);
            const gc_speech got = speech_of(click, COUNT(click), &levels);
            for (int k = 0; k < GC_SPEECH_BANDS; k++)
                CHECK(fabs(got.mti[k] - index_by_levels(&levels, k)) < 1e-6,
                      "speech of %g dB, octave %d, noise in %d: %.6f instead of %.6f", speech[s], k, noisy, got.mti[k],
                      index_by_levels(&levels, k));
        }
}

/* Two equal clicks have the modulation transfer function |cos(pi F t)|, whose zeros are at other modulation frequencies
 * for each distance t. */
static void each_modulation_frequency_counts(void **state) {
    (void)state;
    const gc_speech_levels levels = {.speech = (double)NAN};
    for (int zero = 0; zero < COUNT(modulation); zero++) {
        const int distance = (int)lrint(RATE / (2 * modulation[zero])), frames = distance + 4800;
        float *clicks = calloc((size_t)frames, sizeof *clicks);
        assert_non_null(clicks);
        clicks[100] = clicks[100 + distance] = 1;
        double want = 0;
        for (int f = 0; f < COUNT(modulation); f++) {
            const double m = fabs(cos(pi * modulation[f] * distance / RATE));
            want += (fmin(fmax(10 * log10(m / (1 - m)), -15), 15) + 15) / 30 / COUNT(modulation);
        }
        const double got = speech_of(clicks, frames, &levels).mti[6];
        CHECK(fabs(got - want) < 0.002, "clicks %d frames apart: %.5f instead of %.5f", distance, got, want);
        free(clicks);
    }
}

static void ratings_begin_at_their_limits(void **state) {
    (void)state;
    static const struct {
        double from;
        const char *name;
    } rating[] = {{0, "bad"}, {0.30, "poor"}, {0.45, "fair"}, {0.60, "good"}, {0.75, "excellent"}};
    for (int k = 0; k < COUNT(rating); k++) {
        assert_string_equal(gc_speech_rating(rating[k].from), rating[k].name);
        if (k)
            assert_string_equal(gc_speech_rating(rating[k].from - 1e-6), rating[k - 1].name);
    }
    assert_string_equal(gc_speech_rating((double)NAN), "-");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_filters_of_speech_are_steep),
        cmocka_unit_test(the_speech_index_is_that_of_the_construction),
        cmocka_unit_test(noise_and_level_reduce_the_speech_index),
        cmocka_unit_test(each_octave_of_speech_has_its_weight),
        cmocka_unit_test(each_level_of_speech_and_noise_counts),
        cmocka_unit_test(each_modulation_frequency_counts),
        cmocka_unit_test(ratings_begin_at_their_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
