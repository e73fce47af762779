/* The header of a WAV or RF64 stream, up to its samples: what must be known before it is read as it comes. */
#ifndef GC_AUDIO_RIFF_H
#define GC_AUDIO_RIFF_H

#include <sndfile.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum gc_riff_found {
    GC_RIFF_MORE,    /* the header goes on behind these bytes */
    GC_RIFF_SAMPLES, /* whole, up to the first sample */
    GC_RIFF_OTHER    /* no WAV, or one whose length in bytes does not follow from its length in frames */
} gc_riff_found;

typedef struct gc_riff {
    int64_t need;  /* MORE: so many bytes are needed to go on */
    int64_t begin; /* SAMPLES: where they begin, in bytes */
    int64_t bytes; /* SAMPLES: how many bytes of them the header promises; -1: it does not know */
    bool wide;     /* RF64 */
    int64_t ds64;  /* where the chunk of that name has its first size; 0: there is none */
} gc_riff;

/* Looks at the first `count` bytes of a stream. Reads no byte behind them, whatever the sizes in them say. */
gc_riff_found gc_riff_look(const unsigned char *head, int64_t count, gc_riff *riff);

/* Writes into a header of unknown length what libsndfile takes as "up to the end of the file", whose size is `all`. */
void gc_riff_open_end(unsigned char *head, const gc_riff *riff, int64_t all);

/* Whether libsndfile's reader of this file comes to an end. An inner chunk of a LIST that claims 2^31 bytes and more
 * takes it back to the beginning of that chunk, for ever (libsndfile 1.2); *size is that claim. True for any other file
 * than a WAV, and where the file cannot be read. Leaves the file at its first byte. */
bool gc_riff_ends(SF_VIRTUAL_IO *io, void *file, uint32_t *size);

#endif
