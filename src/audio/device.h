/* Sound devices: a callback that is handed blocks of planar samples. The only folder that knows PortAudio. */
#ifndef GC_AUDIO_DEVICE_H
#define GC_AUDIO_DEVICE_H

#include "../gpuconv.h"

typedef struct gc_sound gc_sound;

/* Called by the device's own thread: `frames` frames of every channel, in NULL without an input. It may do nothing that
 * waits. */
typedef void gc_sound_callback(void *context, const float *const *in, float *const *out, int64_t frames);

typedef struct gc_sound_config {
    const char *output, *input; /* part of a device's name, or its number; NULL: the default */
    int inputs, outputs;        /* channels; inputs 0: none */
    double rate;                /* frames a second */
    int block;                  /* frames that are wished for; 0: the device's choice */
    gc_sound_callback *callback;
    void *context;
} gc_sound_config;

/* One line a device: its number, name, channels and latencies, to be freed. NULL: no memory, or *error says why. */
char *gc_sound_list(gpuconv_error *error);

/* Opens; silent until started. DEVICE with what the system says, MEMORY. */
gpuconv_status gc_sound_open(const gc_sound_config *config, gc_sound **sound, gpuconv_error *error);
gpuconv_status gc_sound_start(gc_sound *sound, gpuconv_error *error);

double gc_sound_rate(const gc_sound *sound);    /* that the device really runs at */
double gc_sound_latency(const gc_sound *sound); /* seconds of the output, as the device says */
int64_t gc_sound_gaps(const gc_sound *sound);   /* blocks that the device says were late */
bool gc_sound_alive(const gc_sound *sound);     /* still calling back */

/* After it no callback comes any more. */
void gc_sound_close(gc_sound *sound);

#endif
