/*
 * Planning a row. Algorithm and transform are those of the CPU backend for a mono file of the same length, so that both
 * give the same bytes; partitioned convolution, which the backend chooses for responses longer than the signal, is not
 * needed, because here the operands can be exchanged.
 *
 * A short convolution has one transform that is as long as its result, whatever part of it is the output: nothing wraps
 * around, so that the row is transformed once, and short transforms of several rows are computed together. Overlap-save
 * has two blocks where the result is longer than half of its transform.
 *
 * An output of few frames (a gradient by the response, some lags of a correlation) needs no transform longer than the
 * taps: the taps are cut into partitions, the products of the spectra of each partition and of its part of the signal
 * are summed, and the sum is transformed back once.
 */
#include "cpu_algorithm.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fft_kernels.h"
#include "rows.h"

enum {
    DIRECT_HOP = 8 * GC_DIRECT_SPAN,
    MIN_SUM = 8192,
    STEP = 32 /* gc_fft_inverse writes from a multiple of it on */
};

gpuconv_status gc_row_choose(const gc_algorithm *const *algorithms, const gc_costs *costs, const gpuconv_ir *ir,
                             int64_t frames, gc_choice *choice, gpuconv_error *error) {
    const gc_device device = {.threads = 1};
    gc_problem problem;
    const gpuconv_status status = gc_problem_init(&problem, ir, frames, 0)
                                      ? gc_algorithms_choose(algorithms, &problem, &device, costs, choice, NULL, error)
                                      : gc_fail_memory(error, "the plan of a row");
    gc_problem_free(&problem);
    return status;
}

/* Chooses the schedule of the full convolution. Fails with MEMORY, or with UNSUPPORTED if the taps are too long. */
static gpuconv_status choose_full(const gc_costs *costs, int64_t frames, int64_t taps, gc_schedule *schedule,
                                  gpuconv_error *error) {
    static const gc_algorithm *const algorithms[] = {&gc_cpu_direct.row, &gc_cpu_overlap_save.row, NULL};
    gc_route route = {0, 0, 0};
    const gpuconv_ir ir = {.inputs = 1, .outputs = 1, .planes = 1, .routes = 1, .route = &route, .frames = taps};
    gc_choice choice = {0};
    const gpuconv_status status = gc_row_choose(algorithms, costs, &ir, frames, &choice, error);
    if (status)
        return status;
    gc_schedule *s = &choice.schedule;
    if (!s->transform && taps > INT64_C(1) << GC_ROW_MAX_LOG2)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                       "%lld frames with %lld taps: one of both must have at most 2^%d", (long long)frames,
                       (long long)taps, GC_ROW_MAX_LOG2);
    if (!s->transform && taps > 1 << 20) { /* longer than the backend's transforms */
        s->transform = gc_power_of_two(2 * taps);
        s->hop = (s->transform - taps + 1) / STEP * STEP;
    }
    *schedule = *s;
    return GPUCONV_OK;
}

/* Chooses the transform of GC_ROW_SUM and replaces the schedule if that is faster. */
static void consider_sum(const gc_costs *costs, gc_row *row) {
    const int64_t hop = gc_round_up(row->end - row->begin, STEP), taps = row->taps.frames;
    if (row->prepared || hop > taps / 2 || row->method != GC_ROW_OVERLAP_SAVE)
        return;
    for (int64_t n = GC_FFT_MIN_POINTS; n <= gc_min(gc_max(MIN_SUM, 8 * gc_power_of_two(hop)), INT64_C(1) << 24);
         n *= 2) {
        const int64_t partition = n - hop + 1, partitions = partition > 0 ? gc_divide_up(taps, partition) : 0;
        const double seconds = (double)(2 * partitions + 1) * gc_cpu_fft_seconds(costs, n);
        if (partition < n / 8 || !(seconds < row->seconds))
            continue;
        row->method = GC_ROW_SUM;
        row->seconds = seconds;
        row->schedule = (gc_schedule){taps, n, hop, partition, partitions};
        row->first_block = 0;
        row->blocks = 1;
    }
}

