/* Buffered virtual file for libsndfile, which reads a header with a dozen small reads: one read of a 4096-byte buffer
 * serves them all. A header in memory may replace that of the file. */
#ifndef GC_AUDIO_BUFFERED_IO_H
#define GC_AUDIO_BUFFERED_IO_H

#include <sndfile.h>
#include <stdint.h>

enum { GC_BUFFERED_IO_BYTES = 4096 };

typedef struct gc_buffered_io {
    int fd;                          /* not owned: the caller closes it */
    int err;                         /* errno value of the first failed read; 0: none */
    int64_t origin;                  /* offset of the first byte in the descriptor's file */
    int64_t begin;                   /* offset of the virtual file in the descriptor's file, in bytes */
    int64_t at, length;              /* position and length of the virtual file in bytes */
    int64_t end;                     /* its length without the bytes that are only claimed */
    const unsigned char *head;       /* a header in front of the bytes of the file; not owned; NULL: none */
    int64_t head_bytes;              /* 0: none */
    int64_t buffer_at, buffer_bytes; /* the part of the file that `buffer` contains, relative to `begin` */
    unsigned char buffer[GC_BUFFERED_IO_BYTES];
} gc_buffered_io;

/* Initialises a virtual file that begins at the current position of `fd`, a regular file of `size` bytes. */
void gc_buffered_io_begin(gc_buffered_io *file, int fd, int64_t size);

/* Makes the virtual file consist of a header, which must outlive it (NULL: none), and of `bytes` bytes of the file from
 * `from` on. Moves the position to its first byte. */
void gc_buffered_io_set_header(gc_buffered_io *file, const unsigned char *head, int64_t head_bytes, int64_t from,
                               int64_t bytes);

/* Makes the virtual file say that it is longer than it is. The last 128 bytes, where libmpg123 looks for a tag before
 * it believes that the file can seek, are those of its true end; reading ends at its true end. */
void gc_buffered_io_claim(gc_buffered_io *file, int64_t length);

/* Returns the callbacks for gc_sndfile_open. */
SF_VIRTUAL_IO *gc_buffered_io_callbacks(void);

#endif
