/* Short sounds in memory, for the player of a page. */
#ifndef GPUCONV_ROOM_CLIP_H
#define GPUCONV_ROOM_CLIP_H

#include "gpuconv.h"

#include <stdio.h>

enum { GC_CLIP_SECONDS = 60, GC_CLIP_CHANNELS = 2 }; /* a longer sound is cut */

typedef struct gc_clip {
    float *samples; /* interleaved */
    int channels;   /* 1 or 2; further channels of a file are left out */
    int64_t frames;
    double rate;
    double loudness; /* LUFS; -infinity: silence, or too short to be measured */
    double peak;
    bool cut; /* the file is longer */
} gc_clip;

/* Reads the beginning of a sound file. @return any status of gc_reader_open; MEMORY */
gpuconv_status gc_clip_read(const char *path, gc_clip *clip, gpuconv_error *error);

/* Convolves a clip with a response, which is resampled and routed as by gpuconv IN IR OUT.
 * @return any status of gpuconv_ir_route_as, gpuconv_plan_new or gpuconv_engine_new */
gpuconv_status gc_clip_convolve(const gc_clip *dry, const gpuconv_ir *ir, gc_clip *wet, gpuconv_error *error);

/* Copies the first two channels of a response. @return MEMORY */
gpuconv_status gc_clip_of_response(const gpuconv_ir *ir, gc_clip *clip, gpuconv_error *error);

/* Writes a clip as a WAV of 16 bits in base64, multiplied by `gain`. */
void gc_clip_write(const gc_clip *clip, double gain, FILE *to);

void gc_clip_free(gc_clip *clip);

#endif
