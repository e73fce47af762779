/* Lists the files that match a pattern with wildcards and braces, and for each the part of its path that the output
 * keeps.
 */
#ifndef GPUCONV_BATCH_PATTERNS_H
#define GPUCONV_BATCH_PATTERNS_H

#include "gpuconv.h"

#include <stdbool.h>

typedef struct gc_match {
    char *path;
    const char *kept; /* in path: the part after the folders that precede the pattern's first wildcard or brace */
} gc_match;

typedef struct gc_matches {
    gc_match *match;
    int64_t count;
} gc_matches;

/* Returns whether a text has wildcards, braces, a backslash or a leading ~, and is not the name of a file. */
bool gc_is_pattern(const char *text);

/* Lists the files that match a pattern of glob(3), with {a,b}, a leading ~, and ** for any number of folders. A name of
 * a file is that file, whatever characters it has. The alternatives of braces keep their order; the files of each are
 * sorted by name. Fails with FILE (nothing matches), ARGUMENT (too many alternatives) or MEMORY. */
gpuconv_status gc_match_files(const char *pattern, gc_matches *matches, gpuconv_error *error);
void gc_matches_free(gc_matches *matches);

#endif
