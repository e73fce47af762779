/* Tests the LV2 plug-in in a minimal host: a message sets another response during playback, the worker thread loads it,
 * and it is announced and crossfaded without a click; latency is reported; state is saved and restored; an unreadable
 * response changes nothing. */
#include "host.h"

#include <math.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void a_requested_response_is_loaded_announced_and_heard_without_a_click(void **state) {
    (void)state;
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    host_begin(h, "urn:gpuconv:stereo");
    const char *loud = write_response("loud.wav", RATE, 1), *soft = write_response("soft.wav", RATE, 0.25f);
    host_play(h, loud);
    host_deliver_reply(h);
    assert_int_equal(h->result, LV2_WORKER_SUCCESS);
    for (int b = 0; b < 3000; b++) /* until the default response has decayed */
        host_play(h, NULL);
    assert_string_equal(h->announced[0], loud);
    float level = host_peak(h, 20);
    CHECK(fabsf(level - 0.5f) < 0.001f, "%g through a response of 1", (double)level);
    float a = h->out[0][BLOCK - 2], b = h->out[0][BLOCK - 1], worst = 0;
    for (int k = 0; k < 400; k++) {
        host_play(h, k == 10 ? soft : k == 200 ? loud : NULL);
        host_deliver_reply(h);
        for (int i = 0; i < BLOCK; i++) { /* the sine's own second difference is 0.5 (2 pi 220 / 48000)^2 = 0.0004 */
            worst = fmaxf(worst, fabsf(h->out[0][i] - 2 * b + a));
            a = b;
            b = h->out[0][i];
        }
        if (k == 190) {
            float quiet = host_peak(h, 20);
            CHECK(fabsf(quiet - 0.125f) < 0.001f, "%g through a response of a quarter", (double)quiet);
            a = h->out[0][BLOCK - 2];
            b = h->out[0][BLOCK - 1];
        }
    }
    CHECK(worst < 0.002f, "a click: second difference %g", (double)worst);
    assert_string_equal(h->announced[0], loud);
    host_end(h);
    free(h);
}

static void an_unreadable_response_changes_nothing(void **state) {
    (void)state;
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    host_begin(h, "urn:gpuconv:mono");
    const char *loud = write_response("one.wav", RATE, 1);
    host_play(h, loud);
    host_deliver_reply(h);
    host_play(h, NULL);
    host_play(h, "/nowhere/at/all.wav");
    host_deliver_reply(h);
    assert_int_not_equal(h->result, LV2_WORKER_SUCCESS);
    for (int b = 0; b < 3000; b++)
        host_play(h, NULL);
    assert_string_equal(h->announced[0], loud);
    CHECK(fabsf(host_peak(h, 20) - 0.5f) < 0.001f, "another response sounds");
    assert_memory_equal(h->out[0], h->out[1], sizeof h->out[0]);
    host_end(h);
    free(h);
}

/* A host may send messages faster than a log can be read: a line a second has the count of the others. */
static void a_flood_of_bad_messages_gives_few_lines_of_log(void **state) {
    (void)state;
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    const time_t begun = time(NULL);
    host_begin(h, "urn:gpuconv:stereo");
    for (int k = 0; k < 500; k++) {
        host_play(h, "/nowhere/at/all.wav");
        host_deliver_reply(h);
    }
    assert_int_equal(h->loads, 500);
    CHECK(h->lines >= 1 && h->lines <= 2 + (int)(time(NULL) - begun), "%d lines", h->lines);
    host_end(h);
    free(h);
}

static void levels_predelay_and_latency_follow_the_ports(void **state) {
    (void)state;
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    host_begin(h, "urn:gpuconv:stereo");
    host_play(h, write_response("unit.wav", RATE, 1));
    host_deliver_reply(h);
    for (int b = 0; b < 3000; b++)
        host_play(h, NULL);
    assert_true(h->number[LATENCY] == 0);
    h->number[WET] = -20;
    host_play(h, NULL);
    CHECK(fabsf(host_peak(h, 20) - 0.05f) < 0.0005f, "wet does nothing");
    h->number[WET] = -90;
    h->number[DRY] = -6.0206f;
    host_play(h, NULL);
    CHECK(fabsf(host_peak(h, 20) - 0.25f) < 0.001f, "dry does nothing");
    h->number[GAIN] = -6.0206f;
    host_play(h, NULL);
    CHECK(fabsf(host_peak(h, 20) - 0.125f) < 0.001f, "gain does nothing");
    h->number[GAIN] = h->number[WET] = 0;
    h->number[DRY] = 0;
    h->number[PREDELAY] = 1000.0f / 440; /* half a period: wet and dry cancel */
    for (int b = 0; b < 40; b++)
        host_play(h, NULL);
    CHECK(host_peak(h, 20) < 0.01f, "predelay does nothing");
    /* Resampling an impulse puts frames before time zero, which are latency. */
    host_play(h, write_response("other.wav", 44100, 1));
    host_deliver_reply(h);
    host_play(h, NULL);
    CHECK(h->number[LATENCY] > 10, "latency of %g frames", (double)h->number[LATENCY]);
    host_end(h);
    free(h);
}

