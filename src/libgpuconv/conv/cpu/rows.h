/* Rows: convolutions of a signal with a response, planned one by one, divided among threads, and computed (rows.c). */
#ifndef GC_CPU_ROWS_H
#define GC_CPU_ROWS_H

#include "gpuconv_arrays.h"
#include "libgpuconv/conv/plan.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/dsp/fft.h"

#include <stdatomic.h>

/* Limit of the shorter operand, and with it of a transform: 2^30 points. */
enum { GC_ROW_MAX_LOG2 = 29 };

/* Frame n is element n * step, of `type`. */
typedef struct gc_array {
    void *data; /* frame 0; not written unless it is an output */
    int64_t frames, step;
    gpuconv_sample_type type;
    gpuconv_sample_type gate_type;
    const void *gate; /* factors of the frames, gate_step apart: of what is read or written; NULL: 1 */
    int64_t gate_step;
} gc_array;

/* A response whose transforms are kept. */
typedef struct gc_kept_response {
    float *taps; /* NULL: kept during one call */
    /* Of the taps, and of the taps backwards; by log2 of the points; computed on first use. A transform of several rows
     * has those of the responses that follow this one in the array, too. */
    _Atomic(float *) spectrum[2][GC_FFT_MAX_LOG2 + 1];
} gc_kept_response;

typedef enum gc_row_method {
    GC_ROW_ZERO = 0,     /* no frame of the convolution is in the output */
    GC_ROW_DIRECT,       /* sums in the time domain */
    GC_ROW_OVERLAP_SAVE, /* one transform longer than the response; blocks of the signal */
    GC_ROW_SUM,          /* few output frames: one block, the sum over partitions of both operands */
    GC_ROW_WHOLE         /* one transform as long as the convolution; several rows at a time */
} gc_row_method;

/* Frames of the longest convolution that is computed by one transform: longer ones have the bytes of a file job. */
enum { GC_ROW_WHOLE_FRAMES = 1 << 13 };

/* y[n] = gain * sum over k of h[k] x[n + offset - k], zeros outside x and h.
 *
 * Block b has the frames b * hop .. b * hop + hop - 1 of the full convolution (SUM: from `begin` on) and reads
 * gc_schedule_overlap frames more of the signal. WHOLE has one block, of the whole convolution. */
typedef struct gc_row {
    gc_array signal, taps, output; /* x, h, y; a plan exchanges x and h if h is longer */
    gc_kept_response *prepared;    /* the transforms of `taps`, which is its taps, with step -1 backwards; or NULL */
    gc_kept_response *shared;      /* the same during one call, for which it is not planned otherwise; or NULL */
    int64_t offset;                /* frame of the full convolution that is output frame 0 */
    int64_t cleared;               /* frames of which those behind output.frames become zero */
    bool accumulate;               /* adds to the output, and clears nothing */
    bool gradient;                 /* no file job has the bytes of the row */
    const float *gain;             /* NULL: 1 */
    gc_array skip;                 /* is added times *skip_factor, before the gate of the output or after it; no data:
                                      nothing is */
    const float *skip_factor;
    bool skip_last;
    int64_t terms;        /* convolutions that are added up to the output, of which this is one; 0: 1 */
    gc_schedule schedule; /* direct or overlap-save; no taps: the plan chooses it, and the order of x and h */

    /* Set by gc_row_plan: */
    const gc_algorithm *algorithm; /* NULL: no frame of the convolution is in the output */
    gc_row_method method;
    int64_t begin, end;          /* frames of the full convolution that are in the output */
    int64_t first_block, blocks; /* blocks with output frames */
    double seconds;              /* predicted, on one thread */
} gc_row;

/* Rows to convolve, which are made when they are needed. */
typedef struct gc_row_list {
    int64_t count;
    bool alike; /* the rows and their terms differ in their data only, not in lengths, types or steps */

    /* Fills *row, which is all zero: term 0 .. row->terms - 1 of row `index`. Called by several threads. */
    void (*make)(const void *context, int64_t index, int64_t term, gc_row *row);
    const void *context;
} gc_row_list;

/* Spectra of one size. */
typedef struct gc_row_spectra {
    float *response, *work, *sum;
} gc_row_spectra;

/* Scratch memory of one worker; grows on use. */
typedef struct gc_row_scratch {
    float *block, *output, *taps; /* samples */
    int64_t block_floats, output_floats, taps_floats;
    gc_row_spectra spectra[GC_FFT_MAX_LOG2 + 1]; /* by log2 of the points: the gaps of a spectrum must stay zero */
    /* The taps that the last spectrum of responses is of; data NULL: none. */
    gc_array kept[GC_FFT_MAX_ROWS];
    int64_t kept_transform;
} gc_row_scratch;

/* Threads with FFT plans and scratch memory, which grow with the first rows. For one thread at a time. */
typedef struct gc_rows {
    int threads;
    gc_pool *pool;
    gc_costs costs;
    gc_row last;                      /* the row that was planned last */
    gc_fft *fft[GC_FFT_MAX_LOG2 + 1]; /* by log2 of the points; not changed while rows are convolved */
    gc_row_scratch *scratch;          /* per thread */
} gc_rows;

/* Starts the threads; 0: one per core. Returns false without memory or a thread; free the object all the same. */
bool gc_rows_init(gc_rows *rows, int threads);
void gc_rows_free(gc_rows *rows);

/* Plans and convolves the rows of a list. Rows that follow one another and have the same response share its transform,
 * also those of several calls, until gc_rows_forget.
 * @return UNSUPPORTED (both operands of a row are too long), MEMORY, CANCELLED */
gpuconv_status gc_rows_convolve(gc_rows *rows, const gc_row_list *list, gpuconv_error *error);

/* Forgets the transforms of responses, whose memory the caller may then change. */
void gc_rows_forget(gc_rows *rows);

/* Chooses among `algorithms` of the CPU as an engine does for a stream of `frames` frames, for any number of threads.
 */
gpuconv_status gc_row_choose(const gc_algorithm *const *algorithms, const gc_costs *costs, const gpuconv_ir *ir,
                             int64_t frames, gc_choice *choice, gpuconv_error *error);

/* Plans a row, as *last if that has the same lengths. Sets *last to the row; at first it is zero.
 * @return UNSUPPORTED if both operands are too long, MEMORY */
gpuconv_status gc_row_plan(const gc_costs *costs, gc_row *row, gc_row *last, gpuconv_error *error);

/* Copies `count` frames of an array from frame `at` on as floats, with zeros before its beginning and behind its end.
 */
void gc_row_gather(const gc_array *from, int64_t at, int64_t count, float *to);

/* Writes `count` frames of a row's output from frame `first` on. */
void gc_row_write(const gc_row *row, int64_t first, int64_t count, const float *from);

void gc_kept_response_free_spectra(gc_kept_response *kept);

/* Returns a row of the caller's array; its data is NULL in a plan, which has no memory. */
gc_array gc_array_of_row(const gpuconv_rows *array, int64_t row);

/* Returns the same frames in reverse order. */
gc_array gc_array_backwards(gc_array array);

/* Runs a job whose filter changes with time (cpu_varying.c). @return MEMORY, CANCELLED, UNSUPPORTED */
gpuconv_status gc_cpu_run_varying(gc_rows *rows, const gpuconv_arrays_job *job, const gc_job_shape *shape,
                                  gpuconv_error *error);

/* Returns log2 of a power of two. */
static inline int gc_row_log2(int64_t n) {
    return 63 - __builtin_clzll((unsigned long long)n);
}

#endif
