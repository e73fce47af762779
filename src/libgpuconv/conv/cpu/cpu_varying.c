/*
 * Filters that change with time, in host memory: a response for each block of the signal. A job becomes a list of rows
 * (rows.h), each a sum of convolutions of a block with its response:
 *
 *      convolve    a row is a stretch of the output; its terms are the blocks that reach it
 *      signal      a row is a block of the signal; it has one term
 *      response    a row is a response; its terms are its block in the signals that share it
 *
 * so that every frame is computed by one thread, in the same order with any number of threads. A filter that crosses to
 * the next one has each block twice, with the falling weights and its response, and with the rising weights and the
 * next response. Weighted signals are arrays of their own.
 */
#include "rows.h"

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <stdlib.h>

/* Frames of a stretch of the output, at least. */
enum { STRETCH = 4096 };

typedef struct varying {
    gc_rows *rows;
    const gpuconv_arrays_job *job;
    const gc_job_shape *shape;
    int64_t stretch; /* blocks of a stretch of the output */
    int64_t each;    /* rows of the list for each row of the array that is written, or for each of its sets */
    float *weighted; /* the signals (their gradients) with the falling weights, then with the rising ones; or NULL */
    float *output;   /* the output, where it is not of floats; or NULL */
    bool rise;       /* of the gradient by the signal that is computed */
} varying;

/* Returns frames at ... at + frames - 1 of an array, those that it has. */
static gc_array part_of(gc_array a, int64_t at, int64_t frames) {
    const int64_t begin = gc_max(0, gc_min(at, a.frames)), end = gc_max(begin, gc_min(at + frames, a.frames));
    if (a.data)
        a.data = (char *)a.data + begin * a.step * gc_job_sample_bytes(a.type);
    a.frames = end - begin;
    return a;
}

/* Returns the weight of frame m of a row. */
static float weight(const gc_job_shape *s, int64_t m, bool rise) {
    const int64_t block = m / s->hop;
    const float up = block + 1 < s->blocks ? (float)(m % s->hop) / (float)s->hop : 0.0f;
    return rise ? up : 1.0f - up;
}

/* Returns block `block` of a signal, with its weights where the filter crosses over. */
static gc_array block_of(const varying *v, int64_t row, int64_t block, bool rise) {
    const gc_job_shape *s = v->shape;
    gc_array signal = gc_array_of_row(&v->job->signal, row);
    if (v->weighted) {
        signal.data = v->weighted + ((rise ? s->rows : 0) + row) * s->signal_frames;
        signal.step = 1;
        signal.type = GPUCONV_SAMPLE_F32;
    }
    return part_of(signal, block * s->hop, s->hop);
}

/* Returns the response of a block of a row. */
static gc_array response_of(const varying *v, int64_t row, int64_t block) {
    const gc_job_shape *s = v->shape;
    return gc_array_of_row(&v->job->response, row / s->group % s->responses * s->blocks + block);
}

/* Sets the operands of a correlation of the output's gradient with `taps`, whose frame 0 is frame `at` of the output,
 * for `frames` frames of result. */
static void correlate(const varying *v, int64_t row, int64_t at, int64_t frames, gc_array taps, gc_row *to) {
    const int64_t begin = at - v->job->offset;
    to->signal = part_of(gc_array_of_row(&v->job->output, row), begin, frames + taps.frames - 1);
    to->taps = gc_array_backwards(taps);
    to->offset = taps.frames - 1 + gc_min(0, begin);
}

/* Sets the frames of a target row that a row of the list writes. */
static void aim(const varying *v, int64_t row, int64_t at, int64_t frames, gc_row *to) {
    const gpuconv_rows *target = gc_job_written(v->job);
    to->output = part_of(gc_array_of_row(target, row), at, frames);
    to->cleared =
        target->starts || v->job->accumulate ? to->output.frames : gc_max(0, gc_min(frames, target->frames - at));
    if (!to->output.frames && to->cleared) /* a stretch behind the end of a row: its place all the same */
        to->output = (gc_array){.data = (char *)target->data +
                                        (row * target->stride + at * target->step) * gc_job_sample_bytes(target->type),
                                .step = target->step,
                                .type = target->type};
    to->accumulate = v->job->accumulate;
}

/* Stretch `index` of the output: the terms are the blocks that reach it, first those with falling weights. */
static void make_output(const void *context, int64_t index, int64_t term, gc_row *to) {
    const varying *v = context;
    const gc_job_shape *s = v->shape;
    const int64_t row = index / v->each, length = v->stretch * s->hop, at = index % v->each * length;
    const int64_t first = gc_max(0, (at + s->offset - s->taps + s->hop) / s->hop - 1);
    const int64_t end = gc_max(first, gc_min(s->blocks, gc_divide_up(gc_max(0, at + length + s->offset), s->hop)));
    const int64_t rises = s->linear ? gc_max(0, gc_min(end, s->blocks - 1) - first) : 0;
    const bool rise = term >= end - first;
    const int64_t block = first + (rise ? term - (end - first) : term);
    aim(v, row, at, length, to);
    if (v->output) {
        to->output = (gc_array){.data = v->output + row * s->output_frames + at,
                                .frames = gc_max(0, gc_min(length, s->output_frames - at)),
                                .step = 1};
        to->cleared = to->output.frames;
        to->accumulate = false;
    }
    to->terms = end - first + rises;
    to->gain = v->job->gain ? &v->job->gain[row] : NULL;
    if (!to->terms)
        return;
    to->signal = block_of(v, row, block, rise);
    to->taps = response_of(v, row, block + rise);
    to->offset = at + s->offset - block * s->hop;
}

