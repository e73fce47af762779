/*
 * Arrays in host memory (gpuconv_arrays.h): the threads, prepared responses, jobs, and streamers, each of whose blocks
 * is a job.
 *
 * A job is a list of products. A product has three rows: of the signal, of the response and of the output. It reads two
 * of them, convolves them, and writes the third; in a gradient one of the two is read backwards. The products of a
 * written row are divided into runs, which are rows of rows.h with several terms. A written row with one run is
 * computed in its place. The runs of a written row with several are computed in memory of their own and summed in
 * double precision in a fixed order, so that the sum does not depend on the threads.
 */
#include "cpu_algorithm.h"
#include "cpu_rooms.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/conv/rooms.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/dsp/finite.h"
#include "rows.h"

#include <stdlib.h>
#include <string.h>

typedef struct gc_cpu_arrays {
    gpuconv_arrays base;
    gc_rows rows;
    gc_room_filters filters;
} gc_cpu_arrays;

typedef struct gc_cpu_responses {
    gpuconv_responses base;
    gc_kept_response *kept;
    gpuconv_ir *ir; /* owns the taps and has the routes; NULL: without routes */
} gc_cpu_responses;

typedef struct cpu_streamer {
    gpuconv_streamer base;
    gpuconv_responses *responses;
    int64_t history, frames; /* of a row of `window`: the last taps - 1 frames of the past, and the block */
    float *window;
} cpu_streamer;

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

/* Floats of runs that are summed at a time, about, and frames that a thread sums at a time. */
enum { RUN_FLOATS = 1 << 26, SUM_FRAMES = 4096 };

/* Most floats of the spectra of responses that rows share. */
enum { SHARED_FLOATS = 1 << 23 };

/* Most products of a run, whose sum is in floats, and the runs of a job from which on they have more than one. */
enum { MOST_TERMS = 64, MANY_RUNS = 256 };

/* Returns a row of an array with its gate, which may be NULL. */
static gc_array gated_row(const gpuconv_rows *a, const gpuconv_rows *gate, int64_t row) {
    gc_array made = gc_array_of_row(a, row);
    if (gate) {
        const gc_array factors = gc_array_of_row(gate, row);
        made.gate = factors.data;
        made.gate_step = factors.step;
        made.gate_type = factors.type;
    }
    return made;
}

/* Rows of the arrays of a job that belong together. response: of job->response, or of the prepared responses. */
typedef struct product {
    int64_t signal, response, output;
    int64_t target; /* row of the array that is written */
} product;

/* A job that runs. */
typedef struct work {
    gc_rows *rows;
    const gpuconv_arrays_job *job;
    const gc_job_shape *shape;
    const gpuconv_rows *target;
    product *product; /* sorted by target, in order; NULL: all targets have `each` products (product_at) */
    int64_t *first;   /* first product of every target, and their number; or NULL */
    int64_t each;
    int64_t most;             /* products of a run */
    int64_t *first_run;       /* of every target, and their number */
    gc_kept_response *shared; /* of every response, if several rows have it; or NULL */
    /* The targets that are being computed, in frames begin .. begin + width - 1: */
    int64_t from, to, begin, width;
    float *side; /* the runs of targets that have several, `width` floats each, from run first_run[from] on */
} work;

static int64_t count_products(const gc_job_shape *s) {
    return s->routes.routes ? s->batch * s->routes.routes : s->rows;
}

static product product_of(const gpuconv_arrays_job *job, const gc_job_shape *s, int64_t n) {
    product p = {n, (n / s->group) % s->responses, n, 0};
    if (s->routes.routes) {
        const gc_route *route = &((const gc_cpu_responses *)job->prepared)->ir->route[n % s->routes.routes];
        const int64_t batch = n / s->routes.routes;
        p = (product){batch * s->routes.inputs + route->input,
                      s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE ? n % s->routes.routes : route->plane,
                      batch * s->routes.outputs + route->output, 0};
    }
    p.target = s->operation == GPUCONV_ARRAYS_CONVOLVE          ? p.output
               : s->operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL ? p.signal
                                                                : p.response;
    return p;
}

