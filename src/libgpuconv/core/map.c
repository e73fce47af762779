/* Hash table from texts to pointers. */
#include "map.h"

#include "memory.h"

#include <stdlib.h>
#include <string.h>

/* Returns the slot of a key, or the free one for it. */
static gc_map_slot *find(const gc_map *m, const char *key, size_t length, uint32_t hash) {
    for (int64_t at = hash & (m->slots - 1);; at = (at + 1) & (m->slots - 1)) {
        gc_map_slot *s = &m->slot[at];
        if (!s->key || (s->hash == hash && s->length == length && memcmp(s->key, key, length) == 0))
            return s;
    }
}

static uint32_t hash_of(const char *key, size_t length) {
    const uint64_t hash = gc_hash_bytes(key, length);
    return (uint32_t)(hash ^ hash >> 32);
}

/* Doubles the slots. Returns false without memory. */
static bool grow(gc_map *m) {
    gc_map larger = {.slots = gc_max(64, 2 * m->slots), .count = m->count};
    larger.slot = gc_calloc(larger.slots, sizeof *larger.slot);
    for (int64_t i = 0; larger.slot && i < m->slots; i++)
        if (m->slot[i].key)
            *find(&larger, m->slot[i].key, m->slot[i].length, m->slot[i].hash) = m->slot[i];
    if (!larger.slot)
        return false;
    free(m->slot);
    *m = larger;
    return true;
}

void **gc_map_put(gc_map *m, const char *key, size_t length) {
    const uint32_t hash = hash_of(key, length);
    if (length > UINT32_MAX || (4 * (m->count + 1) > 3 * m->slots && !grow(m)))
        return NULL;
    gc_map_slot *s = find(m, key, length, hash);
    if (!s->key) {
        *s = (gc_map_slot){key, (uint32_t)length, hash, NULL};
        m->count++;
    }
    return &s->value;
}

void *gc_map_get(const gc_map *m, const char *key, size_t length) {
    return m->slot ? find(m, key, length, hash_of(key, length))->value : NULL;
}

bool gc_map_has(const gc_map *m, const char *key, size_t length) {
    return m->slot && find(m, key, length, hash_of(key, length))->key;
}

void gc_map_remove(gc_map *m, const char *key, size_t length) {
    int64_t hole = find(m, key, length, hash_of(key, length)) - m->slot;
    const int64_t mask = m->slots - 1;
    m->slot[hole].key = NULL;
    m->count--;
    for (int64_t at = (hole + 1) & mask; m->slot[at].key; at = (at + 1) & mask)
        if (((at - m->slot[at].hash) & mask) >= ((at - hole) & mask)) { /* its search would end in the hole */
            m->slot[hole] = m->slot[at];
            m->slot[at].key = NULL;
            hole = at;
        }
    if (!m->slot[hole].key)
        m->slot[hole].value = NULL;
}

void gc_map_free(gc_map *m) {
    free(m->slot);
    *m = (gc_map){NULL, 0, 0};
}
