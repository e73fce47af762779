/* Writes shards with libarchive. */
#include "shard_out.h"

#include "archive_library.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/map.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/output_file.h"
#include "own_files.h"
#include "shard_in.h"
#include "shard_path.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 17 };

struct gc_packer {
    gc_packer_config c;
    int64_t shards;
    pthread_mutex_t lock;  /* of the following fields */
    int64_t *expected;     /* entries of each shard that are not processed yet */
    unsigned char *failed; /* entries that failed in this run; constant once no more of their shard are expected */
    bool noted;            /* the user was told of a member that was left out */
};

gc_packer *gc_packer_new(const gc_packer_config *config) {
    const int64_t entries = config->manifest->entries;
    gc_packer *p = gc_calloc(1, sizeof *p);
    if (!p)
        return NULL;
    *p = (gc_packer){.c = *config, .shards = gc_divide_up(entries, config->size)};
    p->expected = gc_calloc(gc_max(1, p->shards), sizeof *p->expected);
    p->failed = gc_calloc(gc_max(1, entries), 1);
    pthread_mutex_init(&p->lock, NULL);
    if (!p->expected || !p->failed) {
        gc_packer_free(p);
        return NULL;
    }
    return p;
}

void gc_packer_free(gc_packer *p) {
    if (!p)
        return;
    pthread_mutex_destroy(&p->lock);
    free(p->expected);
    free(p->failed);
    free(p);
    gc_shards_forget();
}

static bool shard_path(const gc_packer *p, int64_t shard, char path[GC_OWN_PATH]) {
    char name[GC_OWN_SHARD];
    gc_own_shard(shard, name);
    return gc_own_path(p->c.folder, name, path, NULL) == GPUCONV_OK;
}

static bool output_path(const gc_packer *p, const char *output, char path[GC_OWN_PATH]) {
    return gc_own_path(p->c.folder, output, path, NULL) == GPUCONV_OK;
}

bool gc_packer_has(const gc_packer *p, int64_t entry, int64_t *bytes) {
    char shard[GC_OWN_PATH];
    int64_t offset;
    struct stat st;
    return p->c.resume && shard_path(p, entry / p->c.size, shard) && stat(shard, &st) == 0 &&
           gc_shard_find(shard, p->c.manifest->entry[entry].output, &offset, bytes, NULL) == GPUCONV_OK;
}

void gc_packer_expect(gc_packer *p, int64_t entry) {
    p->expected[entry / p->c.size]++;
}

void gc_packer_expect_none(gc_packer *p, const unsigned char *done) {
    for (int64_t i = 0; i < p->shards; i++)
        p->expected[i] = 0;
    for (int64_t i = 0; i < p->c.manifest->entries; i++)
        p->failed[i] = !done[i];
}

/* Returns the entry, or NULL if it is refused. */
static const gc_entry *valid_entry(const gc_packer *p, int64_t index) {
    const gc_entry *e = &p->c.manifest->entry[index];
    return e->output && !e->refusal ? e : NULL;
}

/* ---- One shard --------------------------------------------------------------------------------------------------- */

/* A shard that is being written. */
typedef struct packing {
    gc_packer *p;
    const gc_archive *la;
    struct archive *to;
    const char *path;   /* of the shard */
    int64_t first, end; /* its entries */
    gc_map names;       /* of the outputs and of the copied members; a value: the copied name, owned */
    const char *output; /* whose sample the siblings join */
    int from;           /* descriptor of the shard from which siblings are copied */
    gpuconv_status status;
    gpuconv_error *error;
} packing;

static gpuconv_status fail_archive(packing *k) {
    const int number = k->la->error_number(k->to); /* negative: an error of libarchive itself */
    const char *why = number > 0 ? strerror(number) : k->la->error_string(k->to);
    k->status = gc_fail(k->error, GPUCONV_ERROR_FILE, "%s: %s", k->path, why ? why : "cannot be written");
    return k->status;
}

