/* Errors and paths of Windows, for the files of this folder and os_windows.c. */
#ifndef GC_CORE_WINDOWS_PATHS_H
#define GC_CORE_WINDOWS_PATHS_H

#include "posix.h"

#include <stdbool.h>

/* Returns the errno value for a code of GetLastError. */
int gc_windows_errno(unsigned long code);

/* Converts a path from UTF-8. @return false with errno set */
bool gc_windows_path(const char *path, wchar_t wide[GC_WINDOWS_PATH]);

/* Converts to UTF-8. @return false if `room` bytes are too few */
bool gc_windows_text(const wchar_t *wide, char *text, size_t room);

/* Replaces \ by /. */
void gc_windows_forward_slashes(char *path);

#endif
