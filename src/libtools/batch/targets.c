/*
 * Finds paths that lead to the same file. A target, the hash of a path's place, has 128 bits: two paths lead to one
 * file if their targets are equal.
 */
#include "targets.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/ir/prepare.h"
#include "libgpuconv/ir/read_files.h"
#include "place.h"
#include "shard_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 4096 /* entries whose targets are looked up at a time */ };

typedef struct target {
    uint64_t a, b;
} target;

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

static bool is_none(target t) {
    return t.a == 0 && t.b == 0;
}

/* ---- The conflicts of a manifest --------------------------------------------------------------------------------- */

/* Kinds of conflicts: the output is a file of the batch itself, another entry's file, or one that several entries read.
 */
enum { FREE, BY_BATCH, BY_OUTPUT, BY_INPUT, BY_RESPONSE, BY_NOISE, BY_LIST };

/* A file that an entry reads. */
typedef struct source {
    const char *path;
    target t, by_inode;
    unsigned char kind; /* BY_INPUT, BY_RESPONSE, BY_NOISE or BY_LIST */
    bool packed;        /* it is a shard, of which the entry reads a member */
    bool replaced;      /* the batch replaces it by a file of its own */
} source;

/* The targets of one entry. */
typedef struct entry_targets {
    target output, output_by_inode, early, early_by_inode;
    source *source;
    int sources;
    bool reserved; /* an output is a file of the batch itself */
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
    const gc_own_files *own;
    gc_place folder; /* of a file in the folder; its rest without the file's name is `below` */
    size_t below;
    table by_path, by_inode;
    table matrices;          /* the matrices whose files have been checked */
    gpuconv_error replaced;  /* the first file that is read and that the batch replaces by one of its own; 0: none */
    unsigned char *conflict; /* kind of each entry's conflict, one of the constants above */
    int64_t *with;           /* the entry that it conflicts with */
    entry_targets *targets;  /* of STEP entries, */
    int64_t first;           /* beginning with this one */
    bool outputs;            /* find the targets of outputs, else of inputs and responses */
} search;

/* Returns the target of a place. *by_inode: a second one from the file's own inode, if the file has several names or is
 * not a regular file; else zeros. */
static target target_of(const gc_place *p, target *by_inode) {
    *by_inode = p->several_names ? target_in(p->file.st_dev, p->file.st_ino, 'f', "") : (target){0};
    return target_in(p->device, p->inode, 'b', p->rest);
}

/* Returns the path below the folder of the outputs; NULL: the place is elsewhere. */
static const char *below_folder(const search *s, const gc_place *p) {
    const bool below =
        p->device == s->folder.device && p->inode == s->folder.inode && strncmp(p->rest, s->folder.rest, s->below) == 0;
    return below ? p->rest + s->below : NULL;
}

/* Finds the targets of an output. *reserved is set if it is a file of the batch itself. @return false: out of memory */
static bool find_output(const search *s, const char *output, target *t, target *by_inode, bool *reserved) {
    gc_place p;
    size_t room = strlen(s->own->folder) + strlen(output) + 2;
    char *path = gc_calloc((int64_t)room, 1);
    if (!path)
        return false;
    (void)snprintf(path, room, "%s/%s", s->own->folder, output);
    bool good = gc_place_find(path, &p);
    free(path);
    if (!good)
        return false;
    const char *below = below_folder(s, &p);
    *t = target_of(&p, by_inode);
    *reserved |= gc_own_is_temporary(p.rest) || (below && gc_own_reserves(s->own, below));
    gc_place_clear(&p);
    return true;
}

/* Finds the targets of a file that is read, or of the shard that it is a member of. @return false: out of memory */
static bool find_source(const search *s, const char *path, unsigned char kind, source *found) {
    gc_place p;
    char shard[GC_OWN_PATH];
    *found = (source){.path = path, .kind = kind};
    found->packed = gc_shard_split(path, shard, sizeof shard) != NULL;
    if (!gc_place_find(found->packed ? shard : path, &p))
        return false;
    const char *below = below_folder(s, &p);
    found->t = target_of(&p, &found->by_inode);
    found->replaced = below && gc_own_replaces(s->own, below);
    gc_place_clear(&p);
    return true;
}

