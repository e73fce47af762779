/* Declarations shared by the files of gpu_test: its record, and the tests of its other files. */
#ifndef TESTS_GPU_GPU_TEST_H
#define TESTS_GPU_GPU_TEST_H

#include "harness.h"

/* Adds a measured error to the record. */
void gpu_note(const char *name, double decibels);

/* The tests of a file of tests/libgpuconv. Returns how many failed. */
int test_engine_oracle(void);
int test_engine_properties(void);
int test_engine_streaming(void);
int test_matrix(void);

void test_every_sample_format_is_converted_as_on_the_cpu(void **state);
void test_signals_of_any_length_in_one_batch_agree_with_the_oracle(void **state);
void test_samples_in_file_formats_give_the_same_as_floats(void **state);
void test_a_filter_bank_agrees_with_the_oracle(void **state);
void test_a_single_tap_at_every_edge_of_a_filter_bank_delays_exactly(void **state);
void test_a_matrix_in_real_time_agrees_with_the_oracle(void **state);
void test_a_single_tap_at_every_edge_of_a_matrix_delays_exactly(void **state);
void test_a_tail_on_the_gpu_in_real_time_agrees_with_the_oracle(void **state);
void test_a_reset_forgets_the_tail_on_the_gpu(void **state);

void test_moving_sources_agree_with_the_cpu(void **state);
void test_moving_sources_in_real_time_agree_with_the_cpu(void **state);

void test_a_matrix_with_little_free_memory_agrees_with_the_cpu(void **state);
void test_too_little_free_memory_is_refused_with_both_figures(void **state);

void test_nothing_outside_the_samples_is_touched(void **state);
void test_every_transform_size_agrees_with_the_oracle(void **state);
void test_long_partitions_agree_with_the_oracle(void **state);
void test_convolutions_that_read_each_others_outputs_need_no_wait(void **state);
void test_the_memory_estimate_covers_what_a_convolver_takes(void **state);
void test_more_planes_than_a_grid_has_rows(void **state);
void test_kernels_start_early_only_if_their_code_can_wait(void **state);

void test_objects_leave_the_current_device_as_it_was(void **state);
void test_objects_leave_the_default_memory_pool_as_it_was(void **state);
void test_objects_do_not_wait_for_the_work_of_the_program(void **state);

#endif
