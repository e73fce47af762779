/* A hash table from texts to pointers, which finds a key by its bytes. Slots are probed one after the other (Knuth, The
 * Art of Computer Programming, volume 3, algorithms 6.4 L and R). All zero: empty. */
#ifndef GC_CORE_MAP_H
#define GC_CORE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct gc_map_slot {
    const char *key; /* not owned, and not terminated; NULL: a free slot */
    uint32_t length, hash;
    void *value;
} gc_map_slot;

typedef struct gc_map {
    gc_map_slot *slot;
    int64_t slots, count; /* slots: a power of two, at least a quarter of which are free */
} gc_map;

/* Returns the place of a key's value, which is NULL if the key was added now. The key must stay as long as the table;
 * the place is valid until the next call. NULL: out of memory. */
void **gc_map_put(gc_map *map, const char *key, size_t length);

/* Returns the value of a key, NULL if the table does not have it; and whether it has it. */
void *gc_map_get(const gc_map *map, const char *key, size_t length);
bool gc_map_has(const gc_map *map, const char *key, size_t length);

/* Removes a key that the table has. */
void gc_map_remove(gc_map *map, const char *key, size_t length);

/* Frees the table; keys and values stay. */
void gc_map_free(gc_map *map);

/* ---- Hashes: 64-bit FNV-1a (Fowler, Noll & Vo) ---- */

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
