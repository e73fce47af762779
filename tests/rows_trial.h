/*
 * Jobs on random rows (gpuconv_arrays.h), compared with their definition in double precision: types, steps, ragged and
 * packed rows, gains, groups, routes, gates and accumulation. NaN lies between and behind the rows of an array, and the
 * last row ends where the memory ends. The tests of the CPU and of a GPU share this file; the memory is the place's.
 */
#ifndef TESTS_ROWS_TRIAL_H
#define TESTS_ROWS_TRIAL_H

#include "gpuconv.h"
#include "gpuconv_arrays.h"
#include "oracle.h"

/* ---- Where jobs run ---------------------------------------------------------------------------------------------- */

typedef struct trial_place {
    gpuconv_arrays *arrays;
    void *(*allocate)(size_t bytes);
    void (*release)(void *memory);
    void (*copy)(void *to, const void *from, size_t bytes); /* between the host and the place, either way */
    /* Runs a job and waits for it, on a GPU in a workspace full of NaN. */
    void (*run)(const gpuconv_arrays_job *job, const char *what);
} trial_place;

extern trial_place trials; /* trials_on_cpu() or the program fills it */

/* Makes a place on the CPU with `threads` threads. gpuconv_arrays_free(trials.arrays) frees it. */
void trials_on_cpu(int threads);

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

typedef enum rows_kind { ROWS_PLAIN, ROWS_RAGGED, ROWS_PACKED, ROWS_INTERLEAVED, ROWS_KINDS } rows_kind;

typedef struct rows_array {
    gpuconv_rows array;
    double *value;   /* rows x frames; 0 behind a row's length */
    int64_t *start;  /* frame 0 of every row, in elements */
    int64_t *length; /* of every row */
    int64_t elements;
    void *data, *starts, *lengths; /* memory of the place */
    unsigned char *before;         /* the bytes that were copied to `data` */
} rows_array;

/* Makes an array of random values that its type represents exactly. pad: elements before the first row. step: from
 * frame to frame; interleaved rows have their own. */
rows_array rows_new(oracle_random *random, gpuconv_sample_type type, int64_t rows, int64_t frames, int64_t step,
                    rows_kind kind, int64_t pad);

/* Fills all of the memory with NaN. */
void rows_poison(rows_array *a);

/* Checks that nothing outside the frames that may be written has changed, and returns the values: rows x frames, which
 * the caller frees. accumulate: as in the job. */
double *rows_read(const rows_array *a, bool accumulate, const char *what);

/* Returns the largest relative RMS error in dB that rounding to the type explains. */
double rows_bound(gpuconv_sample_type type);

/* Returns the value of a half that is not infinite, by its definition. */
double rows_half_value(uint16_t half);

void rows_free(rows_array *a);

/* ---- Trials ------------------------------------------------------------------------------------------------------ */

typedef struct trial_shape {
    gpuconv_arrays_operation operation;
    int64_t rows, group, responses, taps, frames, output_frames, offset;
    int64_t hop; /* `responses` for each of its blocks */
    bool accumulate, gain, linear, pre, post, skip;
    bool mixed;                  /* gates of other types than the samples */
    gpuconv_sample_type type[3]; /* signal, response, output */
    rows_kind kind[3];
    int64_t step[3];  /* 0: 1 */
    bool constant[3]; /* one sample for all frames of a row */
} trial_shape;

typedef struct trial {
    oracle_random random;
    gpuconv_arrays_job job;
    rows_array signal, response, output;
    rows_array pre, post;   /* if the shape has them */
    rows_array gradient[2]; /* of GRADIENT_BOTH: by the signal and by the response */
    double *gain, *skip;    /* of every row of the signal */
    void *gains, *skips;    /* memory of the place */
    const gpuconv_ir *ir;   /* the routes, or NULL */
    int frames_checked;     /* of every row: all of shorter rows, some of longer ones */
} trial;

/* Returns a random shape for transforms of `points` points, with few frames and taps beyond what a segment has.
 * taps 0: a random number. */
trial_shape trial_random(oracle_random *random, int operation, int64_t points, int64_t taps);

void trial_init(trial *t, uint64_t seed, const trial_shape *shape);

/* Runs the job, and compares what it wrote. Returns the error in dB. */
double trial_run(trial *t, const char *what);

/* Returns the array that the job writes; of GRADIENT_BOTH the first one. */
rows_array *trial_written(trial *t);

/* Returns frame n of a row of the array that the job writes, by the definition. Not of GRADIENT_BOTH. */
double trial_value(const trial *t, int64_t row, int64_t n);

void trial_free(trial *t);

/* Runs a random job with routes: one output has several, one input none, and two routes have a response in common. */
void trial_run_routed(uint64_t seed, gpuconv_arrays_operation operation, int64_t points);

#endif
