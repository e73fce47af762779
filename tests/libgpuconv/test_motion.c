/* Checks moving sources against a response for every frame in double precision, blocks of any length, the Doppler
 * effect, and the files of paths. */
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { RATE = 48000, FRAMES = 36000 };

static const char *const head_file = TESTS_SOURCE "/tests/sofa/head.sofa";
static const double pi = 3.14159265358979323846;

static gpuconv_sofa *open_head(void) {
    gpuconv_sofa *set;
    gpuconv_error error = {0};
    CHECK(gpuconv_sofa_open(head_file, 0, &set, &error) == GPUCONV_OK, "%s", error.message);
    return set;
}

/* Makes a path of two rows. `turn` is the azimuth at which it ends, `end` the last distance. */
static gpuconv_path *make_path(int channels, double turn, double start, double end) {
    const double seconds[2] = {0, (double)FRAMES / RATE};
    double rows[2][3][3];
    gpuconv_path *path;
    double *directions = calloc((size_t)channels * 6, sizeof *directions);
    CHECK(directions && channels <= 3, "no memory");
    for (int i = 0; i < 2; i++)
        for (int c = 0; c < channels; c++) {
            rows[i][c][0] = 20 + 50 * c + i * turn;
            rows[i][c][1] = 5;
            rows[i][c][2] = i ? end : start;
            memcpy(directions + (i * channels + c) * 3, rows[i][c], sizeof rows[i][c]);
        }
    CHECK(gpuconv_path_new(seconds, directions, 2, channels, &path, NULL) == GPUCONV_OK, "no path");
    free(directions);
    return path;
}

/* Tones up to 6 kHz, one channel after the other. */
static guarded make_tones(int channels) {
    guarded x = guarded_new(channels, FRAMES);
    for (int c = 0; c < channels; c++)
        for (int i = 0; i < FRAMES; i++)
            x.channel[c][i] = (float)(0.3 * sin(2 * pi * (300 + 70 * c) * i / RATE) +
                                      0.3 * sin(2 * pi * 1900 * i / RATE) + 0.3 * sin(2 * pi * 6000 * i / RATE));
    return x;
}

/* Feeds the input in blocks of `block` frames. */
static guarded run(const gpuconv_sofa *set, const gpuconv_path *path, const gpuconv_motion_config *config,
                   const guarded *x, int64_t block) {
    gpuconv_motion *m;
    gpuconv_error error = {0};
    CHECK(gpuconv_motion_new(set, path, config, &m, &error) == GPUCONV_OK, "%s", error.message);
    guarded y = guarded_new(2, x->frames + gpuconv_motion_tail(m));
    int64_t got = 0;
    for (int64_t at = 0; at <= x->frames; at += block) {
        const float *in[3];
        float *out[2] = {y.channel[0] + got, y.channel[1] + got};
        int64_t now;
        for (int c = 0; c < x->channels; c++)
            in[c] = x->channel[c] + at;
        const int64_t frames = x->frames - at < block ? x->frames - at : block;
        CHECK(frames == 0 || gpuconv_motion_feed(m, in, frames, &error) == GPUCONV_OK, "%s", error.message);
        if (frames < block || at + block == x->frames)
            CHECK(gpuconv_motion_feed(m, NULL, 0, &error) == GPUCONV_OK, "%s", error.message);
        assert_int_equal(gpuconv_motion_fetch(m, out, y.frames - got, &now), GPUCONV_OK);
        got += now;
        if (at + block == x->frames)
            break;
    }
    assert_int_equal(got, y.frames);
    assert_int_equal(gpuconv_motion_feed(m, NULL, 0, &error), GPUCONV_ERROR_STATE);
    gpuconv_motion_free(m);
    return y;
}

