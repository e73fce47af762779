/* Writes shards with libarchive. */
#include "shard_out.h"

#include "archive_library.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/output_file.h"
#include "shard_in.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 8192, PIECE = 1 << 17 };

struct gc_packer {
    const gc_manifest *manifest;
    const char *folder;
    int64_t size, shards;
    bool resume;
    pthread_mutex_t lock; /* of expected */
    int64_t *expected;    /* entries of each shard that are not processed yet */
};

gc_packer *gc_packer_new(const gc_manifest *m, const char *folder, int64_t size, bool resume) {
    gc_packer *p = gc_calloc(1, sizeof *p);
    if (!p)
        return NULL;
    *p = (gc_packer){.manifest = m, .folder = folder, .size = size, .resume = resume};
    p->shards = (m->entries + size - 1) / size;
    p->expected = gc_calloc(gc_max(1, p->shards), sizeof *p->expected);
    pthread_mutex_init(&p->lock, NULL);
    if (!p->expected) {
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
    free(p);
    gc_shards_forget();
}

static bool shard_path(const gc_packer *p, int64_t shard, char path[PATH_BYTES]) {
    return snprintf(path, PATH_BYTES, "%s/%06lld.tar", p->folder, (long long)shard) < PATH_BYTES;
}

static bool output_path(const gc_packer *p, const char *output, char path[PATH_BYTES]) {
    return snprintf(path, PATH_BYTES, "%s/%s", p->folder, output) < PATH_BYTES;
}

bool gc_packer_has(const gc_packer *p, int64_t entry, int64_t *bytes) {
    char shard[PATH_BYTES];
    int64_t offset;
    struct stat st;
    return p->resume && shard_path(p, entry / p->size, shard) && stat(shard, &st) == 0 &&
           gc_shard_find(shard, p->manifest->entry[entry].output, &offset, bytes);
}

void gc_packer_expect(gc_packer *p, int64_t entry) {
    p->expected[entry / p->size]++;
}

void gc_packer_expect_none(gc_packer *p) {
    for (int64_t i = 0; i < p->shards; i++)
        p->expected[i] = 0;
}

/* ---- One shard --------------------------------------------------------------------------------------------------- */

/* A shard that is being written. */
typedef struct packing {
    const gc_packer *p;
    const gc_archive *la;
    struct archive *to;
    const char *path;   /* of the shard */
    const char *output; /* whose sample the siblings join */
    int from;           /* descriptor of the shard from which siblings are copied */
    gpuconv_status status;
    gpuconv_error *error;
} packing;

static gpuconv_status fail_archive(packing *k) {
    const char *why = k->la->error_string(k->to);
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

/* Adds an output, from its file or from the shard that is replaced. *found: it exists. */
static gpuconv_status add_output(packing *k, const char *output, bool *found) {
    char path[PATH_BYTES];
    struct stat st;
    int64_t offset = 0, size;
    bool loose = output_path(k->p, output, path) && stat(path, &st) == 0 && S_ISREG(st.st_mode);
    *found = loose || (k->p->resume && gc_shard_find(k->path, output, &offset, &size));
    if (!*found)
        return GPUCONV_OK;
    int fd = open(loose ? path : k->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return k->status = gc_fail(k->error, GPUCONV_ERROR_FILE, "%s: %s", loose ? path : k->path, strerror(errno));
    (void)add_bytes(k, output, fd, offset, loose ? (int64_t)st.st_size : size);
    close(fd);
    return k->status;
}

static bool add_sibling(void *context, const char *name, int64_t offset, int64_t size) {
    packing *k = context;
    char renamed[PATH_BYTES];
    if (gc_shard_is_audio(name))
        return true;
    if (snprintf(renamed, sizeof renamed, "%.*s%s", (int)gc_shard_key_length(k->output), k->output,
                 name + gc_shard_key_length(name)) >= PATH_BYTES)
        return true;
    return add_bytes(k, renamed, k->from, offset, size) == GPUCONV_OK;
}

/* Adds the outputs of an entry, and the other members of its input's sample. */
static gpuconv_status add_entry(packing *k, const gc_entry *e) {
    char shard[PATH_BYTES];
    bool found = false, early_found;
    if (!e->output || e->refusal)
        return GPUCONV_OK;
    const char *member = gc_shard_split(e->input, shard, sizeof shard), *early = gc_entry_early(e);
    if (add_output(k, e->output, &found) || !found)
        return k->status;
    if (early && add_output(k, early, &early_found))
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

/* Removes the files of a shard's outputs. */
static void remove_files(const gc_packer *p, int64_t first, int64_t end) {
    char path[PATH_BYTES];
    for (int64_t i = first; i < end; i++) {
        const gc_entry *e = &p->manifest->entry[i];
        if (e->output && !e->refusal && output_path(p, e->output, path))
            (void)unlink(path);
        if (!e->refusal && gc_entry_early(e) && output_path(p, gc_entry_early(e), path))
            (void)unlink(path);
    }
}

/* Writes all members of a shard into the descriptor. */
static gpuconv_status write_members(packing *k, int fd, int64_t first, int64_t end) {
    gpuconv_status status = gc_archive_load(&k->la, k->error);
    if (status)
        return status;
    k->to = k->la->write_new();
    if (!k->to)
        return gc_fail_memory(k->error, k->path);
    if (k->la->write_set_format_pax_restricted(k->to) != ARCHIVE_OK || k->la->write_open_fd(k->to, fd) != ARCHIVE_OK)
        fail_archive(k);
    for (int64_t i = first; i < end && !k->status; i++)
        (void)add_entry(k, &k->p->manifest->entry[i]);
    if (!k->status && k->la->write_close(k->to) != ARCHIVE_OK)
        fail_archive(k);
    k->la->write_free(k->to);
    return k->status;
}

static gpuconv_status pack(const gc_packer *p, int64_t shard, gpuconv_error *error) {
    char path[PATH_BYTES];
    const int64_t first = shard * p->size, end = gc_min(first + p->size, p->manifest->entries);
    gc_output_file *file;
    if (!shard_path(p, shard, path))
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: the name is too long", p->folder);
    gpuconv_status status = gc_output_file_new(path, GC_OUTPUT_PROGRAM_PATH, NULL, &file, error);
    if (status)
        return status;
    packing k = {.p = p, .path = path, .from = -1, .error = error};
    status = write_members(&k, gc_output_file_descriptor(file), first, end);
    if (!status)
        status = gc_output_file_commit(file, error);
    gc_output_file_free(file);
    if (!status)
        remove_files(p, first, end);
    return status;
}

/* Decides whether a file of the shard's outputs is left. */
static bool has_files(const gc_packer *p, int64_t shard) {
    char path[PATH_BYTES];
    struct stat st;
    for (int64_t i = shard * p->size; i < gc_min((shard + 1) * p->size, p->manifest->entries); i++) {
        const gc_entry *e = &p->manifest->entry[i];
        if (e->output && !e->refusal && output_path(p, e->output, path) && stat(path, &st) == 0)
            return true;
    }
    return false;
}

gpuconv_status gc_packer_end(gc_packer *p, int64_t entry, gpuconv_error *error) {
    pthread_mutex_lock(&p->lock);
    bool last = --p->expected[entry / p->size] == 0;
    pthread_mutex_unlock(&p->lock);
    char path[PATH_BYTES];
    struct stat st;
    const bool unchanged = last && p->resume && shard_path(p, entry / p->size, path) && stat(path, &st) == 0 &&
                           !has_files(p, entry / p->size);
    return last && !unchanged ? pack(p, entry / p->size, error) : GPUCONV_OK;
}

gpuconv_status gc_packer_pack_rest(gc_packer *p, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    for (int64_t i = 0; i < p->shards && !status; i++)
        if (p->expected[i] == 0 && has_files(p, i))
            status = pack(p, i, error);
    return status;
}
