/* Tests the meaning of the messages of remote control. */
#include "gpuconv/play/control.h"

#include "check.h"
#include "osc/osc.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <math.h>
#include <sys/socket.h>
#include <unistd.h>

static void midi_messages_have_their_meaning(void **state) {
    (void)state;
    static const struct {
        uint8_t bytes[3];
        size_t size;
        bool known;
        gc_control_kind kind;
        double value;
    } cases[] = {{{0xb0, 91, 127}, 3, true, GC_CONTROL_WET, 0},
                 {{0xb5, 92, 64}, 3, true, GC_CONTROL_DRY, -11.9},
                 {{0xb0, 7, 0}, 3, true, GC_CONTROL_GAIN, -HUGE_VAL},
                 {{0xb0, 80, 127}, 3, true, GC_CONTROL_BYPASS, 1},
                 {{0xb0, 80, 0}, 3, true, GC_CONTROL_BYPASS, 0},
                 {{0xb0, 81, 127}, 3, true, GC_CONTROL_STEP, 1},
                 {{0xb0, 82, 127}, 3, true, GC_CONTROL_STEP, -1},
                 {{0xb0, 81, 0}, 3, false, GC_CONTROL_STEP, 0}, /* the button is released */
                 {{0xc3, 4}, 2, true, GC_CONTROL_RESPONSE, 5},
                 {{0xb0, 91}, 2, false, GC_CONTROL_WET, 0},
                 {{0xb0, 91, 200}, 3, false, GC_CONTROL_WET, 0},
                 {{0xb0, 1, 1}, 3, false, GC_CONTROL_WET, 0},
                 {{0x90, 60, 1}, 3, false, GC_CONTROL_WET, 0},
                 {{0xc0}, 1, false, GC_CONTROL_WET, 0}};
    for (int i = 0; i < COUNT(cases); i++) {
        gc_control_event e = {0};
        bool known = gc_control_read_midi(cases[i].bytes, cases[i].size, &e);
        CHECK(known == cases[i].known, "message %d", i);
        if (known)
            CHECK(e.kind == cases[i].kind && (e.value == cases[i].value || fabs(e.value - cases[i].value) < 0.1),
                  "message %d: %g", i, e.value);
    }
}

static void osc_messages_have_their_meaning(void **state) {
    (void)state;
    static const struct {
        const char *address;
        double value;
        bool known;
        gc_control_kind kind;
        double wanted;
    } cases[] = {{"/gpuconv/wet", -6, true, GC_CONTROL_WET, -6},
                 {"/gpuconv/dry", -INFINITY, true, GC_CONTROL_DRY, -INFINITY},
                 {"/gpuconv/gain", 25, false, GC_CONTROL_GAIN, 0},
                 {"/gpuconv/wet", NAN, false, GC_CONTROL_WET, 0},
                 {"/gpuconv/next", NAN, true, GC_CONTROL_STEP, 1},
                 {"/gpuconv/previous", 1, true, GC_CONTROL_STEP, -1},
                 {"/gpuconv/next", 0, false, GC_CONTROL_STEP, 0},
                 {"/gpuconv/response", 3, true, GC_CONTROL_RESPONSE, 3},
                 {"/gpuconv/response", -1, false, GC_CONTROL_RESPONSE, 0},
                 {"/gpuconv/seek", 1e300, false, GC_CONTROL_SEEK, 0},
                 {"/gpuconv/bypass", 1, true, GC_CONTROL_BYPASS, 1},
                 {"/gpuconv/", 1, false, GC_CONTROL_WET, 0},
                 {"/other/wet", 1, false, GC_CONTROL_WET, 0},
                 {"", 1, false, GC_CONTROL_WET, 0}};
    for (int i = 0; i < COUNT(cases); i++) {
        gc_control_event e = {0};
        bool known = gc_control_read_osc(cases[i].address, cases[i].value, &e);
        CHECK(known == cases[i].known, "%s %g", cases[i].address, cases[i].value);
        if (known)
            CHECK(e.kind == cases[i].kind && e.value == cases[i].wanted, "%s: %g", cases[i].address, e.value);
    }
}

