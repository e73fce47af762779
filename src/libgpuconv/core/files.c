/* The new file of an output has no name where the file system supports O_TMPFILE: no other process can open it by name,
 * and the kernel removes it however the process ends. Elsewhere, and for a moment when it replaces a file, it has a
 * temporary name. The first choice of that name depends on the target alone, so that the next process that replaces the
 * target finds what a killed one has left; the file is locked as long as it has the name, and removed if it is not. */
#include "files.h"

#include "descriptor.h"
#include "error.h"
#include "map.h"
#include "memory.h"
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Input files, folders, locks --------------------------------------------------------------------------------- */

gpuconv_status gc_input_file_check(const char *path, const struct stat *st, gpuconv_error *error) {
    if (S_ISREG(st->st_mode))
        return GPUCONV_OK;
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s: is %s", path,
                   S_ISDIR(st->st_mode) ? "a directory" : "a pipe or a device; use a regular file");
}

int gc_input_file_open(const char *path, int64_t *size, gpuconv_error *error) {
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0)
        gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(errno));
    else if (!gc_input_file_check(path, &st, error)) {
        *size = st.st_size;
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

gpuconv_status gc_create_parent_folders(const char *path, gpuconv_error *error) {
    char *folder = strdup(path);
    if (!folder)
        return gc_fail_memory(error, path);
    gpuconv_status status = GPUCONV_OK;
    /* Checks the innermost folder first: usually it exists already. */
    char *slash = strrchr(folder, '/');
    if (slash && slash != folder) {
        *slash = '\0';
        struct stat st;
        bool exists = stat(folder, &st) == 0 && S_ISDIR(st.st_mode);
        *slash = '/';
        for (char *at = strchr(folder + 1, '/'); at && !exists && !status; at = strchr(at + 1, '/')) {
            *at = '\0';
            if (mkdir(folder, 0777) != 0 && errno != EEXIST)
                status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(errno));
            *at = '/';
        }
    }
    free(folder);
    return status;
}

bool gc_is_same_file(const char *a, const char *b) {
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* gc_file_lock is in os_posix.c and os_windows.c. */
bool gc_file_is_at(int fd, const char *path) {
    struct stat open_st, st;
    return fstat(fd, &open_st) == 0 && lstat(path, &st) == 0 && st.st_dev == open_st.st_dev &&
           st.st_ino == open_st.st_ino;
}

/* ---- Output files ---------------------------------------------------------------------------------------- */

enum {
    SUFFIX_ROOM = 17, /* the unique part of a temporary name and its terminating zero */
    ATTEMPTS = 100,   /* temporary names that are tried */
    MAX_LINKS = 40    /* symbolic links in a row, as the kernel's limit */
};

struct gc_output_file {
    char *path, *target; /* the path as given; the path after following symbolic links */
    char *temporary;     /* path in the target's folder; NULL for a pipe or device, which is written in place */
    bool named;          /* the new file has the temporary name */
    int fd;
};

/* Returns the length of the first folder of a path that does not exist; 0: all do. */
static size_t missing_folder(const char *path) {
    struct stat st;
    for (size_t end = 1; path[end]; end++) {
        char *folder = path[end] == '/' && path[end - 1] != '/' ? strndup(path, end) : NULL;
        const bool missing = folder && stat(folder, &st) != 0 && errno == ENOENT;
        free(folder);
        if (missing)
            return end;
    }
    return 0;
}

static gpuconv_status fail(const gc_output_file *f, int err, gpuconv_error *error) {
    if (err == ENOMEM)
        return gc_fail_memory(error, f->path);
    const size_t missing = err == ENOENT && *f->path ? missing_folder(f->path) : 0;
    if (missing)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: there is no folder %.*s; create it first", f->path,
                       (int)gc_min((int64_t)missing, 1024), f->path);
    if (strcmp(f->path, f->target) == 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", f->path, strerror(err));
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s: a symbolic link to %.200s: %s", f->path, f->target, strerror(err));
}

/* ---- Links ------------------------------------------------------------------------------------------------------- */

/* Replaces *path, a symbolic link, by the path that it points to. @return 0 or an errno value */
static int resolve_link(char **path) {
    char to[PATH_MAX + 1];
    ssize_t n = readlink(*path, to, sizeof to - 1);
    if (n < 0 || n == (ssize_t)sizeof to - 1)
        return n < 0 ? errno : ENAMETOOLONG;
    to[n] = '\0';
    const char *slash = strrchr(*path, '/');
    int folder = to[0] == '/' || !slash ? 0 : (int)(slash - *path) + 1;
    size_t room = (size_t)folder + (size_t)n + 1;
    char *next = gc_calloc((int64_t)room, 1);
    if (!next)
        return ENOMEM;
    (void)snprintf(next, room, "%.*s%s", folder, *path, to);
    free(*path);
    *path = next;
    return 0;
}

/* Finds the target of a path that the user gave. @return 0 or an errno value */
static int follow_links(gc_output_file *f) {
    struct stat st, real_st;
    if (!(f->target = strdup(f->path)))
        return ENOMEM;
    if (lstat(f->path, &st) != 0 || !S_ISLNK(st.st_mode))
        return 0;
    if (stat(f->path, &st) == 0) {
        if (!S_ISREG(st.st_mode)) /* opened in place by this path: the target of a link in /proc may have no other */
            return 0;
        char *real = realpath(f->path, NULL);
        if (!real)
            return errno;
        free(f->target);
        f->target = real;
        bool same = stat(real, &real_st) == 0 && real_st.st_dev == st.st_dev && real_st.st_ino == st.st_ino;
        return same ? 0 : ENOENT; /* a link in /proc to an unlinked file */
    }
    if (errno != ENOENT)
        return errno;
    for (int i = 0; i < MAX_LINKS; i++) { /* a dangling link: the file is created where the last link points */
        if (lstat(f->target, &st) != 0)
            return errno == ENOENT ? 0 : errno;
        if (!S_ISLNK(st.st_mode))
            return 0;
        int err = resolve_link(&f->target);
        if (err)
            return err;
    }
    return ELOOP;
}

/* Refuses a path that the program chose if another user may have placed a link, a pipe or a device there. */
static gpuconv_status check_program_path(const char *path, gpuconv_error *error) {
    struct stat st;
    if (lstat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
        return GPUCONV_OK; /* opening the file reports other errors */
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s: is %s, which must not be here; remove it", path,
                   S_ISLNK(st.st_mode) ? "a symbolic link" : "not a regular file");
}

/* ---- New files --------------------------------------------------------------------------------------------------- */

/* Removes a file with a temporary name unless a process has locked it. */
static void remove_abandoned(const char *path) {
    struct stat st;
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && gc_file_lock(fd, GC_LOCK_EXCLUSIVE, 0, 0) == 0 &&
        gc_file_is_at(fd, path))
        (void)unlink(path);
    if (fd >= 0)
        close(fd);
}

