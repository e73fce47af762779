/* Regular files for the file library, which reads a header by a dozen reads of a few bytes: one read of a page answers
 * them all. */
#ifndef GC_AUDIO_BUFFERED_IO_H
#define GC_AUDIO_BUFFERED_IO_H

#include <sndfile.h>
#include <stdbool.h>
#include <stdint.h>

enum { GC_PAGE = 4096 };

typedef struct gc_buffered_io {
    int fd;                      /* the owner's to close */
    int failure;                 /* errno of the first read that failed */
    int64_t begin, at, length;   /* in bytes; `at` and `length` from `begin` on */
    int64_t page_at, page_bytes; /* what `page` holds of the file */
    unsigned char page[GC_PAGE];
} gc_buffered_io;

/* From where fd stands, of a file of so many bytes. */
void gc_buffered_io_begin(gc_buffered_io *file, int fd, int64_t size);
SF_VIRTUAL_IO *gc_buffered_io_io(void);

#endif
