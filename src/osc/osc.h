/* OSC messages that arrive at a UDP port, for remote control and for head trackers, of the command and of the plug-in.
 * The implementation is a module, loaded when a port is opened. A port is used by one thread.
 *
 * A port is named PORT, which only programs of this machine reach, or ADDRESS:PORT or [ADDRESS]:PORT with the numeric
 * address of a network interface; 0.0.0.0 and [::] are all. */
#ifndef GPUCONV_OSC_H
#define GPUCONV_OSC_H

#include "gpuconv.h"

enum { GC_OSC_VALUES = 4 };

typedef struct gc_osc_message {
    char address[128];           /* longer ones are not delivered */
    double value[GC_OSC_VALUES]; /* true is 1, false 0, any other type NaN; NAN beyond `count` */
    int count;                   /* of its values; more than GC_OSC_VALUES: the others are left out */
} gc_osc_message;

typedef struct gc_osc gc_osc;

/* Checks the name of a port. Fails with ARGUMENT. */
gpuconv_status gc_osc_check(const char *where, gpuconv_error *error);

/* Opens a port. Fails with ARGUMENT, UNSUPPORTED (a build without the module), DEVICE (the port cannot be opened),
 * MEMORY. */
gpuconv_status gc_osc_open(const char *where, gc_osc **osc, gpuconv_error *error);

/* Takes the next message without waiting. @return false: none has arrived */
bool gc_osc_take(gc_osc *osc, gc_osc_message *message);

/* Takes the messages that have arrived. One whose address ends in ypr, with three angles of at most 360 degrees, sets
 * yaw, pitch and roll. */
void gc_osc_take_angles(gc_osc *osc, double angle[3]);
void gc_osc_close(gc_osc *osc);

/* The functions of the module. */
typedef struct gc_osc_module {
    void *(*open)(int socket, char *why, size_t room); /* takes the socket in any case; NULL: `why` has the reason */
    bool (*take)(void *receiver, gc_osc_message *message);
    void (*close)(void *receiver);
} gc_osc_module;

/* The function that the module exports under this name. */
#define GC_OSC_MODULE "gpuconv_osc_module"
typedef const gc_osc_module *gc_osc_module_get(void);

#endif
