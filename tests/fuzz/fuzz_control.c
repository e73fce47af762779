/* Fuzzes the messages of remote control: MIDI from any bytes, OSC from an address and a number. */
#include "gpuconv/play/control.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the fuzzer if an event has a value that the player cannot take. */
static void check(const gc_control_event *e) {
    const double value = (double)e->value;
    if (isnan(value) || (e->kind == GC_CONTROL_RESPONSE && !(value >= 1 && value <= 1e6)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gc_control_event event;
    double value = (double)NAN;
    if (gc_control_read_midi(data, size, &event))
        check(&event);
    if (size < sizeof value)
        return 0;
    memcpy(&value, data, sizeof value);
    char *address = calloc(1, size - sizeof value + 1);
    if (!address)
        return 0;
    memcpy(address, data + sizeof value, size - sizeof value);
    if (gc_control_read_osc(address, value, &event))
        check(&event);
    free(address);
    return 0;
}
