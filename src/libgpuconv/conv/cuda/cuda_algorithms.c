/* The array of the algorithms of CUDA devices. A file of its own: what plans needs it, and it needs the algorithms. */
#include "cuda_algorithm.h"
#include "cuda_arrays.h"

#define ROW_OF(name) &(name).row,

const gc_algorithm *const gc_cuda_algorithms[] = {GC_CUDA_STREAMS(ROW_OF) GC_CUDA_ROWS(ROW_OF) & gc_bank_levels, NULL};
