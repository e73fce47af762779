/* The convolution of planar chunks on the device. */
#include "cuda_convolver.h"

#include "libgpuconv/core/memory.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

bool gc_cuda_long_partitions(const gc_schedule *s) {
    return s->algorithm == GPUCONV_ALGORITHM_PARTITIONED && s->transform > GCK_PARTITIONED_POINTS_MAX;
}

int64_t gc_cuda_partitions(const gc_schedule *s) {
    return gc_cuda_long_partitions(s) ? s->partitions : gc_round_up(s->partitions, GCK_PARTITION_STEP);
}

static void upload_matrix(gc_cuda_convolver *c, const gpuconv_ir *ir, gc_cuda_resources *r) {
    gck_route *route = gc_cuda_host_table(r, ir->routes, sizeof *route);
    int *row = gc_cuda_host_table(r, ir->outputs + 1, sizeof *row);
    c->host_routes = route;
    c->matrix.host_route = route;
    if (!r->err) {
        c->matrix.single = gc_ir_one_route_each(ir);
        for (int i = 0; i < ir->routes; i++) {
            route[i] = (gck_route){ir->route[i].input, ir->route[i].plane};
            row[ir->route[i].output + 1]++;
        }
        for (int o = 0; o < ir->outputs; o++)
            row[o + 1] += row[o];
        for (int o = 0; o < ir->outputs && c->matrix.single && ir->outputs <= GCK_INLINE_ROUTES; o++)
            c->matrix.inline_route[o] = route[o];
        c->matrix.route = gc_cuda_upload(r, route, ir->routes * (int64_t)sizeof *route);
        c->matrix.row = gc_cuda_upload(r, row, (ir->outputs + 1) * (int64_t)sizeof *row);
    }
    free(row);
}

/* Uploads the taps' tables for tensor cores. Returns NULL if this length has none. */
static const uint2 *upload_tensor_tables(const gpuconv_ir *ir, gc_cuda_resources *r) {
    const int64_t size = gck_direct_tensor_table_size(ir->frames);
    if (size == 0)
        return NULL;
    uint2 *table = gc_cuda_host_table(r, ir->planes * size, sizeof *table);
    for (int p = 0; table && p < ir->planes; p++)
        gck_direct_tensor_table(gc_ir_plane(ir, p), ir->frames, table + p * size);
    const uint2 *device = gc_cuda_upload(r, table, ir->planes * size * (int64_t)sizeof *table);
    free(table);
    return device;
}

static void init_partitions(gc_cuda_convolver *c, const gpuconv_plan *plan, const gck_responses *responses,
                            gc_cuda_resources *r, cudaStream_t stream) {
    const gpuconv_ir *ir = plan->ir;
    const gc_schedule *s = &plan->schedule;
    gck_partitioning *p = &c->partitioning;
    int64_t spectrum = s->transform * (int64_t)sizeof(float2);
    *p = (gck_partitioning){.points = s->transform,
                            .partition_taps = s->partition,
                            .partitions = gc_cuda_partitions(s),
                            .reach = s->partitions,
                            .pairs = plan->chunk / (2 * s->hop)};
    int64_t delay_bytes = ir->inputs * (p->partitions - 1 + p->pairs) * spectrum;
    p->table = gc_cuda_roots(r, s->transform);
    p->spectra = gc_cuda_memory(r, ir->planes * p->partitions * spectrum);
    GC_CUDA_TRY(r->err, gck_partitioned_spectra(p, responses, stream));
    p->delay = gc_cuda_memory(r, delay_bytes);
    GC_CUDA_TRY(r->err, cudaMemsetAsync(p->delay, 0, (size_t)delay_bytes, stream));
    p->sums = gc_cuda_memory(r, ir->outputs * p->pairs * spectrum);
}

