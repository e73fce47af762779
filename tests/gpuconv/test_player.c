/* Plays files through lists of responses with a sound device that the test drives: what is played is what the same
 * preparation of the response gives offline, for one channel through one, two and four channels and a SOFA set, for a
 * head that turns, and for a bed of loudspeakers. */
#include "fake_sound.h"
#include "files.h"
#include "gpuconv/play/player_state.h"
#include "gpuconv_rooms.h"
#include "harness.h"
#include "libgpuconv/space/motion.h"

#include <math.h>
#include <unistd.h>

enum { RATE = 48000, SILENCE = 24000, SOUND = 6000, BLOCK = 256, MOST = 1 << 17 };

/* Plays until the player has finished; follows the head between two blocks. @return what was played */
static guarded play(gc_player *player, int outputs) {
    guarded heard = guarded_new(outputs, MOST);
    gpuconv_error error = {0};
    gc_player_view view = {0};
    int64_t at = 0;
    CHECK(gc_player_start(player, &error) == GPUCONV_OK, "%s", error.message);
    for (; at + BLOCK <= MOST && !view.finished; at += BLOCK) {
        float *out[GC_PLAYER_CHANNELS];
        for (int c = 0; c < outputs; c++)
            out[c] = heard.channel[c] + at;
        fake_sound.opened.callback(fake_sound.opened.context, NULL, out, BLOCK);
        if (player->motion)
            gc_motion_settle(player->motion);
        CHECK(gc_player_follow(player, &error) == GPUCONV_OK, "%s", error.message);
        gc_player_get_view(player, &view);
    }
    CHECK(view.finished, "still playing");
    assert_int_equal(view.late_blocks, 0);
    assert_int_equal(view.underruns, 0);
    assert_true(guarded_intact(&heard));
    bool recorded = true;
    CHECK(gc_player_stop(player, false, &recorded, &error) == GPUCONV_OK, "%s", error.message);
    assert_false(recorded);
    assert_int_equal(fake_sound.end, GC_SOUND_DRAIN);
    return heard;
}

/* ---- What is expected -------------------------------------------------------------------------------------------- */

/* Writes silence, in which crossfades end, and then noise. */
static guarded write_input(const char *path, int channels) {
    oracle_random random = {7};
    guarded x = guarded_random(&random, channels, SILENCE + SOUND);
    for (int c = 0; c < channels; c++)
        memset(x.channel[c], 0, SILENCE * sizeof(float));
    files_write(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &x);
    return x;
}

static void write_response(const char *path, int channels, int rate, uint64_t seed) {
    oracle_random random = {seed};
    guarded taps = guarded_random(&random, channels, 150);
    files_write(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, rate, &taps);
    guarded_free(&taps);
}

static bool sofa_is_read(void) {
    gpuconv_preparation p = gpuconv_preparation_default();
    gpuconv_ir *ir;
    p.direction = "0,0";
    gpuconv_status status = gpuconv_ir_prepare(files_source("tests/sofa/head.sofa"), &p, 1, RATE, &ir, NULL);
    if (!status)
        gpuconv_ir_free(ir);
    return status != GPUCONV_ERROR_UNSUPPORTED;
}

