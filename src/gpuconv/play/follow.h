/* The orientation of a head over time: from a text file, or from a head tracker by OSC. */
#ifndef GPUCONV_PLAY_FOLLOW_H
#define GPUCONV_PLAY_FOLLOW_H

#include "gpuconv.h"
#include "libgpuconv/ir/spatial.h"

typedef struct gc_follow gc_follow;

/* Opens a source: the path of a text file with lines SECONDS YAW [PITCH [ROLL]] in rising time, # begins a comment; or
 * osc or osc: and a port as in osc.h (default 9000), which receives messages whose address ends in ypr, with three
 * floats. Angles are degrees to the left, up, and to the right. Fails with FILE, FORMAT, ARGUMENT, MEMORY; UNSUPPORTED
 * in a build without liblo. */
gpuconv_status gc_follow_open(const char *source, gc_follow **follow, gpuconv_error *error);
void gc_follow_free(gc_follow *follow);

/* Returns the orientation at a position in seconds: interpolated between the lines of a file, or the latest message.
 * For one thread. */
gc_orientation gc_follow_at(gc_follow *follow, double seconds);

#endif
