/* The sources of the modules, which are embedded in the executable: a chapter shows the code that was compiled,
 * wherever the program is installed. */
#ifndef GPULAB_SOURCES_H
#define GPULAB_SOURCES_H

#include <stdbool.h>

typedef struct gc_lab_source {
    const char *path; /* as in a checkout: "kernels/course/transpose.cu" */
    const char *text;
} gc_lab_source;

/* Returns the sources; the last one has the path NULL. */
const gc_lab_source *gc_lab_sources(void);

/* Returns whether the file belongs to a module: matmul, for example, has matmul.c, matmul.cu, matmul.cuh and
 * matmul_tensor.cu. `name` is the file's name without its folder. */
bool gc_lab_is_source_of(const char *name, const char *module);

/* Returns the report of gpulab on an NVIDIA H200 as JSON, which tests/gpu/nvidia-h200-lab.json contains. */
const char *gc_lab_recorded_text(void);

/* The same of an NVIDIA H100, for modules that the other report does not have. */
const char *gc_lab_recorded_text_h100(void);

#endif
