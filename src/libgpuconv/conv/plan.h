/*
 * Plans: what a planner knows (processor, costs, schedules), the problem that a door describes, the algorithms that a
 * backend offers, and the choice among them. search.c costs every size of every algorithm of the
 * problem's kind and takes the cheapest one. It knows no backend and no algorithm by name.
 */
#ifndef GC_CONV_PLAN_H
#define GC_CONV_PLAN_H

#include "gpuconv_arrays.h"
#include "libgpuconv/ir/object.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- Processors -------------------------------------------------------------------------------------------------- */

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

/* ---- Costs (costs.c) --------------------------------------------------------------------------------------------- */

/* Seconds per operation, on one CPU thread or on a whole GPU: built-in figures, or figures that gpuconv_calibrate
 * measured on this machine and stored in the user's cache folder. */
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

/* Seconds of the CPU that no calibration measures: of a block in real time beside its arithmetic (its start, its lists,
 * cold caches), of waking a worker, which happens up to twice a hop, and of the work from which on waking threads pays.
 */
extern const double gc_cpu_block_seconds, gc_cpu_wake_seconds, gc_cpu_shared_seconds;

/* Seconds of files that no calibration measures: of a core to open, close and name a file, and to copy a byte between
 * file and memory; of all cores together to write a byte of a file in memory (8.3 GB/s with 16 and with 32 cores of
 * H200 hosts). */
extern const double gc_file_seconds, gc_file_byte_seconds, gc_file_written_seconds;

/* Seconds of a core for simulated rooms that no calibration measures: of an image; of a frame of noise that decays
 * alike at all frequencies; of a frame of noise by octaves; of a frame for the ears of a set. */
extern const double gc_image_seconds, gc_room_frame_seconds, gc_room_octaves_seconds, gc_room_ears_seconds;

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

/* ---- Schedules (schedule.c) -------------------------------------------------------------------------------------- */

/* How a response is cut up for an algorithm. Every backend executes the same schedule. */
typedef struct gc_schedule {
    int64_t taps;       /* M, the response's length */
    int64_t transform;  /* points of one transform, a power of two; 0 for direct */
    int64_t hop;        /* output frames one transform yields; 1 for direct */
    int64_t partition;  /* taps in one partition */
    int64_t partitions; /* how many of them, the last one padded with zeros */
} gc_schedule;

/* A response in levels of partitions with growing hops. */
enum { GC_LEVELS_MAX = 4 /* on a GPU */, GC_CPU_LEVELS_MAX = 10 };

typedef struct gc_level {
    int64_t hop, first_tap; /* of the first level: the block on a GPU, 1 on the CPU; 0 */
    int64_t partitions;     /* of hop taps each, from first_tap on */
    bool at_once;           /* on the CPU: a block takes so little time that the callback computes it, and no worker has
                               to wake up */
} gc_level;

typedef struct gc_levels {
    int count;
    gc_level level[GC_CPU_LEVELS_MAX];
    bool dense; /* on the CPU: the levels behind the first one compute products of matrices */
} gc_levels;

/* The schedules for `taps` >= 1. `transform`: points, a power of two >= 4. Return false when the sizes do not fit. */

/* Direct convolution. `transform` is ignored. */
bool gc_schedule_direct(int64_t taps, int64_t transform, gc_schedule *schedule);

/* One partition: needs transform > taps and hops by transform - taps + 1, from 64 on rounded down to a multiple of 32
 * so that blocks begin aligned. */
bool gc_schedule_overlap_save(int64_t taps, int64_t transform, gc_schedule *schedule);

/* Cuts the response into partitions of half a transform and hops by one partition. */
bool gc_schedule_partitioned(int64_t taps, int64_t transform, gc_schedule *schedule);

/* Dense matrices: one partition where its hop is a quarter of a transform or more, else partitions of half a transform.
 */
bool gc_schedule_dense(int64_t taps, int64_t transform, gc_schedule *schedule);

/* Returns the input frames before the first one of a block that the block reads. */
int64_t gc_schedule_overlap(const gc_schedule *schedule);

/* Returns the input frames before the first one of a chunk that its outputs need. */
int64_t gc_schedule_history(const gc_schedule *schedule);

/* ---- Components of a matrix (components.c) ----------------------------------------------------------------------- */

/* A part of a matrix of responses that shares no channel with the others: inputs and outputs that routes connect. A
 * stereo response has two components of one channel each, true stereo has one of two by two, a decoder has one with all
 * channels. Backends transform each channel of a component once, and compute the products of a dense one as a matrix
 * product for each bin. */
typedef struct gc_component {
    int inputs, outputs;
    int *input, *output; /* numbers of the channels, ascending */
} gc_component;

typedef struct gc_components {
    int count;
    gc_component *component;         /* sorted by their first channel */
    int *members;                    /* the channel numbers that the components point into; all other arrays follow */
    int *input_owner, *output_owner; /* per channel: the index of its component; -1: no route */
    int *input_at, *output_at;       /* per channel: its index within its component */
    int *first_route; /* outputs + 1: the routes of output o are first_route[o] .. first_route[o + 1] - 1 */
} gc_components;

