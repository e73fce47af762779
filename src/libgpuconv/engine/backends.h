/* The registry of the backends in this build. */
#ifndef GC_ENGINE_BACKENDS_H
#define GC_ENGINE_BACKENDS_H

#include "backend.h"
#include "bank.h"
#include "batch_convolver.h"
#include "measure_backend.h"

typedef struct gc_backend_tables {
    const gc_backend *convolver;
    const gc_measure_backend *measure;
    const gc_batch_backend *batch;
    const gc_bank_backend *bank; /* NULL: the backend has none */
} gc_backend_tables;

/* Returns the tables of the CPU or CUDA backend; NULL if the build does not include it. */
const gc_backend_tables *gc_backend_find(gpuconv_backend backend);

/* Returns UNSUPPORTED with the message that this build has no CUDA backend. */
gpuconv_status gc_backend_fail_missing(gpuconv_error *error);

#endif
