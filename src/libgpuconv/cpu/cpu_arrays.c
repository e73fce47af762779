/*
 * Jobs on arrays in host memory (gpuconv_arrays.h). A job is a list of products. A product has three rows: of the
 * signal, of the response and of the output. It reads two of them, convolves them, and writes the third; in a gradient
 * one of the two is read backwards. A written row with one product is computed in its place. The products of a written
 * row with several are computed in memory of their own and summed in a fixed order, so that the sum does not depend on
 * the threads.
 */
#include "cpu_algorithm.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/dsp/finite.h"
#include "libgpuconv/engine/backend.h"
#include "row_batch.h"

#include <stdlib.h>
#include <string.h>

/* Floats of products that are summed at a time, about, and frames that a thread sums at a time. */
enum { PRODUCT_FLOATS = 1 << 26, SUM_FRAMES = 4096 };

typedef struct cpu_arrays {
    gpuconv_arrays base;
    gc_row_threads threads;
} cpu_arrays;

typedef struct cpu_responses {
    gpuconv_responses base;
    gc_kept_response *kept;
    gpuconv_ir *ir; /* owns the taps and has the routes; NULL: without routes */
} cpu_responses;

typedef struct cpu_streamer {
    gpuconv_streamer base;
    gpuconv_responses *responses;
    int64_t history, frames; /* of a row of `window`: the last taps - 1 frames of the past, and the block */
    float *window;
} cpu_streamer;

/* ---- Places ------------------------------------------------------------------------------------------------------ */

static void free_arrays(gpuconv_arrays *arrays) {
    gc_row_threads_free(&((cpu_arrays *)arrays)->threads);
    free(arrays);
}

static gpuconv_status open_arrays(int threads, gpuconv_arrays **arrays, gpuconv_error *error) {
    if (threads < 0 || threads > 1024)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%d threads: use 1 to 1024, or 0 for all cores", threads);
    cpu_arrays *made = gc_calloc(1, sizeof *made);
    if (!made)
        return gc_fail_memory(error, "a convolver of arrays");
    made->base = (gpuconv_arrays){&gc_rows_cpu, -1};
    if (!gc_row_threads_init(&made->threads, threads)) {
        free_arrays(&made->base);
        return gc_fail_memory(error, "the threads of a convolver of arrays");
    }
    *arrays = &made->base;
    return GPUCONV_OK;
}

/* ---- Prepared responses ------------------------------------------------------------------------------------------ */

static void free_kept(gc_kept_response *kept, int64_t rows, bool taps) {
    for (int64_t i = 0; kept && i < rows; i++) {
        for (int k = 0; k < 2 * (GC_FFT_MAX_LOG2 + 1); k++)
            free(atomic_load(&kept[i].spectrum[k % 2][k / 2]));
        if (taps)
            free(kept[i].taps);
    }
    free(kept);
}

static void free_responses(gpuconv_responses *responses) {
    cpu_responses *r = (cpu_responses *)responses;
    free_kept(r->kept, r->base.rows, !r->ir);
    gpuconv_ir_free(r->ir);
    free(r);
}

static int64_t length_of(const gpuconv_rows *a, int64_t row) {
    return a->lengths ? gc_max(0, gc_min(a->lengths[row], a->frames)) : a->frames;
}

/* Returns the address of frame 0 of a row; NULL in a plan, which has no memory. */
static void *row_start(const gpuconv_rows *a, int64_t row) {
    const int64_t start = a->starts ? a->starts[row] : row * a->stride;
    return a->data ? (char *)a->data + start * gc_job_sample_bytes(a->type) : NULL;
}

static gc_array read_row(const gpuconv_rows *a, int64_t row) {
    return (gc_array){row_start(a, row), length_of(a, row), a->step, a->type};
}

