/*
 * Times of elementary operations, from which plans choose algorithm, sizes and processor: built-in figures, or figures
 * that gpuconv_calibrate measured on this machine and stored in the user's cache folder.
 */
#ifndef GC_CONV_COSTS_H
#define GC_CONV_COSTS_H

#include "device.h"
#include "gpuconv.h"

/* Seconds per operation, on one CPU thread or on a whole GPU. */
typedef enum gc_cost {
    GC_COST_CPU_TAP = 0,      /* one multiply-add of direct convolution */
    GC_COST_CPU_LEVEL_SMALL,  /* one sample and level of an FFT that fits into the second-level cache */
    GC_COST_CPU_LEVEL_MEDIUM, /* of an FFT of 2^17 or 2^18 points */
    GC_COST_CPU_LEVEL_LARGE,  /* of a longer FFT */
    GC_COST_CPU_BIN,          /* one complex multiply-add of spectra */
    GC_COST_CPU_MATRIX,       /* one complex multiply-add of a product of dense matrices of spectra */
    GC_COST_CPU_BYTE,         /* one byte read from memory beyond the caches */
    GC_COST_CPU_SAMPLE,       /* one sample in or out: conversion, interleaving, copies */
    GC_COST_CUDA_TAP,         /* one multiply-add of direct convolution */
    GC_COST_CUDA_OUTPUT,      /* one sample of 4 bytes read from the memory or written */
    GC_COST_CUDA_FUSED,       /* one point of one-kernel overlap-save, two blocks per FFT */
    GC_COST_CUDA_LONG,        /* the same with three kernels */
    GC_COST_CUDA_CHIP,   /* one point of a row's FFT that a multiprocessor computes alone, forward or back, all busy */
    GC_COST_CUDA_CYCLE,  /* one cycle of a multiprocessor, for steps that wait for each other */
    GC_COST_CUDA_LEVEL,  /* one point and level of a partition's FFT */
    GC_COST_CUDA_PASS,   /* lower bound per point of a partition's FFT: its memory traffic */
    GC_COST_CUDA_BIN,    /* one complex multiply-add of spectra */
    GC_COST_CUDA_SAMPLE, /* one sample: conversion and interleaving */
    GC_COST_CUDA_LAUNCH, /* start and end of one kernel */
    GC_COST_BUS_BYTE,    /* one byte over the bus, with both directions in use */
    GC_COST_CUDA_START,  /* initialisation of the GPU: driver, context, kernels */
    GC_COSTS
} gc_cost;

typedef struct gc_costs {
    double seconds[GC_COSTS];
    char cpu[128], cuda[128]; /* names of the measured processors; empty: built-in figures */
} gc_costs;

/* Return the figures to plan with: the measured ones if they belong to the processor, else the built-in ones, which for
 * a GPU follow from its properties. The file is read once per process. Those of a CPU have GC_COST_CUDA_START too. */
gc_costs gc_costs_of_cpu(const char *name);
gc_costs gc_costs_of_cuda(const gc_device *device);

/* Returns the built-in figures of a GPU. */
gc_costs gc_costs_built_in(const gc_device *device);

/* Writes the path of the file of costs. Returns false if neither XDG_CACHE_HOME nor HOME is an absolute path, or if the
 * path does not fit. */
bool gc_costs_path(char *path, size_t size);

/* Parses the text of a file of costs: `size` bytes, not zero-terminated. Returns false if it is malformed or lacks a
 * figure. */
bool gc_costs_parse(const char *text, size_t size, gc_costs *costs);

/* Writes the file of costs atomically. Fails with FILE. */
gpuconv_status gc_costs_save(const gc_costs *costs, gpuconv_error *error);

/* Returns the name of a cost in the file and in reports. */
const char *gc_cost_name(gc_cost cost);

#endif
