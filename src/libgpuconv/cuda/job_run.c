/* Jobs on the caller's device memory: the place, the executor's table, and jobs whose transform is on the chip. */
#include "job.h"

#include "cuda_device.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <math.h>
#include <stdlib.h>

/* ---- The object of a device -------------------------------------------------------------------------------------- */

static const float2 *make_table(gc_cuda_arrays *c, gc_job_transform t) {
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
static cudaError_t init(gc_cuda_arrays *c) {
    gc_cuda_resources_init(&c->resources, c->base.device);
    GC_CUDA_TRY(c->resources.err, cudaFree(NULL)); /* creates the context in older runtimes */
    GC_CUDA_TRY(c->resources.err, gc_cuda_read_device(c->base.device, &c->figures));
    c->costs = gc_costs_of_cuda(&c->figures);
    c->figures.memory = HUGE_VAL; /* workspaces are the caller's */
    GC_CUDA_TRY(c->resources.err, gck_chip_load((int)c->figures.shared_memory));
    GC_CUDA_TRY(c->resources.err, gck_3pass_load((int)c->figures.shared_memory));
    GC_CUDA_TRY(c->resources.err, gck_job_direct_load());
    GC_CUDA_TRY(c->resources.err, gck_move_load());
    for (int i = 0; i < GCK_CHIP_SIZES; i++)
        c->chip[i] = make_table(c, (gc_job_transform){GC_JOB_CHIP, i});
    for (int i = 0; i < GCK_3PASS_SIZES; i++)
        c->three[i] = make_table(c, (gc_job_transform){GC_JOB_3PASS, i});
    return c->resources.err;
}

static void free_arrays(gpuconv_arrays *arrays) {
    gc_cuda_resources_free(&((gc_cuda_arrays *)arrays)->resources);
    free(arrays);
}

static gpuconv_status open_arrays(int device, gpuconv_arrays **arrays, gpuconv_error *error) {
    int current = 0;
    const int count = gc_cuda_count_devices(error);
    if (count == 0)
        return GPUCONV_ERROR_DEVICE;
    gpuconv_status status = gc_cuda_check(error, device, cudaGetDevice(&current));
    if (status)
        return status;
    if (device >= count)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "device is %d; use 0 to %d, or -1 for the current one", device,
                       count - 1);
    gc_cuda_arrays *c = gc_calloc(1, sizeof *c);
    if (!c)
        return gc_fail_memory(error, "the tables of a device");
    c->base = (gpuconv_arrays){&gc_rows_cuda, device < 0 ? current : device};
    const cudaError_t err = init(c);
    status = err == cudaErrorMemoryAllocation ? gc_fail_memory(error, "the tables of a device")
                                              : gc_cuda_check(error, c->base.device, err);
    (void)cudaSetDevice(current);
    if (status)
        free_arrays(&c->base);
    else
        *arrays = &c->base;
    return status;
}

