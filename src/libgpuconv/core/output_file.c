/* A fresh file without a name where the system has them (O_TMPFILE): then nobody sees it, and nothing is left of it
 * however the process ends. */
#include "output_file.h"

#include "descriptor.h"
#include "error.h"
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_ROOM = 17, LINKS_MOST = 40 }; /* what makes a temporary name unique, with its end; as the kernel's limit */

struct gc_output_file {
    char *path, *target; /* as given; behind symbolic links */
    char *temporary;     /* beside the target; NULL when written in place */
    bool named;          /* a file of the temporary name exists */
    int fd;
};

static gpuconv_status fail(const gc_output_file *f, int reason, gpuconv_error *error) {
    if (reason == ENOMEM)
        return gc_fail_memory(error, f->path);
    if (strcmp(f->path, f->target) == 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", f->path, strerror(reason));
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s: a symbolic link to %.200s: %s", f->path, f->target,
                   strerror(reason));
}

/* ---- Links ------------------------------------------------------------------------------------------------------- */

/* Replaces *path by where the link of that name points. @return 0 or errno */
static int follow_once(char **path) {
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

/* Finds the target of a path that the user names. @return 0 or errno */
static int follow_links(gc_output_file *f) {
    struct stat st, real_st;
    if (!(f->target = strdup(f->path)))
        return ENOMEM;
    if (lstat(f->path, &st) != 0 || !S_ISLNK(st.st_mode))
        return 0;
    if (stat(f->path, &st) == 0) {
        if (!S_ISREG(st.st_mode)) /* opened in place, by its own name: a link in /proc has no other */
            return 0;
        char *real = realpath(f->path, NULL);
        if (!real)
            return errno;
        free(f->target);
        f->target = real;
        bool same = stat(real, &real_st) == 0 && real_st.st_dev == st.st_dev && real_st.st_ino == st.st_ino;
        return same ? 0 : ENOENT; /* a link in /proc to a file that has lost its name */
    }
    if (errno != ENOENT)
        return errno;
    for (int i = 0; i < LINKS_MOST; i++) { /* it leads to no file: one is created where the last link points */
        if (lstat(f->target, &st) != 0)
            return errno == ENOENT ? 0 : errno;
        if (!S_ISLNK(st.st_mode))
            return 0;
        int failed = follow_once(&f->target);
        if (failed)
            return failed;
    }
    return ELOOP;
}

/* Refuses a name that the program chose and somebody else has put a link, a pipe or a device at. */
static gpuconv_status check_chosen(const char *path, gpuconv_error *error) {
    struct stat st;
    if (lstat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
        return GPUCONV_OK; /* what is wrong besides shows when it is opened */
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s: is %s, which is not written through here; remove it", path,
                   S_ISLNK(st.st_mode) ? "a symbolic link" : "no regular file");
}

/* ---- Fresh files ------------------------------------------------------------------------------------------------- */

/* Puts a name into f->temporary, beside the target, that no other file has. */
static void name_temporary(gc_output_file *f) {
    static _Atomic unsigned made;
    unsigned random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
        random = (unsigned)getpid();
    char *name = strrchr(f->temporary, '-') + 1;
    snprintf(name, NAME_ROOM, "%08x%08x", random, atomic_fetch_add(&made, 1));
}

/* Opens a new file in the target's folder. @return 0 or errno */
static int open_fresh(gc_output_file *f) {
    const char *slash = strrchr(f->target, '/');
    int folder = slash ? (int)(slash - f->target) + 1 : 0;
    size_t size = (size_t)folder + sizeof "./.gpuconv-" + NAME_ROOM;
    f->temporary = gc_calloc((int64_t)size, 1);
    if (!f->temporary)
        return ENOMEM;
    snprintf(f->temporary, size, "%.*s.", folder, f->target);
    if (access("/proc/self/fd", X_OK) == 0)
        f->fd = open(f->temporary, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    snprintf(f->temporary, size, "%.*s.gpuconv-", folder, f->target);
    f->named = f->fd < 0;
    int reason = EEXIST;
    for (int attempt = 0; f->fd < 0 && reason == EEXIST && attempt < 100; attempt++) {
        name_temporary(f);
        f->fd = open(f->temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
        reason = f->fd < 0 ? errno : 0;
    }
    if (f->fd >= 0)
        return 0;
    free(f->temporary);
    f->temporary = NULL;
    f->named = false;
    return reason;
}

/* Gives a fresh file what may be kept of the one that it replaces. Where the group cannot be kept, its members get no
 * more than all others. @return 0 or errno */
static int keep_permissions(int fd, const struct stat *old) {
    struct stat fresh;
    mode_t mode = old->st_mode & 0777;
    if (fstat(fd, &fresh) != 0)
        return errno;
    if (fresh.st_uid != old->st_uid && fchown(fd, old->st_uid, old->st_gid) == 0)
        fresh.st_gid = old->st_gid;
    if (fresh.st_gid != old->st_gid && fchown(fd, (uid_t)-1, old->st_gid) != 0)
        mode = (mode & 0707) | ((mode & 07) << 3 & mode);
    return fchmod(fd, mode) == 0 ? 0 : errno;
}

/* Opens a pipe or device in place. A named pipe without a reader is tried again until it has one. @return 0 or errno */
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

static gpuconv_status begin(gc_output_file *f, const volatile int *cancel, gpuconv_error *error) {
    struct stat st;
    bool exists = stat(f->target, &st) == 0;
    int reason;
    if (exists && S_ISDIR(st.st_mode))
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: is a directory", f->path);
    if (exists && !S_ISREG(st.st_mode))
        reason = open_special(f, S_ISFIFO(st.st_mode), cancel);
    else if (exists && access(f->target, W_OK) != 0)
        reason = errno;
    else if ((reason = open_fresh(f)) == 0 && exists)
        reason = keep_permissions(f->fd, &st);
    if (reason == ECANCELED)
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted, nothing written", f->path);
    return reason ? fail(f, reason, error) : GPUCONV_OK;
}

gpuconv_status gc_output_file_new(const char *path, gc_output_name name, const volatile int *cancel,
                                  gc_output_file **file, gpuconv_error *error) {
    *file = NULL;
    gpuconv_status status = name == GC_OUTPUT_CHOSEN ? check_chosen(path, error) : GPUCONV_OK;
    if (status)
        return status;
    gc_output_file *f = gc_calloc(1, sizeof *f);
    if (!f || !(f->path = strdup(path))) {
        free(f);
        return gc_fail_memory(error, path);
    }
    f->fd = -1;
    int reason = 0;
    if (name == GC_OUTPUT_GIVEN)
        reason = follow_links(f);
    else if (!(f->target = strdup(path)))
        reason = ENOMEM;
    if (reason == ENOMEM)
        status = gc_fail_memory(error, path);
    else if (reason)
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: a symbolic link that cannot be followed: %s", path,
                         strerror(reason));
    if (!status)
        status = begin(f, cancel, error);
    if (status)
        gc_output_file_free(f);
    else
        *file = f;
    return status;
}

int gc_output_file_descriptor(const gc_output_file *f) {
    return f->fd;
}

/* ---- The end ----------------------------------------------------------------------------------------------------- */

/* Gives the finished file its name in one step. A link or file that has the name by now is replaced. */
static bool take_name(gc_output_file *f) {
    char unnamed[64];
    if (!f->named) {
        snprintf(unnamed, sizeof unnamed, "/proc/self/fd/%d", f->fd);
        if (linkat(AT_FDCWD, unnamed, AT_FDCWD, f->target, AT_SYMLINK_FOLLOW) == 0)
            return true;
        if (errno != EEXIST)
            return false;
        name_temporary(f);
        if (linkat(AT_FDCWD, unnamed, AT_FDCWD, f->temporary, AT_SYMLINK_FOLLOW) != 0)
            return false;
        f->named = true;
    }
    if (rename(f->temporary, f->target) != 0)
        return false;
    f->named = false;
    return true;
}

gpuconv_status gc_output_file_commit(gc_output_file *f, gpuconv_error *error) {
    /* Only a file that has a name already can wait with its own until it is closed: network drives tell late. */
    bool late = f->named;
    int reason = 0;
    if (f->temporary && !late && !take_name(f))
        reason = errno;
    if (close(f->fd) != 0 && !reason)
        reason = errno;
    f->fd = -1;
    if (f->temporary && late && !reason && !take_name(f))
        reason = errno;
    return reason ? fail(f, reason, error) : GPUCONV_OK;
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

gpuconv_status gc_output_file_write(const char *path, gc_output_name name, const void *bytes, size_t count,
                                    gpuconv_error *error) {
    gc_output_file *f;
    gpuconv_status status = gc_output_file_new(path, name, NULL, &f, error);
    const gc_pipe_out out = {.fd = status ? -1 : f->fd, .hide_signal = true};
    int reason = status ? 0 : gc_pipe_out_write(&out, bytes, (int64_t)count);
    if (reason)
        status = fail(f, reason, error);
    if (!status)
        status = gc_output_file_commit(f, error);
    gc_output_file_free(f);
    return status;
}

int gc_output_file_append(const char *path, gpuconv_error *error) {
    struct stat st;
    if (check_chosen(path, error))
        return -1;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, fd < 0 ? strerror(errno) : "is no regular file");
    if (fd >= 0)
        close(fd);
    return -1;
}
