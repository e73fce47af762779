/*
 * Rows on threads: the plan of a row, its convolution on one thread, and the division of many rows among threads.
 *
 * Plan. The problem of a row has the schedule of a mono file of the same length, so that both give the same bytes, and
 * the search (conv/search.c) chooses among it and two algorithms that only rows have. Partitioned convolution, which
 * file jobs take for responses longer than the signal, is not needed, because the operands can be exchanged. A short
 * convolution has one transform that is as long as its result, whatever part of it is the output: nothing wraps around,
 * so that the row is transformed once, and short transforms of several rows are computed together. Overlap-save has two
 * blocks where the result is longer than half of its transform. A gradient of any length has such a transform where
 * overlap-save has one that is as long; the spectra of rows that share a response are then added up, and the sum is
 * transformed back. An output of few frames (a gradient by the response, some lags of a correlation) needs no transform
 * longer than the taps: the taps are cut into partitions, the products of the spectra of each partition and of its part
 * of the signal are summed, and the sum is transformed back once.
 *
 * Convolution. Blocks of a contiguous signal are transformed where they are, and blocks of a contiguous output are
 * written where they belong; only the blocks at the ends, and arrays with another step, go through scratch memory.
 *
 * Division. Rows of little work are one job as long as they follow one another: it makes and plans them one by one, and
 * transforms their responses in the worker's scratch memory. A row of much work is divided into several jobs; its
 * response is transformed before, in a loop of its own. The division changes no sample.
 */
#include "rows.h"
#include "cpu_algorithm.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/subnormal.h"
#include "libgpuconv/dsp/fft_kernels.h"
#include "libgpuconv/dsp/half.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Plan of a row ----------------------------------------------------------------------------------------------- */

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

/* Chooses the schedule of a file job of the same lengths. Fails with MEMORY, or with UNSUPPORTED if the taps are too
 * long. */
