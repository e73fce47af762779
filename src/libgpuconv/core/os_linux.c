/* Functions of os.h in which Linux, with glibc or musl, differs from other POSIX systems. */
#include "os.h"

#include "memory.h"
#include "os_posix.h"
#include "pool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

const int64_t gc_os_alignment = INT64_MAX;

void *gc_os_allocate(int64_t alignment, int64_t bytes, bool huge) {
    void *p = NULL;
    if (posix_memalign(&p, (size_t)alignment, (size_t)bytes) != 0)
        return NULL;
    if (huge)
        (void)madvise(p, (size_t)bytes, MADV_HUGEPAGE); /* only a hint: a failure is harmless */
    return p;
}

void gc_os_keep_freed_memory(void) {
#ifdef M_MMAP_THRESHOLD /* musl has no such setting */
    mallopt(M_MMAP_THRESHOLD, 1 << 25);
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
#endif
}

/* Returns the number that a file of the kernel holds, or -1 if the file does not exist or holds "max". */
static int64_t read_number(const char *path) {
    long long bytes;
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    if (fscanf(f, "%lld", &bytes) != 1) /* NOLINT(cert-err34-c): the kernel writes valid numbers */
        bytes = -1;
    fclose(f); /* opened for reading: no data can be lost */
    return bytes;
}

/* Returns the memory limit of this process's control group. Its current usage is not subtracted: it includes the page
 * cache, which the kernel reclaims on demand. */
static int64_t cgroup_limit(void) {
    int64_t limit = read_number("/sys/fs/cgroup/memory.max");
    if (limit < 0)
        limit = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    return limit > 0 ? limit : INT64_MAX;
}

int64_t gc_memory_available(void) {
    char line[128];
    long long kilobytes;
    int64_t available = INT64_MAX;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lld kB", &kilobytes) == 1) /* NOLINT(cert-err34-c) */
            available = (int64_t)kilobytes * 1024;
    if (f)
        fclose(f); /* opened for reading: no data can be lost */
    return gc_min(available, cgroup_limit());
}

/* ---- Processor and processes ------------------------------------------------------------------------------------- */

void gc_os_processor_name(char *name, size_t size) {
    snprintf(name, size, "CPU");
    FILE *f = fopen("/proc/cpuinfo", "r");
    if (!f)
        return;
    char line[256];
    while (fgets(line, sizeof line, f)) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value)
            continue;
        value += strspn(value, ": \t");
        value[strcspn(value, "\n")] = '\0';
        snprintf(name, size, "%s", value);
        break;
    }
    fclose(f); /* opened for reading: no data can be lost */
}

int gc_processor_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n > 0 ? n : 1;
}

int gc_posix_close_others(posix_spawn_file_actions_t *actions,
                          short *flags) { /* NOLINT(readability-non-const-parameter): as on macOS */
    (void)flags;
#if defined __GLIBC__ && __GLIBC__ * 100 + __GLIBC_MINOR__ >= 234
    return posix_spawn_file_actions_addclosefrom_np(actions, 3);
#else
    int err = 0;
    for (int fd = 3; fd < 256 && !err; fd++)
        err = posix_spawn_file_actions_addclose(actions, fd);
    return err;
#endif
}

/* ---- Files and pipes ------------------------------------------------------------------------------------------------
 */

int gc_os_memory_file(void) {
    int fd = memfd_create("gpuconv", MFD_CLOEXEC);
    if (fd < 0 || fd > 2)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3), err = errno;
    close(fd);
    errno = err;
    return moved;
}

int gc_os_unnamed_file(const char *folder, unsigned permissions) {
    if (access("/proc/self/fd", X_OK) != 0) /* without it the file could get no name */
        return -1;
    return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, permissions);
}

int gc_os_name_file(int fd, const char *path) {
    char unnamed[64];
    (void)snprintf(unnamed, sizeof unnamed, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, unnamed, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

bool gc_os_program_path(char *path, size_t room) {
    const ssize_t length = readlink("/proc/self/exe", path, room);
    if (length <= 0 || (size_t)length == room)
        return false;
    path[length] = '\0';
    return true;
}

int gc_os_unblock_pipe(int fd, int64_t *max_write) {
    struct stat st;
    int flags = fcntl(fd, F_GETFL);
    *max_write = flags >= 0 && flags & O_NONBLOCK ? 0 : PIPE_BUF;
    if (*max_write == 0 || fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode))
        return fd;
    /* Another open file description: the one that other processes may share keeps its flags. */
    char name[64];
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    int reopened = open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (reopened < 0)
        return fd;
    close(fd);
    *max_write = 0;
    return reopened;
}

ssize_t gc_os_write_quietly(int fd, const void *bytes, size_t count) {
    sigset_t pipe_signal, pending, before;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    ssize_t n = write(fd, bytes, count);
    int err = errno;
    if (n < 0 && err == EPIPE && !sigismember(&pending, SIGPIPE)) { /* one that was pending before is not consumed */
        const struct timespec now = {0, 0};
        while (sigtimedwait(&pipe_signal, NULL, &now) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = err;
    return n;
}
