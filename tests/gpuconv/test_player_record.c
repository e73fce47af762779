/* Records what is played with a sound device that the test drives: a recording has the frames that were asked for, and
 * is kept when the device or the disk fails. */
#include "fake_sound.h"
#include "files.h"
#include "gpuconv/play/player.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

enum { RATE = 48000, BLOCK = 256 };

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
                                     .settings.preparation.dry = -HUGE_VAL};
    gc_player *player;
    gpuconv_error error = {0};
    CHECK(gc_player_new(&config, &player, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gc_player_start(player, &error) == GPUCONV_OK, "%s", error.message);
    fake_sound.recording = recording;
    fake_sound.was_there = false;
    return player;
}

/* Feeds a block from frame `at` of a signal. @return whether the player has finished */
static bool feed(gc_player *player, const guarded *x, int64_t at) {
    const float *in[] = {x->channel[0] + at};
    float out[BLOCK], *to[] = {out};
    gc_player_view view;
    fake_sound.opened.callback(fake_sound.opened.context, in, to, BLOCK);
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
        assert_true(recorded && fake_sound.was_there);
        assert_int_equal(fake_sound.end, failed ? GC_SOUND_ABANDON : GC_SOUND_ABORT);
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
        assert_int_equal(fake_sound.end, GC_SOUND_ABORT);
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
        cmocka_unit_test(seconds_are_frames_of_the_device),
        cmocka_unit_test(a_recording_is_committed_before_the_device_is_closed),
        cmocka_unit_test(a_full_disk_keeps_what_it_took),
        cmocka_unit_test(a_live_input_that_is_not_finite_is_silence_and_counted),
        cmocka_unit_test(a_device_that_stays_silent_has_failed),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
