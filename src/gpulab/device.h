/*
 * The one device of the lab: its memory, its streams, its clocks. device_cuda.c is the CUDA runtime; a build without
 * CUDA has device_none.c, whose open says so.
 *
 * Settings of the card are read, never written.
 */
#ifndef GPULAB_DEVICE_H
#define GPULAB_DEVICE_H

#include "gpuconv.h"
#include "lab.h"

typedef struct gc_lab_device_info {
    char name[128], bus[32];
    int capability, driver, runtime, multiprocessors, threads_multiprocessor, blocks_multiprocessor, threads_block,
        registers_multiprocessor, copy_engines, managed, mapped;
    int64_t memory, l2, shared_block, shared_block_optin, shared_multiprocessor, shared_reserved, constant;
    double clock_hz, memory_clock_hz; /* the highest, as the driver says */
    int bus_bits;
} gc_lab_device_info;

typedef struct gc_lab_device gc_lab_device;

/* DEVICE with the reason when there is none that can be used. */
gpuconv_status gc_lab_device_open(gc_lab_device **device, gpuconv_error *error);
void gc_lab_device_close(gc_lab_device *device);
const gc_lab_device_info *gc_lab_device_about(const gc_lab_device *device);

/* What every launch on this device is handed: streams, scratch, facts. */
void gc_lab_device_fill(const gc_lab_device *device, gc_lab_run *run);

/* Memory of the host's side (any kind but LAB_DEVICE) and of the device's. For mapped and managed memory one
 * allocation is both. Returns cudaError_t as int. */
int gc_lab_device_new(gc_lab_memory memory, int64_t bytes, void **host, void **on_device);
void gc_lab_device_free(gc_lab_memory memory, void *host, void *on_device);

/* Whole copies, waited for; either pointer may be any memory. */
int gc_lab_device_copy(void *to, const void *from, int64_t bytes);
int gc_lab_device_set(void *to, int byte, int64_t bytes);
int gc_lab_device_wait(const gc_lab_device *device);

/* Seconds between two points of the first stream: mark, work, then how long since the mark, waited for. */
int gc_lab_device_mark(gc_lab_device *device);
int gc_lab_device_since(gc_lab_device *device, double *seconds);

/* Queues a write of more memory than the L2 cache holds, so that nothing of value is left in it. */
int gc_lab_device_flush(gc_lab_device *device);

const char *gc_lab_device_error(int error);

#endif
