/* Remote control by MIDI through JACK, or PipeWire's JACK: the port gpuconv-control:midi. JACK's real-time thread
 * writes the events into a lock-free ring. */
#include "control.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <jack/jack.h>
#include <jack/midiport.h>
#include <jack/ringbuffer.h>
#include <stdio.h>
#include <stdlib.h>

struct gc_control {
    jack_client_t *client;
    jack_port_t *port;
    jack_ringbuffer_t *events;
    char where[200];
};

static int process(jack_nframes_t frames, void *context) {
    gc_control *c = context;
    void *buffer = jack_port_get_buffer(c->port, frames);
    uint32_t count = jack_midi_get_event_count(buffer);
    for (uint32_t i = 0; i < count; i++) {
        jack_midi_event_t received;
        gc_control_event event;
        if (jack_midi_event_get(&received, buffer, i) == 0 &&
            gc_control_read_midi(received.buffer, received.size, &event) &&
            jack_ringbuffer_write_space(c->events) >= sizeof event)
            (void)jack_ringbuffer_write(c->events, (const char *)&event, sizeof event);
    }
    return 0;
}

static void ignore_message(const char *text) {
    (void)text;
}

static void midi_close(gc_control *c) {
    if (c && c->client)
        (void)jack_client_close(c->client);
    if (c && c->events)
        jack_ringbuffer_free(c->events);
    free(c);
}

static gpuconv_status midi_open(const char *where, gc_control **control, gpuconv_error *error) {
    *control = NULL;
    gc_control *c = gc_calloc(1, sizeof *c);
    if (c)
        c->events = jack_ringbuffer_create(256 * sizeof(gc_control_event));
    if (!c || !c->events) {
        midi_close(c);
        return gc_fail_memory(error, "remote control");
    }
    jack_set_error_function(ignore_message);
    jack_set_info_function(ignore_message);
    c->client = jack_client_open("gpuconv-control", JackNoStartServer, NULL);
    if (c->client)
        c->port = jack_port_register(c->client, "midi", JACK_DEFAULT_MIDI_TYPE, JackPortIsInput, 0);
    if (!c->port || jack_set_process_callback(c->client, process, c) != 0 || jack_activate(c->client) != 0) {
        midi_close(c);
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "MIDI: JACK does not run, or refuses the connection");
    }
    if (*where && jack_connect(c->client, where, jack_port_name(c->port)) != 0) {
        midi_close(c);
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "MIDI: %s: no such port, or it gives no MIDI", where);
    }
    (void)snprintf(c->where, sizeof c->where, "MIDI at %s", jack_port_name(c->port));
    *control = c;
    return GPUCONV_OK;
}

static const char *midi_where(const gc_control *c) {
    return c->where;
}

static bool midi_take(gc_control *c, gc_control_event *event) {
    if (jack_ringbuffer_read_space(c->events) < sizeof *event)
        return false;
    return jack_ringbuffer_read(c->events, (char *)event, sizeof *event) == sizeof *event;
}

__attribute__((visibility("default"))) gc_control_system_get gpuconv_control_system;

const gc_control_system *gpuconv_control_system(void) {
    static const gc_control_system system = {midi_open, midi_where, midi_take, midi_close};
    return &system;
}