/* Writes a suffix into f->temporary: that of the target, which is made free if it is abandoned, then random ones,
 * because another process may be replacing the target, too. */
static void choose_temporary_name(gc_output_file *f, int attempt) {
    static _Atomic unsigned made;
    const char *slash = strrchr(f->target, '/');
    char *suffix = strrchr(f->temporary, '-') + 1;
    if (attempt == 0) {
        snprintf(suffix, SUFFIX_ROOM, "%016llx", (unsigned long long)gc_hash(slash ? slash + 1 : f->target));
        if (access(f->temporary, F_OK) == 0)
            remove_abandoned(f->temporary);
        return;
    }
    snprintf(suffix, SUFFIX_ROOM, "%08x%08x", gc_os_random(), atomic_fetch_add(&made, 1));
}

/* Creates the new file with a temporary name. @return 0 or an errno value */
static int create_named(gc_output_file *f) {
    int err = EEXIST;
    for (int attempt = 0; err == EEXIST && attempt < ATTEMPTS; attempt++) {
        choose_temporary_name(f, attempt);
        f->fd = open(f->temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
        err = f->fd < 0 ? errno : 0;
        /* Another process may have taken the file for an abandoned one before it is locked. */
        if (!err && (gc_file_lock(f->fd, GC_LOCK_EXCLUSIVE, 0, 0) == EAGAIN || !gc_file_is_at(f->fd, f->temporary))) {
            close(f->fd);
            f->fd = -1;
            err = EEXIST;
        }
    }
    f->named = !err;
    return err;
}

/* Creates the new file in the target's folder. @return 0 or an errno value */
static int create_new(gc_output_file *f) {
    const char *slash = strrchr(f->target, '/');
    int folder = slash ? (int)(slash - f->target) + 1 : 0;
    size_t size = (size_t)folder + sizeof "./.gpuconv-" + SUFFIX_ROOM;
    f->temporary = gc_calloc((int64_t)size, 1);
    if (!f->temporary)
        return ENOMEM;
    snprintf(f->temporary, size, "%.*s.", folder, f->target);
    f->fd = gc_os_unnamed_file(f->temporary, 0666);
    snprintf(f->temporary, size, "%.*s.gpuconv-", folder, f->target);
    int err = f->fd < 0 ? create_named(f) : 0;
    if (err) {
        free(f->temporary);
        f->temporary = NULL;
    }
    return err;
}

/* Opens a pipe or device in place. Opening a named pipe is repeated until the pipe has a reader.
 * @return 0, ECANCELED or an errno value */
static int open_special(gc_output_file *f, bool fifo, const volatile int *cancel) {
    const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | (fifo ? O_NONBLOCK : 0);
    for (;;) {
        f->fd = open(f->target, flags);
        if (f->fd >= 0)
            return 0;
        if (errno != EINTR && !(fifo && errno == ENXIO))
            return errno;
        if (gc_wait_step(cancel))
            return ECANCELED;
    }
}

static gpuconv_status open_target(gc_output_file *f, const volatile int *cancel, gpuconv_error *error) {
    struct stat st;
    bool exists = stat(f->target, &st) == 0;
    int err;
    if (exists && S_ISDIR(st.st_mode))
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: is a directory", f->path);
    if (exists && !S_ISREG(st.st_mode))
        err = open_special(f, S_ISFIFO(st.st_mode), cancel);
    else if (exists && access(f->target, W_OK) != 0)
        err = errno;
    else if ((err = create_new(f)) == 0 && exists)
        err = gc_os_keep_permissions(f->fd, &st);
    if (err == ECANCELED)
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted, nothing written", f->path);
    return err ? fail(f, err, error) : GPUCONV_OK;
}

gpuconv_status gc_output_file_new(const char *path, gc_output_path_kind kind, const volatile int *cancel,
                                  gc_output_file **file, gpuconv_error *error) {
    *file = NULL;
    gpuconv_status status = kind == GC_OUTPUT_PROGRAM_PATH ? check_program_path(path, error) : GPUCONV_OK;
    if (status)
        return status;
    gc_output_file *f = gc_calloc(1, sizeof *f);
    if (!f || !(f->path = strdup(path))) {
        free(f);
        return gc_fail_memory(error, path);
    }
    f->fd = -1;
    int err = 0;
    if (kind == GC_OUTPUT_USER_PATH)
        err = follow_links(f);
    else if (!(f->target = strdup(path)))
        err = ENOMEM;
    if (err == ENOMEM)
        status = gc_fail_memory(error, path);
    else if (err)
        status =
            gc_fail(error, GPUCONV_ERROR_FILE, "%s: a symbolic link that cannot be followed: %s", path, strerror(err));
    if (!status)
        status = open_target(f, cancel, error);
    if (status)
        gc_output_file_free(f);
    else
        *file = f;
    return status;
}

int gc_output_file_descriptor(const gc_output_file *f) {
    return f->fd;
}

/* ---- Commit ------------------------------------------------------------------------------------------------------ */

/* Gives the new file the target's name atomically. A link or file that has the name by now is replaced. */
static bool take_name(gc_output_file *f) {
    if (!f->named) {
        int err = gc_os_name_file(f->fd, f->target);
        if (!err)
            return true;
        (void)gc_file_lock(f->fd, GC_LOCK_EXCLUSIVE, 0, 0);
        for (int attempt = 0; !f->named && err == EEXIST && attempt < ATTEMPTS; attempt++) {
            choose_temporary_name(f, attempt);
            err = gc_os_name_file(f->fd, f->temporary);
            f->named = !err;
        }
        errno = err;
        if (!f->named)
            return false;
    }
    if (rename(f->temporary, f->target) != 0)
        return false;
    f->named = false;
    return true;
}

/* Closes a duplicate of a descriptor: reports what closing it would report, and leaves it open.
 * @return 0 or an errno value */
static int close_duplicate(int fd) {
    int other = dup(fd);
    return other < 0 || close(other) != 0 ? errno : 0;
}

gpuconv_status gc_output_file_commit(gc_output_file *f, gpuconv_error *error) {
    /* A file with a temporary name is renamed after close(), which on network file systems reports late write errors. A
     * file without a name must be linked before it is closed: a duplicate of its descriptor is closed first. */
    bool rename_after_close = f->named;
    int lock = f->named ? dup(f->fd) : -1, err = 0; /* keeps the lock until the file has the target's name */
    if (f->temporary && !rename_after_close)
        err = close_duplicate(f->fd);
    if (f->temporary && !rename_after_close && !err && !take_name(f))
        err = errno;
    if (close(f->fd) != 0 && !err)
        err = errno;
    f->fd = -1;
    if (f->temporary && rename_after_close && !err && !take_name(f))
        err = errno;
    if (lock >= 0)
        close(lock);
    return err ? fail(f, err, error) : GPUCONV_OK;
}

gpuconv_status gc_output_file_release(gc_output_file *f, int *fd, gpuconv_error *error) {
    if (f->temporary && !take_name(f))
        return fail(f, errno, error);
    *fd = f->fd;
    f->fd = -1;
    return GPUCONV_OK;
}

void gc_output_file_free(gc_output_file *f) {
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    if (f->named)
        unlink(f->temporary);
    free(f->temporary);
    free(f->target);
    free(f->path);
    free(f);
}

gpuconv_status gc_output_file_write(const char *path, gc_output_path_kind kind, const void *bytes, size_t count,
                                    gpuconv_error *error) {
    gc_output_file *f;
    gpuconv_status status = gc_output_file_new(path, kind, NULL, &f, error);
    const gc_pipe_out out = {.fd = status ? -1 : f->fd, .hide_signal = true};
    int err = status ? 0 : gc_pipe_out_write(&out, bytes, (int64_t)count);
    if (err)
        status = fail(f, err, error);
    if (!status)
        status = gc_output_file_commit(f, error);
    gc_output_file_free(f);
    return status;
}

int gc_output_file_append(const char *path, gpuconv_error *error) {
    struct stat st;
    if (check_program_path(path, error))
        return -1;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, fd < 0 ? strerror(errno) : "not a regular file");
    if (fd >= 0)
        close(fd);
    return -1;
}
