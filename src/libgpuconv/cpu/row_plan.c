/*
 * Planning a row. Algorithm and transform are those of the CPU backend for a mono file of the same length, so that both
 * give the same bytes; partitioned convolution, which the backend chooses for responses longer than the signal, is not
 * needed, because here the operands can be exchanged.
 *
 * An output of few frames (a gradient by the response, some lags of a correlation) needs no transform longer than the
 * taps: the taps are cut into partitions, the products of the spectra of each partition and of its part of the signal
 * are summed, and the sum is transformed back once.
 */
#include "row_plan.h"

#include "cpu_algorithm.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fft.h"
#include "libgpuconv/dsp/simd.h"

#include <math.h>

enum {
    DIRECT_HOP = 8 * GC_DIRECT_SPAN,
    MIN_SUM = 8192,
    STEP = 32 /* gc_fft_inverse writes from a multiple of it on */
};

/* Takes method and sizes for the full convolution from a choice of direct convolution or overlap-save. */
static void take_choice(const gc_choice *choice, gc_row_plan *p) {
    const bool direct = !choice->schedule.transform;
    p->full_method = direct ? GC_ROW_DIRECT : GC_ROW_OVERLAP_SAVE;
    p->full_transform = choice->schedule.transform;
    p->full_hop = direct ? DIRECT_HOP : choice->schedule.hop;
}

/* Chooses method and sizes for the full convolution. Fails with MEMORY, or with UNSUPPORTED if the taps are too long.
 */
static gpuconv_status choose_full(const gc_costs *costs, int64_t frames, int64_t taps, gc_row_plan *p,
                                  gpuconv_error *error) {
    static const gc_algorithm *const algorithms[] = {&gc_cpu_direct.row, &gc_cpu_overlap_save.row, NULL};
    gc_route route = {0, 0, 0};
    const gpuconv_ir ir = {.inputs = 1, .outputs = 1, .planes = 1, .routes = 1, .route = &route, .frames = taps};
    const gc_device device = {.threads = 1};
    gc_problem problem;
    gc_choice choice = {0};
    gpuconv_status status = gc_problem_init(&problem, &ir, frames, 0)
                                ? gc_algorithms_choose(algorithms, &problem, &device, costs, &choice, NULL, error)
                                : gc_fail_memory(error, "the plan of a row");
    gc_problem_free(&problem);
    if (status)
        return status;
    take_choice(&choice, p);
    if (p->full_method == GC_ROW_DIRECT && taps > 1 << 20) { /* longer than the backend's transforms */
        if (taps > INT64_C(1) << GC_ROW_MAX_LOG2)
            return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                           "%lld frames with %lld taps: one of both must have at most 2^%d", (long long)frames,
                           (long long)taps, GC_ROW_MAX_LOG2);
        p->full_method = GC_ROW_OVERLAP_SAVE;
        p->full_transform = gc_power_of_two(2 * taps);
        p->full_hop = (p->full_transform - taps + 1) / STEP * STEP;
    }
    p->planned_frames = frames;
    p->planned_taps = taps;
    return GPUCONV_OK;
}

/* Chooses the transform of GC_ROW_SUM and replaces the plan if that is faster. */
static void consider_sum(const gc_costs *costs, gc_row_plan *p) {
    const int64_t hop = gc_round_up(p->end - p->begin, STEP), taps = p->taps.frames;
    if (p->prepared || hop > taps / 2 || p->full_method == GC_ROW_DIRECT)
        return;
    for (int64_t n = GC_FFT_MIN_POINTS; n <= gc_min(gc_max(MIN_SUM, 8 * gc_power_of_two(hop)), INT64_C(1) << 24);
         n *= 2) {
        const int64_t partition = n - hop + 1, partitions = partition > 0 ? gc_divide_up(taps, partition) : 0;
        const double seconds = (double)(2 * partitions + 1) * gc_cpu_fft_seconds(costs, n);
        if (partition < n / 8 || !(seconds < p->seconds))
            continue;
        p->method = GC_ROW_SUM;
        p->seconds = seconds;
        p->transform = n;
        p->hop = hop;
        p->before = n - hop;
        p->partition = partition;
        p->partitions = partitions;
        p->first_block = 0;
        p->blocks = 1;
    }
}

/* Orders the operands: the shorter one becomes the taps, unless the response is prepared. */
static void order(const gc_row *row, gc_row_plan *p) {
    p->prepared = row->prepared;
    p->signal = row->signal;
    p->taps = row->response;
    if (!p->prepared && p->taps.frames > p->signal.frames) {
        p->signal = row->response;
        p->taps = row->signal;
    }
}

/* Takes the sizes of the full convolution for the frames that are in the output. */
static void take_blocks(gc_row_plan *p) {
    p->method = p->full_method;
    p->transform = p->full_transform;
    p->hop = p->full_hop;
    p->before = p->method == GC_ROW_DIRECT ? p->taps.frames - 1 : p->transform - p->hop;
    p->first_block = p->begin / p->hop;
    p->blocks = gc_divide_up(p->end, p->hop) - p->first_block;
}

void gc_row_plan_fill(const gc_choice *choice, const gc_row *row, gc_row_plan *p) {
    *p = (gc_row_plan){.signal = row->signal, .taps = row->response, .end = row->output_frames};
    take_choice(choice, p);
    take_blocks(p);
}

gpuconv_status gc_row_plan_make(const gc_costs *costs, const gc_row *row, gc_row_plan *p, gpuconv_error *error) {
    order(row, p);
    const int64_t total = p->taps.frames > 0 ? p->signal.frames + p->taps.frames - 1 : 0;
    p->begin = gc_max(0, row->offset);
    p->end = gc_min(total, row->offset + row->output_frames);
    p->method = GC_ROW_ZERO;
    p->blocks = 0;
    p->seconds = 0;
    if (p->begin >= p->end)
        return GPUCONV_OK;
    if (p->planned_frames != p->signal.frames || p->planned_taps != p->taps.frames) {
        const gpuconv_status status = choose_full(costs, p->signal.frames, p->taps.frames, p, error);
        if (status)
            return status;
    }
    take_blocks(p);
    p->seconds = p->method == GC_ROW_DIRECT
                     ? (double)(p->end - p->begin) * (double)p->taps.frames * costs->seconds[GC_COST_CPU_TAP]
                     : (double)(2 * p->blocks + 1) * gc_cpu_fft_seconds(costs, p->transform);
    consider_sum(costs, p);
    return GPUCONV_OK;
}
