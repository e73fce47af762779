/* Finds places. Symbolic links at the end of the path are followed, then components are removed from the right until
 * stat succeeds. */
#include "place.h"

#include "libgpuconv/core/memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINKS_MAX = 40 };

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

char *gc_path_in(const char *folder, const char *name) {
    size_t room = strlen(folder) + strlen(name) + 2;
    char *path = gc_calloc((int64_t)room, 1);
    if (path)
        (void)snprintf(path, room, "%s/%s", folder, name);
    return path;
}

char *gc_path_beside(const char *path, const char *name) {
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
        char *next = gc_path_beside(*path, name);
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

bool gc_place_find(const char *given, gc_place *p) {
    struct stat st;
    bool exists;
    *p = (gc_place){.path = strdup(given)};
    if (!p->path || !follow_links(&p->path, &exists, &p->file)) {
        gc_place_clear(p);
        return false;
    }
    p->several_names = exists && (p->file.st_nlink > 1 || !S_ISREG(p->file.st_mode));
    gc_path_normalise(p->path);
    p->rest = p->path;
    bool found = false;
    for (char *slash = strrchr(p->path, '/'); slash && !found; slash = slash_before(p->path, slash)) {
        *slash = '\0';
        found = stat(slash == p->path ? "/" : p->path, &st) == 0 && S_ISDIR(st.st_mode);
        *slash = '/';
        p->rest = found ? slash + 1 : p->path;
    }
    if (found || stat(".", &st) == 0) {
        p->device = st.st_dev;
        p->inode = st.st_ino;
    }
    return true;
}

void gc_place_clear(gc_place *p) {
    free(p->path);
    *p = (gc_place){.path = NULL};
}
