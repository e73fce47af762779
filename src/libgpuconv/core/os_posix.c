/* Functions of os.h that are the same on all POSIX systems. */
#include "os.h"

#include "files.h"
#include "os_posix.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* ---- Processor and processes ------------------------------------------------------------------------------------ */

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
    short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP;
    sigemptyset(&none);
    sigfillset(&all);
    int err = posix_spawn_file_actions_init(&actions);
    if (err)
        return err;
    for (int i = 0; i < 3 && !err; i++)
        err = posix_spawn_file_actions_adddup2(&actions, stream[i], i);
    err = err ? err : gc_posix_close_others(&actions, &flags);
    if (!err && (err = posix_spawnattr_init(&attributes)) == 0) {
        (void)posix_spawnattr_setsigdefault(&attributes, &all);
        (void)posix_spawnattr_setsigmask(&attributes, &none);
        (void)posix_spawnattr_setpgroup(&attributes, 0);
        (void)posix_spawnattr_setflags(&attributes, flags);
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
        (void)kill(-child, SIGKILL);
    do
        ended = waitpid(child, &how, WNOHANG);
    while (ended < 0 && errno == EINTR);
    if (ended == 0) {
        (void)nanosleep(&interval, NULL);
        return false;
    }
    *status = ended < 0 ? 0 : WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how); /* unknown: SIGCHLD is ignored */
    return true;
}

static double seconds_of(const struct rusage *used) {
    return (double)used->ru_utime.tv_sec + (double)used->ru_stime.tv_sec +
           1e-6 * ((double)used->ru_utime.tv_usec + (double)used->ru_stime.tv_usec);
}

bool gc_os_set_variable(const char *name, const char *value) {
    return setenv(name, value, 1) == 0;
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

/* ---- Files ------------------------------------------------------------------------------------------------------- */

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

/* Returns whether others can replace what a file contains, or a folder's files. */
static bool is_open_to_others(const struct stat *st, uid_t owner) {
    const bool group = st->st_mode & S_IWGRP && st->st_uid != 0 && st->st_gid != getegid();
    const bool sticky = S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX;
    return (st->st_uid != 0 && st->st_uid != geteuid() && st->st_uid != owner) ||
           (!sticky && (group || st->st_mode & S_IWOTH));
}

bool gc_os_is_trusted(const char *path, const char *program, char *resolved, size_t room, char *culprit) {
    struct stat st;
    const uid_t owner = stat(program, &st) == 0 ? st.st_uid : 0;
    char *real = realpath(path, NULL);
    const bool fits = real && snprintf(resolved, room, "%s", real) < (int)room;
    free(real);
    (void)snprintf(culprit, room, "%s", fits ? resolved : path);
    bool good = fits;
    while (good && *culprit) {
        good = stat(culprit, &st) == 0 && !is_open_to_others(&st, owner);
        if (good)
            culprit[strrchr(culprit, '/') - culprit] = '\0';
    }
    return good;
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
    return getentropy(&random, sizeof random) == 0 ? random : (unsigned)getpid();
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

const char gc_os_module_suffix[] = ".so";

bool gc_os_library_path(char *path, size_t room) {
    Dl_info info;
    return dladdr(gc_os_module_suffix, &info) && *info.dli_fname == '/' &&
           (size_t)snprintf(path, room, "%s", info.dli_fname) < room;
}

/* ---- Pipes, terminals and signals -------------------------------------------------------------------------------- */

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
