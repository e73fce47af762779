/* The description of a convolution, which a planner reads and every door that plans one fills. */
#ifndef GC_CONV_PROBLEM_H
#define GC_CONV_PROBLEM_H

#include "components.h"
#include "gpuconv_arrays.h"

/* Most chunks in flight where the latency is bounded: one is filled, one computed, one taken. */
enum { GC_BOUNDED_SLOTS = 3 };

/* Who executes a convolution, and so which algorithms are considered. */
typedef enum gc_problem_kind {
    GC_STREAM = 0, /* chunks of frames through the routes of a response, in order */
    GC_ROWS,       /* rows of arrays, all at once */
    GC_BANK        /* a block of every channel in each period, in real time */
} gc_problem_kind;

/* The routes of prepared responses; `routes` is 0 if there are none. */
typedef struct gc_job_routes {
    int inputs, outputs, routes;
} gc_job_routes;

/* Factors of the samples of rows (gpuconv_arrays.h). GC_GATES_ALIKE: the samples of the signal, the output and the
 * gates have one type, and all steps are 1. */
typedef enum gc_job_gates { GC_GATE_PRE = 1, GC_GATE_POST = 2, GC_GATE_SKIP = 4, GC_GATES_ALIKE = 8 } gc_job_gates;

/* What rows read and write, whatever the operation. */
typedef struct gc_job_shape {
    gpuconv_arrays_operation operation;
    gc_job_routes routes;
    int64_t rows;             /* of the signal */
    int64_t batch;            /* rows / inputs; `rows` without routes */
    int64_t group, responses; /* row i uses response (i / group) % responses; without routes */
    int64_t taps;             /* frames of the responses */
    int64_t signal_frames, output_frames, offset;
    int64_t hop, blocks; /* of a filter that changes with time: row i has responses r blocks ... (r + 1) blocks - 1, one
                            for each block of `hop` frames, r as above; 0, 0: the filter does not change */
    int64_t linear;      /* the responses of blocks cross over the hop */
    int64_t narrow;      /* the samples that are written have 16 bits */
    int64_t gates;       /* a sum of gc_job_gates */
    int64_t halves;      /* all samples have the same type of 16 bits, adjacent, in rows at multiples of 16 bytes */
} gc_job_shape;

typedef struct gc_problem {
    gc_problem_kind kind;

    /* GC_STREAM */
    const gpuconv_ir *ir; /* inputs, outputs, routes and taps */
    gc_components components;
    int64_t products;   /* routes that dense matrices of all components would have */
    int64_t frames;     /* of the input; negative: unknown */
    int64_t chunk_most; /* frames that the latency allows a chunk, with GC_BOUNDED_SLOTS; 0: any number */

    /* GC_ROWS */
    gc_job_shape rows;
    bool samples;                    /* the samples of the responses are given */
    bool spectra;                    /* their spectra are prepared, or will be */
    const struct gc_algorithm *only; /* the algorithm of the spectra, or the only one to consider; NULL: any */
    int64_t only_points;             /* and the points of its transforms; 0: it has none */

    /* GC_BANK on a GPU */
    const struct gc_bank_options *bank;
    bool diagonal;       /* route c leads from input c to output c, and there are no others */
    int64_t longest_hop; /* frames of the partitions, at most */

    /* GC_BANK on the CPU, with `ir` and `products` */
    int64_t zeros;   /* taps of silence at the beginning of all responses */
    int64_t block;   /* frames of the longest call that has to be served in time */
    double deadline; /* seconds that the callback may spend on a block of a level */
} gc_problem;

/* Fills *problem for a stream of `frames` frames of input (negative: unknown) and at most `latency` frames of latency
 * (0 or less: any). The response must outlive it. Returns false without memory; *problem can then be freed all the
 * same. */
bool gc_problem_init(gc_problem *problem, const gpuconv_ir *ir, int64_t frames, int64_t latency);
void gc_problem_free(gc_problem *problem);

/* Returns the frames to plan for: those of the input, but at most `most`, and `most` if they are unknown. A pipe and a
 * long file with the same samples then have the same plan, and give the same bytes. */
int64_t gc_problem_frames(const gc_problem *problem, int64_t most);

#endif
