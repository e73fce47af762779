/* What differs between operating systems, for Linux with glibc or musl. */
#include "memory.h"
#include "os.h"

#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

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

/* ---- Processor and processes ------------------------------------------------------------------------------------ */

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

int gc_os_start(const char *program, char *const argv[], char *const environment[], const int stream[3], pid_t *child) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int err = posix_spawn_file_actions_init(&actions);
    if (err)
        return err;
    for (int i = 0; i < 3 && !err; i++)
        err = posix_spawn_file_actions_adddup2(&actions, stream[i], i);
#if defined __GLIBC__ && __GLIBC__ * 100 + __GLIBC_MINOR__ >= 234
    err = err ? err : posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#else
    for (int fd = 3; fd < 256 && !err; fd++)
        err = posix_spawn_file_actions_addclose(&actions, fd);
#endif
    if (!err && (err = posix_spawnattr_init(&attributes)) == 0) {
        (void)posix_spawnattr_setsigdefault(&attributes, &all);
        (void)posix_spawnattr_setsigmask(&attributes, &none);
        (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        err = posix_spawn(child, program, &actions, &attributes, argv, environment);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return err;
}
