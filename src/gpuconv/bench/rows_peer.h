/* PyTorch's time for the convolutions of rows.c, in a process of python3. */
#ifndef GPUCONV_BENCH_ROWS_PEER_H
#define GPUCONV_BENCH_ROWS_PEER_H

#include "rows.h"

/* Writes the median seconds of PyTorch's FFT for each case to seconds[]; NaN where it has none. threads: of the CPU; 0:
 * as PyTorch chooses.
 * @return false if python3 has no PyTorch for this backend */
bool gc_bench_rows_peer(const gc_bench_row *rows, int count, gpuconv_backend backend, int threads, int runs,
                        double *seconds);

#endif
