/* Heads: how a listener's head is turned at any time. */
#ifndef GC_SPACE_HEAD_H
#define GC_SPACE_HEAD_H

#include "track.h"

struct gpuconv_head {
    gc_track track; /* yaw, pitch and roll in degrees: to the left, up, to the right */
    gc_track_text text;
};

/* Writes yaw, pitch and roll at a time, each linear between two rows. */
static inline void gc_head_at(const gpuconv_head *head, double seconds, double angle[3]) {
    gc_track_at(&head->track, seconds, angle);
}

#endif
