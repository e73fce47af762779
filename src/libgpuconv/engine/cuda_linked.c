/* Gives the CUDA backend to what contains it: to the module libgpuconv-cuda, which exports it, and to tests. Programs
 * and the library have cuda_load.c instead. */
#include "backend.h"

__attribute__((visibility("default"))) extern const gc_cuda_module gpuconv_cuda_module;
const gc_cuda_module gpuconv_cuda_module = {GPUCONV_VERSION, &gc_backend_cuda};

const gc_backend *gc_cuda_backend(const char **why) {
    *why = "";
    return &gc_backend_cuda;
}
