/*
 * Runs the threads of a launch, block after block and warp after warp, as fibers: threads of a kernel on one thread of
 * the CPU, each with its own stack. makecontext enters a new stack, _setjmp and _longjmp change between them, because
 * swapcontext makes a system call for each change.
 */
#undef _FORTIFY_SOURCE /* its longjmp ends a program that jumps to another stack */
#include "counts.h"
#include "libgpuconv/core/memory.h"
#include "state.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

/* ---- Fibers ------------------------------------------------------------------------------------------------------ */

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

/* Creates a fiber whose first enter_fiber calls `run`, which never returns. NULL without memory. */
static gc_fiber *new_fiber(void (*run)(gc_fiber *self)) {
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
        (void)munmap(fiber->stack, GUARD_BYTES + STACK_BYTES);
        free(fiber);
        return NULL;
    }
    fiber->context.uc_stack.ss_sp = fiber->stack + GUARD_BYTES;
    fiber->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&fiber->context, begin, 0);
    return fiber;
}

/* Continues the fiber until it calls leave_fiber. */
static void enter_fiber(gc_fiber *fiber) {
    if (_setjmp(fiber->outside) != 0)
        return;
    if (fiber->started)
        _longjmp(fiber->inside, 1);
    fiber->started = true;
    starting = fiber;
    (void)setcontext(&fiber->context);
    abort(); /* setcontext returns only if the context is invalid */
}

/* Called on the fiber: returns from enter_fiber. */
static void leave_fiber(gc_fiber *fiber) {
    if (_setjmp(fiber->inside) == 0)
        _longjmp(fiber->outside, 1);
}

bool gc_fiber_has(const gc_fiber *fiber, const void *address) {
    return (uintptr_t)address - (uintptr_t)fiber->stack < GUARD_BYTES + STACK_BYTES;
}

/* ---- Threads and warps ------------------------------------------------------------------------------------------- */

enum { STATIC_SHARED = 48 << 10 };

/* Returns the next lane of the warp, if it has not started; the fiber that ended a lane then runs it too. */
static gc_thread *next_lane(const gc_thread *t) {
    int next = t->number + 1;
    return next < gc_emulated.thread_count && next % WARP != 0 && gc_emulated.threads[next].state == READY &&
                   !gc_emulated.threads[next].fiber
               ? &gc_emulated.threads[next]
               : NULL;
}

static void run_fiber(gc_fiber *self) {
    for (;;) {
        gc_thread *t = gc_emulated.running;
        gc_emulated.launch->body(gc_emulated.launch->argument);
        t->state = DONE;
        t->fiber = NULL;
        gc_thread *next = next_lane(t);
        if (!next) {
            gc_emulated.idle[gc_emulated.idle_count++] = self;
            leave_fiber(self);
            continue;
        }
        next->fiber = self;
        gc_emulated.by.thread = (uint16_t)next->number;
        gc_emulated.by.epoch = next->epoch;
        gc_emulated.running = next;
    }
}

static void resume(gc_thread *t) {
    if (!t->fiber)
        t->fiber = gc_emulated.idle_count > 0 ? gc_emulated.idle[--gc_emulated.idle_count] : new_fiber(run_fiber);
    if (!t->fiber)
        gc_stop(NULL, gc_emulated.launch->line, "", "the emulator is out of memory.");
    gc_emulated.by.thread = (uint16_t)t->number;
    gc_emulated.by.epoch = t->epoch;
    gc_emulated.running = t;
    enter_fiber(t->fiber);
    gc_emulated.running = NULL;
}

int gc_on_barrier(int line, int predicate, int *threads) {
    gc_thread *t = gc_emulated.running;
    if (!t)
        gc_stop(NULL, line, "", "__syncthreads() is used outside a kernel.");
    t->state = AT_BARRIER;
    t->line = line;
    t->predicate = predicate;
    leave_fiber(t->fiber);
    if (threads)
        *threads = gc_emulated.thread_count;
    return gc_emulated.counted;
}

