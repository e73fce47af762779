// Turns the compiler's instrumentation of a kernel into calls of the emulator's table. Compiled without
// instrumentation and linked into the student's library, where its hidden symbols take the place of a sanitizer's.
#include "cuda.hpp"

#undef cudaMemcpy
#define HIDDEN extern "C" __attribute__((visibility("hidden")))
#define PLACE __builtin_return_address(0)

// Constructors of the library run before it is connected.
static const gc_emulator_table unconnected = {[](const void *, unsigned long, int, const void *) {},
                                              [](const void *) {}, [](const void *, const void *) {}};
static const gc_emulator_table *table = &unconnected;
static char dynamic_shared[GC_EMULATOR_DYNAMIC_BYTES] __attribute__((aligned(1024)));
static thread_local char gce_anchor;

// Connects the library with the emulator. Sets where shared memory lies.
extern "C" __attribute__((visibility("default"))) void gpulab_emulator_attach(const gc_emulator_table *t, void **anchor,
                                                                              void **dynamic) {
    table = t;
    *anchor = &gce_anchor;
    *dynamic = dynamic_shared;
}

// ---- Loads and stores (-fsanitize=thread) ---------------------------------------------------------------------------

#define ACCESS(bytes)                                                                                                  \
    HIDDEN void __tsan_read##bytes(void *p) {                                                                          \
        table->access(p, bytes, GC_EMULATOR_READ, PLACE);                                                              \
    }                                                                                                                  \
    HIDDEN void __tsan_write##bytes(void *p) {                                                                         \
        table->access(p, bytes, GC_EMULATOR_WRITE, PLACE);                                                             \
    }                                                                                                                  \
    HIDDEN void __tsan_volatile_read##bytes(void *p) {                                                                 \
        table->access(p, bytes, GC_EMULATOR_READ, PLACE);                                                              \
    }                                                                                                                  \
    HIDDEN void __tsan_volatile_write##bytes(void *p) {                                                                \
        table->access(p, bytes, GC_EMULATOR_WRITE, PLACE);                                                             \
    }                                                                                                                  \
    HIDDEN void __tsan_read_write##bytes(void *p) {                                                                    \
        table->access(p, bytes, GC_EMULATOR_READ, PLACE);                                                              \
        table->access(p, bytes, GC_EMULATOR_WRITE, PLACE);                                                             \
    }                                                                                                                  \
    HIDDEN void __tsan_unaligned_read##bytes(void *p) {                                                                \
        table->access(p, bytes, GC_EMULATOR_READ | GC_EMULATOR_UNALIGNED, PLACE);                                      \
    }                                                                                                                  \
    HIDDEN void __tsan_unaligned_write##bytes(void *p) {                                                               \
        table->access(p, bytes, GC_EMULATOR_WRITE | GC_EMULATOR_UNALIGNED, PLACE);                                     \
    }                                                                                                                  \
    HIDDEN void __tsan_unaligned_read_write##bytes(void *p) {                                                          \
        table->access(p, bytes, GC_EMULATOR_READ | GC_EMULATOR_UNALIGNED, PLACE);                                      \
        table->access(p, bytes, GC_EMULATOR_WRITE | GC_EMULATOR_UNALIGNED, PLACE);                                     \
    }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
HIDDEN void __tsan_read_range(void *p, unsigned long bytes) {
    table->access(p, bytes, GC_EMULATOR_READ | GC_EMULATOR_UNALIGNED, PLACE);
}
HIDDEN void __tsan_write_range(void *p, unsigned long bytes) {
    table->access(p, bytes, GC_EMULATOR_WRITE | GC_EMULATOR_UNALIGNED, PLACE);
}
HIDDEN void __tsan_vptr_update(void **, void *) {}
HIDDEN void __tsan_vptr_read(void **) {}
HIDDEN void __tsan_func_entry(void *) {}
HIDDEN void __tsan_func_exit() {}
HIDDEN void __tsan_init() {}

// The linker sends the student's calls here (--wrap): compilers copy structures with them, without instrumentation.
extern "C" void *__real_memcpy(void *, const void *, unsigned long);
extern "C" void *__real_memmove(void *, const void *, unsigned long);
extern "C" void *__real_memset(void *, int, unsigned long);
static void copies(void *to, const void *from, unsigned long bytes, const void *place) {
    if (from)
        table->access(from, bytes, GC_EMULATOR_READ | GC_EMULATOR_UNALIGNED, place);
    table->access(to, bytes, GC_EMULATOR_WRITE | GC_EMULATOR_UNALIGNED, place);
}
HIDDEN void *__wrap_memcpy(void *to, const void *from, unsigned long bytes) {
    copies(to, from, bytes, PLACE);
    return __real_memcpy(to, from, bytes);
}
HIDDEN void *__wrap_memmove(void *to, const void *from, unsigned long bytes) {
    copies(to, from, bytes, PLACE);
    return __real_memmove(to, from, bytes);
}
HIDDEN void *__wrap_memset(void *to, int byte, unsigned long bytes) {
    copies(to, nullptr, bytes, PLACE);
    return __real_memset(to, byte, bytes);
}
HIDDEN void *__tsan_memcpy(void *to, const void *from, unsigned long bytes) {
    return __wrap_memcpy(to, from, bytes);
}
HIDDEN void *__tsan_memmove(void *to, const void *from, unsigned long bytes) {
    return __wrap_memmove(to, from, bytes);
}
HIDDEN void *__tsan_memset(void *to, int byte, unsigned long bytes) {
    return __wrap_memset(to, byte, bytes);
}