static void states_restored_without_playback_do_not_block_and_the_last_one_sounds(void **state) {
    (void)state;
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    host_begin(h, "urn:gpuconv:stereo");
    const char *soft = write_response("first.wav", RATE, 0.25f), *loud = write_response("last.wav", RATE, 1);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(host_restore(h, soft), LV2_STATE_SUCCESS);
        assert_int_equal(host_restore(h, loud), LV2_STATE_SUCCESS);
    }
    for (int b = 0; b < 3000; b++)
        host_play(h, NULL);
    assert_string_equal(h->announced[0], loud);
    CHECK(fabsf(host_peak(h, 20) - 0.5f) < 0.001f, "the last state does not sound");
    host_end(h);
    free(h);
}

static void a_late_reply_about_a_replaced_response_is_dropped(void **state) {
    (void)state;
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    host_begin(h, "urn:gpuconv:stereo");
    const char *early = write_response("early.wav", RATE, 0.25f), *late = write_response("late.wav", RATE, 1);
    host_play(h, early);
    pthread_join(h->thread, NULL); /* loaded, the reply not yet delivered */
    h->working = false;
    assert_int_equal(host_restore(h, late), LV2_STATE_SUCCESS);
    host_deliver_reply(h);
    for (int b = 0; b < 3000; b++)
        host_play(h, NULL);
    assert_string_equal(h->announced[0], late);
    CHECK(fabsf(host_peak(h, 20) - 0.5f) < 0.001f, "the announced response is not the one that sounds");
    host_end(h);
    free(h);
}

static void states_are_saved_and_restored_while_the_worker_loads(void **state) {
    (void)state;
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    host_begin(h, "urn:gpuconv:stereo");
    char path[2][512];
    for (int i = 0; i < 2; i++)
        (void)snprintf(path[i], sizeof path[i], "%s", write_response(i ? "odd.wav" : "even.wav", RATE, 1));
    const LV2_State_Interface *states = h->plugin->extension_data(LV2_STATE__interface);
    for (int turn = 0; turn < 40; turn++) {
        host_play(h, path[turn % 2]);
        for (int k = 0; k < 20; k++) {
            assert_int_equal(states->save(h->handle, host_store, NULL, 0, NULL), LV2_STATE_SUCCESS);
            CHECK(turn == 0 || strcmp(host_stored_path[0], path[0]) == 0 || strcmp(host_stored_path[0], path[1]) == 0,
                  "saved: %s", host_stored_path[0]);
            if (k == 10 && turn % 4 == 0)
                assert_int_equal(host_restore(h, path[0]), LV2_STATE_SUCCESS);
            host_play(h, NULL);
        }
        host_deliver_reply(h);
    }
    for (int b = 0; b < 10; b++)
        host_play(h, NULL);
    assert_int_equal(states->save(h->handle, host_store, NULL, 0, NULL), LV2_STATE_SUCCESS);
    assert_string_equal(h->announced[0], host_stored_path[0]);
    host_end(h);
    free(h);
}

/* The alarm ends a test that blocks. */
static void a_state_with_a_pipe_or_a_device_is_refused(void **state) {
    (void)state;
    const char *pipe = files_path("%s", "pipe.wav");
    host *h = malloc(sizeof *h);
    CHECK(h && mkfifo(pipe, 0600) == 0, "no pipe");
    host_begin(h, "urn:gpuconv:stereo");
    alarm(60);
    assert_int_not_equal(host_restore(h, pipe), LV2_STATE_SUCCESS);
    assert_int_not_equal(host_restore(h, "/dev/zero"), LV2_STATE_SUCCESS);
    alarm(0);
    unlink(pipe);
    host_end(h);
    free(h);
}

