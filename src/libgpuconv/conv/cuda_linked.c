/* Gives the CUDA backend to what contains it: to the module libgpuconv-cuda, which exports it, and to tests. Programs
 * and the library have cuda_load.c instead. */
#include "backend.h"

extern const struct gc_measures gc_measures_cuda; /* measure/cuda_calibrate.c */

__attribute__((visibility("default"))) extern const gc_cuda_module gpuconv_cuda_module;
const gc_cuda_module gpuconv_cuda_module = {GPUCONV_VERSION, &gc_backend_cuda, &gc_measures_cuda};

const gc_cuda_module *gc_cuda_module_find(const char **why) {
    *why = "";
    return &gpuconv_cuda_module;
}