// ---- Steps, calls, array indices (-fsanitize-coverage=trace-pc, -finstrument-functions, -fsanitize=bounds) ----------

HIDDEN void __sanitizer_cov_trace_pc() {
    table->step(PLACE);
}
HIDDEN void __cyg_profile_func_enter(void *function, void *) {
    table->enter_host(function, PLACE);
}
HIDDEN void __cyg_profile_func_exit(void *, void *) {}

struct place {
    const char *file;
    unsigned line, column;
};
HIDDEN void __ubsan_handle_out_of_bounds(const place *at, unsigned long index) {
    table->outside_array((int)at->line, (long long)index);
}
HIDDEN void __ubsan_handle_divrem_overflow(const place *at, unsigned long, unsigned long) {
    table->divide_by_zero((int)at->line);
}

// ---- Functions of cuda.hpp
// --------------------------------------------------------------------------------------------

HIDDEN gc_emulator_index gce_thread_index() {
    return table->index(GC_EMULATOR_THREAD, PLACE);
}
HIDDEN gc_emulator_index gce_block_index() {
    return table->index(GC_EMULATOR_BLOCK, PLACE);
}
HIDDEN gc_emulator_index gce_block_size() {
    return table->index(GC_EMULATOR_BLOCK_SIZE, PLACE);
}
HIDDEN gc_emulator_index gce_grid_size() {
    return table->index(GC_EMULATOR_GRID_SIZE, PLACE);
}
HIDDEN int gce_barrier(int line, int predicate, int *threads) {
    return table->barrier(line, predicate, threads);
}
HIDDEN const unsigned long long *gce_exchange(int line, unsigned mask, unsigned long long value) {
    return table->exchange(line, mask, value);
}
HIDDEN unsigned gce_active() {
    return table->active();
}
HIDDEN void gce_fence() {
    table->fence();
}
HIDDEN unsigned long long gce_clock() {
    return table->clock();
}
HIDDEN void gce_atomic(const void *address, unsigned long bytes, const void *at) {
    table->access(address, bytes, GC_EMULATOR_WRITE | GC_EMULATOR_ATOMIC, at);
}
HIDDEN void gce_launch(const gc_emulator_launch *launch) {
    table->launch(launch);
}
HIDDEN void *gce_dynamic() {
    return dynamic_shared;
}
HIDDEN cudaError_t gce_allocate(void **p, size_t bytes) {
    *p = table->allocate(bytes);
    return *p ? cudaSuccess : table->set_error(cudaErrorMemoryAllocation);
}
HIDDEN cudaError_t cudaFree(void *p) {
    return table->release(p) ? table->set_error(cudaErrorInvalidValue) : cudaSuccess;
}
HIDDEN cudaError_t gce_copy(void *to, const void *from, size_t bytes, int kind, int line) {
    return table->copy(to, from, bytes, kind, line), cudaSuccess;
}
HIDDEN cudaError_t gce_fill(void *to, int byte, size_t bytes, int line) {
    return table->fill(to, byte, bytes, line), cudaSuccess;
}
HIDDEN cudaError_t cudaGetLastError() {
    return table->last_error(1);
}
HIDDEN cudaError_t cudaPeekAtLastError() {
    return table->last_error(0);
}
HIDDEN cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int) {
    *value = attribute == cudaDevAttrMultiProcessorCount            ? (int)GC_EMULATOR_MULTIPROCESSORS
             : attribute == cudaDevAttrMaxThreadsPerBlock           ? 1024
             : attribute == cudaDevAttrMaxSharedMemoryPerBlock      ? 48 << 10
             : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? (int)GC_EMULATOR_DYNAMIC_BYTES
             : attribute == cudaDevAttrMaxThreadsPerMultiProcessor  ? 2048
                                                                    : 32;
    return cudaSuccess;
}
HIDDEN cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int) {
    *p = {"gpulab's emulator",
          GC_EMULATOR_MULTIPROCESSORS,
          32,
          1024,
          2048,
          9,
          0,
          48 << 10,
          GC_EMULATOR_DYNAMIC_BYTES,
          1 << 30};
    return cudaSuccess;
}
HIDDEN const char *cudaGetErrorString(cudaError_t error) {
    return error ? "an error of CUDA" : "no error";
}
