/* Response, tables and scratch on the device, and what a chunk launches. */
#include "cuda_convolver.h"

#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

int64_t gc_cuda_partitions(const gc_schedule *s) {
    return gc_round_up(s->partitions, GCK_PARTITION_STEP);
}

static cudaError_t take(void **pointer, int64_t bytes) {
    return cudaMalloc(pointer, (size_t)gc_max(bytes, 1));
}

/* A new piece of device memory with a copy of host memory; the host side may go as soon as this returns. */
static cudaError_t upload(void **pointer, const void *from, int64_t bytes) {
    cudaError_t failed = take(pointer, bytes);
    return failed ? failed : cudaMemcpy(*pointer, from, (size_t)bytes, cudaMemcpyHostToDevice);
}

static cudaError_t upload_matrix(gc_cuda_convolver *c, const gpuconv_ir *ir) {
    gck_route *route = gc_calloc(ir->routes, sizeof *route);
    int *row = gc_calloc(ir->outputs + 1, sizeof *row);
    cudaError_t failed = route && row ? cudaSuccess : cudaErrorMemoryAllocation;
    if (!failed) {
        c->matrix.single = gc_ir_one_route_each(ir);
        for (int r = 0; r < ir->routes; r++) {
            route[r] = (gck_route){ir->route[r].input, ir->route[r].plane};
            row[ir->route[r].output + 1]++;
        }
        for (int o = 0; o < ir->outputs; o++)
            row[o + 1] += row[o];
        for (int o = 0; o < ir->outputs && c->matrix.single && ir->outputs <= GCK_FEW; o++)
            c->matrix.few[o] = route[o];
        failed = upload((void **)&c->route, route, ir->routes * (int64_t)sizeof *route);
        if (!failed)
            failed = upload((void **)&c->row, row, (ir->outputs + 1) * (int64_t)sizeof *row);
        c->matrix.route = c->route;
        c->matrix.row = c->row;
    }
    c->host_route = route;
    c->matrix.host_route = route;
    free(row);
    return failed;
}

/* exp(-2 pi i m / points), each computed in double precision and rounded once. */
static cudaError_t upload_table(gc_cuda_convolver *c, int64_t points) {
    float2 *table = gc_calloc(points, sizeof *table);
    if (!table)
        return cudaErrorMemoryAllocation;
    for (int64_t m = 0; m < points; m++) {
        double angle = -2 * M_PI * (double)m / (double)points;
        table[m] = (float2){(float)cos(angle), (float)sin(angle)};
    }
    cudaError_t failed = upload((void **)&c->table, table, points * (int64_t)sizeof *table);
    free(table);
    return failed;
}

static cudaError_t upload_tensor_tables(gc_cuda_convolver *c, const gpuconv_ir *ir) {
    const int64_t size = gck_tensor_table_size(ir->frames);
    if (size == 0)
        return cudaSuccess;
    uint2 *table = gc_calloc(ir->planes * size, sizeof *table);
    if (!table)
        return cudaErrorMemoryAllocation;
    for (int p = 0; p < ir->planes; p++)
        gck_tensor_table(gc_ir_plane(ir, p), ir->frames, table + p * size);
    cudaError_t failed = upload((void **)&c->tensor_table, table, ir->planes * size * (int64_t)sizeof *table);
    free(table);
    return failed;
}

static cudaError_t init_partitions(gc_cuda_convolver *c, const gpuconv_plan *plan, cudaStream_t stream) {
    const gpuconv_ir *ir = plan->ir;
    const gc_schedule *s = &plan->schedule;
    int64_t spectrum = s->transform * (int64_t)sizeof(float2);
    c->partitions = gc_cuda_partitions(s);
    c->delay_bytes = ir->inputs * (c->partitions - 1 + c->pairs) * spectrum;
    cudaError_t failed = upload_table(c, s->transform);
    if (!failed)
        failed = take((void **)&c->spectra, ir->planes * c->partitions * spectrum);
    if (!failed)
        failed = gck_spectra(s->transform, c->taps, ir->planes, ir->frames, s->partition, c->partitions, c->table,
                             c->spectra, stream);
    if (!failed)
        failed = take((void **)&c->delay, c->delay_bytes);
    if (!failed)
        failed = cudaMemsetAsync(c->delay, 0, (size_t)c->delay_bytes, stream);
    if (!failed)
        failed = take((void **)&c->sums, ir->outputs * c->pairs * spectrum);
    return failed;
}

