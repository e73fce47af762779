/*
 * Finds paths that lead to the same file. The target of a path is an existing folder, identified by device and inode,
 * and the rest of the path below it. To find the folder, symbolic links at the end of the path are followed, then
 * components are removed from the right until stat succeeds. Two paths lead to one file if their targets are equal; a
 * target is stored as a hash of 128 bits.
 */
#include "targets.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/ir/prepare.h"
#include "libgpuconv/ir/read_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40, STEP = 4096 /* entries whose targets are looked up at a time */ };

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

/* Adds bytes to two hashes of the kind FNV-1a (Fowler, Noll & Vo), with different multipliers. */
static void mix(target *t, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        /* The analyzer does not follow bytes of a wider object: NOLINTNEXTLINE(clang-analyzer-core.*) */
        t->a = (t->a ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
        t->b = (t->b ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x9e3779b97f4a7c15);
    }
}

/* Returns the hash of a target. `kind` separates targets below a folder from files that their own inode identifies. */
static target target_in(dev_t device, ino_t inode, char kind, const char *rest) {
    target t = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x6c62272e07bb0142)};
    uint64_t place[2] = {device, inode};
    mix(&t, place, sizeof place);
    mix(&t, &kind, 1);
    mix(&t, rest, strlen(rest));
    t.a += t.a == 0 && t.b == 0; /* zeros: an empty slot */
    return t;
}

/* Resolves `name` relative to the folder of `path`; to be freed. NULL: out of memory. */
static char *resolve_beside(const char *path, const char *name) {
    const char *slash = *name == '/' ? NULL : strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0, room = folder + strlen(name) + 1;
    char *made = gc_calloc((int64_t)room, 1);
    if (made)
        (void)snprintf(made, room, "%.*s%s", (int)folder, path, name);
    return made;
}

/* Replaces *path by the target of the symbolic links at its end. *exists: it is a file, described by *st.
 * @return false: out of memory */
static bool follow_links(char **path, bool *exists, struct stat *st) {
    for (int links = 0;; links++) {
        char name[PATH_MAX];
        *exists = lstat(*path, st) == 0;
        if (!*exists || !S_ISLNK(st->st_mode) || links == LINKS_MAX)
            return true;
        ssize_t length = readlink(*path, name, sizeof name - 1);
        if (length < 0)
            return true;
        name[length] = '\0';
        char *next = resolve_beside(*path, name);
        if (!next)
            return false;
        free(*path);
        *path = next;
    }
}

/* Returns the last slash before `slash`, or NULL. */
static char *slash_before(const char *path, char *slash) {
    while (slash > path)
        if (*--slash == '/')
            return slash;
    return NULL;
}

static bool is_none(target t) {
    return t.a == 0 && t.b == 0;
}

/* Finds the target of a path. *by_inode: a second target from the file's own inode, if the file has several names or is
 * not a regular file; else zeros. @return false: out of memory */