static void init_long_partitions(gc_cuda_convolver *c, const gpuconv_plan *plan, const gck_responses *responses,
                                 gc_cuda_resources *r, cudaStream_t stream) {
    const gpuconv_ir *ir = plan->ir;
    const gc_schedule *s = &plan->schedule;
    const int64_t each = sizeof(float2);
    const gck_long_partitioned_sizes sizes = gck_long_partitioned_query(s->transform);
    gck_long_partitioning *p = &c->long_partitioning;
    *p = (gck_long_partitioning){
        .points = s->transform, .partitions = (int)s->partitions, .blocks = (int)(plan->chunk / s->hop)};
    float2 *twiddles = gc_cuda_host_table(r, sizes.twiddles, each);
    if (twiddles)
        gck_long_partitioned_twiddles(s->transform, twiddles);
    p->twiddles = gc_cuda_upload(r, twiddles, sizes.twiddles * each);
    free(twiddles);
    p->spectra = gc_cuda_memory(r, ir->planes * p->partitions * sizes.spectrum * each);
    p->delay = gc_cuda_memory(r, ir->inputs * ((int64_t)p->partitions - 1 + p->blocks) * sizes.spectrum * each);
    p->sums = gc_cuda_memory(r, ir->outputs * (int64_t)p->blocks * sizes.spectrum * each);
    GC_CUDA_TRY(r->err, gck_long_partitioned_spectra(p, responses, stream));
}

gck_overlap_save_form gc_cuda_overlap_save_form(const gc_device *device, const gpuconv_ir *ir, int64_t points) {
    return (gck_overlap_save_form){points, gc_ir_one_route_each(ir), (int)gc_min(device->shared_memory, INT_MAX)};
}

/* Returns whether the products of a chunk replace what they are computed from: output o comes from input o alone, and
 * the scratch memory fits into the second-level cache of a large GPU. On an H200 it is then 3 to 5 % faster to use one
 * half of it only; with scratch memory beyond the cache it is 1 % slower. */
static bool is_in_place(const gpuconv_ir *ir, const gc_schedule *s, int64_t chunk) {
    const int64_t cache = INT64_C(48) << 20, bytes = s->transform / 2 * (int64_t)sizeof(float2);
    bool same = ir->inputs == ir->outputs && gc_ir_one_route_each(ir) && chunk / s->hop <= cache / bytes / ir->inputs;
    for (int i = 0; i < ir->routes && same; i++)
        same = ir->route[i].input == ir->route[i].output;
    return same;
}

int64_t gc_cuda_scratch_transforms(const gpuconv_ir *ir, const gc_schedule *s, int64_t chunk) {
    return (ir->inputs + (is_in_place(ir, s, chunk) ? 0 : (int64_t)ir->outputs)) * (chunk / s->hop);
}

/* Computes the spectra of all planes, as many at a time as the scratch memory of `transforms` has room for. */
static cudaError_t compute_spectra(const gck_overlap_save_form *form, const gck_responses *all,
                                   const gck_overlap_save_memory *memory, int64_t transforms, cudaStream_t stream) {
    const gck_overlap_save_sizes sizes = gck_overlap_save_query(form);
    const int64_t group = sizes.scratch ? gc_max(transforms, 1) : all->planes;
    cudaError_t err = cudaSuccess;
    for (int64_t first = 0; first < all->planes && !err; first += group) {
        gck_overlap_save_memory part = *memory;
        part.spectra += first * sizes.spectrum;
        gck_responses some = {all->taps + first * all->taps_count, (int)gc_min(group, all->planes - first),
                              all->taps_count};
        err = gck_overlap_save_spectra(form, &some, &part, stream);
    }
    return err;
}

