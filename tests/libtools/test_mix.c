/* Tests mixing against sums in double precision, for several channels and lengths that are no multiple of anything. */
#include "check.h"
#include "harness.h"

#include "libtools/batch/run/task.h"

#include <math.h>

enum { CHANNELS = 3, FRAMES = 1003, RATE = 16000 };

static oracle_random random_state = {4};

static const float *const *rows_of(const guarded *g) {
    return (const float *const *)g->channel;
}

/* Returns a mix of random samples, which *copy holds too, channel after channel. */
static gc_mix random_mix(int64_t frames, double *copy) {
    gc_mix m;
    gpuconv_error error = {0};
    assert_int_equal(gc_mix_new(&m, CHANNELS, frames, RATE, &error), GPUCONV_OK);
    for (int c = 0; c < CHANNELS; c++) {
        oracle_fill(&random_state, m.row[c], frames);
        for (int64_t i = 0; i < frames; i++)
            copy[c * frames + i] = (double)m.row[c][i];
    }
    return m;
}

static void check_mix(const char *what, const gc_mix *m, const double *want, double bound) {
    for (int c = 0; c < m->channels; c++)
        for (int64_t i = 0; i < m->frames; i++)
            CHECK(fabs((double)m->row[c][i] - want[c * m->frames + i]) <= bound,
                  "%s: channel %d, frame %lld: %g, not %g", what, c, (long long)i, (double)m->row[c][i],
                  want[c * m->frames + i]);
}

static double mean_power(const double *x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return count > 0 ? sum / (double)count : 0;
}

static void a_new_mix_is_silent(void **state) {
    static const double silence[CHANNELS * FRAMES];
    gc_mix m;
    gpuconv_error error = {0};
    (void)state;
    assert_int_equal(gc_mix_new(&m, CHANNELS, FRAMES, RATE, &error), GPUCONV_OK);
    assert_int_equal(m.rate, RATE);
    check_mix("new", &m, silence, 0);
    gc_mix_free(&m);
}

static void rows_are_added_channel_by_channel_up_to_the_end_of_the_mix(void **state) {
    static const int64_t starts[] = {0, 1, 500, FRAMES - 1, FRAMES, FRAMES + 7},
                         lengths[] = {1, 301, FRAMES, 2 * FRAMES};
    static double want[CHANNELS * FRAMES];
    gc_mix m = random_mix(FRAMES, want);
    (void)state;
    for (int s = 0; s < COUNT(starts); s++)
        for (int l = 0; l < COUNT(lengths); l++) {
            guarded g = guarded_random(&random_state, CHANNELS, lengths[l]);
            gc_mix_add(&m, rows_of(&g), lengths[l], starts[s]);
            for (int c = 0; c < CHANNELS; c++)
                for (int64_t i = starts[s]; i < FRAMES && i < starts[s] + lengths[l]; i++)
                    want[c * FRAMES + i] += (double)g.channel[c][i - starts[s]];
            guarded_free(&g);
        }
    check_mix("sum", &m, want, 2e-5);
    gc_mix_free(&m);
}

static void the_mean_power_is_that_of_all_channels_and_frames(void **state) {
    (void)state;
    for (int channels = 1; channels <= CHANNELS; channels++)
        for (int64_t frames = 0; frames < 11; frames++) {
            double copy[CHANNELS * 11];
            guarded g = guarded_random(&random_state, channels, frames ? frames : 1);
            for (int c = 0; c < channels; c++)
                for (int64_t i = 0; i < frames; i++)
                    copy[c * frames + i] = (double)g.channel[c][i];
            const double want = mean_power(copy, channels * frames), got = gc_mean_power(rows_of(&g), channels, frames);
            CHECK(fabs(got - want) <= 1e-12, "%d channels of %lld frames: %g, not %g", channels, (long long)frames, got,
                  want);
            guarded_free(&g);
        }
}

