/* Buffered virtual file for libsndfile, which reads a header with a dozen small reads: one read of a 4096-byte buffer
 * serves them all. A header in memory may replace that of the file. */
#ifndef GC_AUDIO_BUFFERED_IO_H
#define GC_AUDIO_BUFFERED_IO_H

#include <sndfile.h>
#include <stdbool.h>
#include <stdint.h>

enum { GC_BUFFERED_IO_BYTES = 4096 };

typedef struct gc_buffered_io {
    int fd;                          /* not owned: the caller closes it */
    int err;                         /* errno value of the first failed read; 0: none */
    int64_t begin;                   /* offset of the virtual file in the descriptor's file, in bytes */
    int64_t at, length;              /* position and length of the virtual file in bytes */
    const unsigned char *head;       /* a header in front of the bytes of the file; not owned; NULL: none */
    int64_t head_bytes;              /* 0: none */
    int64_t buffer_at, buffer_bytes; /* the part of the file that `buffer` contains, relative to `begin` */
    unsigned char buffer[GC_BUFFERED_IO_BYTES];
} gc_buffered_io;

/* Initialises a virtual file that begins at the current position of `fd`, a regular file of `size` bytes. */
void gc_buffered_io_begin(gc_buffered_io *file, int fd, int64_t size);

/* Replaces everything but the `bytes` bytes from `from` on by a header, which must outlive the virtual file. Moves the
 * position to the first byte of the header. Call it once at most. */
void gc_buffered_io_set_header(gc_buffered_io *file, const unsigned char *head, int64_t head_bytes, int64_t from,
                               int64_t bytes);

/* Returns the callbacks for gc_sndfile_open. */
SF_VIRTUAL_IO *gc_buffered_io_callbacks(void);

#endif