/* The gradient by block `index` of the signals. */
static void make_signal(const void *context, int64_t index, int64_t term, gc_row *to) {
    const varying *v = context;
    const gc_job_shape *s = v->shape;
    const int64_t row = index / s->blocks, block = index % s->blocks;
    (void)term;
    aim(v, row, block * s->hop, s->hop, to);
    if (v->weighted) {
        to->output = block_of(v, row, block, v->rise);
        to->cleared = to->output.frames;
        to->accumulate = false;
    }
    to->gain = v->job->gain ? &v->job->gain[row] : NULL;
    if (v->rise && block + 1 == s->blocks)
        return;
    correlate(v, row, block * s->hop, s->hop, response_of(v, row, block + v->rise), to);
}

/* The gradient by response `index`: the terms are its block in all rows that share it, then the one before with rising
 * weights. */
static void make_response(const void *context, int64_t index, int64_t term, gc_row *to) {
    const varying *v = context;
    const gc_job_shape *s = v->shape;
    const int64_t set = index / s->blocks, block = index % s->blocks;
    int64_t sharing = 0;
    for (int64_t first = set * s->group; first < s->rows; first += s->responses * s->group)
        sharing += gc_min(s->group, s->rows - first);
    const bool rise = term >= sharing;
    const int64_t n = rise ? term - sharing : term;
    const int64_t row = (n / s->group * s->responses + set) * s->group + n % s->group;
    aim(v, index, 0, s->taps, to);
    to->terms = sharing * (1 + (s->linear && block > 0));
    to->gain = v->job->gain ? &v->job->gain[row] : NULL;
    correlate(v, row, (block - rise) * s->hop, s->taps, block_of(v, row, block - rise, rise), to);
}

/* Weights a signal, falling and rising. */
static void weigh_signal(void *context, int64_t row, int worker) {
    const varying *v = context;
    const gc_job_shape *s = v->shape;
    const gc_array signal = gc_array_of_row(&v->job->signal, row);
    float *fall = v->weighted + row * s->signal_frames, *rise = fall + s->rows * s->signal_frames;
    (void)worker;
    gc_row_gather(&signal, 0, s->signal_frames, fall);
    for (int64_t m = 0; m < s->signal_frames; m++) {
        rise[m] = fall[m] * weight(s, m, true);
        fall[m] *= weight(s, m, false);
    }
}

/* Writes the gradient by a signal from those by the two weighted signals. */
static void write_signal(void *context, int64_t row, int worker) {
    const varying *v = context;
    const gc_job_shape *s = v->shape;
    float *fall = v->weighted + row * s->signal_frames, *rise = fall + s->rows * s->signal_frames;
    gc_row to = {0};
    (void)worker;
    for (int64_t m = 0; m < s->signal_frames; m++)
        fall[m] = weight(s, m, false) * fall[m] + weight(s, m, true) * rise[m];
    aim(v, row, 0, s->signal_frames, &to);
    gc_row_write(&to, 0, to.cleared, fall);
}

static void write_output(void *context, int64_t row, int worker) {
    const varying *v = context;
    gc_row to = {0};
    (void)worker;
    aim(v, row, 0, v->shape->output_frames, &to);
    gc_row_write(&to, 0, to.cleared, v->output + row * v->shape->output_frames);
}

static gpuconv_status run_operation(varying *v, gpuconv_error *error) {
    const gc_job_shape *s = v->shape;
    if (s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE)
        return gc_rows_convolve(v->rows, &(gc_row_list){s->responses * s->blocks, false, make_response, v}, error);
    if (s->operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL) {
        const gc_row_list list = {s->rows * s->blocks, false, make_signal, v};
        gpuconv_status status = gc_rows_convolve(v->rows, &list, error);
        v->rise = true;
        if (!status && s->linear && !(status = gc_rows_convolve(v->rows, &list, error)))
            gc_pool_run(v->rows->pool, write_signal, v, s->rows);
        return status;
    }
    v->stretch = gc_divide_up(gc_max(STRETCH, 4 * s->taps), s->hop);
    v->each = gc_divide_up(s->output_frames, v->stretch * s->hop);
    const gc_row_list list = {s->rows * v->each, false, make_output, v};
    const gpuconv_status status = gc_rows_convolve(v->rows, &list, error);
    if (!status && v->output)
        gc_pool_run(v->rows->pool, write_output, v, s->rows);
    return status;
}

gpuconv_status gc_cpu_run_varying(gc_rows *rows, const gpuconv_arrays_job *job, const gc_job_shape *s,
                                  gpuconv_error *error) {
    varying v = {.rows = rows, .job = job, .shape = s};
    const bool convolve = s->operation == GPUCONV_ARRAYS_CONVOLVE;
    gpuconv_status status = GPUCONV_OK;
    if (s->linear && !(v.weighted = gc_calloc(2 * s->rows * s->signal_frames, sizeof *v.weighted)))
        status = gc_fail_memory(error, "weighted signals");
    /* Terms are added in floats and rounded once. */
    if (!status && convolve && (job->output.type != GPUCONV_SAMPLE_F32 || job->output.lengths) &&
        !(v.output = gc_calloc(s->rows * s->output_frames, sizeof *v.output)))
        status = gc_fail_memory(error, "the output of a filter that changes with time");
    if (!status && s->linear && s->operation != GPUCONV_ARRAYS_GRADIENT_SIGNAL)
        gc_pool_run(rows->pool, weigh_signal, &v, s->rows);
    if (!status)
        status = run_operation(&v, error);
    free(v.weighted);
    free(v.output);
    return status ? status : gc_cancelled() ? gc_fail_memory(error, "the sums of a job") : GPUCONV_OK;
}
