/*
 * Matrix products with cuBLAS and cuBLASLt, as references for the speed of the lab's own kernels. The libraries take
 * hundreds of megabytes and are opened at run time, so that gpulab starts without them.
 *
 * cuBLAS stores matrices in column-major order. A row-major product c = a b is the column-major product c^T = b^T a^T:
 * a and b are swapped and no matrix is transposed.
 */
#include "device.h"

#ifdef LAB_WITH_CUBLAS

#include "libgpuconv/core/module.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

static struct {
    bool open_tried, is_open;
    void *library, *lt_library;
    cublasHandle_t handle[2];
    cublasLtHandle_t lt;
    __typeof__(cublasCreate_v2) *create;
    __typeof__(cublasDestroy_v2) *destroy;
    __typeof__(cublasSetStream_v2) *set_stream;
    __typeof__(cublasGemmEx) *gemm;
    __typeof__(cublasLtCreate) *lt_create;
    __typeof__(cublasLtDestroy) *lt_destroy;
    __typeof__(cublasLtMatmul) *lt_multiply;
    __typeof__(cublasLtMatmulDescCreate) *lt_desc;
    __typeof__(cublasLtMatmulDescDestroy) *lt_desc_free;
    __typeof__(cublasLtMatrixLayoutCreate) *lt_layout;
    __typeof__(cublasLtMatrixLayoutDestroy) *lt_layout_free;
    __typeof__(cublasLtMatmulPreferenceCreate) *lt_preference;
    __typeof__(cublasLtMatmulPreferenceDestroy) *lt_preference_free;
    __typeof__(cublasLtMatmulPreferenceSetAttribute) *lt_prefer;
    __typeof__(cublasLtMatmulAlgoGetHeuristic) *lt_heuristic;
    /* The last result of cuBLASLt's heuristic, which takes much longer than a launch. */
    cublasLtMatmulAlgo_t algo;
    int64_t algo_size[3];
    int algo_mode; /* gc_lab_blas + 1; 0: no result yet */
} blas;

static bool open_libraries(void) {
    static const char *const lt_names[] = {"libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13",
                                           "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.12", NULL};
    static const char *const names[] = {"libcublas.so.13", "/usr/local/cuda/lib64/libcublas.so.13", "libcublas.so.12",
                                        "/usr/local/cuda/lib64/libcublas.so.12", NULL};
    blas.lt_library = gc_library_open(lt_names, true); /* first: cuBLAS depends on it by its plain name */
    blas.library = gc_library_open(names, true);
    if (!blas.library || !blas.lt_library)
        return false;
    void *l = blas.library, *t = blas.lt_library;
    if (!gc_library_find(l, "cublasCreate_v2", &blas.create) ||
        !gc_library_find(l, "cublasDestroy_v2", &blas.destroy) ||
        !gc_library_find(l, "cublasSetStream_v2", &blas.set_stream) ||
        !gc_library_find(l, "cublasGemmEx", &blas.gemm) || !gc_library_find(t, "cublasLtCreate", &blas.lt_create) ||
        !gc_library_find(t, "cublasLtDestroy", &blas.lt_destroy) ||
        !gc_library_find(t, "cublasLtMatmul", &blas.lt_multiply) ||
        !gc_library_find(t, "cublasLtMatmulDescCreate", &blas.lt_desc) ||
        !gc_library_find(t, "cublasLtMatmulDescDestroy", &blas.lt_desc_free) ||
        !gc_library_find(t, "cublasLtMatrixLayoutCreate", &blas.lt_layout) ||
        !gc_library_find(t, "cublasLtMatrixLayoutDestroy", &blas.lt_layout_free) ||
        !gc_library_find(t, "cublasLtMatmulPreferenceCreate", &blas.lt_preference) ||
        !gc_library_find(t, "cublasLtMatmulPreferenceDestroy", &blas.lt_preference_free) ||
        !gc_library_find(t, "cublasLtMatmulPreferenceSetAttribute", &blas.lt_prefer) ||
        !gc_library_find(t, "cublasLtMatmulAlgoGetHeuristic", &blas.lt_heuristic))
        return false;
    return blas.create(&blas.handle[0]) == CUBLAS_STATUS_SUCCESS &&
           blas.create(&blas.handle[1]) == CUBLAS_STATUS_SUCCESS && blas.lt_create(&blas.lt) == CUBLAS_STATUS_SUCCESS;
}

/* Opens the libraries on the first call. Returns whether they can be used. */
static bool ensure_open(void) {
    if (!blas.open_tried) {
        blas.open_tried = true;
        blas.is_open = open_libraries();
    }
    return blas.is_open;
}

void gc_lab_blas_close(void) {
    for (int h = 0; h < 2; h++)
        if (blas.handle[h])
            blas.destroy(blas.handle[h]);
    if (blas.lt)
        blas.lt_destroy(blas.lt);
    if (blas.library)
        dlclose(blas.library);
    if (blas.lt_library)
        dlclose(blas.lt_library);
    memset(&blas, 0, sizeof blas);
}

