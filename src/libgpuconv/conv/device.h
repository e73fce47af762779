/* The properties of a processor that planning needs. */
#ifndef GC_CONV_DEVICE_H
#define GC_CONV_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/* The share of a device's free memory that a convolution may take. Allocations are rounded up, and kernels that are
 * loaded later take some. */
#define GC_MEMORY_SHARE 0.9

typedef struct gc_device {
    char name[128];
    int number;    /* of the CUDA device; 0 for the CPU */
    int threads;   /* CPU threads to use */
    double memory; /* bytes for plans: of the whole device; free bytes if `started` */
    bool started;  /* free_memory has set `memory` */

    /* Of a GPU: */
    bool tensor_cores; /* has FP16 tensor cores, many times faster than FP32 multiply-adds */
    int multiprocessors;
    int lanes;                      /* FP32 multiply-adds of a multiprocessor per cycle */
    double clock;                   /* cycles per second */
    double bandwidth;               /* peak bytes per second of the device memory */
    int64_t cache;                  /* bytes of the second-level cache */
    int64_t shared_memory;          /* bytes that one thread block can use */
    int64_t resident_shared_memory; /* bytes of a multiprocessor */
    int64_t resident_threads;       /* of a multiprocessor */
    int64_t workspace;              /* bytes of transforms that a chunk of rows may have, about */
} gc_device;

#endif
