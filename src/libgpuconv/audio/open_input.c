/* Opening of audio inputs. */
#include "open_input.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Returns whether an open file is a pipe or a socket, and its name that of a descriptor which the process has open. */
static bool is_open_pipe(const char *path, const struct stat *st) {
    return (S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode)) &&
           (strcmp(path, "standard input") == 0 || strcmp(path, "/dev/stdin") == 0 ||
            strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/self/fd/", 14) == 0);
}

static gpuconv_status check_type(const char *path, gc_input_kind kind, const struct stat *st, gpuconv_error *error) {
    const bool any = kind == GC_INPUT_ANY || (kind == GC_INPUT_REGULAR_OR_FD && is_open_pipe(path, st));
    const bool device = S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode);
    if (S_ISDIR(st->st_mode) || device || (!any && !S_ISREG(st->st_mode)))
        return gc_input_file_check(path, st, error);
    if (S_ISREG(st->st_mode) && st->st_size == 0)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: the file is empty", path);
    return GPUCONV_OK;
}

/* Opens a path without waiting for a writer of a named pipe: the first read waits, and can be interrupted. */
static int open_path(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return fd < 0 && errno == EWOULDBLOCK ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : fd;
}

gpuconv_status gc_open_input(const char *path, gc_input_kind kind, int *fd, struct stat *st, gpuconv_error *error) {
    const bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    gpuconv_status status = GPUCONV_OK;
    *fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open_path(path);
    if (*fd < 0 || fstat(*fd, st) != 0)
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", name, strerror(errno));
    else if (standard && isatty(*fd))
        status = gc_fail(error, GPUCONV_ERROR_FILE, "standard input is a terminal; redirect a file or a pipe to it");
    else
        status = check_type(name, kind, st, error);
    if (status && *fd >= 0)
        close(*fd);
    return status;
}
