/*
 * Pipes for the file library, which knows files only.
 *
 * A source is read as it comes where that can be done safely: raw samples, and a WAV or RF64 whose header is whole and
 * whose frames have a fixed number of bytes. Every other stream is first copied into a file without a name. No number
 * from a header moves a pointer or bounds a loop without being checked against what was really read.
 *
 * A sink's header is right at once because the length is known, or says that it is not.
 */
#ifndef GC_AUDIO_PIPE_H
#define GC_AUDIO_PIPE_H

#include "gpuconv.h"
#include "libgpuconv/core/descriptor.h"

#include <sndfile.h>

typedef struct gc_source gc_source;

typedef enum gc_source_kind {
    GC_SOURCE_HEADER = 0, /* a file with a header */
    GC_SOURCE_RAW,        /* samples of a fixed number of bytes */
    GC_SOURCE_ENCODED     /* samples without a header that are compressed in blocks */
} gc_source_kind;

/* Takes fd over, also when it fails, and reads the header. FILE, FORMAT (nothing came), MEMORY, CANCELLED (*cancel,
 * which may be NULL, was raised while nothing came). */
gpuconv_status gc_source_new(int fd, const char *name, gc_source_kind kind, const volatile int *cancel,
                             gc_source **source, gpuconv_error *error);
void gc_source_free(gc_source *source);

void gc_source_cancel_by(gc_source *source, const volatile int *cancel);

/* Whether it was copied into a file; the descriptor of that file, the caller's from then on. */
bool gc_source_spooled(const gc_source *source);
int gc_source_take_file(gc_source *source);

/* Copies what came so far and the rest into a file. Only before gc_source_settle. FILE, MEMORY, CANCELLED. */
gpuconv_status gc_source_spool(gc_source *source, gpuconv_error *error);

/* For gc_library_open, of a source that was not copied. */
SF_VIRTUAL_IO *gc_source_io(void);

/* Back to the first byte, to open it again. Only before gc_source_settle. */
void gc_source_rewind(gc_source *source);

/* After gc_library_open: whether the library has found the samples where the header has them. From here on the source
 * goes forward only, over any distance. */
bool gc_source_settle(gc_source *source);

/* Whether the header says how many samples there are. */
bool gc_source_knows_length(const gc_source *source);

/* Whether the stream has ended before its first sample. */
bool gc_source_empty(const gc_source *source);

/* errno of a read that failed, ECANCELED; 0: none did. */
int gc_source_failure(const gc_source *source);

typedef struct gc_sink {
    gc_pipe_out out;
    int failure; /* errno of the first write that failed; ECANCELED */
    int format, channels;
    int64_t frames;   /* -1: not known */
    int64_t at, sent; /* where the library believes it is; bytes that are gone */
    int64_t waiting;  /* bytes of the header that are not sent yet */
    unsigned char head[32768];
} gc_sink;

void gc_sink_begin(gc_sink *sink, gc_pipe_out out, int format, int channels, int64_t frames);
SF_VIRTUAL_IO *gc_sink_io(void);

/* Clears the time of writing in a WAV's or RF64's chunk of peaks, so that the same samples give the same bytes: of RF64
 * the library writes that chunk although it was asked not to. */
void gc_sink_forget_time(unsigned char *head, int64_t count);

/* Sends a header that no samples followed, after the library has closed the sink. @return 0, or the errno of the first
 * write that failed */
int gc_sink_end(gc_sink *sink);

#endif
