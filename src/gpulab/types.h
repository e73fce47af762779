/* Element types of buffers: sizes, conversion from and to host floats, and random input numbers. */
#ifndef GPULAB_TYPES_H
#define GPULAB_TYPES_H

#include "lab.h"

#include <stdbool.h>

int64_t gc_lab_type_bytes(gc_lab_type type);
bool gc_lab_type_is_float(gc_lab_type type);

/* Converts floats to `type`: rounds to nearest even; for integer types drops the fraction. */
void gc_lab_encode(gc_lab_type type, const float *from, void *to, int64_t count);

/* Returns one element as a double, which is exact for every type. */
double gc_lab_decode(gc_lab_type type, const void *elements, int64_t index);

/* Returns the value that a number has after it is stored as `type`. */
double gc_lab_round(gc_lab_type type, double value);

/* Writes `count` random floats from [low, high). The same seed gives the same floats. */
void gc_lab_random_floats(uint64_t seed, double low, double high, float *to, int64_t count);

/* Returns 64 pseudo-random bits for an index (splitmix64); different indices give different bits. */
uint64_t gc_lab_random_bits(uint64_t index);

#endif
