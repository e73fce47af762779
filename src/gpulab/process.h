/* Runs a program with a list of arguments and waits for it. */
#ifndef GPULAB_PROCESS_H
#define GPULAB_PROCESS_H

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

#endif
