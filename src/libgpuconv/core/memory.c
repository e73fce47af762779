/* Aligned, zeroed, overflow-checked allocation. */
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* From here on whole huge pages pay: fewer faults and fewer address translations for buffers that are swept. */
static const int64_t huge_page = INT64_C(2) << 20;

void *gc_calloc(int64_t count, int64_t size) {
    int64_t bytes;
    if (count < 0 || size < 0 || __builtin_mul_overflow(count, size, &bytes) || bytes > INT64_MAX - 2 * huge_page)
        return NULL;
    int64_t alignment = bytes >= 2 * huge_page ? huge_page : GC_ALIGNMENT;
    bytes = gc_round_up(bytes ? bytes : 1, GC_ALIGNMENT);
    void *p = NULL;
    if (posix_memalign(&p, (size_t)alignment, (size_t)bytes) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (alignment == huge_page)
        (void)madvise(p, (size_t)bytes, MADV_HUGEPAGE); /* a hint: nothing is wrong when it is not taken */
#endif
    return memset(p, 0, (size_t)bytes);
}
