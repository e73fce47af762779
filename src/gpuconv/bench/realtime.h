/* What this machine sustains in real time, paced by a clock, without a sound device. */
#ifndef GPUCONV_BENCH_REALTIME_H
#define GPUCONV_BENCH_REALTIME_H

#include "bench.h"

typedef struct gc_bench_realtime_case {
    gpuconv_backend backend; /* CUDA: everything on a GPU; else the CPU */
    int device;
    int channels; /* each through a response of its own */
    int64_t taps;
    int block; /* frames */
    double rate, seconds;
    int threads; /* for the tail */
    bool search; /* double the channels while 99.9 % of the blocks are in time and nothing is missed */
    const char *plot;
} gc_bench_realtime_case;

/* Rows of "real time": block times against the deadline, misses, processor time. A histogram of the last run that kept
 * up goes to the list "block times" and, if wanted, into a drawing. MEMORY, CANCELLED, STATE (the output is wrong). */
gpuconv_status gc_bench_realtime(const gc_bench *bench, const gc_bench_realtime_case *what, gpuconv_error *error);

/* The same channels on both, doubled until the CPU no longer keeps up: rows of "real time" and "crossover", and from
 * how many on the GPU leaves the processor more time, and alone keeps up. As above, DEVICE, UNSUPPORTED. */
gpuconv_status gc_bench_crossover(const gc_bench *bench, const gc_bench_realtime_case *what, gpuconv_error *error);

#endif