static gpuconv_status choose_file(const gc_costs *costs, int64_t frames, int64_t taps, gc_schedule *schedule,
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

/* Direct sums. In a short row the outputs that fill no vector are summed one by one, in doubles, which takes 25 times
 * as long, and a call takes as long as 2000 multiply-adds. */
static void cost_direct(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_choice *c) {
    (void)device;
    const gc_row_problem *p = &problem->row;
    const int64_t frames = p->end - p->begin, single = frames % gc_simd_best()->fft->lanes;
    const double taps = (double)frames * (double)p->taps + 25 * (double)(single * p->taps) + 2000;
    c->schedule = p->file;
    c->schedule.hop = DIRECT_HOP;
    c->cost = p->file.transform ? HUGE_VAL : taps * costs->seconds[GC_COST_CPU_TAP];
}

/* Returns the seconds of two transforms for each block with output frames, and of one for the response. */
static double overlap_save_seconds(const gc_row_problem *p, const gc_costs *costs) {
    const int64_t blocks = gc_divide_up(p->end, p->file.hop) - p->begin / p->file.hop;
    return p->file.transform ? (double)(2 * blocks + 1) * gc_cpu_fft_seconds(costs, p->file.transform) : HUGE_VAL;
}

static void cost_overlap_save(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_choice *c) {
    (void)device;
    c->schedule = problem->row.file;
    c->cost = overlap_save_seconds(&problem->row, costs);
}

/* Returns the seconds of one transform of the whole convolution; HUGE_VAL if it is too long, or the schedule given.
 * longer: a transform of the length of that of overlap-save is not too long. */
static double whole_seconds(const gc_row_problem *p, const gc_costs *costs, bool longer, int64_t *points) {
    const int64_t total = p->signal + p->taps - 1;
    *points = gc_max(GC_FFT_MIN_ROW, gc_power_of_two(total));
    const bool fits = total <= GC_ROW_WHOLE_FRAMES || (longer && *points <= p->file.transform);
    return p->given || !fits ? HUGE_VAL : 3 * gc_cpu_fft_seconds(costs, *points);
}

static void cost_whole(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_choice *c) {
    (void)device;
    int64_t points;
    c->cost = whole_seconds(&problem->row, costs, problem->row.gradient, &points);
    c->schedule = (gc_schedule){problem->row.taps, points, points, problem->row.taps, 1};
}

/* A sum takes the place of overlap-save with a fresh response. Where one transform of the whole convolution does so, it
 * stays: it serves several rows at a time. */
static void cost_sum(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_choice *c) {
    (void)device;
    int64_t points;
    const bool whole =
        whole_seconds(&problem->row, costs, false, &points) <= overlap_save_seconds(&problem->row, costs);
    const double transforms = (double)(2 * c->schedule.partitions + 1);
    c->cost = whole ? HUGE_VAL : transforms * gc_cpu_fft_seconds(costs, c->schedule.transform);
}

static bool fit_sum(const gc_problem *problem, const gc_device *device, int64_t points, int form, gc_choice *c) {
    (void)device;
    const gc_row_problem *p = &problem->row;
    const int64_t hop = gc_round_up(p->end - p->begin, STEP), partition = points - hop + 1;
    if (form || p->prepared || !p->file.transform || hop > p->taps / 2 || partition < gc_max(1, points / 8) ||
        points > gc_max(MIN_SUM, 8 * gc_power_of_two(hop)))
        return false;
    c->schedule = (gc_schedule){p->taps, points, hop, partition, gc_divide_up(p->taps, partition)};
    return true;
}

/* An algorithm of a row, and the method that executes it. */
typedef struct row_algorithm {
    gc_algorithm row;
    gc_row_method method;
} row_algorithm;

#define ROW(id, name, least, most, fits, cost)                                                                         \
    { GPUCONV_ALGORITHM_##id, name, GC_ROW, least, most, 0, 0, fits, cost, NULL, NULL }

static const row_algorithm row_whole = {ROW(OVERLAP_SAVE, "overlap-save", 0, 0, NULL, cost_whole), GC_ROW_WHOLE},
                           row_direct = {ROW(DIRECT, "direct", 0, 0, NULL, cost_direct), GC_ROW_DIRECT},
                           row_overlap_save = {ROW(OVERLAP_SAVE, "overlap-save", 0, 0, NULL, cost_overlap_save),
                                               GC_ROW_OVERLAP_SAVE},
                           row_sum = {ROW(PARTITIONED, "partitioned", GC_FFT_MIN_POINTS, 1 << 24, fit_sum, cost_sum),
                                      GC_ROW_SUM};

/* At the same cost the first one is chosen. */
static const gc_algorithm *const row_algorithms[] = {&row_whole.row, &row_direct.row, &row_overlap_save.row,
                                                     &row_sum.row, NULL};

/* Orders the operands: the shorter one becomes the taps, unless the response is prepared or the schedule given. */
static void order(gc_row *row) {
    const gc_array response = row->taps;
    if (row->prepared || row->schedule.taps || response.frames <= row->signal.frames)
        return;
    row->taps = row->signal;
    row->signal = response;
    row->shared = NULL;
}

/* Returns whether two rows of a list have the same lengths, and so the same plan. */
static bool same_lengths(const gc_row *a, const gc_row *b) {
    return a->signal.frames == b->signal.frames && a->taps.frames == b->taps.frames &&
           a->output.frames == b->output.frames && a->offset == b->offset && !a->prepared == !b->prepared;
}

/* Takes the plan of the last row if it would be the same, which depends on the lengths of the operands and on the
 * frames of their convolution that are in the output. Returns whether it is. */
static bool take_plan(gc_row *row, const gc_row *last) {
    if (row->signal.frames != last->signal.frames || row->taps.frames != last->taps.frames ||
        row->begin != last->begin || row->end != last->end || !row->prepared != !last->prepared ||
        row->gradient != last->gradient)
        return false;
    row->schedule = last->schedule;
    row->algorithm = last->algorithm;
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
    gpuconv_status status =
        given ? GPUCONV_OK : choose_file(costs, row->signal.frames, row->taps.frames, &row->schedule, error);
    const gc_problem problem = {.kind = GC_ROW,
                                .row = {.signal = row->signal.frames,
                                        .taps = row->taps.frames,
                                        .begin = row->begin,
                                        .end = row->end,
                                        .prepared = row->prepared,
                                        .gradient = row->gradient,
                                        .file = row->schedule,
                                        .given = given}};
    const gc_device device = {.threads = 1};
    gc_choice choice;
    if (!status)
        status = gc_algorithms_choose(row_algorithms, &problem, &device, costs, &choice, NULL, error);
    if (status)
        return status;
    row->algorithm = choice.algorithm;
    row->method = ((const row_algorithm *)(const void *)choice.algorithm)->method;
    row->schedule = choice.schedule;
    row->seconds = choice.cost;
    row->first_block = row->method == GC_ROW_SUM ? 0 : row->begin / row->schedule.hop;
    row->blocks = row->method == GC_ROW_SUM ? 1 : gc_divide_up(row->end, row->schedule.hop) - row->first_block;
    if (!given)
        *last = *row;
    return GPUCONV_OK;
}

/* ---- Convolution of a row ---------------------------------------------------------------------------------------- */

/* Floats of a cache line, and frames that pass through a gate at a time. */
enum { LINE = 16, GATED = 512 };

static void free_scratch(gc_row_scratch *scratch) {
    free(scratch->block);
    free(scratch->output);
    free(scratch->taps);
    for (int i = 0; i <= GC_FFT_MAX_LOG2; i++) {
        free(scratch->spectra[i].response);
        free(scratch->spectra[i].work);
        free(scratch->spectra[i].sum);
    }
}

/* Makes a buffer of at least `floats` floats, or keeps the one that is large enough. Returns NULL without memory. */
static float *reserve(float **buffer, int64_t *size, int64_t floats) {
    if (*size < floats) {
        free(*buffer);
        *buffer = gc_calloc(floats, sizeof **buffer);
        *size = *buffer ? floats : 0;
    }
    return *buffer;
}

/* Returns a spectrum and makes it on first use. Returns NULL without memory. */
static float *reserve_spectrum(const gc_fft *fft, float **spectrum) {
    if (!*spectrum)
        *spectrum = gc_calloc(gc_fft_floats(fft), sizeof **spectrum);
    return *spectrum;
}

/* Converts `count` frames of an array from frame `at` on, all of which exist, without its gate. The compiler vectorises
 * the loops over adjacent samples. */
static void convert(const gc_array *from, int64_t at, int64_t count, float *to) {
    const int64_t step = from->step;
    const float *floats = (const float *)from->data + at * step;
    const uint16_t *halves = (const uint16_t *)from->data + at * step;
    if (from->type == GPUCONV_SAMPLE_F32 && step == 1)
        memcpy(to, floats, (size_t)count * sizeof *to);
    else if (from->type == GPUCONV_SAMPLE_F32 && step == -1)
        for (int64_t i = 0; i < count; i++)
            to[i] = floats[-i];
    else if (from->type == GPUCONV_SAMPLE_F32)
        for (int64_t i = 0; i < count; i++)
            to[i] = floats[i * step];
    else if (from->type == GPUCONV_SAMPLE_F16)
        for (int64_t i = 0; i < count; i++)
            to[i] = gc_half_to_float(halves[i * step]);
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = gc_bfloat_to_float(halves[i * step]);
}

/* Multiplies `count` frames by the gate of an array from frame `at` on. */
static void multiply_gate(const gc_array *a, int64_t at, int64_t count, float *frames) {
    const gc_array gate = {
        .data = (void *)(uintptr_t)a->gate, .frames = a->frames, .step = a->gate_step, .type = a->gate_type};
    float factor[GATED];
    for (int64_t n = 0; n < count && a->gate; n += GATED) {
        const int64_t some = gc_min(GATED, count - n);
        convert(&gate, at + n, some, factor);
        for (int64_t i = 0; i < some; i++)
            frames[n + i] *= factor[i]; /* NOLINT(clang-analyzer-core.uninitialized.Assign): transforms write them */
    }
}

static void load(const gc_array *from, int64_t at, int64_t count, float *to) {
    convert(from, at, count, to);
    multiply_gate(from, at, count, to);
}

void gc_row_gather(const gc_array *from, int64_t at, int64_t count, float *to) {
    const int64_t before = gc_min(count, gc_max(0, -at)), first = at + before;
    const int64_t inside = gc_max(0, gc_min(from->frames - first, count - before));
    memset(to, 0, (size_t)before * sizeof *to);
    if (inside > 0)
        load(from, first, inside, to + before);
    memset(to + before + inside, 0, (size_t)(count - before - inside) * sizeof *to);
}

/* Returns whether the array is contiguous floats without a gate, which need no copy. */
static bool in_place(const gc_array *a) {
    return a->step == 1 && a->type == GPUCONV_SAMPLE_F32 && !a->gate;
}

/* Returns the frames from `at` on where they are, or a copy in `block`. */
static const float *frames_at(const gc_array *from, int64_t at, int64_t count, float *block) {
    if (in_place(from) && at >= 0 && at + count <= from->frames)
        return (const float *)from->data + at;
    gc_row_gather(from, at, count, block);
    return block;
}

/* Fetches an array of adjacent floats into the cache. */
static void prefetch(const gc_array *a) {
    const float *first = (const float *)a->data - (a->step < 0 ? a->frames - 1 : 0);
    if (a->type != GPUCONV_SAMPLE_F32 || llabs(a->step) != 1)
        return;
    for (int64_t n = 0; n < a->frames; n += LINE)
        __builtin_prefetch(first + n);
}

/* Returns whether the output takes the samples as they are computed. */
static bool plain_output(const gc_row *row) {
    return in_place(&row->output) && !row->accumulate && !row->gain && !row->skip.data;
}

/* Writes frames of the output, times `gain`, without its gate. */
static void write_frames(const gc_row *row, int64_t first, int64_t count, const float *from, float gain) {
    const int64_t step = row->output.step;
    float *floats = (float *)row->output.data + first * step;
    uint16_t *halves = (uint16_t *)row->output.data + first * step;
    if (plain_output(row))
        memcpy(floats, from, (size_t)count * sizeof *from);
    else if (row->output.type == GPUCONV_SAMPLE_F32)
        for (int64_t i = 0; i < count; i++)
            floats[i * step] = row->accumulate ? gain * from[i] + floats[i * step] : gain * from[i];
    else if (row->output.type == GPUCONV_SAMPLE_F16)
        for (int64_t i = 0; i < count; i++)
            halves[i * step] =
                gc_half_of_float(gain * from[i] + (row->accumulate ? gc_half_to_float(halves[i * step]) : 0));
    else
        for (int64_t i = 0; i < count; i++)
            halves[i * step] =
                gc_bfloat_of_float(gain * from[i] + (row->accumulate ? gc_bfloat_to_float(halves[i * step]) : 0));
}

/* Adds what skips the convolution to frames of the output from `first` on. */
static void add_skip(const gc_row *row, int64_t first, int64_t count, float *frames) {
    float skip[GATED];
    gc_row_gather(&row->skip, first, count, skip);
    for (int64_t i = 0; i < count; i++)
        frames[i] += *row->skip_factor * skip[i];
}

void gc_row_write(const gc_row *row, int64_t first, int64_t count, const float *from) {
    const float gain = row->gain ? *row->gain : 1;
    float frames[GATED];
    if (!row->output.gate && !row->skip.data) {
        write_frames(row, first, count, from, gain);
        return;
    }
    for (int64_t n = 0; n < count; n += GATED) {
        const int64_t some = gc_min(GATED, count - n), at = first + n;
        for (int64_t i = 0; i < some; i++)
            frames[i] = gain * from[n + i];
        if (row->skip.data && !row->skip_last)
            add_skip(row, at, some, frames);
        multiply_gate(&row->output, at, some, frames);
        if (row->skip.data && row->skip_last)
            add_skip(row, at, some, frames);
        write_frames(row, at, some, frames, 1);
    }
}

/* Returns the factor of the taps for the inverse transform: a power of two. */
static float scale_of(const gc_row *row) {
    return 2 / (float)row->schedule.transform;
}

/* Transforms `count` taps from `first` on, by way of `block` if they are not where they can be read. */
static void transform_taps(const gc_fft *fft, const gc_row *row, int64_t first, int64_t count, float *block,
                           float *spectrum) {
    const float *const taps[] = {frames_at(&row->taps, first, count, block)};
    gc_fft_forward_rows(fft, taps, count, scale_of(row), spectrum);
}

static bool same_array(const gc_array *a, const gc_array *b) {
    return a->data == b->data && a->frames == b->frames && a->step == b->step && a->type == b->type &&
           a->gate == b->gate;
}

/* Transforms the taps of `count` rows by way of `block`. Pads the group by repeating its last row. */
static void transform_rows(const gc_fft *fft, const gc_row *row, int count, int group_size, float *block,
                           float *spectrum) {
    const int64_t frames = row->taps.frames;
    const float *taps[GC_FFT_MAX_ROWS] = {frames_at(&row->taps, 0, frames, block)};
    for (int r = 1; r < group_size; r++) {
        const bool again = r >= count || same_array(&row[r].taps, &row[r - 1].taps);
        taps[r] = again ? taps[r - 1] : frames_at(&row[r].taps, 0, frames, block + r * frames);
    }
    gc_fft_forward_rows(fft, taps, frames, scale_of(row), spectrum);
}

/* Returns the kept spectrum of `group_size` rows, by way of `block`. Returns NULL without memory. */
static const float *kept_spectrum(const gc_fft *fft, const gc_row *row, int group_size, float *block) {
    _Atomic(float *) *place = &row->prepared->spectrum[row->taps.step < 0][gc_row_log2(row->schedule.transform)];
    float *kept = atomic_load_explicit(place, memory_order_acquire);
    float *made = kept ? NULL : gc_calloc(gc_fft_floats(fft), sizeof *made);
    if (!made)
        return kept;
    transform_rows(fft, row, group_size, group_size, block, made);
    if (atomic_compare_exchange_strong(place, &kept, made))
        return made;
    free(made); /* another thread was first */
    return kept;
}

/* Returns whether the spectra of the rows are kept: of one row, or of rows with successive responses. */
static bool is_kept(const gc_row *row, int count, int group_size) {
    for (int r = 0; r < group_size; r++)
        if (r >= count || !row[r].prepared || row[r].prepared != row[0].prepared + r)
            return false;
    return true;
}

/* Returns the spectrum of the taps of `count` rows, and computes it if it is not kept. Returns NULL without memory. */
static const float *response_spectrum(const gc_rows *rows, gc_row_scratch *s, const gc_row *row, int count) {
    const int64_t points = row->schedule.transform;
    const int size = gc_row_log2(points);
    const gc_fft *fft = rows->fft[size];
    const int group_size = row->method == GC_ROW_WHOLE ? gc_fft_rows(fft) : 1;
    float *block = reserve(&s->block, &s->block_floats, group_size * points);
    float **spectrum = &s->spectra[size].response;
    if (block && is_kept(row, count, group_size))
        return kept_spectrum(fft, row, group_size, block);
    bool same = s->kept[0].data && s->kept_transform == points;
    for (int r = 0; r < group_size && same; r++)
        same = same_array(&s->kept[r], &row[gc_min(r, count - 1)].taps);
    if (same)
        return *spectrum;
    s->kept[0].data = NULL;
    if (!block || !reserve_spectrum(fft, spectrum))
        return NULL;
    transform_rows(fft, row, count, group_size, block, *spectrum);
    for (int r = 0; r < group_size; r++)
        s->kept[r] = row[gc_min(r, count - 1)].taps;
    s->kept_transform = points;
    return *spectrum;
}

void gc_kept_response_free_spectra(gc_kept_response *kept) {
    for (int k = 0; k < 2 * (GC_FFT_MAX_LOG2 + 1); k++)
        free(atomic_load(&kept->spectrum[k % 2][k / 2]));
}

static bool convolve_direct(gc_row_scratch *s, const gc_row *row, int64_t first_block, int64_t blocks) {
    const gc_schedule *p = &row->schedule;
    const int64_t taps = p->taps, before = gc_schedule_overlap(p), block_floats = before + p->hop;
    const bool taps_in_place = in_place(&row->taps), output_in_place = plain_output(row);
    float *block = reserve(&s->block, &s->block_floats, block_floats);
    float *output = reserve(&s->output, &s->output_floats, p->hop);
    float *copy = taps_in_place ? block : reserve(&s->taps, &s->taps_floats, taps);
    if (!block || !output || !copy)
        return false;
    if (!taps_in_place)
        gc_row_gather(&row->taps, 0, taps, copy);
    const float *h = taps_in_place ? row->taps.data : copy;
    for (int64_t b = first_block; b < first_block + blocks && !gc_cancelled(); b++) {
        /* Blocks begin at multiples of the span even if the output does not, so that the bytes do not depend on it. */
        const int64_t n = b * p->hop, from = gc_max(n, row->begin - (row->begin - n) % GC_DIRECT_SPAN);
        const int64_t first = gc_max(n, row->begin), count = gc_min(n + p->hop, row->end) - from;
        const float *x = frames_at(&row->signal, from - before, before + count, block) + before;
        if (output_in_place && from == first) {
            gc_simd_best()->direct(x, h, taps, (float *)row->output.data + (from - row->offset), count, 0);
        } else {
            gc_simd_best()->direct(x, h, taps, output, count, 0);
            gc_row_write(row, first - row->offset, count - (first - from), output + (first - from));
        }
    }
    return true;
}

static bool convolve_overlap_save(const gc_fft *fft, gc_row_scratch *s, const gc_row *row, const float *spectrum,
                                  int64_t first_block, int64_t blocks) {
    const gc_schedule *p = &row->schedule;
    const int64_t before = gc_schedule_overlap(p);
    float *block = reserve(&s->block, &s->block_floats, p->transform);
    float *work = reserve_spectrum(fft, &s->spectra[gc_row_log2(p->transform)].work);
    if (!block || !work)
        return false;
    const float *const factor[] = {work}, *const by[] = {spectrum};
    for (int64_t b = first_block; b < first_block + blocks && !gc_cancelled(); b++) {
        const int64_t n = b * p->hop, first = gc_max(n, row->begin), last = gc_min(n + p->hop, row->end);
        gc_fft_forward(fft, frames_at(&row->signal, n - before, p->transform, block), work);
        if (last - first == p->hop && plain_output(row)) {
            gc_fft_inverse(fft, factor, by, 1, work, (float *)row->output.data + (n - row->offset), before);
        } else {
            gc_fft_inverse(fft, factor, by, 1, work, block, before);
            gc_row_write(row, first - row->offset, last - first, block + (first - n));
        }
    }
    return true;
}

/* Computes the frames begin .. end - 1 as one block: the sum over the partitions of the taps. */
static bool convolve_sum(const gc_fft *fft, gc_row_scratch *s, const gc_row *row) {
    const gc_schedule *p = &row->schedule;
    const int64_t floats = gc_fft_floats(fft), before = gc_schedule_overlap(p);
    gc_row_spectra *spectra = &s->spectra[gc_row_log2(p->transform)];
    float *block = reserve(&s->block, &s->block_floats, p->transform);
    float *work = reserve_spectrum(fft, &spectra->work), *taps = reserve_spectrum(fft, &spectra->response);
    float *sum = reserve_spectrum(fft, &spectra->sum);
    s->kept[0].data = NULL;
    if (!block || !work || !taps || !sum)
        return false;
    memset(sum, 0, (size_t)floats * sizeof *sum);
    for (int64_t i = 0; i < p->partitions && !gc_cancelled(); i++) {
        const int64_t first = i * p->partition, count = gc_min(p->partition, row->taps.frames - first);
        const int64_t at = row->begin - first - before;
        if (at >= row->signal.frames || at + p->transform <= 0)
            continue; /* this partition meets only zeros */
        transform_taps(fft, row, first, count, block, taps);
        gc_fft_forward(fft, frames_at(&row->signal, at, p->transform, block), work);
        const float *const x[] = {work}, *const h[] = {taps};
        gc_fft_multiply_sum(fft, work, x, h, 1, floats);
        for (int64_t k = 0; k < floats; k++)
            sum[k] += work[k];
    }
    gc_fft_inverse(fft, NULL, NULL, 0, sum, block, before);
    gc_row_write(row, row->begin - row->offset, row->end - row->begin, block);
    return true;
}

/* Writes the output frames first .. last - 1, to which the convolution adds nothing. */
static void write_skip(const gc_row *row, int64_t first, int64_t last) {
    static const float zeros[GATED];
    for (int64_t n = first; n < last; n += GATED)
        gc_row_write(row, n, gc_min(GATED, last - n), zeros);
}

/* Writes the output frames outside of the convolution, and zeros to those that are cleared. */
static void write_rest(const gc_row *row) {
    const int64_t frames = gc_max(row->output.frames, row->cleared), step = row->output.step;
    const int64_t first = gc_min(row->output.frames, gc_max(0, row->begin - row->offset));
    const int64_t last = gc_max(first, gc_min(row->output.frames, row->end - row->offset));
    for (int64_t i = first > 0 ? 0 : last; i < frames && !row->accumulate; i = i + 1 == first ? last : i + 1)
        if (row->output.type == GPUCONV_SAMPLE_F32)
            ((float *)row->output.data)[i * step] = 0;
        else
            ((uint16_t *)row->output.data)[i * step] = 0;
    if (row->skip.data) {
        write_skip(row, 0, first);
        write_skip(row, last, row->output.frames);
    }
}

/* Computes `count` rows of the same plan, GC_ROW_WHOLE; at most gc_fft_rows of their transform. Returns false without
 * memory. */
static bool convolve_whole(const gc_rows *rows, gc_row_scratch *s, const gc_row *row, int count) {
    const int64_t points = row->schedule.transform, frames = row->signal.frames, begin = row->begin, end = row->end;
    const gc_fft *fft = rows->fft[gc_row_log2(points)];
    const int group_size = gc_fft_rows(fft);
    const float *spectrum = response_spectrum(rows, s, row, count), *signal[GC_FFT_MAX_ROWS] = {NULL};
    float *block = reserve(&s->block, &s->block_floats, group_size * points), *output[GC_FFT_MAX_ROWS] = {NULL};
    float *other = reserve(&s->output, &s->output_floats, group_size * points);
    float *work = reserve_spectrum(fft, &s->spectra[gc_row_log2(points)].work);
    if (!spectrum || !block || !other || !work)
        return false;
    for (int r = 0; r < group_size; r++) { /* pads the group by repeating its last row */
        const gc_row *one = &row[gc_min(r, count - 1)];
        signal[r] = r < count ? frames_at(&one->signal, 0, frames, block + r * points) : signal[count - 1];
        output[r] = r >= count          ? output[count - 1]
                    : plain_output(one) ? (float *)one->output.data + (begin - one->offset)
                                        : other + r * points;
    }
    for (int r = 0; r < count; r++)
        for (int64_t n = 0; n < end - begin; n += LINE)
            __builtin_prefetch(output[r] + n, 1);
    gc_fft_forward_rows(fft, signal, frames, 1, work);
    gc_fft_inverse_rows(fft, work, spectrum, work, output, begin, end);
    for (int r = 0; r < count; r++) {
        write_rest(&row[r]);
        if (!plain_output(&row[r]))
            gc_row_write(&row[r], begin - row[r].offset, end - begin, output[r]);
    }
    return true;
}

/* Adds the spectra of `count` terms of the same plan, GC_ROW_WHOLE, to the sum of the scratch memory, or begins it; at
 * most gc_fft_rows of their transform. Returns false without memory. */
static bool add_spectra(const gc_rows *rows, gc_row_scratch *s, const gc_row *row, int count, bool begin) {
    const int64_t points = row->schedule.transform, frames = row->signal.frames, taps = row->taps.frames;
    const gc_fft *fft = rows->fft[gc_row_log2(points)];
    const int64_t floats = gc_fft_floats(fft);
    const int group_size = gc_fft_rows(fft);
    gc_row_spectra *spectra = &s->spectra[gc_row_log2(points)];
    float *block = reserve(&s->block, &s->block_floats, group_size * points);
    float *scaled = reserve(&s->output, &s->output_floats, group_size * points);
    float *work = reserve_spectrum(fft, &spectra->work), *response = reserve_spectrum(fft, &spectra->response);
    float *sum = reserve_spectrum(fft, &spectra->sum);
    const float *signal[GC_FFT_MAX_ROWS] = {NULL}, *h[GC_FFT_MAX_ROWS] = {NULL};
    s->kept[0].data = NULL;
    if (!block || !scaled || !work || !response || !sum)
        return false;
    for (int r = 0; r < count && group_size > 1; r++) { /* short rows, far from each other in the memory */
        prefetch(&row[r].signal);
        prefetch(&row[r].taps);
    }
    for (int r = 0; r < group_size; r++) { /* pads the group by repeating its last term without taps */
        const gc_row *one = &row[gc_min(r, count - 1)];
        float *copy = scaled + r * points;
        signal[r] = r < count ? frames_at(&one->signal, 0, frames, block + r * points) : signal[count - 1];
        h[r] = r < count ? frames_at(&one->taps, 0, taps, copy) : copy;
        for (int64_t k = 0; k < taps && (r >= count || one->gain); k++)
            copy[k] = r < count ? *one->gain * h[r][k] : 0;
        h[r] = r >= count || one->gain ? copy : h[r];
    }
    gc_fft_forward_rows(fft, signal, frames, 1, work);
    gc_fft_forward_rows(fft, h, taps, scale_of(row), response);
    const float *const x[] = {work}, *const y[] = {response};
    gc_fft_multiply_sum(fft, begin ? sum : work, x, y, 1, floats);
    for (int64_t k = 0; k < floats && !begin; k++)
        sum[k] += work[k];
    return true;
}

/* Transforms the sum back and writes it as the output of `row`, a term. Returns false without memory. */
static bool write_spectra(const gc_rows *rows, gc_row_scratch *s, const gc_row *row) {
    const int64_t points = row->schedule.transform, frames = row->end - row->begin;
    const gc_fft *fft = rows->fft[gc_row_log2(points)];
    const int group_size = gc_fft_rows(fft);
    float *sum = s->spectra[gc_row_log2(points)].sum, *output[GC_FFT_MAX_ROWS];
    float *block = reserve(&s->output, &s->output_floats, group_size * points);
    gc_row whole = *row; /* the gains are in the taps */
    whole.gain = NULL;
    if (!block)
        return false;
    for (int r = 0; r < group_size; r++)
        output[r] = block + r * points;
    gc_fft_inverse_rows(fft, sum, NULL, sum, output, row->begin, row->end);
    for (int r = 1; r < group_size; r++)
        for (int64_t n = 0; n < frames; n++)
            block[n] += output[r][n];
    write_rest(row);
    gc_row_write(&whole, row->begin - row->offset, frames, block);
    return true;
}

/* Computes the output frames of `blocks` blocks of a planned row. Returns false without memory. */
static bool convolve_blocks(const gc_rows *rows, gc_row_scratch *s, const gc_row *row, int64_t first_block,
                            int64_t blocks) {
    if (row->method == GC_ROW_WHOLE)
        return convolve_whole(rows, s, row, 1);
    if (first_block == row->first_block)
        write_rest(row);
    if (row->method == GC_ROW_ZERO)
        return true;
    if (row->method == GC_ROW_DIRECT)
        return convolve_direct(s, row, first_block, blocks);
    const gc_fft *fft = rows->fft[gc_row_log2(row->schedule.transform)];
    if (row->method == GC_ROW_SUM)
        return convolve_sum(fft, s, row);
    const float *spectrum = response_spectrum(rows, s, row, 1);
    return spectrum && convolve_overlap_save(fft, s, row, spectrum, first_block, blocks);
}

/* ---- Division among threads -------------------------------------------------------------------------------------- */

/* Jobs per thread that balance the load; a batch of less work than waking a thread takes stays on the calling one. */
enum { JOBS_PER_THREAD = 6 };

bool gc_rows_init(gc_rows *r, int threads) {
    char name[128];
    gc_os_processor_name(name, sizeof name);
    r->costs = gc_costs_of_cpu(name);
    r->threads = threads ? threads : gc_processor_count();
    r->pool = gc_pool_new(r->threads);
    r->scratch = gc_calloc(r->threads, sizeof *r->scratch);
    return r->pool && r->scratch;
}

void gc_rows_free(gc_rows *r) {
    gc_pool_free(r->pool);
    for (int i = 0; i <= GC_FFT_MAX_LOG2; i++)
        gc_fft_free(r->fft[i]);
    for (int i = 0; r->scratch && i < r->threads; i++)
        free_scratch(&r->scratch[i]);
    free(r->scratch);
}

void gc_rows_forget(gc_rows *r) {
    for (int i = 0; i < r->threads; i++)
        r->scratch[i].kept[0].data = NULL;
}

/* A row that is divided into jobs, and the transforms of its response where neither the caller nor the call keeps
 * them. */
typedef struct divided_row {
    gc_row row;
    gc_kept_response own;
} divided_row;

/* Some blocks of a row that is divided, or some rows. */
typedef struct job {
    const gc_row *divided; /* NULL: rows */
    int64_t first, count;
} job;

/* Of a row: the predicted seconds of all terms, and the rows of its kind that are transformed together. */
typedef struct estimate {
    double seconds;
    int group_size;
} estimate;

/* Rows that are being convolved. */
typedef struct batch {
    gc_rows *rows;
    const gc_row_list *list;
    estimate *estimate; /* of each row; of the first one if they are alike */
    double seconds;     /* sum of the predicted times */
    double limit;       /* of the time of a job, about */
    job *jobs;
    int64_t job_count;
    divided_row *divided;
    int64_t divided_count;
    _Atomic bool failed; /* memory is exhausted */
} batch;

static void free_batch(batch *b) {
    for (int64_t i = 0; i < b->divided_count; i++)
        gc_kept_response_free_spectra(&b->divided[i].own);
    free(b->divided);
    free(b->estimate);
    free(b->jobs);
}

/* Makes and plans a term of a row of the list; *last as for gc_row_plan. */
static gpuconv_status plan_row(const batch *b, int64_t index, int64_t term, gc_row *row, gc_row *last,
                               gpuconv_error *error) {
    memset(row, 0, sizeof *row);
    b->list->make(b->list->context, index, term, row);
    const gpuconv_status status = gc_row_plan(&b->rows->costs, row, last, error);
    if (!row->prepared)
        row->prepared = row->shared;
    return status;
}

/* Returns the predicted seconds of a row from those of a term. */
static double seconds_of(const gc_row *row) {
    return row->seconds * (double)gc_max(1, row->terms);
}

/* Plans all rows and their terms, the first ones if they are alike, and creates their FFT plans. */
static gpuconv_status plan_rows(batch *b, gpuconv_error *error) {
    const int64_t planned = b->list->alike ? gc_min(1, b->list->count) : b->list->count;
    if (!(b->estimate = gc_calloc(gc_max(1, planned), sizeof *b->estimate)))
        return gc_fail_memory(error, "the plans of rows");
    for (int64_t i = 0, term = 0; i < planned; term++) {
        gc_row row;
        const gpuconv_status status = plan_row(b, i, term, &row, &b->rows->last, error);
        if (status)
            return status;
        b->seconds += b->list->alike ? seconds_of(&row) * (double)b->list->count : row.seconds;
        gc_fft **fft = &b->rows->fft[row.method < GC_ROW_OVERLAP_SAVE ? 0 : gc_row_log2(row.schedule.transform)];
        if (row.method >= GC_ROW_OVERLAP_SAVE && !*fft && !(*fft = gc_fft_new(gc_simd_best(), row.schedule.transform)))
            return gc_fail_memory(error, "the tables of a transform");
        if (term == 0)
            b->estimate[i] = (estimate){seconds_of(&row), row.method == GC_ROW_WHOLE ? gc_fft_rows(*fft) : 1};
        if (b->list->alike || term + 1 >= row.terms) {
            i++;
            term = -1;
        }
    }
    return GPUCONV_OK;
}

/* Returns the number of jobs that a row is divided into. */
static int64_t parts_of(const gc_row *row, double limit) {
    return row->seconds > limit && row->terms < 2 ? gc_min(row->blocks, (int64_t)(row->seconds / limit) + 1) : 1;
}

/* Divides a row into jobs. */
static void divide(batch *b, const gc_row *row, int64_t parts) {
    divided_row *divided = &b->divided[b->divided_count++];
    divided->row = *row;
    if (row->method == GC_ROW_OVERLAP_SAVE && !row->prepared)
        divided->row.prepared = &divided->own;
    for (int64_t k = 0; k < parts; k++) {
        const int64_t first = row->blocks * k / parts, next = row->blocks * (k + 1) / parts;
        b->jobs[b->job_count++] = (job){&divided->row, row->first_block + first, next - first};
    }
}

/* Every job but the last of a list, and but those before divided rows, takes the limit or longer; a divided row takes
 * it at least: this bounds the arrays. The first of several terms may be longer than the others, so that the time of a
 * row is estimated too long: there are then no more jobs than `most`, and the last one is longer. */
static bool make_jobs(batch *b) {
    const int64_t most = b->rows->threads * JOBS_PER_THREAD + 1;
    const bool shared = b->rows->threads > 1 && b->seconds > gc_cpu_shared_seconds;
    gc_row row, last = b->rows->last;
    job run = {0};
    double seconds = 0;
    int64_t full = 0; /* jobs of rows that take the limit */
    b->limit = shared ? b->seconds / (double)(most - 1) : HUGE_VAL;
    b->jobs = gc_calloc(4 * most, sizeof *b->jobs);
    b->divided = gc_calloc(most, sizeof *b->divided);
    if (!b->jobs || !b->divided)
        return false;
    for (int64_t i = 0; i < b->list->count; i++) {
        const estimate *e = &b->estimate[b->list->alike ? 0 : i];
        const bool much = e->seconds > b->limit;
        if (much && plan_row(b, i, 0, &row, &last, NULL))
            return false;
        const int64_t parts = much ? parts_of(&row, b->limit) : 1;
        if (parts > 1) {
            divide(b, &row, parts);
        } else {
            run.count++;
            seconds += e->seconds;
        }
        const bool whole = run.count % e->group_size == 0;
        const bool enough = seconds >= b->limit && whole && full < most;
        if (run.count && (parts > 1 || enough || i + 1 == b->list->count)) {
            b->jobs[b->job_count++] = run;
            full += enough;
            run.count = 0;
            seconds = 0;
        }
        if (!run.count)
            run.first = i + 1;
    }
    return true;
}

static void transform_response(void *context, int64_t index, int worker) {
    batch *b = context;
    const gc_row *row = &b->divided[index].row;
    if (row->method == GC_ROW_OVERLAP_SAVE && !b->failed &&
        !response_spectrum(b->rows, &b->rows->scratch[worker], row, 1))
        b->failed = true;
}

/* Convolves the terms of a row, of which *row is the first, and adds them up: as spectra if they have one transform of
 * the whole convolution, which is then transformed back once. Returns false without memory. */
static bool convolve_terms(const batch *b, int64_t index, const gc_row *row, gc_row *last, gc_row_scratch *scratch) {
    const bool spectra = b->list->alike && row->method == GC_ROW_WHOLE;
    const int group_size = spectra ? b->estimate->group_size : 1;
    gc_row group[GC_FFT_MAX_ROWS] = {*row};
    for (int64_t term = 0; term < row->terms && !gc_cancelled(); term++) {
        const int64_t grouped = term % group_size;
        gc_row *next = &group[grouped];
        if (term > 0 && plan_row(b, index, term, next, last, NULL))
            return false;
        next->accumulate |= term > 0;
        if (!spectra && !convolve_blocks(b->rows, scratch, next, next->first_block, next->blocks))
            return false;
        if (spectra && (grouped + 1 == group_size || term + 1 == row->terms) &&
            !add_spectra(b->rows, scratch, group, (int)grouped + 1, term < group_size))
            return false;
    }
    return !spectra || write_spectra(b->rows, scratch, row);
}

/* Convolves rows, those of one short transform together. Returns false without memory. */
static bool convolve_rows(const batch *b, int64_t first, int64_t count, gc_row_scratch *scratch) {
    gc_row group[GC_FFT_MAX_ROWS], last = b->rows->last;
    int grouped = 0;
    for (int64_t i = first; i < first + count && !gc_cancelled(); i++) {
        gc_row *row = &group[grouped];
        if (plan_row(b, i, 0, row, &last, NULL))
            return false;
        const bool sum = row->terms > 1, whole = row->method == GC_ROW_WHOLE && !sum;
        if (grouped && (sum || !same_lengths(row, &group[0]))) {
            if (!convolve_whole(b->rows, scratch, group, grouped))
                return false;
            group[0] = *row;
            grouped = 0;
        }
        if (!whole && !(sum ? convolve_terms(b, i, &group[0], &last, scratch)
                            : convolve_blocks(b->rows, scratch, &group[0], group[0].first_block, group[0].blocks)))
            return false;
        grouped += whole;
        if (grouped && (i + 1 == first + count || grouped == b->estimate[b->list->alike ? 0 : i].group_size)) {
            if (!convolve_whole(b->rows, scratch, group, grouped))
                return false;
            grouped = 0;
        }
    }
    return true;
}

static void convolve_job(void *context, int64_t index, int worker) {
    batch *b = context;
    gc_row_scratch *scratch = &b->rows->scratch[worker];
    const job *j = &b->jobs[index];
    if (!b->failed && !(j->divided ? convolve_blocks(b->rows, scratch, j->divided, j->first, j->count)
                                   : convolve_rows(b, j->first, j->count, scratch)))
        b->failed = true;
}

/* Runs a loop on the threads, or on the calling thread if that is quicker. */
static void run(batch *b, void (*work)(void *, int64_t, int), int64_t count) {
    if (b->seconds > gc_cpu_shared_seconds)
        gc_pool_run(b->rows->pool, work, b, count);
    else
        for (int64_t i = 0; i < count && !gc_cancelled(); i++)
            work(b, i, 0);
}

gpuconv_status gc_rows_convolve(gc_rows *rows, const gc_row_list *list, gpuconv_error *error) {
    batch b = {.rows = rows, .list = list};
    gpuconv_status status = plan_rows(&b, error);
    if (!status && !make_jobs(&b))
        status = gc_fail_memory(error, "the jobs of a batch");
    if (!status) {
        const uint64_t mode = gc_save_and_flush_subnormals();
        run(&b, transform_response, b.divided_count);
        run(&b, convolve_job, b.job_count);
        gc_restore_subnormals(mode);
        if (b.failed || gc_cancelled())
            status = gc_fail_memory(error, "the convolution of rows");
    }
    free_batch(&b);
    return status;
}

gc_array gc_array_of_row(const gpuconv_rows *a, int64_t row) {
    const int64_t start = a->starts ? a->starts[row] : row * a->stride;
    const int64_t frames = a->lengths ? gc_max(0, gc_min(a->lengths[row], a->frames)) : a->frames;
    return (gc_array){.data = a->data ? (char *)a->data + start * gc_job_sample_bytes(a->type) : NULL,
                      .frames = frames,
                      .step = a->step,
                      .type = a->type};
}

gc_array gc_array_backwards(gc_array a) {
    const int64_t last = gc_max(0, a.frames - 1);
    gc_array made = a;
    if (a.data)
        made.data = (char *)a.data + last * a.step * gc_job_sample_bytes(a.type);
    if (a.gate)
        made.gate = (const char *)a.gate + last * a.gate_step * gc_job_sample_bytes(a.gate_type);
    made.step = -a.step;
    made.gate_step = -a.gate_step;
    return made;
}
