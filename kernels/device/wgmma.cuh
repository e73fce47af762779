/*
 * Hopper's warpgroup matrix instructions (wgmma): four warps multiply a tile of 64 rows from shared memory (or from
 * their registers) by a tile from shared memory, asynchronously. For sm_90a only.
 *
 * A descriptor names a tile in shared memory. All tiles here have the 128-byte swizzle that the tensor memory
 * accelerator writes: panels of 64 two-byte numbers per row, eight rows in 1024 bytes, aligned to 1024 bytes. If K runs
 * along a row, the descriptor needs only the distance of groups of eight rows; if K runs down the rows, its second
 * number is the distance between panels of 64 columns.
 *
 * Accumulators: lane l of warp w holds in d[4 j + 0..3], for columns 8 j + 2 (l % 4) + 0 and 1, row 16 w + l / 4 (two
 * numbers) and row 16 w + l / 4 + 8 (two numbers).
 */
#ifndef GC_KERNELS_DEVICE_WGMMA_CUH
#define GC_KERNELS_DEVICE_WGMMA_CUH

#include <stdint.h>

namespace wgmma {

/* Returns the descriptor of a tile of ROWS x 64 with K along the rows. */
static __device__ __forceinline__ uint64_t along(unsigned address) {
    return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

/* Returns the descriptor of tiles of K x 64 with K down the rows; panel_bytes: from one panel of 64 columns to the
 * next.
 */
static __device__ __forceinline__ uint64_t down(unsigned address, unsigned panel_bytes) {
    return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(panel_bytes >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

/* Orders earlier register writes before the following matrix instructions, which use those registers. */
static __device__ __forceinline__ void fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Blocks until at most LEFT of the committed groups are still in flight. */
template <int LEFT> __device__ __forceinline__ void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

/* Tells the compiler that the sums may have changed: earlier asynchronous instructions write them. */
template <int N> __device__ __forceinline__ void touch(float (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}

#define SUMS_8(d, i)                                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]),        \
        "+f"(d[i + 7])
#define SUMS_64(d, i)                                                                                                  \
    SUMS_8(d, i), SUMS_8(d, i + 8), SUMS_8(d, i + 16), SUMS_8(d, i + 24), SUMS_8(d, i + 32), SUMS_8(d, i + 40),        \
        SUMS_8(d, i + 48), SUMS_8(d, i + 56)

/* Multiplies 64 x 16 by 16 x 256; the K of b runs down its rows. add: 0 overwrites the sums, otherwise adds to them. */
static __device__ __forceinline__ void multiply_256_down(float (&d)[128], uint64_t a, uint64_t b, int add) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
        "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, "
        "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
        "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, "
        "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, "
        "%102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, "
        "%119, %120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, p, 1, 1, 0, 1;\n}\n"
        : SUMS_64(d, 0), SUMS_64(d, 64)
        : "l"(a), "l"(b), "r"(add));
}

/* Multiplies 64 x 16 by 16 x 128; K runs along the rows of both. add: as above. */
static __device__ __forceinline__ void multiply_128_along(float (&d)[64], uint64_t a, uint64_t b, int add) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
                 "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, "
                 "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
                 "%62, %63}, "
                 "%64, %65, p, 1, 1, 0, 0;\n}\n"
                 : SUMS_64(d, 0)
                 : "l"(a), "l"(b), "r"(add));
}

/* Multiplies 64 x 16 by 16 x 128 and adds to the sums; a is in registers, two numbers each in the layout of the sums;
 * the K of b runs down its rows. */
static __device__ __forceinline__ void multiply_128_registers(float (&d)[64], const unsigned (&a)[4], uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
                 "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, "
                 "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
                 "%62, %63}, "
                 "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;\n"
                 : SUMS_64(d, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#undef SUMS_64
#undef SUMS_8

} // namespace wgmma

#endif
