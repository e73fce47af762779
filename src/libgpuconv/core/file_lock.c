/* Whether a lock is still that of a path; gc_file_lock is in os_posix.c and os_windows.c. */
#include "file_lock.h"

#include <sys/stat.h>

bool gc_file_is_at(int fd, const char *path) {
    struct stat open_st, st;
    return fstat(fd, &open_st) == 0 && lstat(path, &st) == 0 && st.st_dev == open_st.st_dev &&
           st.st_ino == open_st.st_ino;
}
