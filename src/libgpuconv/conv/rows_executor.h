/*
 * The backend interface of convolutions of the caller's arrays (gpuconv_arrays.h). The public functions (arrays.c)
 * check every argument that does not depend on the backend, once for all of them, and call the functions of the table.
 */
#ifndef GC_CONV_ROWS_EXECUTOR_H
#define GC_CONV_ROWS_EXECUTOR_H

#include "problem.h"

/* Limits of the public header. */
#define GC_JOB_FRAMES_MAX (INT64_C(1) << 40)
#define GC_JOB_ROWS_MAX (INT64_C(1) << 30)

typedef struct gc_rows_executor gc_rows_executor;

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
    bool rolling; /* responses belong to their chunk; else they are kept for all chunks */
    bool sums;    /* products are summed (gck_3pass_sum), else multiplied in place */
    int64_t response_transforms, source_transforms, result_transforms;
    int64_t gates_at; /* where the workspace has the arrays of gates that take passes of their own; 0: none do */
    int64_t bytes;    /* of the workspace */
    double seconds;   /* predicted */
} gc_rows_plan;

/* The beginnings of the backends' objects. */
struct gpuconv_arrays {
    const gc_rows_executor *executor;
    int device; /* -1: the CPU */
};

struct gpuconv_responses {
    const gc_rows_executor *executor;
    int device;
    int64_t rows, taps; /* of routed responses: planes */
    gc_job_routes routes;
};

/* A checked job: its shapes, and how it is computed. */
struct gpuconv_arrays_plan {
    gpuconv_arrays *arrays;
    const gpuconv_responses *prepared; /* or NULL */
    gc_job_shape shape;
    gc_rows_plan how; /* on a GPU */
    char reason[256];
};

struct gpuconv_streamer {
    gpuconv_arrays *arrays;
    int64_t channels, block;
};

struct gc_rows_executor {
    /* Makes a place. number: threads or device, as in the public header. Sets executor and device. */
    gpuconv_status (*open)(int number, gpuconv_arrays **arrays, gpuconv_error *error);
    void (*free)(gpuconv_arrays *arrays);

    /* Fills `how` of a plan, whose other fields but the reason are set. @return UNSUPPORTED */
    gpuconv_status (*plan)(const gpuconv_arrays_job *job, gpuconv_arrays_plan *plan, gpuconv_error *error);

    /* Writes the sentence of gpuconv_arrays_plan_reason. @return UNSUPPORTED, MEMORY */
    gpuconv_status (*describe)(const gpuconv_arrays_job *job, gpuconv_arrays_plan *plan, gpuconv_error *error);

    /* As gpuconv_arrays_plan_run, for a job that was checked, pointers included. */
    gpuconv_status (*run)(const gpuconv_arrays_plan *plan, const gpuconv_arrays_job *job, void *workspace, size_t bytes,
                          struct CUstream_st *stream, gpuconv_error *error);

    /* As the public functions, which have checked the arrays. They fill the whole of gpuconv_responses. */
    gpuconv_status (*new_responses)(const gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t frames,
                                    struct CUstream_st *stream, gpuconv_responses **responses, gpuconv_error *error);
    gpuconv_status (*route_responses)(const gpuconv_arrays *arrays, const gpuconv_ir *ir, int64_t frames,
                                      gpuconv_responses **responses, gpuconv_error *error);
    gpuconv_status (*update_responses)(const gpuconv_arrays *arrays, gpuconv_responses *responses,
                                       const gpuconv_rows *response, struct CUstream_st *stream, gpuconv_error *error);
    int64_t (*responses_bytes)(const gpuconv_responses *responses);
    void (*free_responses)(gpuconv_responses *responses);

    gpuconv_status (*new_streamer)(gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t channels,
                                   int64_t block, struct CUstream_st *stream, gpuconv_streamer **streamer,
                                   gpuconv_error *error);
    gpuconv_status (*process)(gpuconv_streamer *streamer, const gpuconv_rows *in, const gpuconv_rows *out,
                              struct CUstream_st *stream, gpuconv_error *error);
    gpuconv_status (*reset)(gpuconv_streamer *streamer, struct CUstream_st *stream, gpuconv_error *error);
    void (*free_streamer)(gpuconv_streamer *streamer);
};

extern const gc_rows_executor gc_rows_cpu, gc_rows_cuda;

/* Checks an array at a place and its pointers. name: of the array, for messages. written: whether it is written. */
gpuconv_status gc_rows_check(const gpuconv_arrays *arrays, const gpuconv_rows *rows, const char *name, bool written,
                             gpuconv_error *error);

/* Checks a job but for its pointers, and fills *shape. */
gpuconv_status gc_job_check(const gpuconv_arrays *arrays, const gpuconv_arrays_job *job, gc_job_shape *shape,
                            gpuconv_error *error);

/* Checks the pointers of a job that gc_job_check has accepted. */
gpuconv_status gc_job_check_pointers(const gpuconv_arrays_job *job, gpuconv_error *error);

/* Returns the array that the job writes. */
const gpuconv_rows *gc_job_written(const gpuconv_arrays_job *job);

/* Returns the bytes of a sample. */
static inline int gc_job_sample_bytes(gpuconv_sample_type type) {
    return type == GPUCONV_SAMPLE_F32 ? 4 : 2;
}

#endif
