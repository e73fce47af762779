/* A hash function for hash tables with string keys: 64-bit FNV-1a (Fowler, Noll & Vo). */
#ifndef GC_CORE_HASH_H
#define GC_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t gc_hash_bytes(const char *bytes, size_t count) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++)
        h = (h ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return h;
}

static inline uint64_t gc_hash(const char *text) {
    return gc_hash_bytes(text, strlen(text));
}

#endif
