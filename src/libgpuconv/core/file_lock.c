/* Locks of open files. */
#include "file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int gc_file_lock(int fd, gc_lock_kind kind, off_t from, off_t bytes) {
    struct flock wanted = {
        .l_type = kind == GC_LOCK_SHARED ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET, .l_start = from, .l_len = bytes};
    int err;
    do
        err = fcntl(fd, F_OFD_SETLK, &wanted) == 0 ? 0 : errno;
    while (err == EINTR);
    return err == EACCES ? EAGAIN : err;
}

bool gc_file_is_at(int fd, const char *path) {
    struct stat open_st, st;
    return fstat(fd, &open_st) == 0 && lstat(path, &st) == 0 && st.st_dev == open_st.st_dev &&
           st.st_ino == open_st.st_ino;
}
