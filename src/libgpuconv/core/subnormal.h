/* Subnormal numbers cost a hundred cycles each in the decay of a reverberation and lie far below anything audible. */
#ifndef GC_CORE_SUBNORMAL_H
#define GC_CORE_SUBNORMAL_H

#include <stdint.h>

/* From now on this thread treats subnormal operands and results as zero. For threads of our own. */
static inline void gc_flush_subnormals(void) {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | UINT64_C(1) << 24));
#endif
}

/* For a caller's thread: switches them off and gives what gc_restore_subnormals puts back. */
static inline uint64_t gc_hold_subnormals(void) {
    uint64_t before = 0;
#if defined(__x86_64__)
    before = __builtin_ia32_stmxcsr();
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
#endif
    gc_flush_subnormals();
    return before;
}

static inline void gc_restore_subnormals(uint64_t before) {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr((unsigned)before);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
#else
    (void)before;
#endif
}

#endif
