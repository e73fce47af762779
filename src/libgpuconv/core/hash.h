/* A hash function for hash tables with string keys: 64-bit FNV-1a (Fowler, Noll & Vo). */
#ifndef GC_CORE_HASH_H
#define GC_CORE_HASH_H

#include <stdint.h>

static inline uint64_t gc_hash(const char *text) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h;
}

#endif
