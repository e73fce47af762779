/* Levels of impulse responses: normalisation reaches its target, silence does not change it, and the dry input is mixed
 * in at time zero. */
#include "harness.h"
#include "libgpuconv/ir/object.h"

#include <math.h>

static gpuconv_ir *normalized(const gpuconv_ir *ir, gpuconv_normalize how, double *decibels) {
    gpuconv_ir *done;
    gpuconv_error error = {0};
    CHECK(gpuconv_ir_normalize(ir, how, decibels, &done, &error) == GPUCONV_OK, "%s", error.message);
    return done;
}

static void normalisation_reaches_its_target(void **state) {
    (void)state;
    guarded taps;
    gpuconv_ir *ir = harness_random_ir(4, 900, &taps), *routed, *done;
    assert_int_equal(gpuconv_ir_route(ir, 2, &routed, NULL), GPUCONV_OK); /* two routes into each output */
    double decibels;
    for (int how = GPUCONV_NORMALIZE_PEAK; how <= GPUCONV_NORMALIZE_ENERGY; how++) {
        done = normalized(routed, (gpuconv_normalize)how, &decibels);
        double most = 0;
        for (int o = 0; o < 2; o++) {
            double sum = 0;
            for (int i = 0; i < 2; i++)
                for (int n = 0; n < 900; n++) {
                    double t = fabs((double)gpuconv_ir_taps(done, i, o)[n]);
                    sum =
                        how == GPUCONV_NORMALIZE_PEAK ? fmax(sum, t) : sum + (how == GPUCONV_NORMALIZE_L1 ? t : t * t);
                }
            most = fmax(most, sum);
        }
        CHECK(fabs(most - 1) < 1e-5, "target %d: %g instead of 1", how, most);
        double ratio = (double)gpuconv_ir_taps(done, 1, 0)[5] / (double)gpuconv_ir_taps(routed, 1, 0)[5];
        CHECK(fabs(20 * log10(ratio) - decibels) < 1e-3, "target %d: says %g dB", how, decibels);
        harness_check_history(done, "normalised by");
        gpuconv_ir_free(done);
    }
    done = normalized(routed, GPUCONV_NORMALIZE_NONE, &decibels);
    assert_true(decibels == 0);
    assert_memory_equal(gpuconv_ir_taps(done, 0, 1), gpuconv_ir_taps(routed, 0, 1), 900 * sizeof(float));
    gpuconv_ir_free(done);
    gpuconv_ir_free(routed);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

static void loudness_undoes_a_plain_gain_and_weights_bass_less(void **state) {
    (void)state;
    guarded taps = guarded_new(1, 2);
    taps.channel[0][0] = 0.125f;
    taps.channel[0][1] = 0;
    gpuconv_ir *ir = harness_ir(&taps, 48000), *done;
    double decibels, low;
    done = normalized(ir, GPUCONV_NORMALIZE_LOUDNESS, &decibels);
    CHECK(fabs(decibels - 20 * log10(8)) < 1e-3, "%g dB for a gain of 1/8", decibels);
    gpuconv_ir_free(done);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
    taps =
        guarded_new(1, 4800); /* a low-pass filter of unit energy, which the high-pass filter of BS.1770 attenuates */
    double energy = 0;
    for (int i = 0; i < 4800; i++) {
        taps.channel[0][i] = (float)exp(-i / 400.0);
        energy += exp(-i / 200.0);
    }
    for (int i = 0; i < 4800; i++)
        taps.channel[0][i] /= (float)sqrt(energy);
    ir = harness_ir(&taps, 48000);
    done = normalized(ir, GPUCONV_NORMALIZE_LOUDNESS, &low);
    gpuconv_ir_free(done);
    done = normalized(ir, GPUCONV_NORMALIZE_ENERGY, &decibels);
    gpuconv_ir_free(done);
    CHECK(fabs(low - decibels) > 0.5, "loudness %g dB and energy %g dB are the same", low, decibels);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

static void silence_at_either_end_does_not_change_the_normalisation(void **state) {
    (void)state;
    guarded taps;
    gpuconv_ir *ir = harness_random_ir(2, 700, &taps);
    guarded padded = guarded_new(2, 2000);
    for (int c = 0; c < 2; c++) {
        memset(padded.channel[c], 0, 2000 * sizeof(float));
        memcpy(padded.channel[c] + 300, taps.channel[c], 700 * sizeof(float));
    }
    gpuconv_ir *longer = harness_ir(&padded, 48000);
    for (int how = GPUCONV_NORMALIZE_PEAK; how <= GPUCONV_NORMALIZE_LOUDNESS; how++) {
        double a, b;
        gpuconv_ir_free(normalized(ir, (gpuconv_normalize)how, &a));
        gpuconv_ir_free(normalized(longer, (gpuconv_normalize)how, &b));
        CHECK(fabs(a - b) < 1e-9, "target %d: %.12g and %.12g dB", how, a, b);
    }
    gpuconv_ir_free(ir);
    gpuconv_ir_free(longer);
    guarded_free(&taps);
    guarded_free(&padded);
    guarded silent = guarded_new(1, 4);
    memset(silent.channel[0], 0, 4 * sizeof(float));
    ir = harness_ir(&silent, 48000);
    gpuconv_ir *done;
    for (int how = GPUCONV_NORMALIZE_PEAK; how <= GPUCONV_NORMALIZE_LOUDNESS; how++)
        assert_int_equal(gpuconv_ir_normalize(ir, (gpuconv_normalize)how, NULL, &done, NULL), GPUCONV_ERROR_FORMAT);
    assert_int_equal(gpuconv_ir_normalize(ir, (gpuconv_normalize)77, NULL, &done, NULL), GPUCONV_ERROR_ARGUMENT);
    gpuconv_ir_free(ir);
    guarded_free(&silent);
}

static void the_dry_input_is_added_at_time_zero(void **state) {
    (void)state;
    guarded taps;
    gpuconv_ir *ir = harness_random_ir(1, 200, &taps), *aligned, *routed, *mixed;
    assert_int_equal(gpuconv_ir_align(ir, GPUCONV_ALIGN_PEAK, &aligned, NULL), GPUCONV_OK);
    int64_t lead = gpuconv_ir_lead(aligned);
    assert_true(lead > 0);
    assert_int_equal(gpuconv_ir_route(aligned, 3, &routed, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_ir_mix(routed, -6, -20, &mixed, NULL), GPUCONV_OK);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 200; i++) {
            double want = pow(10, -6 / 20.0) * (double)taps.channel[0][i] + (i == lead ? 0.1 : 0);
            assert_true(fabs((double)gpuconv_ir_taps(mixed, c, c)[i] - want) < 1e-6);
        }
    assert_int_equal(gpuconv_ir_lead(mixed), lead);
    gpuconv_ir_free(mixed);
    gpuconv_ir_free(routed);
    gpuconv_ir_free(aligned);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalisation_reaches_its_target),
        cmocka_unit_test(loudness_undoes_a_plain_gain_and_weights_bass_less),
        cmocka_unit_test(silence_at_either_end_does_not_change_the_normalisation),
        cmocka_unit_test(the_dry_input_is_added_at_time_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
