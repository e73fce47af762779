/* Checks responses from SOFA files against what libmysofa reads: every direction of a set, beds of loudspeakers,
 * ambisonics, delays, and a turned head. The expected sums are in double precision. */
#include "harness.h"

#include "libgpuconv/core/number.h"
#include "libgpuconv/ir/ambisonic.h"
#include "libgpuconv/ir/spatial.h"

#include <math.h>
#include <mysofa.h>
#include <unistd.h>

static const char *const head_file = TESTS_SOURCE "/tests/sofa/head.sofa";
static const char *const order_file = TESTS_SOURCE "/tests/sofa/order2.sofa";
static const char *const delays_file = TESTS_SOURCE "/tests/sofa/delays.sofa";

static struct MYSOFA_HRTF *load(const char *path) {
    int err;
    struct MYSOFA_HRTF *h = mysofa_load(path, &err);
    CHECK(h, "%s: libmysofa reports %d", path, err);
    return h;
}

static const float *taps_of(const struct MYSOFA_HRTF *h, unsigned m, unsigned r) {
    return h->DataIR.values + (m * h->R + r) * h->N;
}

/* Reads a set and compares it bit for bit with what libmysofa reads. */
static void check_values(const char *path) {
    struct MYSOFA_HRTF *h = load(path);
    gpuconv_sofa *s;
    gpuconv_error error = {0};
    CHECK(gc_sofa_load(path, GPUCONV_INTERPOLATE_NEAREST, &s, &error) == GPUCONV_OK, "%s", error.message);
    assert_int_equal(s->measurements, (int)h->M);
    assert_int_equal(s->receivers, (int)h->R);
    assert_int_equal(s->responses->frames, (int64_t)h->N);
    assert_true(s->responses->rate == (double)h->DataSamplingRate.values[0]);
    assert_memory_equal(s->responses->taps, h->DataIR.values, (size_t)h->DataIR.elements * sizeof(float));
    for (unsigned m = 0; m < h->M; m++) {
        const float *at = h->SourcePosition.values + 3 * m;
        const double pi = 3.14159265358979323846, azimuth = (double)at[0] * pi / 180, radius = (double)at[2];
        const double elevation = (double)at[1] * pi / 180;
        const double want[3] = {radius * cos(elevation) * cos(azimuth), radius * cos(elevation) * sin(azimuth),
                                radius * sin(elevation)};
        assert_memory_equal(s->position + 3 * m, want, sizeof want);
    }
    mysofa_free(h);
    gpuconv_sofa_free(s);
}

static void values_are_those_of_libmysofa(void **state) {
    (void)state;
    static const char *const of_package = "/usr/share/libmysofa/default.sofa"; /* measured: MIT KEMAR */
    check_values(head_file);
    check_values(order_file);
    if (access(of_package, R_OK) == 0)
        check_values(of_package);
}

static gpuconv_ir *prepare(const char *path, gpuconv_preparation p, int inputs, double rate) {
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    CHECK(gpuconv_ir_prepare(path, &p, inputs, rate, &ir, &error) == GPUCONV_OK, "%s", error.message);
    return ir;
}

/* Returns the response of one channel as the output of an impulse. */
static guarded impulse_out(const gpuconv_ir *ir, int inputs, int channel) {
    guarded x = guarded_new(inputs, 1);
    for (int i = 0; i < inputs; i++)
        x.channel[i][0] = i == channel ? 1 : 0;
    guarded y = harness_offline(ir, &x);
    guarded_free(&x);
    return y;
}

static void every_direction_gives_its_response(void **state) {
    (void)state;
    struct MYSOFA_HRTF *h = load(head_file);
    for (unsigned m = 0; m < h->M; m++) {
        char direction[64];
        const float *at = h->SourcePosition.values + 3 * m;
        gpuconv_preparation p = gpuconv_preparation_default();
        gc_format(direction, sizeof direction, "%.3f,%.3f,%.3f", (double)at[0], (double)at[1], (double)at[2]);
        p.direction = direction;
        gpuconv_ir *ir = prepare(head_file, p, 1, 48000);
        guarded y = impulse_out(ir, 1, 0);
        assert_int_equal(y.channels, 2);
        assert_true(y.frames >= h->N);
        for (unsigned r = 0; r < 2; r++) {
            double want[128] = {0};
            for (unsigned i = 0; i < h->N; i++)
                want[i] = (double)taps_of(h, m, r)[i];
            oracle_error e = oracle_compare(y.channel[r], want, h->N);
            CHECK(e.rms <= -120, "direction %s, ear %u: %.1f dB", direction, r, e.rms);
        }
        guarded_free(&y);
        gpuconv_ir_free(ir);
    }
    mysofa_free(h);
}

