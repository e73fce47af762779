/*
 * Hopper's matrix instructions: a warpgroup, four warps, multiplies a tile of 64 rows out of shared memory (or of its
 * own registers) with one from shared memory, asynchronously. For sm_90a only.
 *
 * A tile in shared memory is named by a descriptor. All tiles here are swizzled over 128 bytes, as the tensor memory
 * accelerator writes them: pieces of 64 two-byte numbers side by side, eight rows of them in 1024 bytes, which begin on
 * a multiple of 1024. With K running along a row, only the distance of groups of eight rows counts; with K running down
 * the rows, the second number is the distance from one piece of 64 columns to the next.
 *
 * The sums: lane l of warp w holds in d[4 j + 0..3] of columns 8 j + 2 (l % 4) + 0, 1 the rows 16 w + l / 4 (two
 * numbers) and 8 more (two numbers).
 */
#ifndef GC_KERNELS_DEVICE_WGMMA_CUH
#define GC_KERNELS_DEVICE_WGMMA_CUH

#include <stdint.h>

namespace wgmma {

/* K along the rows: a tile of ROWS x 64. */
static __device__ __forceinline__ uint64_t along(unsigned address) {
    return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

/* K down the rows: tiles of K x 64, `apart` bytes from one 64 columns to the next. */
static __device__ __forceinline__ uint64_t down(unsigned address, unsigned apart) {
    return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(apart >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

/* Before the first instruction that uses registers that others wrote. */
static __device__ __forceinline__ void fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Until at most LEFT of the latest groups are still under way. */
template <int LEFT> __device__ __forceinline__ void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

/* The compiler must take the sums as changed from here on: the instructions before write them behind its back. */
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

/* 64 x 256 sums, 16 of K; B's K runs down its rows. `add`: 0 begins new sums. */
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

/* 64 x 128 sums, 16 of K, which runs along the rows of both. */
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

/* 64 x 128 sums, 16 of K: A from registers - two numbers each, laid out like the sums - B's K down its rows. */
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
