/* Opening files through the file library, which keeps the reason of a failure in a variable of the whole process. */
#ifndef GC_AUDIO_LIBRARY_H
#define GC_AUDIO_LIBRARY_H

#include <sndfile.h>
#include <stddef.h>

/* sf_open_virtual, for any number of threads. Every file is opened by this function or the next. */
SNDFILE *gc_library_open(SF_VIRTUAL_IO *io, int mode, SF_INFO *info, void *context);

/* Opens once more what could not be opened, while no other thread opens anything, to learn why. `info` and `context`
 * are as for the first time. NULL: `why` has the reason; not NULL: this time it worked. */
SNDFILE *gc_library_open_again(SF_VIRTUAL_IO *io, int mode, SF_INFO *info, void *context, char *why, size_t room);

#endif
