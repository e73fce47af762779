/*
 * An algorithm of a backend: one row of the backend's array. choose.c walks the arrays. A row says which schedules the
 * algorithm has for a problem and predicts their time and memory; each backend adds to its rows what executes them.
 */
#ifndef GC_CONV_ALGORITHM_H
#define GC_CONV_ALGORITHM_H

#include "costs.h"
#include "device.h"
#include "problem.h"
#include "schedule.h"

/* An array of algorithms has at most this many rows. */
enum { GC_ROWS_MAX = 16 };

typedef struct gc_algorithm gc_algorithm;

/* An algorithm with its sizes. */
typedef struct gc_choice {
    const gc_algorithm *algorithm;
    gc_schedule schedule;
    int64_t chunk; /* frames, of a stream; of a bank: of the shortest call that uses `schedule` for the first level */
    int slots;     /* most chunks in flight */
    double bytes;  /* memory of the convolution */
    double cost;   /* seconds that rank sizes and algorithms of one backend; HUGE_VAL: not to be used */
    double predicted; /* seconds for the expected frames; of a bank: for one frame */
    gc_levels levels; /* of a bank */
} gc_choice;

struct gc_algorithm {
    gpuconv_algorithm id;
    const char *name;     /* of the id, the same in every row that has it */
    gc_problem_kind kind; /* of the problems that it solves */
    int64_t least, most;  /* points of its transforms: powers of two; 0 and 0: it has none */

    /* A size may take `thrift` bytes, or `excess` times the bytes of the smallest size if that is more. thrift 0: it
     * may take GC_MEMORY_SHARE of the device's memory. */
    double thrift, excess;

    /* Makes the schedule of a choice, with transforms of `points` points. form: 0 or 1, for algorithms with two
     * schedules of a size. Returns false if there is none, or if the device cannot execute it.
     * NULL: the algorithm has one size, without a schedule. */
    bool (*fits)(const gc_problem *problem, const gc_device *device, int64_t points, int form, gc_choice *choice);

    /* Fills the rest of a choice whose algorithm and schedule are set, but for `predicted`. */
    void (*cost)(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_choice *choice);

    /* Completes the cheapest size: fills `predicted` and adapts the rest to the length and to the threads that the
     * problem and the device have. NULL: `predicted` is the cost. */
    void (*settle)(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_choice *choice);

    /* Stores the reason why no size fits. NULL, or @return OK: the response is too long. @return UNSUPPORTED */
    gpuconv_status (*refuse)(const gc_algorithm *algorithm, const gc_problem *problem, const gc_device *device,
                             gpuconv_error *error);
};

#endif
