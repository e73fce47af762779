/* Trials: jobs on random arrays, compared with the oracle. Shared by the files of gpu_jobs. */
#ifndef TESTS_GPU_GPU_JOBS_H
#define TESTS_GPU_GPU_JOBS_H

#include "check.h"
#include "gpu_arrays.h"
#include "libgpuconv/conv/cuda/cuda_arrays.h"

typedef struct trial_shape {
    gpuconv_arrays_operation operation;
    int64_t rows, group, responses, taps, frames, output_frames, offset;
    int64_t hop; /* `responses` for each of its blocks */
    bool accumulate, gain, linear, pre, post, skip;
    bool mixed;                  /* gates of other types than the samples */
    gpuconv_sample_type type[3]; /* signal, response, output */
    rows_kind kind[3];
    int64_t step[3]; /* 0: 1 */
} trial_shape;

typedef struct trial {
    oracle_random random;
    gpuconv_arrays_job job;
    rows_array signal, response, output;
    rows_array pre, post;   /* if the shape has them */
    rows_array gradient[2]; /* of GRADIENT_BOTH: by the signal and by the response */
    double *gain, *skip;    /* of every row of the signal */
    void *device_gain, *device_skip;
    int frames_checked; /* of every row */
} trial;

extern bool jobs_quick;
extern gpuconv_arrays *jobs_cuda;

void trial_init(trial *t, uint64_t seed, const trial_shape *shape);

/* Runs the job on a stream of its own, in a workspace full of NaN, and compares what it wrote. Returns the error in dB.
 */
double trial_run(trial *t, const char *what);

/* Returns the array that the job writes; of GRADIENT_BOTH the first one. */
rows_array *trial_written(trial *t);

/* Returns frame n of a row of the array that the job writes, by the definition. Not of GRADIENT_BOTH. */
double job_value(const trial *t, int64_t row, int64_t n);

void trial_free(trial *t);

void test_prepared_responses_agree_with_the_oracle(void **state);
void test_updated_responses_agree_with_the_oracle(void **state);
void test_routed_responses_and_their_gradients_agree_with_the_oracle(void **state);
void test_a_call_neither_allocates_nor_waits_and_is_captured(void **state);
void test_threads_and_streams_give_the_same_bytes(void **state);
void test_nan_stays_in_its_row(void **state);
void test_streamers_agree_with_the_oracle(void **state);
void test_sequences_are_sorted_as_on_the_cpu(void **state);
void test_refusals_name_the_argument(void **state);

#endif
