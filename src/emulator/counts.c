/* Keeps a table of places, each with the addresses of the present warp. */
#include "counts.h"

#include "libgpuconv/core/memory.h"

#include <stdlib.h>
#include <string.h>

enum { WARP = 32, SITES = 4096, MAX_NOTED = 4096, SECTOR = 32, BANKS = 32 };

typedef struct site {
    const void *place;
    gc_site_kind kind;
    unsigned bytes;
    uint32_t executed[WARP]; /* by each lane, in this interval */
    uintptr_t *address;      /* [execution][lane], for the first MAX_NOTED executions */
    uint32_t room;           /* executions */
    bool is_touched;
    int64_t requests, lanes, spent, best;
} site;

static site *sites[SITES]; /* a hash table */
static uint32_t touched[SITES];
static int touched_count;
static uint32_t last_site;

static const void *place_of(uint32_t i) {
    return sites[i] ? sites[i]->place : NULL;
}

uint32_t gc_counts_site(const void *place, gc_site_kind kind) {
    if (place_of(last_site) == place)
        return last_site;
    uint32_t at = (uint32_t)(((uintptr_t)place * UINT64_C(0x9e3779b97f4a7c15)) >> 52);
    for (int tries = 1; sites[at] && sites[at]->place != place && tries < SITES; tries++)
        at = (at + 1) % SITES;
    if (!sites[at] && (sites[at] = gc_calloc(1, sizeof **sites)) != NULL)
        *sites[at] = (site){.place = place, .kind = kind};
    return last_site = at;
}

const void *gc_counts_place(uint32_t at) {
    return place_of(at % SITES);
}

/* Makes room for another execution. Returns false if it is not noted. */
static bool has_room(site *s, uint32_t execution) {
    if (execution < s->room)
        return true;
    uint32_t room = s->room ? 2 * s->room : 16;
    uintptr_t *grown = execution < MAX_NOTED ? realloc(s->address, (size_t)room * WARP * sizeof *grown) : NULL;
    if (!grown)
        return false;
    s->address = grown;
    s->room = room;
    return true;
}

void gc_counts_note(uint32_t at, int lane, uintptr_t address, unsigned bytes) {
    site *s = sites[at];
    if (!s)
        return;
    if (!s->is_touched) {
        s->is_touched = true;
        touched[touched_count++] = at;
    }
    uint32_t execution = s->executed[lane]++;
    if (s->kind != GC_SITE_BLOCK && has_room(s, execution)) {
        s->address[execution * WARP + (unsigned)lane] = address;
        s->bytes = bytes;
    }
}

/* Returns how many different sectors `count` addresses lie in. */
static int count_sectors(const uintptr_t *address, int count, unsigned bytes) {
    uintptr_t sector[4 * WARP];
    int found = 0;
    for (int i = 0; i < count; i++)
        for (uintptr_t s = address[i] / SECTOR; s <= (address[i] + bytes - 1) / SECTOR && found < 4 * WARP; s++) {
            int k = found - 1;
            while (k >= 0 && sector[k] != s)
                k--;
            if (k < 0)
                sector[found++] = s;
        }
    return found;
}

/* Returns the cycles that shared memory takes for `count` addresses: the number of different words of the bank that has
 * most of them. */
static int count_cycles(const uintptr_t *address, int count) {
    uintptr_t word[BANKS][WARP];
    int words[BANKS] = {0}, most = 0;
    for (int i = 0; i < count; i++) {
        uintptr_t w = address[i] / 4;
        unsigned bank = (unsigned)(w % BANKS);
        int k = 0;
        while (k < words[bank] && word[bank][k] != w)
            k++;
        if (k < words[bank])
            continue;
        word[bank][words[bank]++] = w;
        most = words[bank] > most ? words[bank] : most;
    }
    return most;
}

/* Adds one execution by a warp. */
static void add_request(site *s, uint32_t execution) {
    uintptr_t address[WARP];
    int count = 0;
    for (int lane = 0; lane < WARP; lane++)
        if (s->executed[lane] > execution)
            address[count++] = s->address[execution * WARP + (unsigned)lane];
    s->requests++;
    if (s->kind == GC_SITE_GLOBAL) {
        int spent = count_sectors(address, count, s->bytes);
        int best = (count * (int)s->bytes + SECTOR - 1) / SECTOR;
        s->spent += spent;
        s->best += best < spent ? best : spent;
    } else {
        int group_size = s->bytes > 4 ? WARP * 4 / (int)s->bytes : WARP; /* wide accesses are made in parts */
        for (int i = 0; i < count && group_size > 0; i += group_size) {
            s->spent += count_cycles(address + i, count - i < group_size ? count - i : group_size);
            s->best++;
        }
    }
}

void gc_counts_flush(void) {
    for (int i = 0; i < touched_count; i++) {
        site *s = sites[touched[i]];
        uint32_t most = 0;
        int64_t sum = 0;
        for (int lane = 0; lane < WARP; lane++) {
            sum += s->executed[lane];
            most = s->executed[lane] > most ? s->executed[lane] : most;
        }
        s->lanes += sum;
        if (s->kind == GC_SITE_BLOCK) {
            s->requests += most;
            s->spent += (int64_t)WARP * most;
            s->best += sum;
        } else {
            for (uint32_t k = 0; k < most && k < s->room; k++)
                add_request(s, k);
        }
        memset(s->executed, 0, sizeof s->executed);
        s->is_touched = false;
    }
    touched_count = 0;
}

void gc_counts_clear(void) {
    for (int i = 0; i < SITES; i++) {
        if (sites[i])
            free(sites[i]->address);
        free(sites[i]);
        sites[i] = NULL;
    }
    touched_count = 0;
}

gc_sum gc_counts_sum(gc_site_kind kind) {
    gc_sum sum = {0};
    int64_t lost = 0;
    for (int i = 0; i < SITES; i++) {
        const site *s = sites[i];
        if (!s || s->kind != kind)
            continue;
        sum.requests += s->requests;
        sum.lanes += s->lanes;
        sum.spent += s->spent;
        sum.best += s->best;
        if (s->spent - s->best > lost) {
            lost = s->spent - s->best;
            sum.worst = s->place;
            sum.worst_ratio =
                kind == GC_SITE_BLOCK ? (double)s->best / (double)s->spent : (double)s->spent / (double)s->requests;
        }
    }
    return sum;
}
