/*
 * The run of a kernel: the library, the checks of each access to memory, of each step and each call of a thread, the
 * functions of CUDA that solve calls, the threads of a launch, and how an error ends the run.
 *
 * The threads run block after block and warp after warp as fibers: threads of a kernel on one thread of the CPU, each
 * with its own stack. makecontext enters a new stack, _setjmp and _longjmp change between them, because swapcontext
 * makes a system call for each change. An error is noted, the first one only, and ends the run with a jump back to
 * gc_emulator_run.
 */
#undef _FORTIFY_SOURCE /* its longjmp ends a program that jumps to another stack */
#include "emulator.h"

#include "counts.h"
#include "interface.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "memory.h"
#include "report.h"

#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { WARP = 32, MAX_THREADS = 1024 };

typedef struct gc_fiber gc_fiber;

typedef enum gc_thread_state { READY, AT_BARRIER, AT_EXCHANGE, DONE } gc_thread_state;

typedef struct gc_thread {
    gc_emulator_index index;
    int number; /* within the block */
    gc_thread_state state;
    gc_fiber *fiber; /* NULL: has not started, or has ended */
    int line;        /* of the barrier or exchange */
    int predicate;
    unsigned mask;
    unsigned long long value, values[WARP]; /* given to the warp, and received */
    uint64_t steps;
    uint8_t epoch;
} gc_thread;

typedef void gc_attach(const gc_emulator_table *table, void **anchor, void **dynamic);

/* The one emulator of the process. */
static struct {
    /* of the library */
    char library[4200];
    gc_attach *attach;
    gc_symbol *symbols;
    int symbol_count;
    uintptr_t base, shared_base, dynamic, image_begin, image_end;
    uint64_t static_shared;
    /* of a run */
    jmp_buf outside;
    gc_failure failure;
    gc_failure pending; /* a read that what follows before the barrier may explain */
    uintptr_t pending_address;
    const gc_thread *pending_thread;
    int last_error;
    uint32_t moment;
    int64_t launched; /* threads */
    /* of a launch */
    const gc_emulator_launch *launch;
    gc_emulator_index block;
    gc_accessor by;
    gc_thread threads[MAX_THREADS];
    int thread_count;
    gc_thread *running; /* NULL: the host */
    gc_fiber *idle[MAX_THREADS];
    int idle_count;
    int counted; /* threads for which the predicate of the barrier was true */
    int barrier; /* the line of the last barrier of the block; 0: none */
    uint64_t clock;
} emulated;

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

/* Write names into `text` and return it: an index with as many numbers as the blocks and the grid have dimensions, a
 * thread of the block, and the element of a region at an offset, for an access of `bytes` bytes. */
static const char *name_index(gc_emulator_index i, char *text, size_t room) {
    const gc_emulator_index block = emulated.launch->block, grid = emulated.launch->grid;
    if (block.z > 1 || grid.z > 1)
        (void)snprintf(text, room, "(%u, %u, %u)", i.x, i.y, i.z);
    else if (block.y > 1 || grid.y > 1)
        (void)snprintf(text, room, "(%u, %u)", i.x, i.y);
    else
        (void)snprintf(text, room, "%u", i.x);
    return text;
}

/* Writes the name of the thread that runs. */
static void name_running(gc_failure *failure) {
    char index[2][40];
    failure->is_set = true;
    if (emulated.running)
        (void)snprintf(failure->thread, sizeof failure->thread, "thread %s of block %s",
                       name_index(emulated.running->index, index[0], sizeof index[0]),
                       name_index(emulated.block, index[1], sizeof index[1]));
}

