/* Tests the LV2 plug-in's bypass, edits of the response, meters and channel layouts in a minimal host. */
#include "host.h"

#include <math.h>
#include <time.h>

/* Writes a response with the given taps per channel, `stride` frames apart. @return its path */
static const char *write_taps(const char *name, int channels, int taps, int stride, const float *level) {
    guarded g = guarded_new(channels, (taps - 1) * stride + 1);
    for (int c = 0; c < channels; c++) {
        memset(g.channel[c], 0, sizeof(float) * (size_t)((taps - 1) * stride + 1));
        for (int t = 0; t < taps; t++)
            g.channel[c][t * stride] = level[c * taps + t];
    }
    const char *path = files_path("%s", name);
    files_write(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &g);
    guarded_free(&g);
    return path;
}

/* Loads a response and plays until only it sounds. */
static void settle(host *h, const char *path) {
    host_play(h, path);
    host_deliver_reply(h);
    for (int b = 0; b < 3000; b++)
        host_play(h, NULL);
}

static void bypass_gives_the_input_without_a_click(void **state) {
    (void)state;
    host *h = host_new("urn:gpuconv:stereo");
    settle(h, write_taps("bypass.wav", 1, 1, 1, (float[]){0.25f}));
    CHECK(fabsf(host_peak(h, 20) - 0.125f) < 0.001f, "the response does not sound");
    (void)host_roughness(h, 1);
    h->number[ENABLED] = 0;
    float off = host_roughness(h, 100);
    CHECK(off < 0.002f, "bypassing clicks: %g", (double)off);
    host_play(h, NULL);
    assert_memory_equal(h->out[0], h->in[0], sizeof h->out[0]);
    assert_memory_equal(h->out[1], h->in[1], sizeof h->out[1]);
    h->number[ENABLED] = 1;
    float on = host_roughness(h, 100);
    CHECK(on < 0.002f, "enabling clicks: %g", (double)on);
    CHECK(fabsf(host_peak(h, 20) - 0.125f) < 0.001f, "the response does not sound again");
    host_delete(h);
}

/* Plays until the worker has followed the ports and the peak has become `wanted`. A thread of the convolver ends
 * earlier exchanges in its own time, so the rounds are as many as it takes. */
static void follow(host *h, const char *what, float wanted, float tolerance) {
    h->number[FREEWHEEL] = 0; /* when freewheeling, the worker is not asked */
    host_play(h, NULL);
    h->number[FREEWHEEL] = 1; /* the tail is waited for, so that the test does not depend on time */
    host_deliver_reply(h);
    float peak = NAN;
    for (int round = 0; round < 10000 && !(fabsf(peak - wanted) < tolerance); round++) {
        const struct timespec moment = {0, 1000000};
        float worst = host_roughness(h, 100);
        CHECK(worst < 0.004f, "%s: an edit clicks: %g", what, (double)worst);
        peak = host_peak(h, 20);
        nanosleep(&moment, NULL);
    }
    CHECK(fabsf(peak - wanted) < tolerance, "%s: %g instead of %g", what, (double)peak, (double)wanted);
}

static void edits_are_made_by_the_worker_and_crossfaded(void **state) {
    (void)state;
    host *h = host_new("urn:gpuconv:stereo");
    settle(h, write_taps("edit.wav", 1, 3, 2400, (float[]){0.5f, 0.25f, 0.125f})); /* 50 ms: 11 periods */
    CHECK(fabsf(host_peak(h, 20) - 0.4375f) < 0.001f, "all taps: %g", (double)host_peak(h, 20));
    int before = h->loads;
    h->number[LENGTH] = 0.06f;
    follow(h, "two taps", 0.375f, 0.001f);
    h->number[START] = 0.04f;
    follow(h, "the second tap", 0.125f, 0.001f);
    h->number[START] = h->number[LENGTH] = 0;
    h->number[TRIM] = -9; /* the last tap is at -12 dB */
    follow(h, "trimmed", 0.375f, 0.001f);
    h->number[TRIM] = 0;
    h->number[FADE] = 0.1f; /* half a cosine over all taps: about 1, a half, 0 */
    follow(h, "faded", 0.3125f, 0.005f);
    assert_int_equal(h->loads, before + 4);
    h->number[START] = 30; /* behind the end: the last millisecond is left */
    follow(h, "the faded end", 0, 0.02f);
    assert_int_equal(h->result, LV2_WORKER_SUCCESS);
    assert_int_equal(h->loads, before + 5);
    host_delete(h);
}

