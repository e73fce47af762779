/* The state of a run: the library, the launch, the thread that runs, and how an error ends the run. */
#ifndef GPULAB_EMULATOR_STATE_H
#define GPULAB_EMULATOR_STATE_H

#include "interface.h"
#include "memory.h"
#include "report.h"

#include <setjmp.h>

enum { WARP = 32, MAX_THREADS = 1024 };

typedef struct gc_fiber gc_fiber; /* of threads.c */

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
extern struct gc_emulated {
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
} gc_emulated;

/* Ends the run. `place` is an address of the program; if it is NULL, `line` is the place. */
_Noreturn void gc_stop(const void *place, int line, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Ends the run if memory belongs to an input, which is about to be written. */
void gc_stop_write_to_input(const gc_region *region, const void *place, int line);

/* Notes an error, and goes on until the threads meet at a barrier. */
void gc_stop_at_barrier(const void *place, const gc_failure *failure);

/* Write names into `text` and return it: an index with as many numbers as the blocks and the grid have dimensions, a
 * thread of the block, and the element of a region at an offset, for an access of `bytes` bytes. */
const char *gc_name_index(gc_emulator_index i, char *text, size_t room);
const char *gc_name_thread(int number, char *text, size_t room);
const char *gc_name_element(const gc_region *r, int64_t offset, unsigned bytes, char *text, size_t room);

/* The functions of the table, gc_emulator_table. access.c: */
void gc_on_access(const void *pointer, unsigned long bytes, int kind, const void *place);
void gc_on_step(const void *place);
void gc_on_enter_host(const void *function, const void *place);
void gc_on_outside_array(int line, long long index);
void gc_on_divide_by_zero(int line);
gc_emulator_index gc_on_index(int which, const void *place);

/* threads.c: */
void gc_on_launch(const gc_emulator_launch *launch);
int gc_on_barrier(int line, int predicate, int *threads);
const unsigned long long *gc_on_exchange(int line, unsigned mask, unsigned long long value);
unsigned gc_on_active(void);
void gc_on_fence(void);
unsigned long long gc_on_clock(void);

/* Returns whether an address lies on the fiber's stack. */
bool gc_fiber_has(const gc_fiber *fiber, const void *address);

/* host.c: */
void *gc_on_allocate(unsigned long bytes);
int gc_on_release(void *memory);
int gc_on_set_error(int code);
int gc_on_last_error(int clear);
void gc_on_copy(void *to, const void *from, unsigned long bytes, int kind, int line);
void gc_on_fill(void *to, int byte, unsigned long bytes, int line);

#endif
