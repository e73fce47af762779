/* Files that a pattern with wildcards and braces matches, each with the part of its name that an output keeps. */
#ifndef GPUCONV_BATCH_PATTERNS_H
#define GPUCONV_BATCH_PATTERNS_H

#include "gpuconv.h"

typedef struct gc_match {
    char *path;
    const char
        *kept; /* in path: what lies behind the folders that the pattern names before its first wildcard or brace */
} gc_match;

typedef struct gc_matches {
    gc_match *match;
    int64_t count;
} gc_matches;

/* Finds the files of a pattern as glob(3) knows it, with {a,b} and a leading ~. The alternatives of braces come in
 * their order, the files of each in the order of their names. FILE (nothing matches), ARGUMENT (too many braces),
 * MEMORY. */
gpuconv_status gc_match_files(const char *pattern, gc_matches *matches, gpuconv_error *error);
void gc_matches_free(gc_matches *matches);

#endif