const unsigned long long *gc_on_exchange(int line, unsigned mask, unsigned long long value) {
    gc_thread *t = gc_emulated.running;
    if (!t)
        gc_stop(NULL, line, "", "a function of a warp is used outside a kernel.");
    if (!(mask >> t->number % WARP & 1))
        gc_stop(NULL, line, "The mask names the lanes that take part; 0xffffffff names all of them.",
                "takes part in an exchange whose mask, 0x%x, does not name its lane, %d.", mask, t->number % WARP);
    t->state = AT_EXCHANGE;
    t->line = line;
    t->mask = mask;
    t->value = value;
    leave_fiber(t->fiber);
    return t->values;
}

unsigned gc_on_active(void) {
    return 0xffffffffu;
}

void gc_on_fence(void) {
    gc_emulated.by.fenced = true;
}

unsigned long long gc_on_clock(void) {
    return gc_emulated.clock;
}

/* Stops at a thread that waits. */
static _Noreturn void stop_waiting(gc_thread *t, const char *what, const gc_thread *other) {
    char index[40];
    gc_name_index(other->index, index, sizeof index);
    gc_emulated.running = t;
    if (other->state == DONE)
        gc_stop(NULL, t->line, "All threads of the block must reach it: no return before it, no branch around it.",
                "waits at %s, which thread %s does not reach: it has ended.", what, index);
    gc_stop(NULL, t->line,
            "All threads must reach the same one: it must not stand in a branch that only some of them take.",
            "waits at %s, but thread %s waits in line %d.", what, index, other->line);
}

/* Lets the lanes of an exchange go on if all of its mask have come. Returns whether they have. */
static bool finish_exchange(gc_thread *lanes, int count, unsigned mask) {
    unsigned long long values[WARP];
    memset(values, 0xff, sizeof values);
    for (int l = 0; l < count; l++) {
        if (!(mask >> l & 1) || lanes[l].state == DONE)
            continue;
        if (lanes[l].state != AT_EXCHANGE || lanes[l].mask != mask)
            return false;
        values[l] = lanes[l].value;
    }
    for (int l = 0; l < count; l++)
        if (mask >> l & 1 && lanes[l].state == AT_EXCHANGE) {
            memcpy(lanes[l].values, values, sizeof values);
            lanes[l].state = READY;
            lanes[l].epoch++;
        }
    return true;
}

/* Runs the lanes of a warp until all have ended or wait at a barrier. */
static void run_warp(gc_thread *lanes, int count) {
    for (bool goes_on = true; goes_on;) {
        goes_on = false;
        for (int l = 0; l < count; l++)
            if (lanes[l].state == READY)
                resume(&lanes[l]);
        for (int l = 0; l < count; l++)
            if (lanes[l].state == AT_EXCHANGE && finish_exchange(lanes, count, lanes[l].mask))
                goes_on = true;
    }
    for (int l = 0; l < count; l++) {
        if (lanes[l].state != AT_EXCHANGE)
            continue;
        for (int o = 0; o < count; o++)
            if (lanes[l].mask >> o & 1 && (lanes[o].state != AT_EXCHANGE || lanes[o].mask != lanes[l].mask))
                if (lanes[o].state != DONE)
                    stop_waiting(&lanes[l], "a shuffle or __syncwarp()", &lanes[o]);
    }
    gc_counts_flush();
}

/* Lets the threads of a block go on from a barrier. Returns false if all have ended. */
static bool finish_barrier(void) {
    if (gc_emulated.pending.is_set) {
        gc_emulated.failure = gc_emulated.pending;
        _longjmp(gc_emulated.outside, 1);
    }
    gc_thread *waiting = NULL, *other = NULL;
    for (int i = 0; i < gc_emulated.thread_count && !waiting; i++)
        if (gc_emulated.threads[i].state == AT_BARRIER)
            waiting = &gc_emulated.threads[i];
    if (!waiting)
        return false;
    gc_emulated.counted = 0;
    for (int i = 0; i < gc_emulated.thread_count && !other; i++) {
        if (gc_emulated.threads[i].state != AT_BARRIER || gc_emulated.threads[i].line != waiting->line)
            other = &gc_emulated.threads[i];
        gc_emulated.counted += gc_emulated.threads[i].predicate != 0;
    }
    if (other)
        stop_waiting(waiting, "__syncthreads()", other);
    for (int i = 0; i < gc_emulated.thread_count; i++)
        gc_emulated.threads[i].state = READY;
    gc_emulated.by.now = ++gc_emulated.moment;
    gc_emulated.barrier = waiting->line;
    return true;
}

