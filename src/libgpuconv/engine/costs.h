/*
 * What operations cost, for choosing between algorithms, sizes and processors: built-in figures, or those that
 * gpuconv_calibrate measured on this machine and left in the user's cache folder.
 */
#ifndef GC_ENGINE_COSTS_H
#define GC_ENGINE_COSTS_H

#include "gpuconv.h"

/* Seconds each, of one CPU thread or of a whole GPU. */
typedef enum gc_cost {
    GC_COST_CPU_TAP = 0,      /* a multiply-add of the direct loop */
    GC_COST_CPU_LEVEL_SMALL,  /* a sample and level of a transform in the second-level cache */
    GC_COST_CPU_LEVEL_MEDIUM, /* of 2^17 and 2^18 samples */
    GC_COST_CPU_LEVEL_LARGE,  /* of more */
    GC_COST_CPU_BIN,          /* a complex multiply-add of spectra */
    GC_COST_CPU_SAMPLE,       /* a sample in or out: conversion, interleaving, copies */
    GC_COST_CUDA_TAP,         /* a multiply-add of the direct kernel */
    GC_COST_CUDA_OUTPUT,      /* an output, whatever its taps: memory's share of direct and overlap-save */
    GC_COST_CUDA_FUSED,       /* a point of overlap-save in one kernel, two blocks in a transform */
    GC_COST_CUDA_LONG,        /* the same in three */
    GC_COST_CUDA_LEVEL,       /* a point and level of a partition's transform */
    GC_COST_CUDA_PASS,        /* but no less a point than the way through memory */
    GC_COST_CUDA_BIN,         /* a complex multiply-add of spectra */
    GC_COST_CUDA_SAMPLE,      /* a sample: conversion and interleaving */
    GC_COST_CUDA_LAUNCH,      /* a kernel's start and end */
    GC_COST_BUS_BYTE,         /* a byte over the bus, each way, both ways at once */
    GC_COST_CUDA_START,       /* waking the GPU: driver, context, kernels */
    GC_COSTS
} gc_cost;

typedef struct gc_costs {
    double seconds[GC_COSTS];
    char cpu[128], cuda[128]; /* what they were measured on; empty: built in */
} gc_costs;

/* The figures to plan with: measured ones where they are of this processor, else the built-in ones, a GPU's scaled by
 * its multiprocessors. Read once in a process. */
gc_costs gc_costs_of_cpu(const char *name);
gc_costs gc_costs_of_cuda(const char *name, int multiprocessors);

/* Where they are kept; false: neither XDG_CACHE_HOME nor HOME says. */
bool gc_costs_path(char *path, size_t size);

/* Writes them whole or not at all. FILE */
gpuconv_status gc_costs_save(const gc_costs *costs, gpuconv_error *error);

const char *gc_cost_name(gc_cost cost);

#endif