static void a_stretched_response_is_longer(void **state) {
    (void)state;
    host *h = host_new("urn:gpuconv:stereo");
    h->number[STRETCH] = 2;
    settle(h, write_taps("stretch.wav", 1, 2, 4800, (float[]){0.5f, -0.5f})); /* at 22 periods the taps cancel */
    CHECK(host_peak(h, 20) < 0.02f, "stretched by two: %g", (double)host_peak(h, 20));
    h->number[STRETCH] = 1.0f + 1.0f / 44; /* at 22.5 periods they add */
    for (int b = 0; b < 400; b++)
        host_play(h, NULL);
    CHECK(host_peak(h, 20) > 0.4f, "stretched by a half period: %g", (double)host_peak(h, 20));
    host_delete(h);
}

static void a_file_and_an_edit_asked_for_at_once_are_both_loaded(void **state) {
    (void)state;
    host *h = host_new("urn:gpuconv:stereo");
    h->number[TRIM] = -9;
    const char *path = write_taps("both.wav", 1, 2, 2400, (float[]){0.5f, 0.125f});
    settle(h, path);
    assert_string_equal(h->announced[0], path);
    CHECK(fabsf(host_peak(h, 20) - 0.25f) < 0.001f, "not edited: %g", (double)host_peak(h, 20));
    settle(h, "/nowhere.wav");
    assert_string_equal(h->announced[0], path);
    CHECK(strstr(h->error, "/nowhere.wav: "), "the reason is '%s'", h->error);
    settle(h, path);
    assert_string_equal(h->error, "");
    assert_int_equal(host_restore(h, "/gone.wav"), LV2_STATE_ERR_UNKNOWN);
    host_play(h, NULL);
    CHECK(strstr(h->error, "/gone.wav: "), "the reason is '%s'", h->error);
    host_delete(h);
}

static void the_sound_crosses_to_a_second_response(void **state) {
    (void)state;
    host *h = host_new("urn:gpuconv:stereo");
    settle(h, write_taps("first.wav", 1, 1, 1, (float[]){0.5f}));
    h->number[CROSSFADE] = 50; /* without a second response it does nothing */
    CHECK(fabsf(host_peak(h, 60) - 0.25f) < 0.001f, "the first alone: %g", (double)host_peak(h, 20));
    h->number[CROSSFADE] = 0;
    host_play_second(h, write_taps("second.wav", 2, 1, 1, (float[]){-0.25f, 0}));
    host_deliver_reply(h);
    host_play(h, NULL);
    CHECK(strstr(h->announced[1], "/second.wav") && strstr(h->announced[0], "/first.wav"), "announced '%s', '%s'",
          h->announced[0], h->announced[1]);
    CHECK(fabsf(host_peak(h, 60) - 0.25f) < 1e-5f, "the second sounds: %g", (double)host_peak(h, 20));
    static const float places[] = {50, 100, 0, 30};
    static const float sounds[] = {0.0884f, 0.125f, 0.25f,
                                   0.166f}; /* the sum of cosine and sine parts, in phase opposition */
    for (int k = 0; k < COUNT(places); k++) {
        h->number[CROSSFADE] = places[k];
        float worst = host_roughness(h, 60);
        CHECK(worst < 0.001f, "crossing to %g clicks: %g", (double)places[k], (double)worst);
        (void)host_roughness(h, 200);
        const float peak = host_peak(h, 20);
        CHECK(fabsf(peak - sounds[k]) < 0.002f, "at %g: %g", (double)places[k], (double)peak);
    }
    const LV2_State_Interface *states = h->plugin->extension_data(LV2_STATE__interface);
    assert_int_equal(states->save(h->handle, host_store, NULL, 0, NULL), LV2_STATE_SUCCESS);
    host_delete(h);
    h = host_new("urn:gpuconv:stereo");
    states = h->plugin->extension_data(LV2_STATE__interface);
    assert_int_equal(states->restore(h->handle, host_retrieve, NULL, 0, NULL), LV2_STATE_SUCCESS);
    host_play(h, NULL);
    assert_string_equal(h->announced[1], host_stored_path[1]);
    h->number[CROSSFADE] = 100;
    (void)host_peak(h, 60);
    CHECK(fabsf(host_peak(h, 20) - 0.125f) < 0.001f, "restored: %g", (double)host_peak(h, 20));
    host_delete(h);
}

