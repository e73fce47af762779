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
    bool kept;
} block;

static block *blocks;
static int count, capacity;
static int64_t kept_bytes;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Takes the smallest kept block of `bytes` to twice as many. Returns NULL if there is none. Call it with the mutex. */
static void *take_kept(int64_t bytes) {
    block *best = NULL;
    for (int i = 0; i < count; i++)
        if (blocks[i].kept && blocks[i].bytes >= bytes && blocks[i].bytes <= 2 * bytes + 65536 &&
            (!best || blocks[i].bytes < best->bytes))
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

cudaError_t gc_cuda_pinned_new(int64_t bytes, void **memory) {
    const int64_t size = gc_max(bytes, 1);
    cudaError_t err = cudaSuccess;
    pthread_mutex_lock(&mutex);
    *memory = take_kept(size);
    if (!*memory) {
        err = reserve() ? cudaHostAlloc(memory, (size_t)size, cudaHostAllocPortable) : cudaErrorMemoryAllocation;
        if (!err)
            blocks[count++] = (block){*memory, size, false};
    }
    pthread_mutex_unlock(&mutex);
    return err;
}

void gc_cuda_pinned_free(void *memory) {
    bool free_now = false;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < count; i++) {
        if (blocks[i].memory != memory)
            continue;
        free_now = kept_bytes + blocks[i].bytes > kept_bytes_max;
        blocks[i].kept = !free_now;
        kept_bytes += free_now ? 0 : blocks[i].bytes;
        if (free_now)
            blocks[i] = blocks[--count];
        break;
    }
    pthread_mutex_unlock(&mutex);
    if (free_now)
        cudaFreeHost(memory);
}
