/* Jobs on the caller's device memory: the object of a device, checks, and jobs whose transform is on the chip. */
#include "job.h"

#include "cuda_device.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <stdlib.h>

/* Transforms of this many bytes fill the device several times over; more only take memory. */
enum { CHUNK_BYTES = 256 << 20 };

/* ---- The object of a device -------------------------------------------------------------------------------------- */

static cudaError_t read_figures(int device, gc_job_device *d) {
    int clock = 0, bus = 0, cycles = 0;
    gck_device offered = {0};
    cudaError_t err = gck_device_query(device, &offered);
    d->multiprocessors = offered.multiprocessors;
    d->shared_block = offered.shared_bytes;
    GC_CUDA_TRY(err, cudaDeviceGetAttribute(&d->threads, cudaDevAttrMaxThreadsPerMultiProcessor, device));
    GC_CUDA_TRY(err, cudaDeviceGetAttribute(&d->shared, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
    GC_CUDA_TRY(err, cudaDeviceGetAttribute(&cycles, cudaDevAttrClockRate, device));
    GC_CUDA_TRY(err, cudaDeviceGetAttribute(&clock, cudaDevAttrMemoryClockRate, device));
    GC_CUDA_TRY(err, cudaDeviceGetAttribute(&bus, cudaDevAttrGlobalMemoryBusWidth, device));
    /* Two transfers per clock of 1 kHz, 85 % of them used. */
    d->bandwidth = clock > 0 && bus > 0 ? 0.85 * 2e3 * clock * bus / 8 : 5e11;
    d->lanes = offered.architecture == 75 || offered.architecture == 80 ? 64 : 128;
    d->clock = cycles > 0 ? 1e3 * cycles : 1.5e9;
    d->chunk_bytes = CHUNK_BYTES;
    return err;
}

static const float2 *make_table(gpuconv_cuda *c, gc_job_transform t) {
    const int64_t count = t.kind == GC_JOB_CHIP ? gck_chip_query(t.size).twiddles : gck_3pass_query(t.size).twiddles;
    if (c->resources.err || !gc_job_transform_fits(&c->figures, t))
        return NULL;
    float2 *table = gc_calloc(count, (int64_t)sizeof *table);
    if (!table) {
        c->resources.err = cudaErrorMemoryAllocation;
        return NULL;
    }
    if (t.kind == GC_JOB_CHIP)
        gck_chip_twiddles(t.size, table);
    else
        gck_3pass_twiddles(t.size, table);
    const float2 *made = gc_cuda_upload(&c->resources, table, count * (int64_t)sizeof *table);
    free(table);
    return made;
}

/* Loads the kernels and makes the tables. Returns the first error. */
static cudaError_t init(gpuconv_cuda *c) {
    gc_cuda_resources_init(&c->resources, c->device);
    GC_CUDA_TRY(c->resources.err, cudaFree(NULL)); /* creates the context in older runtimes */
    GC_CUDA_TRY(c->resources.err, read_figures(c->device, &c->figures));
    GC_CUDA_TRY(c->resources.err, gck_chip_load(c->figures.shared_block));
    GC_CUDA_TRY(c->resources.err, gck_3pass_load(c->figures.shared_block));
    GC_CUDA_TRY(c->resources.err, gck_job_direct_load());
    GC_CUDA_TRY(c->resources.err, gck_move_load());
    for (int i = 0; i < GCK_CHIP_SIZES; i++)
        c->chip[i] = make_table(c, (gc_job_transform){GC_JOB_CHIP, i});
    for (int i = 0; i < GCK_3PASS_SIZES; i++)
        c->three[i] = make_table(c, (gc_job_transform){GC_JOB_3PASS, i});
    return c->resources.err;
}

gpuconv_status gpuconv_cuda_new(int device, gpuconv_cuda **cuda, gpuconv_error *error) {
    int current = 0;
    if (!gc_begin(cuda, cuda, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    const int count = gc_cuda_count_devices(error);
    if (count == 0)
        return GPUCONV_ERROR_DEVICE;
    gpuconv_status status = gc_cuda_check(error, device, cudaGetDevice(&current));
    if (status)
        return status;
    if (device >= count)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "device is %d; use 0 to %d, or -1 for the current one", device,
                       count - 1);
    gpuconv_cuda *c = gc_calloc(1, sizeof *c);
    if (!c)
        return gc_fail_memory(error, "the tables of a device");
    c->device = device < 0 ? current : device;
    const cudaError_t err = init(c);
    status = err == cudaErrorMemoryAllocation ? gc_fail_memory(error, "the tables of a device")
                                              : gc_cuda_check(error, c->device, err);
    (void)cudaSetDevice(current);
    if (status) {
        gpuconv_cuda_free(c);
        return status;
    }
    *cuda = c;
    return GPUCONV_OK;
}

int gpuconv_cuda_device(const gpuconv_cuda *cuda) {
    return cuda ? cuda->device : -1;
}

void gpuconv_cuda_free(gpuconv_cuda *cuda) {
    int current = -1;
    if (!cuda)
        return;
    (void)cudaGetDevice(&current);
    gc_cuda_resources_free(&cuda->resources);
    free(cuda);
    if (current >= 0)
        (void)cudaSetDevice(current);
}

const float2 *gc_job_twiddles(const gpuconv_cuda *cuda, gc_job_transform t) {
    return t.kind == GC_JOB_CHIP ? cuda->chip[t.size] : cuda->three[t.size];
}

gpuconv_status gc_job_check_device(int device, gpuconv_error *error) {
    int current = -1;
    const cudaError_t err = cudaGetDevice(&current);
    if (err)
        return gc_cuda_check(error, device, err);
    if (current != device)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "the current device is %d; make device %d current, to which the object belongs", current,
                       device);
    return GPUCONV_OK;
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

gck_rows gc_job_rows(const gpuconv_cuda_array *a) {
    return (gck_rows){.data = a->data,
                      .frames = a->frames,
                      .stride = a->stride,
                      .step = 1,
                      .starts = a->starts,
                      .lengths = a->lengths,
                      .sample = a->type == GPUCONV_CUDA_F32   ? GCK_F32
                                : a->type == GPUCONV_CUDA_F16 ? GCK_F16
                                                              : GCK_BF16};
}

gck_sharing gc_job_sharing(const gc_job_shape *s) {
    return (gck_sharing){.rows = (int)s->rows,
                         .group = (int)s->group,
                         .responses = (int)gc_min(s->responses, (s->rows + s->group - 1) / s->group)};
}

gpuconv_status gc_job_prepare(const gpuconv_cuda *cuda, const gpuconv_cuda_job *job, const gc_job_transform *only,
                              gc_job_shape *shape, gc_job_plan *plan, gpuconv_error *error) {
    const gpuconv_cuda_responses *r = job->prepared;
    gpuconv_status status =
        gc_job_check(job, r ? r->taps : 0, r ? r->rows : 0, r ? r->routes : (gc_job_routes){0}, shape, error);
    if (status)
        return status;
    if (r && r->device != cuda->device)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "job.prepared is on device %d, the job on device %d", r->device,
                       cuda->device);
    const bool kept = r && job->operation != GPUCONV_CUDA_GRADIENT_RESPONSE;
    gc_job_plan_recall(&cuda->figures, shape, kept ? &r->transform : only, kept, kept && r->samples, plan);
    return GPUCONV_OK;
}

gpuconv_status gpuconv_cuda_workspace(const gpuconv_cuda *cuda, const gpuconv_cuda_job *job, size_t *bytes,
                                      gpuconv_error *error) {
    gpuconv_cuda_job own;
    gc_job_shape shape;
    gc_job_plan plan;
    if (!gc_begin(bytes, cuda, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_status status = gc_job_read(job, &own, error);
    if (!status)
        status = gc_job_prepare(cuda, &own, NULL, &shape, &plan, error);
    if (!status)
        *bytes = (size_t)plan.bytes;
    return status;
}

static cudaError_t run_gradient(const gpuconv_cuda *cuda, const gpuconv_cuda_job *job, const gc_job_shape *s,
                                const gc_job_plan *p, char *workspace, cudaStream_t stream) {
    const int64_t scratch = gc_round_up(p->blocks * 2 * p->points * (int64_t)sizeof(float2), 256);
    const gck_chip_gradient g = {.x = gc_job_rows(&job->signal),
                                 .g = gc_job_rows(&job->output),
                                 .target = {gc_job_rows(&job->response), job->accumulate},
                                 .sharing = gc_job_sharing(s),
                                 .gain = job->gain,
                                 .taps = s->taps,
                                 .shift = p->shift,
                                 .segments = (int)p->segments,
                                 .hop = (int)p->hop,
                                 .splits = (int)p->splits,
                                 .blocks = (unsigned)p->blocks,
                                 .twiddles = gc_job_twiddles(cuda, p->transform),
                                 .scratch = (float2 *)(void *)workspace,
                                 .partial = (float *)(void *)(workspace + scratch)};
    return gck_chip_gradient_response(p->transform.size, &g, stream);
}

static cudaError_t run_direct(const gpuconv_cuda_job *job, const gc_job_shape *s, const gc_job_plan *p, void *workspace,
                              cudaStream_t stream) {
    const bool convolve = job->operation == GPUCONV_CUDA_CONVOLVE,
               by_response = job->operation == GPUCONV_CUDA_GRADIENT_RESPONSE;
    const gpuconv_cuda_responses *kept = by_response ? NULL : job->prepared;
    const gck_rows samples = {.data = kept ? kept->samples : NULL, .frames = s->taps, .stride = s->taps, .step = 1};
    const gck_job_direct d = {.source = gc_job_rows(convolve ? &job->signal : &job->output),
                              .factor = kept ? samples : gc_job_rows(by_response ? &job->signal : &job->response),
                              .target = {gc_job_rows(gc_job_written(job)), job->accumulate},
                              .sharing = gc_job_sharing(s),
                              .gain = job->gain,
                              .terms = (int)(by_response ? s->signal_frames : s->taps),
                              .shift = (int)(convolve ? s->offset : -s->offset),
                              .reverse = convolve,
                              .groups = p->groups,
                              .parts = p->term_parts,
                              .chunk = p->chunk,
                              .each = p->each,
                              .tiles = (int)p->tiles,
                              .splits = (int)p->splits,
                              .partial = workspace};
    return by_response ? gck_job_direct_gradient(&d, stream) : gck_job_direct_convolve(&d, stream);
}

cudaError_t gc_job_run(const gpuconv_cuda *cuda, const gpuconv_cuda_job *job, const gc_job_shape *s,
                       const gc_job_plan *p, void *workspace, cudaStream_t stream) {
    const bool convolve = job->operation == GPUCONV_CUDA_CONVOLVE;
    if (p->transform.kind == GC_JOB_DIRECT)
        return run_direct(job, s, p, workspace, stream);
    if (p->transform.kind == GC_JOB_3PASS)
        return gc_job_run_chunks(cuda, job, s, p, workspace, stream);
    if (job->operation == GPUCONV_CUDA_GRADIENT_RESPONSE)
        return run_gradient(cuda, job, s, p, workspace, stream);
    const gck_chip_job c = {.source = gc_job_rows(convolve ? &job->signal : &job->output),
                            .response = gc_job_rows(&job->response),
                            .target = {gc_job_rows(convolve ? &job->output : &job->signal), job->accumulate},
                            .sharing = gc_job_sharing(s),
                            .spectra = job->prepared ? job->prepared->spectra : NULL,
                            .gain = job->gain,
                            .taps = s->taps,
                            .shift = p->shift,
                            .segments = (int)p->segments,
                            .hop = (int)p->hop,
                            .lo = (int)p->lo,
                            .reflect = !convolve,
                            .splits = (int)p->splits,
                            .blocks = (unsigned)p->blocks,
                            .twiddles = gc_job_twiddles(cuda, p->transform),
                            .scratch = workspace};
    return gck_chip_convolve(p->transform.size, &c, stream);
}

gpuconv_status gc_job_run_with(const gpuconv_cuda *cuda, const gpuconv_cuda_job *job, const gc_job_transform *only,
                               void *workspace, size_t bytes, cudaStream_t stream, gpuconv_error *error) {
    gc_job_shape shape;
    gc_job_plan plan;
    gpuconv_status status = gc_job_prepare(cuda, job, only, &shape, &plan, error);
    if (!status)
        status = gc_job_check_pointers(job, error);
    if (!status)
        status = gc_job_check_device(cuda->device, error);
    if (status)
        return status;
    if (bytes < (size_t)plan.bytes || (plan.bytes && !workspace))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "workspace has %zu bytes%s; the job needs %lld", bytes,
                       workspace ? "" : " and is NULL", (long long)plan.bytes);
    if ((uintptr_t)workspace % 256)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "workspace is %p; use an address aligned to 256 bytes",
                       workspace);
    return gc_cuda_check(error, cuda->device, gc_job_run(cuda, job, &shape, &plan, workspace, stream));
}

gpuconv_status gpuconv_cuda_run(const gpuconv_cuda *cuda, const gpuconv_cuda_job *job, void *workspace, size_t bytes,
                                struct CUstream_st *stream, gpuconv_error *error) {
    gpuconv_cuda_job own;
    gpuconv_status status = cuda ? gc_job_read(job, &own, error) : gc_fail_null(error, __func__);
    return status ? status : gc_job_run_with(cuda, &own, NULL, workspace, bytes, stream, error);
}
