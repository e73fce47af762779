/* Shared by the generators of impulses/ and samples/: allocation that ends the program on failure, and a writer that
 * gives every file the same rate, rounding and manifest line. */
#ifndef COLLECTION_H
#define COLLECTION_H

#include "libtools/room/synth.h"

struct label {
    const char *file;
    const char *source;
    const char *description;
    int bits; /* 16 or 24 */
};

/* Prints the message to stderr and exits with status 1. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns zeroed memory; fails instead of returning NULL. */
void *allocate(size_t count, size_t size);

/* Returns silence; fails if memory is exhausted. */
gc_sound create(int channels, long frames);

/* Writes the file and prints its manifest line without the checksum. */
void audio_write(const gc_sound *audio, const char *folder, const struct label *label);

#endif
