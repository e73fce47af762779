/* A job whose sources move, or before which a head turns. */
#ifndef GC_FILE_MOVE_FILE_H
#define GC_FILE_MOVE_FILE_H

#include "libgpuconv/audio/file.h"

/* Moves the channels of the open input along job->path, before job->head, into the output file. Fails with ARGUMENT (a
 * step that a moving source does not have), UNSUPPORTED (a GPU), FILE, FORMAT, MEMORY or CANCELLED. */
gpuconv_status gc_move_file(const gpuconv_job *job, const gpuconv_config *config, gc_reader *reader,
                            gpuconv_report *report, gpuconv_error *error);

#endif
