/*
 * The GPU that the lab uses: its properties, memory, streams and timer. device_cuda.c uses the CUDA runtime. A build
 * without CUDA has device_none.c, in which opening the device fails.
 *
 * Functions that return int return a cudaError_t, or LAB_CANNOT without CUDA; 0 is success. The settings of the GPU
 * (clocks, power limits) are read and never changed.
 */
#ifndef GPULAB_DEVICE_H
#define GPULAB_DEVICE_H

#include "gpuconv.h"
#include "gpulab/lab.h"

typedef struct gc_lab_device_info {
    char name[128];
    char bus[32];        /* PCI bus id */
    int capability;      /* 90 for 9.0 */
    int driver, runtime; /* CUDA versions: 13000 for 13.0 */
    int multiprocessors, threads_multiprocessor, blocks_multiprocessor, registers_multiprocessor;
    int threads_block; /* limit of threads per block */
    int copy_engines, managed, mapped;
    int64_t memory, l2, constant;                                                     /* bytes */
    int64_t shared_block, shared_block_optin, shared_multiprocessor, shared_reserved; /* bytes of shared memory */
    double clock_hz, memory_clock_hz; /* the highest clocks, as the driver reports them */
    int bus_bits;
} gc_lab_device_info;

typedef struct gc_lab_device gc_lab_device;

/* Opens the GPU with the most multiprocessors. Fails with DEVICE if there is no usable GPU. */
gpuconv_status gc_lab_device_open(gc_lab_device **device, gpuconv_error *error);
void gc_lab_device_close(gc_lab_device *device);
const gc_lab_device_info *gc_lab_device_get_info(const gc_lab_device *device);

/* Sets the device-dependent members of a launch argument: streams, scratch memory, multiprocessors, capability. */
void gc_lab_device_set_run(const gc_lab_device *device, gc_lab_run *run);

/* Allocates a buffer on the device and its host side (any kind of memory but LAB_DEVICE). For mapped and managed memory
 * both pointers refer to one allocation. */
int gc_lab_device_alloc_buffer(gc_lab_memory memory, int64_t bytes, void **host, void **on_device);
void gc_lab_device_free_buffer(gc_lab_memory memory, void *host, void *on_device);

/* Copies and sets memory, and wait for completion. The pointers of a copy may refer to host or device memory. */
int gc_lab_device_copy(void *to, const void *from, int64_t bytes);
int gc_lab_device_memset(void *to, int byte, int64_t bytes);
/* Blocks until all streams of the device are idle. */
int gc_lab_device_synchronize(const gc_lab_device *device);

/* Measure the time of work on the first stream: start, queue the work, stop. gc_lab_device_timer_stop blocks until the
 * work has completed. */
int gc_lab_device_timer_start(gc_lab_device *device);
int gc_lab_device_timer_stop(gc_lab_device *device, double *seconds);

/* Evicts the L2 cache: queues a write of at least four times its size on the first stream. */
int gc_lab_device_flush_l2(gc_lab_device *device);

const char *gc_lab_device_error_text(int error);

/* Releases cuBLAS, which blas.c opens with the first product (gc_lab_blas_multiply). */
void gc_lab_blas_close(void);

#endif
