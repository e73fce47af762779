/* Which formats of the file library carry which samples. */
#ifndef GC_AUDIO_FORMAT_H
#define GC_AUDIO_FORMAT_H

#include "gpuconv.h"
#include "libgpuconv/dsp/pcm.h"

#include <sndfile.h>
#include <stdbool.h>
#include <stddef.h>

/* How samples of a file of this format travel, without loss where 32 bits allow it. */
gc_pcm gc_format_pcm(int format);

/* Whether it holds samples as they are, neither compressed nor of fewer bits. */
bool gc_format_plain(int format);

/* The container that a path's extension names; 0: none that is known. */
int gc_format_container(const char *path);

/* The same by a name such as "wav", and an encoding by one such as "s16"; 0: none that is known. */
int gc_format_container_named(const char *name);
int gc_format_encoding_named(const char *name);

/* What "48000,2,s16" says of raw samples, little-endian. False: nothing that makes sense. */
bool gc_format_raw(const char *text, SF_INFO *info);

/* The complete format; 0: the container cannot hold that. */
int gc_format_exactly(int container, int encoding, int channels, int rate);

/* Fails with the library's sentence `why` in our form, behind the path and `what`. */
gpuconv_status gc_format_fail(gpuconv_error *error, gpuconv_status status, const char *path, const char *what,
                              const char *why);

/* A complete format in `container` for samples as those of the format `like`; 0: the container cannot hold the channels
 * or the rate. */
int gc_format_for(int container, int like, int channels, int rate);

/* "WAV, signed 16 bit PCM" */
void gc_format_name(int format, char *name, size_t size);

#endif