/* Returns the number of an entry's responses, those in series included, and the name of one. */
static int count_responses(const gc_entry *e) {
    return gc_entry_sources(e) + gc_entry_recipe(e)->preparation.series_count;
}

static const char *find_response(const gc_entry *e, int i) {
    const int sources = gc_entry_sources(e);
    return i < sources ? gc_entry_source(e, i).response : gc_entry_recipe(e)->preparation.series[i - sources];
}

/* Finds the targets of all files that an entry reads. @return false: out of memory */
static bool find_sources(const search *s, const gc_entry *e, entry_targets *l) {
    const char *noise = gc_entry_noise(e);
    l->source = gc_calloc((int64_t)gc_entry_sources(e) + count_responses(e) + 1, sizeof *l->source);
    bool good = l->source && (!noise || find_source(s, noise, BY_NOISE, &l->source[l->sources++]));
    for (int i = 0; i < gc_entry_sources(e) && good; i++)
        good = find_source(s, gc_entry_source(e, i).input, BY_INPUT, &l->source[l->sources++]);
    for (int i = 0; i < count_responses(e) && good; i++)
        good = find_source(s, find_response(e, i), BY_RESPONSE, &l->source[l->sources++]);
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
        l->err = !find_sources(s, e, l);
    else
        l->err = !find_output(s, e->output, &l->output, &l->output_by_inode, &l->reserved) ||
                 (early && !find_output(s, early, &l->early, &l->early_by_inode, &l->reserved));
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

/* Returns the slot of the entry whose output is a file; NULL: none. */
static const slot *find_writer(const table *in, target t) {
    const slot *at = is_none(t) || !in->slot ? NULL : slot_of(in, t);
    return at && !is_none(at->t) ? at : NULL;
}

/* Records a conflict of the entry, if any, whose output is a file that this entry reads (-1: that all read). An entry's
 * output may be its own input, unless the entry reads or writes more than that, or outputs are packed into shards. */
static void check_source(search *s, int64_t entry, const source *read) {
    const slot *const found[] = {find_writer(&s->by_path, read->t), find_writer(&s->by_inode, read->by_inode)};
    const gc_entry *e = entry < 0 ? NULL : &s->manifest->entry[entry];
    const bool own = e && read->kind == BY_INPUT && !read->packed && s->own->shard_size == 0 && !gc_entry_noise(e) &&
                     !gc_entry_early(e) && gc_entry_sources(e) == 1;
    for (int i = 0; i < 2; i++)
        if (found[i] && (found[i]->entry != entry || !own))
            add_conflict(s, found[i]->entry, read->kind, entry);
    if (read->replaced && !s->replaced.status)
        (void)gc_fail(&s->replaced, GPUCONV_ERROR_ARGUMENT,
                      "%s: is read by the batch and would be replaced by a file that it writes into %s; name another "
                      "folder for the outputs",
                      read->path, s->own->folder);
}

/* The files of a matrix that an entry reads. */
typedef struct matrix_files {
    search *search;
    int64_t entry;
    bool good; /* false: out of memory */
} matrix_files;

static void check_matrix_file(void *context, const char *path) {
    matrix_files *m = context;
    source file;
    m->good = m->good && find_source(m->search, path, BY_RESPONSE, &file);
    if (m->good)
        check_source(m->search, m->entry, &file);
}

/* Checks the files that a matrix names, of each matrix once. @return false: out of memory */
static bool check_matrix(search *s, int64_t entry, const source *matrix) {
    matrix_files m = {s, entry, true};
    if (!s->matrices.slot && !make_table(&s->matrices, s->manifest, true))
        return false;
    slot *at = slot_of(&s->matrices, matrix->t);
    if (is_none(at->t)) {
        *at = (slot){matrix->t, entry};
        gc_ir_visit_files(matrix->path, check_matrix_file, &m);
    }
    return m.good;
}

/* Enters the outputs of an entry into the tables. @return false: out of memory */
static bool add_outputs(search *s, int64_t entry, const entry_targets *l) {
    if (l->reserved)
        add_conflict(s, entry, BY_BATCH, 0);
    return add_output(s, entry, &s->by_path, l->output) && add_output(s, entry, &s->by_inode, l->output_by_inode) &&
           add_output(s, entry, &s->by_path, l->early) && add_output(s, entry, &s->by_inode, l->early_by_inode);
}

/* Checks the files that an entry reads. @return false: out of memory */
static bool check_sources(search *s, int64_t entry, const entry_targets *l) {
    bool good = true;
    for (int i = 0; i < l->sources && good; i++) {
        const source *read = &l->source[i];
        check_source(s, entry, read);
        good = read->kind != BY_RESPONSE || !gc_is_matrix(read->path) || check_matrix(s, entry, read);
    }
    return good;
}

/* Checks the lists. @return false: out of memory */
static bool check_lists(search *s) {
    bool good = true;
    for (int i = 0; i < s->manifest->lists && good; i++) {
        source list;
        good = find_source(s, s->manifest->list[i], BY_LIST, &list);
        if (good)
            check_source(s, -1, &list);
    }
    return good;
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
        const unsigned char kind = s->conflict[i];
        gc_entry *e = &s->manifest->entry[i];
        if (kind == FREE)
            continue;
        if (kind == BY_BATCH)
            (void)snprintf(text, sizeof text, "the batch writes files of its own under such names; name another, not");
        else if (kind == BY_LIST)
            (void)snprintf(text, sizeof text,
                           "the output is the same file as a list that the batch reads; name another, not");
        else
            (void)snprintf(text, sizeof text, "the output is the same file as the %s of line %lld; name another, not",
                           what[kind], (long long)s->manifest->entry[s->with[i]].line);
        good = gc_entry_refuse(e, text, e->output);
    }
    return good;
}

