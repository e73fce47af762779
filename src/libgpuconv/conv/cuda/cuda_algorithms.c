/* The array of the algorithms of CUDA devices. A file of its own: what plans needs it, and it needs the algorithms. */
#include "cuda_algorithm.h"
#include "cuda_arrays.h"

const gc_algorithm *const gc_cuda_algorithms[] = {&gc_cuda_direct.row,
                                                  &gc_cuda_overlap_save.row,
                                                  &gc_cuda_partitioned.row,
                                                  &gc_cuda_dense.row,
                                                  &gc_rows_chip.row,
                                                  &gc_rows_three_pass.row,
                                                  &gc_rows_direct.row,
                                                  &gc_rows_short.row,
                                                  &gc_rows_toeplitz.row,
                                                  &gc_rows_tensor.row,
                                                  &gc_rows_varying.row,
                                                  &gc_bank_levels,
                                                  NULL};
