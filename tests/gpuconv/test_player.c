/* Plays files through lists of responses with a sound device that the test drives: what is played is what the same
 * preparation of the response gives offline, for one channel through one, two and four channels and a SOFA set, for a
 * head that turns, and for a bed of loudspeakers. A recording has what was played, also after a failure. */
#include "files.h"
#include "gpuconv/play/player.h"
#include "harness.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { RATE = 48000, SILENCE = 24000, SOUND = 6000, BLOCK = 256, MOST = 1 << 17 };

/* ---- A device that plays when the test says so ------------------------------------------------------------------- */

static gc_sound_config opened;

static gpuconv_status fake_open(const gc_sound_config *config, gc_sound_device **sound, gpuconv_error *error) {
    (void)error;
    opened = *config;
    *sound = (gc_sound_device *)(void *)&opened;
    return GPUCONV_OK;
}

static gpuconv_status fake_start(gc_sound_device *sound, gpuconv_error *error) {
    (void)sound, (void)error;
    return GPUCONV_OK;
}

static double fake_latency(const gc_sound_device *sound) {
    (void)sound;
    return 0;
}

static int64_t fake_xruns(const gc_sound_device *sound) {
    (void)sound;
    return 0;
}

static bool fake_is_active(const gc_sound_device *sound) {
    (void)sound;
    return true;
}

/* What the device was told when it was closed, and whether the recording had its name by then. */
static struct {
    const char *recording;
    bool was_there;
    gc_sound_end end;
} closed;

static void fake_close(gc_sound_device *sound, gc_sound_end end) {
    (void)sound;
    closed.end = end;
    closed.was_there = closed.recording && access(closed.recording, R_OK) == 0;
}

gpuconv_status __wrap_gc_sound_load(gc_sound_choice choice, const gc_sound_system **system, gpuconv_error *error);

gpuconv_status __wrap_gc_sound_load(gc_sound_choice choice, const gc_sound_system **system, gpuconv_error *error) {
    static const gc_sound_system fake = {"a test",     NULL,       NULL,           fake_open, fake_start,
                                         fake_latency, fake_xruns, fake_is_active, fake_close};
    (void)choice, (void)error;
    *system = &fake;
    return GPUCONV_OK;
}

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
        opened.callback(opened.context, NULL, out, BLOCK);
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
    assert_int_equal(closed.end, GC_SOUND_DRAIN);
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
                                         .layout = GPUCONV_LAYOUT_STEREO,
                                         .direction = "30,0",
                                         .threads = 1,
                                         .backend = GPUCONV_BACKEND_CPU,
                                         .block = BLOCK,
                                         .dry = -6,
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
                                     .layout = GPUCONV_LAYOUT_SOURCE,
                                     .threads = 1,
                                     .backend = GPUCONV_BACKEND_CPU,
                                     .block = BLOCK,
                                     .dry = -HUGE_VAL};
    gc_player *player;
    gpuconv_error error = {0};
    CHECK(gc_player_new(&config, &player, &error) == GPUCONV_OK, "%s", error.message);
    assert_int_equal(opened.outputs, 4);
    guarded heard = play(player, 4);
    gpuconv_preparation p = gpuconv_preparation_default();
    check_heard("four outputs", &heard, &x, four, &p);
    guarded_free(&heard);
    gc_player_free(player);
    guarded_free(&x);
}

/* Plays through head.sofa while the head turns to 90 degrees during the silence: at once, because more exchanges than
 * the convolver has voices would wait for its thread. */
static void check_turn(const char *name, int channels, const char *direction, const char *speakers) {
    char input[300], turns[300], sofa[300];
    const char *responses[] = {sofa};
    snprintf(sofa, sizeof sofa, "%s", files_source("tests/sofa/head.sofa"));
    snprintf(input, sizeof input, "%s", files_path("turned.wav"));
    snprintf(turns, sizeof turns, "%s", files_path("turns.txt"));
    FILE *f = fopen(turns, "w");
    assert_non_null(f);
    assert_true(fputs("0 0\n0.1 0\n0.1 90\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    guarded x = write_input(input, channels);
    const gc_player_config config = {.input = input,
                                     .responses = responses,
                                     .response_count = 1,
                                     .layout = GPUCONV_LAYOUT_STEREO,
                                     .direction = direction,
                                     .speakers = speakers,
                                     .follow = turns,
                                     .threads = 1,
                                     .backend = GPUCONV_BACKEND_CPU,
                                     .block = BLOCK,
                                     .dry = -HUGE_VAL};
    gc_player *player;
    gpuconv_error error = {0};
    CHECK(gc_player_new(&config, &player, &error) == GPUCONV_OK, "%s: %s", name, error.message);
    assert_int_equal(opened.outputs, 2);
    guarded heard = play(player, 2);
    gpuconv_preparation p = gpuconv_preparation_default();
    p.direction = direction;
    p.speakers = speakers;
    p.yaw = 90;
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
                                         .dry = -HUGE_VAL};
        assert_int_equal(gc_player_new(&config, &player, &error), GPUCONV_ERROR_ARGUMENT);
        CHECK(strstr(error.message, "would replace a file of the same job"), "%s", error.message);
    }
    assert_int_equal(unlink(link_to_ir), 0);
}

