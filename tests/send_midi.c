/* Sends MIDI messages through JACK.
 *
 *      send_midi PORT BYTES...
 *
 * Connects to the input port and sends each message, such as b05b40 in hexadecimal, in a block of its own. */
#include <jack/jack.h>
#include <jack/midiport.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_BYTES = 8 };

static jack_port_t *out;
static char **messages;
static _Atomic int sent, count;

static int process(jack_nframes_t frames, void *context) {
    void *buffer = jack_port_get_buffer(out, frames);
    int next = atomic_load(&sent);
    unsigned char bytes[MOST_BYTES];
    size_t size = 0;
    (void)context;
    jack_midi_clear_buffer(buffer);
    if (next >= atomic_load(&count))
        return 0;
    for (unsigned value; size < MOST_BYTES && sscanf(messages[next] + 2 * size, "%2x", &value) == 1;)
        bytes[size++] = (unsigned char)value;
    if (jack_midi_event_write(buffer, 0, bytes, size) == 0)
        atomic_store(&sent, next + 1);
    return 0;
}

int main(int argc, char **argv) {
    const struct timespec moment = {0, 20000000};
    jack_client_t *client = argc > 2 ? jack_client_open("send_midi", JackNoStartServer, NULL) : NULL;
    if (!client)
        return 1;
    messages = argv + 2;
    out = jack_port_register(client, "out", JACK_DEFAULT_MIDI_TYPE, JackPortIsOutput, 0);
    if (!out || jack_set_process_callback(client, process, NULL) != 0 || jack_activate(client) != 0 ||
        jack_connect(client, "send_midi:out", argv[1]) != 0) {
        fprintf(stderr, "send_midi: %s: cannot be connected\n", argv[1]);
        jack_client_close(client);
        return 1;
    }
    atomic_store(&count, argc - 2);
    for (int i = 0; i < 500 && atomic_load(&sent) < argc - 2; i++)
        nanosleep(&moment, NULL);
    nanosleep(&moment, NULL); /* the last block is delivered */
    jack_client_close(client);
    return atomic_load(&sent) == argc - 2 ? 0 : 1;
}
