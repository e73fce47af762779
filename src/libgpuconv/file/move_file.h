/* A job whose sources move, or before which a head turns. */
#ifndef GC_FILE_MOVE_FILE_H
#define GC_FILE_MOVE_FILE_H

#include "libgpuconv/audio/file.h"

/* Moves the channels of the open input along job->path, before job->head, into the output file. Fails with ARGUMENT (a
 * step that a moving source does not have), UNSUPPORTED (a GPU), FILE, FORMAT, MEMORY or CANCELLED. */
gpuconv_status gc_move_file(const gpuconv_job *job, const gpuconv_config *config, gc_reader *reader,
                            gpuconv_report *report, gpuconv_error *error);

/* Where sources are, as a job names it: along a path, or in place, in a direction or a layout, before a head that
 * turns. What is not named is NULL. */
typedef struct gc_sources {
    const char *path, *direction, *speakers, *head;
} gc_sources;

/* Checks that a path stands alone, and that without one either a direction or a layout is named. Returns ARGUMENT. */
gpuconv_status gc_sources_check(const gc_sources *sources, gpuconv_error *error);

/* Reads the path of `channels` sources, or makes that of sources in place, and reads the head, if one is named. The
 * caller frees both, after a failure too. Returns the errors of gpuconv_path_load, gpuconv_path_new_still and
 * gpuconv_head_load. */
gpuconv_status gc_sources_open(const gc_sources *sources, int channels, gpuconv_path **path, gpuconv_head **head,
                               gpuconv_error *error);

#endif
