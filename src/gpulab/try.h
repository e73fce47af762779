/* gpulab try: compiles a student's kernel, checks it against a module's reference, explains what is wrong, and puts it
 * on the module's ladder. */
#ifndef GPULAB_TRY_H
#define GPULAB_TRY_H

#include "lab.h"

#include <stdbool.h>

typedef struct gc_try_options {
    const char *name; /* of an exercise or a module */
    const char *file; /* the source, or a library that was compiled before; NULL: print the task */
    const char *size; /* to time; NULL: the module's */
    bool start;       /* write a source file to begin with */
    bool quick;       /* without memory checker and times */
} gc_try_options;

/* Prints the exercises and the other modules that a kernel can be tried with. @return the exit status */
int gc_try_list(void);

/* Runs the command. Prints on standard output. @return the exit status: done only if the kernel is right */
int gc_try(const gc_try_options *options);

/* Runs one stage of a library in this process: NAME LIBRARY STAGE RESULT [SIZE]. gc_try starts it as a program of its
 * own. @return the exit status */
int gc_try_library(const char **arguments, int count);

#endif