/* Finds the components of a routed response. Returns false without memory; *components can then be freed all the same.
 */
bool gc_components_find(const gpuconv_ir *ir, gc_components *components);
void gc_components_free(gc_components *components);

/* Returns the number of routes that dense matrices of all components would have. */
int64_t gc_components_products(const gc_components *components);

/* ---- Problem ----------------------------------------------------------------------------------------------------- */

/* Most chunks in flight where the latency is bounded: one is filled, one computed, one taken. */
enum { GC_BOUNDED_SLOTS = 3 };

typedef struct gc_algorithm gc_algorithm;

/* The executor of a convolution, which decides the algorithms that are considered. */
typedef enum gc_problem_kind { GC_STREAM = 0, GC_ROWS, GC_ROW, GC_BANK } gc_problem_kind;

/* The routes of prepared responses; `routes` is 0 if there are none. */
typedef struct gc_job_routes {
    int inputs, outputs, routes;
} gc_job_routes;

/* The arrays of a job, in the order of gpuconv_arrays_job, as bits. */
typedef enum gc_job_arrays {
    GC_SIGNAL = 1,
    GC_OUTPUT = 2,
    GC_RESPONSE = 4,
    GC_SIGNAL_GRADIENT = 8,
    GC_RESPONSE_GRADIENT = 16,
    GC_JOB_ARRAYS = 5 /* how many there are */
} gc_job_arrays;

/* Factors of the samples of rows (gpuconv_arrays.h). GC_GATES_ALIKE: the samples of the signal, the output and the
 * gates have one type, and all steps are 1. */
typedef enum gc_job_gates { GC_GATE_PRE = 1, GC_GATE_POST = 2, GC_GATE_SKIP = 4, GC_GATES_ALIKE = 8 } gc_job_gates;

/* The shape of a job on rows, whatever the operation. */
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
    int64_t halves;      /* the gpuconv_sample_type of all samples if it has 16 bits and they are adjacent, in rows at
                            multiples of 16 bytes; else 0 */
    int64_t bare_halves; /* signal and output are such rows of GPUCONV_SAMPLE_F16, the response may have any type; there
                            are neither gates, gain, hop nor accumulation */
    int64_t plain;       /* GRADIENT_BOTH: signal, output, response and signal_gradient have one type; there is no
                            gain */
    int64_t spread;      /* a sum of gc_job_arrays: those whose step is not 1 */
} gc_job_shape;

/* Chunks of frames through the routes of a response, in order. */
typedef struct gc_stream_problem {
    const gpuconv_ir *ir; /* inputs, outputs, routes and taps */
    gc_components components;
    int64_t products;   /* routes that dense matrices of all components would have */
    int64_t frames;     /* of the input; negative: unknown */
    int64_t chunk_most; /* frames that the latency allows a chunk, with GC_BOUNDED_SLOTS; 0: any number */
} gc_stream_problem;

/* A row of arrays on a CPU thread. */
typedef struct gc_row_problem {
    int64_t signal, taps; /* frames of the longer operand and of the shorter one */
    int64_t begin, end;   /* frames of the full convolution that are in the output; there are some */
    bool prepared;        /* the transforms of the response are kept */
    bool gradient;        /* the row need not have the bytes of a file job */
    gc_schedule file;     /* direct or overlap-save, of a file job of these lengths, whose bytes the row has */
    bool given;           /* `file` is to be used */
} gc_row_problem;

/* Rows of arrays, all at once, on a GPU. */
typedef struct gc_rows_problem {
    gc_job_shape shape;
    bool samples;                           /* the samples of the responses are given */
    bool spectra;                           /* their spectra are prepared, or will be */
    const gc_algorithm *required_algorithm; /* of the spectra, or the only one to consider; NULL: any */
    int64_t required_points;                /* of its transforms; 0: it has none */
} gc_rows_problem;

/* A block of every channel in each period, in real time. `gpu` is not NULL: on a GPU, where `diagonal` and
 * `longest_hop` count too; else on the CPU. */
typedef struct gc_bank_problem {
    const struct gc_bank_options *gpu;
    bool diagonal;       /* route c leads from input c to output c, and there are no others */
    int64_t longest_hop; /* frames of the partitions, at most */

    const gpuconv_ir *ir;
    int64_t products; /* as in gc_stream_problem */
    int64_t zeros;    /* taps of silence at the beginning of all responses */
    int64_t block;    /* frames of the longest call that has to be served in time */
    double deadline;  /* seconds that the callback may spend on a block of a level */
} gc_bank_problem;

/* The description of a convolution, which a planner reads and every door that plans one fills. */
typedef struct gc_problem {
    gc_problem_kind kind;
    union {
        gc_stream_problem stream;
        gc_rows_problem rows;
        gc_row_problem row;
        gc_bank_problem bank;
    };
} gc_problem;

