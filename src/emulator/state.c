/* The state of a run. An error is noted, the first one only, and ends the run with a jump back to gc_emulator_run. */
#undef _FORTIFY_SOURCE /* its longjmp ends a program that jumps to another stack */
#include "state.h"
#include "libgpuconv/core/number.h"

#include <stdarg.h>
#include <stdio.h>

struct gc_emulated gc_emulated;

const char *gc_name_index(gc_emulator_index i, char *text, size_t room) {
    const gc_emulator_index block = gc_emulated.launch->block, grid = gc_emulated.launch->grid;
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
    if (gc_emulated.running)
        (void)snprintf(failure->thread, sizeof failure->thread, "thread %s of block %s",
                       gc_name_index(gc_emulated.running->index, index[0], sizeof index[0]),
                       gc_name_index(gc_emulated.block, index[1], sizeof index[1]));
}

_Noreturn void gc_stop(const void *place, int line, const char *hint, const char *format, ...) {
    va_list values;
    va_start(values, format);
    (void)gc_vformat(gc_emulated.failure.text, sizeof gc_emulated.failure.text, format, values);
    va_end(values);
    (void)snprintf(gc_emulated.failure.hint, sizeof gc_emulated.failure.hint, "%s", hint);
    gc_emulated.failure.place = place;
    gc_emulated.failure.line = line;
    name_running(&gc_emulated.failure);
    if (gc_emulated.pending.is_set &&
        !gc_emulated.failure.other_place) /* the first error, unless the second is its reason */
        gc_emulated.failure = gc_emulated.pending;
    _longjmp(gc_emulated.outside, 1);
}

void gc_stop_at_barrier(const void *place, const gc_failure *failure) {
    if (gc_emulated.pending.is_set)
        return;
    gc_emulated.pending = *failure;
    gc_emulated.pending.place = place;
    name_running(&gc_emulated.pending);
}

const char *gc_name_thread(int number, char *text, size_t room) {
    return gc_name_index(gc_emulated.threads[number].index, text, room);
}

const char *gc_name_element(const gc_region *r, int64_t offset, unsigned bytes, char *text, size_t room) {
    int64_t element_bytes = r->element ? r->element : bytes ? bytes : 1;
    int64_t element = offset < 0 ? -((-offset + element_bytes - 1) / element_bytes) : offset / element_bytes;
    if (r->element)
        (void)snprintf(text, room, "%s[%lld]", r->name, (long long)element);
    else
        (void)snprintf(text, room, "element %lld of %s", (long long)element, r->name);
    return text;
}
