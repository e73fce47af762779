/* What the files of gpu_test share: its mode, its record, and the tests that stand in files of their own. */
#ifndef TESTS_GPU_GPU_TEST_H
#define TESTS_GPU_GPU_TEST_H

#include "harness.h"

extern bool gpu_quick; /* leave out what takes long under a sanitizer */

/* An error that was found, for the record. */
void gpu_note(const char *name, double decibels);

void test_signals_of_any_length_in_one_lane_agree_with_the_oracle(void **state);
void test_samples_as_files_store_them_give_what_floats_give(void **state);
void test_a_bank_of_channels_agrees_with_the_oracle(void **state);
void test_a_single_tap_at_every_edge_of_a_bank_delays_by_just_so_much(void **state);
void test_a_tail_on_the_gpu_in_real_time_agrees_with_the_oracle(void **state);

#endif