/* Adds noise of some channels from a frame on, and compares with the formula. */
static void check_noise(int channels, int64_t noise_frames, int64_t from, double snr) {
    static double want[CHANNELS * FRAMES], n[CHANNELS * FRAMES];
    gc_mix m = random_mix(FRAMES, want);
    guarded taps = guarded_random(&random_state, channels, noise_frames);
    gpuconv_ir *noise = harness_ir(&taps, RATE);
    gpuconv_error error = {0};
    bool silent = true;
    for (int c = 0; c < CHANNELS; c++)
        for (int64_t i = 0; i < FRAMES; i++)
            n[c * FRAMES + i] = (double)taps.channel[channels == 1 ? 0 : c][(from + i) % noise_frames];
    const double factor =
        sqrt(mean_power(want, CHANNELS * FRAMES) / mean_power(n, CHANNELS * FRAMES)) * pow(10, -snr / 20);
    for (int i = 0; i < CHANNELS * FRAMES; i++)
        want[i] += factor * n[i];
    assert_int_equal(gc_mix_add_noise(&m, noise, from, snr, &silent, &error), GPUCONV_OK);
    assert_false(silent);
    check_mix("noise", &m, want, 1e-5 * (1 + factor));
    gpuconv_ir_free(noise);
    guarded_free(&taps);
    gc_mix_free(&m);
}

static void noise_has_its_snr_over_all_channels(void **state) {
    (void)state;
    check_noise(1, 400, 0, 6);
    check_noise(1, 400, 399, -6);
    check_noise(CHANNELS, 271, 13, 0);
    check_noise(CHANNELS, 3 * FRAMES, 2 * FRAMES + 500, 20);
    check_noise(CHANNELS, 1, 0, 10);
}

static void silence_gets_no_noise_and_other_channels_are_refused(void **state) {
    double copy[CHANNELS * 8];
    gc_mix m = random_mix(8, copy);
    gpuconv_error error = {0};
    bool silent = false;
    (void)state;
    guarded zero = guarded_new(1, 5), two = guarded_random(&random_state, 2, 5);
    memset(zero.channel[0], 0, 5 * sizeof(float));
    gpuconv_ir *nothing = harness_ir(&zero, RATE), *pair = harness_ir(&two, RATE);
    assert_int_equal(gc_mix_add_noise(&m, nothing, 2, 0, &silent, &error), GPUCONV_OK);
    assert_true(silent);
    check_mix("silent noise", &m, copy, 0);
    assert_int_equal(gc_mix_add_noise(&m, pair, 0, 0, &silent, &error), GPUCONV_ERROR_FORMAT);
    check_mix("two channels", &m, copy, 0);
    gpuconv_ir_free(nothing);
    gpuconv_ir_free(pair);
    guarded_free(&zero);
    guarded_free(&two);
    gc_mix_free(&m);
}

/* Compares the factor for a level with `want`. */
static void check_level(const gc_mix *m, gc_level_kind kind, double decibels, double input_power, double want) {
    gpuconv_error error = {0};
    double factor = NAN;
    assert_int_equal(gc_mix_find_level(m, kind, decibels, input_power, &factor, &error), GPUCONV_OK);
    CHECK(fabs(factor - want) <= 1e-6 * want, "level %d: factor %g, not %g", (int)kind, factor, want);
}

