/* Declarations shared by the files of gpu_test: its mode, its record, and the tests of gpu_batch.c and gpu_realtime.c.
 */
#ifndef TESTS_GPU_GPU_TEST_H
#define TESTS_GPU_GPU_TEST_H

#include "harness.h"

extern bool gpu_quick; /* skip tests that take long under a sanitizer */

/* Adds a measured error to the record. */
void gpu_note(const char *name, double decibels);

void test_signals_of_any_length_in_one_batch_agree_with_the_oracle(void **state);
void test_samples_in_file_formats_give_the_same_as_floats(void **state);
void test_a_filter_bank_agrees_with_the_oracle(void **state);
void test_a_single_tap_at_every_edge_of_a_filter_bank_delays_exactly(void **state);
void test_a_tail_on_the_gpu_in_real_time_agrees_with_the_oracle(void **state);

#endif
