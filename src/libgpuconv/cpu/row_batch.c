/*
 * Rows on threads: the division of a batch into jobs.
 *
 * A row of little work is one job, which transforms the response in the worker's scratch memory. A row of much work is
 * divided into several jobs; its response is transformed before, in a loop of its own. The division changes no sample.
 */
#include "row_batch.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/processor.h"
#include "libgpuconv/core/subnormal.h"

#include <stdlib.h>

/* Jobs per thread that balance the load; a batch of less work than waking a thread takes stays on the calling one. */
enum { JOBS_PER_THREAD = 6 };
static const double wake_seconds = 60e-6;

bool gc_row_threads_init(gc_row_threads *t, int threads) {
    char name[128];
    gc_processor_name(name, sizeof name);
    t->costs = gc_costs_of_cpu(name);
    t->threads = threads ? threads : gc_processor_count();
    t->pool = gc_pool_new(t->threads);
    t->scratch = gc_calloc(t->threads, sizeof *t->scratch);
    return t->pool && t->scratch;
}

void gc_row_threads_free(gc_row_threads *t) {
    gc_pool_free(t->pool);
    gc_row_tables_free(&t->tables);
    for (int i = 0; t->scratch && i < t->threads; i++)
        gc_row_scratch_free(&t->scratch[i]);
    free(t->scratch);
}

/* Some blocks of one row. */
typedef struct job {
    int64_t row, first_block, blocks;
} job;

/* A batch that is being convolved. */
typedef struct batch {
    gc_row_threads *threads;
    const gc_row *rows;
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
    gc_row_threads *t = b->threads;
    gc_row_plan plan = {0};
    for (int64_t i = 0; i < count; i++) {
        const gpuconv_status status = gc_row_plan_make(&t->costs, &b->rows[i], &plan, error);
        if (status)
            return status;
        if (plan.transform && plan.method >= GC_ROW_OVERLAP_SAVE && !gc_row_tables_add(&t->tables, plan.transform))
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
    const gc_row_threads *t = b->threads;
    const double limit = t->threads > 1 && seconds > wake_seconds ? seconds / (t->threads * JOBS_PER_THREAD) : seconds;
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
        const bool again = last && p->prepared && last->taps.data == p->taps.data && last->transform == p->transform;
        if (p->method == GC_ROW_OVERLAP_SAVE && (parts > 1 || p->prepared) && !again)
            b->divided[b->divisions++] = i;
    }
    return true;
}

/* Computes the spectrum of one divided row. */
static void transform_response(void *context, int64_t index, int worker) {
    batch *b = context;
    gc_row_threads *t = b->threads;
    const int64_t i = b->divided[index];
    const gc_row_plan *p = &b->plan[i];
    if (p->prepared) {
        b->failed = b->failed || !gc_row_prepared_spectrum(&t->tables, p);
        return;
    }
    b->spectrum[i] = gc_calloc(gc_fft_floats(t->tables.fft[gc_row_log2(p->transform)]), sizeof(float));
    if (!b->spectrum[i] || !gc_row_spectrum(&t->tables, &t->scratch[worker], p, b->spectrum[i]))
        b->failed = true;
}

static void convolve_job(void *context, int64_t index, int worker) {
    batch *b = context;
    gc_row_threads *t = b->threads;
    const job *j = &b->jobs[index];
    const gc_row_plan *p = &b->plan[j->row];
    const float *spectrum = b->spectrum[j->row];
    if (b->failed)
        return;
    if (p->prepared && p->method == GC_ROW_OVERLAP_SAVE)
        spectrum = gc_row_prepared_spectrum(&t->tables, p);
    if (!gc_row_convolve(&t->tables, &t->scratch[worker], p, &b->rows[j->row], spectrum, j->first_block, j->blocks))
        b->failed = true;
}

/* Runs a loop on the threads, or on the calling thread if that is quicker. */
static void run(batch *b, double seconds, void (*work)(void *, int64_t, int), int64_t count) {
    if (seconds > wake_seconds)
        gc_pool_run(b->threads->pool, work, b, count);
    else
        for (int64_t i = 0; i < count && !gc_cancelled(); i++)
            work(b, i, 0);
}

gpuconv_status gc_row_batch_convolve(gc_row_threads *t, const gc_row *rows, int64_t count, gpuconv_error *error) {
    double seconds = 0;
    batch b = {.threads = t, .rows = rows};
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
        for (int i = 0; i < t->threads; i++)
            t->scratch[i].kept.data = NULL;
        if (b.failed || gc_cancelled())
            status = gc_fail_memory(error, "the convolution of arrays");
    }
    free_batch(&b, count);
    return status;
}
