/* Remote control of the player: OSC messages and MIDI. What receives them is a module, loaded when it is asked for. The
 * thread that controls the player takes the events. */
#ifndef GPUCONV_PLAY_CONTROL_H
#define GPUCONV_PLAY_CONTROL_H

#include "gpuconv.h"

typedef enum gc_control_kind {
    GC_CONTROL_WET, /* dB; -INFINITY: silence */
    GC_CONTROL_DRY,
    GC_CONTROL_GAIN,
    GC_CONTROL_BYPASS,   /* 0 or 1 */
    GC_CONTROL_PAUSE,    /* 0 or 1 */
    GC_CONTROL_RESPONSE, /* its number, from 1 */
    GC_CONTROL_STEP,     /* 1: the next response, -1: the previous one */
    GC_CONTROL_SEEK      /* seconds */
} gc_control_kind;

typedef struct gc_control_event {
    gc_control_kind kind;
    double value;
} gc_control_event;

typedef struct gc_control gc_control;

/* The functions of one kind of remote control. */
typedef struct gc_control_system {
    /* Opens the control. @param where OSC: the UDP port (osc.h); MIDI: the port to connect to, or "" for none */
    gpuconv_status (*open)(const char *where, gc_control **control, gpuconv_error *error);
    /* Returns where it listens, such as a port's name. */
    const char *(*where)(const gc_control *control);
    /* Takes the next event. @return false: none has arrived */
    bool (*take)(gc_control *control, gc_control_event *event);
    void (*close)(gc_control *control);
} gc_control_system;

/* The function that the module of MIDI exports under this name. */
#define GC_CONTROL_SYSTEM "gpuconv_control_system"
typedef const gc_control_system *gc_control_system_get(void);

/* Returns control by OSC; `open` fails with UNSUPPORTED in a build without its module. */
const gc_control_system *gc_control_osc(void);

/* Loads the module of control by MIDI. @return UNSUPPORTED in a build without it */
gpuconv_status gc_control_midi(const gc_control_system **system, gpuconv_error *error);

/* Reads a MIDI message. Controllers: 91 wet, 92 dry, 7 gain (40 log10(value / 127) dB, 0: silence), 80 bypass, 81 next
 * and 82 previous response (from 64 on); program changes select a response.
 * @return false: the message has no meaning here, or is cut off */
bool gc_control_read_midi(const uint8_t *bytes, size_t size, gc_control_event *event);

/* Reads an OSC message: its address, such as /gpuconv/wet, and its first number, NaN if it has none.
 * @return false: the message has no meaning here, or a value that cannot be */
bool gc_control_read_osc(const char *address, double value, gc_control_event *event);

#endif