/* Finds the measurement with the largest cosine to a direction in degrees. */
static unsigned nearest(const struct MYSOFA_HRTF *h, double azimuth, double elevation) {
    const double degree = acos(-1) / 180;
    double best = -2;
    unsigned found = 0;
    for (unsigned m = 0; m < h->M; m++) {
        const float *at = h->SourcePosition.values + 3 * m;
        double a = (double)at[0] * degree, e = (double)at[1] * degree;
        double cosine = sin(e) * sin(elevation * degree) + cos(e) * cos(elevation * degree) * cos(a - azimuth * degree);
        if (cosine > best + 1e-7) {
            best = cosine;
            found = m;
        }
    }
    return found;
}

static void a_bed_of_noise_is_the_sum_of_its_loudspeakers(void **state) {
    (void)state;
    static const double at[12][2] = {{30, 0}, {-30, 0}, {0, 0},   {0, 0},    {135, 0},  {-135, 0},
                                     {90, 0}, {-90, 0}, {45, 30}, {-45, 30}, {135, 30}, {-135, 30}};
    struct MYSOFA_HRTF *h = load(head_file);
    oracle_random random = {.state = 12};
    guarded x = guarded_random(&random, 12, 3000);
    gpuconv_preparation p = gpuconv_preparation_default();
    p.speakers = "7.1.4";
    p.interpolate = GPUCONV_INTERPOLATE_NEAREST;
    gpuconv_ir *ir = prepare(head_file, p, 12, 48000);
    guarded y = harness_offline(ir, &x);
    int64_t frames = 3000 + (int64_t)h->N - 1;
    double *want = calloc((size_t)frames, sizeof *want);
    CHECK(want, "no memory");
    for (unsigned r = 0; r < 2; r++) {
        for (int64_t n = 0; n < frames; n++) {
            want[n] = 0;
            for (int c = 0; c < 12; c++)
                want[n] += oracle_frame(x.channel[c], 3000, taps_of(h, nearest(h, at[c][0], at[c][1]), r), h->N, n);
        }
        oracle_error e = oracle_compare(y.channel[r], want, frames);
        CHECK(e.rms <= -120, "ear %u: %.1f dB", r, e.rms);
    }
    free(want);
    guarded_free(&x);
    guarded_free(&y);
    gpuconv_ir_free(ir);
    mysofa_free(h);
}

/* Writes the harmonics up to order 2, ACN and SN3D, by their formulas. */
static void harmonics(double azimuth, double elevation, double y[9]) {
    const double degree = acos(-1) / 180, s3 = sqrt(3);
    const double u = cos(azimuth * degree) * cos(elevation * degree),
                 v = sin(azimuth * degree) * cos(elevation * degree);
    const double w = sin(elevation * degree);
    const double all[9] = {
        1, v, w, u, s3 * u * v, s3 * v * w, (3 * w * w - 1) / 2, s3 * u * w, s3 / 2 * (u * u - v * v)};
    memcpy(y, all, sizeof all);
}

/* Compares the ambisonic decoding of plane waves with the responses of the set, for a head turned by `yaw` degrees. */
static void check_ambisonics(double yaw) {
    struct MYSOFA_HRTF *h = load(order_file);
    gpuconv_preparation p = gpuconv_preparation_default();
    p.speakers = "ambisonic";
    p.decode = GPUCONV_DECODE_LEAST_SQUARES;
    p.yaw = yaw;
    gpuconv_ir *ir = prepare(order_file, p, 9, 48000);
    guarded c[9];
    for (int k = 0; k < 9; k++)
        c[k] = impulse_out(ir, 9, k);
    for (unsigned m = 0; m < h->M; m++) {
        double y[9], error = 0, power = 0;
        const float *at = h->SourcePosition.values + 3 * m;
        harmonics((double)at[0] + yaw, (double)at[1], y);
        for (unsigned r = 0; r < 2; r++)
            for (unsigned i = 0; i < h->N; i++) {
                double want = (double)taps_of(h, m, r)[i], got = 0;
                for (int k = 0; k < 9; k++)
                    got += y[k] * (double)c[k].channel[r][i];
                error += (got - want) * (got - want);
                power += want * want;
            }
        double db = 10 * log10(error / power);
        CHECK(db <= -120, "measurement %u, yaw %g: %.1f dB", m, yaw, db);
    }
    for (int k = 0; k < 9; k++)
        guarded_free(&c[k]);
    gpuconv_ir_free(ir);
    mysofa_free(h);
}

static void ambisonics_give_the_responses_of_a_set_of_their_order(void **state) {
    (void)state;
    check_ambisonics(0);
}

static void ambisonics_turn_with_the_head(void **state) {
    (void)state;
    check_ambisonics(35);
    check_ambisonics(-170);
}