const float2 *gc_job_twiddles(const gc_cuda_arrays *cuda, gc_job_transform t) {
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

gck_rows gc_job_rows(const gpuconv_rows *a) {
    return (gck_rows){.data = a->data,
                      .frames = a->frames,
                      .stride = a->stride,
                      .step = 1,
                      .starts = a->starts,
                      .lengths = a->lengths,
                      .sample = a->type == GPUCONV_SAMPLE_F32   ? GCK_F32
                                : a->type == GPUCONV_SAMPLE_F16 ? GCK_F16
                                                                : GCK_BF16};
}

gck_sharing gc_job_sharing(const gc_job_shape *s) {
    return (gck_sharing){.rows = (int)s->rows,
                         .group = (int)s->group,
                         .responses = (int)gc_min(s->responses, (s->rows + s->group - 1) / s->group)};
}

gpuconv_status gc_job_prepare(const gc_cuda_arrays *cuda, const gpuconv_arrays_job *job, const gc_job_transform *only,
                              gc_job_shape *shape, gc_job_plan *plan, gpuconv_error *error) {
    const gc_cuda_responses *r = gc_job_prepared(job);
    const gpuconv_status status = gc_job_check(&cuda->base, job, shape, error);
    if (status)
        return status;
    const bool kept = r && job->operation != GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    gc_problem problem;
    gc_job_problem(shape, kept, !kept || r->samples, kept ? &r->transform : only, &problem);
    gc_job_plan_recall(&cuda->figures, &cuda->costs, &problem, plan);
    return GPUCONV_OK;
}

static gpuconv_status workspace(const gpuconv_arrays *arrays, const gpuconv_arrays_job *job, size_t *bytes,
                                gpuconv_error *error) {
    gc_job_shape shape;
    gc_job_plan p = {0};
    const gpuconv_status status = gc_job_prepare((const gc_cuda_arrays *)arrays, job, NULL, &shape, &p, error);
    *bytes = (size_t)p.bytes;
    return status;
}

static gpuconv_status plan(const gpuconv_arrays *arrays, const gpuconv_arrays_job *job, char *text, size_t size,
                           gpuconv_error *error) {
    static const char *const names[] = {
        [GC_JOB_3PASS] = "overlap-save in three kernels", [GC_JOB_CHIP] = "overlap-save", [GC_JOB_DIRECT] = "direct"};
    gc_job_shape shape;
    gc_job_plan p;
    const gpuconv_status status = gc_job_prepare((const gc_cuda_arrays *)arrays, job, NULL, &shape, &p, error);
    if (!status)
        gc_format(text, size,
                  "%s: transforms of %lld points, %lld segments of %lld frames, a workspace of %.1f MB; %.3g ms",
                  names[p.transform.kind], (long long)p.points, (long long)p.segments, (long long)p.hop,
                  (double)p.bytes * 1e-6, p.seconds * 1e3);
    return status;
}

static cudaError_t run_gradient(const gc_cuda_arrays *cuda, const gpuconv_arrays_job *job, const gc_job_shape *s,
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

static cudaError_t run_direct(const gpuconv_arrays_job *job, const gc_job_shape *s, const gc_job_plan *p,
                              void *workspace, cudaStream_t stream) {
    const bool convolve = job->operation == GPUCONV_ARRAYS_CONVOLVE,
               by_response = job->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    const gc_cuda_responses *kept = by_response ? NULL : gc_job_prepared(job);
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

cudaError_t gc_job_run(const gc_cuda_arrays *cuda, const gpuconv_arrays_job *job, const gc_job_shape *s,
                       const gc_job_plan *p, void *workspace, cudaStream_t stream) {
    const bool convolve = job->operation == GPUCONV_ARRAYS_CONVOLVE;
    if (p->transform.kind == GC_JOB_DIRECT)
        return run_direct(job, s, p, workspace, stream);
    if (p->transform.kind == GC_JOB_3PASS)
        return gc_job_run_chunks(cuda, job, s, p, workspace, stream);
    if (job->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE)
        return run_gradient(cuda, job, s, p, workspace, stream);
    const gck_chip_job c = {.source = gc_job_rows(convolve ? &job->signal : &job->output),
                            .response = gc_job_rows(&job->response),
                            .target = {gc_job_rows(convolve ? &job->output : &job->signal), job->accumulate},
                            .sharing = gc_job_sharing(s),
                            .spectra = job->prepared ? gc_job_prepared(job)->spectra : NULL,
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

gpuconv_status gc_job_run_with(const gc_cuda_arrays *cuda, const gpuconv_arrays_job *job, const gc_job_transform *only,
                               void *workspace, size_t bytes, cudaStream_t stream, gpuconv_error *error) {
    gc_job_shape shape;
    gc_job_plan plan;
    gpuconv_status status = gc_job_prepare(cuda, job, only, &shape, &plan, error);
    if (!status)
        status = gc_job_check_pointers(job, error);
    if (!status)
        status = gc_job_check_device(cuda->base.device, error);
    if (status)
        return status;
    if (bytes < (size_t)plan.bytes || (plan.bytes && !workspace))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "workspace has %zu bytes%s; the job needs %lld", bytes,
                       workspace ? "" : " and is NULL", (long long)plan.bytes);
    if ((uintptr_t)workspace % 256)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "workspace is %p; use an address aligned to 256 bytes",
                       workspace);
    return gc_cuda_check(error, cuda->base.device, gc_job_run(cuda, job, &shape, &plan, workspace, stream));
}

static gpuconv_status run(gpuconv_arrays *arrays, const gpuconv_arrays_job *job, void *workspace, size_t bytes,
                          struct CUstream_st *stream, gpuconv_error *error) {
    return gc_job_run_with((const gc_cuda_arrays *)arrays, job, NULL, workspace, bytes, stream, error);
}

const gc_rows_executor gc_rows_cuda = {
    .open = open_arrays,
    .free = free_arrays,
    .workspace = workspace,
    .run = run,
    .plan = plan,
    .new_responses = gc_job_new_responses,
    .route_responses = gc_job_route_responses,
    .update_responses = gc_job_update_responses,
    .responses_bytes = gc_job_responses_bytes,
    .free_responses = gc_job_free_responses,
    .new_streamer = gc_job_new_streamer,
    .process = gc_job_process,
    .reset = gc_job_reset,
    .free_streamer = gc_job_free_streamer,
};