static void clear_shared(gc_region *region) {
    memset((void *)region->begin, 0xff, region->bytes);
    gc_memory_forget(region);
}

static void run_block(void) {
    const gc_emulator_index n = gc_emulated.launch->block;
    gc_emulated.by.now = gc_emulated.by.block_began = ++gc_emulated.moment;
    gc_emulated.barrier = 0;
    gc_memory_each_shared(clear_shared);
    for (int i = 0; i < gc_emulated.thread_count; i++)
        gc_emulated.threads[i] =
            (gc_thread){.number = i, .index = {(unsigned)i % n.x, (unsigned)i / n.x % n.y, (unsigned)i / n.x / n.y}};
    do {
        for (int i = 0; i < gc_emulated.thread_count; i += WARP)
            run_warp(&gc_emulated.threads[i],
                     gc_emulated.thread_count - i < WARP ? gc_emulated.thread_count - i : WARP);
    } while (finish_barrier());
}

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

static void check_launch(const gc_emulator_launch *l) {
    uint64_t threads = (uint64_t)l->block.x * l->block.y * l->block.z;
    if (threads < 1 || threads > MAX_THREADS || l->block.x > 1024 || l->block.y > 1024 || l->block.z > 64)
        gc_stop(NULL, l->line, "Choose a smaller block, and more of them.",
                "the launch fails: a block has 1 to 1024 threads, and this one %llu (%u x %u x %u).",
                (unsigned long long)threads, l->block.x, l->block.y, l->block.z);
    if (l->grid.x < 1 || l->grid.y < 1 || l->grid.z < 1 || l->grid.x > INT32_MAX || l->grid.y > 65535 ||
        l->grid.z > 65535)
        gc_stop(NULL, l->line, "The number of blocks is rounded up: (n + 255) / 256.",
                "the launch fails: a grid of %u x %u x %u blocks is not possible.", l->grid.x, l->grid.y, l->grid.z);
    if (gc_emulated.static_shared > STATIC_SHARED || l->shared_bytes > GC_EMULATOR_DYNAMIC_BYTES)
        gc_stop(NULL, l->line, "Make the tile smaller.",
                "the launch fails: too much shared memory, %llu bytes for each block; 49152 can be declared.",
                (unsigned long long)(gc_emulated.static_shared > STATIC_SHARED ? gc_emulated.static_shared
                                                                               : l->shared_bytes));
}

void gc_on_launch(const gc_emulator_launch *l) {
    if (gc_emulated.running)
        gc_stop(NULL, l->line, "", "a kernel launches a kernel, which the emulator cannot do.");
    check_launch(l);
    gc_emulated.launch = l;
    gc_emulated.thread_count = (int)(l->block.x * l->block.y * l->block.z);
    gc_emulated.launched += (int64_t)l->grid.x * l->grid.y * l->grid.z * gc_emulated.thread_count;
    gc_region *dynamic = gc_memory_find(gc_emulated.dynamic);
    if (dynamic) {
        free(dynamic->cells);
        dynamic->cells = NULL;
        dynamic->is_narrow = false;
        dynamic->bytes = l->shared_bytes ? l->shared_bytes : 1; /* so that it is found again */
    }
    gc_emulated.by = (gc_accessor){.launch_began = gc_emulated.moment + 1};
    for (gc_emulated.block.z = 0; gc_emulated.block.z < l->grid.z; gc_emulated.block.z++)
        for (gc_emulated.block.y = 0; gc_emulated.block.y < l->grid.y; gc_emulated.block.y++)
            for (gc_emulated.block.x = 0; gc_emulated.block.x < l->grid.x; gc_emulated.block.x++)
                run_block();
    gc_emulated.launch = NULL;
}
