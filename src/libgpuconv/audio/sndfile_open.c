/* sf_open_virtual() sets the process-wide variable that sf_strerror(NULL) reads, on failure and on success. Threads
 * open files concurrently under the read lock; a thread that needs the reason takes the write lock. */
#include "sndfile_open.h"

#include <pthread.h>
#include <stdio.h>

/* A thread that waits for the write lock holds `gate`, which every thread passes before it reads: in a batch, files may
 * be opened without a pause, which would starve that thread. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t open_lock = PTHREAD_RWLOCK_INITIALIZER;

SNDFILE *gc_sndfile_open(SF_VIRTUAL_IO *io, int mode, SF_INFO *info, void *context) {
    pthread_mutex_lock(&gate);
    pthread_rwlock_rdlock(&open_lock);
    pthread_mutex_unlock(&gate);
    SNDFILE *file = sf_open_virtual(io, mode, info, context);
    pthread_rwlock_unlock(&open_lock);
    return file;
}

SNDFILE *gc_sndfile_open_for_reason(SF_VIRTUAL_IO *io, int mode, SF_INFO *info, void *context, char *why, size_t room) {
    pthread_mutex_lock(&gate);
    pthread_rwlock_wrlock(&open_lock);
    pthread_mutex_unlock(&gate);
    SNDFILE *file = sf_open_virtual(io, mode, info, context);
    if (!file)
        (void)snprintf(why, room, "%s", sf_strerror(NULL));
    pthread_rwlock_unlock(&open_lock);
    return file;
}
