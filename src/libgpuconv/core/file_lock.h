/* Locks of files that end with the process that holds them. They belong to the open file (F_OFD_SETLK), not to the
 * process: closing another descriptor of the file does not release them, and threads exclude each other, too. They hold
 * between the machines of a network file system that has locks. */
#ifndef GC_CORE_FILE_LOCK_H
#define GC_CORE_FILE_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

typedef enum gc_lock_kind { GC_LOCK_SHARED, GC_LOCK_EXCLUSIVE } gc_lock_kind;

/* Locks `bytes` bytes of a file from byte `from` on; bytes 0: all of them. A lock that the open file holds already is
 * changed. Does not wait. @return 0, EAGAIN (another open file has a lock that excludes this one) or an errno value
 * (the file system has no locks) */
int gc_file_lock(int fd, gc_lock_kind kind, off_t from, off_t bytes);

/* Decides whether the open file is still the one at `path`. */
bool gc_file_is_at(int fd, const char *path);

#endif