static void a_state_that_is_not_a_path_is_refused(void **state) {
    (void)state;
    host *h = malloc(sizeof *h);
    char *text = malloc(5000);
    CHECK(h && text, "no memory");
    host_begin(h, "urn:gpuconv:stereo");
    const LV2_State_Interface *states = h->plugin->extension_data(LV2_STATE__interface);
    const char *good = write_response("before.wav", RATE, 1);
    assert_int_equal(host_restore(h, good), LV2_STATE_SUCCESS);
    memset(text, 'a', 5000);
    text[4999] = '\0';
    const struct {
        size_t size;
        const char *type;
    } cases[] = {{4, LV2_ATOM__Path},    {0, LV2_ATOM__Path},   {1, LV2_ATOM__Path},
                 {5000, LV2_ATOM__Path}, {4, LV2_ATOM__String}, {4096, LV2_ATOM__Path}};
    for (int i = 0; i < COUNT(cases); i++) {
        char *exact = malloc(cases[i].size ? cases[i].size : 1); /* the sanitizers detect a read past the end */
        CHECK(exact, "no memory");
        memcpy(exact, text, cases[i].size ? cases[i].size - 1 : 0);
        if (cases[i].size)
            exact[cases[i].size - 1] = 'a';
        host_state.bytes = exact;
        host_state.size = cases[i].size;
        host_state.type = cases[i].type;
        assert_int_not_equal(states->restore(h->handle, host_retrieve_bytes, NULL, 0, NULL), LV2_STATE_SUCCESS);
        free(exact);
    }
    host_state.bytes = "a\0b";
    host_state.size = 4;
    host_state.type = LV2_ATOM__Path;
    assert_int_not_equal(states->restore(h->handle, host_retrieve_bytes, NULL, 0, NULL), LV2_STATE_SUCCESS);
    host_state.bytes = NULL; /* no response in the state */
    assert_int_equal(states->restore(h->handle, host_retrieve_bytes, NULL, 0, NULL), LV2_STATE_SUCCESS);
    for (int b = 0; b < 3000; b++)
        host_play(h, NULL);
    assert_string_equal(h->announced[0], good);
    CHECK(fabsf(host_peak(h, 20) - 0.5f) < 0.001f, "another response sounds");
    host_end(h);
    free(text);
    free(h);
}

/* Replaces every 32-bit word of a message, sizes among them, by wrong values. */
static void messages_with_wrong_sizes_are_ignored(void **state) {
    (void)state;
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    host_begin(h, "urn:gpuconv:stereo");
    LV2_Atom_Forge_Frame sequence, object;
    lv2_atom_forge_set_buffer(&h->forge, h->control.bytes, BUFFER);
    lv2_atom_forge_sequence_head(&h->forge, &sequence, 0);
    lv2_atom_forge_frame_time(&h->forge, 0);
    lv2_atom_forge_object(&h->forge, &object, 0, host_map_uri(NULL, LV2_PATCH__Set));
    lv2_atom_forge_key(&h->forge, host_map_uri(NULL, LV2_PATCH__property));
    lv2_atom_forge_urid(&h->forge, host_map_uri(NULL, "urn:gpuconv:response"));
    lv2_atom_forge_key(&h->forge, host_map_uri(NULL, LV2_PATCH__value));
    lv2_atom_forge_path(&h->forge, "/nowhere.wav", 12);
    lv2_atom_forge_pop(&h->forge, &object);
    lv2_atom_forge_pop(&h->forge, &sequence);
    static const uint32_t sizes[] = {0, 1, 7, 8, 9, 15, 1000, 0x7fffffff, 0xfffffff0, 0xfffffff8, 0xffffffff};
    uint32_t total = (uint32_t)sizeof(LV2_Atom) + h->control.sequence.atom.size;
    uint8_t *good = malloc(total);
    CHECK(good, "no memory");
    memcpy(good, h->control.bytes, total);
    for (uint32_t at = 16; at + 4 <= total; at += 4)
        for (int k = 0; k < COUNT(sizes); k++) {
            uint8_t *exact = malloc(total);
            CHECK(exact, "no memory");
            memcpy(exact, good, total);
            memcpy(exact + at, &sizes[k], sizeof sizes[k]);
            h->plugin->connect_port(h->handle, CONTROL, exact);
            h->notify.sequence.atom.size = BUFFER - sizeof(LV2_Atom);
            h->plugin->run(h->handle, BLOCK);
            host_deliver_reply(h);
            free(exact);
        }
    for (uint32_t shorter = 0; shorter < total - 8; shorter++) {
        uint8_t *exact = malloc(sizeof(LV2_Atom_Sequence) + shorter);
        CHECK(exact, "no memory");
        memcpy(exact, good, 8 + shorter < total ? 8 + shorter : total);
        ((LV2_Atom *)(void *)exact)->size = shorter;
        h->plugin->connect_port(h->handle, CONTROL, exact);
        h->notify.sequence.atom.size = BUFFER - sizeof(LV2_Atom);
        h->plugin->run(h->handle, BLOCK);
        host_deliver_reply(h);
        free(exact);
    }
    h->plugin->connect_port(h->handle, CONTROL, &h->control);
    free(good);
    host_end(h);
    free(h);
}

