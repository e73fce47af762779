/* Reading from and writing to descriptors that may block without limit (pipes, sockets, terminals), interruptible by a
 * cancellation flag. */
#ifndef GC_CORE_DESCRIPTOR_H
#define GC_CORE_DESCRIPTOR_H

#include "gpuconv.h"

#include <stdbool.h>
#include <sys/types.h>

/* Sleeps 0.02 s, the retry interval for operations that cannot be polled. @return 0 or ECANCELED */
int gc_wait_step(const volatile int *cancel);

/* Opens a file without waiting for a writer of a named pipe: reading waits, and can be interrupted. @return as open()
 */
int gc_open_to_read(const char *path);

/* Blocks until data is available and reads at most `bytes` bytes. *got is 0 at the end of the stream.
 * @return 0, ECANCELED or an errno value */
int gc_read_some(int fd, void *to, int64_t bytes, int64_t *got, const volatile int *cancel);

/* The write end of a pipe or socket. */
typedef struct gc_pipe_out {
    int fd;
    int64_t max_write; /* bytes that one write accepts without blocking after POLLOUT; 0: the descriptor never blocks */
    bool hide_signal;  /* after the reader has closed its end, a write fails with EPIPE and raises no SIGPIPE */
    const volatile int *cancel;
} gc_pipe_out;

/* Takes ownership of `fd` for writing. The pipe becomes non-blocking where that is possible (core/os.h). */
gc_pipe_out gc_pipe_out_begin(int fd, bool hide_signal, const volatile int *cancel);

/* Writes all `count` bytes. @return 0, ECANCELED or an errno value */
int gc_pipe_out_write(const gc_pipe_out *out, const void *bytes, int64_t count);

#endif
