/* Shapes of arrays that the tests of the CPU (C), of the GPU (C and Python) and of Python share; those of Python read
 * the numbers in braces. */
#ifndef TESTS_ARRAY_SHAPES_H
#define TESTS_ARRAY_SHAPES_H

#include <stdint.h>

/* Frames of the signal and of the response; the first frame of the convolution that is wanted, and how many are. */
typedef struct array_shape {
    int64_t frames, taps, offset, output;
} array_shape;

static const array_shape array_shapes[] = {
    {1, 1, 0, 1},
    {1, 1, -3, 9},
    {5, 3, 0, 7},
    {3, 5, 2, 3},
    {40, 9, 0, 48},
    {100, 40, 39, 61},
    {100, 40, 19, 100},
    {100, 40, 0, 139},
    {400, 30, -50, 600},
    {400, 30, 5000, 10},
    {400, 30, -5000, 10},
    {1000, 700, 0, 1699},
    {700, 1000, 0, 1699},
    {4097, 1, 0, 4097},
    {5000, 300, 149, 5000},
    {5000, 300, 299, 4701},
    {30000, 2500, 0, 32499},
    {30000, 2500, 17, 30000},
    {30000, 2500, 1249, 30000},
    {2500, 30000, 40, 9000},
    {60000, 40, 33, 60000},
    {60000, 40, 0, 60039},
    {60000, 40, 39, 59961},
    {3000, 90000, 2900, 2000},
    {70000, 20000, 65000, 1000},
    {200000, 12, 100, 3000},
    {100000, 100000, 99000, 100},
    {300000, 48000, 290000, 100},
    {48000, 300000, 150000, 100},
};

#endif
