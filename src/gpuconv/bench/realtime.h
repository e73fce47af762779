/* Benchmarks real-time convolution: blocks paced by a clock, without a sound device. */
#ifndef GPUCONV_BENCH_REALTIME_H
#define GPUCONV_BENCH_REALTIME_H

#include "bench.h"

typedef struct gc_bench_realtime_case {
    gpuconv_backend backend; /* CUDA: a bank on a GPU; otherwise the CPU */
    int device;
    int channels; /* each with its own response, unless it is a matrix */
    int outputs;  /* of a dense matrix on the CPU: a response from every channel to every output; 0: no matrix */
    const char
        *moving; /* a SOFA file: the channels move before it, rendered by `threads` or a GPU; NULL: they do not */
    int64_t taps;
    int block; /* frames */
    double rate, seconds;
    int threads;      /* of the CPU for the tail */
    bool search;      /* doubles the channels while 99.9 % of the blocks are in time and no tail block is late */
    const char *plot; /* drawing of the block times; NULL: none */
} gc_bench_realtime_case;

/* Reports rows of "real time": block times, deadline, late blocks and processor time. The histogram of the last run
 * goes to the list "block times" and to what->plot. @return MEMORY, CANCELLED, STATE if the output is wrong */
gpuconv_status gc_bench_realtime(const gc_bench *bench, const gc_bench_realtime_case *what, gpuconv_error *error);

/* Runs the same channels on CPU and GPU, doubled until the CPU is late: rows of "real time" and "crossover", and the
 * numbers of channels from which the GPU needs less processor time, and from which only the GPU is in time. @return as
 * gc_bench_realtime; DEVICE, UNSUPPORTED */
gpuconv_status gc_bench_crossover(const gc_bench *bench, const gc_bench_realtime_case *what, gpuconv_error *error);

#endif