/* Returns the products of every target if they are as many for all and product_at finds them, else 0. */
static int64_t products_each(const gc_job_shape *s) {
    if (s->routes.routes)
        return 0;
    if (s->operation != GPUCONV_ARRAYS_GRADIENT_RESPONSE)
        return 1;
    return s->rows % (s->group * s->responses) ? 0 : s->rows / s->responses;
}

/* Lists the products by target, unless product_at finds them without a list. Returns false without memory. */
static bool sort_products(work *w) {
    const int64_t products = count_products(w->shape), targets = w->target->rows;
    w->each = products_each(w->shape);
    if (w->each)
        return true;
    w->product = gc_calloc(products, sizeof *w->product);
    w->first = gc_calloc(targets + 2, sizeof *w->first);
    if (!w->product || !w->first)
        return false;
    for (int64_t n = 0; n < products; n++)
        w->first[product_of(w->job, w->shape, n).target + 2]++;
    for (int64_t t = 2; t < targets + 2; t++)
        w->first[t] += w->first[t - 1];
    for (int64_t n = 0; n < products; n++) {
        const product p = product_of(w->job, w->shape, n);
        w->product[w->first[p.target + 1]++] = p;
    }
    return true;
}

/* Fills the operands of a product into a row, which is all zero. */
static void set_operands(const gpuconv_arrays_job *job, const product *p, gc_row *row) {
    const gc_cpu_responses *r = (const gc_cpu_responses *)job->prepared;
    row->gain = job->gain ? &job->gain[p->signal] : NULL;
    row->offset = job->offset;
    if (job->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE) {
        row->taps = gated_row(&job->signal, job->pre, p->signal);
    } else if (r) {
        row->prepared = &r->kept[p->response];
        row->taps = (gc_array){.data = row->prepared->taps, .frames = r->base.taps, .step = 1};
    } else {
        row->taps = gc_array_of_row(&job->response, p->response);
    }
    if (job->operation == GPUCONV_ARRAYS_CONVOLVE) {
        row->signal = gated_row(&job->signal, job->pre, p->signal);
    } else {
        row->signal = gated_row(&job->output, job->post, p->output);
        row->offset = row->taps.frames - 1 - job->offset;
        row->taps = gc_array_backwards(row->taps);
        row->gradient = true;
    }
}

/* Sets the output of a row to a target. */
static void aim(const work *w, gc_row *row, int64_t target) {
    const gpuconv_arrays_job *job = w->job;
    const bool convolve = job->operation == GPUCONV_ARRAYS_CONVOLVE;
    const bool response = job->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    row->output = gated_row(w->target, response ? NULL : convolve ? job->post : job->pre, target);
    if (job->skip && !response) {
        row->skip = convolve ? gc_array_of_row(&job->signal, target) : gated_row(&job->output, job->post, target);
        row->skip_factor = &job->skip[target];
        row->skip_last = !convolve;
    }
    row->cleared = w->target->starts || w->job->accumulate ? row->output.frames : w->target->frames;
    row->accumulate = w->job->accumulate;
}

/* Returns the number of products of a target. */
static int64_t products_of(const work *w, int64_t target) {
    return w->each ? w->each : w->first[target + 1] - w->first[target];
}

static product product_at(const work *w, int64_t target, int64_t n) {
    const int64_t group = w->shape->group;
    if (!w->each)
        return w->product[w->first[target] + n];
    if (w->shape->operation != GPUCONV_ARRAYS_GRADIENT_RESPONSE)
        return product_of(w->job, w->shape, target);
    return product_of(w->job, w->shape, (n / group * w->shape->responses + target) * group + n % group);
}

/* Divides the products into runs: of one product each if the sum would be rounded to less than floats. Returns false
 * without memory. */
static bool make_runs(work *w) {
    const int64_t targets = w->target->rows;
    const bool floats = w->target->type == GPUCONV_SAMPLE_F32;
    w->most = floats ? gc_max(1, gc_min(MOST_TERMS, count_products(w->shape) / MANY_RUNS)) : 1;
    w->first_run = gc_calloc(targets + 1, sizeof *w->first_run);
    for (int64_t t = 0; w->first_run && t < targets; t++)
        w->first_run[t + 1] = w->first_run[t] + gc_max(1, gc_divide_up(products_of(w, t), w->most));
    return w->first_run;
}