/* Copies every row of an array, with zeros up to `taps` frames. */
static gpuconv_status copy_taps(const gpuconv_rows *from, int64_t taps, gc_kept_response **kept, gpuconv_error *error) {
    gc_kept_response *made = gc_calloc(from->rows, sizeof *made);
    bool finite = true, done = made;
    *kept = NULL;
    for (int64_t i = 0; i < from->rows && done && finite; i++) {
        const gc_array row = read_row(from, i);
        made[i].taps = gc_calloc(taps, sizeof *made[i].taps);
        done = made[i].taps;
        if (done)
            gc_row_gather(&row, 0, taps, made[i].taps);
        finite = done && gc_all_finite(made[i].taps, taps);
    }
    if (done && finite) {
        *kept = made;
        return GPUCONV_OK;
    }
    free_kept(made, from->rows, true);
    return done ? gc_fail(error, GPUCONV_ERROR_FORMAT, "the response has taps that are NaN or infinite")
                : gc_fail_memory(error, "a response");
}

/* Stores responses whose taps are in `kept`, which is freed after a failure. ir: owns the taps, or NULL. */
static gpuconv_status store(gc_kept_response *kept, const gpuconv_responses *base, const gpuconv_ir *ir,
                            gpuconv_responses **responses, gpuconv_error *error) {
    cpu_responses *r = gc_calloc(1, sizeof *r);
    if (!r) {
        free_kept(kept, base->rows, !ir);
        return gc_fail_memory(error, "prepared responses");
    }
    *r = (cpu_responses){*base, kept, ir ? gc_ir_hold(ir) : NULL};
    *responses = &r->base;
    return GPUCONV_OK;
}

static gpuconv_status check_taps(int64_t taps, gpuconv_error *error) {
    return taps <= INT64_C(1) << GC_ROW_MAX_LOG2
               ? GPUCONV_OK
               : gc_fail(error, GPUCONV_ERROR_ARGUMENT, "response.frames is %lld; use 1 to 2^%d on the CPU",
                         (long long)taps, GC_ROW_MAX_LOG2);
}

static gpuconv_status new_responses(const gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t frames,
                                    struct CUstream_st *stream, gpuconv_responses **responses, gpuconv_error *error) {
    (void)arrays;
    (void)frames;
    (void)stream;
    const gpuconv_responses base = {&gc_rows_cpu, -1, response->rows, response->frames, {0}};
    gc_kept_response *kept = NULL;
    gpuconv_status status = check_taps(response->frames, error);
    if (!status)
        status = copy_taps(response, response->frames, &kept, error);
    return status ? status : store(kept, &base, NULL, responses, error);
}

static gpuconv_status route_responses(const gpuconv_arrays *arrays, const gpuconv_ir *ir, int64_t frames,
                                      gpuconv_responses **responses, gpuconv_error *error) {
    (void)arrays;
    (void)frames;
    const gpuconv_responses base = {&gc_rows_cpu, -1, ir->planes, ir->frames, {ir->inputs, ir->outputs, ir->routes}};
    const gpuconv_status status = check_taps(ir->frames, error);
    gc_kept_response *kept = status ? NULL : gc_calloc(ir->planes, sizeof *kept);
    if (!kept)
        return status ? status : gc_fail_memory(error, "prepared responses");
    for (int i = 0; i < ir->planes; i++)
        kept[i].taps = ir->taps + i * ir->frames;
    return store(kept, &base, ir, responses, error);
}

static gpuconv_status update_responses(const gpuconv_arrays *arrays, gpuconv_responses *responses,
                                       const gpuconv_rows *response, struct CUstream_st *stream, gpuconv_error *error) {
    (void)arrays;
    (void)stream;
    cpu_responses *r = (cpu_responses *)responses;
    gc_kept_response *kept;
    const gpuconv_status status = copy_taps(response, r->base.taps, &kept, error);
    if (status)
        return status;
    free_kept(r->kept, r->base.rows, true);
    r->kept = kept;
    return GPUCONV_OK;
}

