/* Opening files with libsndfile from several threads: libsndfile stores the reason of a failure in one variable of the
 * process. */
#ifndef GC_AUDIO_SNDFILE_OPEN_H
#define GC_AUDIO_SNDFILE_OPEN_H

#include <sndfile.h>
#include <stddef.h>

/* Calls sf_open_virtual; thread-safe. Every file must be opened by this function or the next one. */
SNDFILE *gc_sndfile_open(SF_VIRTUAL_IO *io, int mode, SF_INFO *info, void *context);

/* Repeats a failed gc_sndfile_open while no other thread opens a file, to get the reason of the failure. `info` and
 * `context` must be in the state that they had for the first call. @return NULL: `why` (`room` bytes) has the reason;
 * not NULL: the file was opened this time */
SNDFILE *gc_sndfile_open_for_reason(SF_VIRTUAL_IO *io, int mode, SF_INFO *info, void *context, char *why, size_t room);

#endif
