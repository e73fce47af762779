/* Switching off subnormal numbers: each operation on them costs about a hundred cycles, they occur in the decay of a
 * reverberation, and they are far below audibility. */
#ifndef GC_CORE_SUBNORMAL_H
#define GC_CORE_SUBNORMAL_H

#include <stdint.h>

/* Makes the calling thread treat subnormal operands and results as zero (FTZ and DAZ). For the library's own threads.
 */
static inline void gc_flush_subnormals(void) {
#if defined(__SSE__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | UINT64_C(1) << 24));
#endif
}

/* Flushes subnormal numbers on a thread of the caller. @return the previous mode, for gc_restore_subnormals */
static inline uint64_t gc_save_and_flush_subnormals(void) {
    uint64_t before = 0;
#if defined(__SSE__)
    before = __builtin_ia32_stmxcsr();
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
#endif
    gc_flush_subnormals();
    return before;
}

static inline void gc_restore_subnormals(uint64_t before) {
#if defined(__SSE__)
    __builtin_ia32_ldmxcsr((unsigned)before);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
#else
    (void)before;
#endif
}

#endif