/* Adds a member of `size` bytes that begin at `offset` of an open file. */
static gpuconv_status add_bytes(packing *k, const char *name, int fd, int64_t offset, int64_t size) {
    struct archive_entry *entry = k->la->entry_new();
    char *bytes = malloc(PIECE);
    if (!entry || !bytes) {
        k->la->entry_free(entry);
        free(bytes);
        return k->status = gc_fail_memory(k->error, k->path);
    }
    k->la->entry_set_pathname(entry, name);
    k->la->entry_set_filetype(entry, AE_IFREG);
    k->la->entry_set_perm(entry, 0644);
    k->la->entry_set_size(entry, size);
    if (k->la->write_header(k->to, entry) != ARCHIVE_OK)
        fail_archive(k);
    for (int64_t done = 0; done < size && !k->status;) {
        ssize_t n = pread(fd, bytes, (size_t)gc_min(PIECE, size - done), offset + done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            k->status = gc_fail(k->error, GPUCONV_ERROR_FILE, "%s: %s cannot be read: %s", k->path, name,
                                n ? strerror(errno) : "its end is missing");
        else if (k->la->write_data(k->to, bytes, (size_t)n) != n)
            fail_archive(k);
        done += n;
    }
    k->la->entry_free(entry);
    free(bytes);
    return k->status;
}

/* Adds an output, from its file unless that is an older one, or from the shard that is replaced. *found: it exists. */
static gpuconv_status add_output(packing *k, int64_t index, const char *output, bool *found) {
    char path[GC_OWN_PATH];
    struct stat st;
    int64_t offset = 0, size;
    bool loose = !k->p->failed[index] && output_path(k->p, output, path) && stat(path, &st) == 0 && S_ISREG(st.st_mode);
    *found = loose || (k->p->c.resume && gc_shard_find(k->path, output, &offset, &size, NULL) == GPUCONV_OK);
    if (!*found)
        return GPUCONV_OK;
    int fd = open(loose ? path : k->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return k->status = gc_fail(k->error, GPUCONV_ERROR_FILE, "%s: %s", loose ? path : k->path, strerror(errno));
    (void)add_bytes(k, output, fd, offset, loose ? (int64_t)st.st_size : size);
    close(fd);
    return k->status;
}

/* Tells the user once that a member of an input's sample is not copied. */
static void note_left_out(gc_packer *p, const gc_shard_member *sibling) {
    char text[600];
    pthread_mutex_lock(&p->lock);
    const bool first = !p->noted;
    p->noted = true;
    pthread_mutex_unlock(&p->lock);
    (void)snprintf(text, sizeof text, "%.300s: is not copied into the shards of the outputs: it %s", sibling->name,
                   sibling->why);
    if (first && p->c.note)
        p->c.note(p->c.context, text);
}

/* Inserts the name of a member; `copied`: the table keeps a copy. @return false: the shard has it, or out of memory
 * (k->status) */
static bool insert_name(packing *k, const char *name, bool copied) {
    if (gc_map_has(&k->names, name, strlen(name)))
        return false;
    char *copy = copied ? strdup(name) : NULL;
    const char *key = copied ? copy : name;
    void **value = key ? gc_map_put(&k->names, key, strlen(key)) : NULL;
    if (value)
        *value = copy;
    else
        k->status = gc_fail_memory(k->error, k->path);
    return !k->status;
}

static void free_names(packing *k) {
    for (int64_t i = 0; i < k->names.slots; i++)
        free(k->names.slot[i].value);
    gc_map_free(&k->names);
}

static bool add_sibling(void *context, const gc_shard_member *sibling) {
    packing *k = context;
    char renamed[GC_OWN_PATH];
    if (gc_shard_is_audio(sibling->name))
        return true;
    if (snprintf(renamed, sizeof renamed, "%.*s%s", (int)gc_shard_key_length(k->output), k->output,
                 sibling->name + gc_shard_key_length(sibling->name)) >= GC_OWN_PATH)
        return true;
    if (sibling->why) {
        note_left_out(k->p, sibling);
        return true;
    }
    if (!insert_name(k, renamed, true)) /* an output, or the sample has two sounds */
        return !k->status;
    return add_bytes(k, renamed, k->from, sibling->offset, sibling->size) == GPUCONV_OK;
}

/* Adds the outputs of an entry, and the other members of its input's sample. */
static gpuconv_status add_entry(packing *k, int64_t index) {
    const gc_entry *e = valid_entry(k->p, index);
    char shard[GC_OWN_PATH];
    bool found = false, early_found;
    if (!e)
        return GPUCONV_OK;
    const char *member = gc_shard_split(e->input, shard, sizeof shard), *early = gc_entry_early(e);
    if (add_output(k, index, e->output, &found) || !found)
        return k->status;
    if (early && add_output(k, index, early, &early_found))
        return k->status;
    if (!member)
        return GPUCONV_OK;
    k->from = open(shard, O_RDONLY | O_CLOEXEC);
    if (k->from < 0)
        return k->status = gc_fail(k->error, GPUCONV_ERROR_FILE, "%s: %s", shard, strerror(errno));
    k->output = e->output;
    gc_shard_siblings(shard, member, add_sibling, k);
    close(k->from);
    return k->status;
}

/* Calls `act` for the paths of a shard's outputs, until it returns false; not for those of entries that failed, whose
 * files are older ones. @return false: `act` did */
static bool each_file(const gc_packer *p, int64_t first, int64_t end, bool (*act)(const char *path)) {
    char path[GC_OWN_PATH];
    bool good = true;
    for (int64_t i = first; i < end && good; i++) {
        const gc_entry *e = p->failed[i] ? NULL : valid_entry(p, i);
        const char *early = e ? gc_entry_early(e) : NULL;
        good = !e || !output_path(p, e->output, path) || act(path);
        good = good && (!early || !output_path(p, early, path) || act(path));
    }
    return good;
}

static bool remove_file(const char *path) {
    (void)unlink(path);
    return true;
}

static bool is_missing(const char *path) {
    struct stat st;
    return stat(path, &st) != 0;
}

/* Writes all members of a shard into the descriptor. */
static gpuconv_status write_members(packing *k, int fd) {
    gpuconv_status status = gc_archive_load(&k->la, k->error);
    if (status)
        return status;
    k->to = k->la->write_new();
    if (!k->to)
        return gc_fail_memory(k->error, k->path);
    /* In this format names are bytes, which pax would convert from the locale to UTF-8. */
    if (k->la->write_set_format_gnutar(k->to) != ARCHIVE_OK || k->la->write_open_fd(k->to, fd) != ARCHIVE_OK)
        fail_archive(k);
    for (int64_t i = k->first; i < k->end && !k->status; i++) {
        const gc_entry *e = valid_entry(k->p, i);
        const char *early = e ? gc_entry_early(e) : NULL;
        if (e)
            (void)insert_name(k, e->output, false);
        if (early)
            (void)insert_name(k, early, false);
    }
    for (int64_t i = k->first; i < k->end && !k->status; i++)
        (void)add_entry(k, i);
    if (!k->status && k->la->write_close(k->to) != ARCHIVE_OK)
        fail_archive(k);
    k->la->write_free(k->to);
    return k->status;
}

static int64_t end_of_shard(const gc_packer *p, int64_t shard) {
    return gc_min((shard + 1) * p->c.size, p->c.manifest->entries);
}

static gpuconv_status pack(gc_packer *p, int64_t shard, gpuconv_error *error) {
    char path[GC_OWN_PATH];
    gc_output_file *file;
    if (!shard_path(p, shard, path))
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: the name is too long", p->c.folder);
    gpuconv_status status = gc_output_file_new(path, GC_OUTPUT_PROGRAM_PATH, NULL, &file, error);
    if (status)
        return status;
    packing k = {
        .p = p, .path = path, .first = shard * p->c.size, .end = end_of_shard(p, shard), .from = -1, .error = error};
    const locale_t before = gc_locale_enter(); /* in others libarchive converts names */
    status = write_members(&k, gc_output_file_descriptor(file));
    gc_locale_leave(before);
    free_names(&k);
    if (!status)
        status = gc_output_file_commit(file, error);
    gc_output_file_free(file);
    if (!status)
        (void)each_file(p, k.first, k.end, remove_file);
    return status;
}

/* Decides whether a file of the shard's outputs is left. */
static bool has_files(const gc_packer *p, int64_t shard) {
    return !each_file(p, shard * p->c.size, end_of_shard(p, shard), is_missing);
}

gpuconv_status gc_packer_end(gc_packer *p, int64_t entry, bool failed, gpuconv_error *error) {
    pthread_mutex_lock(&p->lock);
    p->failed[entry] = failed;
    bool last = --p->expected[entry / p->c.size] == 0;
    pthread_mutex_unlock(&p->lock);
    char path[GC_OWN_PATH];
    struct stat st;
    const bool unchanged = last && p->c.resume && shard_path(p, entry / p->c.size, path) && stat(path, &st) == 0 &&
                           !has_files(p, entry / p->c.size);
    return last && !unchanged ? pack(p, entry / p->c.size, error) : GPUCONV_OK;
}

gpuconv_status gc_packer_pack_rest(gc_packer *p, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    for (int64_t i = 0; i < p->shards && !status; i++)
        if (p->expected[i] == 0 && has_files(p, i))
            status = pack(p, i, error);
    return status;
}