/* Compares with the response of the place at every frame. Returns dB, of the frames that are not at the edges. */
static double distance_from_reference(const gpuconv_sofa *set, double turn, const guarded *x, const guarded *y) {
    const int64_t taps = gpuconv_sofa_frames(set), lead = gpuconv_sofa_lead(set);
    double error = 0, power = 0;
    static float h[2][512];
    assert_true(taps <= 512);
    for (int64_t n = 1000; n < FRAMES - 1000; n += 3) {
        const double azimuth = (20 + turn * (double)n / FRAMES) * pi / 180, up = 5 * pi / 180;
        const double at[3] = {cos(up) * cos(azimuth), cos(up) * sin(azimuth), sin(up)};
        float rows[1024];
        assert_int_equal(gpuconv_sofa_respond(set, at, 1, GPUCONV_INTERPOLATE_TRIANGLE, false, rows, NULL), GPUCONV_OK);
        for (int r = 0; r < 2; r++) {
            memcpy(h[r], rows + r * taps, (size_t)taps * sizeof **h);
            double want = 0;
            for (int64_t k = 0; k < taps; k++)
                want += (double)h[r][k] * (double)x->channel[0][n + lead - k];
            const double off = (double)y->channel[r][n] - want;
            error += off * off;
            power += want * want;
        }
    }
    return 10 * log10(error / power);
}

static void a_moving_source_has_the_response_of_every_frame(void **state) {
    (void)state;
    static const struct { double turn, bound; /* degrees in 0.75 s, dB */ } cases[] = {{0, -60}, {30, -60}, {360, -42}};
    const double more = sizeof(void *) == 4 ? 5 : 0; /* dB: 32-bit systems have other triangles, as qhull rounds */
    gpuconv_sofa *set = open_head();
    guarded x = make_tones(1);
    for (int i = 0; i < COUNT(cases); i++) {
        gpuconv_path *path = make_path(1, cases[i].turn, 1.5, 1.5);
        guarded y = run(set, path, NULL, &x, FRAMES);
        const double distance = distance_from_reference(set, cases[i].turn, &x, &y);
        CHECK(distance <= cases[i].bound + more, "%g degrees: %.1f dB", cases[i].turn, distance);
        guarded_free(&y);
        gpuconv_path_free(path);
    }
    guarded_free(&x);
    gpuconv_sofa_free(set);
}

static void the_result_does_not_depend_on_the_blocks(void **state) {
    (void)state;
    static const int64_t blocks[] = {1, 777, 16320, FRAMES / 2};
    gpuconv_sofa *set = open_head();
    gpuconv_path *path = make_path(3, 200, 1.5, 3);
    gpuconv_motion_config config = gpuconv_motion_config_default();
    guarded x = make_tones(3);
    config.by_distance = config.doppler = true;
    config.threads = 1;
    guarded want = run(set, path, &config, &x, FRAMES);
    for (int i = 0; i < COUNT(blocks); i++) {
        config.threads = i;
        guarded y = run(set, path, &config, &x, blocks[i]);
        CHECK(oracle_identical("blocks", &want, want.frames, &y, y.frames), "blocks of %lld", (long long)blocks[i]);
        guarded_free(&y);
    }
    guarded_free(&x);
    guarded_free(&want);
    gpuconv_path_free(path);
    gpuconv_sofa_free(set);
}

static void channels_are_added(void **state) {
    (void)state;
    gpuconv_sofa *set = open_head();
    gpuconv_path *all = make_path(2, 90, 1, 1), *one = make_path(1, 90, 1, 1);
    guarded x = make_tones(2), first = make_tones(1);
    memset(x.channel[1], 0, FRAMES * sizeof(float));
    guarded y = run(set, all, NULL, &x, FRAMES), want = run(set, one, NULL, &first, FRAMES);
    CHECK(harness_distance(&y, &want, FRAMES) <= -80, "%.1f dB", harness_distance(&y, &want, FRAMES));
    guarded_free(&x);
    guarded_free(&first);
    guarded_free(&y);
    guarded_free(&want);
    gpuconv_path_free(all);
    gpuconv_path_free(one);
    gpuconv_sofa_free(set);
}

/* A source that comes from 100 m to 80 m in 0.75 s: f c / (c - v) with v = 26.7 m/s. */
static void the_pitch_of_a_source_that_comes_near_rises(void **state) {
    (void)state;
    const double v = 20 / ((double)FRAMES / RATE), want = 1000 * 343 / (343 - v);
    gpuconv_sofa *set = open_head();
    gpuconv_path *path = make_path(1, 0, 100, 80);
    gpuconv_motion_config config = gpuconv_motion_config_default();
    guarded x = guarded_new(1, FRAMES);
    for (int i = 0; i < FRAMES; i++)
        x.channel[0][i] = (float)sin(2 * pi * 1000 * i / RATE);
    config.doppler = true;
    guarded y = run(set, path, &config, &x, FRAMES);
    int64_t first = 0, last = 0, crossings = -1;
    for (int64_t n = 18000; n < FRAMES; n++)
        if (y.channel[0][n] < 0 && y.channel[0][n + 1] >= 0) {
            first = crossings < 0 ? n : first;
            last = n;
            crossings++;
        }
    const double heard = (double)crossings * RATE / (double)(last - first);
    CHECK(fabs(heard - want) < 0.3, "%.2f Hz instead of %.2f", heard, want);
    for (int64_t n = 0; n < 11000; n++) /* 80 m are 11195 frames */
        CHECK(fabsf(y.channel[0][n]) < 1e-6f, "frame %lld is early", (long long)n);
    guarded_free(&x);
    guarded_free(&y);
    gpuconv_path_free(path);
    gpuconv_sofa_free(set);
}