/* Compares the taps of ambisonics of another convention, channel by channel, with those of ACN and SN3D. The factors
 * are those of M. Chapman et al., A standard for interchange of Ambisonic signal sets (2009), and of D. Malham, Higher
 * order Ambisonic systems (2003). */
static void check_convention(gpuconv_ambisonics convention, const int *acn, const double *factor) {
    gpuconv_preparation p = gpuconv_preparation_default();
    p.speakers = "ambisonic";
    p.yaw = 20;
    gpuconv_ir *plain = prepare(order_file, p, 9, 48000);
    p.ambisonics = convention;
    gpuconv_ir *ir = prepare(order_file, p, 9, 48000);
    for (int k = 0; k < 9; k++)
        for (int r = 0; r < 2; r++)
            for (int64_t i = 0; i < gpuconv_ir_frames(ir); i++) {
                const double want = factor[k] * (double)gpuconv_ir_taps(plain, acn[k], r)[i];
                const double got = (double)gpuconv_ir_taps(ir, k, r)[i];
                CHECK(fabs(got - want) <= 2e-7 * fabs(want) + 1e-12, "convention %d, channel %d: %g, not %g",
                      (int)convention, k, got, want);
            }
    gpuconv_ir_free(plain);
    gpuconv_ir_free(ir);
}

static void ambisonics_of_other_conventions_are_those_of_acn_and_sn3d(void **state) {
    static const int same[] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, wxyzrstuv[] = {0, 3, 1, 2, 6, 7, 5, 8, 4};
    const double a = 1 / sqrt(3), b = 1 / sqrt(5), c = sqrt(3) / 2;
    const double n3d[] = {1, a, a, a, b, b, b, b, b}, fuma[] = {sqrt(2), 1, 1, 1, 1, c, c, c, c};
    (void)state;
    check_convention(GPUCONV_AMBISONICS_N3D, same, n3d);
    check_convention(GPUCONV_AMBISONICS_FUMA, wxyzrstuv, fuma);
    gpuconv_preparation p = gpuconv_preparation_default();
    gpuconv_error error = {0};
    gpuconv_ir *ir;
    p.speakers = "ambisonic";
    p.ambisonics = GPUCONV_AMBISONICS_FUMA;
    assert_int_equal(gpuconv_ir_prepare(order_file, &p, 25, 48000, &ir, &error), GPUCONV_ERROR_ARGUMENT);
    CHECK(strstr(error.message, "FuMa has channels up to order 3, and the input has order 4"), "%s", error.message);
}

/* Third order of FuMa: a plane wave in the channels K L M N O P Q, as Malham gives them, is the one in ACN and SN3D. */
static void channels_of_fuma_of_third_order_are_plane_waves(void **state) {
    static const double at[] = {0.6, -0.48, 0.64};
    const double x = at[0], y = at[1], z = at[2];
    const double wave[16] = {sqrt(0.5),
                             x,
                             y,
                             z,
                             (3 * z * z - 1) / 2,
                             2 * x * z,
                             2 * y * z,
                             x * x - y * y,
                             2 * x * y,
                             z * (5 * z * z - 3) / 2,
                             sqrt(135. / 256) * x * (5 * z * z - 1),
                             sqrt(135. / 256) * y * (5 * z * z - 1),
                             sqrt(27. / 4) * z * (x * x - y * y),
                             sqrt(27.) * x * y * z,
                             x * (x * x - 3 * y * y),
                             y * (3 * x * x - y * y)};
    double matrix[256], harmonic[16];
    const gc_rotation straight = gc_rotation_of(0, 0, 0);
    (void)state;
    gc_spherical_harmonics(3, at, harmonic);
    CHECK(gc_rotate_harmonics(3, &straight, GPUCONV_AMBISONICS_FUMA, matrix), "no memory");
    for (int i = 0; i < 16; i++) {
        double got = 0;
        for (int k = 0; k < 16; k++)
            got += matrix[i * 16 + k] * wave[k];
        CHECK(fabs(got - harmonic[i]) <= 1e-12, "harmonic %d is %.15g, not %.15g", i, got, harmonic[i]);
    }
}

