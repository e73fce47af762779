/* Tests the meaning of the messages of remote control. */
#include "gpuconv/play/control.h"

#include "check.h"

#include <math.h>

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(midi_messages_have_their_meaning),
        cmocka_unit_test(osc_messages_have_their_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