/* Ends the run. `place` is an address of the program; if it is NULL, `line` is the place. */
static _Noreturn void stop(const void *place, int line, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static _Noreturn void stop(const void *place, int line, const char *hint, const char *format, ...) {
    va_list values;
    va_start(values, format);
    (void)gc_vformat(emulated.failure.text, sizeof emulated.failure.text, format, values);
    va_end(values);
    (void)snprintf(emulated.failure.hint, sizeof emulated.failure.hint, "%s", hint);
    emulated.failure.place = place;
    emulated.failure.line = line;
    name_running(&emulated.failure);
    if (emulated.pending.is_set && !emulated.failure.other_place) /* the first error, unless the second is its reason */
        emulated.failure = emulated.pending;
    _longjmp(emulated.outside, 1);
}

/* Notes an error, and goes on until the threads meet at a barrier. */
static void stop_at_barrier(const void *place, const gc_failure *failure) {
    if (emulated.pending.is_set)
        return;
    emulated.pending = *failure;
    emulated.pending.place = place;
    name_running(&emulated.pending);
}

static const char *name_thread(int number, char *text, size_t room) {
    return name_index(emulated.threads[number].index, text, room);
}

static const char *name_element(const gc_region *r, int64_t offset, unsigned bytes, char *text, size_t room) {
    int64_t element_bytes = r->element ? r->element : bytes ? bytes : 1;
    int64_t element = offset < 0 ? -((-offset + element_bytes - 1) / element_bytes) : offset / element_bytes;
    if (r->element)
        (void)snprintf(text, room, "%s[%lld]", r->name, (long long)element);
    else
        (void)snprintf(text, room, "element %lld of %s", (long long)element, r->name);
    return text;
}

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

/* Returns whether an address lies on the fiber's stack. */
static bool fiber_has(const gc_fiber *fiber, const void *address) {
    return (uintptr_t)address - (uintptr_t)fiber->stack < GUARD_BYTES + STACK_BYTES;
}

/* ---- Threads and warps ------------------------------------------------------------------------------------------- */

enum { STATIC_SHARED = 48 << 10 };

/* Returns the next lane of the warp, if it has not started; the fiber that ended a lane then runs it too. */
static gc_thread *next_lane(const gc_thread *t) {
    int next = t->number + 1;
    return next < emulated.thread_count && next % WARP != 0 && emulated.threads[next].state == READY &&
                   !emulated.threads[next].fiber
               ? &emulated.threads[next]
               : NULL;
}

static void run_fiber(gc_fiber *self) {
    for (;;) {
        gc_thread *t = emulated.running;
        emulated.launch->body(emulated.launch->argument);
        t->state = DONE;
        t->fiber = NULL;
        gc_thread *next = next_lane(t);
        if (!next) {
            emulated.idle[emulated.idle_count++] = self;
            leave_fiber(self);
            continue;
        }
        next->fiber = self;
        emulated.by.thread = (uint16_t)next->number;
        emulated.by.epoch = next->epoch;
        emulated.running = next;
    }
}

static void resume(gc_thread *t) {
    if (!t->fiber)
        t->fiber = emulated.idle_count > 0 ? emulated.idle[--emulated.idle_count] : new_fiber(run_fiber);
    if (!t->fiber)
        stop(NULL, emulated.launch->line, "", "the emulator is out of memory.");
    emulated.by.thread = (uint16_t)t->number;
    emulated.by.epoch = t->epoch;
    emulated.running = t;
    enter_fiber(t->fiber);
    emulated.running = NULL;
}

static int on_barrier(int line, int predicate, int *threads) {
    gc_thread *t = emulated.running;
    if (!t)
        stop(NULL, line, "", "__syncthreads() is used outside a kernel.");
    t->state = AT_BARRIER;
    t->line = line;
    t->predicate = predicate;
    leave_fiber(t->fiber);
    if (threads)
        *threads = emulated.thread_count;
    return emulated.counted;
}

static const unsigned long long *on_exchange(int line, unsigned mask, unsigned long long value) {
    gc_thread *t = emulated.running;
    if (!t)
        stop(NULL, line, "", "a function of a warp is used outside a kernel.");
    if (!(mask >> t->number % WARP & 1))
        stop(NULL, line, "The mask names the lanes that take part; 0xffffffff names all of them.",
             "takes part in an exchange whose mask, 0x%x, does not name its lane, %d.", mask, t->number % WARP);
    t->state = AT_EXCHANGE;
    t->line = line;
    t->mask = mask;
    t->value = value;
    leave_fiber(t->fiber);
    return t->values;
}

static unsigned on_active(void) {
    return 0xffffffffu;
}

static void on_fence(void) {
    emulated.by.fenced = true;
}

static unsigned long long on_clock(void) {
    return emulated.clock;
}

/* Stops at a thread that waits. */
static _Noreturn void stop_waiting(gc_thread *t, const char *what, const gc_thread *other) {
    char index[40];
    name_index(other->index, index, sizeof index);
    emulated.running = t;
    if (other->state == DONE)
        stop(NULL, t->line, "All threads of the block must reach it: no return before it, no branch around it.",
             "waits at %s, which thread %s does not reach: it has ended.", what, index);
    stop(NULL, t->line,
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
    if (emulated.pending.is_set) {
        emulated.failure = emulated.pending;
        _longjmp(emulated.outside, 1);
    }
    gc_thread *waiting = NULL, *other = NULL;
    for (int i = 0; i < emulated.thread_count && !waiting; i++)
        if (emulated.threads[i].state == AT_BARRIER)
            waiting = &emulated.threads[i];
    if (!waiting)
        return false;
    emulated.counted = 0;
    for (int i = 0; i < emulated.thread_count && !other; i++) {
        if (emulated.threads[i].state != AT_BARRIER || emulated.threads[i].line != waiting->line)
            other = &emulated.threads[i];
        emulated.counted += emulated.threads[i].predicate != 0;
    }
    if (other)
        stop_waiting(waiting, "__syncthreads()", other);
    for (int i = 0; i < emulated.thread_count; i++)
        emulated.threads[i].state = READY;
    emulated.by.now = ++emulated.moment;
    emulated.barrier = waiting->line;
    return true;
}

static void clear_shared(gc_region *region) {
    memset((void *)region->begin, 0xff, region->bytes);
    gc_memory_forget(region);
}

static void run_block(void) {
    const gc_emulator_index n = emulated.launch->block;
    emulated.by.now = emulated.by.block_began = ++emulated.moment;
    emulated.barrier = 0;
    gc_memory_each_shared(clear_shared);
    for (int i = 0; i < emulated.thread_count; i++)
        emulated.threads[i] =
            (gc_thread){.number = i, .index = {(unsigned)i % n.x, (unsigned)i / n.x % n.y, (unsigned)i / n.x / n.y}};
    do {
        for (int i = 0; i < emulated.thread_count; i += WARP)
            run_warp(&emulated.threads[i], emulated.thread_count - i < WARP ? emulated.thread_count - i : WARP);
    } while (finish_barrier());
}

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

static void check_launch(const gc_emulator_launch *l) {
    uint64_t threads = (uint64_t)l->block.x * l->block.y * l->block.z;
    if (threads < 1 || threads > MAX_THREADS || l->block.x > 1024 || l->block.y > 1024 || l->block.z > 64)
        stop(NULL, l->line, "Choose a smaller block, and more of them.",
             "the launch fails: a block has 1 to 1024 threads, and this one %llu (%u x %u x %u).",
             (unsigned long long)threads, l->block.x, l->block.y, l->block.z);
    if (l->grid.x < 1 || l->grid.y < 1 || l->grid.z < 1 || l->grid.x > INT32_MAX || l->grid.y > 65535 ||
        l->grid.z > 65535)
        stop(NULL, l->line, "The number of blocks is rounded up: (n + 255) / 256.",
             "the launch fails: a grid of %u x %u x %u blocks is not possible.", l->grid.x, l->grid.y, l->grid.z);
    if (emulated.static_shared > STATIC_SHARED || l->shared_bytes > GC_EMULATOR_DYNAMIC_BYTES)
        stop(NULL, l->line, "Make the tile smaller.",
             "the launch fails: too much shared memory, %llu bytes for each block; 49152 can be declared.",
             (unsigned long long)(emulated.static_shared > STATIC_SHARED ? emulated.static_shared : l->shared_bytes));
}

/* threads.c: */
static void on_launch(const gc_emulator_launch *l) {
    if (emulated.running)
        stop(NULL, l->line, "", "a kernel launches a kernel, which the emulator cannot do.");
    check_launch(l);
    emulated.launch = l;
    emulated.thread_count = (int)(l->block.x * l->block.y * l->block.z);
    emulated.launched += (int64_t)l->grid.x * l->grid.y * l->grid.z * emulated.thread_count;
    gc_region *dynamic = gc_memory_find(emulated.dynamic);
    if (dynamic) {
        free(dynamic->cells);
        dynamic->cells = NULL;
        dynamic->is_narrow = false;
        dynamic->bytes = l->shared_bytes ? l->shared_bytes : 1; /* so that it is found again */
    }
    emulated.by = (gc_accessor){.launch_began = emulated.moment + 1};
    for (emulated.block.z = 0; emulated.block.z < l->grid.z; emulated.block.z++)
        for (emulated.block.y = 0; emulated.block.y < l->grid.y; emulated.block.y++)
            for (emulated.block.x = 0; emulated.block.x < l->grid.x; emulated.block.x++)
                run_block();
    emulated.launch = NULL;
}

/* ---- Accesses ---------------------------------------------------------------------------------------------------- */

static const uint64_t max_steps = UINT64_C(1) << 26; /* of one thread: basic blocks */

static _Noreturn void stop_outside(uintptr_t address, unsigned bytes, int kind, const void *place) {
    const gc_region *r = gc_memory_nearest(address);
    const char *verb = kind & GC_EMULATOR_WRITE ? "writes" : "reads";
    char element[100];
    if (!r)
        stop(place, 0, "Is the pointer one that solve got, or memory of cudaMalloc?",
             "%s at the address 0x%llx, which belongs to no buffer.", verb, (unsigned long long)address);
    if (r->freed)
        stop(place, 0, "", "%s %s, which cudaFree has released.", verb, r->name);
    int64_t element_bytes = r->element ? r->element : bytes ? bytes : 1;
    stop(place, 0,
         r->space == GC_SPACE_SHARED ? "An index into shared memory must stay below the array's size."
         : kind & GC_EMULATOR_WRITE  ? "A thread whose index lies outside must not write: if (i < n)."
                                     : "A thread whose index lies outside must not read: if (i < n).",
         "%s %s, but %s has %lld element%s, from 0 to %lld.", verb,
         name_element(r, (int64_t)(address - r->begin), bytes, element, sizeof element), r->name,
         (long long)(r->bytes / (uint64_t)element_bytes), r->bytes == (uint64_t)element_bytes ? "" : "s",
         (long long)(r->bytes / (uint64_t)element_bytes) - 1);
}

/* Describes a race. */
static gc_failure describe_race(const gc_region *r, const gc_access *a, const gc_other *other) {
    gc_failure f = {.other_place = gc_counts_place(other->site)};
    char element[100], name[60] = "a thread of another block";
    if (!other->other_block) {
        char index[40];
        (void)snprintf(name, sizeof name, "thread %s", name_thread(other->thread, index, sizeof index));
    }
    bool global = r->space != GC_SPACE_SHARED;
    const gc_thread *t = &emulated.threads[other->thread];
    f.is_shared_race = !global;
    if (t->state == AT_BARRIER && t->line <= emulated.barrier) /* it came round to a barrier again */
        f.barrier = emulated.barrier;
    if (global)
        (void)snprintf(f.hint, sizeof f.hint,
                       "This is a race. Each thread must write elements of its own, or with an atomic operation: "
                       "atomicAdd(&x, y).");
    (void)snprintf(f.text, sizeof f.text, "%s %s, which %s %s in line %%LINE%%, with no barrier%s between.",
                   a->kind & GC_EMULATOR_WRITE ? "writes" : "reads",
                   name_element(r, (int64_t)a->offset, (unsigned)a->bytes, element, sizeof element), name,
                   other->wrote ? "writes" : "reads", global ? " or atomic operation" : "");
    return f;
}

/* Describes a read of shared memory that was not set. If a thread sets it before the barrier, it is a race. */
static gc_failure describe_unset(const char *element) {
    gc_failure f = {.hint = "Shared memory has no value until a thread of the block has set it."};
    (void)snprintf(f.text, sizeof f.text, "reads %s, which was never set.", element);
    return f;
}

static void access_region(gc_region *r, const gc_access *a, const void *place) {
    gc_other other;
    gc_failure failure;
    char element[100];
    gc_fault fault = gc_memory_access(r, a, &other);
    if (!fault)
        return;
    switch (fault) {
    case GC_FAULT_UNSET:
        name_element(r, (int64_t)a->offset, (unsigned)a->bytes, element, sizeof element);
        if (r->space != GC_SPACE_SHARED)
            stop(place, 0, "Set it first: with a kernel, or with cudaMemsetAsync.", "reads %s, which was never set.",
                 element);
        failure = describe_unset(element);
        stop_at_barrier(place, &failure);
        break;
    case GC_FAULT_READ_OF_ATOMIC:
        failure = describe_race(r, a, &other);
        emulated.pending_address = r->begin + a->offset;
        emulated.pending_thread = emulated.running;
        stop_at_barrier(place, &failure);
        break;
    case GC_FAULT_RACE:
        failure = describe_race(r, a, &other);
        emulated.failure = failure;
        stop(place, 0, failure.hint, "%s", failure.text);
    default:
        stop(place, 0, "", "the emulator is out of memory.");
    }
}

/* Ends the run if memory belongs to an input, which is about to be written. */
static void stop_write_to_input(const gc_region *region, const void *place, int line) {
    if (region && region->is_const)
        stop(place, line, "Inputs are read only, also through a cast: write to the output, or to memory of cudaMalloc.",
             "writes to %s, which is an input.", region->name);
}

/* Checks memory that belongs to no region. */
static void access_other(uintptr_t address, unsigned bytes, int kind, const void *place) {
    bool is_argument = address - (uintptr_t)emulated.launch->argument < emulated.launch->argument_bytes;
    bool is_constant = address >= emulated.image_begin && address < emulated.image_end && !(kind & GC_EMULATOR_WRITE);
    if (!is_argument && !is_constant)
        stop_outside(address, bytes, kind, place);
}

/* The functions of the table, gc_emulator_table. access.c: */
static void on_access(const void *pointer, unsigned long bytes, int kind, const void *place) {
    uintptr_t address = (uintptr_t)pointer;
    gc_thread *t = emulated.running;
    if (!bytes || (t && fiber_has(t->fiber, pointer)))
        return;
    gc_region *r = gc_memory_find(address);
    if (!t) {
        if (r && r->owned)
            stop(place, 0, "Only a kernel can. A pointer that solve gets may be passed on, not used.",
                 "solve runs on the host, where it cannot %s memory of the device.",
                 kind & GC_EMULATOR_WRITE ? "write" : "read");
        return;
    }
    if (!r) {
        access_other(address, (unsigned)bytes, kind, place);
        return;
    }
    gc_site_kind site_kind = r->space == GC_SPACE_SHARED     ? GC_SITE_SHARED
                             : r->space == GC_SPACE_CONSTANT ? GC_SITE_OTHER
                                                             : GC_SITE_GLOBAL;
    gc_access access = {&emulated.by, address - r->begin, bytes, kind, gc_counts_site(place, site_kind)};
    if (access.offset + bytes > r->bytes)
        stop_outside(r->begin + r->bytes, (unsigned)bytes, kind, place);
    if (!(kind & GC_EMULATOR_UNALIGNED) && address % bytes != 0)
        stop(place, 0, "A float4 must begin at a multiple of 16 bytes, a float2 at one of 8.",
             "accesses %lu bytes at an address that is no multiple of %lu.", bytes, bytes);
    if (kind & GC_EMULATOR_ATOMIC && emulated.pending_thread == t && emulated.pending_address == address) {
        emulated.pending = (gc_failure){.is_set = false};
        emulated.pending_thread = NULL;
    }
    if (kind & GC_EMULATOR_WRITE)
        stop_write_to_input(r, place, 0);
    access_region(r, &access, place);
    if (bytes <= 16)
        gc_counts_note(access.site, t->number % WARP, address, (unsigned)bytes);
}

static void on_step(const void *place) {
    gc_thread *t = emulated.running;
    emulated.clock++;
    if (!t)
        return;
    if (++t->steps > max_steps)
        stop(place, 0, "Does the loop's variable change in every step, and towards its end?",
             "does not end: it has an endless loop, or one of more than sixty million steps.");
    gc_counts_note(gc_counts_site(place, GC_SITE_BLOCK), t->number % WARP, 0, 0);
}

static void on_enter_host(const void *function, const void *place) {
    if (emulated.running && function != emulated.launch->function)
        stop(place, 0, "Write __device__ before that function.",
             "runs a function of the host; a kernel can call only functions marked __device__.");
}

static void on_outside_array(int line, long long index) {
    stop(NULL, line, "The first index is 0, the last one the size less 1.",
         "uses the index %lld, which lies outside the array.", index);
}

static void on_divide_by_zero(int line) {
    stop(NULL, line, "", "divides an integer by zero.");
}

static gc_emulator_index on_index(int which, const void *place) {
    if (!emulated.running)
        stop(place, 0, "A kernel is launched with its grid: kernel<<<blocks, threads, 0, stream>>>(...).",
             "uses threadIdx, blockIdx, blockDim or gridDim outside a launch: the kernel was called as a function, or "
             "solve uses them.");
    return which == GC_EMULATOR_THREAD       ? emulated.running->index
           : which == GC_EMULATOR_BLOCK      ? emulated.block
           : which == GC_EMULATOR_BLOCK_SIZE ? emulated.launch->block
                                             : emulated.launch->grid;
}

/* ---- Functions of CUDA ------------------------------------------------------------------------------------------- */

/* The values of cudaMemcpyKind: a sum of the first two, or the third. */
enum { GC_COPY_TO_DEVICE = 1, GC_COPY_FROM_DEVICE = 2, GC_COPY_DEFAULT = 4 };

/* host.c: */
static void *on_allocate(unsigned long bytes) {
    const gc_region *region = gc_memory_allocate("the memory of cudaMalloc", bytes ? bytes : 1);
    return region ? (void *)region->begin : NULL;
}

static int on_release(void *memory) {
    gc_region *region = gc_memory_find((uintptr_t)memory);
    if (!memory)
        return 0;
    if (!region || region->begin != (uintptr_t)memory || !region->owned)
        return 1;
    region->freed = true;
    return 0;
}

static int on_set_error(int code) {
    return emulated.last_error = code;
}

static int on_last_error(int clear) {
    int code = emulated.last_error;
    if (clear)
        emulated.last_error = 0;
    return code;
}

/* Checks that a copy or fill stays within one buffer. Returns its region, or NULL for memory of the host. */
static gc_region *check_range(const void *memory, unsigned long bytes, int line) {
    gc_region *region = gc_memory_find((uintptr_t)memory);
    if (!region) {
        region = gc_memory_nearest((uintptr_t)memory);
        if (!region || !region->owned)
            return NULL;
    }
    if (region->freed)
        stop(NULL, line, "", "copies or sets %s, which cudaFree has released.", region->name);
    uint64_t offset = (uintptr_t)memory - region->begin;
    if (region->element && bytes % region->element != 0)
        stop(NULL, line, "The size is in bytes: count * sizeof(float).",
             "copies or sets %lu byte%s of %s, whose elements have %u.", bytes, bytes == 1 ? "" : "s", region->name,
             region->element);
    if (offset > region->bytes || bytes > region->bytes - offset)
        stop(NULL, line, "The size is in bytes: count * sizeof(float).",
             "copies or sets %lu bytes of %s, which has %llu from there on.", bytes, region->name,
             (unsigned long long)(offset > region->bytes ? 0 : region->bytes - offset));
    return region;
}

static void note_set(gc_region *region, const void *memory, unsigned long bytes, int line) {
    if (region && gc_memory_set(region, (uintptr_t)memory - region->begin, bytes))
        stop(NULL, line, "", "the emulator is out of memory.");
}

/* Checks one side of a copy against its direction. A variable that is no buffer may be of the host or the device. */
static void check_side(const gc_region *region, bool is_device, const char *direction, const char *verb, int line) {
    if (is_device ? !region : region && region->owned)
        stop(NULL, line,
             "cudaMemcpy(to, from, bytes, kind): cudaMemcpyDeviceToDevice copies between what solve gets and memory of "
             "cudaMalloc.",
             "copies with %s, but %s %s, which is memory of the %s.", direction, verb,
             region ? region->name : "a pointer", is_device ? "host" : "device");
}

static void on_copy(void *to, const void *from, unsigned long bytes, int kind, int line) {
    static const char *const directions[] = {"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost",
                                             "cudaMemcpyDeviceToDevice", "cudaMemcpyDefault"};
    if (kind < 0 || kind > GC_COPY_DEFAULT)
        stop(NULL, line, "", "copies in a direction that CUDA does not have: %d.", kind);
    if (!bytes)
        return;
    gc_region *source = check_range(from, bytes, line), *region = check_range(to, bytes, line);
    if (kind != GC_COPY_DEFAULT) {
        check_side(source, kind & GC_COPY_FROM_DEVICE, directions[kind], "reads from", line);
        check_side(region, kind & GC_COPY_TO_DEVICE, directions[kind], "writes to", line);
    }
    for (unsigned long i = 0; source && source->owned && i < bytes; i++)
        if (!gc_memory_is_set(source, (uintptr_t)from - source->begin + i))
            stop(NULL, line, "cudaMemcpy(to, from, bytes, kind): are the first two arguments exchanged?",
                 "copies from %s, of which byte %lu was never set.", source->name,
                 (unsigned long)((uintptr_t)from - source->begin + i));
    stop_write_to_input(region, NULL, line);
    memmove(to, from, bytes);
    note_set(region, to, bytes, line);
}

static void on_fill(void *to, int byte, unsigned long bytes, int line) {
    if (!bytes)
        return;
    gc_region *region = check_range(to, bytes, line);
    if (!region)
        stop(NULL, line, "", "sets memory that belongs to no buffer.");
    stop_write_to_input(region, NULL, line);
    memset(to, byte, bytes);
    note_set(region, to, bytes, line);
}

/* ---- The library and the run ------------------------------------------------------------------------------------- */

enum { MAX_BUFFERS = 16 };

static const gc_emulator_table table = {
    .access = on_access,
    .step = on_step,
    .enter_host = on_enter_host,
    .outside_array = on_outside_array,
    .divide_by_zero = on_divide_by_zero,
    .index = on_index,
    .launch = on_launch,
    .barrier = on_barrier,
    .exchange = on_exchange,
    .active = on_active,
    .fence = on_fence,
    .clock = on_clock,
    .allocate = on_allocate,
    .release = on_release,
    .set_error = on_set_error,
    .last_error = on_last_error,
    .copy = on_copy,
    .fill = on_fill,
};

/* Finds where the library's segments lie. */
static int find_image(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    (void)data;
    if (info->dlpi_addr != emulated.base)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t begin = emulated.base + info->dlpi_phdr[i].p_vaddr, end = begin + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && end > emulated.image_end)
            emulated.image_end = end;
    }
    emulated.image_begin = emulated.base;
    return 1;
}

