/*
 * Rows on threads: their division into jobs.
 *
 * A row of little work is one job, which transforms the response in the worker's scratch memory. A row of much work is
 * divided into several jobs; its response is transformed before, in a loop of its own. The division changes no sample.
 */
#include "rows.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/subnormal.h"

#include <stdlib.h>

/* Jobs per thread that balance the load; a batch of less work than waking a thread takes stays on the calling one. */
enum { JOBS_PER_THREAD = 6 };
static const double wake_seconds = 60e-6;

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
        gc_row_scratch_free(&r->scratch[i]);
    free(r->scratch);
}

void gc_rows_forget(gc_rows *r) {
    for (int i = 0; i < r->threads; i++)
        r->scratch[i].kept.data = NULL;
}

/* Some blocks of one row. */
typedef struct job {
    gc_row *row;
    int64_t first_block, blocks;
} job;

/* Rows that are being convolved. */
typedef struct batch {
    gc_rows *rows;
    gc_row *row;
    int64_t count;
    double seconds; /* sum of the predicted times */
    job *jobs;
    int64_t job_count;
    int64_t *first; /* numbers of the rows whose response is transformed before the jobs */
    int64_t first_count;
    _Atomic bool failed; /* memory is exhausted */
} batch;

static void free_batch(batch *b) {
    for (int64_t i = 0; i < b->first_count; i++) {
        gc_kept_response *kept = b->row[b->first[i]].prepared;
        if (kept->taps)
            continue;
        gc_kept_response_free_spectra(kept);
        free(kept);
    }
    free(b->first);
    free(b->jobs);
}

/* Plans all rows and creates their FFT plans. */
static gpuconv_status plan_rows(batch *b, gpuconv_error *error) {
    for (gc_row *row = b->row; row < b->row + b->count; row++) {
        const gpuconv_status status = gc_row_plan(&b->rows->costs, row, &b->rows->last, error);
        if (status)
            return status;
        b->seconds += row->seconds;
        if (row->method < GC_ROW_OVERLAP_SAVE)
            continue;
        gc_fft **fft = &b->rows->fft[gc_row_log2(row->schedule.transform)];
        if (!*fft && !(*fft = gc_fft_new(gc_simd_best(), row->schedule.transform)))
            return gc_fail_memory(error, "the tables of a transform");
    }
    return GPUCONV_OK;
}

/* Returns the number of jobs that a row is divided into. */
static int64_t parts_of(const gc_row *row, double limit) {
    if (row->method == GC_ROW_ZERO || row->method == GC_ROW_SUM || !(row->seconds > limit))
        return 1;
    return gc_min(row->blocks, (int64_t)(row->seconds / limit) + 1);
}

/* Lists a row to be transformed before the jobs, unless the one before has the same transform. */
static bool add_first(batch *b, gc_row *row) {
    const gc_row *last = b->first_count ? &b->row[b->first[b->first_count - 1]] : NULL;
    if (row->prepared && last && last->prepared == row->prepared && last->schedule.transform == row->schedule.transform)
        return true;
    if (!row->prepared && !(row->prepared = gc_calloc(1, sizeof *row->prepared)))
        return false;
    b->first[b->first_count++] = row - b->row;
    return true;
}

static bool make_jobs(batch *b) {
    const int threads = b->rows->threads;
    const double limit =
        threads > 1 && b->seconds > wake_seconds ? b->seconds / (threads * JOBS_PER_THREAD) : b->seconds;
    int64_t jobs = 0;
    for (int64_t i = 0; i < b->count; i++)
        jobs += parts_of(&b->row[i], limit);
    b->jobs = gc_calloc(jobs, sizeof *b->jobs);
    b->first = gc_calloc(b->count, sizeof *b->first);
    if (!b->jobs || !b->first)
        return false;
    for (gc_row *row = b->row; row < b->row + b->count; row++) {
        const int64_t parts = parts_of(row, limit);
        for (int64_t k = 0; k < parts; k++) {
            const int64_t first = row->blocks * k / parts, next = row->blocks * (k + 1) / parts;
            b->jobs[b->job_count++] = (job){row, row->first_block + first, next - first};
        }
        if (row->method == GC_ROW_OVERLAP_SAVE && (parts > 1 || row->prepared) && !add_first(b, row))
            return false;
    }
    return true;
}

static void transform_response(void *context, int64_t index, int worker) {
    batch *b = context;
    if (!b->failed && !gc_row_spectrum(b->rows, &b->rows->scratch[worker], &b->row[b->first[index]]))
        b->failed = true;
}

static void convolve_job(void *context, int64_t index, int worker) {
    batch *b = context;
    const job *j = &b->jobs[index];
    if (!b->failed && !gc_row_convolve(b->rows, &b->rows->scratch[worker], j->row, j->first_block, j->blocks))
        b->failed = true;
}

/* Runs a loop on the threads, or on the calling thread if that is quicker. */
static void run(batch *b, void (*work)(void *, int64_t, int), int64_t count) {
    if (b->seconds > wake_seconds)
        gc_pool_run(b->rows->pool, work, b, count);
    else
        for (int64_t i = 0; i < count && !gc_cancelled(); i++)
            work(b, i, 0);
}

gpuconv_status gc_rows_convolve(gc_rows *rows, gc_row *row, int64_t count, gpuconv_error *error) {
    batch b = {.rows = rows, .row = row, .count = count};
    gpuconv_status status = plan_rows(&b, error);
    if (!status && !make_jobs(&b))
        status = gc_fail_memory(error, "the jobs of a batch");
    if (!status) {
        const uint64_t mode = gc_save_and_flush_subnormals();
        run(&b, transform_response, b.first_count);
        run(&b, convolve_job, b.job_count);
        gc_restore_subnormals(mode);
        if (b.failed || gc_cancelled())
            status = gc_fail_memory(error, "the convolution of rows");
    }
    free_batch(&b);
    return status;
}
