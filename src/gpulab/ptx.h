/* The PTX of the modules' kernels, which the build carries, and what can be counted in it. */
#ifndef GPULAB_PTX_H
#define GPULAB_PTX_H

#include "lab.h"

#include <stdbool.h>
#include <stdio.h>

/* A table of loads, stores and arithmetic for every kernel, as comments, and the PTX itself, so that the whole is PTX.
 * False when this build has none. */
bool gc_lab_write_ptx(const gc_lab_module *module, bool table_only, FILE *to);

#endif