gpuconv_status gc_emulator_open(void *library, const char *path, gpuconv_error *error) {
    void *symbol = dlsym(library, "gpulab_emulator_attach"), *anchor, *dynamic;
    Dl_info about;
    if (!symbol)
        return GPUCONV_OK;
    (void)snprintf(emulated.library, sizeof emulated.library, "%s", path);
    gpuconv_status err = gc_symbols_read(path, &emulated.symbols, &emulated.symbol_count, error);
    if (err)
        return err;
    memcpy((void *)&emulated.attach, &symbol, sizeof symbol);
    emulated.attach(&table, &anchor, &dynamic);
    if (!dladdr(symbol, &about))
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: its address is not known", path);
    emulated.base = (uintptr_t)about.dli_fbase;
    emulated.dynamic = (uintptr_t)dynamic;
    (void)dl_iterate_phdr(find_image, NULL);
    for (int i = 0; i < emulated.symbol_count; i++)
        if (strcmp(emulated.symbols[i].name, "gce_anchor") == 0)
            emulated.shared_base = (uintptr_t)anchor - emulated.symbols[i].value;
        else if (emulated.symbols[i].is_thread_local)
            emulated.static_shared += emulated.symbols[i].bytes;
    return GPUCONV_OK;
}

bool gc_emulator_is_open(void) {
    return emulated.attach != NULL;
}

