/* ISO 3382 parameters of synthetic decays with known values, with and without noise after them. */
#include "check.h"
#include "libgpuconv/dsp/bands.h"
#include "libtools/room/acoustics.h"
#include "oracle.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* Returns `lead` frames of silence, then a decay of 60 dB in `rt60` seconds with exactly exponential energy. */
static float *decay(double rate, double seconds, double rt60, int64_t lead, double noise, int64_t *frames) {
    oracle_random random = {.state = 17};
    *frames = lead + (int64_t)(seconds * rate);
    float *taps = calloc((size_t)*frames, sizeof *taps);
    CHECK(taps, "no memory");
    for (int64_t i = 0; i < *frames; i++) {
        double t = (double)(i - lead) / rate, sign = oracle_uniform(&random) < 0 ? -1 : 1;
        if (i >= lead)
            taps[i] = (float)(sign * exp(-3 * log(10) * t / rt60));
        taps[i] += (float)(noise * sqrt(3)) * oracle_uniform(&random);
    }
    return taps;
}

/* Fails unless `got` is `want` within the relative error `part`. */
static void within(const char *what, double got, double want, double part) {
    CHECK(fabs(got / want - 1) <= part, "%s is %g instead of %g", what, got, want);
}

static void parameters_of_synthetic_decays_are_within_one_percent(void **state) {
    (void)state;
    static const double times[] = {0.2, 0.5, 1, 2, 5}, rates[] = {16000, 48000};
    for (int r = 0; r < COUNT(rates); r++)
        for (int t = 0; t < COUNT(times); t++) {
            int64_t frames;
            double rt = times[t], energy = 6 * log(10) / rt; /* nepers of energy a second */
            float *taps = decay(rates[r], 1.5 * rt, rt, 777, 0, &frames);
            gc_acoustics a;
            assert_true(gc_acoustics_of(taps, frames, rates[r], 0, &a, NULL));
            within("EDT", a.edt, rt, 0.01);
            within("T20", a.t20, rt, 0.01);
            within("T30", a.t30, rt, 0.01);
            within("D50", a.d50, 1 - exp(-energy * 0.05), 0.01);
            CHECK(fabs(a.c80 - 10 * log10(exp(energy * 0.08) - 1)) < 0.05, "C80 is %g for %g s", a.c80, rt);
            within("centre time", a.centre, 1 / energy, 0.01);
            CHECK(fabs(a.onset - 777 / rates[r]) < 1e-9, "onset at %g s", a.onset);
            CHECK(a.noise < -60, "noise of %g dB where there is none", a.noise);
            free(taps);
        }
}

static void undefined_parameters_are_nan(void **state) {
    (void)state;
    const double rate = 44100;
    static const double ends[] = {0, 0.01, 0.045, 0.0799};
    float *taps = calloc(44100, sizeof *taps);
    gc_acoustics a;
    assert_non_null(taps);
    assert_true(gc_acoustics_of(taps, 44100, rate, 0, &a, NULL)); /* silence */
    CHECK(isnan(a.edt) && isnan(a.t30) && isnan(a.c80) && isnan(a.d50) && isnan(a.centre), "figures of silence");
    for (int e = 0; e < COUNT(ends); e++) /* a response that ends within 80 ms has no later energy */
        for (int whole = 0; whole < 2; whole++) {
            oracle_random random = {.state = 5};
            int64_t sounding = 1 + (int64_t)(ends[e] * rate);
            for (int64_t i = 0; i < 44100; i++)
                taps[i] = i < sounding ? (i ? oracle_uniform(&random) : 1) : 0;
            assert_true(gc_acoustics_of(taps, whole ? 44100 : sounding, rate, 0, &a, NULL));
            CHECK(isnan(a.c80), "C80 of %g dB for a response of %g s", a.c80, ends[e]);
            CHECK(a.d50 >= 0 && a.d50 <= 1 && !(a.centre < 0), "D50 %g, centre %g", a.d50, a.centre);
            for (double band = 125; band <= 8000; band *= 2) {
                assert_true(gc_acoustics_of(taps, whole ? 44100 : sounding, rate, band, &a, NULL));
                CHECK(isnan(a.c80) || a.c80 <= 150, "C80 of %g dB at %g Hz for %g s", a.c80, band, ends[e]);
            }
        }
    free(taps);
}

static void bands_contain_a_bin_each(void **state) {
    (void)state;
    enum { BANDS = 150 };
    static const double rates[] = {100, 8000, 44100, 48000, 96000, 192000, 768000};
    double hz[BANDS], level[BANDS];
    for (int r = 0; r < COUNT(rates); r++) {
        int64_t points = gc_bands_points(1, rates[r]);
        double *power = calloc((size_t)points / 2, sizeof *power);
        assert_non_null(power);
        for (int64_t k = 0; k < points / 2; k++)
            power[k] = 0.01;
        gc_bands(power, points, rates[r], BANDS, hz, level);
        for (int b = 0; b < BANDS; b++) {
            CHECK(hz[b] > (b ? hz[b - 1] : gc_bands_lowest(rates[r])) && hz[b] < rates[r] / 2, "%g Hz", hz[b]);
            CHECK(fabs(level[b] + 20) < 1e-9, "band %d at %g Hz of %g: %g dB", b, hz[b], rates[r], level[b]);
        }
        /* A single spectral line is counted in exactly one band. */
        memset(power, 0, (size_t)points / 2 * sizeof *power);
        power[points / 8] = 1;
        gc_bands(power, points, rates[r], BANDS, hz, level);
        int seen = 0;
        for (int b = 0; b < BANDS; b++)
            seen += !isnan(level[b]);
        assert_int_equal(seen, 1);
        free(power);
    }
}

