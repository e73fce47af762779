/* Page-locked host memory, kept for reuse. */
#include "cuda_pinned.h"

#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

static const int64_t kept_bytes_max = INT64_C(256) << 20;

/* A block of page-locked memory, in use or kept. */
typedef struct block {
    void *memory;
    int64_t bytes;
    bool registered; /* allocated by gc_alloc and then locked */
    bool kept;
    int64_t number; /* of the call that kept it */
} block;

static block *blocks;
static int count, capacity;
static int64_t kept_bytes, calls;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Takes the smallest kept block with `bytes` to twice as many. Returns NULL if there is none. Call it with the mutex.
 */
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

/* Pieces of memory whose pages are given by the operating system when they are first written. */
typedef struct pages {
    char *memory;
    int64_t bytes;
} pages;

enum { PIECE_BYTES = 8 << 20, LARGE_BYTES = 1 << 20, PAGE_BYTES = 4096, THREADS_MAX = 8 };

static void touch(void *context, int64_t index, int worker) {
    const pages *p = context;
    (void)worker;
    for (int64_t i = index * PIECE_BYTES; i < gc_min((index + 1) * PIECE_BYTES, p->bytes); i += PAGE_BYTES)
        p->memory[i] = 0;
}

/* Writes to all pages with several threads: the operating system clears them, which takes longer than locking them. */
static void touch_pages(char *memory, int64_t bytes) {
    const int64_t pieces = gc_divide_up(bytes, PIECE_BYTES);
    gc_pool *pool = pieces > 1 ? gc_pool_new((int)gc_min(gc_min(pieces, THREADS_MAX), gc_processor_count())) : NULL;
    if (pool) /* without one, cudaHostRegister touches them */
        gc_pool_run(pool, touch, &(pages){memory, bytes}, pieces);
    gc_pool_free(pool);
}

/* Allocates a block. A large one is allocated in huge pages and then locked, in a fraction of the driver's time. */
static cudaError_t allocate(block *b) {
    if (b->bytes >= LARGE_BYTES) {
        b->memory = gc_alloc(b->bytes, 1);
        if (!b->memory)
            return cudaErrorMemoryAllocation;
        touch_pages(b->memory, b->bytes);
        const cudaError_t err = cudaHostRegister(b->memory, (size_t)b->bytes, cudaHostRegisterPortable);
        b->registered = !err;
        if (err)
            free(b->memory);
        if (err != cudaErrorNotSupported)
            return err;
        (void)cudaGetLastError();
    }
    return cudaHostAlloc(&b->memory, (size_t)b->bytes, cudaHostAllocPortable);
}

cudaError_t gc_cuda_pinned_new(int64_t bytes, void **memory) {
    block made = {.bytes = gc_max(bytes, 1)};
    cudaError_t err = cudaSuccess;
    pthread_mutex_lock(&mutex);
    *memory = take_kept(made.bytes);
    if (!*memory) {
        err = reserve() ? allocate(&made) : cudaErrorMemoryAllocation;
        if (!err) {
            blocks[count++] = made;
            *memory = made.memory;
        }
    }
    pthread_mutex_unlock(&mutex);
    return err;
}

/* Removes the block that has been kept longest from the list if the kept ones exceed the limit. Returns it; memory
 * NULL: nothing to free. Call it with the mutex. */
static block remove_oldest(void) {
    int oldest = -1;
    for (int i = 0; i < count && kept_bytes > kept_bytes_max; i++)
        if (blocks[i].kept && (oldest < 0 || blocks[i].number < blocks[oldest].number))
            oldest = i;
    if (oldest < 0)
        return (block){.memory = NULL};
    const block b = blocks[oldest];
    kept_bytes -= b.bytes;
    blocks[oldest] = blocks[--count];
    return b;
}

/* Keeps a block. One that exceeds the limit alone is the next to be freed. Call it with the mutex. */
static void keep(void *memory) {
    for (int i = 0; i < count; i++)
        if (blocks[i].memory == memory) {
            blocks[i].kept = true;
            blocks[i].number = blocks[i].bytes > kept_bytes_max ? 0 : ++calls;
            kept_bytes += blocks[i].bytes;
        }
}

void gc_cuda_pinned_free(void *memory) {
    block old = {.memory = memory};
    for (bool first = true; old.memory; first = false) {
        pthread_mutex_lock(&mutex);
        if (first)
            keep(memory);
        old = remove_oldest();
        pthread_mutex_unlock(&mutex);
        if (old.memory && !old.registered) {
            cudaFreeHost(old.memory);
        } else if (old.memory) {
            cudaHostUnregister(old.memory);
            free(old.memory);
        }
    }
}
