/*
 * Reads and writes shards with libarchive, which is loaded when the first one is opened: linked, it would load libxml2
 * and ICU (33 MB) at every start of the command. The first access lists a shard; the indices of the last few shards are
 * kept, so that memory does not depend on the number of shards. A member is read into an unnamed file in memory.
 */
#include "shards.h"

#include "folder.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/map.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/module.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"
#include "state.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- libarchive ---- */

/* The functions that shards use, named as in libarchive without "archive_". clang-format would indent each line more
 * than the one before. */
// clang-format off
#define GC_ARCHIVE_FUNCTIONS(F)                                                                                        \
    F(entry_filetype) F(entry_free) F(entry_hardlink) F(entry_new) F(entry_pathname) F(entry_set_filetype) F(entry_set_pathname)         \
    F(entry_set_perm) F(entry_set_size) F(entry_size) F(entry_sparse_count) F(error_string) F(filter_bytes)            \
    F(read_data_block) F(read_free) F(read_new) F(read_next_header) F(read_open_filename)                              \
    F(read_support_format_tar) F(write_close) F(write_data) F(write_free) F(write_header) F(write_new)                 \
    F(write_open_fd) F(write_set_format_gnutar)
// clang-format on

#define GC_ARCHIVE_FIELD(name) __typeof__(archive_##name) *(name);
typedef struct archive_functions {
    GC_ARCHIVE_FUNCTIONS(GC_ARCHIVE_FIELD)
    int (*error_number)(struct archive *); /* archive_errno: `errno` is a macro */
} archive_functions;

static archive_functions functions;
static bool is_loaded;

static void load(void) {
    static const char *const names[] = {"libarchive.so.13", "libarchive.so", NULL};
    void *library = gc_library_open(names, false); /* stays open */
    is_loaded = library != NULL;
#define FIND(name) is_loaded = is_loaded && gc_library_find(library, "archive_" #name, &functions.name);
    GC_ARCHIVE_FUNCTIONS(FIND)
#undef FIND
    is_loaded = is_loaded && gc_library_find(library, "archive_errno", &functions.error_number);
}

/* Loads libarchive at the first call. Any thread may call it. @return UNSUPPORTED: it is not installed */
static gpuconv_status archive_load(const archive_functions **library, gpuconv_error *error) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load);
    *library = &functions;
    return is_loaded ? GPUCONV_OK
                     : gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                               "tar shards need libarchive, which is not installed (Debian: libarchive13)");
}

/* ---- Shards as input ---- */

enum { INDICES = 16, BLOCK = 16384 };

typedef gc_shard_member member;

typedef struct shard_index {
    char *path; /* NULL: free */
    gc_state state;
    member *member; /* in their order */
    int64_t count;
    gc_map keys;      /* from a key to its first member */
    member **next;    /* of each member: the next one with its key, or NULL */
    uint64_t used;    /* time of the last use */
    char damage[200]; /* why the members behind the last one are not known; "": there are none */
} shard_index;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static shard_index kept[INDICES];
static uint64_t uses;

static void free_index(shard_index *x) {
    for (int64_t i = 0; i < x->count; i++)
        free(x->member[i].name);
    free(x->member);
    gc_map_free(&x->keys);
    free((void *)x->next);
    free(x->path);
    *x = (shard_index){.path = NULL};
}

void gc_shards_forget(void) {
    for (int i = 0; i < INDICES; i++)
        free_index(&kept[i]);
}

/* Appends a member. *capacity: of x->member. @return false: out of memory */
static bool add_member(shard_index *x, int64_t *capacity, const member *m) {
    if (x->count == *capacity) {
        *capacity = gc_max(64, 2 * *capacity);
        member *larger = realloc(x->member, (size_t)*capacity * sizeof *larger);
        if (!larger)
            return false;
        x->member = larger;
    }
    member *added = &x->member[x->count];
    *added = *m;
    added->name = strdup(m->name);
    x->count += added->name != NULL;
    return added->name != NULL;
}

/* Keeps why a shard can be read no further. */
static void keep_reason(shard_index *x, const archive_functions *la, struct archive *a) {
    const char *why = la->error_string(a);
    (void)snprintf(x->damage, sizeof x->damage, "%s", why ? why : "is not a tar file");
}

/* Finds the place of a member's bytes. The first block is asked for, because libarchive has then consumed the header,
 * and no more: its position is that of the member's data. @return false: the shard is damaged here */
static bool find_bytes(const archive_functions *la, struct archive *a, struct archive_entry *entry,
                       const shard_index *x, member *m) {
    const void *block;
    size_t bytes;
    la_int64_t at = 0;
    const bool special = la->entry_filetype(entry) != AE_IFREG;
    if (special || la->entry_sparse_count(entry) > 0) {
        m->why = special ? "is a symbolic link or a special file, not a file"
                         : "is stored sparsely; pack it without --sparse";
        return true;
    }
    m->size = la->entry_size(entry);
    const bool good = m->size <= 0 || la->read_data_block(a, &block, &bytes, &at) == ARCHIVE_OK;
    m->offset = la->filter_bytes(a, 0);
    if (!good || m->size < 0 || m->size > x->state.size - m->offset)
        m->why = "is cut off: the shard ends within it";
    return good;
}

