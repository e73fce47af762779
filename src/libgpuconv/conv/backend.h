/* A backend: the algorithms of one processor and what executes them. */
#ifndef GC_CONV_BACKEND_H
#define GC_CONV_BACKEND_H

#include "bank.h"
#include "batch_convolver.h"
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
} gc_backend;

/* Use gc_backend_find: the CUDA backend is in a module. */
extern const gc_backend gc_backend_cpu, gc_backend_cuda;

/* What the module of the CUDA backend exports, by the name GC_CUDA_MODULE. The module has copies of the functions of
 * this library that it needs, and none of the library's state: a module of another version is refused. */
typedef struct gc_cuda_module {
    const char *version;
    const gc_backend *backend;
    const struct gc_measures *measures; /* measure/measure.h */
} gc_cuda_module;
#define GC_CUDA_MODULE "gpuconv_cuda_module"

/* Returns the module of the CUDA backend. The first call loads it, unless the program is linked with the backend.
 * @return NULL, and the reason in *why, if there is none */
const gc_cuda_module *gc_cuda_module_find(const char **why);

/* Returns the CPU or the CUDA backend; NULL if there is no module. */
const gc_backend *gc_backend_find(gpuconv_backend id);

/* Returns the name of an algorithm, else NULL. The CPU has all of them. */
const char *gc_algorithm_name(gpuconv_algorithm id);

/* Returns `status` with the message why there is no CUDA backend. */
gpuconv_status gc_backend_fail_missing(gpuconv_status status, gpuconv_error *error);

#endif
