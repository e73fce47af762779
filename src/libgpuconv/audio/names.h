/* Checks of format and encoding names that a user typed. */
#ifndef GC_AUDIO_NAMES_H
#define GC_AUDIO_NAMES_H

#include <stdbool.h>

/* Returns true if `name` is a container such as wav. */
bool gc_is_format_name(const char *name);

/* Returns true if `name` is a sample encoding such as s16. */
bool gc_is_encoding_name(const char *name);

/* Returns true if `text` describes raw samples: RATE,CHANNELS,ENCODING. */
bool gc_is_raw_format(const char *text);

#endif