#ifdef OSC_MODULE
/* The module lies in another folder than the test. */
void *__wrap_gc_module_load(const char *name, const char *symbol, char *why, size_t room);

void *__wrap_gc_module_load(const char *name, const char *symbol, char *why, size_t room) {
    (void)name, (void)why, (void)room;
    void *library = dlopen(OSC_MODULE, RTLD_NOW | RTLD_LOCAL);
    CHECK(library, "%s", dlerror());
    return dlsym(library, symbol);
}

/* Sends a packet to a port of an address of this machine. */
static void send_to(const char *address, int port, const char *bytes, size_t size) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    assert_int_equal(inet_pton(AF_INET, address, &to.sin_addr), 1);
    int sender = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(sender >= 0);
    (void)sendto(sender, bytes, size, 0, (const struct sockaddr *)(const void *)&to, sizeof to);
    close(sender);
}

static void send_packet(int port, const char *bytes, size_t size) {
    send_to("127.0.0.1", port, bytes, size);
}

/* Opens a free port of an address, such as "127.0.0.1:"; "" for none. */
static gc_osc *open_free_port(const char *address, int *port) {
    char where[100];
    gc_osc *osc = NULL;
    gpuconv_error error = {0};
    *port = 20000 + (int)(getpid() % 20000);
    for (int tries = 0; !osc && tries < 50; tries++) {
        snprintf(where, sizeof where, "%s%d", address, ++*port);
        (void)gc_osc_open(where, &osc, &error);
    }
    CHECK(osc, "%s: %s", where, error.message);
    return osc;
}

/* 127.0.0.2 is this machine too, but another address. */
static void a_port_is_of_this_machine_unless_an_address_is_given(void **state) {
    (void)state;
    static const char packet[] = "/a\0\0,\0\0";
    static const struct {
        const char *address;
        bool first, second;
    } cases[] = {{"", true, false},        {"127.0.0.1:", true, false}, {"127.0.0.2:", false, true},
                 {"0.0.0.0:", true, true}, {"[0.0.0.0]:", true, true},  {"[::]:", true, true},
                 {"[::1]:", false, false}};
    for (int i = 0; i < COUNT(cases); i++) {
        int port, probe = strchr(cases[i].address, '[') ? socket(AF_INET6, SOCK_DGRAM, 0) : 0;
        if (probe < 0) /* a machine without IPv6 */
            continue;
        if (probe)
            close(probe);
        gc_osc *osc = open_free_port(cases[i].address, &port);
        gc_osc_message m;
        send_to("127.0.0.1", port, packet, sizeof packet);
        CHECK(gc_osc_take(osc, &m) == cases[i].first, "%s and a message to 127.0.0.1", cases[i].address);
        send_to("127.0.0.2", port, packet, sizeof packet);
        CHECK(gc_osc_take(osc, &m) == cases[i].second, "%s and a message to 127.0.0.2", cases[i].address);
        gc_osc_close(osc);
    }
}

static void names_that_are_no_port_are_refused(void **state) {
    (void)state;
    static const char *const names[] = {
        "",          "0",        "65536",          "9000x",    "x:9000",   ":9000",
        "::1:9000",  "[::1]",    "[::1:9000",      "[]:9000",  "[x]:9000", "localhost:9000",
        "1.2.3.4:0", "1.2.3.4:", "1.2.3.4.5:9000", "[::1]:-1", "-1",       "1e3"};
    for (int i = 0; i < COUNT(names); i++) {
        gc_osc *osc;
        gpuconv_error error = {0};
        CHECK(gc_osc_check(names[i], &error) == GPUCONV_ERROR_ARGUMENT && strstr(error.message, "is no UDP port"),
              "'%s': %s", names[i], error.message);
        assert_int_equal(gc_osc_open(names[i], &osc, &error), GPUCONV_ERROR_ARGUMENT);
        assert_null(osc);
    }
    char longest[300];
    memset(longest, '1', sizeof longest);
    memcpy(longest + 290, ":9000", 6);
    assert_int_equal(gc_osc_check(longest, NULL), GPUCONV_ERROR_ARGUMENT);
}

