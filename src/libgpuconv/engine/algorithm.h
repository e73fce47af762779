/*
 * An algorithm of a backend: one row of the backend's array. choose.c walks the arrays. A row says which schedules the
 * algorithm has for a problem and predicts their time and memory; each backend adds to its rows what executes them.
 */
#ifndef GC_ENGINE_ALGORITHM_H
#define GC_ENGINE_ALGORITHM_H

#include "costs.h"
#include "problem.h"
#include "schedule.h"

/* Length of arrays with an element for each algorithm, AUTO included. gpuconv_algorithm_name has the names. */
enum { GC_ALGORITHMS = GPUCONV_ALGORITHM_MATRIX + 1 };

/* The share of a device's free memory that a convolution may take. Allocations are rounded up, and kernels that are
 * loaded later take some. */
#define GC_MEMORY_SHARE 0.9

/* The properties of a processor that planning needs. */
typedef struct gc_device {
    char name[128];
    int number;    /* of the CUDA device; 0 for the CPU */
    int threads;   /* CPU threads to use */
    double memory; /* bytes for plans: of the whole device; free bytes if `started` */
    bool started;  /* free_memory has set `memory` */
    int multiprocessors;
    int64_t shared_memory; /* bytes that one thread block can use */
    bool tensor_cores;     /* has FP16 tensor cores, many times faster than FP32 multiply-adds */
} gc_device;

typedef struct gc_algorithm gc_algorithm;

/* An algorithm with its sizes. */
typedef struct gc_choice {
    const gc_algorithm *algorithm;
    gc_schedule schedule;
    int64_t chunk;    /* frames */
    int slots;        /* most chunks in flight */
    double bytes;     /* memory of the convolution */
    double cost;      /* seconds that rank sizes and algorithms of one backend; HUGE_VAL: not to be used */
    double predicted; /* seconds for the expected frames */
} gc_choice;

struct gc_algorithm {
    gpuconv_algorithm id;

    /* A size may take `thrift` bytes, or `excess` times the bytes of the smallest size if that is more. thrift 0: it
     * may take GC_MEMORY_SHARE of the device's memory. */
    double thrift, excess;

    /* Makes the schedule of a choice, with transforms of `points` points: 0, and the powers of two from 4 to 2^24.
     * form: 0 or 1, for algorithms with two schedules of a size. Returns false if there is none, or if the device
     * cannot execute it. */
    bool (*fits)(const gc_problem *problem, const gc_device *device, int64_t points, int form, gc_choice *choice);

    /* Fills chunk, slots, bytes and cost of a choice whose algorithm and schedule are set. */
    void (*cost)(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_choice *choice);

    /* Completes the cheapest size: fills `predicted` and adapts the rest to the length and to the threads that the
     * problem and the device have. */
    void (*settle)(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_choice *choice);

    /* Stores the reason why no size fits. @return UNSUPPORTED */
    gpuconv_status (*refuse)(const gc_algorithm *algorithm, const gc_problem *problem, const gc_device *device,
                             gpuconv_error *error);
};

#endif
