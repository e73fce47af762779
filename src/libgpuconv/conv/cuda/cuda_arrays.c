/* The place of arrays on a device, and their convolutions: checks, the plan, and the launches of its algorithm. */
#include "cuda_arrays.h"

#include "cuda_algorithm.h"
#include "cuda_device.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <math.h>
#include <stdlib.h>

/* ---- Places ------------------------------------------------------------------------------------------------------ */

/* Loads the kernels of an algorithm and makes the tables of the sizes that the device has. Returns the first error. */
static cudaError_t init_algorithm(gc_cuda_arrays *c, const gc_cuda_rows *a) {
    gc_cuda_resources *r = &c->resources;
    GC_CUDA_TRY(r->err, a->load((int)c->figures.shared_memory));
    for (int log2 = 1; log2 < (int)sizeof a->number; log2++) {
        const int size = gc_rows_size(a, &c->figures, INT64_C(1) << log2);
        if (size < 0 || c->twiddles[a->table + size])
            continue;
        const int64_t count = a->query(size).twiddles;
        float2 *table = gc_cuda_host_table(r, count, sizeof *table);
        if (table)
            a->twiddles(size, table);
        c->twiddles[a->table + size] = gc_cuda_upload(r, table, count * (int64_t)sizeof *table);
        free(table);
    }
    return r->err;
}

