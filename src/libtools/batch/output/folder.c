/* Names of a batch's own files, its lock, and files that are read or written where they must not be. */
#include "folder.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/map.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/ir/prepare.h"
#include "libgpuconv/ir/read_files.h"
#include "libtools/batch/entry/text.h"
#include "libtools/room/room_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Names ---- */

static const char *const lists[] = {[GC_LIST_KALDI] = "wav.scp",
                                    [GC_LIST_RECORDINGS] = "recordings.jsonl.gz",
                                    [GC_LIST_CUTS] = "cuts.jsonl.gz",
                                    [GC_LIST_METADATA_CSV] = "metadata.csv",
                                    [GC_LIST_METADATA_JSONL] = "metadata.jsonl"};

/* The other files of a data folder of Kaldi. */
static const char *const of_kaldi[] = {GC_OWN_TEXT, GC_OWN_SPEAKERS, GC_OWN_UTTERANCES, GC_OWN_SEGMENTS};

const char *gc_own_list(gc_list_kind kind) {
    return lists[kind];
}

void gc_own_shard(int64_t index, char name[GC_OWN_SHARD]) {
    (void)snprintf(name, GC_OWN_SHARD, "%06lld.tar", (long long)index);
}

gpuconv_status gc_own_path(const char *folder, const char *name, char path[GC_OWN_PATH], gpuconv_error *error) {
    if (snprintf(path, GC_OWN_PATH, "%s/%s", folder, name) < GC_OWN_PATH)
        return GPUCONV_OK;
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s/%s: the name is too long", folder, name);
}

/* Decides whether the first component of a path is `name`: as a folder of that name it is in the way, too. */
static bool begins(const char *path, const char *name) {
    return name && strlen(name) == strcspn(path, "/") && gc_begins_with(path, name);
}

/* Decides the same for the files of a data folder of Kaldi, which only a batch of one writes: their names are those
 * that folders of other corpora may have. */
static bool begins_with_kaldi(const gc_own_files *own, const char *path) {
    bool found = false;
    if (own->kind != GC_LIST_KALDI)
        return false;
    for (size_t i = 0; i < sizeof of_kaldi / sizeof *of_kaldi && !found; i++)
        found = begins(path, of_kaldi[i]);
    return found;
}

/* Decides whether the first component of a path is the name of one of the batch's shards. */
static bool begins_with_shard(const gc_own_files *own, const char *path) {
    char name[GC_OWN_SHARD];
    const long long index = strtoll(path, NULL, 10);
    if (own->shard_size <= 0 || index < 0 || index > (own->entries - 1) / own->shard_size)
        return false;
    gc_own_shard(index, name);
    return begins(path, name);
}

/* Decides whether a path has a name that new files have for a time; GC_OWN_LOCK is one, too. */
static bool own_is_temporary(const char *path) {
    const char *slash = strrchr(path, '/');
    return gc_begins_with(slash ? slash + 1 : path, GC_OWN_TEMPORARIES);
}

/* Decides whether no output may have this path below the folder, because the batch or a later one may write a file of
 * its own there. Upper and lower case count as equal, because some file systems ignore case. */
static bool own_reserves(const gc_own_files *own, const char *path) {
    bool found = begins(path, GC_OWN_RESULTS) || begins(path, GC_OWN_MANIFEST) || begins(path, GC_OWN_LOCK) ||
                 begins_with_kaldi(own, path) || begins_with_shard(own, path);
    for (size_t i = 0; i < sizeof lists / sizeof *lists && !found; i++)
        found = begins(path, lists[i]);
    return found;
}

/* Decides whether the batch replaces the file with this path below the folder. */
static bool own_replaces(const gc_own_files *own, const char *path) {
    return (!own->resume && begins(path, GC_OWN_RESULTS)) || (own->manifest && begins(path, GC_OWN_MANIFEST)) ||
           begins(path, lists[own->kind]) || begins_with_kaldi(own, path) || begins(path, GC_OWN_LOCK) ||
           begins_with_shard(own, path);
}

/* ---- The lock ---- */

