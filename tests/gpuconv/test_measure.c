/* ISO 3382's figures of decays that were constructed to have them, with and without noise behind them. */
#include "check.h"
#include "gpuconv/room/acoustics.h"
#include "oracle.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* `lead` frames of silence, then a decay of 60 dB in `rt60` seconds whose energy falls exactly exponentially. */
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

static void within(const char *what, double got, double want, double part) {
    CHECK(fabs(got / want - 1) <= part, "%s is %g instead of %g", what, got, want);
}

static void figures_of_constructed_decays_are_within_a_hundredth(void **state) {
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

static void noise_behind_a_decay_is_found_and_left_out(void **state) {
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

static void too_much_noise_gives_no_figure_instead_of_a_wrong_one(void **state) {
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

/* Each octave has its own tone and its own decay; all sound together. */
static void octaves_are_told_apart(void **state) {
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
        CHECK(fabs(d.left[k] + 60 * k * d.step) < 0.1, "%g dB after %g s", d.left[k], k * d.step);
        CHECK(fabs(d.energy[k] + 60 * k * d.step) < 0.1, "%g dB at %g s", d.energy[k], k * d.step);
    }
    free(taps);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_of_constructed_decays_are_within_a_hundredth),
        cmocka_unit_test(noise_behind_a_decay_is_found_and_left_out),
        cmocka_unit_test(too_much_noise_gives_no_figure_instead_of_a_wrong_one),
        cmocka_unit_test(octaves_are_told_apart),
        cmocka_unit_test(the_curve_falls_as_the_decay_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