/* Returns the seconds that direct sums of a short row take beside those of its vectors: the outputs that fill no vector
 * are summed one by one, in doubles, which takes 25 times as long, and a call as long as 2000 multiply-adds. */
static double direct_overhead(const gc_costs *costs, const gc_row *row) {
    const int64_t single = (row->end - row->begin) % gc_simd_best()->fft->lanes;
    return (25 * (double)(single * row->taps.frames) + 2000) * costs->seconds[GC_COST_CPU_TAP];
}

/* Replaces the schedule by one transform of the whole convolution of `total` frames unless that is slower. */
static void consider_whole(const gc_costs *costs, gc_row *row, int64_t total) {
    const int64_t points = gc_max(GC_FFT_MIN_ROW, gc_power_of_two(total)), taps = row->taps.frames;
    const double seconds = 3 * gc_cpu_fft_seconds(costs, points);
    const double more = row->method == GC_ROW_DIRECT ? direct_overhead(costs, row) : 0;
    if (total > GC_ROW_WHOLE_FRAMES || !(seconds <= row->seconds + more))
        return;
    row->method = GC_ROW_WHOLE;
    row->seconds = seconds;
    row->schedule = (gc_schedule){taps, points, points, taps, 1};
    row->first_block = 0;
    row->blocks = 1;
}

/* Orders the operands: the shorter one becomes the taps, unless the response is prepared or the schedule given. */
static void order(gc_row *row) {
    const gc_array response = row->taps;
    if (row->prepared || row->schedule.taps || response.frames <= row->signal.frames)
        return;
    row->taps = row->signal;
    row->signal = response;
    row->shared = NULL;
}

/* Sets the blocks of the schedule that are in the output. */
static void take_blocks(const gc_costs *costs, gc_row *row) {
    gc_schedule *s = &row->schedule;
    row->method = s->transform ? GC_ROW_OVERLAP_SAVE : GC_ROW_DIRECT;
    if (!s->transform)
        s->hop = DIRECT_HOP;
    row->first_block = row->begin / s->hop;
    row->blocks = gc_divide_up(row->end, s->hop) - row->first_block;
    row->seconds = s->transform
                       ? (double)(2 * row->blocks + 1) * gc_cpu_fft_seconds(costs, s->transform)
                       : (double)(row->end - row->begin) * (double)row->taps.frames * costs->seconds[GC_COST_CPU_TAP];
}

bool gc_row_same_lengths(const gc_row *a, const gc_row *b) {
    return a->signal.frames == b->signal.frames && a->taps.frames == b->taps.frames &&
           a->output.frames == b->output.frames && a->offset == b->offset && !a->prepared == !b->prepared;
}

/* Takes the plan of the last row if it would be the same, which depends on the lengths of the operands and on the
 * frames of their convolution that are in the output. Returns whether it is. */
static bool take_plan(gc_row *row, const gc_row *last) {
    if (row->signal.frames != last->signal.frames || row->taps.frames != last->taps.frames ||
        row->begin != last->begin || row->end != last->end || !row->prepared != !last->prepared)
        return false;
    row->schedule = last->schedule;
    row->method = last->method;
    row->first_block = last->first_block;
    row->blocks = last->blocks;
    row->seconds = last->seconds;
    return true;
}

gpuconv_status gc_row_plan(const gc_costs *costs, gc_row *row, gc_row *last, gpuconv_error *error) {
    const bool given = row->schedule.taps > 0;
    order(row);
    const int64_t total = row->taps.frames > 0 ? row->signal.frames + row->taps.frames - 1 : 0;
    row->begin = gc_max(0, row->offset);
    row->end = gc_min(total, row->offset + row->output.frames);
    if (row->begin >= row->end || (!given && take_plan(row, last)))
        return GPUCONV_OK;
    const gpuconv_status status =
        given ? GPUCONV_OK : choose_full(costs, row->signal.frames, row->taps.frames, &row->schedule, error);
    if (status)
        return status;
    take_blocks(costs, row);
    if (!given)
        consider_whole(costs, row, total);
    consider_sum(costs, row);
    if (!given)
        *last = *row;
    return GPUCONV_OK;
}
