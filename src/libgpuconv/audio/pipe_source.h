/*
 * Input pipes as libsndfile virtual files.
 *
 * Raw samples, and a WAV, RF64 or BW64 with a complete header and a fixed number of bytes per frame, are streamed:
 * libsndfile reads them while they arrive, behind a header that gc_riff_parse writes. Every other stream is spooled
 * first: copied into an unnamed temporary file. Numbers from a header are checked against the bytes that were read
 * before they are used as an offset or a loop bound.
 */
#ifndef GC_AUDIO_PIPE_SOURCE_H
#define GC_AUDIO_PIPE_SOURCE_H

#include "gpuconv.h"

#include <sndfile.h>

/* Bytes of a stream that are copied into a temporary file at most: 4 GiB. Only a test changes it. */
extern int64_t gc_spool_most;

typedef struct gc_source gc_source;

typedef enum gc_source_kind {
    GC_SOURCE_HEADER = 0, /* a file with a header */
    GC_SOURCE_RAW,        /* samples of a fixed number of bytes */
    GC_SOURCE_ENCODED     /* samples without a header, compressed in blocks */
} gc_source_kind;

/* Creates a source and reads the header, or spools the stream. Takes ownership of `fd`, also on failure. `name` is used
 * in messages. @return FILE, FORMAT (the stream is empty), MEMORY, CANCELLED (*cancel, which may be NULL, was raised)
 */
gpuconv_status gc_source_new(int fd, const char *name, gc_source_kind kind, const volatile int *cancel,
                             gc_source **source, gpuconv_error *error);
void gc_source_free(gc_source *source);

/* Replaces the cancellation flag; NULL: none. */
void gc_source_set_cancel(gc_source *source, const volatile int *cancel);

/* Returns true if the stream was spooled. */
bool gc_source_is_spooled(const gc_source *source);

/* Returns the descriptor of a spooled source's file and passes its ownership to the caller. */
int gc_source_release_file(gc_source *source);

/* Copies the bytes that were read so far and the rest of the stream into a file. Only before gc_source_start_streaming.
 * @return FILE, MEMORY, CANCELLED */
gpuconv_status gc_source_spool(gc_source *source, gpuconv_error *error);

/* Returns the callbacks for gc_sndfile_open of a source that was not spooled. */
SF_VIRTUAL_IO *gc_source_callbacks(void);

/* Seeks to the first byte, to open the stream again. Only before gc_source_start_streaming. */
void gc_source_rewind(gc_source *source);

/* Call after gc_sndfile_open. Returns true if libsndfile's position is the first sample behind the header; from then on
 * the source can be read forward only, at any distance. Returns false if libsndfile reads the header differently: spool
 * the source then. */
bool gc_source_start_streaming(gc_source *source);

/* Returns true if the header states the number of samples. */
bool gc_source_knows_length(const gc_source *source);

/* Returns true if the stream has ended before its first sample. */
bool gc_source_is_empty(const gc_source *source);

/* Returns the errno value of the first failed read, ECANCELED, or 0. */
int gc_source_failure(const gc_source *source);

#endif