/* Messages for a later time would fill the memory. */
static void messages_for_later_are_taken_at_once(void **state) {
    (void)state;
    static const char bundle[] = "#bundle\0\xff\0\0\0\0\0\0\1\0\0\0\x14/gpuconv/next\0\0\0,\0\0\0";
    int port;
    gc_osc *osc = open_free_port("", &port);
    gc_osc_message m;
    send_packet(port, bundle, sizeof bundle - 1);
    assert_true(gc_osc_take(osc, &m));
    assert_string_equal(m.address, "/gpuconv/next");
    gc_osc_close(osc);
}

/* Packets that are no messages do not keep the caller from returning. */
static void packets_that_are_no_messages_are_skipped(void **state) {
    (void)state;
    int port, takes = 0;
    gc_osc *osc = open_free_port("", &port);
    gc_osc_message m;
    for (int i = 0; i < 100; i++)
        send_packet(port, "no OSC", 6);
    send_packet(port, "/a\0\0,\0\0", 8);
    while (!gc_osc_take(osc, &m) && takes < 10)
        takes++;
    CHECK(takes >= 1 && takes < 10, "after %d", takes);
    gc_osc_close(osc);
}

/* A bundle has several messages, which are all delivered, in their order. */
static void bundles_are_delivered_whole(void **state) {
    (void)state;
    static const char bundle[] = "#bundle\0\0\0\0\0\0\0\0\1"
                                 "\0\0\0\x18/gpuconv/wet\0\0\0\0,f\0\0\xc0\xc0\0\0" /* -6 */
                                 "\0\0\0\x14/head/ypr\0\0\0,iT\0\0\0\0\x1e"         /* 30 and true */
                                 "\0\0\0\x14/gpuconv/next\0\0\0,\0\0\0";
    char address[300], where[20];
    int port;
    gc_osc *osc = open_free_port("", &port), *second;
    gpuconv_error error = {0};
    snprintf(where, sizeof where, "%d", port);
    assert_int_equal(gc_osc_open(where, &second, &error), GPUCONV_ERROR_DEVICE); /* it is taken */
    CHECK(strstr(error.message, where) && strstr(error.message, "in use"), "'%s'", error.message);
    gc_osc_message m;
    assert_false(gc_osc_take(osc, &m));
    send_packet(port, bundle, sizeof bundle - 1);
    memset(address, 'a', sizeof address);
    *address = '/';
    memcpy(address + 256, "\0\0\0\0,\0\0", 8);
    send_packet(port, address, 264); /* too long: not delivered */
    send_packet(port, "no OSC", 6);
    assert_true(gc_osc_take(osc, &m));
    assert_string_equal(m.address, "/gpuconv/wet");
    assert_int_equal(m.count, 1);
    assert_true(m.value[0] == -6 && isnan(m.value[1]));
    assert_true(gc_osc_take(osc, &m));
    assert_string_equal(m.address, "/head/ypr");
    assert_int_equal(m.count, 2);
    assert_true(m.value[0] == 30 && m.value[1] == 1 && isnan(m.value[2]));
    assert_true(gc_osc_take(osc, &m));
    assert_string_equal(m.address, "/gpuconv/next");
    assert_true(m.count == 0 && isnan(m.value[0]));
    assert_false(gc_osc_take(osc, &m));
    for (int i = 0; i < 100; i++) /* more than the queue holds at a time */
        send_packet(port, bundle, sizeof bundle - 1);
    int taken = 0;
    while (gc_osc_take(osc, &m))
        taken++;
    assert_int_equal(taken, 300);
    gc_osc_close(osc);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(midi_messages_have_their_meaning),
        cmocka_unit_test(osc_messages_have_their_meaning),
#ifdef OSC_MODULE
        cmocka_unit_test(bundles_are_delivered_whole),
        cmocka_unit_test(a_port_is_of_this_machine_unless_an_address_is_given),
        cmocka_unit_test(names_that_are_no_port_are_refused),
        cmocka_unit_test(messages_for_later_are_taken_at_once),
        cmocka_unit_test(packets_that_are_no_messages_are_skipped),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
