/* Access to routes from kernels. */
#ifndef GC_KERNELS_MATRIX_CUH
#define GC_KERNELS_MATRIX_CUH

#include "kernels.h"

/* Returns the route of an output that has exactly one. */
__device__ __forceinline__ gck_route single_route(const gck_matrix &a, int output) {
    return a.outputs <= GCK_INLINE_ROUTES ? a.inline_route[output] : a.route[output];
}

#endif
