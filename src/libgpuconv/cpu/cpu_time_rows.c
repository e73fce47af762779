/* Times convolutions of rows in host memory (gpuconv_arrays.h). */
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/engine/measure_backend.h"

#include <stdlib.h>
#include <string.h>

/* Returns the rows as an array, to be freed; NULL without memory. */
static char *repeat(const gc_timed_rows *rows, gpuconv_sample_type type) {
    const int64_t row = rows->frames * gc_job_sample_bytes(type);
    char *at = gc_calloc(rows->rows, row);
    for (int64_t i = 0; i < rows->rows && at; i++)
        memcpy(at + i * row, (const char *)rows->samples + i % rows->distinct * row, (size_t)row);
    return at;
}

/* Measures the runs of a job after a warm-up. */
static gpuconv_status run_job(gpuconv_arrays *arrays, const gpuconv_arrays_job *job, const gc_rows_timing *t,
                              gpuconv_error *error) {
    size_t bytes = 0;
    gpuconv_status status = gpuconv_arrays_workspace(arrays, job, &bytes, error);
    void *workspace = !status && bytes ? gc_calloc((int64_t)bytes, 1) : NULL;
    if (!status && bytes && !workspace)
        return gc_fail_memory(error, "the benchmark");
    for (int run = -1; run < t->runs && !status; run++) {
        const double begin = gc_now();
        status = gpuconv_arrays_run(arrays, job, workspace, bytes, NULL, error);
        if (run >= 0)
            t->seconds[run] = gc_now() - begin;
        if (!status && gc_cancelled())
            status = gc_fail_cancelled(error, "the benchmark");
    }
    free(workspace);
    return status;
}

gpuconv_status gc_cpu_time_rows(const gpuconv_config *config, const gc_rows_timing *t, gpuconv_error *error) {
    const int64_t row = t->signal.frames * gc_job_sample_bytes(t->type);
    gpuconv_arrays *arrays = NULL;
    char *signal = repeat(&t->signal, t->type), *response = repeat(&t->response, t->type);
    char *output = gc_calloc(t->signal.rows, row);
    gpuconv_status status = signal && response && output ? gpuconv_arrays_new_cpu(config->threads, &arrays, error)
                                                         : gc_fail_memory(error, "the benchmark");
    if (!status) {
        const gpuconv_arrays_job job = gc_timed_job(t, signal, response, output);
        memset(output, 0xff, (size_t)(t->signal.rows * row)); /* NaN */
        status = run_job(arrays, &job, t, error);
    }
    for (int i = 0; i < t->checks && !status; i++)
        memcpy((char *)t->output + i * row, output + t->checked[i] * row, (size_t)row);
    gpuconv_arrays_free(arrays);
    free(signal);
    free(response);
    free(output);
    return status;
}
