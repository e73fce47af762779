/* Access to routes from kernels. */
#ifndef GC_KERNELS_ROUTES_CUH
#define GC_KERNELS_ROUTES_CUH

#include "kernels.h"

/* Returns the route of an output that has exactly one. */
__device__ __forceinline__ gck_route single_route(const gck_routes &a, int output) {
    return a.outputs <= GCK_INLINE_ROUTES ? a.inline_route[output] : a.route[output];
}

#endif
