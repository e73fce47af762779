/* Rows of samples in device memory for tests: the values as doubles on the host, ragged or packed rows, NaN between and
 * behind them, and the last row ending where the allocation ends. */
#ifndef TESTS_GPU_GPU_ARRAYS_H
#define TESTS_GPU_GPU_ARRAYS_H

#include "gpuconv_arrays.h"
#include "oracle.h"

typedef enum rows_kind { ROWS_PLAIN, ROWS_RAGGED, ROWS_PACKED, ROWS_KINDS } rows_kind;

typedef struct rows_array {
    gpuconv_rows array;
    double *value;   /* rows x frames; 0 behind a row's length */
    int64_t *start;  /* frame 0 of every row, in elements */
    int64_t *length; /* of every row */
    int64_t elements;
    void *device_data, *device_starts, *device_lengths;
    unsigned char *before; /* the bytes that were uploaded */
} rows_array;

/* Makes an array of random values that its type represents exactly. pad: elements before the first row. step: from
 * frame to frame, not 0. */
rows_array rows_new(oracle_random *random, gpuconv_sample_type type, int64_t rows, int64_t frames, int64_t step,
                    rows_kind kind, int64_t pad);

/* Fills all of the rows with NaN on the device. */
void rows_poison(rows_array *a);

/* Downloads the array, checks that nothing outside the frames that may be written has changed, and returns the values:
 * rows x frames, which the caller frees. accumulate: as in the job. */
double *rows_read(const rows_array *a, bool accumulate, const char *what);

/* Returns the largest relative RMS error in dB that rounding to the type explains. */
double rows_bound(gpuconv_sample_type type);

void rows_free(rows_array *a);

#endif
