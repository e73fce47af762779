/* Declarations shared by the files of gpu_jobs. */
#ifndef TESTS_GPU_GPU_JOBS_H
#define TESTS_GPU_GPU_JOBS_H

#include "harness.h"
#include "rows_trial.h"

#include "libgpuconv/conv/cuda/cuda_arrays.h"

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
