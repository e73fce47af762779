/* Waits by polling in steps of 0.1 s and checks the flag between the steps. A signal alone would not end the wait
 * reliably: it may be delivered to another thread, or just before the blocking call. */
#include "descriptor.h"

#include "cancel.h"
#include "memory.h"
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 100, MAX_TRANSFER = 1 << 30 };

/* Blocks until `fd` is ready for reading or for writing, has an error or is hung up. Checks *cancel (may be NULL) at
 * least every 0.1 s. @return 0, ECANCELED or an errno value */
static int wait_ready(int fd, bool for_writing, const volatile int *cancel) {
    for (;;) {
        if (gc_flag_is_raised(cancel))
            return ECANCELED;
        int err = gc_os_wait_ready(fd, for_writing, cancel ? STEP_MS : -1);
        if (err != EAGAIN && err != EINTR)
            return err;
    }
}

int gc_wait_step(const volatile int *cancel) {
    const struct timespec step = {0, 20000000};
    if (gc_flag_is_raised(cancel))
        return ECANCELED;
    (void)nanosleep(&step, NULL);
    return gc_flag_is_raised(cancel) ? ECANCELED : 0;
}

int gc_open_to_read(const char *path) {
    const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY, fd = open(path, flags | O_NONBLOCK);
    return fd < 0 && errno == EWOULDBLOCK ? open(path, flags) : fd; /* a lease is broken */
}

int gc_read_some(int fd, void *to, int64_t bytes, int64_t *got, const volatile int *cancel) {
    *got = 0;
    for (;;) {
        int err = wait_ready(fd, false, cancel);
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
    gc_pipe_out out = {.hide_signal = hide_signal, .cancel = cancel};
    out.fd = gc_os_unblock_pipe(fd, &out.max_write);
    return out;
}

/* Calls write() once. Without hide_signal the process's own SIGPIPE action applies. */
static ssize_t write_once(const gc_pipe_out *out, const void *bytes, size_t count) {
    return out->hide_signal ? gc_os_write_quietly(out->fd, bytes, count) : write(out->fd, bytes, count);
}

int gc_pipe_out_write(const gc_pipe_out *out, const void *bytes, int64_t count) {
    for (int64_t done = 0; done < count;) {
        if (gc_flag_is_raised(out->cancel))
            return ECANCELED;
        int64_t chunk = gc_min(count - done, out->max_write > 0 ? out->max_write : MAX_TRANSFER);
        int err = out->max_write > 0 ? wait_ready(out->fd, true, out->cancel) : 0;
        ssize_t n = err ? 0 : write_once(out, (const char *)bytes + done, (size_t)chunk);
        if (!err && n < 0 && errno == EAGAIN)
            err = wait_ready(out->fd, true, out->cancel);
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
