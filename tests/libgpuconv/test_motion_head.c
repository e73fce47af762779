/* Checks heads that turn before moving and still sources, before ambisonics and in rooms; recordings of OSC; and the
 * thread for sound devices against feed and fetch. */
#include "harness.h"
#include "libgpuconv/ir/ambisonic.h"
#include "libgpuconv/space/motion.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { RATE = 48000, FRAMES = 24000 };

static const double pi = 3.14159265358979323846;

static gpuconv_sofa *open_set(const char *name) {
    gpuconv_sofa *set;
    gpuconv_error error = {0};
    char path[300];
    (void)snprintf(path, sizeof path, TESTS_SOURCE "/tests/sofa/%s", name);
    CHECK(gpuconv_sofa_open(path, 0, &set, &error) == GPUCONV_OK, "%s", error.message);
    return set;
}

static gpuconv_head *make_head(double from, double to, double pitch) {
    const double seconds[2] = {0, (double)FRAMES / RATE}, angles[6] = {from, pitch, 0, to, pitch, 0};
    gpuconv_head *head;
    gpuconv_error error = {0};
    CHECK(gpuconv_head_new(seconds, angles, 2, &head, &error) == GPUCONV_OK, "%s", error.message);
    return head;
}

/* Makes the path of one source on the horizon, which goes away. */
static gpuconv_path *make_turn(double from, double to) {
    const double seconds[2] = {0, (double)FRAMES / RATE}, rows[6] = {from, 0, 1.5, to, 0, 40};
    gpuconv_path *path;
    CHECK(gpuconv_path_new(seconds, rows, 2, 1, &path, NULL) == GPUCONV_OK, "no path");
    return path;
}

static gpuconv_path *make_still(const char *place, int channels) {
    gpuconv_path *path;
    gpuconv_error error = {0};
    CHECK(gpuconv_path_new_still(place, channels, &path, &error) == GPUCONV_OK, "%s", error.message);
    return path;
}

/* Tones up to 4 kHz, others on each channel, that rise and fall. */
static guarded make_tones(int channels) {
    guarded x = guarded_new(channels, FRAMES);
    for (int c = 0; c < channels; c++)
        for (int i = 0; i < FRAMES; i++)
            x.channel[c][i] = (float)(sin(pi * i / FRAMES) * (0.3 * sin(2 * pi * (300 + 70 * c) * i / RATE) +
                                                              0.3 * sin(2 * pi * 4000 * i / RATE)));
    return x;
}

/* Renders in one block. */
static guarded run(const gpuconv_sofa *set, const gpuconv_path *path, const gpuconv_motion_config *config,
                   const guarded *x) {
    gpuconv_motion *m;
    gpuconv_error error = {0};
    int64_t got;
    CHECK(gpuconv_motion_new(set, path, config, &m, &error) == GPUCONV_OK, "%s", error.message);
    guarded y = guarded_new(2, x->frames + gpuconv_motion_tail(m));
    CHECK(gpuconv_motion_feed(m, (const float *const *)x->channel, x->frames, &error) == GPUCONV_OK, "%s",
          error.message);
    CHECK(gpuconv_motion_feed(m, NULL, 0, &error) == GPUCONV_OK, "%s", error.message);
    assert_int_equal(gpuconv_motion_fetch(m, y.channel, y.frames, &got), GPUCONV_OK);
    assert_int_equal(got, y.frames);
    gpuconv_motion_free(m);
    return y;
}

/* Renders with a head, or NULL. */
static guarded run_with(const gpuconv_sofa *set, const gpuconv_path *path, const gpuconv_head *head, const guarded *x) {
    gpuconv_motion_config config = gpuconv_motion_config_default();
    config.head = head;
    return run(set, path, &config, x);
}

static void check_near(const char *what, guarded got, guarded want, double bound) {
    const double distance = harness_distance(&got, &want, FRAMES);
    CHECK(distance <= bound, "%s: %.1f dB", what, distance);
    guarded_free(&got);
    guarded_free(&want);
}