/* Checks what was heard against a preparation of the response; `factor` dry is added to every output. */
static void check_heard(const char *what, const guarded *heard, const guarded *x, const char *response,
                        const gpuconv_preparation *p) {
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    CHECK(gpuconv_ir_prepare(response, p, x->channels, RATE, &ir, &error) == GPUCONV_OK, "%s", error.message);
    guarded want = harness_offline(ir, x);
    gpuconv_ir_free(ir);
    assert_true(want.channels == heard->channels || want.channels == 1);
    for (int c = 0; c < heard->channels; c++) {
        const float *from = want.channel[want.channels == 1 ? 0 : c];
        double *wide = calloc((size_t)want.frames, sizeof *wide);
        assert_non_null(wide);
        for (int64_t i = 0; i < want.frames; i++)
            wide[i] = (double)from[i];
        oracle_error e = oracle_compare(heard->channel[c] + SILENCE, wide + SILENCE, want.frames - SILENCE);
        CHECK(e.rms <= -110, "%s, channel %d: %.1f dB", what, c + 1, e.rms);
        free(wide);
    }
    guarded_free(&want);
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static void one_channel_through_every_layout(void **state) {
    (void)state;
    static const char *const said[] = {"true stereo", "", "", "resampled", "of its"};
    char four[300], two[300], one[300], rate[300], sofa[300];
    const char *responses[] = {four, two, one, rate, sofa};
    snprintf(four, sizeof four, "%s", files_path("four.wav"));
    snprintf(two, sizeof two, "%s", files_path("two.wav"));
    snprintf(one, sizeof one, "%s", files_path("one.wav"));
    snprintf(rate, sizeof rate, "%s", files_path("rate.wav"));
    snprintf(sofa, sizeof sofa, "%s", files_source("tests/sofa/head.sofa"));
    write_response(four, 4, RATE, 1);
    write_response(two, 2, RATE, 2);
    write_response(one, 1, RATE, 3);
    write_response(rate, 1, 44100, 4);
    char input[300];
    snprintf(input, sizeof input, "%s", files_path("voice.wav"));
    guarded x = write_input(input, 1);
    const int count = sofa_is_read() ? 5 : 4;
    for (int i = 0; i < count; i++) {
        const gc_player_config config = {.input = input,
                                         .responses = responses,
                                         .response_count = count,
                                         .settings.preparation.layout = GPUCONV_LAYOUT_STEREO,
                                         .settings.preparation.direction = "30,0",
                                         .threads = 1,
                                         .backend = GPUCONV_BACKEND_CPU,
                                         .block = BLOCK,
                                         .settings.preparation.dry = -6,
                                         .crossfade = 0.05};
        gc_player *player;
        gc_player_view view;
        gpuconv_error error = {0};
        CHECK(gc_player_new(&config, &player, &error) == GPUCONV_OK, "%s", error.message);
        CHECK(i == 0 || gc_player_select_response(player, i, &error) == GPUCONV_OK, "%s", error.message);
        gc_player_get_view(player, &view);
        assert_int_equal(view.outputs, 2);
        CHECK(strstr(view.applied, said[i]), "response %d: '%s' does not say '%s'", i, view.applied, said[i]);
        guarded heard = play(player, 2);
        gpuconv_preparation p = gpuconv_preparation_default();
        p.layout = GPUCONV_LAYOUT_STEREO;
        p.dry = -6;
        p.direction = i == 4 ? "30,0" : NULL;
        check_heard(responses[i], &heard, &x, responses[i], &p);
        guarded_free(&heard);
        gc_player_free(player);
    }
    guarded_free(&x);
}

static void a_layout_that_is_asked_for_is_kept(void **state) {
    (void)state;
    char four[300], input[300];
    const char *responses[] = {four};
    snprintf(four, sizeof four, "%s", files_path("array.wav"));
    snprintf(input, sizeof input, "%s", files_path("mono.wav"));
    write_response(four, 4, RATE, 1);
    guarded x = write_input(input, 1);
    const gc_player_config config = {.input = input,
                                     .responses = responses,
                                     .response_count = 1,
                                     .settings.preparation.layout = GPUCONV_LAYOUT_SOURCE,
                                     .threads = 1,
                                     .backend = GPUCONV_BACKEND_CPU,
                                     .block = BLOCK,
                                     .settings.preparation.dry = -HUGE_VAL};
    gc_player *player;
    gpuconv_error error = {0};
    CHECK(gc_player_new(&config, &player, &error) == GPUCONV_OK, "%s", error.message);
    assert_int_equal(fake_sound.opened.outputs, 4);
    guarded heard = play(player, 4);
    gpuconv_preparation p = gpuconv_preparation_default();
    check_heard("four outputs", &heard, &x, four, &p);
    guarded_free(&heard);
    gc_player_free(player);
    guarded_free(&x);
}

/* Plays through head.sofa while the head turns to 83 degrees during the silence: at once, because more exchanges than
 * the convolver has voices would wait for its thread. */
static void check_turn(const char *name, int channels, const char *direction, const char *speakers) {
    char input[300], turns[300], sofa[300];
    const char *responses[] = {sofa};
    snprintf(sofa, sizeof sofa, "%s", files_source("tests/sofa/head.sofa"));
    snprintf(input, sizeof input, "%s", files_path("turned.wav"));
    snprintf(turns, sizeof turns, "%s", files_path("turns.txt"));
    FILE *f = fopen(turns, "w");
    assert_non_null(f);
    assert_true(fputs("0 0\n0.1 0\n0.1 83\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    guarded x = write_input(input, channels);
    const gc_player_config config = {.input = input,
                                     .responses = responses,
                                     .response_count = 1,
                                     .settings.preparation.layout = GPUCONV_LAYOUT_STEREO,
                                     .settings.preparation.direction = direction,
                                     .settings.preparation.speakers = speakers,
                                     .follow = turns,
                                     .threads = 1,
                                     .backend = GPUCONV_BACKEND_CPU,
                                     .block = BLOCK,
                                     .settings.preparation.dry = -HUGE_VAL};
    gc_player *player;
    gpuconv_error error = {0};
    CHECK(gc_player_new(&config, &player, &error) == GPUCONV_OK, "%s: %s", name, error.message);
    assert_int_equal(fake_sound.opened.outputs, 2);
    guarded heard = play(player, 2);
    gpuconv_preparation p = gpuconv_preparation_default();
    p.direction = direction;
    p.speakers = speakers;
    p.yaw = 83;
    check_heard(name, &heard, &x, sofa, &p);
    guarded_free(&heard);
    gc_player_free(player);
    guarded_free(&x);
}

static void a_head_turns(void **state) {
    (void)state;
    if (!sofa_is_read())
        skip();
    check_turn("a voice", 1, "30,0", NULL);
    check_turn("a bed", 6, NULL, "5.1");
    check_turn("ambisonics", 4, NULL, "ambisonic");
}

/* Plays with a path or a head from files, and compares with the same of a file, from the first sound on. */
static void check_motion(const char *name, int channels, gc_player_config config) {
    char input[300], sofa[300];
    const char *responses[] = {sofa};
    gpuconv_error error = {0};
    gpuconv_sofa *set;
    gpuconv_path *path;
    gpuconv_head *head = NULL;
    gpuconv_motion *motion;
    gc_player *player;
    snprintf(sofa, sizeof sofa, "%s", files_source("tests/sofa/head.sofa"));
    snprintf(input, sizeof input, "%s", files_path("moved.wav"));
    guarded x = write_input(input, channels);
    config.input = input;
    config.responses = responses;
    config.response_count = 1;
    config.threads = 1;
    config.backend = GPUCONV_BACKEND_CPU;
    config.block = BLOCK;
    config.settings.preparation.dry = -HUGE_VAL;
    CHECK(gc_player_new(&config, &player, &error) == GPUCONV_OK, "%s: %s", name, error.message);
    gc_player_view view;
    gc_player_get_view(player, &view);
    const int64_t latency = view.latency;
    CHECK(!(config.settings.job.path || config.settings.job.head) || strstr(view.applied, " rows)"),
          "%s: how many rows? %s", name, view.applied);
    guarded heard = play(player, 2);
    gc_player_free(player);
    assert_int_equal(gpuconv_sofa_open(sofa, RATE, &set, NULL), GPUCONV_OK);
    assert_int_equal(config.settings.job.room
                         ? gpuconv_path_load_in_room(config.settings.job.path, channels, &path, NULL)
                     : config.settings.job.path
                         ? gpuconv_path_load(config.settings.job.path, channels, &path, NULL)
                         : gpuconv_path_new_still(config.settings.preparation.speakers, channels, &path, NULL),
                     GPUCONV_OK);
    const char *turns = config.settings.job.head ? config.settings.job.head : config.follow;
    assert_true(!turns || gpuconv_head_load(turns, &head, NULL) == GPUCONV_OK);
    gpuconv_motion_config moving = gpuconv_motion_config_default();
    moving.head = head;
    moving.doppler = config.settings.job.doppler;
    moving.decode = config.settings.preparation.decode;
    assert_int_equal(config.settings.job.room
                         ? gpuconv_motion_new_in_room(config.settings.job.room, path, NULL, &moving, &motion, NULL)
                         : gpuconv_motion_new(set, path, &moving, &motion, NULL),
                     GPUCONV_OK);
    guarded want = guarded_new(2, x.frames + gpuconv_motion_tail(motion));
    int64_t got;
    assert_int_equal(gpuconv_motion_feed(motion, (const float *const *)x.channel, x.frames, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_motion_feed(motion, NULL, 0, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_motion_fetch(motion, want.channel, want.frames, &got), GPUCONV_OK);
    for (int c = 0; c < 2; c++)
        CHECK(memcmp(heard.channel[c] + latency + SILENCE, want.channel[c] + SILENCE,
                     (size_t)(want.frames - SILENCE) * sizeof(float)) == 0,
              "%s: other samples than of a file", name);
    gpuconv_motion_free(motion);
    gpuconv_path_free(path);
    gpuconv_head_free(head);
    gpuconv_sofa_free(set);
    guarded_free(&heard);
    guarded_free(&want);
    guarded_free(&x);
}

static void paths_and_heads_give_the_samples_of_a_file(void **state) {
    (void)state;
    if (!sofa_is_read())
        skip();
    char path[300], head[300], rest[300], walk[300];
    gpuconv_room room = {.size = {5, 4, 3}};
    const gpuconv_room_point pair[2] = {{{4, 2, 1.2}, 30, 0, 0.5}, {{4.1, 2, 1.2}, 0, 0, 1}};
    gpuconv_rooms_job job = gpuconv_rooms_job_default();
    job.room = &room;
    job.rooms = 1;
    job.receiver = pair;
    job.receivers = 2;
    job.rate = RATE;
    job.frames = 2000;
    job.images_order = 2;
    snprintf(path, sizeof path, "%s", files_path("path.csv"));
    snprintf(rest, sizeof rest, "%s", files_path("rest.csv"));
    snprintf(head, sizeof head, "%s", files_path("head.csv"));
    FILE *f = fopen(rest, "w");
    assert_true(f && fputs("0 40 -10\n", f) >= 0 && fclose(f) == 0);
    snprintf(walk, sizeof walk, "%s", files_path("walk.csv"));
    f = fopen(walk, "w");
    assert_true(f && fputs("0 1 1 1.5\n0.6 1.9 1.4 1.5\n", f) >= 0 && fclose(f) == 0);
    f = fopen(path, "w");
    FILE *g = fopen(head, "w");
    assert_true(f && g && fputs("0 0 0 1\n0.6 300 20 4\n", f) >= 0 && fputs("0 0\n0.7 100 20 5\n", g) >= 0);
    assert_true(fclose(f) == 0 && fclose(g) == 0);
    check_motion(
        "a path", 1,
        (gc_player_config){.settings.job.path = path, .settings.job.head = head, .settings.job.doppler = true});
    check_motion("a walk in a room", 1,
                 (gc_player_config){.settings.job.room = &job, .settings.job.path = walk, .settings.job.head = head});
    check_motion("a path and a tracker", 1, (gc_player_config){.settings.job.path = path, .follow = rest});
    check_motion("a bed", 6, (gc_player_config){.settings.preparation.speakers = "5.1", .settings.job.head = head});
    check_motion("ambisonics", 4,
                 (gc_player_config){.settings.preparation.speakers = "ambisonic",
                                    .settings.job.head = head,
                                    .settings.preparation.decode = GPUCONV_DECODE_ALIGNED});
    gc_player *player;
    gpuconv_error error = {0};
    char input[300], sofa[300];
    const char *responses[] = {sofa};
    snprintf(sofa, sizeof sofa, "%s", files_source("tests/sofa/head.sofa"));
    snprintf(input, sizeof input, "%s", files_path("moved.wav"));
    const gc_player_config wrong[] = {{.settings.job.head = head},
                                      {.settings.job.path = path, .settings.preparation.speakers = "mono"},
                                      {.settings.job.path = path, .follow = head, .settings.job.head = head}};
    for (int i = 0; i < COUNT(wrong); i++) {
        gc_player_config config = wrong[i];
        config.input = input;
        config.responses = responses;
        config.response_count = 1;
        assert_int_equal(gc_player_new(&config, &player, &error), GPUCONV_ERROR_ARGUMENT);
        assert_null(player);
    }
}

static void a_position_never_exceeds_the_length(void **state) {
    (void)state;
    char input[300], response[300];
    const char *responses[] = {response};
    snprintf(input, sizeof input, "%s", files_path("loop.wav"));
    snprintf(response, sizeof response, "%s", files_path("one.wav"));
    write_response(response, 1, RATE, 3);
    guarded x = write_input(input, 1), out = guarded_new(1, BLOCK);
    const gc_player_config config = {.input = input,
                                     .responses = responses,
                                     .response_count = 1,
                                     .threads = 1,
                                     .backend = GPUCONV_BACKEND_CPU,
                                     .block = BLOCK,
                                     .loop = true};
    gc_player *player;
    gc_player_view view;
    gpuconv_error error = {0};
    CHECK(gc_player_new(&config, &player, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gc_player_start(player, &error) == GPUCONV_OK, "%s", error.message);
    double before = 0;
    int starts = 0;
    for (int k = 0; k < 20000 && starts < 3; k++) {
        fake_sound.opened.callback(fake_sound.opened.context, NULL, out.channel, BLOCK);
        gc_player_get_view(player, &view);
        CHECK(view.position < (double)(SILENCE + SOUND) / RATE, "at %g s", view.position);
        starts += view.position < before;
        before = view.position;
        usleep(view.underruns ? 200 : 0);
    }
    CHECK(starts == 3, "the file started %d times again", starts);
    bool recorded;
    CHECK(gc_player_stop(player, true, &recorded, &error) == GPUCONV_OK, "%s", error.message);
    gc_player_free(player);
    guarded_free(&x);
    guarded_free(&out);
}

/* A recording replaces no file that is played, whatever its name. */
static void a_recording_replaces_no_file_that_is_read(void **state) {
    (void)state;
    char in[FILENAME_MAX], ir[FILENAME_MAX], link_to_ir[FILENAME_MAX];
    (void)snprintf(in, sizeof in, "%s", files_path("in.wav"));
    (void)snprintf(ir, sizeof ir, "%s", files_path("ir.wav"));
    (void)snprintf(link_to_ir, sizeof link_to_ir, "%s", files_path("link.wav"));
    guarded x = write_input(in, 1);
    guarded_free(&x);
    write_response(ir, 1, RATE, 3);
    assert_int_equal(symlink(ir, link_to_ir), 0);
    const char *const responses[] = {ir}, *const records[] = {in, ir, link_to_ir};
    for (int i = 0; i < COUNT(records); i++) {
        gc_player *player;
        gpuconv_error error = {0};
        const gc_player_config config = {.input = in,
                                         .responses = responses,
                                         .response_count = 1,
                                         .record = records[i],
                                         .block = BLOCK,
                                         .settings.preparation.dry = -HUGE_VAL};
        assert_int_equal(gc_player_new(&config, &player, &error), GPUCONV_ERROR_ARGUMENT);
        CHECK(strstr(error.message, "would replace a file of the same job"), "%s", error.message);
    }
    assert_int_equal(unlink(link_to_ir), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_channel_through_every_layout),
        cmocka_unit_test(a_layout_that_is_asked_for_is_kept),
        cmocka_unit_test(a_head_turns),
        cmocka_unit_test(paths_and_heads_give_the_samples_of_a_file),
        cmocka_unit_test(a_position_never_exceeds_the_length),
        cmocka_unit_test(a_recording_replaces_no_file_that_is_read),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
