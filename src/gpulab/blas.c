/*
 * cuBLAS and cuBLASLt for the modules that hold themselves against them, opened at run time: the libraries weigh
 * hundreds of megabytes, and gpulab must start where they are not.
 *
 * cuBLAS stores matrices column by column; c = a b row by row is c' = b' a' in its eyes, so a and b change places and
 * nothing is transposed.
 */
#include "blas.h"

#ifdef LAB_WITH_CUBLAS

#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

static struct {
    bool tried, usable;
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
    /* The last answer of the heuristic, which costs far more than a launch. */
    cublasLtMatmulAlgo_t algo;
    int64_t algo_size[3];
    int algo_mode;
} blas;

static void *open_one(const char *const *names) {
    void *library = NULL;
    for (; *names && !library; names++)
        library = dlopen(*names, RTLD_NOW | RTLD_GLOBAL);
    return library;
}

static bool find(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool open_all(void) {
    static const char *const lt_names[] = {"libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13",
                                           "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.12", NULL};
    static const char *const names[] = {"libcublas.so.13", "/usr/local/cuda/lib64/libcublas.so.13", "libcublas.so.12",
                                        "/usr/local/cuda/lib64/libcublas.so.12", NULL};
    blas.lt_library = open_one(lt_names); /* first: cuBLAS wants it by its bare name */
    blas.library = open_one(names);
    if (!blas.library || !blas.lt_library)
        return false;
    void *l = blas.library, *t = blas.lt_library;
    if (!find(l, "cublasCreate_v2", &blas.create) || !find(l, "cublasDestroy_v2", &blas.destroy) ||
        !find(l, "cublasSetStream_v2", &blas.set_stream) || !find(l, "cublasGemmEx", &blas.gemm) ||
        !find(t, "cublasLtCreate", &blas.lt_create) || !find(t, "cublasLtDestroy", &blas.lt_destroy) ||
        !find(t, "cublasLtMatmul", &blas.lt_multiply) || !find(t, "cublasLtMatmulDescCreate", &blas.lt_desc) ||
        !find(t, "cublasLtMatmulDescDestroy", &blas.lt_desc_free) ||
        !find(t, "cublasLtMatrixLayoutCreate", &blas.lt_layout) ||
        !find(t, "cublasLtMatrixLayoutDestroy", &blas.lt_layout_free) ||
        !find(t, "cublasLtMatmulPreferenceCreate", &blas.lt_preference) ||
        !find(t, "cublasLtMatmulPreferenceDestroy", &blas.lt_preference_free) ||
        !find(t, "cublasLtMatmulPreferenceSetAttribute", &blas.lt_prefer) ||
        !find(t, "cublasLtMatmulAlgoGetHeuristic", &blas.lt_heuristic))
        return false;
    return blas.create(&blas.handle[0]) == CUBLAS_STATUS_SUCCESS &&
           blas.create(&blas.handle[1]) == CUBLAS_STATUS_SUCCESS && blas.lt_create(&blas.lt) == CUBLAS_STATUS_SUCCESS;
}

static bool usable(void) {
    if (!blas.tried) {
        blas.tried = true;
        blas.usable = open_all();
    }
    return blas.usable;
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

static cudaDataType element(gc_lab_blas mode) {
    return mode == LAB_BLAS_F16 ? CUDA_R_16F : mode == LAB_BLAS_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static cublasComputeType_t arithmetic(gc_lab_blas mode) {
    return mode == LAB_BLAS_PEDANTIC ? CUBLAS_COMPUTE_32F_PEDANTIC
           : mode == LAB_BLAS_TF32   ? CUBLAS_COMPUTE_32F_FAST_TF32
                                     : CUBLAS_COMPUTE_32F;
}

static int result(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS ? 0 : status == CUBLAS_STATUS_NOT_SUPPORTED ? LAB_CANNOT : cudaErrorUnknown;
}

int gc_lab_blas_multiply(const gc_lab_run *run, gc_lab_blas mode, const void *a, const void *b, float *c, int halves) {
    if (!usable())
        return LAB_CANNOT;
    int64_t m = run->size[0], n = run->size[1], k = run->size[2], width = mode >= LAB_BLAS_F16 ? 2 : 4;
    const float one = 1, zero = 0;
    int parts = halves && m > 1 ? 2 : 1;
    for (int p = 0; p < parts; p++) {
        int64_t from = p * m / parts, rows = (p + 1) * m / parts - from;
        int failed = result(blas.set_stream(blas.handle[p], run->stream[p]));
        if (!failed)
            failed = result(blas.gemm(blas.handle[p], CUBLAS_OP_N, CUBLAS_OP_N, (int)n, (int)rows, (int)k, &one, b,
                                      element(mode), (int)n, (const char *)a + from * k * width, element(mode), (int)k,
                                      &zero, c + from * n, CUDA_R_32F, (int)n, arithmetic(mode), CUBLAS_GEMM_DEFAULT));
        if (failed)
            return failed;
    }
    return 0;
}

int gc_lab_blas_lt(const gc_lab_run *run, gc_lab_blas mode, const void *a, const void *b, float *c) {
    if (!usable())
        return LAB_CANNOT;
    uint64_t m = (uint64_t)run->size[0], n = (uint64_t)run->size[1], k = (uint64_t)run->size[2];
    size_t workspace = (size_t)run->scratch_bytes;
    cublasLtMatmulDesc_t what = NULL;
    cublasLtMatrixLayout_t la = NULL, lb = NULL, lc = NULL;
    cublasLtMatmulPreference_t wish = NULL;
    const float one = 1, zero = 0;
    int failed = result(blas.lt_desc(&what, arithmetic(mode), CUDA_R_32F));
    if (!failed)
        failed = result(blas.lt_layout(&la, element(mode), k, m, (int64_t)k));
    if (!failed)
        failed = result(blas.lt_layout(&lb, element(mode), n, k, (int64_t)n));
    if (!failed)
        failed = result(blas.lt_layout(&lc, CUDA_R_32F, n, m, (int64_t)n));
    if (!failed && (memcmp(blas.algo_size, run->size, sizeof blas.algo_size) != 0 || blas.algo_mode != (int)mode + 1)) {
        cublasLtMatmulHeuristicResult_t best;
        int found = 0;
        failed = result(blas.lt_preference(&wish));
        if (!failed)
            failed =
                result(blas.lt_prefer(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
        if (!failed)
            failed = result(blas.lt_heuristic(blas.lt, what, lb, la, lc, lc, wish, 1, &best, &found));
        if (!failed && !found)
            failed = LAB_CANNOT;
        if (!failed) {
            blas.algo = best.algo;
            blas.algo_mode = (int)mode + 1;
            memcpy(blas.algo_size, run->size, sizeof blas.algo_size);
        }
    }
    if (!failed)
        failed = result(blas.lt_multiply(blas.lt, what, &one, b, lb, a, la, &zero, c, lc, c, lc, &blas.algo,
                                         run->scratch, workspace, run->stream[0]));
    if (wish)
        blas.lt_preference_free(wish);
    if (lc)
        blas.lt_layout_free(lc);
    if (lb)
        blas.lt_layout_free(lb);
    if (la)
        blas.lt_layout_free(la);
    if (what)
        blas.lt_desc_free(what);
    return failed;
}

#else

/* NOLINTNEXTLINE(readability-non-const-parameter): as in a build with cuBLAS */
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
