/*
 * Output pipes as libsndfile virtual files. The header is sent once, before the first sample: it states the length if
 * that is known beforehand, or that the length is unknown.
 */
#ifndef GC_AUDIO_PIPE_SINK_H
#define GC_AUDIO_PIPE_SINK_H

#include "libgpuconv/core/descriptor.h"

#include <sndfile.h>

typedef struct gc_sink {
    gc_pipe_out out;
    int err; /* errno value of the first failed write, or ECANCELED; 0: none */
    int format, channels;
    int64_t frames;       /* -1: unknown */
    uint32_t speakers;    /* the mask that replaces that of libsndfile's header */
    int64_t at;           /* libsndfile's position in bytes */
    int64_t sent;         /* bytes that were written to the pipe */
    int64_t header_bytes; /* bytes of `header` that are not sent yet */
    unsigned char header[32768];
} gc_sink;

/* Initialises a sink for `frames` frames (-1: unknown) of libsndfile's `format`. */
void gc_sink_begin(gc_sink *sink, gc_pipe_out out, int format, int channels, int64_t frames, uint32_t speakers);

/* Returns the callbacks for gc_sndfile_open. */
SF_VIRTUAL_IO *gc_sink_callbacks(void);

/* Clears the time stamp in the PEAK chunk of a WAV or RF64 header, so that the same samples give the same bytes.
 * libsndfile writes that chunk into RF64 although SFC_SET_ADD_PEAK_CHUNK is off. */
void gc_sink_clear_peak_time(unsigned char *header, int64_t count);

/* Returns the offset of the mask of speakers in a WAV or RF64 header; 0: it has none. */
int64_t gc_sink_speakers_offset(const unsigned char *header, int64_t count);

/* Sends the header of a file without samples. Call after sf_close. @return 0, or the errno value of the first failed
 * write */
int gc_sink_end(gc_sink *sink);

#endif
