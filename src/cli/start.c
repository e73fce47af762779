/* Prepares the descriptors 0 to 2 at the start of a program and checks standard output at its end. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool closed[3];

void gc_start_program(const char *program) {
    /* Standard input is opened for writing and standard output for reading, so that using them fails instead of reading
     * an empty input or discarding output. Messages to a closed standard error are discarded. */
    static const int modes[3] = {O_WRONLY, O_RDONLY, O_WRONLY};
    gc_program = program;
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        closed[fd] = true;
        if (open("/dev/null", modes[fd]) != fd)
            _exit(gc_print_error(GC_EXIT_FAILED, "/dev/null: %s", strerror(errno)));
    }
}

bool gc_was_closed(int descriptor) {
    return closed[descriptor];
}

int gc_end_program(int status) {
    bool bad = ferror(stdout) != 0;
    if (bad) /* nothing may be left to write, and the reason is lost: writing once more fails for the same one */
        (void)fputc('\n', stdout);
    errno = 0;
    bad |= fclose(stdout) != 0;
    if (!bad || status != GC_EXIT_DONE)
        return status;
    return gc_print_error(GC_EXIT_FAILED, "standard output: %s",
                          gc_was_closed(STDOUT_FILENO) ? "is closed"
                          : errno                      ? strerror(errno)
                                                       : "cannot be written");
}
