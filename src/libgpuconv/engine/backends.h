/* The registry of backends: every table that this build has. */
#ifndef GC_ENGINE_BACKENDS_H
#define GC_ENGINE_BACKENDS_H

#include "backend.h"
#include "batch_convolver.h"
#include "filter_bank.h"
#include "measure_backend.h"

typedef struct gc_backend_tables {
    const gc_backend *convolver;
    const gc_measure_backend *measure;
    const gc_batch_backend *batch;
    const gc_filter_bank_backend *filter_bank; /* NULL: the backend has none */
} gc_backend_tables;

/* Returns the tables of CPU or CUDA; NULL if this build does not have the backend. */
const gc_backend_tables *gc_backend_find(gpuconv_backend backend);

/* Fails with UNSUPPORTED because this build has no CUDA backend. */
gpuconv_status gc_backend_fail_missing(gpuconv_error *error);

#endif