/* Adds the variables of the library, and its dynamic shared memory. Returns false without memory. */
static bool add_variables(void) {
    for (int i = 0; i < emulated.symbol_count; i++) {
        const gc_symbol *s = &emulated.symbols[i];
        gc_region r = {.begin = (s->is_thread_local ? emulated.shared_base : emulated.base) + s->value,
                       .bytes = s->bytes,
                       .space = s->is_thread_local ? GC_SPACE_SHARED : GC_SPACE_CONSTANT,
                       .is_set = !s->is_thread_local};
        memcpy(r.name, s->name, sizeof r.name);
        if (strcmp(s->name, "gce_anchor") == 0)
            continue;
        if (r.begin == emulated.dynamic) {
            r.space = GC_SPACE_SHARED;
            r.is_set = false;
            (void)snprintf(r.name, sizeof r.name, "the dynamic shared memory");
        }
        if (!gc_memory_add(&r))
            return false;
    }
    return true;
}

/* Copies the buffers into regions. Returns false without memory. */
static bool add_buffers(const gc_emulator_buffer *buffer, int count, void **data) {
    for (int i = 0; i < count; i++) {
        gc_region *r = gc_memory_allocate(buffer[i].name, (uint64_t)buffer[i].bytes);
        if (!r)
            return false;
        r->element = buffer[i].element;
        r->is_set = buffer[i].is_set;
        r->is_const = buffer[i].is_const;
        data[i] = (void *)r->begin;
        memcpy(data[i], buffer[i].data, (size_t)buffer[i].bytes);
    }
    return true;
}

