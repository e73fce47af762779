/* Functions of os_linux.c and os_macos.c that os_posix.c needs. */
#ifndef GC_CORE_OS_POSIX_H
#define GC_CORE_OS_POSIX_H

#include <spawn.h>

/* Adds to a program's file actions, or to the flags of its attributes, that it gets the standard streams and no other
 * descriptor. @return 0 or an errno value */
int gc_posix_close_others(posix_spawn_file_actions_t *actions, short *flags);

#endif
