/* Declarations shared by the files of gpu_test: its mode, its record, and the tests of its other files. */
#ifndef TESTS_GPU_GPU_TEST_H
#define TESTS_GPU_GPU_TEST_H

#include "harness.h"

extern bool gpu_quick; /* run only what is short under a sanitizer */
extern bool gpu_forms; /* run what decides whether the kernels of one configuration are right, shortly */

/* Adds a measured error to the record. */
void gpu_note(const char *name, double decibels);

/* Returns a plan for this backend and algorithm; the test fails if there is none. */
gpuconv_plan *gpu_plan(const gpuconv_ir *ir, gpuconv_backend backend, gpuconv_algorithm algorithm, int64_t frames);

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

void test_matrices_of_every_shape_agree_with_the_oracle(void **state);
void test_every_transform_of_a_matrix_agrees_with_the_oracle(void **state);
void test_a_matrix_keeps_its_precision_at_every_level(void **state);

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
