/* sf_open_virtual() sets the process-wide variable that sf_strerror(NULL) reads, when it fails and also when it works.
 * Threads open side by side, as readers of a lock; one that wants a reason has the library for itself. */
#include "library.h"

#include <pthread.h>
#include <stdio.h>

/* A thread that waits for the lock alone goes first: in a batch there may be no moment in which no file is opened. */
static pthread_rwlock_t opening = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

SNDFILE *gc_library_open(SF_VIRTUAL_IO *io, int mode, SF_INFO *info, void *context) {
    pthread_rwlock_rdlock(&opening);
    SNDFILE *file = sf_open_virtual(io, mode, info, context);
    pthread_rwlock_unlock(&opening);
    return file;
}

SNDFILE *gc_library_open_again(SF_VIRTUAL_IO *io, int mode, SF_INFO *info, void *context, char *why, size_t room) {
    pthread_rwlock_wrlock(&opening);
    SNDFILE *file = sf_open_virtual(io, mode, info, context);
    if (!file)
        (void)snprintf(why, room, "%s", sf_strerror(NULL));
    pthread_rwlock_unlock(&opening);
    return file;
}