/* ---- Recording --------------------------------------------------------------------------------------------------- */

/* Returns a player of a live input of one channel with a response of 1. */
static gc_player *begin_live(const char *recording, double seconds) {
    static char tap[300];
    static const char *responses[] = {tap};
    guarded one = guarded_new(1, 1);
    one.channel[0][0] = 1;
    snprintf(tap, sizeof tap, "%s", files_path("tap.wav"));
    files_write(tap, SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &one);
    guarded_free(&one);
    const gc_player_config config = {.responses = responses,
                                     .response_count = 1,
                                     .channels = 1,
                                     .threads = 1,
                                     .backend = GPUCONV_BACKEND_CPU,
                                     .block = BLOCK,
                                     .record = recording,
                                     .seconds = seconds,
                                     .dry = -HUGE_VAL};
    gc_player *player;
    gpuconv_error error = {0};
    CHECK(gc_player_new(&config, &player, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gc_player_start(player, &error) == GPUCONV_OK, "%s", error.message);
    closed.recording = recording;
    closed.was_there = false;
    return player;
}

/* Feeds a block from frame `at` of a signal. @return whether the player has finished */
static bool feed(gc_player *player, const guarded *x, int64_t at) {
    const float *in[] = {x->channel[0] + at};
    float out[BLOCK], *to[] = {out};
    gc_player_view view;
    opened.callback(opened.context, in, to, BLOCK);
    gc_player_get_view(player, &view);
    return view.finished;
}

/* Checks that the recording is the first `frames` frames of the signal; -1: of some length, which is returned. */
static int64_t check_recording(const char *path, const guarded *x, int64_t frames) {
    SF_INFO info;
    guarded y = files_read(path, &info);
    CHECK(frames < 0 || y.frames == frames, "%lld frames instead of %lld", (long long)y.frames, (long long)frames);
    CHECK(oracle_identical(path, &y, y.frames, x, y.frames), "another signal was recorded");
    frames = y.frames;
    guarded_free(&y);
    return frames;
}

/* Blocks that come late, or in a burst, count as what they are. */
static void seconds_are_frames_of_the_device(void **state) {
    (void)state;
    oracle_random random = {61};
    guarded x = guarded_random(&random, 1, RATE);
    const char *path = files_path("exact.wav");
    gc_player *player = begin_live(path, 0.5);
    gpuconv_error error = {0};
    bool recorded, finished = false;
    int64_t at = 0;
    for (; at + BLOCK <= x.frames && !finished; at += BLOCK)
        finished = feed(player, &x, at);
    CHECK(finished && at >= RATE / 2 && at < RATE * 3 / 4, "%d after %lld frames", finished, (long long)at);
    CHECK(gc_player_stop(player, false, &recorded, &error) == GPUCONV_OK, "%s", error.message);
    assert_true(recorded);
    check_recording(path, &x, RATE / 2);
    gc_player_free(player);
    guarded_free(&x);
}

static void a_recording_is_committed_before_the_device_is_closed(void **state) {
    (void)state;
    oracle_random random = {62};
    guarded x = guarded_random(&random, 1, 40 * BLOCK);
    for (int failed = 0; failed < 2; failed++) {
        const char *path = files_path("order%d.wav", failed);
        gc_player *player = begin_live(path, 0);
        gpuconv_error error = {0};
        bool recorded;
        for (int64_t at = 0; at < x.frames; at += BLOCK)
            assert_false(feed(player, &x, at));
        CHECK(gc_player_stop(player, failed, &recorded, &error) == GPUCONV_OK, "%s", error.message);
        assert_true(recorded && closed.was_there);
        assert_int_equal(closed.end, failed ? GC_SOUND_ABANDON : GC_SOUND_ABORT);
        check_recording(path, &x, x.frames);
        gc_player_free(player);
    }
    guarded_free(&x);
}

/* The limit of a file's size stands for a full disk: a write near it is cut off. */
static void a_full_disk_keeps_what_it_took(void **state) {
    (void)state;
    enum { LIMIT = 50001 };
    oracle_random random = {63};
    guarded x = guarded_random(&random, 1, RATE);
    struct rlimit before, less;
    static const char *const names[] = {"full.wav", "full.aiff", "full.caf", "full.w64", "full.au"};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    for (int k = 0; k < COUNT(names); k++) {
        const char *path = files_path("%s", names[k]);
        gc_player *player = begin_live(path, 0);
        gpuconv_error error = {0};
        bool recorded, finished = false;
        less = before;
        less.rlim_cur = LIMIT;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
        for (int64_t at = 0; !finished; at = (at + BLOCK) % (RATE - BLOCK)) {
            struct timespec interval = {0, 200000};
            nanosleep(&interval, NULL);
            finished = feed(player, &x, at);
        }
        assert_int_equal(gc_player_stop(player, false, &recorded, &error), GPUCONV_ERROR_FILE);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        CHECK(recorded && strstr(error.message, names[k]) && strstr(error.message, "large"), "%s: '%s'", names[k],
              error.message);
        assert_int_equal(closed.end, GC_SOUND_ABORT);
        const int64_t frames = check_recording(path, &x, -1);
        CHECK(frames > 4000 && frames * 4 <= LIMIT, "%s: %lld frames", names[k], (long long)frames);
        gc_player_free(player);
    }
    guarded_free(&x);
}

static void a_live_input_that_is_not_finite_is_silence_and_counted(void **state) {
    (void)state;
    oracle_random random = {64};
    guarded x = guarded_random(&random, 1, 40 * BLOCK);
    const char *path = files_path("finite.wav");
    gc_player *player = begin_live(path, 0);
    gpuconv_error error = {0};
    bool recorded;
    gc_player_set_levels(player, 0, 0, -400); /* the dry signal is muted, but kept */
    x.channel[0][1000] = NAN;
    x.channel[0][1001] = x.channel[0][7000] = INFINITY;
    for (int64_t at = 0; at < x.frames; at += BLOCK)
        (void)feed(player, &x, at);
    CHECK(gc_player_stop(player, false, &recorded, &error) == GPUCONV_OK, "%s", error.message);
    assert_int_equal(gc_player_nonfinite(player), 3);
    x.channel[0][1000] = x.channel[0][1001] = x.channel[0][7000] = 0;
    check_recording(path, &x, x.frames);
    gc_player_free(player);
    guarded_free(&x);
}

static void a_device_that_stays_silent_has_failed(void **state) {
    (void)state;
    static const struct {
        int block;
        int64_t frames;
        int looks;
    } cases[] = {{0, 0, 60},    {0, 512, 60}, /* a sound server takes its time to begin */
                 {0, RATE, 30}, {64, 1 << 30, 30}, {RATE, RATE, 70}, {2 * RATE, RATE, 110}};
    for (int i = 0; i < COUNT(cases); i++) {
        gc_sound_watch watch = {.rate = RATE, .block = cases[i].block};
        assert_true(gc_sound_works(&watch, true, cases[i].frames + 1, 0.1));
        int looks = 0;
        for (int hitch = 0; hitch < 3; hitch++) /* one after another is no failure */
            for (looks = 0; looks < cases[i].looks - 1; looks++)
                CHECK(gc_sound_works(&watch, true, cases[i].frames + hitch, 0.1), "case %d, look %d", i, looks);
        while (looks < 1000 && gc_sound_works(&watch, true, cases[i].frames + 2, 0.1))
            looks++;
        CHECK(looks >= cases[i].looks - 1 && looks <= cases[i].looks + 1, "case %d: %d looks", i, looks);
    }
    gc_sound_watch says_so = {.rate = RATE};
    assert_false(gc_sound_works(&says_so, false, 64, 0.1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_channel_through_every_layout),
        cmocka_unit_test(a_layout_that_is_asked_for_is_kept),
        cmocka_unit_test(a_head_turns),
        cmocka_unit_test(a_recording_replaces_no_file_that_is_read),
        cmocka_unit_test(seconds_are_frames_of_the_device),
        cmocka_unit_test(a_recording_is_committed_before_the_device_is_closed),
        cmocka_unit_test(a_full_disk_keeps_what_it_took),
        cmocka_unit_test(a_live_input_that_is_not_finite_is_silence_and_counted),
        cmocka_unit_test(a_device_that_stays_silent_has_failed),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