/* A turned head hears a source where the unturned one hears it from the other side. */
static void a_turned_head_takes_other_responses(void **state) {
    (void)state;
    static const struct {
        double yaw, pitch, roll;
        const char *source, *heard;
    } turns[] = {{30, 0, 0, "30,0", "0,0"},
                 {30, 0, 0, "0,0", "-30,0"},
                 {-90, 0, 0, "0,0", "90,0"},
                 {0, 30, 0, "0,30", "0,0"},
                 {0, 0, 30, "-90,0", "-90,30"}};
    for (int i = 0; i < COUNT(turns); i++) {
        gpuconv_preparation p = gpuconv_preparation_default(), q = p;
        p.yaw = turns[i].yaw;
        p.pitch = turns[i].pitch;
        p.roll = turns[i].roll;
        p.direction = turns[i].source;
        q.direction = turns[i].heard;
        p.interpolate = q.interpolate = i % 2 ? GPUCONV_INTERPOLATE_TRIANGLE : GPUCONV_INTERPOLATE_NEAREST;
        gpuconv_ir *a = prepare(head_file, p, 1, 48000), *b = prepare(head_file, q, 1, 48000);
        guarded x = impulse_out(a, 1, 0), y = impulse_out(b, 1, 0);
        CHECK(oracle_identical("a turned head", &x, x.frames, &y, y.frames), "turn %d", i);
        guarded_free(&x);
        guarded_free(&y);
        gpuconv_ir_free(a);
        gpuconv_ir_free(b);
    }
}

static void delays_are_applied(void **state) {
    (void)state;
    static const struct {
        const char *direction;
        unsigned measurement;
        double delay[2];
    } cases[] = {{"0,0", 0, {0, 0}},     {"90,0", 1, {3, 7}},    {"180,0", 2, {10, 2}},
                 {"-90,0", 3, {0.5, 4}}, {"0,90", 4, {1, 2.25}}, {"0,-90", 5, {6, 6}}};
    struct MYSOFA_HRTF *h = load(delays_file);
    for (int i = 0; i < COUNT(cases); i++) {
        gpuconv_preparation p = gpuconv_preparation_default();
        p.direction = cases[i].direction;
        gpuconv_ir *ir = prepare(delays_file, p, 1, 44100);
        guarded y = impulse_out(ir, 1, 0);
        const int64_t lead = gpuconv_ir_lead(ir);
        assert_true(lead > 0); /* the set has fractional delays */
        for (unsigned r = 0; r < 2; r++) {
            const float *taps = taps_of(h, cases[i].measurement, r);
            const double delay = cases[i].delay[r];
            if (delay != floor(delay)) { /* the sum of the taps stays, to the ripple of the interpolation */
                double sum = 0, want = 0;
                for (unsigned k = 0; k < h->N; k++)
                    want += (double)taps[k];
                for (int64_t k = 0; k < y.frames; k++)
                    sum += (double)y.channel[r][k];
                CHECK(fabs(sum - want) < 1e-3, "case %d, ear %u: %g instead of %g", i, r, sum, want);
                continue;
            }
            for (unsigned k = 0; k < h->N; k++)
                CHECK(fabsf(y.channel[r][lead + (int64_t)delay + k] - taps[k]) < 1e-6f, "case %d, ear %u, tap %u", i, r,
                      k);
        }
        guarded_free(&y);
        gpuconv_ir_free(ir);
    }
    mysofa_free(h);
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *direction, *speakers, *says;
        int inputs;
    } wrong[] = {{NULL, NULL, "choose with --direction", 1},      {"30", NULL, "is not a direction", 1},
                 {"30,91", NULL, "is not a direction", 1},        {"nan,0", NULL, "is not a direction", 1},
                 {"0,0", "5.1", "exclude each other", 6},         {NULL, "5.1", "6 directions for an input of 2", 2},
                 {NULL, "9.9", "neither a layout nor a file", 2}, {NULL, "ambisonic", "have 4, 9, 16", 5},
                 {NULL, "ambisonic", "needs 49 or more", 49},     {"0,0", NULL, "for an input of 2 channels", 2}};
    for (int i = 0; i < COUNT(wrong); i++) {
        gpuconv_preparation p = gpuconv_preparation_default();
        gpuconv_ir *ir;
        gpuconv_error error = {0};
        p.direction = wrong[i].direction;
        p.speakers = wrong[i].speakers;
        assert_int_not_equal(gpuconv_ir_prepare(head_file, &p, wrong[i].inputs, 48000, &ir, &error), GPUCONV_OK);
        CHECK(strstr(error.message, wrong[i].says), "case %d says: %s", i, error.message);
        assert_null(ir);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_libmysofa),
        cmocka_unit_test(every_direction_gives_its_response),
        cmocka_unit_test(a_bed_of_noise_is_the_sum_of_its_loudspeakers),
        cmocka_unit_test(ambisonics_give_the_responses_of_a_set_of_their_order),
        cmocka_unit_test(ambisonics_turn_with_the_head),
        cmocka_unit_test(ambisonics_of_other_conventions_are_those_of_acn_and_sn3d),
        cmocka_unit_test(channels_of_fuma_of_third_order_are_plane_waves),
        cmocka_unit_test(a_turned_head_takes_other_responses),
        cmocka_unit_test(delays_are_applied),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