static int64_t runs_of(const work *w, int64_t target) {
    return w->first_run[target + 1] - w->first_run[target];
}

/* Returns the target of a run: the last one whose first run is not behind it. */
static int64_t target_of(const work *w, int64_t run) {
    int64_t low = w->from, high = w->to;
    if (w->first_run[high] == high)
        return run; /* one each */
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        *(w->first_run[middle] <= run ? &low : &high) = middle;
    }
    return low;
}

/* Makes the row of a product of run `index` from first_run[from] on. A target with one run is computed where it is, all
 * of it with the first frames. */
static void make_row(const void *context, int64_t index, int64_t term, gc_row *row) {
    const work *w = context;
    const int64_t run = w->first_run[w->from] + index, target = target_of(w, run);
    const int64_t first = (run - w->first_run[target]) * w->most, products = products_of(w, target) - first;
    const bool alone = runs_of(w, target) == 1;
    if (alone && w->begin > 0)
        return;
    if (products > 0) {
        const product p = product_at(w, target, first + term);
        set_operands(w->job, &p, row);
    }
    row->terms = gc_min(products, w->most);
    if (w->shared)
        row->shared = &w->shared[target % w->shape->responses];
    aim(w, row, target);
    if (alone)
        return;
    row->offset += w->begin;
    row->skip.data = NULL;
    row->output = (gc_array){.data = w->side + index * w->width,
                             .frames = gc_max(0, gc_min(w->width, row->output.frames - w->begin)),
                             .step = 1};
    row->cleared = gc_max(0, gc_min(w->width, row->cleared - w->begin));
    row->accumulate = false;
}

/* Sums some frames of the runs of a target. */
static void sum_runs(void *context, int64_t index, int worker) {
    (void)worker;
    const work *w = context;
    const int64_t parts = gc_divide_up(w->width, SUM_FRAMES), t = w->from + index / parts;
    const int64_t from = index % parts * SUM_FRAMES;
    double sum[SUM_FRAMES] = {0};
    float rounded[SUM_FRAMES];
    gc_row row = {0};
    aim(w, &row, t);
    const int64_t frames = gc_min(SUM_FRAMES, gc_min(w->begin + w->width, row.cleared) - w->begin - from);
    if (runs_of(w, t) == 1 || frames <= 0)
        return;
    for (int64_t i = w->first_run[t]; i < w->first_run[t + 1]; i++) {
        const float *term = w->side + (i - w->first_run[w->from]) * w->width + from;
        for (int64_t n = 0; n < frames; n++)
            sum[n] += (double)term[n];
    }
    for (int64_t n = 0; n < frames; n++)
        rounded[n] = (float)sum[n];
    gc_row_write(&row, w->begin + from, frames, rounded);
}

/* Computes the targets from .. to - 1 in the frames that are being computed. */
static gpuconv_status run_targets(work *w, gpuconv_error *error) {
    const bool ragged = w->job->signal.lengths || w->job->response.lengths || w->job->output.lengths;
    const gc_row_list list = {w->first_run[w->to] - w->first_run[w->from], !ragged && w->each, make_row, w};
    const gpuconv_status status = gc_rows_convolve(w->rows, &list, error);
    if (!status && w->side)
        gc_pool_run(w->rows->pool, sum_runs, w, (w->to - w->from) * gc_divide_up(w->width, SUM_FRAMES));
    return status ? status : gc_cancelled() ? gc_fail_memory(error, "the sums of a job") : GPUCONV_OK;
}

/* Computes all targets. Where targets have several runs, it computes as many targets at a time as fit into RUN_FLOATS.
 */
static gpuconv_status run_work(work *w, gpuconv_error *error) {
    const int64_t targets = w->target->rows, frames = w->target->frames;
    int64_t most = 0, fit = w->first_run[targets];
    for (int64_t t = 0; t < targets; t++)
        most = gc_max(most, runs_of(w, t));
    w->width = frames;
    if (most > 1) {
        w->width = gc_min(frames, gc_max(SUM_FRAMES, RUN_FLOATS / most));
        fit = gc_min(fit, gc_max(most, RUN_FLOATS / w->width));
        if (!(w->side = gc_calloc(fit * w->width, sizeof *w->side)))
            return gc_fail_memory(error, "the products of a job");
    }
    gpuconv_status status = GPUCONV_OK;
    for (w->begin = 0; w->begin < frames && !status; w->begin += w->width)
        for (w->to = 0; w->to < targets && !status;) {
            for (w->from = w->to; w->to < targets && w->first_run[w->to + 1] - w->first_run[w->from] <= fit;)
                w->to++;
            status = run_targets(w, error);
        }
    return status;
}