/* Plays five seconds, in which the worker looks twice for what is missing. */
static void play_seconds(host *h) {
    for (int b = 0; b < 5 * RATE / BLOCK; b++) {
        host_play(h, NULL);
        host_deliver_reply(h);
    }
}

static void a_missing_response_is_saved_again_and_loaded_when_it_is_back(void **state) {
    (void)state;
    host *h = host_new("urn:gpuconv:stereo");
    const LV2_State_Interface *states = h->plugin->extension_data(LV2_STATE__interface);
    const char *gone = files_path("%s", "gone.wav"), *damaged = files_path("%s", "damaged.wav");
    FILE *f = fopen(damaged, "w");
    CHECK(f && fputs("no sound", f) >= 0 && fclose(f) == 0, "no file");
    (void)snprintf(host_stored_path[0], sizeof host_stored_path[0], "%s", gone);
    (void)snprintf(host_stored_path[1], sizeof host_stored_path[1], "%s", damaged);
    assert_int_not_equal(states->restore(h->handle, host_retrieve, NULL, 0, NULL), LV2_STATE_SUCCESS);
    host_play(h, NULL);
    CHECK(strstr(h->error, "the session keeps it"), "the reason is '%s'", h->error);
    const int lines = h->lines;
    h->number[TRIM] = -9; /* an edit leaves the reason */
    play_seconds(h);
    CHECK(h->lines == lines && strstr(h->error, "the session keeps it"), "%d lines, '%s'", h->lines - lines, h->error);
    memset(host_stored_path, 0, sizeof host_stored_path);
    assert_int_equal(states->save(h->handle, host_store, NULL, 0, NULL), LV2_STATE_SUCCESS);
    assert_string_equal(host_stored_path[0], gone);
    assert_string_equal(host_stored_path[1], damaged);
    write_taps("gone.wav", 1, 1, 1, (float[]){0.5f});
    write_taps("damaged.wav", 1, 1, 1, (float[]){0.25f});
    play_seconds(h);
    assert_string_equal(h->announced[0], gone);
    assert_string_equal(h->announced[1], damaged);
    assert_string_equal(h->error, "");
    CHECK(fabsf(host_peak(h, 20) - 0.25f) < 0.001f, "the first: %g", (double)host_peak(h, 20));
    h->number[CROSSFADE] = 100;
    (void)host_peak(h, 60);
    CHECK(fabsf(host_peak(h, 20) - 0.125f) < 0.001f, "the second: %g", (double)host_peak(h, 20));
    assert_int_not_equal(host_restore(h, "/gone.wav"), LV2_STATE_SUCCESS);
    settle(h, gone); /* chosen by the user in place of the missing one */
    assert_int_equal(states->save(h->handle, host_store, NULL, 0, NULL), LV2_STATE_SUCCESS);
    assert_string_equal(host_stored_path[0], gone);
    host_delete(h);
}