static cudaError_t init_overlap_save(gc_cuda_convolver *c, const gpuconv_plan *plan, cudaStream_t stream) {
    const gpuconv_ir *ir = plan->ir;
    const int64_t each = sizeof(float2);
    gck_transform_size size = gck_overlap_save_size(plan->schedule.transform);
    int64_t scratch =
        gc_max(ir->planes, (ir->inputs + ir->outputs) * (plan->chunk / plan->schedule.hop)) * size.scratch;
    float2 *turns = gc_calloc(size.turns, each);
    cudaError_t failed = turns ? cudaSuccess : cudaErrorMemoryAllocation;
    if (!failed) {
        gck_overlap_save_turns(plan->schedule.transform, turns);
        failed = upload((void **)&c->table, turns, size.turns * each);
    }
    free(turns);
    if (!failed)
        failed = take((void **)&c->spectra, ir->planes * size.spectrum * each);
    if (!failed)
        failed = take((void **)&c->sums, scratch * each);
    if (!failed)
        failed = gck_overlap_save_spectra(plan->schedule.transform, c->taps, ir->planes, ir->frames, c->table, c->sums,
                                          c->spectra, stream);
    return failed;
}

cudaError_t gc_cuda_convolver_init(gc_cuda_convolver *c, const gpuconv_plan *plan, int64_t in_stride,
                                   int64_t out_stride, cudaStream_t stream) {
    const gpuconv_ir *ir = plan->ir;
    *c = (gc_cuda_convolver){.schedule = plan->schedule};
    c->host_taps = ir->taps;
    c->matrix.in_stride = in_stride;
    c->matrix.out_stride = out_stride;
    c->matrix.inputs = ir->inputs;
    c->matrix.outputs = ir->outputs;
    cudaError_t failed = upload_matrix(c, ir);
    if (!failed)
        failed = upload((void **)&c->taps, ir->taps, ir->planes * ir->frames * (int64_t)sizeof *ir->taps);
    if (!failed && plan->schedule.algorithm == GPUCONV_ALGORITHM_DIRECT && plan->device.tensor_cores)
        failed = upload_tensor_tables(c, ir);
    if (failed || plan->schedule.algorithm == GPUCONV_ALGORITHM_DIRECT)
        return failed;
    c->pairs = plan->chunk / (2 * plan->schedule.hop);
    failed = plan->schedule.algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE ? init_overlap_save(c, plan, stream)
                                                                        : init_partitions(c, plan, stream);
    return failed;
}

cudaError_t gc_cuda_convolver_run(const gc_cuda_convolver *c, const float *in, float *out, int64_t frames,
                                  cudaStream_t stream) {
    const gc_schedule *s = &c->schedule;
    gck_matrix m = c->matrix;
    m.in = in;
    m.out = out;
    if (s->algorithm == GPUCONV_ALGORITHM_DIRECT)
        return gck_direct(&m, c->taps, c->host_taps, c->tensor_table, s->taps, frames, stream);
    if (s->algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE)
        return gck_overlap_save(&m, s->transform, s->hop, (frames + s->hop - 1) / s->hop, c->table, c->spectra, c->sums,
                                stream);
    /* Partners stand half a chunk apart, so a chunk is always done whole. */
    return gck_partitioned(&m, s->transform, c->pairs, c->partitions, s->partitions, c->table, c->spectra, c->delay,
                           c->sums, stream);
}

void gc_cuda_convolver_free(gc_cuda_convolver *c) {
    free(c->host_route);
    cudaFree(c->route);
    cudaFree(c->row);
    cudaFree(c->taps);
    cudaFree(c->tensor_table);
    cudaFree(c->table);
    cudaFree(c->spectra);
    cudaFree(c->delay);
    cudaFree(c->sums);
    *c = (gc_cuda_convolver){0};
}