/* Makes places for the spectra of responses that are met again and again, up to SHARED_FLOATS. Without memory the rows
 * do without. */
static void share_responses(work *w) {
    const gc_job_shape *s = w->shape;
    const int64_t floats = s->responses * gc_power_of_two(s->signal_frames + s->output_frames + s->taps);
    if (w->each == 1 && s->group == 1 && s->responses > 1 && s->rows >= 3 * s->responses && !w->job->prepared &&
        floats <= SHARED_FLOATS)
        w->shared = gc_calloc(s->responses, sizeof *w->shared);
}

/* Runs a checked job of shape *shape. @return MEMORY, CANCELLED, UNSUPPORTED */
static gpuconv_status run_products(gc_cpu_arrays *arrays, const gpuconv_arrays_job *job, const gc_job_shape *shape,
                                   gpuconv_error *error) {
    work w = {.rows = &arrays->rows, .job = job, .shape = shape, .target = gc_job_written(job)};
    gpuconv_status status;
    if (shape->hop) {
        status = gc_cpu_run_varying(w.rows, job, shape, error);
        gc_rows_forget(w.rows);
        return status;
    }
    const bool sorted = sort_products(&w) && make_runs(&w);
    if (sorted)
        share_responses(&w);
    status = sorted ? run_work(&w, error) : gc_fail_memory(error, "the products of a job");
    for (int64_t i = 0; w.shared && i < shape->responses; i++)
        gc_kept_response_free_spectra(&w.shared[i]);
    gc_rows_forget(w.rows);
    free(w.shared);
    free(w.product);
    free(w.first);
    free(w.first_run);
    free(w.side);
    return status;
}

static gpuconv_status describe_job(const gpuconv_arrays_job *job, gc_job_plan *plan, gpuconv_error *error) {
    gpuconv_arrays_job longest = *job; /* without lengths and memory, which a plan does not read */
    gpuconv_rows *all[] = {&longest.signal, &longest.response, &longest.output};
    gc_row last = {0};
    const gc_job_shape *s = &plan->shape;
    for (int i = 0; i < 3; i++)
        *all[i] = (gpuconv_rows){.rows = all[i]->rows, .frames = all[i]->frames, .step = 1};
    longest.gain = NULL;
    if (s->hop) { /* a block with its response */
        longest.signal.frames = gc_min(s->hop, s->signal_frames);
        longest.output.frames = longest.signal.frames + s->taps - 1;
        longest.offset = 0;
    }
    const int64_t count = count_products(s) * gc_max(1, s->blocks);
    const product p = product_of(&longest, s, 0);
    gc_row row = {0};
    set_operands(&longest, &p, &row);
    row.output.frames = gc_job_written(&longest)->frames;
    const gpuconv_status status = gc_row_plan(&((const gc_cpu_arrays *)plan->arrays)->rows.costs, &row, &last, error);
    if (!status)
        gc_format(plan->reason, sizeof plan->reason,
                  "%s: %lld convolutions with %lld taps, blocks of %lld frames, transforms of %lld points; %.3g ms on "
                  "one thread",
                  row.algorithm ? row.algorithm->name : "none", (long long)count, (long long)row.taps.frames,
                  (long long)row.schedule.hop, (long long)row.schedule.transform, row.seconds * (double)count * 1e3);
    return status;
}

/* ---- Places ------------------------------------------------------------------------------------------------------ */

static void free_arrays(gpuconv_arrays *arrays) {
    gc_rows_free(&((gc_cpu_arrays *)arrays)->rows);
    gc_room_filters_free(&((gc_cpu_arrays *)arrays)->filters);
    free(arrays);
}

