/* The device of a build without CUDA: there is none, and it says so. */
#include "device.h"

#include "libgpuconv/core/error.h"

gpuconv_status gc_lab_device_open(gc_lab_device **device, gpuconv_error *error) {
    *device = NULL;
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "this build has no CUDA");
}

void gc_lab_device_close(gc_lab_device *device) {
    (void)device;
}

const gc_lab_device_info *gc_lab_device_about(const gc_lab_device *device) {
    (void)device;
    return NULL;
}

void gc_lab_device_fill(const gc_lab_device *device, gc_lab_run *run) {
    (void)device;
    (void)run;
}

int gc_lab_device_new(gc_lab_memory memory, int64_t bytes, void **host, void **on_device) {
    (void)memory;
    (void)bytes;
    *host = *on_device = NULL;
    return LAB_CANNOT;
}

void gc_lab_device_free(gc_lab_memory memory, void *host, void *on_device) {
    (void)memory;
    (void)host;
    (void)on_device;
}

int gc_lab_device_copy(void *to, const void *from, int64_t bytes) {
    (void)to;
    (void)from;
    (void)bytes;
    return LAB_CANNOT;
}

int gc_lab_device_set(void *to, int byte, int64_t bytes) {
    (void)to;
    (void)byte;
    (void)bytes;
    return LAB_CANNOT;
}

int gc_lab_device_wait(const gc_lab_device *device) {
    (void)device;
    return LAB_CANNOT;
}

int gc_lab_device_mark(gc_lab_device *device) {
    (void)device;
    return LAB_CANNOT;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): as where there is a device */
int gc_lab_device_since(gc_lab_device *device, double *seconds) {
    (void)device;
    (void)seconds;
    return LAB_CANNOT;
}

int gc_lab_device_flush(gc_lab_device *device) {
    (void)device;
    return LAB_CANNOT;
}

const char *gc_lab_device_error(int error) {
    (void)error;
    return "no CUDA";
}