static cudaError_t init(gc_cuda_arrays *c) {
    gc_cuda_resources_init(&c->resources, c->base.device);
    GC_CUDA_TRY(c->resources.err, cudaFree(NULL)); /* creates the context in older runtimes */
    GC_CUDA_TRY(c->resources.err, gc_cuda_read_device(c->base.device, &c->figures));
    c->costs = gc_costs_of_cuda(&c->figures);
    c->figures.memory = HUGE_VAL; /* workspaces are the caller's */
    int tensor_cores = 0;         /* kernels that were compiled for an older architecture have no code for them */
    GC_CUDA_TRY(c->resources.err, gck_dense_uses_tensor_cores(&tensor_cores));
    c->figures.tensor_cores = c->figures.tensor_cores && tensor_cores;
    for (const gc_algorithm *const *a = gc_cuda_algorithms; *a; a++)
        if ((*a)->kind == GC_ROWS)
            GC_CUDA_TRY(c->resources.err, init_algorithm(c, (const gc_cuda_rows *)*a));
    return GC_CUDA_TRY(c->resources.err, gck_move_load());
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

gpuconv_status gc_cuda_check_current(int device, gpuconv_error *error) {
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

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

gck_rows gc_cuda_kernel_rows(const gpuconv_rows *a) {
    return (gck_rows){.data = a->data,
                      .frames = a->frames,
                      .stride = a->stride,
                      .step = (int)a->step,
                      .starts = a->starts,
                      .lengths = a->lengths,
                      .sample = a->type == GPUCONV_SAMPLE_F32   ? GCK_F32
                                : a->type == GPUCONV_SAMPLE_F16 ? GCK_F16
                                                                : GCK_BF16};
}

cudaError_t gc_cuda_move(const gpuconv_rows *from, const gpuconv_rows *to, cudaStream_t stream) {
    const gck_rows a = gc_cuda_kernel_rows(from);
    const gck_target b = {gc_cuda_kernel_rows(to), 0};
    return to->frames ? gck_move(&a, NULL, &b, to->rows, to->frames, stream) : cudaSuccess;
}

gck_gates gc_cuda_gates(const gpuconv_arrays_job *job) {
    const gck_rows pre = gc_cuda_kernel_rows_if(job->pre), post = gc_cuda_kernel_rows_if(job->post);
    return job->operation == GPUCONV_ARRAYS_CONVOLVE ? (gck_gates){.source = pre,
                                                                   .target = post,
                                                                   .skip = gc_cuda_kernel_rows(&job->signal),
                                                                   .factor = job->skip}
                                                     : (gck_gates){.source = post,
                                                                   .target = pre,
                                                                   .skip = gc_cuda_kernel_rows(&job->output),
                                                                   .skip_gate = post,
                                                                   .factor = job->skip,
                                                                   .skip_last = 1};
}

gck_sharing gc_cuda_sharing(const gc_job_shape *s) {
    return (gck_sharing){.rows = (int)s->rows,
                         .group = (int)s->group,
                         .responses = (int)gc_min(s->responses, gc_divide_up(s->rows, s->group))};
}

gpuconv_status gc_cuda_plan(const gc_cuda_arrays *cuda, const gpuconv_arrays_job *job, gc_cuda_call *call,
                            gpuconv_error *error) {
    call->cuda = cuda;
    call->job = job;
    call->prepared = (const gc_cuda_responses *)job->prepared;
    const gc_cuda_responses *kept = job->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE ? NULL : call->prepared;
    const gc_problem problem = {
        .kind = GC_ROWS,
        .rows = {.shape = call->shape,
                 .spectra = kept,
                 .samples = !kept || kept->samples,
                 .required_algorithm = kept ? &kept->plan.algorithm->row : cuda->required_algorithm,
                 .required_points = kept ? 2 * kept->plan.points : cuda->required_points}};
    gc_rows_plan_make(&cuda->figures, &cuda->costs, &problem, &call->plan);
    return call->plan.algorithm
               ? GPUCONV_OK
               : gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                         "job.hop is %lld, which makes more than 2^29 blocks; use fewer rows at a time",
                         (long long)job->hop);
}

gpuconv_status gc_cuda_prepare(const gc_cuda_arrays *cuda, const gpuconv_arrays_job *job, gc_cuda_call *call,
                               gpuconv_error *error) {
    const gpuconv_status status = gc_job_check(&cuda->base, job, &call->shape, error);
    return status ? status : gc_cuda_plan(cuda, job, call, error);
}

static gpuconv_status plan(const gpuconv_arrays_job *job, gpuconv_arrays_plan *p, gpuconv_error *error) {
    gc_cuda_call call = {.shape = p->shape};
    const gpuconv_status status = gc_cuda_plan((const gc_cuda_arrays *)p->arrays, job, &call, error);
    p->how = call.plan;
    return status;
}

static gpuconv_status describe(const gpuconv_arrays_job *job, gpuconv_arrays_plan *plan, gpuconv_error *error) {
    const gc_rows_plan *p = &plan->how;
    (void)job;
    (void)error;
    gc_format(plan->reason, sizeof plan->reason,
              "%s: transforms of %lld points, %lld segments of %lld frames, a workspace of %.1f MB; %.3g ms",
              p->algorithm->row.name, (long long)p->points, (long long)p->segments, (long long)p->hop,
              (double)p->bytes * 1e-6, p->seconds * 1e3);
    return GPUCONV_OK;
}

/* Returns contiguous floats in the workspace for the rows of an array. */
static gpuconv_rows floats_for(const gpuconv_rows *array, char **workspace) {
    gpuconv_rows made = gpuconv_rows_of_floats((float *)(void *)*workspace, array->rows, array->frames);
    made.lengths = array->lengths;
    *workspace += gc_round_up(array->rows * array->frames * (int64_t)sizeof(float), 256);
    return made;
}

/* Queues a call whose gates take passes of their own: the gated sources are copied to the workspace, and the target
 * comes from there. */
static cudaError_t run_gated(const gc_cuda_call *call, cudaStream_t stream) {
    const gpuconv_arrays_job *job = call->job;
    gpuconv_arrays_job plain = *job;
    gc_cuda_call inner = *call;
    char *workspace = (char *)call->workspace + call->plan.gates_at;
    const gck_gates none = {.factor = NULL}, all = gc_cuda_gates(job);
    const gpuconv_rows *array[] = {&job->signal, &job->output}, *gate[] = {job->pre, job->post};
    gpuconv_rows *own[] = {&plain.signal, &plain.output};
    cudaError_t err = cudaSuccess;
    plain.pre = plain.post = NULL;
    plain.skip = NULL;
    inner.job = &plain;
    for (int i = 0; i < 2; i++) {
        const bool written = array[i] == gc_job_written(job);
        if (!gate[i] && !(written && job->skip))
            continue;
        *own[i] = floats_for(array[i], &workspace);
        if (written) {
            plain.accumulate = false;
            continue;
        }
        const gck_rows from = gc_cuda_kernel_rows(array[i]);
        const gck_target to = {gc_cuda_kernel_rows(own[i]), 0};
        gck_gates gates = none;
        gates.source = gc_cuda_kernel_rows(gate[i]);
        GC_CUDA_TRY(err, gck_move(&from, &gates, &to, array[i]->rows, array[i]->frames, stream));
    }
    GC_CUDA_TRY(err, call->plan.algorithm->run(&inner, stream));
    const gpuconv_rows *made = gc_job_written(&plain), *target = gc_job_written(job);
    if (made->data == target->data)
        return err;
    const gck_rows from = gc_cuda_kernel_rows(made);
    const gck_target to = {gc_cuda_kernel_rows(target), job->accumulate};
    gck_gates gates = all;
    gates.source = none.source;
    return GC_CUDA_TRY(err, gck_move(&from, &gates, &to, target->rows, target->frames, stream));
}

static gpuconv_status run(const gpuconv_arrays_plan *plan, const gpuconv_arrays_job *job, void *workspace, size_t bytes,
                          struct CUstream_st *stream, gpuconv_error *error) {
    const int device = plan->arrays->device;
    const gc_cuda_call call = {.cuda = (const gc_cuda_arrays *)plan->arrays,
                               .job = job,
                               .prepared = (const gc_cuda_responses *)job->prepared,
                               .shape = plan->shape,
                               .plan = plan->how,
                               .workspace = workspace};
    const gpuconv_status status = gc_cuda_check_current(device, error);
    if (status)
        return status;
    const int64_t needed = call.plan.bytes;
    if (bytes < (size_t)needed || (needed && !workspace))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "workspace has %zu bytes%s; the job needs %lld", bytes,
                       workspace ? "" : " and is NULL", (long long)needed);
    if ((uintptr_t)workspace % 256)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "workspace is %p; use an address aligned to 256 bytes",
                       workspace);
    return gc_cuda_check(error, device,
                         call.plan.gates_at ? run_gated(&call, stream) : call.plan.algorithm->run(&call, stream));
}

const gc_rows_executor gc_rows_cuda = {
    .open = open_arrays,
    .free = free_arrays,
    .plan = plan,
    .describe = describe,
    .run = run,
    .new_responses = gc_cuda_new_responses,
    .route_responses = gc_cuda_route_responses,
    .update_responses = gc_cuda_update_responses,
    .responses_bytes = gc_cuda_responses_bytes,
    .free_responses = gc_cuda_free_responses,
    .new_streamer = gc_cuda_new_streamer,
    .process = gc_cuda_process,
    .reset = gc_cuda_reset,
    .free_streamer = gc_cuda_free_streamer,
};
