/*
 * Rows on threads: their division into jobs.
 *
 * Rows of little work are one job as long as they follow one another: it makes and plans them one by one, and
 * transforms their responses in the worker's scratch memory. A row of much work is divided into several jobs; its
 * response is transformed before, in a loop of its own. The division changes no sample.
 */
#include "rows.h"

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/subnormal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Jobs per thread that balance the load; a batch of less work than waking a thread takes stays on the calling one. */
enum { JOBS_PER_THREAD = 6 };
static const double wake_seconds = 30e-6;

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

/* Rows that are being convolved. */
typedef struct batch {
    gc_rows *rows;
    const gc_row_list *list;
    double seconds; /* sum of the predicted times */
    double limit;   /* of the time of a job, about */
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
    for (int64_t i = 0, term = 0; i < planned; term++) {
        gc_row row;
        const gpuconv_status status = plan_row(b, i, term, &row, &b->rows->last, error);
        if (status)
            return status;
        b->seconds += b->list->alike ? seconds_of(&row) * (double)b->list->count : row.seconds;
        if (b->list->alike || term + 1 >= row.terms) {
            i++;
            term = -1;
        }
        if (row.method < GC_ROW_OVERLAP_SAVE)
            continue;
        gc_fft **fft = &b->rows->fft[gc_row_log2(row.schedule.transform)];
        if (!*fft && !(*fft = gc_fft_new(gc_simd_best(), row.schedule.transform)))
            return gc_fail_memory(error, "the tables of a transform");
    }
    return GPUCONV_OK;
}

/* Returns the rows that are transformed together with a row of the method WHOLE. */
static int rows_together(const batch *b, const gc_row *row) {
    return gc_fft_rows(b->rows->fft[gc_row_log2(row->schedule.transform)]);
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
    const bool shared = b->rows->threads > 1 && b->seconds > wake_seconds;
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
        if ((i == 0 || !b->list->alike) && plan_row(b, i, 0, &row, &last, NULL))
            return false;
        const int64_t parts = parts_of(&row, b->limit);
        if (parts == 1) {
            run.count++;
            seconds += seconds_of(&row);
        } else if (plan_row(b, i, 0, &row, &last, NULL)) {
            return false;
        } else {
            divide(b, &row, parts);
        }
        const bool together = row.method != GC_ROW_WHOLE || run.count % rows_together(b, &row) == 0;
        const bool enough = seconds >= b->limit && together && full < most;
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
        !gc_row_spectrum(b->rows, &b->rows->scratch[worker], row, 1))
        b->failed = true;
}

/* Convolves the terms of a row, of which *row is the first, and adds them up: as spectra if they have one transform of
 * the whole convolution, which is then transformed back once. Returns false without memory. */
static bool convolve_terms(const batch *b, int64_t index, const gc_row *row, gc_row *last, gc_row_scratch *scratch) {
    const bool spectra = b->list->alike && row->method == GC_ROW_WHOLE;
    const int together = spectra ? rows_together(b, row) : 1;
    gc_row group[GC_FFT_MAX_ROWS] = {*row};
    for (int64_t term = 0; term < row->terms && !gc_cancelled(); term++) {
        const int64_t grouped = term % together;
        gc_row *next = &group[grouped];
        if (term > 0 && plan_row(b, index, term, next, last, NULL))
            return false;
        next->accumulate |= term > 0;
        if (!spectra && !gc_row_convolve(b->rows, scratch, next, next->first_block, next->blocks))
            return false;
        if (spectra && (grouped + 1 == together || term + 1 == row->terms) &&
            !gc_row_add_terms(b->rows, scratch, group, (int)grouped + 1, term < together))
            return false;
    }
    return !spectra || gc_row_write_terms(b->rows, scratch, row);
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
        if (grouped && (sum || !gc_row_same_lengths(row, &group[0]))) {
            if (!gc_row_convolve_whole(b->rows, scratch, group, grouped))
                return false;
            group[0] = *row;
            grouped = 0;
        }
        if (!whole && !(sum ? convolve_terms(b, i, &group[0], &last, scratch)
                            : gc_row_convolve(b->rows, scratch, &group[0], group[0].first_block, group[0].blocks)))
            return false;
        grouped += whole;
        if (grouped && (i + 1 == first + count || grouped == rows_together(b, &group[0]))) {
            if (!gc_row_convolve_whole(b->rows, scratch, group, grouped))
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
    if (!b->failed && !(j->divided ? gc_row_convolve(b->rows, scratch, j->divided, j->first, j->count)
                                   : convolve_rows(b, j->first, j->count, scratch)))
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