static void init_overlap_save(gc_cuda_convolver *c, const gpuconv_plan *plan, const gck_responses *responses,
                              gc_cuda_resources *r, cudaStream_t stream) {
    const gpuconv_ir *ir = plan->ir;
    const gc_schedule *s = &plan->schedule;
    const int64_t each = sizeof(float2);
    gck_overlap_save_memory *m = &c->overlap_save;
    c->matrix.in_place = is_in_place(ir, s, plan->chunk);
    c->form = gc_cuda_overlap_save_form(&plan->device, ir, s->transform);
    gck_overlap_save_sizes sizes = gck_overlap_save_query(&c->form);
    int64_t transforms = gc_cuda_scratch_transforms(ir, s, plan->chunk);
    float2 *twiddles = gc_cuda_host_table(r, sizes.twiddles, each);
    if (twiddles)
        gck_overlap_save_twiddles(&c->form, twiddles);
    m->twiddles = gc_cuda_upload(r, twiddles, sizes.twiddles * each);
    free(twiddles);
    m->spectra = gc_cuda_memory(r, ir->planes * sizes.spectrum * each);
    m->scratch = gc_cuda_memory(r, transforms * sizes.scratch * each);
    GC_CUDA_TRY(r->err, compute_spectra(&c->form, responses, m, transforms, stream));
}

cudaError_t gc_cuda_convolver_init(gc_cuda_convolver *c, const gpuconv_plan *plan, int64_t in_stride,
                                   int64_t out_stride, gc_cuda_resources *r, cudaStream_t stream) {
    const gpuconv_ir *ir = plan->ir;
    *c = (gc_cuda_convolver){.schedule = plan->schedule};
    c->matrix.in_stride = in_stride;
    c->matrix.out_stride = out_stride;
    c->matrix.inputs = ir->inputs;
    c->matrix.outputs = ir->outputs;
    upload_matrix(c, ir, r);
    gck_responses responses = {.planes = ir->planes, .taps_count = ir->frames};
    responses.taps = gc_cuda_upload(r, ir->taps, ir->planes * ir->frames * (int64_t)sizeof *ir->taps);
    if (plan->schedule.algorithm == GPUCONV_ALGORITHM_DIRECT)
        c->direct = (gck_direct_taps){.taps = responses.taps,
                                      .host_taps = ir->taps,
                                      .table = plan->device.tensor_cores ? upload_tensor_tables(ir, r) : NULL,
                                      .taps_count = plan->schedule.taps};
    else if (plan->schedule.algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE)
        init_overlap_save(c, plan, &responses, r, stream);
    else if (plan->schedule.algorithm == GPUCONV_ALGORITHM_MATRIX)
        gc_cuda_dense_init(&c->dense, plan, &responses, r, stream);
    else if (gc_cuda_long_partitions(&plan->schedule))
        init_long_partitions(c, plan, &responses, r, stream);
    else
        init_partitions(c, plan, &responses, r, stream);
    return r->err;
}

cudaError_t gc_cuda_convolver_run(const gc_cuda_convolver *c, const float *in, float *out, int64_t frames,
                                  cudaStream_t stream) {
    const gc_schedule *s = &c->schedule;
    gck_matrix m = c->matrix;
    m.in = in;
    m.out = out;
    if (s->algorithm == GPUCONV_ALGORITHM_DIRECT)
        return gck_direct(&m, &c->direct, frames, stream);
    if (s->algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE)
        return gck_overlap_save(&m, &c->form, s->hop, (frames + s->hop - 1) / s->hop, &c->overlap_save, stream);
    if (s->algorithm == GPUCONV_ALGORITHM_MATRIX)
        return gck_dense_convolve(&m, &c->dense.dense, c->dense.parts, c->dense.parts_count,
                                  (int)((frames + s->hop - 1) / s->hop), stream);
    if (gc_cuda_long_partitions(s))
        return gck_long_partitioned(&m, &c->long_partitioning, stream);
    return gck_partitioned(&m, &c->partitioning, stream);
}

void gc_cuda_convolver_free(gc_cuda_convolver *c) {
    free(c->host_routes);
    gc_cuda_dense_free(&c->dense);
    *c = (gc_cuda_convolver){0};
}
