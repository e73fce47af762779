/* Compiles a student's CUDA source for the CPU, with the host's C++ compiler. */
#ifndef GPULAB_EMULATOR_COMPILE_H
#define GPULAB_EMULATOR_COMPILE_H

#include "gpuconv.h"

#include <stdbool.h>
#include <stddef.h>

/* Compiles student.cu in a folder, in which gpulab/compile.h has prepared it, into student.so. The compiler's messages
 * are in messages.txt. `*compiled` is false if the compiler refused the source.
 * @return FILE if there is no compiler or a file cannot be written, MEMORY, CANCELLED */
gpuconv_status gc_emulator_compile(const char *folder, bool *compiled, gpuconv_error *error);

/* Writes what the compiler says about variables that are used before they have a value. Returns false if it says
 * nothing.
 */
bool gc_emulator_warning(const char *folder, char *text, size_t room);

#endif
