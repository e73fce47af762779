/* Discovery of CUDA devices, and messages about them. */
#ifndef GC_CUDA_CUDA_DEVICE_H
#define GC_CUDA_CUDA_DEVICE_H

#include "gpuconv.h"
#include "libgpuconv/conv/plan.h"

#include <cuda_runtime_api.h>

/* Returns the number of CUDA devices; 0 with the reason in *error. Creates no context. */
int gc_cuda_count_devices(gpuconv_error *error);

/* Stores `wanted` in *device, or, if it is negative, the number of the device with the most multiprocessors.
 * @return GPUCONV_ERROR_DEVICE if there is no such device or no usable device */
gpuconv_status gc_cuda_choose_device(int wanted, int *device, gpuconv_error *error);

/* Fills *properties with those of a device, within the limits of GPUCONV_CUDA_LIMITS; all of its memory counts. Creates
 * no context. */
cudaError_t gc_cuda_read_device(int device, gc_device *properties);

/* Makes `device` the thread's current device and stores in *caller what gc_cuda_leave needs. Every function of a
 * backend that a program calls enters its device and leaves it, so that the program keeps its own. */
cudaError_t gc_cuda_enter(int device, int *caller);

/* Makes the device that was current before gc_cuda_enter current again. */
void gc_cuda_leave(int caller);

/* Stores the bytes of a device that are free, which starts the device. */
cudaError_t gc_cuda_free_memory(int device, double *bytes);

/* Does what gc_cuda_check does for an object of `bytes` bytes of device memory. Where memory is missing, the message
 * gives the needed and the free bytes: call it when the memory of the object has been released.
 * @return GPUCONV_ERROR_MEMORY if memory is missing */
gpuconv_status gc_cuda_check_memory(gpuconv_error *error, int device, cudaError_t err, const char *what, int64_t bytes);

/* Stores the text of `err` on a device in *error and clears the runtime's last error.
 * @return GPUCONV_ERROR_DEVICE, or GPUCONV_OK if `err` is cudaSuccess */
gpuconv_status gc_cuda_check(gpuconv_error *error, int device, cudaError_t err);

#endif
