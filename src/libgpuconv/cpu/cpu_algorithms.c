/* The array of the CPU's algorithms. A file of its own: the backend and its batches need it, and it needs both the
 * algorithms and their costs. */
#include "cpu_algorithm.h"

#define ROW(name) &gc_cpu_##name.row,
const gc_algorithm *const gc_cpu_algorithms[] = {GC_CPU_ALGORITHMS(ROW) NULL};