/* A head that turns to the left hears what a head that rests hears of a source that moves to the right. */
static void a_head_turns_against_its_sources(void **state) {
    (void)state;
    gpuconv_sofa *set = open_set("head.sofa");
    gpuconv_head *head = make_head(0, 120, 0);
    gpuconv_path *one = make_turn(20, 50), *other = make_turn(20, -70);
    guarded x = make_tones(1);
    check_near("a source that moves", run_with(set, one, head, &x), run_with(set, other, NULL, &x), -100);
    gpuconv_path *still = make_still("20,0,1.5", 1), *moves = make_turn(20, -100);
    check_near("a source that stays", run_with(set, still, head, &x), run_with(set, moves, NULL, &x), -100);
    guarded_free(&x);
    gpuconv_path_free(one);
    gpuconv_path_free(other);
    gpuconv_path_free(still);
    gpuconv_path_free(moves);
    gpuconv_head_free(head);
    gpuconv_sofa_free(set);
}

/* Compares a head that rests with the response of its orientation. */
static void check_rest(const char *name, const char *place, int channels, double bound) {
    gpuconv_sofa *set = open_set(name);
    gpuconv_head *head = make_head(48, 48, strcmp(name, "brir.sofa") ? 10 : 0);
    gpuconv_path *path = make_still(place, channels);
    guarded x = make_tones(channels);
    gpuconv_preparation p = gpuconv_preparation_default();
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    p.speakers = channels > 1 ? place : NULL;
    p.direction = channels > 1 ? NULL : place;
    p.yaw = 48;
    p.pitch = strcmp(name, "brir.sofa") ? 10 : 0;
    CHECK(gpuconv_sofa_prepare(set, &p, channels, &ir, &error) == GPUCONV_OK, "%s", error.message);
    guarded whole = harness_offline(ir, &x), want = guarded_new(2, FRAMES);
    for (int c = 0; c < 2; c++)
        memcpy(want.channel[c], whole.channel[c] + gpuconv_ir_lead(ir), FRAMES * sizeof(float));
    guarded_free(&whole);
    check_near(place, run_with(set, path, head, &x), want, bound);
    gpuconv_ir_free(ir);
    guarded_free(&x);
    gpuconv_path_free(path);
    gpuconv_head_free(head);
    gpuconv_sofa_free(set);
}

static void a_head_that_rests_hears_the_responses_of_its_orientation(void **state) {
    (void)state;
    /* shifts by other fractions of a frame lose other energies near half the rate, by which a response is scaled */
    check_rest("head.sofa", "30,10,1.5", 1, -50);
    check_rest("head.sofa", "5.1", 6, -50);
    check_rest("head.sofa", "ambisonic", 4, -110);
    check_rest("head.sofa", "ambisonic", 9, -110);
    check_rest("brir.sofa", "stereo", 2, -60);
}

