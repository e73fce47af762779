/* The two forms of the product of dense matrices; dense_product.cu chooses. */
#ifndef GC_KERNELS_DENSE_PRODUCT_CUH
#define GC_KERNELS_DENSE_PRODUCT_CUH

#include "dense.cuh"

/* A kernel with its tiles. */
struct dense_form {
    int rows, columns, bytes;
    cudaError_t (*launch)(const dense::operands &a, int64_t points, cudaStream_t stream);
};

/* Returns the forms on multiply-adds, and those on tensor cores: few outputs first, then few columns. */
const dense_form *dense_fma_forms(int *count);
const dense_form *dense_tensor_forms(int *count);

/* Stores whether the code that runs on the current device contains the products on tensor cores. */
cudaError_t dense_tensor_is_compiled(bool *compiled);

#endif
