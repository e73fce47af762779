/* Edits of impulse responses: each edit changes all channels as documented, appends to the history, and leaves the
 * original unchanged. */
#include "harness.h"
#include "libgpuconv/ir/object.h"

#include <complex.h>
#include <math.h>

static void a_part_is_cut_out(void **state) {
    (void)state;
    guarded taps;
    gpuconv_ir *ir = harness_random_ir(2, 1000, &taps), *cut;
    static const struct {
        int64_t start, frames, want;
    } cases[] = {{0, 10, 10}, {17, 100, 100}, {900, 500, 100}, {999, -1, 1}, {0, -1, 1000}};
    for (int i = 0; i < COUNT(cases); i++) {
        assert_int_equal(gpuconv_ir_cut(ir, cases[i].start, cases[i].frames, &cut, NULL), GPUCONV_OK);
        assert_int_equal(gpuconv_ir_frames(cut), cases[i].want);
        for (int c = 0; c < 2; c++)
            assert_memory_equal(gpuconv_ir_taps(cut, 0, c), taps.channel[c] + cases[i].start,
                                (size_t)cases[i].want * sizeof(float));
        harness_check_history(cut, "cut to");
        gpuconv_ir_free(cut);
    }
    static const int64_t bad[][2] = {{-1, 5}, {0, 0}, {0, -2}, {1000, 1}, {5000, -1}};
    for (int i = 0; i < COUNT(bad); i++)
        assert_int_equal(gpuconv_ir_cut(ir, bad[i][0], bad[i][1], &cut, NULL), GPUCONV_ERROR_ARGUMENT);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

static void the_quiet_end_is_trimmed_by_the_loudest_channel(void **state) {
    (void)state;
    guarded taps = guarded_new(2, 400);
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < 400; i++)
            taps.channel[c][i] = 1e-5f;
    taps.channel[0][3] = 1;
    taps.channel[0][200] = 0.0011f;
    taps.channel[1][250] = 0.0009f;
    gpuconv_ir *ir = harness_ir(&taps, 1000), *trimmed;
    static const struct {
        double level;
        int64_t want;
    } cases[] = {{-59.5, 201}, {-61, 251}, {-40, 4}, {-101, 400}};
    for (int i = 0; i < COUNT(cases); i++) {
        assert_int_equal(gpuconv_ir_trim(ir, cases[i].level, &trimmed, NULL), GPUCONV_OK);
        assert_int_equal(gpuconv_ir_frames(trimmed), cases[i].want);
        harness_check_history(trimmed, "trimmed from 0.4");
        gpuconv_ir_free(trimmed);
    }
    assert_int_equal(gpuconv_ir_trim(ir, 0, &trimmed, NULL), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_ir_trim(ir, (double)NAN, &trimmed, NULL), GPUCONV_ERROR_ARGUMENT);
    gpuconv_ir_free(ir);
    memset(taps.channel[0], 0, 400 * sizeof(float));
    memset(taps.channel[1], 0, 400 * sizeof(float));
    ir = harness_ir(&taps, 1000);
    assert_int_equal(gpuconv_ir_trim(ir, -60, &trimmed, NULL), GPUCONV_OK); /* a silent response keeps one frame */
    assert_int_equal(gpuconv_ir_frames(trimmed), 1);
    gpuconv_ir_free(trimmed);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

static void leading_silence_is_found_and_cut_or_becomes_a_lead(void **state) {
    (void)state;
    guarded taps = guarded_new(1, 300);
    memset(taps.channel[0], 0, 300 * sizeof(float));
    taps.channel[0][50] = 0.0005f; /* below -60 dB */
    taps.channel[0][80] = 0.01f;
    taps.channel[0][120] = -1;
    taps.channel[0][200] = 0.5f;
    gpuconv_ir *ir = harness_ir(&taps, 48000), *aligned;
    double peak;
    assert_int_equal(gpuconv_ir_peak(ir, &peak), 120);
    assert_true(peak == 1);
    assert_int_equal(gpuconv_ir_onset(ir, -60), 80);
    assert_int_equal(gpuconv_ir_onset(ir, -80), 50);
    assert_int_equal(gpuconv_ir_align(ir, GPUCONV_ALIGN_ONSET, &aligned, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_ir_frames(aligned), 220);
    assert_true(gpuconv_ir_taps(aligned, 0, 0)[0] == 0.01f);
    assert_int_equal(gpuconv_ir_lead(aligned), 0);
    gpuconv_ir_free(aligned);
    assert_int_equal(gpuconv_ir_align(ir, GPUCONV_ALIGN_PEAK, &aligned, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_ir_frames(aligned), 300);
    assert_int_equal(gpuconv_ir_lead(aligned), 120);
    gpuconv_ir_free(aligned);
    assert_int_equal(gpuconv_ir_align(ir, (gpuconv_align)9, &aligned, NULL), GPUCONV_ERROR_ARGUMENT);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

static void fades_begin_and_end_at_zero(void **state) {
    (void)state;
    guarded taps;
    gpuconv_ir *ir = harness_random_ir(3, 500, &taps), *faded;
    assert_int_equal(gpuconv_ir_fade(ir, 40, 100, &faded, NULL), GPUCONV_OK);
    for (int c = 0; c < 3; c++) {
        const float *f = gpuconv_ir_taps(faded, 0, c);
        assert_true(f[0] == 0 && f[499] == 0);
        assert_memory_equal(f + 40, taps.channel[c] + 40, 360 * sizeof(float));
        assert_true(fabsf(f[20] - 0.5f * taps.channel[c][20]) < 1e-6f);
        assert_true(fabsf(f[449] - 0.5f * taps.channel[c][449]) < 1e-6f);
    }
    gpuconv_ir_free(faded);
    assert_int_equal(gpuconv_ir_fade(ir, 0, 100000, &faded, NULL), GPUCONV_OK);
    assert_true(gpuconv_ir_taps(faded, 0, 0)[499] == 0);
    gpuconv_ir_free(faded);
    assert_int_equal(gpuconv_ir_fade(ir, -1, 0, &faded, NULL), GPUCONV_ERROR_ARGUMENT);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

static void a_response_is_reversed_and_delayed(void **state) {
    (void)state;
    guarded taps;
    gpuconv_ir *ir = harness_random_ir(2, 77, &taps), *other, *back;
    assert_int_equal(gpuconv_ir_reverse(ir, &other, NULL), GPUCONV_OK);
    for (int i = 0; i < 77; i++)
        assert_true(gpuconv_ir_taps(other, 0, 1)[i] == taps.channel[1][76 - i]);
    assert_int_equal(gpuconv_ir_reverse(other, &back, NULL), GPUCONV_OK);
    assert_memory_equal(gpuconv_ir_taps(back, 0, 0), taps.channel[0], 77 * sizeof(float));
    assert_string_equal(gpuconv_ir_history(back), "reversed; reversed");
    gpuconv_ir_free(other);
    gpuconv_ir_free(back);
    assert_int_equal(gpuconv_ir_delay(ir, 13, &other, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_ir_frames(other), 90);
    for (int i = 0; i < 13; i++)
        assert_true(gpuconv_ir_taps(other, 0, 0)[i] == 0);
    assert_memory_equal(gpuconv_ir_taps(other, 0, 0) + 13, taps.channel[0], 77 * sizeof(float));
    gpuconv_ir_free(other);
    assert_int_equal(gpuconv_ir_delay(ir, -1, &other, NULL), GPUCONV_ERROR_ARGUMENT);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

static const double pi = 3.14159265358979323846;

static double magnitude_at(const float *taps, int64_t n, double turns) {
    double re = 0, im = 0;
    for (int64_t i = 0; i < n; i++) {
        re += (double)taps[i] * cos(2 * pi * turns * (double)i);
        im += (double)taps[i] * sin(2 * pi * turns * (double)i);
    }
    return hypot(re, im);
}

static void stretching_lowers_the_spectrum_at_the_same_gain(void **state) {
    (void)state;
    guarded taps = guarded_new(1, 4800);
    for (int i = 0; i < 4800; i++)
        taps.channel[0][i] = (float)(exp(-pow((i - 2400) / 400.0, 2)) * sin(2 * pi * 0.03 * i));
    gpuconv_ir *ir = harness_ir(&taps, 48000), *other;
    static const double factors[] = {0.5, 1.25, 3};
    for (int k = 0; k < COUNT(factors); k++) {
        assert_int_equal(gpuconv_ir_stretch(ir, factors[k], &other, NULL), GPUCONV_OK);
        assert_int_equal(gpuconv_ir_frames(other), (int64_t)ceil(4800 * factors[k]));
        assert_true(gpuconv_ir_rate(other) == 48000);
        double before = magnitude_at(taps.channel[0], 4800, 0.03);
        double after = magnitude_at(gpuconv_ir_taps(other, 0, 0), gpuconv_ir_frames(other), 0.03 / factors[k]);
        CHECK(fabs(after / before - 1) < 1e-4, "stretched by %g: %g instead of %g", factors[k], after, before);
        gpuconv_ir_free(other);
    }
    assert_int_equal(gpuconv_ir_stretch(ir, 0, &other, NULL), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_ir_stretch(ir, 101, &other, NULL), GPUCONV_ERROR_ARGUMENT);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

/* Compares the spectrum of a response, resampled to `rate`, with its own in double precision, relative to time zero: at
 * 0 Hz and in the pass band of both rates. */
static void check_spectrum(const float *taps, int frames, double rate, const gpuconv_ir *resampled, const char *what) {
    const double to = gpuconv_ir_rate(resampled), nyquist = fmin(rate, to) / 2;
    const float *got = gpuconv_ir_taps(resampled, 0, 0);
    const int64_t lead = gpuconv_ir_lead(resampled), n = gpuconv_ir_frames(resampled);
    for (int f = 0; f <= 9; f++) {
        const double complex step = cexp(CMPLX(0, -2 * pi * f / 10 * nyquist / rate)),
                             to_step = cexp(CMPLX(0, -2 * pi * f / 10 * nyquist / to));
        double complex want = 0, is = 0;
        for (int i = frames - 1; i >= 0; i--)
            want = want * step + (double)taps[i];
        for (int64_t i = n - 1; i >= 0; i--)
            is = is * to_step + (double)got[i];
        is *= cexp(CMPLX(0, 2 * pi * f / 10 * nyquist / to * (double)lead));
        /* 0.03 dB up to 0.9 of the lower Nyquist frequency: what rings before time zero is dropped where its energy is
         * under -60 dB, that is behind some silence. */
        const double bound = f == 0 ? 1e-6 : taps[0] == 0 ? 3e-3 : 1e-3;
        CHECK(cabs(is - want) < bound * fmax(1, cabs(want)), "%s, %g to %g Hz: %g %+g i at %g Hz instead of %g %+g i",
              what, rate, to, creal(is), cimag(is), f / 10.0 * nyquist, creal(want), cimag(want));
    }
}

/* Responses that begin or end at full level keep what the filter of the resampler rings: before time zero as their
 * lead, and behind their end. */
static void both_ends_survive_resampling_between_all_pairs_of_rates(void **state) {
    (void)state;
    static const double rates[] = {8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000, 88200, 96000, 176400, 192000};
    static const struct {
        const char *what;
        int frames, from;
    } cases[] = {{"one frame", 1, 0},
                 {"the last frame", 500, 499},
                 {"a gated end", 4000, 3980},
                 {"a gated whole", 40, 0},
                 {"a frame behind 30", 31, 30},
                 {"a frame behind 70", 71, 70},
                 {"a frame behind 110", 111, 110},
                 {"behind 70", 900, 70}};
    oracle_random random = {.state = 94};
    for (int k = 0; k < COUNT(cases); k++) {
        guarded taps = guarded_new(1, cases[k].frames);
        for (int i = 0; i < cases[k].frames; i++)
            taps.channel[0][i] = i < cases[k].from ? 0 : i == 0 ? 1 : oracle_uniform(&random);
        for (int from = 0; from < COUNT(rates); from++)
            for (int to = 0; to < COUNT(rates); to++) {
                gpuconv_ir *ir = harness_ir(&taps, rates[from]), *other, *turned;
                assert_int_equal(gpuconv_ir_resample(ir, rates[to], &other, NULL), GPUCONV_OK);
                check_spectrum(taps.channel[0], cases[k].frames, rates[from], other, cases[k].what);
                /* Reversed, time zero is the last frame of the response and not that of the ringing. */
                const int64_t before = gpuconv_ir_lead(other), n = gpuconv_ir_frames(other);
                const int64_t own = (int64_t)ceil(cases[k].frames * rates[to] / rates[from]);
                assert_int_equal(gpuconv_ir_reverse(other, &turned, NULL), GPUCONV_OK);
                assert_int_equal(gpuconv_ir_lead(turned), n - before - own);
                if (cases[k].from == 0 && from != to)
                    harness_check_history(other, "before time zero");
                gpuconv_ir_free(turned);
                gpuconv_ir_free(other);
                gpuconv_ir_free(ir);
            }
        guarded_free(&taps);
    }
}

static void minimum_phase_keeps_the_magnitude_and_moves_energy_forward(void **state) {
    (void)state;
    oracle_random random = {.state = 92};
    guarded taps = guarded_new(2, 3000);
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < 3000; i++) /* a burst in the middle, which minimum phase moves to the beginning */
            taps.channel[c][i] = i < 1500 ? 0 : oracle_uniform(&random) * (float)exp(-(i - 1500) / 60.0);
    gpuconv_ir *ir = harness_ir(&taps, 48000), *minimal;
    assert_int_equal(gpuconv_ir_minimum_phase(ir, &minimal, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_ir_frames(minimal), 3000);
    for (int c = 0; c < 2; c++) {
        const float *m = gpuconv_ir_taps(minimal, 0, c);
        double worst = 0, early = 0, all = 0;
        for (int f = 1; f < 200; f++) {
            double want = magnitude_at(taps.channel[c], 3000, f / 400.0), got = magnitude_at(m, 3000, f / 400.0);
            worst = fmax(worst, fabs(20 * log10(got / want)));
        }
        CHECK(worst < 0.05, "channel %d: off by %g dB", c, worst);
        for (int i = 0; i < 3000; i++) {
            all += (double)m[i] * (double)m[i];
            early += i < 100 ? (double)m[i] * (double)m[i] : 0;
        }
        CHECK(early > 0.9 * all, "channel %d: only %g of the energy in the first hundred frames", c, early / all);
    }
    gpuconv_ir_free(minimal);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

static void two_responses_in_series_are_their_convolution(void **state) {
    (void)state;
    static const struct { int a, b; } cases[] = {{1, 1}, {2, 1}, {1, 3}, {2, 2}};
    oracle_random random = {.state = 93};
    for (int k = 0; k < COUNT(cases); k++) {
        guarded x = guarded_random(&random, cases[k].a, 300), y = guarded_random(&random, cases[k].b, 171);
        gpuconv_ir *a = harness_ir(&x, 44100), *b = harness_ir(&y, 44100), *both;
        gpuconv_error error = {0};
        CHECK(gpuconv_ir_series(a, b, &both, &error) == GPUCONV_OK, "%s", error.message);
        assert_int_equal(gpuconv_ir_frames(both), 470);
        int channels = cases[k].a > cases[k].b ? cases[k].a : cases[k].b;
        assert_int_equal(gpuconv_ir_outputs(both), channels);
        for (int c = 0; c < channels; c++)
            for (int at = 0; at < 470; at++) {
                double want =
                    oracle_frame(x.channel[cases[k].a == 1 ? 0 : c], 300, y.channel[cases[k].b == 1 ? 0 : c], 171, at);
                double got = (double)gpuconv_ir_taps(both, 0, c)[at];
                CHECK(fabs(got - want) < 1e-5, "%d and %d: frame %d is %g, not %g", cases[k].a, cases[k].b, at, got,
                      want);
            }
        gpuconv_ir_free(both);
        gpuconv_ir_free(a);
        gpuconv_ir_free(b);
        guarded_free(&x);
        guarded_free(&y);
    }
    guarded x = guarded_random(&random, 2, 5), y = guarded_random(&random, 3, 5);
    gpuconv_ir *a = harness_ir(&x, 44100), *b = harness_ir(&y, 44100), *c = harness_ir(&y, 48000), *both;
    assert_int_equal(gpuconv_ir_series(a, b, &both, NULL), GPUCONV_ERROR_TOPOLOGY);
    assert_int_equal(gpuconv_ir_series(b, c, &both, NULL), GPUCONV_ERROR_ARGUMENT);
    gpuconv_ir_free(a);
    gpuconv_ir_free(b);
    gpuconv_ir_free(c);
    guarded_free(&x);
    guarded_free(&y);
}

static void layouts_assign_channels_to_routes(void **state) {
    (void)state;
    guarded taps;
    gpuconv_ir *ir = harness_random_ir(4, 60, &taps), *routed;
    static const int source[2][2] = {{0, 1}, {2, 3}}, output[2][2] = {{0, 2}, {1, 3}}; /* input, output: channel */
    for (int how = GPUCONV_LAYOUT_SOURCE; how <= GPUCONV_LAYOUT_OUTPUT; how++) {
        assert_int_equal(gpuconv_ir_route_as(ir, 2, (gpuconv_layout)how, &routed, NULL), GPUCONV_OK);
        for (int i = 0; i < 2; i++)
            for (int o = 0; o < 2; o++)
                assert_memory_equal(gpuconv_ir_taps(routed, i, o),
                                    taps.channel[how == GPUCONV_LAYOUT_SOURCE ? source[i][o] : output[i][o]],
                                    60 * sizeof(float));
        harness_check_history(routed, how == GPUCONV_LAYOUT_SOURCE ? "left-left, left-right, right-left"
                                                                   : "left-left, right-left");
        gpuconv_ir_free(routed);
    }
    assert_int_equal(gpuconv_ir_route_as(ir, 3, GPUCONV_LAYOUT_PACKED, &routed, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_ir_frames(routed), 20);
    assert_int_equal(gpuconv_ir_outputs(routed), 4);
    for (int i = 0; i < 3; i++)
        for (int o = 0; o < 4; o++)
            assert_memory_equal(gpuconv_ir_taps(routed, i, o), taps.channel[o] + 20 * i, 20 * sizeof(float));
    gpuconv_ir_free(routed);
    assert_int_equal(gpuconv_ir_route_as(ir, 7, GPUCONV_LAYOUT_PACKED, &routed, NULL), GPUCONV_ERROR_TOPOLOGY);
    gpuconv_ir *longer;
    assert_int_equal(gpuconv_ir_delay(ir, 3, &longer, NULL), GPUCONV_OK); /* its pieces would begin elsewhere */
    assert_int_equal(gpuconv_ir_route_as(longer, 3, GPUCONV_LAYOUT_PACKED, &routed, NULL), GPUCONV_ERROR_STATE);
    assert_null(routed);
    gpuconv_ir_free(longer);
    assert_int_equal(gpuconv_ir_route_as(ir, 3, GPUCONV_LAYOUT_SOURCE, &routed, NULL), GPUCONV_ERROR_TOPOLOGY);
    assert_int_equal(gpuconv_ir_route_as(ir, 2, (gpuconv_layout)8, &routed, NULL), GPUCONV_ERROR_ARGUMENT);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

/* True stereo for one channel: what the two equal channels of a stereo input give. */
static void one_channel_feeds_true_stereo(void **state) {
    (void)state;
    guarded taps;
    gpuconv_ir *ir = harness_random_ir(4, 60, &taps), *late, *routed;
    assert_int_equal(gpuconv_ir_delay(ir, 7, &late, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_ir_route_as(late, 1, GPUCONV_LAYOUT_STEREO, &routed, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_ir_inputs(routed), 1);
    assert_int_equal(gpuconv_ir_outputs(routed), 2);
    assert_int_equal(gpuconv_ir_routes(routed), 2);
    for (int o = 0; o < 2; o++)
        for (int i = 0; i < 60; i++)
            assert_float_equal(gpuconv_ir_taps(routed, 0, o)[7 + i], taps.channel[o][i] + taps.channel[2 + o][i], 1e-6);
    harness_check_history(routed, "delayed by");
    harness_check_history(routed, "true stereo");
    gpuconv_ir_free(routed);
    gpuconv_ir_free(late);
    assert_int_equal(gpuconv_ir_route_as(ir, 1, GPUCONV_LAYOUT_AUTO, &routed, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_ir_outputs(routed), 4);
    gpuconv_ir_free(routed);
    assert_int_equal(gpuconv_ir_route_as(ir, 2, GPUCONV_LAYOUT_STEREO, &routed, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_ir_routes(routed), 4);
    gpuconv_ir_free(routed);
    assert_int_equal(gpuconv_ir_route_as(ir, 3, GPUCONV_LAYOUT_STEREO, &routed, NULL), GPUCONV_ERROR_TOPOLOGY);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
    const float most = 3e38F, *const huge[] = {&most, &most, &most, &most};
    assert_int_equal(gpuconv_ir_new(huge, 4, 1, 48000, &ir, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_ir_route_as(ir, 1, GPUCONV_LAYOUT_STEREO, &routed, NULL), GPUCONV_ERROR_FORMAT);
    assert_null(routed);
    gpuconv_ir_free(ir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_is_cut_out),
        cmocka_unit_test(the_quiet_end_is_trimmed_by_the_loudest_channel),
        cmocka_unit_test(leading_silence_is_found_and_cut_or_becomes_a_lead),
        cmocka_unit_test(fades_begin_and_end_at_zero),
        cmocka_unit_test(a_response_is_reversed_and_delayed),
        cmocka_unit_test(stretching_lowers_the_spectrum_at_the_same_gain),
        cmocka_unit_test(both_ends_survive_resampling_between_all_pairs_of_rates),
        cmocka_unit_test(minimum_phase_keeps_the_magnitude_and_moves_energy_forward),
        cmocka_unit_test(two_responses_in_series_are_their_convolution),
        cmocka_unit_test(layouts_assign_channels_to_routes),
        cmocka_unit_test(one_channel_feeds_true_stereo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
