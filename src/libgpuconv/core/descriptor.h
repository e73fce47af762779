/* Waiting on descriptors that may block for any time - pipes, sockets, terminals - without ignoring a request to end.
 */
#ifndef GC_CORE_DESCRIPTOR_H
#define GC_CORE_DESCRIPTOR_H

#include "gpuconv.h"

#include <sys/types.h>

/* Returns whether the flag is set; NULL: there is none. */
static inline bool gc_cancelled(const volatile int *cancel) {
    return cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED);
}

/* Blocks until `fd` is ready for `events` (POLLIN, POLLOUT), an error or a hang-up included. Looks at *cancel (may be
 * NULL) at least every 0.1 s. @return 0, ECANCELED, or errno. */
int gc_wait_ready(int fd, short events, const volatile int *cancel);

/* Sleeps 0.02 s, the step in which something that cannot be polled is tried again. @return 0 or ECANCELED */
int gc_wait_step(const volatile int *cancel);

/* Reads at most `bytes` bytes as soon as there are any. *got is 0 at the end. @return 0, ECANCELED, or errno */
int gc_read_some(int fd, void *to, int64_t bytes, int64_t *got, const volatile int *cancel);

/* How a pipe or socket is written. */
typedef struct gc_pipe_out {
    int fd;
    int64_t most; /* bytes of one write that cannot block after POLLOUT; 0: any number, the descriptor never blocks */
    bool hide_signal; /* a reader that has left is EPIPE only, without SIGPIPE */
    const volatile int *cancel;
} gc_pipe_out;

/* Takes `fd` over for writing to a pipe. Opens it a second time without blocking where the system can (/proc), so that
 * the description that other processes share keeps its flags. */
gc_pipe_out gc_pipe_out_begin(int fd, bool hide_signal, const volatile int *cancel);

/* Writes all of it. @return 0, ECANCELED, or errno */
int gc_pipe_out_write(const gc_pipe_out *out, const void *bytes, int64_t count);

#endif
