/* Page-locked host memory, kept for reuse. */
#include "cuda_pinned.h"

#include "libgpuconv/core/memory.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

static const int64_t kept_bytes_max = INT64_C(256) << 20;

/* A block of page-locked memory, in use or kept. */
typedef struct block {
    void *memory;
    int64_t bytes;
    gc_cuda_pinned_kind kind;
    bool kept;
} block;

static block *blocks;
static int count, capacity;
static int64_t kept_bytes;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Takes the smallest kept block of this kind with `bytes` to twice as many. Returns NULL if there is none. Call it with
 * the mutex. */
static void *take_kept(gc_cuda_pinned_kind kind, int64_t bytes) {
    block *best = NULL;
    for (int i = 0; i < count; i++)
        if (blocks[i].kept && blocks[i].kind == kind && blocks[i].bytes >= bytes &&
            blocks[i].bytes <= 2 * bytes + 65536 && (!best || blocks[i].bytes < best->bytes))
            best = &blocks[i];
    if (!best)
        return NULL;
    best->kept = false;
    kept_bytes -= best->bytes;
    return best->memory;
}

/* Makes room for one more block. Call it with the mutex. */
static bool reserve(void) {
    if (count < capacity)
        return true;
    int more = capacity ? 2 * capacity : 32;
    block *list = realloc(blocks, (size_t)more * sizeof *list);
    if (!list)
        return false;
    blocks = list;
    capacity = more;
    return true;
}

static cudaError_t allocate(gc_cuda_pinned_kind kind, int64_t bytes, void **memory) {
    if (kind == GC_CUDA_PINNED)
        return cudaHostAlloc(memory, (size_t)bytes, cudaHostAllocPortable);
    *memory = gc_calloc(bytes, 1);
    if (!*memory)
        return cudaErrorMemoryAllocation;
    cudaError_t err = cudaHostRegister(*memory, (size_t)bytes, cudaHostRegisterPortable);
    if (err)
        free(*memory);
    return err;
}

cudaError_t gc_cuda_pinned_new(gc_cuda_pinned_kind kind, int64_t bytes, void **memory) {
    const int64_t size = gc_max(bytes, 1);
    cudaError_t err = cudaSuccess;
    pthread_mutex_lock(&mutex);
    *memory = take_kept(kind, size);
    if (!*memory) {
        err = reserve() ? allocate(kind, size, memory) : cudaErrorMemoryAllocation;
        if (err)
            *memory = NULL;
        else
            blocks[count++] = (block){*memory, size, kind, false};
    }
    pthread_mutex_unlock(&mutex);
    return err;
}

void gc_cuda_pinned_free(void *memory) {
    block found = {0};
    bool free_now = false;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < count && !found.memory; i++) {
        if (blocks[i].memory != memory)
            continue;
        found = blocks[i];
        free_now = kept_bytes + found.bytes > kept_bytes_max;
        blocks[i].kept = !free_now;
        kept_bytes += free_now ? 0 : found.bytes;
        if (free_now)
            blocks[i] = blocks[--count];
    }
    pthread_mutex_unlock(&mutex);
    if (free_now && found.kind == GC_CUDA_PINNED) {
        cudaFreeHost(memory);
    } else if (free_now) {
        cudaHostUnregister(memory);
        free(memory);
    }
}
