/* Buffered virtual file for libsndfile, which reads a header with a dozen small reads: one read of a 4096-byte buffer
 * serves them all. */
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
    int64_t at, length;              /* position and length in bytes, relative to `begin` */
    int64_t buffer_at, buffer_bytes; /* the part of the virtual file that `buffer` contains */
    unsigned char buffer[GC_BUFFERED_IO_BYTES];
} gc_buffered_io;

/* Initialises a virtual file that begins at the current position of `fd`, a regular file of `size` bytes. */
void gc_buffered_io_begin(gc_buffered_io *file, int fd, int64_t size);

/* Returns the callbacks for gc_sndfile_open. */
SF_VIRTUAL_IO *gc_buffered_io_callbacks(void);

#endif
