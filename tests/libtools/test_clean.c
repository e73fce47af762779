/* Cleaning of responses (libtools/room/clean.h): decays with noise, hum and offset added, against those without. */
#include "check.h"
#include "gpuconv.h"
#include "harness.h"
#include "libgpuconv/ir/object.h"
#include "libtools/room/clean.h"
#include "oracle.h"

#include <math.h>

enum { RATE = 48000, ONSET = 300 };

static const double pi = 3.14159265358979323846;

/* What is added to a decay. */
typedef struct dirt {
    double noise, offset, hum; /* dB of noise below the decay's beginning (0: none); amplitudes */
    double direct;             /* amplitude of the direct sound, if it is more than 1 */
} dirt;

/* Returns a decay of `time` seconds with what is added. */
static gpuconv_ir *decay(double time, dirt d) {
    oracle_random random = {.state = 5}, other = {.state = 77};
    const int64_t frames = (int64_t)((1.3 * time + 0.5) * RATE);
    gpuconv_ir *ir = gc_ir_blank(1, 1, 1, 1, frames, RATE);
    CHECK(ir, "no memory");
    for (int64_t n = 0; n < frames; n++) {
        const double t = (double)(n - ONSET) / RATE;
        double x = n < ONSET    ? 0
                   : n == ONSET ? fmax(1, d.direct)
                                : 0.3 * (double)oracle_uniform(&random) * pow(10, -3 * t / time);
        x += d.noise < 0 ? 0.3 * (double)oracle_uniform(&other) * pow(10, d.noise / 20) : 0;
        ir->taps[n] = (float)(x + d.offset + d.hum * (sin(2 * pi * 50.02 * t) + 0.5 * sin(2 * pi * 150.06 * t + 1)));
    }
    return ir;
}

static gpuconv_ir *clean(const gpuconv_ir *ir, gc_clean_options o, gc_clean_channel *channel) {
    gpuconv_ir *made;
    gc_clean_channel *c;
    gpuconv_error error = {0};
    CHECK(gc_clean(ir, &o, &made, &c, &error) == GPUCONV_OK, "not cleaned: %s", error.message);
    *channel = *c;
    free(c);
    return made;
}

static double time_of(const gpuconv_ir *ir) {
    gc_acoustics a;
    assert_true(gc_acoustics_of(ir->taps, ir->frames, RATE, 0, &a, NULL));
    return a.t30;
}

static void a_decay_goes_on_behind_its_noise_and_nothing_changes_before(void **state) {
    (void)state;
    static const double noises[] = {-35, -45, -60}, times[] = {0.5, 1, 0.3};
    for (int k = 0; k < COUNT(noises); k++) {
        const double time = times[k];
        gc_clean_channel c;
        gpuconv_ir *want = decay(time, (dirt){0}), *noisy = decay(time, (dirt){.noise = noises[k]});
        gpuconv_ir *made = clean(noisy, (gc_clean_options){0}, &c);
        CHECK(fabs(time_of(made) / time_of(want) - 1) < 0.03, "T30 is %g s, of the clean response %g s", time_of(made),
              time_of(want));
        CHECK(c.from > ONSET / (double)RATE + 0.1 * time && c.offset == 0 && c.hum == 0, "from %g s, %g, %g", c.from,
              c.offset, c.hum);
        assert_memory_equal(made->taps, noisy->taps, (size_t)(c.from * RATE) * sizeof(float));
        const int64_t last = made->frames - RATE / 20;
        double end = 0;
        for (int64_t n = last; n < made->frames; n++)
            end = fmax(end, fabs((double)made->taps[n]));
        CHECK(end < 0.1 * 0.3 * pow(10, noises[k] / 20), "noise of %g is left at the end", end);
        gpuconv_ir_free(want);
        gpuconv_ir_free(noisy);
        gpuconv_ir_free(made);
    }
}

/* Twenty decays with noise at 30 to 60 dB have their decay times again. */
static void decay_times_of_twenty_noisy_decays_return_within_three_per_cent(void **state) {
    (void)state;
    static const double noises[] = {-30, -40, -50, -60}, times[] = {0.3, 0.4, 0.5, 0.8, 1.2};
    for (int k = 0; k<COUNT(noises) * COUNT(times); k += HARNESS_FEWER> 1 ? 7 : 1) {
        gc_clean_channel c;
        gpuconv_ir *want = decay(times[k / 4], (dirt){0}), *noisy = decay(times[k / 4], (dirt){.noise = noises[k % 4]});
        gpuconv_ir *made = clean(noisy, (gc_clean_options){0}, &c);
        const double off = time_of(made) / time_of(want) - 1;
        CHECK(fabs(off) < 0.03, "%g s, noise of %g dB: T30 is off by %.2f %%", times[k / 4], noises[k % 4], 100 * off);
        gpuconv_ir_free(want);
        gpuconv_ir_free(noisy);
        gpuconv_ir_free(made);
    }
}