/* Fills *problem for a stream of `frames` frames of input (negative: unknown) and at most `latency` frames of latency
 * (0 or less: any). The response must outlive it. Returns false without memory; *problem can then be freed all the
 * same. */
bool gc_problem_init(gc_problem *problem, const gpuconv_ir *ir, int64_t frames, int64_t latency);
void gc_problem_free(gc_problem *problem);

/* Returns the frames to plan for: those of the input, but at most `most`, and `most` if they are unknown. A pipe and a
 * long file with the same samples then have the same plan, and give the same bytes. */
int64_t gc_problem_frames(const gc_problem *problem, int64_t most);

/* ---- Algorithms -------------------------------------------------------------------------------------------------- */

/* An array of algorithms has at most this many rows. */
enum { GC_ALGORITHMS_MAX = 16 };

/* How a GPU computes rows. */
typedef struct gc_rows_plan {
    const struct gc_cuda_rows *algorithm; /* NULL: none serves the problem */
    int size;                             /* index of the kernels' transforms; 0 for direct sums */
    int64_t points;                       /* N; 0 for direct sums */
    int64_t hop;                          /* frames of a segment */
    int64_t part_taps;                    /* taps of a part of the response */
    int64_t parts;
    int64_t segments;  /* of a row of the target; of the signal for a gradient by the response */
    int64_t lo, shift; /* as in kernels/engine/rows/job.h */
    int64_t splits, blocks;
    /* Direct sums: as in gck_job_direct. */
    int groups, term_parts, chunk, each;
    int64_t tiles;
    int64_t launches; /* of a filter that changes with time, for each part of the taps */
    /* Three kernels: the job is cut into chunks of `rows` rows (batches if there are routes) and of `chunk_segments`
     * segments. Transforms in the workspace: */
    int64_t rows, chunk_segments;
    bool packed;    /* transforms in the workspace have 4 bytes a point, else 8 */
    int64_t stride; /* of a transform in the workspace, in units of 8 bytes */
    bool shared;    /* a chunk has `rows` responses instead, with all of their rows */
    bool rolling;   /* responses belong to their chunk; else they are kept for all chunks */
    bool sums;      /* products are summed (gck_3pass_sum), else multiplied in place */
    int64_t response_transforms, source_transforms, result_transforms;
    int64_t kept; /* bytes of job.transforms; 0: none are kept */
    int64_t
        copies_at;  /* where the workspace has the copies of arrays that the kernels do not serve; 0: there are none */
    int copies;     /* the copied arrays, a sum of gc_job_arrays */
    int64_t bytes;  /* of the workspace */
    double seconds; /* predicted */
} gc_rows_plan;

/* The plan of a problem: an algorithm with its sizes. */
typedef struct gc_choice {
    const gc_algorithm *algorithm;
    gc_schedule schedule;
    int64_t chunk; /* frames, of a stream; of a bank: of the shortest call that uses `schedule` for the first level */
    int slots;     /* most chunks in flight */
    double bytes;  /* memory of the convolution */
    double cost;   /* seconds that rank sizes and algorithms of one backend; HUGE_VAL: not to be used */
    double predicted; /* seconds for the expected frames; of a bank: for one frame */
    union {
        gc_levels levels;  /* of a bank */
        gc_rows_plan rows; /* of rows on a GPU */
    };
} gc_choice;

/* A row of a backend's array: which schedules the algorithm has for a problem, and predictions of their time and
 * memory. Each backend adds to its rows what executes them. */
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

/* ---- Plan (plan.c) ----------------------------------------------------------------------------------------------- */

struct gpuconv_plan {
    _Atomic int references;
    const struct gc_backend *backend;
    gpuconv_ir *ir;
    gc_device device;
    gc_choice choice;
    char reason[256], note[256];
};

/* Reads a caller's configuration of any version; does not check the ranges of its fields. @return ARGUMENT */
gpuconv_status gc_config_read(const gpuconv_config *from, gpuconv_config *config, gpuconv_error *error);

/* Adds a reference, which gpuconv_plan_free drops, and returns the plan. */
gpuconv_plan *gc_plan_hold(const gpuconv_plan *plan);

/* Chooses among `algorithms`, which NULL ends, the one of the problem's kind with the lowest cost. seconds: receives
 * the predicted time of each in turn, HUGE_VAL where it cannot convolve; or NULL. Fails with UNSUPPORTED, and the
 * reason of the algorithm that needs the least memory, or of the last one if memory is no reason. */
gpuconv_status gc_algorithms_choose(const gc_algorithm *const *algorithms, const gc_problem *problem,
                                    const gc_device *device, const gc_costs *costs, gc_choice *choice, double *seconds,
                                    gpuconv_error *error);

/* Fills backend, choice and reason of a plan whose device is set: the algorithm that the configuration names, or the
 * fastest one. Fails with UNSUPPORTED, and a reason, if no algorithm of the backend can convolve. */
gpuconv_status gc_plan_choose(gpuconv_plan *plan, const struct gc_backend *backend, const gc_problem *problem,
                              const gpuconv_config *config, gpuconv_error *error);

#endif
