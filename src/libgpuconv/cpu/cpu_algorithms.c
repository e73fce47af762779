/* The array of the CPU's algorithms. A file of its own: the backend and its batches need it, and it needs both the
 * algorithms and their costs. */
#include "cpu_algorithm.h"

const gc_algorithm *const gc_cpu_algorithms[] = {&gc_cpu_direct.row, &gc_cpu_overlap_save.row, &gc_cpu_partitioned.row,
                                                 &gc_cpu_matrix.row, &gc_cpu_levels,           NULL};