/* Noise 26 dB below a decay whose direct sound makes the first 10 dB steep: octaves whose decay stands out of the noise
 * go on as they fall behind the direct sound, the others stay. */
static void a_decay_little_above_its_noise_is_measured_behind_the_direct_sound(void **state) {
    (void)state;
    gc_clean_channel c;
    int replaced = 0;
    gpuconv_ir *noisy = decay(0.8, (dirt){.noise = -26, .direct = 12}), *made = clean(noisy, (gc_clean_options){0}, &c);
    for (int k = 0; k < c.bands; k++)
        if (!isnan(c.band[k].from)) {
            replaced++;
            CHECK(fabs(c.band[k].time / 0.8 - 1) < 0.2, "%g Hz: %g s, of 0.8", c.band[k].nominal, c.band[k].time);
        }
    CHECK(replaced >= 3, "%d octaves were replaced", replaced);
    gpuconv_ir_free(noisy);
    gpuconv_ir_free(made);
}

static void a_response_without_noise_stays_bit_for_bit(void **state) {
    (void)state;
    gc_clean_channel c;
    gpuconv_ir *ir = decay(0.4, (dirt){0}), *made = clean(ir, (gc_clean_options){0}, &c);
    assert_memory_equal(made->taps, ir->taps, (size_t)ir->frames * sizeof(float));
    assert_true(isnan(c.from));
    gpuconv_ir_free(ir);
    gpuconv_ir_free(made);
}

static void hum_and_offset_are_subtracted(void **state) {
    (void)state;
    gc_clean_channel c;
    const dirt noise = {.noise = -60}, all = {.noise = -60, .offset = 0.002, .hum = 0.004};
    gpuconv_ir *want = decay(0.5, noise), *ir = decay(0.5, all), *made = clean(ir, (gc_clean_options){0}, &c);
    CHECK(fabs(c.offset - 0.002) < 2e-5 && fabs(c.hum - 50.02) < 0.01, "offset %g, hum of %g Hz", c.offset, c.hum);
    double before = 0, after = 0;
    for (int64_t n = 0; n < (int64_t)(c.from * RATE); n++) { /* before noise is replaced */
        before += pow((double)ir->taps[n] - (double)want->taps[n], 2);
        after += pow((double)made->taps[n] - (double)want->taps[n], 2);
    }
    CHECK(10 * log10(after / before) < -30, "%.1f dB of hum and offset are left", 10 * log10(after / before));
    gpuconv_ir_free(want);
    gpuconv_ir_free(ir);
    gpuconv_ir_free(made);
}

static void the_tail_is_cut_or_made_longer_as_asked(void **state) {
    (void)state;
    gc_clean_channel c;
    gpuconv_ir *ir = decay(0.5, (dirt){.noise = -40});
    gpuconv_ir *cut = clean(ir, (gc_clean_options){.cut = true}, &c);
    for (int64_t n = cut->frames - RATE / 10; n < cut->frames; n++)
        CHECK(fabsf(cut->taps[n]) < 1e-5F, "frame %d is %g", (int)n, (double)cut->taps[n]);
    gpuconv_ir *longer = clean(ir, (gc_clean_options){.seconds = 2}, &c);
    CHECK(longer->frames == 2 * RATE, "%d frames", (int)longer->frames);
    gpuconv_error error = {0};
    gc_clean_channel *none;
    gpuconv_ir *made;
    assert_int_equal(gc_clean(ir, &(gc_clean_options){.seconds = 0.1}, &made, &none, &error), GPUCONV_ERROR_ARGUMENT);
    gpuconv_ir_free(ir);
    gpuconv_ir_free(cut);
    gpuconv_ir_free(longer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decay_goes_on_behind_its_noise_and_nothing_changes_before),
        cmocka_unit_test(decay_times_of_twenty_noisy_decays_return_within_three_per_cent),
        cmocka_unit_test(a_decay_little_above_its_noise_is_measured_behind_the_direct_sound),
        cmocka_unit_test(a_response_without_noise_stays_bit_for_bit),
        cmocka_unit_test(hum_and_offset_are_subtracted),
        cmocka_unit_test(the_tail_is_cut_or_made_longer_as_asked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
