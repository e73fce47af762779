/* The element types in which variants take and give numbers: their sizes, and the way from and to host floats. */
#ifndef GPULAB_TYPES_H
#define GPULAB_TYPES_H

#include "lab.h"

#include <stdbool.h>

int64_t gc_lab_type_bytes(gc_lab_type type);
const char *gc_lab_type_name(gc_lab_type type);
bool gc_lab_type_is_float(gc_lab_type type);

/* Rounds to nearest even into `type`; integers take the integer part. */
void gc_lab_encode(gc_lab_type type, const float *from, void *to, int64_t count);

/* One element as double: exact for every type. */
double gc_lab_decode(gc_lab_type type, const void *elements, int64_t index);

/* What becomes of a number that is stored in `type`. */
double gc_lab_round(gc_lab_type type, double value);

/* `count` floats from low (included) to high, the same for the same seed. */
void gc_lab_random_floats(uint64_t seed, double low, double high, float *to, int64_t count);

/* The mixing behind it: 64 bits that look random, one for one with `index`. */
uint64_t gc_lab_random_bits(uint64_t index);

#endif