static void levels_are_those_of_all_channels(void **state) {
    static double copy[CHANNELS * FRAMES];
    gc_mix m = random_mix(FRAMES, copy);
    (void)state;
    for (int c = 0; c < CHANNELS; c++) { /* the peak is negative and in each channel in turn */
        m.row[c][17 * c + 3] = (float)(-2 - c);
        copy[c * FRAMES + 17 * c + 3] = -2 - c;
        check_level(&m, GC_LEVEL_PEAK, -6, 0, pow(10, -6.0 / 20) / (2 + c));
    }
    const double rms = sqrt(mean_power(copy, CHANNELS * FRAMES));
    check_level(&m, GC_LEVEL_NONE, -6, 0, 1);
    check_level(&m, GC_LEVEL_RMS, -20, 0, 0.1 / rms);
    check_level(&m, GC_LEVEL_INPUT, 6, 0.25, pow(10, 6.0 / 20) * 0.5 / rms);
    check_level(&m, GC_LEVEL_INPUT, 6, 0, 1);
    gc_mix_scale(&m, 0.3);
    for (int i = 0; i < CHANNELS * FRAMES; i++)
        copy[i] *= 0.3;
    check_mix("scaled", &m, copy, 1e-7);
    gc_mix_scale(&m, 0);
    check_level(&m, GC_LEVEL_PEAK, -6, 0, 1);
    check_level(&m, GC_LEVEL_RMS, -6, 0, 1);
    gpuconv_error error = {0};
    double factor;
    assert_int_equal(gc_mix_find_level(&m, GC_LEVEL_LOUDNESS, -23, 0, &factor, &error), GPUCONV_ERROR_FORMAT);
    gc_mix_free(&m);
}

/* Two channels that are alike are 3.01 dB louder than one of them (BS.1770 adds the powers of channels). */
static void the_loudness_is_that_of_all_channels(void **state) {
    static double copy[CHANNELS * RATE];
    gpuconv_error error = {0};
    double one, two;
    gc_mix m = random_mix(RATE, copy);
    (void)state;
    memcpy(m.row[1], m.row[0], RATE * sizeof(float));
    m.channels = 1;
    assert_int_equal(gc_mix_find_level(&m, GC_LEVEL_LOUDNESS, -23, 0, &one, &error), GPUCONV_OK);
    m.channels = 2;
    assert_int_equal(gc_mix_find_level(&m, GC_LEVEL_LOUDNESS, -23, 0, &two, &error), GPUCONV_OK);
    CHECK(fabs(one / two - sqrt(2)) < 1e-6, "factors %g and %g", one, two);
    gc_mix_free(&m);
}

static void the_tail_ends_behind_the_last_audible_frame_of_any_channel(void **state) {
    double copy[CHANNELS * 20];
    gc_mix m = random_mix(20, copy);
    (void)state;
    for (int c = 0; c < CHANNELS; c++)
        for (int i = 0; i < 20; i++)
            m.row[c][i] = i == 5 + 4 * c ? -0.5F : 0.125F;
    const float *const *row = (const float *const *)m.row;
    assert_int_equal(gc_audible_frames(row, CHANNELS, 20, 0, 0.25), 14);
    assert_int_equal(gc_audible_frames(row, CHANNELS - 1, 20, 0, 0.25), 10);
    assert_int_equal(gc_audible_frames(row, CHANNELS, 20, 0, 0.5), 14); /* the floor itself is audible */
    assert_int_equal(gc_audible_frames(row, CHANNELS, 20, 3, 0.75), 3);
    assert_int_equal(gc_audible_frames(row, CHANNELS, 20, 17, 0.25), 17);
    assert_int_equal(gc_audible_frames(row, CHANNELS, 20, 30, 0.25), 20);
    assert_int_equal(gc_audible_frames(row, CHANNELS, 20, 0, 0.1), 20);
    m.row[1][18] = NAN;
    assert_int_equal(gc_audible_frames(row, CHANNELS, 20, 0, 0.25), 19);
    gc_mix_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_mix_is_silent),
        cmocka_unit_test(rows_are_added_channel_by_channel_up_to_the_end_of_the_mix),
        cmocka_unit_test(the_mean_power_is_that_of_all_channels_and_frames),
        cmocka_unit_test(noise_has_its_snr_over_all_channels),
        cmocka_unit_test(silence_gets_no_noise_and_other_channels_are_refused),
        cmocka_unit_test(levels_are_those_of_all_channels),
        cmocka_unit_test(the_loudness_is_that_of_all_channels),
        cmocka_unit_test(the_tail_ends_behind_the_last_audible_frame_of_any_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
