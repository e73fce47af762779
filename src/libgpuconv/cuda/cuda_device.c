/* Discovery of CUDA devices, and messages about them. */
#include "cuda_device.h"

#include "kernels/engine/kernels.h"
#include "libgpuconv/core/error.h"

int gc_cuda_count_devices(gpuconv_error *error) {
    int driver = 0, count = 0;
    if (gck_unknown_limit()) {
        gc_fail(error, GPUCONV_ERROR_DEVICE,
                "GPUCONV_CUDA_LIMITS: \"%s\" is no limit; use shared=KB (48 or more), architecture=N (75 or more), "
                "no-early-launch and no-tensor-cores",
                gck_unknown_limit());
        return 0;
    }
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        gc_fail(error, GPUCONV_ERROR_DEVICE, "no NVIDIA driver is installed");
        return 0;
    }
    cudaError_t err = cudaGetDeviceCount(&count);
    if (err || count == 0) {
        gc_fail(error, GPUCONV_ERROR_DEVICE, "no CUDA device: %s", cudaGetErrorString(err ? err : cudaErrorNoDevice));
        return 0;
    }
    return count;
}

gpuconv_status gc_cuda_choose_device(int wanted, int *device, gpuconv_error *error) {
    int count = gc_cuda_count_devices(error), most = 0;
    if (count == 0)
        return GPUCONV_ERROR_DEVICE;
    if (wanted >= count)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "there is no CUDA device %d; use 0 to %d", wanted, count - 1);
    *device = wanted;
    for (int d = 0; d < count && wanted < 0; d++) {
        int multiprocessors = 0;
        cudaError_t err = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, d);
        if (err)
            return gc_cuda_check(error, d, err);
        if (multiprocessors > most) {
            most = multiprocessors;
            *device = d;
        }
    }
    return GPUCONV_OK;
}

cudaError_t gc_cuda_enter(int device, int *caller) {
    int current = -1;
    *caller = -1;
    cudaError_t err = cudaGetDevice(&current);
    if (err || current == device)
        return err;
    err = cudaSetDevice(device);
    if (!err)
        *caller = current;
    return err;
}

void gc_cuda_leave(int caller) {
    if (caller >= 0)
        (void)cudaSetDevice(caller);
}

gpuconv_status gc_cuda_check(gpuconv_error *error, int device, cudaError_t err) {
    if (!err)
        return GPUCONV_OK;
    (void)cudaGetLastError();
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "CUDA device %d: %s", device, cudaGetErrorString(err));
}
