/*
 * A target is a folder that exists, by device and inode, and the rest of the path below it. The folder of a path is
 * found by following a symbolic link at the path's end and then leaving out components from the right until stat
 * succeeds. Two paths lead to one file if their targets are equal; a target is kept as a hash of 128 bits.
 */
#include "targets.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MOST = 40, STEP = 4096 /* entries whose targets are looked up at a time */ };

typedef struct target {
    uint64_t a, b;
} target;

void gc_path_normalise(char *path) {
    char *to = path;
    const char *from = path;
    if (*from == '/')
        *to++ = *from++;
    while (*from) {
        size_t length = strcspn(from, "/");
        bool kept = length > 0 && !(length == 1 && *from == '.');
        if (kept) {
            memmove(to, from, length);
            to += length;
        }
        from += length;
        if (*from == '/') {
            from++;
            if (kept)
                *to++ = '/';
        }
    }
    *to = '\0';
}

/* ---- The target of a path ---------------------------------------------------------------------------------------- */

/* FNV-1a (Fowler, Noll & Vo), twice. */
static void mix(target *t, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        t->a = (t->a ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
        t->b = (t->b ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x9e3779b97f4a7c15);
    }
}

/* `kind` keeps targets below a folder apart from files that are known by their own inode. */
static target target_in(dev_t device, ino_t inode, char kind, const char *rest) {
    target t = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x6c62272e07bb0142)};
    uint64_t place[2] = {device, inode};
    mix(&t, place, sizeof place);
    mix(&t, &kind, 1);
    mix(&t, rest, strlen(rest));
    t.a += t.a == 0 && t.b == 0; /* zeros: an empty slot */
    return t;
}

/* Puts `name`, as it stands in the folder of `path`, into a new text. NULL: no memory. */
static char *beside(const char *path, const char *name) {
    const char *slash = *name == '/' ? NULL : strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0, room = folder + strlen(name) + 1;
    char *made = gc_calloc((int64_t)room, 1);
    if (made)
        (void)snprintf(made, room, "%.*s%s", (int)folder, path, name);
    return made;
}

/* Replaces *path by what the symbolic links at its end lead to, and fills in *st if there is a file. */
static bool follow(char **path, bool *there, struct stat *st) {
    for (int links = 0;; links++) {
        char name[PATH_MAX];
        *there = lstat(*path, st) == 0;
        if (!*there || !S_ISLNK(st->st_mode) || links == LINKS_MOST)
            return true;
        ssize_t length = readlink(*path, name, sizeof name - 1);
        if (length < 0)
            return true;
        name[length] = '\0';
        char *next = beside(*path, name);
        if (!next)
            return false;
        free(*path);
        *path = next;
    }
}

/* Returns the slash before another one, or NULL. */
static char *slash_before(char *path, char *slash) {
    while (slash > path)
        if (*--slash == '/')
            return slash;
    return NULL;
}

static bool is_none(target t) {
    return t.a == 0 && t.b == 0;
}

/* Finds the target of a path. *same, if the file exists under several names or is no regular file: the target by its
 * own inode; else zeros. @return false: no memory. */
static bool find_target(const char *given, target *t, target *same) {
    struct stat st;
    bool there;
    char *path = strdup(given);
    *same = *t = (target){0};
    if (!path || !follow(&path, &there, &st)) {
        free(path);
        return false;
    }
    if (there && (st.st_nlink > 1 || !S_ISREG(st.st_mode)))
        *same = target_in(st.st_dev, st.st_ino, 'f', "");
    gc_path_normalise(path);
    for (char *slash = strrchr(path, '/'); slash && is_none(*t); slash = slash_before(path, slash)) {
        *slash = '\0';
        bool found = stat(slash == path ? "/" : path, &st) == 0;
        *slash = '/';
        if (found)
            *t = target_in(st.st_dev, st.st_ino, 'b', slash + 1);
    }
    if (is_none(*t))
        *t = stat(".", &st) == 0 ? target_in(st.st_dev, st.st_ino, 'b', path) : target_in(0, 0, 'b', path);
    free(path);
    return true;
}

/* ---- The conflicts of a manifest --------------------------------------------------------------------------------- */

enum { FREE, BY_OUTPUT, BY_INPUT, BY_RESPONSE };

/* What a thread finds out about an entry. */
typedef struct looked_up {
    target output, same, input, response;
    bool failed;
} looked_up;

typedef struct slot {
    target t;
    int64_t entry;
} slot;

/* The first entry with each output; the number of slots is a power of two, twice the number of entries or more. */
typedef struct table {
    slot *slot; /* NULL: none yet */
    uint64_t mask;
} table;

typedef struct search {
    gc_manifest *manifest;
    const char *folder;
    table by_path, by_inode;
    unsigned char *conflict; /* of each entry: one of the above */
    int64_t *with;           /* and the entry that it conflicts with */
    looked_up *looked_up;    /* STEP of them, */
    int64_t first;           /* from this entry on */
    bool outputs;            /* look up outputs, else inputs and responses */
} search;