/* Copies a buffer back. */
static void fetch(const gc_emulator_buffer *buffer, const gc_region *region) {
    unsigned char *to = buffer->data;
    memcpy(to, (const void *)region->begin, (size_t)buffer->bytes);
    for (int64_t i = 0; buffer->is_float && i < buffer->bytes; i += buffer->element) {
        unsigned k = 0;
        while (k < buffer->element && to[i + k] == 0xff)
            k++;
        if (k == buffer->element && gc_memory_is_set(region, (uint64_t)i))
            to[i + k - 1] = 0x7f;
    }
}

bool gc_emulator_run(gc_emulator_solve solve, const gc_emulator_buffer *buffer, int count, const int64_t *size) {
    static void *data[MAX_BUFFERS]; /* static: a jump back must not change it */
    emulated.failure = emulated.pending = (gc_failure){.is_set = false};
    emulated.pending_thread = NULL;
    emulated.running = NULL;
    emulated.launch = NULL;
    emulated.launched = 0;
    gc_counts_clear();
    gc_memory_clear();
    if (_setjmp(emulated.outside) == 0) {
        if (count > MAX_BUFFERS || !add_variables() || !add_buffers(buffer, count, data))
            stop(NULL, 0, "", "the emulator is out of memory.");
        int code = solve(data, size, NULL);
        if (code)
            stop(NULL, 0, "", "a function of CUDA failed in solve: error %d.", code);
        for (int i = 0; i < count; i++)
            if (buffer[i].bytes > 0)
                fetch(&buffer[i], gc_memory_find((uintptr_t)data[i]));
    }
    emulated.running = NULL;
    return !emulated.failure.is_set;
}

void gc_emulator_error(char *text, size_t room) {
    gc_report_failure(&emulated.failure, emulated.library, text, room);
}

gc_emulator_totals gc_emulator_get_totals(void) {
    const gc_sum global = gc_counts_sum(GC_SITE_GLOBAL), shared = gc_counts_sum(GC_SITE_SHARED);
    return (gc_emulator_totals){.threads = emulated.launched,
                                .global_accesses = global.lanes,
                                .sectors = global.spent,
                                .best_sectors = global.best,
                                .shared_requests = shared.requests,
                                .shared_cycles = shared.spent,
                                .best_shared_cycles = shared.best};
}

void gc_emulator_counts(char *text, size_t room) {
    gc_report_counts(emulated.library, text, room);
}