static void a_message_that_does_not_fit_leaves_the_host_an_empty_sequence(void **state) {
    (void)state;
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    host_begin(h, "urn:gpuconv:stereo");
    for (uint32_t room = 0; room < 400; room += 4) {
        assert_int_equal(host_restore(h, write_response("long-name.wav", RATE, 1)), LV2_STATE_SUCCESS);
        uint8_t *exact = malloc(sizeof(LV2_Atom) + room);
        CHECK(exact, "no memory");
        memset(exact, 0xff, sizeof(LV2_Atom) + room);
        LV2_Atom_Sequence *notify = (LV2_Atom_Sequence *)(void *)exact;
        notify->atom.size = room;
        h->control.sequence.atom.size = 0;
        h->plugin->connect_port(h->handle, NOTIFY, exact);
        h->plugin->run(h->handle, BLOCK);
        CHECK(notify->atom.size <= room, "%u bytes in %u", notify->atom.size, room);
        int events = 0;
        if (room >= sizeof(LV2_Atom_Sequence)) {
            LV2_ATOM_SEQUENCE_FOREACH(notify, event) {
                const LV2_Atom *value = NULL;
                lv2_atom_object_get((const LV2_Atom_Object *)&event->body, host_map_uri(NULL, LV2_PATCH__value), &value,
                                    0);
                CHECK(value, "an incomplete message in %u bytes", room);
                events++;
            }
        }
        CHECK(events == 0 || events == 2, "%d messages", events); /* the path and the error */
        free(exact);
    }
    h->plugin->connect_port(h->handle, NOTIFY, &h->notify);
    host_end(h);
    free(h);
}

static void ports_with_nan_or_infinity_leave_the_output_finite(void **state) {
    (void)state;
    static const float values[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f};
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    host_begin(h, "urn:gpuconv:stereo");
    for (int number = WET; number <= PREDELAY; number++)
        for (int k = 0; k < COUNT(values); k++) {
            float before = h->number[number];
            h->number[number] = values[k];
            for (int b = 0; b < 10; b++) {
                host_play(h, NULL);
                for (int i = 0; i < BLOCK; i++)
                    CHECK(isfinite(h->out[0][i]) && isfinite(h->out[1][i]), "port %d at %g", number, (double)values[k]);
            }
            h->number[number] = before;
        }
    host_end(h);
    free(h);
}

static void state_is_saved_and_restored(void **state) {
    (void)state;
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    host_begin(h, "urn:gpuconv:stereo");
    const char *path = write_response("kept.wav", RATE, 0.5f);
    const LV2_State_Interface *states = h->plugin->extension_data(LV2_STATE__interface);
    host_play(h, path);
    host_deliver_reply(h);
    assert_int_equal(states->save(h->handle, host_store, NULL, 0, NULL), LV2_STATE_SUCCESS);
    assert_string_equal(host_stored_path[0], path);
    host_end(h);
    host_begin(h, "urn:gpuconv:stereo");
    states = h->plugin->extension_data(LV2_STATE__interface);
    assert_int_equal(states->restore(h->handle, host_retrieve, NULL, 0, NULL), LV2_STATE_SUCCESS);
    for (int b = 0; b < 3000; b++)
        host_play(h, NULL);
    assert_string_equal(h->announced[0], path);
    CHECK(fabsf(host_peak(h, 20) - 0.25f) < 0.001f, "the state's response does not sound");
    host_end(h);
    free(h);
    host_free_uris();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_requested_response_is_loaded_announced_and_heard_without_a_click),
        cmocka_unit_test(an_unreadable_response_changes_nothing),
        cmocka_unit_test(a_flood_of_bad_messages_gives_few_lines_of_log),
        cmocka_unit_test(levels_predelay_and_latency_follow_the_ports),
        cmocka_unit_test(states_restored_without_playback_do_not_block_and_the_last_one_sounds),
        cmocka_unit_test(a_late_reply_about_a_replaced_response_is_dropped),
        cmocka_unit_test(states_are_saved_and_restored_while_the_worker_loads),
        cmocka_unit_test(a_state_that_is_not_a_path_is_refused),
        cmocka_unit_test(messages_with_wrong_sizes_are_ignored),
        cmocka_unit_test(a_message_that_does_not_fit_leaves_the_host_an_empty_sequence),
        cmocka_unit_test(ports_with_nan_or_infinity_leave_the_output_finite),
        cmocka_unit_test(a_state_with_a_pipe_or_a_device_is_refused),
        cmocka_unit_test(state_is_saved_and_restored),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