static gpuconv_status load_text(const char *text, int channels, gpuconv_path **path, gpuconv_error *error) {
    char name[] = "/tmp/gpuconv-path-XXXXXX";
    const int fd = mkstemp(name);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0, "no file");
    gpuconv_status status = gpuconv_path_load(name, channels, path, error);
    unlink(name);
    return status;
}

static void files_of_paths_are_read_or_refused_with_their_line(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int channels;
        const char *says; /* NULL: it is read */
    } files[] = {{"time,azimuth,elevation,distance\n0,0,0,1\n0.5,90,10,2\n", 1, NULL},
                 {"0 0 0\n# a comment\n\n1 -720 90 # two turns\n", 1, NULL},
                 {"0;1;2;3;4\n", 2, NULL},
                 {"0,1,2,1,3,4,1\n", 2, NULL},
                 {"0 0\n", 1, "line 1: '0 0': is not SECONDS and AZIMUTH, ELEVATION[, DISTANCE]"},
                 {"0 0 0 1 1\n", 1, "line 1: '0 0 0 1 1': is not SECONDS"},
                 {"0 0 0\n1 x 0\n", 1, "line 2: '1 x 0': 'x' is not a number"},
                 {"1 0 0\n0.5 0 0\n", 1, "line 2: '0.5 0 0': 0.5 s is before the line above"},
                 {"0 0 91\n", 1, "times are 0 s or more"},
                 {"0 0 0 0\n", 1, "times are 0 s or more"},
                 {"-1 0 0\n", 1, "times are 0 s or more"},
                 {"nan 0 0\n0 nan 0\n", 1, "line 2"},
                 {"# nothing\n", 1, "contains no direction"}};
    for (int i = 0; i < COUNT(files); i++) {
        gpuconv_path *path;
        gpuconv_error error = {0};
        gpuconv_status status = load_text(files[i].text, files[i].channels, &path, &error);
        assert_true(!status == !files[i].says && !status == !!path);
        CHECK(!files[i].says || strstr(error.message, files[i].says), "file %d says: %s", i, error.message);
        gpuconv_path_free(path);
    }
}

static void values_out_of_range_are_refused(void **state) {
    (void)state;
    gpuconv_sofa *set = open_head();
    gpuconv_path *path = make_path(1, 0, 1, 1), *none;
    gpuconv_motion *m;
    const double seconds[2] = {1, 0}, rows[6] = {0, 0, 1, 0, 0, 1};
    assert_int_equal(gpuconv_path_new(seconds, rows, 2, 1, &none, NULL), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_path_new(seconds, rows, 0, 1, &none, NULL), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_path_new(seconds, rows, 1, 0, &none, NULL), GPUCONV_ERROR_ARGUMENT);
    gpuconv_motion_config config = gpuconv_motion_config_default();
    static const double intervals[] = {0, -1, 1.5, NAN};
    for (int i = 0; i < COUNT(intervals); i++) {
        config.interval = intervals[i];
        assert_int_equal(gpuconv_motion_new(set, path, &config, &m, NULL), GPUCONV_ERROR_ARGUMENT);
        assert_null(m);
    }
    gpuconv_path_free(path);
    gpuconv_sofa_free(set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_moving_source_has_the_response_of_every_frame),
        cmocka_unit_test(the_result_does_not_depend_on_the_blocks),
        cmocka_unit_test(channels_are_added),
        cmocka_unit_test(the_pitch_of_a_source_that_comes_near_rises),
        cmocka_unit_test(files_of_paths_are_read_or_refused_with_their_line),
        cmocka_unit_test(values_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
