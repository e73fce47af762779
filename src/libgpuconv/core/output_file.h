/*
 * Files that are written whole: a new file beside the target, without a name or with a temporary one, which takes the
 * target's name only on commit. Until then, and after any failure, an older file is as it was.
 *
 * Symbolic links. A path that the user names is followed to its file: that file is replaced, the link stays, and a link
 * that leads to no file creates it where it points. A name that the program chooses itself inside a folder must not be
 * a symbolic link, nor anything else but a regular file: another user could have put it there.
 *
 * A file that replaces another keeps its permissions without the bits for set-user-id, set-group-id and sticky, and its
 * owner and group where the system allows that.
 */
#ifndef GC_CORE_OUTPUT_FILE_H
#define GC_CORE_OUTPUT_FILE_H

#include "gpuconv.h"

#include <stddef.h>

typedef enum gc_output_name {
    GC_OUTPUT_GIVEN = 0, /* by the user */
    GC_OUTPUT_CHOSEN     /* by the program, inside a folder that the user named */
} gc_output_name;

typedef struct gc_output_file gc_output_file;

/* Begins a file. A named pipe or a device is opened for writing as it is; a named pipe without a reader is waited for
 * until *cancel (may be NULL). @return FILE, MEMORY, CANCELLED; the message begins with the path. */
gpuconv_status gc_output_file_new(const char *path, gc_output_name name, const volatile int *cancel,
                                  gc_output_file **file, gpuconv_error *error);

/* The descriptor to write to, owned by the file; -1 once it is closed. It never blocks if it is a named pipe. */
int gc_output_file_descriptor(const gc_output_file *file);

/* Gives the file its name and closes it. @return FILE; nothing has the name then. */
gpuconv_status gc_output_file_commit(gc_output_file *file, gpuconv_error *error);

/* Gives the file its name and hands its descriptor over, for a list that grows. FILE. */
gpuconv_status gc_output_file_release(gc_output_file *file, int *fd, gpuconv_error *error);

/* Without a commit or release before, removes what was written. */
void gc_output_file_free(gc_output_file *file);

/* Writes a whole file. FILE, MEMORY. */
gpuconv_status gc_output_file_write(const char *path, gc_output_name name, const void *bytes, size_t count,
                                    gpuconv_error *error);

/* Opens a regular file of a chosen name for appending, and creates it if it is missing. -1: FILE, in *error. */
int gc_output_file_append(const char *path, gpuconv_error *error);

#endif