static gpuconv_status open_arrays(int threads, gpuconv_arrays **arrays, gpuconv_error *error) {
    if (threads < 0 || threads > 1024)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%d threads: use 1 to 1024, or 0 for all cores", threads);
    gc_cpu_arrays *made = gc_calloc(1, sizeof *made);
    if (!made)
        return gc_fail_memory(error, "a convolver of arrays");
    made->base = (gpuconv_arrays){&gc_rows_cpu, -1};
    if (!gc_rows_init(&made->rows, threads)) {
        free_arrays(&made->base);
        return gc_fail_memory(error, "the threads of a convolver of arrays");
    }
    *arrays = &made->base;
    return GPUCONV_OK;
}

/* ---- Prepared responses ------------------------------------------------------------------------------------------ */

static void free_responses(gpuconv_responses *responses) {
    gc_cpu_responses *r = (gc_cpu_responses *)responses;
    for (int64_t i = 0; r->kept && i < r->base.rows; i++) {
        gc_kept_response_free_spectra(&r->kept[i]);
        if (!r->ir)
            free(r->kept[i].taps);
    }
    free(r->kept);
    gpuconv_ir_free(r->ir);
    free(r);
}

/* Copies a row to the taps of a response, with zeros up to `taps` frames. */
static gpuconv_status copy_taps(const gpuconv_rows *from, int64_t row, int64_t taps, gc_kept_response *kept,
                                gpuconv_error *error) {
    const gc_array array = gc_array_of_row(from, row);
    kept->taps = gc_calloc(taps, sizeof *kept->taps);
    if (!kept->taps)
        return gc_fail_memory(error, "a response");
    gc_row_gather(&array, 0, taps, kept->taps);
    return gc_all_finite(kept->taps, taps)
               ? GPUCONV_OK
               : gc_fail(error, GPUCONV_ERROR_FORMAT, "the response has taps that are NaN or infinite");
}

/* Makes responses of `taps` frames: those of `ir`, which is held, or copies of the rows of an array. */
static gpuconv_status make_responses(const gpuconv_ir *ir, const gpuconv_rows *from, int64_t taps,
                                     gpuconv_responses **responses, gpuconv_error *error) {
    const int64_t rows = ir ? ir->planes : from->rows;
    if (taps > INT64_C(1) << GC_ROW_MAX_LOG2)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "response.frames is %lld; use 1 to 2^%d on the CPU",
                       (long long)taps, GC_ROW_MAX_LOG2);
    gc_cpu_responses *r = gc_calloc(1, sizeof *r);
    if (!r)
        return gc_fail_memory(error, "prepared responses");
    *r = (gc_cpu_responses){{&gc_rows_cpu, -1, rows, taps, {0}}, gc_calloc(rows, sizeof *r->kept), NULL};
    if (ir) {
        r->ir = gc_ir_hold(ir);
        r->base.routes = (gc_job_routes){ir->inputs, ir->outputs, ir->routes};
    }
    gpuconv_status status = r->kept ? GPUCONV_OK : gc_fail_memory(error, "prepared responses");
    for (int64_t i = 0; i < rows && !status; i++)
        if (ir)
            r->kept[i].taps = ir->taps + i * taps;
        else
            status = copy_taps(from, i, taps, &r->kept[i], error);
    if (status)
        free_responses(&r->base);
    else
        *responses = &r->base;
    return status;
}

static gpuconv_status new_responses(const gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t frames,
                                    struct CUstream_st *stream, gpuconv_responses **responses, gpuconv_error *error) {
    (void)arrays;
    (void)frames;
    (void)stream;
    return make_responses(NULL, response, response->frames, responses, error);
}

static gpuconv_status route_responses(const gpuconv_arrays *arrays, const gpuconv_ir *ir, int64_t frames,
                                      gpuconv_responses **responses, gpuconv_error *error) {
    (void)arrays;
    (void)frames;
    return make_responses(ir, NULL, ir->frames, responses, error);
}

