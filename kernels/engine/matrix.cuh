/* Routes as kernels see them. */
#ifndef GC_KERNELS_MATRIX_CUH
#define GC_KERNELS_MATRIX_CUH

#include "kernels.h"

/* The route of an output that has just one. */
__device__ __forceinline__ gck_route only_route(const gck_matrix &a, int output) {
    return a.outputs <= GCK_FEW ? a.few[output] : a.route[output];
}

#endif
