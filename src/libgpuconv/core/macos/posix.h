/* Functions and types that gpuconv uses and the headers of macOS lack. CMake includes this header first in
 * every file that is compiled for macOS. */
#ifndef GC_CORE_MACOS_POSIX_H
#define GC_CORE_MACOS_POSIX_H

#include <sys/stat.h>
#include <time.h>

extern char **environ;

#define st_mtim st_mtimespec
#define SOCK_CLOEXEC 0 /* a program that gc_os_start starts inherits no socket */

/* Sleeps until a time, with the flag TIMER_ABSTIME only. A clock that is set meanwhile is not noticed.
 * @return 0, EINTR or another errno value */
enum { TIMER_ABSTIME = 1 };
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left);

#endif
