/* Rooms on a device, for tests/libgpuconv/test_rooms.c. */
#ifndef TESTS_GPU_GPU_ROOMS_H
#define TESTS_GPU_GPU_ROOMS_H

#include "gpuconv_rooms.h"
#include "harness.h"

/* Simulates on the current device into a buffer with one channel of all responses. Nothing else may be written. */
guarded gpu_rooms_simulate(const gpuconv_rooms_job *job);

/* Makes a set of random responses at random directions, on `shells` distances (test_rooms.c). */
gpuconv_sofa *random_ears(int shells);

void rooms_on_the_gpu_are_those_of_the_cpu(void **state);
void what_the_cpu_refuses_is_silent(void **state);
void a_graph_simulates_what_the_memory_then_has(void **state);

#endif