static void noise_after_a_decay_is_found_and_subtracted(void **state) {
    (void)state;
    static const double times[] = {0.4, 1, 2};
    for (int t = 0; t < COUNT(times); t++) {
        int64_t frames;
        double rt = times[t];
        float *taps = decay(48000, 2 * rt, rt, 100, pow(10, -50 / 20.0), &frames); /* RMS 50 dB under the peak */
        gc_acoustics a;
        assert_true(gc_acoustics_of(taps, frames, 48000, 0, &a, NULL));
        within("T20", a.t20, rt, 0.02);
        within("T30", a.t30, rt, 0.02);
        within("EDT", a.edt, rt, 0.02);
        CHECK(a.noise > -52 && a.noise < -47, "noise of -50 dB taken for %g", a.noise);
        free(taps);
    }
}

static void too_much_noise_gives_nan_instead_of_a_wrong_value(void **state) {
    (void)state;
    int64_t frames;
    float *taps = decay(48000, 2, 1, 0, pow(10, -20 / 20.0), &frames);
    gc_acoustics a;
    assert_true(gc_acoustics_of(taps, frames, 48000, 0, &a, NULL));
    CHECK(isnan(a.t30), "T30 is %g with noise 20 dB under the peak", a.t30);
    within("EDT", a.edt, 1, 0.05);
    for (int64_t i = 0; i < frames; i++)
        taps[i] = 0;
    assert_true(gc_acoustics_of(taps, frames, 48000, 0, &a, NULL));
    assert_true(isnan(a.t30) && isnan(a.edt));
    taps[0] = 1;
    assert_true(gc_acoustics_of(taps, 1, 48000, 0, &a, NULL));
    free(taps);
}

/* The response is a sum of tones, one in each octave with its own decay. */
static void octaves_are_separated(void **state) {
    (void)state;
    static const double bands[] = {125, 500, 2000, 8000}, times[] = {2.4, 1.6, 1.1, 0.7};
    enum { N = 48000 * 3 };
    static float taps[N];
    for (int i = 0; i < N; i++)
        for (int b = 0; b < COUNT(bands); b++)
            taps[i] += (float)(exp(-3 * log(10) * i / 48000.0 / times[b]) * sin(2 * pi * bands[b] * (i + 3) / 48000));
    for (int b = 0; b < COUNT(bands); b++) {
        gc_acoustics a;
        assert_true(gc_acoustics_of(taps, N, 48000, bands[b], &a, NULL));
        within("T20 of an octave", a.t20, times[b], 0.03);
        within("T30 of an octave", a.t30, times[b], 0.03);
    }
}

static void the_curve_falls_as_the_decay_does(void **state) {
    (void)state;
    int64_t frames;
    float *taps = decay(48000, 1.5, 1, 0, 0, &frames);
    gc_acoustics a;
    static gc_decay d;
    assert_true(gc_acoustics_of(taps, frames, 48000, 0, &a, &d));
    within("a step", d.step, 1.5 / GC_ACOUSTICS_CURVE, 0.001);
    for (int k = 0; k < GC_ACOUSTICS_CURVE / 2; k++) {
        CHECK(fabs(d.remaining[k] + 60 * k * d.step) < 0.1, "%g dB after %g s", d.remaining[k], k * d.step);
        CHECK(fabs(d.energy[k] + 60 * k * d.step) < 0.1, "%g dB at %g s", d.energy[k], k * d.step);
    }
    free(taps);
}

static void a_tone_is_in_its_row_of_a_spectrogram(void **state) {
    (void)state;
    enum { POINTS = 8192, ROWS = 128 };
    static const double tones[] = {50, 440, 1000, 9000};
    const double rate = 48000, ratio = rate / 2 / 20;
    double power[POINTS / 2];
    float level[ROWS];
    for (int t = 0; t < COUNT(tones); t++) {
        int bin = (int)lrint(tones[t] * POINTS / rate), most = 0;
        for (int k = 0; k < POINTS / 2; k++)
            power[k] = k == bin ? 1 : 1e-9;
        gc_bands_column(power, POINTS, rate, ROWS, level);
        for (int r = 0; r < ROWS; r++) {
            CHECK(level[r] >= -90.01F && level[r] <= 0, "row %d has %g dB", r, (double)level[r]);
            most = level[r] > level[most] ? r : most;
        }
        double low = 20 * pow(ratio, (double)most / ROWS), high = 20 * pow(ratio, (most + 1.0) / ROWS);
        double hz = bin * rate / POINTS, width = rate / POINTS;
        CHECK(low <= hz + width && high >= hz - width, "%g Hz is in the row from %g to %g Hz", hz, low, high);
        CHECK(level[most] > -3, "%g Hz has %g dB", hz, (double)level[most]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_of_synthetic_decays_are_within_one_percent),
        cmocka_unit_test(undefined_parameters_are_nan),
        cmocka_unit_test(bands_contain_a_bin_each),
        cmocka_unit_test(a_tone_is_in_its_row_of_a_spectrogram),
        cmocka_unit_test(noise_after_a_decay_is_found_and_subtracted),
        cmocka_unit_test(too_much_noise_gives_nan_instead_of_a_wrong_value),
        cmocka_unit_test(octaves_are_separated),
        cmocka_unit_test(the_curve_falls_as_the_decay_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
