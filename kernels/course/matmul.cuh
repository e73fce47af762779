/* What the matrix products share: their size, the order in which tiles are made, and asynchronous copies into shared
 * memory, which are counted in groups. */
#ifndef GC_KERNELS_COURSE_MATMUL_CUH
#define GC_KERNELS_COURSE_MATMUL_CUH

#include "course.cuh"

namespace course {

struct product_size {
    int64_t m, n, k;
};

static inline product_size size_of(const gc_lab_run *run) {
    return {run->size[0], run->size[1], run->size[2]};
}

struct tile_place {
    int64_t m, n;
};

/* Tiles that are made at the same time should share rows of A and columns of B in the L2 cache: they go in bands of
 * eight rows of tiles, down each band's columns. */
static __device__ __forceinline__ tile_place tile_of(unsigned index, product_size s, int tile_m, int tile_n) {
    const unsigned band = 8;
    unsigned rows = (unsigned)((s.m + tile_m - 1) / tile_m), columns = (unsigned)((s.n + tile_n - 1) / tile_n);
    unsigned first = index / (band * columns) * band, height = min(band, rows - first);
    unsigned inside = index % (band * columns);
    return {(int64_t)(first + inside % height) * tile_m, (int64_t)(inside / height) * tile_n};
}

static __device__ __forceinline__ unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

/* BYTES (4, 8 or 16) from global to shared memory, or that many zeros. */
template <int BYTES> __device__ __forceinline__ void copy_async(void *to, const void *from, bool inside) {
#if __CUDA_ARCH__ >= 800
    int given = inside ? BYTES : 0;
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(given)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from), "n"(BYTES),
                     "r"(given)
                     : "memory");
#else
    for (int i = 0; i < BYTES / 4; i++)
        ((float *)to)[i] = inside ? ((const float *)from)[i] : 0.0f;
#endif
}

static __device__ __forceinline__ void copy_group() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Until at most LEFT of the latest groups are still under way. */
template <int LEFT> __device__ __forceinline__ void copy_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

/*
 * What one thread copies of a tile of ROWS x COLUMNS: the same columns of every STEP-th row. In shared memory rows are
 * TO_ROW elements apart. QUADS: rows begin on 16 bytes and are copied asynchronously in 16-byte pieces; otherwise in
 * pieces of four bytes, and two-byte elements one by one. What lies outside the matrix becomes zero.
 */
template <typename T, bool QUADS, int ROWS, int COLUMNS, int TO_ROW, int THREADS> struct tile_fetcher {
    enum { WIDTH = QUADS ? 16 / sizeof(T) : 1, ACROSS = COLUMNS / WIDTH, STEP = THREADS / ACROSS };
    const T *from;
    int rows_left, columns_left, to; /* of the matrix, from this thread's row and column */

    __device__ tile_fetcher(const T *matrix, int64_t rows, int64_t columns, int64_t row0, int64_t column0) {
        int row = threadIdx.x / ACROSS, column = threadIdx.x % ACROSS * WIDTH;
        from = matrix + (row0 + row) * columns + column0 + column;
        rows_left = (int)(rows - row0) - row;
        columns_left = (int)(columns - column0) - column;
        to = row * TO_ROW + column;
    }

    __device__ __forceinline__ void copy(T *tile, int64_t stride) {
#pragma unroll
        for (int j = 0; j < ROWS / STEP; j++) {
            bool inside = rows_left > j * STEP && columns_left > 0;
            const T *at = from + j * STEP * stride;
            T *place = tile + to + j * STEP * TO_ROW;
            if (WIDTH * sizeof(T) >= 4)
                copy_async<(WIDTH * sizeof(T) >= 4 ? WIDTH * sizeof(T) : 4)>(place, inside ? at : from, inside);
            else
                *place = inside ? *at : T(0.0f);
        }
    }

    __device__ __forceinline__ void right(int columns) {
        from += columns;
        columns_left -= columns;
    }

    __device__ __forceinline__ void down(int rows, int64_t stride) {
        from += rows * stride;
        rows_left -= rows;
    }
};

} // namespace course

#endif
