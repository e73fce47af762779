/* Checks each access to memory, each step and each call of a thread. */
#include "counts.h"
#include "state.h"

#include <stdio.h>

static const uint64_t max_steps = UINT64_C(1) << 26; /* of one thread: basic blocks */

static _Noreturn void stop_outside(uintptr_t address, unsigned bytes, int kind, const void *place) {
    const gc_region *r = gc_memory_nearest(address);
    const char *verb = kind & GC_EMULATOR_WRITE ? "writes" : "reads";
    char element[100];
    if (!r)
        gc_stop(place, 0, "Is the pointer one that solve got, or memory of cudaMalloc?",
                "%s at the address 0x%llx, which belongs to no buffer.", verb, (unsigned long long)address);
    if (r->freed)
        gc_stop(place, 0, "", "%s %s, which cudaFree has released.", verb, r->name);
    int64_t element_bytes = r->element ? r->element : bytes ? bytes : 1;
    gc_stop(place, 0,
            r->space == GC_SPACE_SHARED ? "An index into shared memory must stay below the array's size."
            : kind & GC_EMULATOR_WRITE  ? "A thread whose index lies outside must not write: if (i < n)."
                                        : "A thread whose index lies outside must not read: if (i < n).",
            "%s %s, but %s has %lld element%s, from 0 to %lld.", verb,
            gc_name_element(r, (int64_t)(address - r->begin), bytes, element, sizeof element), r->name,
            (long long)(r->bytes / (uint64_t)element_bytes), r->bytes == (uint64_t)element_bytes ? "" : "s",
            (long long)(r->bytes / (uint64_t)element_bytes) - 1);
}

/* Describes a race. */
static gc_failure describe_race(const gc_region *r, const gc_access *a, const gc_other *other) {
    gc_failure f = {.other_place = gc_counts_place(other->site)};
    char element[100], name[60] = "a thread of another block";
    if (!other->other_block) {
        char index[40];
        (void)snprintf(name, sizeof name, "thread %s", gc_name_thread(other->thread, index, sizeof index));
    }
    bool global = r->space != GC_SPACE_SHARED;
    const gc_thread *t = &gc_emulated.threads[other->thread];
    f.is_shared_race = !global;
    if (t->state == AT_BARRIER && t->line <= gc_emulated.barrier) /* it came round to a barrier again */
        f.barrier = gc_emulated.barrier;
    if (global)
        (void)snprintf(f.hint, sizeof f.hint,
                       "This is a race. Each thread must write elements of its own, or with an atomic operation: "
                       "atomicAdd(&x, y).");
    (void)snprintf(f.text, sizeof f.text, "%s %s, which %s %s in line %%LINE%%, with no barrier%s between.",
                   a->kind & GC_EMULATOR_WRITE ? "writes" : "reads",
                   gc_name_element(r, (int64_t)a->offset, (unsigned)a->bytes, element, sizeof element), name,
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
        gc_name_element(r, (int64_t)a->offset, (unsigned)a->bytes, element, sizeof element);
        if (r->space != GC_SPACE_SHARED)
            gc_stop(place, 0, "Set it first: with a kernel, or with cudaMemsetAsync.", "reads %s, which was never set.",
                    element);
        failure = describe_unset(element);
        gc_stop_at_barrier(place, &failure);
        break;
    case GC_FAULT_READ_OF_ATOMIC:
        failure = describe_race(r, a, &other);
        gc_emulated.pending_address = r->begin + a->offset;
        gc_emulated.pending_thread = gc_emulated.running;
        gc_stop_at_barrier(place, &failure);
        break;
    case GC_FAULT_RACE:
        failure = describe_race(r, a, &other);
        gc_emulated.failure = failure;
        gc_stop(place, 0, failure.hint, "%s", failure.text);
    default:
        gc_stop(place, 0, "", "the emulator is out of memory.");
    }
}

