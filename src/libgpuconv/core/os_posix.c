/* What differs between operating systems, for Linux with glibc or musl. */
#include "os.h"

#include "file_lock.h"
#include "memory.h"
#include "pool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
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

bool gc_os_find_program(const char *name, char *program, size_t room) {
    const char *path = getenv("PATH");
    struct stat st;
    for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; *path; path += *path == ':') {
        int length = (int)strcspn(path, ":"); /* empty and relative entries are skipped */
        if (*path == '/' && snprintf(program, room, "%.*s/%s", length, path, name) < (int)room &&
            access(program, X_OK) == 0 && stat(program, &st) == 0 && S_ISREG(st.st_mode))
            return true;
        path += length;
    }
    return false;
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

bool gc_os_wait(pid_t child, double seconds, bool end, int *status) {
    struct timespec interval = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    pid_t ended;
    int how = 0;
    if (end)
        (void)kill(child, SIGKILL);
    do
        ended = waitpid(child, &how, WNOHANG);
    while (ended < 0 && errno == EINTR);
    if (ended == 0) {
        (void)nanosleep(&interval, NULL);
        return false;
    }
    *status = ended < 0 ? 0 : WIFEXITED(how) ? WEXITSTATUS(how) : -1; /* unknown: this process ignores SIGCHLD */
    return true;
}

static double seconds_of(const struct rusage *used) {
    return (double)used->ru_utime.tv_sec + (double)used->ru_stime.tv_sec +
           1e-6 * ((double)used->ru_utime.tv_usec + (double)used->ru_stime.tv_usec);
}

int gc_os_run_shell(const char *folder, const char *command, double *wall, double *processor) {
    char shell[] = "sh", option[] = "-c", enter[] = "cd \"$0\" && eval \"$1\"";
    char *const argv[] = {shell, option, enter, (char *)folder, (char *)command, NULL};
    struct timespec start, now;
    struct rusage used;
    pid_t child;
    int status, err;
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC), stream[3] = {null, null, null};
    if (null < 0)
        return -1;
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    err = gc_os_start("/bin/sh", argv, environ, stream, &child);
    close(null);
    if (err)
        return -1;
    while (wait4(child, &status, 0, &used) < 0)
        if (errno != EINTR)
            return -1;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    *wall = (double)(now.tv_sec - start.tv_sec) + 1e-9 * (double)(now.tv_nsec - start.tv_nsec);
    *processor = seconds_of(&used);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

double gc_os_processor_seconds(void) {
    struct rusage used;
    return getrusage(RUSAGE_SELF, &used) == 0 ? seconds_of(&used) : 0;
}

bool gc_os_get_names(gc_os_names *names) {
    struct utsname system;
    if (uname(&system) != 0)
        return false;
    (void)snprintf(names->system, sizeof names->system, "%.63s", system.sysname);
    (void)snprintf(names->release, sizeof names->release, "%.63s", system.release);
    (void)snprintf(names->machine, sizeof names->machine, "%.63s", system.machine);
    return true;
}

int gc_processor_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n > 0 ? n : 1;
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

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

int gc_os_keep_permissions(int fd, const struct stat *old) {
    struct stat new_st;
    mode_t mode = old->st_mode & 0777;
    if (fstat(fd, &new_st) != 0)
        return errno;
    if (new_st.st_uid != old->st_uid && fchown(fd, old->st_uid, old->st_gid) == 0)
        new_st.st_gid = old->st_gid;
    if (new_st.st_gid != old->st_gid && fchown(fd, (uid_t)-1, old->st_gid) != 0)
        mode = (mode & 0707) | ((mode & 07) << 3 & mode);
    return fchmod(fd, mode) == 0 ? 0 : errno;
}

int gc_file_lock(int fd, gc_lock_kind kind, off_t from, off_t bytes) {
    struct flock wanted = {
        .l_type = kind == GC_LOCK_SHARED ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET, .l_start = from, .l_len = bytes};
    int err;
    do
        err = fcntl(fd, F_OFD_SETLK, &wanted) == 0 ? 0 : errno;
    while (err == EINTR);
    return err == EACCES ? EAGAIN : err;
}

unsigned gc_os_random(void) {
    unsigned random;
    return getrandom(&random, sizeof random, GRND_NONBLOCK) == (ssize_t)sizeof random ? random : (unsigned)getpid();
}

int gc_os_spool_file(char *folder, size_t room) {
    const char *chosen = getenv("TMPDIR");
    char path[4096];
    (void)snprintf(folder, room, "%s", chosen && *chosen ? chosen : "/tmp");
    int fd = gc_os_unnamed_file(folder, 0600);
    if (fd >= 0)
        return fd;
    (void)snprintf(path, sizeof path, "%.4000s/gpuconv-XXXXXX", folder);
    fd = mkstemp(path);
    if (fd >= 0)
        unlink(path);
    return fd;
}

bool gc_os_cache_folder(char *path, size_t room) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache == '/')
        return (size_t)snprintf(path, room, "%s", cache) < room;
    return home && *home == '/' && (size_t)snprintf(path, room, "%s/.cache", home) < room;
}

bool gc_os_program_path(char *path, size_t room) {
    const ssize_t length = readlink("/proc/self/exe", path, room);
    if (length <= 0 || (size_t)length == room)
        return false;
    path[length] = '\0';
    return true;
}

const char gc_os_module_suffix[] = ".so";

/* ---- Pipes, terminals and signals -------------------------------------------------------------------------------- */

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

int gc_os_wait_ready(int fd, bool for_writing, int milliseconds) {
    struct pollfd wait = {.fd = fd, .events = for_writing ? POLLOUT : POLLIN};
    int n = poll(&wait, 1, milliseconds);
    return n < 0 ? errno : n == 0 ? EAGAIN : wait.revents & POLLNVAL ? EBADF : 0;
}

void gc_os_catch_signals(void (*handler)(int number)) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = (int)SA_RESETHAND}, before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup ignores it */
        sigaction(SIGHUP, &action, NULL);
    /* Makes a write over the file size limit fail with EFBIG instead of ending the process. */
    signal(SIGXFSZ, SIG_IGN);
}

/* The system passes them as they are. */
void gc_os_begin_program(int *argc, char ***argv) { /* NOLINT(readability-non-const-parameter): as on other systems */
    (void)argc;
    (void)argv;
}

int gc_os_terminal_columns(int fd) {
    struct winsize window;
    return ioctl(fd, TIOCGWINSZ, &window) == 0 ? window.ws_col : 0;
}

static struct termios saved_terminal;

bool gc_os_enter_raw(void) {
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &saved_terminal) != 0)
        return false;
    struct termios now = saved_terminal;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    return tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0;
}

void gc_os_leave_raw(void) {
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &saved_terminal);
}
