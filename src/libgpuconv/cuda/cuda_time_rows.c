/* Times convolutions of rows in device memory (gpuconv_arrays.h), without the bus. */
#include "cuda_arrays.h"
#include "cuda_time_plan.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/engine/backend.h"

/* Copies of the arrays, used in turn, so that they are not in the cache. */
enum { COPIES = 3 };

typedef struct rows_run {
    gpuconv_arrays *arrays;
    gpuconv_arrays_job job[COPIES];
    void *workspace;
    size_t bytes;
    int copies, next;
    gpuconv_error error; /* of gpuconv_arrays_run */
} rows_run;

static cudaError_t launch(void *context, cudaStream_t stream) {
    rows_run *r = context;
    const int copy = r->next++ % r->copies;
    return gpuconv_arrays_run(r->arrays, &r->job[copy], r->workspace, r->bytes, stream, &r->error) ? cudaErrorUnknown
                                                                                                   : cudaSuccess;
}

/* Allocates rows on the device. Returns NULL after an error. */
static void *upload(gc_cuda_timer *t, const gc_timed_rows *rows, gpuconv_sample_type type) {
    const int64_t row = rows->frames * gc_job_sample_bytes(type), block = rows->distinct * row;
    char *at = gc_cuda_timer_memory(t, rows->rows * row, 0);
    for (int64_t i = 0; i < rows->rows && at && !t->resources.err; i += rows->distinct)
        gc_cuda_timer_copy(t, at + i * row, i ? at : (const char *)rows->samples, gc_min(block, (rows->rows - i) * row),
                           i ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice);
    return t->resources.err ? NULL : at;
}

/* Allocates and fills the copies of the arrays. */
static void make_copies(gc_cuda_timer *t, const gc_rows_timing *timing, rows_run *r, int64_t cache) {
    const int64_t bytes = timing->signal.rows * timing->signal.frames * gc_job_sample_bytes(timing->type);
    r->copies = bytes > 2 * cache ? 1 : COPIES;
    for (int c = 0; c < r->copies && !t->resources.err; c++)
        r->job[c] = gc_timed_job(timing, upload(t, &timing->signal, timing->type),
                                 upload(t, &timing->response, timing->type), gc_cuda_timer_memory(t, bytes, 0xff));
}

gpuconv_status gc_cuda_time_rows(const gpuconv_config *config, const gc_rows_timing *timing, gpuconv_error *error) {
    gc_device device;
    gc_cuda_timer t;
    rows_run r = {0};
    gpuconv_status status = gc_backend_cuda.probe(config, &device, error);
    if (!status)
        status = gpuconv_arrays_new_cuda(device.number, &r.arrays, error);
    if (status)
        return status;
    gc_cuda_timer_init(&t, device.number);
    make_copies(&t, timing, &r, device.cache);
    if (!t.resources.err)
        status = gpuconv_arrays_workspace(r.arrays, &r.job[0], &r.bytes, error);
    if (!status && r.bytes)
        r.workspace = gc_cuda_timer_memory(&t, (int64_t)r.bytes, 0xff);
    if (!status)
        gc_cuda_timer_run(&t, launch, &r, timing->runs, timing->seconds);
    const int64_t row = timing->signal.frames * gc_job_sample_bytes(timing->type);
    for (int i = 0; i < timing->checks && !status; i++)
        gc_cuda_timer_copy(&t, (char *)timing->output + i * row,
                           (char *)r.job[i % r.copies].output.data + timing->checked[i] * row, row,
                           cudaMemcpyDeviceToHost);
    const gpuconv_status ended = gc_cuda_timer_end(&t, status || r.error.status ? NULL : error);
    gpuconv_arrays_free(r.arrays);
    if (!status && r.error.status && error)
        *error = r.error;
    return status ? status : r.error.status ? r.error.status : ended;
}
