/*
 * The backend interface of convolutions of the caller's arrays (gpuconv_arrays.h). The public functions (arrays.c)
 * check every argument that does not depend on the backend, once for all of them, and call the functions of the table.
 */
#ifndef GC_ENGINE_ROWS_EXECUTOR_H
#define GC_ENGINE_ROWS_EXECUTOR_H

#include "problem.h"

/* Limits of the public header. */
#define GC_JOB_FRAMES_MAX (INT64_C(1) << 40)
#define GC_JOB_ROWS_MAX (INT64_C(1) << 30)

typedef struct gc_rows_executor gc_rows_executor;

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

struct gpuconv_streamer {
    gpuconv_arrays *arrays;
    int64_t channels, block;
};

struct gc_rows_executor {
    /* Makes a place. number: threads or device, as in the public header. Sets executor and device. */
    gpuconv_status (*open)(int number, gpuconv_arrays **arrays, gpuconv_error *error);
    void (*free)(gpuconv_arrays *arrays);

    /* As the public functions. They call gc_job_check, and `run` gc_job_check_pointers. */
    gpuconv_status (*workspace)(const gpuconv_arrays *arrays, const gpuconv_arrays_job *job, size_t *bytes,
                                gpuconv_error *error);
    gpuconv_status (*run)(gpuconv_arrays *arrays, const gpuconv_arrays_job *job, void *workspace, size_t bytes,
                          struct CUstream_st *stream, gpuconv_error *error);
    gpuconv_status (*plan)(const gpuconv_arrays *arrays, const gpuconv_arrays_job *job, char *text, size_t size,
                           gpuconv_error *error);

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
