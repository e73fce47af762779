/* Detects which of the compiled instruction sets this processor supports. */
#include "simd.h"

#include <pthread.h>

extern const gc_simd gc_simd_base;
#if defined(__x86_64__)
extern const gc_simd gc_simd_avx2, gc_simd_avx512;
#endif

static const gc_simd *supported[3];
static int supported_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void detect(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("fma"))
        supported[supported_count++] = &gc_simd_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        supported[supported_count++] = &gc_simd_avx2;
#endif
    supported[supported_count++] = &gc_simd_base;
}

const gc_simd *gc_simd_best(void) {
    pthread_once(&once, detect);
    return supported[0];
}

const gc_simd *const *gc_simd_all(int *count) {
    pthread_once(&once, detect);
    *count = supported_count;
    return supported;
}
