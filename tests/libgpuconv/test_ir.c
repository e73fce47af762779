/* Creation, routing, gain and resampling of impulse responses: unusable responses are refused, every topology has the
 * documented routes, and gain and resampling keep the documented levels. */
#include "check.h"
#include "harness.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/ir/object.h"
#include "oracle.h"

#include <math.h>

/* Checks that a call returned this status, a message and no object. */
static void check_refused(gpuconv_status got, gpuconv_status want, gpuconv_ir *const *ir, const gpuconv_error *error,
                          const char *what) {
    CHECK(got == want, "%s: %s", what, gpuconv_status_text(got));
    CHECK(*ir == NULL, "%s: an object was returned", what);
    CHECK(error->status == want && strlen(error->message) > 5, "%s: no message", what);
    CHECK(error->message[strlen(error->message) - 1] != '.', "%s: '%s' ends in a full stop", what, error->message);
}

static void unusable_responses_are_refused(void **state) {
    (void)state;
    float taps[] = {1, 2, 3};
    const float *channels[2000];
    for (int c = 0; c < COUNT(channels); c++)
        channels[c] = taps;
    static const struct {
        const char *what;
        int channels;
        int64_t frames;
        double rate;
    } cases[] = {{"no channels", 0, 3, 48000},
                 {"negative channels", -1, 3, 48000},
                 {"too many", 1025, 3, 48000},
                 {"no frames", 1, 0, 48000},
                 {"negative frames", 1, -7, 48000},
                 {"rate 0", 1, 3, 0},
                 {"negative rate", 1, 3, -48000},
                 {"rate NaN", 1, 3, (double)NAN},
                 {"rate infinite", 1, 3, (double)INFINITY},
                 {"rate below 1 Hz", 1, 3, 0.5},
                 {"rate beyond any", 1, 3, 2147483647}};
    for (int i = 0; i < COUNT(cases); i++) {
        gpuconv_ir *ir = (gpuconv_ir *)taps;
        gpuconv_error error = {0};
        gpuconv_status status =
            gpuconv_ir_new(channels, cases[i].channels, cases[i].frames, cases[i].rate, &ir, &error);
        check_refused(status, GPUCONV_ERROR_ARGUMENT, &ir, &error, cases[i].what);
        assert_int_equal(gpuconv_ir_new(channels, cases[i].channels, cases[i].frames, cases[i].rate, &ir, NULL),
                         status);
    }
    gpuconv_ir *ir;
    assert_int_equal(gpuconv_ir_new(channels, 1024, 3, 48000, &ir, NULL), GPUCONV_OK);
    gpuconv_ir_free(ir);
    gpuconv_ir_free(NULL);
}

static void taps_that_are_not_finite_are_refused(void **state) {
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int b = 0; b < COUNT(bad); b++) {
        for (int at = 0; at < 6; at++) {
            float taps[2][3] = {{1, 2, 3}, {4, 5, 6}};
            const float *channels[] = {taps[0], taps[1]};
            taps[at / 3][at % 3] = bad[b];
            gpuconv_ir *ir;
            gpuconv_error error = {0};
            gpuconv_status status = gpuconv_ir_new(channels, 2, 3, 48000, &ir, &error);
            check_refused(status, GPUCONV_ERROR_FORMAT, &ir, &error, "not finite");
            char frame[32];
            snprintf(frame, sizeof frame, "frame %d of channel %d", at % 3, at / 3 + 1);
            CHECK(strstr(error.message, frame), "'%s' does not say %s", error.message, frame);
        }
    }
}