void gc_stop_write_to_input(const gc_region *region, const void *place, int line) {
    if (region && region->is_const)
        gc_stop(place, line,
                "Inputs are read only, also through a cast: write to the output, or to memory of cudaMalloc.",
                "writes to %s, which is an input.", region->name);
}

/* Checks memory that belongs to no region. */
static void access_other(uintptr_t address, unsigned bytes, int kind, const void *place) {
    bool is_argument = address - (uintptr_t)gc_emulated.launch->argument < gc_emulated.launch->argument_bytes;
    bool is_constant =
        address >= gc_emulated.image_begin && address < gc_emulated.image_end && !(kind & GC_EMULATOR_WRITE);
    if (!is_argument && !is_constant)
        stop_outside(address, bytes, kind, place);
}

void gc_on_access(const void *pointer, unsigned long bytes, int kind, const void *place) {
    uintptr_t address = (uintptr_t)pointer;
    gc_thread *t = gc_emulated.running;
    if (!bytes || (t && gc_fiber_has(t->fiber, pointer)))
        return;
    gc_region *r = gc_memory_find(address);
    if (!t) {
        if (r && r->owned)
            gc_stop(place, 0, "Only a kernel can. A pointer that solve gets may be passed on, not used.",
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
    gc_access access = {&gc_emulated.by, address - r->begin, bytes, kind, gc_counts_site(place, site_kind)};
    if (access.offset + bytes > r->bytes)
        stop_outside(r->begin + r->bytes, (unsigned)bytes, kind, place);
    if (!(kind & GC_EMULATOR_UNALIGNED) && address % bytes != 0)
        gc_stop(place, 0, "A float4 must begin at a multiple of 16 bytes, a float2 at one of 8.",
                "accesses %lu bytes at an address that is no multiple of %lu.", bytes, bytes);
    if (kind & GC_EMULATOR_ATOMIC && gc_emulated.pending_thread == t && gc_emulated.pending_address == address) {
        gc_emulated.pending = (gc_failure){.is_set = false};
        gc_emulated.pending_thread = NULL;
    }
    if (kind & GC_EMULATOR_WRITE)
        gc_stop_write_to_input(r, place, 0);
    access_region(r, &access, place);
    if (bytes <= 16)
        gc_counts_note(access.site, t->number % WARP, address, (unsigned)bytes);
}

void gc_on_step(const void *place) {
    gc_thread *t = gc_emulated.running;
    gc_emulated.clock++;
    if (!t)
        return;
    if (++t->steps > max_steps)
        gc_stop(place, 0, "Does the loop's variable change in every step, and towards its end?",
                "does not end: it has an endless loop, or one of more than sixty million steps.");
    gc_counts_note(gc_counts_site(place, GC_SITE_BLOCK), t->number % WARP, 0, 0);
}

void gc_on_enter_host(const void *function, const void *place) {
    if (gc_emulated.running && function != gc_emulated.launch->function)
        gc_stop(place, 0, "Write __device__ before that function.",
                "runs a function of the host; a kernel can call only functions marked __device__.");
}

void gc_on_outside_array(int line, long long index) {
    gc_stop(NULL, line, "The first index is 0, the last one the size less 1.",
            "uses the index %lld, which lies outside the array.", index);
}

void gc_on_divide_by_zero(int line) {
    gc_stop(NULL, line, "", "divides an integer by zero.");
}

gc_emulator_index gc_on_index(int which, const void *place) {
    if (!gc_emulated.running)
        gc_stop(
            place, 0, "A kernel is launched with its grid: kernel<<<blocks, threads, 0, stream>>>(...).",
            "uses threadIdx, blockIdx, blockDim or gridDim outside a launch: the kernel was called as a function, or "
            "solve uses them.");
    return which == GC_EMULATOR_THREAD       ? gc_emulated.running->index
           : which == GC_EMULATOR_BLOCK      ? gc_emulated.block
           : which == GC_EMULATOR_BLOCK_SIZE ? gc_emulated.launch->block
                                             : gc_emulated.launch->grid;
}
