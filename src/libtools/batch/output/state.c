/* Determines, prints, parses and compares states of files. */
#include "state.h"

#include "libgpuconv/core/random.h"
#include "libgpuconv/ir/object.h"
#include "libgpuconv/ir/prepare.h"
#include "libtools/room/room_set.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *gc_shard_split(const char *path, char *shard, size_t room) {
    struct stat st;
    for (const char *at = path; (at = strstr(at, ".tar/")); at++) {
        size_t length = (size_t)(at - path) + 4;
        if (length >= room)
            return NULL;
        memcpy(shard, path, length);
        shard[length] = '\0';
        if (stat(shard, &st) == 0 && S_ISREG(st.st_mode))
            return path[length + 1] ? path + length + 1 : NULL;
    }
    return NULL;
}

/* Mixes a word into a digest. */
static uint64_t mix(uint64_t digest, uint64_t word) {
    return gc_mix_bits((digest ^ word) + GC_SPLITMIX_STEP);
}

/* Mixes bytes into a digest; the last word is padded with zeros. */
static uint64_t mix_bytes(uint64_t digest, const void *bytes, int64_t count) {
    uint64_t word;
    for (int64_t at = 0; at < count; at += (int64_t)sizeof word) {
        int64_t left = count - at;
        word = 0;
        memcpy(&word, (const char *)bytes + at, left < (int64_t)sizeof word ? (size_t)left : sizeof word);
        digest = mix(digest, word);
    }
    return digest;
}

/* Return the state of a file without a digest; that of a shard for a path inside it. */
static gc_state state_of(const struct stat *st) {
    return (gc_state){.size = S_ISREG(st->st_mode) ? (int64_t)st->st_size : -1,
                      .seconds = st->st_mtim.tv_sec,
                      .nanoseconds = st->st_mtim.tv_nsec,
                      .device = st->st_dev,
                      .inode = st->st_ino};
}

gc_state gc_state_of_path(const char *path) {
    struct stat st;
    char shard[4096];
    if (stat(path, &st) == 0)
        return state_of(&st);
    if (gc_shard_split(path, shard, sizeof shard) && stat(shard, &st) == 0)
        return state_of(&st);
    return (gc_state){.size = -1};
}

gc_state gc_state_join(const gc_state *a, const gc_state *b) {
    gc_state joined = *a;
    if (a->size < 0 || b->size < 0 || a->size > INT64_MAX - b->size)
        return (gc_state){.size = -1};
    joined.size += b->size;
    joined.digest = mix(a->digested ? a->digest : 0, (uint64_t)b->seconds);
    joined.digest = mix(joined.digest, (uint64_t)b->nanoseconds);
    joined.digest = mix(joined.digest, b->digested ? b->digest : (uint64_t)b->size);
    joined.digested = true;
    return joined;
}

gc_state gc_state_of_response(const char *response) {
    const char *path = gc_response_path(response);
    gpuconv_ir *ir;
    if (!path)
        return (gc_state){.size = 0};
    gc_state state = gc_state_of_path(path);
    if (state.size < 0 || !gc_is_matrix(path))
        return state;
    if (gpuconv_ir_load_matrix(path, 48000, &ir, NULL) != GPUCONV_OK)
        return (gc_state){.size = -1};
    state.digested = true;
    state.digest = mix_bytes(mix(0, (uint64_t)ir->frames), &ir->rate, sizeof ir->rate);
    state.digest = mix_bytes(state.digest, &ir->lead, sizeof ir->lead);
    state.digest = mix_bytes(state.digest, ir->route, (int64_t)sizeof *ir->route * ir->routes);
    state.digest = mix_bytes(state.digest, ir->taps, (int64_t)sizeof *ir->taps * ir->planes * ir->frames);
    gpuconv_ir_free(ir);
    return state;
}

void gc_state_print(const gc_state *s, char text[GC_STATE_TEXT]) {
    const int n =
        snprintf(text, GC_STATE_TEXT, "%" PRId64 "@%" PRId64 ".%09" PRId64, s->size, s->seconds, s->nanoseconds);
    if (s->digested)
        (void)snprintf(text + n, GC_STATE_TEXT - (size_t)n, "#%016" PRIx64, s->digest);
}

/* Reads a decimal number behind the character `mark` and moves *at behind it. */
static bool parse_signed(const char **at, char mark, int64_t *value) {
    char *end;
    if (mark && *(*at)++ != mark)
        return false;
    *value = strtoll(*at, &end, 10);
    bool found = end != *at;
    *at = end;
    return found;
}

bool gc_state_parse(const char *text, gc_state *s) {
    char again[GC_STATE_TEXT];
    const char *at = text;
    gc_state t = {.size = -1};
    *s = t;
    if (!parse_signed(&at, 0, &t.size) || !parse_signed(&at, '@', &t.seconds) ||
        !parse_signed(&at, '.', &t.nanoseconds))
        return false;
    t.digested = *at == '#';
    if (t.digested)
        t.digest = strtoull(at + 1, NULL, 16);
    if (t.size < 0)
        return false;
    gc_state_print(&t, again); /* refuses other spellings of the same numbers, and what follows them */
    if (strcmp(again, text) != 0)
        return false;
    *s = t;
    return true;
}

bool gc_state_same(const gc_state *a, const gc_state *b) {
    return a->size >= 0 && a->size == b->size && a->seconds == b->seconds && a->nanoseconds == b->nanoseconds &&
           a->digested == b->digested && (!a->digested || a->digest == b->digest);
}