static void look_up(void *context, int64_t index, int worker) {
    search *s = context;
    const gc_entry *e = &s->manifest->entry[s->first + index];
    looked_up *l = &s->looked_up[index];
    target unused;
    (void)worker;
    *l = (looked_up){.failed = false};
    if (e->wrong)
        return;
    if (!s->outputs) {
        l->failed = !find_target(e->input, &l->input, &unused) || !find_target(e->response, &l->response, &unused);
        return;
    }
    size_t room = strlen(s->folder) + strlen(e->output) + 2;
    char *path = gc_calloc((int64_t)room, 1);
    l->failed = !path;
    if (path) {
        (void)snprintf(path, room, "%s/%s", s->folder, e->output);
        l->failed = !find_target(path, &l->output, &l->same);
    }
    free(path);
}

/* Returns the slot that holds a target, or the free one for it. */
static slot *slot_of(const table *in, target t) {
    uint64_t at = t.a;
    while (!is_none(in->slot[at & in->mask].t) &&
           (in->slot[at & in->mask].t.a != t.a || in->slot[at & in->mask].t.b != t.b))
        at++;
    return &in->slot[at & in->mask];
}

static bool make_table(table *t, const gc_manifest *m) {
    int64_t slots = gc_power_of_two(gc_max(64, 2 * m->entries));
    t->mask = (uint64_t)slots - 1;
    t->slot = gc_calloc(slots, sizeof *t->slot);
    return t->slot != NULL;
}

static void conflict(search *s, int64_t entry, unsigned char kind, int64_t with) {
    if (s->conflict[entry] == FREE) {
        s->conflict[entry] = kind;
        s->with[entry] = with;
    }
}

/* @return false: no memory */
static bool take_output(search *s, int64_t entry, table *in, target t) {
    if (is_none(t))
        return true;
    if (!in->slot && !make_table(in, s->manifest))
        return false;
    slot *at = slot_of(in, t);
    if (is_none(at->t))
        *at = (slot){t, entry};
    else
        conflict(s, entry, BY_OUTPUT, at->entry);
    return true;
}

/* Refuses the entry that writes over what another one reads. */
static void take_source(search *s, int64_t entry, target t, unsigned char kind) {
    const slot *at = is_none(t) || !s->by_path.slot ? NULL : slot_of(&s->by_path, t);
    if (at && !is_none(at->t) && at->entry != entry)
        conflict(s, at->entry, kind, entry);
}

/* Looks up all entries, STEP at a time: a pool asks the file system, then the table is asked in order. */
static bool pass(search *s, gc_pool *pool, bool outputs) {
    bool good = true;
    s->outputs = outputs;
    for (s->first = 0; s->first < s->manifest->entries && good; s->first += STEP) {
        int64_t count = gc_min(STEP, s->manifest->entries - s->first);
        gc_pool_run(pool, look_up, s, count);
        for (int64_t i = 0; i < count && good; i++) {
            const looked_up *l = &s->looked_up[i];
            good = !l->failed;
            if (good && outputs) {
                good = take_output(s, s->first + i, &s->by_path, l->output) &&
                       take_output(s, s->first + i, &s->by_inode, l->same);
            } else if (good) {
                take_source(s, s->first + i, l->input, BY_INPUT);
                take_source(s, s->first + i, l->response, BY_RESPONSE);
            }
        }
    }
    return good;
}

static bool refuse(const search *s) {
    static const char *const what[] = {[BY_OUTPUT] = "output", [BY_INPUT] = "input", [BY_RESPONSE] = "response"};
    bool good = true;
    for (int64_t i = 0; i < s->manifest->entries && good; i++) {
        char text[160];
        gc_entry *e = &s->manifest->entry[i];
        if (s->conflict[i] == FREE)
            continue;
        (void)snprintf(text, sizeof text, "the output is the same file as the %s of line %lld; name another, not",
                       what[s->conflict[i]], (long long)s->manifest->entry[s->with[i]].line);
        good = gc_entry_refuse(e, text, e->output);
    }
    return good;
}

gpuconv_status gc_refuse_conflicts(gc_manifest *m, const char *folder, int threads, gpuconv_error *error) {
    search s = {.manifest = m, .folder = folder};
    s.conflict = gc_calloc(m->entries, sizeof *s.conflict);
    s.with = gc_calloc(m->entries, sizeof *s.with);
    s.looked_up = gc_calloc(gc_min(STEP, m->entries), sizeof *s.looked_up);
    gc_pool *pool = gc_pool_new(m->entries < 64 ? 1 : threads);
    bool good =
        s.conflict && s.with && s.looked_up && pool && pass(&s, pool, true) && pass(&s, pool, false) && refuse(&s);
    gc_pool_free(pool);
    free(s.by_path.slot);
    free(s.by_inode.slot);
    free(s.conflict);
    free(s.with);
    free(s.looked_up);
    return good ? GPUCONV_OK : gc_fail_memory(error, "the manifest");
}
