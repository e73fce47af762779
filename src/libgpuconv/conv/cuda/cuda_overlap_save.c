/* Overlap-save on the device, in one kernel while a transform fits on the chip, in three beyond: cost and set-up. */
#include "cuda_algorithm.h"

#include "libgpuconv/core/memory.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

/* Returns what decides the kernels with transforms of `points` real points. */
static gck_overlap_save_form form_of(const gc_device *device, const gpuconv_ir *ir, int64_t points) {
    return (gck_overlap_save_form){points, gc_ir_one_route_each(ir), (int)gc_min(device->shared_memory, INT_MAX)};
}

/* Returns whether the products of a chunk replace what they are computed from: output o comes from input o alone, and
 * the scratch memory fits into four fifths of the second-level cache. On an H200 it is then 3 to 5 % faster to use one
 * half of it only; with scratch memory beyond the cache it is 1 % slower. */
static bool is_in_place(const gc_device *d, const gpuconv_ir *ir, const gc_schedule *s, int64_t chunk) {
    const int64_t cache = d->cache / 5 * 4, bytes = s->transform / 2 * (int64_t)sizeof(float2);
    bool same = ir->inputs == ir->outputs && gc_ir_one_route_each(ir) && chunk / s->hop <= cache / bytes / ir->inputs;
    for (int i = 0; i < ir->routes && same; i++)
        same = ir->route[i].input == ir->route[i].output;
    return same;
}

/* Returns the transforms in three kernels for which a convolver has scratch memory. */
static int64_t scratch_transforms(const gc_device *d, const gpuconv_ir *ir, const gc_schedule *s, int64_t chunk) {
    return (ir->inputs + (is_in_place(d, ir, s, chunk) ? 0 : (int64_t)ir->outputs)) * (chunk / s->hop);
}

/* ---- Planning ---------------------------------------------------------------------------------------------------- */

static bool fits(const gc_problem *p, const gc_device *d, int64_t points, int form, gc_choice *c) {
    if (form || !gc_schedule_overlap_save(p->stream.ir->frames, points, &c->schedule))
        return false;
    const gck_overlap_save_form kernels = form_of(d, p->stream.ir, points);
    const gck_overlap_save_sizes size = gck_overlap_save_query(&kernels);
    return size.twiddles && size.shared_bytes <= d->shared_memory;
}

/* Returns the blocks that take the time of `blocks`. Transforms that take half a multiprocessor or a whole one run in
 * waves, and the last wave takes as long as a full one. */
static double blocks_in_full_waves(const gc_device *device, const gpuconv_ir *ir, int64_t points, double blocks) {
    const double resident = points == 16384 ? 2 : points == 32768 ? 1 : 0;
    const double wave = resident * device->multiprocessors / ir->outputs;
    return wave > 0 ? wave * ceil(blocks / wave) : blocks;
}

/* Returns whether the input is transformed once for many outputs (gck_overlap_save_fan). */
static bool fans(const gpuconv_ir *ir, const gc_schedule *s) {
    return s->transform == GCK_OVERLAP_SAVE_POINTS_MIN && gc_ir_one_route_each(ir) && ir->outputs >= 8 * ir->inputs;
}

static double seconds(const gc_problem *p, const gc_device *d, const gc_costs *costs, const gc_choice *c,
                      double total) {
    const gpuconv_ir *ir = p->stream.ir;
    const gc_schedule *s = &c->schedule;
    const double *t = costs->seconds;
    const gck_overlap_save_form form = form_of(d, ir, s->transform);
    const bool three_kernels = gck_overlap_save_query(&form).scratch > 0;
    double blocks = ceil(total / (double)s->hop), transforms = 0.5 * ir->routes + 0.5 * ir->outputs;
    if (fans(ir, s)) /* the stores hide most of the transforms */
        transforms = 0.25 * ir->outputs;
    if (!three_kernels)
        blocks = blocks_in_full_waves(d, ir, s->transform, blocks);
    const double point =
        gc_cuda_slowdown(s->transform, three_kernels) * t[three_kernels ? GC_COST_CUDA_LONG : GC_COST_CUDA_FUSED];
    /* Filling and draining the device takes about as long as a launch. */
    return total * ir->outputs * t[GC_COST_CUDA_OUTPUT] + blocks * transforms * (double)s->transform / 2 * point +
           (three_kernels ? 5 : 1.9) * t[GC_COST_CUDA_LAUNCH];
}

static double bytes(const gc_problem *p, const gc_device *d, const gc_choice *c) {
    const gck_overlap_save_form form = form_of(d, p->stream.ir, c->schedule.transform);
    const gck_overlap_save_sizes size = gck_overlap_save_query(&form);
    const double transforms = (double)scratch_transforms(d, p->stream.ir, &c->schedule, c->chunk);
    return 8 * (p->stream.ir->planes * (double)size.spectrum + transforms * (double)size.scratch);
}

/* ---- Set-up ------------------------------------------------------------------------------------------------------ */

static void init(gc_cuda_convolver *c, const gpuconv_plan *plan, const gck_responses *responses, gc_cuda_resources *r,
                 cudaStream_t stream) {
    const gpuconv_ir *ir = plan->ir;
    const gc_schedule *s = &plan->choice.schedule;
    const int64_t each = sizeof(float2);
    gck_overlap_save_memory *m = &c->overlap_save;
    c->routes.in_place = is_in_place(&plan->device, ir, s, plan->choice.chunk);
    c->form = form_of(&plan->device, ir, s->transform);
    gck_overlap_save_sizes sizes = gck_overlap_save_query(&c->form);
    int64_t transforms = scratch_transforms(&plan->device, ir, s, plan->choice.chunk);
    float2 *twiddles = gc_cuda_host_table(r, sizes.twiddles, each);
    if (twiddles)
        gck_overlap_save_twiddles(&c->form, twiddles);
    m->twiddles = gc_cuda_upload(r, twiddles, sizes.twiddles * each);
    free(twiddles);
    m->spectra = gc_cuda_memory(r, ir->planes * sizes.spectrum * each);
    m->scratch = gc_cuda_memory(r, transforms * sizes.scratch * each);
    GC_CUDA_TRY(r->err, gck_overlap_save_spectra(&c->form, responses, m, stream));
}

static cudaError_t run(const gc_cuda_convolver *c, const gck_routes *m, int64_t frames, cudaStream_t stream) {
    const int64_t hop = c->schedule.hop;
    return gck_overlap_save(m, &c->form, hop, gc_divide_up(frames, hop), &c->overlap_save, stream);
}

const gc_cuda_algorithm gc_cuda_overlap_save = {
    .row = GC_CUDA_ROW(GPUCONV_ALGORITHM_OVERLAP_SAVE, "overlap-save", GCK_OVERLAP_SAVE_POINTS_MIN,
                       GCK_OVERLAP_SAVE_POINTS_MAX, NULL),
    .schedule = gc_schedule_overlap_save,
    .seconds = seconds,
    .bytes = bytes,
    .init = init,
    .run = run,
};