static void the_second_response_is_unloaded(void **state) {
    (void)state;
    host *h = host_new("urn:gpuconv:stereo");
    settle(h, write_taps("first.wav", 1, 1, 1, (float[]){0.5f}));
    const LV2_State_Interface *states = h->plugin->extension_data(LV2_STATE__interface);
    assert_int_equal(states->save(h->handle, host_store, NULL, 0, NULL), LV2_STATE_SUCCESS); /* without a second */
    h->number[CROSSFADE] = 100;
    for (int way = 0; way < 2; way++) { /* by a message, and by a state that was saved without it */
        host_play_second(h, write_taps("second.wav", 2, 1, 1, (float[]){-0.25f, 0}));
        host_deliver_reply(h);
        (void)host_roughness(h, 100);
        CHECK(fabsf(host_peak(h, 20) - 0.125f) < 0.001f && *h->announced[1], "the second: %g",
              (double)host_peak(h, 20));
        if (way == 0)
            host_play_second(h, "");
        else
            assert_int_equal(states->restore(h->handle, host_retrieve, NULL, 0, NULL), LV2_STATE_SUCCESS);
        const float worst = host_roughness(h, 100);
        CHECK(worst < 0.001f, "unloading clicks: %g", (double)worst);
        CHECK(fabsf(host_peak(h, 20) - 0.25f) < 0.001f, "the first alone: %g", (double)host_peak(h, 20));
        assert_string_equal(h->announced[1], "");
        CHECK(strstr(h->announced[0], "/first.wav") && !*h->error, "announced '%s', '%s'", h->announced[0], h->error);
    }
    host_play(h, ""); /* the first one is not unloaded */
    host_deliver_reply(h);
    CHECK(fabsf(host_peak(h, 20) - 0.25f) < 0.001f, "the first one is gone");
    host_delete(h);
}

/* A burst goes into both; later the second is heard again and must not play what it kept from then. */
static void a_response_that_is_not_heard_rests_without_an_old_tail(void **state) {
    (void)state;
    host *h = host_new("urn:gpuconv:mono");
    settle(h, write_taps("none.wav", 1, 1, 1, (float[]){0}));
    host_play_second(h, write_taps("echo.wav", 1, 2, 2400, (float[]){0, 1}));
    host_deliver_reply(h);
    h->number[CROSSFADE] = 100;
    (void)host_peak(h, 200);
    CHECK(host_peak(h, 20) > 0.4f, "no echo");
    h->number[CROSSFADE] = 0;
    (void)host_peak(h, 400);
    h->number[GAIN] = -90;
    (void)host_peak(h, 20);
    h->number[GAIN] = 0;
    h->number[CROSSFADE] = 100;
    CHECK(host_peak(h, 2400 / BLOCK - 2) < 1e-6f, "an old tail: %g", (double)host_peak(h, 1));
    CHECK(host_peak(h, 60) > 0.4f, "no echo again");
    h->number[LENGTH] = 0.02f; /* edits both */
    (void)host_peak(h, 400);
    CHECK(host_peak(h, 20) < 1e-3f, "the second response is not edited: %g", (double)host_peak(h, 20));
    host_delete(h);
}

static void meters_show_peaks_and_fall(void **state) {
    (void)state;
    host *h = host_new("urn:gpuconv:stereo");
    settle(h, write_taps("meter.wav", 1, 1, 1, (float[]){0.5f}));
    for (int c = 0; c < 2; c++) {
        CHECK(fabsf(h->number[PEAK_IN + c] + 6.02f) < 0.1f, "in: %g dB", (double)h->number[PEAK_IN + c]);
        CHECK(fabsf(h->number[PEAK_OUT + c] + 12.04f) < 0.1f, "out: %g dB", (double)h->number[PEAK_OUT + c]);
    }
    h->number[GAIN] = -90;
    host_play(h, NULL);
    for (int b = 0; b < RATE / BLOCK; b++)
        host_play(h, NULL);
    CHECK(fabsf(h->number[PEAK_OUT] + 32.0f) < 0.5f, "after a second: %g dB", (double)h->number[PEAK_OUT]);
    host_delete(h);
}

