/* The sinks and sources of PulseAudio, which PortAudio shows as one device. */
#ifndef GPUCONV_PLAY_PULSE_NAMES_H
#define GPUCONV_PLAY_PULSE_NAMES_H

#include <stddef.h>

/* Appends a line for each sink and source to a list of devices, as pactl names them; none without pactl or without an
 * answer within two seconds.
 * @param used bytes of the list, of `room` */
void gc_pulse_names_append(char *list, size_t used, size_t room);

#endif
