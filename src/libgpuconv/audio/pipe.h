/* What has no way back, as the file library wants it: sources it may wind back within what it has read of the header,
 * and sinks whose header is right at once because the length is known, or says that it is not. */
#ifndef GC_AUDIO_PIPE_H
#define GC_AUDIO_PIPE_H

#include "gpuconv.h"

#include <sndfile.h>

typedef struct gc_source gc_source;

/* Takes fd over, also when it fails. What is neither a WAV nor said to be raw is first copied into a file without a
 * name. FILE, FORMAT (nothing came), MEMORY. */
gpuconv_status gc_source_new(int fd, const char *name, bool raw, gc_source **source, gpuconv_error *error);
void gc_source_free(gc_source *source);
SF_VIRTUAL_IO *gc_source_io(void);

/* errno of a read that failed; 0: none did. */
int gc_source_failure(const gc_source *source);

typedef struct gc_sink {
    int fd, failure;
    int format, channels;
    int64_t frames;   /* -1: not known */
    int64_t at, sent; /* where the library believes it is; bytes that are gone */
} gc_sink;

void gc_sink_begin(gc_sink *sink, int fd, int format, int channels, int64_t frames);
SF_VIRTUAL_IO *gc_sink_io(void);

#endif