static void routes_are_those_of_the_topology(void **state) {
    (void)state;
    static const struct {
        int channels, inputs, outputs, routes;
    } cases[] = {{1, 1, 1, 1}, {2, 1, 2, 2}, {4, 1, 4, 4}, {1, 2, 2, 2}, {1, 7, 7, 7},
                 {2, 2, 2, 2}, {4, 2, 2, 4}, {3, 3, 3, 3}, {4, 4, 4, 4}, {1024, 1024, 1024, 1024}};
    oracle_random random = {.state = 61};
    for (int i = 0; i < COUNT(cases); i++) {
        guarded taps = guarded_random(&random, cases[i].channels, 5);
        gpuconv_ir *ir = harness_ir(&taps, 44100), *routed;
        gpuconv_error error = {0};
        CHECK(gpuconv_ir_route(ir, cases[i].inputs, &routed, &error) == GPUCONV_OK, "%s", error.message);
        gpuconv_ir_free(ir);
        assert_int_equal(gpuconv_ir_inputs(routed), cases[i].inputs);
        assert_int_equal(gpuconv_ir_outputs(routed), cases[i].outputs);
        assert_int_equal(gpuconv_ir_routes(routed), cases[i].routes);
        assert_int_equal(gpuconv_ir_frames(routed), 5);
        assert_true(gpuconv_ir_rate(routed) == 44100);
        oracle_route *want = malloc((size_t)(cases[i].channels * cases[i].inputs) * sizeof *want);
        CHECK(want, "no memory");
        int outputs,
            n = oracle_routes((const float *const *)taps.channel, cases[i].channels, cases[i].inputs, want, &outputs);
        assert_int_equal(n, cases[i].routes);
        for (int r = 0; r < n; r++) {
            bool found = false;
            for (int k = 0; k < n; k++) {
                const gc_route *route = &routed->route[k];
                found |= route->input == want[r].input && route->output == want[r].output &&
                         memcmp(gc_ir_plane(routed, route->plane), want[r].taps, 5 * sizeof(float)) == 0;
            }
            CHECK(found, "%d channels on %d inputs: no route from %d to %d", cases[i].channels, cases[i].inputs,
                  want[r].input, want[r].output);
        }
        for (int k = 1; k < routed->routes; k++) { /* backends rely on the order */
            const gc_route *a = &routed->route[k - 1], *b = &routed->route[k];
            assert_true(a->output < b->output || (a->output == b->output && a->input < b->input));
        }
        free(want);
        gpuconv_ir_free(routed);
        guarded_free(&taps);
    }
}

/* The channels of HeSuVi's files are those that its users name: FL-L FL-R SL-L SL-R BL-L BL-R FC-L, FR-R FR-L SR-R SR-L
 * BR-R BR-L FC-R; a file of 7 has the left half. */
static void files_of_hesuvi_reach_both_ears_from_mono_to_7_1(void **state) {
    /* of each place: plane of 14 to the left and the right ear, then of 7 */
    enum { FL, FR, FC, BL, BR, SL, SR };
    static const int plane[7][4] = {{0, 1, 0, 1},   {8, 7, 1, 0}, {6, 13, 6, 6}, {4, 5, 4, 5},
                                    {12, 11, 5, 4}, {2, 3, 2, 3}, {10, 9, 3, 2}};
    static const int places[8][8] = {{FC},
                                     {FL, FR},
                                     {FL, FR, FC},
                                     {FL, FR, BL, BR},
                                     {FL, FR, FC, SL, SR},
                                     {FL, FR, FC, FC, SL, SR},
                                     {FL, FR, FC, BL, BR, SL, SR},
                                     {FL, FR, FC, FC, BL, BR, SL, SR}};
    (void)state;
    for (int channels = 7; channels <= 14; channels += 7) {
        guarded taps = guarded_new(channels, 1);
        for (int c = 0; c < channels; c++)
            taps.channel[c][0] = (float)c;
        gpuconv_ir *ir = harness_ir(&taps, 44100), *routed;
        gpuconv_error error = {0};
        for (int inputs = 1; inputs <= 8; inputs++) {
            CHECK(gpuconv_ir_route_as(ir, inputs, GPUCONV_LAYOUT_HESUVI, &routed, &error) == GPUCONV_OK, "%s",
                  error.message);
            for (int i = 0; i < 2 * inputs; i++) {
                const float *got = gpuconv_ir_taps(routed, i / 2, i % 2);
                const int want = plane[places[inputs - 1][i / 2]][(channels == 7 ? 2 : 0) + i % 2];
                CHECK(got && *got == (float)want, "%d inputs, %d channels: input %d, ear %d is channel %g, not %d",
                      inputs, channels, i / 2, i % 2, got ? (double)*got : -1.0, want);
            }
            gpuconv_ir_free(routed);
        }
        assert_int_equal(gpuconv_ir_route_as(ir, 9, GPUCONV_LAYOUT_HESUVI, &routed, &error), GPUCONV_ERROR_TOPOLOGY);
        gpuconv_ir_free(ir);
        guarded_free(&taps);
    }
}

