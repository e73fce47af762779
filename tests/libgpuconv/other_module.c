/* A module libgpuconv-cuda of another version, for test_cuda_module.c. */
#include "libgpuconv/conv/backend.h"

__attribute__((visibility("default"))) extern const gc_cuda_module gpuconv_cuda_module;
const gc_cuda_module gpuconv_cuda_module = {"0.0.9", NULL, NULL};