/* Gives a hard link the place of the member that it names, which tar has written before. */
static void follow_link(const shard_index *x, const char *target, member *m) {
    m->why = "is a hard link to a member that the shard does not have before it";
    for (int64_t i = x->count - 1; i >= 0; i--)
        if (strcmp(x->member[i].name, target) == 0) {
            *m = x->member[i];
            return;
        }
}

/* Lists the members that are no folders. A shard that is cut off or damaged has those before that place. @return MEMORY
 */
static gpuconv_status list_members(const archive_functions *la, struct archive *a, shard_index *x, const char *path,
                                   gpuconv_error *error) {
    struct archive_entry *entry;
    int64_t capacity = 0;
    int result;
    bool good = true;
    while (good && ((result = la->read_next_header(a, &entry)) == ARCHIVE_OK || result == ARCHIVE_WARN)) {
        char *name = (char *)la->entry_pathname(entry); /* only read */
        const char *target = la->entry_hardlink(entry);
        member m = {.offset = 0};
        if (la->entry_filetype(entry) == AE_IFDIR || !name || !*name)
            continue;
        if (target)
            follow_link(x, target, &m);
        else
            good = find_bytes(la, a, entry, x, &m);
        m.name = name;
        if (!add_member(x, &capacity, &m))
            return gc_fail_memory(error, path);
    }
    if (!good || result != ARCHIVE_EOF)
        keep_reason(x, la, a);
    return GPUCONV_OK;
}

size_t gc_shard_key_length(const char *name) {
    const char *slash = strrchr(name, '/'), *file = slash ? slash + 1 : name;
    return (size_t)(file - name) + strcspn(file, ".");
}

/* Returns the first member with the key of a name; NULL: none. */
static const member *first_of(const shard_index *x, const char *name) {
    return gc_map_get(&x->keys, name, gc_shard_key_length(name));
}

/* Links the members of each key, from the last one on. @return false: out of memory */
static bool make_table(shard_index *x) {
    x->next = gc_calloc(gc_max(1, x->count), (int64_t)sizeof(void *));
    for (int64_t i = x->count - 1; x->next && i >= 0; i--) {
        const char *name = x->member[i].name;
        void **first = gc_map_put(&x->keys, name, gc_shard_key_length(name));
        if (!first)
            return false;
        x->next[i] = *first;
        *first = &x->member[i];
    }
    return x->next != NULL;
}

static gpuconv_status make_index(shard_index *x, const char *path, gpuconv_error *error) {
    const archive_functions *la;
    gpuconv_status status = archive_load(&la, error);
    if (status)
        return status;
    struct archive *a = la->read_new();
    *x = (shard_index){.path = strdup(path), .state = gc_state_of_path(path)};
    if (!a || !x->path || la->read_support_format_tar(a) != ARCHIVE_OK) {
        la->read_free(a);
        free_index(x);
        return gc_fail_memory(error, path);
    }
    status = la->read_open_filename(a, path, BLOCK) == ARCHIVE_OK
                 ? list_members(la, a, x, path, error)
                 : gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, la->error_string(a));
    la->read_free(a);
    if (!status && !make_table(x))
        status = gc_fail_memory(error, path);
    if (status)
        free_index(x);
    return status;
}

/* Returns the index of a shard, made now if it is not kept or the shard has changed. Requires the lock. */
static gpuconv_status find_index(const char *path, shard_index **found, gpuconv_error *error) {
    const gc_state now = gc_state_of_path(path);
    shard_index *oldest = &kept[0];
    *found = NULL;
    for (int i = 0; i < INDICES; i++) {
        shard_index *x = &kept[i];
        if (x->path && strcmp(x->path, path) == 0 && gc_state_same(&x->state, &now) && x->state.inode == now.inode) {
            x->used = ++uses;
            *found = x;
            return GPUCONV_OK;
        }
        if (!x->path || (oldest->path && x->used < oldest->used))
            oldest = x;
    }
    free_index(oldest);
    const locale_t before = gc_locale_enter(); /* names stay bytes: libarchive converts them to those of the locale */
    gpuconv_status status = make_index(oldest, path, error);
    gc_locale_leave(before);
    if (!status) {
        oldest->used = ++uses;
        *found = oldest;
    }
    return status;
}

/* Returns the last member of a name, which tar extracts last; NULL: none. */
static const member *find_member(const shard_index *x, const char *name) {
    const member *found = NULL;
    for (const member *m = first_of(x, name); m; m = x->next[m - x->member])
        if (strcmp(m->name, name) == 0)
            found = m;
    return found;
}

