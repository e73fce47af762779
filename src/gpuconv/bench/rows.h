/* Times convolutions of many rows of arrays, as Python and C programs run them, beside PyTorch. */
#ifndef GPUCONV_BENCH_ROWS_H
#define GPUCONV_BENCH_ROWS_H

#include "bench.h"

/* Rows of one length: row i has response i mod `responses`, or with a hop a response for each `hop` frames. */
typedef struct gc_bench_row {
    int64_t rows, frames, taps, responses, hop;
    gpuconv_sample_type type;
} gc_bench_row;

/* Times rows of 128 to 16 384 frames with a response for each of 768 channels, with their own, and with filters that
 * change with time, on each backend; on the CPU a part of the rows. Reports rows of "rows": the time, its ratio to that
 * of reading and writing every sample once at the rate of a copy, and where python3 has PyTorch the time of its FFT on
 * the same processor. gc_bench_peak_rates comes before. most: longer rows are left out.
 * @return STATE if an output is wrong: above -115 dB, for 16 bits -48 dB; DEVICE, MEMORY, CANCELLED */
gpuconv_status gc_bench_rows(const gc_bench *bench, int64_t most, gpuconv_error *error);

#endif
