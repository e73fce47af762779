/* Prints the PTX of a module's kernels, which is embedded in the executable, and counts its instructions. */
#ifndef GPULAB_PTX_H
#define GPULAB_PTX_H

#include "lab.h"

#include <stdbool.h>
#include <stdio.h>

/* Prints a table of loads, stores and arithmetic instructions per kernel, as PTX comments, and then (unless
 * `table_only`) the PTX, so that the whole output is valid PTX. Returns false if this build has no PTX. */
bool gc_lab_write_ptx(const gc_lab_module *module, bool table_only, FILE *to);

#endif
