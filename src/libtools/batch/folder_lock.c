/* Locks the folder of a batch. */
#include "folder_lock.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/file_lock.h"
#include "libgpuconv/core/memory.h"
#include "own_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT = 300, BYTE_BATCH = 0, BYTE_RANKS = 1 };

struct gc_folder_lock {
    int fd;
    bool first_rank;
    char path[GC_OWN_PATH];
};

/* Opens the lock's file and locks it. A file that another process has removed meanwhile is opened again.
 * @return 0, EAGAIN or an errno value */
static int take(gc_folder_lock *l) {
    for (;;) {
        l->fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (l->fd < 0)
            return errno;
        int err = l->first_rank ? gc_file_lock(l->fd, GC_LOCK_EXCLUSIVE, BYTE_BATCH, 2)
                                : gc_file_lock(l->fd, GC_LOCK_SHARED, BYTE_RANKS, 1);
        if (err || gc_file_is_at(l->fd, l->path))
            return err;
        close(l->fd);
    }
}

/* Writes the name of this process into the file; a file without it is as good a lock. */
static void write_owner(const gc_folder_lock *l) {
    char host[100] = "", text[TEXT];
    (void)gethostname(host, sizeof host - 1);
    const int length = snprintf(text, sizeof text, "process %lld on %s\n", (long long)getpid(), host);
    if (ftruncate(l->fd, 0) == 0)
        (void)!pwrite(l->fd, text, (size_t)length, 0);
}

static gpuconv_status fail_locked(const gc_folder_lock *l, const char *folder, gpuconv_error *error) {
    char text[TEXT];
    ssize_t length = pread(l->fd, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return gc_fail(error, GPUCONV_ERROR_FILE,
                   "%s: another batch writes into this folder (%s); wait for its end, or name another folder", folder,
                   *text ? text : "an unknown process");
}

gpuconv_status gc_folder_lock_new(const char *folder, bool first_rank, gc_folder_lock **lock, int *unsupported,
                                  gpuconv_error *error) {
    *lock = NULL;
    *unsupported = 0;
    gc_folder_lock *l = gc_calloc(1, sizeof *l);
    if (!l)
        return gc_fail_memory(error, folder);
    *l = (gc_folder_lock){.fd = -1, .first_rank = first_rank};
    gpuconv_status status = gc_own_path(folder, GC_OWN_LOCK, l->path, error);
    const int err = status ? 0 : take(l);
    if (!status && l->fd < 0)
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", l->path, strerror(err));
    else if (err == EAGAIN)
        status = fail_locked(l, folder, error);
    if (!status && !err && first_rank) {
        write_owner(l);
        (void)gc_file_lock(l->fd, GC_LOCK_SHARED, BYTE_RANKS, 1);
    }
    if (status) { /* the file is that of the other batch */
        if (l->fd >= 0)
            close(l->fd);
        free(l);
        return status;
    }
    *unsupported = err;
    *lock = l;
    return GPUCONV_OK;
}

void gc_folder_lock_free(gc_folder_lock *l) {
    if (!l)
        return;
    if (l->first_rank)
        (void)unlink(l->path); /* before the lock ends, so that it is no other batch's file */
    close(l->fd);
    free(l);
}
