/* Implements the lab's device in a build without CUDA: opening it fails, so no other function is called with a device.
 */
#include "device.h"

#include "libgpuconv/core/error.h"

gpuconv_status gc_lab_device_open(gc_lab_device **device, gpuconv_error *error) {
    *device = NULL;
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "this build has no CUDA");
}

void gc_lab_device_close(gc_lab_device *device) {
    (void)device;
}

const gc_lab_device_info *gc_lab_device_get_info(const gc_lab_device *device) {
    (void)device;
    return NULL;
}

void gc_lab_device_set_run(const gc_lab_device *device, gc_lab_run *run) {
    (void)device, (void)run;
}

int gc_lab_device_alloc_buffer(gc_lab_memory memory, int64_t bytes, void **host, void **on_device) {
    (void)memory, (void)bytes;
    *host = *on_device = NULL;
    return LAB_CANNOT;
}

void gc_lab_device_free_buffer(gc_lab_memory memory, void *host, void *on_device) {
    (void)memory, (void)host, (void)on_device;
}

int gc_lab_device_copy(void *to, const void *from, int64_t bytes) {
    (void)to, (void)from, (void)bytes;
    return LAB_CANNOT;
}

int gc_lab_device_memset(void *to, int byte, int64_t bytes) {
    (void)to, (void)byte, (void)bytes;
    return LAB_CANNOT;
}

int gc_lab_device_synchronize(const gc_lab_device *device) {
    (void)device;
    return LAB_CANNOT;
}

int gc_lab_device_timer_start(gc_lab_device *device) {
    (void)device;
    return LAB_CANNOT;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the same signature as in device_cuda.c */
int gc_lab_device_timer_stop(gc_lab_device *device, double *seconds) {
    (void)device, (void)seconds;
    return LAB_CANNOT;
}

int gc_lab_device_flush_l2(gc_lab_device *device) {
    (void)device;
    return LAB_CANNOT;
}

const char *gc_lab_device_error_text(int error) {
    (void)error;
    return "no CUDA";
}
