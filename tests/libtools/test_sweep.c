/* A simulated measuring chain: a loudspeaker with known distortion, a microphone with a known response, a calibrator.
 * The computed distortion, response and levels follow from their construction. */
#include "check.h"
#include "files.h"
#include "harness.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/ir/object.h"
#include "libtools/room/sine_sweep.h"
#include "libtools/room/synth.h"
#include "oracle.h"

#include <math.h>

enum { STEP = (HARNESS_FEWER + 2) / 3 }; /* through cases that differ in numbers only */

static const double pi = 3.14159265358979323846;

/* A polynomial, and after it a filter of two taps. */
typedef struct chain {
    double square, cube, taps[2];
} chain;

static gpuconv_ir *make_ir(const float *samples, int64_t frames) {
    gpuconv_ir *ir = NULL;
    assert_int_equal(gpuconv_ir_new((const float *const[]){samples}, 1, frames, RATE, &ir, NULL), GPUCONV_OK);
    return ir;
}

static gpuconv_ir *make_sweep(double seconds, double from, double to) {
    const gc_sweep settings = {.rate = 48000, .seconds = seconds, .from = from, .to = to, .level = -6, .silence = 1};
    float *samples;
    int64_t frames;
    assert_int_equal(gc_sweep_samples(&settings, &samples, &frames, NULL), GPUCONV_OK);
    gpuconv_ir *ir = make_ir(samples, frames);
    free(samples);
    return ir;
}

/* Plays a sweep through a chain. */
static gpuconv_ir *record(const gpuconv_ir *sweep, const chain *c, int64_t delay) {
    const float *x = gc_ir_plane(sweep, 0);
    float *y = calloc((size_t)(sweep->frames + delay), sizeof *y);
    CHECK(y, "no memory");
    double before = 0;
    for (int64_t i = 0; i < sweep->frames; i++) {
        double in = (double)x[i], bent = in + c->square * in * in + c->cube * in * in * in;
        y[i + delay] = (float)(c->taps[0] * bent + c->taps[1] * before);
        before = bent;
    }
    gpuconv_ir *ir = make_ir(y, sweep->frames + delay);
    free(y);
    return ir;
}

static double filter_gain(const chain *c, double hz) {
    double w = 2 * pi * hz / RATE;
    return hypot(c->taps[0] + c->taps[1] * cos(w), c->taps[1] * sin(w));
}

/* Divides a recording and returns the distortion and the response. */
static float *solve(const gpuconv_ir *recording, const gpuconv_ir *sweep, const gc_microphone *microphone,
                    gc_distortion *distortion, gc_sweep_channel *found) {
    enum { FRAMES = 4800 };
    float *out = calloc(FRAMES, sizeof *out);
    CHECK(out, "no memory");
    const gc_microphone flat = {.sensitivity = (double)NAN};
    const gc_sweep_division division = {
        .frames = FRAMES, .microphone = microphone ? microphone : &flat, .distortion = distortion};
    assert_int_equal(gc_sweep_find(gc_ir_plane(recording, 0), recording->frames, sweep, found, NULL), GPUCONV_OK);
    assert_int_equal(gc_sweep_divide(recording, sweep, &division, &out, found, NULL), GPUCONV_OK);
    return out;
}

static void near(const char *what, double hz, double got, double want, double part) {
    CHECK(fabs(got - want) <= part * fabs(want), "%s at %g Hz is %g instead of %g", what, hz, got, want);
}

