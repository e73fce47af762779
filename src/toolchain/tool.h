/* Runs compilers and other programs, in a folder of their own. The lab and its emulator share it. */
#ifndef TOOLCHAIN_TOOL_H
#define TOOLCHAIN_TOOL_H

#include "gpuconv.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct gc_process_request {
    const char *const *arguments; /* ends with NULL; the first one is the program's path */
    const char *folder;           /* in which it runs; NULL: the present one */
    const char *output;           /* file that receives standard output and error; NULL: standard error gets both */
    double seconds;               /* after this time the program and its children are killed */
} gc_process_request;

typedef struct gc_process_result {
    int status;     /* exit status, or -1 */
    int signal;     /* that ended it, or 0 */
    bool timed_out; /* it was killed because its time was over */
} gc_process_result;

/* Runs a program until it ends, its time is over, or the thread's cancel flag is raised.
 * @return FILE if it cannot be started, CANCELLED */
gpuconv_status gc_process_run(const gc_process_request *request, gc_process_result *result, gpuconv_error *error);

/* Finds a program: in $variable (if not NULL and set), in the folders of PATH, and in `folder` (may be NULL). Writes
 * its path. Returns false if there is none. */
bool gc_process_find(const char *name, const char *variable, const char *folder, char *path, size_t room);

/* A folder for the compiler's files. */
typedef struct gc_work_folder {
    char path[4000];
} gc_work_folder;

/* Creates the folder below $TMPDIR or /tmp, only for this user. @return FILE */
gpuconv_status gc_work_folder_new(gc_work_folder *folder, gpuconv_error *error);

/* Removes the folder and its files. Does nothing if the path is empty. */
void gc_work_folder_remove(gc_work_folder *folder);

/* Writes the path of a file in the folder. Returns `path`. */
const char *gc_work_path(const gc_work_folder *folder, const char *name, char *path, size_t room);

/* Writes a file of the folder. @return FILE */
gpuconv_status gc_work_write(const gc_work_folder *folder, const char *name, const char *text, gpuconv_error *error);

/* Reads a text file of the folder, shortened to `most` bytes. The caller frees it. NULL if it cannot be read, or
 * without memory. */
char *gc_work_read(const gc_work_folder *folder, const char *name, size_t most);

/* Runs a compiler in the folder. Its messages are in messages.txt. `*compiled` is false if it refused the source.
 * @return FILE if it cannot be run or does not end within `seconds`, CANCELLED */
gpuconv_status gc_work_compile(const gc_work_folder *folder, const char *const *arguments, double seconds,
                               bool *compiled, gpuconv_error *error);

/* Finds nvcc. Returns false if it is not installed. */
bool gc_find_nvcc(char *path, size_t room);

#endif
