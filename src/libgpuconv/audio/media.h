/* Decoding of files that libsndfile does not read (M4A, AAC, WMA, AMR, Matroska and others) by a module that needs
 * libavformat and libavcodec. The module decodes a whole file into floats; the reader reads these like samples without
 * a header. */
#ifndef GC_AUDIO_MEDIA_H
#define GC_AUDIO_MEDIA_H

#include "gpuconv.h"

typedef struct gc_media {
    int channels, rate;
    int64_t frames;
    char name[80];   /* container and codec */
    bool recognised; /* the module reads files of this kind */
    char why[300];   /* why the file was not decoded */
} gc_media;

/* The function that the module exports under this name: decodes the regular file `from` of `size` bytes and writes
 * interleaved 32-bit floats in the machine's order to `to`. @return false: media->why has the reason */
#define GC_MEDIA_DECODE "gpuconv_media_decode"
typedef bool gc_media_decode_function(int from, int64_t size, int to, const volatile int *cancel, gc_media *media);

#endif
