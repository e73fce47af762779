/* Shared code of the matrix products: the size of a product, the order of its tiles, and asynchronous copies into
 * shared memory (cp.async), which are waited for in groups. */
#ifndef GC_KERNELS_COURSE_MATMUL_CUH
#define GC_KERNELS_COURSE_MATMUL_CUH

#include "course.cuh"

namespace course {

struct product_size {
    int64_t m, n, k;
};

static inline product_size product_size_of(const gc_lab_run *run) {
    return {run->size[0], run->size[1], run->size[2]};
}

struct tile_origin {
    int64_t m, n;
};

/* Returns the first row and column of tile number `index`. Tiles that run at the same time should share rows of A and
 * columns of B in the L2 cache. So the tiles are numbered in bands of eight rows of tiles, and within a band column by
 * column. */
static __device__ __forceinline__ tile_origin tile_origin_of(unsigned index, product_size s, int tile_m, int tile_n) {
    const unsigned band = 8;
    unsigned rows = (unsigned)((s.m + tile_m - 1) / tile_m), columns = (unsigned)((s.n + tile_n - 1) / tile_n);
    unsigned first = index / (band * columns) * band, height = min(band, rows - first);
    unsigned inside = index % (band * columns);
    return {(int64_t)(first + inside % height) * tile_m, (int64_t)(inside / height) * tile_n};
}

static __device__ __forceinline__ unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

/* Starts a copy of BYTES (4, 8 or 16) from global to shared memory, or writes that many zeros unless `inside`. Before
 * compute capability 8.0 it copies synchronously. */
template <int BYTES> __device__ __forceinline__ void copy_async(void *dst, const void *src, bool inside) {
#if __CUDA_ARCH__ >= 800
    int source_bytes = inside ? BYTES : 0;
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(dst)), "l"(src),
                     "r"(source_bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(dst)), "l"(src), "n"(BYTES),
                     "r"(source_bytes)
                     : "memory");
#else
    for (int i = 0; i < BYTES / 4; i++)
        ((float *)dst)[i] = inside ? ((const float *)src)[i] : 0.0f;
#endif
}

/* Ends a group of asynchronous copies. */
static __device__ __forceinline__ void copy_group() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until at most the PENDING latest groups are still in flight. */
template <int PENDING> __device__ __forceinline__ void copy_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

/*
 * The part of a tile of ROWS x COLUMNS that one thread copies to shared memory: the same columns of every ROW_STEP-th
 * row. Rows of the tile are DST_STRIDE elements apart in shared memory. With ALIGNED, each row of the matrix begins at
 * a multiple of 16 bytes and is copied asynchronously in vectors of 16 bytes; otherwise 4-byte elements are copied
 * asynchronously and 2-byte elements synchronously, one by one. Elements outside the matrix become zero.
 */
template <typename T, bool ALIGNED, int ROWS, int COLUMNS, int DST_STRIDE, int THREADS> struct tile_loader {
    enum {
        VECTOR = ALIGNED ? 16 / sizeof(T) : 1,
        THREADS_PER_ROW = COLUMNS / VECTOR,
        ROW_STEP = THREADS / THREADS_PER_ROW
    };
    const T *src;
    int rows_remaining, columns_remaining; /* of the matrix, from this thread's row and column */
    int dst_offset;

    __device__ tile_loader(const T *matrix, int64_t rows, int64_t columns, int64_t row0, int64_t column0) {
        int row = threadIdx.x / THREADS_PER_ROW, column = threadIdx.x % THREADS_PER_ROW * VECTOR;
        src = matrix + (row0 + row) * columns + column0 + column;
        rows_remaining = (int)(rows - row0) - row;
        columns_remaining = (int)(columns - column0) - column;
        dst_offset = row * DST_STRIDE + column;
    }

    /* Copies to `tile`; `stride` is the number of columns of the matrix. */
    __device__ __forceinline__ void copy(T *tile, int64_t stride) {
#pragma unroll
        for (int j = 0; j < ROWS / ROW_STEP; j++) {
            bool inside = rows_remaining > j * ROW_STEP && columns_remaining > 0;
            const T *address = src + j * ROW_STEP * stride;
            T *dst = tile + dst_offset + j * ROW_STEP * DST_STRIDE;
            if (VECTOR * sizeof(T) >= 4)
                copy_async<(VECTOR * sizeof(T) >= 4 ? VECTOR * sizeof(T) : 4)>(dst, inside ? address : src, inside);
            else
                *dst = inside ? *address : T(0.0f);
        }
    }

    __device__ __forceinline__ void advance_columns(int columns) {
        src += columns;
        columns_remaining -= columns;
    }

    __device__ __forceinline__ void advance_rows(int rows, int64_t stride) {
        src += rows * stride;
        rows_remaining -= rows;
    }
};

} // namespace course

#endif
