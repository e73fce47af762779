/* Tests the meaning of the messages of remote control. */
#include "gpuconv/play/control.h"

#include "check.h"
#include "gpuconv/play/osc.h"

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
/* Sends a packet to a port of this machine. */
static void send_packet(int port, const char *bytes, size_t size) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int sender = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(sender >= 0);
    assert_int_equal(sendto(sender, bytes, size, 0, (const struct sockaddr *)(const void *)&to, sizeof to), (int)size);
    close(sender);
}

/* A bundle has several messages, which are all delivered, in their order. */
static void bundles_are_delivered_whole(void **state) {
    (void)state;
    static const char bundle[] = "#bundle\0\0\0\0\0\0\0\0\1"
                                 "\0\0\0\x18/gpuconv/wet\0\0\0\0,f\0\0\xc0\xc0\0\0" /* -6 */
                                 "\0\0\0\x14/head/ypr\0\0\0,iT\0\0\0\0\x1e"         /* 30 and true */
                                 "\0\0\0\x14/gpuconv/next\0\0\0,\0\0\0";
    char why[200] = "", address[300];
    void *library = dlopen(OSC_MODULE, RTLD_NOW | RTLD_LOCAL);
    CHECK(library, "%s", dlerror());
    gc_osc_module_get *get;
    *(void **)&get = dlsym(library, GC_OSC_MODULE);
    const gc_osc_module *osc = get();
    int port = 20000 + (int)(getpid() % 20000);
    void *receiver = NULL;
    for (int tries = 0; !receiver && tries < 50; tries++)
        receiver = osc->open(++port, why, sizeof why);
    CHECK(receiver, "port %d: %s", port, why);
    assert_null(osc->open(port, why, sizeof why)); /* it is taken */
    CHECK(*why, "no reason");
    gc_osc_message m;
    assert_false(osc->take(receiver, &m));
    send_packet(port, bundle, sizeof bundle - 1);
    memset(address, 'a', sizeof address);
    *address = '/';
    memcpy(address + 256, "\0\0\0\0,\0\0", 8);
    send_packet(port, address, 264); /* too long: not delivered */
    send_packet(port, "no OSC", 6);
    assert_true(osc->take(receiver, &m));
    assert_string_equal(m.address, "/gpuconv/wet");
    assert_int_equal(m.count, 1);
    assert_true(m.value[0] == -6 && isnan(m.value[1]));
    assert_true(osc->take(receiver, &m));
    assert_string_equal(m.address, "/head/ypr");
    assert_int_equal(m.count, 2);
    assert_true(m.value[0] == 30 && m.value[1] == 1 && isnan(m.value[2]));
    assert_true(osc->take(receiver, &m));
    assert_string_equal(m.address, "/gpuconv/next");
    assert_true(m.count == 0 && isnan(m.value[0]));
    assert_false(osc->take(receiver, &m));
    for (int i = 0; i < 100; i++) /* more than the queue holds at a time */
        send_packet(port, bundle, sizeof bundle - 1);
    int taken = 0;
    while (osc->take(receiver, &m))
        taken++;
    assert_int_equal(taken, 300);
    osc->close(receiver);
    dlclose(library);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(midi_messages_have_their_meaning),
        cmocka_unit_test(osc_messages_have_their_meaning),
#ifdef OSC_MODULE
        cmocka_unit_test(bundles_are_delivered_whole),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
