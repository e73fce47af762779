/* A backend: the algorithms of one processor, what executes them, and what measures it. */
#ifndef GC_ENGINE_BACKEND_H
#define GC_ENGINE_BACKEND_H

#include "bank.h"
#include "batch_convolver.h"
#include "measure_backend.h"
#include "motion_backend.h"
#include "plan.h"
#include "rows_executor.h"
#include "stream_executor.h"

/* Length of arrays with an element for each backend, AUTO included. gpuconv_backend_name has the names. */
enum { GC_BACKENDS = GPUCONV_BACKEND_CUDA + 1 };

typedef struct gc_backend {
    gpuconv_backend id;
    const gc_algorithm *const *algorithms; /* of all executors; NULL ends them */

    /* Detects the processor and fills *device. Fails with DEVICE, and a reason, if there is none. */
    gpuconv_status (*probe)(const gpuconv_config *config, gc_device *device, gpuconv_error *error);

    /* Sets device->memory to the bytes that are free now, and device->started. Starts the device. NULL: memory does not
     * bound plans. Fails with DEVICE, and a reason. */
    gpuconv_status (*free_memory)(gc_device *device, gpuconv_error *error);

    /* Starts the device that probe would choose and makes it the current device of the thread, so that a stream finds
     * it started. NULL: there is nothing to start. */
    gpuconv_status (*start)(const gpuconv_config *config, gpuconv_error *error);

    /* Returns the costs of operations on a device that probe has filled. */
    gc_costs (*costs)(const gc_device *device);

    const gc_stream_executor *stream;
    const gc_rows_executor *rows;
    const gc_batch_backend *batch;
    const gc_bank_backend *bank;     /* NULL: the backend has none */
    const gc_motion_backend *motion; /* the same */
    const gc_measure_backend *measure;
} gc_backend;

/* Use gc_backend_find: a build may lack CUDA. */
extern const gc_backend gc_backend_cpu, gc_backend_cuda;

/* Returns the CPU or the CUDA backend; NULL if the build does not include it. */
const gc_backend *gc_backend_find(gpuconv_backend id);

/* Returns the name of an algorithm that some backend has, else NULL. */
const char *gc_algorithm_name(gpuconv_algorithm id);

/* Returns `status` with the message that this build has no CUDA backend. */
gpuconv_status gc_backend_fail_missing(gpuconv_status status, gpuconv_error *error);

#endif