static gpuconv_status update_responses(const gpuconv_arrays *arrays, gpuconv_responses *responses,
                                       const gpuconv_rows *response, struct CUstream_st *stream, gpuconv_error *error) {
    (void)arrays;
    (void)stream;
    gpuconv_responses *made;
    const gpuconv_status status = make_responses(NULL, response, responses->taps, &made, error);
    if (status)
        return status;
    gc_kept_response **kept = &((gc_cpu_responses *)responses)->kept, *old = *kept;
    *kept = ((gc_cpu_responses *)made)->kept;
    ((gc_cpu_responses *)made)->kept = old;
    free_responses(made);
    return GPUCONV_OK;
}

static int64_t responses_bytes(const gpuconv_responses *responses) {
    const gc_cpu_responses *r = (const gc_cpu_responses *)responses;
    int64_t floats = r->ir ? 0 : r->base.rows * r->base.taps;
    for (int64_t i = 0; i < r->base.rows; i++)
        for (int k = 0; k < 2 * (GC_FFT_MAX_LOG2 + 1); k++)
            floats += atomic_load(&r->kept[i].spectrum[k % 2][k / 2]) ? INT64_C(1) << k / 2 : 0;
    return floats * (int64_t)sizeof(float);
}

/* ---- Streamers --------------------------------------------------------------------------------------------------- */

static void free_streamer(gpuconv_streamer *streamer) {
    cpu_streamer *s = (cpu_streamer *)streamer;
    if (s->responses)
        free_responses(s->responses);
    free(s->window);
    free(s);
}

static gpuconv_status new_streamer(gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t channels,
                                   int64_t block, struct CUstream_st *stream, gpuconv_streamer **streamer,
                                   gpuconv_error *error) {
    const int64_t history = response->frames - 1;
    cpu_streamer *s = gc_calloc(1, sizeof *s);
    if (!s)
        return gc_fail_memory(error, "a streamer");
    *s = (cpu_streamer){{arrays, channels, block}, NULL, history, history + block, NULL};
    s->window = gc_calloc(channels * s->frames, sizeof *s->window);
    const gpuconv_status status = s->window ? new_responses(arrays, response, block, stream, &s->responses, error)
                                            : gc_fail_memory(error, "a streamer");
    if (status)
        free_streamer(&s->base);
    else
        *streamer = &s->base;
    return status;
}

static gpuconv_status check_no_stream(const struct CUstream_st *stream, gpuconv_error *error) {
    return stream ? gc_fail(error, GPUCONV_ERROR_ARGUMENT, "stream is %p; use NULL on the CPU", (const void *)stream)
                  : GPUCONV_OK;
}

/* Convolves the past and the block: one job. */
static gpuconv_status process(gpuconv_streamer *streamer, const gpuconv_rows *in, const gpuconv_rows *out,
                              struct CUstream_st *stream, gpuconv_error *error) {
    cpu_streamer *s = (cpu_streamer *)streamer;
    const int64_t channels = s->base.channels, block = s->base.block;
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.signal = gpuconv_rows_of_floats(s->window, channels, s->frames);
    job.output = *out;
    job.offset = s->history;
    job.prepared = s->responses;
    for (int64_t c = 0; c < channels; c++) {
        const gc_array row = gc_array_of_row(in, c);
        gc_row_gather(&row, 0, block, s->window + c * s->frames + s->history);
    }
    gc_job_shape shape;
    gpuconv_status status = check_no_stream(stream, error);
    if (!status)
        status = gc_job_check(s->base.arrays, &job, &shape, error);
    if (!status)
        status = run_products((gc_cpu_arrays *)s->base.arrays, &job, &shape, error);
    for (int64_t c = 0; c < channels; c++)
        memmove(s->window + c * s->frames, s->window + c * s->frames + block, (size_t)s->history * sizeof *s->window);
    return status;
}

static gpuconv_status reset(gpuconv_streamer *streamer, struct CUstream_st *stream, gpuconv_error *error) {
    (void)stream;
    (void)error;
    cpu_streamer *s = (cpu_streamer *)streamer;
    memset(s->window, 0, (size_t)(s->base.channels * s->frames) * sizeof *s->window);
    return GPUCONV_OK;
}

/* Rows are planned one by one while they are computed (rows.c). */
static gpuconv_status plan_job(const gpuconv_arrays_job *job, gc_job_plan *plan, gpuconv_error *error) {
    (void)plan;
    (void)error;
    return job->operation == GPUCONV_ARRAYS_GRADIENT_BOTH ? GPUCONV_ERROR_UNSUPPORTED : GPUCONV_OK;
}

