/* glob for Windows: * ? [a-z] and \ in every component. Names that begin with a dot match only a pattern that does. */
#ifndef GC_CORE_WINDOWS_GLOB_H
#define GC_CORE_WINDOWS_GLOB_H

#include <stddef.h>

enum { GLOB_TILDE = 1, GLOB_NOSPACE = 1, GLOB_NOMATCH = 3 };

typedef struct glob_t {
    size_t gl_pathc;
    char **gl_pathv; /* sorted by bytes */
} glob_t;

#define glob(pattern, flags, failed, found) gc_windows_glob(pattern, found)
#define globfree gc_windows_globfree
int gc_windows_glob(const char *pattern, glob_t *found);
void gc_windows_globfree(glob_t *found);

#endif
