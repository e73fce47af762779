/* What the algorithms of rows share: sizes, the cut of rows into segments, and gates that take passes of their own. */
#include "cuda_arrays.h"
#include "libgpuconv/core/memory.h"

#include <math.h>

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

/* Segments begin at multiples of ALIGNMENT frames, so that accesses to aligned rows are whole sectors. */
enum { ALIGNMENT = 32 };

int gc_rows_size(const gc_cuda_rows *a, const gc_device *device, int64_t points) {
    if (!points)
        return 0;
    const int size = a->number[__builtin_ctzll((unsigned long long)points)] - 1;
    return size >= 0 && a->query(size).shared_bytes <= device->shared_memory ? size : -1;
}

/* Prepared spectra serve their own algorithm and size; their samples, where they are kept too, serve direct sums. */
bool gc_rows_fits(const gc_problem *p, const gc_device *device, int64_t points, int form, gc_choice *c) {
    const bool same = !p->rows.required_algorithm ||
                      (p->rows.required_algorithm == c->algorithm && p->rows.required_points == points);
    if (form || !(points ? same : p->rows.samples && (same || p->rows.spectra)))
        return false;
    c->schedule = (gc_schedule){.taps = p->rows.shape.taps, .transform = points};
    return gc_rows_size((const gc_cuda_rows *)c->algorithm, device, points) >= 0;
}

/* Adds the time of gates and of copies, which are floats in the workspace: of arrays with a step, where the kernels
 * need adjacent samples; and of gated sources and a target whose sums are gated, where they do not know the gates. */
static void plan_copies(const gc_job_shape *s, const gc_costs *costs, const gc_cuda_rows *a, gc_rows_plan *plan) {
    const int64_t outputs = s->routes.routes ? s->batch * s->routes.outputs : s->rows, x = s->rows * s->signal_frames,
                  h = s->responses * gc_max(1, s->blocks) * s->taps;
    const int64_t samples[GC_JOB_ARRAYS] = {x, outputs * s->output_frames, h, x, h};
    const bool convolve = s->operation == GPUCONV_ARRAYS_CONVOLVE;
    const bool target = convolve || s->operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL;
    const int64_t gated = (s->gates & GC_GATE_PRE ? GC_SIGNAL : 0) | (s->gates & GC_GATE_POST ? GC_OUTPUT : 0) |
                          (target && s->gates & GC_GATE_SKIP ? convolve ? GC_OUTPUT : GC_SIGNAL : 0);
    plan->copies = (int)((a->stepped ? 0 : s->spread) | (a->gated && s->gates & GC_GATES_ALIKE ? 0 : gated));
    plan->copies_at = plan->copies ? gc_max(256, gc_round_up(plan->bytes, 256)) : 0;
    plan->bytes = plan->copies ? plan->copies_at : plan->bytes;
    for (int i = 0; i < GC_JOB_ARRAYS; i++) {
        const bool copied = plan->copies & 1 << i;
        if (!copied && !(gated & 1 << i))
            continue;
        plan->seconds += 2 * (double)samples[i] * costs->seconds[GC_COST_CUDA_OUTPUT];
        if (!copied)
            continue;
        plan->bytes += gc_round_up(samples[i] * (int64_t)sizeof(float), 256);
        plan->seconds += GC_ROWS_LAUNCH * costs->seconds[GC_COST_CUDA_LAUNCH];
    }
}

/* Makes the plan of a choice. Returns false if its algorithm does not serve the problem. */
static bool make(const gc_problem *p, const gc_device *device, const gc_costs *costs, gc_choice *c) {
    gc_rows_plan *plan = &c->rows;
    const gc_cuda_rows *a = (const gc_cuda_rows *)c->algorithm;
    const int64_t points = c->schedule.transform;
    const gc_job_shape *s = &p->rows.shape;
    const bool both = s->operation == GPUCONV_ARRAYS_GRADIENT_BOTH;
    if ((s->hop && !a->varying) || (both && (!a->both || !s->plain || s->hop || s->gates || s->routes.routes)))
        return false;
    *plan = (gc_rows_plan){.algorithm = a, .size = gc_rows_size(a, device, points), .points = points / 2};
    if (!a->plan(p, device, costs, plan))
        return false;
    if (s->gates || s->spread)
        plan_copies(s, costs, a, plan);
    return true;
}

void gc_rows_cost(const gc_problem *p, const gc_device *device, const gc_costs *costs, gc_choice *c) {
    c->rows = (gc_rows_plan){.algorithm = NULL};
    c->cost = make(p, device, costs, c) ? c->rows.seconds : HUGE_VAL;
    c->bytes = (double)c->rows.bytes;
}

int64_t gc_rows_cut(const gc_job_shape *s, gc_rows_plan *p) {
    const int64_t points = p->points, parts = s->taps <= points + points / 2 ? 1 : gc_divide_up(s->taps, points);
    const bool convolve = s->operation == GPUCONV_ARRAYS_CONVOLVE;
    const int64_t overlap = gc_round_up(s->taps - 1, ALIGNMENT),
                  frames = convolve ? s->output_frames : s->signal_frames;
    p->hop = parts == 1 ? 2 * points - overlap : points;
    p->part_taps = parts == 1 ? s->taps : points;
    p->parts = parts;
    p->segments = gc_divide_up(frames, p->hop);
    p->lo = !convolve ? 0 : parts == 1 ? overlap : points;
    p->shift = convolve ? s->offset - p->lo - (parts - 1) * p->hop : -s->offset;
    /* A convolution that fits into one transform as a whole does not wrap around. */
    if (convolve && parts == 1 && s->offset >= 0 && s->signal_frames + s->taps - 1 <= 2 * points &&
        s->offset + frames <= 2 * points) {
        p->hop = frames;
        p->segments = 1;
        p->lo = s->offset;
        p->shift = 0;
    }
    return parts;
}