static int64_t responses_bytes(const gpuconv_responses *responses) {
    const cpu_responses *r = (const cpu_responses *)responses;
    int64_t floats = r->ir ? 0 : r->base.rows * r->base.taps;
    for (int64_t i = 0; i < r->base.rows; i++)
        for (int k = 0; k < 2 * (GC_FFT_MAX_LOG2 + 1); k++)
            floats += atomic_load(&r->kept[i].spectrum[k % 2][k / 2]) ? INT64_C(1) << k / 2 : 0;
    return floats * (int64_t)sizeof(float);
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

/* Rows of the arrays of a job that belong together. response: of job->response, or of the prepared responses. */
typedef struct product {
    int64_t signal, response, output;
    int64_t target; /* row of the array that is written */
} product;

/* A job that runs. */
typedef struct work {
    cpu_arrays *place;
    const gpuconv_arrays_job *job;
    const gc_job_shape *shape;
    const gpuconv_rows *target;
    product *product; /* sorted by target, in order */
    int64_t *first;   /* first product of every target, and their number */
    /* Targets with several products: */
    float *side;                /* the products, `width` floats each */
    int64_t width, begin, base; /* frames begin .. begin + width - 1; product `base` is the first in `side` */
    int64_t *summed;            /* the targets */
} work;

static int64_t count_products(const gc_job_shape *s) {
    return s->routes.routes ? s->batch * s->routes.routes : s->rows;
}

static product product_of(const gpuconv_arrays_job *job, const gc_job_shape *s, int64_t n) {
    product p = {n, (n / s->group) % s->responses, n, 0};
    if (s->routes.routes) {
        const gc_route *route = &((const cpu_responses *)job->prepared)->ir->route[n % s->routes.routes];
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

/* Lists the products by target. Returns false without memory. */
static bool sort_products(work *w) {
    const int64_t products = count_products(w->shape), targets = w->target->rows;
    w->product = gc_calloc(products, sizeof *w->product);
    w->first = gc_calloc(targets + 2, sizeof *w->first);
    w->summed = gc_calloc(targets, sizeof *w->summed);
    if (!w->product || !w->first || !w->summed)
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

static gc_array backwards(gc_array a) {
    const int64_t last = gc_max(0, a.frames - 1) * a.step * gc_job_sample_bytes(a.type);
    return (gc_array){a.data ? (const char *)a.data + last : NULL, a.frames, -a.step, a.type};
}

/* Returns the row of a product without its output. */
static gc_row row_of(const gpuconv_arrays_job *job, const product *p) {
    const cpu_responses *r = (const cpu_responses *)job->prepared;
    gc_row row = {.gain = job->gain ? &job->gain[p->signal] : NULL, .offset = job->offset};
    if (job->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE) {
        row.response = read_row(&job->signal, p->signal);
    } else if (r) {
        row.prepared = &r->kept[p->response];
        row.response = (gc_array){row.prepared->taps, r->base.taps, 1, GPUCONV_SAMPLE_F32};
    } else {
        row.response = read_row(&job->response, p->response);
    }
    if (job->operation == GPUCONV_ARRAYS_CONVOLVE) {
        row.signal = read_row(&job->signal, p->signal);
    } else {
        row.signal = read_row(&job->output, p->output);
        row.offset = row.response.frames - 1 - job->offset;
        row.response = backwards(row.response);
    }
    return row;
}

/* Returns the frames of a target that are written, zeros included. */
static int64_t written_frames(const work *w, int64_t target) {
    return w->target->starts || w->job->accumulate ? length_of(w->target, target) : w->target->frames;
}

/* Sets the output of a row to a target. */
static void aim(const work *w, gc_row *row, int64_t target) {
    row->output = row_start(w->target, target);
    row->output_frames = length_of(w->target, target);
    row->output_step = w->target->step;
    row->output_type = w->target->type;
    row->cleared = written_frames(w, target);
    row->accumulate = w->job->accumulate;
}

/* Computes the targets that have one product, or none. */
static gpuconv_status run_single(work *w, gpuconv_error *error) {
    const int64_t targets = w->target->rows;
    int64_t count = 0;
    gc_row *row = gc_calloc(targets, sizeof *row);
    if (!row)
        return gc_fail_memory(error, "the rows of a job");
    for (int64_t t = 0; t < targets; t++) {
        const int64_t products = w->first ? w->first[t + 1] - w->first[t] : 1;
        const product own = w->product ? (product){0} : product_of(w->job, w->shape, t);
        if (products > 1)
            continue;
        if (products == 1)
            row[count] = row_of(w->job, w->product ? &w->product[w->first[t]] : &own);
        aim(w, &row[count++], t);
    }
    const gpuconv_status status = count ? gc_row_batch_convolve(&w->place->threads, row, count, error) : GPUCONV_OK;
    free(row);
    return status;
}

/* Sums some frames of the products of a target. */
static void sum_products(void *context, int64_t index, int worker) {
    (void)worker;
    const work *w = context;
    const int64_t parts = gc_divide_up(w->width, SUM_FRAMES), t = w->summed[index / parts];
    const int64_t from = index % parts * SUM_FRAMES;
    const int64_t frames = gc_min(SUM_FRAMES, gc_min(w->begin + w->width, written_frames(w, t)) - w->begin - from);
    double sum[SUM_FRAMES] = {0};
    float rounded[SUM_FRAMES];
    gc_row row = {0};
    for (int64_t i = w->first[t]; i < w->first[t + 1]; i++) {
        const float *term = w->side + (i - w->base) * w->width + from;
        for (int64_t n = 0; n < frames; n++)
            sum[n] += (double)term[n];
    }
    for (int64_t n = 0; n < frames; n++)
        rounded[n] = (float)sum[n];
    aim(w, &row, t);
    if (frames > 0)
        gc_row_write(&row, w->begin + from, frames, rounded);
}

/* Computes the products of the first targets in `summed`, in the frames that are being computed, and sums them. */
static gpuconv_status run_sums(work *w, int64_t targets, gpuconv_error *error) {
    const int64_t products = w->first[w->summed[targets - 1] + 1] - w->base;
    gc_row *row = gc_calloc(products, sizeof *row);
    if (!row)
        return gc_fail_memory(error, "the rows of a job");
    int64_t count = 0;
    for (int64_t t = 0; t < targets; t++)
        for (int64_t i = w->first[w->summed[t]]; i < w->first[w->summed[t] + 1]; i++) {
            gc_row *r = &row[count++];
            const int64_t at = w->begin, most = w->width;
            *r = row_of(w->job, &w->product[i]);
            r->output = w->side + (i - w->base) * w->width;
            r->output_step = 1;
            r->offset += at;
            r->output_frames = gc_max(0, gc_min(most, length_of(w->target, w->summed[t]) - at));
            r->cleared = gc_max(0, gc_min(most, written_frames(w, w->summed[t]) - at));
        }
    const gpuconv_status status = gc_row_batch_convolve(&w->place->threads, row, count, error);
    free(row);
    if (!status)
        gc_pool_run(w->place->threads.pool, sum_products, w, targets * gc_divide_up(w->width, SUM_FRAMES));
    return status ? status : gc_cancelled() ? gc_fail_memory(error, "the sums of a job") : GPUCONV_OK;
}

/* Computes the targets that have several products, as many at a time as the memory takes. */
static gpuconv_status run_several(work *w, gpuconv_error *error) {
    const int64_t targets = w->target->rows, *first = w->first, frames = w->target->frames;
    int64_t most = 0;
    for (int64_t t = 0; t < targets; t++)
        most = gc_max(most, first[t + 1] - first[t]);
    if (most < 2)
        return GPUCONV_OK;
    w->width = gc_min(frames, gc_max(SUM_FRAMES, PRODUCT_FLOATS / most));
    const int64_t fit = gc_min(first[targets], gc_max(most, PRODUCT_FLOATS / w->width));
    gpuconv_status status = GPUCONV_OK;
    if (!(w->side = gc_calloc(fit * w->width, sizeof *w->side)))
        return gc_fail_memory(error, "the products of a job");
    for (w->begin = 0; w->begin < frames; w->begin += w->width)
        for (int64_t t = 0; t < targets && !status;) {
            int64_t count = 0;
            w->base = first[t];
            for (; t < targets && first[t + 1] - w->base <= fit; t++)
                if (first[t + 1] - first[t] > 1)
                    w->summed[count++] = t;
            if (count)
                status = run_sums(w, count, error);
        }
    free(w->side);
    return status;
}

static gpuconv_status workspace(const gpuconv_arrays *arrays, const gpuconv_arrays_job *job, size_t *bytes,
                                gpuconv_error *error) {
    gc_job_shape shape;
    *bytes = 0;
    return gc_job_check(arrays, job, &shape, error);
}

static gpuconv_status run(gpuconv_arrays *arrays, const gpuconv_arrays_job *job, void *unused, size_t bytes,
                          struct CUstream_st *stream, gpuconv_error *error) {
    gc_job_shape shape;
    work w = {.place = (cpu_arrays *)arrays, .job = job, .shape = &shape, .target = gc_job_written(job)};
    (void)unused;
    (void)bytes;
    if (stream)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "stream is %p; use NULL on the CPU", (void *)stream);
    gpuconv_status status = gc_job_check(arrays, job, &shape, error);
    if (!status)
        status = gc_job_check_pointers(job, error);
    if (status)
        return status;
    const bool sums = shape.routes.routes || shape.operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    if (sums && !sort_products(&w))
        status = gc_fail_memory(error, "the products of a job");
    if (!status)
        status = run_single(&w, error);
    if (!status && sums)
        status = run_several(&w, error);
    free(w.product);
    free(w.first);
    free(w.summed);
    return status;
}

static gpuconv_status plan(const gpuconv_arrays *arrays, const gpuconv_arrays_job *job, char *text, size_t size,
                           gpuconv_error *error) {
    const char *const names[] = {[GC_ROW_ZERO] = "none",
                                 [GC_ROW_DIRECT] = gc_cpu_direct.row.name,
                                 [GC_ROW_OVERLAP_SAVE] = gc_cpu_overlap_save.row.name,
                                 [GC_ROW_SUM] = gc_cpu_partitioned.row.name};
    gpuconv_arrays_job longest = *job; /* without lengths and memory, which a plan does not read */
    gpuconv_rows *all[] = {&longest.signal, &longest.response, &longest.output};
    gc_row_plan made = {0};
    gc_job_shape shape;
    gpuconv_status status = gc_job_check(arrays, job, &shape, error);
    if (status)
        return status;
    for (int i = 0; i < 3; i++)
        *all[i] = (gpuconv_rows){.rows = all[i]->rows, .frames = all[i]->frames, .step = 1};
    longest.gain = NULL;
    const product p = product_of(&longest, &shape, 0);
    gc_row row = row_of(&longest, &p);
    row.output_frames = gc_job_written(&longest)->frames;
    status = gc_row_plan_make(&((const cpu_arrays *)arrays)->threads.costs, &row, &made, error);
    if (!status)
        gc_format(text, size,
                  "%s: %lld convolutions with %lld taps, blocks of %lld frames, transforms of %lld points; %.3g ms on "
                  "one thread",
                  names[made.method], (long long)count_products(&shape), (long long)made.taps.frames,
                  (long long)made.hop, (long long)made.transform, made.seconds * (double)count_products(&shape) * 1e3);
    return status;
}

/* ---- Streamers --------------------------------------------------------------------------------------------------- */

static void free_streamer(gpuconv_streamer *streamer) {
    cpu_streamer *s = (cpu_streamer *)streamer;
    gpuconv_responses_free(s->responses);
    free(s->window);
    free(s);
}

static gpuconv_status new_streamer(gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t channels,
                                   int64_t block, struct CUstream_st *stream, gpuconv_streamer **streamer,
                                   gpuconv_error *error) {
    gpuconv_responses *kept = NULL;
    const gpuconv_status status = new_responses(arrays, response, block, stream, &kept, error);
    if (status)
        return status;
    cpu_streamer *s = gc_calloc(1, sizeof *s);
    if (s) {
        *s = (cpu_streamer){{arrays, channels, block}, kept, response->frames - 1, response->frames - 1 + block, NULL};
        s->window = gc_calloc(channels * s->frames, sizeof *s->window);
    }
    if (!s || !s->window) {
        gpuconv_responses_free(kept);
        free(s);
        return gc_fail_memory(error, "a streamer");
    }
    *streamer = &s->base;
    return GPUCONV_OK;
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
        const gc_array row = read_row(in, c);
        gc_row_gather(&row, 0, block, s->window + c * s->frames + s->history);
    }
    const gpuconv_status status = run(s->base.arrays, &job, NULL, 0, stream, error);
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

const gc_rows_executor gc_rows_cpu = {
    .open = open_arrays,
    .free = free_arrays,
    .workspace = workspace,
    .run = run,
    .plan = plan,
    .new_responses = new_responses,
    .route_responses = route_responses,
    .update_responses = update_responses,
    .responses_bytes = responses_bytes,
    .free_responses = free_responses,
    .new_streamer = new_streamer,
    .process = process,
    .reset = reset,
    .free_streamer = free_streamer,
};
