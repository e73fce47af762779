/* The CUDA backend as a part of what is linked with it: of the module libgpuconv-cuda, which exports it, or of a test.
 */
#include "backend.h"

__attribute__((visibility("default"))) extern const gc_cuda_module gpuconv_cuda_module;
const gc_cuda_module gpuconv_cuda_module = {GPUCONV_VERSION, &gc_backend_cuda};

const gc_backend *gc_cuda_backend(const char **why) {
    *why = "";
    return &gc_backend_cuda;
}
