/* Device memory between two pages that do not exist: an access in front of it or behind it fails the kernel. */
#ifndef TESTS_GPU_FENCE_H
#define TESTS_GPU_FENCE_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct fence {
    float *at; /* `floats` floats at the very beginning or the very end of the mapped pages */
    int64_t floats;
    char *memory; /* the mapped pages */
    size_t bytes, page;
    CUdeviceptr reserved;
    CUmemGenericAllocationHandle handle;
} fence;

/* Maps pages, all NaN, on device 0. The test fails if the driver refuses. */
fence fence_new(int64_t floats, bool at_end);

/* Returns whether the mapped bytes outside the floats are still as fence_new left them. */
bool fence_intact(const fence *fence);

void fence_free(fence *fence);

#endif
