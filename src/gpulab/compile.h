/*
 * Compiles a student's CUDA source as a shared library for one module.
 *
 * The compiler sees only names that gpulab chooses: the source is student.cu in a folder of its own, a link to the
 * file, and a header declares the function solve with the buffers of the module. The name of the student's file is
 * never part of a program text or of a command line.
 */
#ifndef GPULAB_COMPILE_H
#define GPULAB_COMPILE_H

#include "gpuconv.h"
#include "lab.h"

#include <stdbool.h>

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

/* Writes the declaration of solve for a module: its buffers, the dimensions of a size, and a stream. */
void gc_solve_signature(const gc_lab_module *module, char *text, size_t room);

/* Writes what the compiler needs into the folder: a link to `source`, and the header.
 * @return FILE if the source cannot be read */
gpuconv_status gc_prepare_student(const gc_lab_module *module, const char *source, const gc_work_folder *folder,
                                  gpuconv_error *error);

/* Finds nvcc. Returns false if it is not installed. */
bool gc_find_nvcc(char *path, size_t room);

/* Compiles the source for a compute capability (90 for 9.0) into student.so in the folder. The compiler's messages are
 * in messages.txt. `*compiled` is false if the compiler refused the source.
 * @return FILE if the compiler cannot be run, CANCELLED */
gpuconv_status gc_compile_student(int capability, const gc_work_folder *folder, bool *compiled, gpuconv_error *error);

#endif
