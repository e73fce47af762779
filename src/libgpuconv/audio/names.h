/* Whether a text names a format or an encoding, for those who take such names from a user. */
#ifndef GC_AUDIO_NAMES_H
#define GC_AUDIO_NAMES_H

#include <stdbool.h>

/* Containers, such as wav. */
bool gc_names_format(const char *name);

/* Encodings of samples, such as s16. */
bool gc_names_encoding(const char *name);

/* Samples without a header: RATE,CHANNELS,ENCODING. */
bool gc_names_raw(const char *text);

#endif