/* Finds the place of the folder of the outputs. @return false: out of memory */
static bool find_folder(search *s) {
    const size_t room = strlen(s->own->folder) + 3;
    char *path = gc_calloc((int64_t)room, 1);
    if (path)
        (void)snprintf(path, room, "%s/x", s->own->folder);
    const bool good = path && gc_place_find(path, &s->folder);
    free(path);
    if (good)
        s->below = strlen(s->folder.rest) - 1;
    return good;
}

gpuconv_status gc_refuse_conflicts(gc_manifest *m, const gc_own_files *own, int threads, gpuconv_error *error) {
    search s = {.manifest = m, .own = own};
    s.conflict = gc_calloc(m->entries, sizeof *s.conflict);
    s.with = gc_calloc(m->entries, sizeof *s.with);
    s.targets = gc_calloc(gc_min(STEP, m->entries), sizeof *s.targets);
    gc_pool *pool = gc_pool_new(m->entries < 64 ? 1 : threads);
    bool good = s.conflict && s.with && s.targets && pool && find_folder(&s) && check_entries(&s, pool, true) &&
                check_entries(&s, pool, false) && check_lists(&s) && (gc_cancelled() || refuse_conflicts(&s));
    gc_pool_free(pool);
    gc_place_clear(&s.folder);
    free(s.by_path.slot);
    free(s.by_inode.slot);
    free(s.matrices.slot);
    free(s.conflict);
    free(s.with);
    free(s.targets);
    if (good && gc_cancelled())
        return gc_fail_cancelled(error, "the manifest");
    if (good && s.replaced.status)
        *error = s.replaced;
    return good ? s.replaced.status : gc_fail_memory(error, "the manifest");
}