static gpuconv_status run_job(const gc_job_plan *plan, const gpuconv_arrays_job *job, void *workspace, size_t bytes,
                              struct CUstream_st *stream, gpuconv_error *error) {
    (void)workspace;
    (void)bytes;
    const gpuconv_status status = check_no_stream(stream, error);
    return status ? status : run_products((gc_cpu_arrays *)plan->arrays, job, &plan->shape, error);
}

/* Returns the first class of a sequence of `frames` frames. */
static int class_of(const gpuconv_sequences *s, int64_t frames) {
    int i = 0;
    while (i < s->classes - 1 && frames > s->bounds[i])
        i++;
    return i;
}

/* Sets the frames begin .. end - 1 of all rows to zero. */
static void clear_frames(const gpuconv_rows *rows, int64_t begin, int64_t end) {
    const int64_t bytes = gc_job_sample_bytes(rows->type);
    for (int64_t i = 0; i < rows->rows; i++) {
        const gc_array row = gc_array_of_row(rows, i);
        for (int64_t n = begin; n < end; n++)
            memset((char *)row.data + n * row.step * bytes, 0, (size_t)bytes);
    }
}

/* Writes `count` rows of `frames` frames, which begin `step` elements apart. */
static void set_rows(int64_t *starts, int64_t *lengths, int64_t count, int64_t first, int64_t step, int64_t frames) {
    for (int64_t i = 0; i < count; i++) {
        starts[i] = first + i * step;
        lengths[i] = frames;
    }
}

static gpuconv_status sort(const gpuconv_arrays *arrays, const gpuconv_sequences *s, int64_t *table,
                           struct CUstream_st *stream, gpuconv_error *error) {
    (void)arrays;
    const gpuconv_status status = check_no_stream(stream, error);
    if (status)
        return status;
    const int64_t rows = s->sequences * s->channels, responses = s->sequences * s->own, each = 2 * (rows + responses);
    int64_t members[GPUCONV_SEQUENCE_CLASSES_MAX] = {0}, start = 0;
    for (int i = 0; i < s->classes; i++) {
        int64_t *own = table + i * each + 2 * rows;
        set_rows(table + i * each, table + i * each + rows, rows, 0, 0, -1);
        set_rows(own, own + responses, responses, 0, 0, -1);
    }
    for (int64_t i = 0; i < s->sequences; i++) {
        const int64_t last = i == s->sequences - 1 ? s->frames : gc_min(s->offsets[i + 1], s->frames),
                      end = gc_max(start, last), frames = gc_min(end - start, s->bounds[s->classes - 1]);
        if (frames > 0) {
            const int at = class_of(s, frames);
            const int64_t place = members[at]++;
            int64_t *to = table + at * each + place * s->channels, *own = table + at * each + 2 * rows + place * s->own;
            set_rows(to, to + rows, s->channels, start, s->frames, frames);
            set_rows(own, own + responses, s->own, i * s->own * s->taps, s->taps, s->taps);
        }
        if (s->output)
            clear_frames(s->output, start + frames, end);
        start = end;
    }
    return GPUCONV_OK;
}

static gpuconv_status simulate(const gpuconv_rooms_plan *plan, const gc_rooms *rooms, float *output, void *workspace,
                               struct CUstream_st *stream, gpuconv_error *error) {
    gc_cpu_arrays *a = (gc_cpu_arrays *)plan->place;
    (void)workspace;
    (void)stream;
    return gc_cpu_simulate(a->rows.pool, &a->filters, rooms, output, error);
}

const gc_rows_executor gc_rows_cpu = {
    .open = open_arrays,
    .free = free_arrays,
    .plan = plan_job,
    .describe = describe_job,
    .run = run_job,
    .sort = sort,
    .new_responses = new_responses,
    .route_responses = route_responses,
    .update_responses = update_responses,
    .responses_bytes = responses_bytes,
    .free_responses = free_responses,
    .new_streamer = new_streamer,
    .process = process,
    .reset = reset,
    .free_streamer = free_streamer,
    .simulate = simulate,
};
