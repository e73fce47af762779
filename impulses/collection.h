/* What both generators of committed files share: trouble ends them, and one writer gives every file its rate, its
 * rounding and its manifest line. */
#ifndef COLLECTION_H
#define COLLECTION_H

#include "gpuconv/room/synth.h"

struct label {
    const char *file;
    const char *source;
    const char *description;
    int bits; /* 16 or 24 */
};

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *allocate(size_t count, size_t size);  /* zeroed, never NULL */
gc_sound create(int channels, long frames); /* silence, always there */

/* Writes the file and prints its manifest line, without the checksum, which only the finished file has. */
void audio_write(const gc_sound *audio, const char *folder, const struct label *label);

#endif