static cudaDataType data_type(gc_lab_blas mode) {
    return mode == LAB_BLAS_F16 ? CUDA_R_16F : mode == LAB_BLAS_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static cublasComputeType_t compute_type(gc_lab_blas mode) {
    return mode == LAB_BLAS_PEDANTIC ? CUBLAS_COMPUTE_32F_PEDANTIC
           : mode == LAB_BLAS_TF32   ? CUBLAS_COMPUTE_32F_FAST_TF32
                                     : CUBLAS_COMPUTE_32F;
}

/* Returns a cudaError_t, or LAB_CANNOT if the device does not support the product. */
static int to_cuda_error(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS ? 0 : status == CUBLAS_STATUS_NOT_SUPPORTED ? LAB_CANNOT : cudaErrorUnknown;
}

int gc_lab_blas_multiply(const gc_lab_run *run, gc_lab_blas mode, const void *a, const void *b, float *c, int halves) {
    if (!ensure_open())
        return LAB_CANNOT;
    int64_t m = run->size[0], n = run->size[1], k = run->size[2], width = mode >= LAB_BLAS_F16 ? 2 : 4;
    const float one = 1, zero = 0;
    int parts = halves && m > 1 ? 2 : 1;
    for (int p = 0; p < parts; p++) {
        int64_t from = p * m / parts, rows = (p + 1) * m / parts - from;
        int err = to_cuda_error(blas.set_stream(blas.handle[p], run->stream[p]));
        if (!err)
            err = to_cuda_error(blas.gemm(blas.handle[p], CUBLAS_OP_N, CUBLAS_OP_N, (int)n, (int)rows, (int)k, &one, b,
                                          data_type(mode), (int)n, (const char *)a + from * k * width, data_type(mode),
                                          (int)k, &zero, c + from * n, CUDA_R_32F, (int)n, compute_type(mode),
                                          CUBLAS_GEMM_DEFAULT));
        if (err)
            return err;
    }
    return 0;
}

int gc_lab_blas_lt(const gc_lab_run *run, gc_lab_blas mode, const void *a, const void *b, float *c) {
    if (!ensure_open())
        return LAB_CANNOT;
    uint64_t m = (uint64_t)run->size[0], n = (uint64_t)run->size[1], k = (uint64_t)run->size[2];
    size_t workspace = (size_t)run->scratch_bytes;
    cublasLtMatmulDesc_t product = NULL;
    cublasLtMatrixLayout_t la = NULL, lb = NULL, lc = NULL;
    cublasLtMatmulPreference_t preference = NULL;
    const float one = 1, zero = 0;
    int err = to_cuda_error(blas.lt_desc(&product, compute_type(mode), CUDA_R_32F));
    if (!err)
        err = to_cuda_error(blas.lt_layout(&la, data_type(mode), k, m, (int64_t)k));
    if (!err)
        err = to_cuda_error(blas.lt_layout(&lb, data_type(mode), n, k, (int64_t)n));
    if (!err)
        err = to_cuda_error(blas.lt_layout(&lc, CUDA_R_32F, n, m, (int64_t)n));
    if (!err && (memcmp(blas.algo_size, run->size, sizeof blas.algo_size) != 0 || blas.algo_mode != (int)mode + 1)) {
        cublasLtMatmulHeuristicResult_t best;
        int found = 0;
        err = to_cuda_error(blas.lt_preference(&preference));
        if (!err)
            err = to_cuda_error(
                blas.lt_prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
        if (!err)
            err = to_cuda_error(blas.lt_heuristic(blas.lt, product, lb, la, lc, lc, preference, 1, &best, &found));
        if (!err && !found)
            err = LAB_CANNOT;
        if (!err) {
            blas.algo = best.algo;
            blas.algo_mode = (int)mode + 1;
            memcpy(blas.algo_size, run->size, sizeof blas.algo_size);
        }
    }
    if (!err)
        err = to_cuda_error(blas.lt_multiply(blas.lt, product, &one, b, lb, a, la, &zero, c, lc, c, lc, &blas.algo,
                                             run->scratch, workspace, run->stream[0]));
    if (preference)
        blas.lt_preference_free(preference);
    if (lc)
        blas.lt_layout_free(lc);
    if (lb)
        blas.lt_layout_free(lb);
    if (la)
        blas.lt_layout_free(la);
    if (product)
        blas.lt_desc_free(product);
    return err;
}

#else

/* NOLINTNEXTLINE(readability-non-const-parameter): the same signature as with cuBLAS */
int gc_lab_blas_multiply(const gc_lab_run *run, gc_lab_blas mode, const void *a, const void *b, float *c, int halves) {
    (void)run, (void)mode, (void)a, (void)b, (void)c, (void)halves;
    return LAB_CANNOT;
}

/* NOLINTNEXTLINE(readability-non-const-parameter) */
int gc_lab_blas_lt(const gc_lab_run *run, gc_lab_blas mode, const void *a, const void *b, float *c) {
    (void)run, (void)mode, (void)a, (void)b, (void)c;
    return LAB_CANNOT;
}

void gc_lab_blas_close(void) {}

#endif