gpuconv_status gc_shard_list(const char *shard, bool (*add)(void *context, const char *member), void *context,
                             gpuconv_error *error) {
    shard_index *x;
    pthread_mutex_lock(&lock);
    gpuconv_status status = find_index(shard, &x, error);
    for (int64_t i = 0; !status && i < x->count; i++)
        if (!add(context, x->member[i].name))
            status = gc_fail_memory(error, shard);
    if (!status && *x->damage)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: %s", shard, x->damage);
    pthread_mutex_unlock(&lock);
    return status;
}

gpuconv_status gc_shard_find(const char *shard, const char *name, int64_t *offset, int64_t *size,
                             gpuconv_error *error) {
    shard_index *x;
    pthread_mutex_lock(&lock);
    gpuconv_status status = find_index(shard, &x, error);
    const member *m = status ? NULL : find_member(x, name);
    if (m && !m->why) {
        *offset = m->offset;
        *size = m->size;
    } else if (m) {
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s/%s: %s", shard, name, m->why);
    } else if (!status) {
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s/%s: the shard has no such member%s%s", shard, name,
                         *x->damage ? ", or it is lost: " : "", x->damage);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void gc_shard_siblings(const char *shard, const char *name, bool (*add)(void *context, const gc_shard_member *sibling),
                       void *context) {
    gpuconv_error ignored;
    shard_index *x;
    pthread_mutex_lock(&lock);
    const bool known = find_index(shard, &x, &ignored) == GPUCONV_OK;
    for (const member *m = known ? first_of(x, name) : NULL; m; m = x->next[m - x->member])
        if (strcmp(m->name, name) != 0 && find_member(x, m->name) == m && !add(context, m))
            break;
    pthread_mutex_unlock(&lock);
}

bool gc_shard_is_audio(const char *name) {
    const char *dot = strrchr(name, '.');
    char lower[8] = "";
    for (size_t i = 0; dot && dot[i + 1] && i < sizeof lower - 1; i++)
        lower[i] = (char)(dot[i + 1] | 0x20);
    return gc_ending_find(name, "m4a|aac|mp4|wma|webm|mka|amr|ac3") >= 0 ||
           (dot && strcmp(lower, "raw") != 0 && gc_is_format_name(lower));
}

/* Copies bytes of the shard into an unnamed file in memory. @return its descriptor, or -1 with errno set */
static int copy_to_memory(const char *shard, int64_t offset, int64_t size) {
    int from = open(shard, O_RDONLY | O_CLOEXEC), to = from < 0 ? -1 : gc_os_memory_file();
    char *bytes = to < 0 ? NULL : malloc(1 << 17);
    bool good = bytes != NULL;
    for (int64_t done = 0; good && done < size;) {
        ssize_t n = pread(from, bytes, (size_t)gc_min(1 << 17, size - done), offset + done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = EIO;
        good = n > 0 && write(to, bytes, (size_t)n) == n;
        done += n;
    }
    int reason = errno;
    free(bytes);
    if (from >= 0)
        close(from);
    if (!good && to >= 0) {
        close(to);
        to = -1;
    }
    errno = reason;
    return to < 0 || lseek(to, 0, SEEK_SET) == 0 ? to : -1;
}

gpuconv_status gc_shard_open(const char *path, const gc_input_options *options, gc_reader **reader,
                             gpuconv_error *error) {
    char shard[4096];
    int64_t offset, size;
    const char *name = strstr(path, ".tar/") ? gc_shard_split(path, shard, sizeof shard) : NULL;
    *reader = NULL;
    if (!name)
        return gc_reader_open(path, options, reader, error);
    gpuconv_status status = gc_shard_find(shard, name, &offset, &size, error);
    if (status)
        return status;
    int fd = copy_to_memory(shard, offset, size);
    if (fd < 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(errno));
    return gc_reader_open_descriptor(fd, true, size, path, options, reader, error);
}

/* ---- Shards as output ---- */

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
    const archive_functions *la;
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
    if (value) {
        *value = copy;
    } else {
        free(copy);
        k->status = gc_fail_memory(k->error, k->path);
    }
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
    const char *name = gc_shard_split(e->input, shard, sizeof shard), *early = gc_entry_early(e);
    if (add_output(k, index, e->output, &found) || !found)
        return k->status;
    if (early && add_output(k, index, early, &early_found))
        return k->status;
    if (!name)
        return GPUCONV_OK;
    k->from = open(shard, O_RDONLY | O_CLOEXEC);
    if (k->from < 0)
        return k->status = gc_fail(k->error, GPUCONV_ERROR_FILE, "%s: %s", shard, strerror(errno));
    k->output = e->output;
    gc_shard_siblings(shard, name, add_sibling, k);
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
    gpuconv_status status = archive_load(&k->la, k->error);
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
