/* Parser for the header of a WAV or RF64 stream, which decides whether the stream can be read without seeking. */
#ifndef GC_AUDIO_RIFF_H
#define GC_AUDIO_RIFF_H

#include <sndfile.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum gc_riff_status {
    GC_RIFF_MORE,    /* the header is incomplete: more bytes are needed */
    GC_RIFF_SAMPLES, /* the header is complete up to the first sample */
    GC_RIFF_OTHER    /* not a WAV, or an encoding without a fixed number of bytes per frame */
} gc_riff_status;

typedef struct gc_riff {
    int64_t need;  /* MORE: bytes of the stream that the next call needs */
    int64_t begin; /* SAMPLES: offset of the first sample in bytes */
    int64_t bytes; /* SAMPLES: bytes of samples that the header states; -1: unknown */
    bool is_rf64;
    int64_t ds64; /* offset of the sizes in the ds64 chunk; 0: no such chunk */
} gc_riff;

/* Parses the first `count` bytes of a stream. Reads no byte behind them, whatever chunk sizes they contain. */
gc_riff_status gc_riff_parse(const unsigned char *head, int64_t count, gc_riff *riff);

/* Changes the sizes in a header of unknown length so that libsndfile reads samples up to the end of a file of
 * `file_bytes` bytes. */
void gc_riff_set_open_end(unsigned char *head, const gc_riff *riff, int64_t file_bytes);

/* Checks the first `length` bytes of a file. Returns false if libsndfile 1.2 would loop for ever on them: a chunk
 * inside a LIST chunk that states 2^31 bytes or more makes it seek back to the beginning of that chunk. *size is then
 * the stated size, or 0 if there are too many chunks behind a broken one to check them. Returns true for files other
 * than WAV and for files that cannot be read. Leaves the position at the first byte. */
bool gc_riff_lists_are_valid(SF_VIRTUAL_IO *io, void *file, int64_t length, uint32_t *size);

#endif