static void distortion_is_that_of_the_polynomial(void **state) {
    (void)state;
    static const chain chains[] = {{0.02, 0, {1, 0}}, {0, 0.05, {1, 0}}, {0.004, 0.003, {0.6, 0.4}}};
    const double peak = pow(10, -6.0 / 20); /* of the sweep */
    for (int k = STEP > 1 ? 2 : 0; k < COUNT(chains); k++)
        for (int length = 0; length < 1 + (k == 2 && STEP == 1);
             length++) { /* the last one has all that the others have */
            const chain *c = &chains[k];
            gpuconv_ir *sweep = make_sweep(length ? 8 : 2, length ? 10 : 40, 0), *recording = record(sweep, c, 1234);
            gc_distortion *d = calloc(1, sizeof *d);
            gc_sweep_channel found;
            CHECK(d, "no memory");
            free(solve(recording, sweep, NULL, d, &found));
            double first = 1 + 0.75 * c->cube * peak * peak;
            CHECK(d->points > 60, "only %d points", d->points);
            for (int i = 0; i < d->points; i++) {
                double hz = d->hz[i], gain = filter_gain(c, hz);
                if (hz < 150 || hz > 5000)
                    continue;
                double second = 50 * c->square * peak / first * filter_gain(c, 2 * hz) / gain;
                double third = 25 * c->cube * peak * peak / first * filter_gain(c, 3 * hz) / gain;
                near("level", hz, pow(10, d->level[i] / 20), first * gain, 0.005);
                if (c->square > 0)
                    near("H2", hz, d->harmonic[2][i], second, 0.01);
                if (c->cube > 0)
                    near("H3", hz, d->harmonic[3][i], third, 0.01);
                near("THD", hz, d->total[i], hypot(second, third), 0.01);
                CHECK(d->harmonic[4][i] < 0.003, "H4 at %g Hz is %g %%", hz, d->harmonic[4][i]);
                CHECK(hz < 400 || d->noise[i] < 0.01, "noise at %g Hz is %g %%", hz, d->noise[i]);
            }
            free(d);
            gpuconv_ir_free(sweep);
            gpuconv_ir_free(recording);
        }
}

static void growth_is_measured_and_other_signals_are_refused(void **state) {
    (void)state;
    static const double sweeps[][3] = {{1, 20, 20000}, {10, 10, 24000}, {3, 100, 2000}};
    for (int k = 0; k < COUNT(sweeps); k++) {
        gpuconv_ir *sweep = make_sweep(sweeps[k][0], sweeps[k][1], sweeps[k][2]);
        gc_sweep_growth g;
        assert_true(gc_sweep_measure_growth(sweep, &g));
        near("growth", 0, g.seconds, sweeps[k][0] / log(sweeps[k][2] / sweeps[k][1]), 0.003);
        near("first frequency", 0, g.from, sweeps[k][1], 0.02);
        near("last frequency", 0, g.to, sweeps[k][2], 0.01);
        gpuconv_ir_free(sweep);
    }
    float *linear = calloc(RATE, sizeof *linear);
    CHECK(linear, "no memory");
    for (int i = 0; i < RATE; i++)
        linear[i] = (float)sin(pi * 0.4 * i * (double)i / RATE);
    gpuconv_ir *sweep = make_ir(linear, RATE);
    gc_sweep_growth g;
    assert_false(gc_sweep_measure_growth(sweep, &g));
    gpuconv_ir_free(sweep);
    free(linear);
}

