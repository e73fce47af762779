/* Compiles a student's CUDA source for the CPU, with the host's C++ compiler. */
#ifndef GPULAB_EMULATOR_COMPILE_H
#define GPULAB_EMULATOR_COMPILE_H

#include "toolchain/tool.h"

/* Compiles student.cu in a folder, in which gc_prepare_student (gpulab) has put it, into student.so. The compiler's
 * messages are in messages.txt. `*compiled` is false if the compiler refused the source.
 * @return FILE if there is no compiler or a file cannot be written, MEMORY, CANCELLED */
gpuconv_status gc_emulator_compile(const gc_work_folder *folder, bool *compiled, gpuconv_error *error);

/* Writes the compiler's warning about a variable that is used before it has a value. Returns false if there is none. */
bool gc_emulator_warning(const gc_work_folder *folder, char *text, size_t room);

/* Returns the source with
 *
 *   kernel<<<blocks, threads, bytes, stream>>>(arguments)    as a call of gce::launch
 *   extern __shared__ float tile[];                          as a pointer to the dynamic shared memory
 *
 * and with the same lines. The caller frees it. NULL without memory. */
char *gc_emulator_rewrite(const char *source);

#endif
