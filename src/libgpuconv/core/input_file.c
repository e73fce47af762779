/* Opening of regular files. */
#include "input_file.h"

#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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
