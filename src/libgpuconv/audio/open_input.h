/* Opening of audio inputs: files, named pipes and standard input. */
#ifndef GC_AUDIO_OPEN_INPUT_H
#define GC_AUDIO_OPEN_INPUT_H

#include "file.h"

#include <sys/stat.h>

/* Opens a path, or standard input for "-", of a kind that is allowed, without waiting for the writer of a named pipe.
 * @return FILE, FORMAT (an empty file) */
gpuconv_status gc_open_input(const char *path, gc_input_kind kind, int *fd, struct stat *st, gpuconv_error *error);

#endif
