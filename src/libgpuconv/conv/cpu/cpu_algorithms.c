/* The array of the CPU's algorithms. A file of its own: the backend and its batches need it, and it needs both the
 * algorithms and their costs. */
#include "cpu_algorithm.h"

#define ROW_OF(name) &(name).row,

const gc_algorithm *const gc_cpu_algorithms[] = {&gc_cpu_levels, GC_CPU_STREAMS(ROW_OF) NULL};