/* The responses of a turned head are those of the same orientation in a scene. */
static void a_turned_head_in_a_room_gets_its_responses(void **state) {
    (void)state;
    gpuconv_sofa *set = open_set("brir.sofa");
    gpuconv_preparation p = gpuconv_preparation_default(), wrong = p;
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    const double at[3] = {2 * cos(25 * pi / 180), 2 * sin(25 * pi / 180), 0};
    const int64_t frames = gpuconv_sofa_frames(set);
    float *taps = calloc((size_t)(2 * frames), sizeof *taps);
    assert_non_null(taps);
    p.direction = "25,0,2";
    p.yaw = 100;
    p.interpolate = GPUCONV_INTERPOLATE_NEAREST;
    CHECK(gpuconv_sofa_prepare(set, &p, 1, &ir, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gpuconv_sofa_respond_turned(set, at, 1, &p, taps, &error) == GPUCONV_OK, "%s", error.message);
    const int64_t skip = gpuconv_sofa_lead(set) - gpuconv_ir_lead(ir), length = gpuconv_ir_frames(ir);
    for (int r = 0; r < 2; r++)
        assert_memory_equal(gpuconv_ir_taps(ir, 0, r), taps + r * frames + skip, (size_t)length * sizeof *taps);
    wrong.yaw = 361;
    assert_int_equal(gpuconv_sofa_respond_turned(set, at, 1, &wrong, taps, NULL), GPUCONV_ERROR_ARGUMENT);
    free(taps);
    gpuconv_ir_free(ir);
    gpuconv_sofa_free(set);
}

/* A plane wave before a head that turns is one that goes around a head that rests. */
static void ambisonics_turn_with_the_head(void **state) {
    (void)state;
    gpuconv_sofa *set = open_set("head.sofa");
    gpuconv_head *head = make_head(0, 60, 0);
    gpuconv_path *path = make_still("ambisonic", 9);
    guarded source = make_tones(1), rests = guarded_new(9, FRAMES), goes = guarded_new(9, FRAMES);
    for (int i = 0; i < FRAMES; i++) {
        const double from = 25 * pi / 180, to = (25 - 60.0 * i / FRAMES) * pi / 180;
        const double here[3] = {cos(from), sin(from), 0}, there[3] = {cos(to), sin(to), 0};
        double a[9], b[9];
        gc_spherical_harmonics(2, here, a);
        gc_spherical_harmonics(2, there, b);
        for (int c = 0; c < 9; c++) {
            rests.channel[c][i] = (float)a[c] * source.channel[0][i];
            goes.channel[c][i] = (float)b[c] * source.channel[0][i];
        }
    }
    check_near("a plane wave", run_with(set, path, head, &rests), run_with(set, path, NULL, &goes), -85);
    guarded_free(&source);
    guarded_free(&rests);
    guarded_free(&goes);
    gpuconv_path_free(path);
    gpuconv_head_free(head);
    gpuconv_sofa_free(set);
}

/* ---- Beside a sound device --------------------------------------------------------------------------------------- */

/* Processes the input in blocks, with the thread in time. Returns the frames from the latency on. */
static guarded play(gpuconv_motion *m, const guarded *x, int64_t frames, int block) {
    const int64_t latency = gpuconv_motion_latency(m);
    guarded y = guarded_new(2, frames);
    float *in[9], *out[2];
    for (int c = 0; c < x->channels; c++)
        assert_non_null(in[c] = calloc((size_t)block, sizeof(float)));
    for (int r = 0; r < 2; r++)
        assert_non_null(out[r] = calloc((size_t)block, sizeof(float)));
    for (int64_t at = 0; at < frames + latency; at += block) {
        for (int c = 0; c < x->channels; c++)
            for (int i = 0; i < block; i++)
                in[c][i] = at + i < x->frames ? x->channel[c][at + i] : 0;
        gpuconv_motion_process(m, (const float *const *)in, out, block);
        for (int r = 0; r < 2; r++)
            for (int i = 0; i < block; i++)
                if (at + i >= latency && at + i - latency < frames)
                    y.channel[r][at + i - latency] = out[r][i];
                else
                    CHECK(at + i >= latency || out[r][i] == 0, "frame %lld is early", (long long)(at + i));
        if (at / 64 != (at + block) / 64)
            gc_motion_settle(m);
    }
    for (int c = 0; c < x->channels; c++)
        free(in[c]);
    for (int r = 0; r < 2; r++)
        free(out[r]);
    return y;
}

static void check_live(const gpuconv_sofa *set, const gpuconv_path *path, const gpuconv_motion_config *config,
                       const guarded *x) {
    static const int blocks[] = {1, 64, 128, 1000, 0};
    guarded want = run(set, path, config, x);
    for (int i = 0; i < COUNT(blocks); i++) {
        gpuconv_motion *m;
        gpuconv_error error = {0};
        CHECK(gpuconv_motion_new(set, path, config, &m, &error) == GPUCONV_OK, "%s", error.message);
        CHECK(gpuconv_motion_start(m, blocks[i], &error) == GPUCONV_OK, "%s", error.message);
        guarded y = play(m, x, want.frames, blocks[i] ? blocks[i] : 777); /* 0: rendered by the caller */
        assert_int_equal(gpuconv_motion_late(m), 0);
        CHECK(oracle_identical("live", &want, want.frames, &y, y.frames), "blocks of %d", blocks[i]);
        guarded_free(&y);
        gpuconv_motion_free(m);
    }
    guarded_free(&want);
}

static void a_sound_device_gets_the_frames_of_a_file(void **state) {
    (void)state;
    gpuconv_sofa *set = open_set("head.sofa"), *room = open_set("brir.sofa");
    gpuconv_head *head = make_head(0, 200, 10);
    gpuconv_path *turn = make_turn(20, 400), *stereo = make_still("stereo", 2), *waves = make_still("ambisonic", 9);
    gpuconv_motion_config config = gpuconv_motion_config_default();
    guarded one = make_tones(1), two = make_tones(2), nine = make_tones(9);
    config.head = head;
    config.threads = 2;
    check_live(set, waves, &config, &nine);
    check_live(room, stereo, &config, &two);
    config.doppler = config.by_distance = true;
    check_live(set, turn, &config, &one);
    guarded_free(&one);
    guarded_free(&two);
    guarded_free(&nine);
    gpuconv_path_free(turn);
    gpuconv_path_free(stereo);
    gpuconv_path_free(waves);
    gpuconv_head_free(head);
    gpuconv_sofa_free(set);
    gpuconv_sofa_free(room);
}

/* Blocks come faster than the thread can render them, more than the rings hold; after a silence all is at its place. */
static void frames_that_are_late_are_silent_and_counted(void **state) {
    (void)state;
    enum { LONG = 1024, ROUND = 3 * RATE / LONG * LONG, QUIET = 40 * LONG };
    gpuconv_sofa *set = open_set("head.sofa");
    gpuconv_path *path = make_still("20,0,1.5", 1);
    gpuconv_motion *m;
    gpuconv_error error = {0};
    float in[LONG], left[LONG], right[LONG], *out[2] = {left, right};
    const float *const from[1] = {in};
    CHECK(gpuconv_motion_new(set, path, NULL, &m, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gpuconv_motion_start(m, LONG, &error) == GPUCONV_OK, "%s", error.message);
    guarded x = guarded_new(1, ROUND + QUIET + FRAMES / LONG * LONG);
    for (int64_t i = 0; i < x.frames; i++)
        x.channel[0][i] = i < ROUND || i >= ROUND + QUIET ? (float)sin(0.1 * (double)i) : 0;
    guarded want = run_with(set, path, NULL, &x);
    for (int64_t at = 0; at < x.frames; at += LONG) {
        memcpy(in, x.channel[0] + at, sizeof in);
        gpuconv_motion_process(m, from, out, LONG);
        if (at >= ROUND - LONG)
            gc_motion_settle(m);
        for (int64_t i = 0; i < LONG && at > ROUND + QUIET + LONG; i++) {
            const int64_t frame = at + i - gpuconv_motion_latency(m);
            CHECK(frame < ROUND + QUIET - 1000 || left[i] == want.channel[0][frame], "frame %lld", (long long)frame);
        }
    }
    CHECK(gpuconv_motion_late(m) > 0, "three seconds were rendered at once");
    guarded_free(&x);
    guarded_free(&want);
    gpuconv_motion_free(m);
    gpuconv_path_free(path);
    gpuconv_sofa_free(set);
}

static void a_path_is_moved_to_another_place_of_the_file(void **state) {
    (void)state;
    gpuconv_sofa *set = open_set("head.sofa");
    gpuconv_path *path = make_turn(0, 90), *still = make_turn(90, 90);
    gpuconv_motion *m;
    gpuconv_error error = {0};
    guarded x = make_tones(1), want = run_with(set, still, NULL, &x);
    CHECK(gpuconv_motion_new(set, path, NULL, &m, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gpuconv_motion_start(m, 128, &error) == GPUCONV_OK, "%s", error.message);
    gpuconv_motion_seek(m, FRAMES + 1000);
    guarded y = play(m, &x, want.frames, 128);
    CHECK(oracle_identical("seek", &want, want.frames, &y, y.frames), "another place");
    assert_int_equal(gpuconv_motion_start(m, 128, &error), GPUCONV_ERROR_STATE);
    guarded_free(&x);
    guarded_free(&y);
    guarded_free(&want);
    gpuconv_motion_free(m);
    gpuconv_path_free(path);
    gpuconv_path_free(still);
    gpuconv_sofa_free(set);
}

static void a_tracked_head_turns_the_scene(void **state) {
    (void)state;
    gpuconv_sofa *set = open_set("head.sofa");
    gpuconv_path *path = make_turn(20, 50);
    gpuconv_head *head = make_head(40, 40, -20);
    gpuconv_motion *m;
    gpuconv_error error = {0};
    guarded x = make_tones(1), want = run_with(set, path, head, &x);
    CHECK(gpuconv_motion_new(set, path, NULL, &m, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gpuconv_motion_start(m, 64, &error) == GPUCONV_OK, "%s", error.message);
    gpuconv_motion_turn(m, (const double[3]){40, -20, 0});
    guarded y = play(m, &x, want.frames, 64);
    CHECK(oracle_identical("tracker", &want, want.frames, &y, y.frames), "a tracked head");
    guarded_free(&x);
    guarded_free(&y);
    guarded_free(&want);
    gpuconv_motion_free(m);
    gpuconv_path_free(path);
    gpuconv_head_free(head);
    gpuconv_sofa_free(set);
}

static void a_source_is_placed_by_a_control(void **state) {
    (void)state;
    gpuconv_sofa *set = open_set("head.sofa");
    gpuconv_path *path = make_still("20,0,1.5", 1), *other;
    gpuconv_motion_config config = gpuconv_motion_config_default();
    gpuconv_motion *m;
    gpuconv_error error = {0};
    const double start = 0, at[3] = {-70, 15, 1.5};
    CHECK(gpuconv_path_new(&start, at, 1, 1, &other, &error) == GPUCONV_OK, "%s", error.message);
    guarded x = make_tones(1), want = run_with(set, other, NULL, &x);
    config.threads = 1;
    CHECK(gpuconv_motion_new(set, path, &config, &m, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gpuconv_motion_start(m, 0, &error) == GPUCONV_OK, "%s", error.message);
    gpuconv_motion_place(m, 1, (const double[3]){0, 0, 1}); /* there is no such channel */
    gpuconv_motion_place(m, 0, at);
    guarded y = play(m, &x, want.frames, 100);
    CHECK(oracle_identical("placed", &want, want.frames, &y, y.frames), "a placed source");
    guarded_free(&x);
    guarded_free(&y);
    guarded_free(&want);
    gpuconv_motion_free(m);
    gpuconv_path_free(path);
    gpuconv_path_free(other);
    gpuconv_sofa_free(set);
}

/* ---- Recordings -------------------------------------------------------------------------------------------------- */

static gpuconv_status load_text(const char *text, int channels, gpuconv_path **path, gpuconv_head **head,
                                gpuconv_error *error) {
    char name[] = "/tmp/gpuconv-osc-XXXXXX";
    const int fd = mkstemp(name);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0, "no file");
    gpuconv_status status =
        path ? gpuconv_path_load(name, channels, path, error) : gpuconv_head_load(name, head, error);
    unlink(name);
    return status;
}

static void a_recorded_path_is_that_of_its_rows(void **state) {
    (void)state;
    static const char *const recorded = "liblo server error 9908 in path (null)\n"
                                        "e1f5b6c4.00000000 /adm/obj/2/aed fff 170.000000 10.000000 2.000000\n"
                                        "e1f5b6c4.00000000 /adm/obj/1/aed fff 0.000000 0.000000 1.000000\n"
                                        "e1f5b6c4.40000000 /adm/obj/3/aed fff 0.000000 0.000000 1.000000\n"
                                        "e1f5b6c4.40000000 /adm/obj/1/gain f 1.000000\n"
                                        "e1f5b6c4.40000000 /adm/obj/1/aed fff 45.000000 0.000000 1.000000\n"
                                        "e1f5b6c4.80000000 /adm/obj/2/aed fff -170.000000 10.000000 2.000000\n"
                                        "e1f5b6c4.80000000 /adm/obj/1/aed fff 90.000000 0.000000 1.000000\n";
    gpuconv_path *osc, *rows;
    gpuconv_error error = {0};
    gpuconv_sofa *set = open_set("head.sofa");
    guarded x = make_tones(2);
    CHECK(load_text(recorded, 2, &osc, NULL, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(load_text("0 0 0 1 170 10 2\n0.5 90 0 1 190 10 2\n", 2, &rows, NULL, &error) == GPUCONV_OK, "%s",
          error.message);
    check_near("a recorded path", run_with(set, osc, NULL, &x), run_with(set, rows, NULL, &x), -110);
    gpuconv_path_free(osc);
    gpuconv_path_free(rows);
    guarded_free(&x);
    gpuconv_sofa_free(set);
}

static void a_recorded_head_is_that_of_its_rows(void **state) {
    (void)state;
    gpuconv_head *osc, *rows;
    gpuconv_error error = {0};
    gpuconv_sofa *set = open_set("head.sofa");
    gpuconv_path *path = make_turn(0, 50);
    guarded x = make_tones(1);
    CHECK(load_text("00000001.80000000 /head/ypr fff 170 0 0\n00000002.00000000 /head/ypr fff -130 5 -5\n", 0, NULL,
                    &osc, &error) == GPUCONV_OK,
          "%s", error.message);
    CHECK(load_text("time,yaw,pitch,roll\n0,170\n0.5,230,5,-5\n", 0, NULL, &rows, &error) == GPUCONV_OK, "%s",
          error.message);
    check_near("a recorded head", run_with(set, path, osc, &x), run_with(set, path, rows, &x), -110);
    gpuconv_head_free(osc);
    gpuconv_head_free(rows);
    gpuconv_path_free(path);
    guarded_free(&x);
    gpuconv_sofa_free(set);
}

static void wrong_recordings_are_refused(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"00000001.00000000 /1/aed fff 0 0 1\n", "has no OSC message for channel 2"},
        {"00000001.00000000 /x fff 0 0 1\n", "contains no direction"},
        {"00000002.00000000 /1/aed fff 0 0 1\n00000001.00000000 /2/aed fff 0 0 1\n", "times are 0 s or more"},
        {"00000001.00000000 /1/aed fff 0 0 1\n00000001.00000000 /2/aed fff 0 95 1\n", "elevations -90 to 90"},
        {"00000001.00000000 /1/aed fff 0 nan 1\n", "contains no direction"},
        {"00000001.00000000 /1/aed fff 0 0 1\n1 2 3\n", "line 2: '1 2 3': is no OSC message"},
        {"00000001.0000000 /1/aed fff 0 0 1\n", "is not SECONDS"}};
    for (int i = 0; i < COUNT(wrong); i++) {
        gpuconv_path *path;
        gpuconv_error error = {0};
        assert_int_equal(load_text(wrong[i][0], 2, &path, NULL, &error), GPUCONV_ERROR_FORMAT);
        assert_null(path);
        CHECK(strstr(error.message, wrong[i][1]), "recording %d says: %s", i, error.message);
    }
}

static void wrong_heads_and_places_are_refused(void **state) {
    (void)state;
    const double falling[2] = {1, 0}, angles[6] = {0};
    gpuconv_head *head;
    gpuconv_path *path;
    assert_int_equal(gpuconv_head_new(falling, angles, 2, &head, NULL), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_head_new(falling, angles, 0, &head, NULL), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_path_new_still("7.1", 2, &path, NULL), GPUCONV_ERROR_TOPOLOGY);
    assert_int_equal(gpuconv_path_new_still("ambisonic", 5, &path, NULL), GPUCONV_ERROR_TOPOLOGY);
    assert_null(path);
    gpuconv_sofa *room = open_set("brir.sofa");
    gpuconv_motion *m;
    path = make_still("ambisonic", 4);
    assert_int_equal(gpuconv_motion_new(room, path, NULL, &m, NULL), GPUCONV_ERROR_ARGUMENT);
    assert_null(m);
    gpuconv_path_free(path);
    gpuconv_sofa_free(room);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_turns_against_its_sources),
        cmocka_unit_test(a_head_that_rests_hears_the_responses_of_its_orientation),
        cmocka_unit_test(a_turned_head_in_a_room_gets_its_responses),
        cmocka_unit_test(ambisonics_turn_with_the_head),
        cmocka_unit_test(a_sound_device_gets_the_frames_of_a_file),
        cmocka_unit_test(frames_that_are_late_are_silent_and_counted),
        cmocka_unit_test(a_path_is_moved_to_another_place_of_the_file),
        cmocka_unit_test(a_tracked_head_turns_the_scene),
        cmocka_unit_test(a_source_is_placed_by_a_control),
        cmocka_unit_test(a_recorded_path_is_that_of_its_rows),
        cmocka_unit_test(a_recorded_head_is_that_of_its_rows),
        cmocka_unit_test(wrong_recordings_are_refused),
        cmocka_unit_test(wrong_heads_and_places_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
