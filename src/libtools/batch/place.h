/* Places: where a path leads, so that different paths to one file, which may not exist yet, can be compared. */
#ifndef GPUCONV_BATCH_PLACE_H
#define GPUCONV_BATCH_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>

/* An existing folder, and the path of the file below it. Two paths lead to one file if device, inode and rest are
 * equal. */
typedef struct gc_place {
    dev_t device;
    ino_t inode;        /* of the folder */
    const char *rest;   /* part of `path` */
    char *path;         /* owned */
    bool several_names; /* the file exists and has several names, or is not a regular file: `file` identifies it */
    struct stat file;
} gc_place;

/* Removes `.` components and doubled slashes, in place. */
void gc_path_normalise(char *path);

/* Returns "FOLDER/NAME", to be freed. NULL: out of memory. */
char *gc_path_in(const char *folder, const char *name);

/* Returns the path of a name in the folder of `path`, to be freed; a name that is absolute stays as it is. NULL: out of
 * memory. */
char *gc_path_beside(const char *path, const char *name);

/* Finds the place of a path. The caller clears it. @return false: out of memory */
bool gc_place_find(const char *path, gc_place *place);
void gc_place_clear(gc_place *place);

#endif