static void one_channel_through_true_stereo_gives_that_of_two_equal_channels(void **state) {
    (void)state;
    host *h = host_new("urn:gpuconv:mono");
    settle(h, write_taps("true.wav", 4, 1, 1, (float[]){0.5f, 0.25f, 0.125f, 0.0625f})); /* LL LR RL RR */
    host_play(h, NULL);
    for (int i = 0; i < BLOCK; i++) {
        CHECK(fabsf(h->out[0][i] - 0.625f * h->in[0][i]) < 1e-5f, "left");
        CHECK(fabsf(h->out[1][i] - 0.3125f * h->in[0][i]) < 1e-5f, "right");
    }
    h->number[ENABLED] = 0;
    (void)host_roughness(h, 100);
    assert_memory_equal(h->out[1], h->in[0], sizeof h->out[1]);
    host_delete(h);
}

static void the_dry_signal_is_as_late_as_the_response(void **state) {
    (void)state;
    host *h = host_new("urn:gpuconv:stereo");
    guarded taps = guarded_new(1, 4000);
    memset(taps.channel[0], 0, 4000 * sizeof(float));
    taps.channel[0][0] = -1;
    const char *path = files_path("%s", "late.wav");
    files_write(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, 44100, &taps); /* resampled: the response has a lead */
    guarded_free(&taps);
    settle(h, path);
    CHECK(h->number[LATENCY] > 10, "a latency of %g frames", (double)h->number[LATENCY]);
    float wet = host_peak(h, 20);
    h->number[DRY] = 20 * log10f(wet / 0.5f);
    for (int b = 0; b < 40; b++)
        host_play(h, NULL);
    CHECK(host_peak(h, 20) < 0.001f, "wet and dry do not cancel: %g", (double)host_peak(h, 20));
    host_delete(h);
}

/* Gives each input port values out of its range. */
static void check_ranges(host *h, int skipped) {
    static const float values[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f};
    for (int number = ENABLED; number < PORTS; number++)
        for (int k = 0; k < COUNT(values) && number != skipped; k++) {
            float before = h->number[number];
            h->number[number] = values[k];
            for (int b = 0; b < 10; b++) {
                host_play(h, NULL);
                for (int i = 0; i < BLOCK; i++)
                    CHECK(isfinite(h->out[0][i]), "port %d at %g", number, (double)values[k]);
            }
            h->number[number] = before;
        }
}

static void controls_out_of_range_are_limited(void **state) {
    (void)state;
    host *h = host_new("urn:gpuconv:stereo");
    host_play(h, write_taps("range.wav", 1, 2, 50, (float[]){0.5f, 0.5f}));
    host_deliver_reply(h);
    host_play_second(h, files_path("%s", "range.wav"));
    host_deliver_reply(h);
    check_ranges(h, PORTS);
    host_delete(h);
    h = host_new("urn:gpuconv:space-stereo");
    check_ranges(h, TRACKED); /* no UDP port is opened */
    host_delete(h);
    host_free_uris();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bypass_gives_the_input_without_a_click),
        cmocka_unit_test(edits_are_made_by_the_worker_and_crossfaded),
        cmocka_unit_test(a_stretched_response_is_longer),
        cmocka_unit_test(a_file_and_an_edit_asked_for_at_once_are_both_loaded),
        cmocka_unit_test(the_sound_crosses_to_a_second_response),
        cmocka_unit_test(a_missing_response_is_saved_again_and_loaded_when_it_is_back),
        cmocka_unit_test(the_second_response_is_unloaded),
        cmocka_unit_test(a_response_that_is_not_heard_rests_without_an_old_tail),
        cmocka_unit_test(meters_show_peaks_and_fall),
        cmocka_unit_test(one_channel_through_true_stereo_gives_that_of_two_equal_channels),
        cmocka_unit_test(the_dry_signal_is_as_late_as_the_response),
        cmocka_unit_test(controls_out_of_range_are_limited),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
