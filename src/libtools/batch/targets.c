/* Checks that a batch reads nothing within its folder, and that no two names of outputs lead to one file. */
#include "targets.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/map.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/ir/prepare.h"
#include "libgpuconv/ir/read_files.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct search {
    gc_manifest *manifest;
    const gc_own_files *own;
    char *folder;          /* of the outputs, without links */
    gc_map read;           /* the files that are read, each once; a value that is not NULL: it lies in the folder */
    unsigned char *linked; /* of each entry: an output lies behind a link */
    bool bad;              /* out of memory */
    gpuconv_error *error;
} search;

/* Returns a path without links of a file that may not exist yet, to be freed. NULL: out of memory. */
static char *resolve(const char *path) {
    char *head = strdup(path), *real = NULL, *made = NULL;
    size_t end = strlen(path);
    while (head && !(real = realpath(*head ? head : *path == '/' ? "/" : ".", NULL)) && end > 0) {
        while (end > 0 && head[--end] != '/')
            ;
        head[end] = '\0';
    }
    while (path[end] == '/')
        end++;
    if (real && gc_text_append(&made, path[end] ? "%s/%s/" : "%s/", real, path + end)) {
        gc_path_normalise(made);
        made[strlen(made) - 1] = '\0'; /* the slash, which the path itself may have, too */
    }
    free(real);
    free(head);
    return made;
}

/* Returns the path below the folder of the outputs, which the caller frees with *resolved; NULL: it is elsewhere. */
static const char *below_folder(search *s, const char *path, char **resolved) {
    const size_t length = strlen(s->folder);
    *resolved = resolve(path);
    s->bad |= !*resolved;
    return *resolved && strncmp(*resolved, s->folder, length) == 0 && (*resolved)[length] == '/'
               ? *resolved + length + 1
               : NULL;
}

static gpuconv_status fail_read(const search *s, const char *path) {
    return gc_fail(s->error, GPUCONV_ERROR_ARGUMENT,
                   "%s: is read by the batch and lies in %s, the folder of its outputs; name another folder", path,
                   s->own->folder);
}

/* ---- What is read ------------------------------------------------------------------------------------------------ */

static void check_read(void *context, int64_t index, int worker) {
    search *s = context;
    gc_map_slot *slot = &s->read.slot[index];
    char *resolved = NULL;
    (void)worker;
    if (slot->key && below_folder(s, slot->key, &resolved))
        slot->value = s;
    free(resolved);
}

static void check_matrix_file(void *context, const char *path) {
    search *s = context;
    char *resolved = NULL;
    if (!s->error->status && below_folder(s, path, &resolved))
        (void)fail_read(s, path);
    free(resolved);
}

static void add_read(search *s, const char *path) {
    s->bad |= path && !gc_map_put(&s->read, path, strlen(path));
}

/* Lists the files that the entries read. */
static void list_reads(search *s) {
    for (int64_t i = 0; i < s->manifest->entries && !s->bad; i++) {
        const gc_entry *e = &s->manifest->entry[i];
        for (int k = 0; k < gc_entry_sources(e) && !e->refusal; k++) {
            add_read(s, gc_entry_source(e, k).input);
            add_read(s, gc_entry_source(e, k).response);
        }
        add_read(s, e->refusal ? NULL : gc_entry_noise(e));
    }
    for (const gc_recipe *r = s->manifest->recipes.first; r; r = r->next)
        for (int i = 0; i < r->preparation.series_count; i++)
            add_read(s, r->preparation.series[i]);
}

/* Checks the files that are read, and those that matrices among them name. */
static gpuconv_status check_reads(search *s, gc_pool *pool) {
    list_reads(s);
    gc_pool_run(pool, check_read, s, s->read.slots);
    for (int64_t i = 0; i < s->read.slots && !s->error->status && !gc_cancelled(); i++) {
        const char *path = s->read.slot[i].key;
        if (path && s->read.slot[i].value)
            (void)fail_read(s, path);
        else if (path && gc_is_matrix(path))
            gc_ir_visit_files(path, check_matrix_file, s);
    }
    return s->error->status;
}

/* Checks the lists, which have been read already: one may lie in the folder under a name of the batch that it keeps. */
static gpuconv_status check_lists(search *s) {
    for (int i = 0; i < s->manifest->lists && !s->error->status; i++) {
        char *resolved = NULL;
        const char *below = below_folder(s, s->manifest->list[i], &resolved);
        if (below && (!gc_own_reserves(s->own, below) || gc_own_replaces(s->own, below)))
            (void)fail_read(s, s->manifest->list[i]);
        free(resolved);
    }
    return s->error->status;
}

/* ---- What is written --------------------------------------------------------------------------------------------- */

/* Decides whether a folder of an output is a link. @return false also without memory (s->bad) */
static bool is_linked(search *s, const char *output) {
    char *path = NULL;
    struct stat st;
    bool exists = true, linked = false;
    if (!output || !strchr(output, '/'))
        return false;
    s->bad |= !gc_text_append(&path, "%s/%s", s->folder, output);
    for (char *slash = path ? path + strlen(s->folder) + 1 : NULL; slash && exists && (slash = strchr(slash, '/'));
         *slash++ = '/') {
        *slash = '\0';
        exists = lstat(path, &st) == 0;
        linked |= exists && S_ISLNK(st.st_mode);
    }
    free(path);
    return linked;
}

static void check_output(void *context, int64_t index, int worker) {
    search *s = context;
    const gc_entry *e = &s->manifest->entry[index];
    (void)worker;
    s->linked[index] = !e->refusal && (is_linked(s, e->output) || is_linked(s, gc_entry_early(e)));
}

static bool is_reserved(const search *s, const char *output) {
    return output && (gc_own_is_temporary(output) || gc_own_reserves(s->own, output));
}

/* Refuses entries by their outputs. */
static void refuse_outputs(search *s, gc_pool *pool) {
    gc_pool_run(pool, check_output, s, s->manifest->entries);
    for (int64_t i = 0; i < s->manifest->entries && !s->bad && !gc_cancelled(); i++) {
        gc_entry *e = &s->manifest->entry[i];
        const char *why = e->refusal     ? NULL
                          : s->linked[i] ? "an output must not lie behind a link within the batch's folder, unlike"
                          : is_reserved(s, e->output) || is_reserved(s, gc_entry_early(e))
                              ? "the batch writes files of its own under such names; name another, not"
                              : NULL;
        s->bad |= why && !gc_entry_refuse(e, why, e->output);
    }
}

gpuconv_status gc_refuse_conflicts(gc_manifest *m, const gc_own_files *own, int threads, gpuconv_error *error) {
    gpuconv_error why = {0};
    search s = {.manifest = m, .own = own, .folder = resolve(own->folder), .error = &why};
    s.linked = gc_calloc(gc_max(1, m->entries), 1);
    gc_pool *pool = gc_pool_new(m->entries < 64 ? 1 : threads);
    s.bad = !s.folder || !s.linked || !pool;
    if (!s.bad && !check_reads(&s, pool) && !check_lists(&s))
        refuse_outputs(&s, pool);
    gc_pool_free(pool);
    gc_map_free(&s.read);
    free(s.linked);
    free(s.folder);
    if (s.bad)
        return gc_fail_memory(error, "the manifest");
    if (gc_cancelled())
        return gc_fail_cancelled(error, "the manifest");
    if (why.status)
        *error = why;
    return why.status;
}
