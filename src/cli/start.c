/* The beginning and the end of a program: descriptors 0 to 2 and standard output. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool closed[3];

void gc_begin(const char *program) {
    /* Standard input and output are opened the wrong way round: an attempt to use them fails instead of reading nothing
     * or losing what was written. What cannot be told on a closed standard error is dropped. */
    static const int modes[3] = {O_WRONLY, O_RDONLY, O_WRONLY};
    gc_program = program;
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        closed[fd] = true;
        if (open("/dev/null", modes[fd]) != fd)
            _exit(gc_exit(GC_EXIT_FAILED, "/dev/null: %s", strerror(errno)));
    }
}

bool gc_was_closed(int descriptor) {
    return closed[descriptor];
}

int gc_end(int status) {
    bool bad = ferror(stdout) != 0;
    errno = 0;
    bad |= fclose(stdout) != 0;
    if (!bad || status != GC_EXIT_DONE)
        return status;
    return gc_exit(GC_EXIT_FAILED, "standard output: %s",
                   gc_was_closed(STDOUT_FILENO) ? "is closed"
                   : errno                      ? strerror(errno)
                                                : "cannot be written");
}