enum { TEXT = 300, BYTE_BATCH = 0, BYTE_RANKS = 1 };

struct gc_folder_lock {
    int fd;
    bool first_rank;
    char path[GC_OWN_PATH];
};

/* Opens the lock's file and locks it. A file that another process has removed meanwhile is opened again.
 * @return 0, EAGAIN or an errno value */
static int take(gc_folder_lock *l) {
    for (;;) {
        l->fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (l->fd < 0)
            return errno;
        int err = l->first_rank ? gc_file_lock(l->fd, GC_LOCK_EXCLUSIVE, BYTE_BATCH, 2)
                                : gc_file_lock(l->fd, GC_LOCK_SHARED, BYTE_RANKS, 1);
        if (err || gc_file_is_at(l->fd, l->path))
            return err;
        close(l->fd);
    }
}

/* Writes the name of this process into the file; a file without it is as good a lock. */
static void write_owner(const gc_folder_lock *l) {
    char host[100] = "", text[TEXT];
    (void)gethostname(host, sizeof host - 1);
    const int length = snprintf(text, sizeof text, "process %lld on %s\n", (long long)getpid(), host);
    if (ftruncate(l->fd, 0) == 0)
        (void)!pwrite(l->fd, text, (size_t)length, 0);
}

static gpuconv_status fail_locked(const gc_folder_lock *l, const char *folder, gpuconv_error *error) {
    char text[TEXT];
    ssize_t length = pread(l->fd, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return gc_fail(error, GPUCONV_ERROR_FILE,
                   "%s: another batch writes into this folder (%s); wait for its end, or name another folder", folder,
                   *text ? text : "an unknown process");
}

gpuconv_status gc_folder_lock_new(const char *folder, bool first_rank, gc_folder_lock **lock, int *unsupported,
                                  gpuconv_error *error) {
    *lock = NULL;
    *unsupported = 0;
    gc_folder_lock *l = gc_calloc(1, sizeof *l);
    if (!l)
        return gc_fail_memory(error, folder);
    *l = (gc_folder_lock){.fd = -1, .first_rank = first_rank};
    gpuconv_status status = gc_own_path(folder, GC_OWN_LOCK, l->path, error);
    const int err = status ? 0 : take(l);
    if (!status && l->fd < 0)
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", l->path, strerror(err));
    else if (err == EAGAIN)
        status = fail_locked(l, folder, error);
    if (!status && !err && first_rank) {
        write_owner(l);
        (void)gc_file_lock(l->fd, GC_LOCK_SHARED, BYTE_RANKS, 1);
    }
    if (status) { /* the file is that of the other batch */
        if (l->fd >= 0)
            close(l->fd);
        free(l);
        return status;
    }
    *unsupported = err;
    *lock = l;
    return GPUCONV_OK;
}

void gc_folder_lock_free(gc_folder_lock *l) {
    if (!l)
        return;
    if (l->first_rank)
        (void)unlink(l->path); /* before the lock ends, so that it is no other batch's file */
    close(l->fd);
    free(l);
}

/* ---- Conflicts ---- */

typedef struct search {
    gc_manifest *manifest;
    const gc_own_files *own;
    char *folder;          /* of the outputs, without links */
    gc_map read;           /* the files that are read, each once; a value that is not NULL: it lies in the folder */
    unsigned char *linked; /* of each entry: an output lies behind a link */
    atomic_bool bad;       /* out of memory; the workers set it */
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
            add_read(s, gc_response_path(gc_entry_source(e, k).response));
        }
        add_read(s, e->refusal || !e->extra ? NULL : gc_response_path(e->extra->noise_response));
        add_read(s, e->refusal ? NULL : gc_entry_noise(e));
    }
    for (const gc_recipe *r = s->manifest->recipes.first; r; r = r->next)
        for (int i = 0; i < r->settings.preparation.series_count; i++)
            add_read(s, r->settings.preparation.series[i]);
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
        if (below && (!own_reserves(s->own, below) || own_replaces(s->own, below)))
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
    return output && (own_is_temporary(output) || own_reserves(s->own, output));
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
