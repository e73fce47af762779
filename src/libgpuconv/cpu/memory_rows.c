/*
 * The public functions of gpuconv_memory.h, and the division of a batch into jobs for the threads.
 *
 * A row of little work is one job, which transforms the response in the worker's scratch memory. A row of much work is
 * divided into several jobs; its response is transformed before, in a loop of its own. The division changes no sample.
 */
#include "row_convolve.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/core/processor.h"
#include "libgpuconv/core/subnormal.h"
#include "libgpuconv/dsp/finite.h"

#include <stdlib.h>
#include <string.h>

/* Jobs per thread that balance the load; a batch of less work than waking a thread takes stays on the calling one. */
enum { JOBS_PER_THREAD = 6 };
static const double wake_seconds = 60e-6;

struct gpuconv_memory {
    int threads;
    gc_pool *pool;
    gc_costs costs;
    gc_row_tables tables;
    gc_row_scratch *scratch; /* per thread */
};

gpuconv_status gpuconv_memory_new(int threads, gpuconv_memory **memory, gpuconv_error *error) {
    if (!gc_begin(memory, memory, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (threads < 0 || threads > 1024)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%d threads: use 1 to 1024, or 0 for all cores", threads);
    gpuconv_memory *m = gc_calloc(1, sizeof *m);
    if (!m)
        return gc_fail_memory(error, "a convolver of arrays");
    char name[128];
    gc_processor_name(name, sizeof name);
    m->costs = gc_costs_of_cpu(name);
    m->threads = threads ? threads : gc_processor_count();
    m->pool = gc_pool_new(m->threads);
    m->scratch = gc_calloc(m->threads, sizeof *m->scratch);
    if (!m->pool || !m->scratch) {
        gpuconv_memory_free(m);
        return gc_fail_memory(error, "the threads of a convolver of arrays");
    }
    *memory = m;
    return GPUCONV_OK;
}

void gpuconv_memory_free(gpuconv_memory *m) {
    if (!m)
        return;
    gc_pool_free(m->pool);
    gc_row_tables_free(&m->tables);
    for (int i = 0; m->scratch && i < m->threads; i++)
        gc_row_scratch_free(&m->scratch[i]);
    free(m->scratch);
    free(m);
}

gpuconv_status gpuconv_memory_response_new(const float *taps, int64_t frames, int64_t step,
                                           gpuconv_memory_response **response, gpuconv_error *error) {
    if (!gc_begin(response, taps, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (frames < 1 || frames > INT64_C(1) << GC_ROW_MAX_LOG2)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response of %lld frames: use 1 to 2^%d", (long long)frames,
                       GC_ROW_MAX_LOG2);
    gpuconv_memory_response *r = gc_calloc(1, sizeof *r);
    if (r)
        r->taps = gc_calloc(frames, sizeof *r->taps);
    if (!r || !r->taps) {
        gpuconv_memory_response_free(r);
        return gc_fail_memory(error, "a response");
    }
    r->frames = frames;
    for (int64_t k = 0; k < frames; k++)
        r->taps[k] = taps[k * step];
    if (!gc_all_finite(r->taps, frames)) {
        gpuconv_memory_response_free(r);
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "the response has taps that are NaN or infinite");
    }
    *response = r;
    return GPUCONV_OK;
}

void gpuconv_memory_response_free(gpuconv_memory_response *r) {
    if (!r)
        return;
    for (int i = 0; i <= GC_FFT_MAX_LOG2; i++)
        free(atomic_load(&r->spectrum[i]));
    free(r->taps);
    free(r);
}

static bool in_range(int64_t n, int64_t least, int64_t most) {
    return n >= least && n <= most;
}

static gpuconv_status check_row(const gpuconv_memory_row *row, int64_t number, gpuconv_error *error) {
    const int64_t most = INT64_C(1) << 40;
    const char *wrong = NULL;
    if (!row->signal.data || !in_range(row->signal.frames, 1, most))
        wrong = "the signal has no data, or not 1 to 2^40 frames";
    else if (!row->prepared && (!row->response.data || !in_range(row->response.frames, 1, most)))
        wrong = "the response has no data, or not 1 to 2^40 frames";
    else if (!in_range(row->output_frames, 0, 2 * most) || (row->output_frames && !row->output) || !row->output_step)
        wrong = "the output has no data, a step of 0, or not 0 to 2^41 frames";
    else if (!in_range(row->offset, -2 * most, 2 * most))
        wrong = "the offset is not within -2^41 to 2^41";
    if (wrong)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "row %lld: %s", (long long)number, wrong);
    return GPUCONV_OK;
}

/* Some blocks of one row. */
typedef struct job {
    int64_t row, first_block, blocks;
} job;

/* A batch that is being convolved. */
typedef struct batch {
    gpuconv_memory *memory;
    const gpuconv_memory_row *rows;
    gc_row_plan *plan;
    float **spectrum;  /* of a row that is divided; else NULL */
    int64_t *divided;  /* numbers of these rows */
    int64_t divisions; /* and their number */
    job *jobs;
    int64_t count;
    _Atomic bool failed; /* memory is exhausted */
} batch;

static void free_batch(batch *b, int64_t rows) {
    for (int64_t i = 0; b->spectrum && i < rows; i++)
        free(b->spectrum[i]);
    free(b->spectrum);
    free(b->divided);
    free(b->plan);
    free(b->jobs);
}

/* Plans all rows and creates their tables. *seconds gets the sum of the predicted times. */
static gpuconv_status plan_rows(batch *b, int64_t count, double *seconds, gpuconv_error *error) {
    gpuconv_memory *m = b->memory;
    gc_row_plan plan = {0};
    for (int64_t i = 0; i < count; i++) {
        const gpuconv_memory_row *row = &b->rows[i];
        const int64_t taps = row->prepared ? row->prepared->frames : row->response.frames;
        gpuconv_status status = check_row(row, i, error);
        if (!status)
            status = gc_row_plan_make(&m->costs, row, taps, &plan, error);
        if (status)
            return status;
        if (plan.prepared)
            plan.taps = (gpuconv_memory_array){plan.prepared->taps, taps, 1};
        if (plan.transform && plan.method >= GC_ROW_OVERLAP_SAVE && !gc_row_tables_add(&m->tables, plan.transform))
            return gc_fail_memory(error, "the tables of a transform");
        b->plan[i] = plan;
        *seconds += plan.seconds;
    }
    return GPUCONV_OK;
}

/* Returns the number of jobs that a row is divided into. */
static int64_t parts_of(const gc_row_plan *plan, double limit) {
    if (plan->method == GC_ROW_ZERO || plan->method == GC_ROW_SUM || !(plan->seconds > limit))
        return 1;
    return gc_min(plan->blocks, (int64_t)(plan->seconds / limit) + 1);
}

static bool make_jobs(batch *b, int64_t rows, double seconds) {
    const gpuconv_memory *m = b->memory;
    const double limit = m->threads > 1 && seconds > wake_seconds ? seconds / (m->threads * JOBS_PER_THREAD) : seconds;
    int64_t jobs = 0;
    for (int64_t i = 0; i < rows; i++)
        jobs += parts_of(&b->plan[i], limit);
    if (!(b->jobs = gc_calloc(jobs, sizeof *b->jobs)))
        return false;
    for (int64_t i = 0; i < rows; i++) {
        const gc_row_plan *p = &b->plan[i];
        const int64_t parts = parts_of(p, limit);
        for (int64_t k = 0; k < parts; k++) {
            const int64_t first = p->blocks * k / parts, next = p->blocks * (k + 1) / parts;
            b->jobs[b->count++] = (job){i, p->first_block + first, next - first};
        }
        const gc_row_plan *last = b->divisions ? &b->plan[b->divided[b->divisions - 1]] : NULL;
        const bool again = last && p->prepared && last->prepared == p->prepared && last->transform == p->transform;
        if (p->method == GC_ROW_OVERLAP_SAVE && (parts > 1 || p->prepared) && !again)
            b->divided[b->divisions++] = i;
    }
    return true;
}

/* Computes the spectrum of one divided row. */
static void transform_response(void *context, int64_t index, int worker) {
    batch *b = context;
    gpuconv_memory *m = b->memory;
    const int64_t i = b->divided[index];
    const gc_row_plan *p = &b->plan[i];
    if (p->prepared) {
        b->failed = b->failed || !gc_row_prepared_spectrum(&m->tables, p);
        return;
    }
    b->spectrum[i] = gc_calloc(gc_fft_floats(m->tables.fft[gc_row_log2(p->transform)]), sizeof(float));
    if (!b->spectrum[i] || !gc_row_spectrum(&m->tables, &m->scratch[worker], p, b->spectrum[i]))
        b->failed = true;
}

static void convolve_job(void *context, int64_t index, int worker) {
    batch *b = context;
    gpuconv_memory *m = b->memory;
    const job *j = &b->jobs[index];
    const gc_row_plan *p = &b->plan[j->row];
    const float *spectrum = b->spectrum[j->row];
    if (b->failed)
        return;
    if (p->prepared && p->method == GC_ROW_OVERLAP_SAVE)
        spectrum = gc_row_prepared_spectrum(&m->tables, p);
    if (!gc_row_convolve(&m->tables, &m->scratch[worker], p, &b->rows[j->row], spectrum, j->first_block, j->blocks))
        b->failed = true;
}

/* Runs a loop on the threads, or on the calling thread if that is quicker. */
static void run(batch *b, double seconds, void (*work)(void *, int64_t, int), int64_t count) {
    if (seconds > wake_seconds)
        gc_pool_run(b->memory->pool, work, b, count);
    else
        for (int64_t i = 0; i < count && !gc_cancelled(); i++)
            work(b, i, 0);
}

gpuconv_status gpuconv_memory_convolve(gpuconv_memory *m, const gpuconv_memory_row *rows, int64_t count,
                                       gpuconv_error *error) {
    double seconds = 0;
    if (!m || (!rows && count > 0))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "a convolution of arrays needs a gpuconv_memory and rows, not NULL");
    if (count <= 0)
        return count < 0 ? gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%lld rows: use 0 or more", (long long)count)
                         : GPUCONV_OK;
    batch b = {.memory = m, .rows = rows};
    b.plan = gc_calloc(count, sizeof *b.plan);
    b.spectrum = gc_calloc(count, sizeof *b.spectrum);
    b.divided = gc_calloc(count, sizeof *b.divided);
    gpuconv_status status = b.plan && b.spectrum && b.divided ? plan_rows(&b, count, &seconds, error)
                                                              : gc_fail_memory(error, "the plans of a batch");
    if (!status && !make_jobs(&b, count, seconds))
        status = gc_fail_memory(error, "the jobs of a batch");
    if (!status) {
        const uint64_t mode = gc_save_and_flush_subnormals();
        run(&b, seconds, transform_response, b.divisions);
        run(&b, seconds, convolve_job, b.count);
        gc_restore_subnormals(mode);
        for (int i = 0; i < m->threads; i++)
            m->scratch[i].kept.data = NULL;
        if (b.failed || gc_cancelled())
            status = gc_fail_memory(error, "the convolution of arrays");
    }
    free_batch(&b, count);
    return status;
}