static void unfit_channel_counts_are_refused_and_fitting_ones_named(void **state) {
    (void)state;
    static const struct {
        int channels, inputs;
        const char *says[3];
    } cases[] = {{3, 2, {"3 channels", "1 or 2 or 4", "true stereo"}},
                 {2, 3, {"2 channels", "1 or 3 would", "mono"}},
                 {4, 3, {"4 channels", "1 or 3 would", "mono"}},
                 {6, 2, {"6 channels", "1 or 2 or 4", "true stereo"}}};
    oracle_random random = {.state = 62};
    for (int i = 0; i < COUNT(cases); i++) {
        guarded taps = guarded_random(&random, cases[i].channels, 5);
        gpuconv_ir *ir = harness_ir(&taps, 44100), *routed;
        gpuconv_error error = {0};
        check_refused(gpuconv_ir_route(ir, cases[i].inputs, &routed, &error), GPUCONV_ERROR_TOPOLOGY, &routed, &error,
                      "counts");
        for (int s = 0; s < COUNT(cases[i].says); s++)
            CHECK(strstr(error.message, cases[i].says[s]), "'%s' does not say '%s'", error.message, cases[i].says[s]);
        gpuconv_ir_free(ir);
        guarded_free(&taps);
    }
}

static void input_counts_out_of_range_or_other_than_routed_are_refused(void **state) {
    (void)state;
    oracle_random random = {.state = 63};
    guarded taps = guarded_random(&random, 2, 5);
    gpuconv_ir *ir = harness_ir(&taps, 44100), *routed, *again;
    static const int bad[] = {0, -1, 1025};
    for (int i = 0; i < COUNT(bad); i++) {
        gpuconv_error error = {0};
        check_refused(gpuconv_ir_route(ir, bad[i], &routed, &error), GPUCONV_ERROR_ARGUMENT, &routed, &error, "inputs");
    }
    assert_int_equal(gpuconv_ir_route(ir, 2, &routed, NULL), GPUCONV_OK);
    gpuconv_error error = {0};
    check_refused(gpuconv_ir_route(routed, 1, &again, &error), GPUCONV_ERROR_TOPOLOGY, &again, &error, "other inputs");
    assert_int_equal(gpuconv_ir_route(routed, 2, &again, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_ir_routes(again), 2);
    gpuconv_ir_free(again);
    gpuconv_ir_free(routed);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

static void gain_is_exact_and_leaves_the_original(void **state) {
    (void)state;
    oracle_random random = {.state = 64};
    guarded taps = guarded_random(&random, 2, 100);
    gpuconv_ir *ir = harness_ir(&taps, 44100), *louder;
    static const double levels[] = {0, 20, -20, 6.0205999132796239, -200, 200, 3.7};
    for (int i = 0; i < COUNT(levels); i++) {
        assert_int_equal(gpuconv_ir_gain(ir, levels[i], &louder, NULL), GPUCONV_OK);
        for (int c = 0; c < 2; c++) {
            for (int64_t n = 0; n < 100; n++) {
                double want = pow(10, levels[i] / 20) * (double)taps.channel[c][n];
                assert_true(fabs((double)gc_ir_plane(louder, c)[n] - want) <= 0x1p-23 * fabs(want));
            }
            assert_memory_equal(gc_ir_plane(ir, c), taps.channel[c], 100 * sizeof(float));
        }
        gpuconv_ir_free(louder);
    }
    static const double bad[] = {-200.01, 200.01, (double)NAN, (double)INFINITY, -(double)INFINITY};
    for (int i = 0; i < COUNT(bad); i++) {
        gpuconv_error error = {0};
        check_refused(gpuconv_ir_gain(ir, bad[i], &louder, &error), GPUCONV_ERROR_ARGUMENT, &louder, &error, "gain");
    }
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

static void a_gain_that_overflows_is_refused(void **state) {
    (void)state;
    guarded taps = guarded_new(1, 2);
    taps.channel[0][0] = 1;
    taps.channel[0][1] = 1e30f;
    gpuconv_ir *ir = harness_ir(&taps, 44100), *louder;
    gpuconv_error error = {0};
    check_refused(gpuconv_ir_gain(ir, 200, &louder, &error), GPUCONV_ERROR_ARGUMENT, &louder, &error, "overflow");
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

/* ---- Resampling ------------------------------------------------------------------------------------------------- */

static const double pi = 3.14159265358979323846;

/* Computes the frequency response at `hertz`. */
static void response_at(const float *taps, int64_t n, double rate, double hertz, double *re, double *im) {
    *re = *im = 0;
    for (int64_t i = 0; i < n; i++) {
        double angle = 2 * pi * hertz * (double)i / rate;
        *re += (double)taps[i] * cos(angle);
        *im -= (double)taps[i] * sin(angle);
    }
}

static void resampling_keeps_the_frequency_response(void **state) {
    (void)state;
    static const double rates[][2] = {{48000, 44100}, {44100, 48000}, {48000, 96000},
                                      {96000, 44100}, {48000, 16000}, {44100, 192000}};
    static const double hertz[] = {0, 55, 440, 997, 3000, 6500};
    for (int r = 0; r < COUNT(rates); r++) {
        double from = rates[r][0], to = rates[r][1];
        int64_t n = (int64_t)(from / 5);
        guarded taps = guarded_new(2, n);
        for (int64_t i = 0; i < n;
             i++) { /* bandlimited bursts that fade in and out, so that resampling cuts nothing off */
            double t = (double)i / from, fade = 0.5 - 0.5 * cos(2 * pi * (double)i / (double)(n - 1));
            taps.channel[0][i] = (float)(fade * fade * (sin(2 * pi * 440 * t) + 0.3 * cos(2 * pi * 3000 * t) + 0.1));
            taps.channel[1][i] = (float)(fade * fade * cos(2 * pi * 997 * t));
        }
        gpuconv_ir *ir = harness_ir(&taps, from), *other;
        gpuconv_error error = {0};
        CHECK(gpuconv_ir_resample(ir, to, &other, &error) == GPUCONV_OK, "%s", error.message);
        assert_true(gpuconv_ir_rate(other) == to);
        assert_int_equal(gpuconv_ir_frames(other), (int64_t)ceil((double)n * to / from));
        assert_int_equal(gpuconv_ir_outputs(other), 2);
        for (int c = 0; c < 2; c++) {
            double loudest = 0;
            for (int pass = 0; pass < 2; pass++) {
                for (int f = 0; f < COUNT(hertz); f++) {
                    double re, im, re2, im2;
                    response_at(taps.channel[c], n, from, hertz[f], &re, &im);
                    loudest = fmax(loudest, hypot(re, im));
                    if (pass == 0)
                        continue;
                    response_at(gc_ir_plane(other, c), gpuconv_ir_frames(other), to, hertz[f], &re2, &im2);
                    double off = hypot(re2 - re, im2 - im) / loudest;
                    CHECK(off <= 1e-5, "%g to %g Hz: off by %g at %g Hz", from, to, off, hertz[f]);
                }
            }
        }
        gpuconv_ir_free(other);
        gpuconv_ir_free(ir);
        guarded_free(&taps);
    }
}

static void resampling_refuses_impossible_rates(void **state) {
    (void)state;
    oracle_random random = {.state = 65};
    guarded taps = guarded_random(&random, 1, 50);
    gpuconv_ir *ir = harness_ir(&taps, 44100), *other;
    /* Out of the range of rates, and more than a factor of 1000 from the response's rate. */
    static const double bad[] = {0,    -1,    1e-6,  0.999,       44.0999,          44100001,
                                 1e10, 1e300, -1e-6, (double)NAN, (double)INFINITY, -(double)INFINITY};
    for (int i = 0; i < COUNT(bad); i++) {
        gpuconv_error error = {0};
        check_refused(gpuconv_ir_resample(ir, bad[i], &other, &error), GPUCONV_ERROR_ARGUMENT, &other, &error, "rate");
    }
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

/* Resampling to a response of a thousand minutes at 10 MHz is refused before memory is allocated. */
static void a_response_larger_than_memory_is_refused_with_the_sizes(void **state) {
    (void)state;
    enum { FRAMES = 1 << 20 };
    guarded taps = guarded_new(1, FRAMES);
    for (int64_t i = 0; i < FRAMES; i++)
        taps.channel[0][i] = i % 7 == 0;
    gpuconv_ir *ir = harness_ir(&taps, 10000), *other;
    gpuconv_error error = {0};
    const int64_t most = gc_memory_available() / (int64_t)sizeof(float);
    check_refused(gpuconv_ir_delay(ir, most, &other, &error), GPUCONV_ERROR_MEMORY, &other, &error, "a delay");
    CHECK(strstr(error.message, "GB are free"), "the message has no sizes: %s", error.message);
    check_refused(gpuconv_ir_delay(ir, INT64_MAX / 4, &other, &error), GPUCONV_ERROR_MEMORY, &other, &error,
                  "an endless delay");
    if (most < (INT64_C(1) << 40) / 4 && (double)FRAMES * 1000 > (double)most) {
        check_refused(gpuconv_ir_resample(ir, 10000000, &other, &error), GPUCONV_ERROR_MEMORY, &other, &error,
                      "a rate");
        CHECK(strstr(error.message, "GB are free"), "the message has no sizes: %s", error.message);
    }
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

static void a_response_of_one_frame_can_be_resampled(void **state) {
    (void)state;
    guarded taps = guarded_new(1, 1);
    taps.channel[0][0] = 0.5f;
    static const double rates[] = {8000, 44100, 48001, 192000};
    for (int i = 0; i < COUNT(rates); i++) {
        gpuconv_ir *ir = harness_ir(&taps, 48000), *other;
        gpuconv_error error = {0};
        CHECK(gpuconv_ir_resample(ir, rates[i], &other, &error) == GPUCONV_OK, "%s", error.message);
        assert_true(gpuconv_ir_frames(other) >= 1);
        for (int64_t n = 0; n < gpuconv_ir_frames(other); n++)
            assert_true(isfinite(gc_ir_plane(other, 0)[n]));
        gpuconv_ir_free(other);
        gpuconv_ir_free(ir);
    }
    guarded_free(&taps);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unusable_responses_are_refused),
        cmocka_unit_test(taps_that_are_not_finite_are_refused),
        cmocka_unit_test(routes_are_those_of_the_topology),
        cmocka_unit_test(files_of_hesuvi_reach_both_ears_from_mono_to_7_1),
        cmocka_unit_test(unfit_channel_counts_are_refused_and_fitting_ones_named),
        cmocka_unit_test(input_counts_out_of_range_or_other_than_routed_are_refused),
        cmocka_unit_test(gain_is_exact_and_leaves_the_original),
        cmocka_unit_test(a_gain_that_overflows_is_refused),
        cmocka_unit_test(resampling_keeps_the_frequency_response),
        cmocka_unit_test(resampling_refuses_impossible_rates),
        cmocka_unit_test(a_response_larger_than_memory_is_refused_with_the_sizes),
        cmocka_unit_test(a_response_of_one_frame_can_be_resampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
