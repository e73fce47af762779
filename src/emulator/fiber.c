/* Switches stacks: makecontext enters a new one, _setjmp and _longjmp change between them, because swapcontext makes a
 * system call for each change. */
#undef _FORTIFY_SOURCE /* its longjmp ends a program that jumps to another stack */
#include "fiber.h"

#include "libgpuconv/core/memory.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_BYTES = 256 << 10, GUARD_BYTES = 16 << 10 };

struct gc_fiber {
    char *stack; /* from the guard on */
    void (*run)(gc_fiber *self);
    jmp_buf inside, outside;
    bool started;
    ucontext_t context;
};

static _Thread_local gc_fiber *starting; /* makecontext passes only int */

static void begin(void) {
    starting->run(starting);
}

gc_fiber *gc_fiber_new(void (*run)(gc_fiber *self)) {
    gc_fiber *fiber = gc_calloc(1, sizeof *fiber);
    if (!fiber)
        return NULL;
    fiber->run = run;
    fiber->stack = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fiber->stack == MAP_FAILED) {
        free(fiber);
        return NULL;
    }
    if (mprotect(fiber->stack, GUARD_BYTES, PROT_NONE) != 0 || getcontext(&fiber->context) != 0) {
        gc_fiber_free(fiber);
        return NULL;
    }
    fiber->context.uc_stack.ss_sp = fiber->stack + GUARD_BYTES;
    fiber->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&fiber->context, begin, 0);
    return fiber;
}

void gc_fiber_free(gc_fiber *fiber) {
    if (!fiber)
        return;
    (void)munmap(fiber->stack, GUARD_BYTES + STACK_BYTES);
    free(fiber);
}

void gc_fiber_enter(gc_fiber *fiber) {
    if (_setjmp(fiber->outside) != 0)
        return;
    if (fiber->started)
        _longjmp(fiber->inside, 1);
    fiber->started = true;
    starting = fiber;
    (void)setcontext(&fiber->context);
    abort(); /* setcontext returns only if the context is invalid */
}

void gc_fiber_leave(gc_fiber *fiber) {
    if (_setjmp(fiber->inside) == 0)
        _longjmp(fiber->outside, 1);
}

bool gc_fiber_has(const gc_fiber *fiber, const void *address) {
    return (uintptr_t)address - (uintptr_t)fiber->stack < GUARD_BYTES + STACK_BYTES;
}
