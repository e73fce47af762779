/* Waits by polling in steps of 0.1 s and checks the flag between the steps. A signal alone would not end the wait
 * reliably: it may be delivered to another thread, or just before the blocking call. */
#include "descriptor.h"

#include "cancel.h"
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 100, MAX_TRANSFER = 1 << 30 };

int gc_wait_ready(int fd, short events, const volatile int *cancel) {
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = events};
        if (gc_flag_is_raised(cancel))
            return ECANCELED;
        int n = poll(&wait, 1, cancel ? STEP_MS : -1);
        if (n > 0)
            return wait.revents & POLLNVAL ? EBADF : 0;
        if (n < 0 && errno != EINTR)
            return errno;
    }
}

int gc_wait_step(const volatile int *cancel) {
    const struct timespec step = {0, 20000000};
    if (gc_flag_is_raised(cancel))
        return ECANCELED;
    (void)nanosleep(&step, NULL);
    return gc_flag_is_raised(cancel) ? ECANCELED : 0;
}

int gc_read_some(int fd, void *to, int64_t bytes, int64_t *got, const volatile int *cancel) {
    *got = 0;
    for (;;) {
        int err = gc_wait_ready(fd, POLLIN, cancel);
        if (err)
            return err;
        ssize_t n = read(fd, to, (size_t)gc_min(bytes, MAX_TRANSFER));
        if (n >= 0) {
            *got = n;
            return 0;
        }
        if (errno != EINTR && errno != EAGAIN)
            return errno;
    }
}

gc_pipe_out gc_pipe_out_begin(int fd, bool hide_signal, const volatile int *cancel) {
    gc_pipe_out out = {.fd = fd, .max_write = PIPE_BUF, .hide_signal = hide_signal, .cancel = cancel};
    struct stat st;
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && flags & O_NONBLOCK) {
        out.max_write = 0;
    } else if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode)) {
        char name[64];
        (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        int reopened = open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (reopened >= 0) {
            close(fd);
            out.fd = reopened;
            out.max_write = 0;
        }
    }
    return out;
}

/* Calls write() once. With hide_signal, a SIGPIPE that this write raises is consumed; a SIGPIPE that was already
 * pending is not. Without hide_signal the process's own SIGPIPE action applies. */
static ssize_t write_once(const gc_pipe_out *out, const void *bytes, size_t count) {
    sigset_t pipe_signal, pending, before;
    if (!out->hide_signal)
        return write(out->fd, bytes, count);
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    ssize_t n = write(out->fd, bytes, count);
    int err = errno;
    if (n < 0 && err == EPIPE && !sigismember(&pending, SIGPIPE)) {
        const struct timespec now = {0, 0};
        while (sigtimedwait(&pipe_signal, NULL, &now) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = err;
    return n;
}

int gc_pipe_out_write(const gc_pipe_out *out, const void *bytes, int64_t count) {
    for (int64_t done = 0; done < count;) {
        if (gc_flag_is_raised(out->cancel))
            return ECANCELED;
        int64_t chunk = gc_min(count - done, out->max_write > 0 ? out->max_write : MAX_TRANSFER);
        int err = out->max_write > 0 ? gc_wait_ready(out->fd, POLLOUT, out->cancel) : 0;
        ssize_t n = err ? 0 : write_once(out, (const char *)bytes + done, (size_t)chunk);
        if (!err && n < 0 && errno == EAGAIN)
            err = gc_wait_ready(out->fd, POLLOUT, out->cancel);
        else if (!err && n < 0 && errno != EINTR)
            err = errno;
        else if (!err && n == 0)
            err = EIO;
        if (err)
            return err;
        done += n > 0 ? n : 0;
    }
    return 0;
}