static bool find_target(const char *given, target *t, target *by_inode) {
    struct stat st = {0};
    bool exists;
    char *path = strdup(given);
    *by_inode = *t = (target){0};
    if (!path || !follow_links(&path, &exists, &st)) {
        free(path);
        return false;
    }
    if (exists && (st.st_nlink > 1 || !S_ISREG(st.st_mode)))
        *by_inode = target_in(st.st_dev, st.st_ino, 'f', "");
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

enum { FREE, BY_OUTPUT, BY_INPUT, BY_RESPONSE, BY_NOISE };

/* The targets of a file that an entry reads. */
typedef struct source_target {
    target path, by_inode;
    unsigned char kind; /* BY_INPUT, BY_RESPONSE or BY_NOISE */
} source_target;

/* The targets of one entry. */
typedef struct entry_targets {
    target output, output_by_inode, early, early_by_inode;
    source_target *source;
    int sources;
    bool err;
} entry_targets;

typedef struct slot {
    target t;
    int64_t entry;
} slot;

/* Hash table of the first entry with each output or matrix; at least twice as many slots, a power of two. */
typedef struct table {
    slot *slot; /* NULL: empty */
    uint64_t mask;
} table;

typedef struct search {
    gc_manifest *manifest;
    const char *folder;
    table by_path, by_inode;
    table matrices;          /* the matrices whose files have been checked */
    unsigned char *conflict; /* kind of each entry's conflict, one of the constants above */
    int64_t *with;           /* the entry that it conflicts with */
    entry_targets *targets;  /* of STEP entries, */
    int64_t first;           /* beginning with this one */
    bool outputs;            /* find the targets of outputs, else of inputs and responses */
} search;

/* Finds the target of a file in the folder of the outputs. @return false: out of memory */
static bool find_output(const search *s, const char *output, target *t, target *by_inode) {
    size_t room = strlen(s->folder) + strlen(output) + 2;
    char *path = gc_calloc((int64_t)room, 1);
    if (!path)
        return false;
    (void)snprintf(path, room, "%s/%s", s->folder, output);
    bool good = find_target(path, t, by_inode);
    free(path);
    return good;
}

/* Returns the number of an entry's responses, those in series included, and the name of one. */
static int count_responses(const gc_entry *e) {
    return gc_entry_sources(e) + gc_entry_recipe(e)->preparation.series_count;
}

static const char *find_response(const gc_entry *e, int i) {
    const int sources = gc_entry_sources(e);
    return i < sources ? gc_entry_source(e, i).response : gc_entry_recipe(e)->preparation.series[i - sources];
}

/* Adds a file that an entry reads. @return false: out of memory */
static bool add_source(entry_targets *l, const char *path, unsigned char kind) {
    source_target *to = &l->source[l->sources++];
    to->kind = kind;
    return find_target(path, &to->path, &to->by_inode);
}

/* Finds the targets of all files that an entry reads. @return false: out of memory */
static bool find_sources(const gc_entry *e, entry_targets *l) {
    const char *noise = gc_entry_noise(e);
    l->source = gc_calloc((int64_t)gc_entry_sources(e) + count_responses(e) + 1, sizeof *l->source);
    bool good = l->source && (!noise || add_source(l, noise, BY_NOISE));
    for (int i = 0; i < gc_entry_sources(e) && good; i++)
        good = add_source(l, gc_entry_source(e, i).input, BY_INPUT);
    for (int i = 0; i < count_responses(e) && good; i++)
        good = add_source(l, find_response(e, i), BY_RESPONSE);
    return good;
}

/* Finds the targets of one entry; runs on a thread of the pool. */
static void find_entry_targets(void *context, int64_t index, int worker) {
    search *s = context;
    const gc_entry *e = &s->manifest->entry[s->first + index];
    entry_targets *l = &s->targets[index];
    const char *early = gc_entry_early(e);
    (void)worker;
    *l = (entry_targets){.err = false};
    if (e->refusal)
        return;
    if (!s->outputs)
        l->err = !find_sources(e, l);
    else
        l->err = !find_output(s, e->output, &l->output, &l->output_by_inode) ||
                 (early && !find_output(s, early, &l->early, &l->early_by_inode));
}

/* Returns the slot that holds a target, or the free one for it. */
static slot *slot_of(const table *in, target t) {
    uint64_t at = t.a;
    while (!is_none(in->slot[at & in->mask].t) &&
           (in->slot[at & in->mask].t.a != t.a || in->slot[at & in->mask].t.b != t.b))
        at++;
    return &in->slot[at & in->mask];
}

/* Makes a table for the outputs of all entries, or for their responses. */
static bool make_table(table *t, const gc_manifest *m, bool responses) {
    int64_t most = 0;
    for (int64_t i = 0; i < m->entries; i++)
        most += responses ? count_responses(&m->entry[i]) : 1 + (gc_entry_early(&m->entry[i]) != NULL);
    int64_t slots = gc_power_of_two(gc_max(64, 2 * most));
    t->mask = (uint64_t)slots - 1;
    t->slot = gc_calloc(slots, sizeof *t->slot);
    return t->slot != NULL;
}

/* Records the first conflict of an entry. */
static void add_conflict(search *s, int64_t entry, unsigned char kind, int64_t with) {
    if (s->conflict[entry] == FREE) {
        s->conflict[entry] = kind;
        s->with[entry] = with;
    }
}

/* Inserts an output, or records that an earlier entry has it. @return false: out of memory */
static bool add_output(search *s, int64_t entry, table *in, target t) {
    if (is_none(t))
        return true;
    if (!in->slot && !make_table(in, s->manifest, false))
        return false;
    slot *at = slot_of(in, t);
    if (is_none(at->t))
        *at = (slot){t, entry};
    else
        add_conflict(s, entry, BY_OUTPUT, at->entry);
    return true;
}

/* Records a conflict of the entry, if any, whose output is a file that this entry reads. An entry's output may be its
 * own input, unless the entry reads or writes more than that. */
static void check_source(search *s, int64_t entry, const table *in, target t, unsigned char kind) {
    const slot *at = is_none(t) || !in->slot ? NULL : slot_of(in, t);
    const gc_entry *e = &s->manifest->entry[entry];
    const bool more = gc_entry_noise(e) || gc_entry_early(e) || gc_entry_sources(e) > 1;
    if (at && !is_none(at->t) && (at->entry != entry || kind != BY_INPUT || more))
        add_conflict(s, at->entry, kind, entry);
}

/* The files of a matrix that an entry reads. */
typedef struct matrix_files {
    search *search;
    int64_t entry;
    bool good; /* false: out of memory */
} matrix_files;

static void check_matrix_file(void *context, const char *path) {
    matrix_files *m = context;
    target t, by_inode;
    m->good = m->good && find_target(path, &t, &by_inode);
    if (!m->good)
        return;
    check_source(m->search, m->entry, &m->search->by_path, t, BY_RESPONSE);
    check_source(m->search, m->entry, &m->search->by_inode, by_inode, BY_RESPONSE);
}

/* Checks the files that the matrices of an entry name, of each matrix once. @return false: out of memory */
static bool check_matrices(search *s, int64_t entry) {
    const gc_entry *e = &s->manifest->entry[entry];
    matrix_files m = {s, entry, true};
    for (int i = 0; i < count_responses(e) && m.good; i++) {
        const char *path = find_response(e, i);
        target t, by_inode;
        if (e->refusal || !gc_is_matrix(path))
            continue;
        if ((!s->matrices.slot && !make_table(&s->matrices, s->manifest, true)) || !find_target(path, &t, &by_inode))
            return false;
        slot *at = slot_of(&s->matrices, t);
        if (!is_none(at->t))
            continue;
        *at = (slot){t, entry};
        gc_ir_visit_files(path, check_matrix_file, &m);
    }
    return m.good;
}

/* Enters the outputs of an entry into the tables. @return false: out of memory */
static bool add_outputs(search *s, int64_t entry, const entry_targets *l) {
    return add_output(s, entry, &s->by_path, l->output) && add_output(s, entry, &s->by_inode, l->output_by_inode) &&
           add_output(s, entry, &s->by_path, l->early) && add_output(s, entry, &s->by_inode, l->early_by_inode);
}

/* Checks the files that an entry reads. @return false: out of memory */
static bool check_sources(search *s, int64_t entry, const entry_targets *l) {
    for (int i = 0; i < l->sources; i++) {
        const source_target *source = &l->source[i];
        check_source(s, entry, &s->by_path, source->path, source->kind);
        check_source(s, entry, &s->by_inode, source->by_inode, source->kind);
    }
    return check_matrices(s, entry);
}

/* Checks all entries, STEP at a time: a pool of threads finds the targets, then the tables are updated in the order of
 * the entries. @return false: out of memory */
static bool check_entries(search *s, gc_pool *pool, bool outputs) {
    bool good = true;
    s->outputs = outputs;
    for (s->first = 0; s->first < s->manifest->entries && good; s->first += STEP) {
        int64_t count = gc_min(STEP, s->manifest->entries - s->first);
        gc_pool_run(pool, find_entry_targets, s, count);
        const bool cancelled = gc_cancelled(); /* the pool has skipped entries then */
        for (int64_t i = 0; i < count && good && !cancelled; i++) {
            const entry_targets *l = &s->targets[i];
            good = !l->err;
            if (good && outputs)
                good = add_outputs(s, s->first + i, l);
            else if (good)
                good = check_sources(s, s->first + i, l);
        }
        for (int64_t i = 0; i < count; i++) {
            free(s->targets[i].source);
            s->targets[i].source = NULL;
        }
        if (cancelled)
            break;
    }
    return good;
}

/* Refuses the entries with a conflict. @return false: out of memory */
static bool refuse_conflicts(const search *s) {
    static const char *const what[] = {
        [BY_OUTPUT] = "output", [BY_INPUT] = "input", [BY_RESPONSE] = "response", [BY_NOISE] = "noise"};
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
    s.targets = gc_calloc(gc_min(STEP, m->entries), sizeof *s.targets);
    gc_pool *pool = gc_pool_new(m->entries < 64 ? 1 : threads);
    bool good = s.conflict && s.with && s.targets && pool && check_entries(&s, pool, true) &&
                check_entries(&s, pool, false) && (gc_cancelled() || refuse_conflicts(&s));
    gc_pool_free(pool);
    free(s.by_path.slot);
    free(s.by_inode.slot);
    free(s.matrices.slot);
    free(s.conflict);
    free(s.with);
    free(s.targets);
    if (good && gc_cancelled())
        return gc_fail_cancelled(error, "the manifest");
    return good ? GPUCONV_OK : gc_fail_memory(error, "the manifest");
}
