/*
 * Files: input files that are read as a whole, creation of folders, locks, and atomic replacement of output files.
 *
 * The data of an output is written to a new file in the target's folder, which has no name or a temporary one and takes
 * the target's name only on commit. Until then, and after any failure, an existing file is unchanged.
 *
 * Symbolic links. In a path that the user gave, links are followed: the file behind the link is replaced and the link
 * stays; behind a dangling link, the file is created. A path that the program chose inside a folder must name a regular
 * file or nothing: another user could have placed a link, a pipe or a device there.
 *
 * The new file gets the old file's permissions, without the set-user-id, set-group-id and sticky bits, and its owner
 * and group where the system allows it.
 */
#ifndef GC_CORE_FILES_H
#define GC_CORE_FILES_H

#include "gpuconv.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* ---- Input files and folders ---- */

/* Opens a regular file, after following links, without waiting: a pipe or a device could block the caller, or never
 * end. *size gets its bytes. @return a descriptor; -1 after an error (FILE) */
int gc_input_file_open(const char *path, int64_t *size, gpuconv_error *error);

/* Checks the type of an open file. @return FILE if it is not a regular file */
gpuconv_status gc_input_file_check(const char *path, const struct stat *st, gpuconv_error *error);

/* Creates the missing parent folders of `path`; of a path that ends in a slash, every component is a folder.
 * @return FILE, MEMORY */
gpuconv_status gc_create_parent_folders(const char *path, gpuconv_error *error);

/* Returns whether two paths lead to the same existing file, by device and inode. */
bool gc_is_same_file(const char *a, const char *b);

/* ---- Locks ---- */

/* Locks of files that end with the process that holds them. They belong to the open file (F_OFD_SETLK), not to the
 * process: closing another descriptor of the file does not release them, and threads exclude each other, too. They hold
 * between the machines of a network file system that has locks. */
typedef enum gc_lock_kind { GC_LOCK_SHARED, GC_LOCK_EXCLUSIVE } gc_lock_kind;

/* Locks `bytes` bytes of a file from byte `from` on; bytes 0: all of them. A lock that the open file holds already is
 * changed. Does not wait. @return 0, EAGAIN (another open file has a lock that excludes this one) or an errno value
 * (the file system has no locks) */
int gc_file_lock(int fd, gc_lock_kind kind, off_t from, off_t bytes);

/* Decides whether the open file is still the one at `path`. */
bool gc_file_is_at(int fd, const char *path);

/* ---- Output files ---- */

typedef enum gc_output_path_kind {
    GC_OUTPUT_USER_PATH = 0, /* the user gave the path */
    GC_OUTPUT_PROGRAM_PATH   /* the program chose the path, inside a folder that the user gave */
} gc_output_path_kind;

typedef struct gc_output_file gc_output_file;

/* Opens a new output file. A named pipe or a device is opened in place; for a named pipe this blocks until it has a
 * reader or *cancel (may be NULL) is raised. The error message begins with the path. @return FILE, MEMORY, CANCELLED */
gpuconv_status gc_output_file_new(const char *path, gc_output_path_kind kind, const volatile int *cancel,
                                  gc_output_file **file, gpuconv_error *error);

/* Returns the descriptor to write to, owned by the file; -1 once it is closed. A named pipe is non-blocking. */
int gc_output_file_descriptor(const gc_output_file *file);

/* Closes the file and gives it the target's name. @return FILE; the target is unchanged then */
gpuconv_status gc_output_file_commit(gc_output_file *file, gpuconv_error *error);

/* Gives the file the target's name and passes the open descriptor to the caller, who continues to write, for example a
 * log. @return FILE */
gpuconv_status gc_output_file_release(gc_output_file *file, int *fd, gpuconv_error *error);

/* Frees the object. Without a previous commit or release, the new file is removed. */
void gc_output_file_free(gc_output_file *file);

/* Creates or replaces a file that contains `count` bytes. @return FILE, MEMORY */
gpuconv_status gc_output_file_write(const char *path, gc_output_path_kind kind, const void *bytes, size_t count,
                                    gpuconv_error *error);

/* Opens the regular file at a path that the program chose for appending, and creates it if it does not exist.
 * @return the descriptor, or -1 with FILE in *error */
int gc_output_file_append(const char *path, gpuconv_error *error);

#endif
