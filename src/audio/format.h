/* Which formats of the file library carry which samples. */
#ifndef GC_AUDIO_FORMAT_H
#define GC_AUDIO_FORMAT_H

#include "../dsp/pcm.h"

#include <stddef.h>

/* How samples of a file of this format travel, without loss where 32 bits allow it. */
gc_pcm gc_format_pcm(int format);

/* The container that a path's extension names; 0: none that is known. */
int gc_format_container(const char *path);

/* A complete format in `container` for samples as those of the format `like`; 0: the container cannot hold the channels
 * or the rate. */
int gc_format_for(int container, int like, int channels, int rate);

/* "WAV, signed 16 bit PCM" */
void gc_format_name(int format, char *name, size_t size);

#endif
