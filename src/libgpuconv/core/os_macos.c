/* Functions of os.h in which macOS differs from other POSIX systems. */
#include "os.h"

#include "memory.h"
#include "os_posix.h"
#include "pool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mach-o/dyld.h>
#include <mach/mach.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysctl.h>
#include <time.h>
#include <unistd.h>

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

const int64_t gc_os_alignment = INT64_MAX;

/* The system chooses the size of pages itself. */
void *gc_os_allocate(int64_t alignment, int64_t bytes, bool huge) {
    void *p = NULL;
    (void)huge;
    return posix_memalign(&p, (size_t)alignment, (size_t)bytes) == 0 ? p : NULL;
}

/* The allocator has no such setting. */
void gc_os_keep_freed_memory(void) {}

int64_t gc_memory_available(void) {
    vm_statistics64_data_t pages;
    mach_msg_type_number_t words = HOST_VM_INFO64_COUNT;
    if (host_statistics64(mach_host_self(), HOST_VM_INFO64, (host_info64_t)&pages, &words) != KERN_SUCCESS)
        return INT64_MAX;
    return ((int64_t)pages.free_count + (int64_t)pages.inactive_count) * (int64_t)vm_page_size;
}

/* ---- Processor, processes and time ------------------------------------------------------------------------------- */

void gc_os_processor_name(char *name, size_t size) {
    if (sysctlbyname("machdep.cpu.brand_string", name, &size, NULL, 0) != 0)
        (void)snprintf(name, size, "CPU");
}

int gc_processor_count(void) {
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 && n <= INT_MAX ? (int)n : 1;
}

int gc_posix_close_others(posix_spawn_file_actions_t *actions, short *flags) {
    (void)actions;
    *flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
    return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left) {
    struct timespec now;
    (void)flags;
    (void)left;
    if (clock_gettime(clock, &now) != 0)
        return errno;
    struct timespec interval = {until->tv_sec - now.tv_sec, until->tv_nsec - now.tv_nsec};
    if (interval.tv_nsec < 0) {
        interval.tv_sec--;
        interval.tv_nsec += 1000000000;
    }
    return interval.tv_sec < 0 || nanosleep(&interval, NULL) == 0 ? 0 : errno;
}

/* ---- Files and pipes --------------------------------------------------------------------------------------------- */

int gc_os_memory_file(void) {
    char folder[PATH_MAX];
    int fd = gc_os_spool_file(folder, sizeof folder);
    if (fd < 0)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3), err = errno;
    close(fd);
    errno = err;
    return moved;
}

int gc_os_unnamed_file(const char *folder, unsigned permissions) {
    (void)folder;
    (void)permissions;
    errno = ENOTSUP;
    return -1;
}

int gc_os_name_file(int fd, const char *path) {
    (void)fd;
    (void)path;
    return ENOTSUP;
}

bool gc_os_program_path(char *path, size_t room) {
    char linked[PATH_MAX], real[PATH_MAX];
    uint32_t size = sizeof linked;
    return _NSGetExecutablePath(linked, &size) == 0 && realpath(linked, real) &&
           (size_t)snprintf(path, room, "%s", real) < room;
}

/* A second open file description of a pipe cannot be made: /dev/fd has copies of the descriptors. */
int gc_os_unblock_pipe(int fd, int64_t *max_write) {
    const int flags = fcntl(fd, F_GETFL);
    *max_write = flags >= 0 && flags & O_NONBLOCK ? 0 : PIPE_BUF;
    return fd;
}

/* SIGPIPE would go to the process, not to the thread that writes. */
ssize_t gc_os_write_quietly(int fd, const void *bytes, size_t count) {
    const int before = fcntl(fd, F_GETNOSIGPIPE);
    (void)fcntl(fd, F_SETNOSIGPIPE, 1);
    ssize_t n = write(fd, bytes, count);
    int err = errno;
    (void)fcntl(fd, F_SETNOSIGPIPE, before > 0);
    errno = err;
    return n;
}
