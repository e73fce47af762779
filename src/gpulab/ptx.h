/* Prints the PTX of a module's kernels and counts its instructions. It is embedded in the executable; a build without
 * CUDA compiles the module's sources, which are embedded too, with nvcc. */
#ifndef GPULAB_PTX_H
#define GPULAB_PTX_H

#include "gpuconv.h"
#include "lab.h"

#include <stdbool.h>
#include <stdio.h>

/* Prints a table of loads, stores and arithmetic instructions per kernel, as PTX comments, and then (unless
 * `table_only`) the PTX, so that the whole output is valid PTX. @return FILE without PTX and nvcc, or if nvcc fails,
 * CANCELLED */
gpuconv_status gc_lab_write_ptx(const gc_lab_module *module, bool table_only, FILE *to, gpuconv_error *error);

#endif
