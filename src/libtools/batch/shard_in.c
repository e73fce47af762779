/* Reads members of tar files. The first access lists a shard with libarchive; the indices of the last few shards are
 * kept, so that memory does not depend on the number of shards. A member is read into an unnamed file in memory. */
#include "shard_in.h"

#include "archive_library.h"
#include "libgpuconv/audio/names.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/map.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"
#include "shard_path.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

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
static void keep_reason(shard_index *x, const gc_archive *la, struct archive *a) {
    const char *why = la->error_string(a);
    (void)snprintf(x->damage, sizeof x->damage, "%s", why ? why : "is not a tar file");
}

/* Finds the place of a member's bytes. The first block is asked for, because libarchive has then consumed the header,
 * and no more: its position is that of the member's data. @return false: the shard is damaged here */
static bool find_bytes(const gc_archive *la, struct archive *a, struct archive_entry *entry, const shard_index *x,
                       member *m) {
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
static gpuconv_status list_members(const gc_archive *la, struct archive *a, shard_index *x, const char *path,
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
    x->next = gc_calloc(gc_max(1, x->count), sizeof *x->next);
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
    const gc_archive *la;
    gpuconv_status status = gc_archive_load(&la, error);
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
    static const char *const more[] = {"m4a", "aac", "mp4", "wma", "webm", "mka", "amr", "ac3"};
    const char *dot = strrchr(name, '.');
    char lower[8] = "";
    for (size_t i = 0; dot && dot[i + 1] && i < sizeof lower - 1; i++)
        lower[i] = (char)(dot[i + 1] | 0x20);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (strcmp(lower, more[i]) == 0)
            return true;
    return dot && strcmp(lower, "raw") != 0 && gc_is_format_name(lower);
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
