/* Tests the spatial forms of the LV2 plug-in in a minimal host: moving controls, another set, wrong files, state, and a
 * head tracker. */
#include "gpuconv.h"
#include "host.h"

#include <arpa/inet.h>
#include <math.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEAD_SET TESTS_SOURCE "/tests/sofa/head.sofa"

/* Renders the sine of host_play for sources in place. @return frames of the left ear */
static guarded render(const double *directions, int64_t frames, float scale) {
    gpuconv_sofa *set;
    gpuconv_path *path;
    gpuconv_motion *m;
    gpuconv_error error = {0};
    const double start = 0;
    CHECK(gpuconv_sofa_open(HEAD_SET, RATE, &set, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gpuconv_path_new(&start, directions, 1, 2, &path, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gpuconv_motion_new(set, path, NULL, &m, &error) == GPUCONV_OK, "%s", error.message);
    guarded x = guarded_new(1, frames), y = guarded_new(2, frames + gpuconv_motion_tail(m));
    double phase = 0;
    for (int64_t i = 0; i < frames; i++, phase += 2 * 3.14159265358979 * 220 / RATE)
        x.channel[0][i] = scale * 0.5f * (float)sin(phase);
    const float *in[2] = {x.channel[0], x.channel[0]};
    int64_t got;
    CHECK(gpuconv_motion_feed(m, in, frames, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gpuconv_motion_feed(m, in, 0, &error) == GPUCONV_OK, "%s", error.message);
    assert_int_equal(gpuconv_motion_fetch(m, y.channel, y.frames, &got), GPUCONV_OK);
    gpuconv_motion_free(m);
    gpuconv_path_free(path);
    gpuconv_sofa_free(set);
    guarded_free(&x);
    return y;
}

static void fixed_sources_give_what_the_library_renders(void **state) {
    (void)state;
    static const char *const uris[] = {"urn:gpuconv:space-stereo", "urn:gpuconv:space-mono"};
    enum { BLOCKS = 200 };
    for (int k = 0; k < COUNT(uris); k++) {
        host *h = host_new(uris[k]);
        h->number[AZIMUTH] = 70;
        h->number[ELEVATION] = -10;
        h->number[SPREAD] = 50;
        h->plugin->activate(h->handle); /* the first block takes the controls without gliding */
        guarded want = render((const double[]){95, -10, 1, 45, -10, 1}, (int64_t)BLOCKS * BLOCK, k ? 0.5f : 1);
        int64_t at = 0;
        double error = 0, power = 0;
        for (int b = 0; b < BLOCKS; b++) {
            host_play(h, NULL);
            const int64_t latency = (int64_t)h->number[LATENCY];
            CHECK(latency > 240 && latency < 500, "a latency of %lld", (long long)latency);
            for (int i = 0; i < BLOCK; i++, at++)
                for (int c = 0; c < 2; c++) {
                    const double wanted = at >= latency ? (double)want.channel[c][at - latency] : 0;
                    error += pow((double)h->out[c][i] - wanted, 2);
                    power += wanted * wanted;
                }
        }
        CHECK(10 * log10(error / power) < -90, "%s: %g dB", uris[k], 10 * log10(error / power));
        guarded_free(&want);
        host_delete(h);
    }
}

/* The sine alone has a roughness of 0.0004 times its level. */
static void moving_controls_and_another_set_do_not_click(void **state) {
    (void)state;
    host *h = host_new("urn:gpuconv:space-stereo");
    h->number[SPREAD] = 60;
    (void)host_roughness(h, 100);
    float still = host_roughness(h, 200);
    CHECK(still > 1e-5f, "silence");
    for (int k = 0; k < 40; k++) { /* jumps, over the back as well */
        h->number[AZIMUTH] = (float)(170 - 97 * k % 340);
        h->number[ELEVATION] = (float)(k * 37 % 120 - 60);
        h->number[SPREAD] = (float)(k * 53 % 180);
        float worst = host_roughness(h, 1 + k);
        CHECK(worst < 6 * still, "jump %d clicks: %g, still %g", k, (double)worst, (double)still);
    }
    h->number[AZIMUTH] = 0;
    (void)host_roughness(h, 400);
    host_play(h, TESTS_SOURCE "/tests/sofa/order2.sofa");
    host_deliver_reply(h);
    float worst = host_roughness(h, 200);
    assert_string_equal(h->error, "");
    assert_string_equal(h->announced[0], TESTS_SOURCE "/tests/sofa/order2.sofa");
    const float other = host_roughness(h, 200); /* it is louder */
    CHECK(worst < 1.2f * other, "another set clicks: %g, still %g", (double)worst, (double)other);
    for (int k = 0; k < 5; k++) { /* faster than the crossfades */
        host_play(h, HEAD_SET);
        host_deliver_reply(h);
    }
    worst = host_roughness(h, 400);
    CHECK(worst < 1.2f * other, "sets after each other click: %g", (double)worst);
    host_delete(h);
}

static void a_file_that_is_no_set_is_told_and_changes_nothing(void **state) {
    (void)state;
    host *h = host_new("urn:gpuconv:space-mono");
    const char *const wrong[] = {write_response("wrong.sofa", RATE, 1), "/nowhere.sofa",
                                 TESTS_SOURCE "/tests/sofa/filters.sofa"};
    (void)host_peak(h, 100);
    const float before = host_peak(h, 20);
    for (int k = 0; k < COUNT(wrong); k++) {
        host_play(h, wrong[k]);
        host_deliver_reply(h);
        host_play(h, NULL);
        CHECK(strstr(h->error, wrong[k]), "the reason is '%s'", h->error);
        CHECK(fabsf(host_peak(h, 20) - before) < 1e-4f, "%s sounds", wrong[k]);
    }
    host_play(h, HEAD_SET);
    host_deliver_reply(h);
    host_play(h, NULL);
    assert_string_equal(h->error, "");
    host_delete(h);
}

static void the_set_is_saved_and_restored(void **state) {
    (void)state;
    host *h = host_new("urn:gpuconv:space-stereo");
    const LV2_State_Interface *states = h->plugin->extension_data(LV2_STATE__interface);
    host_play(h, TESTS_SOURCE "/tests/sofa/order2.sofa");
    host_deliver_reply(h);
    memset(host_stored_path, 0, sizeof host_stored_path);
    assert_int_equal(states->save(h->handle, host_store, NULL, 0, NULL), LV2_STATE_SUCCESS);
    assert_string_equal(host_stored_path[0], TESTS_SOURCE "/tests/sofa/order2.sofa");
    assert_string_equal(host_stored_path[1], "");
    host_delete(h);
    h = host_new("urn:gpuconv:space-stereo");
    states = h->plugin->extension_data(LV2_STATE__interface);
    assert_int_equal(states->restore(h->handle, host_retrieve, NULL, 0, NULL), LV2_STATE_SUCCESS);
    host_play(h, NULL);
    assert_string_equal(h->announced[0], host_stored_path[0]);
    host_delete(h);
}

static void a_missing_set_is_saved_again_and_loaded_when_it_is_back(void **state) {
    (void)state;
    const char *gone = files_path("%s", "gone.sofa");
    host *h = host_new("urn:gpuconv:space-mono");
    const LV2_State_Interface *states = h->plugin->extension_data(LV2_STATE__interface);
    assert_int_not_equal(host_restore(h, gone), LV2_STATE_SUCCESS);
    assert_int_equal(states->save(h->handle, host_store, NULL, 0, NULL), LV2_STATE_SUCCESS);
    assert_string_equal(host_stored_path[0], gone);
    assert_int_equal(symlink(TESTS_SOURCE "/tests/sofa/order2.sofa", gone), 0);
    for (int b = 0; b < 3 * RATE / BLOCK; b++) {
        host_play(h, NULL);
        host_deliver_reply(h);
    }
    assert_string_equal(h->announced[0], gone);
    assert_string_equal(h->error, "");
    host_delete(h);
}

static void bypass_gives_the_input_as_late_as_the_effect(void **state) {
    (void)state;
    float past[16][BLOCK];
    host *h = host_new("urn:gpuconv:space-stereo");
    h->number[ENABLED] = 0;
    for (int b = 0; b < 100; b++) {
        host_play(h, NULL);
        memcpy(past[b % 16], h->in[0], sizeof past[0]);
    }
    const int latency = (int)h->number[LATENCY];
    for (int i = 0; i < BLOCK; i++) {
        const int at = 99 * BLOCK + i - latency;
        assert_true(h->out[0][i] == past[at / BLOCK % 16][at % BLOCK]);
    }
    host_delete(h);
}

/* Returns the largest difference of the ears, after a while. */
static float ears_apart(host *h) {
    float most = 0;
    (void)host_peak(h, 100);
    for (int b = 0; b < 20; b++) {
        host_play(h, NULL);
        for (int i = 0; i < BLOCK; i++)
            most = fmaxf(most, fabsf(h->out[0][i] - h->out[1][i]));
    }
    return most;
}

/* Sends yaw, pitch and roll to a port of this machine. */
static void send_head(int osc_port, float yaw, float pitch, float roll) {
    const float angles[3] = {yaw, pitch, roll};
    uint8_t packet[28] = "/ypr\0\0\0\0,fff";
    for (int k = 0; k < 3; k++) {
        uint32_t bits;
        memcpy(&bits, &angles[k], sizeof bits);
        bits = htonl(bits);
        memcpy(packet + 16 + 4 * k, &bits, sizeof bits);
    }
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)osc_port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(s >= 0 && sendto(s, packet, sizeof packet, 0, (const struct sockaddr *)&to, sizeof to) == sizeof packet,
          "not sent");
    close(s);
}

static void heads_of_all_instances_follow_one_port(void **state) {
    (void)state;
    const struct timespec moment = {0, 2000000};
    int osc_port = 20000 + getpid() % 20000;
    host *h[2] = {host_new("urn:gpuconv:space-stereo"), host_new("urn:gpuconv:space-mono")};
    for (int k = 0; k < 2; k++) {
        h[k]->number[OSC_PORT] = (float)osc_port;
        h[k]->number[TRACKED] = 1;
        host_play(h[k], NULL);
        host_play(h[k], NULL);
    }
    if (strstr(h[0]->error, "gpuconv-osc")) {
        host_delete(h[0]);
        host_delete(h[1]);
        skip();
    }
    assert_string_equal(h[0]->error, "");
    for (int k = 0; k < 2; k++)
        for (int tries = 0; h[k]->number[YAW] != 90 && tries < 5000; tries++) {
            send_head(osc_port, 90, 10, -5);
            nanosleep(&moment, NULL);
            host_play(h[k], NULL);
        }
    assert_true(h[0]->number[YAW] == 90 && h[1]->number[PITCH] == 10 && h[1]->number[ROLL] == -5);
    const float turned = ears_apart(h[1]);
    h[1]->number[OSC_PORT] = 1024; /* taken: the tracker stays, and the window says why */
    int taken = socket(AF_INET, SOCK_DGRAM, 0);
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(1024), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    CHECK(taken >= 0, "no socket");
    (void)bind(taken, (const struct sockaddr *)&at, sizeof at); /* or another program has it */
    host_play(h[1], NULL);
    host_play(h[1], NULL);
    CHECK(strstr(h[1]->error, "UDP port 1024"), "the reason is '%s'", h[1]->error);
    assert_true(h[1]->number[YAW] == 90);
    close(taken);
    h[1]->number[TRACKED] = 0;
    host_play(h[1], NULL);
    host_play(h[1], NULL);
    assert_true(h[1]->number[YAW] == 0 && h[0]->number[YAW] == 90);
    const float straight = ears_apart(h[1]);
    CHECK(straight < 0.01f && turned > 0.1f, "ears apart by %g, turned %g", (double)straight, (double)turned);
    host_delete(h[0]);
    host_delete(h[1]);
    host_free_uris();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_sources_give_what_the_library_renders),
        cmocka_unit_test(moving_controls_and_another_set_do_not_click),
        cmocka_unit_test(a_file_that_is_no_set_is_told_and_changes_nothing),
        cmocka_unit_test(the_set_is_saved_and_restored),
        cmocka_unit_test(a_missing_set_is_saved_again_and_loaded_when_it_is_back),
        cmocka_unit_test(bypass_gives_the_input_as_late_as_the_effect),
        cmocka_unit_test(heads_of_all_instances_follow_one_port),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