/* Writes a calibration file of the filter of a chain. */
static const char *write_calibration(const chain *c, const char *name) {
    const char *path = files_path("%s", name);
    FILE *file = fopen(path, "w");
    CHECK(file, "%s cannot be written", path);
    fputs("\"Sens Factor =-1.378dB, SERNO: 7001870\"\n* a comment\n", file);
    for (double hz = 5; hz < 24000; hz *= 1.05) {
        char line[80];
        (void)gc_format(line, sizeof line, "%.3f\t%.5f\t0.0\n", hz, 20 * log10(filter_gain(c, hz)));
        fputs(line, file);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

static void the_microphone_is_removed(void **state) {
    (void)state;
    const chain microphone = {0, 0, {1, 0.6}}; /* of minimum phase */
    const char *const files[] = {write_calibration(&microphone, "microphone.txt"), NULL};
    gpuconv_ir *sweep = make_sweep(4, 10, 0), *recording = record(sweep, &microphone, 100);
    gc_microphone *m = NULL;
    gc_sweep_channel found;
    assert_int_equal(gc_microphones_new(&(gc_microphone_files){.calibration = files}, 1, &m, NULL), GPUCONV_OK);
    CHECK(isnan(m->sensitivity), "a sensitivity without a calibrator");
    float *out = solve(recording, sweep, m, NULL, &found);
    CHECK(fabs((double)out[100] - 1) < 0.02, "the direct sound is %g", (double)out[100]);
    for (int i = 101; i < 4800; i++)
        CHECK(fabs((double)out[i]) < 0.02, "frame %d is %g", i, (double)out[i]);
    CHECK(!found.decays, "a cable decays");
    free(out);
    gc_microphones_free(m, 1);
    gpuconv_ir_free(sweep);
    gpuconv_ir_free(recording);
}

static gpuconv_status read_text(const char *text, gpuconv_error *error) {
    const char *const files[] = {files_path("calibration.txt"), NULL};
    FILE *file = fopen(files[0], "w");
    gc_microphone *m = NULL;
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0, "cannot write");
    gpuconv_status status = gc_microphones_new(&(gc_microphone_files){.calibration = files}, 2, &m, error);
    if (!status) {
        near("level", 10, gc_microphone_level(&m[1], 10), -3, 0);
        near("level", 200, gc_microphone_level(&m[1], 200), -1, 1e-9); /* half-way between 100 and 400 Hz */
        near("level", 20000, gc_microphone_level(&m[1], 20000), 1, 0);
    }
    gc_microphones_free(m, 2);
    return status;
}

static void calibration_files_are_read_or_refused(void **state) {
    (void)state;
    static const char *const good[] = {"100 -3\n400 1\n",
                                       "# c\n100,-3,0\r\n400,1,5",
                                       "Freq SPL\n\n  100\t-3\t12.5\n400\t1\tx\n",
                                       "100,00 -3,00\n400,00 1,00\n",
                                       "\"Sens Factor =-1.06dB, SERNO: 7\"\n100\t-3\n400\t1\n",
                                       "*1000Hz\t-40\n* (c)\n; x\n100,-3\n400,1\n",
                                       "\xEF\xBB\xBF"
                                       "100,00;-3,00;\r400,00;1,00;\r"};
    static const char *const bad[] = {"",
                                      "nothing\n",
                                      "100\n",
                                      "100 x\n",
                                      "400 1\n100 -3\n",
                                      "100 1\n100 2\n",
                                      "0 1\n",
                                      "-5 1\n",
                                      "100 1e9\n",
                                      "100 nan\n",
                                      "100 1\n1k 3\n",
                                      "100;\n",
                                      ";1\n",
                                      "100,00,-3,00\n400,00,1,00\n",
                                      "100 -3,5\n",
                                      "100,00, -3,00\n",
                                      "100 1\nend\n",
                                      "100\t1\n1.000,5\t3\n"};
    gpuconv_error error;
    for (int k = 0; k < COUNT(good); k++)
        CHECK(read_text(good[k], &error) == GPUCONV_OK, "'%s' is refused: %s", good[k], error.message);
    for (int k = 0; k < COUNT(bad); k++)
        CHECK(read_text(bad[k], &error) == GPUCONV_ERROR_FORMAT, "'%s' is read", bad[k]);
}

static void levels_are_those_of_the_calibrator(void **state) {
    (void)state;
    const char *path = files_path("calibrator.wav");
    const double rms = 0.05; /* at 94 dB SPL */
    guarded tone = guarded_new(1, 3 * RATE);
    for (int i = 0; i < 3 * RATE; i++)
        tone.channel[0][i] =
            (float)(rms * sqrt(2) * sin(2 * pi * 1000.3 * i / RATE) + 0.002 * sin(2 * pi * 50 * i / RATE));
    files_write(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &tone);
    gc_microphone *m = NULL;
    const gc_microphone_files files = {.calibrator = path, .level = 94};
    assert_int_equal(gc_microphones_new(&files, 2, &m, NULL), GPUCONV_OK);
    for (int k = 0; k < 2; k++)
        CHECK(fabs(m[k].sensitivity - (94 - 20 * log10(rms))) < 0.01, "sensitivity %g", m[k].sensitivity);
    gpuconv_ir *sweep = make_sweep(4, 10, 0), *recording = record(sweep, &(chain){.taps = {0.5, 0}}, 777);
    gc_sweep_channel found;
    free(solve(recording, sweep, m, NULL, &found));
    double want = 94 - 20 * log10(rms) - 6 + 20 * log10(0.5) - 10 * log10(2); /* a sine of -6 dBFS peak, halved */
    CHECK(fabs(found.level + found.sensitivity - want) < 0.05, "%g dB SPL instead of %g",
          found.level + found.sensitivity, want);
    gc_microphones_free(m, 2);
    for (int i = 0; i < 3 * RATE; i++) /* noise is no tone */
        tone.channel[0][i] = (float)(rand() % 1000) * 1e-4F;
    files_write(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &tone);
    assert_int_equal(gc_microphones_new(&files, 1, &m, NULL), GPUCONV_ERROR_FORMAT);
    gc_microphones_free(m, 1);
    guarded_free(&tone);
    gpuconv_ir_free(sweep);
    gpuconv_ir_free(recording);
}

/* Passes a signal through a second-order filter (Butterworth): above a frequency, or below it if it is negative. */
static void filter_in_place(float *x, int64_t n, double hz) {
    const double w = 2 * pi * fabs(hz) / RATE, alpha = sin(w) / sqrt(2), c = cos(w), sign = hz > 0 ? 1 : -1;
    const double b = (1 + sign * c) / 2 / (1 + alpha), a1 = -2 * c / (1 + alpha), a2 = (1 - alpha) / (1 + alpha);
    double s1 = 0, s2 = 0;
    for (int64_t i = 0; i < n; i++) {
        const double in = (double)x[i], out = b * in + s1;
        s1 = -2 * sign * b * in - a1 * out + s2;
        s2 = b * in - a2 * out;
        x[i] = (float)out;
    }
}

/* Records a sweep in a room of some reflections, with a recorder whose clock drifts and which loses frames.
 * @param lost frames that are missing from frame `place` on; negative: inserted as silence
 * @param band filters of the loudspeaker, as filter_in_place has them, ended by 0; NULL: none */
static gpuconv_ir *record_late(double seconds, double drift, int64_t lost, int64_t place, const double *band) {
    const gc_sweep s = {.seconds = seconds, .from = 20, .to = 20000};
    const int64_t n = (int64_t)((seconds + 1) * RATE);
    const double grow = log(s.to / s.from);
    float *dry = calloc((size_t)n, 2 * sizeof *dry), *y = dry + n;
    CHECK(dry, "no memory");
    for (int64_t i = 0; i < n; i++) {
        const double t = ((double)i / RATE - 0.01) / (1 + 1e-6 * drift);
        if (t >= 0 && t < seconds)
            dry[i] = (float)(0.3 * sin(2 * pi * s.from * seconds / grow * expm1(t / seconds * grow)));
    }
    for (; band && *band != 0; band++)
        filter_in_place(dry, n, *band);
    oracle_random random = {.state = 7};
    for (int k = 0; k < 60; k++) {
        const int64_t delay = k ? 100 + 400 * k + (int64_t)(150 * (double)oracle_uniform(&random)) : 0;
        const double gain = k ? 0.6 * (double)oracle_uniform(&random) * exp(-0.05 * k) : 1;
        for (int64_t i = gc_max(0, delay); i < n; i++) {
            const int64_t from = i - delay + (i >= place ? lost : 0);
            if (from >= 0 && from < n && (lost >= 0 || i < place || i >= place - lost))
                y[i] += (float)gain * dry[from];
        }
    }
    gpuconv_ir *ir = make_ir(y, n);
    free(dry);
    return ir;
}

static void drift_and_lost_frames_are_found(void **state) {
    (void)state;
    static const struct {
        double seconds, drift;
        int64_t lost;
        double place, band[5];
    } all[] = {{4, -300, 0, 0, {0}},
               {4, 0, 0, 0, {0}},
               {4, 0, 64, 3.2, {0}},
               {4, 0, -128, 3.4, {0}},
               {4, 0, -200, 2.4, {300, 300, -3400, -3400}},
               {4, 0, 144, 2.4, {300, -3400}}};
    for (int k = 0; k < COUNT(all); k += STEP) {
        gpuconv_ir *sweep = make_sweep(all[k].seconds, 20, 20000);
        gpuconv_ir *recording =
            record_late(all[k].seconds, all[k].drift, all[k].lost, (int64_t)(all[k].place * RATE), all[k].band);
        gc_sweep_channel found;
        free(solve(recording, sweep, NULL, NULL, &found));
        const gc_sweep_timing *t = &found.timing;
        CHECK(fabs(t->drift - all[k].drift) <= 0.1 * fabs(all[k].drift), "%g ppm instead of %g", t->drift,
              all[k].drift);
        CHECK(llabs((long long)(t->lost - all[k].lost)) <= (all[k].lost ? 2 : 0), "%lld frames lost instead of %lld",
              (long long)t->lost, (long long)all[k].lost);
        CHECK(!t->lost || fabs(t->place - all[k].place) < 0.1, "frames lost at %g s instead of %g", t->place,
              all[k].place);
        gpuconv_ir_free(sweep);
        gpuconv_ir_free(recording);
    }
}

/* Loudspeakers and microphones of a limited band delay its ends, as neither drift nor lost frames do. */
static void band_limits_are_neither_drift_nor_lost_frames(void **state) {
    (void)state;
    static const double bands[][5] = {
        {-500}, {-2000, -2000}, {500, -2000}, {300, -3400}, {1000, 1000}, {25, -120, -120}, {100, 100, -1000, -1000}};
    gpuconv_ir *sweep = make_sweep(3, 20, 20000);
    for (int k = 0; k < COUNT(bands); k += HARNESS_FEWER) {
        gpuconv_ir *recording = record_late(3, 0, 0, 0, bands[k]);
        gc_sweep_channel found;
        free(solve(recording, sweep, NULL, NULL, &found));
        CHECK(found.timing.drift == 0 && found.timing.lost == 0, "band %d: %g ppm, %lld frames lost", k,
              found.timing.drift, (long long)found.timing.lost);
        gpuconv_ir_free(recording);
    }
    gpuconv_ir_free(sweep);
}

/* A plate and a spring delay each frequency otherwise, as neither drift nor lost frames do. */
static void dispersion_is_neither_drift_nor_lost_frames(void **state) {
    (void)state;
    static const gc_synth_kind kinds[] = {GC_SYNTH_PLATE, GC_SYNTH_PLATE, GC_SYNTH_SPRING};
    for (int k = STEP > 1; k < COUNT(kinds); k++) { /* the first has the most modes */
        gc_synth synth = gc_synth_default();
        synth.kind = kinds[k];
        if (k == 1) {
            synth.size[0] = 1;
            synth.size[1] = 0.5;
        }
        const char *path = files_path("dispersion.wav");
        gpuconv_ir *ir = NULL;
        assert_int_equal(gc_synth_write(&synth, path, NULL), GPUCONV_OK);
        assert_int_equal(gpuconv_ir_load(path, &ir, NULL), GPUCONV_OK);
        gpuconv_ir *mono = make_ir(gc_ir_plane(ir, 0), gpuconv_ir_frames(ir)), *recording = NULL;
        gpuconv_ir *sweep = make_sweep(3, 10, 24000);
        assert_int_equal(gpuconv_ir_series(sweep, mono, &recording, NULL), GPUCONV_OK);
        gc_sweep_channel found;
        free(solve(recording, sweep, NULL, NULL, &found));
        CHECK(found.timing.drift == 0 && found.timing.lost == 0, "case %d: %g ppm, %lld frames lost", k,
              found.timing.drift, (long long)found.timing.lost);
        gpuconv_ir_free(sweep);
        gpuconv_ir_free(recording);
        gpuconv_ir_free(mono);
        gpuconv_ir_free(ir);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distortion_is_that_of_the_polynomial),
        cmocka_unit_test(growth_is_measured_and_other_signals_are_refused),
        cmocka_unit_test(drift_and_lost_frames_are_found),
        cmocka_unit_test(band_limits_are_neither_drift_nor_lost_frames),
        cmocka_unit_test(dispersion_is_neither_drift_nor_lost_frames),
        cmocka_unit_test(the_microphone_is_removed),
        cmocka_unit_test(calibration_files_are_read_or_refused),
        cmocka_unit_test(levels_are_those_of_the_calibrator),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
